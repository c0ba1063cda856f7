import type { JsonSchema } from '../../lib/schema/index.ts'
import { Reply, type ApiRequest, type Principal, type Route } from '../../http/index.ts'
import { isLoopback } from '../../lib/network/index.ts'
import type { Rbac } from '../rbac/index.ts'
import { authCookie, type CookieSettings } from './credentials.ts'
import type { TokenRequest, TokenService } from './service.ts'
import type { CurrentUser } from './types.ts'

const tokenRequestSchema: JsonSchema = {
  title: 'TokenRequest',
  type: 'object',
  properties: {
    ttl: {
      type: ['integer', 'null'],
      minimum: 1,
      description: 'Requested lifetime in seconds, at most auth.token_ttl, which is also the default.',
    },
    user: { description: 'Service accounts only: the name of the user whom the token is for.' },
    impersonate_user: { description: 'Service accounts only: a nickname of the user, if user is not given.' },
    nickname_origin: { description: 'The chat system that the nickname belongs to.' },
  },
}

const tokenSchema: JsonSchema = {
  title: 'Token',
  type: 'object',
  required: ['id', 'user', 'token', 'expiry', 'metadata', 'service'],
  properties: {
    id: { type: 'string', description: 'Id of the record; it is no credential.' },
    user: { type: 'string' },
    token: { type: 'string', description: 'The value to send in X-Auth-Token. It is shown only here.' },
    expiry: { type: 'string', format: 'date-time' },
    metadata: { type: 'object' },
    service: { type: 'boolean' },
  },
}

const validateRequestSchema: JsonSchema = {
  title: 'TokenValidationRequest',
  type: 'object',
  properties: { token: { type: ['string', 'null'] } },
}

const validateSchema: JsonSchema = {
  title: 'TokenValidation',
  type: 'object',
  required: ['valid'],
  properties: { valid: { type: 'boolean' } },
}

const revokedSchema: JsonSchema = {
  title: 'RevokedTokens',
  type: 'object',
  required: ['revoked'],
  properties: { revoked: { type: 'integer', description: 'How many there were.' } },
}

const userSchema: JsonSchema = {
  title: 'CurrentUser',
  type: 'object',
  required: ['username', 'authentication', 'rbac'],
  properties: {
    username: { type: 'string' },
    authentication: {
      type: 'object',
      required: ['method', 'location'],
      properties: {
        method: { enum: ['authentication token', 'API key', null] },
        location: { enum: ['header', 'query', 'cookie', null] },
        token_expire: { type: 'string', format: 'date-time' },
      },
    },
    rbac: {
      type: 'object',
      required: ['enabled', 'roles', 'is_admin'],
      properties: {
        enabled: { type: 'boolean' },
        roles: { type: 'array', items: { type: 'string' } },
        is_admin: { type: 'boolean' },
      },
    },
  },
}

export interface AuthRoutesOptions {
  /** @throws AUTHENTICATION_OFF */
  readonly service: () => TokenService
  /** Public base URL of the API, without version and trailing slash. */
  readonly apiUrl: () => string
  cookie: CookieSettings
  rbac: Pick<Rbac, 'enabled' | 'rolesOf'>
}

export function createRoutes({ service, apiUrl, cookie, rbac }: AuthRoutesOptions): Route[] {
  return [
    {
      surface: 'auth',
      method: 'post',
      path: '/tokens',
      permission: 'login',
      summary: 'Log in: make a token. The answer carries the address of the API in X-API-URL.',
      body: tokenRequestSchema,
      status: 201,
      response: tokenSchema,
      failures: [403, 404, 503],
      handler: async (request) => {
        const body = request.body as TokenRequest // checked by the schema
        return new Reply(await service().issue(body, request), { headers: { 'X-API-URL': apiUrl() } })
      },
    },
    {
      surface: 'auth',
      method: 'post',
      path: '/tokens/validate',
      permission: 'authenticated',
      summary: 'Whether a token is valid.',
      body: validateRequestSchema,
      response: validateSchema,
      failures: [404],
      handler: (request) => {
        const { token } = request.body as { token?: string | null } // checked by the schema
        return { valid: service().validate(token, request) }
      },
    },
    {
      surface: 'auth',
      method: 'delete',
      path: '/tokens',
      permission: 'authenticated',
      summary: 'Revoke all tokens of a user: your own, or those of anybody as an administrator.',
      query: { user: { type: 'string', description: 'Whose tokens; default: your own.' } },
      response: revokedSchema,
      failures: [403, 404],
      handler: async (request) => {
        const { user } = request.query
        return { revoked: await service().revokeAll(typeof user === 'string' ? user : undefined, request) }
      },
    },
    {
      surface: 'auth',
      method: 'delete',
      path: '/tokens/current',
      permission: 'authenticated',
      summary: 'Sign out: revoke the token that this request is made with, and make a browser forget it.',
      answerHeaders: { 'Set-Cookie': 'Removes the cookie `auth-token`.' },
      status: 204,
      response: {},
      failures: [400, 403, 404],
      async handler(request) {
        await service().revokeCurrent(request)
        const client = { isSecure: request.isSecure, isLocal: isLoopback(request.remoteAddress) }
        return new Reply(undefined, { headers: { 'Set-Cookie': authCookie('', 0, cookie, client) } })
      },
    },
    {
      surface: 'auth',
      method: 'delete',
      path: '/tokens/:token',
      permission: 'authenticated',
      summary: 'Revoke a token, named by its value or its id: one of your own, or any as an administrator.',
      status: 204,
      response: {},
      failures: [403, 404],
      handler: async (request) => {
        await service().revoke(request.params['token'] ?? '', request)
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/user',
      permission: 'authenticated',
      summary: 'Who is calling, and how that was proved.',
      response: userSchema,
      handler: ({ principal }: ApiRequest) => describeUser(principal, rbac),
    },
  ]
}

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
