import { quoted, typeError } from './error.ts'
import type { Budget } from './limits.ts'
import { lengthOfItems } from './iteration.ts'
import { isMapping, mappingGet } from './mapping.ts'
import { characterAt, characterCount, charactersOf, sliceCharacters } from './text.ts'
import {
  adopt,
  isList,
  isNumeric,
  isWhole,
  LazyNamespace,
  Members,
  RangeValue,
  Sequence,
  resolveLazy,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** `object.name` as data: a key of a dictionary or namespace, an item of a record, an attribute of an engine object. */
export function getMember(object: Value, name: string): Value | undefined {
  if (object instanceof Undefined) object.raise()
  if (object instanceof Members) return object.get(name)
  if (object instanceof LazyNamespace) {
    const value = object.get(name)
    return value === undefined ? undefined : resolveLazy(value)
  }
  if (object instanceof Sequence) return object.items[object.names.indexOf(name)]
  return isMapping(object) ? mappingGet(object, name) : undefined
}

const internalName = /^__\w+__$/

/** The undefined value of a name that an object lacks. */
export function missingMember(object: Value, name: string): Undefined {
  if (internalName.test(name)) {
    const message = `access to attribute ${quoted(name)} of '${typeNameOf(object)}' object is unsafe.`
    return new Undefined(message, false, false, 'SecurityError')
  }
  return new Undefined(
    object === null
      ? `'None' has no attribute ${quoted(name)}`
      : `'${typeNameOf(object)} object' has no attribute ${quoted(name)}`,
  )
}

/** `object[key]` as data. */
export function getItem(object: Value, key: Value, budget: Budget): Value {
  if (object instanceof Undefined) object.raise()
  if (key instanceof Undefined) key.raise()
  if (isMapping(object)) {
    const value = mappingGet(object, key)
    if (value !== undefined) return value
  } else if (isNumeric(key) && isWhole(key)) {
    const index = Number(key)
    if (typeof object === 'string') {
      budget.work(object.length)
      const character = characterAt(object, index)
      if (character !== undefined) return character
      return new Undefined(`the text has no character ${index}`)
    }
    const length = lengthOfItems(object)
    const at = index < 0 ? index + (length ?? 0) : index
    if (length !== undefined && at >= 0 && at < length) return itemsAt(object, at)
    if (length !== undefined) return new Undefined(`${typeNameOf(object)} object has no element ${index}`)
  }
  if (typeof key === 'string') {
    const member = getMember(object, key)
    return member === undefined ? missingMember(object, key) : member
  }
  return new Undefined(`'${typeNameOf(object)} object' has no element of type ${typeNameOf(key)}`)
}

function itemsAt(object: Value, index: number): Value {
  if (isList(object)) return adopt(object[index])
  if (object instanceof RangeValue) return object.start + index * object.step
  if (object instanceof Sequence) return adopt(object.items[index])
  throw typeError(`'${typeNameOf(object)}' object is not subscriptable`)
}

/** `object[start:stop:step]`. */
export function getSlice(object: Value, bounds: readonly (Value | undefined)[], budget: Budget): Value {
  if (object instanceof Undefined) object.raise()
  const [start, stop, step = 1] = bounds.map(sliceBound)
  if (step === 0) throw typeError('slice step cannot be zero')
  if (typeof object === 'string') {
    budget.work(object.length)
    if (step !== 1) {
      budget.characters(object.length)
      const characters = charactersOf(object)
      return sliceIndices(characters.length, start, stop, step)
        .map((index) => characters[index])
        .join('')
    }
    const length = characterCount(object)
    const [from, to] = [clamp(start, length, 0), clamp(stop, length, length)]
    return from < to ? sliceCharacters(object, from, to) : ''
  }
  const length = lengthOfItems(object)
  if (length === undefined) throw typeError(`'${typeNameOf(object)}' object cannot be sliced`)
  const indices = sliceIndices(length, start, stop, step)
  budget.items(indices.length)
  if (object instanceof RangeValue) return sliceRange(object, indices, clamp(stop, length, length), step)
  const items = indices.map((index) => itemsAt(object, index))
  return object instanceof Sequence ? new Sequence(items) : items
}

/** A part of a range is a range; its end is printed, so it is the one Python computes. */
function sliceRange(range: RangeValue, indices: readonly number[], stop: number, step: number): RangeValue {
  const at = (index: number): number => range.start + index * range.step
  const [first] = indices
  if (first === undefined) return new RangeValue(at(stop), at(stop), range.step * step)
  return new RangeValue(at(first), step > 0 ? at(stop) : at((indices.at(-1) ?? first) + step), range.step * step)
}

function sliceBound(value: Value | undefined): number | undefined {
  if (value === undefined || value === null) return undefined
  if (value instanceof Undefined) value.raise()
  if (!isNumeric(value) || !isWhole(value)) throw typeError('slice indices must be integers or None')
  return Number(value)
}

function clamp(bound: number | undefined, length: number, fallback: number): number {
  if (bound === undefined) return fallback
  return bound < 0 ? Math.max(0, bound + length) : Math.min(bound, length)
}

function sliceIndices(length: number, start: number | undefined, stop: number | undefined, step: number): number[] {
  const indices: number[] = []
  if (step > 0) {
    const end = clamp(stop, length, length)
    for (let index = clamp(start, length, 0); index < end; index += step) indices.push(index)
    return indices
  }
  const edge = (bound: number): number => (bound < 0 ? Math.max(-1, bound + length) : Math.min(bound, length - 1))
  const end = stop === undefined ? -1 : edge(stop)
  for (let index = start === undefined ? length - 1 : edge(start); index > end; index += step) indices.push(index)
  return indices
}
