import type { Budget } from '../../../lib/template/index.ts'
import type { Scope } from './scope.ts'

/** What a function gets beside its arguments. */
export interface FunctionContext {
  readonly scope: Scope
  readonly budget: Budget
}

/** A function that both languages offer. */
export interface WorkflowFunction {
  readonly name: string
  /** Names of the parameters in Python's spelling, in order; optional ones end with `?` and come last. */
  readonly parameters: readonly string[]
  /** Takes any number of positional arguments before its named parameters. */
  readonly isVariadic?: boolean
  /** Also a filter of Jinja. */
  readonly isFilter?: boolean
  /** Its value depends on more than its arguments. */
  readonly isReading?: boolean
  /**
   * Arguments are plain data in the order of the parameters, undefined where left out; variadic ones follow. The value is
   * plain data, or a value of the template engine.
   *
   * @throws FunctionError TemplateError
   */
  run(args: readonly unknown[], context: FunctionContext): unknown
}
