import type { RE2JS } from 're2js'
import { textArgument, wholeArgument } from '../arguments.ts'
import { filterError, limitError } from '../error.ts'
import type { Budget } from '../limits.ts'
import { compileTemplatePattern, paySearch } from '../pattern.ts'
import { isTrue, Sequence, type Value } from '../values.ts'
import { filter, stringFilter, type TemplateFilter } from './filter.ts'
import { textOf } from '../text.ts'

/** A match that has run this long is stopped between two finds, whatever the budget of steps says. */
const MAX_MILLISECONDS = 1000

/** Every match, in order, watching the clock: finding all of them can take time that grows with the square of the text. */
function* findAll(expression: RE2JS, text: string, budget: Budget): Generator<RegExpMatch> {
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
    }
  }
}

interface RegExpMatch {
  start: number
  end: number
  /** the whole match, then its groups */
  groups: (string | null)[]
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

function replaceAll(text: string, expression: RE2JS, replacement: string, budget: Budget): string {
  const template = parseReplacement(replacement, expression)
  const parts: string[] = []
  let at = 0
  for (const { start, end, groups } of findAll(expression, text, budget)) {
    const piece = template.map((part) => (typeof part === 'string' ? part : (groups[part] ?? ''))).join('')
    budget.text(piece.length)
    parts.push(text.slice(at, start), piece)
    at = end
  }
  parts.push(text.slice(at))
  return parts.join('')
}

/** One result of Python's `findall`: the match, its only group, or a tuple of its groups. */
function found({ groups }: RegExpMatch): Value {
  const [whole, ...captured] = groups.map((group) => group ?? '')
  if (captured.length > 1) return new Sequence(captured)
  return captured[0] ?? whole ?? ''
}

const flag = (value: Value | undefined): boolean => value !== undefined && isTrue(value)

/** Filters that search text. */
export const regexFilters: readonly [string, TemplateFilter][] = [
  stringFilter('regex_match', 'pattern ignorecase?', (text, [pattern, ignoreCase], { budget }) => {
    const expression = compileTemplatePattern(
      textArgument('regex_match', pattern),
      { ignoreCase: flag(ignoreCase) },
      budget,
    )
    paySearch(expression, text, budget)
    return expression.matcher(text).lookingAt()
  }),
  stringFilter('regex_search', 'pattern ignorecase?', (text, [pattern, ignoreCase], { budget }) => {
    const expression = compileTemplatePattern(
      textArgument('regex_search', pattern),
      { ignoreCase: flag(ignoreCase) },
      budget,
    )
    paySearch(expression, text, budget)
    return expression.test(text)
  }),
  stringFilter('regex_replace', 'pattern replacement ignorecase?', (text, [pattern, to, ignoreCase], { budget }) =>
    replaceAll(
      text,
      compileTemplatePattern(
        textArgument('regex_replace', pattern),
        { ignoreCase: flag(ignoreCase), exactEnd: true },
        budget,
      ),
      textArgument('regex_replace', to),
      budget,
    ),
  ),
  filter('regex_substring', 'pattern result_index? ignorecase?', (value, [pattern, index, ignoreCase], { budget }) => {
    const text = textOf(value, budget)
    const expression = compileTemplatePattern(
      textArgument('regex_substring', pattern),
      { ignoreCase: flag(ignoreCase), exactEnd: true },
      budget,
    )
    const wanted = wholeArgument('regex_substring', index, 0)
    const results = Array.from(findAll(expression, text, budget), found)
    const result = results.at(wanted)
    if (result === undefined) {
      throw filterError(`regex_substring found ${results.length} matches, so there is no result ${wanted}`)
    }
    return result
  }),
]
