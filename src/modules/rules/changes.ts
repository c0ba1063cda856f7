/** Plans and commits changes of rules together with their use of a trigger. */
import { commitPlan, Conflict, merge, type Database, type Unit } from '../../db/index.ts'
import { nameTaken, within } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import type { LogFields } from '../../lib/log/index.ts'
import type { Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import type { FilledRule } from './definition.ts'
import type { RuleJobs } from './ports.ts'
import type { RuleStore } from './store.ts'
import type { Rule } from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

/** Attempts to commit a change that conflicts with others. */
const MAX_ATTEMPTS = 50

export type WrittenBy = Pick<Rule, 'context'> & Partial<Pick<Rule, 'metadata_file' | 'secret_owners'>>

export interface RuleChanges {
  /** @param before absent: a new rule. @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  planWrite(before: Rule | undefined, filled: FilledRule, more: WrittenBy): { result: Rule; unit: Unit }
  planDelete(rule: Rule): Unit
  /** Plans and commits; repeats both after a conflict. @param what subject of the error after the last conflict */
  commit<T>(what: string, plan: () => { result: T; unit: Unit }): Promise<T>
}

export function createRuleChanges(deps: {
  database: Database
  store: RuleStore
  triggers: Triggers
  jobs: Pick<RuleJobs, 'planWritten' | 'planDeleted'>
}): RuleChanges {
  const { database, store, triggers, jobs } = deps

  /** @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  function planWrite(before: Rule | undefined, filled: FilledRule, more: WrittenBy): { result: Rule; unit: Unit } {
    const ref = `${filled.pack}.${filled.name}`
    const same = before?.ref === ref ? undefined : store.findByRef(ref)
    if (same !== undefined) throw nameTaken(`Rule "${ref}"`, same.id)

    const old = before === undefined ? undefined : triggers.find(before.trigger.id)
    const { trigger, unit: use } = within(['trigger'], () =>
      triggers.planUse(
        filled.trigger.type,
        filled.trigger.parameters,
        old !== undefined && old.type === triggers.findType(filled.trigger.type)?.ref ? old.parameters : undefined,
        more.context,
      ),
    )
    const rule = toRule(before, filled, trigger, more)
    const moves = before?.trigger.id !== trigger.id
    const change = before === undefined ? 'created' : 'updated'
    return {
      result: rule,
      unit: merge(
        moves ? use : undefined,
        {
          steps: [before === undefined ? store.insert(rule) : store.update(rule, before.revision)],
          facts: [],
          subject: rule.id,
        },
        before !== undefined && moves ? planRelease(before.trigger.id) : undefined,
        jobs.planWritten(rule),
        changed(rule, change, before === undefined || !moves ? [trigger.id] : [before.trigger.id, trigger.id]),
      ),
    }
  }

  /** Undefined: the trigger is deleted. */
  function planRelease(triggerId: string): Unit | undefined {
    try {
      return triggers.planRelease(triggerId)
    } catch (error) {
      if (error instanceof Conflict) return undefined
      throw error
    }
  }

  function planDelete(rule: Rule): Unit {
    return merge(
      { steps: [store.delete(rule)], facts: [] },
      planRelease(rule.trigger.id),
      jobs.planDeleted(rule.id),
      changed(rule, 'deleted', [rule.trigger.id]),
    )
  }

  return {
    planWrite,
    planDelete,
    commit: (what, plan) => commitPlan(database, plan, what, MAX_ATTEMPTS),
  }
}

export function toRule(
  before: Rule | undefined,
  { name, pack, ...filled }: FilledRule,
  trigger: Pick<TriggerRecord, 'id' | 'ref' | 'type'>,
  { context, secret_owners: secretOwners, metadata_file: metadataFile }: WrittenBy,
): Rule {
  const { id, ref, type } = trigger
  return {
    id: before?.id ?? newId(),
    revision: (before?.revision ?? 0) + 1,
    uid: `rule:${pack}:${name}`,
    ref: `${pack}.${name}`,
    name,
    pack,
    description: filled.description,
    enabled: filled.enabled,
    type: filled.type,
    trigger: { id, ref, type },
    criteria: filled.criteria,
    action: filled.action,
    ...(filled.expect === undefined ? {} : { expect: filled.expect }),
    ...(filled.keep === undefined ? {} : { keep: filled.keep }),
    context,
    tags: filled.tags,
    ...(filled.notify === undefined ? {} : { notify: filled.notify }),
    ...(metadataFile === undefined ? {} : { metadata_file: metadataFile }),
    ...(secretOwners === undefined ? {} : { secret_owners: secretOwners }),
  }
}

function changed(rule: Rule, change: 'created' | 'updated' | 'deleted', triggerIds: string[]): Unit {
  const payload = { id: rule.id, ref: rule.ref, change, trigger_ids: triggerIds }
  return { steps: [], facts: [{ name: 'rule.changed', payload }] }
}

/** Fields of audit events. */
export function logFieldsOf({ id, ref, action, trigger, enabled }: Rule): LogFields {
  return { rule_id: id, rule: ref, action: action.ref, trigger: trigger.ref, enabled }
}

/** Compares the order of attributes too, because clients see it. */
export function isSame(a: unknown, b: unknown): boolean {
  return writeJson(a) === writeJson(b)
}
