/** Samples of how the server was, and what is drawn of them. */
import type { StatusSample } from '../../api/records.ts'
import type { ChartSeries } from '../../components/chart/chart.tsx'
import { formatSeconds } from '../../components/time.tsx'

export interface StatusRange {
  /** In the address. */
  name: 'hour' | 'day'
  title: string
  lengthMs: number
  /** Minutes that the server joins to one sample. */
  step: number
}

const MINUTE_MS = 60_000

export const ranges: readonly [StatusRange, StatusRange] = [
  { name: 'hour', title: 'Last hour', lengthMs: 60 * MINUTE_MS, step: 1 },
  { name: 'day', title: 'Last day', lengthMs: 24 * 60 * MINUTE_MS, step: 5 },
]

/** Later samples replace earlier ones of the same minute. @returns in the order of time */
export function mergeSamples(known: readonly StatusSample[], fresh: readonly StatusSample[]): StatusSample[] {
  const merged = new Map([...known, ...fresh].map((sample) => [sample.timestamp, sample]))
  return [...merged.values()].toSorted((one, other) => (one.timestamp < other.timestamp ? -1 : 1))
}

export interface Window {
  /** Milliseconds since the epoch, by the clock of the server. */
  from: number
  to: number
  samples: readonly StatusSample[]
}

/** The range that ends with the newest sample; what is older goes. */
export function windowOf(samples: readonly StatusSample[], { lengthMs, step }: StatusRange): Window {
  const newest = samples.at(-1)
  const to = newest === undefined ? lengthMs : Date.parse(newest.timestamp) + step * MINUTE_MS
  const from = to - lengthMs
  return { from, to, samples: samples.filter(({ timestamp }) => Date.parse(timestamp) >= from) }
}

/** Of a minute that has just begun nothing can be said. */
const MIN_SECONDS = 5
/** One execution in the first seconds of a server is not a dozen in a minute. */
const MIN_RATED_SECONDS = 30

export interface Plot {
  title: string
  about: string
  kind: 'lines' | 'bars'
  unit: 'count' | 'rate' | 'seconds' | 'milliseconds' | 'bytes'
  series: readonly ChartSeries[]
  limit?: { value: number; name: string }
}

/** The guideline of the specification, as `GET /status` tells it too. */
const QUEUE_LIMIT = 10

export function plotsOf(samples: readonly StatusSample[]): { times: number[]; plots: Plot[] } {
  // Only the last one goes on; a short one before it is of a server that came or went, and is all there will be of it.
  const told = samples.filter(({ seconds }, i) => seconds >= MIN_SECONDS || i < samples.length - 1)
  const series = (
    name: string,
    colour: ChartSeries['colour'],
    line: NonNullable<ChartSeries['line']>,
    value: (sample: StatusSample) => number | undefined,
  ): ChartSeries => ({ name, colour, line, values: told.map(value) })
  const rate =
    (count: (sample: StatusSample) => number) =>
    (sample: StatusSample): number =>
      (count(sample) * 60) / Math.max(sample.seconds, MIN_RATED_SECONDS)
  const plots: Plot[] = [
    {
      title: 'Executions',
      about: 'ended per minute, by outcome',
      kind: 'bars',
      unit: 'rate',
      series: [
        series(
          'succeeded',
          'success',
          'solid',
          rate(({ executions }) => executions.succeeded),
        ),
        series(
          'failed',
          'failure',
          'solid',
          rate(({ executions: { failed, timeout, abandoned } }) => failed + timeout + abandoned),
        ),
        series(
          'canceled',
          'neutral',
          'solid',
          rate(({ executions }) => executions.canceled),
        ),
      ],
    },
    {
      title: 'Throughput',
      about: 'executions per minute',
      kind: 'lines',
      unit: 'rate',
      series: [
        series(
          'started',
          'running',
          'solid',
          rate(({ executions }) => executions.started),
        ),
        series('ended', 'success', 'dashed', rate(endedOf)),
      ],
    },
    {
      title: 'Run time',
      about: 'p50 and p95',
      kind: 'lines',
      unit: 'seconds',
      series: [
        series('p50', 'running', 'solid', ({ run_seconds: runs }) => runs?.p50),
        series('p95', 'waiting', 'dashed', ({ run_seconds: runs }) => runs?.p95),
      ],
    },
    {
      title: 'Queues',
      about: 'maximum length; keep below 10',
      kind: 'lines',
      unit: 'count',
      limit: { value: QUEUE_LIMIT, name: 'guideline' },
      series: [
        series('queued', 'running', 'solid', ({ queues }) => queues.request),
        series('starting', 'success', 'dashed', ({ queues }) => queues.work),
        series('canceling', 'failure', 'dotted', ({ queues }) => queues.cancel),
        series('trigger instances', 'waiting', 'dashed', ({ queues }) => queues.trigger),
      ],
    },
    {
      title: 'Slots',
      about: 'maximum of concurrent executions',
      kind: 'lines',
      unit: 'count',
      series: [
        series('used', 'running', 'solid', ({ slots }) => slots.used),
        series('total', 'neutral', 'dotted', ({ slots }) => slots.size),
      ],
    },
    {
      title: 'Events',
      about: 'per minute',
      kind: 'lines',
      unit: 'rate',
      series: [
        series(
          'trigger instances',
          'running',
          'solid',
          rate((sample) => sample.trigger_instances),
        ),
        series(
          'webhook requests',
          'waiting',
          'dashed',
          rate((sample) => sample.webhooks),
        ),
      ],
    },
    {
      title: 'Event loop delay',
      about: 'time until the next callback runs',
      kind: 'lines',
      unit: 'milliseconds',
      series: [
        series('mean', 'running', 'solid', ({ event_loop: loop }) => loop.mean_ms),
        series('max', 'waiting', 'dashed', ({ event_loop: loop }) => loop.max_ms),
      ],
    },
    {
      title: 'Memory',
      about: 'maximum of the server process',
      kind: 'lines',
      unit: 'bytes',
      series: [
        series('resident', 'running', 'solid', ({ memory }) => memory.resident_bytes),
        series('heap', 'success', 'dashed', ({ memory }) => memory.heap_bytes),
      ],
    },
  ]
  return { times: told.map(({ timestamp }) => Date.parse(timestamp)), plots }
}

function endedOf({ executions }: StatusSample): number {
  const { succeeded, failed, timeout, canceled, abandoned } = executions
  return succeeded + failed + timeout + canceled + abandoned
}

/** `0.4`, `12`, `1.2 k` */
export function formatRate(perMinute: number): string {
  return perMinute < 999.5 ? shortNumber(perMinute) : `${shortNumber(perMinute / 1000)} k`
}

/** `0 ms`, `0.4 ms`, `12 ms`; of a second and more as every duration. A machine that slept has delays of hours. */
export function formatMilliseconds(milliseconds: number): string {
  return milliseconds < 999.5 ? `${shortNumber(milliseconds)} ms` : formatSeconds(milliseconds / 1000)
}

function shortNumber(value: number): string {
  return value >= 9.95 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1)
}
