import { entriesOf, JsonNumber, objectOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Budget } from '../../../lib/template/index.ts'
import { hasJinja, hasYaql } from './blocks.ts'
import { ExpressionError } from './error.ts'
import { evaluateJinja, type Evaluation } from './jinja.ts'
import type { Readings, Scope } from './scope.ts'

export interface EvaluateOptions {
  /** Shared by all expressions of the value; with other evaluations too, if the caller passes the same one. */
  readonly budget: Budget
  /** Receives what the expressions read. Default: nothing is noted. */
  readonly readings?: Readings
}

/**
 * Evaluates the expressions in a value: in texts, in items of lists, in keys and values of objects. The result is JSON data.
 * A text that is one expression gives its value, a text around expressions gives text. A value without expressions is
 * returned as it is; data that an expression reads is never evaluated.
 *
 * @throws ExpressionError when an expression fails
 * @throws BudgetExhausted when the budget does not suffice; a larger one could
 */
export function evaluate(value: unknown, scope: Scope, options: EvaluateOptions): unknown {
  return walk(value, { scope, budget: options.budget, readings: options.readings }, 0)
}

function walk(value: unknown, evaluation: Evaluation, depth: number): unknown {
  if (typeof value === 'string') return evaluateText(value, evaluation)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  evaluation.budget.depth(depth)
  evaluation.budget.visit()
  if (Array.isArray(value)) {
    const items = value.map((item) => walk(item, evaluation, depth + 1))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  if (!isObject(value)) return value
  let isChanged = false
  const entries = entriesOf(value).map(([key, item]): [string, unknown] => {
    const name = keyText(evaluateText(key, evaluation))
    const result = walk(item, evaluation, depth + 1)
    isChanged ||= name !== key || result !== item
    return [name, result]
  })
  return isChanged ? objectOf(entries) : value
}

function evaluateText(text: string, evaluation: Evaluation): unknown {
  if (hasYaql(text)) throw new ExpressionError('YaqlEvaluationException', 'YAQL is not supported yet.')
  return hasJinja(text) ? evaluateJinja(text, evaluation) : text
}

/** A key as JSON writes it. */
function keyText(key: unknown): string {
  if (typeof key === 'string') return key
  if (key === null || typeof key === 'boolean' || typeof key === 'number') return String(key)
  if (key instanceof JsonNumber) return key.text
  throw new ExpressionError('TypeError', `unhashable type: '${Array.isArray(key) ? 'list' : 'dict'}'`)
}
