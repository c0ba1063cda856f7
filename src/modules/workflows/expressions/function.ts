import type { Budget } from '../../../lib/template/index.ts'
import type { Readings, Scope } from './scope.ts'

/** What one evaluation needs, and what its functions get beside their arguments. */
export interface Evaluation {
  readonly scope: Scope
  readonly budget: Budget
  /** undefined: nobody asks what is read */
  readonly readings: Readings | undefined
}

/** A function that both languages offer. */
export interface WorkflowFunction {
  readonly name: string
  /** Names of the parameters in Python's spelling, in order; optional ones end with `?` and come last. */
  readonly parameters: readonly string[]
  /** Optional parameters that are given by name only. */
  readonly options?: readonly string[]
  /** Takes any number of positional arguments after its parameters. */
  readonly isVariadic?: boolean
  /** Also a filter of Jinja. */
  readonly isFilter?: boolean
  /** Its value depends on more than its arguments. */
  readonly isReading?: boolean
  /** The value is one of the template engine, such as a tuple. Default: plain data. */
  readonly givesTemplateValue?: boolean
  /**
   * Arguments are plain data: parameters and options in their order, undefined where left out, then the variadic ones.
   *
   * @throws FunctionError TemplateError
   */
  run(args: readonly unknown[], evaluation: Evaluation): unknown
}
