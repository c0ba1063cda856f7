import type { ComparisonOperator } from './ast.ts'
import { typeError } from './error.ts'
import type { Budget } from './limits.ts'
import { isMapping, mappingEntries, mappingGet, mappingHas, mappingSize } from './mapping.ts'
import { indexOfText } from './search.ts'
import {
  adopt,
  Float,
  isList,
  isNumeric,
  LazyNamespace,
  RangeValue,
  Sequence,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** A number as JavaScript compares it; whole numbers of any size stay exact. */
function comparable(value: boolean | number | bigint | Float): number | bigint {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value instanceof Float ? value.value : value
}

function refuseUndefined(...values: Value[]): void {
  for (const value of values) if (value instanceof Undefined) value.raise()
}

/** `a == b` of Python. */
export function equals(a: Value, b: Value, budget: Budget, depth = 0): boolean {
  budget.step()
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length === b.length) budget.work(a.length)
    return a === b
  }
  if (a instanceof Undefined && !a.lenient) a.raise()
  if (b instanceof Undefined && !b.lenient) b.raise()
  if (a instanceof Undefined || b instanceof Undefined) return a instanceof Undefined && b instanceof Undefined
  if (isNumeric(a) && isNumeric(b)) {
    const [x, y] = [comparable(a), comparable(b)]
    // Loose on purpose: a number and a bigint can be equal.
    return x == y
  }
  if (a === b) return true
  budget.depth(depth)
  if (a instanceof RangeValue && b instanceof RangeValue) return a.isLike(b)
  const [aItems, bItems] = [itemsOf(a), itemsOf(b)]
  if (aItems !== undefined && bItems !== undefined) {
    if (typeNameOf(a) !== typeNameOf(b) || aItems.length !== bItems.length) return false
    return aItems.every((item, index) => equals(adopt(item), adopt(bItems[index]), budget, depth + 1))
  }
  if (isMapping(a) && isMapping(b)) {
    if (mappingSize(a, budget) !== mappingSize(b, budget)) return false
    return mappingEntries(a).every(([key, value]) => {
      const other = mappingGet(b, key)
      return other !== undefined && equals(value, other, budget, depth + 1)
    })
  }
  return false
}

function itemsOf(value: Value): readonly unknown[] | undefined {
  if (isList(value)) return value
  return value instanceof Sequence ? value.items : undefined
}

/**
 * `a < b` is a negative number, `a > b` a positive one, equal is 0, and NaN when either side is not a number at all (`nan`).
 *
 * Throws TYPE where Python has no order.
 */
export function compare(a: Value, b: Value, operator: string, budget: Budget, depth = 0): number {
  budget.step()
  refuseUndefined(a, b)
  if (isNumeric(a) && isNumeric(b)) {
    const [x, y] = [comparable(a), comparable(b)]
    if (x < y) return -1
    if (x > y) return 1
    return x >= y ? 0 : NaN
  }
  if (typeof a === 'string' && typeof b === 'string') {
    budget.work(Math.min(a.length, b.length))
    return compareText(a, b)
  }
  budget.depth(depth)
  const [aItems, bItems] = [itemsOf(a), itemsOf(b)]
  if (aItems !== undefined && bItems !== undefined && typeNameOf(a) === typeNameOf(b)) {
    const shared = Math.min(aItems.length, bItems.length)
    for (let index = 0; index < shared; index += 1) {
      const [x, y] = [adopt(aItems[index]), adopt(bItems[index])]
      if (!equals(x, y, budget, depth + 1)) return compare(x, y, operator, budget, depth + 1)
    }
    return aItems.length - bItems.length
  }
  throw typeError(`'${operator}' not supported between instances of '${typeNameOf(a)}' and '${typeNameOf(b)}'`)
}

/** Order by code points; plain comparison would order by UTF-16 units. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at += 1) {
    const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** `item in container` of Python. */
export function contains(container: Value, item: Value, budget: Budget): boolean {
  if (container instanceof Undefined) container.raise()
  if (typeof container === 'string') {
    if (item instanceof Undefined) item.raise()
    if (typeof item !== 'string') {
      throw typeError(`'in <string>' requires string as left operand, not ${typeNameOf(item)}`)
    }
    budget.work(container.length)
    return indexOfText(container, item) >= 0
  }
  if (isMapping(container)) return mappingHas(container, item)
  if (container instanceof LazyNamespace) return typeof item === 'string' && container.has(item)
  if (container instanceof RangeValue) {
    if (item instanceof Undefined && !item.lenient) item.raise()
    return container.has(item)
  }
  const items = itemsOf(container)
  if (items === undefined) throw typeError(`argument of type '${typeNameOf(container)}' is not iterable`)
  return items.some((each) => equals(adopt(each), item, budget))
}

/** Whether a comparison of a template holds. */
export function holds(left: Value, operator: ComparisonOperator, right: Value, budget: Budget): boolean {
  switch (operator) {
    case '==':
      return equals(left, right, budget)
    case '!=':
      return !equals(left, right, budget)
    case 'in':
      return contains(right, left, budget)
    case 'not in':
      return !contains(right, left, budget)
    case '<':
      return compare(left, right, operator, budget) < 0
    case '<=':
      return compare(left, right, operator, budget) <= 0
    case '>':
      return compare(left, right, operator, budget) > 0
    case '>=':
      return compare(left, right, operator, budget) >= 0
  }
}
