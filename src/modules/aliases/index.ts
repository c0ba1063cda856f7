/** Aliases of actions: the words that chat users say to run them (contract 02, 2.13). */
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { Database } from '../../db/index.ts'
import { createAliasRoutes } from './routes.ts'
import { createAliasService } from './service.ts'
import { createAliasStore } from './store.ts'

export interface Aliases extends Module {
  /** For packs. Ids stay; everything becomes what the file says. */
  registerAliases(content: PackDefinitions): Promise<Registration>
}

export interface AliasesDeps {
  database: Database
  settings: { maxPageSize: number }
}

export function createAliases({ database, settings }: AliasesDeps): Aliases {
  const store = createAliasStore(database)
  const service = createAliasService({ database, store })
  return {
    name: 'aliases',
    routes: createAliasRoutes({ service, store, maxPageSize: settings.maxPageSize }),
    registerAliases: (content) => service.register(content),
  }
}
