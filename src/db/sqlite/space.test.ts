import { describe, expect, test } from 'vitest'
import { createSpace } from './space.ts'

/** A file with so many pages, whose unused ones cost so long each. */
function createFile({
  used,
  unused,
  msPerPage,
}: {
  used: number
  unused: number
  msPerPage: (left: number) => number
}) {
  let left = unused
  const pieces: { pages: number; ms: number }[] = []
  const figures: Record<string, () => number> = {
    page_size: () => 4096,
    page_count: () => used + left,
    freelist_count: () => left,
  }
  const space = createSpace({ pragma: (name) => figures[name]?.() }, (pages) => {
    const ms = Array.from({ length: pages }, (_, n) => msPerPage(left - n)).reduce((sum, each) => sum + each, 0)
    left -= pages
    pieces.push({ pages, ms })
    return Promise.resolve(ms)
  })
  return { space, pieces, left: () => left }
}

describe('pieces of unused space', () => {
  test.each([
    ['quick pages', 0.001, 256],
    ['pages of 0.1 ms', 0.1, 50],
    ['pages of 2 ms, as in a file of many gigabytes', 2, 2],
    ['pages that take longer than a piece may', 30, 1],
  ])('fit into their time: %s', async (_, msPerPage, largest) => {
    const file = createFile({ used: 1000, unused: 700, msPerPage: () => msPerPage })
    // Pages that are slow take their time, so a few are enough.
    const stop = new AbortController()
    const original = file.pieces.push.bind(file.pieces)
    file.pieces.push = (...pieces) => {
      const length = original(...pieces)
      if (length === 8) stop.abort()
      return length
    }
    await file.space.reclaim(stop.signal)
    const settled = file.pieces.slice(1)
    expect(Math.max(...settled.map(({ pages }) => pages))).toBeLessThanOrEqual(largest)
    expect(settled.every(({ pages, ms }) => pages === 1 || ms <= 10)).toBe(true)
    expect(file.space.reclaimingBytes).toBe(0)
  })

  test('become smaller at once when pages become slow', async () => {
    const file = createFile({ used: 1000, unused: 2000, msPerPage: (left) => (left > 1400 ? 0.01 : 0.2) })
    await file.space.reclaim(new AbortController().signal)
    // One piece may find it out.
    expect(file.pieces.filter(({ ms }) => ms > 10).length).toBeLessThanOrEqual(1)
    expect(file.left()).toBe(128)
  })

  test('say how much is left while they are returned', async () => {
    const stop = new AbortController()
    const told: number[] = []
    let left = 1000
    const figures: Record<string, () => number> = {
      page_size: () => 1000,
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

  test('of a file that cannot shrink are given up after the first', async () => {
    let asked = 0
    const space = createSpace({ pragma: () => 5000 }, () => {
      asked += 1
      return Promise.resolve(0)
    })
    await space.reclaim(new AbortController().signal)
    expect(asked).toBeLessThanOrEqual(1)
  })
})
