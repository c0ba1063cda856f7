/** Endpoints of configurations of packs and their schemas (contract 02, 2.9). */
import { configNotFound } from '../../core/errors.ts'
import { packResource, type Resource } from '../../core/permissions.ts'
import {
  aboutCaller,
  allPages,
  arrange,
  idQuery,
  listEndpoint,
  route,
  seesSecrets,
  showSecretsQuery,
  textFilter,
  type ApiRequest,
  type Rights,
  type Route,
} from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Configs } from './configs.ts'
import type { PackStore } from './store.ts'
import { ConfigRecord, ConfigSchemaRecord, ConfigValues } from './types.ts'

const DEFAULT_LIMIT = 100

export function createConfigRoutes(deps: {
  store: PackStore
  configs: Configs
  log: Log
  withLock: <T>(work: () => Promise<T>) => Promise<T>
  /** Called after a configuration was written. */
  readonly changed: (pack: string) => void
  maxPageSize: number
  /** `api.mask_secrets` */
  maskSecrets: boolean
}): Route[] {
  const { store, configs, log, maxPageSize } = deps
  const page = { defaultLimit: DEFAULT_LIMIT, maxPageSize }

  /** @throws CONFIG_NOT_FOUND */
  function requirePack(pack: string): void {
    if (store.findPackByRef(pack) === undefined) throw configNotFound(pack)
  }

  /** Without the pack the answer is 404 before permissions are checked. */
  function resource({ params }: { params: { pack: string } }): Resource {
    requirePack(params.pack)
    return packResource(params.pack)
  }

  const viewable = (packs: readonly string[], rights: Rights): string[] =>
    packs.filter((pack) => rights.may('pack_view', packResource(pack)))

  const isUnmasked = (request: Pick<ApiRequest, 'query' | 'principal'>): boolean =>
    !deps.maskSecrets || seesSecrets(request)

  return [
    listEndpoint({
      path: '/configs',
      permission: 'pack_list',
      summary: 'Lists the configurations of packs that the caller has permission to view, by pack.',
      record: ConfigRecord,
      query: { ...showSecretsQuery, ...idQuery },
      page,
      sort: ['id', 'pack'],
      find(request) {
        const packs = viewable(store.configPacks(), request.rights)
        const unmasked = isUnmasked(request)
        const { records, total } = arrange(store.listConfigs(packs, allPages), request)
        return { records: records.map(({ pack }) => configs.get(pack, unmasked)), total }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/configs/:pack',
      permission: 'pack_view',
      resource,
      summary: 'Gets the configuration of a pack.',
      query: showSecretsQuery,
      response: ConfigRecord,
      failures: [404],
      handler: (request) => configs.get(request.params.pack, isUnmasked(request)),
    }),
    route({
      surface: 'api',
      method: 'put',
      path: '/configs/:pack',
      permission: 'pack_config',
      summary: 'Writes the configuration of a pack. The body holds its values; a mask keeps the stored value.',
      body: ConfigValues,
      query: showSecretsQuery,
      response: ConfigRecord,
      failures: [400, 404],
      async handler(request) {
        const { pack } = request.params
        requirePack(pack)
        await deps.withLock(() => configs.put(pack, request.body))
        deps.changed(pack)
        log.audit('pack.configured', `Configuration of pack "${pack}" changed.`, { pack, ...aboutCaller(request) })
        return configs.get(pack, isUnmasked(request))
      },
      answerAgain: (request) => configs.get(request.params.pack, isUnmasked(request)),
    }),
    listEndpoint({
      path: '/config_schemas',
      permission: 'pack_list',
      summary: 'Lists the configuration schemas of packs that the caller has permission to view, by pack.',
      record: ConfigSchemaRecord,
      query: { ...idQuery, name: { type: 'string', description: 'Only the schema of the pack with this reference.' } },
      page,
      sort: ['id', 'pack'],
      find(request) {
        const name = textFilter(request.query, 'name')
        const packs = viewable(store.configSchemaPacks(), request.rights).filter((pack) => (name ?? pack) === pack)
        return arrange(store.listConfigSchemas(packs, allPages), request)
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/config_schemas/:pack',
      permission: 'pack_view',
      resource,
      summary: 'Gets the configuration schema of a pack.',
      response: ConfigSchemaRecord,
      failures: [404],
      handler({ params: { pack } }) {
        const schema = store.findConfigSchema(pack)
        if (schema === undefined) throw configNotFound(pack)
        return schema
      },
    }),
  ]
}
