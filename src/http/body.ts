/** Reading and parsing request bodies (contract 00, 0.3). */
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { bodyMalformed, bodyTooLarge, contentTypeUnsupported, shown, type AppError } from '../errors.ts'
import { hasCode } from '../system-error.ts'
import { parseJson } from './json.ts'

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
    return type === 'application/x-www-form-urlencoded' ? parseForm(bytes) : parseJson(decodeUtf8(bytes))
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
    if (hasCode(error, 'ERR_BUFFER_TOO_LARGE')) throw bodyTooLarge(maxBytes)
    throw bodyMalformed('it does not match its Content-Encoding')
  }
}

const readable: ReadonlySet<string> = new Set(['application/json', 'text/plain', 'application/x-www-form-urlencoded'])

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

/** Every value is a list of strings: `a=1` is `{"a": ["1"]}`. */
function parseForm(bytes: Buffer): Record<string, string[]> {
  const form = new Map<string, string[]>()
  const text = decodeUtf8(bytes)
  const content = text.trim()
  // `curl -d` says so of everything, and no field would be found; a form has its braces encoded.
  if (content.startsWith('{') && content.endsWith('}')) {
    throw bodyMalformed('it is JSON, but sent as a form; add the header "Content-Type: application/json"')
  }
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
