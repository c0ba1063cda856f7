/** Which rules match one payload (contract 05, 5.7): standard ones first, backstop ones when none of those does. */
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
  /** Microseconds since the epoch: what criteria about time are compared with. */
  now: number
  /** What the templates of a rule may read, the payload included. */
  readonly scopeOf: (rule: Rule) => TemplateScope
}

/**
 * One after the other, so that whoever takes them can let others have the event loop in between. Every standard rule
 * comes before the first backstop rule.
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

/** Evaluation longer than this lets others have the event loop in between. */
const SLICE_MS = 5

/** Makes what is to be awaited after each rule: mostly it resolves at once. */
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

/** What templates of rules read: the payload as `trigger`, the datastore as far as both its reader and its author may. */
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
