/**
 * Makes any value safe to log: secrets masked, size and depth bounded, unprintable characters escaped.
 *
 * Nothing here throws, calls `toString` or `toJSON` of a foreign object, or takes longer than the bounds allow.
 */
import { JsonNumber } from '../json/index.ts'

/** Replaces a secret of any type (contract 00, 0.15). */
export const secretMask = '********'

/** Contract 00, 0.15 "In logs", and the names of credentials in headers, queries and bodies. */
const secretNames = [
  'password',
  'auth_token',
  'token',
  'secret',
  'credentials',
  'svc_auth_token',
  'api_key',
  'apikey',
  'authorization',
  'cookie',
  'passphrase',
  'passwd',
  'private_key',
  'secret_key',
]

const maximumDepth = 6
const maximumItems = 50
const maximumNodes = 500
const maximumNameLength = 100
const maximumDigits = 40
const maximumKnownNames = 500
const maximumCauses = 5
const maximumFrames = 10
const maximumTotalLength = 32_768

/** Most characters that one value takes in a message. */
export const maximumTextLength = 2048

export interface Redactor {
  /** Whether values under this name are secret: `password`, `bind_password`, `X-Auth-Token`, `apiKey`. */
  readonly isSecret: (name: string) => boolean
  /**
   * Makes plain, bounded, masked copies that `JSON.stringify` accepts. All copies of one copier share one size limit.
   */
  readonly copier: () => (name: string, value: unknown) => unknown
  /** Masks the secret query parameters of a URL or path. */
  readonly maskUrl: (url: string) => string
}

/**
 * @param enabled false turns masking off
 * @param more additional secret names (`log.mask_secrets_blacklist`)
 */
export function createRedactor(enabled: boolean, more: readonly string[] = []): Redactor {
  const names = [...new Set([...secretNames, ...more].map(plainName))]
  const endings = names.map((secret) => `_${secret}`)
  // Every message has the same few names.
  const known = new Map<string, boolean>()
  const isSecret = (name: string): boolean => {
    if (!enabled) return false
    const before = known.get(name)
    if (before !== undefined) return before
    const plain = plainName(name)
    const found = names.includes(plain) || endings.some((ending) => plain.endsWith(ending))
    if (known.size < maximumKnownNames && name.length <= maximumNameLength) known.set(name, found)
    return found
  }
  return {
    isSecret,
    copier: () => {
      const copy = new Copy(isSecret)
      return (name, value) => {
        try {
          return copy.of(name, value)
        } catch {
          return '[unreadable]'
        }
      }
    },
    maskUrl: (url) => {
      const start = url.indexOf('?')
      if (start === -1) return url
      const query = url
        .slice(start + 1)
        .split('&')
        .map((part) => {
          const [name = ''] = part.split('=', 1)
          return part.length > name.length && isSecret(decoded(name)) ? `${name}=${secretMask}` : part
        })
      return `${url.slice(0, start)}?${query.join('&')}`
    },
  }
}

function plainName(name: string): string {
  return name
    .slice(-maximumNameLength)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .toLowerCase()
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

/** Copies values up to the size limit. */
class Copy {
  #isSecret: (name: string) => boolean
  #nodes = maximumNodes
  #length = maximumTotalLength
  #ancestors: unknown[] = []

  constructor(isSecret: (name: string) => boolean) {
    this.#isSecret = isSecret
  }

  of(name: string, value: unknown): unknown {
    if (value !== undefined && value !== null && this.#isSecret(name)) return secretMask
    this.#nodes -= 1
    if (this.#nodes < 0 || this.#length < 0) return '…'
    switch (typeof value) {
      case 'string':
        return this.#text(value)
      case 'number':
        return Number.isFinite(value) ? value : String(value)
      case 'bigint':
        // Formatting a bigint takes time quadratic in its length.
        return value < 1n << 128n && value > -(1n << 128n) ? String(value) : '[large number]'
      case 'symbol':
        return this.#text(String(value.description))
      case 'function':
        return '[function]'
      case 'boolean':
      case 'undefined':
        return value
      case 'object':
        return value === null ? null : this.#object(value)
    }
  }

  #text(text: string): string {
    const clipped = clip(text, Math.min(maximumTextLength, Math.max(this.#length, 0)))
    this.#length -= clipped.length
    return clipped
  }

  #object(value: object): unknown {
    if (this.#ancestors.includes(value)) return '[circular]'
    if (this.#ancestors.length >= maximumDepth) return '[…]'
    this.#ancestors.push(value)
    try {
      if (value instanceof JsonNumber) return value.text.length > maximumDigits ? '[large number]' : value
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
      if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
      if (value instanceof Error) return this.#error(value)
      if (Array.isArray(value)) return this.#items(value, value.length)
      if (value instanceof Set) return this.#items(value, value.size)
      if (value instanceof URL) return this.#text(value.href)
      if (value instanceof Map) return this.#properties(value, value.size)
      return this.#properties(ownProperties(value), Number.POSITIVE_INFINITY)
    } catch {
      return '[unreadable]'
    } finally {
      this.#ancestors.pop()
    }
  }

  #items(items: Iterable<unknown>, count: number): unknown[] {
    const copies: unknown[] = []
    for (const item of items) {
      if (copies.length === maximumItems) {
        copies.push(`… ${count - maximumItems} more`)
        break
      }
      // JSON has no undefined; omitting it would shift the items after it.
      copies.push(this.of('', item) ?? null)
    }
    return copies
  }

  #properties(properties: Iterable<[unknown, unknown]>, count: number): Record<string, unknown> {
    const copy: Record<string, unknown> = Object.create(null)
    let copied = 0
    for (const [key, value] of properties) {
      if (copied === maximumItems) {
        copy['…'] = Number.isFinite(count) ? `${count - maximumItems} more` : 'more'
        break
      }
      const name = typeof key === 'string' ? key : typeof key === 'number' ? String(key) : `[${typeof key}]`
      copy[clip(name, maximumNameLength)] = this.of(name, value)
      copied += 1
    }
    return copy
  }

  #error(error: Error): ErrorCopy {
    const copy = new ErrorCopy()
    copy.name = typeof error.name === 'string' ? this.#text(error.name) : 'Error'
    if ('code' in error && (typeof error.code === 'string' || typeof error.code === 'number')) {
      copy.code = this.#text(String(error.code))
    }
    copy.message = typeof error.message === 'string' ? this.#text(error.message) : ''
    if ('details' in error && error.details !== undefined) copy.details = this.of('details', error.details)
    const frames = typeof error.stack === 'string' ? framesOf(error.stack) : []
    if (frames.length > 0) copy.frames = frames.map((frame) => this.#text(frame))
    if (error.cause !== undefined && this.#ancestors.length < maximumCauses) copy.cause = this.of('cause', error.cause)
    if (error instanceof AggregateError) copy.errors = this.#items(error.errors, error.errors.length)
    return copy
  }
}

function* ownProperties(value: object): Generator<[string, unknown]> {
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue
    let property: unknown
    try {
      property = Reflect.get(value, key)
    } catch {
      property = '[unreadable]'
    }
    yield [key, property]
  }
}

function framesOf(stack: string): string[] {
  const frames: string[] = []
  for (const line of stack.slice(0, maximumTotalLength).split('\n')) {
    const frame = /^\s+at (.*)$/.exec(line)?.[1]
    if (frame !== undefined) frames.push(frame)
    if (frames.length === maximumFrames) break
  }
  return frames
}

/** The part of an error that is logged. Its other properties may carry requests with credentials. */
export class ErrorCopy {
  name = ''
  code?: string
  message = ''
  details?: unknown
  frames?: string[]
  cause?: unknown
  errors?: unknown[]
}

/** At most `length` UTF-16 units of a text, never ending in half a character; a mark shows a cut. */
export function clip(text: string, length: number): string {
  if (text.length <= length) return text
  const last = text.charCodeAt(length - 1)
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)}…`
}

const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
const shortEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/**
 * Puts a text on one line: escapes control, formatting and line-separating characters and lone surrogates as `\n`,
 * `\u001b`. The result for JSON is equivalent JSON.
 */
export function escapeUnprintable(text: string): string {
  // Nearly every text is plain ASCII; this test costs a tenth of the search.
  if (/^[\x20-\x7e]*$/.test(text)) return text
  return text.replace(unprintable, (character) => {
    const short = shortEscapes[character]
    if (short !== undefined) return short
    let escaped = ''
    for (let index = 0; index < character.length; index += 1) {
      escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
    }
    return escaped
  })
}
