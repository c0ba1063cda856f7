import { bind, signature } from '../arguments.ts'
import type { Budget } from '../limits.ts'
import { textOf } from '../text.ts'
import { Undefined, type Call, type Value } from '../values.ts'

/** What filters and tests may use of the rendering they run in. */
export interface Runtime {
  readonly budget: Budget
  /** applies a filter by name */
  filter(name: string, value: Value, call: Call): Value
  /** applies a test by name */
  test(name: string, value: Value, call: Call): boolean
}

export type TemplateFilter = (value: Value, call: Call, runtime: Runtime) => Value

type Arguments = readonly (Value | undefined)[]

/** A filter over any defined value. */
export function filter(
  name: string,
  parameters: string,
  run: (value: Value, args: Arguments, runtime: Runtime) => Value,
): [string, TemplateFilter] {
  const expected = signature(parameters)
  const what = `the filter '${name}'`
  return [
    name,
    (value, call, runtime) => {
      if (value instanceof Undefined && !value.lenient) value.raise()
      return run(value, bind(what, expected, call), runtime)
    },
  ]
}

/** A filter over the text of the value, whatever its type; reading it and the text that comes back are paid for. */
export function stringFilter(
  name: string,
  parameters: string,
  run: (text: string, args: Arguments, runtime: Runtime) => Value,
): [string, TemplateFilter] {
  return filter(name, parameters, (value, args, runtime) => {
    const text = textOf(value, runtime.budget)
    runtime.budget.work(text.length)
    const result = run(text, args, runtime)
    if (typeof result === 'string') runtime.budget.text(result.length)
    return result
  })
}
