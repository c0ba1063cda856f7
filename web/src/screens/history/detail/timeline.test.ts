import { expect, test } from 'vitest'
import type { ExecutionStatus } from '../../../api/records.ts'
import { formatDuration, timelineOf } from './timeline.ts'

const at = (seconds: number): string => `2030-01-01T00:00:${seconds.toFixed(6).padStart(9, '0')}Z`
const log = (...entries: [ExecutionStatus, number][]) => ({
  log: entries.map(([status, seconds]) => ({ status, timestamp: at(seconds) })),
})
const now = Date.parse('2030-01-01T00:00:40Z')

test('each status lasts until the next one, to the microsecond', () => {
  const { segments, total } = timelineOf(
    log(['requested', 1], ['scheduled', 1.000004], ['running', 2.5], ['succeeded', 11]),
    now,
  )
  expect(total).toBe(10)
  expect(segments.map(({ status, offset, duration }) => [status, offset, duration])).toEqual([
    ['requested', 0, 0.000004],
    ['scheduled', 0.000004, 1.499996],
    ['running', 1.5, 8.5],
    ['succeeded', 10, undefined],
  ])
  expect(segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9)
})

test('the last status of one that has not ended lasts until now', () => {
  const { segments, total } = timelineOf(log(['requested', 10], ['delayed', 20]), now)
  expect([total, segments.at(-1)?.duration, segments.at(-1)?.share]).toEqual([30, 20, 2 / 3])
})

test.each([
  ['nothing', log(), { segments: 0, total: 0 }],
  ['a clock that is behind', log(['requested', 50]), { segments: 1, total: 0 }],
  ['an end in the same moment', log(['requested', 1], ['failed', 1]), { segments: 2, total: 0 }],
])('%s', (_, record, expected) => {
  const { segments, total } = timelineOf(record, now)
  expect({ segments: segments.length, total }).toEqual(expected)
  for (const { share } of segments) expect(share).toBe(0)
})

test.each([
  [0.0000041, '0.0 ms'],
  [0.0014, '1.4 ms'],
  [0.035, '35 ms'],
  [1.234, '1.23 s'],
  [59.99, '59.99 s'],
  [61, '1 min 1 s'],
  [3660, '1 h 1 min'],
  [90_000, '1 d 1 h'],
])('%d seconds are %s', (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text)
})
