/**
 * Tokens: signed JWTs that are opaque to clients. The `jti` names a row that says whose the token is and until when it
 * counts; without the row it is worth nothing. The value itself is stored nowhere.
 */
import { hash, type KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { Principal } from '../../http/index.ts'
import { isId, newId } from '../../core/ids.ts'
import { Lru } from '../../lib/cache/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { formatMicros } from '../../core/time.ts'
import type { TokenTable } from '../../db/index.ts'
import type { Scope } from '../../core/permissions.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

/** Ours have about 150 characters; longer ones are not even looked at. */
const MAX_TOKEN_LENGTH = 1024
const MAX_CACHED = 10_000
/** Maximum time for which a row that another process deleted still counts. */
const CACHE_MS = 5000

/** What deciding about a request takes. */
export type TokenCheckRow = TokenTable & {
  /** 1: of the user. Null: there is no record of the user. */
  is_disabled: number | null
}

interface Remembered {
  digest: string
  row: TokenCheckRow
  scopes: readonly Scope[] | undefined
  /** Of the monotonic clock, in milliseconds. */
  until: number
}

export interface TokensOptions {
  key: KeyObject
  readonly findRow: (id: string) => TokenCheckRow | undefined
  /** Microseconds since the epoch. */
  readonly now: () => number
}

/** What a token is for besides a login. */
export interface TokenPurpose {
  /** Of the record; default a new one. */
  id?: string
  /** Default false. */
  isService?: boolean
  metadata?: Record<string, unknown>
}

export interface CheckedToken {
  /** 24 hexadecimal characters: the record, never the token. */
  id: string
  user: string
  /** Wire timestamp. */
  expiry: string
  /** Of an action that runs, for as long as it does. */
  isService: boolean
  /** Of the API key that has started the action; the same object for every request of a remembered token. */
  scopes: readonly Scope[] | undefined
  hasExpired: boolean
  /** Its user is. */
  isDisabled: boolean
}

export interface Tokens {
  /** A new token and its row; the token counts once the row is stored. */
  make(user: string, ttlSeconds: number, purpose?: TokenPurpose): { token: string; row: TokenTable }
  /** Whose token this is, and what there is to say against it; undefined if it is none of ours, or revoked. */
  check(token: string): CheckedToken | undefined
  /** The row of a genuine token, expired or not. */
  find(token: string): TokenCheckRow | undefined
  /** Whether this server signed it; it can be expired or revoked. */
  isGenuine(token: string): boolean
  /** Whether the token of a caller, if it came with one, still counts, expiry aside. */
  isValid(principal: Pick<Principal, 'tokenId'>): boolean
  /** Forgets the verification of one that was revoked. @param id of its record */
  forget(id: string): void
  /** Forgets all verifications: a user was changed. */
  forgetAll(): void
}

export function createTokens({ key, findRow, now }: TokensOptions): Tokens {
  /** By id of the record, with the digest instead of the token, so that a memory dump holds none. */
  const verified = new Lru<string, Remembered>(MAX_CACHED)

  function find(token: string): TokenCheckRow | undefined {
    const id = token.length > MAX_TOKEN_LENGTH ? undefined : readId(token, key)
    return id === undefined ? undefined : findRow(id)
  }

  function remembered(id: string): Remembered | undefined {
    const known = verified.get(id)
    return known !== undefined && performance.now() < known.until ? known : undefined
  }

  function findCached(token: string): Omit<Remembered, 'digest' | 'until'> | undefined {
    if (token.length > MAX_TOKEN_LENGTH) return undefined
    const claimedId = readClaimedId(token)
    if (claimedId === undefined) return undefined
    const digest = hash('sha256', token, 'base64')
    const cached = remembered(claimedId)
    if (cached?.digest === digest) return cached
    const row = find(token)
    if (row === undefined) return undefined
    const found = { digest, row, scopes: scopesOf(row), until: performance.now() + CACHE_MS }
    verified.set(row.id, found)
    return found
  }

  return {
    make(user, ttlSeconds, { id, isService = false, metadata = {} } = {}) {
      const at = now()
      const ownId = id ?? newId(at)
      const expiry = formatMicros(at + ttlSeconds * 1_000_000)
      const token = jwt.sign({}, key, { algorithm: 'HS256', jwtid: ownId, noTimestamp: true })
      const row = { id: ownId, user, expiry, service: isService ? 1 : 0, metadata: writeJson(metadata) }
      return { token, row }
    },
    check(token) {
      const found = findCached(token)
      if (found === undefined) return undefined
      const { id, user, expiry, service, is_disabled: disabled } = found.row
      const hasExpired = expiry <= formatMicros(now())
      return {
        id,
        user,
        expiry,
        isService: service === 1,
        scopes: found.scopes,
        hasExpired,
        isDisabled: disabled === 1,
      }
    },
    find,
    isGenuine: (token) => token.length <= MAX_TOKEN_LENGTH && readId(token, key) !== undefined,
    isValid({ tokenId }) {
      if (tokenId === undefined) return true
      const row = remembered(tokenId)?.row ?? findRow(tokenId)
      return row !== undefined && row.is_disabled !== 1
    },
    forget: (id) => verified.delete(id),
    forgetAll: () => verified.clear(),
  }
}

/** Only the token of an action has any. */
function scopesOf({ service, metadata }: TokenTable): readonly Scope[] | undefined {
  if (service !== 1) return undefined
  const { scopes } = readJson(metadata) as { scopes?: readonly Scope[] } // written by `make`
  return scopes === undefined ? undefined : Object.freeze(scopes)
}

/** The `jti` of a token, without a check of its signature: only a cache key. */
function readClaimedId(token: string): string | undefined {
  const [, payload = ''] = token.split('.', 2)
  try {
    return idOf(readJson(Buffer.from(payload, 'base64url').toString('latin1')))
  } catch {
    // It is none of ours.
    return undefined
  }
}

/** The `jti` of a token that this key signed. */
function readId(token: string, key: KeyObject): string | undefined {
  let claims: unknown
  try {
    claims = jwt.verify(token, key, { algorithms: ['HS256'] })
  } catch {
    // Input that is no token makes the library throw various errors.
    return undefined
  }
  return idOf(claims)
}

function idOf(claims: unknown): string | undefined {
  const id = isObject(claims) ? claims['jti'] : undefined
  return typeof id === 'string' && isId(id) ? id : undefined
}
