import { shown } from '../text/index.ts'

/** Fields from most to least significant. */
export const cronFields = ['year', 'month', 'day', 'week', 'day_of_week', 'hour', 'minute', 'second'] as const

export type CronField = (typeof cronFields)[number]

/** Expressions by field; `null` counts as absent. */
export type CronExpressions = { readonly [F in CronField]?: string | number | null | undefined }

export interface CronSchedule {
  /** Sorted; steps count from `first`. */
  readonly years: readonly YearRange[]
  /** Sorted, like all lists here. */
  readonly months: readonly number[]
  readonly daysOfMonth: {
    readonly values: ReadonlySet<number>
    readonly hasLast: boolean
    readonly nthWeekdays: readonly NthWeekday[]
    /** Monday to Friday that is nearest to a day, in the same month; 0: to the last day. */
    readonly nearest: readonly number[]
  }
  readonly weekdays: {
    /** 0 is Monday. */
    readonly values: ReadonlySet<number>
    readonly nth: readonly NthWeekday[]
  }
  /** Whether the day of the month or the weekday has to match; else both have to. */
  readonly isEitherDay: boolean
  /** ISO weeks; undefined: all. */
  readonly weeks: ReadonlySet<number> | undefined
  readonly hours: readonly number[]
  readonly minutes: readonly number[]
  readonly seconds: readonly number[]
}

/** `2nd fri`: {nth: 2, weekday: 4}; nth 0 is the last one. */
export interface NthWeekday {
  nth: number
  weekday: number
}

interface YearRange {
  first: number
  last: number
  step: number
}

const MAX_EXPRESSION_CHARS = 500
const MAX_PARTS = 100
/** The calendar repeats after 400 years, including weekdays. A time without a match in them never matches. */
const CYCLE_YEARS = 400
export const MAX_YEAR = 9999
const DAY_SECONDS = 86_400
const DAY_MS = DAY_SECONDS * 1000

const ranges: Readonly<Record<CronField, readonly [min: number, max: number]>> = {
  year: [1970, MAX_YEAR],
  month: [1, 12],
  day: [1, 31],
  week: [1, 53],
  day_of_week: [0, 6],
  hour: [0, 23],
  minute: [0, 59],
  second: [0, 59],
}

/** Defaults of fields less significant than every given field. */
const minimums: Readonly<Record<CronField, string>> = {
  year: '*',
  month: '1',
  day: '1',
  week: '*',
  day_of_week: '*',
  hour: '0',
  minute: '0',
  second: '0',
}

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdayNames = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
/** The index is the value of `nth`. */
const ordinals = ['last', '1st', '2nd', '3rd', '4th', '5th']

class ExpressionProblem extends Error {}

interface Parts {
  ranges: { first: number; last: number; step: number }[]
  hasLastDay: boolean
  nthWeekdays: NthWeekday[]
}

/** Parses expressions. A problem starts with the name of the field. */
export function readCron(given: CronExpressions): { schedule: CronSchedule } | { problem: string } {
  const isGiven = (field: CronField): boolean => given[field] !== undefined && given[field] !== null
  const least = cronFields.findLastIndex(isGiven)
  const partsOf = (field: CronField): Parts => {
    const fallback = least === -1 || cronFields.indexOf(field) < least ? '*' : minimums[field]
    return readExpression(field, String(given[field] ?? fallback))
  }
  try {
    const day = partsOf('day')
    const week = valuesOf(partsOf('week'))
    return {
      schedule: {
        years: partsOf('year').ranges,
        months: valuesOf(partsOf('month')),
        daysOfMonth: {
          values: new Set(valuesOf(day)),
          hasLast: day.hasLastDay,
          nthWeekdays: day.nthWeekdays,
          nearest: [],
        },
        weekdays: { values: new Set(valuesOf(partsOf('day_of_week'))), nth: [] },
        isEitherDay: false,
        weeks: week.length === 53 ? undefined : new Set(week),
        hours: valuesOf(partsOf('hour')),
        minutes: valuesOf(partsOf('minute')),
        seconds: valuesOf(partsOf('second')),
      },
    }
  } catch (error) {
    if (error instanceof ExpressionProblem) return { problem: error.message }
    throw error
  }
}

function valuesOf({ ranges: parts }: Parts): number[] {
  const values = new Set<number>()
  for (const { first, last, step } of parts) for (let value = first; value <= last; value += step) values.add(value)
  return [...values].sort((a, b) => a - b)
}

function readExpression(field: CronField, given: string): Parts {
  const fail = (why: string): never => {
    throw new ExpressionProblem(`${field}: ${why}`)
  }
  if (given.length > MAX_EXPRESSION_CHARS) fail(`the expression has more than ${MAX_EXPRESSION_CHARS} characters`)
  const parts = given.split(',').map((part) => part.trim().toLowerCase())
  if (parts.length > MAX_PARTS) fail(`the expression has more than ${MAX_PARTS} parts`)

  const read: Parts = { ranges: [], hasLastDay: false, nthWeekdays: [] }
  for (const part of parts) {
    const nth = field === 'day' ? /^(last|1st|2nd|3rd|4th|5th)\s+([a-z]+)$/.exec(part) : null
    if (nth !== null) {
      const weekday = weekdayNames.indexOf(nth[2] ?? '')
      if (weekday === -1)
        fail(`"${shown(nth[2])}" in "${shown(part)}" is not a weekday; use ${weekdayNames.join(', ')}`)
      read.nthWeekdays.push({ nth: ordinals.indexOf(nth[1] ?? ''), weekday })
    } else if (field === 'day' && part === 'last') {
      read.hasLastDay = true
    } else {
      const range = readRange(field, part)
      read.ranges.push(typeof range === 'string' ? fail(range) : range)
    }
  }
  return read
}

/** A text is the problem. */
function readRange(field: CronField, part: string): YearRange | string {
  const [min, max] = ranges[field]
  const names = field === 'month' ? monthNames : field === 'day_of_week' ? weekdayNames : []
  const [, all, from = '', to, stepText] =
    /^(?:(\*)|(\d{1,9}|[a-z]+)(?:\s*-\s*(\d{1,9}|[a-z]+))?)(?:\/(\d{1,9}))?$/.exec(part) ?? []
  if (all === undefined && from === '') return unrecognized(field, part)
  const step = stepText === undefined ? undefined : Number(stepText)
  if (step === 0) return `the step in "${part}" must be at least 1`

  let first = min
  let last = max
  if (all === undefined) {
    const numberOf = (text: string): number =>
      /^\d/.test(text) ? Number(text) : names.indexOf(text) + (names === monthNames ? 1 : 0)
    const isKnown = (text: string): boolean => /^\d/.test(text) || names.includes(text)
    const stranger = [from, ...(to === undefined ? [] : [to])].find((text) => !isKnown(text))
    if (stranger !== undefined) return unrecognized(field, part)
    first = numberOf(from)
    // A step without an end continues to the maximum of the field.
    last = to === undefined ? (step === undefined ? first : max) : numberOf(to)
    if (first < min || last > max || first > max) {
      return `"${part}" is outside of the range of the field, ${min} to ${max}`
    }
    if (first > last) return `the range "${part}" starts after its end`
  }
  if (step !== undefined && step > last - first) {
    return `the step in "${part}" is larger than the range from ${first} to ${last}`
  }
  return { first, last, step: step ?? 1 }
}

function unrecognized(field: CronField, part: string): string {
  const [min, max] = ranges[field]
  const more = {
    year: '',
    month: ', names such as jan or mar-may',
    day: ', last, or an ordinal with a weekday such as 2nd fri or last sun',
    week: '',
    day_of_week: ' where 0 is Monday, names such as mon or mon-fri',
    hour: '',
    minute: '',
    second: '',
  }[field]
  return `the expression "${shown(part)}" is invalid; use *, */2, numbers from ${min} to ${max}, ranges such as ${min}-${min + 2} or ${min}-${min + 4}/2, commas between several parts${more}`
}

/** Whether the schedule matches every hour of its days, so that clock changes do not matter. */
export function isEveryHour({ hours }: CronSchedule): boolean {
  return hours.length === 24
}

/**
 * The first matching time at or after `wallSeconds`; undefined: never.
 *
 * @param wallSeconds wall time as seconds since 1970-01-01 00:00 on that clock
 */
export function nextWallTime(schedule: CronSchedule, wallSeconds: number): number | undefined {
  const firstDay = Math.floor(wallSeconds / DAY_SECONDS)
  const today = findDay(schedule, firstDay)
  if (today === undefined) return undefined
  if (today === firstDay) {
    const time = nextTimeOfDay(schedule, wallSeconds - firstDay * DAY_SECONDS)
    if (time !== undefined) return firstDay * DAY_SECONDS + time
  }
  const day = today > firstDay ? today : findDay(schedule, firstDay + 1)
  const time = nextTimeOfDay(schedule, 0)
  return day === undefined || time === undefined ? undefined : day * DAY_SECONDS + time
}

function nextTimeOfDay({ hours, minutes, seconds }: CronSchedule, from: number): number | undefined {
  const [firstMinute = 0, firstSecond = 0] = [minutes[0], seconds[0]]
  for (const hour of hours) {
    if (hour * 3600 + 3599 < from) continue
    if (hour * 3600 >= from) return hour * 3600 + firstMinute * 60 + firstSecond
    for (const minute of minutes) {
      const start = hour * 3600 + minute * 60
      if (start >= from) return start + firstSecond
      const second = seconds.find((candidate) => start + candidate >= from)
      if (second !== undefined) return start + second
    }
  }
  return undefined
}

/** The first matching day at or after a day, in days since 1970-01-01. */
function findDay(schedule: CronSchedule, from: number): number | undefined {
  const start = new Date(from * DAY_MS)
  const startYear = start.getUTCFullYear()
  const lastYear = Math.min(MAX_YEAR, Math.max(startYear, schedule.years[0]?.first ?? 0) + CYCLE_YEARS)
  let year = nextYear(schedule, startYear)
  while (year !== undefined && year <= lastYear) {
    for (const month of schedule.months) {
      const isFirst = year === startYear && month === start.getUTCMonth() + 1
      if (year === startYear && month < start.getUTCMonth() + 1) continue
      const day = findDayOfMonth(schedule, year, month, isFirst ? start.getUTCDate() : 1)
      if (day !== undefined) return day
    }
    year = nextYear(schedule, year + 1)
  }
  return undefined
}

function nextYear({ years }: CronSchedule, from: number): number | undefined {
  let next: number | undefined
  for (const { first, last, step } of years) {
    const year = from <= first ? first : first + Math.ceil((from - first) / step) * step
    if (year <= last && (next === undefined || year < next)) next = year
  }
  return next
}

function findDayOfMonth(schedule: CronSchedule, year: number, month: number, from: number): number | undefined {
  const firstDay = Date.UTC(year, month - 1, 1) / DAY_MS
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate()
  const firstWeekday = weekdayOf(firstDay)
  const { daysOfMonth, weekdays } = schedule
  const nearest = daysOfMonth.nearest.map((day) => nearestWorkday(day === 0 ? length : day, length, firstWeekday))
  for (let day = from; day <= length; day += 1) {
    const weekday = (firstWeekday + day - 1) % 7
    const isNth = (wanted: NthWeekday): boolean =>
      wanted.weekday === weekday && (wanted.nth === 0 ? day > length - 7 : Math.ceil(day / 7) === wanted.nth)
    const isDayOfMonth =
      daysOfMonth.values.has(day) ||
      (daysOfMonth.hasLast && day === length) ||
      daysOfMonth.nthWeekdays.some(isNth) ||
      nearest.includes(day)
    const isWeekday = weekdays.values.has(weekday) || weekdays.nth.some(isNth)
    const isDay = schedule.isEitherDay ? isDayOfMonth || isWeekday : isDayOfMonth && isWeekday
    if (isDay && (schedule.weeks === undefined || schedule.weeks.has(weekOf(firstDay + day - 1)))) {
      return firstDay + day - 1
    }
  }
  return undefined
}

/** The day from Monday to Friday that is nearest, in the same month; undefined: the month has no such day. */
function nearestWorkday(day: number, length: number, firstWeekday: number): number | undefined {
  if (day > length) return undefined
  const weekday = (firstWeekday + day - 1) % 7
  if (weekday === 5) return day === 1 ? 3 : day - 1
  if (weekday === 6) return day === length ? day - 2 : day + 1
  return day
}

/** @param day since 1970-01-01, which was a Thursday */
function weekdayOf(day: number): number {
  return (((day + 3) % 7) + 7) % 7
}

/** ISO week. It belongs to the year of its Thursday. */
function weekOf(day: number): number {
  const thursday = day - weekdayOf(day) + 3
  const year = new Date(thursday * DAY_MS).getUTCFullYear()
  return Math.floor((thursday - Date.UTC(year, 0, 1) / DAY_MS) / 7) + 1
}
