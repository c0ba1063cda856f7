/** Trigger types of timers (contract 05, 5.8): schemas and meaning of their parameters. */
import {
  cronFields,
  MAX_CRONTAB_CHARS,
  readCron,
  readCrontab,
  instantOf,
  type CronExpressions,
  type CronSchedule,
  readDateText,
  isTimeZone,
} from '../../../lib/calendar/index.ts'
import type { JsonSchema } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'

/** When a timer fires. Instants are microseconds since the epoch. */
export type TimerSchedule = TimerBounds &
  (
    | { kind: 'interval'; seconds: number }
    | { kind: 'date'; micros: number }
    | { kind: 'cron'; cron: CronSchedule; timeZone: string }
  )

interface TimerBounds {
  /** The first and the last instant at which the timer can fire; absent: no limit. */
  start?: number
  end?: number
  /** The longest delay of a firing; absent: 0. */
  jitterSeconds?: number
}

const unitSeconds = { weeks: 604_800, days: 86_400, hours: 3600, minutes: 60, seconds: 1 }

/** The largest 32-bit integer. In weeks this is later than the last valid year. */
const MAX_DELTA = 2_147_483_647
const MAX_EXPRESSION_CHARS = 500

const timezone: JsonSchema = {
  type: 'string',
  maxLength: 64,
  description: 'Name in the IANA database, such as Europe/Berlin. Default: timersengine.local_timezone.',
}

const MAX_DATE_CHARS = 100
const MAX_JITTER_SECONDS = 2_592_000

function date(description: string): JsonSchema {
  return { type: 'string', maxLength: MAX_DATE_CHARS, description }
}

const bounds = {
  start: date('It does not fire before this date; an interval counts from it.'),
  end: date('It does not fire after this date.'),
  jitter_seconds: {
    type: 'integer',
    minimum: 0,
    maximum: MAX_JITTER_SECONDS,
    description: 'Each firing is delayed by a random time of at most so many seconds, but stays before the next one.',
  },
} as const

function cronField(minimum: number, maximum: number, description: string): JsonSchema {
  return { type: ['integer', 'string'], minimum, maximum, maxLength: MAX_EXPRESSION_CHARS, description }
}

const cronProperties: Readonly<Record<(typeof cronFields)[number], JsonSchema>> = {
  year: cronField(1970, 9999, 'Year.'),
  month: cronField(1, 12, 'Month; also jan to dec.'),
  day: cronField(1, 31, 'Day of the month; also last, and 2nd fri or last sun.'),
  week: cronField(1, 53, 'ISO week of the year.'),
  day_of_week: cronField(0, 6, '0 is Monday; also mon to sun. If day is set, both must match.'),
  hour: cronField(0, 23, 'Hour.'),
  minute: cronField(0, 59, 'Minute.'),
  second: cronField(0, 59, 'Second.'),
}

/** Trigger type ref → schema of the parameters. */
export const timerParameters = {
  'core.svc.IntervalTimer': {
    type: 'object',
    additionalProperties: false,
    required: ['unit', 'delta'],
    properties: {
      timezone,
      unit: { enum: Object.keys(unitSeconds), description: 'Unit of delta.' },
      delta: { type: 'integer', minimum: 1, maximum: MAX_DELTA, description: 'Units between two firings.' },
      ...bounds,
    },
  },
  'core.svc.DateTimer': {
    type: 'object',
    additionalProperties: false,
    properties: {
      timezone,
      date: date('When to fire, such as 2030-01-31T12:00:00Z. Required, unless run_at is given.'),
      run_at: date('Another name of date.'),
      ...bounds,
    },
  },
  'core.svc.CronTimer': {
    type: 'object',
    additionalProperties: false,
    properties: {
      timezone,
      cron: {
        type: 'string',
        maxLength: MAX_CRONTAB_CHARS,
        description:
          'Crontab expression of five fields, or six with seconds in front, such as "*/5 8-18 * * mon-fri"; or @daily. In place of the fields. Here 0 and 7 are Sunday.',
      },
      ...cronProperties,
      ...bounds,
    },
  },
} as const satisfies Record<string, JsonSchema>

export type TimerType = keyof typeof timerParameters

export const timerTypes = Object.keys(timerParameters) as readonly TimerType[] // a literal object has no further keys

/** Payload schema of all three types. */
export const timerPayloadSchema: JsonSchema = {
  type: 'object',
  properties: {
    executed_at: { type: 'string', description: 'Time of the firing, such as 2030-01-01 00:00:00.123456+00:00.' },
    schedule: { type: ['object', 'null'] },
  },
}

export function isTimerType(ref: string): ref is TimerType {
  return Object.hasOwn(timerParameters, ref)
}

/** The time zone in which the parameters of a timer are read. @param localTimeZone default time zone */
export function timeZoneOf({ timezone }: Readonly<Record<string, unknown>>, localTimeZone: string): string {
  return typeof timezone === 'string' ? timezone : localTimeZone
}

/**
 * Reads the schedule from the parameters of a timer.
 *
 * @param parameters valid against the schema of the type
 * @param localTimeZone default time zone
 */
export function readTimer(
  type: TimerType,
  parameters: Readonly<Record<string, unknown>>,
  localTimeZone: string,
): { schedule: TimerSchedule } | { problem: string } {
  const { timezone: zoneName, jitter_seconds: jitter } = parameters
  const timeZone = timeZoneOf(parameters, localTimeZone)
  if (!isTimeZone(timeZone)) {
    return {
      problem: `timezone: "${shown(timeZone)}" is not a time zone; use a name of the IANA database such as Europe/Berlin or UTC`,
    }
  }
  const dateOf = (name: 'date' | 'run_at' | 'start' | 'end'): Instant | undefined => {
    const text = parameters[name]
    return typeof text === 'string' ? readDate(name, text, timeZone) : undefined
  }
  // Without a time zone, a date with an offset and one without compare only where the default time zone is known.
  const isBefore = (a: Instant | undefined, b: Instant | undefined): boolean =>
    a !== undefined &&
    b !== undefined &&
    a.micros < b.micros &&
    (typeof zoneName === 'string' || a.hasOffset === b.hasOffset)
  try {
    const [start, end] = [dateOf('start'), dateOf('end')]
    if (isBefore(end, start)) fail('end: the date is before start')
    const within = {
      ...(start === undefined ? {} : { start: start.micros }),
      ...(end === undefined ? {} : { end: end.micros }),
      ...(typeof jitter === 'number' && jitter > 0 ? { jitterSeconds: jitter } : {}),
    }
    switch (type) {
      case 'core.svc.IntervalTimer': {
        const unit = parameters['unit'] as keyof typeof unitSeconds // fits the schema
        return { schedule: { kind: 'interval', seconds: unitSeconds[unit] * Number(parameters['delta']), ...within } }
      }
      case 'core.svc.DateTimer': {
        const [date, runAt] = [dateOf('date'), dateOf('run_at')]
        if (date !== undefined && runAt !== undefined) fail('run_at: it is another name of date; give one of them')
        const at = date ?? runAt ?? fail("'date' is a required property, or 'run_at', which is another name of it")
        if (isBefore(at, start)) fail('start: the timer never fires, because its date is before the start')
        if (isBefore(end, at)) fail('end: the timer never fires, because its date is after the end')
        return { schedule: { kind: 'date', micros: at.micros, ...within } }
      }
      case 'core.svc.CronTimer':
        return { schedule: { kind: 'cron', cron: readCronParameters(parameters), timeZone, ...within } }
    }
  } catch (error) {
    if (error instanceof TimerProblem) return { problem: error.message }
    throw error
  }
}

class TimerProblem extends Error {}

function fail(problem: string): never {
  throw new TimerProblem(problem)
}

interface Instant {
  micros: number
  /** Whether its text says how far it is from UTC. */
  hasOffset: boolean
}

function readDate(name: string, text: string, timeZone: string): Instant {
  const read =
    readDateText(text) ??
    fail(`${name}: "${shown(text)}" is not a date; use a format such as 2030-01-31T12:00:00Z or 2030-01-31 12:00`)
  const { wallMicros, offsetMinutes } = read
  return offsetMinutes === undefined
    ? { micros: instantOf(timeZone, wallMicros), hasOffset: false }
    : { micros: wallMicros - offsetMinutes * 60_000_000, hasOffset: true }
}

function readCronParameters(parameters: Readonly<Record<string, unknown>>): CronSchedule {
  const { cron } = parameters
  if (typeof cron !== 'string') {
    const read = readCron(parameters as CronExpressions) // fits the schema
    return 'problem' in read ? fail(read.problem) : read.schedule
  }
  const given = cronFields.filter((field) => (parameters[field] ?? undefined) !== undefined)
  if (given.length > 0) {
    fail(`cron: the expression says all, and ${given.join(', ')} beside it contradicts it; give one or the other`)
  }
  const read = readCrontab(cron)
  return 'problem' in read ? fail(`cron: ${read.problem}`) : read.schedule
}

/**
 * Why the parameters of a timer are invalid; undefined: they are valid, or the type is no timer type.
 *
 * @param parameters valid against the schema of the type
 */
export function problemOfTimer(type: string, parameters: Readonly<Record<string, unknown>>): string | undefined {
  if (!isTimerType(type)) return undefined
  const read = readTimer(type, parameters, 'UTC')
  return 'problem' in read ? read.problem : undefined
}
