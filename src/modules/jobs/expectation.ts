/**
 * What is expected of a job and whether it has come. Pure functions; times and spans are microseconds.
 *
 * `within`: the run for a due time of the timer succeeds within this span. Runs of one firing serve all due times before it.
 * `every`: something succeeds in each such span.
 */
import { readDuration } from '../../lib/calendar/index.ts'
import type { Expectation } from '../rules/types.ts'

export interface Expected {
  within: number | undefined
  every: number | undefined
}

/** What a row knows of it. */
export interface Count {
  /** When the count began. */
  since: number
  /** The due time of the timer that waits for its success. */
  due: number | undefined
  dueBy: number | undefined
  successBy: number | undefined
}

/** The last success: its end, and the firing or the request that it served. */
export interface Success {
  at: number
  servedFor: number
}

export interface Circumstances {
  now: number
  /** When this server started. */
  startedAt: number
  /** When the timer last fired. */
  firedAt: number | undefined
  /** The timer fires at the start for the times that passed while the server was off. */
  isMadeUpFor: boolean
  /** The first due time of the timer after a time; undefined: none, or the trigger is no timer. */
  readonly dueAfter: (after: number) => number | undefined
}

/** What has not come: when it was due, and by when it was expected. */
export interface Miss {
  due: number
  isOfTimer: boolean
}

/** Spans that ended while the server was off end this much after its start: senders repeat what they could not deliver. */
const MAX_GRACE = 10 * 60 * 1_000_000
const graceOf = (every: number): number => Math.min(MAX_GRACE, Math.ceil(every / 10))

/** @param expectation checked */
export function readExpected({ within, every }: Expectation): Expected {
  return { within: microsIn(within), every: microsIn(every) }
}

function microsIn(duration: number | string | undefined): number | undefined {
  if (duration === undefined) return undefined
  const read = readDuration(duration)
  return 'problem' in read ? undefined : Math.ceil(read.seconds * 1_000_000)
}

export function beginCount({ within, every }: Expected, { now, dueAfter }: Circumstances): Count {
  const due = within === undefined ? undefined : dueAfter(now)
  return {
    since: now,
    due,
    dueBy: due === undefined || within === undefined ? undefined : due + within,
    successBy: every === undefined ? undefined : now + every,
  }
}

/**
 * The count as it goes on, or what is missed.
 *
 * @param success undefined: none
 */
export function lookAt(
  { within, every }: Expected,
  count: Count,
  success: Success | undefined,
  circumstances: Circumstances,
): { count: Count } | { miss: Miss } {
  const { now, dueAfter } = circumstances
  const next = { ...count }
  if (within !== undefined && count.due !== undefined) {
    if (success !== undefined && success.servedFor >= count.due) {
      next.due = dueAfter(success.servedFor)
      next.dueBy = next.due === undefined ? undefined : limitOf(next.due, within, circumstances)
    }
    if (next.due !== undefined && now >= (next.dueBy ?? next.due)) return { miss: { due: next.due, isOfTimer: true } }
  }
  if (every !== undefined) {
    const end = spanEnd(every, count, success)
    next.successBy = Math.max(end, count.successBy ?? end)
    if (now >= next.successBy) return { miss: { due: end, isOfTimer: false } }
  }
  return { count: next }
}

/** The count of a server that has just started: what passed while it was off gets its time, once. */
export function afterStart(
  { within, every }: Expected,
  count: Count,
  success: Success | undefined,
  circumstances: Circumstances,
): Count {
  const { now, dueAfter } = circumstances
  const next = { ...count }
  if (within !== undefined && count.due !== undefined) {
    if (count.due > now) {
      // Computed again, because the configured time zone can have changed, and the clock been set back.
      next.due = dueAfter(now)
      next.dueBy = next.due === undefined ? undefined : next.due + within
    } else {
      next.dueBy = Math.max(count.dueBy ?? 0, limitOf(count.due, within, circumstances))
    }
  }
  if (every !== undefined) {
    const end = spanEnd(every, count, success)
    // A server that starts again and again does not put it off.
    if (end <= now && (count.successBy ?? end) <= end) next.successBy = now + graceOf(every)
  }
  return next
}

/** The count after the clock was set back: nothing waits for a time that the clock had reached before. */
export function afterSetBack(expected: Expected, count: Count, circumstances: Circumstances): Count {
  const begun = beginCount(expected, circumstances)
  const earlier = (before: number | undefined, now: number | undefined): number | undefined =>
    before === undefined || now === undefined ? now : Math.min(before, now)
  const isDue = count.due !== undefined && count.due <= circumstances.now
  return {
    since: Math.min(count.since, begun.since),
    due: isDue ? count.due : begun.due,
    dueBy: isDue ? count.dueBy : begun.dueBy,
    successBy: earlier(count.successBy, begun.successBy),
  }
}

/** When the count is to be looked at. */
export function checkOf({ dueBy, successBy }: Count): number | undefined {
  return dueBy === undefined || successBy === undefined ? (dueBy ?? successBy) : Math.min(dueBy, successBy)
}

function spanEnd(every: number, { since }: Count, success: Success | undefined): number {
  return Math.max(since, success?.at ?? since) + every
}

function limitOf(due: number, within: number, { startedAt, firedAt, isMadeUpFor }: Circumstances): number {
  const wasOff = due < startedAt && !(firedAt !== undefined && firedAt >= due && firedAt < startedAt)
  return (wasOff && isMadeUpFor ? startedAt : due) + within
}
