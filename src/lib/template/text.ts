import { floatText } from '../json/index.ts'
import type { Budget } from './limits.ts'
import { mappingEntries } from './mapping.ts'
import {
  adopt,
  Callable,
  Float,
  isIntegerValue,
  isList,
  LazyNamespace,
  Members,
  RangeValue,
  Sequence,
  Undefined,
  type Value,
} from './values.ts'
import { typeError } from './error.ts'

/** `str(value)` of Python: what `{{ value }}` prints inside text. */
export function textOf(value: Value, budget: Budget): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return numberText(value)
  if (value instanceof Undefined && value.lenient && !value.isRequired) return ''
  return pythonRepr(value, budget)
}

/** `repr(value)` of Python. */
export function pythonRepr(value: Value, budget: Budget): string {
  const parts: string[] = []
  write(value, parts, budget, 0)
  const text = parts.join('')
  budget.text(text.length)
  return text
}

function write(value: Value, parts: string[], budget: Budget, depth: number): void {
  budget.visit()
  if (value === null) {
    parts.push('None')
    return
  }
  switch (typeof value) {
    case 'string':
      budget.work(value.length)
      parts.push(quoteText(value))
      return
    case 'boolean':
      parts.push(value ? 'True' : 'False')
      return
    case 'number':
      parts.push(numberText(value))
      return
    case 'bigint':
      parts.push(String(value))
      return
    default:
  }
  budget.depth(depth)
  if (value instanceof Float) parts.push(floatText(value.value))
  else if (value instanceof Undefined) value.raise()
  else if (value instanceof Sequence) writeSequence(value, parts, budget, depth)
  else if (value instanceof RangeValue) parts.push(rangeText(value))
  else if (isList(value)) writeItems('[', value, ']', parts, budget, depth)
  else if (value instanceof Callable) parts.push(`<function ${value.name}>`)
  else if (value instanceof Members) parts.push(`<${value.typeName}>`)
  else if (value instanceof LazyNamespace) throw typeError('a namespace cannot be printed as a whole; name a key of it')
  else {
    parts.push('{')
    let separator = ''
    for (const [key, item] of mappingEntries(value, (count) => budget.foresee(count))) {
      parts.push(separator)
      write(key, parts, budget, depth + 1)
      parts.push(': ')
      write(item, parts, budget, depth + 1)
      separator = ', '
    }
    parts.push('}')
  }
}

function writeSequence(value: Sequence, parts: string[], budget: Budget, depth: number): void {
  if (value.typeName !== 'tuple') {
    writeItems(`${value.typeName}([`, value.items, '])', parts, budget, depth)
    return
  }
  writeItems('(', value.items, value.items.length === 1 ? ',)' : ')', parts, budget, depth)
}

function writeItems(
  open: string,
  items: readonly unknown[],
  close: string,
  parts: string[],
  budget: Budget,
  depth: number,
): void {
  parts.push(open)
  for (let index = 0; index < items.length; index += 1) {
    if (index > 0) parts.push(', ')
    write(adopt(items[index]), parts, budget, depth + 1)
  }
  parts.push(close)
}

function rangeText({ start, stop, step }: RangeValue): string {
  return step === 1 ? `range(${start}, ${stop})` : `range(${start}, ${stop}, ${step})`
}

function numberText(value: number): string {
  return isIntegerValue(value) ? integerText(value) : floatText(value)
}

function integerText(value: number | bigint): string {
  return Object.is(value, -0) ? '0' : String(value)
}

const unprintable = /[\p{C}\p{Z}\\']/u
const eachUnprintable = /[\p{C}\p{Z}\\']/gu
const namedEscapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\', ' ': ' ' }

/** A string as Python writes it: single quotes unless only they occur inside, unprintable characters escaped. */
export function quoteText(text: string): string {
  if (!unprintable.test(text)) return `'${text}'`
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  const body = text.replace(eachUnprintable, (character) => {
    if (character === "'") return quote === "'" ? "\\'" : "'"
    const named = namedEscapes[character]
    if (named !== undefined) return named
    return escapeCharacter(character)
  })
  return quote + body + quote
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, '0')}`
  return `\\U${code.toString(16).padStart(8, '0')}`
}

// oxlint-disable-next-line no-control-regex
const beyondAscii = /[^\x00-\x7f]/gu

/** `ascii(value)` of Python, from its `repr`. */
export function asciiText(represented: string): string {
  return represented.replace(beyondAscii, escapeCharacter)
}

const surrogates = /[\ud800-\udfff]/

/** The characters of a text; one outside the basic plane counts once, as in Python. */
export function charactersOf(text: string): readonly string[] {
  return surrogates.test(text) ? Array.from(text) : text.split('')
}

/** The character at a position, counted from the end when negative. */
export function characterAt(text: string, index: number): string | undefined {
  return surrogates.test(text) ? Array.from(text).at(index) : text.at(index)
}

/** The number of characters. */
export function characterCount(text: string): number {
  if (!surrogates.test(text)) return text.length
  let count = 0
  for (let at = 0; at < text.length; at += 1) {
    count += 1
    if ((text.codePointAt(at) ?? 0) > 0xffff) at += 1
  }
  return count
}

/** The characters from `start` up to `end`, both already inside the text. */
export function sliceCharacters(text: string, start: number, end?: number): string {
  return surrogates.test(text) ? Array.from(text).slice(start, end).join('') : text.slice(start, end)
}

const space = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
const oneSpace = new RegExp(`[${space}]`)

/** Whether a character is whitespace to Python. */
export function isSpaceCharacter(character: string): boolean {
  return oneSpace.test(character)
}

/** The text without the given characters (whitespace by default) at the chosen ends. */
export function strip(text: string, characters: string | undefined, left = true, right = true): string {
  const wanted = characters === undefined ? undefined : new Set(charactersOf(characters))
  const drops = (character: string): boolean =>
    wanted === undefined ? isSpaceCharacter(character) : wanted.has(character)
  let start = 0
  let end = text.length
  while (left && start < end) {
    const first = String.fromCodePoint(text.codePointAt(start) ?? 0)
    if (!drops(first)) break
    start += first.length
  }
  while (right && end > start) {
    const last = lastCharacter(text, end)
    if (!drops(last)) break
    end -= last.length
  }
  return text.slice(start, Math.max(start, end))
}

/** The character that ends before `end`. */
function lastCharacter(text: string, end: number): string {
  const pair = text.slice(Math.max(0, end - 2), end)
  return (pair.codePointAt(0) ?? 0) > 0xffff ? pair : text.charAt(end - 1)
}

/** Words between runs of whitespace; the last of at most `limit` + 1 parts keeps the rest of the text. */
export function splitSpace(text: string, limit = -1): string[] {
  const words: string[] = []
  let at = 0
  for (;;) {
    while (at < text.length && isSpaceCharacter(text.charAt(at))) at += 1
    if (at >= text.length) return words
    if (limit >= 0 && words.length >= limit) {
      words.push(text.slice(at))
      return words
    }
    const start = at
    while (at < text.length && !isSpaceCharacter(text.charAt(at))) at += 1
    words.push(text.slice(start, at))
  }
}

// oxlint-disable-next-line no-control-regex
const lineEnd = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/g

/** Lines as Python's `splitlines` sees them. */
export function splitLines(text: string, keepEnds = false): string[] {
  const lines: string[] = []
  let start = 0
  for (const match of text.matchAll(lineEnd)) {
    const end = match.index + match[0].length
    lines.push(text.slice(start, keepEnds ? end : match.index))
    start = end
  }
  if (start < text.length) lines.push(text.slice(start))
  return lines
}
