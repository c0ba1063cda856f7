/** What would stop the event loop, on a thread: queries whose cost grows with the table, and checkpoints. */
import { locateCode } from '../../core/bundle.ts'
import { queueFull } from '../../core/errors.ts'
import { createThread } from '../../core/thread.ts'
import type { BackgroundTask } from './background-thread.ts'

const MAX_WAITING = 32

export interface Background {
  /** @throws QUEUE_FULL with 32 waiting */
  scan(sql: string, parameters: readonly unknown[]): Promise<unknown[]>
  /** Copies what it can of the write-ahead log into the database; never rejects. */
  checkpoint(): Promise<void>
  /** Tasks that are not done. */
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
      // A failed one is made up for by the next, or by the writing connection.
      await thread.ask({ kind: 'checkpoint' }).catch(() => undefined)
    },
    get waitingCount() {
      return thread.waitingCount
    },
    stop: () => thread.stop(),
  }
}
