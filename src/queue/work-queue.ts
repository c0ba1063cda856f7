/**
 * Port: rows that are owed some work, with a wake-up.
 *
 * `take` offers items; the claim is the transition that follows, so a taker that loses gets a `Conflict` and moves on.
 */
import type { Unsubscribe } from '../bus/index.ts'

export interface WorkQueue<T> {
  /** At most `limit` items, oldest first, each offered once until `done` is said of it. */
  take(limit: number): T[]
  /** The taker has finished with this item, whatever came of it. */
  done(item: T): void
  /** Calls `fn` whenever there may be something to take. */
  onWake(fn: () => void): Unsubscribe
  /** There may be more in the rows than this queue has heard of. */
  wake(): void
  /** A new item, straight from its fact. */
  offer(item: T): void
  /** Rows owed now: the operator's gauge. */
  depth(): number
}
