import { describe, expect, test } from 'vitest'
import { barsPath, linePath, nearest, stack, timeTicks, valueScale, withGaps } from './scale.ts'

describe('a scale of values', () => {
  test.each([
    [0, false, [0, 0.5, 1]],
    [Number.NaN, false, [0, 0.5, 1]],
    [-3, true, [0, 1]],
    [1, true, [0, 1]],
    [3, true, [0, 1, 2, 3]],
    [7, true, [0, 2, 4, 6, 8]],
    [10, true, [0, 5, 10]],
    [0.03, false, [0, 0.01, 0.02, 0.03]],
    [41, false, [0, 20, 40, 60]],
    [1_234_567_890, false, [0, 500_000_000, 1_000_000_000, 1_500_000_000]],
  ])('to %d', (highest, isWhole, ticks) => {
    expect(valueScale(highest, isWhole)).toEqual({ max: ticks.at(-1), ticks })
  })

  test.each([0.001, 0.7, 1, 9.99, 12, 99, 101, 1e6, 3e12])('holds %d, with room for a few marks', (highest) => {
    const { max, ticks } = valueScale(highest)
    expect(max).toBeGreaterThanOrEqual(highest)
    expect(ticks.length).toBeGreaterThan(1)
    expect(ticks.length).toBeLessThanOrEqual(6)
  })
})

describe('marks of time', () => {
  const hour = 3_600_000
  const at = (text: string): number => Date.parse(`2030-01-01T${text}Z`)

  test('of an hour are at full ten minutes', () => {
    expect(timeTicks(at('10:03:20'), at('11:03:20'), 0)).toEqual(
      ['10:10:00', '10:20:00', '10:30:00', '10:40:00', '10:50:00', '11:00:00'].map(at),
    )
  })

  test('of a day are at full hours of the clock on the wall', () => {
    // Half past five hours before Greenwich, as in India, it is midnight.
    const offset = 5.5 * hour
    const ticks = timeTicks(at('00:00:00'), at('00:00:00') + 24 * hour, offset)
    expect(ticks.map((tick) => (tick + offset) % (6 * hour))).toEqual([0, 0, 0, 0])
    expect(ticks).toHaveLength(4)
  })

  test('are few, however long it is', () => {
    for (const length of [60_000, hour, 10 * hour, 100 * hour, 10_000 * hour]) {
      expect(timeTicks(0, length, 0).length).toBeLessThanOrEqual(7)
    }
  })
})

test('a line is broken where there is nothing, and a point alone is a dot', () => {
  const point = (x: number) => ({ x, y: 1 })
  expect(linePath([point(0), point(1.26), undefined, point(3), undefined, undefined, point(6), point(7)])).toBe(
    'M0 1L1.3 1M3 1h0M6 1L7 1',
  )
  expect(linePath([])).toBe('')
  expect(linePath([undefined])).toBe('')
})

test('bars without height are none', () => {
  expect(
    barsPath([
      { x: 0, width: 4, top: 2, bottom: 10 },
      { x: 5, width: 4, top: 10, bottom: 10 },
    ]),
  ).toBe('M0 10V2h4V10z')
})

test('what is stacked begins where the one below ends', () => {
  expect(
    stack([
      [1, undefined, 3],
      [2, 2, 0],
    ]),
  ).toEqual([
    [
      [0, 1],
      [0, 0],
      [0, 3],
    ],
    [
      [1, 3],
      [0, 2],
      [3, 3],
    ],
  ])
})

test.each([
  [[], 5, undefined],
  [[10], 5, 0],
  [[10, 20, 30], -100, 0],
  [[10, 20, 30], 14, 0],
  [[10, 20, 30], 16, 1],
  [[10, 20, 30], 26, 2],
  [[10, 20, 30], 1000, 2],
])('of %j, %d is nearest to the one at %s', (times, time, index) => {
  expect(nearest(times, time)).toBe(index)
})

test('where samples are missing there is a gap', () => {
  expect(withGaps([0, 60, 120, 300, 360], 60, (i) => i)).toEqual([0, 1, 2, undefined, 3, 4])
  expect(withGaps([0, 60], 60, (i) => (i === 0 ? undefined : i))).toEqual([undefined, 1])
})
