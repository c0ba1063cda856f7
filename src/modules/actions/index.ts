/** Actions and runner types: what can be run, with which parameters. */
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import { createKeyedLock } from '../../lib/concurrency/index.ts'
import type { TemplateThread } from '../../core/rendering/index.ts'
import type { ActionsPorts } from './ports.ts'
import { createActionChanges } from './changes.ts'
import { createActionCloning } from './clone.ts'
import { createActionRoutes } from './routes.ts'
import { createActionService, type ActionService } from './service.ts'
import { createActionStore, type ActionStore } from './store.ts'

export interface Actions extends Module, ActionService, Pick<ActionStore, 'keeps'> {}

export interface ActionsDeps extends ActionsPorts {
  database: Database
  log: Log
  templateThread: TemplateThread
  /** `api.max_page_size` */
  maxPageSize: number
}

export function createActions({ database, log, templateThread, planEvent, maxPageSize }: ActionsDeps): Actions {
  const store = createActionStore(database)
  const withLock = createKeyedLock()
  const service = createActionService({ database, store, withLock, templateThread })
  const changes = createActionChanges({ store, service, withLock, planEvent, log })
  const cloning = createActionCloning({ store, service, withLock, planEvent, log })
  const routes = createActionRoutes({ service, changes, cloning, store, log, maxPageSize })
  return { name: 'actions', routes, ...service, keeps: () => store.keeps() }
}

export type { EffectiveParameters } from './resolve.ts'
