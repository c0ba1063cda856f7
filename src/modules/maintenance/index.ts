/** What a server has to do now and then: the tasks of its modules, and the rounds of the garbage collector. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Gauge, Module, MaintenanceTask } from '../../core/module.ts'
import { recordKinds, type Retention } from '../../core/retention.ts'
import { nowMicros } from '../../core/time.ts'
import type { MaintenanceSettings } from './settings.ts'
import { createClockGuard } from './clock-guard.ts'
import { createCollector } from './collector.ts'
import { createMaintenanceRoutes, type CancelOld } from './routes.ts'

export interface Maintenance extends Module {
  /** A round of the garbage collector at once, and all tasks (SIGUSR2). Resolves when it is done; never rejects. */
  collect(): Promise<void>
}

export interface MaintenanceDeps {
  database: Pick<Database, 'stats' | 'reclaim'>
  log: Log
  /** Whose tasks and records it looks after. */
  modules: readonly Module[]
  cancelOld: CancelOld
  settings: MaintenanceSettings
  /** Wire timestamp of the newest record. */
  readonly newest: () => string | undefined
  clock?: {
    /** Microseconds since the epoch. */
    readonly now: () => number
    /** Milliseconds. */
    readonly monotonic: () => number
  }
}

/** The first round begins after a moment, so that servers which start together do not work together. */
const MAX_FIRST_DELAY_MS = 3000

export function createMaintenance(deps: MaintenanceDeps): Maintenance {
  const { database, log, modules, settings } = deps
  const clock = deps.clock ?? { now: nowMicros, monotonic: () => performance.now() }
  const all = modules.flatMap((module) => module.retention ?? [])
  const retentions = recordKinds.flatMap((kind): Retention[] => all.filter((each) => each.kind === kind))
  const stopping = new AbortController()
  const { signal } = stopping
  const loops: Promise<void>[] = []
  let rounds: Promise<void> = Promise.resolve()
  let lastRoundMs: number | undefined
  let collect: () => Promise<void> = () => Promise.resolve()

  /** Runs one at a time, for all callers. */
  function withLock(work: () => Promise<void>): Promise<void> {
    rounds = rounds.then(work)
    return rounds
  }

  async function run(task: MaintenanceTask): Promise<void> {
    if (signal.aborted) return
    try {
      await task.run(signal)
    } catch (error) {
      if (!signal.aborted) log.error('upkeep.failed', `The task "${task.name}" failed`, { task: task.name, error })
    }
  }

  async function every(seconds: number, work: () => Promise<void>, firstMs: number): Promise<void> {
    await wait(firstMs)
    while (!signal.aborted) {
      await withLock(work)
      await wait(seconds * 1000)
    }
  }

  const wait = (milliseconds: number): Promise<void> =>
    delay(milliseconds, undefined, { signal, ref: false }).catch(() => undefined)

  const reclaim = (): Promise<void> =>
    database.reclaim(signal).catch((error: unknown) => {
      if (!signal.aborted) log.error('retention.failed', 'Could not shrink the database', { error })
    })

  const gauges: Gauge[] = [
    {
      key: 'garbagecollector.last_round_age_seconds',
      about: 'Seconds since the last run of the garbage collector ended.',
      read() {
        if (lastRoundMs === undefined) throw new Error('no run has ended')
        return Math.round((clock.monotonic() - lastRoundMs) / 1000)
      },
    },
  ]

  return {
    name: 'maintenance',
    gauges,
    routes: createMaintenanceRoutes({
      retentions,
      cancelOld: deps.cancelOld,
      log,
      purged: () => void withLock(reclaim),
    }),
    collect: () => withLock(() => collect()),
    start() {
      const collector = createCollector({
        retentions,
        limits: settings,
        database,
        guard: createClockGuard({ ...clock, newest: deps.newest }),
        log,
        now: clock.now,
      })
      const tasks = modules.flatMap((module) => module.maintenance ?? [])
      const round = async (): Promise<void> => {
        await collector.round(signal)
        lastRoundMs = clock.monotonic()
      }
      collect = async () => {
        for (const task of tasks) await run(task)
        await round()
      }
      const firstMs = Math.random() * MAX_FIRST_DELAY_MS
      loops.push(every(settings.intervalSeconds, round, firstMs))
      for (const task of tasks) loops.push(every(task.everySeconds, () => run(task), firstMs))
      return Promise.resolve()
    },
    async stop() {
      stopping.abort()
      await Promise.all([...loops, rounds])
    },
  }
}

export { maintenanceSettings } from './settings.ts'
