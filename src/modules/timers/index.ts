/** Timers: triggers that fire at intervals, at a date or by a cron schedule (contract 05, 5.8). */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import { nowMicros, setBacksSoFar } from '../../core/time.ts'
import type { Triggers } from '../triggers/index.ts'
import { createTimerEngine } from './engine.ts'
import type { Clock } from './clock.ts'
import type { TimersSettings } from './settings.ts'
import { createTimerRoutes } from './routes.ts'
import { createTimerStore } from './store.ts'

export interface TimersDeps {
  database: Database
  bus: Bus
  log: Log
  triggers: Triggers
  settings: TimersSettings
  /** Default: the clock of this machine. */
  clock?: Clock
}

export function createTimers({ database, bus, log, triggers, settings, clock = machineClock }: TimersDeps): Module {
  if (!settings.enabled) return { name: 'timers', isOff: true, routes: createTimerRoutes(triggers, undefined) }
  const store = createTimerStore(database)
  const engine = createTimerEngine({ database, store, triggers, bus, log, clock, settings })
  const routes = createTimerRoutes(triggers, store)
  return { name: 'timers', routes, start: () => engine.start(), stop: () => engine.stop() }
}

const machineClock: Clock = {
  now: nowMicros,
  setBacks: setBacksSoFar,
  wait(ms, fn) {
    const timeout = setTimeout(fn, ms)
    return () => clearTimeout(timeout)
  },
}

export { timersSettings } from './settings.ts'
