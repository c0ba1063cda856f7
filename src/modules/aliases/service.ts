/** What can be done with aliases of actions: read, register those of a pack. */
import { contentNotFound } from '../../core/errors.ts'
import { isId, newId } from '../../core/ids.ts'
import { checkPackDefinitions, isGone, type PackDefinitions, type Registration } from '../../core/pack-content.ts'
import { commitPlan, type Database, type Step, type Unit } from '../../db/index.ts'
import { writeJson } from '../../lib/json/index.ts'
import { checkAlias } from './definition.ts'
import type { AliasStore } from './store.ts'
import type { AliasDefinition, AliasRecord } from './types.ts'

export interface AliasService {
  /** By id when it looks like one, else by reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): AliasRecord
  /** Ids stay. What is wrong with some definitions does not keep the others out. */
  register(content: PackDefinitions): Promise<Registration>
}

export function createAliasService({
  database,
  store,
}: {
  database: Pick<Database, 'write'>
  store: AliasStore
}): AliasService {
  return {
    get(refOrId) {
      const alias = (isId(refOrId) ? store.find(refOrId) : undefined) ?? store.findByRef(refOrId)
      if (alias === undefined) throw contentNotFound(refOrId)
      return alias
    },

    async register(content) {
      const { definitions, problems } = await checkPackDefinitions(content, 'Alias', (given) =>
        checkAlias(withPack(given, content.pack)),
      )
      const plan = (): { result: number; unit: Unit } => {
        const existing = new Map(store.ofPack(content.pack).map((alias) => [alias.name, alias]))
        const steps: Step[] = []
        for (const definition of definitions) {
          const before = existing.get(definition.name)
          const record = recordOf(definition, before?.id ?? newId())
          if (before === undefined) steps.push(store.insert(record))
          else if (writeJson(before) !== writeJson(record)) steps.push(store.update(record, before))
        }
        const gone = [...existing.values()].filter((alias) => isGone(alias, content, definitions))
        steps.push(...gone.map((alias) => store.delete(alias)))
        return { result: gone.length, unit: { steps, facts: [] } }
      }
      const removed = await commitPlan(database, plan, `The aliases of pack "${content.pack}"`)
      return { registered: definitions.length, removed, problems }
    },
  }
}

function withPack(given: unknown, pack: string): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  return { ...given, pack: (given as { pack?: unknown }).pack ?? pack }
}

function recordOf(definition: AliasDefinition, id: string): AliasRecord {
  const { pack, name } = definition
  return { id, uid: `action_alias:${pack}:${name}`, ref: `${pack}.${name}`, ...definition }
}
