/** Points in time as text in the notation of `strftime` and `strptime`, in English. */
import { valueError } from './error.ts'
import { DAY, DateTime, offsetText, type DateFields } from './temporal.ts'

const months = 'January February March April May June July August September October November December'.split(' ')
const weekdays = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split(' ')

const short = (names: readonly string[]): string[] => names.map((name) => name.slice(0, 3))
const pad = (value: number, width: number, fill = '0'): string => String(value).padStart(width, fill)

const dayOfYear = ({ year, month, day }: DateFields): number =>
  Math.round((Date.UTC(2000 + (year % 400), month - 1, day) - Date.UTC(2000 + (year % 400), 0, 1)) / 86_400_000) + 1

/** Weeks of the year that begin with a weekday (0: Monday); the days before the first one are week 0. */
const weekOfYear = (time: DateTime, first: number): number => {
  const weekday = (time.weekday - first + 7) % 7
  return Math.floor((dayOfYear(time.fields) + 6 - weekday) / 7)
}

/** Year and week of ISO 8601. */
function isoWeek(time: DateTime): { year: number; week: number } {
  const thursday = time.plus(BigInt(3 - time.weekday) * DAY)
  const { fields } = thursday
  return { year: fields.year, week: Math.floor((dayOfYear(fields) - 1) / 7) + 1 }
}

const composed: Readonly<Record<string, string>> = {
  c: '%a %b %e %H:%M:%S %Y',
  D: '%m/%d/%y',
  F: '%Y-%m-%d',
  R: '%H:%M',
  r: '%I:%M:%S %p',
  T: '%H:%M:%S',
  x: '%m/%d/%y',
  X: '%H:%M:%S',
  h: '%b',
  n: '\n',
  t: '\t',
}

const hour12 = (hour: number): number => ((hour + 11) % 12) + 1

type Part = (time: DateTime, fields: DateFields) => string

const parts: Readonly<Record<string, Part>> = {
  a: (time) => short(weekdays)[time.weekday] ?? '',
  A: (time) => weekdays[time.weekday] ?? '',
  b: (_time, { month }) => short(months)[month - 1] ?? '',
  B: (_time, { month }) => months[month - 1] ?? '',
  C: (_time, { year }) => pad(Math.floor(year / 100), 2),
  d: (_time, { day }) => pad(day, 2),
  e: (_time, { day }) => pad(day, 2, ' '),
  f: (_time, { microsecond }) => pad(microsecond, 6),
  g: (time) => pad(isoWeek(time).year % 100, 2),
  G: (time) => String(isoWeek(time).year),
  H: (_time, { hour }) => pad(hour, 2),
  I: (_time, { hour }) => pad(hour12(hour), 2),
  j: (_time, fields) => pad(dayOfYear(fields), 3),
  k: (_time, { hour }) => pad(hour, 2, ' '),
  l: (_time, { hour }) => pad(hour12(hour), 2, ' '),
  m: (_time, { month }) => pad(month, 2),
  M: (_time, { minute }) => pad(minute, 2),
  p: (_time, { hour }) => (hour < 12 ? 'AM' : 'PM'),
  P: (_time, { hour }) => (hour < 12 ? 'am' : 'pm'),
  s: (time) => String(time.instant / 1_000_000n),
  S: (_time, { second }) => pad(second, 2),
  u: (time) => String(time.weekday + 1),
  U: (time) => pad(weekOfYear(time, 6), 2),
  V: (time) => pad(isoWeek(time).week, 2),
  w: (time) => String((time.weekday + 1) % 7),
  W: (time) => pad(weekOfYear(time, 0), 2),
  y: (_time, { year }) => pad(year % 100, 2),
  Y: (_time, { year }) => String(year),
  z: (time) => offsetText(time.offset, ''),
  Z: (time) => (time.offset === 0n ? 'UTC' : ''),
  '%': () => '%',
}

const directive = /%(.)/gsu

/** `time.strftime(format)` of Python; a directive that does not exist stays as it is written. */
export function formatTime(time: DateTime, format: string): string {
  const { fields } = time
  const whole = format.replace(directive, (found, letter: string) =>
    Object.hasOwn(composed, letter) ? (composed[letter] ?? found) : found,
  )
  return whole.replace(directive, (found, letter: string) =>
    Object.hasOwn(parts, letter) ? (parts[letter]?.(time, fields) ?? found) : found,
  )
}

type Found = Partial<Record<keyof DateFields | 'half' | 'offset' | 'century' | 'dayOfYear', number>>

const number = (name: keyof Found, expression: string): Reader => ({
  expression,
  read: (text, found) => {
    found[name] = Number(text)
  },
})

const name = (field: keyof Found, names: readonly string[], first: number): Reader => ({
  expression: names.join('|'),
  read: (text, found) => {
    found[field] = names.findIndex((each) => each.toLowerCase() === text.toLowerCase()) + first
  },
})

interface Reader {
  expression: string
  read: (text: string, found: Found) => void
}

const ignored = (expression: string): Reader => ({ expression, read: () => undefined })

const readers: Readonly<Record<string, Reader>> = {
  a: ignored(short(weekdays).join('|')),
  A: ignored(weekdays.join('|')),
  b: name('month', short(months), 1),
  B: name('month', months, 1),
  d: number('day', '3[01]|[12]\\d|0[1-9]|[1-9]| [1-9]'),
  f: {
    expression: '\\d{1,6}',
    read: (text, found) => {
      found.microsecond = Number(text.padEnd(6, '0'))
    },
  },
  H: number('hour', '2[0-3]|[01]\\d|\\d'),
  I: number('hour', '1[0-2]|0[1-9]|[1-9]'),
  j: number('dayOfYear', '36[0-6]|3[0-5]\\d|[12]\\d\\d|0[1-9]\\d|00[1-9]|[1-9]\\d|0[1-9]|[1-9]'),
  m: number('month', '1[0-2]|0[1-9]|[1-9]'),
  M: number('minute', '[0-5]\\d|\\d'),
  p: name('half', ['AM', 'PM'], 0),
  S: number('second', '6[01]|[0-5]\\d|\\d'),
  w: ignored('[0-6]'),
  u: ignored('[1-7]'),
  U: ignored('5[0-3]|[0-4]\\d|\\d'),
  W: ignored('5[0-3]|[0-4]\\d|\\d'),
  y: {
    expression: '\\d\\d',
    read: (text, found) => {
      found.year = Number(text) + (Number(text) < 69 ? 2000 : 1900)
    },
  },
  Y: number('year', '\\d{4}'),
  z: {
    expression: 'Z|[+-]\\d\\d:?[0-5]\\d',
    read: (text, found) => {
      const digits = text.replace(':', '')
      const minutes = Number(digits.slice(1, 3)) * 60 + Number(digits.slice(3, 5))
      found.offset = text === 'Z' ? 0 : digits.startsWith('-') ? -minutes : minutes
    },
  },
  Z: ignored('UTC|GMT'),
}

const MAX_FORMAT_LENGTH = 200
const literal = /[\\^$.|?*+()[\]{}/-]/g

/** `datetime.strptime(text, format)` of Python; UTC where the text has no offset. @throws YaqlError ValueError */
export function parseTime(text: string, format: string): DateTime {
  if (format.length > MAX_FORMAT_LENGTH || text.length > MAX_FORMAT_LENGTH) {
    throw valueError(`a time and its format have at most ${MAX_FORMAT_LENGTH} characters`)
  }
  const whole = format.replace(directive, (found, letter: string) =>
    'cDFRrTxX'.includes(letter) ? (composed[letter] ?? found).replace('%e', '%d') : found,
  )
  const used: Reader[] = []
  let expression = ''
  let at = 0
  for (const found of whole.matchAll(directive)) {
    expression += literalOf(whole.slice(at, found.index))
    at = found.index + found[0].length
    const letter = found[1] ?? ''
    const reader = Object.hasOwn(readers, letter) ? readers[letter] : undefined
    if (letter === '%') expression += '%'
    else if (reader === undefined) throw valueError(`'${letter}' is a bad directive in format '${format}'`)
    else {
      used.push(reader)
      expression += `(${reader.expression})`
    }
  }
  expression += literalOf(whole.slice(at))
  const match = new RegExp(`^${expression}$`, 'i').exec(text)
  if (match === null) throw valueError(`time data '${text}' does not match format '${format}'`)
  const found: Found = {}
  for (const [index, { read }] of used.entries()) read(match[index + 1] ?? '', found)
  return timeOf(found)
}

const literalOf = (text: string): string => text.replace(literal, '\\$&').replace(/\s+/g, '\\s+')

function timeOf(found: Found): DateTime {
  const { half, dayOfYear: ordinal } = found
  let { hour = 0 } = found
  if (half !== undefined) hour = (hour % 12) + half * 12
  const fields = {
    year: found.year ?? 1900,
    month: found.month ?? 1,
    day: found.day ?? 1,
    hour,
    minute: found.minute ?? 0,
    second: found.second ?? 0,
    microsecond: found.microsecond ?? 0,
  }
  const time = DateTime.fromFields(fields, BigInt(found.offset ?? 0) * 60_000_000n)
  return ordinal === undefined || found.month !== undefined ? time : time.plus(BigInt(ordinal - 1) * DAY)
}
