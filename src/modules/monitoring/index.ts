/** Monitoring: metrics, gauges of every module, event loop delay and the last problems. */
import type { Bus } from '../../bus/index.ts'
import type { Database } from '../../db/index.ts'
import type { RootLog } from '../../lib/log/index.ts'
import { combineMetrics, type Metrics } from '../../core/metrics.ts'
import type { Gauge, Module, Series } from '../../core/module.ts'
import { nowMicros } from '../../core/time.ts'
import type { MonitoringPorts } from './ports.ts'
import { countFacts } from './count-facts.ts'
import { createHistory } from './history.ts'
import { createHistoryRoute } from './history-route.ts'
import { watchLoopDelay } from './loop-delay.ts'
import { processGauges } from './process-gauges.ts'
import { createPrometheus } from './prometheus.ts'
import { createMonitoringRoutes } from './routes.ts'
import { createStatsd } from './statsd.ts'
import { createServiceRegistryRoutes } from './service-registry.ts'
import { createStatusRoute } from './status.ts'
import { watchTraceGrowth } from './trace-growth.ts'
import type { Tracing } from './tracing/index.ts'
import type { GaugeReading, ServerFacts, StatusSource } from './types.ts'

export interface Monitoring extends Module, StatusSource {
  /** For measurements that bus events do not provide. */
  metrics: Metrics
  /** Sets the modules whose gauges are read, and the facts for `GET /v1/status`. */
  observe(modules: readonly Module[], server: Omit<ServerFacts, 'modules'>): void
}

export interface MonitoringDeps extends MonitoringPorts {
  database: Database
  bus: Bus
  log: RootLog
  /** Section `metrics` of the configuration. */
  config: {
    readonly driver: 'noop' | 'statsd' | 'echo'
    readonly host: string
    readonly port: number
    readonly prefix: string
    readonly sample_rate: number
    readonly prometheus: boolean
    readonly prometheus_token: string
  }
  /** Section `tracing`. */
  tracing: {
    readonly otlp_endpoint: string
    readonly otlp_headers: Readonly<Record<string, string>>
    readonly service_name: string
  }
  /** Microseconds since the epoch; default the system clock. */
  readonly now?: () => number
}

export function createMonitoring(deps: MonitoringDeps): Monitoring {
  const { database, bus, log, config } = deps
  const loopDelay = watchLoopDelay()
  const watched: Gauge[] = []
  const series: Series[] = []
  let server: ServerFacts | undefined
  const readings = (): GaugeReading[] => watched.flatMap(readingOf)
  const { driver, sample_rate: sampleRate } = config
  const statsd = driver === 'noop' ? undefined : createStatsd({ ...config, driver, sampleRate, readings, log })
  const prometheus = config.prometheus ? createPrometheus({ readings, series: () => series, database, log }) : undefined
  const { now = nowMicros } = deps
  const history = createHistory({ database, log, readings, loopDelay: () => loopDelay.read(), now })
  const metrics = combineMetrics([statsd, prometheus?.metrics, history.metrics].filter((sink) => sink !== undefined))
  const stopCounting = countFacts(bus, metrics)
  const growth = watchTraceGrowth({ bus, log, now })
  const source: StatusSource = {
    readings,
    loopDelay: () => loopDelay.read(),
    lastProblems: () => log.recent(),
    growing: () => growth.growing(),
    cut: () => growth.cut(),
  }
  let tracing: Tracing | undefined

  async function startTracing(): Promise<void> {
    const { otlp_endpoint: endpoint, otlp_headers: headers, service_name: serviceName } = deps.tracing
    if (endpoint === '') return
    const { startTracing: start } = await import('./tracing/index.ts')
    tracing = start({ endpoint, headers, serviceName, log, bus, causeOf: deps.causeOf })
  }

  return {
    ...source,
    name: 'monitoring',
    gauges: [
      ...processGauges({ database, loopDelay: () => loopDelay.read() }),
      {
        key: 'tracing.waiting_spans',
        about: 'Spans that wait for export.',
        read: () => tracing?.waitingCount ?? 0,
      },
      {
        key: 'tracing.dropped_spans',
        about: 'Spans dropped since start.',
        read: () => tracing?.droppedCount ?? 0,
      },
    ],
    routes: [
      createStatusRoute(source, () => server),
      ...createServiceRegistryRoutes(() => server),
      createHistoryRoute(history),
      ...(prometheus === undefined ? [] : createMonitoringRoutes({ prometheus, token: config.prometheus_token })),
    ],
    maintenance: history.maintenance,
    metrics,
    observe(modules, facts) {
      server = { ...facts, modules }
      watched.push(...modules.flatMap((module) => module.gauges ?? []))
      series.push(...modules.flatMap((module) => module.series ?? []))
    },
    start() {
      loopDelay.start()
      statsd?.start()
      history.start()
      return startTracing()
    },
    async stop() {
      loopDelay.stop()
      stopCounting()
      growth.stop()
      await Promise.all([history.stop(), statsd?.stop(), tracing?.stop()])
    },
  }
}

/** Empty if the gauge cannot be read now. */
function readingOf(gauge: Gauge): GaugeReading[] {
  try {
    const value = gauge.read()
    return Number.isFinite(value) ? [{ key: gauge.key, about: gauge.about, value }] : []
  } catch {
    return []
  }
}

export type { GaugeReading, LoopDelay, ServerFacts, StatusSource } from './types.ts'
