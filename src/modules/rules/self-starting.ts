/** Rules that their own executions fire again: those on the ActionTrigger. */
import { criteriaInvalid } from '../../core/errors.ts'
import { nowMicros } from '../../core/time.ts'
import { isObject } from '../../lib/schema/index.ts'
import { actionTriggerRef } from '../triggers/index.ts'
import { compileCriteria } from './criteria/criteria.ts'
import type { FilledRule } from './definition.ts'

const endings = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned']
/** What is known of an execution before it runs. */
const known = /^trigger\.(?:action_ref|action_name|status|rule|user)$/

/**
 * @returns why each execution of the rule would fire it again, without end; undefined: it would not, or that depends on what
 * its executions do
 * @throws CRITERIA_INVALID for a rule without criteria
 */
export function whyStartsItself(rule: FilledRule, typeRef: string, systemUser: string): string | undefined {
  if (typeRef !== actionTriggerRef || !rule.enabled) return undefined
  const { ref: action } = rule.action
  const keys = Object.keys(rule.criteria)
  if (keys.length === 0) {
    throw criteriaInvalid(
      `A rule on ${actionTriggerRef} needs criteria: each execution of its own action "${action}" would fire it again, without end. Say which executions it is about, such as "trigger.action_ref": {"type": "neq", "pattern": "${action}"}.`,
    )
  }
  if (!keys.every((key) => known.test(key)) || !Object.values(rule.criteria).every(isPlain)) return undefined
  const criteria = compileCriteria(rule.criteria)
  const now = nowMicros()
  const isAgain = endings.some((status) => {
    const own = `${rule.pack}.${rule.name}`
    const payload = { action_ref: action, action_name: action, status, rule: own, user: systemUser }
    return criteria.evaluate({ payload, scope: { variables: { trigger: payload } }, now }).matches
  })
  return isAgain
    ? `Executions of action "${action}" that rule "${rule.pack}.${rule.name}" starts fire it again, until svc cuts the chain (rules.max_depth, rules.max_cascade). Exclude them by a criterion, such as "trigger.action_ref": {"type": "neq", "pattern": "${action}"}.`
    : undefined
}

/** A pattern with a template depends on the datastore. */
const isPlain = (criterion: unknown): boolean =>
  isObject(criterion) && (typeof criterion['pattern'] !== 'string' || !criterion['pattern'].includes('{{'))
