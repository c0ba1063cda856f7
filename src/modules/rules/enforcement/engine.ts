/**
 * Enforces trigger instances in the order of their arrival. Each one and everything it causes is one transaction, so
 * that svc enforces it exactly once even across crashes.
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
import { createPause } from '../../../lib/concurrency/index.ts'
import type { ViewsFor } from './evaluate.ts'

/** Instances whose transactions are being written. */
const MAX_COMMITTING = 64
/** Pause after a failure, such as a full disk. */
const RETRY_AFTER_MS = 1000
/** Pause of an instance that the database rejects, for example because a page is damaged. Others continue. */
const REJECTED_PAUSE_MS = 60_000
const POLL_SECONDS = 5

export interface Engine {
  start(): void
  /** Resolves when every started instance is committed, or stays pending in its row. */
  stop(): Promise<void>
}

export function createEngine(deps: {
  bindings: Bindings
  enforcer: Enforcer
  triggers: Triggers
  executions: Pick<Executions, 'hasRoom'>
  readonly viewsFor: ViewsFor
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
  /** Instances that the database rejects with every outcome. */
  const rejected: QueuedInstance[] = []
  let rejectedTimer: NodeJS.Timeout | undefined
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

  function retryLater(): void {
    if (!active) return
    pause ??= setTimeout(() => {
      pause = undefined
      queue.wake()
    }, RETRY_AFTER_MS)
  }

  async function work(): Promise<void> {
    const run = { betweenRules: createPause(), isActive: () => active, settled }
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
      log.error('rules.failed', 'Could not read pending trigger instances; svc retries', { error })
      retryLater()
    } finally {
      // Synchronous with the last `takeNext`, so that no wake-up is lost in between.
      isWorking = false
    }
  }

  async function settled(): Promise<void> {
    await Promise.all(committing)
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
    const committed = (unit === undefined ? Promise.resolve({ isRejected: false }) : commit(queued, unit)).then(
      (ended) => {
        committing.delete(committed)
        if (ended.isRejected) setAside(queued)
        else queue.done(queued)
        // `takeNext` stopped at the limit, and nothing else wakes it.
        if (committing.size === MAX_COMMITTING - 1) pump()
      },
    )
    committing.add(committed)
  }

  /** Keeps the instance claimed during the pause, so that the queue does not read it again. */
  function setAside(queued: QueuedInstance): void {
    rejected.push(queued)
    if (!active) return
    rejectedTimer ??= setTimeout(() => {
      rejectedTimer = undefined
      for (const each of rejected.splice(0)) queue.done(each)
      queue.wake()
    }, REJECTED_PAUSE_MS)
  }

  /**
   * Never rejects: an instance that svc cannot store stays pending in its row.
   *
   * @returns `isRejected`: the database rejects the instance; retrying at once would delay the others
   */
  async function commit(queued: QueuedInstance, unit: Unit): Promise<{ isRejected: boolean }> {
    const fields = { trigger_instance_id: queued.id, trace_id: queued.trace_id }
    let wanted = unit
    let isGivenUp = false
    // At least once: a stop ends only repetitions.
    for (let isFirst = true; isFirst || !stopping.signal.aborted; isFirst = false) {
      try {
        await database.write(wanted)
        return { isRejected: false }
      } catch (error) {
        if (error instanceof Conflict) {
          // Another writer processed the instance or changed a record of the unit. The queue reads the row again.
          log.warning('rules.conflict', 'A concurrent change conflicts with the enforcement; svc retries', {
            ...fields,
            error,
          })
          retryLater()
          return { isRejected: false }
        }
        if (isStorageFailure(error)) {
          log.error('rules.not_stored', 'Could not store the enforcements of a trigger instance; svc retries', {
            ...fields,
            error,
          })
          await delay(RETRY_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined)
        } else if (isGivenUp) {
          log.error('rules.not_stored', 'Could not store the status of a trigger instance; it stays pending', {
            ...fields,
            error,
          })
          return { isRejected: true }
        } else {
          isGivenUp = true
          wanted = planner.planFailed(queued, error)
        }
      }
    }
    return { isRejected: false }
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
      clearTimeout(rejectedTimer)
      queue.stop()
      // Cancels retries only, for which the planning may wait. Running writes finish.
      stopping.abort()
      await working
      await Promise.all(committing)
    },
  }
}
