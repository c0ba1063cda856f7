import { BudgetExhausted } from '../../../lib/template/index.ts'
import type { YaqlErrorClass } from '../../../lib/yaql/index.ts'
import { adviceOn } from './elsewhere.ts'

/** Names of the errors of an expression, as users see them before the message. */
export type ExpressionErrorClass =
  | 'ExpressionEvaluationException'
  | 'JinjaEvaluationException'
  | 'TypeError'
  | 'UndefinedError'
  | 'YaqlEvaluationException'

/** An expression that cannot be evaluated, or whose value cannot be stored. The message is for the author of the workflow. */
export class ExpressionError extends Error {
  readonly className: ExpressionErrorClass

  constructor(className: ExpressionErrorClass, message: string) {
    super(message)
    this.name = 'ExpressionError'
    this.className = className
  }

  /** `<class>: <message>`, as the errors of an execution show it. */
  get text(): string {
    return `${this.className}: ${this.message}`
  }
}

/** An expression that needs more than its budget: a larger one could suffice. */
export class ExpressionExhausted extends BudgetExhausted {
  /** As that of an `ExpressionError`. */
  override readonly className: ExpressionErrorClass
  readonly text: string

  constructor(className: ExpressionErrorClass, expression: string, reason: string) {
    const message = unableToEvaluate(expression, 'LimitExceededException', reason)
    super(message)
    this.className = className
    this.text = `${className}: ${message}`
  }
}

/** A function of workflows that refuses its arguments or finds nothing. `KeyError`: the message is the missing key. */
export class FunctionError extends Error {
  readonly className: YaqlErrorClass

  constructor(className: YaqlErrorClass, message: string) {
    super(message)
    this.name = 'FunctionError'
    this.className = className
  }
}

/** `Unable to evaluate expression '<% … %>'. TypeError: …`. */
export function unableToEvaluate(expression: string, className: string, detail: string): string {
  return `Unable to evaluate expression '${expression}'. ${className}: ${detail}${adviceOn(detail)}`
}
