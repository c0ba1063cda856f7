/** Wires admission, scheduler and dispatcher of executions. */
import { noCompat } from '../../../core/compat/index.ts'
import type { Change } from '../change.ts'
import type { ExecutionOutput } from '../output/output.ts'
import type { ExecutionsDeps } from '../public.ts'
import type { ParameterSecrets } from '../secrets/parameters.ts'
import type { OutputCheck } from '../output-check.ts'
import type { ResultSecrets } from '../secrets/results.ts'
import type { ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'
import { createReplacing } from '../overlap/replacing.ts'
import { createSlotAdmission } from './admission.ts'
import { createStopBackground, type StopBackground } from './background.ts'
import { createDispatcher, type Dispatcher } from './dispatcher.ts'
import { createPrepare } from './prepare.ts'
import { recover } from './recovery.ts'
import { createScheduler } from './scheduler.ts'
import { createStartNotes } from './start-notes.ts'
import { createProcessStore } from './store.ts'
import { createWorkflowStart } from './workflow-start.ts'

export interface Runs extends Pick<Dispatcher, 'stopRun'> {
  /** Free slots now. */
  freeSlots(): number
  /** Number of actions that run now. */
  running(): number
  readonly stopBackground: StopBackground
  /** The policies of an action have changed. */
  policiesChanged(actionRef: string): void
  /** Recovers what an earlier server left, then starts what waits. */
  start(): Promise<void>
  /** Lets runs finish within the grace period, then stops them. Resolves when nothing runs. */
  stop(): Promise<void>
  /** Skips the rest of the grace period of a `stop` under way. */
  hurry(): void
}

export function createRuns(
  deps: ExecutionsDeps & {
    store: ExecutionStore
    change: Change
    output: ExecutionOutput
    parameters: ParameterSecrets
    results: ResultSecrets
    outputCheck: OutputCheck
  },
): Runs {
  const { store, database, bus, log, metrics, change, output, parameters, results, settings, serviceTokens } = deps
  const { pollSeconds, actionsPoolSize: slots } = settings
  const processes = createProcessStore(database)
  const common = { store, change, bus, log, metrics, pollSeconds, write: database.write.bind(database) }
  const notes = createStartNotes(settings.basePath, deps.bootId, log)
  const runners = new Map(deps.runners.map((runner) => [runner.definition.name, runner]))
  const prepare = createPrepare({ actions: deps.actions, parameters, sources: deps, apiUrl: () => settings.apiUrl() })
  const dispatcher = createDispatcher({
    ...common,
    notes,
    processes,
    output,
    runners,
    prepare,
    maskResult: (execution, result) => results.mask(execution, result),
    outputCheck: deps.outputCheck,
    slots,
    serviceTokens,
    streamOutput: settings.streamOutput,
    environment: (settings.compat ?? noCompat).environment,
    maskSecrets: settings.maskSecrets,
    bootId: deps.bootId,
  })
  const admission = createSlotAdmission({
    ...common,
    limitsOf: (execution) => deps.policies.limitsOf(execution, () => parameters.decrypt(execution).parameters),
    maxClaimed: slots,
  })
  const replacing = createReplacing({ ...common, systemUser: settings.systemUser })
  const startWorkflow = createWorkflowStart({
    prepare,
    change,
    workflows: deps.workflows,
    maskSecrets: settings.maskSecrets,
  })
  const scheduler = createScheduler({
    ...common,
    startWorkflow,
    dispatcher,
    admission,
    hasRoom: () => database.hasRoom(),
    expiresPending: settings.expiresPending,
  })
  const planEnd = (execution: Execution) => serviceTokens.planEnd(execution)

  return {
    freeSlots: () => dispatcher.freeSlots,
    running: () => dispatcher.running,
    stopRun: (id, user) => dispatcher.stopRun(id, user),
    stopBackground: createStopBackground({
      runners,
      prepare,
      killOrphans: deps.killOrphans,
      resultOf: (id) => store.findWithResult(id)?.result,
      log,
    }),
    policiesChanged: (actionRef) => admission.reload(actionRef),
    async start() {
      await recover({
        store,
        processes,
        change,
        database,
        killOrphans: deps.killOrphans,
        hadBegun: (id) => notes.hadBegun(id),
        planEnd,
        log,
      })
      notes.start()
      dispatcher.start()
      await scheduler.start()
      await replacing.start()
    },
    async stop() {
      replacing.stop()
      scheduler.stop()
      await dispatcher.stop(settings.shutdownGraceSeconds)
      notes.stop()
    },
    hurry: () => dispatcher.hurry(),
  }
}
