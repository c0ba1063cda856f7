import { describe, expect, test } from 'vitest'
import {
  afterSetBack,
  afterStart,
  beginCount,
  checkOf,
  lookAt,
  readExpected,
  type Circumstances,
  type Count,
  type Success,
} from './expectation.ts'

const MINUTE = 60_000_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A timer that is due at each full hour. */
const at = (now: number, more: Partial<Circumstances> = {}): Circumstances => ({
  now,
  startedAt: 0,
  firedAt: undefined,
  isMadeUpFor: true,
  dueAfter: (after) => (Math.floor(after / HOUR) + 1) * HOUR,
  ...more,
})
const success = (servedFor: number, end = servedFor + MINUTE): Success => ({ at: end, servedFor })
const hourly = readExpected({ within: '10m' })
const daily = readExpected({ every: '24h' })

const countOf = (found: ReturnType<typeof lookAt>): Count => {
  if ('miss' in found) throw new Error(`missed ${found.miss.due}`)
  return found.count
}

describe('within', () => {
  const begun = beginCount(hourly, at(30 * MINUTE))

  test('the count begins with the next due time', () => {
    expect(begun).toEqual({ since: 30 * MINUTE, due: HOUR, dueBy: HOUR + 10 * MINUTE, successBy: undefined })
    expect(checkOf(begun)).toBe(HOUR + 10 * MINUTE)
  })

  test('a success for the due time moves it on; the one before it does not', () => {
    const now = HOUR + 10 * MINUTE
    expect(countOf(lookAt(hourly, begun, success(HOUR), at(now)))).toMatchObject({ due: 2 * HOUR })
    // A run of the hour before that took an hour.
    expect(lookAt(hourly, begun, success(0, HOUR + MINUTE), at(now))).toEqual({ miss: { due: HOUR, isOfTimer: true } })
    expect(lookAt(hourly, begun, undefined, at(now))).toEqual({ miss: { due: HOUR, isOfTimer: true } })
    expect(countOf(lookAt(hourly, begun, undefined, at(now - 1)))).toEqual(begun)
  })

  test('a span that is longer than the interval looks at each due time', () => {
    const slow = readExpected({ within: '150m' })
    let count = beginCount(slow, at(0))
    for (const due of [1, 2, 3]) {
      expect(count.due).toBe(due * HOUR)
      count = countOf(lookAt(slow, count, success(due * HOUR), at(due * HOUR + 150 * MINUTE)))
    }
    expect(lookAt(slow, count, success(3 * HOUR), at(4 * HOUR + 150 * MINUTE))).toEqual({
      miss: { due: 4 * HOUR, isOfTimer: true },
    })
  })

  test('a date that has passed is expected once', () => {
    const never = at(0, { dueAfter: (after) => (after < HOUR ? HOUR : undefined) })
    const count = beginCount(hourly, never)
    const after = countOf(lookAt(hourly, count, success(HOUR), { ...never, now: HOUR + 10 * MINUTE }))
    expect([after.due, checkOf(after)]).toEqual([undefined, undefined])
    expect(checkOf(beginCount(hourly, { ...never, now: 2 * HOUR }))).toBeUndefined()
  })
})

describe('within, while the server was off at the due time', () => {
  const count: Count = { since: 0, due: HOUR, dueBy: HOUR + 10 * MINUTE, successBy: undefined }
  const startedAt = 5 * HOUR + 30 * MINUTE

  test('the firing at the start has its time, and serves all due times before', () => {
    const started = afterStart(hourly, count, undefined, at(startedAt, { startedAt }))
    expect(started.dueBy).toBe(startedAt + 10 * MINUTE)
    const late = at(startedAt + 10 * MINUTE, { startedAt, firedAt: startedAt })
    expect(lookAt(hourly, started, undefined, late)).toEqual({ miss: { due: HOUR, isOfTimer: true } })
    expect(countOf(lookAt(hourly, started, success(startedAt), late))).toMatchObject({
      due: 6 * HOUR,
      dueBy: 6 * HOUR + 10 * MINUTE,
    })
  })

  test('a further start gives no further time once the timer has fired', () => {
    const started = afterStart(hourly, count, undefined, at(startedAt, { startedAt }))
    const again = startedAt + 5 * MINUTE
    const circumstances = at(again, { startedAt: again, firedAt: startedAt + 1 })
    expect(afterStart(hourly, started, undefined, circumstances).dueBy).toBe(startedAt + 10 * MINUTE)
    // Killed before that: it fires now.
    expect(afterStart(hourly, started, undefined, at(again, { startedAt: again })).dueBy).toBe(again + 10 * MINUTE)
  })

  test('a run that had begun before the stop keeps its time', () => {
    const circumstances = at(startedAt, { startedAt, firedAt: HOUR })
    expect(afterStart(hourly, count, undefined, circumstances).dueBy).toBe(HOUR + 10 * MINUTE)
  })

  test('times that are skipped are missed at once', () => {
    const skipping = at(startedAt, { startedAt, isMadeUpFor: false })
    const started = afterStart(hourly, count, undefined, skipping)
    expect(lookAt(hourly, started, undefined, skipping)).toEqual({ miss: { due: HOUR, isOfTimer: true } })
  })

  test('a success before the stop leaves the next due time to the firing at the start', () => {
    const looked = countOf(lookAt(hourly, count, success(HOUR), at(startedAt, { startedAt })))
    expect(looked).toMatchObject({ due: 2 * HOUR, dueBy: startedAt + 10 * MINUTE })
  })

  test('a due time that is to come is computed again', () => {
    const early: Count = { ...count, due: 7 * HOUR, dueBy: 7 * HOUR + 10 * MINUTE }
    expect(afterStart(hourly, early, undefined, at(startedAt, { startedAt }))).toMatchObject({ due: 6 * HOUR })
  })
})

describe('every', () => {
  const begun = beginCount(daily, at(HOUR))

  test('the span begins with the count, and again with each success', () => {
    expect(checkOf(begun)).toBe(DAY + HOUR)
    expect(lookAt(daily, begun, undefined, at(DAY + HOUR))).toEqual({ miss: { due: DAY + HOUR, isOfTimer: false } })
    const later = countOf(lookAt(daily, begun, success(5 * HOUR), at(DAY + HOUR)))
    expect(checkOf(later)).toBe(DAY + 5 * HOUR + MINUTE)
    expect(lookAt(daily, later, success(5 * HOUR), at(DAY + 6 * HOUR))).toEqual({
      miss: { due: DAY + 5 * HOUR + MINUTE, isOfTimer: false },
    })
    // A success from before the count.
    expect(lookAt(daily, begun, success(0), at(DAY + HOUR))).toEqual({ miss: { due: DAY + HOUR, isOfTimer: false } })
  })

  test('a span that ended while the server was off gets a little time after the start, once', () => {
    const startedAt = 3 * DAY
    const started = afterStart(daily, begun, undefined, at(startedAt, { startedAt }))
    expect(checkOf(started)).toBe(startedAt + 10 * MINUTE)
    expect(countOf(lookAt(daily, started, undefined, at(startedAt + MINUTE)))).toEqual(started)
    const again = startedAt + 5 * MINUTE
    expect(afterStart(daily, started, undefined, at(again, { startedAt: again }))).toEqual(started)
    expect(lookAt(daily, started, undefined, at(startedAt + 10 * MINUTE))).toEqual({
      miss: { due: DAY + HOUR, isOfTimer: false },
    })
    expect(countOf(lookAt(daily, started, success(startedAt), at(startedAt + 10 * MINUTE))).successBy).toBe(
      startedAt + MINUTE + DAY,
    )
    const short = readExpected({ every: 60 })
    const soon = afterStart(short, beginCount(short, at(0)), undefined, at(startedAt, { startedAt }))
    expect(checkOf(soon)).toBe(startedAt + 6_000_000)
  })

  test('both: the earlier one decides when to look', () => {
    const both = readExpected({ within: '10m', every: '90m' })
    const count = beginCount(both, at(0))
    expect(checkOf(count)).toBe(70 * MINUTE)
    const after = countOf(lookAt(both, count, success(HOUR), at(70 * MINUTE)))
    expect([after.dueBy, after.successBy]).toEqual([130 * MINUTE, 151 * MINUTE])
  })
})

test('after the clock was set back nothing waits for a time that had come before', () => {
  const both = readExpected({ within: '10m', every: '24h' })
  const ahead = beginCount(both, at(400 * DAY))
  const now = 10 * DAY + 30 * MINUTE
  expect(afterSetBack(both, ahead, at(now))).toEqual(beginCount(both, at(now)))
  // What is due is still due.
  const before = beginCount(both, at(now))
  const due = now + HOUR
  expect(afterSetBack(both, before, at(due))).toEqual(before)
})
