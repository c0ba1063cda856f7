/** What names and passwords of users may look like, wherever they come from. */

/** Generous for people, and a bound for what a hash has to chew. */
export const MAX_USER_CHARACTERS = 256
export const MAX_PASSWORD_BYTES = 1024

/** Control characters and line ends, which no name has and of which some backends would read only what is before them. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** Whether somebody who logs in can have this name; the backend decides whether somebody has. */
export function isUserName(text: string): boolean {
  return text !== '' && text.length <= MAX_USER_CHARACTERS && !unprintable.test(text)
}

/** What is wrong with a name that is to be written; undefined: nothing. It fits after `user name`. */
export function problemOfUserName(name: string): string | undefined {
  if (name === '') return 'must not be empty'
  if (name.length > MAX_USER_CHARACTERS) return `must have at most ${MAX_USER_CHARACTERS} characters`
  if (name.includes(':')) return 'must not contain a colon'
  if (unprintable.test(name) || !name.isWellFormed()) return 'must not contain control characters'
  if (name.startsWith('#')) return 'must not start with "#"'
  if (name !== name.trim()) return 'must not start or end with a blank'
  return undefined
}

/** What is wrong with a password that is to be set; undefined: nothing. It fits after `password`. */
export function problemOfPassword(password: string): string | undefined {
  if (password === '') return 'must not be empty'
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) return `must have at most ${MAX_PASSWORD_BYTES} bytes`
  if (password.includes('\0') || !password.isWellFormed()) return 'must be text without NUL characters'
  return undefined
}
