import { describe, expect, test } from 'vitest'
import {
  canvasHeight,
  isStuck,
  MAX_HEIGHT,
  placeOfRow,
  drawnRowsAt,
  scrolledTo,
  settledPlace,
  startPlace,
  topRowOf,
  type ListSize,
  type ScrollPlace,
} from './virtual-rows.ts'

const height = 600
const rowHeight = 20

/** What somebody sees at the upper edge. */
const rowSeen = (place: ScrollPlace, size: ListSize): number => topRowOf(place, size)

describe.each([0, 1, 50, 1000, 400_000, 400_001, 1_000_000, 10_000_000])('of %i rows', (count) => {
  const size: ListSize = { count, rowHeight, height }
  const lastScrollTop = Math.max(0, canvasHeight(size) - height)

  test('the height has a bound', () => {
    expect(canvasHeight(size)).toBe(Math.min(count * rowHeight, MAX_HEIGHT))
  })

  test.each([0, 0.1, 0.5, 0.999, 1])('all that can be seen is drawn, and little else, at %d of the way', (share) => {
    const place = scrolledTo(share * lastScrollTop, startPlace, size)
    const { first, end, offset } = drawnRowsAt(place, size)
    expect(end - first).toBeLessThanOrEqual(height / rowHeight + 22)
    // The upper edge of what can be seen is covered, and the lower one unless the list is at its end.
    expect(offset).toBeLessThanOrEqual(place.scrollTop + 0.001)
    const bottom = offset + (end - first) * rowHeight
    expect(bottom).toBeGreaterThanOrEqual(end < count ? place.scrollTop + height - 0.001 : 0)
  })

  test('the first and the last row can be reached', () => {
    expect(drawnRowsAt(startPlace, size).first).toBe(0)
    const place = scrolledTo(lastScrollTop, startPlace, size)
    const { first, end, offset } = drawnRowsAt(place, size)
    expect(end).toBe(count)
    expect(offset + (end - first) * rowHeight).toBe(Math.min(lastScrollTop + height, count * rowHeight))
  })

  test.each([0, 0.3, 0.9])('scrolling to a row brings it to the upper edge (%d)', (share) => {
    const row = Math.floor(share * Math.max(0, count - height / rowHeight))
    const place = placeOfRow(row, size)
    expect(rowSeen(place, size)).toBe(row)
    expect(place.scrollTop).toBeGreaterThanOrEqual(0)
    expect(place.scrollTop).toBeLessThanOrEqual(lastScrollTop)
    expect(settledPlace(place, size)).toEqual(place)
  })

  test('a place beyond the end is the end', () => {
    expect(drawnRowsAt(placeOfRow(count + 100, size), size).end).toBe(count)
    expect(drawnRowsAt(placeOfRow(-100, size), size).first).toBe(0)
  })
})

describe('of ten million rows', () => {
  const size: ListSize = { count: 10_000_000, rowHeight, height }
  const last = MAX_HEIGHT - height

  test.each([1, 60, -60, 540, 1790, -1790])('wheel and keys move by %i pixels wherever the list is', (move) => {
    for (const row of [2000, 49_990, 60_000, 5_000_000, 9_940_000, 9_997_000]) {
      const before = placeOfRow(row, size)
      const after = scrolledTo(before.scrollTop + move, before, size)
      expect(rowSeen(after, size) - row).toBeCloseTo(move / rowHeight, 6)
      // What is drawn stays where it is: the browser has moved it already.
      expect(after.origin).toBe(before.origin)
    }
  })

  test('the scroll bar leads to its share of the list', () => {
    const middle = scrolledTo(last / 2, startPlace, size)
    expect(rowSeen(middle, size)).toBeCloseTo(5_000_000 - height / rowHeight / 2, -1)
    const quarter = scrolledTo(last / 4, middle, size)
    expect(rowSeen(quarter, size)).toBeGreaterThan(1_000_000)
    expect(rowSeen(quarter, size)).toBeLessThan(2_500_000)
  })

  test('later places of the scroll bar are later rows', () => {
    let before = -1
    for (let scrollTop = 0; scrollTop <= last; scrollTop += last / 200) {
      const row = rowSeen(scrolledTo(scrollTop, { scrollTop: scrollTop + 10_000, origin: 0 }, size), size)
      expect(row).toBeGreaterThan(before)
      before = row
    }
    expect(before).toBeCloseTo(10_000_000 - height / rowHeight, 3)
  })

  test('what drifts while it is moved row by row is put right without a row that moves', () => {
    let place = placeOfRow(5_000_000, size)
    for (let i = 0; i < 1000; i++) place = scrolledTo(place.scrollTop + 100, place, size)
    expect(rowSeen(place, size)).toBe(5_005_000)
    const atRest = settledPlace(place, size)
    expect(rowSeen(atRest, size)).toBe(5_005_000)
    expect(atRest.scrollTop).toBeLessThan(place.scrollTop - 90_000)
    expect(atRest.scrollTop).toBeCloseTo(placeOfRow(5_005_000, size).scrollTop, -1)
  })

  test('whoever scrolls on and on reaches the ends, and nothing is passed over', () => {
    for (const step of [-500, 500]) {
      let place = placeOfRow(step < 0 ? 60_000 : 9_940_000, size)
      let leaps = 0
      for (let i = 0; i < 4000; i++) {
        const scrollTop = Math.min(Math.max(place.scrollTop + step, 0), last)
        const next = scrolledTo(scrollTop, place, size)
        if (Math.abs(rowSeen(next, size) - rowSeen(place, size)) > 25) leaps += 1
        place = isStuck(next, size) ? settledPlace(next, size) : next
      }
      expect(leaps).toBe(0)
      expect(rowSeen(place, size)).toBe(step < 0 ? 0 : 10_000_000 - height / rowHeight)
    }
  })

  test('nothing is empty before the first row and behind the last one', () => {
    const top = scrolledTo(100, { scrollTop: 200, origin: 150 }, size)
    expect(top.origin).toBe(100)
    const end = scrolledTo(last - 100, { scrollTop: last - 200, origin: last - 200_000_000 }, size)
    expect(end.origin + 200_000_000).toBe(last - 100 + height)
  })

  test('a list that grows stays where it is', () => {
    const place = placeOfRow(5_000_000, size)
    const grown = { ...size, count: 11_000_000 }
    expect(drawnRowsAt(place, grown)).toEqual(drawnRowsAt(place, size))
    expect(rowSeen(settledPlace(place, grown), grown)).toBe(5_000_000)
  })
})
