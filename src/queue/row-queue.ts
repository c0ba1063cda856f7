/**
 * A work queue over status rows: a bounded window of items in memory, refilled from the rows. Facts offer new items
 * directly, so the ordinary case reads no rows; items outside the window are found in the rows later.
 */
import type { WorkQueue } from './work-queue.ts'

const MAX_WINDOW = 200

export interface RowQueueOptions<T> {
  idOf(item: T): string
  /** The oldest `limit` owed items with an id greater than `afterId`. */
  load(afterId: string, limit: number): T[]
  depth(): number
}

export interface RowQueue<T> extends WorkQueue<T> {
  /** Reads the rows every `seconds`, in case a wake-up was lost. */
  startPolling(seconds: number): void
  stop(): void
}

export function createRowQueue<T>(options: RowQueueOptions<T>): RowQueue<T> {
  const window: T[] = []
  /** Ids in the window or with a taker. */
  const offered = new Set<string>()
  /** The rows may hold items that the window does not. */
  let rowsHoldMore = true
  const listeners = new Set<() => void>()
  let polling: NodeJS.Timeout | undefined

  function notify(): void {
    for (const listener of listeners) listener()
  }

  function refill(): void {
    let afterId = ''
    while (window.length < MAX_WINDOW) {
      const loaded = options.load(afterId, MAX_WINDOW)
      for (const item of loaded) {
        const id = options.idOf(item)
        afterId = id
        if (offered.has(id)) continue
        if (window.length === MAX_WINDOW) return
        offered.add(id)
        window.push(item)
      }
      if (loaded.length < MAX_WINDOW) {
        rowsHoldMore = false
        return
      }
    }
  }

  return {
    take(limit) {
      const taken: T[] = []
      try {
        while (taken.length < limit) {
          if (window.length === 0 && rowsHoldMore) refill()
          if (window.length === 0) break
          taken.push(...window.splice(0, limit - taken.length))
        }
      } catch (error) {
        window.unshift(...taken)
        throw error
      }
      return taken
    },
    done(item) {
      offered.delete(options.idOf(item))
    },
    onWake(fn) {
      listeners.add(fn)
      return () => listeners.delete(fn)
    },
    wake() {
      rowsHoldMore = true
      notify()
    },
    offer(item) {
      const id = options.idOf(item)
      if (offered.has(id)) return
      // Ahead of unread rows, a new item would overtake older ones.
      if (rowsHoldMore || window.length === MAX_WINDOW) {
        rowsHoldMore = true
      } else {
        offered.add(id)
        window.push(item)
      }
      notify()
    },
    depth: () => options.depth(),
    startPolling(seconds) {
      clearInterval(polling)
      polling = setInterval(() => {
        rowsHoldMore = true
        notify()
      }, seconds * 1000)
      polling.unref()
    },
    stop() {
      clearInterval(polling)
      listeners.clear()
    },
  }
}
