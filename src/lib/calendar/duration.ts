/** Spans of time as people write them: `90s`, `10m`, `1h30m`, `7d`, or a number of seconds. */
import { shown } from '../text/index.ts'

const unitSeconds: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** About 136 years, so that a time plus a span stays a time. */
const MAX_SECONDS = 4_294_967_295

const form = /^(?:\d{1,10}(?:\.\d{1,6})?(?:ms|[smhdw])\s*)+$/i
const part = /(\d+(?:\.\d+)?)(ms|[smhdw])/gi

/** Schema of a duration in a record; `readDuration` checks the text. */
export const durationSchema = {
  type: ['number', 'string'],
  minimum: 0,
  maximum: MAX_SECONDS,
  maxLength: 64,
} as const

/**
 * Reads a duration.
 *
 * @returns seconds; the problem begins with the text and says how to write one
 */
export function readDuration(given: number | string): { seconds: number } | { problem: string } {
  const text = String(given).trim()
  const isNumber = /^\d{1,10}(?:\.\d{1,6})?$/.test(text)
  if (!isNumber && (text.length > durationSchema.maxLength || !form.test(text))) {
    return {
      problem: `"${shown(text)}" is not a duration; use seconds such as 90, or text such as 90s, 10m, 1h30m or 7d`,
    }
  }
  const seconds = isNumber
    ? Number(text)
    : [...text.matchAll(part)].reduce(
        (sum, [, count, unit = '']) => sum + Number(count) * (unitSeconds[unit.toLowerCase()] ?? 0),
        0,
      )
  return seconds > MAX_SECONDS ? { problem: `"${shown(text)}" is longer than 136 years` } : { seconds }
}

/** Writes seconds as `readDuration` reads them, in the largest units: 5400 is `1h30m`. */
export function formatDuration(seconds: number): string {
  const units = ['w', 'd', 'h', 'm', 's', 'ms'] as const
  let left = Math.round(seconds * 1000)
  let text = ''
  for (const unit of units) {
    const size = Math.round((unitSeconds[unit] ?? 1) * 1000)
    const count = Math.floor(left / size)
    if (count > 0) text += `${count}${unit}`
    left -= count * size
  }
  return text === '' ? '0s' : text
}
