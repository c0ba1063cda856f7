/**
 * Starts requested executions, oldest first, while slots are free and policies admit them. Wakes delayed executions when
 * they are due, and times out pending ones.
 */
import type { Bus } from '../../../bus/index.ts'
import type { Unit } from '../../../db/index.ts'
import { microsOfId } from '../../../core/ids.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Metrics } from '../../../core/metrics.ts'
import { createRowQueue } from '../../../queue/index.ts'
import { formatMicros, microsOf, now, nowMicros, setBacksSoFar } from '../../../core/time.ts'
import type { Admission } from './admission.ts'
import type { Change } from '../change.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { DueStatus, ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'

/** Longest single timeout: the clock can be set, and timers stand still while the machine sleeps. */
const MAX_TIMEOUT_MS = 60_000
/** Due executions of each status that are changed at once. */
const DUE_TOGETHER = 100
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
  admission: Admission
  bus: Bus
  log: Log
  metrics: Metrics
  /** Whether the disk has room to start executions; checked again later. */
  hasRoom(): boolean
  write(unit: Unit): Promise<unknown>
  pollSeconds: number
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
  /** Count of clock set-backs when the due times were last adjusted. */
  let knownSetBacks = -1
  const dueStatuses: readonly DueStatus[] = deps.expiresPending ? ['delayed', 'pending'] : ['delayed']
  let active = false
  let asideCount = 0
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
        try {
          await dispatcher.run(execution)
        } finally {
          queue.done(execution)
        }
        return
      case 'delay':
        await makeWait(execution)
        return
      case 'cancel': {
        const forbid = { kind: 'forbid', policy: verdict.policy } as const
        await setAside(execution, () => change.settle(execution, [forbid, forbid]))
      }
    }
  }

  async function makeWait(execution: Execution): Promise<void> {
    try {
      const held = await setAside(execution, () => change.try(execution, { kind: 'wait' }))
      if (held !== undefined) admission.wait(held)
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

  /**
   * After the clock was set back, executions that were created by the old clock seem to come from the future. Their delays
   * start again now.
   */
  async function followClock(): Promise<void> {
    const setBacks = setBacksSoFar()
    if (setBacks === knownSetBacks) return
    const at = nowMicros()
    const steps = dueStatuses
      .flatMap((status) => store.withDue(status))
      .flatMap(({ id, due_timestamp }) => {
        const [created, due] = [microsOfId(id), microsOf(due_timestamp)]
        // Its times come from the clock as it is now.
        if (created <= at || due <= created) return []
        return [store.putDue({ id, due_timestamp: formatMicros(at + due - created) })]
      })
    if (steps.length > 0) {
      await deps.write({ steps, facts: [] })
      log.warning('clock.set_back', 'The clock was set back: the delays of executions start again now', {
        executions: steps.length,
      })
    }
    knownSetBacks = setBacks
  }

  function planDue(): void {
    clearTimeout(dueTimer)
    try {
      if (setBacksSoFar() !== knownSetBacks) {
        void wakeDue()
        return
      }
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
      await followClock()
      // Together, so that one failed change does not hold up others.
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
    // Subscribers need the result of an execution that has ended.
    const { result } = store.findWithResult(execution.id) ?? {}
    await change.try({ ...execution, result }, { kind: 'expire' })
  }

  function retryDue(error: unknown): void {
    log.error('scheduler.failed', 'Could not change executions that are due: trying again', {
      error,
    })
    if (!active) return
    clearTimeout(dueTimer)
    dueTimer = setTimeout(() => void wakeDue(), RETRY_AFTER_MS)
  }

  return {
    async start() {
      await admission.start()
      active = true
      queue.startPolling(deps.pollSeconds)
      planDue()
      pump()
    },
    stop() {
      active = false
      admission.stop()
      clearTimeout(dueTimer)
      clearTimeout(pause)
      pause = undefined
      queue.stop()
    },
  }
}
