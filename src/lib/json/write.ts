/** Writes JSON text. */
import { JsonNumber } from './number.ts'
import { isOrderUsed, keysOf, mapObject } from './order.ts'
import { readJson } from './read.ts'

/** Finds all text with integer-like keys, and some without. */
const hasIndexKey = /[{,\n]\s*"\d/

/**
 * Writes a value that `readJson` reads back: numbers exactly, keys in their order.
 *
 * @param indent spaces per level; 0: one line
 */
export function writeJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, undefined, indent)
  const isDone = JSON.rawJSON !== undefined && !(isOrderUsed() && hasIndexKey.test(text))
  return isDone ? text : (write(value, indent, '\n') ?? 'null')
}

/** Refuses what `writeJson` writes as null: infinite numbers. @throws RangeError */
export function writeFiniteJson(value: unknown): string {
  JSON.stringify(value, refuseInfinite)
  return writeJson(value)
}

/** A copy in which `replace` has replaced values as a replacer of `JSON.stringify` does. */
export function writeReplacedJson(value: unknown, replace: (name: string, value: unknown) => unknown): string {
  const walk = (name: string, inner: unknown): unknown => {
    const replaced = replace(name, inner)
    if (typeof replaced !== 'object' || replaced === null || replaced instanceof JsonNumber) return replaced
    if (Array.isArray(replaced)) return replaced.map((item, index) => walk(String(index), item))
    return mapObject(replaced as Record<string, unknown>, (item, key) => walk(key, item))
  }
  return writeJson(walk('', value))
}

function refuseInfinite(_name: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isFinite(value)) return value
  throw new RangeError(`holds a number that JSON does not have: ${value}`)
}

function write(value: unknown, indent: number, line: string): string | undefined {
  if (value instanceof JsonNumber) return value.text
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if ('toJSON' in value && typeof value.toJSON === 'function') return write(value.toJSON(), indent, line)
  const inner = indent === 0 ? line : line + ' '.repeat(indent)
  const parts: string[] = []
  if (Array.isArray(value)) {
    for (const item of value) parts.push(write(item, indent, inner) ?? 'null')
    return enclose('[', parts, ']', indent, line, inner)
  }
  const colon = indent === 0 ? ':' : ': '
  for (const key of keysOf(value)) {
    const written = write((value as Record<string, unknown>)[key], indent, inner)
    if (written !== undefined) parts.push(JSON.stringify(key) + colon + written)
  }
  return enclose('{', parts, '}', indent, line, inner)
}

function enclose(open: string, parts: string[], close: string, indent: number, line: string, inner: string): string {
  if (indent === 0 || parts.length === 0) return open + parts.join(',') + close
  return open + inner + parts.join(`,${inner}`) + line + close
}

/** In UTF-16 units: a piece takes far less than a millisecond. */
const MAX_PIECE_LENGTH = 64 * 1024

/** A value as the JSON text that it was stored as. Who writes long values in pieces does not parse it. */
export class WrittenJson {
  readonly text: string

  private constructor(text: string) {
    this.text = text
  }

  /** The value of a JSON text, or the text itself if it is long. */
  static of(text: string): unknown {
    return text.length > MAX_PIECE_LENGTH ? new WrittenJson(text) : readJson(text)
  }

  /** The value of what `of` has returned. */
  static read(value: unknown): unknown {
    return value instanceof WrittenJson ? value.toJSON() : value
  }

  toJSON(): unknown {
    return readJson(this.text)
  }
}

/**
 * As `writeJson`, in pieces: long texts, lists and objects are written part by part, the rest as a whole. A
 * `WrittenJson` is written as it is.
 *
 * @param isKnownLong what `isLong` says
 */
export function* writeJsonInPieces(value: unknown, isKnownLong = false): Generator<string> {
  if (value instanceof WrittenJson) {
    yield* slicesOf(value.text)
    return
  }
  if (typeof value === 'string') {
    yield* textPieces(value)
    return
  }
  if (!isKnownLong && !isLong(value)) {
    yield writeJson(value) ?? 'null'
    return
  }
  let separator = ''
  if (Array.isArray(value)) {
    yield '['
    for (const item of value) {
      if (separator !== '') yield separator
      separator = ','
      yield* writeJsonInPieces(item)
    }
    yield ']'
    return
  }
  const object = value as Record<string, unknown> // what is long and nothing else
  yield '{'
  for (const key of keysOf(object)) {
    const inner = object[key]
    if (inner === undefined) continue
    yield `${separator}${JSON.stringify(key)}:`
    separator = ','
    yield* writeJsonInPieces(inner)
  }
  yield '}'
}

function* textPieces(text: string): Generator<string> {
  if (text.length <= MAX_PIECE_LENGTH) {
    yield JSON.stringify(text)
    return
  }
  yield '"'
  for (const slice of slicesOf(text)) yield JSON.stringify(slice).slice(1, -1)
  yield '"'
}

function* slicesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(text.length, start + MAX_PIECE_LENGTH)
    // Half of a pair would be escaped, or lost.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1
    yield text.slice(start, end)
    start = end
  }
}

/** Whether writing a list or an object at once takes more than a piece. Looks at no more than that. */
export function isLong(value: unknown): value is object {
  let left = MAX_PIECE_LENGTH
  const look = (inner: unknown): boolean => {
    left -= 1
    if (typeof inner === 'string') left -= inner.length
    else if (inner instanceof JsonNumber || inner instanceof WrittenJson) left -= inner.text.length
    if (left < 0) return true
    if (typeof inner !== 'object' || inner === null || 'toJSON' in inner) return false
    if (Array.isArray(inner)) return inner.some(look)
    for (const key of Object.keys(inner)) {
      left -= key.length
      if (look((inner as Record<string, unknown>)[key])) return true
    }
    return false
  }
  if (typeof value !== 'object' || value === null) return false
  return look(value)
}
