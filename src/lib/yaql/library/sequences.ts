/** Functions that read collections one item at a time and give lazy sequences or one value. */
import { hashOf } from '../equality.ts'
import { typeError, valueError, YaqlError } from '../error.ts'
import type { Runtime } from '../runtime.ts'
import type { Lambda } from '../scope.ts'
import { extension, fn, method, namedRest, optional, param, rest, type Overload } from '../signature.ts'
import { Any, Bool, Fn, Index, Int, Items, orNull } from '../types.ts'
import {
  adopt,
  DictView,
  isIterable,
  isSetLike,
  isTuple,
  Iteration,
  listOf,
  Repeatable,
  SetValue,
  type Value,
} from '../values.ts'

type Run = Runtime

export function* concatenate(collections: Iterable<Value>, runtime: Runtime): Generator<Value> {
  for (const collection of collections) yield* runtime.each(collection)
}

/** `method(name, [collection, …])` whose result is a lazy sequence. */
function* filterItems(items: Value, keep: (item: Value) => boolean, runtime: Run): Generator<Value> {
  for (const item of runtime.each(items)) if (keep(item)) yield item
}

function* mapItems(items: Value, change: (item: Value) => Value, runtime: Run): Generator<Value> {
  for (const item of runtime.each(items)) yield change(item)
}

/** Whether the function holds for an item; without a function the item itself decides. */
const test = (predicate: Lambda, runtime: Run) => {
  return (item: Value): boolean => runtime.isTrue(predicate.call([item]))
}

const collection = param('collection', Items)
const predicate = param('predicate', Fn)
const selector = param('selector', Fn)
/** What stands for an argument that was not given, where null is a value of its own. */
const none: undefined = undefined

const filtering: readonly Overload[] = [
  ...['where', 'filter'].map((name) =>
    method(name, [collection, predicate], ([items, holds], runtime) =>
      runtime.lazy(filterItems(items, test(holds, runtime), runtime)),
    ),
  ),
  ...['select', 'map'].map((name) =>
    method(name, [collection, selector], ([items, change], runtime) =>
      runtime.lazy(mapItems(items, (item) => change.call([item]), runtime)),
    ),
  ),
  method('selectMany', [collection, selector], ([items, change], runtime) => {
    const many = function* (): Generator<Value> {
      for (const item of runtime.each(items)) {
        const inner = change.call([item])
        if (isIterable(inner)) yield* runtime.each(inner)
        else yield inner
      }
    }
    return runtime.lazy(many())
  }),
  ...['take', 'limit'].map((name) =>
    method(name, [collection, param('count', Index)], ([items, count], runtime) => {
      if (count < 0) {
        throw valueError('Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.')
      }
      return runtime.lazy(takeItems(items, count, runtime))
    }),
  ),
  method('skip', [collection, param('count', Index)], ([items, count], runtime) => {
    if (count < 0) throw valueError('Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.')
    let index = -1
    const isLater = (): boolean => {
      index += 1
      return index >= count
    }
    return runtime.lazy(filterItems(items, isLater, runtime))
  }),
  method('takeWhile', [collection, predicate], ([items, holds], runtime) => {
    const start = function* (): Generator<Value> {
      for (const item of runtime.each(items)) {
        if (!runtime.isTrue(holds.call([item]))) return
        yield item
      }
    }
    return runtime.lazy(start())
  }),
  method('skipWhile', [collection, predicate], ([items, holds], runtime) => {
    let isOpen = false
    const keep = (item: Value): boolean => {
      isOpen ||= !runtime.isTrue(holds.call([item]))
      return isOpen
    }
    return runtime.lazy(filterItems(items, keep, runtime))
  }),
  extension('distinct', [collection, optional('keySelector', orNull(Fn), null)], ([items, key], runtime) => {
    const seen = new Set<unknown>()
    const isNew = (item: Value): boolean => {
      const hash = hashOf(key === null ? item : key.call([item]), runtime.budget)
      const { size } = seen
      return seen.add(hash).size > size
    }
    return runtime.lazy(filterItems(items, isNew, runtime))
  }),
]

function* takeItems(items: Value, count: number, runtime: Run): Generator<Value> {
  if (count === 0) return
  let left = count
  for (const item of runtime.each(items)) {
    yield item
    left -= 1
    if (left === 0) return
  }
}

const making: readonly Overload[] = [
  extension('concat', [rest('collections', Items)], ([collections], runtime) =>
    runtime.lazy(concatenate(collections, runtime)),
  ),
  extension('append', [collection, rest('args', Any)], ([items, more], runtime) =>
    runtime.lazy(concatenate([items, more], runtime)),
  ),
  extension('enumerate', [collection, optional('start', orNull(Int), 0)], ([items, start], runtime) => {
    const numbered = function* (): Generator<Value> {
      if (start === null) throw typeError("'NoneType' object cannot be interpreted as an integer")
      let index = start
      for (const item of runtime.each(items)) {
        yield listOf([index, item])
        index = sum(index, 1)
      }
    }
    return runtime.lazy(numbered())
  }),
  fn('range', [param('stop', Int)], ([stop], runtime) => runtime.lazy(count(0, stop, 1))),
  fn('range', [param('start', Int), param('stop', Int), optional('step', Int, 1)], ([start, stop, step], runtime) => {
    if (Number(step) === 0) throw valueError('range() arg 3 must not be zero')
    return runtime.lazy(count(start, stop, step))
  }),
  fn('sequence', [optional('start', Int, 0), optional('step', Int, 1)], ([start, step], runtime) =>
    runtime.lazy(count(start, step < 0 ? -Infinity : Infinity, step)),
  ),
  method('repeat', [param('value', Any), optional('times', Index, -1)], ([value, times], runtime) => {
    const again = function* (): Generator<Value> {
      for (let left = times; left !== 0; left -= 1) yield value
    }
    return runtime.lazy(again())
  }),
  method('cycle', [collection], ([items], runtime) => {
    const again = function* (): Generator<Value> {
      const kept: Value[] = []
      for (const item of runtime.each(items)) {
        kept.push(item)
        if (kept.length > runtime.budget.limits.maxItems) runtime.budget.items(kept.length)
        yield item
      }
      while (kept.length > 0) yield* runtime.each(kept)
    }
    return runtime.lazy(again())
  }),
  method('memorize', [collection], ([items], runtime) => memorize(items, runtime)),
  method('defaultIfEmpty', [collection, param('default', Items)], ([items, fallback], runtime) => {
    if (isTuple(items)) return items.length > 0 ? items : fallback
    if (items instanceof SetValue || items instanceof DictView) return runtime.isTrue(items) ? items : fallback
    const source = runtime.each(items)
    const first = source.next()
    if (first.done === true) return fallback
    const both = function* (): Generator<Value> {
      yield first.value
      yield* source
    }
    return runtime.lazy(both())
  }),
  method('flatten', [collection], ([items], runtime) => runtime.lazy(flatten(items, runtime, 0))),
  method('zip', [rest('collections', Items)], ([collections], runtime) =>
    runtime.lazy(zip(collections, none, runtime)),
  ),
  method('zipLongest', [rest('collections', Items), namedRest('kwargs', Any)], ([collections, named], runtime) =>
    runtime.lazy(zip(collections, named.get('default') ?? null, runtime)),
  ),
  fn(
    'generate',
    [
      param('initial', Any),
      predicate,
      param('producer', Fn),
      optional('selector', orNull(Fn), null),
      optional('decycle', Bool, false),
    ],
    ([initial, holds, produce, change, decycle], runtime) => {
      const make = function* (): Generator<Value> {
        const seen = new Set<unknown>()
        for (let value = initial; runtime.isTrue(holds.call([value])); value = produce.call([value])) {
          runtime.budget.step()
          if (decycle) {
            const hash = hashOf(value, runtime.budget)
            if (seen.has(hash)) return
            seen.add(hash)
          }
          yield change === null ? value : change.call([value])
        }
      }
      return runtime.lazy(make())
    },
  ),
  fn(
    'generateMany',
    [
      param('initial', Any),
      param('producer', Fn),
      optional('selector', orNull(Fn), null),
      optional('decycle', Bool, false),
      optional('depthFirst', Bool, false),
    ],
    ([initial, produce, change, decycle, depthFirst], runtime) => {
      const make = function* (): Generator<Value> {
        const seen = new Set<unknown>()
        let waiting: Value[] = [initial]
        for (let at = 0; at < waiting.length;) {
          runtime.budget.step()
          const value = adopt(waiting[at])
          at += 1
          if (decycle) {
            const hash = hashOf(value, runtime.budget)
            if (seen.has(hash)) continue
            seen.add(hash)
          }
          yield change === null ? value : change.call([value])
          const produced = runtime.list(produce.call([value]))
          if (depthFirst) {
            waiting = [...produced, ...waiting.slice(at)]
            at = 0
          } else waiting.push(...produced)
          runtime.budget.items(waiting.length - at)
        }
      }
      return runtime.lazy(make())
    },
  ),
]

/** Whoever reads the numbers pays for them. */
function* count(start: Whole, stop: Whole, step: Whole): Generator<Value> {
  for (let value = start; step < 0 ? value > stop : value < stop; value = sum(value, step)) yield value
}

type Whole = number | bigint

/** Exact, whatever the size. */
function sum(a: Whole, b: Whole): Whole {
  const quick = Number(a) + Number(b)
  return Number.isSafeInteger(quick) ? quick : BigInt(a) + BigInt(b)
}

/** The same value; a sequence that can be read once becomes one that can be read again. */
export function memorize(value: Value, runtime: Runtime): Value {
  const isOnce = value instanceof Iteration || (value instanceof DictView && !isSetLike(value))
  if (!isOnce) return value
  const kept: Value[] = []
  const source = value instanceof Iteration ? value : runtime.lazy(runtime.each(value))
  return new Repeatable(() => memory(source, kept, runtime))
}

/** The items that were read so far, then those of the source. */
function* memory(source: Iteration, kept: Value[], runtime: Run): Generator<Value> {
  for (let at = 0; ; at += 1) {
    const known = kept[at]
    if (known !== undefined) {
      yield known
      continue
    }
    const next = runtime.each(source).next()
    if (next.done === true) return
    kept.push(next.value)
    if (kept.length > runtime.budget.limits.maxItems) runtime.budget.items(kept.length)
    yield next.value
  }
}

function* flatten(items: Value, runtime: Run, depth: number): Generator<Value> {
  runtime.budget.depth(depth)
  for (const item of runtime.each(items)) {
    if (isIterable(item)) yield* flatten(item, runtime, depth + 1)
    else yield item
  }
}

/** Tuples of the items at one position; with a filler as long as the longest collection, else as the shortest. */
function* zip(collections: readonly Value[], filler: Value | undefined, runtime: Run): Generator<Value> {
  const sources = collections.map((each) => runtime.each(each))
  if (sources.length === 0) return
  for (;;) {
    let ended = 0
    const row: Value[] = []
    for (const source of sources) {
      const { done, value } = source.next()
      if (done === true) {
        if (filler === undefined) return
        ended += 1
        row.push(filler)
      } else row.push(value)
    }
    if (ended === sources.length) return
    yield row
  }
}

const single: readonly Overload[] = [
  method('first', [collection, optional('default', Any, none)], ([items, fallback], runtime) => {
    for (const item of runtime.each(items)) return item
    return orStop(fallback)
  }),
  method('last', [collection, optional('default', Any, none)], ([items, fallback], runtime) => {
    if (isTuple(items)) return items.length === 0 ? orStop(fallback) : adopt(items.at(-1))
    let last: Value | undefined
    for (const item of runtime.each(items)) last = item
    return last === undefined ? orStop(fallback) : last
  }),
  method('single', [collection], ([items], runtime) => {
    const source = runtime.each(items)
    const only = source.next()
    if (only.done === true) return orStop(none)
    if (source.next().done !== true) throw new YaqlError('StopIteration', 'Collection contains more than one item')
    return only.value
  }),
  method('count', [collection], ([items], runtime) => {
    if (isTuple(items)) return items.length
    let size = 0
    for (const _item of runtime.each(items)) size += 1
    return size
  }),
  extension('any', [collection, optional('predicate', orNull(Fn), null)], ([items, holds], runtime) => {
    for (const item of runtime.each(items)) if (holds === null || runtime.isTrue(holds.call([item]))) return true
    return false
  }),
  extension('all', [collection, optional('predicate', orNull(Fn), null)], ([items, holds], runtime) => {
    for (const item of runtime.each(items)) {
      if (!runtime.isTrue(holds === null ? item : holds.call([item]))) return false
    }
    return true
  }),
  method(
    'contains',
    [collection, param('value', Any)],
    ([items, value], runtime) => position(items, (item) => runtime.equals(item, value), runtime) >= 0,
  ),
  method('indexOf', [collection, param('item', Any)], ([items, wanted], runtime) =>
    position(items, (item) => runtime.equals(item, wanted), runtime),
  ),
  method('lastIndexOf', [collection, param('item', Any)], ([items, wanted], runtime) =>
    lastPosition(items, (item) => runtime.equals(item, wanted), runtime),
  ),
  method('indexWhere', [collection, predicate], ([items, holds], runtime) =>
    position(items, test(holds, runtime), runtime),
  ),
  method('lastIndexWhere', [collection, predicate], ([items, holds], runtime) =>
    lastPosition(items, test(holds, runtime), runtime),
  ),
]

function orStop(fallback: Value | undefined): Value {
  if (fallback === undefined) throw new YaqlError('StopIteration', '')
  return fallback
}

function position(items: Value, holds: (item: Value) => boolean, runtime: Run): number {
  let index = 0
  for (const item of runtime.each(items)) {
    if (holds(item)) return index
    index += 1
  }
  return -1
}

/** Whether a collection has an item that equals a value; a set is asked for its hash. */
export function contains(items: Value, value: Value, runtime: Run): boolean {
  if (items instanceof SetValue) return items.items.has(hashOf(value, runtime.budget))
  return position(items, (item) => runtime.equals(item, value), runtime) >= 0
}

function lastPosition(items: Value, holds: (item: Value) => boolean, runtime: Run): number {
  let index = 0
  let found = -1
  for (const item of runtime.each(items)) {
    if (holds(item)) found = index
    index += 1
  }
  return found
}

type Combine = (total: Value, item: Value) => Value

/** Combines the items from the left; the first one is the start where none is given. */
function reduce(items: Value, combine: Combine, start: Value | undefined, runtime: Run): Value {
  let total = start
  for (const item of runtime.each(items)) total = total === undefined ? item : combine(total, item)
  if (total === undefined) throw typeError('reduce() of empty iterable with no initial value')
  return total
}

const pick = (runtime: Run, isLargest: boolean): Combine => {
  return (best, item) => (runtime.isTrue(runtime.call('#operator_>', [item, best])) === isLargest ? item : best)
}

const combining: readonly Overload[] = [
  ...['aggregate', 'reduce'].map((name) =>
    method(name, [collection, selector, optional('seed', Any, none)], ([items, combine, seed], runtime) =>
      reduce(items, (total, item) => combine.call([total, item]), seed, runtime),
    ),
  ),
  method('accumulate', [collection, selector, optional('seed', Any, none)], ([items, combine, seed], runtime) => {
    const totals = function* (): Generator<Value> {
      let total: Value | undefined = seed
      if (total !== undefined) yield total
      for (const item of runtime.each(items)) {
        total = total === undefined ? item : combine.call([total, item])
        yield total
      }
      if (total === undefined) throw typeError('accumulate() of empty sequence with no initial value')
    }
    return runtime.lazy(totals())
  }),
  method('sum', [collection, optional('initial', Any, none)], ([items, initial], runtime) =>
    reduce(items, (total, item) => runtime.call('#operator_+', [total, item]), initial, runtime),
  ),
  method('min', [collection, optional('initial', Any, none)], ([items, initial], runtime) =>
    reduce(items, pick(runtime, false), initial, runtime),
  ),
  method('max', [collection, optional('initial', Any, none)], ([items, initial], runtime) =>
    reduce(items, pick(runtime, true), initial, runtime),
  ),
  method(
    'join',
    [param('collection1', Items), param('collection2', Items), predicate, selector],
    ([left, right, holds, change], runtime) => {
      const pairs = function* (): Generator<Value> {
        const others = runtime.list(right)
        for (const a of runtime.each(left)) {
          for (const b of runtime.each(others)) {
            if (runtime.isTrue(holds.call([a, b]))) yield change.call([a, b])
          }
        }
      }
      return runtime.lazy(pairs())
    },
  ),
]

export const sequences: readonly Overload[] = [...filtering, ...making, ...single, ...combining]
