/** Measures how much of a database file is used, and returns unused pages to the file system. */
import { setTimeout as delay } from 'node:timers/promises'
import type Sqlite from 'better-sqlite3'

/** Commits wait for a piece. Where pages are found slowly, as in a file of many gigabytes, a piece has fewer. */
const MAX_MS_PER_PIECE = 5
const FIRST_PAGES = 16
const MAX_PAGES_PER_PIECE = 256
/** This share of unused pages stays: they are needed again soon. */
const SLACK_RATIO = 0.05
const SLACK_PAGES = 256

export interface Space {
  /** Bytes of the file that hold data. */
  usedBytes(): number
  /** Bytes of the file, also those that only the write-ahead log has. */
  fileBytes(): number
  /** Bytes that `reclaim` still has to return; 0 while it does not run. */
  readonly reclaimingBytes: number
  reclaim(signal: AbortSignal): Promise<void>
}

/**
 * @param connection reads the file
 * @param vacuum returns so many pages; resolves to the milliseconds it took
 */
export function createSpace(
  connection: Pick<Sqlite.Database, 'pragma'>,
  vacuum: (pages: number) => Promise<number>,
): Space {
  const number = (pragma: string): number => Number(connection.pragma(pragma, { simple: true }))
  const pageSize = number('page_size')
  let reclaimingBytes = 0

  async function reclaim(signal: AbortSignal): Promise<void> {
    const mayStay = (): number => Math.max(SLACK_PAGES, (number('page_count') - number('freelist_count')) * SLACK_RATIO)
    if (number('freelist_count') <= mayStay()) return
    // Down to half of what may stay, so that the next few deletions do not start it again.
    const target = mayStay() / 2
    let pages = FIRST_PAGES
    while (!signal.aborted) {
      const left = Math.ceil(number('freelist_count') - target)
      reclaimingBytes = Math.max(0, left) * pageSize
      if (left <= 0) return
      const before = number('page_count')
      const ms = await vacuum(Math.min(pages, left))
      // Files that other tools have created may lack `auto_vacuum`; vacuuming them frees nothing.
      if (number('page_count') === before) return
      pages = nextPages(pages, ms)
      // Leaves as much time to other work as the piece has taken.
      await delay(Math.max(1, ms))
    }
  }

  return {
    usedBytes: () => (number('page_count') - number('freelist_count')) * pageSize,
    fileBytes: () => number('page_count') * pageSize,
    get reclaimingBytes() {
      return reclaimingBytes
    },
    async reclaim(signal) {
      try {
        await reclaim(signal)
      } finally {
        reclaimingBytes = 0
      }
    },
  }
}

/** Grows slowly and shrinks at once: one page may take a hundred times as long as another. */
function nextPages(pages: number, ms: number): number {
  const fitting = Math.floor((pages * MAX_MS_PER_PIECE) / Math.max(ms, 0.01))
  return Math.max(1, Math.min(fitting, pages * 2, MAX_PAGES_PER_PIECE))
}
