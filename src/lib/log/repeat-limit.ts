/** Keeps what is done over and over from filling the log. */
import { Lru } from '../cache/index.ts'

const MAX_KEYS = 10_000
const PERIOD_MS = 10_000

/** @returns how many like this were kept back since the last that was not; undefined to keep this one back */
export type RepeatLimit = (key: string) => number | undefined

/**
 * @param maxLines of one kind in ten seconds
 * @param now milliseconds of a clock that only goes forward
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
