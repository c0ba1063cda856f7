/** Criteria of rules (contract 05, 5.6): checked and compiled once per rule, then evaluated for each payload. */
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
  type CriteriaMismatch,
  type FailedCriterion,
  type Stage,
} from './run.ts'
import { shown } from '../../../lib/text/index.ts'

/** An evaluated criterion. */
export interface SeenOutcome {
  seen: FailedCriterion
  holds: boolean
  /** Why value and pattern could not be compared. */
  reason?: string
}

export interface CompiledCriteria {
  evaluate(context: CriteriaContext): CriteriaResult
  /** Also evaluates the criteria after the first that does not hold. No outcomes for an empty payload. */
  evaluateEach(context: CriteriaContext): { result: CriteriaResult; outcomes: SeenOutcome[] }
}

/**
 * Checks and compiles the criteria of a rule. A pattern that its operator rejects, such as an invalid regular
 * expression, fails at each evaluation; `findProblems` reports it before.
 *
 * @throws CRITERIA_INVALID
 */
export function compileCriteria(criteria: Readonly<Record<string, unknown>>): CompiledCriteria {
  const compiled = compile(criteria)
  const [first] = compiled.criteria
  if (first === undefined) {
    return { evaluate: () => ({ matches: true }), evaluateEach: () => ({ result: { matches: true }, outcomes: [] }) }
  }
  const refuse = ({ payload }: CriteriaContext): CriteriaMismatch | undefined =>
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
      let first: CriteriaMismatch | undefined
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
 * Finds criteria that compile but can match no payload. One sentence each.
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

/** Whether a criterion reads the datastore, for every spelling of its key. @param key that compiles */
export function readsDatastore(key: string): boolean {
  return compilePath(key).root === 'system'
}

/** Why a key can never have a value; undefined: it can. @param key that compiles */
export function problemOfKey(key: string): string | undefined {
  const { root } = compilePath(key)
  if (root === undefined || ['trigger', 'system', 'item'].includes(root)) return undefined
  return `The key "${shown(key)}" never has a value: it must start with "trigger." for the payload or "system." for the datastore.`
}
