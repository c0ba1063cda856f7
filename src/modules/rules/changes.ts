/** The units that write and delete a rule together with its use of a trigger, and their commit. */
import { commitPlan, Conflict, merge, type Database, type Unit } from '../../db/index.ts'
import { nameTaken } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import type { LogFields } from '../../lib/log/index.ts'
import type { Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import type { FilledRule } from './definition.ts'
import type { RuleStore } from './store.ts'
import type { Rule } from './types.ts'

/** Attempts to commit a change while others change the same triggers. */
const MAX_ATTEMPTS = 50

export type WrittenBy = Pick<Rule, 'context'> & Partial<Pick<Rule, 'metadata_file' | 'secret_owners'>>

export interface RuleChanges {
  /** @param before absent: a new rule. @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  planWrite(before: Rule | undefined, filled: FilledRule, more: WrittenBy): { result: Rule; unit: Unit }
  planDelete(rule: Rule): Unit
  /** Plans and commits, and plans again after a conflict. @param what for the error message of the last conflict */
  commit<T>(what: string, plan: () => { result: T; unit: Unit }): Promise<T>
}

export function createRuleChanges(deps: { database: Database; store: RuleStore; triggers: Triggers }): RuleChanges {
  const { database, store, triggers } = deps

  /** @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID, NAME_TAKEN */
  function planWrite(before: Rule | undefined, filled: FilledRule, more: WrittenBy): { result: Rule; unit: Unit } {
    const ref = `${filled.pack}.${filled.name}`
    const same = before?.ref === ref ? undefined : store.findByRef(ref)
    if (same !== undefined) throw nameTaken(`Rule "${ref}"`, same.id)

    const old = before === undefined ? undefined : triggers.find(before.trigger.id)
    const { trigger, unit: use } = triggers.planUse(
      filled.trigger.type,
      filled.trigger.parameters,
      old !== undefined && old.type === triggers.findType(filled.trigger.type)?.ref ? old.parameters : undefined,
      more.context,
    )
    const rule = toRule(before, filled, trigger, more)
    const moves = before?.trigger.id !== trigger.id
    const change = before === undefined ? 'created' : 'updated'
    return {
      result: rule,
      unit: merge(
        moves ? use : undefined,
        { steps: [before === undefined ? store.insert(rule) : store.update(rule, before.revision)], facts: [] },
        before !== undefined && moves ? planRelease(before.trigger.id) : undefined,
        changed(rule, change, before === undefined || !moves ? [trigger.id] : [before.trigger.id, trigger.id]),
      ),
    }
  }

  /** A trigger that has been deleted counts nobody. */
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
  const { description } = filled.trigger
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
    trigger: { id, ref, type, ...(description === undefined ? {} : { description }) },
    criteria: filled.criteria,
    action: filled.action,
    context,
    tags: filled.tags,
    ...(metadataFile === undefined ? {} : { metadata_file: metadataFile }),
    ...(secretOwners === undefined ? {} : { secret_owners: secretOwners }),
  }
}

function changed(rule: Rule, change: 'created' | 'updated' | 'deleted', triggerIds: string[]): Unit {
  const payload = { id: rule.id, ref: rule.ref, change, trigger_ids: triggerIds }
  return { steps: [], facts: [{ name: 'rule.changed', payload }] }
}

/** What audit events tell of a rule. */
export function logFieldsOf({ id, ref, action, trigger, enabled }: Rule): LogFields {
  return { rule_id: id, rule: ref, action: action.ref, trigger: trigger.ref, enabled }
}

/** The order of attributes counts, because it is shown. */
export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
