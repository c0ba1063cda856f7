import { entriesOf, JsonNumber, objectOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { BudgetExhausted, type Budget } from '../../../lib/template/index.ts'
import { hasJinja, hasYaql } from './blocks.ts'
import { ExpressionError, ExpressionExhausted } from './error.ts'
import type { Evaluation } from './function.ts'
import { evaluateJinja } from './jinja.ts'
import type { Readings, Scope } from './scope.ts'
import { dataOf, evaluateYaql } from './yaql.ts'

export interface EvaluateOptions {
  /** Shared by all expressions of the value; with other evaluations too, if the caller passes the same one. */
  readonly budget: Budget
  /** Receives what the expressions read. Default: nothing is noted. */
  readonly readings?: Readings
}

/**
 * Evaluates the expressions in a value: in texts, in items of lists, in keys and values of objects. A text that is one
 * expression gives its value, a text around expressions gives text. A value without expressions is returned as it is; data
 * that an expression reads is never evaluated.
 *
 * The result is JSON data: sets and tuples become lists, points in time ISO 8601 text.
 *
 * @throws ExpressionError when an expression fails
 * @throws ExpressionExhausted when the budget does not suffice; a larger one could
 */
export function evaluate(value: unknown, scope: Scope, { budget, readings }: EvaluateOptions): unknown {
  return walk(value, { scope, budget, readings }, true, 0)
}

/** As `evaluate`, but values of YAQL stay what they are: for a caller that tells a set from a list. */
export function evaluateNative(value: unknown, scope: Scope, { budget, readings }: EvaluateOptions): unknown {
  return walk(value, { scope, budget, readings }, false, 0)
}

function walk(value: unknown, evaluation: Evaluation, isData: boolean, depth: number): unknown {
  if (typeof value === 'string') return evaluateText(value, evaluation, isData)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  evaluation.budget.depth(depth)
  evaluation.budget.visit()
  if (Array.isArray(value)) {
    const items = value.map((item) => walk(item, evaluation, isData, depth + 1))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  if (!isObject(value)) return value
  let isChanged = false
  const entries = entriesOf(value).map(([key, item]): [string, unknown] => {
    const name = keyText(evaluateText(key, evaluation, true))
    const result = walk(item, evaluation, isData, depth + 1)
    isChanged ||= name !== key || result !== item
    return [name, result]
  })
  return isChanged ? objectOf(entries) : value
}

function evaluateText(text: string, evaluation: Evaluation, isData: boolean): unknown {
  // Inspection refuses both in one text; here, what looks like Jinja stays text.
  const isYaql = hasYaql(text)
  if (!isYaql && !hasJinja(text)) return text
  try {
    if (!isYaql) return evaluateJinja(text, evaluation)
    const value = evaluateYaql(text, evaluation)
    return isData ? dataOf(value, evaluation) : value
  } catch (error) {
    if (!(error instanceof BudgetExhausted)) throw error
    const className = isYaql ? 'YaqlEvaluationException' : 'JinjaEvaluationException'
    throw new ExpressionExhausted(className, text, error.message)
  }
}

/** A key as JSON writes it. */
function keyText(key: unknown): string {
  if (typeof key === 'string') return key
  if (key === null || typeof key === 'boolean' || typeof key === 'number') return String(key)
  if (key instanceof JsonNumber) return key.text
  throw new ExpressionError('TypeError', `unhashable type: '${Array.isArray(key) ? 'list' : 'dict'}'`)
}
