/**
 * How the server was: one sample a minute, kept for a little more than a day, so that an operator who comes later sees what
 * has happened. The minute that runs is in memory; its row is written when it is over, and when the server stops.
 */
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { MaintenanceTask } from '../../core/module.ts'
import { formatMicros } from '../../core/time.ts'
import { addTo, join, quantile, type Histogram } from './histogram.ts'
import { createMonitoringStore } from './store.ts'
import type { GaugeReading, LoopDelay, StatusSample } from './types.ts'

const MICROS_PER_SECOND = 1_000_000
const SECONDS_PER_MINUTE = 60
const MICROS_PER_MINUTE = SECONDS_PER_MINUTE * MICROS_PER_SECOND
/** Several readings per minute catch short peaks. */
const READ_EVERY_SECONDS = 10
/** So that there is a whole day whenever old ones go. */
export const KEPT_MINUTES = 25 * 60
const TIDY_EVERY_SECONDS = 3600
/** Minutes that wait for a storage that cannot be written. */
const MAX_UNSAVED = 120

/** Of a status in which an execution ends, or of the begin of its run. */
const countedStatuses = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'] as const
type CountName = (typeof countedStatuses)[number] | 'started' | 'trigger_instances' | 'webhooks'

/** Name in the sample → key of the gauge; the highest reading of a minute counts. */
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

/** As it is stored. What a later release adds is missing in rows of an earlier one. */
interface Minute {
  /** Of the minute, for which the server was there. */
  seconds: number
  gauges: Partial<Record<GaugeName, number>>
  counts: Partial<Record<CountName, number>>
  /** Lengths of runs that have ended. */
  runs: Histogram
}

export interface HistoryRecorder {
  /** Counts what it keeps, and passes over everything else. */
  metrics: Metrics
  maintenance: MaintenanceTask[]
  start(): void
  /** A look at the gauges, and at the clock; called by itself while it is started. */
  tick(): void
  /** @param first the minute to begin with, of the epoch. @param step minutes that are joined */
  read(first: number, step: number): StatusSample[]
  /** The minute that `now` is in. */
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
  /** Rows that could not be written yet, by minute. */
  const unsaved = new Map<number, Minute>()
  let number = minuteNow()
  let current: Minute = emptyMinute()
  /** Since when `current` lacks seconds, in microseconds; undefined: not started. */
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
    // The names of the object above.
    for (const [name, key] of Object.entries(gaugeKeys) as [GaugeName, string][]) raise(name, values.get(key))
  }

  function raise(name: GaugeName, value: number | undefined): void {
    if (value === undefined) return
    current.gauges[name] = Math.max(current.gauges[name] ?? 0, Math.round(value * 100) / 100)
  }

  /** Adds the time since the last reading that belongs to the minute. */
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
    // After the clock was set back it may have been before.
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

  /** One unit with all that waits; what cannot be written waits for the next minute. */
  function save(): Promise<void> {
    writing = writing.then(async () => {
      const rows = [...unsaved]
      if (rows.length === 0) return
      const steps = rows.map(([minute, sample]) => store.put({ minute, sample: JSON.stringify(sample) }))
      try {
        await database.write({ steps, facts: [] })
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

  /** At the same seconds of each minute, so that counts belong to their minute. */
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
          // Those that seem to come from the future are of a clock that was wrong.
          await database.write({ steps: [store.keep(last - KEPT_MINUTES, last)], facts: [] })
        },
      },
    ],
    start() {
      if (timer !== undefined) return
      const at = now()
      number = Math.floor(at / MICROS_PER_MINUTE)
      // A server that was stopped within this minute has left what it had.
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
  return { ...emptyMinute(), ...(JSON.parse(text) as Partial<Minute>) } // as `save` has written it
}

/** Counts are added up, of gauges the highest counts. */
function mergeMinutes(minutes: readonly Minute[]): Minute {
  const merged = emptyMinute()
  for (const { seconds, gauges, counts } of minutes) {
    merged.seconds += seconds
    // The names of the objects.
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

/** As exact as a histogram is. */
function inSeconds(milliseconds: number): number {
  return Number((milliseconds / 1000).toPrecision(3))
}

/** An accepted webhook request. */
function isDelivery({ method, route, status }: { method: string; route: string; status?: string }): boolean {
  return method === 'POST' && route.startsWith('/webhooks/') && status?.startsWith('2') === true
}
