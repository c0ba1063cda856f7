/**
 * Port: rows that wait for work, with a wake-up.
 *
 * `take` offers items; the claim is the transition that follows, so a taker that loses gets a `Conflict` and moves on.
 */
import type { Unsubscribe } from '../bus/index.ts'

export interface WorkQueue<T> {
  /** At most `limit` items, oldest first; each is offered once until `done`. */
  take(limit: number): T[]
  /** The taker has finished with this item, whatever the outcome. */
  done(item: T): void
  /** Calls `fn` when items may be available. */
  onWake(fn: () => void): Unsubscribe
  /** The rows may hold items that the queue does not know. */
  wake(): void
  /** A new item, directly from its fact. */
  offer(item: T): void
  /** Rows that wait: the gauge for operators. */
  depth(): number
}
