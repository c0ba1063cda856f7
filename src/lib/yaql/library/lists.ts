/** Functions that need a whole collection, or positions in it. */
import { hashOf, makeSet, mappingSize } from '../equality.ts'
import { valueError, YaqlError, type YaqlErrorClass } from '../error.ts'
import type { Runtime } from '../runtime.ts'
import type { Lambda } from '../scope.ts'
import { extension, fn, method, optional, param, rest, type Overload } from '../signature.ts'
import { Any, Fn, Index, Items, IteratorValue, List, Ordering, Ordinal, orNull } from '../types.ts'
import {
  Dict,
  isMapping,
  isNumber,
  isTuple,
  listOf,
  ListValue,
  Ordered,
  type Hash,
  type SortKey,
  type Value,
} from '../values.ts'
import { compareNumbers } from './operators.ts'
import { characterCount, compareText } from '../../template/index.ts'

const collection = param('collection', Items)
const predicate = param('predicate', Fn)

/** Sequences that can be read once are read; every other value is an item. */
function* spread(args: readonly Value[], runtime: Runtime): Generator<Value> {
  for (const value of args) {
    if (IteratorValue.accepts(value)) yield* runtime.each(value)
    else yield value
  }
}

const whole: readonly Overload[] = [
  fn('list', [rest('args', Any)], ([args], runtime) => runtime.list(runtime.lazy(spread(args, runtime)))),
  fn('set', [rest('args', Any)], ([args], runtime) => makeSet(spread(args, runtime), runtime.budget)),
  method('toList', [collection], ([items], runtime) => (isTuple(items) ? items : runtime.list(items))),
  method('toSet', [collection], ([items], runtime) => makeSet(runtime.each(items), runtime.budget)),
  extension('len', [param('sequence', List)], ([items]) => items.length),
  extension('len', [param('collection', IteratorValue)], ([items], runtime) => {
    let size = 0
    for (const _item of runtime.each(items)) size += 1
    return size
  }),
  method('reverse', [collection], ([items], runtime) => runtime.lazy(runtime.list(items).toReversed().values())),
]

/** Yields the items with those of a range replaced; a negative count reaches to the end. */
function* replaceRange(
  items: Value,
  position: number,
  length: number,
  replacement: readonly Value[],
  runtime: Runtime,
): Generator<Value> {
  let index = -1
  let isReplaced = false
  for (const item of runtime.each(items)) {
    index += 1
    const isInside = index >= position && (length < 0 || index < position + length)
    if (!isInside) yield item
    else if (!isReplaced) {
      isReplaced = true
      yield* replacement
    }
  }
}

/** Yields the items with others put in at a position; beyond the end they come last. */
function* insertAt(
  items: Value,
  position: number,
  added: readonly Value[],
  isKeptBefore: boolean,
  runtime: Runtime,
): Generator<Value> {
  let index = -1
  if (isKeptBefore && position < 0) yield* added
  for (const item of runtime.each(items)) {
    index += 1
    if (index === position) yield* added
    yield item
  }
  if (position > index) yield* added
}

const editing: readonly Overload[] = [
  method('delete', [collection, param('position', Index), optional('count', Index, 1)], ([items, at, count], runtime) =>
    runtime.lazy(replaceRange(items, at, count, [], runtime)),
  ),
  method(
    'replace',
    [collection, param('position', Index), param('value', Any), optional('count', Index, 1)],
    ([items, at, value, count], runtime) => runtime.lazy(replaceRange(items, at, count, [value], runtime)),
  ),
  method(
    'replaceMany',
    [collection, param('position', Index), param('values', Items), optional('count', Index, 1)],
    ([items, at, values, count], runtime) =>
      runtime.lazy(replaceRange(items, at, count, runtime.list(values), runtime)),
  ),
  method(
    'insert',
    [param('collection', Ordinal), param('position', Index), param('value', Any)],
    ([items, at, value], runtime) => runtime.lazy(insertAt(items, at, [value], false, runtime)),
  ),
  method(
    'insert',
    [param('collection', List), param('position', Index), param('value', Any)],
    ([items, at, value], runtime) => {
      const list = listOf(runtime.list(items))
      list.splice(at, 0, value)
      return list
    },
  ),
  method('insertMany', [collection, param('position', Index), param('values', Items)], ([items, at, values], runtime) =>
    runtime.lazy(insertAt(items, at, runtime.list(values), true, runtime)),
  ),
]

const splitting: readonly Overload[] = [
  method('slice', [collection, param('length', Index)], ([items, length], runtime) => {
    const slices = function* (): Generator<Value> {
      if (length < 0) {
        throw valueError('Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.')
      }
      if (length === 0) return
      let slice: Value[] = []
      for (const item of runtime.each(items)) {
        slice.push(item)
        if (slice.length < length) continue
        yield slice
        slice = []
      }
      if (slice.length > 0) yield slice
    }
    return runtime.lazy(slices())
  }),
  method('splitAt', [collection, param('index', Index)], ([items, index], runtime) => {
    const all = runtime.list(items)
    return listOf([all.slice(0, index), all.slice(index)])
  }),
  method('splitWhere', [collection, predicate], ([items, holds], runtime) => {
    const slices = function* (): Generator<Value> {
      let slice: Value[] = []
      for (const item of runtime.each(items)) {
        if (runtime.isTrue(holds.call([item]))) {
          yield slice
          slice = []
        } else slice.push(item)
      }
      if (slice.length > 0) yield slice
    }
    return runtime.lazy(slices())
  }),
  method('sliceWhere', [collection, predicate], ([items, holds], runtime) => {
    const slices = function* (): Generator<Value> {
      let slice: Value[] = []
      let last: Value | undefined
      for (const item of runtime.each(items)) {
        const key = holds.call([item])
        if (last !== undefined && !runtime.equals(key, last)) {
          yield slice
          slice = []
        }
        slice.push(item)
        last = key
      }
      if (slice.length > 0) yield slice
    }
    return runtime.lazy(slices())
  }),
]

interface Group {
  key: Value
  values: ListValue
}

const grouping: readonly Overload[] = [
  method(
    'groupBy',
    [
      collection,
      param('keySelector', Fn),
      optional('valueSelector', orNull(Fn), null),
      optional('aggregator', orNull(Fn), null),
    ],
    ([items, keyOf, valueOf, aggregate], runtime) => {
      const groups = new Map<Hash, Group>()
      for (const item of runtime.each(items)) {
        const value = valueOf === null ? item : valueOf.call([item])
        const key = keyOf.call([item])
        const hash = hashOf(key, runtime.budget)
        const group = groups.get(hash)
        if (group === undefined) groups.set(hash, { key, values: listOf([value]) })
        else group.values.push(value)
      }
      return runtime.lazy(grouped(groups.values(), aggregate, runtime))
    },
  ),
  method(
    'toDict',
    [collection, param('keySelector', Fn), optional('valueSelector', orNull(Fn), null)],
    ([items, keyOf, valueOf], runtime) => {
      const dict = new Dict(false)
      for (const item of runtime.each(items)) {
        const key = keyOf.call([item])
        dict.setHashed(hashOf(key, runtime.budget), key, valueOf === null ? item : valueOf.call([item]))
      }
      return dict
    },
  ),
]

/** Errors of an aggregator that was written for pairs. */
const pairErrors = new Set<YaqlErrorClass>(['NoMatchingMethodException', 'NoMatchingFunctionException', 'IndexError'])

/**
 * Pairs of a key and the values of its group, or what the aggregator makes of the values. Aggregators of old get the pair and
 * give a pair: one that fails on values is taken for such from then on.
 */
function* grouped(groups: Iterable<Group>, aggregate: Lambda | null, runtime: Runtime): Generator<Value> {
  let isOld = false
  for (const { key, values } of groups) {
    if (aggregate === null || isOld) {
      yield aggregate === null ? [key, values] : aggregate.call([[key, values]])
      continue
    }
    const result = runtime.attempt(() => aggregate.call([values]))
    if (!(result instanceof YaqlError)) {
      yield [key, result]
      continue
    }
    const pair = pairErrors.has(result.errorClass) ? runtime.attempt(() => aggregate.call([[key, values]])) : result
    if (pair instanceof YaqlError || !isPair(pair, runtime)) throw result
    isOld = true
    yield pair
  }
}

function isPair(value: Value, { budget }: Runtime): boolean {
  if (typeof value === 'string') return characterCount(value) === 2
  return isTuple(value) ? value.length === 2 : isMapping(value) && mappingSize(value, budget) === 2
}

/** Below zero, zero, above, as the operators `<` and `>` say. */
function order(left: Value, right: Value, runtime: Runtime): number {
  runtime.budget.step()
  if (isNumber(left) && isNumber(right)) return compareNumbers(left, right) || 0
  if (typeof left === 'string' && typeof right === 'string') {
    runtime.budget.work(Math.min(left.length, right.length))
    return compareText(left, right)
  }
  if (runtime.isTrue(runtime.call('#operator_<', [left, right]))) return -1
  return runtime.isTrue(runtime.call('#operator_>', [left, right])) ? 1 : 0
}

interface Row {
  readonly item: Value
  readonly known: (Value | undefined)[]
}

/** Sorts when it is read: by the first key, then by the next. */
function sorted(source: Value, keys: readonly SortKey[], runtime: Runtime): Ordered {
  return new Ordered(source, keys, () => {
    const items = runtime.list(source)
    // Nothing is compared, so no key is asked for.
    if (items.length < 2) return items.values()
    const rows = items.map((item) => ({ item, known: new Array<Value | undefined>() }))
    // A key is asked for when the ones before it are equal.
    const key = (row: Row, index: number, { keyOf }: SortKey): Value => {
      const known = row.known[index]
      return known === undefined ? (row.known[index] = keyOf.call([row.item])) : known
    }
    rows.sort((a, b) => {
      for (const [index, each] of keys.entries()) {
        const difference = order(key(a, index, each), key(b, index, each), runtime)
        if (difference !== 0) return difference * each.direction
      }
      return 0
    })
    return rows.map(({ item }) => item).values()
  })
}

const ordering: readonly Overload[] = (
  [
    ['orderBy', 'thenBy', 1],
    ['orderByDescending', 'thenByDescending', -1],
  ] as const
).flatMap(([first, next, direction]) => [
  method(first, [collection, param('selector', Fn)], ([items, keyOf], runtime) =>
    sorted(items, [{ keyOf, direction }], runtime),
  ),
  method(next, [param('collection', Ordering), param('selector', Fn)], ([items, keyOf], runtime) =>
    sorted(items.collection, [...items.keys, { keyOf, direction }], runtime),
  ),
])

export const lists: readonly Overload[] = [...whole, ...editing, ...splitting, ...grouping, ...ordering]
