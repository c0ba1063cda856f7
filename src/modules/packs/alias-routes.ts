/** Endpoints of aliases of actions (contract 02, 2.13). */
import { contentNotFound } from '../../core/errors.ts'
import { isId } from '../../core/ids.ts'
import { actionAliasResource } from '../../core/permissions.ts'
import { listEndpoint, route, textFilter, type Route } from '../../http/index.ts'
import type { PackStore } from './store.ts'
import { aliasAttributes, AliasRecord, PartialAlias } from './types.ts'

const DEFAULT_LIMIT = 100

export function createAliasRoutes({ store, maxPageSize }: { store: PackStore; maxPageSize: number }): Route[] {
  /** @throws CONTENT_NOT_FOUND */
  function get({ ref_or_id: given }: { ref_or_id: string }): AliasRecord {
    const alias = (isId(given) ? store.findAlias(given) : undefined) ?? store.findAliasByRef(given)
    if (alias === undefined) throw contentNotFound(given)
    return alias
  }

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
        return { records: store.listAliases(filter, page), total: store.countAliases(filter) }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/actionalias/:ref_or_id',
      permission: 'action_alias_view',
      resource: ({ params }) => actionAliasResource(get(params).ref),
      summary: 'Gets one alias of an action.',
      response: AliasRecord,
      failures: [404],
      handler: ({ params }) => get(params),
    }),
  ]
}
