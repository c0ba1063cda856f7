/** The clock of timers. Tests replace it. */
export interface Clock {
  /** Microseconds since the epoch. */
  now(): number
  /** How many times the clock has been set back; see `time.ts`. */
  setBacks(): number
  /** Calls `fn` once after `ms`, unless the returned function is called before. */
  wait(ms: number, fn: () => void): () => void
}
