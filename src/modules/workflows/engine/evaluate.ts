/** Evaluates expressions of workflows within bounds. */
import { Budget, defaultLimits } from '../../../lib/template/index.ts'
import type { Evaluate } from '../conductor/index.ts'
import { evaluate, ExpressionError, ExpressionExhausted } from '../expressions/index.ts'

/** @throws ExpressionError also for one that takes too much */
export const evaluateBriefly: Evaluate = (value, scope, readings) => {
  const budget = new Budget(defaultLimits, 'the expression')
  try {
    return evaluate(value, scope, { budget, ...(readings === undefined ? {} : { readings }) })
  } catch (error) {
    if (!(error instanceof ExpressionExhausted)) throw error
    throw new ExpressionError('YaqlEvaluationException', error.message)
  }
}
