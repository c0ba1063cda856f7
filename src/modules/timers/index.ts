/** Timers: triggers that fire at intervals, at a date or by a cron schedule (contract 05, 5.8). */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Rights } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { Clock } from '../../core/clock.ts'
import { isTimerType, type Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { createTimerEngine } from './engine.ts'
import type { TimersSettings } from './settings.ts'
import { createTimerRoutes } from './routes.ts'
import { createTimerStore } from './store.ts'

export interface TimersDeps {
  database: Database
  bus: Bus
  log: Log
  triggers: Triggers
  /** False: rules use the trigger, and all of them are disabled. */
  readonly isUsed: (triggerId: string) => boolean
  /** See `Rules.refsOf`. */
  readonly rulesOf: (triggerId: string, rights: Rights) => string[]
  settings: TimersSettings
  clock: Clock
}

export interface Timers extends Module {
  /** When a timer fires next and when it last fired; undefined: it is no timer, or timers are off. Wire texts. */
  timesOf(trigger: TriggerRecord): { next: string | null; previous: string | null } | undefined
}

export function createTimers(deps: TimersDeps): Timers {
  const { database, bus, log, triggers, isUsed, rulesOf, settings, clock } = deps
  if (!settings.enabled)
    return {
      name: 'timers',
      isOff: true,
      routes: createTimerRoutes({ triggers, rulesOf, timers: undefined }),
      timesOf: () => undefined,
    }
  const store = createTimerStore(database)
  const engine = createTimerEngine({ database, store, triggers, bus, log, clock, isUsed, settings })
  const routes = createTimerRoutes({
    triggers,
    rulesOf,
    timers: { find: (id) => store.find(id), nextOf: (trigger) => engine.nextOf(trigger) },
  })
  return {
    name: 'timers',
    routes,
    timesOf: (trigger) =>
      isTimerType(trigger.type)
        ? { next: engine.nextOf(trigger), previous: store.find(trigger.id)?.fired_timestamp ?? null }
        : undefined,
    start: () => engine.start(),
    stop: () => engine.stop(),
  }
}

export { timersSettings } from './settings.ts'
