/** Evaluates rules for one payload (contract 05, 5.7): standard rules first, then backstop rules if none matched. */
import { joinScopes, type TemplateScope } from '../../../lib/template/index.ts'
import type { CompiledRule } from './bindings.ts'
import type { CriteriaResult } from '../criteria/run.ts'
import type { Rule, RuleVerdict } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'
import type { Scope } from '../../../core/permissions.ts'
import { visiblePayload, type VisiblePayload, type VisibilityRights } from '../../triggers/index.ts'
import type { TriggerInstance } from '../../triggers/types.ts'

export interface Evaluation {
  compiled: CompiledRule
  verdict: RuleVerdict
}

/** What a rule sees of a trigger instance. */
export interface RuleView extends VisiblePayload {
  /** Variables and filters for the templates of the rule, including the payload. */
  scope: TemplateScope
}

export type ViewOf = (rule: Pick<Rule, 'context'>) => RuleView

/** Returns what each rule sees of this instance. */
export type ViewsFor = (instance: Pick<TriggerInstance, 'trigger_type' | 'payload' | 'owner'>) => ViewOf

export interface EvaluationContext {
  /** Microseconds since the epoch, for criteria about time. */
  now: number
  readonly viewOf: ViewOf
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

function evaluateRule({ rule, criteria }: CompiledRule, context: EvaluationContext): RuleVerdict {
  if (!rule.enabled) return { ...aboutRule(rule), verdict: 'disabled' }
  const view = context.viewOf(rule)
  return verdictOf(rule, criteria.evaluate({ ...view, now: context.now }), view)
}

export function verdictOf(rule: Rule, result: CriteriaResult, { withheld }: VisiblePayload): RuleVerdict {
  const about = { ...aboutRule(rule), ...(withheld === undefined ? {} : { reduced: withheld.reason }) }
  if (result.matches) return { ...about, verdict: 'matched' }
  const { failed: criterion, reason, note } = result
  if (reason !== undefined) return { ...about, verdict: 'failed', criterion, reason }
  return { ...about, verdict: 'not_matched', criterion, ...(note === undefined ? {} : { reason: note }) }
}

export function aboutRule({ id, ref, uid, type }: Rule): Pick<RuleVerdict, 'rule'> {
  return { rule: { ...(id === '' ? {} : { id }), ref, uid, type: type.ref } }
}

/**
 * Views of the rules: what the author of each may see of the payload, and datastore items that both the system user and
 * the author can view. Rules of the system user, such as those of packs, see everything.
 */
export function createViews(deps: {
  readonly templates: (reader: TemplateReader) => TemplateScope
  readonly rightsOf: (user: string, scopes?: readonly Scope[]) => VisibilityRights
  systemUser: string
}): ViewsFor {
  const { templates, rightsOf, systemUser } = deps
  return (instance) => {
    const byAuthor = new Map<string, RuleView>()
    return ({ context: { user, scopes } }) => {
      const known = scopes === undefined ? byAuthor.get(user) : undefined
      if (known !== undefined) return known
      const visible =
        user === systemUser && scopes === undefined
          ? { payload: instance.payload }
          : visiblePayload(rightsOf(user, scopes), instance)
      const reader = readerOf({ user, scopes }, systemUser)
      const scope = joinScopes({ variables: { trigger: visible.payload } }, templates(reader))
      const view = { ...visible, scope }
      if (scopes === undefined) byAuthor.set(user, view)
      return view
    }
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
