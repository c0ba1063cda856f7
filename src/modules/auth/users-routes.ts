import {
  flagFilter,
  listReply,
  pageHeaders,
  pageQuery,
  parsePage,
  textFilter,
  type ApiRequest,
  type Route,
} from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { NewUserRequest, UserRequest } from './types.ts'
import type { Users } from './users.ts'

const nicknames: JsonSchema = {
  type: 'object',
  maxProperties: 100,
  additionalProperties: { type: 'string', minLength: 1, maxLength: 256 },
  description: 'Chat system → nickname there, for tokens that its service account asks for.',
}

const isService: JsonSchema = {
  type: 'boolean',
  description: 'May ask for tokens of other users, unless those are administrators.',
}

// Without a type, because a value that breaks a schema is repeated in the message.
const password: JsonSchema = { description: 'Text of at most 1024 bytes.' }

const newUserSchema: JsonSchema = {
  title: 'NewUser',
  type: 'object',
  additionalProperties: false,
  required: ['name'],
  properties: {
    name: { type: 'string' },
    password,
    is_service: isService,
    nicknames,
  },
}

const userRequestSchema: JsonSchema = {
  title: 'UserRequest',
  type: 'object',
  additionalProperties: false,
  properties: {
    name: { type: 'string', description: 'As it is: it cannot be changed.' },
    password,
    current_password: { description: 'Needed to change the own password, except by administrators.' },
    is_service: isService,
    is_disabled: { type: 'boolean', description: 'Neither logins nor tokens nor API keys of the user count.' },
    nicknames,
    created_at: { type: ['string', 'null'], description: 'Ignored, as is has_password: a record can be sent back.' },
    has_password: { type: ['boolean', 'null'] },
  },
}

const userSchema: JsonSchema = {
  title: 'User',
  type: 'object',
  required: ['name', 'is_service', 'is_disabled', 'nicknames', 'created_at', 'has_password'],
  properties: {
    name: { type: 'string' },
    is_service: isService,
    is_disabled: { type: 'boolean' },
    nicknames,
    created_at: {
      type: ['string', 'null'],
      format: 'date-time',
      description: 'Null: an account that nobody has used yet.',
    },
    has_password: { type: ['boolean', 'null'], description: 'Null: the backend does not keep the passwords.' },
  },
}

const DEFAULT_LIMIT = 100

export interface UsersRoutesOptions {
  /** @throws AUTHENTICATION_OFF */
  readonly users: () => Users
  /** `api.max_page_size` */
  maxPageSize: number
}

export function createUsersRoutes({ users, maxPageSize }: UsersRoutesOptions): Route[] {
  return [
    {
      surface: 'api',
      method: 'get',
      path: '/users',
      permission: 'administrator',
      summary: 'List the users, by name: who has logged in, and whose password the server keeps.',
      query: {
        ...pageQuery,
        name: { type: 'string', description: 'Only the user of this name.' },
        is_service: { type: 'boolean', description: 'Only service accounts, or all others.' },
        is_disabled: { type: 'boolean', description: 'Only users that are disabled, or all others.' },
      },
      response: { type: 'array', items: userSchema },
      failures: [400, 403, 404, 503],
      async handler({ query, principal }) {
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const filter = {
          name: textFilter(query, 'name'),
          is_service: flagFilter(query, 'is_service'),
          is_disabled: flagFilter(query, 'is_disabled'),
        }
        const { records, total } = await users().list(filter, page)
        return listReply(records, pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'post',
      path: '/users',
      permission: 'administrator',
      summary: 'Add a user; with a password only where the backend keeps them.',
      body: newUserSchema,
      status: 201,
      response: userSchema,
      failures: [400, 403, 404, 409, 503],
      // Checked by the schema.
      handler: (request) => users().create(request.body as NewUserRequest, request),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/users/:name',
      permission: 'authenticated',
      summary: 'One user: oneself, or anybody as an administrator.',
      response: userSchema,
      failures: [403, 404],
      handler: (request) => users().get(nameOf(request), request),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/users/:name',
      permission: 'authenticated',
      summary: 'Change a user: what is left out stays as it is. Everybody may change the own password.',
      body: userRequestSchema,
      response: userSchema,
      failures: [400, 403, 404, 409, 429, 503],
      // Checked by the schema.
      handler: (request) => users().update(nameOf(request), request.body as UserRequest, request),
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/users/:name',
      permission: 'administrator',
      summary: 'Delete a user with account, tokens and API keys. What runs for the user goes on.',
      status: 204,
      response: {},
      failures: [400, 403, 404, 503],
      handler: (request) => users().delete(nameOf(request), request),
    },
  ]
}

function nameOf({ params }: ApiRequest): string {
  return params['name'] ?? ''
}
