/** What Python makes of scalars in YAML 1.1. */
import { JsonNumber, JsonNumberError, jsonNumber, MAX_NUMBER_CHARS, wholeNumber } from '../json/index.ts'

/** What a plain scalar without a tag is. */
export type ScalarType = 'null' | 'bool' | 'int' | 'float' | 'timestamp' | 'merge' | 'value' | 'str'

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
  const value = magnitude(body)
  if (value === undefined) return { problem: 'this is no whole number' }
  // What svc has written reads as it was, also the negative zero of JavaScript.
  return exact(() => (value === 0n && sign === '-' ? jsonNumber('-0') : wholeNumber(sign === '-' ? -value : value)))
}

const tooLong = (body: string): string => `a number has ${body.length} characters; the limit is ${MAX_NUMBER_CHARS}`

function magnitude(body: string): bigint | undefined {
  if (/^0b[01]+$/.test(body)) return BigInt(body)
  if (/^0x[0-9a-fA-F]+$/.test(body)) return BigInt(body)
  if (/^0[0-7]*$/.test(body)) return body === '0' ? 0n : BigInt(`0o${body}`)
  if (/^[1-9]\d*(?::\d+)*$/.test(body)) return body.split(':').reduce((sum, part) => sum * 60n + BigInt(part), 0n)
  return undefined
}

/** Null for what JSON has no number for: infinity, and what is no number. */
export function readFloat(text: string): ScalarValue {
  const [, sign = '', body = ''] = /^([-+]?)(.*)$/s.exec(text.replaceAll('_', '').toLowerCase()) ?? []
  if (body.length > MAX_NUMBER_CHARS) return { problem: tooLong(body) }
  if (body === '.inf' || body === '.nan') return { value: null }
  if (body.includes(':')) {
    const parts = body.split(':').map(Number)
    if (parts.some((part) => Number.isNaN(part))) return { problem: 'this is no number' }
    const sum = parts.reduce((total, part) => total * 60 + part, 0)
    return { value: floatNumber(sign === '-' ? -sum : sum) }
  }
  if (!/^(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/.test(body)) return { problem: 'this is no number' }
  const [, whole = '', fraction = '', exponent = ''] = /^(\d*)\.?(\d*)(e[-+]?\d+)?$/.exec(body) ?? []
  const digits = whole.replace(/^0+(?=\d)/, '') || '0'
  const decimals = fraction === '' && exponent !== '' ? '' : `.${fraction === '' ? '0' : fraction}`
  const number = `${sign === '-' ? '-' : ''}${digits}${decimals}${exponent}`
  if (!Number.isFinite(Number(number))) return { value: null }
  return exact(() => jsonNumber(number))
}

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
  const day10 = `${String(year).padStart(4, '0')}-${twoDigits(month)}-${twoDigits(day)}`
  if (parts[3] === undefined) return { value: day10 }
  const micros = (parts[6] ?? '').slice(0, 6).padEnd(6, '0')
  const fraction = Number(micros) === 0 ? '' : `.${micros}`
  return { value: `${day10}T${twoDigits(hour)}:${twoDigits(minute)}:${twoDigits(second)}${fraction}${zoneOf(parts)}` }
}

function zoneOf([, , , , , , , utc, sign, hours, minutes]: readonly (string | undefined)[]): string {
  if (utc !== undefined) return '+00:00'
  if (sign === undefined) return ''
  const total = (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes ?? 0))
  return `${total < 0 ? '-' : '+'}${twoDigits(Math.floor(Math.abs(total) / 60))}:${twoDigits(Math.abs(total) % 60)}`
}
