/** Reads exports one record at a time: JSON and YAML as clients and the API print them, and collections of `mongodump`. */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { deserialize } from 'bson'
import { describeFileError, readBoundedFile } from '../lib/files/index.ts'
import { JsonNumber, readJson, wholeNumber } from '../lib/json/index.ts'
import { isObject } from '../lib/schema/index.ts'
import { readYamlDocument, shown } from '../lib/text/index.ts'
import { formatMicros } from '../core/time.ts'

/** The limit of MongoDB for a document, and what it adds to that. */
const MAX_RECORD_BYTES = 16 * 1024 * 1024 + 16 * 1024
const MAX_YAML_BYTES = 32 * 1024 * 1024
const MAX_RECORDS = 20_000_000
const MAX_DEPTH = 100

export type Fields = Record<string, unknown>

export interface ExportedRecord {
  fields: Fields
  /** Of a dump, such as `rule_d_b`; undefined in other exports. */
  collection: string | undefined
  /** Counted from 1. */
  index: number
}

/** A record that cannot be read, or the rest of the file. */
export interface ReadProblem {
  problem: string
  /** Of the record, counted from 1; undefined: about the file. */
  index: number | undefined
}

/** Never throws for what is in the file: problems come between the records. */
export async function* readRecords(path: string): AsyncGenerator<ExportedRecord | ReadProblem> {
  try {
    const status = await stat(path)
    if (!status.isFile()) yield aboutFile('it is not a regular file')
    else if (/\.bson(?:\.gz)?$/i.test(path)) yield* readDump(path)
    else if (/\.ya?ml$/i.test(path)) yield* readYaml(path)
    else yield* readJsonRecords(path)
  } catch (error) {
    yield aboutFile(describeFileError(path, error))
  }
}

const aboutFile = (problem: string): ReadProblem => ({ problem, index: undefined })

function toRecord(value: unknown, index: number, collection?: string): ExportedRecord | ReadProblem {
  return isObject(value) && !(value instanceof JsonNumber)
    ? { fields: value, collection, index }
    : { problem: 'it is not an object', index }
}

async function* readYaml(path: string): AsyncGenerator<ExportedRecord | ReadProblem> {
  const file = await readBoundedFile(path, MAX_YAML_BYTES)
  if ('problem' in file) {
    const isLarge = file.problem.startsWith('is larger')
    yield aboutFile(`it ${file.problem}${isLarge ? '; export as JSON (-j), which is read piece by piece' : ''}`)
    return
  }
  const document = readYamlDocument(file.bytes.toString(), {
    maxValues: 2_000_000,
    maxChars: 2 * MAX_YAML_BYTES,
    maxAliases: 1000,
    maxMergeKeys: 1000,
    maxDepth: MAX_DEPTH,
  })
  if ('problem' in document) {
    const { message, line } = document.problem
    yield aboutFile(`${line === undefined ? '' : `line ${line}: `}${message}`)
    return
  }
  const items: unknown[] = Array.isArray(document.value) ? document.value : [document.value]
  for (const [i, item] of items.entries()) yield toRecord(item, i + 1)
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * Objects in a list, one after the other, or one alone. Only one of them is in memory, however large the file is.
 */
async function* readJsonRecords(path: string): AsyncGenerator<ExportedRecord | ReadProblem> {
  /** Of the object that is being read. */
  let pieces: Buffer[] = []
  let bytes = 0
  let depth = 0
  let isText = false
  let isEscaped = false
  let isTooLarge = false
  let index = 0
  let stray: string | undefined
  for await (const chunk of bytesOf(path)) {
    let start = depth === 0 ? -1 : 0
    let backslash = chunk.indexOf(BACKSLASH)
    for (let at = 0; at < chunk.length; at += 1) {
      if (isEscaped) {
        isEscaped = false
        continue
      }
      if (isText) {
        const quote = chunk.indexOf(QUOTE, at)
        if (backslash !== -1 && backslash < at) backslash = chunk.indexOf(BACKSLASH, at)
        isEscaped = backslash !== -1 && (quote === -1 || backslash < quote)
        isText = isEscaped || quote === -1
        at = isEscaped ? backslash : quote === -1 ? chunk.length : quote
        continue
      }
      const code = chunk[at] ?? 0
      if (code === QUOTE) {
        isText = true
        if (depth === 0) stray ??= 'text'
      } else if (code === OPEN_OBJECT || (code === OPEN_LIST && depth > 0)) {
        if (depth === 0) start = at
        depth += 1
      } else if (depth > 0 && (code === CLOSE_OBJECT || code === CLOSE_LIST)) {
        depth -= 1
        if (depth > 0) continue
        index += 1
        const piece = chunk.subarray(start, at + 1)
        start = -1
        if (isTooLarge || bytes + piece.length > MAX_RECORD_BYTES) {
          yield { problem: `it is larger than ${MAX_RECORD_BYTES} bytes`, index }
        } else yield parseRecord(Buffer.concat([...pieces, piece]), index)
        pieces = []
        bytes = 0
        isTooLarge = false
        if (index >= MAX_RECORDS)
          return yield aboutFile(`it has more than ${MAX_RECORDS} records; the rest is not read`)
      }
    }
    if (depth > 0) {
      const rest = chunk.subarray(Math.max(0, start))
      bytes += rest.length
      // Its end is looked for, but no more of it is kept.
      if (bytes > MAX_RECORD_BYTES) {
        isTooLarge = true
        pieces = []
      } else pieces.push(Buffer.from(rest))
    }
  }
  if (depth > 0 || isText) yield { problem: 'the file ends within it: it has been cut off', index: index + 1 }
  else if (index === 0 && stray !== undefined) yield aboutFile('it is not a list of objects')
}

function parseRecord(bytes: Buffer, index: number): ExportedRecord | ReadProblem {
  try {
    const value = readJson(bytes.toString(), { maxDepth: MAX_DEPTH, maxValues: 4_000_000, refusedKey: '__proto__' })
    return toRecord(value, index)
  } catch (error) {
    // What the parser quotes may be a secret.
    const place = error instanceof Error ? /\(line \d+ column \d+\)/.exec(error.message)?.[0] : undefined
    return { problem: `it is not JSON that can be read${place === undefined ? '' : ` ${place}`}`, index }
  }
}

function bytesOf(path: string): AsyncIterable<Buffer> {
  const file = createReadStream(path, { highWaterMark: 262_144 })
  if (!/\.gz$/i.test(path)) return file
  // Whoever reads gets the error of either.
  return pipeline(file, createGunzip(), () => undefined) as Readable
}

async function* readDump(path: string): AsyncGenerator<ExportedRecord | ReadProblem> {
  const collection = /([^/]+?)\.bson(?:\.gz)?$/i.exec(path)?.[1]
  let waiting: Buffer[] = []
  let bytes = 0
  let needed = 4
  let index = 0
  for await (const chunk of bytesOf(path)) {
    waiting.push(chunk)
    bytes += chunk.length
    if (bytes < needed) continue
    let all = Buffer.concat(waiting)
    while (all.length >= 4) {
      const length = all.readInt32LE(0)
      if (length < 5 || length > MAX_RECORD_BYTES) {
        return yield { problem: `its length is ${length}: the file is damaged; the rest is not read`, index: index + 1 }
      }
      needed = length
      if (all.length < length) break
      index += 1
      yield parseDocument(all.subarray(0, length), index, collection)
      all = all.subarray(length)
      needed = 4
      if (index >= MAX_RECORDS) return yield aboutFile(`it has more than ${MAX_RECORDS} records; the rest is not read`)
    }
    waiting = all.length === 0 ? [] : [all]
    bytes = all.length
  }
  if (bytes > 0) yield { problem: 'the file ends within it: it has been cut off', index: index + 1 }
}

function parseDocument(bytes: Buffer, index: number, collection: string | undefined): ExportedRecord | ReadProblem {
  try {
    return toRecord(plainOf(deserialize(bytes, { promoteLongs: false, promoteValues: true }), 0), index, collection)
  } catch (error) {
    const why = error instanceof TooDeep ? `it is nested deeper than ${MAX_DEPTH} levels` : 'it is not valid BSON'
    return { problem: why, index }
  }
}

class TooDeep extends Error {}

/** A value of BSON as one of JSON: ids are their digits, times are text. @throws TooDeep */
function plainOf(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) throw new TooDeep()
  if (value === undefined || typeof value !== 'object' || value === null) return value ?? null
  if (value instanceof Date) return formatMicros(value.getTime() * 1000)
  if (value instanceof Uint8Array) return Buffer.from(value)
  if (Array.isArray(value)) return value.map((item) => plainOf(item, depth + 1))
  if ('_bsontype' in value) return plainOfType(value as BsonValue)
  const plain: Fields = {}
  for (const [name, inner] of Object.entries(value)) {
    if (name !== '__proto__') plain[name] = plainOf(inner, depth + 1)
  }
  return plain
}

interface BsonValue {
  _bsontype: unknown
  toString(): string
  toHexString?: () => string
  buffer?: Uint8Array
  position?: number
}

function plainOfType(value: BsonValue): unknown {
  switch (value._bsontype) {
    case 'ObjectId':
      return value.toHexString?.() ?? value.toString()
    case 'Binary':
      return Buffer.from(value.buffer ?? []).subarray(0, value.position)
    case 'Long':
      return wholeNumber(BigInt(value.toString()))
    case 'Decimal128':
    case 'Double':
    case 'Int32':
      return Number(value.toString())
    default:
      return shown(value.toString())
  }
}
