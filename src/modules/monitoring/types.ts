/** What is known of the server's own state. */
import type { LogMessage } from '../../lib/log/index.ts'

/** A gauge of a module, read now. */
export interface GaugeReading {
  key: string
  about: string
  value: number
}

/** How late timers were, in milliseconds: how long the event loop was busy with something else. */
export interface LoopDelay {
  mean: number
  p99: number
  max: number
}

/** What `GET /v1/status` and others show of it. */
export interface Watch {
  /** Of every module, and of the process; what cannot be read is left out. */
  readings(): GaugeReading[]
  /** Of the last 10 to 20 seconds. */
  loopDelay(): LoopDelay
  /** The last 50 messages at WARNING or above, oldest first. */
  lastProblems(): readonly LogMessage[]
}

/** What the composition root knows of the server. */
export interface ServerFacts {
  /** Those that are there; one that is off does no work. */
  modules: readonly { name: string; isOff?: boolean }[]
  /** Wire timestamp. */
  startedAt: string
  readonly urls: () => Readonly<Record<'auth' | 'api' | 'stream', string>>
  basePath: string
  /** Reasons of `/readyz`. */
  readonly notReady: () => readonly string[]
}

/** `GET /status` */
export interface StatusRecord {
  status: 'ok' | 'attention'
  /** What needs attention, a sentence each. */
  attention: string[]
  version: string
  pid: number
  /** Wire timestamp. */
  started_at: string
  uptime_seconds: number
  urls: Readonly<Record<'auth' | 'api' | 'stream', string>>
  components: ComponentStatus[]
  /** Each should stay below its limit. */
  queues: QueueStatus[]
  /** How long others had to wait in the last seconds. */
  event_loop: { mean_ms: number; p99_ms: number; max_ms: number }
  /** Of the file system of the base path; null when it does not answer. */
  disk: DiskStatus | null
  /** Every gauge, by its key. */
  gauges: Record<string, number>
  /** The last messages at WARNING or above, oldest first. */
  problems: readonly LogMessage[]
}

export interface ComponentStatus {
  name: string
  about: string
  state: 'running' | 'disabled' | 'not_included'
}

export interface QueueStatus {
  name: string
  length: number
  limit: number
}

export interface DiskStatus {
  free_bytes: number
  total_bytes: number
  free_inodes: number
  total_inodes: number
}

/** `GET /status/history` */
export interface StatusHistory {
  /** Of each sample. */
  step_seconds: number
  /** In the order of time. There is none for a time when the server was not there; the last one is of the minute that runs. */
  samples: StatusSample[]
}

/** How the server was for a while. Of what is no count the highest value is told. */
export interface StatusSample {
  /** Wire timestamp of the beginning. */
  timestamp: string
  /** For how long the server was there. */
  seconds: number
  queues: { request: number; work: number; cancel: number; trigger: number }
  slots: { used: number; size: number }
  /** How many have begun to run, and how many have ended with each status. */
  executions: Record<'started' | 'succeeded' | 'failed' | 'timeout' | 'canceled' | 'abandoned', number>
  /** How long half, and 95 of 100, of the runs that have ended took at most; null when none has. */
  run_seconds: { p50: number; p95: number } | null
  /** That rules were looked at for. */
  trigger_instances: number
  /** Requests to webhooks that were taken in. */
  webhooks: number
  event_loop: { mean_ms: number; max_ms: number }
  memory: { resident_bytes: number; heap_bytes: number }
}
