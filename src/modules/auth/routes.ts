import { ssoOff } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import { microsOf } from '../../core/time.ts'
import {
  Reply,
  route,
  senderOf,
  type ApiRequest,
  type OriginPolicy,
  type Principal,
  type Route,
} from '../../http/index.ts'
import { isLoopback } from '../../lib/network/index.ts'
import { Type } from '../../lib/schema/index.ts'
import type { Rbac } from '../rbac/index.ts'
import { authCookie, type CookieSettings } from './credentials.ts'
import type { TokenService } from './service.ts'
import {
  CurrentUser,
  IssuedToken,
  RevokedTokens,
  SsoState,
  TokenRequest,
  TokenValidation,
  TokenValidationRequest,
} from './types.ts'

export interface AuthRoutesOptions {
  /** @throws AUTHENTICATION_OFF */
  readonly service: () => TokenService
  /** Public base URL of the API, without version and trailing slash. */
  readonly apiUrl: () => string
  cookie: CookieSettings
  origins: Pick<OriginPolicy, 'isForeign'>
  clock: Pick<Clock, 'now'>
  rbac: Pick<Rbac, 'enabled' | 'rolesOf'>
}

export function createAuthRoutes({ service, apiUrl, cookie, origins, clock, rbac }: AuthRoutesOptions): Route[] {
  /**
   * The cookie of a login on a page of the server itself, or of one that `api.allow_origin` lists: such a page may open an
   * event stream next, which takes no header. Other pages must not log a browser in, and programs need no cookie.
   */
  function cookieOfLogin(issued: IssuedToken, request: Pick<ApiRequest, CallerFacts>): Record<string, string> {
    const { principal, headers, isSecure, remoteAddress } = request
    const page = senderOf(headers)
    const isOfPage = page.origin !== undefined || page.site !== undefined
    if (!isOfPage || issued.user !== principal.user) return {}
    if (origins.isForeign(page, { host: headers.host, isSecure })) return {}
    const seconds = Math.max(0, Math.floor((microsOf(issued.expiry) - clock.now()) / 1_000_000))
    const client = { isSecure, isLocal: isLoopback(remoteAddress) }
    return { 'Set-Cookie': authCookie(issued.token, seconds, cookie, client) }
  }

  return [
    ...ssoRoutes(),
    route({
      surface: 'auth',
      method: 'post',
      path: '/tokens',
      permission: 'login',
      summary: 'Logs in: creates a token. The header X-API-URL holds the address of the API.',
      body: TokenRequest,
      status: 201,
      response: IssuedToken,
      failures: [403, 404, 503],
      answerHeaders: { 'Set-Cookie': 'The cookie `auth-token`, for pages of this server and of `api.allow_origin`.' },
      async handler(request) {
        const issued = await service().issue(request.body, request)
        return new Reply(issued, { headers: { 'X-API-URL': apiUrl(), ...cookieOfLogin(issued, request) } })
      },
    }),
    route({
      surface: 'auth',
      method: 'post',
      path: '/tokens/validate',
      permission: 'authenticated',
      summary: 'Checks whether a token is valid.',
      body: TokenValidationRequest,
      response: TokenValidation,
      failures: [404],
      changesNothing: true,
      handler: (request) => ({ valid: service().validate(request.body.token, request) }),
    }),
    route({
      surface: 'auth',
      method: 'delete',
      path: '/tokens',
      permission: 'authenticated',
      summary: 'Revokes all tokens of a user: your own, or those of any user as an administrator.',
      query: { user: { type: 'string', description: 'The user whose tokens to revoke. Default: the caller.' } },
      response: RevokedTokens,
      failures: [403, 404],
      handler: async (request) => ({ revoked: await service().revokeAll(request.query.user, request) }),
    }),
    route({
      surface: 'auth',
      method: 'delete',
      path: '/tokens/current',
      permission: 'authenticated',
      summary: 'Logs out: revokes the token of this request and deletes the cookie.',
      answerHeaders: { 'Set-Cookie': 'Removes the cookie `auth-token`.' },
      status: 204,
      response: {},
      failures: [400, 403, 404],
      async handler(request) {
        await service().revokeCurrent(request)
        const client = { isSecure: request.isSecure, isLocal: isLoopback(request.remoteAddress) }
        return new Reply(undefined, { headers: { 'Set-Cookie': authCookie('', 0, cookie, client) } })
      },
    }),
    route({
      surface: 'auth',
      method: 'delete',
      path: '/tokens/:token',
      permission: 'authenticated',
      summary: 'Revokes a token by its value or its id: one of your own, or any as an administrator.',
      status: 204,
      response: {},
      failures: [403, 404],
      handler: async (request) => {
        await service().revoke(request.params.token, request)
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/user',
      permission: 'authenticated',
      summary: 'Gets the user of the credential, and how the caller authenticated.',
      response: CurrentUser,
      handler: ({ principal }) => describeUser(principal, rbac),
    }),
  ]
}

type CallerFacts = 'principal' | 'headers' | 'isSecure' | 'remoteAddress'

const methodTexts: Record<Principal['method'], CurrentUser['authentication']['method']> = {
  none: null,
  control_socket: null,
  basic: null,
  proxy: null,
  token: 'authentication token',
  api_key: 'API key',
}

/** Contract 01, 1.10. */
function describeUser(
  { user, isAdmin, method, location, expiry }: Principal,
  rbac: Pick<Rbac, 'enabled' | 'rolesOf'>,
): CurrentUser {
  return {
    username: user,
    authentication: {
      method: methodTexts[method],
      location: location ?? null,
      ...(expiry === undefined ? {} : { token_expire: `${expiry.slice(0, 19)}Z` }),
    },
    rbac: { enabled: rbac.enabled, roles: rbac.rolesOf(user), is_admin: isAdmin },
  }
}

/** Clients ask whether they can offer single sign-on; svc has none. */
function ssoRoutes(): Route[] {
  const refuse = (): never => {
    throw ssoOff()
  }
  return [
    route({
      surface: 'auth',
      method: 'get',
      path: '/sso',
      permission: 'public',
      summary: 'Says whether users can log in by single sign-on: they cannot.',
      response: SsoState,
      handler: () => ({ enabled: false }),
    }),
    route({
      surface: 'auth',
      method: 'get',
      path: '/sso/request',
      permission: 'public',
      summary: 'Would redirect to the identity provider; answers 404, because single sign-on is off.',
      response: Type.Unknown(),
      failures: [404],
      handler: refuse,
    }),
    route({
      surface: 'auth',
      method: 'post',
      path: '/sso/callback',
      permission: 'public',
      summary: 'Would take the answer of the identity provider; answers 404, because single sign-on is off.',
      response: Type.Unknown(),
      failures: [404],
      changesNothing: true,
      handler: refuse,
    }),
  ]
}
