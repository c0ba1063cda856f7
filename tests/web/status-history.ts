/** A past for a server that has none: rows of its history, written while it is not running. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'

/** What is stored of a minute; what is left out is 0. */
export interface StoredMinute {
  seconds?: number
  gauges?: Record<string, number>
  counts?: Record<string, number>
  /** Runs by length, as `src/modules/monitoring/histogram.ts` counts them. */
  runs?: number[]
}

/** @param minuteAgo 1: the one before the minute that runs. @returns undefined: the server was down */
export function writeHistory(
  basePath: string,
  minutes: number,
  of: (minuteAgo: number) => StoredMinute | undefined,
): void {
  const database = new Sqlite(join(basePath, 'svc.db'))
  try {
    const insert = database.prepare('insert or replace into status_samples (minute, sample) values (?, ?)')
    const present = Math.floor(Date.now() / 60_000)
    database.transaction(() => {
      for (let ago = 1; ago <= minutes; ago++) {
        const minute = of(ago)
        if (minute === undefined) continue
        insert.run(present - ago, JSON.stringify({ seconds: 60, gauges: {}, counts: {}, runs: [], ...minute }))
      }
    })()
  } finally {
    database.close()
  }
}

/** A day of a server with some work, some failures, a rush, and a restart. */
export function writeSomeDay(basePath: string): void {
  writeHistory(basePath, 1500, (ago) => {
    if ((ago > 24 && ago < 31) || (ago > 700 && ago < 760)) return undefined
    const wave = 1 + Math.sin(ago / 9) * 0.5 + Math.sin(ago / 130) * 0.4
    const rush = ago > 8 && ago < 14 ? 4 : 1
    const succeeded = Math.round(12 * wave * rush)
    const failed = ago % 7 === 0 ? 2 : 0
    const runs: number[] = Array.from({ length: 24 }, () => 0)
    runs[14 + (ago % 3)] = succeeded
    runs[21 + (rush > 1 ? 2 : 0)] = Math.max(1, Math.round(succeeded / 9))
    return {
      gauges: {
        request: rush > 1 ? 9 + (ago % 5) : ago % 11 === 0 ? 2 : 0,
        work: rush > 1 ? 2 : 0,
        trigger: ago % 17 === 0 ? 3 : 0,
        slots_used: Math.min(60, Math.round(4 * wave * rush)),
        slots_size: 60,
        loop_mean_ms: 0.3 * wave * rush,
        loop_max_ms: 9 * wave * rush,
        resident_bytes: 1.3e8 + 1e7 * wave + 4e7 * (rush - 1),
        heap_bytes: 5e7 + 6e6 * wave,
      },
      counts: {
        started: succeeded + failed,
        succeeded,
        failed,
        canceled: ago % 19 === 0 ? 1 : 0,
        trigger_instances: Math.round(6 * wave * rush),
        webhooks: Math.round(3 * wave),
      },
      runs,
    }
  })
}
