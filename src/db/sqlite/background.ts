/** Runs on a thread what would block the event loop: queries whose cost grows with the table, and checkpoints. */
import { locateCode } from '../../core/bundle.ts'
import { queueFull } from '../../core/errors.ts'
import { createThread } from '../../core/thread.ts'
import type { BackgroundTask } from './background-thread.ts'

const MAX_WAITING = 32

export interface Background {
  /** @throws QUEUE_FULL with 32 waiting */
  scan(sql: string, parameters: readonly unknown[]): Promise<unknown[]>
  /** Copies as much as possible of the write-ahead log into the database; never rejects. */
  checkpoint(): Promise<void>
  /** Tasks that have not finished. */
  readonly waitingCount: number
  stop(): Promise<void>
}

export function createBackground(path: string): Background {
  const thread = createThread<BackgroundTask, unknown[]>({
    name: 'the background thread',
    file: locateCode('./background-thread', import.meta.url),
    data: { path },
  })
  return {
    scan(sql, parameters) {
      if (thread.waitingCount >= MAX_WAITING) return Promise.reject(queueFull('searches', MAX_WAITING))
      return thread.ask({ kind: 'scan', sql, parameters })
    },
    async checkpoint() {
      // The next checkpoint, or the writing connection, makes up for a failed one.
      await thread.ask({ kind: 'checkpoint' }).catch(() => undefined)
    },
    get waitingCount() {
      return thread.waitingCount
    },
    stop: () => thread.stop(),
  }
}
