import { readFileSync } from 'node:fs'
import { Cron } from 'croner'
import { describe, expect, test } from 'vitest'
import { readCron } from '../../lib/calendar/cron.ts'
import { offsetAt } from '../../lib/calendar/time-zone.ts'
import { readTimer, type TimerSchedule, type TimerType } from '../triggers/index.ts'
import { nextTime } from './next-time.ts'

function scheduleOf(type: TimerType, parameters: Record<string, unknown>, zone = 'UTC'): TimerSchedule {
  const read = readTimer(type, parameters, zone)
  if ('problem' in read) throw new Error(read.problem)
  return read.schedule
}

const microsOf = (text: string): number => Date.parse(text) * 1000
const textOf = (micros: number): string => new Date(micros / 1000).toISOString().replace('.000Z', 'Z')

function timesOf(schedule: TimerSchedule, after: string, count: number, anchor = 0): (string | null)[] {
  const found: (string | null)[] = []
  let at = microsOf(after)
  while (found.length < count) {
    const next = nextTime(schedule, anchor, at)
    if (next === undefined) return [...found, null]
    expect(next).toBeGreaterThan(at)
    found.push(textOf(next))
    at = next
  }
  return found
}

const cron = (fields: Record<string, unknown>, zone: string): TimerSchedule =>
  scheduleOf('core.svc.CronTimer', { ...fields, timezone: zone })

describe('intervals', () => {
  const anchor = 1_893_456_000_123_456
  test.each([
    ['weeks', 2, 1_209_600],
    ['days', 1, 86_400],
    ['hours', 5, 18_000],
    ['minutes', 7, 420],
    ['seconds', 1, 1],
    ['seconds', 90, 90],
  ])('of %s × %d', (unit, delta, seconds) => {
    const schedule = scheduleOf('core.svc.IntervalTimer', { unit, delta })
    const micros = seconds * 1_000_000
    expect(nextTime(schedule, anchor, anchor)).toBe(anchor + micros)
    expect(nextTime(schedule, anchor, anchor + micros - 1)).toBe(anchor + micros)
    expect(nextTime(schedule, anchor, anchor + micros)).toBe(anchor + 2 * micros)
  })

  test('keep their grid after any delay', () => {
    const schedule = scheduleOf('core.svc.IntervalTimer', { unit: 'seconds', delta: 3 })
    let at = anchor
    for (let i = 0; i < 10_000; i += 1) {
      const next = nextTime(schedule, anchor, at + ((i * 7919) % 11_000_000)) ?? 0
      expect((next - anchor) % 3_000_000).toBe(0)
      expect(next - at).toBeLessThanOrEqual(14_000_000)
      at = next
    }
  })

  test('start one interval after the anchor, even if the clock is before it', () => {
    const schedule = scheduleOf('core.svc.IntervalTimer', { unit: 'hours', delta: 1 })
    expect(nextTime(schedule, anchor, anchor - 50_000_000_000)).toBe(anchor + 3_600_000_000)
  })

  test('ignore clock changes', () => {
    const schedule = scheduleOf('core.svc.IntervalTimer', { unit: 'days', delta: 1, timezone: 'Europe/Berlin' })
    expect(timesOf(schedule, '2027-03-27T12:00:00Z', 2, microsOf('2027-03-27T12:00:00Z'))).toEqual([
      '2027-03-28T12:00:00Z',
      '2027-03-29T12:00:00Z',
    ])
  })

  test('beyond the last valid timestamp never fire', () => {
    const schedule = scheduleOf('core.svc.IntervalTimer', { unit: 'weeks', delta: 2_147_483_647 })
    expect(nextTime(schedule, anchor, anchor)).toBeUndefined()
  })
})

describe('start and end', () => {
  test('an interval counts from its start, and fires at it', () => {
    const every = { unit: 'weeks', delta: 2, start: '2030-01-07 09:00', timezone: 'Europe/Berlin' }
    const schedule = scheduleOf('core.svc.IntervalTimer', every)
    const anchor = microsOf('2029-12-24T11:11:11Z')
    expect(timesOf(schedule, '2029-12-24T11:11:11Z', 2, anchor)).toEqual([
      '2030-01-07T08:00:00Z',
      '2030-01-21T08:00:00Z',
    ])
    // A start in the past keeps its rhythm.
    expect(timesOf(schedule, '2030-06-01T00:00:00Z', 1, anchor)).toEqual(['2030-06-10T08:00:00Z'])
  })

  test('both are times at which a timer can fire', () => {
    const hours = { cron: '0 * * * *', start: '2030-01-01T10:00:00Z', end: '2030-01-01T12:00:00Z' }
    expect(timesOf(scheduleOf('core.svc.CronTimer', hours), '2020-01-01T00:00:00Z', 4)).toEqual([
      '2030-01-01T10:00:00Z',
      '2030-01-01T11:00:00Z',
      '2030-01-01T12:00:00Z',
      null,
    ])
    const seconds = { unit: 'seconds', delta: 30, end: '2030-01-01T00:01:00Z' }
    const interval = scheduleOf('core.svc.IntervalTimer', seconds)
    const anchor = microsOf('2030-01-01T00:00:00Z')
    expect(timesOf(interval, '2030-01-01T00:00:00Z', 3, anchor)).toEqual([
      '2030-01-01T00:00:30Z',
      '2030-01-01T00:01:00Z',
      null,
    ])
    const date = scheduleOf('core.svc.DateTimer', { run_at: '2030-01-01T00:00:00Z', end: '2030-01-01T00:00:00Z' })
    expect(timesOf(date, '2029-01-01T00:00:00Z', 2)).toEqual(['2030-01-01T00:00:00Z', null])
  })
})

describe('dates', () => {
  test.each([
    [{ date: '2030-06-01T12:00:00Z' }, '2030-06-01T12:00:00Z'],
    [{ date: '2030-06-01T12:00:00+05:30' }, '2030-06-01T06:30:00Z'],
    // What the text says about its distance from UTC counts, not the zone beside it.
    [{ date: '2030-06-01 12:00:00 -0800', timezone: 'Europe/Berlin' }, '2030-06-01T20:00:00Z'],
    [{ date: '2030-06-01 12:00', timezone: 'Europe/Berlin' }, '2030-06-01T10:00:00Z'],
    [{ date: '2030-01-01 12:00', timezone: 'Europe/Berlin' }, '2030-01-01T11:00:00Z'],
    [{ date: '2030-06-01 12:00', timezone: 'Asia/Kolkata' }, '2030-06-01T06:30:00Z'],
    [{ date: '2030-06-01' }, '2030-06-01T07:00:00Z'],
    // No clock shows it; two hours do.
    [{ date: '2027-03-14 02:30' }, '2027-03-14T10:30:00Z'],
    [{ date: '2027-11-07 01:30' }, '2027-11-07T08:30:00Z'],
    [{ date: '2027-03-28 02:00', timezone: 'Europe/Berlin' }, '2027-03-28T01:00:00Z'],
    [{ date: '2027-10-31 02:59:59', timezone: 'Europe/Berlin' }, '2027-10-31T00:59:59Z'],
    [{ date: '2027-10-31 03:00', timezone: 'Europe/Berlin' }, '2027-10-31T02:00:00Z'],
    // A day that a country left out.
    [{ date: '2011-12-30 12:00', timezone: 'Pacific/Apia' }, '2011-12-30T22:00:00Z'],
  ])('%j', (parameters, expected) => {
    const schedule = scheduleOf('core.svc.DateTimer', parameters, 'America/Los_Angeles')
    expect(timesOf(schedule, '2001-01-01T00:00:00Z', 2)).toEqual([expected, null])
  })

  test('with fractions of a second', () => {
    const schedule = scheduleOf('core.svc.DateTimer', { date: '2030-06-01T12:00:00.123456Z' })
    expect(nextTime(schedule, 0, 0)).toBe(microsOf('2030-06-01T12:00:00Z') + 123_456)
  })

  test('in the past never fire', () => {
    const schedule = scheduleOf('core.svc.DateTimer', { date: '2030-06-01T12:00:00Z' })
    expect(nextTime(schedule, 0, microsOf('2030-06-01T12:00:00Z') - 1)).toBe(microsOf('2030-06-01T12:00:00Z'))
    expect(nextTime(schedule, 0, microsOf('2030-06-01T12:00:00Z'))).toBeUndefined()
  })
})

describe('calendar times', () => {
  interface Golden {
    times: { fields: Record<string, unknown>; zone: string; after: string; times: (string | null)[] }[]
    refused: Record<string, unknown>[]
  }
  const path = new URL('../../../tests/golden/timers/cron.json', import.meta.url)
  const golden = JSON.parse(readFileSync(path, 'utf8')) as Golden // its shape is ours

  test.each(golden.times.map((row) => [JSON.stringify(row.fields), row.zone, row.after, row] as const))(
    'as the scheduling library of the field: %s in %s after %s',
    (_, zone, after, { fields, times }) => {
      // There the time itself counts as well.
      const before = new Date(Date.parse(after) - 1).toISOString()
      const count = times.filter((time) => time !== null).length
      const expected = times.at(-1) === null ? times : times.slice(0, count)
      expect(timesOf(cron(fields, zone), before, expected.length)).toEqual(expected)
    },
  )

  test.each(golden.refused.map((fields) => [JSON.stringify(fields), fields] as const))(
    'refuses what it refuses: %s',
    (_, fields) => {
      expect(readCron(fields)).toEqual({ problem: expect.stringMatching(/^\w+: ./) })
    },
  )

  test.each<[string, Record<string, unknown>, string, string, (string | null)[]]>([
    [
      'a time that clocks leave out comes as much later',
      { hour: 2, minute: 30 },
      'America/Los_Angeles',
      '2027-03-13T00:00:00Z',
      ['2027-03-13T10:30:00Z', '2027-03-14T10:30:00Z', '2027-03-15T09:30:00Z', '2027-03-16T09:30:00Z'],
    ],
    [
      'the day after clocks were set is not left out',
      { day: '*' },
      'America/Los_Angeles',
      '2027-03-14T08:22:26Z',
      ['2027-03-15T07:00:00Z', '2027-03-16T07:00:00Z'],
    ],
    [
      'a time that clocks show twice counts once',
      { hour: 1, minute: 30 },
      'America/Los_Angeles',
      '2027-11-06T12:00:00Z',
      ['2027-11-07T08:30:00Z', '2027-11-08T09:30:00Z'],
    ],
    [
      'the second time is over when asked in between',
      { hour: '1,2', minute: 30 },
      'Europe/Berlin',
      '2027-10-31T00:45:00Z',
      ['2027-11-01T00:30:00Z', '2027-11-01T01:30:00Z'],
    ],
    [
      'every hour goes on hour by hour over a gap',
      { minute: 30 },
      'America/Los_Angeles',
      '2027-03-14T08:45:00Z',
      ['2027-03-14T09:30:00Z', '2027-03-14T10:30:00Z', '2027-03-14T11:30:00Z'],
    ],
    [
      'and over an hour that comes twice',
      { minute: 30 },
      'America/Los_Angeles',
      '2027-11-07T07:45:00Z',
      ['2027-11-07T08:30:00Z', '2027-11-07T09:30:00Z', '2027-11-07T10:30:00Z', '2027-11-07T11:30:00Z'],
    ],
    [
      'every second, too',
      { second: '*' },
      'America/Los_Angeles',
      '2027-11-07T08:59:58Z',
      ['2027-11-07T08:59:59Z', '2027-11-07T09:00:00Z', '2027-11-07T09:00:01Z'],
    ],
    [
      'several times in a gap all come',
      { hour: 2, minute: '*/20' },
      'Europe/Berlin',
      '2027-03-28T00:00:00Z',
      ['2027-03-28T01:00:00Z', '2027-03-28T01:20:00Z', '2027-03-28T01:40:00Z', '2027-03-29T00:00:00Z'],
    ],
    [
      'a time in a gap and the one it moves to count once',
      { hour: '2,3' },
      'Europe/Berlin',
      '2027-03-28T00:00:00Z',
      ['2027-03-28T01:00:00Z', '2027-03-29T00:00:00Z', '2027-03-29T01:00:00Z'],
    ],
    [
      'clocks set by half an hour',
      { hour: 2, minute: 15 },
      'Australia/Lord_Howe',
      '2027-10-01T00:00:00Z',
      ['2027-10-01T15:45:00Z', '2027-10-02T15:45:00Z', '2027-10-03T15:15:00Z'],
    ],
    [
      'midnight that does not exist',
      { hour: 0 },
      'Africa/Cairo',
      '2027-04-28T12:00:00Z',
      ['2027-04-28T22:00:00Z', '2027-04-29T22:00:00Z', '2027-04-30T21:00:00Z'],
    ],
    [
      'a day that a country left out',
      { hour: 12 },
      'Pacific/Apia',
      '2011-12-29T00:00:00Z',
      ['2011-12-29T22:00:00Z', '2011-12-30T22:00:00Z', '2011-12-31T22:00:00Z'],
    ],
    [
      'a zone without such changes',
      { hour: 0, minute: 0 },
      'Asia/Kolkata',
      '2027-03-27T18:30:00Z',
      ['2027-03-28T18:30:00Z', '2027-03-29T18:30:00Z'],
    ],
    [
      'far away, past many changes',
      { year: 2099, month: 7, day: 1, hour: 12 },
      'Europe/Berlin',
      '2027-01-01T00:00:00Z',
      ['2099-07-01T10:00:00Z', null],
    ],
    [
      'the last hours of the calendar',
      { year: 9999, month: 12, day: 31, hour: 23 },
      'UTC',
      '2027-01-01T00:00:00Z',
      ['9999-12-31T23:00:00Z', null],
    ],
    [
      'beyond it in UTC',
      { year: 9999, month: 12, day: 31, hour: 23 },
      'America/Los_Angeles',
      '2027-01-01T00:00:00Z',
      [null],
    ],
    ['never', { month: 2, day: 31 }, 'America/Los_Angeles', '2027-01-01T00:00:00Z', [null]],
    ['a year that is over', { year: 2026 }, 'UTC', '2027-01-01T00:00:00Z', [null]],
  ])('%s: %j in %s after %s', (_, fields, zone, after, expected) => {
    expect(timesOf(cron(fields, zone), after, expected.length)).toEqual(expected)
  })

  const crontab = (text: string, timezone: string): TimerSchedule =>
    scheduleOf('core.svc.CronTimer', { cron: text, timezone })

  // Each row: the local times at which it fires, as they are in UTC.
  test.each<[string, string, string, string, string[]]>([
    [
      'a skipped hour: the run of the day comes an hour later',
      '30 2 * * *',
      'Europe/Berlin',
      '2027-03-27T12:00:00Z',
      ['2027-03-28T01:30:00Z', '2027-03-29T00:30:00Z'],
    ],
    [
      'a skipped hour: quarters go on every quarter',
      '*/15 * * * *',
      'Europe/Berlin',
      '2027-03-28T00:40:00Z',
      ['2027-03-28T00:45:00Z', '2027-03-28T01:00:00Z', '2027-03-28T01:15:00Z', '2027-03-28T01:30:00Z'],
    ],
    [
      'a repeated hour: the run of the day comes once',
      '30 2 * * *',
      'Europe/Berlin',
      '2027-10-30T12:00:00Z',
      ['2027-10-31T00:30:00Z', '2027-11-01T01:30:00Z'],
    ],
    [
      'a repeated hour: quarters go on every quarter',
      '*/15 * * * *',
      'Europe/Berlin',
      '2027-10-31T00:40:00Z',
      ['2027-10-31T00:45:00Z', '2027-10-31T01:00:00Z', '2027-10-31T01:15:00Z', '2027-10-31T01:30:00Z'],
    ],
    [
      'a skipped half hour',
      '0 2 * * *',
      'Australia/Lord_Howe',
      '2027-10-02T00:00:00Z',
      ['2027-10-02T15:30:00Z', '2027-10-03T15:00:00Z'],
    ],
    [
      'a skipped half hour: quarters go on every quarter',
      '*/15 * * * *',
      'Australia/Lord_Howe',
      '2027-10-02T15:10:00Z',
      ['2027-10-02T15:15:00Z', '2027-10-02T15:30:00Z', '2027-10-02T15:45:00Z'],
    ],
    [
      'a repeated half hour: once',
      '45 1 * * *',
      'Australia/Lord_Howe',
      '2027-04-03T00:00:00Z',
      ['2027-04-03T14:45:00Z', '2027-04-04T15:15:00Z'],
    ],
    [
      'a repeated half hour: quarters go on every quarter',
      '*/15 * * * *',
      'Australia/Lord_Howe',
      '2027-04-03T14:40:00Z',
      ['2027-04-03T14:45:00Z', '2027-04-03T15:00:00Z', '2027-04-03T15:15:00Z'],
    ],
    [
      'the southern hemisphere skips in September',
      '0 2 * * *',
      'Pacific/Auckland',
      '2027-09-25T00:00:00Z',
      ['2027-09-25T14:00:00Z', '2027-09-26T13:00:00Z'],
    ],
    [
      'and repeats in April',
      '30 2 * * *',
      'Pacific/Auckland',
      '2027-04-03T00:00:00Z',
      ['2027-04-03T13:30:00Z', '2027-04-04T14:30:00Z'],
    ],
    [
      'quarters there',
      '*/15 * * * *',
      'Pacific/Auckland',
      '2027-09-25T13:50:00Z',
      ['2027-09-25T14:00:00Z', '2027-09-25T14:15:00Z'],
    ],
    [
      'a zone of half an hour without changes',
      '@daily',
      'Asia/Kolkata',
      '2027-03-27T12:00:00Z',
      ['2027-03-27T18:30:00Z', '2027-03-28T18:30:00Z'],
    ],
    [
      'a time that is skipped only on a weekday that is not meant',
      '30 2 * * mon-sat',
      'Europe/Berlin',
      '2027-03-27T12:00:00Z',
      ['2027-03-29T00:30:00Z'],
    ],
  ])('clocks are set: %s (%s in %s)', (_, text, zone, after, expected) => {
    expect(timesOf(crontab(text, zone), after, expected.length)).toEqual(expected)
  })

  test('as croner has them, except for the hours around a change of clocks', () => {
    for (const zone of ['Europe/Berlin', 'Australia/Lord_Howe', 'America/St_Johns', 'Pacific/Auckland']) {
      for (const text of ['17 */5 * * *', '30 2 * * *', '0 2 L * *', '15 1,3 * * sun', '0 12 15W * *']) {
        const after = new Date('2027-03-01T00:00:00Z')
        const runs = new Cron(text, { timezone: zone, paused: true }).nextRuns(60, after)
        const isApart = (time: string): boolean =>
          offsetAt(zone, Date.parse(time) / 1000 - 10_800) === offsetAt(zone, Date.parse(time) / 1000 + 10_800)
        const expected = runs.map((run) => run.toISOString().replace('.000Z', 'Z')).filter(isApart)
        const found = timesOf(crontab(text, zone), after.toISOString(), 60).filter((time) => time !== null)
        expect([zone, text, ...found.filter(isApart)]).toEqual([zone, text, ...expected])
      }
    }
  })

  test('fire in order and once, from any second of days on which clocks change', () => {
    for (const [zone, day] of [
      ['America/Los_Angeles', '2027-03-14T06:00:00Z'],
      ['America/Los_Angeles', '2027-11-07T06:00:00Z'],
      ['Europe/Berlin', '2027-10-30T22:00:00Z'],
      ['Australia/Lord_Howe', '2027-10-02T12:00:00Z'],
    ] as const) {
      for (const fields of [{ minute: '*/10' }, { hour: '*/2', minute: '5,35' }, { hour: '1-3', minute: '*/15' }]) {
        const schedule = cron(fields, zone)
        const start = microsOf(day)
        const end = start + 8 * 3_600_000_000
        const all: number[] = []
        for (let at = start; at < end; all.push(at)) at = nextTime(schedule, 0, at) ?? Infinity
        // Whenever it is asked, the answer is the next of the same times.
        for (let at = start; at < all[all.length - 2]!; at += 61_000_000) {
          // there are at least two
          expect(nextTime(schedule, 0, at)).toBe(all.find((time) => time > at))
        }
      }
    }
  })
})
