/** The form of API keys that svc makes, by which they are recognised in `Authorization`. */

/** Lets scanners for secrets recognise a key that got into a file. */
export const API_KEY_PREFIX = 'svc_'
/** Random bytes of a key. */
export const API_KEY_BYTES = 32

/** 32 bytes in base64url are 43 characters. */
const form = /^svc_[\w-]{43}$/

/**
 * The API key in `Authorization: Bearer <key>`, or `Basic` with a key as the password, for senders that know no other
 * header. Undefined for everything else: passwords, and tokens of other systems that a proxy passes on.
 */
export function apiKeyIn(authorization: string | undefined): string | undefined {
  const [, scheme = '', given = ''] = /^(bearer|basic) +(\S{1,2000})$/i.exec(authorization?.trim() ?? '') ?? []
  if (scheme.toLowerCase() === 'bearer') return form.test(given) ? given : undefined
  const pair = Buffer.from(given, 'base64').toString('latin1')
  const password = pair.slice(pair.indexOf(':') + 1)
  return form.test(password) ? password : undefined
}
