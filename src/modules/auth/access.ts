/** Who is calling, for the chain of every request while authentication is on. */
import type { Request, Response } from 'express'
import { isLoopback } from '../../config/load.ts'
import {
  apiKeyDisabled,
  apiKeyExpired,
  apiKeyUserDisabled,
  isAppError,
  loginRefused,
  originRefused,
  tokenExpired,
  tokenInvalid,
  type AppError,
} from '../../errors.ts'
import type { AccessControl } from '../../http/authenticate.ts'
import type { OriginPolicy } from '../../http/origin.ts'
import type { Peers } from '../../http/peers.ts'
import type { Principal } from '../../http/route.ts'
import type { Log, LogFields } from '../../log.ts'
import { microsOf } from '../../time.ts'
import type { Admit } from './admission.ts'
import type { ApiKeyObstacle, ApiKeys } from './api-keys/index.ts'
import type { UserPassword } from './basic.ts'
import { authCookie, readCredential, type CookieSettings, type Credential } from './credentials.ts'
import type { PasswordCheck } from './password-check.ts'
import { createAuthenticate } from './strategies.ts'
import type { Rbac } from '../rbac/index.ts'
import type { Tokens } from './tokens.ts'
import type { Watchers } from './watchers.ts'

const obstacles: Record<ApiKeyObstacle, { event: string; problem: string; refusal: () => AppError }> = {
  disabled: { event: 'api_key.disabled', problem: 'is disabled', refusal: apiKeyDisabled },
  expired: { event: 'api_key.expired', problem: 'has expired', refusal: apiKeyExpired },
  user_disabled: { event: 'api_key.user_disabled', problem: 'is of a disabled user', refusal: apiKeyUserDisabled },
}

export interface AccessOptions {
  tokens: Tokens
  apiKeys: Pick<ApiKeys, 'check' | 'noteUse'>
  checkPassword: PasswordCheck
  admit: Admit
  peers: Peers
  origins: Pick<OriginPolicy, 'isKnown'>
  cookie: CookieSettings
  log: Log
  /** Microseconds since the epoch. */
  readonly now: () => number
  rights: Pick<Rbac, 'isAdmin' | 'rightsOf'>
  watchers: Watchers
}

export function createAccess(options: AccessOptions): AccessControl {
  const { tokens, apiKeys, peers, origins, cookie, log, now, rights, watchers } = options

  function about(request: Request): LogFields {
    return { remote_address: peers.addressOf(request), request_id: request.res?.getHeader('X-Request-ID') }
  }

  async function checkLogin(given: UserPassword | string, request: Request): Promise<Principal> {
    if (typeof given === 'string') {
      log.audit('login.refused', given, about(request))
      throw loginRefused()
    }
    const { user, password } = given
    if (!(await options.checkPassword(user, password))) {
      log.audit('login.refused', 'Invalid credentials provided', { user, ...about(request) })
      throw loginRefused()
    }
    await options.admit(user, about(request))
    return { user, isAdmin: rights.isAdmin(user), method: 'basic' }
  }

  function checkToken({ value, location }: Credential, request: Request): Principal {
    if (location === 'cookie') refuseForeignPage(request)
    const token = tokens.check(value)
    if (token === undefined) throw tokenInvalid()
    const { id, user, expiry, hasExpired } = token
    if (hasExpired) {
      log.audit('token.expired', `Token with id "${id}" has expired.`, { user, token_id: id, ...about(request) })
      throw tokenExpired()
    }
    if (log.enabled('DEBUG')) {
      log.debug('token.validated', `Token with id "${id}" is validated.`, { user, token_id: id, ...about(request) })
    }
    return { user, isAdmin: rights.isAdmin(user), method: 'token', location, expiry, tokenId: id }
  }

  function checkApiKey({ value, location }: Credential, request: Request): Principal {
    const { id, user, scopes, obstacle } = apiKeys.check(value)
    if (obstacle !== undefined) {
      const { event, problem, refusal } = obstacles[obstacle]
      log.audit(event, `API key with id "${id}" ${problem}.`, { user, api_key_id: id, ...about(request) })
      throw refusal()
    }
    apiKeys.noteUse(id)
    if (log.enabled('DEBUG')) {
      const message = `API key with id "${id}" is validated.`
      log.debug('api_key.validated', message, { user, api_key_id: id, ...about(request) })
    }
    const isAdmin = scopes === undefined && rights.isAdmin(user)
    return { user, isAdmin, method: 'api_key', location, apiKeyId: id, ...(scopes === undefined ? {} : { scopes }) }
  }

  /** Browsers add the cookie to whatever a foreign page makes them send. Ports do not keep cookies apart either. */
  function refuseForeignPage(request: Request): void {
    const { method, headers } = request
    if (method === 'GET') return
    const { origin, host } = headers
    const site = headers['sec-fetch-site']
    const isForeign =
      origin === undefined
        ? site === 'cross-site' || site === 'same-site'
        : !origins.isKnown(origin, { host, isSecure: peers.isSecure(request) })
    if (!isForeign) return
    throw originRefused(
      'A page of another origin cannot use the cookie of this server; send the token in X-Auth-Token.',
    )
  }

  const authenticate = createAuthenticate({
    basic: checkLogin,
    token: checkToken,
    apiKey: checkApiKey,
  })

  return {
    login: (request, response) => authenticate('basic', request, response),

    async authenticate(request: Request, response: Response) {
      try {
        const credential = readCredential(request)
        const principal = await authenticate(credential.kind, request, response)
        if (credential.kind === 'token' && credential.location !== 'cookie' && principal.expiry !== undefined) {
          const seconds = Math.max(0, Math.floor((microsOf(principal.expiry) - now()) / 1_000_000))
          const client = { isSecure: peers.isSecure(request), isLocal: isLoopback(peers.addressOf(request)) }
          response.setHeader('Set-Cookie', authCookie(credential.value, seconds, cookie, client))
        }
        return principal
      } catch (error) {
        if (isAppError(error) && error.kind === 'unauthenticated') {
          log.info('request.unauthenticated', error.message, { code: error.code, ...about(request) })
        }
        throw error
      }
    },

    rightsOf: (principal) => rights.rightsOf(principal),
    watch: (principal, ended) => watchers.watch(principal, ended),
  }
}
