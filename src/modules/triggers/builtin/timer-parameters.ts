/** Trigger types of timers (contract 05, 5.8): what their parameters may be, and what these mean. */
import {
  cronFields,
  readCron,
  type CronExpressions,
  type CronSchedule,
  readDateText,
  isTimeZone,
} from '../../../lib/calendar/index.ts'
import type { JsonSchema } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'

/** When a timer fires. */
export type TimerSchedule =
  | { kind: 'interval'; seconds: number }
  /** @property wallMicros what a clock shows there, where the text did not say its distance from UTC */
  | { kind: 'date'; wallMicros: number; timeZone: string }
  | { kind: 'date'; micros: number }
  | { kind: 'cron'; cron: CronSchedule; timeZone: string }

const unitSeconds = { weeks: 604_800, days: 86_400, hours: 3600, minutes: 60, seconds: 1 }

/** The largest whole number of older readers; more weeks than there are until the last year that can be written. */
const MAX_DELTA = 2_147_483_647
const MAX_EXPRESSION_CHARS = 500

const timezone: JsonSchema = {
  type: 'string',
  maxLength: 64,
  description: 'Name in the IANA database, such as Europe/Berlin. Default: timersengine.local_timezone.',
}

function cronField(minimum: number, maximum: number, description: string): JsonSchema {
  return { type: ['integer', 'string'], minimum, maximum, maxLength: MAX_EXPRESSION_CHARS, description }
}

const cronProperties: Readonly<Record<(typeof cronFields)[number], JsonSchema>> = {
  year: cronField(1970, 9999, 'Year.'),
  month: cronField(1, 12, 'Month, also jan to dec.'),
  day: cronField(1, 31, 'Day of the month; also last, and 2nd fri or last sun.'),
  week: cronField(1, 53, 'ISO week of the year.'),
  day_of_week: cronField(0, 6, '0 is Monday; also mon to sun. With a day given both must hold.'),
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
      delta: { type: 'integer', minimum: 1, maximum: MAX_DELTA, description: 'Units between two times.' },
    },
  },
  'core.svc.DateTimer': {
    type: 'object',
    additionalProperties: false,
    required: ['date'],
    properties: {
      timezone,
      date: { type: 'string', maxLength: 100, description: 'When to fire, such as 2030-01-31T12:00:00Z.' },
    },
  },
  'core.svc.CronTimer': {
    type: 'object',
    additionalProperties: false,
    properties: { timezone, ...cronProperties },
  },
} as const satisfies Record<string, JsonSchema>

export type TimerType = keyof typeof timerParameters

export const timerTypes = Object.keys(timerParameters) as readonly TimerType[] // a literal object has no further keys

/** Of all three types. */
export const timerPayloadSchema: JsonSchema = {
  type: 'object',
  properties: {
    executed_at: { type: 'string', description: 'When it fired, such as 2030-01-01 00:00:00.123456+00:00.' },
    schedule: { type: ['object', 'null'] },
  },
}

export function isTimerType(ref: string): ref is TimerType {
  return Object.hasOwn(timerParameters, ref)
}

/**
 * What the parameters of a timer mean.
 *
 * @param parameters fit the schema of the type
 * @param localTimeZone where none is given
 */
export function readTimer(
  type: TimerType,
  parameters: Readonly<Record<string, unknown>>,
  localTimeZone: string,
): { schedule: TimerSchedule } | { problem: string } {
  const zoneName = parameters['timezone']
  const timeZone = typeof zoneName === 'string' ? zoneName : localTimeZone
  if (!isTimeZone(timeZone)) {
    return {
      problem: `timezone: there is no time zone "${shown(timeZone)}"; use a name of the IANA database such as Europe/Berlin or UTC`,
    }
  }
  switch (type) {
    case 'core.svc.IntervalTimer': {
      const unit = parameters['unit'] as keyof typeof unitSeconds // fits the schema
      return { schedule: { kind: 'interval', seconds: unitSeconds[unit] * Number(parameters['delta']) } }
    }
    case 'core.svc.DateTimer': {
      const text = String(parameters['date'])
      const date = readDateText(text)
      if (date === undefined) {
        return {
          problem: `date: "${shown(text)}" is not understood; use for example 2030-01-31T12:00:00Z or 2030-01-31 12:00`,
        }
      }
      const { wallMicros, offsetMinutes } = date
      return {
        schedule:
          offsetMinutes === undefined
            ? { kind: 'date', wallMicros, timeZone }
            : { kind: 'date', micros: wallMicros - offsetMinutes * 60_000_000 },
      }
    }
    case 'core.svc.CronTimer': {
      const read = readCron(parameters as CronExpressions) // fits the schema
      return 'problem' in read ? read : { schedule: { kind: 'cron', cron: read.schedule, timeZone } }
    }
  }
}

/**
 * Why a timer with these parameters cannot be; undefined: it can, or the type is none of a timer.
 *
 * @param parameters fit the schema of the type
 */
export function problemOfTimer(type: string, parameters: Readonly<Record<string, unknown>>): string | undefined {
  if (!isTimerType(type)) return undefined
  const read = readTimer(type, parameters, 'UTC')
  return 'problem' in read ? read.problem : undefined
}
