/** Reading and parsing request bodies (contract 00, 0.3). */
import express, { type Request, type Response } from 'express'
import { bodyMalformed, bodyTooLarge, contentTypeUnsupported } from '../errors.ts'

/** Deeper values overflow the stack of whoever walks or prints them. */
const MAX_DEPTH = 100

export type BodyReader = (request: Request, response: Response) => Promise<unknown>

/**
 * Makes the reader of bodies of at most `maxBytes` (also after decompression).
 *
 * @returns an object, or whatever JSON value was sent; `{}` for an empty body
 * @throws BODY_MALFORMED, BODY_TOO_LARGE, CONTENT_TYPE_UNSUPPORTED
 */
export function createBodyReader(maxBytes: number): BodyReader {
  const raw = express.raw({ type: () => true, limit: maxBytes, inflate: true })
  return async (request, response) => {
    const type = mediaType(request.headers['content-type'])
    if (!readable.has(type)) throw contentTypeUnsupported(type)
    await new Promise<void>((resolve, reject) => {
      raw(request, response, (error: unknown) => (error === undefined ? resolve() : reject(translate(error, maxBytes))))
    })
    const bytes: unknown = request.body
    if (!Buffer.isBuffer(bytes) || bytes.length === 0) return {}
    return type === 'application/x-www-form-urlencoded' ? parseForm(bytes) : parseJson(bytes)
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
  checkDepth(text)
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

function checkDepth(text: string): void {
  let depth = 0
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
      if (depth > MAX_DEPTH) throw bodyMalformed(`values are nested more than ${MAX_DEPTH} deep`)
    } else if (code === 0x5d || code === 0x7d) {
      depth -= 1
    }
  }
}

function refuseProtoKeys(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  if (Object.hasOwn(value, '__proto__')) throw bodyMalformed('the key "__proto__" is not allowed')
  for (const inner of Object.values(value)) refuseProtoKeys(inner)
}

/** Every value is a list of strings: `a=1` is `{"a": ["1"]}`. */
function parseForm(bytes: Buffer): Record<string, string[]> {
  const form = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(decodeUtf8(bytes))) {
    if (name === '__proto__') throw bodyMalformed('the key "__proto__" is not allowed')
    const values = form.get(name)
    if (values === undefined) form.set(name, [value])
    else values.push(value)
  }
  return Object.fromEntries(form)
}

function translate(error: unknown, maxBytes: number): unknown {
  const type = typeof error === 'object' && error !== null && 'type' in error ? error.type : undefined
  switch (type) {
    case 'entity.too.large':
      return bodyTooLarge(maxBytes)
    case 'encoding.unsupported':
      return bodyMalformed('the Content-Encoding is not supported; use gzip, deflate, br or none')
    case 'request.aborted':
    case 'request.size.invalid':
      return bodyMalformed('the body ended before its announced length')
    case undefined:
      // zlib has no `type`; its code says that the announced compression does not fit the bytes.
      return isZlibError(error) ? bodyMalformed('the body does not match its Content-Encoding') : error
    default:
      return bodyMalformed(String(type))
  }
}

function isZlibError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')
}
