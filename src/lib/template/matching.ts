/** What regular expressions find, and what replaces it. */
import type { RE2JS } from 're2js'
import { filterError, limitError } from './error.ts'
import type { Budget } from './limits.ts'
import { paySearch } from './pattern.ts'

/** A match that has run this long is stopped between two finds, whatever the budget of steps says. */
const MAX_MILLISECONDS = 1000

/** Every match, in order, watching the clock: finding all of them can take time that grows with the square of the text. */
export function* findAll(expression: RE2JS, text: string, budget: Budget): Generator<RegExpMatch> {
  paySearch(expression, text, budget)
  const matcher = expression.matcher(text)
  const groups = expression.groupCount()
  const start = performance.now()
  while (matcher.find()) {
    budget.step()
    if (performance.now() - start > MAX_MILLISECONDS) {
      throw limitError(`the regular expression took longer than ${MAX_MILLISECONDS} ms`)
    }
    yield {
      start: matcher.start(),
      end: matcher.end(),
      groups: Array.from({ length: groups + 1 }, (_, index) => matcher.group(index)),
      spans: Array.from({ length: groups + 1 }, (_, index) => [matcher.start(index), matcher.end(index)] as const),
    }
  }
}

export interface RegExpMatch {
  start: number
  end: number
  /** the whole match, then its groups */
  groups: (string | null)[]
  /** start and end of each of them; -1 where a group took no part */
  spans: (readonly [start: number, end: number])[]
}

type ReplacementPart = string | number

/** Splits a replacement in Python's notation (`\1`, `\g<name>`, `\n`) into text and group numbers. */
function parseReplacement(replacement: string, expression: RE2JS): ReplacementPart[] {
  const parts: ReplacementPart[] = []
  const names = expression.namedGroups()
  const group = (number: number): number => {
    if (number > expression.groupCount())
      throw filterError(`the replacement names group ${number}, which does not exist`)
    return number
  }
  let at = 0
  for (const match of replacement.matchAll(/\\(?:g<([^>]{1,100})>|([0-9]{1,2})|([\s\S]))/g)) {
    const [whole, name, number, other] = match
    parts.push(replacement.slice(at, match.index))
    at = match.index + whole.length
    if (number !== undefined) parts.push(group(Number(number)))
    else if (name !== undefined && /^\d+$/.test(name)) parts.push(group(Number(name)))
    else if (name !== undefined) {
      const known = Object.hasOwn(names, name) ? names[name] : undefined
      if (known === undefined) throw filterError('the replacement names a group that does not exist')
      parts.push(known)
    } else
      parts.push(other === 'n' ? '\n' : other === 't' ? '\t' : other === 'r' ? '\r' : other === '\\' ? '\\' : whole)
  }
  parts.push(replacement.slice(at))
  return parts
}

/** The text with its matches replaced, as Python's `sub` does; `replacement` may name groups. */
export function replaceAll(
  text: string,
  expression: RE2JS,
  replacement: string,
  budget: Budget,
  count = Infinity,
): string {
  const template = parseReplacement(replacement, expression)
  const expand = ({ groups }: RegExpMatch): string =>
    template.map((part) => (typeof part === 'string' ? part : (groups[part] ?? ''))).join('')
  return replaceMatches(text, expression, expand, budget, count)
}

/** The text with its first `count` matches replaced by what a function makes of them. */
export function replaceMatches(
  text: string,
  expression: RE2JS,
  replace: (match: RegExpMatch) => string,
  budget: Budget,
  count = Infinity,
): string {
  const parts: string[] = []
  let at = 0
  let left = count
  for (const match of findAll(expression, text, budget)) {
    if (left <= 0) break
    left -= 1
    const piece = replace(match)
    budget.text(piece.length)
    parts.push(text.slice(at, match.start), piece)
    at = match.end
  }
  parts.push(text.slice(at))
  return parts.join('')
}
