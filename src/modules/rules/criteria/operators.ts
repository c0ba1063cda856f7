/**
 * The operators of criteria (contract 05, 5.6). Strict about types. Where the contract is silent, they follow Python.
 *
 * To add one, add an entry to `operators`.
 */
import { parseDateText } from '../../../lib/calendar/index.ts'
import {
  compare,
  contains,
  equals,
  Float,
  isNumeric,
  isList,
  isMapping,
  limitError,
  typeError,
  type Budget,
  compileTemplatePattern,
  toNumber,
  type PatternOptions,
  typeNameOf,
  type Value,
} from '../../../lib/template/index.ts'
import type { OperatorRecord } from '../types.ts'
import { compileWildcard, matchesWildcard } from './wildcard.ts'
import { shown } from '../../../lib/text/index.ts'

/** Inputs of a comparison besides value and pattern. */
export interface Comparison {
  readonly budget: Budget
  /** Microseconds since the epoch. */
  readonly now: number
}

/** Whether a value matches. Throws TemplateError if value and pattern cannot be compared. */
export type OperatorTest = (value: Value, comparison: Comparison) => boolean

export interface Operator {
  /** The last name is the preferred one. */
  readonly names: readonly [string, ...string[]]
  /** Words between value and pattern in a sentence. */
  readonly phrase: string
  /** Help for authors; absent: the phrase is enough. */
  readonly about?: string
  /** Default: any. */
  readonly pattern?: OperatorRecord['pattern']
  /** Also compares with null. Every other operator is false for a null pattern. */
  readonly acceptsNull?: true
  /** Looks for the pattern in the value: an empty text is in every one. */
  readonly isOfParts?: true
  /** Throws TemplateError for an invalid pattern. */
  readonly prepare: (pattern: Value, budget: Budget) => OperatorTest
}

type Quantifier = 'some' | 'every'

/** Compares the items of a list with the criteria in its pattern. */
export const SEARCH = 'search'

/** Conditions of `search`: how many criteria must hold for how many items. */
export const searchConditions: ReadonlyMap<string, { items: Quantifier; criteria: Quantifier; phrase: string }> =
  new Map([
    ['any', { items: 'some', criteria: 'every', phrase: 'has an item for which all of this is true:' }],
    ['all', { items: 'every', criteria: 'every', phrase: 'has only items for which all of this is true:' }],
    ['any2any', { items: 'some', criteria: 'some', phrase: 'has an item for which any of this is true:' }],
    ['all2any', { items: 'every', criteria: 'some', phrase: 'has only items for which any of this is true:' }],
  ])

function comparing(test: (value: Value, pattern: Value, comparison: Comparison) => boolean): Operator['prepare'] {
  return (pattern) => (value, comparison) => test(value, pattern, comparison)
}

function comparingText(test: (value: string, pattern: string) => boolean): Operator['prepare'] {
  return (pattern) => {
    const wanted = textOf(pattern, 'pattern')
    return (value, { budget }) => {
      const text = textOf(value, 'value')
      budget.work(Math.min(text.length, wanted.length))
      return test(text, wanted)
    }
  }
}

/** Compares both sides in lower case. */
function ignoringCase(test: (value: string, pattern: string, budget: Budget) => boolean): Operator['prepare'] {
  return (pattern, preparing) => {
    const wanted = lowerCase(textOf(pattern, 'pattern'), preparing)
    return (value, { budget }) => test(lowerCase(textOf(value, 'value'), budget), wanted, budget)
  }
}

type Comparing = (value: Value, pattern: Value, budget: Budget) => boolean

/** Nothing is less or greater than an object. */
function comparingOrder(test: Comparing): Operator['prepare'] {
  return (pattern) => {
    if (isMapping(pattern)) {
      throw typeError(`the pattern must be a number or a string, not '${typeNameOf(pattern)}'`)
    }
    return (value, { budget }) => test(value, pattern, budget)
  }
}

function comparingIn(test: Comparing): Operator['prepare'] {
  return (pattern) => {
    if (typeof pattern !== 'string' && !isList(pattern) && !isMapping(pattern)) {
      throw typeError(`the pattern must be a list, a string or an object, not '${typeNameOf(pattern)}'`)
    }
    return (value, { budget }) => test(value, pattern, budget)
  }
}

function textOf(value: Value, what: 'value' | 'pattern'): string {
  if (typeof value === 'string') return value
  throw typeError(`the ${what} must be a string, not '${typeNameOf(value)}'`)
}

function lowerCase(text: string, budget: Budget): string {
  budget.work(text.length)
  return text.toLowerCase()
}

/** Work of one step of the regular expression engine, in characters of copied text. */
const MATCH_WORK = 2

function matching(options: PatternOptions): Operator['prepare'] {
  return (pattern, preparing) => {
    const written = textOf(pattern, 'pattern')
    compileTemplatePattern(written, options, preparing)
    return (value, { budget }) => {
      const text = textOf(value, 'value')
      // Not cached here: the compiled form can be large, and `compileTemplatePattern` has its own cache.
      const expression = compileTemplatePattern(written, options, budget)
      const work = expression.programSize() * MATCH_WORK
      const maxLength = Math.floor(budget.limits.maxWork / work)
      if (text.length > maxLength) {
        throw limitError(
          `the value has ${text.length} characters; svc runs this regular expression on at most ${maxLength}`,
        )
      }
      budget.work(text.length * work)
      return expression.test(text)
    }
  }
}

function comparingAge(test: (ageSeconds: number, seconds: number) => boolean): Operator['prepare'] {
  return (pattern) => {
    const seconds = secondsOf(pattern)
    return (value, { now }) => test((now - dateOf(value)) / 1_000_000, seconds)
  }
}

const number = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i
const MAX_NUMBER_LENGTH = 100

function secondsOf(pattern: Value): number {
  if (isNumeric(pattern) && typeof pattern !== 'boolean') return toNumber(pattern)
  if (typeof pattern === 'string' && pattern.length <= MAX_NUMBER_LENGTH && number.test(pattern)) return Number(pattern)
  throw typeError(`the pattern must be a number of seconds, or a string with one, not '${typeNameOf(pattern)}'`)
}

function dateOf(value: Value): number {
  if (typeof value !== 'string' && (!isNumeric(value) || typeof value === 'boolean')) {
    throw typeError(`the value must be a date string, not '${typeNameOf(value)}'`)
  }
  const text = String(value instanceof Float ? value.value : value)
  const quoted = typeof value === 'string' ? `"${shown(value)}"` : text
  const micros = parseDateText(text)
  if (micros !== undefined) return micros
  const isBare = typeof value !== 'string' || (value.length <= MAX_NUMBER_LENGTH && number.test(value))
  throw typeError(
    isBare
      ? `the value ${quoted} is not a date: svc reads a number as a date such as 20240131, not as seconds`
      : `the value ${quoted} is not a date in a supported format, such as 2024-01-31T10:30:00Z`,
  )
}

export const operators: readonly Operator[] = [
  {
    names: ['eq', 'equals'],
    phrase: 'is',
    about: 'Types must be equal: 1 is not "1".',
    prepare: comparing((value, pattern, { budget }) => equals(value, pattern, budget)),
  },
  {
    names: ['neq', 'nequals'],
    phrase: 'is not',
    about: 'Also true if the value is missing.',
    acceptsNull: true,
    prepare: comparing((value, pattern, { budget }) => !equals(value, pattern, budget)),
  },
  {
    names: ['ieq', 'iequals'],
    phrase: 'is (ignoring case)',
    pattern: 'text',
    prepare: ignoringCase((value, pattern) => value === pattern),
  },
  {
    names: ['contains'],
    phrase: 'contains',
    isOfParts: true,
    about: 'A substring of a string, an item of a list, or a property name of an object.',
    prepare: comparing((value, pattern, { budget }) => contains(value, pattern, budget)),
  },
  {
    names: ['ncontains'],
    phrase: 'does not contain',
    isOfParts: true,
    about: 'A substring of a string, an item of a list, or a property name of an object.',
    prepare: comparing((value, pattern, { budget }) => !contains(value, pattern, budget)),
  },
  {
    names: ['icontains'],
    phrase: 'contains (ignoring case)',
    isOfParts: true,
    pattern: 'text',
    prepare: ignoringCase((value, pattern, budget) => contains(value, pattern, budget)),
  },
  {
    names: ['incontains'],
    phrase: 'does not contain (ignoring case)',
    isOfParts: true,
    pattern: 'text',
    prepare: ignoringCase((value, pattern, budget) => !contains(value, pattern, budget)),
  },
  {
    names: ['startswith'],
    phrase: 'begins with',
    isOfParts: true,
    pattern: 'text',
    prepare: comparingText((value, pattern) => value.startsWith(pattern)),
  },
  {
    names: ['istartswith'],
    phrase: 'begins with (ignoring case)',
    isOfParts: true,
    pattern: 'text',
    prepare: ignoringCase((value, pattern) => value.startsWith(pattern)),
  },
  {
    names: ['endswith'],
    phrase: 'ends with',
    isOfParts: true,
    pattern: 'text',
    prepare: comparingText((value, pattern) => value.endsWith(pattern)),
  },
  {
    names: ['iendswith'],
    phrase: 'ends with (ignoring case)',
    isOfParts: true,
    pattern: 'text',
    prepare: ignoringCase((value, pattern) => value.endsWith(pattern)),
  },
  {
    names: ['lt', 'lessthan'],
    phrase: 'is less than',
    about: 'Both must be numbers, or both strings.',
    prepare: comparingOrder((value, pattern, budget) => compare(value, pattern, '<', budget) < 0),
  },
  {
    names: ['gt', 'greaterthan'],
    phrase: 'is greater than',
    about: 'Both must be numbers, or both strings.',
    prepare: comparingOrder((value, pattern, budget) => compare(value, pattern, '>', budget) > 0),
  },
  {
    names: ['td_lt', 'timediff_lt'],
    phrase: 'is younger than (seconds)',
    about: 'The value is a date string, in UTC unless it has a time zone.',
    pattern: 'seconds',
    prepare: comparingAge((age, seconds) => age < seconds),
  },
  {
    names: ['td_gt', 'timediff_gt'],
    phrase: 'is older than (seconds)',
    about: 'The value is a date string, in UTC unless it has a time zone.',
    pattern: 'seconds',
    prepare: comparingAge((age, seconds) => age > seconds),
  },
  { names: ['exists'], phrase: 'exists', pattern: 'none', acceptsNull: true, prepare: comparing(isGiven) },
  {
    names: ['nexists'],
    phrase: 'does not exist',
    pattern: 'none',
    acceptsNull: true,
    prepare: comparing((value) => !isGiven(value)),
  },
  {
    names: ['in', 'inside'],
    phrase: 'is in',
    about: 'In a list, a string, or the property names of an object.',
    prepare: comparingIn((value, pattern, budget) => contains(pattern, value, budget)),
  },
  {
    names: ['nin', 'ninside'],
    phrase: 'is not in',
    about: 'In a list, a string, or the property names of an object.',
    prepare: comparingIn((value, pattern, budget) => !contains(pattern, value, budget)),
  },
  {
    names: ['matchwildcard'],
    phrase: 'matches the wildcard',
    about: 'The whole string: * matches any characters, ? matches one, [abc] matches one of these.',
    pattern: 'text',
    prepare: (pattern) => {
      const wildcard = compileWildcard(textOf(pattern, 'pattern'))
      return (value, { budget }) => matchesWildcard(textOf(value, 'value'), wildcard, budget)
    },
  },
  {
    names: ['regex'],
    phrase: 'matches',
    isOfParts: true,
    about: 'A regular expression that matches anywhere in the string.',
    pattern: 'text',
    prepare: matching({}),
  },
  {
    names: ['iregex'],
    phrase: 'matches (ignoring case)',
    isOfParts: true,
    about: 'A regular expression that matches anywhere in the string.',
    pattern: 'text',
    prepare: matching({ ignoreCase: true }),
  },
  {
    names: ['matchregex'],
    phrase: 'matches from its beginning',
    isOfParts: true,
    about: 'Deprecated: use regex with ^ at the start.',
    pattern: 'text',
    prepare: matching({ dotAll: true, fromStart: true }),
  },
]

function isGiven(value: Value): boolean {
  return value !== null
}

const byName: ReadonlyMap<string, Operator> = new Map(
  operators.flatMap((operator) => operator.names.map((name) => [name, operator] as const)),
)

/** Every valid operator name, including aliases. */
export const operatorNames: readonly string[] = [...byName.keys(), SEARCH]

export function findOperator(name: string): Operator | undefined {
  return byName.get(name)
}

/** Operators for authors, in display order. */
export const operatorRecords: readonly OperatorRecord[] = [
  ...operators.map(({ names, phrase, about = '', pattern = 'any' }): OperatorRecord => {
    const name = names.at(-1) ?? ''
    return { name, aliases: names.filter((other) => other !== name), phrase, description: about, pattern }
  }),
  {
    name: SEARCH,
    aliases: [],
    phrase: 'has items that match',
    description: 'Compares the items of a list with the criteria in the pattern. Their keys start with item.',
    pattern: 'criteria',
    conditions: [...searchConditions].map(([name, { phrase }]) => ({ name, phrase })),
  },
]
