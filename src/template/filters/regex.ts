import { RE2JS, RE2JSException } from 're2js'
import { MAX_PATTERN_INSTRUCTIONS, patternSize } from '../../pattern-size.ts'
import { textArgument, wholeArgument } from '../arguments.ts'
import { filterError, limitError, TemplateError } from '../error.ts'
import type { Budget } from '../limits.ts'
import { isTrue, Sequence, type Value } from '../values.ts'
import { filter, textFilter, type Filter } from './filter.ts'
import { Cache } from '../cache.ts'
import { textOf } from '../text.ts'

/** Longest pattern, in UTF-16 units. */
const MAX_PATTERN_LENGTH = 4096
/** A match that has run this long is stopped between two finds, whatever the budget of steps says. */
const MAX_MILLISECONDS = 1000

/** By instructions, as these are what takes memory. */
const compiled = new Cache<RE2JS>(200, 256 * 1024)
/** Work of compiling one instruction, in characters of text. */
const COMPILE_WORK = 128

/** Compiles a pattern in Python's notation for an engine whose time grows with the text only. */
function compile(pattern: string, ignoreCase: boolean, endAtNewline: boolean, budget: Budget): RE2JS {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw limitError(`the regular expression is longer than ${MAX_PATTERN_LENGTH} characters`)
  }
  const key = `${ignoreCase ? 'i' : '-'}${endAtNewline ? 'n' : '-'}${pattern}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  try {
    const translated = translate(pattern, endAtNewline)
    const size = patternSize(translated)
    if (size > MAX_PATTERN_INSTRUCTIONS) {
      throw limitError(`the repetitions of the regular expression make more than ${MAX_PATTERN_INSTRUCTIONS} steps`)
    }
    budget.work(size * COMPILE_WORK)
    const expression = RE2JS.compile(translated, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    compiled.set(key, expression, key.length + expression.programSize())
    return expression
  } catch (error) {
    if (error instanceof TemplateError) throw error
    if (!(error instanceof RE2JSException)) throw error
    throw filterError(
      `the regular expression is invalid or uses something that cannot be run in linear time (${reasonOf(error)})`,
    )
  }
}

function reasonOf(error: Error): string {
  return error.message.replace(/^error parsing regexp: /, '').replace(/: `[\s\S]*$/, '')
}

const wordClass = '\\p{L}\\p{N}_'
const spaceClass = '\\t-\\r\\x{1c}-\\x{20}\\x{85}\\p{Z}'

const upTo = /^\{,\d*\}/

/** Rewrites what Python writes differently: Unicode classes, `{,3}`, `\Z`, `\uXXXX`, comments, `$` before a last line end. */
function translate(pattern: string, endAtNewline: boolean): string {
  const multiline = /\(\?[a-zA-Z]*m/.test(pattern)
  let result = ''
  let inClass = false
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern.charAt(at)
    if (character === '\\') {
      const escape = translateEscape(pattern, at, inClass)
      result += escape.text
      at += escape.length - 1
    } else if (inClass) {
      inClass = character !== ']'
      result += character
    } else if (character === '[') {
      inClass = true
      result += character
      // A bracket that comes first, also after ^, is a member of the class.
      if (pattern[at + 1] === '^') result += pattern.charAt((at += 1))
      if (pattern[at + 1] === ']') {
        result += '\\]'
        at += 1
      }
    } else if (character === '{' && upTo.test(pattern.slice(at, at + 8))) {
      result += '{0'
    } else if (character === '$' && endAtNewline && !multiline) {
      result += '(?:\\n?\\z)'
    } else if (pattern.startsWith('(?#', at)) {
      const end = pattern.indexOf(')', at)
      if (end < 0) throw filterError('the regular expression has an unterminated comment')
      at = end
    } else if (pattern.startsWith('(?P=', at)) {
      throw filterError('the regular expression uses a back reference, which cannot be run in linear time')
    } else {
      result += character
    }
  }
  return result
}

function translateEscape(pattern: string, at: number, inClass: boolean): { text: string; length: number } {
  const letter = pattern.charAt(at + 1)
  const classOf = (members: string, negated: boolean): { text: string; length: number } => {
    if (inClass && negated) {
      throw filterError(`the regular expression uses \\${letter} inside [ ], which is not available; use [^ ] instead`)
    }
    return { text: inClass ? members : `[${negated ? '^' : ''}${members}]`, length: 2 }
  }
  switch (letter) {
    case 'w':
    case 'W':
      return classOf(wordClass, letter === 'W')
    case 'd':
    case 'D':
      return classOf('\\p{Nd}', letter === 'D')
    case 's':
    case 'S':
      return classOf(spaceClass, letter === 'S')
    case 'Z':
      return { text: '\\z', length: 2 }
    case 'u': {
      const hex = /^[0-9a-fA-F]{4}/.exec(pattern.slice(at + 2, at + 6))
      return hex === null ? { text: '\\u', length: 2 } : { text: `\\x{${hex[0]}}`, length: 6 }
    }
    case 'b':
      return { text: inClass ? '\\x{08}' : '\\b', length: 2 }
    default:
      if (!inClass && letter >= '1' && letter <= '9') {
        throw filterError('the regular expression uses a back reference, which cannot be run in linear time')
      }
      return { text: pattern.slice(at, at + 2), length: 2 }
  }
}

/** Pays for one search; the engine's work is at most text length times program size. */
function pay(expression: RE2JS, text: string, budget: Budget): void {
  budget.work(text.length * expression.programSize())
}

/** Every match, in order, watching the clock: finding all of them can take time that grows with the square of the text. */
function* findAll(expression: RE2JS, text: string, budget: Budget): Generator<RegExpMatch> {
  pay(expression, text, budget)
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
export const regexFilters: readonly [string, Filter][] = [
  textFilter('regex_match', 'pattern ignorecase?', (text, [pattern, ignoreCase], { budget }) => {
    const expression = compile(textArgument('regex_match', pattern), flag(ignoreCase), true, budget)
    pay(expression, text, budget)
    return expression.matcher(text).lookingAt()
  }),
  textFilter('regex_search', 'pattern ignorecase?', (text, [pattern, ignoreCase], { budget }) => {
    const expression = compile(textArgument('regex_search', pattern), flag(ignoreCase), true, budget)
    pay(expression, text, budget)
    return expression.test(text)
  }),
  textFilter('regex_replace', 'pattern replacement ignorecase?', (text, [pattern, to, ignoreCase], { budget }) =>
    replaceAll(
      text,
      compile(textArgument('regex_replace', pattern), flag(ignoreCase), false, budget),
      textArgument('regex_replace', to),
      budget,
    ),
  ),
  filter('regex_substring', 'pattern result_index? ignorecase?', (value, [pattern, index, ignoreCase], { budget }) => {
    const text = textOf(value, budget)
    const expression = compile(textArgument('regex_substring', pattern), flag(ignoreCase), false, budget)
    const wanted = wholeArgument('regex_substring', index, 0)
    const results = Array.from(findAll(expression, text, budget), found)
    const result = results.at(wanted)
    if (result === undefined) {
      throw filterError(`regex_substring found ${results.length} matches, so there is no result ${wanted}`)
    }
    return result
  }),
]
