/**
 * Keeps a wrong clock from deleting everything. A clock that has leapt makes all records old at once, so nothing goes by its
 * age for a while after a leap, and for a shorter while after a start before which nothing has happened for long: machines
 * often learn the time only after they have started.
 */
import { microsOf } from '../../core/time.ts'

export interface ClockGuard {
  /** Why nothing may go by its age now; undefined: it may. */
  reason(): string | undefined
}

/** A leap is the difference between the clock and the time that has really passed. */
const LEAP_MS = 3_600_000
const AFTER_LEAP_MS = 24 * 3_600_000
const QUIET_MS = 24 * 3_600_000
const AFTER_QUIET_MS = 3_600_000

/**
 * @param deps.now microseconds since the epoch, by the clock
 * @param deps.monotonic milliseconds that have really passed since any beginning
 * @param deps.newest wire timestamp of the newest record; undefined: there is none
 */
export function createClockGuard(deps: {
  readonly now: () => number
  readonly monotonic: () => number
  readonly newest: () => string | undefined
}): ClockGuard {
  const { monotonic } = deps
  const wallMs = (): number => deps.now() / 1000
  let offsetMs = wallMs() - monotonic()
  let heldUntil = -Infinity
  let why = ''
  const newest = deps.newest()
  if (newest !== undefined && wallMs() - microsOf(newest) / 1000 > QUIET_MS) {
    heldUntil = monotonic() + AFTER_QUIET_MS
    why = 'the newest record is more than a day old, and the clock of the machine may still be put right'
  }
  return {
    reason() {
      const leapMs = wallMs() - monotonic() - offsetMs
      offsetMs += leapMs
      // Backwards nothing becomes old.
      if (leapMs > LEAP_MS) {
        heldUntil = monotonic() + AFTER_LEAP_MS
        why = `the clock has leapt forward by ${Math.round(leapMs / 3_600_000)} hours`
      }
      return monotonic() < heldUntil ? why : undefined
    },
  }
}
