/** Endpoints of contract 05, 5.11. */
import { bodyInvalid, decryptRefused } from '../../core/errors.ts'
import {
  flagFilter,
  textFilter,
  type ApiRequest,
  type QueryParameter,
  listEndpoint,
  route,
  type Route,
} from '../../http/index.ts'
import { keyToChange, keyToRead, sectionsToList, type KeyCaller, type Named } from './keys.ts'
import { listKeys, type KeyList } from './list.ts'
import { keyRecordOf, type DatastoreService, type PutRequest } from './service.ts'
import type { KeyStore } from './store.ts'
import { KeyValuePairRecord, KeyValuePairRequest, type ItemKey } from './types.ts'
import { shown } from '../../lib/text/index.ts'
import { keyResource } from '../../core/permissions.ts'

const DEFAULT_LIMIT = 100

const scopeQuery = { type: 'string', description: '`system` (the default) or `user`.' } as const
const userQuery = {
  type: 'string',
  description: 'Owner of keys in the user scope. Default: the caller. Administrators with access control only.',
} as const

const oneQuery = { scope: scopeQuery, user: userQuery } satisfies Record<string, QueryParameter>

export function createKeyRoutes(deps: {
  service: DatastoreService
  store: KeyStore
  /** `rbac.enable` */
  isAccessControlled: boolean
  maxPageSize: number
}): Route[] {
  const { service, store, isAccessControlled, maxPageSize } = deps

  type Request = Omit<ApiRequest, 'body'>
  const callerOf = ({ principal }: Request): KeyCaller => ({ principal, isAccessControlled })
  const nameOf = ({ params }: Request): string => params['name'] ?? ''
  const namedIn = ({ query }: Request): Named => ({
    scope: textFilter(query, 'scope'),
    user: textFilter(query, 'user'),
  })
  const keyRead = (request: Request): ItemKey => keyToRead(nameOf(request), namedIn(request), callerOf(request))
  const keyDeleted = (request: Request): ItemKey => keyToChange(nameOf(request), namedIn(request), callerOf(request))
  const keyPut = (request: Request, { scope, user }: KeyValuePairRequest): ItemKey => {
    const inQuery = namedIn(request)
    return keyToChange(
      nameOf(request),
      { scope: scope ?? inQuery.scope, user: user ?? inQuery.user },
      callerOf(request),
    )
  }

  /** @param decryptsFor request of the caller who gets secrets in plain text; undefined: nobody */
  function* makeRecords(lists: readonly KeyList[], decryptsFor: Request | undefined): Generator<KeyValuePairRecord> {
    for (const { section, batches } of lists) {
      for (const heads of batches()) {
        const secrets = heads.filter(({ encrypted }) => encrypted).map(({ name }) => name)
        if (decryptsFor !== undefined && secrets.length > 0) service.auditDecryption(decryptsFor, secrets)
        // Reads items one by one, because values can be long. Some can be deleted by now.
        for (const { name } of heads) {
          const item = service.find({ ...section, name })
          if (item === undefined) continue
          yield keyRecordOf(item, decryptsFor === undefined ? undefined : service.tryReveal(item))
        }
      }
    }
  }

  return [
    listEndpoint({
      path: '/keys',
      permission: 'authenticated',
      summary: 'Lists key-value pairs by name: the system pairs that the caller can view, or the caller’s own.',
      record: KeyValuePairRecord,
      query: {
        prefix: { type: 'string', description: 'Only names that start with this text.' },
        name: { type: 'string', description: 'Only the pair with this name.' },
        scope: {
          type: 'string',
          description: '`system` (the default), `user`, or `all`: system pairs and the caller’s own.',
        },
        user: userQuery,
        decrypt: {
          type: 'boolean',
          description: 'Returns secrets in plain text: in the scope `user`, or for administrators.',
        },
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      sort: ['name', 'scope'],
      async find(request) {
        const { query, principal, rights, page, sort } = request
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
          sort,
          page,
        })
        return { records: makeRecords(lists, decrypts ? request : undefined), total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/keys/:name',
      permission: 'key_value_pair_view',
      resource: (request) => keyResource(keyRead(request)),
      summary: 'Gets one key-value pair.',
      query: { ...oneQuery, decrypt: { type: 'boolean', description: 'Returns a secret in plain text.' } },
      response: KeyValuePairRecord,
      failures: [400, 403, 404],
      handler(request) {
        const item = service.get(keyRead(request))
        if (!item.encrypted || flagFilter(request.query, 'decrypt') !== true) return keyRecordOf(item)
        if (!request.rights.may('key_value_pair_view', { ...keyResource(item), isDecrypted: true }))
          throw decryptRefused()
        const plain = service.reveal(item)
        service.auditDecryption(request, item.name)
        return keyRecordOf(item, plain)
      },
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/keys/:name',
      permission: 'key_value_pair_set',
      resourceOfBody: (body, request) => keyResource(keyPut(request, body)),
      summary: 'Creates or replaces a key-value pair.',
      query: oneQuery,
      body: KeyValuePairRequest,
      response: KeyValuePairRecord,
      failures: [400, 403, 409, 503],
      async handler(request) {
        const { body } = request
        const key = keyPut(request, body)
        if (body.name !== key.name) {
          throw bodyInvalid(
            `The name in the body, "${shown(body.name)}", differs from the name in the path, "${shown(key.name)}".`,
          )
        }
        const put: PutRequest = {
          value: body.value,
          description: body.description === '' ? null : body.description,
          secret: body.secret === true,
          isPreEncrypted: body.encrypted === true,
          ttlSeconds: body.ttl ?? undefined,
        }
        return keyRecordOf(await service.put(key, put, request))
      },
      answerAgain: (request) => keyRecordOf(service.get(keyPut(request, request.body))),
    }),
    route({
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
    }),
  ]
}
