/** The statuses that an execution has been in, and for how long. */
import { isFinalStatus } from '../../../api/execution-status.ts'
import type { ExecutionRecord, ExecutionStatus } from '../../../api/records.ts'

export interface Segment {
  status: ExecutionStatus
  /** Wire timestamp. */
  at: string
  /** Seconds from the start of the execution. */
  offset: number
  /** Seconds; undefined for a final status, in which it stays. */
  duration: number | undefined
  /** Of the whole, from 0 to 1. */
  share: number
}

export interface StatusTimeline {
  segments: Segment[]
  /** Seconds from the first to the last status, or to now. */
  total: number
}

/** @param now milliseconds since the epoch */
export function timelineOf({ log }: Pick<ExecutionRecord, 'log'>, now: number): StatusTimeline {
  const first = log[0]
  const last = log.at(-1)
  if (first === undefined || last === undefined) return { segments: [], total: 0 }
  const start = microsOf(first.timestamp)
  // The clock of this machine may be behind that of the server.
  const end = isFinalStatus(last.status) ? microsOf(last.timestamp) : Math.max(now * 1000, microsOf(last.timestamp))
  const total = Math.max(0, end - start) / 1e6
  const segments = log.map(({ status, timestamp }, i): Segment => {
    const at = microsOf(timestamp)
    const next = log[i + 1]
    const isLast = next === undefined
    const duration =
      isLast && isFinalStatus(status) ? undefined : Math.max(0, (isLast ? end : microsOf(next.timestamp)) - at) / 1e6
    return {
      status,
      at: timestamp,
      offset: Math.max(0, at - start) / 1e6,
      duration,
      share: total === 0 ? 0 : (duration ?? 0) / total,
    }
  })
  return { segments, total }
}

/** `Date.parse` knows milliseconds alone. */
function microsOf(timestamp: string): number {
  const [, fraction = ''] = /\.(\d+)/.exec(timestamp) ?? []
  const seconds = Math.floor(Date.parse(timestamp) / 1000)
  return seconds * 1e6 + Number(fraction.padEnd(6, '0').slice(0, 6))
}

/** Shorter times have a meaning here: `0.4 ms`, `35 ms`, `1.25 s`. */
export function formatDuration(seconds: number): string {
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 60) return `${seconds.toFixed(2)} s`
  const whole = Math.floor(seconds)
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`
}
