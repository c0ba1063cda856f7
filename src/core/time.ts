/** Microsecond UTC time: `YYYY-MM-DDTHH:MM:SS.ffffffZ` everywhere (contract 00, 0.13). */

const REANCHOR_AFTER_MICROS = 10_000_000
/** A difference between the clocks that rounding cannot explain. */
const SET_MICROS = 1_000_000
/** After a larger step back the clock follows at once: timers cannot wait for the old time to return. */
const MAX_WAIT_MICROS = 600_000_000

let wallMicros = 0
let anchor = 0
let last = 0
let lastMonotonic = 0
let setBacks = 0

/**
 * Microseconds since the epoch, strictly increasing within this process unless the system clock steps back by more than
 * ten minutes; see `setBacksSoFar`.
 *
 * `Date.now()` has milliseconds only, so the fraction comes from the monotonic clock. The function reads the system
 * clock again every ten seconds and after a step. After a small step back, time runs at half speed until both clocks
 * agree: standing still would delay everything that waits for a time.
 */
export function nowMicros(): number {
  const monotonic = performance.now() * 1000
  const wall = Date.now() * 1000
  const isSet = Math.abs(wallMicros + (monotonic - anchor) - wall) > SET_MICROS
  if (isSet || monotonic - anchor > REANCHOR_AFTER_MICROS) {
    wallMicros = wall
    anchor = monotonic
  }
  const now = Math.floor(wallMicros + (monotonic - anchor))
  const behind = last - now
  if (behind > MAX_WAIT_MICROS) {
    setBacks += 1
    last = now
  } else {
    last = behind < 0 ? now : last + Math.max(1, Math.floor((monotonic - lastMonotonic) / 2))
  }
  lastMonotonic = monotonic
  return last
}

/** How often `nowMicros` has stepped back: times computed before may now be far off. */
export function setBacksSoFar(): number {
  nowMicros()
  return setBacks
}

let secondText = ''
let secondOf = -1

/** Formats microseconds since the epoch as ISO 8601 UTC text with six fraction digits. */
export function formatMicros(micros: number): string {
  const second = Math.floor(micros / 1_000_000)
  if (second !== secondOf) {
    secondText = new Date(second * 1000).toISOString().slice(0, 19)
    secondOf = second
  }
  return `${secondText}.${String(micros - second * 1_000_000).padStart(6, '0')}Z`
}

/** The current time as a wire timestamp. */
export function now(): string {
  return formatMicros(nowMicros())
}

/** A wire timestamp with its offset written out: `2030-01-01 10:00:00.123456+00:00` (contract 00, 0.13). */
export function offsetTime(timestamp: string, separator: ' ' | 'T'): string {
  return `${timestamp.slice(0, 10)}${separator}${timestamp.slice(11, -1)}+00:00`
}

const timestampPattern = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{3,6}))?(?:Z|\+00|\+0000|\+00:00)$/

/** Converts a client's UTC timestamp to wire form; undefined when it is not valid (contract 00, 0.13). */
export function parseTimestamp(text: string): string | undefined {
  const match = timestampPattern.exec(text)
  if (match === null) return undefined
  const [, date, clock, fraction = ''] = match
  // `Date` accepts the 30th of February as the 2nd of March, and 24:00 as the next day.
  const time = new Date(`${date}T${clock}Z`)
  if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(`${date}T${clock}`)) return undefined
  return `${date}T${clock}.${fraction.padEnd(6, '0')}Z`
}

/** Microseconds since the epoch of a wire timestamp. */
export function microsOf(timestamp: string): number {
  return Date.parse(`${timestamp.slice(0, 19)}Z`) * 1000 + Number(timestamp.slice(20, 26))
}

/** Seconds between two wire timestamps, with microsecond precision. */
export function secondsBetween(start: string, end: string): number {
  return (microsOf(end) - microsOf(start)) / 1_000_000
}
