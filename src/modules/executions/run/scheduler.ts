/**
 * Starts requested executions, oldest first, while slots are free and policies admit them. Wakes delayed executions when
 * they are due, and times out pending ones.
 */
import type { Bus } from '../../../bus/index.ts'
import type { Unit } from '../../../db/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Metrics } from '../../../core/metrics.ts'
import { createDueTimer } from './due-timer.ts'
import { createRowQueue } from '../../../queue/index.ts'
import { now } from '../../../core/time.ts'
import { isWorkflowRunner } from '../../../runners/index.ts'
import type { SlotAdmission } from './admission.ts'
import type { Change } from '../change.ts'
import { startFailure, type Dispatcher } from './dispatcher.ts'
import { isFinal } from '../state.ts'
import type { DueStatus, ExecutionStore } from '../store.ts'
import type { Execution, ExecutionStatus } from '../types.ts'

/** Pause after a failure, so that a full disk causes no busy loop. */
const RETRY_AFTER_MS = 1000
/** Executions that are delayed or canceled at the same time; that needs no slot. */
const MAX_ASIDE = 200

export interface Scheduler {
  start(): Promise<void>
  /** Starts no more executions. */
  stop(): void
}

export function createScheduler(deps: {
  store: ExecutionStore
  change: Change
  dispatcher: Pick<Dispatcher, 'freeSlots' | 'run' | 'onFreeSlot'>
  admission: SlotAdmission
  bus: Bus
  log: Log
  metrics: Metrics
  /** Whether the disk has room to start executions; checked again later. */
  hasRoom(): boolean
  write(unit: Unit): Promise<unknown>
  pollSeconds: number
  /** Starts the workflow of an execution: see `ExecutionWorkflows.begin`. */
  startWorkflow(execution: Execution): Promise<void>
  /** Whether pending executions time out (`garbagecollector.purge_inquiries`). */
  expiresPending: boolean
}): Scheduler {
  const { store, change, dispatcher, admission, bus, log, metrics } = deps
  /** The `request` queue. */
  const queue = createRowQueue<Execution>({
    idOf: (execution) => execution.id,
    load: (afterId, limit) => store.withStatus('requested', afterId, limit),
    depth: () => store.countWithStatus('requested'),
  })
  const dueStatuses: readonly DueStatus[] = deps.expiresPending
    ? ['delayed', 'started', 'pending']
    : ['delayed', 'started']
  const due = createDueTimer({ store, change, log, dueStatuses, write: (unit) => deps.write(unit) })
  let active = false
  let asideCount = 0
  let pause: NodeJS.Timeout | undefined

  bus.subscribe('execution.created', ({ execution }) => {
    if (active && execution.status === 'requested') queue.offer(execution)
  })
  bus.subscribe('execution.updated', ({ execution, from }) => {
    if (!active) return
    if (execution.status === 'requested' && from === 'delayed') queue.offer(execution)
    if (isFinal(execution.status) && isWorkflowRunner(execution.runner.name)) admission.leave(execution)
    // A workflow that has just started may have got a time limit in the same commit.
    const mayBeDue = execution.due_timestamp !== null || isWorkflowRunner(execution.runner.name)
    if (mayBeDue && !isFinal(execution.status)) due.plan()
  })
  queue.onWake(pump)
  dispatcher.onFreeSlot((ended) => {
    admission.leave(ended)
    pump()
  })

  function pump(): void {
    // Executions that are set aside take no slot, so that they do not hold up others.
    while (active && pause === undefined) {
      if (!deps.hasRoom()) {
        rest()
        return
      }
      const room = Math.min(dispatcher.freeSlots, MAX_ASIDE - asideCount)
      const taken = room > 0 ? take(room) : []
      if (taken.length === 0) return
      for (const execution of taken) {
        void schedule(execution).catch((error: unknown) => {
          rest()
          log.error('scheduler.failed', 'Could not store the start, the end or the delay of an execution', {
            execution_id: execution.id,
            error,
          })
        })
      }
    }
  }

  function take(limit: number): Execution[] {
    try {
      return queue.take(limit)
    } catch (error) {
      log.error('scheduler.failed', 'Could not read the waiting executions: trying again', { error })
      rest()
      return []
    }
  }

  function rest(): void {
    if (!active) return
    pause ??= setTimeout(() => {
      pause = undefined
      queue.wake()
    }, RETRY_AFTER_MS)
  }

  /** An execution that needs a slot has it when this returns. */
  async function schedule(execution: Execution): Promise<void> {
    if (execution.due_timestamp !== null && execution.due_timestamp > now()) {
      await setAside(execution, () => change.try(execution, { kind: 'delay' }))
      return
    }
    const verdict = admission.enter(execution)
    switch (verdict.kind) {
      case 'run':
        if (isWorkflowRunner(execution.runner.name)) {
          await startWorkflow(execution)
          return
        }
        try {
          await dispatcher.run(execution)
        } finally {
          queue.done(execution)
        }
        return
      case 'delay':
        await makeWait(execution)
        return
      case 'refuse': {
        const result = startFailure(new Error(verdict.reason))
        await setAside(execution, () => change.settle(execution, [{ kind: 'reject', result }]))
        return
      }
      case 'cancel': {
        const forbid = { kind: 'forbid', policy: verdict.policy } as const
        await setAside(execution, () => change.settle(execution, [forbid, forbid]))
      }
    }
  }

  /** It takes no slot, but counts for policies until it ends. */
  async function startWorkflow(execution: Execution): Promise<void> {
    try {
      await setAside(execution, () => deps.startWorkflow(execution))
    } catch (error) {
      admission.leave(execution)
      throw error
    }
  }

  async function makeWait(execution: Execution): Promise<void> {
    try {
      const held = await setAside(execution, () => change.try(execution, { kind: 'wait' }))
      if (held !== undefined) admission.wait(held)
      else admission.leave(execution)
    } catch (error) {
      // The write may have succeeded all the same.
      admission.recheck(execution)
      throw error
    }
  }

  async function setAside<T>(execution: Execution, commit: () => Promise<T>): Promise<T> {
    asideCount += 1
    const begun = performance.now()
    try {
      const changed = await commit()
      metrics.time('execution.schedule', {}, performance.now() - begun)
      return changed
    } finally {
      asideCount -= 1
      queue.done(execution)
      setImmediate(pump)
    }
  }

  return {
    async start() {
      for (const execution of openWorkflows(store)) admission.adopt(execution)
      await admission.start()
      active = true
      due.start()
      queue.startPolling(deps.pollSeconds)
      pump()
    },
    stop() {
      active = false
      admission.stop()
      due.stop()
      clearTimeout(pause)
      pause = undefined
      queue.stop()
    },
  }
}

const openStatuses: readonly ExecutionStatus[] = ['running', 'pausing', 'paused', 'resuming', 'canceling']
const PAGE = 200

/** Workflows that an earlier server has started. */
function* openWorkflows(store: Pick<ExecutionStore, 'withStatus'>): Generator<Execution> {
  for (const status of openStatuses) {
    for (let afterId = ''; ;) {
      const page = store.withStatus(status, afterId, PAGE)
      yield* page.filter(({ runner }) => isWorkflowRunner(runner.name))
      afterId = page.at(-1)?.id ?? ''
      if (page.length < PAGE) break
    }
  }
}
