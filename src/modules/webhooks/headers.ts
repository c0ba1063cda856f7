/** Request headers: as senders wrote them, and as rules find them (contract 06, 6.4). */
import { takenHeaders } from '../triggers/index.ts'

/** Names in lower case, each with its values in the order sent. */
export type SentHeaders = ReadonlyMap<string, readonly string[]>

/** @param rawHeaders names and values in turn */
export function readHeaders(rawHeaders: readonly string[]): SentHeaders {
  const headers = new Map<string, string[]>()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    const value = rawHeaders[i + 1] ?? ''
    const values = headers.get(name)
    if (values === undefined) headers.set(name, [value])
    else values.push(value)
  }
  return headers
}

/** The last would become a prototype in copies. */
const leftOut: ReadonlySet<string> = new Set([...takenHeaders, '__proto__'])

export interface ForwardedHeaders {
  /** `X-Custom-Id` */
  headers: Record<string, string>
  /** `x-custom-id` */
  headers_lower: Record<string, string>
}

/** @param hidden in lower case: headers that hold a secret of this webhook */
export function forwardHeaders(sent: SentHeaders, hidden: ReadonlySet<string>): ForwardedHeaders {
  const headers: Record<string, string> = {}
  const lower: Record<string, string> = {}
  for (const [name, values] of sent) {
    if (leftOut.has(name) || hidden.has(name)) continue
    const value = values.join(',')
    headers[canonicalName(name)] = value
    lower[name] = value
  }
  return { headers, headers_lower: lower }
}

const MAX_KNOWN_NAMES = 500
const canonicalNames = new Map<string, string>()

/** `X-Custom-Id` of `x-custom-id`. */
export function canonicalName(name: string): string {
  const known = canonicalNames.get(name)
  if (known !== undefined) return known
  const canonical = name
    .toLowerCase()
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('-')
  if (canonicalNames.size < MAX_KNOWN_NAMES && name.length <= 100) canonicalNames.set(name, canonical)
  return canonical
}

const MAX_WAIT_SECONDS = 300

/** Seconds that the sender is ready to wait for what comes of it (RFC 7240, 4.3), at most 300; 0: not at all. */
export function preferredWait(prefer: string | readonly string[] | undefined): number {
  for (const preference of [prefer ?? []].flat().join(',').split(',')) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? []
    if (seconds !== undefined) return Math.min(Number(seconds), MAX_WAIT_SECONDS)
  }
  return 0
}
