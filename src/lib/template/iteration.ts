import { typeError } from './error.ts'
import type { Budget } from './limits.ts'
import { isMapping, mappingKeys, mappingSize } from './mapping.ts'
import { characterCount, charactersOf } from './text.ts'
import { adopt, isList, LazyNamespace, RangeValue, Sequence, typeNameOf, Undefined, type Value } from './values.ts'

/** Number of items of what can be indexed by position; undefined for anything else. */
export function lengthOfItems(object: Value): number | undefined {
  if (isList(object) || object instanceof RangeValue) return object.length
  return object instanceof Sequence && object.typeName === 'tuple' ? object.items.length : undefined
}

/** The items of anything that can be looped over, each paid for. */
export function iterate(value: Value, budget: Budget): readonly Value[] {
  if (value instanceof Undefined) return value.lenient ? [] : value.raise()
  if (typeof value === 'string') {
    budget.step(value.length)
    return charactersOf(value)
  }
  if (isList(value)) {
    budget.step(value.length)
    return value.map(adopt)
  }
  if (value instanceof RangeValue) {
    budget.step(value.length)
    return value.items()
  }
  if (value instanceof Sequence) {
    budget.step(value.items.length)
    return value.items
  }
  if (isMapping(value)) {
    budget.step(mappingSize(value, budget))
    return mappingKeys(value)
  }
  if (value instanceof LazyNamespace) throw typeError('a namespace cannot be listed; name a key of it')
  throw typeError(`'${typeNameOf(value)}' object is not iterable`)
}

/** `len(value)` of Python; undefined for what has no length. */
export function lengthOf(value: Value, budget: Budget): number | undefined {
  if (value instanceof Undefined) return value.lenient ? 0 : value.raise()
  if (typeof value === 'string') {
    budget.work(value.length)
    return characterCount(value)
  }
  if (isMapping(value)) return mappingSize(value, budget)
  return value instanceof Sequence ? value.items.length : lengthOfItems(value)
}

export function isIterable(value: Value): boolean {
  return (
    typeof value === 'string' ||
    isList(value) ||
    value instanceof Sequence ||
    value instanceof RangeValue ||
    isMapping(value)
  )
}
