/** Time zones by their names in the IANA database, as the JavaScript engine knows them. */
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

/** Such as `Europe/Berlin` or `UTC`; letter case does not matter. */
export function isTimeZone(name: string): boolean {
  // The engine also takes offsets, which other readers of the same content do not.
  if (name.length > MAX_NAME_CHARS || !/^[a-z]/i.test(name)) return false
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/**
 * Seconds that clocks in a time zone are ahead of UTC at an instant.
 *
 * @param epochSeconds year 1 to 9999
 * @throws RangeError when there is no such time zone
 */
export function offsetAt(timeZone: string, epochSeconds: number): number {
  // Formatting with nothing but the zone still writes a date before it.
  const text = formatOf(timeZone).format(epochSeconds * MS)
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? []
  const offset = Number(hours) * SECONDS_OF_HOUR + Number(minutes) * 60 + Number(seconds)
  return sign === '-' ? -offset : offset
}
