/** Measures how much of a database file is used, and returns unused pages to the file system. */
import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type Sqlite from 'better-sqlite3'

/** A longer log is truncated once writing has stopped. */
const MAX_IDLE_LOG_BYTES = 1024 * 1024
/** A few milliseconds of work. */
const PAGES_AT_ONCE = 64
/** This share of unused pages stays: they are needed again soon. */
const SLACK_RATIO = 0.05
const SLACK_PAGES = 256

export interface Space {
  /** Bytes of the file that hold data. */
  usedBytes(): number
  reclaim(signal: AbortSignal): Promise<void>
  /** While no unit is written: truncates a long log, unless a reader still uses it. */
  cutLog(): void
}

/**
 * @param connection the one that writes
 * @param vacuum returns this many pages
 */
export function createSpace(path: string, connection: Sqlite.Database, vacuum: (pages: number) => void): Space {
  const pageSize = Number(connection.pragma('page_size', { simple: true }))
  const number = (pragma: string): number => Number(connection.pragma(pragma, { simple: true }))
  const logBytes = (): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0

  return {
    usedBytes: () => (number('page_count') - number('freelist_count')) * pageSize,
    async reclaim(signal) {
      const mayStay = (): number =>
        Math.max(SLACK_PAGES, (number('page_count') - number('freelist_count')) * SLACK_RATIO)
      if (number('freelist_count') <= mayStay()) return
      // Down to half of what may stay, so that the next few deletions do not start it again.
      const target = mayStay() / 2
      while (number('freelist_count') > target && !signal.aborted) {
        const started = performance.now()
        const pages = number('page_count')
        vacuum(Math.min(PAGES_AT_ONCE, Math.ceil(number('freelist_count') - target)))
        // Files that other tools have created may lack `auto_vacuum`; vacuuming them frees nothing.
        if (number('page_count') === pages) return
        // Leaves as much time to other work as the step has taken.
        await delay(Math.max(1, performance.now() - started))
      }
    },
    cutLog() {
      if (logBytes() <= MAX_IDLE_LOG_BYTES) return
      const patience = number('busy_timeout')
      connection.pragma('busy_timeout = 0')
      try {
        connection.pragma('wal_checkpoint(truncate)')
      } finally {
        connection.pragma(`busy_timeout = ${patience}`)
      }
    },
  }
}
