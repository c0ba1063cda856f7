/** Regular expressions in schemas: linear time, bounded size. */
import { RE2JS } from 're2js'
import { Lru } from '../cache/index.ts'
import { shown } from '../text/index.ts'
import { MAX_PATTERN_INSTRUCTIONS, patternSize } from './pattern-size.ts'
import { isObject, type SchemaProblem } from './types.ts'

const MAX_PATTERN_CHARS = 2_000
const MAX_MATCHED_CHARS = 65_536
/** Characters times instructions: about half a second in the worst measured case. */
const MAX_MATCH_STEPS = 20_000_000

/**
 * The same for all texts of one value. Most patterns take a nanosecond per step on short texts, the worst ones twenty times
 * as long.
 */
const MAX_STEPS_TOGETHER = 20_000_000

export const MATCHES_TOO_LONG = `matching its texts takes more than ${MAX_STEPS_TOGETHER} steps: characters times instructions of their regular expressions. Shorten the lists or simplify the expressions.`

/** Of the value that `withinMatchLimit` checks. */
let stepsLeft = Infinity

/** Checks one value. @returns `isExhausted`: the result is not to be trusted, because not all texts were matched */
export function withinMatchLimit<T>(check: () => T): { result: T; isExhausted: boolean } {
  stepsLeft = MAX_STEPS_TOGETHER
  try {
    const result = check()
    return { result, isExhausted: stepsLeft < 0 }
  } finally {
    stepsLeft = Infinity
  }
}

interface Matcher {
  /** Longer texts do not match. */
  readonly maxChars: number
  /** Why nothing matches. */
  readonly problem?: string
  test(text: string): boolean
  toString(): string
}

const patterns = new Lru<string, Matcher>(1_000)

/**
 * Compiles a regular expression that takes linear time for every text (RE2 syntax: no look-around, no back-references).
 * A text too long for the step limit does not match.
 *
 * @throws Error that names the pattern and the unsupported part
 */
export function compilePattern(pattern: string): Matcher {
  const known = patterns.get(pattern)
  if (known !== undefined) return known
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new Error(`the pattern '${shown(pattern)}' is longer than ${MAX_PATTERN_CHARS} characters`)
  }
  let engine: RE2JS
  try {
    const translated = RE2JS.translateRegExp(pattern)
    if (patternSize(translated) > MAX_PATTERN_INSTRUCTIONS) throw new Error('its repetitions are too large')
    engine = RE2JS.compile(translated)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace('error parsing regexp: ', '') : String(error)
    throw new Error(`the pattern '${shown(pattern)}' is invalid or unsupported: ${shown(why)}`, { cause: error })
  }
  const size = Math.max(1, engine.programSize())
  const maxChars = Math.min(MAX_MATCHED_CHARS, Math.floor(MAX_MATCH_STEPS / size))
  const matcher: Matcher = {
    maxChars,
    test(text) {
      if (text.length > maxChars) return false
      stepsLeft -= text.length * size
      return stepsLeft >= 0 && engine.test(text)
    },
    toString: () => pattern,
  }
  patterns.set(pattern, matcher)
  return matcher
}

/** As `compilePattern`, but an expression that cannot be used matches nothing. */
export function compileAnyPattern(pattern: string): Matcher {
  try {
    return compilePattern(pattern)
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return { maxChars: Infinity, problem, test: () => false, toString: () => pattern }
  }
}

/** The first expression in a schema that cannot be used. */
export function unusablePatternIn(schema: unknown, path: readonly string[] = []): SchemaProblem | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  for (const [name, inner] of Object.entries(schema)) {
    if (name === 'default' || name === 'enum') continue
    const given: unknown[] =
      name === 'pattern' ? [inner] : name === 'patternProperties' && isObject(inner) ? Object.keys(inner) : []
    const problem = given
      .map((pattern) => (typeof pattern === 'string' ? compileAnyPattern(pattern).problem : undefined))
      .find((why) => why !== undefined)
    if (problem !== undefined) return { path: [...path, name], message: problem }
    const within = unusablePatternIn(inner, [...path, name])
    if (within !== undefined) return within
  }
  return undefined
}
