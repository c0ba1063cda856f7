/** Reading and parsing request bodies (contract 00, 0.3). */
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { bodyMalformed, bodyTooLarge, contentTypeUnsupported, shown, type AppError } from '../errors.ts'

/** Deeper values overflow the stack of whoever walks or prints them. */
const MAX_DEPTH = 100
/** Each value costs far more memory and time than its bytes: 16 MiB of `{},` become half a gigabyte, and seconds. */
const MAX_VALUES = 1_000_000
/** Each field costs far more memory than its bytes. */
const MAX_FORM_FIELDS = 10_000

export type BodyReader = (request: IncomingMessage) => Promise<unknown>

/**
 * Makes the reader of bodies of at most `maxBytes` (also after decompression). A body that is too large is refused as
 * soon as that is known, not after the rest of it has come.
 *
 * @returns an object, or whatever JSON value was sent; `{}` for an empty body
 * @throws BODY_MALFORMED, BODY_TOO_LARGE, CONTENT_TYPE_UNSUPPORTED
 */
export function createBodyReader(maxBytes: number): BodyReader {
  return async (request) => {
    const type = mediaType(request.headers['content-type'])
    if (!readable.has(type)) throw contentTypeUnsupported(type)
    const decompress = decompressorFor(request.headers['content-encoding'])
    const sent = await collect(request, maxBytes)
    if (sent.length === 0) return {}
    const bytes = decompress === undefined ? sent : await decompressed(decompress, sent, maxBytes)
    if (bytes.length === 0) return {}
    return type === 'application/x-www-form-urlencoded' ? parseForm(bytes) : parseJson(bytes)
  }
}

function collect(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const finish = (error?: AppError): void => {
      request.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut)
      if (error === undefined) resolve(Buffer.concat(chunks, length))
      else reject(error)
    }
    const onData = (chunk: Buffer): void => {
      length += chunk.length
      if (length > maxBytes) finish(bodyTooLarge(maxBytes))
      else chunks.push(chunk)
    }
    const onEnd = (): void => finish()
    const onCut = (): void => finish(bodyMalformed('it ended before its announced length'))
    // The caller may have gone while its credentials were looked at.
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
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(maxBytes)
    throw bodyMalformed('it does not match its Content-Encoding')
  }
}

const readable: ReadonlySet<string> = new Set(['application/json', 'text/plain', 'application/x-www-form-urlencoded'])

function mediaType(header: string | undefined): string {
  if (header === undefined || header.trim() === '') return 'application/json'
  const [type = ''] = header.split(';', 1)
  return type.trim().toLowerCase()
}

/** @throws BODY_MALFORMED */
export function parseJson(bytes: Buffer): unknown {
  const text = decodeUtf8(bytes)
  checkSize(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw bodyMalformed(error instanceof Error ? error.message.slice(0, 200) : 'not JSON')
  }
  // `JSON.parse` makes it an ordinary property, but the next copy of the object would make it a prototype.
  if (text.includes('__proto__') || text.includes('\\u')) refuseProtoKeys(value)
  return value
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw bodyMalformed('it is not valid UTF-8')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function checkSize(text: string): void {
  let depth = 0
  let values = 1
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (inString) {
      if (code === 0x5c) i += 1
      else if (code === 0x22) inString = false
    } else if (code === 0x22) {
      inString = true
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
}

function refuseProtoKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Object.hasOwn(value, '__proto__')) throw bodyMalformed('the key "__proto__" is not allowed')
  for (const inner of Object.values(value)) refuseProtoKeys(inner)
}

/** Every value is a list of strings: `a=1` is `{"a": ["1"]}`. */
function parseForm(bytes: Buffer): Record<string, string[]> {
  const form = new Map<string, string[]>()
  const text = decodeUtf8(bytes)
  if (occurrences(text, '&') >= MAX_FORM_FIELDS) throw bodyMalformed(`it has more than ${MAX_FORM_FIELDS} fields`)
  for (const [name, value] of new URLSearchParams(text)) {
    if (name === '__proto__') throw bodyMalformed('the key "__proto__" is not allowed')
    const values = form.get(name)
    if (values === undefined) form.set(name, [value])
    else values.push(value)
  }
  return Object.fromEntries(form)
}

function occurrences(text: string, part: string): number {
  let n = 0
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) n += 1
  return n
}
