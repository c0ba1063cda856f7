/** Workflows: their definitions, inspection, and the engine that conducts them. */
import type { Bus } from '../../bus/index.ts'
import { noCompat, type Compat } from '../../core/compat/index.ts'
import type { Clock } from '../../core/clock.ts'
import type { Encryption } from '../../core/encryption.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Module } from '../../core/module.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Executions } from '../executions/index.ts'
import type { ExecutionWorkflows } from '../executions/ports.ts'
import type { ActionSource } from './catalog.ts'
import { createEngine, type EngineDeps } from './engine/engine.ts'
import { createIdleCheck } from './engine/idle.ts'
import { createPrograms } from './engine/programs.ts'
import { createInspector } from './inspection/inspector.ts'
import { createGauges, measureWorkflows } from './metrics.ts'
import { createExplainRun } from './progress/explanation.ts'
import { createProgress } from './progress/progress.ts'
import { createRunRoutes } from './progress/routes.ts'
import { createRemoval, createWorkflowRetention } from './retention.ts'
import { createWorkflowRoutes } from './routes.ts'
import { createWorkflowStore } from './store.ts'

export interface Workflows extends Module, ExecutionWorkflows {}

export interface WorkflowsDeps extends Pick<EngineDeps, 'datastore'> {
  settings: EngineDeps['settings'] & {
    /** `workflow_engine.gc_max_idle_sec`; 0: without a limit */
    maxIdleSeconds: number
    /** Default: our names alone. */
    compat?: Pick<Compat, 'definition'>
  }
  clock: Pick<Clock, 'monotonic'>
  executions: EngineDeps['executions'] & Pick<Executions, 'last' | 'statusOf'>
  database: Database
  bus: Bus
  metrics: Metrics
  log: Log
  encryption: Encryption
  actions: ActionSource
}

export function createWorkflows(deps: WorkflowsDeps): Workflows {
  const inspector = createInspector()
  const store = createWorkflowStore(deps.database)
  const { compat = noCompat } = deps.settings
  const programs = createPrograms({ actions: deps.actions, inspector, compat })
  const engine = createEngine({ ...deps, programs, store })
  const { actions, executions, settings } = deps
  const idleCheck = createIdleCheck({
    store,
    executions,
    maxIdleSeconds: settings.maxIdleSeconds,
    monotonic: () => deps.clock.monotonic(),
    end: (run) => engine.endIdle(run, settings.maxIdleSeconds),
  })
  const progress = createProgress({
    executions,
    store,
    graphOf: (execution, text) => programs.compile(execution, text).graph,
  })
  measureWorkflows(deps.bus, deps.metrics)
  const explain = createExplainRun({ engine, executions, store })
  const removal = createRemoval({ store, database: deps.database })
  return {
    name: 'workflows',
    gauges: createGauges(store),
    maintenance: settings.maxIdleSeconds === 0 ? [] : [idleCheck],
    routes: [
      ...createWorkflowRoutes({ actions, inspector, compat }),
      ...createRunRoutes({ executions, store, progress, inspector, explain }),
    ],
    begin: (execution, start) => engine.begin(execution, start),
    follow: (before, after, unit) => engine.follow(before, after, unit),
    ...removal,
    retention: [createWorkflowRetention({ store, remove: removal.remove })],
    start: () => engine.recover(),
    async stop() {
      await engine.stop()
      await inspector.stop()
    },
  }
}
