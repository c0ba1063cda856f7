/** Which API key a request brings along, and whether it counts. */
import { apiKeyUnknown } from '../../../core/errors.ts'
import { Lru } from '../../../lib/cache/index.ts'
import { formatMicros } from '../../../core/time.ts'
import { hashKey } from './key.ts'
import { parseScopes } from './scopes.ts'
import type { ApiKeyCheckRow, ApiKeyStore } from './store.ts'
import type { Scope } from '../../../core/permissions.ts'

/** Ours have 47 characters, those of others some 90; longer ones are not looked for. */
const MAX_KEY_LENGTH = 1024
const MAX_CACHED = 10_000
/** Maximum time for which a row that another process changed still counts. */
const CACHE_MS = 5000

/** What there is to say against a key. */
export type ApiKeyObstacle = 'disabled' | 'expired' | 'user_disabled'

export interface VerifiedApiKey {
  id: string
  user: string
  /** The same object for every request until the key changes. */
  scopes: readonly Scope[] | undefined
  obstacle: ApiKeyObstacle | undefined
}

export interface ApiKeyVerifier {
  /** @throws API_KEY_UNKNOWN */
  check(key: string): VerifiedApiKey
  /** Forgets all verifications: keys or users were changed. */
  forget(): void
}

interface Cached extends Omit<VerifiedApiKey, 'obstacle'> {
  /** Expiry aside, which only the clock decides. */
  obstacle: Exclude<ApiKeyObstacle, 'expired'> | undefined
  expiresAt: string | null
  /** Of the monotonic clock, in milliseconds. */
  until: number
}

export interface ApiKeyVerifierOptions {
  store: Pick<ApiKeyStore, 'findForCheck'>
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createApiKeyVerifier({ store, now }: ApiKeyVerifierOptions): ApiKeyVerifier {
  /** By digest: neither a comparison nor a memory dump has anything to do with the keys themselves. */
  const verified = new Lru<string, Cached>(MAX_CACHED)

  function find(keyHash: string): Cached | undefined {
    const cached = verified.get(keyHash)
    if (cached !== undefined && performance.now() < cached.until) return cached
    const row = store.findForCheck(keyHash)
    if (row === undefined) return undefined
    const found: Cached = {
      id: row.id,
      user: row.user,
      scopes: parseScopes(row.scopes),
      obstacle: obstacleOf(row),
      expiresAt: row.expires_at,
      until: performance.now() + CACHE_MS,
    }
    verified.set(keyHash, found)
    return found
  }

  return {
    check(key) {
      const keyHash = hashKey(key)
      const found = key.length > MAX_KEY_LENGTH ? undefined : find(keyHash)
      if (found === undefined) throw apiKeyUnknown(keyHash)
      const { id, user, scopes, obstacle, expiresAt } = found
      const hasExpired = expiresAt !== null && expiresAt <= formatMicros(now())
      return { id, user, scopes, obstacle: obstacle ?? (hasExpired ? 'expired' : undefined) }
    },
    forget: () => verified.clear(),
  }
}

/** Expiry aside. */
export function obstacleOf(row: Pick<ApiKeyCheckRow, 'enabled' | 'is_disabled'>): Cached['obstacle'] {
  if (row.enabled !== 1) return 'disabled'
  return row.is_disabled === 1 ? 'user_disabled' : undefined
}
