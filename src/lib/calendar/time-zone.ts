/** Time zones of the IANA database in the JavaScript engine. */
import { Lru } from '../cache/index.ts'

const SECONDS_OF_HOUR = 3600
const DAY_SECONDS = 86_400
const MS = 1000
const MICROS = 1_000_000
const MAX_NAME_CHARS = 64

const formats = new Lru<string, Intl.DateTimeFormat>(100)

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known !== undefined) return known
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  formats.set(timeZone, format)
  return format
}

/** Whether a zone such as `Europe/Berlin` or `UTC` exists. Ignores letter case. */
export function isTimeZone(name: string): boolean {
  // The engine also accepts offsets, which other readers of the same content do not.
  if (name.length > MAX_NAME_CHARS || !/^[a-z]/i.test(name)) return false
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/** The time zone of this machine (`TZ`, else its setting); UTC if it has no valid one. */
export function machineTimeZone(): string {
  // Undefined with an invalid `TZ`, which its type does not say.
  const name = new Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined
  return name !== undefined && isTimeZone(name) ? name : 'UTC'
}

/**
 * Seconds that a time zone is ahead of UTC at an instant.
 *
 * @param epochSeconds year 1 to 9999
 * @throws RangeError if the time zone does not exist
 */
export function offsetAt(timeZone: string, epochSeconds: number): number {
  // A format with only the zone still prints a date before it.
  const text = formatOf(timeZone).format(epochSeconds * MS)
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  const offset = Number(hours) * SECONDS_OF_HOUR + Number(minutes) * 60 + Number(seconds)
  return sign === '-' ? -offset : offset
}

/**
 * The instant at which the clocks of a zone show a time, in microseconds since the epoch. A time that clocks skip is later
 * by the size of the gap; of a time that they show twice it is the first.
 *
 * @param wallMicros wall time as microseconds since 1970-01-01 00:00 on that clock
 */
export function instantOf(timeZone: string, wallMicros: number): number {
  const wall = Math.floor(wallMicros / MICROS)
  const before = offsetAt(timeZone, wall - DAY_SECONDS)
  const after = offsetAt(timeZone, wall + DAY_SECONDS)
  const isAfter = offsetAt(timeZone, wall - before) !== before && offsetAt(timeZone, wall - after) === after
  return wallMicros - (isAfter ? after : before) * MICROS
}
