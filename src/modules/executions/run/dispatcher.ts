/** Runs executions in a limited number of slots, and records their results. */
import type { Compat } from '../../../core/compat/index.ts'
import { hostname } from 'node:os'
import type { Bus } from '../../../bus/index.ts'
import { merge, type Unit } from '../../../db/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Metrics } from '../../../core/metrics.ts'
import { writeStoredJson } from '../../../http/index.ts'
import {
  writeStartNote,
  type RunContext,
  type Runner,
  type RunResult,
  type StopReason,
  type StartNote,
} from '../../../runners/index.ts'
import type { SecretValues } from '../../../lib/secrets/index.ts'
import type { Change } from '../change.ts'
import type { ExecutionOutput, OutputIntake } from '../output/output.ts'
import { createCancelQueue, type ActiveRun } from './cancel-queue.ts'
import type { OutputCheck } from '../output-check.ts'
import { createRunSecrets, isCutText, maskOutput, type RunSecrets } from '../secrets/run-masking.ts'
import type { ResultSecrets } from '../secrets/results.ts'
import { isFinal, type ExecutionEvent } from '../state.ts'
import type { ExecutionStore } from '../store.ts'
import type { StartNotes } from './start-notes.ts'
import type { ProcessStore } from './store.ts'
import type { Execution } from '../types.ts'
import { shown } from '../../../lib/text/index.ts'
import type { ServiceTokens } from '../ports.ts'

export type Prepared = Pick<
  RunContext,
  'runnerParameters' | 'actionParameters' | 'parameterSchemas' | 'entryPoint' | 'packFolder' | 'config' | 'env'
>

/**
 * Makes the input of a runner. A throw means that the execution cannot run.
 *
 * @param secrets gets the secrets of the run, also later ones
 */
export type Prepare = (execution: Execution, secrets: unknown[]) => Promise<Prepared>

export interface Dispatcher {
  /** Free slots now. */
  readonly freeSlots: number
  /** Number of runs that have not ended. */
  readonly running: number
  /**
   * Gives a requested execution a slot at once, and starts it. Resolves when its end is stored.
   *
   * @throws what `Change.settle` throws: its start or its end is not stored
   */
  run(requested: Execution): Promise<void>
  /**
   * Ends the processes of a run at once.
   *
   * @param user who cancels it; stored with the end of the run
   * @returns false: it does not run here
   */
  stopRun(id: string, user: string): boolean
  /** Calls `fn` when an execution has released its slot, with the execution that `run` got. */
  onFreeSlot(fn: (ended: Execution) => void): void
  start(): void
  /** Lets runs finish for `graceSeconds`, then stops them. Resolves when nothing runs. */
  stop(graceSeconds: number): Promise<void>
  /** Skips the rest of the grace period of a `stop` under way. */
  hurry(): void
}

interface Ready {
  runner: Runner
  prepared: Prepared
  secrets: RunSecrets
}

export function createDispatcher(deps: {
  store: ExecutionStore
  processes: ProcessStore
  change: Change
  output: ExecutionOutput
  runners: ReadonlyMap<string, Runner>
  prepare: Prepare
  maskResult: ResultSecrets['mask']
  outputCheck: OutputCheck
  bus: Bus
  log: Log
  metrics: Metrics
  write(unit: Unit): Promise<unknown>
  /** `actionrunner.actions_pool_size` */
  slots: number
  serviceTokens: Pick<ServiceTokens, 'plan'>
  streamOutput: boolean
  readonly environment: Compat['environment']
  /** `api.mask_secrets` and `log.mask_secrets`: mask the secrets of a run in output, result and messages. */
  maskSecrets: boolean
  pollSeconds: number
  bootId: string
  notes: Pick<StartNotes, 'take' | 'release'>
}): Dispatcher {
  const { store, processes, change, bus, log, metrics } = deps
  /** Each has a slot. */
  const runs = new Map<string, ActiveRun>()
  const freeSlotListeners: ((ended: Execution) => void)[] = []
  const runnerInfo = { hostname: hostname(), pid: process.pid }
  const grace = new AbortController()

  const cancelQueue = createCancelQueue({ store, change, log, runs, slots: deps.slots })

  bus.subscribe('execution.updated', ({ execution }) => {
    if (execution.status === 'canceling') cancelQueue.offer(execution)
    // An outside system has settled it while its process runs: the process is not needed any more.
    else if (isFinal(execution.status)) runs.get(execution.id)?.controller.abort('cancel' satisfies StopReason)
  })

  async function run(requested: Execution): Promise<void> {
    const begun = performance.now()
    const controller = new AbortController()
    let resolveEnded: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      resolveEnded = resolve
    })
    // Before the commit, so that a cancel right after it finds the run.
    runs.set(requested.id, { controller, ended })
    try {
      const secrets = createRunSecrets()
      const ready = await prepare(requested, secrets)
      if ('error' in ready) {
        const result = startFailure(masksOf(secrets)?.maskError(ready.error) ?? ready.error)
        await change.settle(requested, [{ kind: 'schedule' }, { kind: 'reject', result }])
        return
      }
      // It keeps its slot while the disk is full: younger executions must not take it.
      const credential = deps.serviceTokens.plan(requested)
      const events = [{ kind: 'schedule' }, { kind: 'start', runner_info: runnerInfo }] as const
      const started = await change.settle(requested, events, undefined, credential?.unit)
      if (started === undefined) return
      metrics.time('execution.schedule', {}, performance.now() - begun)
      if (credential !== undefined) {
        ready.prepared.env['SVC_ACTION_AUTH_TOKEN'] = credential.token
        secrets.known.push(credential.token)
      }
      Object.assign(ready.prepared.env, deps.environment(ready.prepared.env))
      const limit = deadlineOf(started, controller)
      await carryOut(started, ready, controller.signal, () => {
        const user = runs.get(requested.id)?.canceledBy
        return user === undefined ? [] : [{ kind: 'cancel', user }]
      }).finally(() => clearTimeout(limit))
    } finally {
      runs.delete(requested.id)
      resolveEnded()
      for (const listener of freeSlotListeners) listener(requested)
    }
  }

  /** Undefined when there is nothing to mask. */
  function masksOf(secrets: RunSecrets): SecretValues | undefined {
    return deps.maskSecrets ? secrets.values : undefined
  }

  async function prepare(execution: Execution, secrets: RunSecrets): Promise<Ready | { error: unknown }> {
    const runner = deps.runners.get(execution.runner.name)
    if (runner === undefined) return { error: new Error(`There is no runner "${shown(execution.runner.name)}".`) }
    try {
      return { runner, prepared: await deps.prepare(execution, secrets.known), secrets }
    } catch (error) {
      return { error }
    }
  }

  /** @param owed what happened to the run and is not stored */
  async function carryOut(
    execution: Execution,
    ready: Ready,
    signal: AbortSignal,
    owed: () => ExecutionEvent[],
  ): Promise<void> {
    const opened = deps.output.open(execution, deps.streamOutput)
    const intake = deps.maskSecrets ? maskOutput(opened, ready.secrets) : opened
    const startNote = deps.notes.take(execution.id)
    const outcome = await resultOf(execution, ready, intake, startNote, signal, (unit) => {
      // Not awaited: the unit that deletes the row is written later, and therefore committed later.
      deps.write(unit).catch((error: unknown) =>
        log.error('process.not_stored', 'Could not store the process of an execution', {
          execution_id: execution.id,
          error,
        }),
      )
    })
    // Read now: a server stop while the rest is stored does not make an ended run `abandoned`.
    const stopped: unknown = signal.reason
    const isLate = signal.aborted && stopped === ('deadline' satisfies StopReason)
    const ownStatus =
      signal.aborted && stopped === ('shutdown' satisfies StopReason)
        ? 'abandoned'
        : isLate
          ? 'timeout'
          : outcome.status
    const unfit = ownStatus === 'succeeded' ? deps.outputCheck.failureOf(execution, outcome.result) : undefined
    if (unfit !== undefined) outcome.result = unfit
    const status = unfit === undefined ? ownStatus : 'failed'
    if (isLate) outcome.result = { ...outcome.result, ...startFailure(new Error(lateText(execution))) }
    const masks = masksOf(ready.secrets)
    const rest = await intake.finish()
    const ended = merge(rest, { steps: [processes.deleteProcess(execution.id)], facts: [] })
    try {
      const said = masks === undefined ? outcome.result : await masks.maskLater(outcome.result, isCutText)
      const { result, sealed } = deps.maskResult(execution, said as RunResult['result']) // a copy of one
      await writeStoredJson(result)
      const ttlSeconds = leastOf(outcome.ttlSeconds, execution.liveaction.timeout)
      const exit = {
        kind: 'exit',
        status,
        result,
        sealed,
        ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
      } as const
      await change.settle(execution, [...owed(), exit], ended)
    } catch (error) {
      // A result that cannot be masked or stored must not leave the execution `running`.
      log.error('execution.result_lost', 'Could not store the result of an execution', {
        execution_id: execution.id,
        error: masks?.maskError(error) ?? error,
      })
      const failure = startFailure(new Error('The result cannot be stored; the output is complete.'))
      await change.settle(execution, [...owed(), { kind: 'exit', status: 'failed', result: failure }], ended)
    } finally {
      intake.close()
      // Not before its end is stored: until then the next server would run it again.
      if (startNote !== undefined) deps.notes.release(startNote)
    }
  }

  /** Never rejects: a failure becomes the result. */
  async function resultOf(
    execution: Execution,
    { runner, prepared, secrets }: Ready,
    intake: OutputIntake,
    startNote: StartNote | undefined,
    signal: AbortSignal,
    record: (unit: Unit) => void,
  ): Promise<RunResult> {
    try {
      if (runner.notesStart !== true) writeStartNote(startNote)
      return await runner.run({
        executionId: execution.id,
        liveactionId: execution.liveaction_id,
        actionRef: execution.action_ref,
        pack: execution.action.pack,
        user: execution.user,
        ...prepared,
        emit: (type, text, host) => intake.emit(type, text, host),
        announce: (route, message) =>
          bus.publish({
            name: 'announcement.created',
            payload: { execution, route, message: masksOf(secrets)?.maskValue(message) ?? message },
          }),
        containsSecret: (text) => secrets.values?.isIn(text) ?? false,
        processStarted: (identity) =>
          // No process survives a power cut.
          record({
            steps: [processes.insertProcess(execution.id, { ...identity, bootId: deps.bootId })],
            facts: [],
            isUnpromised: true,
          }),
        ...(startNote === undefined ? {} : { startNote }),
        signal,
      })
    } catch (error) {
      const shown = masksOf(secrets)?.maskError(error) ?? error
      log.error('runner.failed', 'A runner failed unexpectedly', { execution_id: execution.id, error: shown })
      return { status: 'failed', result: startFailure(error) }
    }
  }

  return {
    get freeSlots() {
      return Math.max(0, deps.slots - runs.size)
    },
    get running() {
      return runs.size
    },
    run,
    stopRun(id, user) {
      const run = runs.get(id)
      if (run === undefined) return false
      run.canceledBy ??= user
      run.controller.abort('cancel' satisfies StopReason)
      return true
    },
    onFreeSlot(fn) {
      freeSlotListeners.push(fn)
    },
    start() {
      cancelQueue.start(deps.pollSeconds)
    },
    async stop(graceSeconds) {
      const all = (): Promise<unknown> => Promise.all([...runs.values()].map((run) => run.ended))
      if (runs.size > 0 && graceSeconds > 0) {
        void all().then(() => grace.abort())
        await sleep(graceSeconds * 1000, grace.signal)
      }
      for (const { controller } of runs.values()) controller.abort('shutdown' satisfies StopReason)
      await all()
      cancelQueue.stop()
    },
    hurry: () => grace.abort(),
  }
}

/** Longest time of a timer. */
const MAX_TIMEOUT_S = 2_000_000

/** Ends the run when its workflow gives it no more time. */
function deadlineOf({ liveaction: { timeout } }: Execution, controller: AbortController): NodeJS.Timeout | undefined {
  if (timeout === undefined || timeout > MAX_TIMEOUT_S) return undefined
  return setTimeout(() => controller.abort('deadline' satisfies StopReason), timeout * 1000)
}

const lateText = ({ liveaction, parent }: Execution): string =>
  `The action took longer than the timeout of its ${parent === null ? 'rule' : 'task'}, ${liveaction.timeout ?? 0} seconds.`

const leastOf = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b)

/** The result of a run that did not start (contract 03, 3.9). */
export function startFailure(error: unknown): Record<string, unknown> {
  const message = error instanceof Error ? error.message : String(error)
  return { error: message, traceback: message }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve()
      return
    }
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
