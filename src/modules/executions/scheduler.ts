/**
 * Has requested executions started, oldest first, while there are free slots; wakes delayed ones when they are due, and ends
 * pending ones that nobody has settled in their time.
 */
import type { Bus } from '../../bus/bus.ts'
import type { Log } from '../../log.ts'
import { createRowQueue } from '../../queue/row-queue.ts'
import { microsOf, now, nowMicros } from '../../time.ts'
import type { Change } from './change.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { DueStatus, ExecutionStore } from './store.ts'
import type { Execution } from './types.ts'

/** Longest single timeout: the clock may be set, and stands still for timers while the machine sleeps. */
const MAX_TIMEOUT_MS = 60_000
/** Executions of each status whose time has come that are changed at once. */
const DUE_TOGETHER = 100
/** Pause after a failure: a storage that is full would be asked without end. */
const RETRY_AFTER_MS = 1000

export interface Scheduler {
  start(): void
  /** Takes nothing any more. */
  stop(): void
}

export function createScheduler(deps: {
  store: ExecutionStore
  change: Change
  dispatcher: Pick<Dispatcher, 'freeSlots' | 'run' | 'onFreeSlot'>
  bus: Bus
  log: Log
  pollSeconds: number
  /** Whether pending executions end when their time is over (`garbagecollector.purge_inquiries`). */
  expiresPending: boolean
}): Scheduler {
  const { store, change, dispatcher, bus, log } = deps
  /** The `request` queue. */
  const queue = createRowQueue<Execution>({
    idOf: (execution) => execution.id,
    load: (afterId, limit) => store.withStatus('requested', afterId, limit),
    depth: () => store.countWithStatus('requested'),
  })
  const dueStatuses: readonly DueStatus[] = deps.expiresPending ? ['delayed', 'pending'] : ['delayed']
  let active = false
  let dueTimer: NodeJS.Timeout | undefined
  let pause: NodeJS.Timeout | undefined

  bus.subscribe('execution.created', ({ execution }) => {
    if (active && execution.status === 'requested') queue.offer(execution)
  })
  bus.subscribe('execution.updated', ({ execution, from }) => {
    if (!active) return
    if (execution.status === 'requested' && from === 'delayed') queue.offer(execution)
    if (dueStatuses.some((status) => status === execution.status)) planDue()
  })
  queue.onWake(pump)
  dispatcher.onFreeSlot(pump)

  function pump(): void {
    if (!active || pause !== undefined) return
    for (const execution of take()) {
      void schedule(execution).catch((error: unknown) => {
        rest()
        log.error('scheduler.failed', 'The start, the end or the delay of an execution could not be recorded', {
          execution_id: execution.id,
          error,
        })
      })
    }
  }

  function take(): Execution[] {
    try {
      return queue.take(dispatcher.freeSlots)
    } catch (error) {
      log.error('scheduler.failed', 'The waiting executions cannot be read; they will be tried again', { error })
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

  async function schedule(execution: Execution): Promise<void> {
    try {
      if (execution.due_timestamp !== null && execution.due_timestamp > now()) {
        await change.try(execution, { kind: 'delay' })
        // It was taken for a free slot and leaves that to the next one.
        setImmediate(pump)
        return
      }
      await dispatcher.run(execution)
    } finally {
      queue.done(execution)
    }
  }

  function planDue(): void {
    clearTimeout(dueTimer)
    try {
      const [next] = dueStatuses.flatMap((status) => store.nextDue(status) ?? []).toSorted()
      if (next === undefined) return
      const waitMs = Math.ceil(Math.max(0, microsOf(next) - nowMicros()) / 1000)
      dueTimer = setTimeout(() => void wakeDue(), Math.min(waitMs, MAX_TIMEOUT_MS))
    } catch (error) {
      retryDue(error)
    }
  }

  async function wakeDue(): Promise<void> {
    try {
      // Together, so that none waits for one that cannot be changed.
      const at = now()
      await Promise.all(dueStatuses.flatMap((status) => store.due(status, at, DUE_TOGETHER).map(becomeDue)))
      if (active) planDue()
    } catch (error) {
      retryDue(error)
    }
  }

  async function becomeDue(execution: Execution): Promise<void> {
    if (execution.status === 'delayed') {
      await change.try(execution, { kind: 'due' })
      return
    }
    // What it waits for is told to whoever hears of its end.
    const { result } = store.findWithResult(execution.id) ?? {}
    await change.try({ ...execution, result }, { kind: 'expire' })
  }

  function retryDue(error: unknown): void {
    log.error('scheduler.failed', 'Executions whose time has come could not be changed; they will be tried again', {
      error,
    })
    if (!active) return
    clearTimeout(dueTimer)
    dueTimer = setTimeout(() => void wakeDue(), RETRY_AFTER_MS)
  }

  return {
    start() {
      active = true
      queue.startPolling(deps.pollSeconds)
      planDue()
      pump()
    },
    stop() {
      active = false
      clearTimeout(dueTimer)
      clearTimeout(pause)
      pause = undefined
      queue.stop()
    },
  }
}
