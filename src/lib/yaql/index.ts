/**
 * YAQL: the expression language of workflows, as a library that knows nothing of workflows.
 *
 * | Function | Gives |
 * |---|---|
 * | `parse(text)` | the expression, without its delimiters; recent ones are cached |
 * | `evaluate(expression, options)` | its value: whatever is lazy has been worked out |
 * | `toData(value, budget)` | the value as JSON data |
 * | `textOf(value, 'result', budget)` | the value as it prints inside a longer text |
 * | `partsOf(expression)` | every node, for those who ask what an expression reads |
 *
 * A host adds functions: `declarations<Host>()` gives the builders, `new FunctionTable([...])` the table, and
 * `runtime.host` is what the host passes to `evaluate`. A function of a host hides the overloads of the library where it fits.
 *
 * Work is bounded by the same `Budget` as that of templates, and nesting by bounds of its own. What goes wrong is a
 * `YaqlError`, whose class and words are those of the original engine, or `BudgetExhausted` of the templates.
 */
import { Budget, defaultLimits } from '../template/index.ts'
import type { Expression } from './ast.ts'
import { dataOf } from './data.ts'
import { translateErrors } from './error.ts'
import { Evaluator, Functions } from './evaluate.ts'
import { library } from './library/index.ts'
import { FunctionTable } from './signature.ts'
import { printed, type Form } from './text.ts'
import { adopt, type Value } from './values.ts'

export { partsOf, type Argument, type Expression } from './ast.ts'
export { YaqlError, type YaqlErrorClass } from './error.ts'
export type { Runtime } from './runtime.ts'
export { parse } from './parser.ts'
export { Scope } from './scope.ts'
export {
  declarations,
  FunctionTable,
  namedRest,
  optional,
  param,
  rest,
  type Overload,
  type Parameter,
} from './signature.ts'
export * as types from './types.ts'
export { DateTime, TimeSpan } from './temporal.ts'
export { RegexValue } from './regex-value.ts'
export {
  adopt,
  Dict,
  isInteger,
  isIterable,
  isMapping,
  isNumber,
  isTuple,
  entriesOfMapping,
  SetValue,
  typeNameOf,
  type Mapping,
  type Value,
} from './values.ts'
export { mappingGet } from './equality.ts'

export interface EvaluateOptions<Host> {
  /** Functions of the host; default: none. Make the table once: what is learned about an expression is kept per table. */
  readonly functions?: FunctionTable<Host>
  /** What the functions of the host see as `runtime.host`. */
  readonly host?: Host
  /** `$` of the whole expression; default null. */
  readonly root?: unknown
  /** Shared with other evaluations; default: a new one with the default limits of templates. */
  readonly budget?: Budget
}

const known = new WeakMap<FunctionTable<unknown>, Functions>()
let ownFunctions: Functions | undefined

function functionsOf(table: FunctionTable<unknown> | undefined): Functions {
  if (table === undefined) return (ownFunctions ??= new Functions([library()]))
  let functions = known.get(table)
  if (functions === undefined) {
    functions = new Functions([table, library()])
    known.set(table, functions)
  }
  return functions
}

/** Whether the language has a function, a method or an operator of that name. */
export const hasFunction = (name: string): boolean => library().get(name).length > 0

/** Names of the functions and methods of the language. */
export const functionNames = (): string[] => [...library().names()].filter((name) => !name.startsWith('#'))

/** The value of an expression. @throws YaqlError, and BudgetExhausted when a larger budget could suffice */
export function evaluate<Host = undefined>(expression: Expression, options: EvaluateOptions<Host> = {}): Value {
  const { functions, host, root = null, budget = new Budget(defaultLimits, 'the expression') } = options
  const table = functions as FunctionTable<unknown> | undefined
  return translateErrors(() => new Evaluator(functionsOf(table), budget, host).run(expression, adopt(root)))
}

/**
 * The result of an expression as plain data: arrays, objects without a prototype, and JSON's scalars, numbers as `readJson`
 * gives them. Sets become lists, points in time ISO 8601 text, keys text.
 *
 * @throws YaqlError TypeError for what has no JSON form: a duration, a regular expression
 */
export function toData(value: Value, budget: Budget): unknown {
  return translateErrors(() => dataOf(value, budget))
}

/** `str(value)` of Python: as the value of an expression prints (`result`), or as the expression itself sees it (`inner`). */
export function textOf(value: Value, form: Form, budget: Budget): string {
  return translateErrors(() => printed(value, form, budget))
}
