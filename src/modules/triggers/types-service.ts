/** Making, changing and deleting trigger types and triggers (contract 05, 5.1 and 5.2). */
import { commitPlan, Conflict, merge, type Database, type Step, type Unit } from '../../db/index.ts'
import {
  bodyInvalid,
  conflict,
  contentNotFound,
  nameTaken,
  resourceNotFound,
  triggerInUse,
  triggerTypeFixed,
  triggerTypeUnknown,
  type AppError,
} from '../../core/errors.ts'
import { isId, newId } from '../../core/ids.ts'
import { checkPackDefinitions, isGone, type PackDefinitions, type Registration } from '../../core/pack-content.ts'
import { canonical, isObject } from '../../lib/schema/index.ts'
import { builtinTypes, corePack, isBuiltin } from './builtin.ts'
import type { Catalogue } from './catalogue.ts'
import { checkDefinition, takesNoParameters } from './definition.ts'
import { triggerFact, type TriggersService } from './service.ts'
import type { TriggerStore } from './store.ts'
import { hasSecrets, problemOfParameters } from './type-schemas.ts'
import type { TriggerAuthor, TriggerRecord, TriggerTypeDefinition, TriggerTypeRecord } from './types.ts'

/** Body of POST and PUT of triggers; what is left out has its default, or stays. */
export interface TriggerRequest {
  type?: string
  pack?: string | null
  name?: string | null
  description?: string | null
  parameters?: Record<string, unknown> | null
}

export interface TypesService {
  /** @throws CONTENT_NOT_FOUND */
  getType(refOrId: string): TriggerTypeRecord
  /** @throws BODY_INVALID, TRIGGER_TYPE_FIXED, NAME_TAKEN */
  createType(definition: unknown): Promise<TriggerTypeRecord>
  /** Replaces all but the id. @throws CONTENT_NOT_FOUND, BODY_INVALID, TRIGGER_TYPE_FIXED, NAME_TAKEN, TRIGGER_IN_USE */
  updateType(refOrId: string, definition: unknown): Promise<TriggerTypeRecord>
  /** With its triggers. @throws CONTENT_NOT_FOUND, TRIGGER_TYPE_FIXED, TRIGGER_IN_USE */
  deleteType(refOrId: string): Promise<TriggerTypeRecord>

  /** @throws RESOURCE_NOT_FOUND */
  getTrigger(id: string): TriggerRecord
  /** One with this pack and name is answered as it is. @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  createTrigger(
    request: TriggerRequest & { type: string },
    author: TriggerAuthor,
  ): Promise<{ trigger: TriggerRecord; isNew: boolean }>
  /** @throws RESOURCE_NOT_FOUND, BODY_INVALID, PARAMETERS_INVALID, NAME_TAKEN, TRIGGER_IN_USE */
  updateTrigger(id: string, request: TriggerRequest, author: TriggerAuthor): Promise<TriggerRecord>
  /** @throws RESOURCE_NOT_FOUND, TRIGGER_IN_USE */
  deleteTrigger(id: string): Promise<TriggerRecord>

  /** Ids stay. What is wrong with some definitions does not keep the others out. */
  registerTypes(content: PackDefinitions): Promise<Registration>
  /** Makes or updates the types that come with the program. */
  registerBuiltin(): Promise<void>
}

export function createTypesService(deps: {
  database: Database
  store: TriggerStore
  catalogue: Catalogue
  service: TriggersService
}): TypesService {
  const { database, store, catalogue, service } = deps

  function getType(refOrId: string): TriggerTypeRecord {
    const type = catalogue.findType(refOrId)
    if (type === undefined) throw contentNotFound(refOrId)
    return type
  }

  function getTrigger(id: string): TriggerRecord {
    const trigger = isId(id) ? catalogue.find(id) : undefined
    if (trigger === undefined) throw resourceNotFound(id)
    return trigger
  }

  /** @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  function planFindOrMake(
    { type: typeRef, pack, name, description, parameters }: TriggerRequest & { type: string },
    author: TriggerAuthor,
  ): {
    result: { trigger: TriggerRecord; isNew: boolean }
    unit: Unit
  } {
    const found = (trigger: TriggerRecord) => ({ result: { trigger, isNew: false }, unit: merge() })
    const type = catalogue.findType(typeRef)
    if (type === undefined) throw triggerTypeUnknown(typeRef)
    const existing = name == null ? undefined : catalogue.find(`${pack ?? type.pack}.${name}`)
    if (existing !== undefined) return found(existing)
    const resolved = service.resolveParameters(type, parameters ?? {})
    const made = service.toStored({
      type,
      parameters: resolved,
      pack: pack ?? type.pack,
      description: description ?? '',
      author,
      isManaged: false,
      ...(name == null ? {} : { name }),
    })
    const same = store.findByIdentity(type.ref, made.identity)
    const known = same === undefined ? undefined : catalogue.find(same.record.id)
    if (name == null && known !== undefined) return found(known)
    if (same !== undefined) throw sameParameters(same.record)
    const trigger = { ...made.record, parameters: resolved }
    const unit: Unit = { steps: [store.insert(made, 0)], facts: [triggerFact('created', trigger)] }
    return { result: { trigger, isNew: true }, unit }
  }

  const sameParameters = ({ id, ref, type }: TriggerRecord): AppError =>
    nameTaken(`A trigger of type "${type}" with these parameters, "${ref}",`, id)

  /** Commits, and keeps the catalogue in step. @param onConflict says what has gone wrong meanwhile */
  async function apply(unit: Unit, refs: readonly string[], onConflict: () => unknown): Promise<void> {
    if (unit.steps.length === 0) return
    try {
      await database.write(unit)
    } catch (error) {
      if (error instanceof Conflict) throw onConflict()
      throw error
    } finally {
      for (const ref of refs) catalogue.refreshType(ref)
    }
  }

  function check(definition: unknown): TriggerTypeDefinition {
    const checked = checkDefinition(definition)
    if ('definition' in checked) return checked.definition
    const [problem] = checked.problems
    throw bodyInvalid(problem?.message ?? 'The definition of the trigger type is not usable.')
  }

  function refuseTaken(ref: string, what: 'Trigger type' | 'Trigger', exceptId?: string): void {
    const existing = what === 'Trigger' ? catalogue.find(ref) : catalogue.findType(ref)
    if (existing === undefined || existing.id === exceptId) return
    throw nameTaken(`${what} "${ref}"`, existing.id)
  }

  function refuseInUse(type: TriggerTypeRecord, what: string): void {
    const uses = catalogue.ofType(type.ref).reduce((sum, { id }) => sum + store.usesOf(id), 0)
    if (uses === 0) return
    throw triggerInUse(
      `Trigger type "${type.ref}" is used by ${rulesIn(uses)}, so ${what}. Delete these rules, or give them another trigger, first.`,
    )
  }

  const shadowTrigger = (type: TriggerTypeRecord): TriggerRecord | undefined => {
    const trigger = catalogue.find(type.ref)
    return trigger?.type === type.ref ? trigger : undefined
  }

  function planCreate(type: TriggerTypeRecord): Unit {
    const unit: Unit = { steps: [store.insertType(type)], facts: [] }
    return merge(unit, takesNoParameters(type) ? planShadow(type) : undefined)
  }

  function planShadow(type: TriggerTypeRecord): Unit {
    const shadow = service.shadowOf(type)
    return { steps: [store.insert(shadow, 0)], facts: [triggerFact('created', shadow.record)] }
  }

  /** Fails with `Conflict` once a rule uses one of its triggers. */
  function planDeleteTriggers(type: TriggerTypeRecord): Unit {
    const triggers = catalogue.ofType(type.ref)
    return {
      steps: triggers.map(({ id }) => store.deleteUnused(id)),
      facts: triggers.map((trigger) => triggerFact('deleted', trigger)),
    }
  }

  /**
   * What of the triggers has to change with their type.
   *
   * @throws TRIGGER_IN_USE when rules would lose theirs
   */
  function planUpdate(before: TriggerTypeRecord, after: TriggerTypeRecord): Unit {
    const unit: Unit = { steps: [store.updateType(after)], facts: [] }
    const isRenamed = before.ref !== after.ref
    if (isRenamed) {
      refuseInUse(before, 'its name and its pack cannot be changed')
      const gone = planDeleteTriggers(before)
      return merge(unit, gone, takesNoParameters(after) ? planShadow(after) : undefined)
    }
    if (takesNoParameters(before) !== takesNoParameters(after)) {
      refuseInUse(before, 'parameters can neither be added to it nor taken away')
      return merge(unit, planDeleteTriggers(before), takesNoParameters(after) ? planShadow(after) : undefined)
    }
    if (takesNoParameters(after)) {
      const shadow = shadowTrigger(before)
      if (shadow === undefined || shadow.description === after.description) return unit
      const step = store.update(service.shadowOf(after, shadow.id))
      return merge(unit, { steps: [step], facts: [triggerFact('updated', shadow)] })
    }
    if (JSON.stringify(before.parameters_schema) === JSON.stringify(after.parameters_schema)) return unit
    return merge(unit, planReschema(before, after))
  }

  /** What is secret, and so encrypted, may be something else now. */
  function planReschema(before: TriggerTypeRecord, after: TriggerTypeRecord): Unit {
    const steps: Step[] = []
    const triggers = catalogue.ofType(before.ref)
    for (const trigger of triggers) {
      const problem = problemOfParameters(after, trigger.parameters)
      const isUsed = store.usesOf(trigger.id) > 0
      if (problem !== undefined && isUsed) {
        // The new schema may not know that a value is secret.
        const why = hasSecrets(before, trigger.parameters) ? '' : `: ${problem}`
        throw triggerInUse(
          `Trigger "${trigger.ref}" is used by rules and its parameters would not fit the new parameters_schema${why}. Change or delete these rules first.`,
        )
      }
      const stored = store.find(trigger.id)
      if (stored === undefined) continue
      steps.push(store.update(service.toStored({ ...trigger, type: after, isManaged: stored.isManaged })))
    }
    return { steps, facts: triggers.map((trigger) => triggerFact('updated', trigger)) }
  }

  async function commitUpdate(before: TriggerTypeRecord, after: TriggerTypeRecord): Promise<void> {
    await apply(planUpdate(before, after), [after.ref, before.ref], () => conflict(`Trigger type "${before.ref}"`))
  }

  async function commitDelete(type: TriggerTypeRecord): Promise<void> {
    const unit = merge(planDeleteTriggers(type), { steps: [store.deleteType(type)], facts: [] })
    await apply(unit, [type.ref], () => conflict(`Trigger type "${type.ref}"`))
  }

  return {
    getType,

    async createType(given) {
      const type = recordOf(check(given), newId())
      if (type.pack === corePack) throw triggerTypeFixed(type.ref)
      refuseTaken(type.ref, 'Trigger type')
      if (takesNoParameters(type)) refuseTaken(type.ref, 'Trigger')
      await apply(planCreate(type), [type.ref], () => {
        const existing = store.findType(type.ref)
        const what = `Trigger type "${type.ref}"`
        return existing === undefined ? conflict(what) : nameTaken(what, existing.id)
      })
      return type
    },

    async updateType(refOrId, given) {
      const before = getType(refOrId)
      if (before.pack === corePack) throw triggerTypeFixed(before.ref)
      const named = isObject(given) ? { ...given, name: given['name'] ?? before.name } : given
      const definition = check(isObject(named) ? { ...named, pack: named['pack'] ?? before.pack } : named)
      const after = recordOf(definition, before.id)
      if (after.pack === corePack) throw triggerTypeFixed(after.ref)
      refuseTaken(after.ref, 'Trigger type', before.id)
      if (before.ref !== after.ref && takesNoParameters(after)) refuseTaken(after.ref, 'Trigger')
      await commitUpdate(before, after)
      return after
    },

    async deleteType(refOrId) {
      const type = getType(refOrId)
      if (type.pack === corePack) throw triggerTypeFixed(type.ref)
      refuseInUse(type, 'it cannot be deleted')
      await commitDelete(type)
      return type
    },

    getTrigger,

    async createTrigger(request, author) {
      // When somebody else was faster, most likely that one is the answer.
      return commitPlan(database, () => planFindOrMake(request, author), 'The trigger')
    },

    async updateTrigger(id, request, author) {
      const before = getTrigger(id)
      const type = getType(before.type)
      const stored = store.find(id)
      if (stored === undefined) throw resourceNotFound(id)
      if (request.type !== undefined && request.type !== before.type) {
        throw bodyInvalid(`type: a trigger stays of its type, "${before.type}"; make a new trigger for another one.`)
      }
      const parameters = service.resolveParameters(type, request.parameters ?? before.parameters, before.parameters)
      const isAsBefore = canonical(parameters) === canonical(before.parameters)
      const draft = {
        id,
        type,
        pack: request.pack ?? before.pack,
        name: request.name ?? before.name,
        description: request.description ?? '',
        parameters,
        author: isAsBefore ? before.author : author,
        isManaged: stored.isManaged,
      }
      const after = service.toStored(draft)
      const isSame = after.record.ref === before.ref && after.identity === stored.identity
      if (!isSame) {
        if (shadowTrigger(type)?.id === id) {
          throw triggerInUse(`Trigger "${before.ref}" belongs to its type; only its description can be changed.`)
        }
        refuseUsed(before, 'only its description can be changed')
        refuseTaken(after.record.ref, 'Trigger', id)
        const same = store.findByIdentity(type.ref, after.identity)
        if (same !== undefined && same.record.id !== id) {
          throw sameParameters(same.record)
        }
      }
      const step = isSame ? store.update(after) : store.updateUnused(after)
      const unit = { steps: [step], facts: [triggerFact('updated', before)] }
      await apply(unit, [], () => conflict(`Trigger "${before.ref}"`))
      return { ...after.record, parameters: draft.parameters }
    },

    async deleteTrigger(id) {
      const trigger = getTrigger(id)
      const type = catalogue.findType(trigger.type)
      if (type !== undefined && takesNoParameters(type) && shadowTrigger(type)?.id === id) {
        throw triggerInUse(`Trigger "${trigger.ref}" belongs to its type; delete the type instead.`)
      }
      refuseUsed(trigger, 'it cannot be deleted')
      const unit = { steps: [store.deleteUnused(id)], facts: [triggerFact('deleted', trigger)] }
      await apply(unit, [], () => conflict(`Trigger "${trigger.ref}"`))
      return trigger
    },

    async registerTypes(content) {
      const { definitions, problems } = checkPackDefinitions(content, 'Trigger type', (given) => {
        const checked = checkDefinition(isObject(given) ? { ...given, pack: given['pack'] ?? content.pack } : given)
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
          refuseInUse(type, 'it stays although its file is gone')
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

  function refuseUsed({ id, ref }: TriggerRecord, what: string): void {
    const uses = store.usesOf(id)
    if (uses === 0) return
    throw triggerInUse(`Trigger "${ref}" is used by ${rulesIn(uses)}, so ${what}.`)
  }

  async function register(definition: TriggerTypeDefinition): Promise<void> {
    const ref = refOf(definition)
    const before = catalogue.findType(ref)
    const after = recordOf(definition, before?.id ?? newId())
    if (before === undefined) {
      if (takesNoParameters(after)) refuseTaken(ref, 'Trigger')
      await apply(planCreate(after), [ref], () => conflict(`Trigger type "${ref}"`))
    } else if (JSON.stringify(before) !== JSON.stringify(after)) {
      await commitUpdate(before, after)
    }
  }
}

function problemOf(error: unknown, { metadata_file, name }: { metadata_file?: string; name: string }) {
  return {
    metadataFile: metadata_file ?? name,
    path: ['name'],
    message: error instanceof Error ? error.message : String(error),
  }
}

const rulesIn = (uses: number): string => (uses === 1 ? 'a rule' : `${uses} rules`)

function refOf({ pack, name }: Pick<TriggerTypeDefinition, 'pack' | 'name'>): string {
  return `${pack}.${name}`
}

function recordOf(definition: TriggerTypeDefinition, id: string): TriggerTypeRecord {
  const { pack, name } = definition
  return { id, uid: `trigger_type:${pack}:${name}`, ref: refOf(definition), ...definition }
}
