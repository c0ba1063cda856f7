/** Caches only the groups of users (contract 01, 1.4). */
import { Lru } from '../../../../lib/cache/index.ts'

export interface GroupCache {
  get(user: string): CachedGroups | undefined
  set(user: string, groups: CachedGroups): void
  clear(): void
}

export interface CachedGroups {
  /** DN of the user, because another entry can get the same name. */
  dn: string
  groups: readonly string[]
}

/** @param now milliseconds of a monotonic clock */
export function createGroupCache(maxUsers: number, ttlSeconds: number, now: () => number): GroupCache {
  const entries = new Lru<string, CachedGroups & { endsAt: number }>(maxUsers)
  return {
    get(user) {
      const entry = entries.get(user)
      return entry === undefined || entry.endsAt <= now() ? undefined : entry
    },
    set: (user, groups) => entries.set(user, { ...groups, endsAt: now() + ttlSeconds * 1000 }),
    clear: () => entries.clear(),
  }
}
