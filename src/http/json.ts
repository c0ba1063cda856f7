/** JSON text of strangers: bounded, without keys that become prototypes, read as it was written. */
import { bodyMalformed } from '../errors.ts'

/** Deeper values overflow the stack of whoever walks or prints them. */
const MAX_DEPTH = 100
/** Each value costs far more memory and time than its bytes: 16 MiB of `{},` become half a gigabyte, and seconds. */
const MAX_VALUES = 1_000_000

/** @throws BODY_MALFORMED */
export function parseJson(text: string): unknown {
  const escapedKeys = scan(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw bodyMalformed(error instanceof Error ? error.message.slice(0, 200) : 'not JSON')
  }
  if (escapedKeys.length > 0) value = restoreKeys(JSON.parse(withoutEscapes(text, escapedKeys)))
  // `JSON.parse` makes it an ordinary property, but the next copy of the object would make it a prototype.
  if (text.includes('__proto__') || escapedKeys.length > 0) refuseProtoKeys(value)
  if (mayBeInfinite.test(text)) refuseInfinite(value)
  return value
}

/**
 * One pass over the text before anything is made of it.
 *
 * @returns where the keys that hold an escape or a mark begin and end
 * @throws BODY_MALFORMED
 */
function scan(text: string): [from: number, to: number][] {
  let depth = 0
  let values = 1
  let inString = false
  let start = 0
  let specials = 0
  const escapedKeys: [number, number][] = []
  for (let i = 0; i < text.length && values <= MAX_VALUES; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === 0x5c) {
        i += 1
        specials += 1
      } else if (code === MARK_CODE) {
        specials += 1
      } else if (code === 0x22) {
        inString = false
        if (specials > 0 && startsWithColon(text, i + 1)) {
          escapedKeys.push([start, i])
          values += specials
        }
      }
    } else if (code === 0x22) {
      inString = true
      start = i + 1
      specials = 0
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1
      values += 1
      if (depth > MAX_DEPTH) throw bodyMalformed(`values are nested more than ${MAX_DEPTH} deep`)
    } else if (code === 0x2c) {
      values += 1
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1
    }
  }
  if (values > MAX_VALUES) throw bodyMalformed(`it holds more than ${MAX_VALUES} items, properties, lists and objects`)
  return escapedKeys
}

function startsWithColon(text: string, from: number): boolean {
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code !== 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d) return code === 0x3a
  }
  return false
}

/**
 * Stands before a character that JSON must escape, moved to where it needs no escape, and before itself. The engine reads
 * an escaped key as another one that it has seen before (nodejs/node#63785): `"\n"` as `"\\"`. So it is given none.
 */
const MARK = '\ue000'
const MARK_CODE = 0xe000
const MOVED_BY = 0xe001

function withoutEscapes(text: string, keys: readonly (readonly [from: number, to: number])[]): string {
  const pieces: string[] = []
  let end = 0
  for (const [from, to] of keys) {
    pieces.push(text.slice(end, from), withoutEscapesIn(text.slice(from, to)))
    end = to
  }
  pieces.push(text.slice(end))
  return pieces.join('')
}

function withoutEscapesIn(key: string): string {
  return key.replaceAll(/\\(?:u([0-9a-fA-F]{4})|(.))|\ue000/g, (whole, hex?: string, letter?: string) => {
    if (whole === MARK) return MARK + MARK
    const character =
      hex === undefined ? (letters[letter ?? ''] ?? letter ?? '') : String.fromCharCode(parseInt(hex, 16))
    if (character === MARK) return MARK + MARK
    const code = character.charCodeAt(0)
    const mustBeEscaped = code < 0x20 || code === 0x22 || code === 0x5c
    return mustBeEscaped ? MARK + String.fromCharCode(MOVED_BY + code) : character
  })
}

const letters: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

function restored(key: string): string {
  if (!key.includes(MARK)) return key
  return key.replaceAll(/\ue000(.)/gs, (_, moved: string) =>
    moved === MARK ? MARK : String.fromCharCode(moved.charCodeAt(0) - MOVED_BY),
  )
}

function restoreKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(restoreKeys)
  // Makes `__proto__` a property like any other, as `JSON.parse` does.
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [restored(key), restoreKeys(inner)]))
}

function refuseProtoKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Object.hasOwn(value, '__proto__')) throw bodyMalformed('the key "__proto__" is not allowed')
  for (const inner of Object.values(value)) refuseProtoKeys(inner)
}

/**
 * Every infinite number has three digits of an exponent, or so many in front that two suffice. Text that looks so costs a
 * walk, nothing else. Runs of digits are looked at from their beginning alone: from each digit on would take seconds.
 */
const mayBeInfinite = /[eE]\+?\d{3}|(?<!\d)\d{200}/

/** What is stored as JSON would come back as null. */
function refuseInfinite(value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) throw bodyMalformed('a number is too large')
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) refuseInfinite(inner)
}
