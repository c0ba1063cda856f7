/** The clock of a server. Tests replace it. */
import { nowMicros, setBacksSoFar } from './time.ts'

/** Node fires longer timers immediately. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

export interface Clock {
  /** Microseconds since the epoch. */
  now(): number
  /** How many times the clock has been set back; see `time.ts`. */
  setBacks(): number
  /** Milliseconds of a clock that only goes forward. */
  monotonic(): number
  /** Calls `fn` once after `ms`, at most `LONGEST_TIMER_MS`, unless the returned function is called before. */
  wait(ms: number, fn: () => void): () => void
}

export const machineClock: Clock = {
  now: nowMicros,
  setBacks: setBacksSoFar,
  monotonic: () => performance.now(),
  wait(ms, fn) {
    const timeout = setTimeout(fn, ms)
    return () => clearTimeout(timeout)
  },
}
