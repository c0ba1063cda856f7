/** Applying events to executions: the one place where a status change is committed. */
import { setTimeout as delay } from 'node:timers/promises'
import { Conflict, merge, type Database, type Unit } from '../../db/index.ts'
import type { Fact } from '../../bus/index.ts'
import { isAppError, isStorageFailure } from '../../core/errors.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import { now } from '../../core/time.ts'
import { hasStarted, isFinal, transition, type ExecutionEvent } from './state.ts'
import type { ExecutionStore } from './store.ts'
import type { Execution } from './types.ts'
import type { PlanReaction } from './ports.ts'

const RETRY_AFTER_MS = 1000

export interface Change {
  /** The execution after the event, and the unit that makes it so. Undefined when the event does not fit its status. */
  plan(execution: Execution, event: ExecutionEvent): { execution: Execution; unit: Unit } | undefined
  /**
   * Commits the event on the execution as it was seen.
   *
   * @returns undefined when somebody else changed it first, or the event no longer fits
   */
  try(execution: Execution, event: ExecutionEvent): Promise<Execution | undefined>
  /**
   * Commits the events on whatever the execution has become meanwhile, as often as it takes. A storage that cannot be
   * written is tried again until it can, because a finished run that is not recorded would look as if it ran for ever.
   * For the same reason a database of which a part is damaged gets less: the change without its result, then without
   * anything beside it.
   *
   * @param also committed in the same unit; its facts come before the change's own
   * @param part the same, but only together with the change
   * @throws STORAGE_FAILED once nobody wants to wait any more; what the database says when it takes not even the change
   * @returns undefined when they do not fit any more; `also` is then committed alone
   */
  settle(
    execution: Execution,
    events: readonly ExecutionEvent[],
    also?: Unit,
    part?: Unit,
  ): Promise<Execution | undefined>
}

export function createChange(deps: {
  store: ExecutionStore
  database: Database
  log: Log
  metrics: Metrics
  /** Aborted when a server that stops is not to wait for its storage. */
  givingUp: AbortSignal
  /** What the end of a run takes with it. */
  readonly planEnd?: (execution: Execution) => Unit
  /** What each status brings about elsewhere. */
  readonly planReaction?: (execution: Execution) => ReturnType<PlanReaction>
}): Change {
  const { store, metrics, planEnd, planReaction } = deps

  function plan(
    execution: Execution,
    events: readonly ExecutionEvent[],
    /** How often the database has refused it: what is left out depends on that. */
    refusals = 0,
  ): { execution: Execution; unit: Unit } | undefined {
    const facts: Fact[] = []
    const reactions: (Unit | undefined)[] = []
    let changed = execution
    for (const event of events) {
      const next = transition(changed, event, now())
      if (next === undefined) return undefined
      if (refusals > 0) {
        next.result = undefined
        next.result_size = null
      }
      facts.push({ name: 'execution.updated', payload: { execution: next, from: changed.status } })
      if (refusals < 2) reactions.push(planReaction?.(next))
      changed = next
    }
    const unit = { steps: store.update(changed, execution.revision), facts }
    if (refusals >= 2) return { execution: changed, unit }
    const isOver = isFinal(changed.status) || changed.status === 'pending'
    const isEnd = planEnd !== undefined && hasStarted(execution.status) && isOver
    return { execution: changed, unit: merge(isEnd ? planEnd(changed) : undefined, unit, ...reactions) }
  }

  async function commit(unit: Unit): Promise<void> {
    const begun = performance.now()
    await deps.database.write(unit)
    metrics.time('execution.update', {}, performance.now() - begun)
  }

  async function attempt(execution: Execution, event: ExecutionEvent): Promise<Execution | undefined> {
    const planned = plan(execution, [event])
    if (planned === undefined) return undefined
    try {
      await commit(planned.unit)
    } catch (error) {
      if (error instanceof Conflict) return undefined
      throw error
    }
    return planned.execution
  }

  return {
    plan: (execution, event) => plan(execution, [event]),
    try: attempt,
    async settle(execution, events, also, part) {
      let seen: Execution | undefined = execution
      let refusals = 0
      for (;;) {
        const planned = seen === undefined ? undefined : plan(seen, events, refusals)
        try {
          const more = refusals < 2 ? merge(also, planned && part) : undefined
          await commit(merge(more, planned?.unit))
          return planned?.execution
        } catch (error) {
          if (error instanceof Conflict) {
            seen = store.find(execution.id)
          } else if (isStorageFailure(error) && !deps.givingUp.aborted) {
            deps.log.error('execution.not_stored', 'A change of an execution cannot be stored; trying again', {
              execution_id: execution.id,
              events: events.map(({ kind }) => kind).join(' '),
              error,
            })
            await delay(RETRY_AFTER_MS, undefined, { signal: deps.givingUp }).catch(() => undefined)
          } else if (!isAppError(error) && refusals < 2) {
            refusals += 1
            deps.log.error('execution.partly_stored', 'A change of an execution cannot be stored whole; storing less', {
              execution_id: execution.id,
              events: events.map(({ kind }) => kind).join(' '),
              error,
            })
          } else {
            throw error
          }
        }
      }
    },
  }
}
