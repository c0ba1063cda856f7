/** Reads and parses request bodies (contract 00, 0.3). */
import type { Hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { bodyMalformed, bodyTooLarge, contentTypeUnsupported } from '../core/errors.ts'
import { createPause } from '../lib/concurrency/index.ts'
import { hasCode } from '../lib/process/index.ts'
import type { Share } from './allowance.ts'
import { isJsonType, parseJsonBody } from './json.ts'
import { multipartFields } from './multipart.ts'
import { shown } from '../lib/text/index.ts'

/** A field costs far more memory than its bytes. */
const MAX_FORM_FIELDS = 10_000

const LONG_BODY_BYTES = 1024 * 1024

/** A request body before it is parsed. */
export interface RawBody {
  /** As sent, perhaps compressed; empty when the request has no body. */
  readonly bytes: Buffer
  /** In lower case, without parameters; default `application/json`. */
  readonly mediaType: string
  /**
   * Parses the body: any JSON value, an object of lists of strings for a form, `{}` for an empty body.
   *
   * @throws BODY_MALFORMED, BODY_TOO_LARGE (once decompressed), CONTENT_TYPE_UNSUPPORTED
   */
  parse(options?: ParseOptions): Promise<unknown>
  /** The body as text, whatever its media type. @throws BODY_MALFORMED, BODY_TOO_LARGE (once decompressed) */
  text(): Promise<string>
}

export interface ParseOptions {
  /** Drops the fields of a form that have no value; default: they are empty strings. */
  dropsBlank?: boolean
}

export interface BodyReader {
  /**
   * @param share of the memory for bodies; the caller ends it
   * @param digest receives the bytes as sent
   * @returns any JSON value, an object for a form, `{}` for an empty body
   * @throws BODY_MALFORMED, BODY_TOO_LARGE, CONTENT_TYPE_UNSUPPORTED, QUEUE_FULL when the share is used up
   */
  read(request: IncomingMessage, share?: Share, digest?: Hash): Promise<unknown>
  /**
   * @param share as above
   * @throws BODY_TOO_LARGE, BODY_MALFORMED for a truncated body, QUEUE_FULL when the share is used up
   */
  readRaw(request: IncomingMessage, share?: Share): Promise<RawBody>
}

/**
 * Creates a reader of bodies up to `maxBytes`, also after decompression. It refuses a larger body as soon as it knows
 * the size, without waiting for the rest.
 */
export function createBodyReader(maxBytes: number): BodyReader {
  async function parse(bytes: Buffer, { type, header, decompress }: Kind, options: ParseOptions): Promise<unknown> {
    if (bytes.length === 0) return {}
    const plain = decompress === undefined ? bytes : await decompressed(decompress, bytes, maxBytes)
    if (plain.length === 0) return {}
    // Joining the parts of a long one took a turn.
    if (plain.length > LONG_BODY_BYTES) await nextTurn()
    switch (type) {
      case formType:
        return formOf(await urlencodedFields(plain), options)
      case 'multipart/form-data':
        return formOf(await multipartFields(header, plain, MAX_FORM_FIELDS), options)
      default:
        return parseJsonBody(decodeUtf8(plain))
    }
  }

  return {
    async read(request, share, digest) {
      const kind = kindOf(request)
      return parse(await collect(request, maxBytes, share, digest), kind, {})
    },
    async readRaw(request, share) {
      const bytes = await collect(request, maxBytes, share)
      return {
        bytes,
        mediaType: mediaType(request.headers['content-type']),
        parse: async (options = {}) => parse(bytes, kindOf(request), options),
        async text() {
          const decompress = decompressorFor(request.headers['content-encoding'])
          return decodeUtf8(decompress === undefined ? bytes : await decompressed(decompress, bytes, maxBytes))
        },
      }
    },
  }
}

/** How to parse a body. */
interface Kind {
  type: string
  /** `Content-Type` as sent. */
  header: string
  decompress: Decompress | undefined
}

/** @throws CONTENT_TYPE_UNSUPPORTED, BODY_MALFORMED */
function kindOf({ headers }: IncomingMessage): Kind {
  const header = headers['content-type'] ?? ''
  const type = mediaType(header)
  if (!isJsonType(type) && !readable.has(type)) throw contentTypeUnsupported(type)
  return { type, header, decompress: decompressorFor(headers['content-encoding']) }
}

function collect(request: IncomingMessage, maxBytes: number, share?: Share, digest?: Hash): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const finish = (error?: unknown): void => {
      request.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut)
      if (error === undefined) resolve(Buffer.concat(chunks, length))
      else reject(error)
    }
    const onData = (chunk: Buffer): void => {
      length += chunk.length
      try {
        if (length > maxBytes) throw bodyTooLarge(maxBytes)
        share?.add(chunk.length)
        digest?.update(chunk)
        chunks.push(chunk)
      } catch (error) {
        finish(error)
      }
    }
    const onEnd = (): void => finish()
    const onCut = (): void => finish(bodyMalformed('it ended before its announced length'))
    // The client may disconnect while the server checks its credentials.
    if (request.destroyed) onCut()
    else request.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut)
  })
}

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

const decompressors = new Map<string, Decompress | undefined>([
  ['identity', undefined],
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
])

function decompressorFor(header: string | undefined): Decompress | undefined {
  const encoding = (header ?? 'identity').trim().toLowerCase()
  if (decompressors.has(encoding)) return decompressors.get(encoding)
  throw bodyMalformed(`the Content-Encoding "${shown(encoding)}" is not supported; use gzip, deflate, br or none`)
}

async function decompressed(decompress: Decompress, bytes: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await decompress(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    if (hasCode(error, 'ERR_BUFFER_TOO_LARGE')) throw bodyTooLarge(maxBytes)
    throw bodyMalformed('it does not match its Content-Encoding')
  }
}

export const formType = 'application/x-www-form-urlencoded'
/** Some senders begin their text with it; the decoder of JSON ignores it too. */
const byteOrderMark = Buffer.from('\uFEFF')

/** Besides JSON. Plain text is read as JSON. */
const readable: ReadonlySet<string> = new Set(['text/plain', formType, 'multipart/form-data'])

function mediaType(header: string | undefined): string {
  if (header === undefined || header.trim() === '') return 'application/json'
  const [type = ''] = header.split(';', 1)
  return type.trim().toLowerCase()
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw bodyMalformed('it is not valid UTF-8')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function urlencodedFields(bytes: Buffer): Promise<[string, string][]> {
  const text = decodeUtf8(bytes)
  const content = text.trim()
  // `curl -d` labels every body as a form. JSON in it would parse to no field; a real form has its braces encoded.
  if (content.startsWith('{') && content.endsWith('}')) {
    throw bodyMalformed('it is JSON, but sent as a form; add the header "Content-Type: application/json"')
  }
  if (occursMoreThan(text, '&', MAX_FORM_FIELDS - 1)) throw bodyMalformed(`it has more than ${MAX_FORM_FIELDS} fields`)
  const start = bytes.subarray(0, 3).equals(byteOrderMark) ? 3 : 0
  return formFields(bytes.subarray(start))
}

/**
 * Decoded byte by byte, in turns: `URLSearchParams` needs a second for 16 MiB of `+`, and a tenth of a second for as many
 * `%`.
 */
async function formFields(bytes: Buffer): Promise<[string, string][]> {
  const decoder = new FormDecoder(bytes)
  const pause = createPause()
  while (!decoder.read(FORM_SLICE_BYTES)) await pause()
  return decoder.fields
}

const FORM_SLICE_BYTES = 256 * 1024

class FormDecoder {
  readonly fields: [string, string][] = []
  readonly #bytes: Buffer
  /** What has been decoded, without `&` and `=`. */
  readonly #decoded: Buffer
  #at = 0
  /** Of the decoded bytes of the name or value that is being read. */
  #start = 0
  #end = 0
  #name: string | undefined

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#decoded = Buffer.allocUnsafe(bytes.length)
  }

  /** Reads so many bytes. @returns whether it has read all of them */
  read(count: number): boolean {
    const bytes = this.#bytes
    const decoded = this.#decoded
    const limit = Math.min(bytes.length, this.#at + count)
    let at = this.#at
    let end = this.#end
    for (; at < limit; at++) {
      const byte = bytes[at] ?? 0
      if (byte === AMPERSAND || (byte === EQUALS && this.#name === undefined)) {
        this.#end = end
        this.#take(byte)
        continue
      }
      const code = byte === PERCENT ? hexValue(bytes[at + 1]) * 16 + hexValue(bytes[at + 2]) : -1
      if (code >= 0) at += 2
      decoded[end] = code >= 0 ? code : byte === PLUS ? SPACE : byte
      end += 1
    }
    this.#at = at
    this.#end = end
    if (at < bytes.length) return false
    this.#take(AMPERSAND)
    return true
  }

  #take(separator: number): void {
    const text = this.#decoded.toString('utf8', this.#start, this.#end)
    this.#start = this.#end
    if (separator === EQUALS) {
      this.#name = text
      return
    }
    if (this.#name !== undefined) this.fields.push([this.#name, text])
    else if (text !== '') this.fields.push([text, ''])
    this.#name = undefined
  }
}

/** Far below zero for what is no digit, so that no second digit makes up for it. */
function hexValue(byte: number | undefined): number {
  if (byte === undefined) return -1000
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1000
}

const AMPERSAND = 0x26
const EQUALS = 0x3d
const PERCENT = 0x25
const PLUS = 0x2b
const SPACE = 0x20

/** Every value is a list of strings: `a=1` is `{"a": ["1"]}`. */
function formOf(fields: Iterable<[string, string]>, { dropsBlank = false }: ParseOptions): Record<string, string[]> {
  const form = new Map<string, string[]>()
  for (const [name, value] of fields) {
    if (name === '__proto__') throw bodyMalformed('the key "__proto__" is not allowed')
    if (dropsBlank && value === '') continue
    const values = form.get(name)
    if (values === undefined) form.set(name, [value])
    else values.push(value)
  }
  return Object.fromEntries(form)
}

function occursMoreThan(text: string, part: string, count: number): boolean {
  let left = count
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) {
    if (left === 0) return true
    left -= 1
  }
  return false
}
