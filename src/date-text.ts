/** Dates and times as people and programs write them (contract 05: `td_lt`, `core.svc.DateTimer`). */

export interface DateText {
  /** What a clock shows, as microseconds since 1970-01-01 00:00 on that clock. */
  wallMicros: number
  /** Seconds the clock is ahead of UTC; undefined when the text does not say. */
  offsetSeconds: number | undefined
}

const MAX_CHARS = 100

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
const monthName = '([a-z]{3,9})\\.?'
const weekday = /^(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b[.,]?\s*/

const clock = /(?:^|[\st])(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(?:([ap])\.?m\.?)?/
const hourOnly = /(?:^|\s)(\d{1,2})\s*([ap])\.?m\.?/
const compactClock = /(?<=\d)t(\d{2})(\d{2})(?:(\d{2})(?:[.,](\d{1,9}))?)?/
const zone = /^\s*(?:(z|utc|gmt)|(?:utc|gmt)?\s*([+-])(\d{2}):?(\d{2})?)(?![\d:a-z])/

type DateParts = [year: number, month: number, day: number]

const dateForms: readonly [form: RegExp, read: (match: readonly string[]) => DateParts][] = [
  [/^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/, ([, year, , month, day]) => [Number(year), Number(month), Number(day)]],
  [/^(\d{4})(\d{2})(\d{2})$/, ([, year, month, day]) => [Number(year), Number(month), Number(day)]],
  [/^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})$/, ([, first, , second, year]) => monthFirst(first, second, year)],
  [
    new RegExp(`^(\\d{1,2})(?:st|nd|rd|th)?[\\s-]+(?:of\\s+)?${monthName}[\\s,-]+(\\d{4})$`),
    ([, day, name, year]) => [Number(year), monthOf(name), Number(day)],
  ],
  [
    new RegExp(`^${monthName}\\s+(\\d{1,2})(?:st|nd|rd|th)?[\\s,]+(\\d{4})$`),
    ([, name, day, year]) => [Number(year), monthOf(name), Number(day)],
  ],
  [
    new RegExp(`^(\\d{4})[\\s-]+${monthName}[\\s-]+(\\d{1,2})$`),
    ([, year, name, day]) => [Number(year), monthOf(name), Number(day)],
  ],
]

/** 0: none is called so. */
function monthOf(name = '?'): number {
  return months.findIndex((month) => month.startsWith(name)) + 1
}

/** `01/02/2030` is the second of January; where that cannot be, the day stands first. */
function monthFirst(first = '', second = '', year = ''): DateParts {
  return Number(first) > 12
    ? [Number(year), Number(second), Number(first)]
    : [Number(year), Number(first), Number(second)]
}

/**
 * Reads a whole date with or without a time, which is midnight then: ISO 8601 and its relatives, `Jan 2, 2030 3:04 PM`,
 * `Tue, 02 Jan 2030 15:04:05 +0000`, `01/02/2030`. Undefined for anything else, and for dates that do not exist.
 */
export function readDateText(given: string): DateText | undefined {
  if (given.length > MAX_CHARS) return undefined
  const text = given.trim().toLowerCase().replace(weekday, '')
  const time = readTime(text)
  if (time === undefined) return undefined
  for (const [form, read] of dateForms) {
    const match = form.exec(time.rest)
    if (match === null) continue
    const dayMicros = microsOfDay(read(match))
    return dayMicros === undefined
      ? undefined
      : { wallMicros: dayMicros + time.micros, offsetSeconds: time.offsetSeconds }
  }
  return undefined
}

function microsOfDay([year, month, day]: DateParts): number | undefined {
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31) return undefined
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // The 30th of February becomes the 2nd of March.
  return date.getUTCMonth() === month - 1 ? date.getTime() * 1000 : undefined
}

/** Takes the time out of a text, and the zone behind it; `rest` is the date. */
function readTime(text: string): { micros: number; offsetSeconds: number | undefined; rest: string } | undefined {
  const match = clock.exec(text) ?? compactClock.exec(text)
  if (match === null) {
    const hour = hourOnly.exec(text)
    if (hour === null) return { micros: 0, offsetSeconds: undefined, rest: text }
    return placed(text, hour, [hour[1], '0', '0', '', hour[2]])
  }
  return placed(text, match, match.slice(1))
}

function placed(
  text: string,
  match: RegExpExecArray,
  [hourText, minuteText, secondText = '0', fraction = '', half]: (string | undefined)[],
): ReturnType<typeof readTime> {
  const [hour, minute, second] = [Number(hourText), Number(minuteText), Number(secondText)]
  if (minute > 59 || second > 59 || hour > 23) return undefined
  if (half !== undefined && (hour < 1 || hour > 12)) return undefined
  const hour24 = half === undefined ? hour : (hour % 12) + (half === 'p' ? 12 : 0)
  const micros = (hour24 * 3600 + minute * 60 + second) * 1_000_000 + Number(fraction.padEnd(6, '0').slice(0, 6))

  const before = text.slice(0, match.index)
  const behind = text.slice(match.index + match[0].length)
  const [whole = '', utc, sign, hours = '0', minutes = '0'] = zone.exec(behind) ?? []
  const offset = Number(hours) * 3600 + Number(minutes) * 60
  if (offset > 86_400 || Number(minutes) > 59) return undefined
  const offsetSeconds = utc !== undefined ? 0 : sign === undefined ? undefined : sign === '-' ? -offset : offset
  const rest = `${before} ${behind.slice(whole.length)}`.trim().replace(/^,|,$/g, '').replace(/\s+/g, ' ').trim()
  return { micros, offsetSeconds, rest }
}
