/** Who is calling, for the chain of every request while authentication is on. */
import type { Request, Response } from 'express'
import {
  apiKeyDisabled,
  apiKeyExpired,
  apiKeyUserDisabled,
  isAppError,
  loginRefused,
  originRefused,
  tokenExpired,
  tokenInvalid,
  tokenUserDisabled,
  userChanged,
  type AppError,
} from '../../core/errors.ts'
import { senderOf, type AccessControl, type OriginPolicy, type Peers, type Principal } from '../../http/index.ts'
import { type Log, type LogFields, createRepeatLimit } from '../../lib/log/index.ts'
import { isLoopback } from '../../lib/network/index.ts'
import type { Clock } from '../../core/clock.ts'
import { microsOf } from '../../core/time.ts'
import type { AdmitLogin } from './admission.ts'
import type { ApiKeyObstacle, ApiKeys } from './api-keys/index.ts'
import type { UserPassword } from './basic.ts'
import { authCookie, readCredential, type CookieSettings, type Credential } from './credentials.ts'
import type { Logins } from './logins.ts'
import type { PasswordCheck, Source } from './password-check.ts'
import type { NoRemoteUser, RemoteUser } from './proxy.ts'
import { createAuthenticate } from './strategies.ts'
import type { Rbac } from '../rbac/index.ts'
import { networkOf, type Throttle } from './throttle.ts'
import type { Tokens } from './tokens.ts'
import type { Watchers } from './watchers.ts'
import { shown } from '../../lib/text/index.ts'

const obstacles: Record<ApiKeyObstacle, { event: string; problem: string; refusal: () => AppError }> = {
  disabled: { event: 'api_key.disabled', problem: 'is disabled', refusal: apiKeyDisabled },
  expired: { event: 'api_key.expired', problem: 'has expired', refusal: apiKeyExpired },
  user_disabled: { event: 'api_key.user_disabled', problem: 'is of a disabled user', refusal: apiKeyUserDisabled },
}

/** The user that a page shows, percent-encoded. Requests with a cookie of another user are refused. */
const EXPECTED_USER = 'svc-expected-user'

export interface AccessOptions {
  tokens: Tokens
  apiKeys: Pick<ApiKeys, 'check' | 'noteUse'>
  /** Undefined in proxy mode: there a trusted web server in front says who logs in. */
  checkPassword: PasswordCheck | undefined
  /** The only header in which that web server names the user; empty: one of several. */
  userHeader: string
  throttle: Throttle<Source>
  admit: AdmitLogin
  logins: Logins
  peers: Peers
  origins: Pick<OriginPolicy, 'isForeign'>
  cookie: CookieSettings
  log: Log
  clock: Pick<Clock, 'now' | 'monotonic'>
  rights: Pick<Rbac, 'isAdmin' | 'rightsOf'>
  watchers: Watchers
}

export function createAccess(options: AccessOptions): AccessControl {
  const { tokens, apiKeys, checkPassword, throttle, logins, peers, origins, cookie, log, clock, rights, watchers } =
    options

  const repeats = createRepeatLimit(10, () => clock.monotonic())
  const uses = createRepeatLimit(1, () => clock.monotonic())

  function sourceOf(request: Request): Source {
    return { address: peers.addressOf(request), requestId: String(request.res?.getHeader('X-Request-ID') ?? '-') }
  }

  function about(request: Request): LogFields {
    const { address, requestId } = sourceOf(request)
    return { remote_address: address, request_id: requestId }
  }

  /** For what anybody can cause over and over: of many lines with one key only some are written. */
  function writeSome(level: 'audit' | 'info', key: string, event: string, message: string, fields: LogFields): void {
    const kept = repeats(`${event} ${key}`)
    if (kept === undefined) return
    log[level](event, message, kept === 0 ? fields : { ...fields, lines_kept_back: kept })
  }

  /** That a credential was used: every request would be a line otherwise. */
  function writeUse(event: string, message: string, id: string, fields: LogFields, request: Request): void {
    const kept = uses(`${id} ${peers.addressOf(request)}`)
    if (kept === undefined) return
    log.audit(event, message, { ...fields, ...about(request), ...(kept === 0 ? {} : { lines_kept_back: kept }) })
  }

  /** A caller with scopes is no administrator. */
  function isAdministrator(user: string, scopes: Principal['scopes']): boolean {
    return scopes === undefined && rights.isAdmin(user)
  }

  function refuseLogin(message: string, fields: LogFields, request: Request): never {
    // What follows a colon is of the client, who can make it up.
    const [kind] = message.split(':', 1)
    writeSome('audit', `${networkOf(peers.addressOf(request))} ${kind}`, 'login.refused', message, {
      ...fields,
      ...about(request),
    })
    throw loginRefused()
  }

  /** @param epoch of the user, from before it was looked at who this is */
  async function admit(user: string, method: 'basic' | 'proxy', epoch: number, request: Request): Promise<Principal> {
    await options.admit(user, about(request))
    const principal: Principal = { user, isAdmin: rights.isAdmin(user), method }
    logins.remember(principal, epoch)
    return principal
  }

  async function checkLogin(given: UserPassword | string, request: Request): Promise<Principal> {
    if (typeof given === 'string') refuseLogin(given, {}, request)
    const { user, password } = given
    const epoch = logins.epochOf(user)
    if (checkPassword === undefined || !(await checkPassword(user, password, sourceOf(request)))) {
      log.audit('login.refused', 'Invalid credentials provided', { user, ...about(request) })
      throw loginRefused()
    }
    return admit(user, 'basic', epoch, request)
  }

  async function checkRemoteUser(given: RemoteUser | NoRemoteUser, request: Request): Promise<Principal> {
    const name = 'user' in given ? given.user : given.given
    const fields = name === undefined ? {} : { user: shown(name) }
    if (name === undefined || peers.isTrustedPeer(request)) {
      if ('user' in given) return admit(given.user, 'proxy', logins.epochOf(given.user), request)
      refuseLogin(given.problem, fields, request)
    }
    throttle.refused(sourceOf(request))
    const message = 'A peer that is not in auth.trusted_proxies named a remote user'
    log.audit('login.spoofed', message, { ...fields, ...about(request) })
    throw loginRefused()
  }

  function checkToken({ value, location }: Credential, request: Request): Principal {
    if (location === 'cookie') refuseForeignPage(request)
    const token = tokens.check(value)
    if (token === undefined) throw tokenInvalid()
    const { id, user, expiry, isService, scopes, hasExpired, isDisabled } = token
    if (hasExpired) {
      const fields = { user, token_id: id, ...about(request) }
      writeSome('audit', id, 'token.expired', `Token with id "${id}" has expired.`, fields)
      throw tokenExpired()
    }
    if (isDisabled) {
      const fields = { user, token_id: id, ...about(request) }
      writeSome('audit', id, 'token.user_disabled', `Token with id "${id}" is of a disabled user.`, fields)
      throw tokenUserDisabled()
    }
    if (location === 'cookie' && !isExpected(user, request)) throw userChanged()
    writeUse('token.validated', `Token with id "${id}" is validated.`, id, { user, token_id: id }, request)
    const isAdmin = isAdministrator(user, scopes)
    const principal: Principal = { user, isAdmin, method: 'token', location, expiry, tokenId: id }
    if (!isService) return principal
    return { ...principal, isServiceToken: true, ...(scopes === undefined ? {} : { scopes }) }
  }

  function checkApiKey({ value, location }: Credential, request: Request): Principal {
    const { id, user, scopes, obstacle } = apiKeys.check(value)
    if (obstacle !== undefined) {
      const { event, problem, refusal } = obstacles[obstacle]
      const fields = { user, api_key_id: id, ...about(request) }
      writeSome('audit', id, event, `API key with id "${id}" ${problem}.`, fields)
      throw refusal()
    }
    apiKeys.noteUse(id)
    writeUse('api_key.validated', `API key with id "${id}" is validated.`, id, { user, api_key_id: id }, request)
    const isAdmin = isAdministrator(user, scopes)
    return { user, isAdmin, method: 'api_key', location, apiKeyId: id, ...(scopes === undefined ? {} : { scopes }) }
  }

  /** Whether a page of another origin makes a browser send this. */
  function isOfForeignPage(request: Request): boolean {
    const { headers } = request
    return origins.isForeign(senderOf(headers), { host: headers.host, isSecure: peers.isSecure(request) })
  }

  /** Browsers add the cookie to requests of foreign pages, and cookies do not depend on the port. */
  function refuseForeignPage(request: Request): void {
    if (request.method === 'GET' || !isOfForeignPage(request)) return
    throw originRefused(
      'A page of another origin cannot use the cookie of this server; send the token in X-Auth-Token.',
    )
  }

  /** After a login on one page of a browser, other pages must not act for the new user. */
  function isExpected(user: string, { headers: { [EXPECTED_USER]: expected } }: Request): boolean {
    return expected === undefined || expected === encodeURIComponent(user.toWellFormed())
  }

  const verifiers = { basic: checkLogin, proxy: checkRemoteUser, token: checkToken, apiKey: checkApiKey }
  const authenticate = createAuthenticate(verifiers, options.userHeader)

  /** @throws TOO_MANY_FAILURES in place of the refusal */
  function noteRefusal(error: AppError, credential: Credential | undefined, request: Request): void {
    const source = sourceOf(request)
    if (credential !== undefined && isGuess(error, credential)) throttle.refused(source, credential.value)
    const fields = { code: error.code, ...about(request) }
    writeSome('info', `${error.code} ${networkOf(source.address)}`, 'request.unauthenticated', error.message, fields)
  }

  /** Tokens that were good once are none, nor are expired keys. */
  function isGuess({ code }: AppError, { kind, value }: Credential): boolean {
    return kind === 'token' ? code === 'TOKEN_INVALID' && !tokens.isGenuine(value) : code !== 'API_KEY_EXPIRED'
  }

  return {
    login: (request, response) => authenticate(checkPassword === undefined ? 'proxy' : 'basic', request, response),

    async authenticate(request: Request, response: Response) {
      let credential: Credential | undefined
      try {
        credential = readCredential(request)
        const principal = await authenticate(credential.kind, request, response)
        const isSent = credential.kind === 'token' && credential.location !== 'cookie'
        // A link with a token must not log the browser in as another user.
        if (isSent && principal.expiry !== undefined && !isOfForeignPage(request)) {
          const seconds = Math.max(0, Math.floor((microsOf(principal.expiry) - clock.now()) / 1_000_000))
          const client = { isSecure: peers.isSecure(request), isLocal: isLoopback(peers.addressOf(request)) }
          response.setHeader('Set-Cookie', authCookie(credential.value, seconds, cookie, client))
        }
        return principal
      } catch (error) {
        if (isAppError(error) && error.kind === 'unauthenticated') noteRefusal(error, credential, request)
        throw error
      }
    },

    hasCredential(request) {
      try {
        readCredential(request)
        return true
      } catch (error) {
        return !isAppError(error) || error.code !== 'CREDENTIALS_MISSING'
      }
    },
    rightsOf: (principal) => rights.rightsOf(principal),
    isCurrent(principal) {
      const { method, user, scopes, isAdmin } = principal
      // The user of a login is checked again when the token is issued.
      if (method !== 'token' && method !== 'api_key') return true
      return watchers.isValid(principal) && isAdmin === isAdministrator(user, scopes)
    },
    watch: (principal, ended) => watchers.watch(principal, ended),
  }
}
