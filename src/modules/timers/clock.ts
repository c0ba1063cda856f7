/** Time as timers see it; the tests have one of their own. */
export interface Clock {
  /** Microseconds since the epoch. */
  now(): number
  /** How often it has gone back so far; see `time.ts`. */
  setBacks(): number
  /** Calls once after a time, unless the returned function was called before. */
  wait(ms: number, fn: () => void): () => void
}
