/**
 * User names of a directory entry.
 *
 * Directories find `alice` also as `ALICE`, `alice ` and other spellings. The given name becomes the user of the
 * session, and permissions belong to names, so each spelling would be another user with the same password. Therefore an
 * entry matches only the names that it contains, character by character.
 */
import { PatternProblem, fillText, type FilterComparison, type FilterPattern } from './filters.ts'

export interface UserNames {
  /** Attributes to request. */
  readonly attributes: readonly string[]
  /** @param values of these attributes */
  stand(user: string, values: readonly string[]): boolean
}

/**
 * Finds the attributes with the user name in a pattern.
 *
 * @throws PatternProblem if the pattern does not compare the whole name
 */
export function readUserNames({ comparisons }: FilterPattern): UserNames {
  const rules = comparisons.filter(holdsName)
  if (rules.length === 0)
    throw new PatternProblem('does not compare {username} with an attribute: use (uid={username})')
  if (rules.some(cutsName)) {
    throw new PatternProblem('has a wildcard next to {username}, so one user would have many names')
  }
  return {
    attributes: [...new Set(rules.map(({ attribute }) => attribute))],
    stand: (user, values) => rules.some((rule) => values.some((value) => isSame(rule, user, value))),
  }
}

/** Whether this is a valid user name. Directories ignore some blanks and characters. */
export function isPlainName(user: string): boolean {
  return user !== '' && !/^\s|\s$|\s\s|[\p{Cc}\p{Cs}]/u.test(user)
}

const marker = '\0'

/** Inserts NUL as the name, which no pattern contains. */
function mark(text: string): string {
  return fillText(text, { username: marker })
}

function holdsName({ initial, any, final }: FilterComparison): boolean {
  return [initial, ...any, final].some((text) => mark(text).includes(marker))
}

function cutsName({ initial, any, final, isWhole }: FilterComparison): boolean {
  if (isWhole) return false
  return (
    mark(initial).endsWith(marker) || mark(final).startsWith(marker) || any.some((text) => mark(text).includes(marker))
  )
}

function isSame({ initial, any, final, isWhole }: FilterComparison, user: string, value: string): boolean {
  const start = fillText(initial, { username: user })
  if (isWhole) return value === start
  const end = fillText(final, { username: user })
  if (value.length < start.length + end.length || !value.startsWith(start) || !value.endsWith(end)) return false
  let middle = value.slice(start.length, value.length - end.length)
  for (const part of any) {
    const at = middle.indexOf(part)
    if (at === -1) return false
    middle = middle.slice(at + part.length)
  }
  return true
}
