/**
 * Pages of a list that begins with the newest, of any length, while newer ones come.
 *
 * What was there when it was loaded first keeps its place: pages are counted from an id, so that what is added in front of it
 * moves nothing. What is newer stands in front, whole.
 */
export interface PagedRows<T> {
  /** Newer than what was loaded first; newest first. */
  head: readonly T[]
  /** Id of the newest of the others; undefined: there were none. */
  anchor: string | undefined
  /** How many others there are. */
  total: number
  /** Of them, by number. */
  pages: ReadonlyMap<number, readonly T[]>
}

export const PAGE_SIZE = 100
/** So many pages stay in memory. */
const MAX_PAGES = 30
/** With more rows in front the list is loaded again. */
export const MAX_HEAD = 1000

/** @param items the first page of `total` */
export function firstRows<T extends { id: string }>(items: readonly T[], total: number): PagedRows<T> {
  return {
    head: [],
    anchor: items[0]?.id,
    total: Math.max(total, items.length),
    pages: new Map([[0, items]]),
  }
}

export function rowCount<T>({ head, total }: PagedRows<T>): number {
  return head.length + total
}

/** Undefined: it is not loaded. */
export function rowAt<T>({ head, pages }: PagedRows<T>, index: number): T | undefined {
  if (index < head.length) return head[index]
  const at = index - head.length
  return pages.get(Math.floor(at / PAGE_SIZE))?.[at % PAGE_SIZE]
}

/** Undefined: there are none. */
export function newestId<T extends { id: string }>({ head, anchor }: PagedRows<T>): string | undefined {
  return head[0]?.id ?? anchor
}

/** Pages that are needed to show rows from `first` to before `end`. */
export function missingPages<T>({ head, total, pages }: PagedRows<T>, first: number, end: number): number[] {
  const missing: number[] = []
  const last = Math.min(end - head.length, total) - 1
  for (let page = Math.floor(Math.max(0, first - head.length) / PAGE_SIZE); page * PAGE_SIZE <= last; page += 1) {
    if (!pages.has(page)) missing.push(page)
  }
  return missing
}

export function withPage<T>(rows: PagedRows<T>, page: number, items: readonly T[]): PagedRows<T> {
  const pages = new Map(rows.pages)
  pages.set(page, items)
  while (pages.size > MAX_PAGES) {
    const farthest = [...pages.keys()].reduce((a, b) => (Math.abs(b - page) > Math.abs(a - page) ? b : a))
    pages.delete(farthest)
  }
  const end = page * PAGE_SIZE + items.length
  // The oldest have been purged meanwhile.
  const total = items.length < PAGE_SIZE ? Math.min(rows.total, end) : rows.total
  return { ...rows, pages, total }
}

/**
 * @param items all that are newer, newest first
 * @returns undefined: there are so many that loading the list again is better
 */
export function withNewer<T extends { id: string }>(rows: PagedRows<T>, items: readonly T[]): PagedRows<T> | undefined {
  const newest = newestId(rows) ?? ''
  const newer = items.filter(({ id }) => id > newest)
  if (newer.length === 0) return rows
  const isTooMuch = newer.length >= PAGE_SIZE || newer.length + rows.head.length > MAX_HEAD
  if (isTooMuch || rows.anchor === undefined) return undefined
  return { ...rows, head: [...newer, ...rows.head] }
}

/** Replaces those that are loaded. */
export function withChanged<T extends { id: string }>(rows: PagedRows<T>, items: readonly T[]): PagedRows<T> {
  if (items.length === 0) return rows
  const changed = new Map(items.map((item) => [item.id, item]))
  const replaced = (old: readonly T[]): readonly T[] =>
    old.some(({ id }) => changed.has(id)) ? old.map((item) => changed.get(item.id) ?? item) : old
  return {
    ...rows,
    head: replaced(rows.head),
    pages: new Map([...rows.pages].map(([page, old]) => [page, replaced(old)])),
  }
}

/** The least id that is greater. */
export function idAfter(id: string): string {
  return (BigInt(`0x${id}`) + 1n).toString(16).padStart(id.length, '0')
}
