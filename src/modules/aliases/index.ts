/** Aliases of actions: the words that chat users say to run them (contract 02, 2.13). */
import type { Bus } from '../../bus/index.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { TemplateThread } from '../../core/rendering/index.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Actions } from '../actions/index.ts'
import type { Executions } from '../executions/index.ts'
import { createAliasRuns } from './execution.ts'
import { createMatching } from './matching.ts'
import { createReplies } from './reply.ts'
import { createAliasRoutes } from './routes.ts'
import { createAliasService } from './service.ts'
import { createAliasStore } from './store.ts'

export { AliasRecord } from './types.ts'

export interface Aliases extends Module {
  /** For packs. Ids stay; everything becomes what the file says. */
  registerAliases(content: PackDefinitions): Promise<Registration>
}

export interface AliasesDeps {
  database: Database
  bus: Bus
  log: Log
  actions: Actions
  executions: Executions
  templateThread: TemplateThread
  settings: {
    /** Writes the aliases of packs. */
    systemUser: string
    maxPageSize: number
  }
}

export function createAliases(deps: AliasesDeps): Aliases {
  const { database, bus, log, actions, executions, settings } = deps
  const store = createAliasStore(database)
  const service = createAliasService({ database, store, log, systemUser: settings.systemUser })
  const matching = createMatching(store)
  bus.subscribe('alias.changed', ({ change, alias }) => matching.note(alias, change === 'delete'))
  const runs = createAliasRuns({ matching, actions, executions })
  const replies = createReplies({ store, executions, thread: deps.templateThread })
  return {
    name: 'aliases',
    routes: createAliasRoutes({
      service,
      store,
      matching,
      runs,
      replies,
      executions,
      maxPageSize: settings.maxPageSize,
    }),
    registerAliases: (content) => service.register(content),
  }
}
