/** Parses untrusted JSON: bounded, without keys that become prototypes and without numbers that become null. */
import { bodyMalformed } from '../core/errors.ts'
import { readJson } from '../lib/text/index.ts'

/** Deeper values overflow the stack of functions that walk or print them. */
const MAX_DEPTH = 100
/** A value costs far more memory and time than its bytes: 16 MiB of `{},` become half a gigabyte, and take seconds. */
const MAX_VALUES = 1_000_000

/** JSON by its media type in lower case, without parameters: RFC 8259, and every type with the suffix of RFC 6839. */
export function isJsonType(type: string): boolean {
  return type === 'application/json' || type === 'text/json' || suffixed.test(type)
}

const suffixed = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json$/

/** @throws BODY_MALFORMED */
export function parseJsonBody(text: string): unknown {
  checkSize(text)
  let value: unknown
  try {
    value = readJson(text)
  } catch (error) {
    throw bodyMalformed(error instanceof Error ? error.message.slice(0, 200) : 'not JSON')
  }
  // It is still an ordinary property here, but copying the object would make it a prototype.
  if (text.includes('__proto__') || text.includes('\\u')) refuseProtoKeys(value)
  if (mayBeInfinite.test(text)) refuseInfinite(value)
  return value
}

/** @throws BODY_MALFORMED */
function checkSize(text: string): void {
  let depth = 0
  let values = 1
  let inString = false
  let isEscaped = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === 0x5c) {
        i += 1
        isEscaped = true
      } else if (code === 0x22) {
        inString = false
      }
    } else if (code === 0x22) {
      inString = true
      isEscaped = false
    } else if (code === 0x5b || code === 0x7b) {
      depth += 1
      values += 1
      if (depth > MAX_DEPTH) throw bodyMalformed(`values are nested more than ${MAX_DEPTH} deep`)
    } else if (code === 0x2c) {
      values += 1
    } else if (code === 0x3a && isEscaped) {
      // It takes the time of three values.
      values += 2
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1
    }
  }
  if (values > MAX_VALUES) throw bodyMalformed(`it holds more than ${MAX_VALUES} items, properties, lists and objects`)
}

function refuseProtoKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Object.hasOwn(value, '__proto__')) throw bodyMalformed('the key "__proto__" is not allowed')
  for (const inner of Object.values(value)) refuseProtoKeys(inner)
}

/**
 * Matches every number that parses as infinite: its exponent has three digits, or its integer part has 200. A match
 * only costs a walk. The lookbehind starts each run of digits at its beginning; starting at each digit would take
 * seconds.
 */
const mayBeInfinite = /[eE]\+?\d{3}|(?<!\d)\d{200}/

/** Infinity stored as JSON would come back as null. */
function refuseInfinite(value: unknown): void {
  if (typeof value === 'number' && !Number.isFinite(value)) throw bodyMalformed('a number is too large')
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) refuseInfinite(inner)
}

/** The type as messages name it: `object`, `array`, `string`, `number`, `integer`, `boolean`, `null`. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}
