import type { ApiKeyTable } from '../../../db/index.ts'
import {
  idQuery,
  listEndpoint,
  parseItems,
  route,
  seesSecrets,
  textFilter,
  type ApiRequest,
  type QueryParameter,
  type Route,
} from '../../../http/index.ts'
import { apiKeyValueLost } from '../../../core/errors.ts'
import { MASK } from '../../../lib/schema/index.ts'
import { ApiKeyRecord, ApiKeyRequest, NewApiKeyRecord, type ApiKeyScope } from '../types.ts'
import type { ApiKeyService } from './service.ts'
import { apiKeyResource, type Resource } from '../../../core/permissions.ts'
import { readJson } from '../../../lib/json/index.ts'

const showSecrets = {
  show_secrets: { type: 'boolean', description: 'Administrators only: do not mask the digest.' },
} as const satisfies Record<string, QueryParameter>

/** Keys of a list that one query reads. */
const KEYS_PER_READ = 100

export interface ApiKeyRoutesOptions {
  service: ApiKeyService
  readonly findByIds: (ids: readonly string[]) => ApiKeyTable[]
  /** Wire timestamp of the last use, which the row may lack so far. */
  readonly lastUseOf: (id: string) => string | undefined
  /** `api.max_page_size` */
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}

export function createApiKeyRoutes(options: ApiKeyRoutesOptions): Route[] {
  const { service, findByIds, lastUseOf, maxPageSize, maskSecrets } = options

  function isMasked(request: Pick<ApiRequest, 'query' | 'principal'>): boolean {
    return maskSecrets && !seesSecrets(request)
  }

  /** Without the digest itself. */
  function describe(row: ApiKeyTable, masked: boolean): Omit<ApiKeyRecord, 'key_hash'> {
    const lastUse = lastUseOf(row.id) ?? row.last_used_at
    return {
      id: row.id,
      uid: masked ? MASK : `api_key:${row.key_hash}`,
      user: row.user,
      // Stored by the service, as are the scopes.
      metadata: readJson(row.metadata) as Record<string, unknown>,
      created_at: row.created_at,
      enabled: row.enabled === 1,
      ...(row.expires_at === null ? {} : { expires_at: row.expires_at }),
      ...(row.scopes === null ? {} : { scopes: readJson(row.scopes) as ApiKeyScope[] }),
      ...(lastUse === null ? {} : { last_used_at: lastUse }),
    }
  }

  function toRecord(row: ApiKeyTable, masked: boolean): ApiKeyRecord {
    return { ...describe(row, masked), key_hash: masked ? MASK : row.key_hash }
  }

  /** Reads few at a time: a list can hold every key. */
  function* makeRecords(ids: readonly string[], masked: boolean): Generator<ApiKeyRecord> {
    for (let start = 0; start < ids.length; start += KEYS_PER_READ) {
      const some = ids.slice(start, start + KEYS_PER_READ)
      const found = new Map(findByIds(some).map((row) => [row.id, row]))
      for (const id of some) {
        const row = found.get(id)
        if (row !== undefined) yield toRecord(row, masked)
      }
    }
  }

  const resource = ({ params }: { params: { id_or_key: string } }): Resource =>
    apiKeyResource(service.find(params.id_or_key))

  return [
    listEndpoint({
      path: '/apikeys',
      permission: 'api_key_list',
      summary: 'Lists your own API keys and those you have permission to view, oldest first.',
      record: ApiKeyRecord,
      query: { ...showSecrets, user: { type: 'string', description: 'Only keys of this user.' }, ...idQuery },
      page: { defaultLimit: 50, maxPageSize },
      async find(request) {
        const { query, page } = request
        const { ids, total } = await service.list(textFilter(query, 'user'), parseItems(query.id), page, request)
        return { records: makeRecords(ids, isMasked(request)), total }
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/apikeys',
      permission: 'api_key_create',
      summary: 'Creates an API key, or adds an existing key by its digest.',
      body: ApiKeyRequest,
      status: 201,
      response: NewApiKeyRecord,
      failures: [400, 403, 409, 503],
      async handler(request) {
        const { row, key } = await service.create(request.body, request)
        return { ...describe(row, maskSecrets), key } satisfies NewApiKeyRecord
      },
      answerAgain({ body }, id = '') {
        const row = service.find(id)
        // Only the client had the value.
        if (body.key_hash === undefined) throw apiKeyValueLost(row.id)
        return { ...describe(row, maskSecrets), key: null } satisfies NewApiKeyRecord
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/apikeys/:id_or_key',
      permission: 'api_key_view',
      resource,
      summary: 'Gets one API key by its id or its value.',
      query: showSecrets,
      response: ApiKeyRecord,
      failures: [403, 404],
      handler: (request) => toRecord(service.find(request.params.id_or_key), isMasked(request)),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/apikeys/:id_or_key',
      permission: 'api_key_modify',
      resource,
      summary: 'Changes an API key; what is absent stays.',
      body: ApiKeyRequest,
      response: ApiKeyRecord,
      failures: [400, 403, 404, 409, 503],
      async handler(request) {
        return toRecord(await service.update(request.params.id_or_key, request.body, request), maskSecrets)
      },
      answerAgain: ({ params }) => toRecord(service.find(params.id_or_key), maskSecrets),
    }),
    route({
      surface: 'api',
      method: 'delete',
      path: '/apikeys/:id_or_key',
      permission: 'api_key_delete',
      resource,
      summary: 'Deletes an API key. It is invalid at once.',
      status: 204,
      response: {},
      failures: [403, 404, 409, 503],
      async handler(request) {
        await service.delete(request.params.id_or_key, request)
      },
    }),
  ]
}
