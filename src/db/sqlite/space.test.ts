import { describe, expect, test } from 'vitest'
import { createSpace } from './space.ts'
import { fitCache, vacuumPiece } from './vacuum.ts'

describe('a piece of unused space', () => {
  /** @param cost milliseconds of a page, by its number */
  function returnPiece(pages: number, cost: (page: number) => number): { returned: number; ms: number } {
    let now = 1000
    let returned = 0
    const step = (): void => {
      now += cost(returned)
      returned += 1
    }
    const ms = vacuumPiece(step, pages, () => now)
    return { returned, ms }
  }

  test.each([
    ['quick pages', 0.001, 200, 200],
    ['pages of 0.125 ms', 0.125, 200, 40],
    ['pages of 2 ms, as in a file of many gigabytes', 2, 200, 3],
    ['pages that take longer than a piece may', 30, 200, 1],
  ])('fits into its time: %s', (_, cost, pages, returned) => {
    expect(returnPiece(pages, () => cost).returned).toBe(returned)
  })

  test('ends at once when pages become slow', () => {
    expect(returnPiece(1000, (page) => (page < 128 ? 1 / 128 : 7))).toEqual({ returned: 129, ms: 8 })
  })

  test('has the list of unused pages in memory, up to a bound', () => {
    const sizes = [0, 1_000_000, 100_000_000].map((unused) => {
      let set = ''
      const figures: Record<string, number> = { freelist_count: unused, page_size: 4096 }
      fitCache({ pragma: (name) => figures[name] ?? (set = name) }, 4096)
      return set
    })
    expect(sizes).toEqual(['cache_size = -4096', 'cache_size = -8096', 'cache_size = -65536'])
  })
})

describe('unused space', () => {
  const SLACK = 128

  test('is returned until little is left, with a pause after each piece', async () => {
    let left = 700
    const figures: Record<string, () => number> = {
      page_size: () => 4096,
      auto_vacuum: () => 2,
      page_count: () => 1000 + left,
      freelist_count: () => left,
    }
    const space = createSpace({ pragma: (name) => figures[name]?.() }, (pages) => {
      left -= Math.min(pages, 50)
      return Promise.resolve(0)
    })
    await space.reclaim(new AbortController().signal)
    expect(left).toBe(SLACK)
    expect(space.reclaimingBytes).toBe(0)
  })

  test('says how much is left while it is returned', async () => {
    const stop = new AbortController()
    const told: number[] = []
    let left = 1000
    const figures: Record<string, () => number> = {
      page_size: () => 1000,
      auto_vacuum: () => 2,
      page_count: () => 1000 + left,
      freelist_count: () => left,
    }
    const space = createSpace({ pragma: (name) => figures[name]?.() }, (pages) => {
      told.push(space.reclaimingBytes)
      left -= pages
      return Promise.resolve(0)
    })
    await space.reclaim(stop.signal)
    expect(told[0]).toBe(872_000)
    expect(told).toEqual(told.toSorted((a, b) => b - a))
    expect(space.reclaimingBytes).toBe(0)
  })

  test.each([
    ['that cannot shrink is left alone', 0, 0],
    ['that another program reads is given up after the first piece', 2, 1],
  ])('of a file %s', async (_, autoVacuum, pieces) => {
    let asked = 0
    const space = createSpace({ pragma: (name) => (name === 'auto_vacuum' ? autoVacuum : 5000) }, () => {
      asked += 1
      return Promise.resolve(0)
    })
    await space.reclaim(new AbortController().signal)
    expect([space.canShrink, asked]).toEqual([autoVacuum > 0, pieces])
  })
})
