/** Metrics for Prometheus. svc reads the gauges at each scrape. */
import { readdirSync } from 'node:fs'
import { Counter, Gauge, Registry } from 'prom-client'
import type { Database } from '../../db/index.ts'
import type { RootLog } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Series } from '../../core/module.ts'
import { version } from '../../core/version.ts'
import { createFamilies } from './families.ts'
import type { GaugeReading } from './types.ts'

export interface Prometheus {
  metrics: Metrics
  /** Media type of the text exposition format. */
  mediaType: string
  page(): Promise<string>
}

export interface PrometheusDeps {
  readonly readings: () => readonly GaugeReading[]
  readonly series: () => readonly Series[]
  database: Pick<Database, 'stats'>
  log: Pick<RootLog, 'counts'>
}

export function createPrometheus(deps: PrometheusDeps): Prometheus {
  const registry = new Registry()
  const metrics = createFamilies(registry)
  const gauges = new Map<string, Gauge>()
  const labelled = new Map<string, Gauge>()

  new Gauge({
    name: 'svc_build_info',
    help: 'The version, as labels.',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version, node: process.versions.node }, 1)

  registerTotals(deps, registry)

  function readGauges(): void {
    for (const gauge of gauges.values()) gauge.remove()
    for (const reading of deps.readings()) {
      const { name, value } = exposed(reading)
      let gauge = gauges.get(name)
      if (gauge === undefined) {
        gauge = new Gauge({ name, help: reading.about, registers: [registry] })
        gauges.set(name, gauge)
      }
      gauge.set(value)
    }
    for (const each of deps.series()) readSeries(each)
  }

  function readSeries({ name, about, label, read }: Series): void {
    let gauge = labelled.get(name)
    if (gauge === undefined) {
      gauge = new Gauge({ name, help: about, labelNames: [label], registers: [registry] })
      labelled.set(name, gauge)
    }
    gauge.reset()
    try {
      for (const { of, value } of read()) gauge.set({ [label]: of }, value)
    } catch {
      // Left out this time.
    }
  }

  return {
    metrics,
    mediaType: registry.contentType,
    page() {
      readGauges()
      return registry.metrics()
    },
  }
}

/** Converts to seconds: `event_loop.delay_max_ms` becomes `svc_event_loop_delay_max_seconds`. */
function exposed({ key, value }: GaugeReading): { name: string; value: number } {
  const name = `svc_${key.replace(/\W/g, '_')}`
  return name.endsWith('_ms') ? { name: name.replace(/_ms$/, '_seconds'), value: value / 1000 } : { name, value }
}

/** Counts kept by other modules, and the standard process metrics of Prometheus clients. */
function registerTotals({ database, log }: Pick<PrometheusDeps, 'database' | 'log'>, registry: Registry): void {
  const registers = [registry]
  const total = (name: string, help: string, read: () => number): void => {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })
  }
  new Counter({
    name: 'svc_log_messages_total',
    help: 'Logged messages.',
    labelNames: ['level'],
    registers,
    collect() {
      this.reset()
      for (const [level, count] of Object.entries(log.counts())) this.inc({ level }, count)
    },
  })
  total('svc_database_commits_total', 'Commits.', () => database.stats().commits)
  total('svc_database_syncs_total', 'Commits that have waited for the disk.', () => database.stats().syncs)
  total('svc_database_units_total', 'Changes in all commits.', () => database.stats().units)
  total('process_cpu_seconds_total', 'Processor time.', () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1e6
  })
  const startedAt = Date.now() / 1000 - process.uptime()
  gauge('process_start_time_seconds', 'Start time of the process in seconds since 1970.', () => startedAt)
  gauge('process_resident_memory_bytes', 'Resident memory of the process.', () => process.memoryUsage.rss())
  gauge('process_open_fds', 'Open file descriptors.', countDescriptors)
}

function countDescriptors(): number {
  try {
    // One descriptor is that of this read.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return NaN
  }
}
