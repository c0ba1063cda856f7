/** Parses untrusted JSON: bounded, without keys that become prototypes and without numbers that become null. */
import { bodyMalformed } from '../core/errors.ts'
import { JsonNumber, readJson, type JsonLimits } from '../lib/json/index.ts'

/**
 * Deeper values overflow the stack of functions that walk or print them. A value costs far more memory and time than
 * its bytes: a hundred thousand take some 50 ms, in which the server does nothing else.
 */
const limits: JsonLimits = { maxDepth: 100, maxValues: 100_000 }

/** JSON by its media type in lower case, without parameters: RFC 8259, and every type with the suffix of RFC 6839. */
export function isJsonType(type: string): boolean {
  return type === 'application/json' || type === 'text/json' || suffixed.test(type)
}

const suffixed = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json$/

/** @throws BODY_MALFORMED */
export function parseJsonBody(text: string): unknown {
  let value: unknown
  try {
    value = readJson(text, limits)
  } catch (error) {
    throw bodyMalformed(error instanceof Error ? error.message.slice(0, 200) : 'not JSON')
  }
  // It is still an ordinary property here, but copying the object would make it a prototype.
  if (text.includes('__proto__') || text.includes('\\u')) refuseProtoKeys(value)
  return value
}

function refuseProtoKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Object.hasOwn(value, '__proto__')) throw bodyMalformed('the key "__proto__" is not allowed')
  for (const inner of Object.values(value)) refuseProtoKeys(inner)
}

/** The type as messages name it: `object`, `array`, `string`, `number`, `integer`, `boolean`, `null`. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (value instanceof JsonNumber) return value.isWhole ? 'integer' : 'number'
  return Number.isInteger(value) ? 'integer' : typeof value
}
