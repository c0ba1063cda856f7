/** Keywords and formats that replace the library's own, for speed and safety. */
import type { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { isObject } from './types.ts'
import { JsonNumber, toNumeric, writeJson } from '../json/index.ts'
import { exactOf, isNumber, type DataContext } from './exact.ts'

const MAX_FORMAT_CHARS = 2_048

type NamedFormat = Parameters<typeof addFormats.default.get>[0]

const formatNames: readonly NamedFormat[] = [
  'date',
  'time',
  'date-time',
  'duration',
  'uri',
  'uri-reference',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
  'json-pointer',
]

/** Formats are native regular expressions, hence the limit on their input. */
export function useFormats(ajv: Ajv): void {
  for (const name of formatNames) {
    const format = addFormats.default.get(name)
    const fits = formatTest(format)
    ajv.addFormat(name, (text: string) => text.length <= MAX_FORMAT_CHARS && fits(text))
  }
}

function formatTest(format: ReturnType<typeof addFormats.default.get>): (text: string) => boolean {
  if (format instanceof RegExp) return (text) => format.test(text)
  if (typeof format === 'function') return (text) => format(text) === true
  if (typeof format === 'object' && !(format.async === true)) {
    const { validate } = format
    if (validate instanceof RegExp) return (text) => validate.test(text)
    if (typeof validate === 'function') return (text) => (validate as (text: string) => unknown)(text) === true // of strings
  }
  throw new Error('a format has no synchronous test')
}

/** The library's own keyword compares every pair. */
export function useLinearUniqueItems(ajv: Ajv): void {
  ajv.removeKeyword('uniqueItems')
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isUnique: boolean, items: unknown[], _: unknown, context) =>
      !isUnique || areUnique(exactOf(items, context) as unknown[]), // a list stays one
  })
}

/**
 * The library's own keywords call `toString` of compared objects, which data can override, and compare with each choice.
 */
export function useSafeEnum(ajv: Ajv): void {
  ajv.removeKeyword('enum')
  ajv.addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    compile(allowed: unknown[]) {
      const texts = new Set(allowed.filter((each) => typeof each === 'string'))
      const others = allowed.filter((each) => typeof each !== 'string')
      const canonicals = new Set(others.map(canonical))
      return (data: unknown, context?: DataContext) => {
        if (typeof data === 'string') return texts.has(data)
        return others.length > 0 && canonicals.has(canonical(exactOf(data, context)))
      }
    },
  })
  ajv.removeKeyword('const')
  ajv.addKeyword({
    keyword: 'const',
    validate: (only: unknown, data: unknown, _: unknown, context) => isSame(only, exactOf(data, context)),
  })
}

/** The library's own keywords count the characters of a text of any length. */
export function useQuickLengths(ajv: Ajv): void {
  for (const keyword of ['minLength', 'maxLength'] as const) {
    ajv.removeKeyword(keyword)
    ajv.addKeyword({
      keyword,
      type: 'string',
      schemaType: 'number',
      // The more telling message.
      before: 'pattern',
      // A character has one or two UTF-16 units.
      compile: (limit: number) =>
        keyword === 'maxLength'
          ? (text: string) => text.length <= limit || (text.length <= 2 * limit && charactersIn(text) <= limit)
          : (text: string) => text.length >= 2 * limit || (text.length >= limit && charactersIn(text) >= limit),
    })
  }
}

function charactersIn(text: string): number {
  let count = text.length
  for (let at = 1; at < text.length; at++) {
    if (isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1))) count -= 1
  }
  return count
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00
const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code < 0xe000

function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isSame(item, b[index]))
  }
  // Loose on purpose: a number and a bigint can be equal.
  if (isNumber(a) && isNumber(b)) return toNumeric(a) == toNumeric(b)
  if (!isObject(a) || !isObject(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  )
}

function areUnique(items: unknown[]): boolean {
  const seen = new Set<string>()
  for (const item of items) {
    const text = canonical(item)
    if (seen.has(text)) return false
    seen.add(text)
  }
  return true
}

/** Text that is equal for equal data, regardless of the order of keys and of the form of numbers: 21.0 is 21. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (isNumber(value)) return numberText(value)
  if (!isObject(value)) return writeJson(value) ?? 'undefined'
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${writeJson(name)}:${canonical(value[name])}`).join(',')}}`
}

function numberText(value: number | JsonNumber): string {
  const number = toNumeric(value)
  const isLarge = Number.isInteger(number) && !Number.isSafeInteger(number)
  return String(isLarge ? BigInt(number) : number)
}
