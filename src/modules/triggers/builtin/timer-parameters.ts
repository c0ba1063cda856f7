/** Trigger types of timers (contract 05, 5.8): schemas and meaning of their parameters. */
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
  /** @property wallMicros wall time in the zone, for a text without a UTC offset */
  | { kind: 'date'; wallMicros: number; timeZone: string }
  | { kind: 'date'; micros: number }
  | { kind: 'cron'; cron: CronSchedule; timeZone: string }

const unitSeconds = { weeks: 604_800, days: 86_400, hours: 3600, minutes: 60, seconds: 1 }

/** The largest 32-bit integer. In weeks this is later than the last valid year. */
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
  const zoneName = parameters['timezone']
  const timeZone = typeof zoneName === 'string' ? zoneName : localTimeZone
  if (!isTimeZone(timeZone)) {
    return {
      problem: `timezone: "${shown(timeZone)}" is not a time zone; use a name of the IANA database such as Europe/Berlin or UTC`,
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
          problem: `date: "${shown(text)}" is not a date; use a format such as 2030-01-31T12:00:00Z or 2030-01-31 12:00`,
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
 * Why the parameters of a timer are invalid; undefined: they are valid, or the type is no timer type.
 *
 * @param parameters valid against the schema of the type
 */
export function problemOfTimer(type: string, parameters: Readonly<Record<string, unknown>>): string | undefined {
  if (!isTimerType(type)) return undefined
  const read = readTimer(type, parameters, 'UTC')
  return 'problem' in read ? read.problem : undefined
}
