import { describe, expect, test } from 'vitest'
import {
  rowCount,
  firstRows,
  idAfter,
  missingPages,
  newestId,
  PAGE_SIZE,
  rowAt,
  withChanged,
  withNewer,
  withPage,
  type PagedRows,
} from './paged-rows.ts'

interface Row {
  id: string
  text?: string
}

const idOf = (n: number): string => n.toString(16).padStart(24, '0')
/** Rows from one number down to another, newest first. */
const down = (from: number, to: number): Row[] =>
  Array.from({ length: from - to + 1 }, (_, i) => ({ id: idOf(from - i) }))
const numberAt = (rows: PagedRows<Row>, index: number): number | undefined => {
  const row = rowAt(rows, index)
  return row === undefined ? undefined : Number.parseInt(row.id, 16)
}

test('the id after another one', () => {
  expect(idAfter('6b022c7830723a911df30e41')).toBe('6b022c7830723a911df30e42')
  expect(idAfter('0000000000000000000000ff')).toBe('000000000000000000000100')
})

describe('rows', () => {
  const million = firstRows(down(1_000_000, 1_000_000 - PAGE_SIZE + 1), 1_000_000)

  test('of a million are known by pages', () => {
    expect([rowCount(million), numberAt(million, 0), numberAt(million, 99), numberAt(million, 100)]).toEqual([
      1_000_000,
      1_000_000,
      999_901,
      undefined,
    ])
    expect(newestId(million)).toBe(idOf(1_000_000))
    expect(missingPages(million, 0, 50)).toEqual([])
    expect(missingPages(million, 90, 210)).toEqual([1, 2])
    expect(missingPages(million, 999_950, 1_000_050)).toEqual([9999])
    const far = withPage(million, 9999, down(100, 1))
    expect(numberAt(far, 999_999)).toBe(1)
  })

  test('keep their place while newer ones come', () => {
    let rows: PagedRows<Row> = withPage(million, 5, down(999_500, 999_401))
    rows = withNewer(rows, down(1_000_003, 999_999)) ?? rows
    expect([rowCount(rows), numberAt(rows, 0), numberAt(rows, 3), numberAt(rows, 503)]).toEqual([
      1_000_003, 1_000_003, 1_000_000, 999_500,
    ])
    expect(missingPages(rows, 0, 103)).toEqual([])
    expect(missingPages(rows, 0, 104)).toEqual([1])
    expect(withNewer(rows, down(1_000_003, 1_000_001))).toBe(rows)
  })

  test('are loaded anew when too much is new', () => {
    expect(withNewer(million, down(1_000_100, 1_000_001))).toBeUndefined()
    let rows: PagedRows<Row> | undefined = million
    let added = 0
    while (rows !== undefined) {
      rows = withNewer(rows, down(1_000_000 + added + 90, 1_000_000 + added + 1))
      added += 90
    }
    expect(added).toBe(1080)
    expect(withNewer(firstRows<Row>([], 0), down(1, 1))).toBeUndefined()
  })

  test('that are far away are forgotten', () => {
    let rows: PagedRows<Row> = million
    for (let page = 1; page <= 60; page += 1)
      rows = withPage(rows, page, down(1_000_000 - page * 100, 999_901 - page * 100))
    expect(rows.pages.size).toBe(30)
    expect([rows.pages.has(60), rows.pages.has(31), rows.pages.has(30), rows.pages.has(0)]).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(withNewer(rows, down(1_000_000, 999_950))).toBe(rows)
    expect(newestId(withNewer(rows, down(1_000_001, 999_950)) ?? rows)).toBe(idOf(1_000_001))
  })

  test('that were purged meanwhile are not there any more', () => {
    const rows = withPage(million, 7000, down(300_000, 299_951))
    expect(rowCount(rows)).toBe(700_050)
    expect(missingPages(rows, 999_000, 1_000_000)).toEqual([])
  })

  test('change where they are', () => {
    const rows = withNewer(million, down(1_000_001, 1_000_001)) ?? million
    const changed = withChanged(rows, [
      { id: idOf(1_000_001), text: 'a' },
      { id: idOf(999_990), text: 'b' },
      { id: idOf(5), text: 'c' },
    ])
    expect([rowAt(changed, 0)?.text, rowAt(changed, 11)?.text, rowCount(changed)]).toEqual(['a', 'b', 1_000_001])
    expect(withChanged(rows, [])).toBe(rows)
  })

  test('of an empty list are none', () => {
    const none = firstRows<Row>([], 0)
    expect([rowCount(none), rowAt(none, 0), missingPages(none, 0, 20)]).toEqual([0, undefined, []])
  })
})
