/** When two values are the same, and when they are the same key. */
import { Float, type Budget } from '../template/index.ts'
import { limitExceeded, typeError } from './error.ts'
import { RegexValue } from './regex-value.ts'
import { DateTime, TimeSpan } from './temporal.ts'
import {
  adopt,
  Dict,
  DictView,
  entriesOfMapping,
  isMapping,
  isSetLike,
  isTuple,
  ListValue,
  ownValue,
  SetValue,
  type Hash,
  type Mapping,
  type Value,
} from './values.ts'

/** Longest text that stands for a compound key, in UTF-16 units. */
const MAX_COMPOUND_KEY = 16_384

const identities = new WeakMap<object, number>()
let lastIdentity = 0

function identityOf(object: object): number {
  const known = identities.get(object)
  if (known !== undefined) return known
  lastIdentity += 1
  identities.set(object, lastIdentity)
  return lastIdentity
}

/** Equal keys have the same hash. Throws TypeError for lists. */
export function hashOf(key: Value, budget: Budget, depth = 0): Hash {
  if (key === null) return null
  switch (typeof key) {
    case 'string':
      return key.startsWith('\0') ? `\0s${key}` : key
    case 'boolean':
      return key ? 1 : 0
    case 'number':
      return key
    case 'bigint':
      return key
    default:
  }
  if (key instanceof Float) {
    return Number.isInteger(key.value) && !Number.isSafeInteger(key.value) ? BigInt(key.value) : key.value
  }
  budget.depth(depth)
  if (key instanceof ListValue) throw typeError("unhashable type: 'list'")
  if (isTuple(key))
    return compound(
      't',
      key.map((item) => part(adopt(item), budget, depth)),
    )
  if (key instanceof SetValue)
    return compound('f', [...key.items.values()].map((item) => part(item, budget, depth)).toSorted())
  if (key instanceof DictView && isSetLike(key)) throw typeError(`unhashable type: '${key.typeName}'`)
  if (key instanceof DateTime) return `\0d${key.instant}`
  if (key instanceof TimeSpan) return `\0p${key.micros}`
  if (key instanceof RegexValue) return `\0r${key.source}`
  if (key instanceof Dict && key.typeName === 'dict') throw typeError("unhashable type: 'dict'")
  if (!isMapping(key)) return `\0o${identityOf(key)}`
  const parts: string[] = []
  for (const [name, value] of entriesOfMapping(key)) {
    parts.push(part(name, budget, depth) + part(value, budget, depth))
  }
  return compound('m', parts.toSorted())
}

function part(value: Value, budget: Budget, depth: number): string {
  budget.step()
  const hash = hashOf(value, budget, depth + 1)
  const text = typeof hash === 'string' ? `s${hash}` : `n${hash}`
  return `${text.length}:${text}`
}

function compound(form: string, parts: readonly string[]): string {
  const text = `\0${form}${parts.join('')}`
  // A tuple that holds another one many times over is small, what stands for it is not.
  if (text.length > MAX_COMPOUND_KEY) {
    throw limitExceeded(`a list or dictionary used as a key is larger than ${MAX_COMPOUND_KEY} characters`)
  }
  return text
}

export function mappingGet(mapping: Mapping, key: Value, budget: Budget): Value | undefined {
  if (mapping instanceof Dict) return mapping.getHashed(hashOf(key, budget))
  if (typeof key === 'string') return ownValue(mapping, key)
  hashOf(key, budget)
  return undefined
}

export function makeDict(entries: Iterable<readonly [Value, Value]>, budget: Budget, isFrozen = true): Dict {
  const dict = new Dict(isFrozen)
  for (const [key, value] of entries) {
    budget.step()
    dict.setHashed(hashOf(key, budget), key, value)
  }
  return dict
}

export function makeSet(items: Iterable<Value>, budget: Budget): SetValue {
  const found = new Map<Hash, Value>()
  for (const item of items) {
    budget.step()
    const hash = hashOf(item, budget)
    if (!found.has(hash)) found.set(hash, item)
  }
  return new SetValue(found)
}

/** The number of entries; those of data from outside are listed for it, which is paid for. */
export function mappingSize(mapping: Mapping, budget: Budget): number {
  if (mapping instanceof Dict) return mapping.size
  const { length } = Object.keys(mapping)
  budget.work(length * 32)
  return length
}

/** The members of a set or of a view of a dictionary. */
export function* membersOf(set: SetValue | DictView): Generator<Value> {
  if (set instanceof SetValue) {
    yield* set.items.values()
    return
  }
  for (const [key, value] of entriesOfMapping(set.mapping)) {
    if (set.typeName === 'KeysView') yield key
    else yield set.typeName === 'ValuesView' ? value : [key, value]
  }
}

export const asSet = (value: SetValue | DictView, budget: Budget): SetValue =>
  value instanceof SetValue ? value : makeSet(membersOf(value), budget)

/** `a = b`. Numbers compare exactly, booleans are numbers, a tuple is no list. */
export function equals(a: Value, b: Value, budget: Budget, depth = 0): boolean {
  budget.step()
  if (typeof a === 'string' || typeof b === 'string') {
    if (typeof a === 'string' && typeof b === 'string' && a.length === b.length) budget.work(a.length)
    return a === b
  }
  if (a === null || b === null) return a === b
  const [x, y] = [numberOf(a), numberOf(b)]
  // Loose on purpose: a number and a bigint can be equal.
  if (x !== undefined && y !== undefined) return x == y
  if (a === b) return true
  budget.depth(depth)
  if (isTuple(a)) {
    if (!isTuple(b) || a instanceof ListValue !== b instanceof ListValue || a.length !== b.length) return false
    return a.every((item, index) => equals(adopt(item), adopt(b[index]), budget, depth + 1))
  }
  if (isMapping(a)) {
    if (!isMapping(b) || mappingSize(a, budget) !== mappingSize(b, budget)) return false
    for (const [key, value] of entriesOfMapping(a)) {
      const other = mappingGet(b, key, budget)
      if (other === undefined || !equals(value, other, budget, depth + 1)) return false
    }
    return true
  }
  if (isSetLike(a)) {
    if (!isSetLike(b)) return false
    const [left, right] = [asSet(a, budget), asSet(b, budget)]
    return left.items.size === right.items.size && isSubset(left, right, budget)
  }
  if (a instanceof DateTime) return b instanceof DateTime && a.instant === b.instant
  if (a instanceof TimeSpan) return b instanceof TimeSpan && a.micros === b.micros
  if (a instanceof RegexValue) return b instanceof RegexValue && a.source === b.source
  return false
}

export function isSubset(a: SetValue, b: SetValue, budget: Budget): boolean {
  budget.step(a.items.size)
  for (const hash of a.items.keys()) if (!b.items.has(hash)) return false
  return true
}

function numberOf(value: Value): number | bigint | undefined {
  switch (typeof value) {
    case 'number':
    case 'bigint':
      return value
    case 'boolean':
      return value ? 1 : 0
    default:
      return value instanceof Float ? value.value : undefined
  }
}

/** `bool(value)`: what counts as true. */
export function isTrue(value: Value, budget: Budget): boolean {
  if (value === null) return false
  switch (typeof value) {
    case 'boolean':
      return value
    case 'string':
      return value !== ''
    case 'number':
      return value !== 0
    case 'bigint':
      return value !== 0n
    default:
  }
  if (value instanceof Float) return value.value !== 0
  if (isTuple(value)) return value.length > 0
  if (value instanceof SetValue) return value.items.size > 0
  if (value instanceof TimeSpan) return value.micros !== 0n
  if (value instanceof DictView) return mappingSize(value.mapping, budget) > 0
  if (isMapping(value)) return mappingSize(value, budget) > 0
  return true
}
