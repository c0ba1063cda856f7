/** How many executions may be on their way or running at once: `actionrunner.actions_pool_size`. */
export interface Slots {
  readonly size: number
  readonly free: number
  /** False when this execution holds one already. */
  take(executionId: string): boolean
  release(executionId: string): void
  onRelease(fn: () => void): void
}

export function createSlots(size: number): Slots {
  const held = new Set<string>()
  const listeners: (() => void)[] = []
  return {
    size,
    get free() {
      return Math.max(0, size - held.size)
    },
    take(executionId) {
      if (held.has(executionId)) return false
      held.add(executionId)
      return true
    },
    release(executionId) {
      if (!held.delete(executionId)) return
      for (const listener of listeners) listener()
    },
    onRelease(fn) {
      listeners.push(fn)
    },
  }
}
