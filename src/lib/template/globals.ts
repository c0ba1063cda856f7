import { bind, signature, wholeArgument } from './arguments.ts'
import { typeError } from './error.ts'
import { iterate } from './iteration.ts'
import type { Budget } from './limits.ts'
import { isMapping, mappingEntries } from './mapping.ts'
import { textOf } from './text.ts'
import { Callable, Dict, Members, RangeValue, Undefined, type Call, type Value } from './values.ts'

const rangeSignature = signature('start stop? step?')
const joinerSignature = signature('sep?')

function range(call: Call, budget: Budget): Value {
  const [first, second, third] = bind('range()', rangeSignature, call)
  const start = second === undefined ? 0 : wholeArgument('range()', first)
  const stop = wholeArgument('range()', second === undefined ? first : second)
  const step = wholeArgument('range()', third, 1)
  if (step === 0) throw typeError('range() arg 3 must not be zero')
  const result = new RangeValue(start, stop, step)
  budget.items(result.length)
  return result
}

function dict(call: Call, budget: Budget): Dict {
  const [source, ...more] = call.positional
  if (more.length > 0) throw typeError('dict() takes at most 1 positional argument')
  const result = new Dict()
  if (source instanceof Undefined) source.raise()
  if (source !== undefined) for (const [key, value] of pairsOf(source, budget)) result.set(key, value)
  for (const [name, value] of call.named) result.set(name, value)
  budget.items(call.named.size)
  return result
}

function pairsOf(source: Value, budget: Budget): (readonly [Value, Value])[] {
  if (isMapping(source)) return mappingEntries(source, (count) => budget.items(count))
  return iterate(source, budget).map((item) => {
    const [key, value, ...more] = iterate(item, budget)
    if (key === undefined || value === undefined || more.length > 0) throw typeError('dict() needs pairs')
    return [key, value]
  })
}

function namespace(call: Call, budget: Budget): Value {
  const values = new Map<string, Value>()
  for (const [key, value] of dict(call, budget).entries()) values.set(textOf(key, budget), value)
  return new Members('Namespace', (name) => values.get(name), { write: (name, value) => values.set(name, value) })
}

function cycler(call: Call): Value {
  const items = call.positional
  if (items.length === 0) throw typeError('cycler() needs at least one item')
  let at = 0
  const current = (): Value => items[at] ?? null
  const next = new Callable('next', () => {
    const item = current()
    at = (at + 1) % items.length
    return item
  })
  const reset = new Callable('reset', () => {
    at = 0
    return null
  })
  return new Members('Cycler', (name) =>
    name === 'next' ? next : name === 'reset' ? reset : name === 'current' ? current() : undefined,
  )
}

function joiner(call: Call): Value {
  const [separator = ', '] = bind('joiner()', joinerSignature, call)
  let used = false
  return new Callable('joiner', () => {
    if (used) return separator
    used = true
    return ''
  })
}

/** Names that every template can use without a variable. */
export const globals: ReadonlyMap<string, Value> = new Map<string, Value>(
  Object.entries({ range, dict, namespace, cycler, joiner }).map(([name, run]) => [name, new Callable(name, run)]),
)

export const globalNames: ReadonlySet<string> = new Set(globals.keys())
