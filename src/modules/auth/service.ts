/** Logging in, and what can be done with tokens. */
import { type Database, Conflict } from '../../db/index.ts'
import {
  administratorOrSelfRequired,
  isAppError,
  loginRefused,
  permissionDenied,
  tokenNotProvided,
  tokenNotUsed,
  tokenUnknown,
  ttlTooLong,
} from '../../core/errors.ts'
import { aboutCaller, type Caller, type Principal } from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import { formatMicros } from '../../core/time.ts'
import { refuseScoped } from './api-keys/index.ts'
import type { Impersonate } from './impersonation.ts'
import type { Logins } from './logins.ts'
import type { AuthStore } from './store.ts'
import type { Tokens } from './tokens.ts'
import type { IssuedToken, TokenRequest } from './types.ts'
import { shown } from '../../lib/text/index.ts'

export interface TokenService {
  /** @throws TTL_TOO_LONG; LOGIN_REFUSED if the account of the caller changed; errors of `Impersonate` */
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
  /** Makes the token worthless that proves who is calling. @throws TOKEN_NOT_USED, TOKEN_UNKNOWN, PERMISSION_DENIED */
  revokeCurrent(caller: Caller): Promise<void>
  /**
   * Makes all tokens of a user worthless at once.
   *
   * @param user default the caller
   * @returns how many there were
   * @throws PERMISSION_DENIED
   */
  revokeAll(user: string | undefined, caller: Caller): Promise<number>
}

export interface TokenServiceOptions {
  database: Database
  store: AuthStore
  tokens: Tokens
  impersonate: Impersonate
  logins: Pick<Logins, 'isCurrent'>
  /** `auth.token_ttl`, in seconds: the default and the maximum. */
  maxTtlSeconds: number
  log: Log
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createTokenService(options: TokenServiceOptions): TokenService {
  const { database, store, tokens, logins, maxTtlSeconds, log } = options

  async function impersonate(request: TokenRequest, caller: Caller): Promise<string | undefined> {
    try {
      return await options.impersonate(request, caller.principal)
    } catch (error) {
      if (isAppError(error)) {
        const { user, impersonate_user: nickname, nickname_origin: origin } = request
        const asked = isGiven(user)
          ? { owner: shown(user) }
          : { nickname: shown(nickname), origin: shown(origin ?? '') }
        log.audit('impersonation.refused', `Impersonation refused: ${error.message}`, {
          ...aboutCaller(caller),
          ...asked,
        })
      }
      throw error
    }
  }

  /** @throws TOKEN_UNKNOWN */
  async function remove(id: string, owner: string, caller: Caller): Promise<void> {
    try {
      await database.write({
        steps: [store.deleteToken(id)],
        facts: [{ name: 'token.revoked', payload: { id } }],
      })
    } catch (error) {
      if (error instanceof Conflict) throw tokenUnknown()
      throw error
    }
    const message = `Token with id "${id}" of "${owner}" is revoked.`
    log.audit('token.revoked', message, { ...aboutCaller(caller), token_id: id, owner })
  }

  return {
    async issue(request, caller) {
      const target = await impersonate(request, caller)
      const ttlSeconds = request.ttl ?? maxTtlSeconds
      if (ttlSeconds > maxTtlSeconds) throw ttlTooLong(ttlSeconds, maxTtlSeconds)
      const user = target ?? caller.principal.user
      const { token, row } = tokens.make(user, ttlSeconds)
      if (!logins.isCurrent(caller.principal)) {
        log.audit('login.refused', 'The account was changed during the login', aboutCaller(caller))
        throw loginRefused()
      }
      const [newUser] = await database.write({
        steps: [store.insertUser(user, formatMicros(options.now())), store.insertToken(row)],
        facts: [],
      })
      if (newUser?.changes === 1) log.audit('user.registered', `Registered new user "${user}".`, aboutCaller(caller))
      const granted = `Access granted to "${user}" with the token set to expire at "${row.expiry}".`
      const owner = target === undefined ? {} : { owner: target }
      log.audit('token.issued', granted, { ...aboutCaller(caller), ...owner, token_id: row.id })
      return { id: row.id, user, token, expiry: row.expiry, metadata: {}, service: false }
    },

    validate(token, caller) {
      if (token === undefined || token === null || token === '') throw tokenNotProvided()
      const known = tokens.check(token)
      if (known === undefined || known.isDisabled) return false
      const state = known.hasExpired ? 'has expired' : 'is validated'
      const event = known.hasExpired ? 'token.expired' : 'token.validated'
      log.audit(event, `Token with id "${known.id}" ${state}.`, { ...aboutCaller(caller), token_id: known.id })
      return !known.hasExpired
    },

    async revoke(tokenOrId, caller) {
      refuseScoped(caller.principal, 'revoke tokens')
      const row = isId(tokenOrId) ? store.findToken(tokenOrId) : tokens.find(tokenOrId)
      if (row === undefined) throw tokenUnknown()
      if (!mayRevoke(caller.principal, row.user)) {
        throw permissionDenied('Only the owner of a token and administrators can revoke it.')
      }
      await remove(row.id, row.user, caller)
    },

    async revokeCurrent(caller) {
      const { user, tokenId } = caller.principal
      refuseScoped(caller.principal, 'revoke tokens')
      if (tokenId === undefined) throw tokenNotUsed()
      await remove(tokenId, user, caller)
    },

    async revokeAll(user, caller) {
      refuseScoped(caller.principal, 'revoke tokens')
      const owner = user ?? caller.principal.user
      if (!mayRevoke(caller.principal, owner)) throw administratorOrSelfRequired()
      const [deleted] = await database.write({
        steps: [store.deleteTokensOf(owner)],
        facts: [{ name: 'user.changed', payload: { name: owner } }],
      })
      const revoked = deleted?.changes ?? 0
      log.audit('token.revoked', `All tokens of "${owner}" are revoked.`, { ...aboutCaller(caller), owner, revoked })
      return revoked
    },
  }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

function mayRevoke(principal: Principal, owner: string): boolean {
  return principal.isAdmin || principal.user === owner
}
