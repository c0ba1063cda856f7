/** What a request brings along to prove who is calling (contract 01, 1.8), and the cookie that answers (00, 0.4). */
import type { IncomingMessage } from 'node:http'
import { credentialsMissing, twoCredentials } from '../../errors.ts'

export interface Credential {
  kind: 'token' | 'api-key'
  value: string
  location: 'header' | 'query' | 'cookie'
}

const COOKIE = 'auth-token'

/** Of the request: its headers, and its address as the client sent it. */
export type CredentialSource = Pick<IncomingMessage, 'headers'> & { originalUrl: string }

/**
 * Exactly one kind may be there; header before query, and the cookie only counts alone. An empty value is none.
 *
 * @throws CREDENTIALS_MISSING, TWO_CREDENTIALS
 */
export function readCredential({ headers, originalUrl }: CredentialSource): Credential {
  const query = queryOf(originalUrl)
  const token = fromHeaderOrQuery('token', headers['x-auth-token'], query?.get('x-auth-token'))
  const key = fromHeaderOrQuery('api-key', headers['svc-api-key'], query?.get('svc-api-key'))
  if (token !== undefined && key !== undefined) throw twoCredentials()
  const credential = token ?? key
  if (credential !== undefined) return credential
  const cookie = readCookie(headers.cookie)
  if (cookie === undefined || cookie === '') throw credentialsMissing()
  return { kind: 'token', value: cookie, location: 'cookie' }
}

function queryOf(url: string): URLSearchParams | undefined {
  const mark = url.indexOf('?')
  return mark === -1 ? undefined : new URLSearchParams(url.slice(mark + 1))
}

function fromHeaderOrQuery(
  kind: Credential['kind'],
  header: string | string[] | undefined,
  query: string | null | undefined,
): Credential | undefined {
  // A header given twice is one value with a comma here: no token and no key.
  const text = Array.isArray(header) ? header.join(', ') : header
  if (text !== undefined && text.trim() !== '') return { kind, value: text.trim(), location: 'header' }
  return query === undefined || query === null || query === '' ? undefined : { kind, value: query, location: 'query' }
}

function readCookie(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  for (const part of header.split(';')) {
    const equals = part.indexOf('=')
    if (equals !== -1 && part.slice(0, equals).trim() === COOKIE) return part.slice(equals + 1).trim()
  }
  return undefined
}

/** `Set-Cookie` that lets a browser go on without the header. */
export function authCookie(token: string, maxAgeSeconds: number, isSecure: boolean): string {
  const attributes = `HttpOnly; Max-Age=${maxAgeSeconds}; Path=/; SameSite=Lax`
  return `${COOKIE}=${token}; ${attributes}${isSecure ? '; Secure' : ''}`
}
