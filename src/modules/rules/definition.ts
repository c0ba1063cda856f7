/** Definitions of rules (contract 05, 5.5) with their defaults. Pure functions. */
import { readNotify } from '../../core/notify.ts'
import { runningOf } from './running.ts'
import { keepOf } from '../../core/keep.ts'
import { expectationOf } from './expectation.ts'
import type { CriterionDefinition, RuleDefinition, RuleRecord } from './types.ts'

/** A definition with all defaults. The parameters of the trigger are not part of the rule itself. */
export type FilledRule = Pick<
  RuleRecord,
  'name' | 'pack' | 'description' | 'enabled' | 'type' | 'criteria' | 'action' | 'expect' | 'keep' | 'tags' | 'notify'
> & { trigger: { type: string; parameters: Record<string, unknown> }; metadata_file?: string }

/**
 * Fills in defaults.
 *
 * @param given valid against its schema; criteria are checked when they are compiled
 * @param pack default pack
 */
export function fillRuleDefinition(given: RuleDefinition, pack: string): FilledRule {
  const { trigger, action } = given
  return {
    name: given.name,
    pack: given.pack ?? pack,
    description: given.description ?? '',
    enabled: given.enabled ?? false,
    type: { ref: given.type?.ref ?? 'standard', parameters: given.type?.parameters ?? {} },
    // A trigger has the description of its type.
    trigger: { type: trigger.type, parameters: trigger.parameters ?? {} },
    criteria: (given.criteria ?? {}) as Record<string, CriterionDefinition>, // compiled before they are used
    action: {
      ref: action.ref,
      parameters: action.parameters ?? {},
      ...(action.description ? { description: action.description } : {}),
      ...runningOf(action),
    },
    ...expectationOf(given),
    ...keepOf(given),
    tags: given.tags ?? [],
    ...(given.notify === undefined || given.notify === null ? {} : { notify: readNotify(given.notify) }),
  }
}
