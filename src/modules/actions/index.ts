/** Actions and runner types: what can be run, with which parameters. */
import type { Database } from '../../db/database.ts'
import type { Module } from '../../module.ts'
import { createRoutes } from './routes.ts'
import { createActionService, type ActionService } from './service.ts'
import { createActionStore } from './store.ts'

export interface Actions extends Module, ActionService {}

export interface ActionsDeps {
  database: Database
  /** `api.max_page_size` */
  maxPageSize: number
}

export function createActions({ database, maxPageSize }: ActionsDeps): Actions {
  const store = createActionStore(database)
  const service = createActionService({ database, store })
  return { name: 'actions', routes: createRoutes({ service, store, maxPageSize }), ...service }
}

export type { EffectiveParameters } from './resolve.ts'
export { actionSchema, runnerTypeSchema } from './routes.ts'
