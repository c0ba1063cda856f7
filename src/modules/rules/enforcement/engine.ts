/**
 * Turns trigger instances into executions: in the order of their arrival, each with everything it causes in one unit, so
 * that it is enforced exactly once whatever dies when.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Bus } from '../../../bus/index.ts'
import { Conflict, type Database, type Unit } from '../../../db/index.ts'
import { isStorageFailure } from '../../../core/errors.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Metrics } from '../../../core/metrics.ts'
import { createRowQueue } from '../../../queue/index.ts'
import type { Executions } from '../../executions/index.ts'
import type { Triggers } from '../../triggers/index.ts'
import type { QueuedInstance } from '../../triggers/types.ts'
import type { Bindings } from './bindings.ts'
import type { Enforcer } from './enforce.ts'
import { createInstancePlanner } from './plan-instance.ts'
import { createPause, type EvaluationContext } from './evaluate.ts'

/** Instances whose units are on their way to the disk. */
const MAX_COMMITTING = 64
/** Pause after a failure: a storage that is full would be asked without end. */
const RETRY_AFTER_MS = 1000
/** Pause of an instance that the database does not take: a part of the file is damaged, and the others are not to wait. */
const LEFT_FOR_MS = 60_000
const POLL_SECONDS = 5

export interface Engine {
  start(): void
  /** Resolves when everything it has begun is committed, or waits in the rows. */
  stop(): Promise<void>
}

export function createEngine(deps: {
  bindings: Bindings
  enforcer: Enforcer
  triggers: Triggers
  executions: Pick<Executions, 'hasRoom'>
  readonly scopesFor: (payload: unknown) => EvaluationContext['scopeOf']
  database: Database
  bus: Bus
  log: Log
  metrics: Metrics
}): Engine {
  const { triggers, executions, database, bus, log } = deps
  /** The `trigger` queue. */
  const queue = createRowQueue<QueuedInstance>({
    idOf: ({ id }) => id,
    load: (afterId, limit) => triggers.pending(afterId, limit),
    depth: () => triggers.pendingCount(),
  })
  const planner = createInstancePlanner(deps)
  const committing = new Set<Promise<void>>()
  const stopping = new AbortController()
  let active = false
  let isWorking = false
  let working: Promise<void> = Promise.resolve()
  let pause: NodeJS.Timeout | undefined
  /** Those that the database does not take, whatever is written of them. */
  const left: QueuedInstance[] = []
  let takingUpAgain: NodeJS.Timeout | undefined
  let isWaitingForRoom = false

  bus.subscribe('trigger_instance.created', (instance) => {
    if (active) queue.offer(instance)
  })
  bus.subscribe('execution.updated', ({ from }) => {
    if (!isWaitingForRoom || (from !== 'requested' && from !== 'delayed')) return
    isWaitingForRoom = false
    pump()
  })
  queue.onWake(pump)

  function pump(): void {
    if (!active || isWorking || pause !== undefined) return
    isWorking = true
    working = work()
  }

  function rest(): void {
    if (!active) return
    pause ??= setTimeout(() => {
      pause = undefined
      queue.wake()
    }, RETRY_AFTER_MS)
  }

  async function work(): Promise<void> {
    const run = { betweenRules: createPause(), isActive: () => active }
    try {
      for (let queued = takeNext(); queued !== undefined; queued = takeNext()) {
        try {
          commitLater(queued, await planner.plan(queued, run))
        } catch (error) {
          queue.done(queued)
          throw error
        }
        await run.betweenRules()
      }
    } catch (error) {
      log.error('rules.failed', 'The waiting trigger instances cannot be read; they will be tried again', { error })
      rest()
    } finally {
      // In the turn in which nothing was left to do, so that no wake-up falls between the two.
      isWorking = false
    }
  }

  function takeNext(): QueuedInstance | undefined {
    if (!active || pause !== undefined || committing.size >= MAX_COMMITTING) return undefined
    if (!executions.hasRoom()) {
      isWaitingForRoom = true
      return undefined
    }
    return queue.take(1)[0]
  }

  function commitLater(queued: QueuedInstance, unit: Unit | undefined): void {
    const committed = (unit === undefined ? Promise.resolve({ isLeft: false }) : commit(queued, unit)).then((ended) => {
      committing.delete(committed)
      if (ended.isLeft) leave(queued)
      else queue.done(queued)
      // Nothing is left to wake it when it stopped because too many were on their way.
      if (committing.size === MAX_COMMITTING - 1) pump()
    })
    committing.add(committed)
  }

  /** Still taken, so that nothing finds it in the rows. */
  function leave(queued: QueuedInstance): void {
    left.push(queued)
    if (!active) return
    takingUpAgain ??= setTimeout(() => {
      takingUpAgain = undefined
      for (const each of left.splice(0)) queue.done(each)
      queue.wake()
    }, LEFT_FOR_MS)
  }

  /**
   * Never rejects: what cannot be stored stays pending in the rows.
   *
   * @returns `isLeft`: for a while, because taking it up again and again would only hold up the others
   */
  async function commit(queued: QueuedInstance, unit: Unit): Promise<{ isLeft: boolean }> {
    const fields = { trigger_instance_id: queued.id, trace_id: queued.trace_id }
    let wanted = unit
    let isGivenUp = false
    while (!stopping.signal.aborted) {
      try {
        await database.write(wanted)
        return { isLeft: false }
      } catch (error) {
        if (error instanceof Conflict) {
          // Somebody else has processed it, or what it causes has changed meanwhile: the rows tell.
          log.warning('rules.conflict', 'What a trigger instance causes was changed by someone else', {
            ...fields,
            error,
          })
          rest()
          return { isLeft: false }
        }
        if (isStorageFailure(error)) {
          log.error('rules.not_stored', 'What a trigger instance causes cannot be stored; trying again', {
            ...fields,
            error,
          })
          await delay(RETRY_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
        } else if (isGivenUp) {
          log.error('rules.not_stored', 'A trigger instance cannot be marked as processed; it stays pending', {
            ...fields,
            error,
          })
          return { isLeft: true }
        } else {
          isGivenUp = true
          wanted = planner.planFailed(queued, error)
        }
      }
    }
    return { isLeft: false }
  }

  return {
    start() {
      active = true
      queue.startPolling(POLL_SECONDS)
      pump()
    },
    async stop() {
      active = false
      clearTimeout(pause)
      pause = undefined
      clearTimeout(takingUpAgain)
      queue.stop()
      await working
      // A write under way ends by itself; only trying again is cut short.
      stopping.abort()
      await Promise.all(committing)
    },
  }
}
