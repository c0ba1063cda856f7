/**
 * Tokens: signed JWTs that are opaque to clients. The `jti` names a row that says whose the token is and until when it
 * counts; without the row it is worth nothing. The value itself is stored nowhere.
 */
import { hash, type KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { isId, newId } from '../../ids.ts'
import { Lru } from '../../lru.ts'
import { isObject } from '../../schema.ts'
import { formatMicros } from '../../time.ts'
import type { TokenTable } from '../../db/tables.ts'
import type { VerifiedToken } from './types.ts'

/** Ours have about 150 characters; longer ones are not even looked at. */
const MAX_TOKEN_LENGTH = 1024
const MAX_CACHED = 10_000
/** So long may a row that another process removed still count. */
const CACHE_MS = 5000

export interface TokensOptions {
  key: KeyObject
  readonly findRow: (id: string) => TokenTable | undefined
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export interface Tokens {
  /** A new token and its row; the token counts once the row is stored. */
  make(user: string, ttlSeconds: number): { token: string; row: TokenTable }
  /** Whose token this is, and whether its expiry has come; undefined if it is none of ours, or revoked. */
  check(token: string): (VerifiedToken & { hasExpired: boolean }) | undefined
  /** The row of a genuine token, expired or not. */
  find(token: string): TokenTable | undefined
  /** Whether this server made it, be it expired or revoked. */
  isGenuine(token: string): boolean
  /** Forgets all verifications: a token was revoked. */
  forget(): void
}

export function createTokens({ key, findRow, now }: TokensOptions): Tokens {
  /** By digest, so that a memory dump holds no tokens. */
  const verified = new Lru<string, { row: TokenTable; until: number }>(MAX_CACHED)

  function find(token: string): TokenTable | undefined {
    const id = token.length > MAX_TOKEN_LENGTH ? undefined : readId(token, key)
    return id === undefined ? undefined : findRow(id)
  }

  function findCached(token: string): TokenTable | undefined {
    if (token.length > MAX_TOKEN_LENGTH) return undefined
    const digest = hash('sha256', token, 'base64')
    const cached = verified.get(digest)
    if (cached !== undefined && performance.now() < cached.until) return cached.row
    const row = find(token)
    if (row !== undefined) verified.set(digest, { row, until: performance.now() + CACHE_MS })
    return row
  }

  return {
    make(user, ttlSeconds) {
      const at = now()
      const id = newId(at)
      const expiry = formatMicros(at + ttlSeconds * 1_000_000)
      const token = jwt.sign({}, key, { algorithm: 'HS256', jwtid: id, noTimestamp: true })
      return { token, row: { id, user, expiry, service: 0, metadata: '{}' } }
    },
    check(token) {
      const row = findCached(token)
      if (row === undefined) return undefined
      const { id, user, expiry } = row
      return { id, user, expiry, hasExpired: expiry <= formatMicros(now()) }
    },
    find,
    isGenuine: (token) => token.length <= MAX_TOKEN_LENGTH && readId(token, key) !== undefined,
    forget: () => verified.clear(),
  }
}

/** The `jti` of a token that this key signed. */
function readId(token: string, key: KeyObject): string | undefined {
  let claims: unknown
  try {
    claims = jwt.verify(token, key, { algorithms: ['HS256'] })
  } catch {
    // Whatever a stranger sends makes it throw one thing or another; none of it is a token.
    return undefined
  }
  const id = isObject(claims) ? claims['jti'] : undefined
  return typeof id === 'string' && isId(id) ? id : undefined
}
