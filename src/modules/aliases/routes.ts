/** Endpoints of aliases of actions (contract 02, 2.13). */
import { actionAliasResource } from '../../core/permissions.ts'
import { listEndpoint, route, textFilter, type Route } from '../../http/index.ts'
import type { AliasService } from './service.ts'
import type { AliasStore } from './store.ts'
import { aliasAttributes, AliasRecord, PartialAlias } from './types.ts'

const DEFAULT_LIMIT = 100

interface AliasRoutesDeps {
  service: AliasService
  store: Pick<AliasStore, 'list' | 'count'>
  maxPageSize: number
}

export function createAliasRoutes({ service, store, maxPageSize }: AliasRoutesDeps): Route[] {
  return [
    listEndpoint({
      path: '/actionalias',
      permission: 'action_alias_list',
      summary: 'Lists aliases of actions by pack and name.',
      record: PartialAlias,
      query: {
        pack: { type: 'string', description: 'Only aliases of this pack.' },
        name: { type: 'string', description: 'Only aliases with this name.' },
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      attributes: { known: aliasAttributes, excludable: [], always: ['id', 'ref', 'pack', 'name'] },
      find({ query, page }) {
        const filter = { pack: textFilter(query, 'pack'), name: textFilter(query, 'name') }
        return { records: store.list(filter, page), total: store.count(filter) }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/actionalias/:ref_or_id',
      permission: 'action_alias_view',
      resource: ({ params }) => actionAliasResource(service.get(params.ref_or_id).ref),
      summary: 'Gets one alias of an action.',
      response: AliasRecord,
      failures: [404],
      handler: ({ params }) => service.get(params.ref_or_id),
    }),
  ]
}
