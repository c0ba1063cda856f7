/** Choices between expressions, of which only the chosen one is evaluated. */
import { fn, method, param, rest, type Overload } from '../signature.ts'
import { Fn, Index, KeyValue } from '../types.ts'
import type { Value } from '../values.ts'

export const branching: readonly Overload[] = [
  fn('switch', [rest('args', KeyValue)], ([rules], runtime) => {
    for (const { key, value } of rules) if (runtime.isTrue(key.call())) return value.call()
    return null
  }),
  fn('coalesce', [rest('args', Fn)], ([choices]) => {
    for (const choice of choices) {
      const value = choice.call()
      if (value !== null) return value
    }
    return null
  }),
  fn('selectCase', [rest('args', Fn)], ([conditions], runtime) => {
    const index = conditions.findIndex((condition) => runtime.isTrue(condition.call()))
    return index < 0 ? conditions.length : index
  }),
  fn('selectAllCases', [rest('args', Fn)], ([conditions], runtime) => {
    const indexes = function* (): Generator<Value> {
      for (const [index, condition] of conditions.entries()) if (runtime.isTrue(condition.call())) yield index
    }
    return runtime.lazy(indexes())
  }),
  fn('examine', [rest('args', Fn)], ([conditions], runtime) => {
    const answers = function* (): Generator<Value> {
      for (const condition of conditions) yield runtime.isTrue(condition.call())
    }
    return runtime.lazy(answers())
  }),
  method('switchCase', [param('case', Index), rest('args', Fn)], ([index, choices]) => {
    const choice = index >= 0 && index < choices.length ? choices[index] : choices.at(-1)
    return choice === undefined ? null : choice.call()
  }),
]
