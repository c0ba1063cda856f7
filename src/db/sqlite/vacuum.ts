/** Returns unused pages to the file system for a few milliseconds, because commits wait for it. */
import type Sqlite from 'better-sqlite3'

/** A piece ends with the page that exceeds it. One page may take a hundred times as long as another. */
const MAX_MS_PER_PIECE = 5
/** To find a page in the list of unused pages, SQLite reads the whole list, of which a page holds about this many. */
const LISTED_PER_PAGE = 1000
/** Of the cache that keeps the list in memory meanwhile. */
const MAX_CACHE_KIB = 65_536

/**
 * @param step returns one page
 * @param pages at most
 * @returns milliseconds
 */
export function vacuumPiece(step: () => void, pages: number, monotonic: () => number): number {
  const started = monotonic()
  let ms = 0
  for (let page = 0; page < pages && ms < MAX_MS_PER_PIECE; page++) {
    step()
    ms = monotonic() - started
  }
  return ms
}

/** Lets the cache grow with the list of unused pages, and shrink with it. @param cacheKib of the connection otherwise */
export function fitCache(connection: Pick<Sqlite.Database, 'pragma'>, cacheKib: number): void {
  const number = (pragma: string): number => Number(connection.pragma(pragma, { simple: true }))
  const listKib = (number('freelist_count') / LISTED_PER_PAGE) * (number('page_size') / 1024)
  connection.pragma(`cache_size = -${Math.min(Math.ceil(cacheKib + listKib), MAX_CACHE_KIB)}`)
}
