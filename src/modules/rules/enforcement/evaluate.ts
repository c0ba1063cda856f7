/** Evaluates rules for one payload (contract 05, 5.7): standard rules first, then backstop rules if none matched. */
import { setImmediate } from 'node:timers/promises'
import { joinScopes, type TemplateScope } from '../../../lib/template/index.ts'
import type { CompiledRule } from './bindings.ts'
import type { CriteriaResult } from '../criteria/run.ts'
import type { Rule, RuleVerdict } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'

export interface Evaluation {
  compiled: CompiledRule
  verdict: RuleVerdict
}

export interface EvaluationContext {
  payload: unknown
  /** Microseconds since the epoch, for criteria about time. */
  now: number
  /** Variables and filters for the templates of a rule, including the payload. */
  readonly scopeOf: (rule: Rule) => TemplateScope
}

/**
 * Lazy, so that the caller can yield to the event loop between two rules. Yields every standard rule before the first
 * backstop rule.
 */
export function* evaluateRules(
  rules: readonly (() => CompiledRule)[],
  context: EvaluationContext,
): Generator<Evaluation, void> {
  const backstops: CompiledRule[] = []
  let hasMatched = false
  for (const compile of rules) {
    const compiled = compile()
    if (compiled.rule.type.ref === 'backstop') {
      backstops.push(compiled)
      continue
    }
    const verdict = evaluateRule(compiled, context)
    hasMatched ||= verdict.verdict === 'matched'
    yield { compiled, verdict }
  }
  for (const compiled of backstops) {
    const isNeeded = !hasMatched || !compiled.rule.enabled
    const verdict = isNeeded
      ? evaluateRule(compiled, context)
      : { ...aboutRule(compiled.rule), verdict: 'not_needed' as const }
    yield { compiled, verdict }
  }
}

/** Milliseconds of evaluation before the pause yields to the event loop. */
const SLICE_MS = 5

/** Returns a function to await after each rule. It resolves at once until `SLICE_MS` are over. */
export function createPause(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < SLICE_MS) return
    await setImmediate()
    since = performance.now()
  }
}

function evaluateRule({ rule, criteria }: CompiledRule, context: EvaluationContext): RuleVerdict {
  if (!rule.enabled) return { ...aboutRule(rule), verdict: 'disabled' }
  return verdictOf(
    rule,
    criteria.evaluate({ payload: context.payload, scope: context.scopeOf(rule), now: context.now }),
  )
}

export function verdictOf(rule: Rule, result: CriteriaResult): RuleVerdict {
  const about = aboutRule(rule)
  if (result.matches) return { ...about, verdict: 'matched' }
  const { failed: criterion, reason, note } = result
  if (reason !== undefined) return { ...about, verdict: 'failed', criterion, reason }
  return { ...about, verdict: 'not_matched', criterion, ...(note === undefined ? {} : { reason: note }) }
}

export function aboutRule({ id, ref, uid, type }: Rule): Pick<RuleVerdict, 'rule'> {
  return { rule: { ...(id === '' ? {} : { id }), ref, uid, type: type.ref } }
}

/** Scopes for rule templates: the payload as `trigger`, and datastore items that both reader and author can view. */
export function createScopes(
  templates: (reader: TemplateReader) => TemplateScope,
  systemUser: string,
  payload: unknown,
): EvaluationContext['scopeOf'] {
  const byAuthor = new Map<string, TemplateScope>()
  return ({ context: { user, scopes } }) => {
    const known = scopes === undefined ? byAuthor.get(user) : undefined
    if (known !== undefined) return known
    const scope = joinScopes({ variables: { trigger: payload } }, templates(readerOf({ user, scopes }, systemUser)))
    if (scopes === undefined) byAuthor.set(user, scope)
    return scope
  }
}

function readerOf(
  { user, scopes }: Pick<Rule['context'], 'user'> & { scopes: Rule['context']['scopes'] },
  systemUser: string,
): TemplateReader {
  return {
    user: systemUser,
    ...(user === systemUser ? {} : { author: user }),
    ...(scopes === undefined ? {} : { scopes }),
  }
}
