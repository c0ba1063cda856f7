import type { ApiKeyTable } from '../../../db/index.ts'
import { readJson } from '../../../lib/text/index.ts'
import {
  listReply,
  pageHeaders,
  pageQuery,
  parsePage,
  seesSecrets,
  textFilter,
  type ApiRequest,
  type QueryParameter,
  type Route,
} from '../../../http/index.ts'
import { MASK, type JsonSchema } from '../../../lib/schema/index.ts'
import type { ApiKeyRecord, ApiKeyRequest, ApiKeyScope, NewApiKeyRecord } from '../types.ts'
import type { ApiKeyService } from './service.ts'
import { apiKeyResource, type Resource } from '../../../core/permissions.ts'

const timestamp = { type: 'string', format: 'date-time' }

const scopeSchema: JsonSchema = {
  title: 'ApiKeyScope',
  type: 'object',
  additionalProperties: false,
  required: ['permission_types'],
  properties: {
    permission_types: { type: 'array', minItems: 1, maxItems: 500, items: { type: 'string' } },
    resource_uid: {
      type: 'string',
      minLength: 1,
      maxLength: 1024,
      description: 'What they are limited to, such as `webhook:deploy` or `action:core:local`; absent: any.',
    },
  },
}

const shared = {
  metadata: { type: 'object', description: 'Free form, for people: what the key is used for.' },
  enabled: { type: 'boolean' },
} as const

const requestSchema: JsonSchema = {
  title: 'ApiKeyRequest',
  type: 'object',
  additionalProperties: false,
  properties: {
    ...shared,
    id: { type: 'string', description: 'Of a key that is taken over from elsewhere; absent: a new one.' },
    user: {
      type: ['string', 'null'],
      description: 'The owner; default whoever asks. Somebody else needs the permission user_impersonate.',
    },
    key_hash: {
      type: ['string', 'null'],
      description: 'Digest of a key that is taken over from elsewhere; absent: a key is made. It cannot be changed.',
    },
    expires_at: { type: ['string', 'null'], description: 'In UTC; null or absent: never.' },
    scopes: {
      type: ['array', 'null'],
      minItems: 1,
      maxItems: 100,
      items: scopeSchema,
      description: 'What the key is limited to; null or absent: what its owner may do.',
    },
    uid: { type: 'string', description: 'Ignored, as are the next two: a record that was read can be sent back.' },
    created_at: { type: 'string' },
    last_used_at: { type: ['string', 'null'] },
  },
}

const recordProperties = {
  ...shared,
  id: { type: 'string' },
  uid: { type: 'string', description: '`api_key:` and the digest; masked with it.' },
  user: { type: 'string', description: 'Whom requests with this key act for.' },
  created_at: timestamp,
  expires_at: { ...timestamp, description: 'Absent: never.' },
  scopes: { type: 'array', items: scopeSchema, description: 'Absent: whatever its owner may do.' },
  last_used_at: { ...timestamp, description: 'Absent: not used yet.' },
}
const alwaysThere = ['id', 'uid', 'user', 'metadata', 'created_at', 'enabled']

const recordSchema: JsonSchema = {
  title: 'ApiKey',
  type: 'object',
  required: [...alwaysThere, 'key_hash'],
  properties: {
    ...recordProperties,
    key_hash: { type: 'string', description: 'Digest of the key; masked unless an administrator asks for it.' },
  },
}

const createdSchema: JsonSchema = {
  title: 'NewApiKey',
  type: 'object',
  required: [...alwaysThere, 'key'],
  properties: {
    ...recordProperties,
    key: {
      type: ['string', 'null'],
      description: 'The value to send in Svc-Api-Key. It is shown only here; null if key_hash was given.',
    },
  },
}

const showSecrets: Record<string, QueryParameter> = {
  show_secrets: { type: 'boolean', description: 'The digest unmasked, for administrators.' },
}

/** Keys of a list that are read at once. */
const KEYS_TOGETHER = 100

export interface ApiKeyRoutesOptions {
  service: ApiKeyService
  readonly findByIds: (ids: readonly string[]) => ApiKeyTable[]
  /** Wire timestamp of a use that the row may not tell yet. */
  readonly lastUseOf: (id: string) => string | undefined
  /** `api.max_page_size` */
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}

export function createApiKeyRoutes(options: ApiKeyRoutesOptions): Route[] {
  const { service, findByIds, lastUseOf, maxPageSize, maskSecrets } = options

  function isMasked(request: ApiRequest): boolean {
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

  /** Few at a time: a list may be of everything there is. */
  function* makeRecords(ids: readonly string[], masked: boolean): Generator<ApiKeyRecord> {
    for (let start = 0; start < ids.length; start += KEYS_TOGETHER) {
      const some = ids.slice(start, start + KEYS_TOGETHER)
      const found = new Map(findByIds(some).map((row) => [row.id, row]))
      for (const id of some) {
        const row = found.get(id)
        if (row !== undefined) yield toRecord(row, masked)
      }
    }
  }

  const resource = (request: Omit<ApiRequest, 'body'>): Resource => apiKeyResource(service.find(idOrKeyOf(request)))

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/apikeys',
      permission: 'api_key_list',
      summary: 'Lists API keys in the order in which they were made: your own, and those you may view.',
      query: { ...pageQuery, ...showSecrets, user: { type: 'string', description: 'Only keys of this user.' } },
      response: { type: 'array', items: recordSchema },
      failures: [400, 403, 503],
      async handler(request) {
        const page = parsePage(request.query, request.principal, { defaultLimit: 50, maxPageSize })
        const user = textFilter(request.query, 'user')
        const { ids, total } = await service.list(user, page, request)
        return listReply(makeRecords(ids, isMasked(request)), pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'post',
      path: '/apikeys',
      permission: 'api_key_create',
      summary: 'Makes an API key, or takes over one by its digest.',
      body: requestSchema,
      status: 201,
      response: createdSchema,
      failures: [400, 403, 409, 503],
      async handler(request) {
        const { row, key } = await service.create(request.body as ApiKeyRequest, request) // fits the schema
        return { ...describe(row, maskSecrets), key } satisfies NewApiKeyRecord
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/apikeys/:id_or_key',
      permission: 'api_key_view',
      resource,
      summary: 'One API key, named by its id or its value.',
      query: showSecrets,
      response: recordSchema,
      failures: [403, 404],
      handler: (request) => toRecord(service.find(idOrKeyOf(request)), isMasked(request)),
    },
    {
      surface: 'api',
      method: 'put',
      path: '/apikeys/:id_or_key',
      permission: 'api_key_modify',
      resource,
      summary: 'Changes an API key; what is left out stays as it is.',
      body: requestSchema,
      response: recordSchema,
      failures: [400, 403, 404, 409, 503],
      async handler(request) {
        const body = request.body as ApiKeyRequest // fits the schema
        return toRecord(await service.update(idOrKeyOf(request), body, request), maskSecrets)
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/apikeys/:id_or_key',
      permission: 'api_key_delete',
      resource,
      summary: 'Deletes an API key; it is worthless at once.',
      status: 204,
      response: {},
      failures: [403, 404, 409, 503],
      async handler(request) {
        await service.delete(idOrKeyOf(request), request)
      },
    },
  ]
}

function idOrKeyOf({ params }: Pick<ApiRequest, 'params'>): string {
  return params['id_or_key'] ?? ''
}
