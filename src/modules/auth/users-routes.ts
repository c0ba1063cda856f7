import { listEndpoint, route, textFilter, type Route } from '../../http/index.ts'
import { NewUserRequest, UserRecord, UserRequest } from './types.ts'
import type { Users } from './users.ts'

const DEFAULT_LIMIT = 100

export interface UsersRoutesOptions {
  /** @throws AUTHENTICATION_OFF */
  readonly users: () => Users
  /** `api.max_page_size` */
  maxPageSize: number
}

export function createUsersRoutes({ users, maxPageSize }: UsersRoutesOptions): Route[] {
  return [
    listEndpoint({
      path: '/users',
      permission: 'administrator',
      summary: 'Lists users by name, including accounts without a login so far.',
      record: UserRecord,
      query: {
        name: { type: 'string', description: 'Only the user of this name.' },
        is_service: { type: 'boolean', description: 'True: only service accounts. False: only other users.' },
        is_disabled: { type: 'boolean', description: 'True: only disabled users. False: only other users.' },
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      failures: [404],
      find: ({ query, page }) =>
        users().list(
          { name: textFilter(query, 'name'), is_service: query.is_service, is_disabled: query.is_disabled },
          page,
        ),
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/users',
      permission: 'administrator',
      summary: 'Adds a user. A password is accepted only if the backend keeps passwords.',
      body: NewUserRequest,
      status: 201,
      response: UserRecord,
      failures: [400, 403, 404, 409, 503],
      handler: (request) => users().create(request.body, request),
      answerAgain: (request) => users().complete(request.body),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/users/:name',
      permission: 'authenticated',
      summary: 'Gets one user: yourself, or any user as an administrator.',
      response: UserRecord,
      failures: [403, 404],
      handler: (request) => users().get(request.params.name, request),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/users/:name',
      permission: 'authenticated',
      summary: 'Changes a user; what is absent stays. Every user can change their own password.',
      body: UserRequest,
      response: UserRecord,
      failures: [400, 403, 404, 409, 429, 503],
      handler: (request) => users().update(request.params.name, request.body, request),
      answerAgain: (request) => users().get(request.params.name, request),
    }),
    route({
      surface: 'api',
      method: 'delete',
      path: '/users/:name',
      permission: 'administrator',
      summary: 'Deletes a user with account, tokens and API keys. Executions of the user continue.',
      status: 204,
      response: {},
      failures: [400, 403, 404, 503],
      handler: (request) => users().delete(request.params.name, request),
    }),
  ]
}
