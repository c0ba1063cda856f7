/** Parses untrusted JSON: bounded, without keys that become prototypes and without numbers that become null. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { bodyMalformed } from '../core/errors.ts'
import { rememberJson } from '../core/stored-json.ts'
import { createPause } from '../lib/concurrency/index.ts'
import {
  isLong,
  JsonNumber,
  readJson,
  readLargeJson,
  writeJson,
  writeJsonInPieces,
  type JsonLimits,
} from '../lib/json/index.ts'

/**
 * Deeper values overflow the stack of functions that walk or print them. A value costs far more memory and time than
 * its bytes: parsing rests, but the checks that follow see all values at once.
 */
const limits: JsonLimits = { maxDepth: 100, maxValues: 100_000, refusedKey: '__proto__' }

/** In characters: a text of this length takes up to some 5 ms. */
const MAX_AT_ONCE = 64 * 1024
/** A piece of a character takes longer to make than one of its characters. */
const MAX_PIECES_AT_ONCE = 500

/** JSON by its media type in lower case, without parameters: RFC 8259, and every type with the suffix of RFC 6839. */
export function isJsonType(type: string): boolean {
  return type === 'application/json' || type === 'text/json' || suffixed.test(type)
}

const suffixed = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+\+json$/

/**
 * Parses a body, between other work if it is long.
 *
 * @throws BODY_MALFORMED
 */
export async function parseJsonBody(text: string): Promise<unknown> {
  try {
    // As an ordinary property, `__proto__` would become a prototype in a copy of the object.
    if (text.length <= MAX_AT_ONCE) return readJson(text, limits)
    // Receiving and decoding the text took a turn.
    await nextTurn()
    const value = await readLargeJson(text, limits, nextTurn)
    // Whoever checks and stores it looks at everything at once.
    await nextTurn()
    return value
  } catch (error) {
    throw bodyMalformed(error instanceof Error ? error.message.slice(0, 200) : 'not JSON')
  }
}

/** Writes a value, between other work if it is long. It must not change meanwhile. */
export async function writeJsonInTurns(value: unknown): Promise<string> {
  return isLong(value) ? writeLong(value) : writeJson(value)
}

async function writeLong(value: object): Promise<string> {
  const texts: string[] = []
  for await (const text of textsInTurns(value)) texts.push(text)
  return texts.join('')
}

/** Writes the text of a long value for `storedJson`, between other work. The value must not change any more. */
export async function writeStoredJson(value: unknown): Promise<void> {
  if (isLong(value)) rememberJson(value, await writeLong(value))
}

/** As `writeJsonInTurns`, in UTF-8. */
export async function writeJsonBytesInTurns(value: unknown): Promise<Buffer> {
  if (!isLong(value)) return Buffer.from(writeJson(value))
  const parts: Buffer[] = []
  for await (const text of textsInTurns(value)) parts.push(Buffer.from(text))
  return Buffer.concat(parts)
}

async function* textsInTurns(value: object): AsyncGenerator<string> {
  const pause = createPause()
  let text = ''
  let count = 0
  for (const piece of writeJsonInPieces(value, true)) {
    text += piece
    count += 1
    if (text.length < MAX_AT_ONCE && count < MAX_PIECES_AT_ONCE) continue
    yield text
    text = ''
    count = 0
    await pause()
  }
  yield text
}

/** The type as messages name it: `object`, `array`, `string`, `number`, `integer`, `boolean`, `null`. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (value instanceof JsonNumber) return value.isWhole ? 'integer' : 'number'
  return Number.isInteger(value) ? 'integer' : typeof value
}
