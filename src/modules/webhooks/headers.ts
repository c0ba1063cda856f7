/** Request headers as sent, and as payloads contain them (contract 06, 6.4). */
import { apiKeyIn } from '../../core/api-key-form.ts'
import { MASK } from '../../lib/schema/index.ts'
import { isCredentialHeader, takenHeaders } from '../triggers/index.ts'
import type { CredentialHeaders } from '../triggers/types.ts'

/** Values in the order sent, by name in lower case. */
export type SentHeaders = ReadonlyMap<string, readonly string[]>

/** @param rawHeaders alternating names and values */
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

/** Headers that payloads never contain. `__proto__` would become a prototype in copies. */
const excluded: ReadonlySet<string> = new Set([...takenHeaders, '__proto__'])

export interface ForwardedHeaders {
  /** `X-Custom-Id` */
  headers: Record<string, string>
  /** `x-custom-id` */
  headers_lower: Record<string, string>
}

/**
 * Headers of a request for its payload, with masks for those that can contain a credential.
 *
 * @param secretHeaders in lower case: headers that contain a secret of this webhook; not forwarded
 * @returns `credentials`: the values of the masked headers; undefined: none is masked
 */
export function forwardHeaders(
  sent: SentHeaders,
  secretHeaders: ReadonlySet<string>,
): { forwarded: ForwardedHeaders; credentials: CredentialHeaders | undefined } {
  const headers: Record<string, string> = {}
  const lower: Record<string, string> = {}
  const credentials: CredentialHeaders = { headers: {}, headers_lower: {} }
  let hasCredentials = false
  for (const [name, values] of sent) {
    if (excluded.has(name) || secretHeaders.has(name)) continue
    if (name === 'authorization' && values.some((value) => apiKeyIn(value) !== undefined)) continue
    const value = values.join(',')
    const canonical = canonicalName(name)
    const isCredential = value !== '' && isCredentialHeader(name)
    if (isCredential) {
      credentials.headers[canonical] = value
      credentials.headers_lower[name] = value
      hasCredentials = true
    }
    headers[canonical] = isCredential ? MASK : value
    lower[name] = isCredential ? MASK : value
  }
  return { forwarded: { headers, headers_lower: lower }, credentials: hasCredentials ? credentials : undefined }
}

const MAX_KNOWN_NAMES = 500
const canonicalNames = new Map<string, string>()

/** `x-custom-id` → `X-Custom-Id`. */
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

/** Seconds of `Prefer: wait` (RFC 7240, 4.3), at most 300; 0: no wait. */
export function preferredWait(prefer: string | readonly string[] | undefined): number {
  for (const preference of [prefer ?? []].flat().join(',').split(',')) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? []
    if (seconds !== undefined) return Math.min(Number(seconds), MAX_WAIT_SECONDS)
  }
  return 0
}
