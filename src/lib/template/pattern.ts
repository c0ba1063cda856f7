/** Regular expressions in Python's notation, in linear time. */
import { RE2JS, RE2JSException } from 're2js'
import { MAX_PATTERN_INSTRUCTIONS, patternSize } from '../schema/index.ts'
import { Lru } from '../cache/index.ts'
import { filterError, limitError, TemplateError } from './error.ts'
import type { Budget } from './limits.ts'

/** Longest pattern, in UTF-16 units. */
const MAX_PATTERN_LENGTH = 4096
/** Limited by instructions, which need the memory. */
const compiled = new Lru<string, RE2JS>(5_000, 256 * 1024)
/** Work of compiling one instruction, in characters of text. */
const COMPILE_WORK = 128

export interface PatternOptions {
  ignoreCase?: boolean
  /** The dot matches line ends too. */
  dotAll?: boolean
  /** `^` and `$` match at every line. */
  multiLine?: boolean
  /** A match must start at the start of the text. */
  fromStart?: boolean
  /** `$` is the very end, not also the place before a last line end. */
  exactEnd?: boolean
}

/**
 * Compiles a regular expression in Python's notation for a linear-time engine. Caches recent ones.
 *
 * @throws TemplateError FILTER if it is invalid or cannot run in linear time, LIMIT if it is too large
 */
export function compileTemplatePattern(
  pattern: string,
  { ignoreCase = false, dotAll = false, multiLine = false, fromStart = false, exactEnd = false }: PatternOptions,
  budget: Budget,
): RE2JS {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw limitError(`the regular expression is longer than ${MAX_PATTERN_LENGTH} characters`)
  }
  const key = `${ignoreCase ? 'i' : '-'}${dotAll ? 's' : '-'}${multiLine ? 'm' : '-'}${fromStart ? '^' : '-'}${exactEnd ? '$' : '-'}${pattern}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  try {
    const translated = translate(pattern, !exactEnd && !multiLine)
    const size = patternSize(translated)
    if (size > MAX_PATTERN_INSTRUCTIONS) {
      throw limitError(`the repetitions of the regular expression make more than ${MAX_PATTERN_INSTRUCTIONS} steps`)
    }
    budget.work(size * COMPILE_WORK)
    const flags =
      (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0) | (dotAll ? RE2JS.DOTALL : 0) | (multiLine ? RE2JS.MULTILINE : 0)
    // Within the group, a pattern with an extra closing bracket could become valid.
    if (fromStart) RE2JS.compile(translated, flags)
    const expression = RE2JS.compile(fromStart ? `\\A(?:${translated})` : translated, flags)
    compiled.set(key, expression, key.length + expression.programSize())
    return expression
  } catch (error) {
    if (error instanceof TemplateError) throw error
    if (!(error instanceof RE2JSException)) throw error
    throw filterError(
      `the regular expression is invalid or uses something that cannot be run in linear time (${reasonOf(error)})`,
      'error',
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
export function paySearch(expression: RE2JS, text: string, budget: Budget): void {
  budget.work(text.length * expression.programSize())
}
