/** Time zones of the IANA database in the JavaScript engine. */
import { Lru } from '../cache/index.ts'

const SECONDS_OF_HOUR = 3600
const MS = 1000
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
