/** Reads the five fields of a crontab line, or six with seconds in front, and names such as `@daily`. */
import { shown } from '../text/index.ts'
import { MAX_YEAR, type CronSchedule, type NthWeekday } from './cron.ts'

export const MAX_CRONTAB_CHARS = 500
const MAX_PARTS = 100

interface Field {
  name: string
  min: number
  max: number
  /** Names of the values from `min` on. */
  names: readonly string[]
  /** What else a part can be, for messages. */
  more: string
}

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const weekdayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const second: Field = { name: 'second', min: 0, max: 59, names: [], more: '' }
const minute: Field = { name: 'minute', min: 0, max: 59, names: [], more: '' }
const hour: Field = { name: 'hour', min: 0, max: 23, names: [], more: '' }
const dayOfMonth: Field = {
  name: 'day of month',
  min: 1,
  max: 31,
  names: [],
  more: ', L for the last day, 15W for the weekday nearest to the 15th, LW for the last weekday',
}
const month: Field = { name: 'month', min: 1, max: 12, names: monthNames, more: ', names from jan to dec' }
const dayOfWeek: Field = {
  name: 'day of week',
  min: 0,
  max: 7,
  names: weekdayNames,
  more: ' where 0 and 7 are Sunday, names from sun to sat, fri#2 for the second Friday, friL for the last',
}

const nicknames: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

class CrontabProblem extends Error {}

/** Parses a crontab expression. */
export function readCrontab(text: string): { schedule: CronSchedule } | { problem: string } {
  try {
    return { schedule: read(text) }
  } catch (error) {
    if (error instanceof CrontabProblem) return { problem: error.message }
    throw error
  }
}

function read(text: string): CronSchedule {
  if (text.length > MAX_CRONTAB_CHARS) fail(`the expression has more than ${MAX_CRONTAB_CHARS} characters`)
  const given = text.trim().toLowerCase()
  const fields = (given.startsWith('@') ? expand(given) : given).split(/\s+/)
  if (fields.length < 5 || fields.length > 6) fail(problemOfCount(fields))
  const [seconds = '', minutes = '', hours = '', days = '', months = '', weekdays = ''] =
    fields.length === 5 ? ['0', ...fields] : fields

  // From left to right, so that the first problem is the one that is reported.
  const [atSeconds, atMinutes, atHours] = [
    valuesOf(second, seconds.split(',')),
    valuesOf(minute, minutes.split(',')),
    valuesOf(hour, hours.split(',')),
  ]
  const ofMonth = splitDays(days)
  const onDays = valuesOf(dayOfMonth, ofMonth.isOpen ? ['*'] : ofMonth.plain)
  const inMonths = valuesOf(month, months.split(','))
  const ofWeek = splitWeekdays(weekdays)
  return {
    years: [{ first: 1970, last: MAX_YEAR, step: 1 }],
    months: inMonths,
    daysOfMonth: {
      values: new Set(onDays),
      hasLast: ofMonth.hasLast,
      nthWeekdays: [],
      nearest: ofMonth.nearest,
    },
    weekdays: {
      // 0 is Sunday in a crontab, and Monday in the schedule.
      values: new Set(valuesOf(dayOfWeek, ofWeek.isOpen ? ['*'] : ofWeek.plain).map(fromSunday)),
      nth: ofWeek.nth,
    },
    // As cron has it: a field that begins with * does not restrict, even if it has a step.
    isEitherDay: !/^[*?]/.test(days) && !/^[*?]/.test(weekdays),
    weeks: undefined,
    hours: atHours,
    minutes: atMinutes,
    seconds: atSeconds,
  }
}

function fail(problem: string): never {
  throw new CrontabProblem(problem)
}

function expand(nickname: string): string {
  if (nickname === '@reboot') {
    fail(
      '@reboot is not a time. To run an action when the machine starts, call `svc run <action>` from a systemd unit or a crontab',
    )
  }
  if (/^@every\b/.test(nickname)) fail('@every is not a time. Use core.svc.IntervalTimer with unit and delta')
  return (
    (Object.hasOwn(nicknames, nickname) ? nicknames[nickname] : undefined) ??
    fail(`"${shown(nickname)}" is unknown; use ${Object.keys(nicknames).join(', ')}`)
  )
}

function problemOfCount(fields: readonly string[]): string {
  const count = fields[0] === '' ? 0 : fields.length
  const advice =
    count > 6 ? '; leave out the command, the user and the year' : '; for example "*/5 8-18 * * mon-fri" or "@daily"'
  return `the expression has ${count} field${count === 1 ? '' : 's'}, not five (minute hour day-of-month month day-of-week) or six (second in front)${advice}`
}

/** Parts of the day of the month beyond numbers. */
function splitDays(text: string): { plain: string[]; isOpen: boolean; hasLast: boolean; nearest: number[] } {
  const plain: string[] = []
  const nearest: number[] = []
  let hasLast = false
  for (const part of partsOf(dayOfMonth, text)) {
    const near = /^(l|\d{1,9})w$/.exec(part)?.[1]
    if (part === 'l') hasLast = true
    else if (near !== undefined) nearest.push(near === 'l' ? 0 : numberOf(dayOfMonth, near, part))
    else plain.push(part)
  }
  return { plain, isOpen: text === '?', hasLast, nearest }
}

/** Parts of the day of the week beyond numbers and names. */
function splitWeekdays(text: string): { plain: string[]; isOpen: boolean; nth: NthWeekday[] } {
  const plain: string[] = []
  const nth: NthWeekday[] = []
  for (const part of partsOf(dayOfWeek, text)) {
    const [, weekday, which] = /^(\d{1,9}|[a-z]{3})(?:#(\d{1,9}|l)|l)$/.exec(part) ?? []
    if (weekday === undefined) {
      plain.push(part)
      continue
    }
    const ordinal = which === undefined || which === 'l' ? 0 : Number(which)
    if (which === '0' || ordinal > 5) fail(`day of week: "${part}" must name the 1st to the 5th, or L for the last`)
    nth.push({ nth: ordinal, weekday: fromSunday(numberOf(dayOfWeek, weekday, part)) })
  }
  return { plain, isOpen: text === '?', nth }
}

function partsOf({ name }: Field, text: string): string[] {
  const parts = text.split(',')
  if (parts.length > MAX_PARTS) fail(`${name}: the expression has more than ${MAX_PARTS} parts`)
  return parts
}

/** Sorted. */
function valuesOf(field: Field, parts: readonly string[]): number[] {
  if (parts.length > MAX_PARTS) fail(`${field.name}: the expression has more than ${MAX_PARTS} parts`)
  const values = new Set<number>()
  for (const part of parts) {
    const { first, last, step } = readRange(field, part)
    for (let value = first; value <= last; value += step) values.add(value)
  }
  return [...values].sort((a, b) => a - b)
}

function readRange(field: Field, part: string): { first: number; last: number; step: number } {
  const { name, min, max } = field
  const [, all, from, to, stepText] =
    /^(?:(\*)|(\d{1,9}|[a-z]{3})(?:-(\d{1,9}|[a-z]{3}))?)(?:\/(\d{1,9}))?$/.exec(part) ?? []
  if (all === undefined && from === undefined) fail(unrecognized(field, part))
  const step = stepText === undefined ? 1 : Number(stepText)
  if (step === 0) fail(`${name}: the step in "${part}" must be at least 1`)
  // Sunday has two numbers; a step over all weekdays counts it once.
  const end = field === dayOfWeek ? 6 : max
  if (from === undefined) return { first: min, last: end, step }
  const first = numberOf(field, from, part)
  if (to === undefined) return { first, last: stepText === undefined ? first : Math.max(first, end), step }
  // sat-sun ends on the second number of Sunday; sun-sun is Sunday alone.
  const last = to === 'sun' && from !== 'sun' ? 7 : numberOf(field, to, part)
  if (first > last) fail(`${name}: the range "${part}" starts after its end`)
  return { first, last, step }
}

function numberOf(field: Field, text: string, part: string): number {
  const { name, min, max, names } = field
  const index = names.indexOf(text)
  if (index !== -1) return min + index
  if (!/^\d/.test(text)) fail(unrecognized(field, part))
  const value = Number(text)
  if (value < min || value > max) fail(`${name}: "${part}" is outside of the range of the field, ${min} to ${max}`)
  return value
}

function unrecognized({ name, min, max, more }: Field, part: string): string {
  const random = /^h\b|~/.test(part) ? '. To spread jobs, use jitter_seconds' : ''
  return `${name}: the expression "${shown(part)}" is invalid; use *, */2, numbers from ${min} to ${max}, ranges such as ${min}-${min + 2} or ${min}-${min + 4}/2, commas between several parts${more}${random}`
}

/** @param weekday 0 and 7 are Sunday @returns 0 is Monday */
function fromSunday(weekday: number): number {
  return (weekday + 6) % 7
}
