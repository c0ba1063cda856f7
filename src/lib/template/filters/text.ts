import { numberArgument, sizeArgument, textArgument, wholeArgument } from '../arguments.ts'
import { filterError, typeError } from '../error.ts'
import { center, formatPercentCall } from '../format.ts'
import { iterate } from '../iteration.ts'
import type { Budget } from '../limits.ts'
import { isMapping, mappingEntries } from '../mapping.ts'
import { capitalize, replaceText } from '../methods.ts'
import { attributeReader } from '../sorting.ts'
import { characterCount, sliceCharacters, splitLines, splitSpace, strip, textOf } from '../text.ts'
import { Dict, isList, isTrue, Sequence, typeNameOf, Undefined, type Value } from '../values.ts'
import { filter, stringFilter, type TemplateFilter } from './filter.ts'
import { wrap } from './wrap.ts'

const wordStart = /([-\s({[<]+)/

function titleWords(text: string, budget: Budget): string {
  budget.characters(text.length)
  return text
    .split(wordStart)
    .map((word) => {
      const first = word.codePointAt(0)
      if (first === undefined) return ''
      const head = String.fromCodePoint(first)
      return head.toUpperCase() + word.slice(head.length).toLowerCase()
    })
    .join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&#39;',
  '"': '&#34;',
}

function escapeMarkup(text: string): string {
  return text.replace(/[&<>'"]/g, (character) => entities[character] ?? character)
}

/** What ends the name of an attribute. */
const noAttribute = /[\s/>=]/

/** Attributes of an element. Those without a value are left out. */
function markupAttributes(value: Value, isSpaced: boolean, budget: Budget): string {
  if (!isMapping(value)) throw typeError(`a dictionary is needed, not ${typeNameOf(value)}`, 'AttributeError')
  const attributes: string[] = []
  for (const [name, item] of mappingEntries(value, (count) => budget.items(count))) {
    if (item === null || item instanceof Undefined) continue
    if (typeof name !== 'string') throw typeError(`the name of an attribute is text, not ${typeNameOf(name)}`)
    if (noAttribute.test(name)) throw typeError('the name of an attribute has a blank, "/", ">" or "="', 'ValueError')
    attributes.push(`${escapeMarkup(name)}="${escapeMarkup(textOf(item, budget))}"`)
  }
  return attributes.length > 0 && isSpaced ? ` ${attributes.join(' ')}` : attributes.join(' ')
}

const entityNames: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
}

/** The text without the shortest stretches from `open` to `close`. */
function removeBetween(text: string, open: string, close: string): string {
  const parts: string[] = []
  let at = 0
  for (;;) {
    const start = text.indexOf(open, at)
    const end = start < 0 ? -1 : text.indexOf(close, start + open.length)
    if (end < 0) break
    parts.push(text.slice(at, start))
    at = end + close.length
  }
  parts.push(text.slice(at))
  return parts.join('')
}

function stripTags(text: string): string {
  const bare = removeBetween(removeBetween(text, '<!--', '-->'), '<', '>')
  return unescapeMarkup(splitSpace(bare).join(' '))
}

function unescapeMarkup(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w{1,10}));/g,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return Object.hasOwn(entityNames, name) ? (entityNames[name] ?? whole) : whole
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
    },
  )
}

function truncate(text: string, length: number, killWords: boolean, end: string, leeway: number): string {
  if (length < characterCount(end)) throw typeError(`truncate needs a length of at least ${characterCount(end)}`)
  if (leeway < 0) throw typeError('truncate needs a leeway of at least 0')
  if (characterCount(text) <= length + leeway) return text
  const cut = sliceCharacters(text, 0, length - characterCount(end))
  if (killWords) return cut + end
  const space = cut.lastIndexOf(' ')
  return (space < 0 ? cut : cut.slice(0, space)) + end
}

function indent(text: string, by: string, first: boolean, blank: boolean): string {
  const [head = '', ...rest] = splitLines(`${text}\n`)
  const body = rest.map((line) => `\n${blank || line !== '' ? by : ''}${line}`).join('')
  return (first ? by : '') + head + body
}

const unreserved = /[A-Za-z0-9_.~/-]/

function quoteUrl(text: string, forQuery: boolean, budget: Budget): string {
  // A character can become nine; the list of pieces is made before their text can be checked.
  budget.text(text.length * 9)
  const encoded = Array.from(text, (character) => {
    if (unreserved.test(character) && !(forQuery && character === '/')) return character
    if (character === ' ' && forQuery) return '+'
    return Array.from(
      new TextEncoder().encode(character),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join('')
  })
  return encoded.join('')
}

const wordPattern = /[\p{L}\p{N}\p{M}_]+/gu

function fileSize(bytes: number, binary: boolean): string {
  const base = binary ? 1024 : 1000
  const units = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y']
  if (bytes === 1) return '1 Byte'
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`
  let unit = 0
  while (unit < units.length - 1 && bytes >= base ** (unit + 2)) unit += 1
  const letter = units[unit] ?? ''
  return `${(bytes / base ** (unit + 1)).toFixed(1)} ${binary ? `${letter.toUpperCase()}i` : letter}B`
}

/** `os.path.dirname` and `os.path.basename` on slashes. */
function directoryOf(path: string): string {
  const head = path.slice(0, path.lastIndexOf('/') + 1)
  let end = head.length
  while (end > 0 && head[end - 1] === '/') end -= 1
  return end === 0 ? head : head.slice(0, end)
}

/** `text | format(…)`: takes any arguments, hence no signature. */
const formatFilter: TemplateFilter = (value, call, { budget }) => {
  if (call.named.size > 0 && call.positional.length > 0) {
    throw filterError('format takes positional or named arguments, not both at once')
  }
  const mapping = call.named.size > 0 ? Dict.from(call.named) : undefined
  return formatPercentCall(textOf(value, budget), call, mapping, budget)
}

/** Filters over text. */
export const textFilters: readonly [string, TemplateFilter][] = [
  stringFilter('upper', '', (text) => text.toUpperCase()),
  stringFilter('lower', '', (text) => text.toLowerCase()),
  stringFilter('capitalize', '', capitalize),
  stringFilter('title', '', (text, _args, { budget }) => titleWords(text, budget)),
  stringFilter('trim', 'chars?', (text, [characters]) =>
    strip(text, characters === undefined || characters === null ? undefined : textArgument('trim', characters)),
  ),
  stringFilter('string', '', (text) => text),
  stringFilter('safe', '', (text) => text),
  stringFilter('escape', '', escapeMarkup),
  stringFilter('e', '', escapeMarkup),
  stringFilter('forceescape', '', escapeMarkup),
  filter('xmlattr', 'autospace?', (value, [autospace = true], { budget }) => {
    const text = markupAttributes(value, isTrue(autospace), budget)
    budget.text(text.length)
    return text
  }),
  stringFilter('striptags', '', stripTags),
  stringFilter('replace', 'old new count?', (text, [old = null, to = null, count], { budget }) =>
    replaceText(
      text,
      textOf(old, budget),
      textOf(to, budget),
      count === undefined || count === null ? -1 : wholeArgument('replace', count),
      budget,
    ),
  ),
  stringFilter('center', 'width?', (text, [width], { budget }) =>
    center(text, sizeArgument('center', width, 80, budget), ' '),
  ),
  stringFilter('truncate', 'length? killwords? end? leeway?', (text, [length, killWords = false, end, leeway]) =>
    truncate(
      text,
      wholeArgument('truncate', length, 255),
      isTrue(killWords),
      textArgument('truncate', end, '...'),
      leeway === undefined || leeway === null ? 5 : wholeArgument('truncate', leeway),
    ),
  ),
  stringFilter('indent', 'width? first? blank?', (text, [width = 4, first = false, blank = false], { budget }) => {
    const by = typeof width === 'string' ? width : ' '.repeat(sizeArgument('indent', width, 4, budget))
    budget.text(text.length + by.length * (splitLines(text).length + 1))
    return indent(text, by, isTrue(first), isTrue(blank))
  }),
  stringFilter(
    'wordwrap',
    'width? break_long_words? wrapstring? break_on_hyphens?',
    (text, [width, breakLong = true, separator, hyphens = true], { budget }) => {
      // Each character can become a chunk of its own.
      budget.characters(text.length * 4)
      const size = wholeArgument('wordwrap', width, 79)
      if (size < 1) throw typeError('wordwrap needs a width of at least 1')
      const between = separator === undefined || separator === null ? '\n' : textArgument('wordwrap', separator)
      const lines = splitLines(text).map((line) => wrap(line, size, isTrue(breakLong), isTrue(hyphens)).join(between))
      return lines.join(between)
    },
  ),
  stringFilter('wordcount', '', (text) => text.match(wordPattern)?.length ?? 0),
  ['format', formatFilter],
  filter('join', 'd? attribute?', (value, [separator, attribute], { budget }) => {
    const between = separator === undefined ? '' : textOf(separator, budget)
    const read = attributeReader(attribute, budget)
    const texts = iterate(value, budget).map((item) => textOf(read(item), budget))
    budget.text(texts.reduce((sum, text) => sum + text.length + between.length, 0))
    return texts.join(between)
  }),
  filter('urlencode', '', (value, _args, { budget }) => {
    if (!isList(value) && !isMapping(value) && !(value instanceof Sequence)) {
      const text = textOf(value, budget)
      return quoteUrl(text, false, budget)
    }
    const pairs = isMapping(value) ? mappingEntries(value) : iterate(value, budget).map((item) => iterate(item, budget))
    const text = pairs
      .map(([name = null, item = null]) =>
        [name, item].map((part) => quoteUrl(textOf(part, budget), true, budget)).join('='),
      )
      .join('&')
    budget.text(text.length)
    return text
  }),
  filter('filesizeformat', 'binary?', (value, [binary = false]) => {
    const bytes = typeof value === 'string' ? Number(value) : numberArgument('filesizeformat', value)
    if (!Number.isFinite(bytes)) throw typeError('filesizeformat needs a number of bytes')
    return fileSize(bytes, isTrue(binary))
  }),
  stringFilter('basename', '', (text) => text.slice(text.lastIndexOf('/') + 1)),
  stringFilter('dirname', '', directoryOf),
]
