/** What of a database file is used, and giving back what is not. */
import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type Sqlite from 'better-sqlite3'

/** A log that is longer is cut once nobody writes any more. */
const MAX_IDLE_LOG_BYTES = 1024 * 1024
/** A few milliseconds of work. */
const PAGES_AT_ONCE = 64
/** So much of what is used may be unused besides: it is needed again soon. */
const SLACK_RATIO = 0.05
const SLACK_PAGES = 256

export interface Space {
  /** Of the file, what something is in. */
  usedBytes(): number
  reclaim(signal: AbortSignal): Promise<void>
  /** While nobody writes: makes a log that has become long small again, unless somebody still reads in it. */
  cutLog(): void
}

/**
 * @param connection the one that writes
 * @param vacuum gives so many pages back
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
      // Down to the half of what may stay, so that the next few deletions do not begin it again.
      const target = mayStay() / 2
      while (number('freelist_count') > target && !signal.aborted) {
        const started = performance.now()
        const pages = number('page_count')
        vacuum(Math.min(PAGES_AT_ONCE, Math.ceil(number('freelist_count') - target)))
        // Nothing goes in a file that other tools have made, without `auto_vacuum`.
        if (number('page_count') === pages) return
        // As long as that has taken belongs to everybody else.
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
