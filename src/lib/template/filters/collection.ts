import { boundMethod, getAttribute, getSubscript } from '../attributes.ts'
import { bind, signature, sizeArgument, wholeArgument } from '../arguments.ts'
import { compare, equals } from '../compare.ts'
import { typeError } from '../error.ts'
import { iterate, lengthOf } from '../iteration.ts'
import { isMapping, mappingEntries } from '../mapping.ts'
import { missingMember } from '../access.ts'
import { operate } from '../arithmetic.ts'
import { attributeReader, foldCase, sortBy, sortKeyReader } from '../sorting.ts'
import { charactersOf } from '../text.ts'
import { Dict, isTrue, orElse, Sequence, typeNameOf, Undefined, type Call, type Value } from '../values.ts'
import { filter, type TemplateFilter, type Runtime } from './filter.ts'

function rest(call: Call, count: number): Call {
  return { positional: call.positional.slice(count), named: call.named }
}

function nameOf(what: string, value: Value | undefined): string {
  if (typeof value !== 'string') throw typeError(`${what} needs a name as its first argument`)
  return value
}

const map: TemplateFilter = (value, call, runtime) => {
  const { budget } = runtime
  const items = iterate(value, budget)
  budget.items(items.length)
  if (call.positional.length === 0 && call.named.has('attribute')) {
    for (const name of call.named.keys()) {
      if (name !== 'attribute' && name !== 'default') throw typeError(`map has no parameter '${name}'`)
    }
    return items.map(attributeReader(call.named.get('attribute'), budget, call.named.get('default')))
  }
  const name = nameOf('map', call.positional[0])
  const inner = rest(call, 1)
  return items.map((item) => runtime.filter(name, item, inner))
}

/** `select`, `reject` and their `…attr` forms. */
function selecting(keep: boolean, byAttribute: boolean): TemplateFilter {
  return (value, call, runtime) => {
    const read = byAttribute ? attributeReader(requiredAttribute(call), runtime.budget) : (item: Value) => item
    const testCall = byAttribute ? rest(call, 1) : call
    const test = testOf(testCall, runtime)
    return iterate(value, runtime.budget).filter((item) => test(read(item)) === keep)
  }
}

function requiredAttribute(call: Call): Value {
  const [attribute] = call.positional
  if (attribute === undefined) throw typeError('selectattr and rejectattr need the attribute as their first argument')
  return attribute
}

function testOf(call: Call, runtime: Runtime): (item: Value) => boolean {
  if (call.positional.length === 0) return isTrue
  const name = nameOf('the test', call.positional[0])
  const inner = rest(call, 1)
  return (item) => runtime.test(name, item, inner)
}

function extreme(name: string, wanted: -1 | 1): [string, TemplateFilter] {
  return filter(name, 'case_sensitive? attribute?', (value, [caseSensitive = false, attribute], { budget }) => {
    const read = attributeReader(attribute, budget)
    const keyOf = (item: Value): Value => foldCase(read(item), isTrue(caseSensitive), budget)
    const [first, ...others] = iterate(value, budget)
    if (first === undefined) return new Undefined('no aggregated item, the sequence is empty')
    let best = first
    let bestKey = keyOf(first)
    for (const item of others) {
      const key = keyOf(item)
      if (compare(key, bestKey, wanted < 0 ? '<' : '>', budget) * wanted > 0) {
        best = item
        bestKey = key
      }
    }
    return best
  })
}

function edge(name: string, index: 0 | -1): [string, TemplateFilter] {
  return filter(name, '', (value, _args, { budget }) => {
    const item = iterate(value, budget).at(index)
    return item === undefined ? new Undefined(`no ${name} item, the sequence is empty`) : item
  })
}

function length(name: string): [string, TemplateFilter] {
  return filter(name, '', (value, _args, { budget }) => {
    const size = lengthOf(value, budget)
    if (size === undefined) throw typeError(`object of type '${typeNameOf(value)}' has no len()`)
    return size
  })
}

/** Runs of items with an equal key, in order of the key. */
function groupBy(
  value: Value,
  [attribute, fallback, caseSensitive = false]: readonly (Value | undefined)[],
  runtime: Runtime,
): Value {
  const { budget } = runtime
  const read = attributeReader(attribute, budget, fallback)
  const keyOf = (item: Value): Value => foldCase(read(item), isTrue(caseSensitive), budget)
  const groups: { key: Value; items: Value[] }[] = []
  for (const item of sortBy(iterate(value, budget), keyOf, false, budget)) {
    const key = keyOf(item)
    const last = groups.at(-1)
    if (last !== undefined && equals(last.key, key, budget)) last.items.push(item)
    else groups.push({ key, items: [item] })
  }
  return groups.map(({ key, items }) => {
    const [first = key] = items
    return new Sequence([isTrue(caseSensitive) ? key : read(first), items], 'tuple', ['grouper', 'list'])
  })
}

function unique(
  value: Value,
  [caseSensitive = false, attribute]: readonly (Value | undefined)[],
  { budget }: Runtime,
): Value {
  const read = attributeReader(attribute, budget)
  const seen = new Dict()
  return iterate(value, budget).filter((item) => {
    const key = foldCase(read(item), isTrue(caseSensitive), budget)
    if (seen.has(key)) return false
    seen.set(key, true)
    return true
  })
}

/** `slice(n)`: n lists of nearly equal length. */
function columns(items: readonly Value[], count: number, fill: Value | undefined): Value[] {
  const short = Math.floor(items.length / count)
  const longer = items.length % count
  const result: Value[][] = []
  let at = 0
  for (let column = 0; column < count; column += 1) {
    const size = short + (column < longer ? 1 : 0)
    const part = items.slice(at, at + size)
    if (fill !== undefined && fill !== null && column >= longer) part.push(fill)
    result.push(part)
    at += size
  }
  return result
}

function batches(items: readonly Value[], size: number, fill: Value | undefined): Value[] {
  const result: Value[][] = []
  for (let at = 0; at < items.length; at += size) result.push(items.slice(at, at + size))
  const last = result.at(-1)
  if (fill !== undefined && fill !== null) while (last !== undefined && last.length < size) last.push(fill)
  return result
}

function pairsOf(value: Value, pay: (count: number) => void, className?: string): Sequence[] {
  if (!isMapping(value)) throw typeError(`a dictionary is needed, not ${typeNameOf(value)}`, className)
  return mappingEntries(value, pay).map((entry) => new Sequence(entry))
}

/** Filters over lists and dictionaries. */
export const collectionFilters: readonly [string, TemplateFilter][] = [
  ['map', map],
  ['select', selecting(true, false)],
  ['reject', selecting(false, false)],
  ['selectattr', selecting(true, true)],
  ['rejectattr', selecting(false, true)],
  extreme('min', -1),
  extreme('max', 1),
  edge('first', 0),
  edge('last', -1),
  length('length'),
  length('count'),
  filter('list', '', (value, _args, { budget }) => {
    const items = iterate(value, budget)
    budget.items(items.length)
    return [...items]
  }),
  filter('reverse', '', (value, _args, { budget }) => {
    if (typeof value !== 'string') return [...iterate(value, budget)].reverse()
    budget.characters(value.length)
    return [...charactersOf(value)].reverse().join('')
  }),
  filter('random', '', (value, _args, { budget }) => {
    const items = iterate(value, budget)
    const item = items[Math.floor(Math.random() * items.length)]
    return orElse(item, new Undefined('no random item, the sequence is empty'))
  }),
  filter(
    'sort',
    'reverse? case_sensitive? attribute?',
    (value, [reverse = false, caseSensitive = false, attribute], { budget }) =>
      sortBy(iterate(value, budget), sortKeyReader(attribute, isTrue(caseSensitive), budget), isTrue(reverse), budget),
  ),
  filter(
    'dictsort',
    'case_sensitive? by? reverse?',
    (value, [caseSensitive = false, by = 'key', reverse = false], { budget }) => {
      if (by !== 'key' && by !== 'value') throw typeError("dictsort sorts by 'key' or 'value'")
      const position = by === 'key' ? 0 : 1
      const keyOf = (pair: Value): Value =>
        foldCase(getSubscript(pair, position, budget), isTrue(caseSensitive), budget)
      return sortBy(
        pairsOf(value, (count) => budget.foresee(count), 'AttributeError'),
        keyOf,
        isTrue(reverse),
        budget,
      )
    },
  ),
  filter('items', '', (value, _args, { budget }) => {
    return pairsOf(value, (count) => budget.items(count))
  }),
  filter('groupby', 'attribute default? case_sensitive?', groupBy),
  filter('unique', 'case_sensitive? attribute?', unique),
  filter('sum', 'attribute? start?', (value, [attribute, start = 0], { budget }) => {
    const read = attributeReader(attribute, budget)
    return iterate(value, budget).reduce<Value>((total, item) => operate('+', total, read(item), budget), start)
  }),
  filter('batch', 'linecount fill_with?', (value, [size, fill], { budget }) => {
    const count = wholeArgument('batch', size)
    if (count < 1) throw typeError('batch needs a size of at least 1')
    budget.items(fill === undefined || fill === null ? 0 : count)
    return batches(iterate(value, budget), count, fill)
  }),
  filter('slice', 'slices fill_with?', (value, [slices, fill], { budget }) => {
    const count = sizeArgument('slice', slices, 0, budget)
    if (count < 1) throw typeError('slice needs at least 1 part')
    budget.items(count)
    return columns(iterate(value, budget), count, fill)
  }),
  filter('attr', 'name', (value, [name]) => {
    const attribute = nameOf('attr', name)
    // As in Jinja2: the keys of a dictionary are no attributes.
    if (isMapping(value)) return orElse(boundMethod(value, attribute), missingMember(value, attribute))
    return getAttribute(value, attribute)
  }),
  ['default', defaultFilter],
  ['d', defaultFilter],
]

const defaultSignature = signature('default_value? boolean?')

function defaultFilter(value: Value, call: Call): Value {
  const [fallback = '', boolean = false] = bind("the filter 'default'", defaultSignature, call)
  if (value instanceof Undefined) return fallback
  return isTrue(boolean) && !isTrue(value) ? fallback : value
}
