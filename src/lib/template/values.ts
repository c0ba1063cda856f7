import { JsonNumber, toNumeric } from '../json/index.ts'
import { foreignError, limitError, typeError, undefinedError } from './error.ts'
import type { Budget } from './limits.ts'

/**
 * Values inside a template.
 *
 * External data (JSON values, also `JsonNumber`, `Map` and `bigint`) is used unchanged.
 * Templates also create the classes below. `adopt` rejects everything else.
 */
export type Value = null | boolean | number | bigint | string | List | PlainObject | TemplateObject

/** Items are passed through `adopt` when read. */
export type List = readonly unknown[]

export interface PlainObject {
  readonly [key: string]: unknown
}

/** A lazy source of values by name. It cannot be listed. */
export interface Namespace {
  /** undefined when there is no such name */
  get(name: string): unknown
  has?(name: string): boolean
  /**
   * Value of the namespace itself: `svckv.system.a` and `svckv.system.a.b` can both be values. Absent: no value.
   */
  value?(): unknown
  /** What messages call it. Default: `namespace`. */
  readonly typeName?: string
}

/** Base of everything that is neither JSON data nor a primitive. */
export abstract class TemplateObject {
  /** the name messages use, in Python's words */
  abstract readonly typeName: string
}

/** A float that a JavaScript number does not carry: its value is whole (2.0, not 2), or JSON text wrote it otherwise. */
export class Float extends TemplateObject {
  readonly typeName = 'float'
  readonly value: number
  /** The JSON text that it came from. */
  readonly source: string | undefined

  constructor(value: number, source?: string) {
    super()
    this.value = value
    this.source = source
  }
}

/** The value of a name or attribute that does not exist; every use but `default` and `is defined` is an error. */
export class Undefined extends TemplateObject {
  readonly typeName = 'Undefined'
  readonly message: string
  /** what an inline `if` without `else` gives: prints as nothing, is false and empty, yet has no attributes */
  readonly lenient: boolean
  /** lenient, but printing it is an error: `if` and `default` may deal with it, the result may not depend on it */
  readonly isRequired: boolean
  /** a variable that nobody has set; else something inside of a value */
  readonly isVariable: boolean
  /** `className` of the error that its use throws */
  readonly className: string | undefined

  constructor(message: string, lenient: boolean | 'unless printed' = false, isVariable = false, className?: string) {
    super()
    this.message = message
    this.className = className
    this.lenient = lenient !== false
    this.isRequired = lenient === 'unless printed'
    this.isVariable = isVariable
  }

  raise(): never {
    throw this.isVariable ? foreignError('UNDEFINED', this.message) : undefinedError(this.message, this.className)
  }
}

export type SequenceForm = 'tuple' | 'dict_items' | 'dict_keys' | 'dict_values'

/** A tuple, or a view of a dictionary. */
export class Sequence extends TemplateObject {
  readonly typeName: SequenceForm
  readonly items: readonly Value[]
  /** names of the items of a record such as a group */
  readonly names: readonly string[]

  constructor(items: readonly Value[], form: SequenceForm = 'tuple', names: readonly string[] = []) {
    super()
    this.typeName = form
    this.items = items
    this.names = names
  }
}

export class RangeValue extends TemplateObject {
  readonly typeName = 'range'
  readonly start: number
  readonly stop: number
  readonly step: number
  readonly length: number

  constructor(start: number, stop: number, step: number) {
    super()
    this.start = start
    this.stop = stop
    this.step = step
    this.length = Math.max(0, Math.ceil((stop - start) / step))
  }

  /** `value in range`, which asks for the number, not for each item. */
  has(value: Value): boolean {
    if (!isNumeric(value)) return false
    const index = (toNumber(value) - this.start) / this.step
    return Number.isInteger(index) && index >= 0 && index < this.length
  }

  /** Whether both give the same items. */
  isLike(other: RangeValue): boolean {
    if (this.length !== other.length) return false
    return this.length === 0 || (this.start === other.start && (this.length === 1 || this.step === other.step))
  }

  items(): number[] {
    return Array.from({ length: this.length }, (_, index) => this.start + index * this.step)
  }
}

type Key = string | number | bigint | null

/** A dictionary made by a template; keys keep their type, and equal numbers are one key, as in Python. */
export class Dict extends TemplateObject {
  readonly typeName = 'dict'
  readonly #entries = new Map<Key, readonly [Value, Value]>()

  static from(entries: Iterable<readonly [Value, Value]>): Dict {
    const dict = new Dict()
    for (const [key, value] of entries) dict.set(key, value)
    return dict
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: Value): Value | undefined {
    return this.#entries.get(hashOf(key))?.[1]
  }

  has(key: Value): boolean {
    return this.#entries.has(hashOf(key))
  }

  /** Only for the code that is making the dictionary. */
  set(key: Value, value: Value): void {
    const hash = hashOf(key)
    this.#entries.set(hash, [this.#entries.get(hash)?.[0] ?? key, value])
  }

  entries(): IterableIterator<readonly [Value, Value]> {
    return this.#entries.values()
  }
}

/** Throws for values that cannot be keys, such as lists. */
export function requireHashable(key: Value): void {
  hashOf(key)
}

/** Longest text that stands for a tuple as a key, in UTF-16 units. */
const MAX_TUPLE_KEY = 16_384

function hashOf(key: Value): Key {
  if (typeof key === 'string') return key.startsWith('\0') ? `\0s${key}` : key
  if (typeof key === 'boolean') return key ? 1 : 0
  if (typeof key === 'number' || typeof key === 'bigint' || key === null) return key
  if (key instanceof Float) return key.value
  if (key instanceof Sequence && key.typeName === 'tuple') {
    let text = '\0t'
    for (const item of key.items) {
      const hash = hashOf(item)
      const part = typeof hash === 'string' ? `s${hash}` : `n${hash}`
      text += `${part.length}:${part}`
      // A tuple that holds another one many times over is small, what it would be written as is not.
      if (text.length > MAX_TUPLE_KEY)
        throw limitError(`a tuple used as a key is larger than ${MAX_TUPLE_KEY} characters`)
    }
    return text
  }
  if (key instanceof Undefined) key.raise()
  throw typeError(`unhashable type: '${typeNameOf(key)}'`)
}

/** Names resolved on demand. */
export class LazyNamespace extends TemplateObject {
  readonly typeName: string
  readonly #source: Namespace

  constructor(source: Namespace) {
    super()
    this.typeName = source.typeName ?? 'namespace'
    this.#source = source
  }

  get(name: string): Value | undefined {
    const value = this.#source.get(name)
    return value === undefined ? undefined : adopt(value)
  }

  has(name: string): boolean {
    return this.#source.has === undefined ? this.#source.get(name) !== undefined : this.#source.has(name)
  }

  /** The value of the namespace, or itself if it has none. */
  own(): Value {
    return this.#source.value === undefined ? this : adopt(this.#source.value())
  }
}

/** The value that is used, once it is known that no name is asked for. */
export function resolveLazy(value: Value): Value {
  return value instanceof LazyNamespace ? value.own() : value
}

/** The value, or the fallback where there is none; `??` would also replace None, which is a value. */
export function orElse(value: Value | undefined, fallback: Value): Value {
  return value === undefined ? fallback : value
}

/** The arguments of a call, evaluated. */
export interface Call {
  positional: readonly Value[]
  named: ReadonlyMap<string, Value>
}

/** Something a template can call: a method, a macro, a global function. */
export class Callable extends TemplateObject {
  readonly typeName = 'function'
  readonly name: string
  readonly #run: (call: Call, budget: Budget) => Value

  constructor(name: string, run: (call: Call, budget: Budget) => Value) {
    super()
    this.name = name
    this.#run = run
  }

  call(call: Call, budget: Budget): Value {
    return this.#run(call, budget)
  }
}

/** An engine object with attributes that a template may read, such as `loop`, a macro or `namespace()`. */
export class Members extends TemplateObject {
  readonly typeName: string
  readonly #read: (name: string) => Value | undefined
  readonly #write: ((name: string, value: Value) => void) | undefined
  readonly #run: ((call: Call, budget: Budget) => Value) | undefined

  constructor(
    typeName: string,
    read: (name: string) => Value | undefined,
    more: { write?: (name: string, value: Value) => void; run?: (call: Call, budget: Budget) => Value } = {},
  ) {
    super()
    this.typeName = typeName
    this.#read = read
    this.#write = more.write
    this.#run = more.run
  }

  get callable(): boolean {
    return this.#run !== undefined
  }

  get(name: string): Value | undefined {
    return this.#read(name)
  }

  set(name: string, value: Value): void {
    if (this.#write === undefined) throw typeError('attributes can be set on namespace() objects only')
    this.#write(name, value)
  }

  call(call: Call, budget: Budget): Value {
    if (this.#run === undefined) throw typeError(`'${this.typeName}' object is not callable`)
    return this.#run(call, budget)
  }
}

/** Converts an external value or list item for the template. Rejects everything except data. */
export function adopt(raw: unknown): Value {
  switch (typeof raw) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return raw
    case 'undefined':
      return new Undefined('the value is undefined')
    case 'object':
      break
    default:
      throw typeError(`a ${typeof raw} cannot be used in a template`)
  }
  if (raw === null || raw instanceof TemplateObject || isList(raw)) return raw
  if (raw instanceof JsonNumber) return raw.isWhole ? toNumeric(raw) : new Float(Number(raw.text), raw.text)
  if (isPlainObject(raw)) return isNamespace(raw) ? new LazyNamespace(raw) : raw
  if (raw instanceof Map) {
    const dict = new Dict()
    for (const [key, value] of raw) dict.set(adopt(key), adopt(value))
    return dict
  }
  if (isNamespace(raw)) return new LazyNamespace(raw)
  throw typeError('an object that is not plain data cannot be used in a template')
}

export function isList(value: unknown): value is List {
  return Array.isArray(value)
}

function isPlainObject(value: unknown): value is PlainObject {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** JSON data holds no functions, so a `get` function can only have been put there by the program. */
export function isNamespace(value: object): value is Namespace {
  const own = Object.getOwnPropertyDescriptor(value, 'get')
  if (own !== undefined) return typeof own.value === 'function'
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || typeof prototype !== 'object' || prototype === null) return false
  return typeof Object.getOwnPropertyDescriptor(prototype, 'get')?.value === 'function'
}

/** Above this a whole JavaScript number is taken for a float, as its digits are no longer its own. */
const LARGEST_WHOLE = 1e21

export function isIntegerValue(value: Value): value is number | bigint {
  return (
    typeof value === 'bigint' ||
    (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < LARGEST_WHOLE)
  )
}

export function isFloatValue(value: Value): value is number | Float {
  return value instanceof Float || (typeof value === 'number' && !isIntegerValue(value))
}

export function isNumeric(value: Value): value is Numeric {
  return typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint' || value instanceof Float
}

export type Numeric = boolean | number | bigint | Float

/** Whether the number is a whole one to Python; booleans are. */
export function isWhole(value: Numeric): value is boolean | number | bigint {
  return typeof value === 'boolean' || isIntegerValue(value)
}

/** The nearest JavaScript number. */
export function toNumber(value: Numeric): number {
  return value instanceof Float ? value.value : Number(value)
}

/** A float: whole values are wrapped so that they stay floats. */
export function float(value: number): number | Float {
  return isIntegerValue(value) ? new Float(value) : value
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
      if (value instanceof TemplateObject) return value.typeName
      return isList(value) ? 'list' : 'dict'
  }
}

/** Dictionaries known to have a key: asking for the first one lists all of them. What templates get is never emptied. */
const filled = new WeakSet<PlainObject>()

/** `x` of `{% if x %}`. */
export function isTrue(value: Value): boolean {
  if (value === null) return false
  switch (typeof value) {
    case 'boolean':
      return value
    case 'string':
      return value !== ''
    case 'bigint':
      return value !== 0n
    case 'number':
      return value !== 0
    default:
  }
  if (value instanceof Undefined) return value.lenient ? false : value.raise()
  if (value instanceof Float) return value.value !== 0
  if (value instanceof Sequence) return value.items.length > 0
  if (value instanceof RangeValue) return value.length > 0
  if (value instanceof Dict) return value.size > 0
  if (value instanceof TemplateObject) return true
  if (isList(value)) return value.length > 0
  if (filled.has(value)) return true
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue
    filled.add(value)
    return true
  }
  return false
}
