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
    ['core.svc.DateTimer', { run_at: '2030-01-01', start: '2029-01-01', end: '2031-01-01' }, undefined],
    ['core.svc.DateTimer', { start: 5 }, /start/],
    ['core.svc.DateTimer', { date: 1_893_456_000 }, /date/],
    ['core.svc.CronTimer', { hour: 5, minute: '*/5', timezone: 'UTC' }, undefined],
    ['core.svc.CronTimer', { cron: '@daily', timezone: 'UTC', start: '2030-01-01' }, undefined],
    ['core.svc.CronTimer', { cron: 5 }, /cron/],
    ['core.svc.CronTimer', { jitter_seconds: 60 }, undefined],
    ['core.svc.DateTimer', { date: '2030-01-01', jitter_seconds: -1 }, /jitter_seconds/],
    ['core.svc.IntervalTimer', { unit: 'seconds', delta: 5, jitter_seconds: 1.5 }, /jitter_seconds/],
    ['core.svc.CronTimer', { cron: '*'.repeat(501) }, /cron/],
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
    ['core.svc.DateTimer', {}, /^'date' is a required property, or 'run_at'/],
    ['core.svc.DateTimer', { run_at: '2001-01-01' }, undefined],
    ['core.svc.DateTimer', { run_at: 'soon' }, /^run_at: "soon" is not a date/],
    ['core.svc.DateTimer', { run_at: '2030-01-01', date: '2030-01-01' }, /^run_at: it is another name of date/],
    ['core.svc.DateTimer', { run_at: '2030-01-01', start: '2030-01-02' }, /^start: the timer never fires/],
    ['core.svc.DateTimer', { date: '2030-01-03', end: '2030-01-02' }, /^end: the timer never fires/],
    ['core.svc.IntervalTimer', { unit: 'weeks', delta: 1, start: 'x' }, /^start: "x" is not a date/],
    ['core.svc.CronTimer', { start: '2030-01-02', end: '2030-01-01' }, /^end: the date is before start/],
    ['core.svc.CronTimer', { start: '2030-01-01', end: '2030-01-01' }, undefined],
    // Which is earlier depends on the default time zone.
    ['core.svc.CronTimer', { start: '2030-01-01T01:00:00Z', end: '2030-01-01' }, undefined],
    ['core.svc.CronTimer', { start: '2030-01-01T01:00:00Z', end: '2030-01-01', timezone: 'UTC' }, /^end: /],
    ['core.svc.CronTimer', { cron: '*/5 8-18 * * mon-fri' }, undefined],
    ['core.svc.CronTimer', { cron: '0 25 * * *' }, /^cron: hour: "25" is outside of the range/],
    ['core.svc.CronTimer', { cron: '' }, /^cron: the expression has 0 fields/],
    ['core.svc.CronTimer', { cron: '@reboot' }, /^cron: @reboot is not a time/],
    ['core.svc.CronTimer', { cron: '@daily', hour: 5, minute: 0 }, /^cron: .* hour, minute beside it/],
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
  expect(zoneOf('core.svc.CronTimer', { cron: '0 1 * * *' })).toBe('Asia/Kolkata')
  const start = Date.UTC(2030, 0, 1) * 1000
  expect(readTimer('core.svc.DateTimer', { date: '2030-01-01', end: '2030-01-02T00:00:00Z' }, 'Asia/Kolkata')).toEqual({
    schedule: { kind: 'date', micros: start - 19_800_000_000, end: start + 86_400_000_000 },
  })
  expect(timerTypes).toHaveLength(3)
})
