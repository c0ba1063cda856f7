/** Wakes delayed executions when they are due, and times out pending ones. */
import { microsOfId } from '../../../core/ids.ts'
import { formatMicros, microsOf, now, nowMicros, setBacksSoFar } from '../../../core/time.ts'
import type { Unit } from '../../../db/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Change } from '../change.ts'
import type { DueStatus, ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'

/** Longest single timeout: the clock can be set, and timers stand still while the machine sleeps. */
const MAX_TIMEOUT_MS = 60_000
/** Due executions of each status that are changed at once. */
const DUE_TOGETHER = 100
/** Pause after a failure, so that a full disk causes no busy loop. */
const RETRY_AFTER_MS = 1000

export interface DueTimer {
  start(): void
  /** Sets the timer for the next execution that is due. */
  plan(): void
  stop(): void
}

export function createDueTimer(deps: {
  store: Pick<ExecutionStore, 'due' | 'nextDue' | 'withDue' | 'putDue' | 'findWithResult'>
  change: Pick<Change, 'try'>
  log: Log
  dueStatuses: readonly DueStatus[]
  write(unit: Unit): Promise<unknown>
}): DueTimer {
  const { store, change, log, dueStatuses } = deps
  /** Count of clock set-backs when the due times were last adjusted. */
  let knownSetBacks = -1
  let active = false
  let dueTimer: NodeJS.Timeout | undefined

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
        // Its times are in line with the current clock.
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

  function plan(): void {
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
      if (active) plan()
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
    start() {
      active = true
      plan()
    },
    plan,
    stop() {
      active = false
      clearTimeout(dueTimer)
    },
  }
}
