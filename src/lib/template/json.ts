import {
  entriesOf,
  floatText,
  JsonNumber,
  jsonNumber,
  JsonNumberError,
  readJson,
  rememberOrder,
  setOwn,
  wholeNumber,
} from '../json/index.ts'
import { filterError, limitError, typeError } from './error.ts'
import type { Budget } from './limits.ts'
import { isObject } from '../schema/index.ts'
import { isMapping, mappingEntries } from './mapping.ts'
import { textOf } from './text.ts'
import {
  adopt,
  Dict,
  Float,
  isIntegerValue,
  isList,
  isNumeric,
  toNumber,
  RangeValue,
  resolveLazy,
  Sequence,
  typeNameOf,
  Undefined,
  type List,
  type Numeric,
  type Value,
} from './values.ts'
import { compareText } from './compare.ts'

export interface JsonStyle {
  /** one level of indentation; undefined writes everything on one line */
  indent?: string | undefined
  sortKeys?: boolean
  itemSeparator?: string
  keySeparator?: string
}

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\f': '\\f',
  '\b': '\\b',
}

/** A JSON string in ASCII, with its quotes. */
export function jsonText(text: string): string {
  const body = text.replace(
    // oxlint-disable-next-line no-control-regex
    /["\\]|[^\x20-\x7e]/g,
    (unit) => escapes[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `"${body}"`
}

/** Writes JSON as Python's `json.dumps` does. */
export function writeJson(value: Value, style: JsonStyle, budget: Budget): string {
  const writer = new JsonWriter(style, budget)
  writer.write(value, 0)
  const text = writer.parts.join('')
  budget.text(text.length)
  return text
}

class JsonWriter {
  readonly parts: string[] = []
  readonly #style: JsonStyle
  readonly #budget: Budget
  readonly #itemSeparator: string
  readonly #keySeparator: string

  constructor(style: JsonStyle, budget: Budget) {
    this.#style = style
    this.#budget = budget
    this.#itemSeparator = style.itemSeparator ?? (style.indent === undefined ? ', ' : ',')
    this.#keySeparator = style.keySeparator ?? ': '
  }

  write(given: Value, depth: number): void {
    const value = resolveLazy(given)
    this.#budget.visit()
    this.#budget.depth(depth)
    if (value instanceof Undefined) value.raise()
    if (value === null) this.parts.push('null')
    else if (typeof value === 'string') this.#text(value)
    else if (typeof value === 'boolean') this.parts.push(String(value))
    else if (isIntegerValue(value)) this.parts.push(Object.is(value, -0) ? '-0' : textOf(value, this.#budget))
    else if (value instanceof Float) this.parts.push(value.source ?? jsonFloat(value.value))
    else if (isNumeric(value)) this.parts.push(jsonFloat(toNumber(value)))
    else if (isMapping(value)) this.#mapping(value, depth)
    else if (isList(value) || value instanceof Sequence || value instanceof RangeValue) this.#items(value, depth)
    else throw typeError(`a value of type ${typeNameOf(value)} cannot be written as JSON`)
  }

  #text(text: string): void {
    this.#budget.work(text.length)
    this.parts.push(jsonText(text))
  }

  #break(depth: number): void {
    if (this.#style.indent === undefined) return
    const indent = `\n${this.#style.indent.repeat(depth)}`
    this.#budget.work(indent.length)
    this.parts.push(indent)
  }

  #items(value: List | Sequence | RangeValue, depth: number): void {
    const items = itemsOf(value)
    if (items.length === 0) {
      this.parts.push('[]')
      return
    }
    this.parts.push('[')
    items.forEach((item, index) => {
      if (index > 0) this.parts.push(this.#itemSeparator)
      this.#break(depth + 1)
      this.write(adopt(item), depth + 1)
    })
    this.#break(depth)
    this.parts.push(']')
  }

  #mapping(value: Value, depth: number): void {
    const listed = mappingEntries(value, (count) => this.#budget.foresee(count))
    const entries = listed.map(([key, item]) => [keyText(key), item] as const)
    if (entries.length === 0) {
      this.parts.push('{}')
      return
    }
    if (this.#style.sortKeys === true) entries.sort(([a], [b]) => compareText(a, b))
    this.parts.push('{')
    entries.forEach(([key, item], index) => {
      if (index > 0) this.parts.push(this.#itemSeparator)
      this.#break(depth + 1)
      this.#text(key)
      this.parts.push(this.#keySeparator)
      this.write(item, depth + 1)
    })
    this.#break(depth)
    this.parts.push('}')
  }
}

function itemsOf(value: List | Sequence | RangeValue): List {
  if (value instanceof Sequence) return value.items
  return value instanceof RangeValue ? value.items() : value
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  return floatText(value)
}

/** A dictionary key as JSON text writes it. */
function keyText(key: Value): string {
  if (typeof key === 'string') return key
  if (key === null) return 'null'
  if (typeof key === 'boolean') return String(key)
  if (isIntegerValue(key)) return String(key)
  if (isNumeric(key)) return jsonFloat(toNumber(key))
  throw typeError(`keys must be text, numbers, booleans or None, not ${typeNameOf(key)}`)
}

/** Parsing makes every value before the budget can count them, so the text itself is bounded. */
const MAX_JSON_LENGTH = 4 * 1024 * 1024

/** Parses JSON; numbers and the order of keys are exact. */
export function readTemplateJson(text: string, budget: Budget): Value {
  if (text.length > MAX_JSON_LENGTH) throw limitError(`the JSON text is longer than ${MAX_JSON_LENGTH} characters`)
  budget.work(text.length)
  let data: unknown
  try {
    data = readJson(text)
  } catch (error) {
    if (error instanceof JsonNumberError) throw limitError(`in the JSON text, ${error.message}`)
    throw filterError('the text is not valid JSON', 'JSONDecodeError')
  }
  return toValue(data, budget, 0)
}

function toValue(data: unknown, budget: Budget, depth: number): Value {
  budget.visit()
  budget.depth(depth)
  if (isList(data)) return data.map((item) => toValue(item, budget, depth + 1))
  if (!isObject(data)) return adopt(data)
  return Dict.from(entriesOf(data).map(([key, item]) => [key, toValue(item, budget, depth + 1)]))
}

/**
 * The value as plain data for the program outside: arrays, objects without a prototype, and JSON's scalars, numbers as
 * `readJson` gives them.
 */
export function plainValue(value: Value, budget: Budget, depth = 0): unknown {
  budget.visit()
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (isNumeric(value)) return plainNumber(value)
  if (value instanceof Undefined) return value.lenient && !value.isRequired && depth === 0 ? '' : value.raise()
  budget.depth(depth)
  if (isMapping(value)) {
    const result: Record<string, unknown> = Object.create(null)
    const keys: string[] = []
    for (const [key, item] of mappingEntries(value, (count) => budget.foresee(count))) {
      const name = keyText(key)
      if (!Object.hasOwn(result, name)) keys.push(name)
      setOwn(result, name, plainValue(item, budget, depth + 1))
    }
    rememberOrder(result, keys)
    return result
  }
  if (isList(value)) return value.map((item) => plainValue(adopt(item), budget, depth + 1))
  if (value instanceof Sequence || value instanceof RangeValue) {
    return itemsOf(value).map((item) => plainValue(adopt(item), budget, depth + 1))
  }
  throw typeError(`a value of type ${typeNameOf(value)} cannot leave a template`)
}

function plainNumber(value: Exclude<Numeric, boolean>): unknown {
  if (typeof value === 'number') return Object.is(value, -0) ? new JsonNumber('-0') : value
  if (value instanceof Float)
    return Number.isFinite(value.value) ? jsonNumber(value.source ?? floatText(value.value)) : value.value
  try {
    return wholeNumber(value)
  } catch (error) {
    if (error instanceof JsonNumberError) throw limitError(error.message)
    throw error
  }
}
