import { describe, expect, test } from 'vitest'
import { addTo, join, quantile, type Histogram } from './histogram.ts'

function histogramOf(durations: readonly number[]): Histogram {
  const histogram: Histogram = []
  for (const duration of durations) addTo(histogram, duration)
  return histogram
}

const evenly = Array.from({ length: 1000 }, (_, i) => (i + 1) * 10)

test.each([
  ['one', [250], 250, 250],
  ['several of one length', [40, 40, 40], 40, 40],
  ['a thousand of all lengths up to ten seconds', evenly, 5000, 9500],
  ['many short ones and few long ones', [...Array.from({ length: 90 }, () => 20), ...evenly.slice(-10)], 20, 9950],
])('p50 and p95 of %s', (_name, durations, half, most) => {
  const histogram = histogramOf(durations)
  const octavesOff = (share: number, exact: number): number =>
    Math.abs(Math.log2((quantile(histogram, share) ?? 0) / exact))
  expect(octavesOff(0.5, half)).toBeLessThanOrEqual(0.5)
  expect(octavesOff(0.95, most)).toBeLessThanOrEqual(0.5)
})

test('no p50 without durations', () => {
  expect(quantile(histogramOf([]), 0.5)).toBeUndefined()
})

test('merged histograms equal one histogram of all durations', () => {
  const parts = [evenly.slice(0, 300), [], evenly.slice(300, 301), evenly.slice(301)].map(histogramOf)
  expect(join(parts)).toEqual(histogramOf(evenly))
  expect(join([])).toEqual([])
})

describe('invalid durations', () => {
  test.each([0, -5, Number.NaN, 0.2])('%d is counted as short', (duration) => {
    expect(quantile(histogramOf([duration]), 0.5)).toBe(1)
  })

  test.each([1e9, Number.POSITIVE_INFINITY, Number.MAX_VALUE])(
    '%d is counted as long, and costs no more',
    (duration) => {
      const histogram = histogramOf([duration])
      expect(histogram.length).toBeLessThan(60)
      expect(quantile(histogram, 0.5)).toBeGreaterThan(86_400_000)
    },
  )
})
