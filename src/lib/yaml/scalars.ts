/** What Python makes of scalars in YAML 1.1. */
import { JsonNumber, JsonNumberError, jsonNumber, MAX_NUMBER_CHARS, wholeNumber } from '../json/index.ts'

/** What a plain scalar without a tag is. */
export type ScalarType = 'null' | 'bool' | 'int' | 'float' | 'timestamp' | 'merge' | 'value' | 'indicator' | 'str'

const words: Readonly<Record<string, boolean | null>> = {}
for (const [value, names] of [
  [true, ['yes', 'true', 'on']],
  [false, ['no', 'false', 'off']],
  [null, ['null']],
] as const) {
  for (const name of names) {
    for (const form of [name, name[0]?.toUpperCase() + name.slice(1), name.toUpperCase()]) {
      Object.assign(words, { [form]: value })
    }
  }
}

const intForm =
  /^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$/
const floatForm =
  /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/
const dateForm = /^\d{4}-\d\d-\d\d$/
const timestampForm =
  /^(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?(?:[ \t]*(?:(Z)|([-+])(\d\d?)(?::(\d\d))?))?)?$/

export function typeOfPlain(text: string): ScalarType {
  if (text === '' || text === '~') return 'null'
  const word = Object.hasOwn(words, text) ? words[text] : undefined
  if (word !== undefined) return word === null ? 'null' : 'bool'
  if (text === '<<') return 'merge'
  if (text === '=') return 'value'
  if (text === '!' || text === '&' || text === '*') return 'indicator'
  if (!/^[-+0-9.]/.test(text)) return 'str'
  if (intForm.test(text)) return 'int'
  if (floatForm.test(text)) return 'float'
  return isTimestamp(text) ? 'timestamp' : 'str'
}

/** A date alone has two digits for month and day. */
function isTimestamp(text: string): boolean {
  return dateForm.test(text) || (text.length > 10 && timestampForm.test(text) && /[Tt \t]/.test(text))
}

/** The value that a reader in Python gets, or what is wrong with the text. */
export type ScalarValue = { value: unknown } | { problem: string }

/** @param text in any case: `!!bool YeS` */
export function readBool(text: string): ScalarValue {
  const value = words[text.toLowerCase()]
  return typeof value === 'boolean' && Object.hasOwn(words, text.toLowerCase())
    ? { value }
    : { problem: 'this is no truth value; write true or false' }
}

/** Decimal, binary, octal with a leading 0, hexadecimal, and sexagesimal with colons. */
export function readInt(text: string): ScalarValue {
  const [, sign = '', body = ''] = /^([-+]?)(.*)$/s.exec(text.replaceAll('_', '')) ?? []
  if (body.length > MAX_NUMBER_CHARS) return { problem: tooLong(body) }
  const value = wholeOf(body)
  if (value === undefined) return { problem: 'this is no whole number' }
  // What svc has written reads as it was, also the negative zero of JavaScript.
  return exact(() => (value === 0n && sign === '-' ? jsonNumber('-0') : wholeNumber(sign === '-' ? -value : value)))
}

const tooLong = (body: string): string => `a number has ${body.length} characters; the limit is ${MAX_NUMBER_CHARS}`

/** Of a text without its sign. With a tag, Python takes blanks and another sign too: `!!int " +3"`. */
function wholeOf(body: string): bigint | undefined {
  if (body === '0') return 0n
  const [, prefix = '', sexagesimal] = /^(0b|0x|0)?[^:]*(:)?/s.exec(body) ?? []
  if (prefix === '0b') return digitsOf(body.slice(2), /^(?:0b)?([01]+)$/i, '0b')
  if (prefix === '0x') return digitsOf(body.slice(2), /^(?:0x)?([0-9a-f]+)$/i, '0x')
  if (prefix === '0') return digitsOf(body, /^(?:0o)?([0-7]+)$/i, '0o')
  if (sexagesimal === undefined) return digitsOf(body, /^(\d+)$/, '')
  const parts = body.split(':').map((part) => digitsOf(part, /^(\d+)$/, ''))
  return parts.reduce<bigint | undefined>(
    (sum, part) => (sum === undefined || part === undefined ? undefined : sum * 60n + part),
    0n,
  )
}

function digitsOf(text: string, form: RegExp, prefix: string): bigint | undefined {
  const [, sign, given = ''] = /^([-+]?)(.*)$/s.exec(text.trim()) ?? []
  const [, digits] = form.exec(given) ?? []
  if (digits === undefined) return undefined
  const value = BigInt(prefix + digits)
  return sign === '-' ? -value : value
}

/** Null for what JSON has no number for: infinity, and what is no number. */
export function readFloat(text: string): ScalarValue {
  const [, sign = '', body = ''] = /^([-+]?)(.*)$/s.exec(text.replaceAll('_', '').toLowerCase()) ?? []
  if (body.length > MAX_NUMBER_CHARS) return { problem: tooLong(body) }
  if (body === '.inf' || body === '.nan') return { value: null }
  if (body.includes(':')) {
    const parts = body.split(':').map((part) => (decimalForm.test(part.trim()) ? Number(part) : Number.NaN))
    if (parts.some((part) => Number.isNaN(part))) return { problem: 'this is no number' }
    const sum = parts.reduce((total, part) => total * 60 + part, 0)
    return { value: floatNumber(sign === '-' ? -sum : sum) }
  }
  if (!decimalForm.test(body.trim())) return { problem: 'this is no number' }
  const [, inner = '', whole = '', fraction = '', exponent = ''] =
    /^([-+]?)(\d*)\.?(\d*)(e[-+]?\d+)?$/.exec(body.trim()) ?? []
  const digits = whole.replace(/^0+(?=\d)/, '') || '0'
  const decimals = fraction === '' && exponent !== '' ? '' : `.${fraction === '' ? '0' : fraction}`
  const isNegative = (sign === '-') !== (inner === '-')
  const number = `${isNegative ? '-' : ''}${digits}${decimals}${exponent}`
  if (!Number.isFinite(Number(number))) return { value: null }
  return exact(() => jsonNumber(number))
}

/** What Python reads as one, besides blanks around it. */
const decimalForm = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/

function floatNumber(value: number): number | JsonNumber {
  return Number.isInteger(value) ? jsonNumber(`${value}.0`) : value
}

function exact(read: () => unknown): ScalarValue {
  try {
    return { value: read() }
  } catch (error) {
    if (error instanceof JsonNumberError) return { problem: error.message }
    throw error
  }
}

const twoDigits = (value: number): string => String(value).padStart(2, '0')

/** A date stays as it is written; a time gets the form of ISO 8601, as Python writes it. */
export function readTimestamp(text: string): ScalarValue {
  const [match, ...parts] = timestampForm.exec(text) ?? []
  if (match === undefined) return { problem: 'this is no date' }
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(0, 6)
    .map((part) => Number(part ?? 0))
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  const isDay =
    year > 0 && date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  if (!isDay || hour > 23 || minute > 59 || second > 59)
    return { problem: 'there is no such date or time; put it in quotes to keep it as text' }
  const zone = minutesOfZone(parts)
  if (Math.abs(zone ?? 0) >= MINUTES_OF_DAY) return { problem: 'a zone is less than a day from UTC' }
  const day10 = `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}`
  if (parts[3] === undefined) return { value: day10 }
  const micros = (parts[6] ?? '').slice(0, 6).padEnd(6, '0')
  const fraction = Number(micros) === 0 ? '' : `.${micros}`
  return { value: `${day10}T${twoDigits(hour)}:${twoDigits(minute)}:${twoDigits(second)}${fraction}${zoneText(zone)}` }
}

const MINUTES_OF_DAY = 24 * 60

/** From UTC; undefined: the time has no zone. */
function minutesOfZone([, , , , , , , utc, sign, hours, minutes]: readonly (string | undefined)[]): number | undefined {
  if (utc !== undefined) return 0
  return sign === undefined ? undefined : (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes ?? 0))
}

function zoneText(total: number | undefined): string {
  if (total === undefined) return ''
  const minutes = Math.abs(total)
  return `${total < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`
}
