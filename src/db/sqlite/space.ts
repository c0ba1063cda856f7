/** Measures how much of a database file is used, and returns unused pages to the file system. */
import { setTimeout as delay } from 'node:timers/promises'
import type Sqlite from 'better-sqlite3'

/** This share of unused pages stays: they are needed again soon. */
const SLACK_RATIO = 0.05
const SLACK_PAGES = 256

export interface Space {
  /** Bytes of the file that hold data. */
  usedBytes(): number
  /** Bytes of the file, also those that only the write-ahead log has. */
  fileBytes(): number
  /** Files that other tools have created may lack `auto_vacuum`; then `reclaim` does nothing. */
  readonly canShrink: boolean
  /** Bytes that `reclaim` still has to return; 0 while it does not run. */
  readonly reclaimingBytes: number
  reclaim(signal: AbortSignal): Promise<void>
}

/**
 * @param connection reads the file
 * @param vacuum returns at most so many pages, for some milliseconds; resolves to how long it took
 */
export function createSpace(
  connection: Pick<Sqlite.Database, 'pragma'>,
  vacuum: (pages: number) => Promise<number>,
): Space {
  const number = (pragma: string): number => Number(connection.pragma(pragma, { simple: true }))
  const pageSize = number('page_size')
  const canShrink = number('auto_vacuum') !== 0
  let reclaimingBytes = 0

  async function reclaim(signal: AbortSignal): Promise<void> {
    const mayStay = (): number => Math.max(SLACK_PAGES, (number('page_count') - number('freelist_count')) * SLACK_RATIO)
    if (number('freelist_count') <= mayStay()) return
    // Down to half of what may stay, so that the next few deletions do not start it again.
    const target = mayStay() / 2
    while (!signal.aborted) {
      const left = Math.ceil(number('freelist_count') - target)
      reclaimingBytes = Math.max(0, left) * pageSize
      if (left <= 0) return
      const before = number('page_count')
      const ms = await vacuum(left)
      // Another program reads the file, so that nothing can be freed now.
      if (number('page_count') === before) return
      // Leaves as much time to other work as the piece has taken.
      await delay(Math.max(1, ms))
    }
  }

  return {
    usedBytes: () => (number('page_count') - number('freelist_count')) * pageSize,
    fileBytes: () => number('page_count') * pageSize,
    canShrink,
    get reclaimingBytes() {
      return reclaimingBytes
    },
    async reclaim(signal) {
      if (!canShrink) return
      try {
        await reclaim(signal)
      } finally {
        reclaimingBytes = 0
      }
    },
  }
}
