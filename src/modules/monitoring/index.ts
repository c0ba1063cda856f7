/** What operators watch: gauges of every module, delays of the event loop, the last problems. */
import type { Database } from '../../db/database.ts'
import type { RootLog } from '../../log.ts'
import type { Gauge, Module } from '../../module.ts'
import { watchLoopDelay } from './loop-delay.ts'
import { processGauges } from './process-gauges.ts'
import type { GaugeReading, Watch } from './types.ts'

export interface Monitoring extends Module, Watch {
  /** Whose gauges are read. */
  watch(modules: readonly Module[]): void
}

export function createMonitoring(deps: { database: Database; log: Pick<RootLog, 'recent'> }): Monitoring {
  const { database, log } = deps
  const loopDelay = watchLoopDelay()
  const watched: Gauge[] = []
  return {
    name: 'monitoring',
    gauges: processGauges({ database, loopDelay: () => loopDelay.read() }),
    watch(modules) {
      watched.push(...modules.flatMap((module) => module.gauges ?? []))
    },
    readings: () => watched.flatMap(readingOf),
    loopDelay: () => loopDelay.read(),
    lastProblems: () => log.recent(),
    start() {
      loopDelay.start()
      return Promise.resolve()
    },
    stop() {
      loopDelay.stop()
      return Promise.resolve()
    },
  }
}

/** Nothing when it cannot be read now. */
function readingOf(gauge: Gauge): GaugeReading[] {
  try {
    const value = gauge.read()
    return Number.isFinite(value) ? [{ key: gauge.key, about: gauge.about, value }] : []
  } catch {
    return []
  }
}

export type { GaugeReading, LoopDelay, Watch } from './types.ts'
