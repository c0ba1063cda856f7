/** Creates, changes and deletes triggers (contract 05, 5.2). */
import { commitPlan, merge, type Database, type Unit } from '../../../db/index.ts'
import {
  bodyInvalid,
  conflict,
  contentNotFound,
  nameTaken,
  resourceNotFound,
  triggerInUse,
  triggerTypeUnknown,
  type AppError,
} from '../../../core/errors.ts'
import { isId } from '../../../core/ids.ts'
import { canonical } from '../../../lib/schema/index.ts'
import type { Catalogue } from './catalogue.ts'
import { createCommit, refuseTaken, rulesIn, shadowTriggerOf } from './commit.ts'
import { takesNoParameters } from './type-definition.ts'
import { triggerFact, type TriggersService } from '../service.ts'
import type { DefinitionStore } from './store.ts'
import type { TriggerAuthor, TriggerRecord, TriggerRequest, TriggerUpdate } from '../types.ts'

export interface TriggerChanges {
  /** @throws RESOURCE_NOT_FOUND */
  getTrigger(id: string): TriggerRecord
  /** Returns an existing trigger with this pack and name unchanged. @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  createTrigger(request: TriggerRequest, author: TriggerAuthor): Promise<{ trigger: TriggerRecord; isNew: boolean }>
  /** @throws RESOURCE_NOT_FOUND, BODY_INVALID, PARAMETERS_INVALID, NAME_TAKEN, TRIGGER_IN_USE */
  updateTrigger(id: string, request: TriggerUpdate, author: TriggerAuthor): Promise<TriggerRecord>
  /** @throws RESOURCE_NOT_FOUND, TRIGGER_IN_USE */
  deleteTrigger(id: string): Promise<TriggerRecord>
}

export function createTriggerChanges(deps: {
  database: Database
  store: DefinitionStore
  catalogue: Catalogue
  service: TriggersService
}): TriggerChanges {
  const { database, store, catalogue, service } = deps
  const commit = createCommit(deps)

  function getTrigger(id: string): TriggerRecord {
    const trigger = isId(id) ? catalogue.find(id) : undefined
    if (trigger === undefined) throw resourceNotFound(id)
    return trigger
  }

  /** @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  function planFindOrMake(
    { type: typeRef, pack, name, description, parameters }: TriggerRequest,
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
    const unit: Unit = { steps: [store.insert(made, 0)], facts: [triggerFact('created', trigger)], subject: trigger.id }
    return { result: { trigger, isNew: true }, unit }
  }

  const sameParameters = ({ id, ref, type }: TriggerRecord): AppError =>
    nameTaken(`A trigger of type "${type}" with these parameters, "${ref}",`, id)

  function refuseUsed({ id, ref }: TriggerRecord, what: string): void {
    const uses = store.usesOf(id)
    if (uses === 0) return
    throw triggerInUse(`Trigger "${ref}" is used by ${rulesIn(uses)}, so ${what}.`)
  }

  return {
    getTrigger,

    async createTrigger(request, author) {
      // After a conflict, the answer is usually the trigger of the other request.
      return commitPlan(database, () => planFindOrMake(request, author), 'The trigger')
    },

    async updateTrigger(id, request, author) {
      const before = getTrigger(id)
      const type = catalogue.findType(before.type)
      if (type === undefined) throw contentNotFound(before.type)
      const stored = store.find(id)
      if (stored === undefined) throw resourceNotFound(id)
      if (request.type !== undefined && request.type !== before.type) {
        throw bodyInvalid(
          `type: the type of a trigger cannot change from "${before.type}"; create a new trigger instead.`,
          { path: ['type'] },
        )
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
        if (shadowTriggerOf(catalogue, type)?.id === id) {
          throw triggerInUse(`Trigger "${before.ref}" belongs to its type; only its description can be changed.`)
        }
        refuseUsed(before, 'only its description can be changed')
        refuseTaken(catalogue, after.record.ref, 'Trigger', id)
        const same = store.findByIdentity(type.ref, after.identity)
        if (same !== undefined && same.record.id !== id) {
          throw sameParameters(same.record)
        }
      }
      const step = isSame ? store.update(after) : store.updateUnused(after)
      const unit = { steps: [step], facts: [triggerFact('updated', before)] }
      await commit(unit, [], () => conflict(`Trigger "${before.ref}"`))
      return { ...after.record, parameters: draft.parameters }
    },

    async deleteTrigger(id) {
      const trigger = getTrigger(id)
      const type = catalogue.findType(trigger.type)
      if (type !== undefined && takesNoParameters(type) && shadowTriggerOf(catalogue, type)?.id === id) {
        throw triggerInUse(`Trigger "${trigger.ref}" belongs to its type; delete the type instead.`)
      }
      refuseUsed(trigger, 'it cannot be deleted')
      const unit = { steps: [store.deleteUnused(id)], facts: [triggerFact('deleted', trigger)] }
      await commit(unit, [], () => conflict(`Trigger "${trigger.ref}"`))
      return trigger
    },
  }
}
