/** Ends answers that go on when their credential stops to count. */
import type { Bus, Unsubscribe } from '../../bus/bus.ts'
import type { Principal } from '../../http/route.ts'
import { microsOf } from '../../time.ts'

export interface Watchers {
  /** @returns stops watching */
  watch(principal: Principal, ended: () => void): () => void
  stop(): void
}

export interface WatchersOptions {
  bus: Bus
  /** Whether the caller would be admitted again, expiry aside. */
  readonly isValid: (principal: Principal) => boolean
  /** Microseconds since the epoch. */
  readonly now: () => number
}

/** The most a timer can wait; it is set anew then. */
const MAX_TIMER_MS = 2 ** 31 - 1

interface Watcher {
  principal: Principal
  ended(): void
  timer: NodeJS.Timeout | undefined
}

export function createWatchers({ bus, isValid, now }: WatchersOptions): Watchers {
  const watchers = new Set<Watcher>()

  function end(watcher: Watcher): void {
    if (!watchers.delete(watcher)) return
    clearTimeout(watcher.timer)
    watcher.ended()
  }

  function check(): void {
    for (const watcher of watchers) if (!isValid(watcher.principal)) end(watcher)
  }

  function awaitExpiry(watcher: Watcher, expiry: string): void {
    const leftMs = (microsOf(expiry) - now()) / 1000
    if (leftMs <= 0) {
      end(watcher)
      return
    }
    watcher.timer = setTimeout(() => awaitExpiry(watcher, expiry), Math.min(Math.ceil(leftMs), MAX_TIMER_MS))
    watcher.timer.unref()
  }

  const unsubscribe: Unsubscribe[] = [
    bus.subscribe('token.revoked', check),
    bus.subscribe('api_key.changed', check),
    bus.subscribe('user.changed', check),
    bus.subscribe('rbac.changed', check),
  ]

  return {
    watch(principal, ended) {
      const watcher: Watcher = { principal, ended, timer: undefined }
      watchers.add(watcher)
      // It may have been revoked since it was checked.
      if (!isValid(principal)) end(watcher)
      else if (principal.expiry !== undefined) awaitExpiry(watcher, principal.expiry)
      return () => {
        watchers.delete(watcher)
        clearTimeout(watcher.timer)
      }
    },
    stop() {
      for (const each of unsubscribe) each()
      for (const watcher of watchers) clearTimeout(watcher.timer)
      watchers.clear()
    },
  }
}
