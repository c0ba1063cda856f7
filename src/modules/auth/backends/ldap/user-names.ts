/**
 * Which user names an entry of the directory stands for.
 *
 * Directories find `alice` for `ALICE`, for `alice ` and for other spellings that look alike. The name that was given
 * becomes the user of the session, and rights belong to names: each spelling would be another user with the same
 * password. So an entry stands only for the names that it holds character by character.
 */
import { PatternProblem, fillText, type FilterComparison, type FilterPattern } from './filters.ts'

export interface UserNames {
  /** The attributes to ask for. */
  readonly attributes: readonly string[]
  /** @param values of these attributes */
  stand(user: string, values: readonly string[]): boolean
}

/**
 * Reads from the pattern which attributes hold the user name.
 *
 * @throws PatternProblem when the name is not compared as a whole
 */
export function readUserNames({ comparisons }: FilterPattern): UserNames {
  const rules = comparisons.filter(holdsName)
  if (rules.length === 0) throw new PatternProblem('compares {username} with no attribute: use (uid={username})')
  if (rules.some(cutsName)) {
    throw new PatternProblem('lets a wildcard complete {username}, so that one user would have many names')
  }
  return {
    attributes: [...new Set(rules.map(({ attribute }) => attribute))],
    stand: (user, values) => rules.some((rule) => values.some((value) => isSame(rule, user, value))),
  }
}

/** Whether this is a valid user name: directories ignore some blanks and characters. */
export function isPlainName(user: string): boolean {
  return user !== '' && !/^\s|\s$|\s\s|[\p{Cc}\p{Cs}]/u.test(user)
}

const marker = '\0'

/** With a NUL for the name, which no pattern holds. */
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
