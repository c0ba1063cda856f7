/** Removes from verdicts and criteria what the caller must not see. */
import { isObject, MASK, represent } from '../../../lib/schema/index.ts'
import { problemOfKey, readsDatastore } from '../criteria/criteria.ts'
import { hintOf } from './hint.ts'
import type { RuleCaller } from '../service.ts'
import type { Rule, RuleVerdict, SeenCriterion } from '../types.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Maximum length of a compared value. Payloads can have megabytes, and a trigger many rules. */
const MAX_VALUE_CHARS = 1000

/** Shortens the values of a verdict and masks datastore values unless the caller is an administrator. */
export function censored(caller: RuleCaller, rule: Rule, verdict: RuleVerdict): RuleVerdict {
  const { criterion } = verdict
  return criterion === undefined ? verdict : { ...verdict, criterion: censoredCriterion(caller, rule, criterion) }
}

export function censoredCriterion({ principal }: RuleCaller, rule: Rule, criterion: SeenCriterion): SeenCriterion {
  const { key } = criterion
  let { pattern, value } = criterion
  if (!principal.isAdmin) {
    if (value !== null && readsDatastore(key)) value = MASK
    const written = Object.hasOwn(rule.criteria, key) ? rule.criteria[key]?.pattern : undefined
    // Criteria within `search` count too: their patterns are part of the outer pattern.
    const isRead = /svckv|system/.test(writeJson(rule.criteria))
    if (isRead) pattern = written ?? MASK
  }
  return { ...criterion, pattern: shorten(pattern), value: shorten(value) }
}

/** Adds why a criterion saw no value, or none that could fit, unless the verdict has a reason. */
export function withReason(verdict: RuleVerdict, payload: unknown): RuleVerdict {
  const { criterion, reason } = verdict
  if (criterion === undefined || reason !== undefined) return verdict
  const why = problemOfKey(criterion.key) ?? hintOf(payload, criterion)
  return why === undefined ? verdict : { ...verdict, reason: why }
}

/** The value, or the start of its text if that is long. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.length <= MAX_VALUE_CHARS ? value : `${value.slice(0, MAX_VALUE_CHARS).toWellFormed()}…`
  }
  if (!isObject(value) && !Array.isArray(value)) return value ?? null
  // One character more, to detect longer texts.
  const text = represent(value, MAX_VALUE_CHARS + 1)
  return text.length <= MAX_VALUE_CHARS ? value : `${text.slice(0, MAX_VALUE_CHARS).toWellFormed()}…`
}
