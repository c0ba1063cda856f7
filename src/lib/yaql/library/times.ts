/** Points in time, and durations. */
import { readDateText } from '../../calendar/index.ts'
import { float, toNumber, type Float } from '../../template/index.ts'
import { valueError, YaqlError } from '../error.ts'
import { fn, method, optional, param, type Overload } from '../signature.ts'
import { DateTime, DAY, TimeSpan } from '../temporal.ts'
import { formatTime, parseTime } from '../time-format.ts'
import { Index, Int, Integer, Num, orNull, Span, Text, Time } from '../types.ts'
import { isInteger, type Value } from '../values.ts'
import { spanOf } from './operators.ts'

const zero = new TimeSpan(0n)
/** Microseconds in ten thousand years, which no time is away from 1970. */
const SPAN = 3_652_500n * DAY
const MINUTE = 60_000_000n

/** `29.02.2024`, `2-29-2024`: the month first, unless it cannot be one. */
const numeric = /^\s*(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?!\d)/

function fromText(text: string): DateTime {
  const date = readDateText(
    text.replace(numeric, (_found, first: string, _sign, second: string, year: string) => {
      const [month, day] = Number(first) > 12 ? [second, first] : [first, second]
      return `${year}-${month}-${day}`
    }),
  )
  if (date === undefined) throw new YaqlError('ParserError', `Unknown string format: ${text.slice(0, 100)}`)
  return new DateTime(BigInt(date.wallMicros), BigInt(date.offsetMinutes ?? 0) * MINUTE)
}

function fromTimestamp(timestamp: number | bigint | Float, offset: TimeSpan): DateTime {
  const micros = isInteger(timestamp) ? BigInt(timestamp) * 1_000_000n : spanOf(toNumber(timestamp) * 1e6).micros
  if (micros < -SPAN || micros > SPAN) throw valueError(`the year of ${micros / 1_000_000n} is out of range`)
  return new DateTime(micros + offset.micros, offset.micros)
}

const nowIn = (offset: bigint): DateTime => new DateTime(BigInt(Date.now()) * 1000n, 0n).at(offset)

const field = (name: string, read: (time: DateTime) => Value): Overload =>
  fn(`#property#${name}`, [param('obj', Time)], ([time]) => read(time))

/** A whole number that stays exact. */
const exact = (value: bigint): number | bigint => {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

const spanField = (name: string, unit: number): Overload =>
  fn(`#property#${name}`, [param('obj', Span)], ([span]) => float(Number(span.micros) / unit))

const midnight = (time: DateTime): DateTime => time.plus(-(((time.wall % DAY) + DAY) % DAY))

/** As the original engine has it: the clock of UTC, in the zone that the time was in. */
const utcOf = (time: DateTime): DateTime => time.plus(-time.offset)

const part = (name: string) => optional(name, orNull(Index), null)

export const times: readonly Overload[] = [
  fn(
    'datetime',
    [
      param('year', Index),
      param('month', Index),
      param('day', Index),
      optional('hour', Index, 0),
      optional('minute', Index, 0),
      optional('second', Index, 0),
      optional('microsecond', Index, 0),
      optional('offset', Span, zero),
    ],
    ([year, month, day, hour, minute, second, microsecond, offset]) =>
      DateTime.fromFields({ year, month, day, hour, minute, second, microsecond }, offset.micros),
  ),
  fn('datetime', [param('string', Text), optional('format', orNull(Text), null)], ([text, format], { budget }) => {
    budget.step(text.length)
    return format === null ? fromText(text) : parseTime(text, format)
  }),
  fn('datetime', [param('timestamp', Num), optional('offset', Span, zero)], ([timestamp, offset]) =>
    fromTimestamp(timestamp, offset),
  ),
  fn('now', [optional('offset', orNull(Span), zero)], ([offset]) => nowIn((offset ?? zero).micros)),
  fn('utctz', [], () => zero),
  fn('localtz', [], () => new TimeSpan(BigInt(-new Date().getTimezoneOffset()) * MINUTE)),
  fn(
    'timespan',
    [
      optional('days', Int, 0),
      optional('hours', Int, 0),
      optional('minutes', Int, 0),
      optional('seconds', Integer, 0),
      optional('milliseconds', Integer, 0),
      optional('microseconds', Integer, 0),
    ],
    ([days, hours, minutes, seconds, milliseconds, microseconds]) => {
      const allHours = BigInt(days) * 24n + BigInt(hours)
      const allSeconds = (allHours * 60n + BigInt(minutes)) * 60n + BigInt(seconds)
      return new TimeSpan((allSeconds * 1000n + BigInt(milliseconds)) * 1000n + BigInt(microseconds))
    },
  ),
  method('format', [param('dt', Time), param('format', Text)], ([time, format], { budget }) => {
    budget.text(format.length * 8)
    return formatTime(time, format)
  }),
  method(
    'replace',
    [
      param('dt', Time),
      part('year'),
      part('month'),
      part('day'),
      part('hour'),
      part('minute'),
      part('second'),
      part('microsecond'),
      optional('offset', orNull(Span), null),
    ],
    ([time, year, month, day, hour, minute, second, microsecond, offset]) => {
      const old = time.fields
      const fields = {
        year: year ?? old.year,
        month: month ?? old.month,
        day: day ?? old.day,
        hour: hour ?? old.hour,
        minute: minute ?? old.minute,
        second: second ?? old.second,
        microsecond: microsecond ?? old.microsecond,
      }
      return DateTime.fromFields(fields, offset === null ? time.offset : offset.micros)
    },
  ),
  field('year', (time) => time.fields.year),
  field('month', (time) => time.fields.month),
  field('day', (time) => time.fields.day),
  field('hour', (time) => time.fields.hour),
  field('minute', (time) => time.fields.minute),
  field('second', (time) => time.fields.second),
  field('microsecond', (time) => time.fields.microsecond),
  field('weekday', (time) => time.weekday),
  field('offset', (time) => new TimeSpan(time.offset)),
  field('timestamp', (time) => float(Number(utcOf(time).instant) / 1e6)),
  field('date', midnight),
  field('time', (time) => new TimeSpan(time.wall - midnight(time).wall)),
  field('utc', utcOf),
  spanField('days', 86_400e6),
  spanField('hours', 3600e6),
  spanField('minutes', 60e6),
  spanField('seconds', 1e6),
  spanField('milliseconds', 1000),
  fn('#property#microseconds', [param('obj', Span)], ([span]) => exact(span.micros)),
]
