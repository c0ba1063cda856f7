/** When a timer fires next: pure functions of its schedule and a time (contract 05, 5.8). */
import { isEveryHour, nextWallTime, type CronSchedule, offsetAt } from '../../lib/calendar/index.ts'
import type { TimerSchedule } from '../triggers/index.ts'

const MICROS = 1_000_000
const DAY_SECONDS = 86_400
/** No zone sets its clocks twice within the days around a time that are looked at. */
const REACH_SECONDS = 2 * DAY_SECONDS
/** The last second of the year 9999, the last that timestamps can name. */
const MAX_MICROS = 253_402_300_799 * MICROS

/**
 * The first time after another at which a timer fires, in microseconds since the epoch; undefined: never.
 *
 * Intervals are counted from `anchorMicros`, whenever they were asked for. Where clocks are set forward, a time that no
 * clock shows comes as much later as they were set; where they are set back, a time that they show twice counts the
 * first time. Schedules for every hour of a day take no notice of either: they go on hour by hour.
 */
export function nextTime(schedule: TimerSchedule, anchorMicros: number, afterMicros: number): number | undefined {
  const next = findNext(schedule, anchorMicros, afterMicros)
  return next === undefined || next > MAX_MICROS ? undefined : next
}

function findNext(schedule: TimerSchedule, anchorMicros: number, afterMicros: number): number | undefined {
  switch (schedule.kind) {
    case 'interval': {
      const micros = schedule.seconds * MICROS
      return anchorMicros + Math.max(1, Math.floor((afterMicros - anchorMicros) / micros) + 1) * micros
    }
    case 'date': {
      const micros = 'micros' in schedule ? schedule.micros : microsOfWallTime(schedule.timeZone, schedule.wallMicros)
      return micros > afterMicros ? micros : undefined
    }
    case 'cron': {
      const seconds = nextCronSecond(schedule.cron, schedule.timeZone, Math.floor(afterMicros / MICROS) + 1)
      return seconds === undefined ? undefined : seconds * MICROS
    }
  }
}

function microsOfWallTime(timeZone: string, wallMicros: number): number {
  const wall = Math.floor(wallMicros / MICROS)
  const before = offsetAt(timeZone, wall - DAY_SECONDS)
  const after = offsetAt(timeZone, wall + DAY_SECONDS)
  const isAfter = offsetAt(timeZone, wall - before) !== before && offsetAt(timeZone, wall - after) === after
  return wallMicros - (isAfter ? after : before) * MICROS
}

function nextCronSecond(cron: CronSchedule, timeZone: string, first: number): number | undefined {
  let from = first
  for (;;) {
    const change = findChange(timeZone, from - REACH_SECONDS, from + REACH_SECONDS)
    const { soon, far } =
      change === undefined ? nextBetweenChanges(cron, offsetAt(timeZone, from), from) : nextAround(cron, change, from)
    if (soon !== undefined || far === undefined) return soon
    // Nothing in between fits; what is far off may stand under other clocks than these.
    from = far - DAY_SECONDS
  }
}

interface Found {
  /** Within reach, where it is known what clocks show. */
  soon?: number
  /** Else: about then, give or take a day. */
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
  // What clocks show for the second time has been.
  const wallAfter = nextWallTime(cron, followsClocks ? Math.max(start + after, at + before) : start + after)
  if (wallAfter !== undefined) candidates.push(wallAfter - after)

  const wallBetween = followsClocks && after > before ? nextWallTime(cron, start + before) : undefined
  if (wallBetween !== undefined && wallBetween < at + after) candidates.push(wallBetween - before)

  if (candidates.length === 0) return {}
  const next = Math.min(...candidates)
  return next <= from + REACH_SECONDS ? { soon: next } : { far: next }
}

/** Clocks set from one distance to UTC to another. */
interface Change {
  /** The first second with the new one. */
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
