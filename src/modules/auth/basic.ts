/** Reading `Authorization: Basic …` (contract 01, 1.2). */
import { MAX_PASSWORD_BYTES, isUserName } from '../../core/account-rules.ts'

export interface UserPassword {
  user: string
  password: string
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The user and password, or, as text for the audit log, why there are none. The password may hold colons.
 *
 * @param headers every `Authorization` of the request
 */
export function readBasic(headers: readonly string[] | undefined): UserPassword | string {
  const [header, ...others] = headers ?? []
  // A proxy may look at another one than this server.
  if (others.length > 0) return 'Authorization header given more than once'
  if (header === undefined || header.trim() === '') return 'Authorization header not provided'
  const [scheme = '', encoded, ...more] = header.trim().split(/ +/)
  // A single word is more likely a credential without its scheme than a scheme, and must not be logged.
  if (encoded === undefined) return 'Invalid authorization header'
  if (scheme.toLowerCase() !== 'basic') return `Unsupported authorization type: ${scheme.slice(0, 40)}`
  if (more.length > 0) return 'Invalid authorization header'
  const decoded = decode(encoded)
  const colon = decoded?.indexOf(':') ?? -1
  if (decoded === undefined || colon === -1) return 'Invalid authorization header'
  const user = decoded.slice(0, colon)
  const password = decoded.slice(colon + 1)
  if (user === '' || password === '') return 'Access denied to anonymous user.'
  if (!isUserName(user) || Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return 'Invalid credentials provided'
  // No program makes such a password, and some backends would read only what stands before the NUL.
  if (password.includes('\0')) return 'Invalid credentials provided'
  return { user, password }
}

/** Strict base64 of strict UTF-8; padding may be missing. */
function decode(encoded: string): string | undefined {
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64').replace(/=+$/, '') !== encoded.replace(/={1,2}$/, '')) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}
