/** Parses dates in the formats of people and programs. Rejects ambiguous ones. */

const MAX_LENGTH = 100

const months = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
]
const weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']

/** Hours east of UTC of the zones in RFC 2822. */
const zones: ReadonlyMap<string, number> = new Map([
  ['z', 0],
  ['utc', 0],
  ['ut', 0],
  ['gmt', 0],
  ['est', -5],
  ['edt', -4],
  ['cst', -6],
  ['cdt', -5],
  ['mst', -7],
  ['mdt', -6],
  ['pst', -8],
  ['pdt', -7],
])

const weekday = '(?:(?<weekday>[a-z]{3,9})\\.?,?\\s+)?'
const monthName = '(?<monthName>[a-z]{3,9})\\.?'
const dayOrdinal = '(?<day>\\d{1,2})(?:st|nd|rd|th)?'
const clock =
  '(?<hour>\\d{1,2}):(?<minute>\\d{2})(?::(?<second>\\d{2})(?:[.,](?<fraction>\\d{1,9}))?)?(?:\\s*(?<half>[ap])\\.?m\\.?)?'
/** Without colons. */
const digits = '(?<hour>\\d{2})(?:(?<minute>\\d{2})(?:(?<second>\\d{2})(?:[.,](?<fraction>\\d{1,9}))?)?)?'
const zone =
  '(?:\\s*(?<zone>z|[a-z]{2,4})?(?:(?<sign>[+-])(?<zoneHour>\\d{2})(?::?(?<zoneMinute>\\d{2}))?)?)(?:\\s*\\([a-z .]*\\))?'
const time = `(?:(?:t|,?\\s+(?:at\\s+)?)${clock}${zone})?`

const forms = [
  // 2024-02-01, 2024-02-01T10:30:00.123456+02:00, 2024-02-01 10:30 UTC
  `(?<year>\\d{4})-(?<month>\\d{1,2})-(?<day>\\d{1,2})${time}`,
  `(?<year>\\d{4})/(?<month>\\d{1,2})/(?<day>\\d{1,2})${time}`,
  // 2024-02-01T10, 2024-02-01T1030Z
  `(?<year>\\d{4})-(?<month>\\d{2})-(?<day>\\d{2})t${digits}${zone}`,
  // 20240201, 20240201103000, 20240201T103000Z, 20240201 10:30
  `(?<year>\\d{4})(?<month>\\d{2})(?<day>\\d{2})(?:t${digits}${zone})?`,
  `(?<year>\\d{4})(?<month>\\d{2})(?<day>\\d{2})(?<hour>\\d{2})(?<minute>\\d{2})(?<second>\\d{2})?${zone}`,
  `(?<year>\\d{4})(?<month>\\d{2})(?<day>\\d{2})${time}`,
  // 2/1/2024 10:30 PM: the month first
  `(?<month>\\d{1,2})/(?<day>\\d{1,2})/(?<year>\\d{4})${time}`,
  // Thu, 01 Feb 2024 10:30:00 +0000 (RFC 2822), 1 February 2024, 01-Feb-2024 10:30
  `${weekday}${dayOrdinal}[\\s-]+${monthName}[\\s,-]+(?<year>\\d{4})${time}`,
  // February 1, 2024 at 10:30, Thu Feb 01 2024 10:30:00 GMT+0200 (Eastern European Time)
  `${weekday}${monthName}\\s+${dayOrdinal},?\\s+(?<year>\\d{4})${time}`,
  // Thu Feb  1 10:30:00 2024, Thu Feb  1 10:30:00 UTC 2024
  `${weekday}${monthName}\\s+${dayOrdinal}\\s+${clock}${zone}\\s+(?<year>\\d{4})`,
].map((form) => new RegExp(`^${form}$`))

export interface DateText {
  /** Wall time as microseconds since 1970-01-01 00:00 on that clock. Without a time: midnight. */
  wallMicros: number
  /** Minutes ahead of UTC; undefined: not given. */
  offsetMinutes: number | undefined
}

/**
 * A date with or without a time. Undefined: not a date, or ambiguous: two-digit years, times without a date, ambiguous
 * zones.
 */
export function readDateText(text: string): DateText | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const written = text.trim().toLowerCase()
  for (const form of forms) {
    const found = form.exec(written)?.groups
    if (found !== undefined) return dateOf(found)
  }
  return undefined
}

/** Like `readDateText`, but returns microseconds since the epoch. Default zone: UTC. */
export function parseDateText(text: string): number | undefined {
  const date = readDateText(text)
  return date === undefined ? undefined : date.wallMicros - (date.offsetMinutes ?? 0) * 60_000_000
}

type Found = Readonly<Record<string, string | undefined>>

function dateOf(found: Found): DateText | undefined {
  const month = monthOf(found)
  const hour = hourOf(found)
  const offset = offsetOf(found)
  if (month === undefined || hour === undefined || offset === undefined) return undefined
  const { weekday: named } = found
  if (named !== undefined && indexOf(weekdays, named) === undefined) return undefined
  const [year, day] = [Number(found['year']), Number(found['day'])]
  const [minute, second] = [Number(found['minute'] ?? 0), Number(found['second'] ?? 0)]
  if (year === 0 || minute > 59 || second > 59) return undefined

  const date = new Date(0)
  // Not `Date.UTC`, which reads the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(year, month, day)
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return undefined
  date.setUTCHours(hour, minute, second)
  return {
    wallMicros: date.getTime() * 1000 + Number((found['fraction'] ?? '').slice(0, 6).padEnd(6, '0')),
    offsetMinutes: offset.minutes,
  }
}

function indexOf(names: readonly string[], written: string): number | undefined {
  const index = names.findIndex((name) => name.startsWith(written))
  return index < 0 ? undefined : index
}

function monthOf({ month, monthName: name = '' }: Found): number | undefined {
  if (month === undefined) return indexOf(months, name === 'sept' ? 'sep' : name)
  return Number(month) >= 1 && Number(month) <= 12 ? Number(month) - 1 : undefined
}

function hourOf({ hour = '0', half }: Found): number | undefined {
  const written = Number(hour)
  if (half === undefined) return written <= 23 ? written : undefined
  if (written < 1 || written > 12) return undefined
  return (written % 12) + (half === 'p' ? 12 : 0)
}

/** Minutes east of UTC; undefined: an invalid offset. */
function offsetOf({
  zone: name,
  sign,
  zoneHour,
  zoneMinute = '0',
}: Found): { minutes: number | undefined } | undefined {
  const hours = name === undefined ? 0 : zones.get(name)
  if (hours === undefined) return undefined
  if (sign === undefined) return { minutes: name === undefined ? undefined : hours * 60 }
  // `GMT+0200` is two hours east of Greenwich; other zones have no offset of their own.
  if (hours !== 0 || name === 'z' || Number(zoneHour) > 23 || Number(zoneMinute) > 59) return undefined
  return { minutes: (sign === '-' ? -1 : 1) * (Number(zoneHour) * 60 + Number(zoneMinute)) }
}
