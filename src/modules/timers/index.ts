/** Timers: triggers that fire at intervals, at a date or by a cron schedule (contract 05, 5.8). */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Rights, Route } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import type { Clock } from '../../core/clock.ts'
import { isTimerType, type Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { createTimerEngine, type TimerEngine, type TimerTimes } from './engine.ts'
import type { TimersSettings } from './settings.ts'
import { createTimerRoutes } from './routes.ts'
import { createTimerStore } from './store.ts'

export interface TimersDeps {
  database: Database
  bus: Bus
  log: Log
  triggers: Triggers
  /** Whether an enabled rule uses the trigger. */
  readonly isUsed: (triggerId: string) => boolean
  /** See `Rules.refsOf`. */
  readonly rulesOf: (triggerId: string, rights: Rights) => string[]
  settings: TimersSettings
  clock: Clock
}

export interface Timers extends Module {
  /** When the timer of a trigger fires; undefined: it is none, or timers are off. */
  timesOf(triggerId: string, count: number): TimerTimes | undefined
  /** Whether a timer fires at the start for times that passed while the server was off. */
  isMadeUpFor: boolean
  /** The first time of the schedule of a timer after another; undefined: none, or timers are off. Microseconds. */
  dueAfter(trigger: TriggerRecord, afterMicros: number): number | undefined
}

export function createTimers(deps: TimersDeps): Timers {
  const { database, bus, log, triggers, isUsed, rulesOf, settings, clock } = deps
  const { localTimeZone } = settings
  const routesWith = (timesOf: (...about: Parameters<TimerEngine['timesOf']>) => TimerTimes | undefined): Route[] =>
    createTimerRoutes({ triggers, rulesOf, timesOf, localTimeZone, clock })
  if (!settings.enabled) {
    const timesOf = (): undefined => undefined
    const off = { isOff: true, isMadeUpFor: false, timesOf, dueAfter: timesOf }
    return { name: 'timers', routes: routesWith(timesOf), ...off }
  }
  const store = createTimerStore(database)
  const engine = createTimerEngine({ database, store, triggers, bus, log, clock, isUsed, settings })
  return {
    name: 'timers',
    routes: routesWith((trigger, count) => engine.timesOf(trigger, count)),
    isMadeUpFor: settings.missed === 'once',
    dueAfter: (trigger, afterMicros) => (isTimerType(trigger.type) ? engine.dueAfter(trigger, afterMicros) : undefined),
    start: () => engine.start(),
    stop: () => engine.stop(),
    timesOf(triggerId, count) {
      const trigger = triggers.find(triggerId)
      return trigger !== undefined && isTimerType(trigger.type) ? engine.timesOf(trigger, count) : undefined
    },
  }
}

export { timersSettings } from './settings.ts'
