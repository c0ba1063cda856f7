/** Creates, changes, deletes and registers trigger types (contract 05, 5.1). */
import type { Database } from '../../../db/index.ts'
import { bodyInvalid, conflict, contentNotFound, nameTaken, triggerTypeFixed } from '../../../core/errors.ts'
import { newId } from '../../../core/ids.ts'
import { checkPackDefinitions, isGone, type PackDefinitions, type Registration } from '../../../core/pack-content.ts'
import { fieldOf, isObject } from '../../../lib/schema/index.ts'
import { builtinTypes, corePack, isBuiltin } from '../builtin/types.ts'
import type { Catalogue } from './catalogue.ts'
import { createCommit, refuseTaken } from './commit.ts'
import { checkTypeDefinition, takesNoParameters } from './type-definition.ts'
import type { TriggersService } from '../service.ts'
import type { DefinitionStore } from './store.ts'
import { createTypePlans } from './type-plans.ts'
import type { TriggerTypeDefinition, TriggerTypeRecord, TriggerTypeRequest, TriggerTypeUpdate } from '../types.ts'
import { writeJson } from '../../../lib/json/index.ts'

export interface TypeChanges {
  /** @throws CONTENT_NOT_FOUND */
  getType(refOrId: string): TriggerTypeRecord
  /** @throws BODY_INVALID, TRIGGER_TYPE_FIXED, NAME_TAKEN */
  createType(definition: TriggerTypeRequest): Promise<TriggerTypeRecord>
  /** Replaces everything except the id. @throws CONTENT_NOT_FOUND, BODY_INVALID, TRIGGER_TYPE_FIXED, NAME_TAKEN, TRIGGER_IN_USE */
  updateType(refOrId: string, definition: TriggerTypeUpdate): Promise<TriggerTypeRecord>
  /** Deletes the type with its triggers. @throws CONTENT_NOT_FOUND, TRIGGER_TYPE_FIXED, TRIGGER_IN_USE */
  deleteType(refOrId: string): Promise<TriggerTypeRecord>

  /** Keeps ids. An invalid definition does not affect the others. */
  registerTypes(content: PackDefinitions): Promise<Registration>
  /** Creates or updates the types that come with svc. */
  registerBuiltin(): Promise<void>
}

export function createTypeChanges(deps: {
  database: Database
  store: DefinitionStore
  catalogue: Catalogue
  service: TriggersService
}): TypeChanges {
  const { store, catalogue } = deps
  const commit = createCommit(deps)
  const plans = createTypePlans(deps)

  function getType(refOrId: string): TriggerTypeRecord {
    const type = catalogue.findType(refOrId)
    if (type === undefined) throw contentNotFound(refOrId)
    return type
  }

  async function commitUpdate(before: TriggerTypeRecord, after: TriggerTypeRecord): Promise<void> {
    const unit = { ...plans.update(before, after), subject: after.id }
    await commit(unit, [after.ref, before.ref], () => conflict(`Trigger type "${before.ref}"`))
  }

  async function commitDelete(type: TriggerTypeRecord): Promise<void> {
    await commit(plans.delete(type), [type.ref], () => conflict(`Trigger type "${type.ref}"`))
  }

  async function register(definition: TriggerTypeDefinition): Promise<void> {
    const ref = refOf(definition)
    const before = catalogue.findType(ref)
    const after = recordOf(definition, before?.id ?? newId())
    if (before === undefined) {
      if (takesNoParameters(after)) refuseTaken(catalogue, ref, 'Trigger')
      await commit(plans.create(after), [ref], () => conflict(`Trigger type "${ref}"`))
    } else if (writeJson(before) !== writeJson(after)) {
      await commitUpdate(before, after)
    }
  }

  return {
    getType,

    async createType(given) {
      const type = recordOf(check(given), newId())
      if (type.pack === corePack) throw triggerTypeFixed(type.ref)
      refuseTaken(catalogue, type.ref, 'Trigger type')
      if (takesNoParameters(type)) refuseTaken(catalogue, type.ref, 'Trigger')
      await commit({ ...plans.create(type), subject: type.id }, [type.ref], () => {
        const existing = store.findType(type.ref)
        const what = `Trigger type "${type.ref}"`
        return existing === undefined ? conflict(what) : nameTaken(what, existing.id)
      })
      return type
    },

    async updateType(refOrId, given) {
      const before = getType(refOrId)
      if (before.pack === corePack) throw triggerTypeFixed(before.ref)
      const definition = { ...given, name: given.name ?? before.name, pack: given.pack ?? before.pack }
      const after = recordOf(check(definition), before.id)
      if (after.pack === corePack) throw triggerTypeFixed(after.ref)
      refuseTaken(catalogue, after.ref, 'Trigger type', before.id)
      if (before.ref !== after.ref && takesNoParameters(after)) refuseTaken(catalogue, after.ref, 'Trigger')
      await commitUpdate(before, after)
      return after
    },

    async deleteType(refOrId) {
      const type = getType(refOrId)
      if (type.pack === corePack) throw triggerTypeFixed(type.ref)
      plans.refuseInUse(type, 'it cannot be deleted')
      await commitDelete(type)
      return type
    },

    async registerTypes(content) {
      const { definitions, problems } = await checkPackDefinitions(content, 'Trigger type', (given) => {
        const checked = checkTypeDefinition(isObject(given) ? { ...given, pack: given['pack'] ?? content.pack } : given)
        if ('problems' in checked || !isBuiltin(refOf(checked.definition))) return checked
        return { problems: [{ path: ['name'], message: triggerTypeFixed(refOf(checked.definition)).message }] }
      })
      let registered = 0
      for (const definition of definitions) {
        try {
          await register(definition)
          registered += 1
        } catch (error) {
          problems.push(problemOf(error, definition))
        }
      }
      let removed = 0
      const ofPack = [...catalogue.types()].filter(({ pack }) => pack === content.pack)
      for (const type of ofPack.filter((one) => isGone(one, content, definitions))) {
        try {
          plans.refuseInUse(type, 'it stays although its file was deleted')
          await commitDelete(type)
          removed += 1
        } catch (error) {
          problems.push(problemOf(error, type))
        }
      }
      return { registered, removed, problems }
    },

    async registerBuiltin() {
      for (const definition of builtinTypes) await register(definition)
    },
  }
}

function check(definition: TriggerTypeRequest): TriggerTypeDefinition {
  const checked = checkTypeDefinition(definition)
  const [problem] = 'definition' in checked ? checked.warnings : checked.problems
  if ('definition' in checked && problem === undefined) return checked.definition
  throw bodyInvalid(problem?.message ?? 'The definition of the trigger type is invalid.', {
    path: problem === undefined ? [] : fieldOf(problem),
  })
}

function problemOf(error: unknown, { metadata_file, name }: { metadata_file?: string; name: string }) {
  return {
    metadataFile: metadata_file ?? name,
    path: ['name'],
    message: error instanceof Error ? error.message : String(error),
  }
}

function refOf({ pack, name }: Pick<TriggerTypeDefinition, 'pack' | 'name'>): string {
  return `${pack}.${name}`
}

function recordOf(definition: TriggerTypeDefinition, id: string): TriggerTypeRecord {
  const { pack, name } = definition
  return { id, uid: `trigger_type:${pack}:${name}`, ref: refOf(definition), ...definition }
}
