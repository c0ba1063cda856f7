/**
 * Status history: one sample per minute, kept for a little more than a day. svc collects the current minute in memory
 * and writes its row at the end of the minute and at shutdown.
 */
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { MaintenanceTask } from '../../core/module.ts'
import { formatMicros } from '../../core/time.ts'
import { addTo, join, quantile, type Histogram } from './histogram.ts'
import { createMonitoringStore } from './store.ts'
import type { GaugeReading, LoopDelay, StatusSample } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

const MICROS_PER_SECOND = 1_000_000
const SECONDS_PER_MINUTE = 60
const MICROS_PER_MINUTE = SECONDS_PER_MINUTE * MICROS_PER_SECOND
/** Several readings per minute catch short peaks. */
const READ_EVERY_SECONDS = 10
/** More than a day, so that a whole day remains after each cleanup. */
export const KEPT_MINUTES = 25 * 60
const TIDY_EVERY_SECONDS = 3600
/** Minutes kept in memory during a storage failure. */
const MAX_UNSAVED = 120

/** Counted final statuses. */
const countedStatuses = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'] as const
type CountName = (typeof countedStatuses)[number] | 'started' | 'trigger_instances' | 'webhooks'

/** Gauge key by name in the sample. The sample has the maximum of the minute. */
const gaugeKeys = {
  request: 'actionrunner.queue.request',
  work: 'actionrunner.queue.work',
  cancel: 'actionrunner.queue.cancel',
  trigger: 'rulesengine.queue.trigger',
  slots_used: 'actionrunner.slots.used',
  slots_size: 'actionrunner.slots.size',
  resident_bytes: 'process.memory.resident_bytes',
  heap_bytes: 'process.memory.heap_bytes',
} as const
type GaugeName = keyof typeof gaugeKeys | 'loop_mean_ms' | 'loop_max_ms'

/** A stored sample. Rows of earlier releases lack newer attributes. */
interface Minute {
  /** Seconds of the minute in which the server ran. */
  seconds: number
  gauges: Partial<Record<GaugeName, number>>
  counts: Partial<Record<CountName, number>>
  /** Durations of finished runs. */
  runs: Histogram
}

export interface HistoryRecorder {
  /** Counts the metrics that samples contain; ignores others. */
  metrics: Metrics
  maintenance: MaintenanceTask[]
  start(): void
  /** Reads the gauges and the clock. Runs on a timer after the start. */
  tick(): void
  /** @param first first minute, counted from the epoch. @param step minutes per sample */
  read(first: number, step: number): StatusSample[]
  /** The current minute. */
  minuteNow(): number
  stop(): Promise<void>
}

export interface HistoryDeps {
  database: Database
  log: Log
  readonly readings: () => readonly GaugeReading[]
  readonly loopDelay: () => LoopDelay
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createHistory({ database, log, readings, loopDelay, now }: HistoryDeps): HistoryRecorder {
  const store = createMonitoringStore(database)
  const minuteNow = (): number => Math.floor(now() / MICROS_PER_MINUTE)
  /** Unsaved samples by minute. */
  const unsaved = new Map<number, Minute>()
  let number = minuteNow()
  let current: Minute = emptyMinute()
  /** End of the seconds counted in `current`, in microseconds; undefined: not started. */
  let countedUntil: number | undefined
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()
  let hasFailed = false

  function count(name: CountName, by = 1): void {
    current.counts[name] = (current.counts[name] ?? 0) + by
  }

  function readGauges(): void {
    const values = new Map(readings().map(({ key, value }) => [key, value]))
    const { mean, max } = loopDelay()
    raise('loop_mean_ms', mean)
    raise('loop_max_ms', max)
    // The object above has exactly these names.
    for (const [name, key] of Object.entries(gaugeKeys) as [GaugeName, string][]) raise(name, values.get(key))
  }

  function raise(name: GaugeName, value: number | undefined): void {
    if (value === undefined) return
    current.gauges[name] = Math.max(current.gauges[name] ?? 0, Math.round(value * 100) / 100)
  }

  /** Adds the seconds since the last reading, as far as they belong to the minute. */
  function countSeconds(until: number): void {
    if (countedUntil === undefined) return
    const passed = Math.max(0, until - countedUntil) / MICROS_PER_SECOND
    current.seconds = Math.min(SECONDS_PER_MINUTE, current.seconds + passed)
    countedUntil = until
  }

  /** Switches to the current minute, which is an earlier one after the clock was set back. */
  function turn(at: number): void {
    const next = Math.floor(at / MICROS_PER_MINUTE)
    if (next === number) return
    countSeconds(next === number + 1 ? next * MICROS_PER_MINUTE : at)
    unsaved.set(number, current)
    for (const oldest of unsaved.keys()) {
      if (unsaved.size <= MAX_UNSAVED) break
      unsaved.delete(oldest)
    }
    // After a clock set back, the minute can have a sample.
    current = minuteOf(next)
    number = next
    void save()
  }

  function stored(first: number, last: number): Map<number, Minute> {
    const minutes = new Map(store.samples(first, last).map((row) => [row.minute, parseMinute(row.sample)]))
    for (const [minute, sample] of unsaved) if (minute >= first && minute <= last) minutes.set(minute, sample)
    return minutes
  }

  function minuteOf(minute: number): Minute {
    return stored(minute, minute).get(minute) ?? emptyMinute()
  }

  /** Writes all unsaved samples in one transaction. After a failure they wait for the next minute. */
  function save(): Promise<void> {
    writing = writing.then(async () => {
      const rows = [...unsaved]
      if (rows.length === 0) return
      const steps = rows.map(([minute, sample]) => store.put({ minute, sample: writeJson(sample) }))
      try {
        await database.write({ steps, facts: [], isUnpromised: true })
      } catch (error) {
        reportFailure(error)
        return
      }
      hasFailed = false
      for (const [minute, sample] of rows) if (unsaved.get(minute) === sample) unsaved.delete(minute)
    })
    return writing
  }

  function reportFailure(error: unknown): void {
    if (!hasFailed) log.warning('status_history.not_stored', 'Could not save a status sample', { error })
    hasFailed = true
  }

  function tick(): void {
    const at = now()
    turn(at)
    countSeconds(at)
    readGauges()
  }

  /** Ticks at fixed seconds of each minute, so that counts belong to their minute. */
  function schedule(): void {
    const every = READ_EVERY_SECONDS * MICROS_PER_SECOND
    const waitMs = Math.ceil((every - (now() % every)) / 1000)
    timer = setTimeout(() => {
      schedule()
      try {
        tick()
      } catch (error) {
        reportFailure(error)
      }
    }, waitMs).unref()
  }

  return {
    metrics: {
      count(name, labels, by = 1) {
        if (by < 1 || !('status' in labels)) return
        if (name === 'execution.status' && labels.status === 'running') count('started', by)
        if (name === 'execution.ended') {
          const status = countedStatuses.find((each) => each === labels.status)
          if (status !== undefined) count(status, by)
        }
      },
      time(name, labels, milliseconds) {
        if (name === 'execution.run') addTo(current.runs, milliseconds)
        else if (name === 'trigger.processed') count('trigger_instances')
        else if (name === 'http.response' && 'route' in labels && isDelivery(labels)) count('webhooks')
      },
    },
    maintenance: [
      {
        name: 'status history',
        everySeconds: TIDY_EVERY_SECONDS,
        async run() {
          const last = minuteNow()
          // Deletes samples from the future too: a wrong clock made them.
          await database.write({ steps: [store.keep(last - KEPT_MINUTES, last)], facts: [], isUnpromised: true })
        },
      },
    ],
    start() {
      if (timer !== undefined) return
      const at = now()
      number = Math.floor(at / MICROS_PER_MINUTE)
      // A server stopped within this minute has saved its part.
      current = mergeMinutes([minuteOf(number), current])
      countedUntil = at
      readGauges()
      schedule()
    },
    tick,
    read(first, step) {
      const at = now()
      turn(at)
      countSeconds(at)
      const minutes = stored(first, number - 1)
      if (first <= number) minutes.set(number, current)
      const groups = new Map<number, Minute[]>()
      for (const [minute, sample] of minutes) {
        const begin = minute - (minute % step)
        groups.set(begin, [...(groups.get(begin) ?? []), sample])
      }
      return [...groups]
        .toSorted(([one], [other]) => one - other)
        .map(([begin, samples]) => sampleOf(begin, mergeMinutes(samples)))
    },
    minuteNow,
    async stop() {
      clearTimeout(timer)
      timer = undefined
      if (countedUntil === undefined) return
      const at = now()
      turn(at)
      countSeconds(at)
      countedUntil = undefined
      unsaved.set(number, current)
      await save()
    },
  }
}

const emptyMinute = (): Minute => ({ seconds: 0, gauges: {}, counts: {}, runs: [] })

function parseMinute(text: string): Minute {
  return { ...emptyMinute(), ...(readJson(text) as Partial<Minute>) } // as `save` has written it
}

/** Adds counts and takes the maximum of gauges. */
function mergeMinutes(minutes: readonly Minute[]): Minute {
  const merged = emptyMinute()
  for (const { seconds, gauges, counts } of minutes) {
    merged.seconds += seconds
    // The objects have exactly these names.
    for (const [name, value] of Object.entries(gauges) as [GaugeName, number][]) {
      merged.gauges[name] = Math.max(merged.gauges[name] ?? 0, value)
    }
    for (const [name, value] of Object.entries(counts) as [CountName, number][]) {
      merged.counts[name] = (merged.counts[name] ?? 0) + value
    }
  }
  merged.runs = join(minutes.map(({ runs }) => runs))
  return merged
}

function sampleOf(minute: number, { seconds, gauges, counts, runs }: Minute): StatusSample {
  const gauge = (name: GaugeName): number => gauges[name] ?? 0
  const counted = (name: CountName): number => counts[name] ?? 0
  const half = quantile(runs, 0.5)
  const most = quantile(runs, 0.95)
  return {
    timestamp: formatMicros(minute * MICROS_PER_MINUTE),
    seconds: Math.round(seconds * 10) / 10,
    queues: { request: gauge('request'), work: gauge('work'), cancel: gauge('cancel'), trigger: gauge('trigger') },
    slots: { used: gauge('slots_used'), size: gauge('slots_size') },
    executions: {
      started: counted('started'),
      succeeded: counted('succeeded'),
      failed: counted('failed'),
      timeout: counted('timeout'),
      canceled: counted('canceled'),
      abandoned: counted('abandoned'),
    },
    run_seconds: half === undefined || most === undefined ? null : { p50: inSeconds(half), p95: inSeconds(most) },
    trigger_instances: counted('trigger_instances'),
    webhooks: counted('webhooks'),
    event_loop: { mean_ms: gauge('loop_mean_ms'), max_ms: gauge('loop_max_ms') },
    memory: { resident_bytes: gauge('resident_bytes'), heap_bytes: gauge('heap_bytes') },
  }
}

/** Rounded to the precision of a histogram. */
function inSeconds(milliseconds: number): number {
  return Number((milliseconds / 1000).toPrecision(3))
}

/** An accepted webhook request. */
function isDelivery({ method, route, status }: { method: string; route: string; status?: string }): boolean {
  return method === 'POST' && route.startsWith('/webhooks/') && status?.startsWith('2') === true
}
