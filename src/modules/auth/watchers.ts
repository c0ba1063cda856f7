/**
 * Ends answers that go on when their credential is taken away: revoked, disabled, deleted. One that merely expires was good
 * when the answer began, and lets it go on (contract 04, 4.1).
 */
import type { Bus, Unsubscribe } from '../../bus/bus.ts'
import type { Principal } from '../../http/route.ts'

export interface Watchers {
  /** @returns stops watching */
  watch(principal: Principal, ended: () => void): () => void
  stop(): void
}

export interface WatchersOptions {
  bus: Bus
  /** Whether the caller would be admitted again, expiry aside. */
  readonly isValid: (principal: Principal) => boolean
}

interface Watcher {
  principal: Principal
  ended(): void
}

export function createWatchers({ bus, isValid }: WatchersOptions): Watchers {
  const watchers = new Set<Watcher>()

  function end(watcher: Watcher): void {
    if (!watchers.delete(watcher)) return
    watcher.ended()
  }

  /** The end of each action's run revokes a token, so only those concerned are looked at. */
  function check(concerns: (principal: Principal) => boolean): void {
    for (const watcher of watchers) {
      if (concerns(watcher.principal) && !isValid(watcher.principal)) end(watcher)
    }
  }

  const unsubscribe: Unsubscribe[] = [
    bus.subscribe('token.revoked', ({ id }) => check(({ tokenId }) => tokenId === id)),
    bus.subscribe('api_key.changed', ({ id }) => check(({ apiKeyId }) => apiKeyId === id)),
    bus.subscribe('user.changed', ({ name }) => check(({ user }) => user === name)),
    bus.subscribe('rbac.changed', () => check(() => true)),
  ]

  return {
    watch(principal, ended) {
      const watcher: Watcher = { principal, ended }
      watchers.add(watcher)
      // It may have been revoked since it was checked.
      if (!isValid(principal)) end(watcher)
      return () => {
        watchers.delete(watcher)
      }
    },
    stop() {
      for (const each of unsubscribe) each()
      watchers.clear()
    },
  }
}
