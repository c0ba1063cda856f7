/**
 * Ends streaming answers when their credential is revoked, disabled or deleted. A credential that only expires was valid
 * when the answer began, so the answer continues (contract 04, 4.1).
 */
import type { Bus, Unsubscribe } from '../../bus/index.ts'
import type { LastingAnswer, Principal } from '../../http/index.ts'

export interface Watchers {
  /** Whether the caller would be admitted again, expiry aside. */
  isValid(principal: Principal): boolean
  /** @returns stops watching */
  watch(principal: Principal, answer: LastingAnswer): () => void
  stop(): void
}

export interface WatchersOptions {
  bus: Bus
  readonly isValid: Watchers['isValid']
}

interface Watcher {
  principal: Principal
  answer: LastingAnswer
}

export function createWatchers({ bus, isValid }: WatchersOptions): Watchers {
  const watchers = new Set<Watcher>()

  function end(watcher: Watcher): void {
    if (!watchers.delete(watcher)) return
    watcher.answer.end()
  }

  /** The end of each action's run revokes a token, so only those concerned are looked at. */
  function check(concerns: (principal: Principal) => boolean): void {
    for (const watcher of watchers) {
      if (concerns(watcher.principal) && !isValid(watcher.principal)) end(watcher)
    }
  }

  function checkRights(): void {
    for (const watcher of watchers) {
      if (!isValid(watcher.principal) || !watcher.answer.isAllowed()) end(watcher)
    }
  }

  const unsubscribe: Unsubscribe[] = [
    bus.subscribe('token.revoked', ({ id }) => check(({ tokenId }) => tokenId === id)),
    bus.subscribe('api_key.changed', ({ id }) => check(({ apiKeyId }) => apiKeyId === id)),
    bus.subscribe('user.changed', ({ name }) => check(({ user }) => user === name)),
    bus.subscribe('rbac.changed', () => checkRights()),
  ]

  return {
    isValid,
    watch(principal, answer) {
      const watcher: Watcher = { principal, answer }
      watchers.add(watcher)
      // It may have been taken away since it was checked.
      if (!isValid(principal) || !answer.isAllowed()) end(watcher)
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
