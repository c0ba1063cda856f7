/** Workflows: their definitions, inspection, and the engine that conducts them. */
import type { Encryption } from '../../core/encryption.ts'
import type { Module } from '../../core/module.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { ExecutionWorkflows } from '../executions/ports.ts'
import type { ActionSource } from './catalog.ts'
import { createEngine, type EngineDeps } from './engine/index.ts'
import { createInspector } from './inspection/inspector.ts'
import { createRemoval } from './retention.ts'
import { createWorkflowRoutes } from './routes.ts'
import { createWorkflowStore } from './store.ts'

export interface Workflows extends Module, ExecutionWorkflows {}

export interface WorkflowsDeps extends Pick<EngineDeps, 'datastore' | 'executions' | 'settings'> {
  database: Database
  log: Log
  encryption: Encryption
  actions: ActionSource
}

export function createWorkflows(deps: WorkflowsDeps): Workflows {
  const inspector = createInspector()
  const store = createWorkflowStore(deps.database)
  const engine = createEngine({ ...deps, inspector, store })
  return {
    name: 'workflows',
    routes: createWorkflowRoutes({ actions: deps.actions, inspector }),
    begin: (execution, start) => engine.begin(execution, start),
    follow: (before, after, unit) => engine.follow(before, after, unit),
    ...createRemoval({ store, database: deps.database }),
    start: () => engine.recover(),
    async stop() {
      await engine.stop()
      await inspector.stop()
    },
  }
}
