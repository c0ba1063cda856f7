/** Verdicts and criteria as the caller may see them. */
import { isObject, MASK, represent } from '../../../lib/schema/index.ts'
import { problemOfKey, readsDatastore } from '../criteria/criteria.ts'
import type { RuleCaller } from '../service.ts'
import type { Rule, RuleVerdict, SeenCriterion } from '../types.ts'

/** Of a value that a criterion saw: payloads may have megabytes, and there may be many rules. */
const MAX_VALUE_CHARS = 1000

/** A verdict as the caller may see it: short, and without what only others may read in the datastore. */
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
    // Also of criteria within `search`, whose patterns are those of the criterion around them.
    const isRead = /svckv|system/.test(JSON.stringify(rule.criteria))
    if (isRead) pattern = written ?? MASK
  }
  return { ...criterion, pattern: shorten(pattern), value: shorten(value) }
}

/** Nothing that comes to a key that leads nowhere can match: then the value does not tell why. */
export function withReason(verdict: RuleVerdict): RuleVerdict {
  const { criterion, reason } = verdict
  const why = criterion === undefined || reason !== undefined ? undefined : problemOfKey(criterion.key)
  return why === undefined ? verdict : { ...verdict, reason: why }
}

/** The value itself, or the beginning of its text when that is long. */
function shorten(value: unknown): unknown {
  if (typeof value === 'string') {
    return value.length <= MAX_VALUE_CHARS ? value : `${value.slice(0, MAX_VALUE_CHARS).toWellFormed()}…`
  }
  if (!isObject(value) && !Array.isArray(value)) return value ?? null
  // One more, because a text that just fits does not tell that there was more.
  const text = represent(value, MAX_VALUE_CHARS + 1)
  return text.length <= MAX_VALUE_CHARS ? value : `${text.slice(0, MAX_VALUE_CHARS).toWellFormed()}…`
}
