/**
 * Values inside an expression.
 *
 * Data from outside (JSON values, also `JsonNumber`, `Map` and `bigint`) is used unchanged; a part of it passes through
 * `adopt` when it is read. Arrays are tuples, which cannot change; some functions make a `ListValue`, which equals no
 * tuple and is no key, as the original engine has it.
 */
import { JsonNumber, keysOf, toNumeric } from '../json/index.ts'
import { Float, isIntegerValue } from '../template/index.ts'
import { typeError } from './error.ts'

export type Value = null | boolean | number | bigint | string | Float | Tuple | PlainObject | YaqlObject

/** Items are passed through `adopt` when read. */
export type Tuple = readonly unknown[]

export interface PlainObject {
  readonly [key: string]: unknown
}

/** Base of everything that is neither JSON data nor a primitive. */
export abstract class YaqlObject {
  /** The name messages use, in Python's words. */
  abstract readonly typeName: string
}

/** The arrays that are lists to Python. */
export class ListValue extends Array<Value> {
  /** What `map`, `slice` and the like make of a list is a tuple. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }
}

export function listOf(items: Iterable<Value>): ListValue {
  const list = new ListValue()
  for (const item of items) list.push(item)
  return list
}

/** A sequence that can be read once, and only from its start. */
export class Iteration extends YaqlObject {
  readonly typeName = 'generator'
  readonly source: Iterator<Value>

  constructor(source: Iterator<Value>) {
    super()
    this.source = source
  }
}

/** A sequence that starts again whenever it is read, but has neither a length nor positions. */
export class Repeatable extends YaqlObject {
  readonly typeName: string = 'generator'
  readonly start: () => Iterator<Value>

  constructor(start: () => Iterator<Value>) {
    super()
    this.start = start
  }
}

/** A collection with an order by keys, which more keys can refine; sorted when it is read. */
export class Ordered extends Repeatable {
  override readonly typeName = 'OrderingIterable'
  readonly collection: Value
  readonly keys: readonly SortKey[]

  constructor(collection: Value, keys: readonly SortKey[], start: () => Iterator<Value>) {
    super(start)
    this.collection = collection
    this.keys = keys
  }
}

export interface SortKey {
  readonly keyOf: { call(positional: readonly Value[]): Value }
  readonly direction: 1 | -1
}

/** A key as a JavaScript map tells it from others. */
export type Hash = string | number | bigint | null

export class Dict extends YaqlObject {
  readonly typeName: 'FrozenDict' | 'dict'
  readonly #entries = new Map<Hash, readonly [Value, Value]>()

  /** @param isFrozen whether it can be a key; what some functions make cannot */
  constructor(isFrozen = true) {
    super()
    this.typeName = isFrozen ? 'FrozenDict' : 'dict'
  }

  get size(): number {
    return this.#entries.size
  }

  getHashed(hash: Hash): Value | undefined {
    return this.#entries.get(hash)?.[1]
  }

  hasHashed(hash: Hash): boolean {
    return this.#entries.has(hash)
  }

  /** Only for the code that is making the dictionary. The first of equal keys stays. */
  setHashed(hash: Hash, key: Value, value: Value): void {
    this.#entries.set(hash, [this.#entries.get(hash)?.[0] ?? key, value])
  }

  deleteHashed(hash: Hash): void {
    this.#entries.delete(hash)
  }

  entries(): IterableIterator<readonly [Value, Value]> {
    return this.#entries.values()
  }
}

export class SetValue extends YaqlObject {
  readonly typeName = 'frozenset'
  readonly items: ReadonlyMap<Hash, Value>

  constructor(items: ReadonlyMap<Hash, Value>) {
    super()
    this.items = inOrder(items)
  }
}

/** Sets of small whole numbers are in ascending order, as those of Python are; others in the order they were made. */
function inOrder(items: ReadonlyMap<Hash, Value>): ReadonlyMap<Hash, Value> {
  let last = -1
  let isAscending = true
  for (const hash of items.keys()) {
    if (typeof hash !== 'number' || !Number.isInteger(hash) || hash < 0) return items
    isAscending &&= hash > last
    last = hash
  }
  return isAscending ? items : new Map([...items].toSorted(([a], [b]) => Number(a) - Number(b)))
}

/** `d.keys()`, `d.values()`, `d.items()`: the first and the last are sets. */
export class DictView extends YaqlObject {
  readonly typeName: 'KeysView' | 'ValuesView' | 'ItemsView'
  readonly mapping: Mapping

  constructor(typeName: 'KeysView' | 'ValuesView' | 'ItemsView', mapping: Mapping) {
    super()
    this.typeName = typeName
    this.mapping = mapping
  }
}

export type Mapping = PlainObject | Dict

export function isTuple(value: unknown): value is Tuple {
  return Array.isArray(value)
}

export function isMapping(value: Value): value is Mapping {
  if (typeof value !== 'object' || value === null || isTuple(value)) return false
  return value instanceof Dict || !(value instanceof YaqlObject || value instanceof Float)
}

export function isSetLike(value: Value): value is SetValue | DictView {
  return value instanceof SetValue || (value instanceof DictView && value.typeName !== 'ValuesView')
}

/** What functions take as a collection: texts and dictionaries are none. */
export function isIterable(value: Value): boolean {
  return (
    isTuple(value) ||
    value instanceof Iteration ||
    value instanceof Repeatable ||
    value instanceof SetValue ||
    value instanceof DictView
  )
}

/** A number without booleans, which are no numbers to the operators. */
export function isNumber(value: Value): value is number | bigint | Float {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof Float
}

export function isInteger(value: Value): value is number | bigint {
  return typeof value === 'number' ? isIntegerValue(value) : typeof value === 'bigint'
}

/** Converts an external value or item for the expression. Rejects everything except data. */
export function adopt(raw: unknown): Value {
  switch (typeof raw) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return raw
    case 'undefined':
      return null
    case 'object':
      break
    default:
      throw typeError(`a ${typeof raw} cannot be used in an expression`)
  }
  if (raw === null || isTuple(raw) || raw instanceof YaqlObject || raw instanceof Float) return raw
  if (raw instanceof JsonNumber) return raw.isWhole ? toNumeric(raw) : new Float(Number(raw.text), raw.text)
  if (isPlainObject(raw)) return raw
  throw typeError('an object that is not plain data cannot be used in an expression')
}

function isPlainObject(value: object): value is PlainObject {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** The value of an own, enumerable data property; undefined for anything inherited, hidden or computed. */
export function ownValue(object: PlainObject, name: string): Value | undefined {
  const property = Object.getOwnPropertyDescriptor(object, name)
  if (property === undefined || property.enumerable !== true || !('value' in property)) return undefined
  return adopt(property.value)
}

/** The keys of data from outside, in the order of its text, or the entries of a dictionary. */
export function* entriesOfMapping(mapping: Mapping): Generator<readonly [Value, Value]> {
  if (mapping instanceof Dict) {
    yield* mapping.entries()
    return
  }
  for (const key of keysOf(mapping)) {
    const value = ownValue(mapping, key)
    if (value !== undefined) yield [key, value]
  }
}

/** The type's name in Python. */
export function typeNameOf(value: Value): string {
  if (value === null) return 'NoneType'
  switch (typeof value) {
    case 'boolean':
      return 'bool'
    case 'string':
      return 'str'
    case 'bigint':
      return 'int'
    case 'number':
      return isIntegerValue(value) ? 'int' : 'float'
    default:
  }
  if (value instanceof ListValue) return 'list'
  if (isTuple(value)) return 'tuple'
  if (value instanceof YaqlObject) return value.typeName
  return value instanceof Float ? 'float' : 'FrozenDict'
}
