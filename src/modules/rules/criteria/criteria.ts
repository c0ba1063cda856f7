/** Criteria of rules (contract 05, 5.6): checked and compiled when a rule is read, then evaluated for each payload. */
import { Budget, adopt, isTrue } from '../../../lib/template/index.ts'
import { compilePath } from './path.ts'
import { compile, type Criterion } from './compile.ts'
import {
  describe,
  limits,
  reasonOf,
  requireCondition,
  CriteriaRun,
  SUBJECT,
  type Compared,
  type CriteriaContext,
  type CriteriaResult,
  type Failure,
  type FailedCriterion,
  type Stage,
} from './run.ts'
import { shown } from '../../../lib/text/index.ts'

/** A criterion that was looked at, whether it holds or not. */
export interface SeenOutcome {
  seen: FailedCriterion
  holds: boolean
  /** The two could not be compared. */
  reason?: string
}

export interface CompiledCriteria {
  evaluate(context: CriteriaContext): CriteriaResult
  /** The same, and each criterion, also behind the first that does not hold; none where the payload is empty. */
  evaluateEach(context: CriteriaContext): { result: CriteriaResult; outcomes: SeenOutcome[] }
}

/**
 * Checks and compiles the criteria of a rule. A pattern that is of no use to its operator, such as an invalid regular
 * expression, is refused when it is compared: `findProblems` tells before.
 *
 * @throws CRITERIA_INVALID
 */
export function compileCriteria(criteria: Readonly<Record<string, unknown>>): CompiledCriteria {
  const compiled = compile(criteria)
  const [first] = compiled.criteria
  if (first === undefined) {
    return { evaluate: () => ({ matches: true }), evaluateEach: () => ({ result: { matches: true }, outcomes: [] }) }
  }
  const refuse = ({ payload }: CriteriaContext): Failure | undefined =>
    isTrue(adopt(payload))
      ? undefined
      : { matches: false, failed: describe(first, undefined, null), note: 'The payload is empty.' }
  return {
    evaluate(context) {
      const refusal = refuse(context)
      if (refusal !== undefined) return refusal
      const run = new CriteriaRun(compiled.templates, context)
      for (const criterion of compiled.criteria) {
        const failure = run.check(criterion)
        if (failure !== undefined) return failure
      }
      return { matches: true }
    },
    evaluateEach(context) {
      const refusal = refuse(context)
      if (refusal !== undefined) return { result: refusal, outcomes: [] }
      const run = new CriteriaRun(compiled.templates, context)
      let first: Failure | undefined
      const outcomes = compiled.criteria.map((criterion): SeenOutcome => {
        const compared: Compared = { pattern: undefined, value: null }
        const failure = run.check(criterion, undefined, compared)
        first ??= failure
        return {
          seen: failure?.failed ?? describe(criterion, compared.pattern, compared.value),
          holds: failure === undefined,
          ...(failure?.reason === undefined ? {} : { reason: failure.reason }),
        }
      })
      return { result: first ?? { matches: true }, outcomes }
    },
  }
}

/**
 * What is wrong with criteria that compile and can never be compared, whatever the payload: one sentence each.
 *
 * @throws CRITERIA_INVALID
 */
export function findProblems(criteria: Readonly<Record<string, unknown>>): string[] {
  const problems: string[] = []
  const look = (criterion: Criterion): void => {
    const { pattern, operator } = criterion
    const wrongKey = problemOfKey(criterion.key)
    if (wrongKey !== undefined) problems.push(wrongKey)
    let stage: Stage = 'pattern'
    try {
      if (pattern.kind === 'broken') throw pattern.error
      stage = 'comparison'
      if (operator.kind === 'search') requireCondition(criterion)
      else if (pattern.kind === 'fixed' && pattern.value !== null) {
        operator.operator.prepare(pattern.value, new Budget(limits, SUBJECT))
      }
    } catch (error) {
      problems.push(reasonOf(criterion, stage, error))
    }
    if (operator.kind === 'search') operator.items?.forEach(look)
  }
  compile(criteria).criteria.forEach(look)
  return problems
}

/** Whether the value of a criterion comes from the datastore, however the key is written. @param key that compiles */
export function readsDatastore(key: string): boolean {
  return compilePath(key).root === 'system'
}

/** Why there can never be a value at the key of a criterion. @param key that compiles */
export function problemOfKey(key: string): string | undefined {
  const { root } = compilePath(key)
  if (root === undefined || ['trigger', 'system', 'item'].includes(root)) return undefined
  return `Nothing is ever found at the key "${shown(key)}": it has to begin with "trigger." for what happened, or with "system." for the datastore.`
}
