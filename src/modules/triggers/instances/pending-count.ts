/** Count of pending instances in memory, because every webhook request reads it. */
import type { Bus } from '../../../bus/index.ts'

/** Facts can be lost, so the rows are counted again. */
const RECOUNT_AFTER_MS = 5_000

export function createPendingCount(bus: Bus, count: () => number): () => number {
  let pending = 0
  let countedAt = -Infinity
  bus.subscribe('trigger_instance.created', () => {
    pending += 1
  })
  bus.subscribe('trigger_instance.processed', () => {
    pending -= 1
  })
  return () => {
    const at = performance.now()
    if (at - countedAt > RECOUNT_AFTER_MS) {
      pending = count()
      countedAt = at
    }
    return Math.max(0, pending)
  }
}
