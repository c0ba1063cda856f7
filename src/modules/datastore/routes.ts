/** Endpoints of contract 05, 5.11. */
import { bodyInvalid, decryptRefused } from '../../core/errors.ts'
import {
  flagFilter,
  listReply,
  pageHeaders,
  pageQuery,
  parsePage,
  parseSort,
  textFilter,
  type ApiRequest,
  type QueryParameter,
  type Route,
} from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { keyToChange, keyToRead, sectionsToList, type Caller, type Named } from './keys.ts'
import { listKeys, type KeyList } from './list.ts'
import { MAX_TTL_SECONDS, MAX_VALUE_BYTES, recordOf, type DatastoreService, type PutRequest } from './service.ts'
import type { KeyStore } from './store.ts'
import type { ItemKey, KeyValuePairRecord } from './types.ts'
import { shown } from '../../lib/text/index.ts'
import { keyResource } from '../../core/permissions.ts'

const DEFAULT_LIMIT = 100

interface PutBody {
  name: string
  value: string
  description?: string | null
  secret?: boolean | null
  encrypted?: boolean | null
  scope?: string | null
  user?: string | null
  ttl?: number | null
}

const putSchema: JsonSchema = {
  title: 'KeyValuePairRequest',
  type: 'object',
  additionalProperties: false,
  required: ['name', 'value'],
  properties: {
    name: { type: 'string', description: 'The same as in the path.' },
    value: { type: 'string', description: `Text of at most ${MAX_VALUE_BYTES} bytes.` },
    description: { type: ['string', 'null'], maxLength: 4096, description: 'For people; absent: as it was.' },
    secret: { type: ['boolean', 'null'], description: 'Encrypt the value. Default false.' },
    encrypted: {
      type: ['boolean', 'null'],
      description: 'The value is cipher text of this server, made for this very key. Administrators only.',
    },
    scope: { type: ['string', 'null'], description: '`system` (the default) or `user`.' },
    user: {
      type: ['string', 'null'],
      description: 'Whose key of the user scope it is; default: your own. Administrators with access control only.',
    },
    ttl: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: MAX_TTL_SECONDS,
      description: 'Seconds until the key disappears; absent: never, also if it had a time before.',
    },
    id: {
      type: ['string', 'null'],
      description: 'Ignored, as are the next two: a record that was read can be sent back.',
    },
    uid: { type: ['string', 'null'] },
    expire_timestamp: { type: ['string', 'null'] },
  },
}

const recordSchema: JsonSchema = {
  title: 'KeyValuePair',
  type: 'object',
  required: ['id', 'uid', 'name', 'scope', 'value', 'secret', 'encrypted'],
  properties: {
    id: { type: 'string' },
    uid: { type: 'string' },
    name: { type: 'string' },
    scope: { type: 'string', enum: ['svckv.system', 'svckv.user'] },
    user: { type: 'string', description: 'Of the user scope.' },
    description: { type: 'string' },
    value: { type: 'string', description: 'Hexadecimal cipher text when `encrypted`.' },
    secret: { type: 'boolean' },
    encrypted: { type: 'boolean' },
    expire_timestamp: { type: 'string', format: 'date-time', description: 'Absent: it never expires.' },
  },
}

const scopeQuery = { type: 'string', description: '`system` (the default) or `user`.' } as const
const userQuery = {
  type: 'string',
  description: 'Whose keys of the user scope; default: your own. Administrators with access control only.',
} as const

const oneQuery = { scope: scopeQuery, user: userQuery } satisfies Record<string, QueryParameter>

export function createRoutes(deps: {
  service: DatastoreService
  store: KeyStore
  /** `rbac.enable` */
  isAccessControlled: boolean
  maxPageSize: number
}): Route[] {
  const { service, store, isAccessControlled, maxPageSize } = deps

  type Request = Omit<ApiRequest, 'body'>
  const callerOf = ({ principal }: Request): Caller => ({ principal, isAccessControlled })
  const nameOf = ({ params }: Request): string => params['name'] ?? ''
  const namedIn = ({ query }: Request): Named => ({
    scope: textFilter(query, 'scope'),
    user: textFilter(query, 'user'),
  })
  const keyRead = (request: Request): ItemKey => keyToRead(nameOf(request), namedIn(request), callerOf(request))
  const keyDeleted = (request: Request): ItemKey => keyToChange(nameOf(request), namedIn(request), callerOf(request))
  const keyPut = (request: Request, { scope, user }: PutBody): ItemKey => {
    const inQuery = namedIn(request)
    return keyToChange(
      nameOf(request),
      { scope: scope ?? inQuery.scope, user: user ?? inQuery.user },
      callerOf(request),
    )
  }

  /** @param decryptsFor who sees the secrets in plain text */
  function* makeRecords(lists: readonly KeyList[], decryptsFor: Request | undefined): Generator<KeyValuePairRecord> {
    for (const { section, batches } of lists) {
      for (const heads of batches()) {
        const secrets = heads.filter(({ encrypted }) => encrypted).map(({ name }) => name)
        if (decryptsFor !== undefined && secrets.length > 0) service.auditDecryption(decryptsFor, secrets)
        // One at a time, as values may be long; some may have gone meanwhile.
        for (const { name } of heads) {
          const item = service.find({ ...section, name })
          if (item === undefined) continue
          yield recordOf(item, decryptsFor === undefined ? undefined : service.tryReveal(item))
        }
      }
    }
  }

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/keys',
      permission: 'authenticated',
      summary: 'Lists key-value pairs by name: those of the system that you may view, or your own.',
      query: {
        prefix: { type: 'string', description: 'What names begin with.' },
        name: { type: 'string', description: 'The exact name.' },
        scope: { type: 'string', description: '`system` (the default), `user`, or `all`: the system and your own.' },
        user: userQuery,
        decrypt: { type: 'boolean', description: 'Secrets in plain text; in the scope `user`, or for administrators.' },
        sort: { type: 'array', description: '`name` or `scope`, `-` before it for descending.' },
        ...pageQuery,
      },
      response: { type: 'array', items: recordSchema },
      failures: [400, 403, 503],
      async handler(request) {
        const { query, principal, rights } = request
        const page = parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })
        const sections = sectionsToList(namedIn(request), callerOf(request))
        const decrypts = flagFilter(query, 'decrypt') === true
        if (decrypts && !principal.isAdmin && sections.some(({ scope }) => scope === 'svckv.system')) {
          throw decryptRefused()
        }
        const { total, lists } = await listKeys({
          store,
          rights,
          scopes: principal.scopes,
          sections,
          filter: { prefix: textFilter(query, 'prefix'), name: textFilter(query, 'name') },
          sort: parseSort(query['sort'], ['name', 'scope']),
          page,
        })
        return listReply(makeRecords(lists, decrypts ? request : undefined), pageHeaders(page, total))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/keys/:name',
      permission: 'key_value_pair_view',
      resource: (request) => keyResource(keyRead(request)),
      summary: 'One key-value pair.',
      query: { ...oneQuery, decrypt: { type: 'boolean', description: 'A secret in plain text.' } },
      response: recordSchema,
      failures: [400, 403, 404],
      handler(request) {
        const item = service.get(keyRead(request))
        if (!item.encrypted || flagFilter(request.query, 'decrypt') !== true) return recordOf(item)
        const plain = service.reveal(item)
        service.auditDecryption(request, item.name)
        return recordOf(item, plain)
      },
    },
    {
      surface: 'api',
      method: 'put',
      path: '/keys/:name',
      permission: 'key_value_pair_set',
      resourceOfBody: (body, request) => keyResource(keyPut(request, body as PutBody)), // fits the schema
      summary: 'Sets a key-value pair, whether it exists or not.',
      query: oneQuery,
      body: putSchema,
      response: recordSchema,
      failures: [400, 403, 409, 503],
      async handler(request) {
        const body = request.body as PutBody // fits the schema
        const key = keyPut(request, body)
        if (body.name !== key.name) {
          throw bodyInvalid(
            `The name in the body, "${shown(body.name)}", is not that of the path, "${shown(key.name)}".`,
          )
        }
        const put: PutRequest = {
          value: body.value,
          description: body.description === '' ? null : body.description,
          secret: body.secret === true,
          isPreEncrypted: body.encrypted === true,
          ttlSeconds: body.ttl ?? undefined,
        }
        return recordOf(await service.put(key, put, request))
      },
    },
    {
      surface: 'api',
      method: 'delete',
      path: '/keys/:name',
      permission: 'key_value_pair_delete',
      resource: (request) => keyResource(keyDeleted(request)),
      summary: 'Deletes a key-value pair.',
      query: oneQuery,
      status: 204,
      response: {},
      failures: [400, 403, 404, 409, 503],
      async handler(request) {
        await service.delete(keyDeleted(request), request)
      },
    },
  ]
}
