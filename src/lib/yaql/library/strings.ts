import {
  characterCount,
  charactersOf,
  indexOfText,
  lastIndexOfText,
  sliceCharacters,
  splitByText,
  splitSpace,
  strip,
  type Budget,
} from '../../template/index.ts'
import { valueError, YaqlError } from '../error.ts'
import type { Runtime } from '../runtime.ts'
import { extension, fn, method, optional, param, rest, type Overload } from '../signature.ts'
import { Any, Bool, Dictionary, Index, Items, orNull, Text } from '../types.ts'
import { entriesOfMapping, listOf, ListValue, type Value } from '../values.ts'

const string = param('string', Text)

/** Pays for reading a text once. */
function reading(text: string, { budget }: { budget: Budget }): string {
  budget.work(text.length)
  return text
}

/** `str(value)` of the language: null, true and false as JSON writes them, everything else as Python does. */
export function textOfValue(value: Value, runtime: Runtime): string {
  return value === null || typeof value === 'boolean' ? String(value) : runtime.text(value)
}

function split(text: string, separator: string | null, limit: number, budget: Budget): string[] {
  budget.work(text.length)
  if (separator === '') throw valueError('empty separator')
  let parts: string[]
  if (separator === null) parts = splitSpace(text, limit)
  else {
    parts = splitByText(text, separator)
    if (limit >= 0 && parts.length > limit + 1) {
      parts = [...parts.slice(0, limit), parts.slice(limit).join(separator)]
    }
  }
  budget.items(parts.length)
  return parts
}

/** As `split`, but from the end: the first part is the one that keeps the rest. */
function splitRight(text: string, separator: string | null, limit: number, budget: Budget): ListValue {
  budget.characters(text.length)
  const turned = separator === null ? null : reversed(separator)
  const parts = split(reversed(text), turned, limit, budget)
  return listOf(parts.map(reversed).toReversed())
}

/** By units: what is reversed twice is whole again. */
const reversed = (text: string): string => text.split('').toReversed().join('')

/** Replaces the first `count` occurrences; all where it is negative. */
function replace(text: string, old: string, by: string, count: number, budget: Budget): string {
  budget.work(text.length)
  if (count === 0) return text
  const parts = old === '' ? ['', ...charactersOf(text), ''] : splitByText(text, old)
  const times = count < 0 ? parts.length - 1 : Math.min(count, parts.length - 1)
  budget.text(text.length + times * Math.max(0, by.length - old.length))
  if (times === parts.length - 1) return parts.join(by)
  return [...parts.slice(0, times), parts.slice(times).join(old)].join(by)
}

/** The part of the text from a position on; both count from the end when negative. */
function substring(text: string, start: number, length: number, runtime: Runtime): string {
  const size = characterCount(reading(text, runtime))
  const from = start < 0 ? start + size : start
  if (from < 0) {
    const [first, last] = [Math.max(0, from + size), from + (length < 0 ? size : length)]
    return sliceCharacters(text, first, last < 0 ? Math.max(0, last + size) : last)
  }
  return sliceCharacters(text, from, from + (length < 0 ? size : length))
}

/** Where a text occurs in a part of another one, in characters, or -1. */
function find(text: string, wanted: string, start: number, length: number, isLast: boolean, runtime: Runtime): number {
  const size = characterCount(reading(text, runtime))
  const from = start < 0 ? Math.max(0, start + size) : start
  const to = Math.min(size, from + (length < 0 ? size - from : length))
  if (from > size || from > to) return -1
  const part = sliceCharacters(text, from, to)
  const found = isLast ? lastIndexOfText(part, wanted) : indexOfText(part, wanted)
  return found < 0 ? -1 : from + characterCount(part.slice(0, found))
}

const searches = (
  [
    ['indexOf', false],
    ['lastIndexOf', true],
  ] as const
).flatMap(([name, isLast]) => [
  method(name, [string, param('sub', Text), optional('start', Index, 0)], ([text, wanted, start], runtime) =>
    find(text, wanted, start, -1, isLast, runtime),
  ),
  method(
    name,
    [string, param('sub', Text), param('start', Index), param('length', Index)],
    ([text, wanted, start, length], runtime) => find(text, wanted, start, length, isLast, runtime),
  ),
])

const chars = optional('chars', orNull(Text), null)

const trimmed = (text: string, characters: string | null, runtime: Runtime, left = true, right = true): string =>
  strip(reading(text, runtime), characters ?? undefined, left, right)

const trims = (
  [
    ['trim', true, true],
    ['trimLeft', true, false],
    ['trimRight', false, true],
  ] as const
).map(([name, left, right]) =>
  method(name, [string, chars], ([text, characters], runtime) => trimmed(text, characters, runtime, left, right)),
)

const digits = '0123456789'
const lower = 'abcdefghijklmnopqrstuvwxyz'
const upper = lower.toUpperCase()
const punctuation = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'
const whitespace = ' \t\n\r\v\f'

/** The sets of characters that `characters(…)` joins. */
const alphabets = new Map([
  ['digits', digits],
  ['hexdigits', `${digits}abcdefABCDEF`],
  ['asciiLowercase', lower],
  ['asciiUppercase', upper],
  ['asciiLetters', lower + upper],
  ['octdigits', '01234567'],
  ['punctuation', punctuation],
  ['printable', digits + lower + upper + punctuation + whitespace],
  ['whitespace', whitespace],
])

/** The parameters of `characters(…)`, some of which the original engine has and cannot use. */
const alphabetNames: readonly string[] =
  'digits hexdigits asciiLowercase asciiUppercase asciiLetters letters octdigits punctuation printable lowercase uppercase whitespace'.split(
    ' ',
  )

function alphabetOf(name: string): string {
  const alphabet = alphabets.get(name)
  if (alphabet === undefined) {
    throw new YaqlError(
      'AttributeError',
      `the characters '${name}' are not defined; use asciiLetters, asciiLowercase or asciiUppercase`,
    )
  }
  return alphabet
}

export const strings: readonly Overload[] = [
  extension('len', [string], ([text], runtime) => characterCount(reading(text, runtime))),
  fn('str', [param('value', Any)], ([value], runtime) => textOfValue(value, runtime)),
  fn('concat', [rest('args', Text)], ([texts], { budget }) => {
    budget.text(texts.reduce((length, text) => length + text.length, 0))
    return texts.join('')
  }),
  method('toUpper', [string], ([text], runtime) => reading(text, runtime).toUpperCase()),
  method('toLower', [string], ([text], runtime) => reading(text, runtime).toLowerCase()),
  method('toCharArray', [string], ([text], { budget }) => {
    budget.characters(text.length)
    const characters = charactersOf(text)
    budget.items(characters.length)
    return [...characters]
  }),
  method(
    'split',
    [string, optional('separator', orNull(Text), null), optional('maxSplits', Index, -1)],
    ([text, separator, limit], { budget }) => listOf(split(text, separator, limit, budget)),
  ),
  method(
    'rightSplit',
    [string, optional('separator', orNull(Text), null), optional('maxSplits', Index, -1)],
    ([text, separator, limit], { budget }) => splitRight(text, separator, limit, budget),
  ),
  method('join', [param('sequence', Items), param('separator', Text)], ([items, separator], runtime) =>
    join(items, separator, runtime),
  ),
  method('join', [param('separator', Text), param('sequence', Items)], ([separator, items], runtime) =>
    join(items, separator, runtime),
  ),
  method(
    'replace',
    [string, param('old', Text), param('new', Text), optional('count', Index, -1)],
    ([text, old, by, count], { budget }) => replace(text, old, by, count, budget),
  ),
  method(
    'replace',
    [string, param('replacements', Dictionary), optional('count', Index, -1)],
    ([text, replacements, count], runtime) => {
      let result = text
      for (const [old, by] of entriesOfMapping(replacements)) {
        result = replace(result, textOfValue(old, runtime), textOfValue(by, runtime), count, runtime.budget)
      }
      return result
    },
  ),
  method(
    'substring',
    [string, param('start', Index), optional('length', Index, -1)],
    ([text, start, length], runtime) => substring(text, start, length, runtime),
  ),
  ...searches,
  method('startsWith', [string, rest('prefixes', Text)], ([text, prefixes]) =>
    prefixes.some((prefix) => text.startsWith(prefix)),
  ),
  method('endsWith', [string, rest('suffixes', Text)], ([text, suffixes]) =>
    suffixes.some((suffix) => text.endsWith(suffix)),
  ),
  ...trims,
  extension('norm', [param('string', orNull(Text)), chars], ([text, characters], runtime) => {
    const result = text === null ? '' : trimmed(text, characters, runtime)
    return result === '' ? null : result
  }),
  extension(
    'isEmpty',
    [param('string', orNull(Text)), optional('trim', Bool, true), chars],
    ([text, isTrimmed, characters], runtime) =>
      text === null || (isTrimmed ? trimmed(text, characters, runtime) : text) === '',
  ),
  fn(
    'characters',
    alphabetNames.map((name) => optional(name, orNull(Bool), false)),
    (wanted) => {
      const names = alphabetNames.filter((_name, index) => wanted[index] === true)
      return [...new Set(charactersOf(names.map(alphabetOf).join('')))]
    },
  ),
]

function join(items: Value, separator: string, runtime: Runtime): string {
  const parts: string[] = []
  let length = 0
  for (const item of runtime.each(items)) {
    const part = textOfValue(item, runtime)
    parts.push(part)
    length += part.length + separator.length
    if (length > runtime.budget.limits.maxTextLength) runtime.budget.text(length)
  }
  runtime.budget.text(length)
  return parts.join(separator)
}
