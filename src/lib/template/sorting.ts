import { getSubscript } from './attributes.ts'
import { compare, equals } from './compare.ts'
import { typeError } from './error.ts'
import type { Budget } from './limits.ts'
import { isNumeric, isWhole, typeNameOf, Undefined, type Value } from './values.ts'

/** The items in order, as `sorted(items)`: stable, also in reverse; each comparison is paid for. */
export function sortBy(
  items: readonly Value[],
  keyOf: (item: Value) => Value,
  reverse: boolean,
  budget: Budget,
): Value[] {
  // Equal keys need no order: a list of nothing but None is sorted.
  const order = (a: Value, b: Value): number => {
    const isSimple = typeof a === 'string' || isNumeric(a)
    return !isSimple && equals(a, b, budget) ? 0 : compare(a, b, '<', budget)
  }
  const keyed = items.map((item) => ({ item, key: keyOf(item) }))
  keyed.sort((a, b) => (reverse ? order(b.key, a.key) : order(a.key, b.key)) || 0)
  return keyed.map(({ item }) => item)
}

/** Text in lower case unless case counts; other values as they are. */
export function foldCase(value: Value, caseSensitive: boolean, budget: Budget): Value {
  if (typeof value !== 'string' || caseSensitive) return value
  budget.work(value.length)
  return value.toLowerCase()
}

const wholeNumber = /^\d{1,15}$/

/** Reads the attribute that filters such as `map` and `sort` name: a dotted path of keys and positions, or a position. */
export function attributeReader(
  attribute: Value | undefined,
  budget: Budget,
  fallback?: Value,
): (item: Value) => Value {
  if (attribute === undefined || attribute === null) return (item) => item
  if (attribute instanceof Undefined) attribute.raise()
  let path: (string | number)[]
  if (typeof attribute === 'string') {
    budget.step(attribute.length)
    path = attribute.split('.').map((part) => (wholeNumber.test(part) ? Number(part) : part))
  } else if (isNumeric(attribute) && isWhole(attribute)) {
    path = [Number(attribute)]
  } else {
    throw typeError(`an attribute is named by text or a whole number, not ${typeNameOf(attribute)}`)
  }
  return (item) => {
    let value = item
    for (const part of path) {
      budget.step()
      value = getSubscript(value, part, budget)
      if (fallback !== undefined && value instanceof Undefined) value = fallback
    }
    return value
  }
}

/** Reads several attributes, separated by commas, as one list to sort by. */
export function sortKeyReader(
  attribute: Value | undefined,
  caseSensitive: boolean,
  budget: Budget,
): (item: Value) => Value {
  const names = typeof attribute === 'string' ? attribute.split(',') : [attribute]
  const readers = names.map((name) => attributeReader(name, budget))
  const [only] = readers
  if (readers.length === 1 && only !== undefined) return (item) => foldCase(only(item), caseSensitive, budget)
  return (item) => readers.map((read) => foldCase(read(item), caseSensitive, budget))
}
