import { bind, signature, sizeArgument, textArgument, wholeArgument } from './arguments.ts'
import { equals } from './compare.ts'
import { typeError, unsupportedError } from './error.ts'
import { center, formatBraces } from './format.ts'
import { iterate } from './iteration.ts'
import type { Budget } from './limits.ts'
import { isMapping, mappingEntries, mappingGet, mappingKeys } from './mapping.ts'
import { indexOfText, lastIndexOfText, splitByText } from './search.ts'
import {
  characterCount,
  charactersOf,
  isSpaceCharacter,
  pythonRepr,
  sliceCharacters,
  splitLines,
  splitSpace,
  strip,
} from './text.ts'
import {
  adopt,
  Float,
  isList,
  isNumeric,
  isTrue,
  orElse,
  Sequence,
  toNumber,
  typeNameOf,
  Undefined,
  type Call,
  type Value,
} from './values.ts'

/** A method of a built-in type. */
export type Method = (self: Value, call: Call, budget: Budget) => Value

/** The method of that name, undefined when the value's type has none; only the tables below exist. */
export function methodOf(value: Value, name: string): Method | undefined {
  if (typeof value === 'string') return textMethods.get(name)
  if (isList(value)) return listMethods.get(name)
  if (value instanceof Sequence && value.typeName === 'tuple') return sequenceMethods.get(name)
  if (isMapping(value)) return mappingMethods.get(name)
  if (value instanceof Float || (typeof value === 'number' && !Number.isInteger(value))) return floatMethods.get(name)
  return undefined
}

type Arguments = readonly (Value | undefined)[]

function method<Self extends Value>(
  name: string,
  parameters: string,
  check: (self: Value) => self is Self,
  run: (self: Self, args: Arguments, budget: Budget) => Value,
): [string, Method] {
  const expected = signature(parameters)
  const what = `${name}()`
  return [
    name,
    (self, call, budget) => {
      if (!check(self)) throw typeError(`${what} does not fit ${typeNameOf(self)}`)
      return run(self, bind(what, expected, call), budget)
    },
  ]
}

const isText = (value: Value): value is string => typeof value === 'string'

/** A method of text; reading the text and what comes back are paid for here. */
function onText(
  name: string,
  parameters: string,
  run: (self: string, args: Arguments, budget: Budget) => Value,
): [string, Method] {
  return method(name, parameters, isText, (self, args, budget) => {
    budget.work(self.length)
    const result = run(self, args, budget)
    if (typeof result === 'string') budget.text(result.length)
    else if (isList(result)) budget.items(result.length)
    return result
  })
}

function every(test: RegExp): (self: string, args: Arguments, budget: Budget) => boolean {
  return (self, _args, budget) => self !== '' && takeApart(self, budget).every((character) => test.test(character))
}

function takeApart(text: string, budget: Budget): readonly string[] {
  budget.characters(text.length)
  return charactersOf(text)
}

const lowerLetter = /\p{Lowercase}/u
const upperLetter = /[\p{Uppercase}\p{Lt}]/u
const letter = /\p{L}/u

export function isLower(text: string): boolean {
  return lowerLetter.test(text) && !upperLetter.test(text)
}

export function isUpper(text: string): boolean {
  return upperLetter.test(text) && !lowerLetter.test(text)
}

/** First character in upper case, the rest in lower case. */
export function capitalize(text: string): string {
  const first = text.codePointAt(0)
  if (first === undefined) return ''
  const head = String.fromCodePoint(first)
  return head.toUpperCase() + text.slice(head.length).toLowerCase()
}

function titleCase(text: string, budget: Budget): string {
  let inWord = false
  return takeApart(text, budget)
    .map((character) => {
      const result = inWord ? character.toLowerCase() : character.toUpperCase()
      inWord = letter.test(character)
      return result
    })
    .join('')
}

function swapCase(text: string, budget: Budget): string {
  return takeApart(text, budget)
    .map((character) => (lowerLetter.test(character) ? character.toUpperCase() : character.toLowerCase()))
    .join('')
}

function stripArgument(what: string, [characters]: Arguments): string | undefined {
  return characters === undefined || characters === null ? undefined : textArgument(what, characters)
}

function isTailSpace(text: string, end: number): boolean {
  return isSpaceCharacter(text.charAt(end - 1))
}

/** `split` and `rsplit` of Python. */
function splitText(text: string, separator: string | undefined, limit: number, fromRight: boolean): string[] {
  if (separator === undefined) return fromRight && limit >= 0 ? splitSpaceRight(text, limit) : splitSpace(text, limit)
  if (separator === '') throw typeError('empty separator')
  const parts = splitByText(text, separator)
  if (limit < 0 || parts.length <= limit + 1) return parts
  if (fromRight) {
    const head = parts.slice(0, parts.length - limit)
    return [head.join(separator), ...parts.slice(parts.length - limit)]
  }
  return [...parts.slice(0, limit), parts.slice(limit).join(separator)]
}

function splitSpaceRight(text: string, limit: number): string[] {
  const words: string[] = []
  let end = text.length
  for (;;) {
    while (end > 0 && isTailSpace(text, end)) end -= 1
    if (end === 0) return words.reverse()
    if (words.length >= limit) {
      words.push(text.slice(0, end))
      return words.reverse()
    }
    const stop = end
    while (end > 0 && !isTailSpace(text, end)) end -= 1
    words.push(text.slice(end, stop))
  }
}

/** `replace` of Python: an empty `old` matches before every character and at the end. */
export function replaceText(text: string, old: string, replacement: string, count: number, budget: Budget): string {
  const limit = count < 0 ? Infinity : count
  if (old.length < 2) budget.characters(text.length)
  const pieces = old === '' ? ['', ...charactersOf(text), ''] : splitByText(text, old)
  const replaced = Math.min(pieces.length - 1, limit)
  budget.text(Math.max(0, text.length + replaced * (replacement.length - old.length)))
  if (replaced === pieces.length - 1) return pieces.join(replacement)
  return `${pieces.slice(0, replaced).join(replacement)}${replaced > 0 ? replacement : ''}${pieces.slice(replaced).join(old)}`
}

/** The part of the text that `start` and `end` of `find`, `count` and their like leave, and where it begins. */
function section(text: string, start: Value | undefined, end: Value | undefined): { part: string; offset: number } {
  if (start === undefined && end === undefined) return { part: text, offset: 0 }
  const length = characterCount(text)
  const place = (value: Value | undefined, fallback: number): number => {
    if (value === undefined || value === null) return fallback
    const number = wholeArgument('the position', value)
    return number < 0 ? Math.max(0, number + length) : Math.min(number, length)
  }
  const offset = place(start, 0)
  return { part: sliceCharacters(text, offset, Math.max(offset, place(end, length))), offset }
}

function find(self: string, [wanted, start, end]: Arguments, last: boolean, what: string): number {
  const { part, offset } = section(self, start, end)
  const text = textArgument(what, wanted)
  const at = last ? lastIndexOfText(part, text) : indexOfText(part, text)
  return at < 0 ? -1 : offset + characterCount(part.slice(0, at))
}

function index(self: string, args: Arguments, last: boolean, what: string): number {
  const at = find(self, args, last, what)
  if (at < 0) throw typeError('substring not found', 'ValueError')
  return at
}

function affix(
  self: string,
  [wanted, start, end]: Arguments,
  what: string,
  test: (part: string, affix: string) => boolean,
): boolean {
  const { part } = section(self, start, end)
  const options = wanted instanceof Sequence ? wanted.items : [wanted]
  return options.some((option) => test(part, textArgument(what, option)))
}

function count(self: string, [wanted, start, end]: Arguments): number {
  const { part } = section(self, start, end)
  const text = textArgument('count()', wanted)
  return text === '' ? characterCount(part) + 1 : splitByText(part, text).length - 1
}

function partition(self: string, [separator]: Arguments, last: boolean): Sequence {
  const text = textArgument('partition()', separator)
  if (text === '') throw typeError('empty separator')
  const at = last ? lastIndexOfText(self, text) : indexOfText(self, text)
  if (at < 0) return new Sequence(last ? ['', '', self] : [self, '', ''])
  return new Sequence([self.slice(0, at), text, self.slice(at + text.length)])
}

function justify(self: string, [width, fill]: Arguments, budget: Budget, what: string, left: boolean): string {
  const size = sizeArgument(what, width, 0, budget)
  const padding = fillArgument(fill, what).repeat(Math.max(0, size - characterCount(self)))
  return left ? self + padding : padding + self
}

function fillArgument(fill: Value | undefined, what: string): string {
  const text = textArgument(what, fill, ' ')
  if (characterCount(text) !== 1) throw typeError('the fill character must be exactly one character long')
  return text
}

function zeroFill(self: string, width: number): string {
  const missing = width - characterCount(self)
  if (missing <= 0) return self
  const sign = self.startsWith('-') || self.startsWith('+') ? self.charAt(0) : ''
  return sign + '0'.repeat(missing) + self.slice(sign.length)
}

/** Joins texts, as `separator.join(items)` does: items must be text. */
function joinTexts(separator: string, items: readonly Value[], budget: Budget): string {
  let length = 0
  const texts = items.map((item, at) => {
    if (typeof item !== 'string') {
      if (item instanceof Undefined) item.raise()
      throw typeError(`sequence item ${at}: expected str instance, ${typeNameOf(item)} found`)
    }
    length += item.length + separator.length
    return item
  })
  budget.text(length)
  return texts.join(separator)
}

const limitOf = (value: Value | undefined): number => wholeArgument('maxsplit', value, -1)

const separatorOf = (value: Value | undefined): string | undefined =>
  value === undefined || value === null ? undefined : textArgument('split()', value)

const textMethods: ReadonlyMap<string, Method> = new Map([
  onText('upper', '', (self) => self.toUpperCase()),
  onText('lower', '', (self) => self.toLowerCase()),
  onText('casefold', '', (self) => self.toLowerCase()),
  onText('capitalize', '', capitalize),
  onText('title', '', (self, _args, budget) => titleCase(self, budget)),
  onText('swapcase', '', (self, _args, budget) => swapCase(self, budget)),
  onText('strip', 'chars?', (self, args) => strip(self, stripArgument('strip()', args))),
  onText('lstrip', 'chars?', (self, args) => strip(self, stripArgument('lstrip()', args), true, false)),
  onText('rstrip', 'chars?', (self, args) => strip(self, stripArgument('rstrip()', args), false, true)),
  onText('split', 'sep? maxsplit?', (self, [sep, limit]) => splitText(self, separatorOf(sep), limitOf(limit), false)),
  onText('rsplit', 'sep? maxsplit?', (self, [sep, limit]) => splitText(self, separatorOf(sep), limitOf(limit), true)),
  onText('splitlines', 'keepends?', (self, [keep = false], budget) => {
    budget.characters(self.length)
    return splitLines(self, isTrue(keep))
  }),
  onText('join', 'iterable', (self, [items = null], budget) => joinTexts(self, iterate(items, budget), budget)),
  onText('replace', 'old new count?', (self, [old, to, times], budget) =>
    replaceText(self, textArgument('replace()', old), textArgument('replace()', to), limitOf(times), budget),
  ),
  onText('startswith', 'prefix start? end?', (self, args) =>
    affix(self, args, 'startswith()', (part, prefix) => part.startsWith(prefix)),
  ),
  onText('endswith', 'suffix start? end?', (self, args) =>
    affix(self, args, 'endswith()', (part, suffix) => part.endsWith(suffix)),
  ),
  onText('removeprefix', 'prefix', (self, [prefix]) => {
    const text = textArgument('removeprefix()', prefix)
    return self.startsWith(text) ? self.slice(text.length) : self
  }),
  onText('removesuffix', 'suffix', (self, [suffix]) => {
    const text = textArgument('removesuffix()', suffix)
    return text !== '' && self.endsWith(text) ? self.slice(0, -text.length) : self
  }),
  onText('find', 'sub start? end?', (self, args) => find(self, args, false, 'find()')),
  onText('rfind', 'sub start? end?', (self, args) => find(self, args, true, 'rfind()')),
  onText('index', 'sub start? end?', (self, args) => index(self, args, false, 'index()')),
  onText('rindex', 'sub start? end?', (self, args) => index(self, args, true, 'rindex()')),
  onText('count', 'sub start? end?', count),
  onText('partition', 'sep', (self, args) => partition(self, args, false)),
  onText('rpartition', 'sep', (self, args) => partition(self, args, true)),
  onText('center', 'width fillchar?', (self, [width, fill], budget) =>
    center(self, sizeArgument('center()', width, 0, budget), fillArgument(fill, 'center()')),
  ),
  onText('ljust', 'width fillchar?', (self, args, budget) => justify(self, args, budget, 'ljust()', true)),
  onText('rjust', 'width fillchar?', (self, args, budget) => justify(self, args, budget, 'rjust()', false)),
  onText('zfill', 'width', (self, [width], budget) => zeroFill(self, sizeArgument('zfill()', width, 0, budget))),
  onText('isdigit', '', every(/[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2089]/u)),
  onText('isdecimal', '', every(/\p{Nd}/u)),
  onText('isnumeric', '', every(/\p{N}/u)),
  onText('isalpha', '', every(letter)),
  onText('isalnum', '', every(/[\p{L}\p{N}]/u)),
  onText('isspace', '', (self, _args, budget) => self !== '' && takeApart(self, budget).every(isSpaceCharacter)),
  onText('islower', '', isLower),
  onText('isupper', '', isUpper),
  ['format', (self, call, budget) => formatBraces(textArgument('format()', self), call, budget)],
])

const isItems = (value: Value): value is readonly unknown[] | Sequence => isList(value) || value instanceof Sequence

function itemsOf(value: readonly unknown[] | Sequence): readonly unknown[] {
  return value instanceof Sequence ? value.items : value
}

const sequenceMethods: ReadonlyMap<string, Method> = new Map([
  method('index', 'value', isItems, (self, [wanted = null], budget) => {
    const at = itemsOf(self).findIndex((item) => equals(adopt(item), wanted, budget))
    if (at < 0) throw typeError('the value is not in the list', 'ValueError')
    return at
  }),
  method(
    'count',
    'value',
    isItems,
    (self, [wanted = null], budget) => itemsOf(self).filter((item) => equals(adopt(item), wanted, budget)).length,
  ),
])

/** External values are shared, so templates cannot change them. */
function unchangeable(kind: string, advice: string, names: readonly string[]): [string, Method][] {
  return names.map((name) => [
    name,
    () => {
      throw unsupportedError(`${name}() would change a ${kind}, which a template cannot do; ${advice}`)
    },
  ])
}

const listMethods: ReadonlyMap<string, Method> = new Map([
  ...sequenceMethods,
  method('copy', '', isList, (self) => self),
  ...unchangeable('list', 'make a new one, as in: list + [item]', [
    'append',
    'extend',
    'insert',
    'pop',
    'remove',
    'sort',
    'reverse',
    'clear',
  ]),
])

const mappingMethods: ReadonlyMap<string, Method> = new Map([
  method('get', 'key default?', isMapping, (self, [key = null, fallback = null]) =>
    orElse(mappingGet(self, key), fallback),
  ),
  method('keys', '', isMapping, (self, _args, budget) => {
    const keys = mappingKeys(self)
    budget.items(keys.length)
    return new Sequence(keys, 'dict_keys')
  }),
  method('values', '', isMapping, (self, _args, budget) => {
    const entries = mappingEntries(self, (count) => budget.items(count))
    return new Sequence(
      entries.map(([, value]) => value),
      'dict_values',
    )
  }),
  method('items', '', isMapping, (self, _args, budget) => {
    const entries = mappingEntries(self, (count) => budget.items(count))
    return new Sequence(
      entries.map((entry) => new Sequence(entry)),
      'dict_items',
    )
  }),
  method('copy', '', isMapping, (self) => self),
  ...unchangeable('dictionary', 'make a new one, as in: dict(old, key=value)', [
    'update',
    'setdefault',
    'pop',
    'popitem',
    'clear',
  ]),
])

const floatMethods: ReadonlyMap<string, Method> = new Map([
  method('is_integer', '', isNumeric, (self) => Number.isInteger(toNumber(self))),
])

/** What methods that change a list give under Python. */
const listChanges: ReadonlyMap<string, Method> = new Map([
  method('append', 'object', isList, () => null),
  method('extend', 'iterable', isList, () => null),
  method('insert', 'index object', isList, () => null),
  method('sort', 'key? reverse?', isList, () => null),
  method('reverse', '', isList, () => null),
  method('clear', '', isList, () => null),
  method('remove', 'value', isList, (self, [wanted = null], budget) => {
    if (self.some((item) => equals(adopt(item), wanted, budget))) return null
    throw typeError('list.remove(x): x not in list', 'ValueError')
  }),
  method('pop', 'index?', isList, (self, [index]) => {
    const item = self.at(wholeArgument('pop()', index, -1))
    if (item !== undefined) return adopt(item)
    throw typeError(self.length === 0 ? 'pop from empty list' : 'pop index out of range', 'IndexError')
  }),
])

/** What methods that change a dictionary give under Python. */
const mappingChanges: ReadonlyMap<string, Method> = new Map([
  ['update', (): Value => null],
  method('clear', '', isMapping, () => null),
  method('setdefault', 'key default?', isMapping, (self, [key = null, fallback = null]) =>
    orElse(mappingGet(self, key), fallback),
  ),
  method('pop', 'key default?', isMapping, (self, [key = null, fallback], budget) => {
    const value = mappingGet(self, key)
    if (value !== undefined) return value
    if (fallback !== undefined) return fallback
    throw typeError(pythonRepr(key, budget), 'KeyError')
  }),
  method('popitem', '', isMapping, (self, _args, budget) => {
    const last = mappingEntries(self, (count) => budget.items(count)).at(-1)
    if (last !== undefined) return new Sequence(last)
    throw typeError("'popitem(): dictionary is empty'", 'KeyError')
  }),
])

/** A method that would change its value. This one does not, for values are shared, but gives the same result. */
export function changingMethod(value: Value, name: string): Method | undefined {
  if (isList(value)) return listChanges.get(name)
  return isMapping(value) ? mappingChanges.get(name) : undefined
}
