/** Endpoints of the catalogue of packs (contract 02, 2.8). */
import { route, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import type { Catalogue } from './catalogue.ts'
import { CatalogueHealth, CataloguePack, CatalogueSearch, PackCatalogue } from './types.ts'

export function createCatalogueRoutes(catalogue: Catalogue): Route[] {
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/packs/index',
      permission: 'pack_list',
      summary: 'Gets the packs of all configured indexes, and the state of each index.',
      response: PackCatalogue,
      async handler() {
        const { status, packs } = await catalogue.read()
        return { status, index: Object.fromEntries(packs) }
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/packs/index/search',
      permission: 'pack_search',
      summary: 'Searches the indexes: packs that have all words of a query, or one pack by its reference.',
      body: CatalogueSearch,
      response: Type.Union([CataloguePack, Type.Array(CataloguePack)]),
      failures: [400],
      changesNothing: true,
      async handler({ body }) {
        if ('query' in body) return catalogue.search(body.query)
        // An unknown pack is an empty list, as older clients expect.
        return (await catalogue.find(body.pack)) ?? []
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/packs/index/health',
      permission: 'pack_views_index_health',
      summary: 'Says which indexes can be read, and why others cannot.',
      response: CatalogueHealth,
      async handler() {
        const { status, packs } = await catalogue.read()
        const errors: Record<string, number> = {}
        for (const { error } of status) if (error !== null) errors[error] = (errors[error] ?? 0) + 1
        const valid = status.filter(({ error }) => error === null).length
        return {
          indexes: { count: status.length, valid, invalid: status.length - valid, errors, status },
          packs: { count: packs.size },
        }
      },
    }),
  ]
}
