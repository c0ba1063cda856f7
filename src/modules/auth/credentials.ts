/** What a request brings along to prove who is calling (contract 01, 1.8), and the cookie that answers (00, 0.4). */
import type { IncomingMessage } from 'node:http'
import { adviceOnCredentials } from '../../http/index.ts'
import { apiKeyIn } from '../../core/api-key-form.ts'
import { credentialsMissing, twoCredentials } from '../../core/errors.ts'

export interface Credential {
  kind: 'token' | 'api-key'
  value: string
  location: 'header' | 'query' | 'cookie'
}

const COOKIE = 'auth-token'

/** Of the request: its headers, and its address as the client sent it. */
export type CredentialSource = Pick<IncomingMessage, 'headers'> & { originalUrl: string }

/**
 * Exactly one kind may be there; header before query, then an API key in `Authorization`, and the cookie only counts
 * alone. An empty value is none. Several
 * different values in the query, or in cookies, which a page of a sibling domain can add, are nobody's to choose from.
 *
 * @throws CREDENTIALS_MISSING, TWO_CREDENTIALS
 */
export function readCredential({ headers, originalUrl }: CredentialSource): Credential {
  const query = queryOf(originalUrl)
  const token = fromHeaderOrQuery('token', headers['x-auth-token'], query?.getAll('x-auth-token'))
  const key = fromHeaderOrQuery('api-key', headers['svc-api-key'], query?.getAll('svc-api-key'))
  if (token !== undefined && key !== undefined) throw twoCredentials()
  const credential = token ?? key
  if (credential !== undefined) return credential
  const authorized = apiKeyIn(headers.authorization)
  if (authorized !== undefined) return { kind: 'api-key', value: authorized, location: 'header' }
  const cookie = onlyValue(readCookies(headers.cookie))
  if (cookie === undefined) throw credentialsMissing(adviceOnCredentials({ headers, originalUrl }))
  return { kind: 'token', value: cookie, location: 'cookie' }
}

function queryOf(url: string): URLSearchParams | undefined {
  const mark = url.indexOf('?')
  return mark === -1 ? undefined : new URLSearchParams(url.slice(mark + 1))
}

function fromHeaderOrQuery(
  kind: Credential['kind'],
  header: string | string[] | undefined,
  query: readonly string[] = [],
): Credential | undefined {
  // A header given twice is one value with a comma here: no token and no key.
  const text = Array.isArray(header) ? header.join(', ') : header
  if (text !== undefined && text.trim() !== '') return { kind, value: text.trim(), location: 'header' }
  const value = onlyValue(query)
  return value === undefined ? undefined : { kind, value, location: 'query' }
}

/** @throws TWO_CREDENTIALS */
function onlyValue(given: readonly string[]): string | undefined {
  const [value, ...others] = new Set(given.filter((text) => text !== ''))
  if (others.length > 0) throw twoCredentials()
  return value
}

function readCookies(header: string | undefined): string[] {
  const values: string[] = []
  for (const part of header?.split(';') ?? []) {
    const equals = part.indexOf('=')
    if (equals !== -1 && part.slice(0, equals).trim() === COOKIE) values.push(part.slice(equals + 1).trim())
  }
  return values
}

/** `api.auth_cookie_secure` and `api.auth_cookie_same_site`. */
export interface CookieSettings {
  secure: boolean
  sameSite: 'strict' | 'lax' | 'none' | 'unset'
}

/** How the client of a request is connected. */
export interface CookieClient {
  /** Over TLS, to us or to a trusted proxy. */
  isSecure: boolean
  /** From this machine itself. */
  isLocal: boolean
}

const sameSiteAttributes = { strict: '; SameSite=Strict', lax: '; SameSite=Lax', none: '; SameSite=None', unset: '' }

/**
 * `Set-Cookie` that lets a browser go on without the header. A browser discards a `Secure` cookie that came over plain
 * HTTP: right for a network, where the token would travel readable, but on one machine nobody listens in between.
 */
export function authCookie(
  token: string,
  maxAgeSeconds: number,
  { secure, sameSite }: CookieSettings,
  { isSecure, isLocal }: CookieClient,
): string {
  const attributes = `HttpOnly; Max-Age=${maxAgeSeconds}; Path=/${sameSiteAttributes[sameSite]}`
  const isMarked = secure && (isSecure || !isLocal || sameSite === 'none')
  return `${COOKIE}=${token}; ${attributes}${isMarked ? '; Secure' : ''}`
}
