/** Rules for user names and passwords, for every backend. */

/** Enough for people, and a limit for the work of a hash. */
export const MAX_USER_CHARACTERS = 256
export const MAX_PASSWORD_BYTES = 1024

/** Control characters and line ends: no name has them, and some backends stop reading at them. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** Whether a login may use this name; the backend decides whether the user exists. */
export function isUserName(text: string): boolean {
  return text !== '' && text.length <= MAX_USER_CHARACTERS && !unprintable.test(text)
}

/** The problem of a new user name, worded to follow `user name`; undefined: none. */
export function problemOfUserName(name: string): string | undefined {
  if (name === '') return 'must not be empty'
  if (name.length > MAX_USER_CHARACTERS) return `must have at most ${MAX_USER_CHARACTERS} characters`
  if (name.includes(':')) return 'must not contain a colon'
  if (unprintable.test(name) || !name.isWellFormed()) return 'must not contain control characters'
  if (name.startsWith('#')) return 'must not start with "#"'
  if (name !== name.trim()) return 'must not start or end with a blank'
  return undefined
}

/** The problem of a new password, worded to follow `password`; undefined: none. */
export function problemOfPassword(password: string): string | undefined {
  if (password === '') return 'must not be empty'
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return `must have at most ${MAX_PASSWORD_BYTES} bytes`
  if (password.includes('\0') || !password.isWellFormed()) return 'must be text without NUL characters'
  return undefined
}
