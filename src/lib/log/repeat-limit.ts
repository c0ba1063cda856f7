/** Keeps repeated events from flooding the log. */
import { Lru } from '../cache/index.ts'

const MAX_KEYS = 10_000
const PERIOD_MS = 10_000

/** @returns how many were suppressed since the last one that passed; undefined: suppress this one */
export type RepeatLimit = (key: string) => number | undefined

/**
 * @param maxLines per key in ten seconds
 * @param now milliseconds of a monotonic clock
 */
export function createRepeatLimit(maxLines: number, now: () => number): RepeatLimit {
  const seen = new Lru<string, { since: number; lines: number; kept: number }>(MAX_KEYS)
  return (key) => {
    const at = now()
    const before = seen.get(key)
    if (before === undefined || at - before.since >= PERIOD_MS) {
      seen.set(key, { since: at, lines: 1, kept: 0 })
      return before?.kept ?? 0
    }
    if (before.lines === maxLines) {
      before.kept += 1
      return undefined
    }
    before.lines += 1
    return 0
  }
}
