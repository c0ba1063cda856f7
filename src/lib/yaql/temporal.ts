/** Points in time and durations, as Python's `datetime` and `timedelta` behave and print. */
import { valueError, YaqlError } from './error.ts'
import { YaqlObject } from './values.ts'

const SECOND = 1_000_000n
const MINUTE = 60n * SECOND
const HOUR = 60n * MINUTE
export const DAY = 24n * HOUR

const MAX_SPAN_DAYS = 999_999_999n

const divideDown = (value: bigint, by: bigint): bigint => (value - mod(value, by)) / by
const mod = (value: bigint, by: bigint): bigint => ((value % by) + by) % by

const two = (value: number | bigint): string => String(value).padStart(2, '0')
const six = (value: bigint): string => String(value).padStart(6, '0')

/** A duration in microseconds. */
export class TimeSpan extends YaqlObject {
  readonly typeName = 'datetime.timedelta'
  readonly micros: bigint

  constructor(micros: bigint) {
    super()
    const days = divideDown(micros, DAY)
    if (days > MAX_SPAN_DAYS || days < -MAX_SPAN_DAYS) {
      throw new YaqlError('OverflowError', `days=${days}; must have magnitude <= ${MAX_SPAN_DAYS}`)
    }
    this.micros = micros
  }

  /** `1 day, 2:00:00`; below zero the days are negative and the rest is not. */
  text(): string {
    const days = divideDown(this.micros, DAY)
    const rest = mod(this.micros, DAY)
    const micros = rest % SECOND
    const clock = `${rest / HOUR}:${two((rest % HOUR) / MINUTE)}:${two((rest % MINUTE) / SECOND)}`
    const dayText = days === 0n ? '' : `${days} day${days === 1n || days === -1n ? '' : 's'}, `
    return `${dayText}${clock}${micros === 0n ? '' : `.${six(micros)}`}`
  }

  representation(): string {
    const rest = mod(this.micros, DAY)
    const parts = [
      ['days', divideDown(this.micros, DAY)],
      ['seconds', rest / SECOND],
      ['microseconds', rest % SECOND],
    ] as const
    const named = parts.filter(([, value]) => value !== 0n).map(([name, value]) => `${name}=${value}`)
    return `datetime.timedelta(${named.length === 0 ? '0' : named.join(', ')})`
  }
}

export interface DateFields {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly microsecond: number
}

const bounds: readonly (readonly [keyof DateFields, number, number])[] = [
  ['year', 1, 9999],
  ['month', 1, 12],
  ['day', 1, 31],
  ['hour', 0, 23],
  ['minute', 0, 59],
  ['second', 0, 59],
  ['microsecond', 0, 999_999],
]

/** Milliseconds of a UTC date; `Date.UTC` would take the years 0 to 99 for 1900 to 1999. */
function utcMilliseconds({ year, month, day, hour, minute, second }: DateFields): number {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second)
  return date.getTime()
}

const FIRST =
  BigInt(utcMilliseconds({ year: 1, month: 1, day: 1, hour: 0, minute: 0, second: 0, microsecond: 0 })) * 1000n
const LAST = BigInt(Date.UTC(10_000, 0, 1)) * 1000n - 1n

/** A time of day on a calendar, with its distance from UTC. */
export class DateTime extends YaqlObject {
  readonly typeName = 'datetime.datetime'
  /** Microseconds since 1970-01-01 00:00 on the clock of its zone. */
  readonly wall: bigint
  /** Microseconds ahead of UTC. */
  readonly offset: bigint

  constructor(wall: bigint, offset: bigint) {
    super()
    if (wall < FIRST || wall > LAST) throw new YaqlError('OverflowError', 'date value out of range')
    if (offset <= -DAY || offset >= DAY) {
      throw valueError('offset must be a timedelta strictly between -timedelta(hours=24) and timedelta(hours=24).')
    }
    this.wall = wall
    this.offset = offset
  }

  static fromFields(fields: DateFields, offset: bigint): DateTime {
    for (const [name] of bounds) {
      if (Math.abs(fields[name]) > 0x7fffffff) {
        throw new YaqlError(
          'OverflowError',
          `signed integer is ${fields[name] < 0 ? 'less than minimum' : 'greater than maximum'}`,
        )
      }
    }
    for (const [name, low, high] of bounds) {
      if (fields[name] >= low && fields[name] <= high) continue
      if (name === 'year') throw valueError(`year ${fields.year} is out of range`)
      throw valueError(name === 'day' ? 'day is out of range for month' : `${name} must be in ${low}..${high}`)
    }
    const milliseconds = utcMilliseconds(fields)
    if (new Date(milliseconds).getUTCDate() !== fields.day) throw valueError('day is out of range for month')
    return new DateTime(BigInt(milliseconds) * 1000n + BigInt(fields.microsecond), offset)
  }

  /** Microseconds since 1970-01-01 00:00 UTC. */
  get instant(): bigint {
    return this.wall - this.offset
  }

  get fields(): DateFields {
    const date = this.#date()
    return {
      year: date.getUTCFullYear(),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
      microsecond: Number(mod(this.wall, SECOND)),
    }
  }

  /** 0 is Monday. */
  get weekday(): number {
    return (this.#date().getUTCDay() + 6) % 7
  }

  #date(): Date {
    return new Date(Number(divideDown(this.wall, 1000n)))
  }

  at(offset: bigint): DateTime {
    return new DateTime(this.instant + offset, offset)
  }

  plus(micros: bigint): DateTime {
    return new DateTime(this.wall + micros, this.offset)
  }

  /** `2024-02-29T13:14:15.123456+02:00`. */
  text(separator: 'T' | ' '): string {
    const { year, month, day, hour, minute, second, microsecond } = this.fields
    const date = `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`
    const fraction = microsecond === 0 ? '' : `.${String(microsecond).padStart(6, '0')}`
    return `${date}${separator}${two(hour)}:${two(minute)}:${two(second)}${fraction}${offsetText(this.offset, ':')}`
  }

  representation(): string {
    const { year, month, day, hour, minute, second, microsecond } = this.fields
    const parts: number[] = [year, month, day, hour, minute]
    if (second !== 0 || microsecond !== 0) parts.push(second)
    if (microsecond !== 0) parts.push(microsecond)
    const zone = this.offset === 0n ? 'tzutc()' : `tzoffset(None, ${this.offset / SECOND})`
    return `datetime.datetime(${parts.join(', ')}, tzinfo=${zone})`
  }
}

/** `+02:00`, with seconds where there are any. */
export function offsetText(offset: bigint, separator: string): string {
  const size = offset < 0n ? -offset : offset
  const seconds = (size % MINUTE) / SECOND
  const tail = seconds === 0n ? '' : `${separator}${two(seconds)}`
  return `${offset < 0n ? '-' : '+'}${two(size / HOUR)}${separator}${two((size % HOUR) / MINUTE)}${tail}`
}
