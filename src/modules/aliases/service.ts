/** What can be done with aliases of actions: make, change, delete, read, register those of a pack. */
import { bodyInvalid, nameTaken } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import {
  asEnabled,
  checkPackDefinitions,
  isGone,
  type PackDefinitions,
  type Registration,
} from '../../core/pack-content.ts'
import { actionAliasResource } from '../../core/permissions.ts'
import type { FactOf } from '../../bus/index.ts'
import { commitPlan, type Database, type Step, type Unit } from '../../db/index.ts'
import { contentAt, createContentChanges, type ContentChanges } from '../../http/index.ts'
import { writeJson } from '../../lib/json/index.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import { fieldOf } from '../../lib/schema/index.ts'
import { checkAlias } from './definition.ts'
import type { AliasStore } from './store.ts'
import type { AliasDefinition, AliasRecord, AliasRequest } from './types.ts'

export interface AliasService extends ContentChanges<AliasRecord, AliasRequest> {
  /** By id when it looks like one, else by reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): AliasRecord
  /** Ids stay. What is wrong with some definitions does not keep the others out. */
  register(content: PackDefinitions): Promise<Registration>
}

export function createAliasService({
  database,
  store,
  log,
  systemUser,
}: {
  database: Pick<Database, 'write'>
  store: AliasStore
  log: Log
  /** Writes the aliases of packs. */
  systemUser: string
}): AliasService {
  const get = (refOrId: string): AliasRecord => contentAt(store, refOrId)

  /** @throws BODY_INVALID */
  async function fill(
    { id: _i, uid: _u, ref: _r, metadata_file: _m, ...given }: AliasRequest,
    pack: string,
  ): Promise<AliasDefinition> {
    const checked = await checkAlias({ ...given, pack: given.pack ?? pack })
    const problems = 'problems' in checked ? checked.problems : checked.warnings
    if ('problems' in checked || problems.length > 0) {
      const [problem] = problems
      const path = problem === undefined ? [] : fieldOf(problem)
      throw bodyInvalid(problems.map(({ message }) => message).join('; '), { path })
    }
    return checked.definition
  }

  /** @throws NAME_TAKEN */
  function planWrite(
    before: AliasRecord | undefined,
    definition: AliasDefinition,
  ): { result: AliasRecord; unit: Unit } {
    const alias = recordOf(definition, before?.id ?? newId())
    const same = before?.ref === alias.ref ? undefined : store.findByRef(alias.ref)
    if (same !== undefined) throw nameTaken(`Action alias "${alias.ref}"`, same.id)
    const step = before === undefined ? store.insert(alias) : store.update(alias, before)
    const facts = [changed(before === undefined ? 'create' : 'update', alias)]
    return { result: alias, unit: { steps: [step], facts, subject: alias.id } }
  }

  function audit(what: 'created' | 'updated' | 'deleted', alias: AliasRecord, by: LogFields): void {
    const { id, ref, action_ref: action, enabled } = alias
    log.audit(`action_alias.${what}`, `Action alias ${what}. ActionAlias.id=${id}`, {
      alias_id: id,
      alias: ref,
      action,
      enabled,
      ...by,
    })
  }

  return {
    get,

    ...createContentChanges<AliasRecord, AliasDefinition, AliasRequest>({
      kind: 'Action alias',
      permissions: { modify: 'action_alias_modify', delete: 'action_alias_delete', create: 'action_alias_create' },
      database,
      get,
      fill,
      resourceOf: actionAliasResource,
      planWrite,
      planDelete: (seen) => ({ steps: [store.delete(seen)], facts: [changed('delete', seen)] }),
      audit,
    }),

    async register(content) {
      const { definitions, problems } = await checkPackDefinitions(content, 'Alias', (given) =>
        checkAlias(withPack(given, content.pack)),
      )
      const plan = (): { result: FactOf<'alias.changed'>[]; unit: Unit } => {
        const existing = new Map(store.ofPack(content.pack).map((alias) => [alias.name, alias]))
        const steps: Step[] = []
        const facts: FactOf<'alias.changed'>[] = []
        for (const definition of definitions) {
          const before = existing.get(definition.name)
          const alias = recordOf(asEnabled(content, definition, before), before?.id ?? newId())
          if (before !== undefined && writeJson(before) === writeJson(alias)) continue
          steps.push(before === undefined ? store.insert(alias) : store.update(alias, before))
          facts.push(changed(before === undefined ? 'create' : 'update', alias))
        }
        for (const alias of existing.values()) {
          if (!isGone(alias, content, definitions)) continue
          steps.push(store.delete(alias))
          facts.push(changed('delete', alias))
        }
        return { result: facts, unit: { steps, facts } }
      }
      const changes = await commitPlan(database, plan, `The aliases of pack "${content.pack}"`)
      for (const { payload } of changes) audit(`${payload.change}d`, payload.alias, { user: systemUser })
      const removed = changes.filter(({ payload }) => payload.change === 'delete').length
      return { registered: definitions.length, removed, problems }
    },
  }
}

const changed = (change: 'create' | 'update' | 'delete', alias: AliasRecord): FactOf<'alias.changed'> => ({
  name: 'alias.changed',
  payload: { change, alias },
})

function withPack(given: unknown, pack: string): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return { ...given, pack: (given as { pack?: unknown }).pack ?? pack }
}

function recordOf(definition: AliasDefinition, id: string): AliasRecord {
  const { pack, name } = definition
  return { id, uid: `action_alias:${pack}:${name}`, ref: `${pack}.${name}`, ...definition }
}
