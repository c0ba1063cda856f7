import { describe, expect, test } from 'vitest'
import { compileSchema } from '../../../lib/schema/index.ts'
import { problemOfTimer, readTimer, timerParameters, timerTypes, type TimerType } from './timer-parameters.ts'

describe('checks by the schema', () => {
  test.each<[TimerType, Record<string, unknown>, RegExp | undefined]>([
    ['core.svc.IntervalTimer', { unit: 'weeks', delta: 1 }, undefined],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: 30, timezone: 'UTC' }, undefined],
    ['core.svc.IntervalTimer', { delta: 30 }, /'unit' is a required property/],
    ['core.svc.IntervalTimer', { unit: 'seconds' }, /'delta' is a required property/],
    ['core.svc.IntervalTimer', { unit: 'years', delta: 1 }, /unit/],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: 0 }, /delta/],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: -5 }, /delta/],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: 1.5 }, /delta/],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: '5' }, /delta/],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: 5, more: 1 }, /more/],
    ['core.svc.DateTimer', { date: '2030-01-01' }, undefined],
    ['core.svc.DateTimer', {}, /'date' is a required property/],
    ['core.svc.DateTimer', { date: 1_893_456_000 }, /date/],
    ['core.svc.CronTimer', { hour: 5, minute: '*/5', timezone: 'UTC' }, undefined],
    ['core.svc.CronTimer', { day_of_week: 7 }, /day_of_week/],
    ['core.svc.CronTimer', { month: 0 }, /month/],
    ['core.svc.CronTimer', { hour: 1.5 }, /hour/],
    ['core.svc.CronTimer', { hour: true }, /hour/],
    ['core.svc.CronTimer', { hours: 1 }, /hours/],
  ])('%s %j', (type, parameters, problem) => {
    const found = compileSchema(timerParameters[type])(parameters)
    expect(found ?? 'fine').toMatch(problem ?? /^fine$/)
  })
})

describe('checks beyond the schema', () => {
  test.each<[string, Record<string, unknown>, RegExp | undefined]>([
    ['core.svc.IntervalTimer', { unit: 'weeks', delta: 1 }, undefined],
    [
      'core.svc.IntervalTimer',
      { unit: 'weeks', delta: 1, timezone: 'Mars/Olympus' },
      /^timezone: .*"Mars\/Olympus".*Europe\/Berlin/,
    ],
    ['core.svc.DateTimer', { date: '2001-01-01' }, undefined],
    ['core.svc.DateTimer', { date: 'tomorrow' }, /^date: "tomorrow" is not a date; use a format such as/],
    ['core.svc.CronTimer', { hour: '5-25' }, /^hour: "5-25" is outside of the range/],
    ['core.svc.CronTimer', { month: 2, day: 30 }, undefined],
    ['core.svc.CronTimer', { minute: '0', timezone: '' }, /^timezone/],
    ['core.svc.webhook', { url: 'x' }, undefined],
  ])('%s %j', (type, parameters, problem) => {
    const found = problemOfTimer(type, parameters)
    expect(found ?? 'fine').toMatch(problem ?? /^fine$/)
  })
})

test('the configured time zone is the default', () => {
  const zoneOf = (type: TimerType, parameters: Record<string, unknown>): unknown => {
    const read = readTimer(type, parameters, 'Asia/Kolkata')
    return 'schedule' in read && 'timeZone' in read.schedule ? read.schedule.timeZone : undefined
  }
  expect(zoneOf('core.svc.CronTimer', { hour: 1 })).toBe('Asia/Kolkata')
  expect(zoneOf('core.svc.CronTimer', { hour: 1, timezone: 'UTC' })).toBe('UTC')
  expect(zoneOf('core.svc.DateTimer', { date: '2030-01-01' })).toBe('Asia/Kolkata')
  expect(zoneOf('core.svc.DateTimer', { date: '2030-01-01T00:00:00Z' })).toBeUndefined()
  expect(timerTypes).toHaveLength(3)
})
