import { describe, expect, test } from 'vitest'
import { MAX_HEIGHT, rowsOf, scrollTopOf, topRowOf } from './virtual-rows.ts'

const height = 600

describe.each([0, 1, 50, 1000, 1_000_000, 10_000_000])('of %i rows', (count) => {
  const rowHeight = 20
  const last = Math.max(0, Math.min(count * rowHeight, MAX_HEIGHT) - height)

  test('the height has a bound', () => {
    const { totalHeight } = rowsOf(count, rowHeight, { scrollTop: 0, height })
    expect(totalHeight).toBe(Math.min(count * rowHeight, MAX_HEIGHT))
  })

  test.each([0, 0.1, 0.5, 0.999, 1])('all that can be seen is drawn, and little else, at %d of the way', (share) => {
    const scrollTop = share * last
    const { first, end, offset } = rowsOf(count, rowHeight, { scrollTop, height })
    expect(end - first).toBeLessThanOrEqual(height / rowHeight + 22)
    // The upper edge of what can be seen is covered, and the lower one unless the list is at its end.
    expect(offset).toBeLessThanOrEqual(scrollTop + 0.001)
    const bottom = offset + (end - first) * rowHeight
    expect(bottom).toBeGreaterThanOrEqual(end < count ? scrollTop + height - 0.001 : 0)
  })

  test('the first and the last row can be reached', () => {
    expect(rowsOf(count, rowHeight, { scrollTop: 0, height }).first).toBe(0)
    const atEnd = rowsOf(count, rowHeight, { scrollTop: last, height })
    expect(atEnd.end).toBe(count)
    const bottom = Math.min(last + height, count * rowHeight)
    expect(atEnd.offset + (atEnd.end - atEnd.first) * rowHeight).toBeCloseTo(bottom, 1)
  })

  test.each([0, 0.3, 0.9])('scrolling to a row brings it to the upper edge (%d)', (share) => {
    const row = Math.floor(share * Math.max(0, count - height / rowHeight))
    const scrollTop = scrollTopOf(row, count, rowHeight, height)
    expect(topRowOf(count, rowHeight, { scrollTop, height })).toBeCloseTo(row, 3)
  })
})

test('a place beyond the end is the end', () => {
  expect(rowsOf(10, 20, { scrollTop: 99_999, height }).end).toBe(10)
  expect(rowsOf(100, 20, { scrollTop: -50, height }).first).toBe(0)
})
