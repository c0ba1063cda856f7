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
import type { ExecutionReaction, ExecutionWorkflows } from './ports.ts'

const RETRY_AFTER_MS = 1000

export interface Change {
  /** The execution after the events, and the unit that makes it so. Undefined when one does not fit its status. */
  plan(execution: Execution, ...events: readonly ExecutionEvent[]): { execution: Execution; unit: Unit } | undefined
  /** The unit that stores an execution that has ended elsewhere. It announces nothing, so that nothing follows from it. */
  planImport(draft: Execution, event: ExecutionEvent & { kind: 'import' }): Unit
  /**
   * Commits the event on the execution as it was seen.
   *
   * @returns undefined when another change came first, or the event no longer fits
   */
  try(execution: Execution, event: ExecutionEvent): Promise<Execution | undefined>
  /**
   * Commits the events on the current state of the execution. Retries after conflicts, and while the disk is full: a
   * finished run that is not stored would stay `running`. When the database refuses the change because a part of it is
   * damaged, commits the change without its result, then without everything else.
   *
   * @param also committed in the same unit; its facts come before the change's own
   * @param part the same, but only together with the change
   * @throws STORAGE_FAILED when the server stops waiting for the disk; the database error when even the bare change fails
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
  /** Aborted when a stopping server gives up writes that fail. */
  stopRetrying: AbortSignal
  /** What the end of a run changes besides: it revokes the token of the run. */
  readonly planEnd?: (execution: Execution) => Unit
  /** What each status changes in other modules. */
  readonly planReaction?: ExecutionReaction
  readonly follow?: ExecutionWorkflows['follow']
}): Change {
  const { store, metrics, planEnd, planReaction } = deps

  function plan(
    execution: Execution,
    events: readonly ExecutionEvent[],
    /** How often the database has refused the change; each time the plan leaves out more. */
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
    const unit: Unit = { steps: store.update(changed, execution.revision), facts }
    if (isFinal(changed.status) || changed.status === 'canceling') unit.isVital = true
    const last = isFinal(changed.status) ? store.ruleRuns.planEnd(changed) : undefined
    if (refusals >= 2) return { execution: changed, unit: merge(unit, last) }
    const isOver = isFinal(changed.status) || changed.status === 'pending'
    const isEnd = planEnd !== undefined && hasStarted(execution.status) && isOver
    return { execution: changed, unit: merge(isEnd ? planEnd(changed) : undefined, unit, ...reactions, last) }
  }

  async function commit(unit: Unit, before?: Execution, after?: Execution): Promise<void> {
    const begun = performance.now()
    const following = before && after && deps.follow?.(before, after, unit)
    await (following ?? deps.database.write(unit))
    metrics.time('execution.update', {}, performance.now() - begun)
  }

  async function attempt(execution: Execution, event: ExecutionEvent): Promise<Execution | undefined> {
    const planned = plan(execution, [event])
    if (planned === undefined) return undefined
    try {
      await commit(planned.unit, execution, planned.execution)
    } catch (error) {
      if (error instanceof Conflict) return undefined
      throw error
    }
    return planned.execution
  }

  return {
    plan: (execution, ...events) => plan(execution, events),
    planImport(draft, event) {
      const ended = transition(draft, event, event.end)
      return { steps: ended === undefined ? [] : store.insert(ended), facts: [] }
    },
    try: attempt,
    async settle(execution, events, also, part) {
      let seen: Execution | undefined = execution
      let refusals = 0
      for (;;) {
        const planned = seen === undefined ? undefined : plan(seen, events, refusals)
        try {
          const more = refusals < 2 ? merge(also, planned && part) : undefined
          await commit(merge(more, planned?.unit), seen, planned?.execution)
          return planned?.execution
        } catch (error) {
          if (error instanceof Conflict) {
            seen = store.find(execution.id)
          } else if (isStorageFailure(error) && !deps.stopRetrying.aborted) {
            deps.log.error('execution.not_stored', 'Could not store a change of an execution: trying again', {
              execution_id: execution.id,
              events: events.map(({ kind }) => kind).join(' '),
              error,
            })
            await delay(RETRY_AFTER_MS, undefined, { signal: deps.stopRetrying }).catch(() => undefined)
          } else if (!isAppError(error) && refusals < 2) {
            refusals += 1
            deps.log.error(
              'execution.partly_stored',
              'Could not store a change of an execution completely: storing less',
              {
                execution_id: execution.id,
                events: events.map(({ kind }) => kind).join(' '),
                error,
              },
            )
          } else {
            throw error
          }
        }
      }
    },
  }
}
