/** What is known of the server's own state. */
import type { LogMessage } from '../../log.ts'

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
  /** Wire timestamp. */
  startedAt: string
  readonly urls: () => Readonly<Record<'auth' | 'api' | 'stream', string>>
  basePath: string
  /** Reasons of `/readyz`. */
  readonly notReady: () => readonly string[]
  /** Whether the module is there, and on. */
  readonly hasModule: (name: string) => boolean
  readonly isEnabled: (module: string) => boolean
}
