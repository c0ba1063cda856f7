/** Plans the creation, change and deletion of a trigger type together with its triggers. */
import { merge, type Step, type Unit } from '../../../db/index.ts'
import type { Fact } from '../../../bus/index.ts'
import { triggerInUse } from '../../../core/errors.ts'
import type { Catalogue } from './catalogue.ts'
import { rulesIn, shadowTriggerOf } from './commit.ts'
import { takesNoParameters } from './type-definition.ts'
import { triggerFact, type TriggersService } from '../service.ts'
import type { DefinitionStore } from './store.ts'
import { hasSecrets, problemOfParameters } from './type-schemas.ts'
import type { TriggerTypeRecord } from '../types.ts'
import { writeJson } from '../../../lib/json/index.ts'

const typeChanged: Fact = { name: 'content.changed', payload: { kind: 'trigger_type' } }

export interface TypePlans {
  /** @throws TRIGGER_IN_USE if a rule uses a trigger of the type. @param what the consequence, for the message */
  refuseInUse(type: TriggerTypeRecord, what: string): void
  create(type: TriggerTypeRecord): Unit
  /**
   * Plans the change of the type and of its triggers.
   *
   * @throws TRIGGER_IN_USE if a rule would lose its trigger
   */
  update(before: TriggerTypeRecord, after: TriggerTypeRecord): Unit
  /** Fails with `Conflict` if a rule now uses one of its triggers. */
  delete(type: TriggerTypeRecord): Unit
}

export function createTypePlans(deps: {
  store: DefinitionStore
  catalogue: Catalogue
  service: TriggersService
}): TypePlans {
  const { store, catalogue, service } = deps

  function refuseInUse(type: TriggerTypeRecord, what: string): void {
    const uses = catalogue.ofType(type.ref).reduce((sum, { id }) => sum + store.usesOf(id), 0)
    if (uses === 0) return
    throw triggerInUse(
      `Trigger type "${type.ref}" is used by ${rulesIn(uses)}, so ${what}. First delete these rules or give them another trigger.`,
    )
  }

  function planCreate(type: TriggerTypeRecord): Unit {
    const unit: Unit = { steps: [store.insertType(type)], facts: [typeChanged] }
    return merge(unit, takesNoParameters(type) ? planShadow(type) : undefined)
  }

  function planShadow(type: TriggerTypeRecord): Unit {
    const shadow = service.shadowOf(type)
    return { steps: [store.insert(shadow, 0)], facts: [triggerFact('created', shadow.record)] }
  }

  /** Fails with `Conflict` if a rule now uses one of its triggers. */
  function planDeleteTriggers(type: TriggerTypeRecord): Unit {
    const triggers = catalogue.ofType(type.ref)
    return {
      steps: triggers.map(({ id }) => store.deleteUnused(id)),
      facts: triggers.map((trigger) => triggerFact('deleted', trigger)),
    }
  }

  /**
   * Plans the changes of the triggers of the type.
   *
   * @throws TRIGGER_IN_USE if rules would lose their trigger
   */
  function planUpdate(before: TriggerTypeRecord, after: TriggerTypeRecord): Unit {
    const unit: Unit = { steps: [store.updateType(after)], facts: [typeChanged] }
    const isRenamed = before.ref !== after.ref
    if (isRenamed) {
      refuseInUse(before, 'its name and its pack cannot be changed')
      const gone = planDeleteTriggers(before)
      return merge(unit, gone, takesNoParameters(after) ? planShadow(after) : undefined)
    }
    if (takesNoParameters(before) !== takesNoParameters(after)) {
      refuseInUse(before, 'parameters_schema cannot become empty or stop being empty')
      return merge(unit, planDeleteTriggers(before), takesNoParameters(after) ? planShadow(after) : undefined)
    }
    if (takesNoParameters(after)) {
      const shadow = shadowTriggerOf(catalogue, before)
      if (shadow === undefined || shadow.description === after.description) return unit
      const step = store.update(service.shadowOf(after, shadow.id))
      return merge(unit, { steps: [step], facts: [triggerFact('updated', shadow)] })
    }
    if (writeJson(before.parameters_schema) === writeJson(after.parameters_schema)) return unit
    return merge(unit, planReschema(before, after))
  }

  /** Encrypts the parameters again, because the new schema can have other secrets. */
  function planReschema(before: TriggerTypeRecord, after: TriggerTypeRecord): Unit {
    const steps: Step[] = []
    const triggers = catalogue.ofType(before.ref)
    for (const trigger of triggers) {
      const problem = problemOfParameters(after, trigger.parameters)
      const isUsed = store.usesOf(trigger.id) > 0
      if (problem !== undefined && isUsed) {
        // The problem could contain a value that the new schema no longer marks as secret.
        const why = hasSecrets(before, trigger.parameters) ? '' : `: ${problem.message}`
        throw triggerInUse(
          `Trigger "${trigger.ref}" is used by rules, and its parameters are invalid under the new parameters_schema${why}. First change or delete these rules.`,
        )
      }
      const stored = store.find(trigger.id)
      if (stored === undefined) continue
      steps.push(store.update(service.toStored({ ...trigger, type: after, isManaged: stored.isManaged })))
    }
    return { steps, facts: triggers.map((trigger) => triggerFact('updated', trigger)) }
  }

  return {
    refuseInUse,
    create: planCreate,
    update: planUpdate,
    delete: (type) => merge(planDeleteTriggers(type), { steps: [store.deleteType(type)], facts: [typeChanged] }),
  }
}
