/** Next firing time of a schedule (contract 05, 5.8). Pure functions. */
import { isEveryHour, nextWallTime, type CronSchedule, offsetAt } from '../../lib/calendar/index.ts'
import type { TimerSchedule } from '../triggers/index.ts'

const MICROS = 1_000_000
const DAY_SECONDS = 86_400
/** Range in which a time zone changes its offset at most once. */
const REACH_SECONDS = 2 * DAY_SECONDS
/** The last second of the year 9999, the maximum of wire timestamps. */
export const MAX_MICROS = 253_402_300_799 * MICROS

/**
 * The first firing time after `afterMicros`, in microseconds since the epoch; undefined: never.
 *
 * Intervals count from `anchorMicros`; with a start, the first firing is at the start. When clocks go forward, a skipped wall time fires later by the size of the gap.
 * When clocks go back, a repeated wall time fires once, the first time. Schedules for every hour of a day ignore both
 * changes and fire hour by hour.
 */
export function nextTime(schedule: TimerSchedule, anchorMicros: number, afterMicros: number): number | undefined {
  const { start = -Infinity, end = MAX_MICROS } = schedule
  const next = findNext(schedule, anchorMicros, Math.max(afterMicros, start - 1))
  return next === undefined || next > Math.min(end, MAX_MICROS) ? undefined : next
}

/** The first firing times after `afterMicros`, at most `count`. */
export function nextTimes(schedule: TimerSchedule, anchorMicros: number, afterMicros: number, count: number): number[] {
  const times: number[] = []
  for (let after = afterMicros; times.length < count;) {
    const next = nextTime(schedule, anchorMicros, after)
    if (next === undefined) break
    times.push(next)
    after = next
  }
  return times
}

function findNext(schedule: TimerSchedule, anchorMicros: number, afterMicros: number): number | undefined {
  switch (schedule.kind) {
    case 'interval': {
      const micros = schedule.seconds * MICROS
      if (schedule.start !== undefined) return atGrid(schedule.start, micros, afterMicros)
      return atGrid(anchorMicros + micros, micros, afterMicros)
    }
    case 'date':
      return schedule.micros > afterMicros ? schedule.micros : undefined
    case 'cron': {
      const seconds = nextCronSecond(schedule.cron, schedule.timeZone, Math.floor(afterMicros / MICROS) + 1)
      return seconds === undefined ? undefined : seconds * MICROS
    }
  }
}

/** The first of `start`, `start + step`, … after a time. */
function atGrid(start: number, step: number, after: number): number {
  return start + Math.max(0, Math.floor((after - start) / step) + 1) * step
}

function nextCronSecond(cron: CronSchedule, timeZone: string, first: number): number | undefined {
  let from = first
  for (;;) {
    const change = findChange(timeZone, from - REACH_SECONDS, from + REACH_SECONDS)
    const { soon, far } =
      change === undefined ? nextBetweenChanges(cron, offsetAt(timeZone, from), from) : nextAround(cron, change, from)
    if (soon !== undefined || far === undefined) return soon
    // No time in between matches. A time far ahead can have another offset.
    from = far - DAY_SECONDS
  }
}

interface Found {
  /** A time within the range of the known offset. */
  soon?: number
  /** Otherwise: an estimate, accurate to a day. */
  far?: number
}

function nextBetweenChanges(cron: CronSchedule, offset: number, from: number): Found {
  const wall = nextWallTime(cron, from + offset)
  if (wall === undefined) return {}
  return wall - offset <= from + REACH_SECONDS ? { soon: wall - offset } : { far: wall - offset }
}

function nextAround(cron: CronSchedule, { at, before, after }: Change, from: number): Found {
  const candidates: number[] = []
  const wallBefore = from < at ? nextWallTime(cron, from + before) : undefined
  if (wallBefore !== undefined && wallBefore - before < at) candidates.push(wallBefore - before)

  const start = Math.max(from, at)
  const followsClocks = !isEveryHour(cron)
  // Skips wall times that clocks show for the second time.
  const wallAfter = nextWallTime(cron, followsClocks ? Math.max(start + after, at + before) : start + after)
  if (wallAfter !== undefined) candidates.push(wallAfter - after)

  const wallBetween = followsClocks && after > before ? nextWallTime(cron, start + before) : undefined
  if (wallBetween !== undefined && wallBetween < at + after) candidates.push(wallBetween - before)

  if (candidates.length === 0) return {}
  const next = Math.min(...candidates)
  return next <= from + REACH_SECONDS ? { soon: next } : { far: next }
}

/** A change of the UTC offset. */
interface Change {
  /** The first second with the new offset. */
  at: number
  before: number
  after: number
}

function findChange(timeZone: string, from: number, to: number): Change | undefined {
  const before = offsetAt(timeZone, from)
  const after = offsetAt(timeZone, to)
  if (before === after) return undefined
  let [low, high] = [from, to]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(timeZone, middle) === before) low = middle
    else high = middle
  }
  return { at: high, before, after }
}
