import type { Budget } from '../template/index.ts'
import type { YaqlError } from './error.ts'
import type { Lambda, Scope } from './scope.ts'
import type { Iteration, Value } from './values.ts'

/** What functions can use while an expression is evaluated. */
export interface Runtime<Host = never> {
  readonly budget: Budget
  /** What the caller of `evaluate` passed for its own functions. */
  readonly host: Host
  /** The items of a collection one by one, each paid for. */
  each(collection: Value): Generator<Value>
  /** All items of a collection. */
  list(collection: Value): Value[]
  /** The value with every sequence in it read to its end, as the whole expression gives it. */
  finish(value: Value): Value
  /** A sequence that is worked out as it is read. */
  lazy(items: Iterator<Value>): Iteration
  equals(left: Value, right: Value): boolean
  isTrue(value: Value): boolean
  /** Calls a function or an operator such as `#operator_<` by name. */
  call(name: string, args: readonly Value[], named?: ReadonlyMap<string, Value>, scope?: Scope): Value
  callMethod(
    name: string,
    receiver: Value,
    args: readonly Value[],
    named?: ReadonlyMap<string, Value>,
    scope?: Scope,
  ): Value
  /** The value, or the error where it has one; a limit that is exceeded is thrown. */
  attempt(run: () => Value): Value | YaqlError
  /** `str(value)` as the expression itself sees the value. */
  text(value: Value): string
  /** A function that gives this value whenever it is called. */
  constant(value: Value): Lambda
}
