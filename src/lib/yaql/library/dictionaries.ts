import { charactersOf } from '../../template/index.ts'
import { hashOf, makeDict, mappingGet, mappingSize } from '../equality.ts'
import { typeError, YaqlError } from '../error.ts'
import type { Runtime } from '../runtime.ts'
import type { Lambda } from '../scope.ts'
import { extension, fn, method, optional, param, rest, type Overload } from '../signature.ts'
import { Any, Dictionary, Fn, Index, Items, KeyValue, orNull } from '../types.ts'
import {
  DictView,
  Dict,
  entriesOfMapping,
  isMapping,
  isTuple,
  typeNameOf,
  type Mapping,
  type Value,
} from '../values.ts'

const dict = param('dict', Dictionary)

/** A copy with further entries. */
function withEntries(mapping: Mapping, added: Iterable<readonly [Value, Value]>, { budget }: Runtime): Dict {
  const copy = makeDict(entriesOfMapping(mapping), budget)
  for (const [key, value] of added) copy.setHashed(hashOf(key, budget), key, value)
  return copy
}

function without(mapping: Mapping, keys: Iterable<Value>, { budget }: Runtime): Dict {
  const copy = makeDict(entriesOfMapping(mapping), budget, false)
  for (const key of keys) copy.deleteHashed(hashOf(key, budget))
  return copy
}

/** A pair may also be a text of two characters or a dictionary of two keys. */
function pairOfParts(item: Value): Value {
  if (typeof item === 'string') return charactersOf(item.slice(0, 4))
  return isMapping(item) ? new DictView('KeysView', item) : item
}

interface Merge {
  mergeLists: (left: Value, right: Value) => Value
  mergeItems: (left: Value, right: Value) => Value
}

function merge(left: Mapping, right: Mapping, how: Merge, levels: number, depth: number, runtime: Runtime): Dict {
  const { budget } = runtime
  budget.depth(depth)
  const result = new Dict(false)
  for (const [key, value] of entriesOfMapping(left)) {
    budget.step()
    const other = mappingGet(right, key, budget)
    let merged = value
    if (other !== undefined) {
      const isDeep = levels !== 1 && (isMapping(other) || isTuple(other))
      if (isDeep && (isMapping(other) ? !isMapping(value) : !isTuple(value))) {
        throw typeError(`Cannot merge ${typeNameOf(value)} with ${typeNameOf(other)}`)
      }
      if (isDeep && isMapping(other) && isMapping(value)) {
        merged = merge(value, other, how, levels === 0 ? 0 : levels - 1, depth + 1, runtime)
      } else if (isDeep) merged = how.mergeLists(value, other)
      else merged = how.mergeItems(value, other)
    }
    result.setHashed(hashOf(key, budget), key, merged)
  }
  for (const [key, value] of entriesOfMapping(right)) {
    budget.step()
    const hash = hashOf(key, budget)
    if (!result.hasHashed(hash)) result.setHashed(hash, key, value)
  }
  return result
}

/** The items of both without repetitions, in their order. */
function mergeDistinct(left: Value, right: Value, runtime: Runtime): Value {
  const items = new Map<unknown, Value>()
  for (const item of [...runtime.list(left), ...runtime.list(right)]) {
    const hash = hashOf(item, runtime.budget)
    if (!items.has(hash)) items.set(hash, item)
  }
  return runtime.list(runtime.lazy(items.values()))
}

const pairOf = (merger: Lambda) => (left: Value, right: Value) => merger.call([left, right])

export const dictionaries: readonly Overload[] = [
  fn('dict', [rest('args', KeyValue)], ([rules], { budget }) =>
    makeDict(
      rules.map(({ key, value }) => [key.call(), value.call()] as const),
      budget,
    ),
  ),
  fn('dict', [param('items', Items)], ([items], runtime) => {
    const pairs = function* (): Generator<readonly [Value, Value]> {
      for (const item of runtime.each(items)) {
        const source = runtime.each(pairOfParts(item))
        const [key, value] = [source.next(), source.next()]
        if (key.done === true || value.done === true) throw new YaqlError('StopIteration', '')
        yield [key.value, value.value]
      }
    }
    return makeDict(pairs(), runtime.budget)
  }),
  method('keys', [dict], ([mapping]) => new DictView('KeysView', mapping)),
  method('values', [dict], ([mapping]) => new DictView('ValuesView', mapping)),
  method('items', [dict], ([mapping]) => new DictView('ItemsView', mapping)),
  extension('len', [dict], ([mapping], { budget }) => mappingSize(mapping, budget)),
  method('get', [dict, param('key', Any), optional('default', Any, null)], ([mapping, key, fallback], { budget }) => {
    const value = mappingGet(mapping, key, budget)
    return value === undefined ? fallback : value
  }),
  method(
    'containsKey',
    [dict, param('key', Any)],
    ([mapping, key], { budget }) => mappingGet(mapping, key, budget) !== undefined,
  ),
  method('containsValue', [dict, param('value', Any)], ([mapping, value], runtime) => {
    for (const [, each] of entriesOfMapping(mapping)) if (runtime.equals(each, value)) return true
    return false
  }),
  method('set', [dict, param('key', Any), param('value', Any)], ([mapping, key, value], runtime) =>
    withEntries(mapping, [[key, value]], runtime),
  ),
  method('set', [dict, param('replacements', Dictionary)], ([mapping, added], runtime) =>
    withEntries(mapping, entriesOfMapping(added), runtime),
  ),
  method('set', [dict, rest('args', KeyValue)], ([mapping, rules], runtime) =>
    withEntries(
      mapping,
      rules.map(({ key, value }) => [key.call(), value.call()] as const),
      runtime,
    ),
  ),
  method('delete', [dict, rest('keys', Any)], ([mapping, keys], runtime) => without(mapping, keys, runtime)),
  method('deleteAll', [dict, param('keys', Items)], ([mapping, keys], runtime) =>
    without(mapping, runtime.each(keys), runtime),
  ),
  method(
    'mergeWith',
    [
      dict,
      param('another', Dictionary),
      optional('listMerger', orNull(Fn), null),
      optional('itemMerger', orNull(Fn), null),
      optional('maxLevels', Index, 0),
    ],
    ([mapping, another, listMerger, itemMerger, maxLevels], runtime) => {
      const mergeLists =
        listMerger === null ? (left: Value, right: Value) => mergeDistinct(left, right, runtime) : pairOf(listMerger)
      const mergeItems = itemMerger === null ? (_left: Value, right: Value) => right : pairOf(itemMerger)
      return merge(mapping, another, { mergeLists, mergeItems }, maxLevels, 0, runtime)
    },
  ),
]
