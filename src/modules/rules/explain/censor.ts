/** Removes from verdicts and criteria what the caller must not see. */
import { isObject, MASK, represent } from '../../../lib/schema/index.ts'
import { isKept, problemOfKey, readsDatastore } from '../criteria/criteria.ts'
import { censoredReason } from '../enforcement/reason.ts'
import { hintOf } from './hint.ts'
import type { RuleCaller } from '../service.ts'
import type { VisiblePayload } from '../../triggers/index.ts'
import type { Rule, RuleVerdict, SeenCriterion } from '../types.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Maximum length of a compared value. Payloads can have megabytes, and a trigger many rules. */
const MAX_VALUE_CHARS = 1000

/** What the caller may see of the payload that the rule has seen. */
export type CallerView = VisiblePayload

/** Shortens the values of a verdict, and masks those that the caller cannot view. */
export function censored(caller: RuleCaller, rule: Rule, verdict: RuleVerdict, view: CallerView): RuleVerdict {
  const { criterion, reason } = verdict
  return {
    ...verdict,
    ...(criterion === undefined ? {} : { criterion: censoredCriterion(caller, rule, criterion, view) }),
    ...(reason === undefined ? {} : { reason: censoredReason(reason, view) }),
  }
}

/** Datastore values are for administrators, values of the payload for who may see them. */
export function censoredCriterion(
  { principal }: RuleCaller,
  rule: Rule,
  criterion: SeenCriterion,
  { withheld }: CallerView,
): SeenCriterion {
  const { key } = criterion
  let { pattern, value } = criterion
  const written = Object.hasOwn(rule.criteria, key) ? rule.criteria[key]?.pattern : undefined
  if (!principal.isAdmin) {
    if (value !== null && readsDatastore(key)) value = MASK
    // Criteria within `search` count too: their patterns are part of the outer pattern.
    const isRead = /s(?:vc|t2)kv|system/.test(writeJson(rule.criteria))
    if (isRead) pattern = written ?? MASK
  }
  if (withheld !== undefined) {
    if (value !== null && !readsDatastore(key) && !isKept(key, withheld)) value = MASK
    // A template can have read the payload.
    pattern = written ?? MASK
  }
  return { ...criterion, pattern: shorten(pattern), value: shorten(value) }
}

/** Adds why a criterion saw no value, or none that could fit, unless the verdict has a reason. @param payload of the rule */
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
