/** Logging in, and what can be done with tokens. */
import type { Database } from '../../db/database.ts'
import { Conflict } from '../../db/database.ts'
import { impersonationRefused, permissionDenied, tokenNotProvided, tokenUnknown, ttlTooLong } from '../../errors.ts'
import type { ApiRequest, Principal } from '../../http/route.ts'
import { isId } from '../../ids.ts'
import type { Log, LogFields } from '../../log.ts'
import { formatMicros } from '../../time.ts'
import { refuseScoped } from './api-keys/index.ts'
import type { AuthStore } from './store.ts'
import type { Tokens } from './tokens.ts'
import type { IssuedToken } from './types.ts'

/** Body of a token creation; everything but `ttl` is unchecked (contract 01, 1.2). */
export interface TokenRequest {
  /** Seconds. */
  ttl?: number | null
  user?: unknown
  impersonate_user?: unknown
}

/** Of the request: who is calling, from where. */
export type Caller = Pick<ApiRequest, 'principal' | 'requestId' | 'remoteAddress'>

export interface TokenService {
  /** @throws TTL_TOO_LONG, IMPERSONATION_REFUSED */
  issue(request: TokenRequest, caller: Caller): Promise<IssuedToken>
  /** Whether the token would be accepted now. @throws TOKEN_NOT_PROVIDED */
  validate(token: string | null | undefined, caller: Caller): boolean
  /**
   * Makes a token worthless at once.
   *
   * @param tokenOrId its value, or the id of its record
   * @throws TOKEN_UNKNOWN, PERMISSION_DENIED
   */
  revoke(tokenOrId: string, caller: Caller): Promise<void>
}

export interface TokenServiceOptions {
  database: Database
  store: AuthStore
  tokens: Tokens
  /** `auth.token_ttl`, in seconds: the default and the maximum. */
  maxTtlSeconds: number
  log: Log
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createTokenService(options: TokenServiceOptions): TokenService {
  const { database, store, tokens, maxTtlSeconds, log } = options
  return {
    async issue(request, caller) {
      const { user } = caller.principal
      if (isGiven(request.user) || isGiven(request.impersonate_user)) {
        log.audit('login.refused', 'Impersonation refused: the user is not a service.', about(caller))
        throw impersonationRefused()
      }
      const ttlSeconds = request.ttl ?? maxTtlSeconds
      if (ttlSeconds > maxTtlSeconds) throw ttlTooLong(ttlSeconds, maxTtlSeconds)
      const { token, row } = tokens.make(user, ttlSeconds)
      const [newUser] = await database.write({
        steps: [store.insertUser(user, formatMicros(options.now())), store.insertToken(row)],
        facts: [],
      })
      if (newUser?.changes === 1) log.audit('user.registered', `Registered new user "${user}".`, about(caller))
      const granted = `Access granted to "${user}" with the token set to expire at "${row.expiry}".`
      log.audit('token.issued', granted, { ...about(caller), token_id: row.id })
      return { id: row.id, user, token, expiry: row.expiry, metadata: {}, service: false }
    },

    validate(token, caller) {
      if (token === undefined || token === null || token === '') throw tokenNotProvided()
      const known = tokens.check(token)
      if (known === undefined) return false
      const state = known.hasExpired ? 'has expired' : 'is validated'
      const event = known.hasExpired ? 'token.expired' : 'token.validated'
      log.audit(event, `Token with id "${known.id}" ${state}.`, { ...about(caller), token_id: known.id })
      return !known.hasExpired
    },

    async revoke(tokenOrId, caller) {
      refuseScoped(caller.principal, 'revoke tokens')
      const row = isId(tokenOrId) ? store.findToken(tokenOrId) : tokens.find(tokenOrId)
      if (row === undefined) throw tokenUnknown()
      if (!mayRevoke(caller.principal, row.user)) {
        throw permissionDenied('Only the owner of a token and administrators can revoke it.')
      }
      try {
        await database.write({
          steps: [store.deleteToken(row.id)],
          facts: [{ name: 'token.revoked', payload: { id: row.id } }],
        })
      } catch (error) {
        if (error instanceof Conflict) throw tokenUnknown()
        throw error
      }
      const message = `Token with id "${row.id}" of "${row.user}" is revoked.`
      log.audit('token.revoked', message, { ...about(caller), token_id: row.id, owner: row.user })
    },
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

function mayRevoke(principal: Principal, owner: string): boolean {
  return principal.isAdmin || principal.user === owner
}

function about({ principal, requestId, remoteAddress }: Caller): LogFields {
  return { user: principal.user, remote_address: remoteAddress, request_id: requestId }
}
