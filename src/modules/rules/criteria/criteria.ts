/** Criteria of rules (contract 05, 5.6): checked and compiled once per rule, then evaluated for each payload. */
import { criteriaInvalid } from '../../../core/errors.ts'
import { Budget, adopt, isTrue } from '../../../lib/template/index.ts'
import { compilePath, isKeptPath } from './path.ts'
import type { Withheld } from '../../triggers/index.ts'
import { compile, itemsOf, type Criterion } from './compile.ts'
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
  /** Why value and pattern could not be compared, or why the pattern matches nothing. */
  reason?: string
}

export interface CompiledCriteria {
  evaluate(context: CriteriaContext): CriteriaResult
  /** Also evaluates the criteria after the first that does not hold. No outcomes for an empty payload. */
  evaluateEach(context: CriteriaContext): { result: CriteriaResult; outcomes: SeenOutcome[] }
}

/**
 * Checks and compiles the criteria of a rule. A pattern that its operator rejects, such as an invalid regular
 * expression, fails at each evaluation; `checkCriteria` rejects it before.
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
          ...reasonIn(failure),
        }
      })
      return { result: first ?? { matches: true }, outcomes }
    },
  }
}

function reasonIn(failure: CriteriaMismatch | undefined): { reason?: string } {
  const reason = failure?.reason ?? failure?.note
  return reason === undefined ? {} : { reason }
}

/**
 * Checks the criteria of a rule that is written now: besides what `compileCriteria` rejects, constant patterns that
 * their operator rejects or that fit every text, and keys that never have a value. Stored rules can have them.
 *
 * @throws CRITERIA_INVALID
 */
export function checkCriteria(criteria: Readonly<Record<string, unknown>>): void {
  const [problem] = problemsOf(criteria, () => undefined)
  if (problem !== undefined) throw criteriaInvalid(problem.message, problem.path)
}

export interface CriteriaProblem {
  /** One sentence. */
  message: string
  /** Of the criterion, below `criteria` of the rule. */
  path: readonly string[]
}

/**
 * Finds criteria that compile but match no payload, or every one.
 *
 * @throws CRITERIA_INVALID
 */
export function findProblems(criteria: Readonly<Record<string, unknown>>): CriteriaProblem[] {
  return problemsOf(criteria, requireCondition)
}

/** Of all patterns of a rule: some 30,000 steps of regular expressions, which take as many microseconds to compile. */
const MAX_CHECK_WORK = 4 * 1024 * 1024

/** @param checkSearch throws TemplateError for a condition of `search` */
function problemsOf(
  criteria: Readonly<Record<string, unknown>>,
  checkSearch: (criterion: Criterion) => unknown,
): CriteriaProblem[] {
  const problems: CriteriaProblem[] = []
  const budget = new Budget({ ...limits, maxWork: MAX_CHECK_WORK }, SUBJECT)
  const look = (criterion: Criterion, above: readonly string[]): void => {
    const { key, type, pattern, operator } = criterion
    const path = [...above, key]
    const add = (message: string): void => void problems.push({ message, path })
    const wrongKey = above.length === 0 ? problemOfKey(key) : undefined
    if (wrongKey !== undefined) add(wrongKey)
    let stage: Stage = 'pattern'
    try {
      if (pattern.kind === 'broken') throw pattern.error
      stage = 'comparison'
      if (operator.kind === 'search') checkSearch(criterion)
      else if (pattern.kind === 'fixed' && pattern.value !== null) {
        operator.operator.prepare(pattern.value, budget)
        if (pattern.value === '' && operator.operator.isOfParts === true) {
          add(`key "${shown(key)}", operator ${type}: the pattern is empty, and every text contains it`)
        }
      }
    } catch (error) {
      add(reasonOf(criterion, stage, error))
    }
    if (operator.kind === 'search') operator.items?.forEach((item) => look(item, itemsOf(path)))
  }
  compile(criteria).criteria.forEach((criterion) => look(criterion, []))
  return problems
}

/** Whether a criterion reads the datastore, for every spelling of its key. @param key that compiles */
export function readsDatastore(key: string): boolean {
  return compilePath(key).root === 'system'
}

/** Whether a criterion reads what a reduced payload has, for every spelling of its key. @param key that compiles */
export const isKept = (key: string, withheld: Withheld): boolean => isKeptPath(compilePath(key), withheld)

/** Why a key can never have a value; undefined: it can. @param key that compiles, not within `search` */
export function problemOfKey(key: string): string | undefined {
  const { root } = compilePath(key)
  if (root === undefined || root === 'trigger' || root === 'system') return undefined
  return `The key "${shown(key)}" never has a value: it must start with "trigger." for the payload or "system." for the datastore.`
}
