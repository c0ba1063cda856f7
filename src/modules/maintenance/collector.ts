/** Garbage collection (contract 10, 10.5): deletes records that are too old, then the oldest beyond the size limit. */
import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { OwnRetention, RecordKind, Retention } from '../../core/retention.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import type { ClockGuard } from './clock-guard.ts'

/** Zero: no limit. */
export interface RetentionLimits {
  /** How many days records are kept. */
  days: Readonly<Record<RecordKind, number>>
  /** Number of records of a kind; tokens and output are not counted. */
  maxRecords: number
  /** How many bytes of the database may be in use. */
  maxDatabaseBytes: number
  /** Pause between two kinds. */
  pauseSeconds: number
}

export interface Collector {
  /** One run. Never rejects; ends early when aborted. */
  round(signal: AbortSignal): Promise<void>
}

/** More than any slice takes: each retention has a limit of its own. */
const LIMIT = 1000
const AT_ONCE_BY_BYTES = 500
const END_OF_TIME = '9999-12-31T00:00:00.000000Z'
const DAY_MICROS = 86_400_000_000

export function createCollector(deps: {
  retentions: readonly Retention[]
  limits: RetentionLimits
  database: Pick<Database, 'stats' | 'reclaim'>
  guard: ClockGuard
  log: Log
  /** Microseconds since the epoch. */
  readonly now: () => number
}): Collector {
  const { retentions, limits, database, guard, log, now } = deps

  async function round(signal: AbortSignal): Promise<void> {
    const held = guard.reason()
    if (held !== undefined) {
      log.warning('retention.held', `The garbage collector deletes nothing by age for now: ${held}`)
    }
    for (const [index, retention] of retentions.entries()) {
      if (index > 0) await pause(limits.pauseSeconds * 1000, signal)
      if (signal.aborted) return
      await each(retention, held === undefined, signal)
    }
    try {
      await keepSmall(signal)
      await database.reclaim(signal)
    } catch (error) {
      if (!signal.aborted) log.error('retention.failed', 'Could not shrink the database', { error })
    }
  }

  /** What fails is tried again in the next round, and costs the other kinds nothing. */
  async function each(retention: Retention, byAge: boolean, signal: AbortSignal): Promise<void> {
    const { kind } = retention
    try {
      const days = limits.days[kind]
      const started = performance.now()
      const own = await retention.readOwn?.()
      const kept = own === undefined ? 0 : await removeOwn(own, byAge, signal)
      const before = formatMicros(now() - days * DAY_MICROS)
      const old = days > 0 && byAge ? await removeAll(retention, before, Infinity, signal, own) : 0
      const total = retention.total?.() ?? 0
      const excess = limits.maxRecords > 0 ? total - limits.maxRecords : 0
      const surplus = excess > 0 ? await removeAll(retention, END_OF_TIME, excess, signal) : 0
      if (kept + old + surplus === 0) return
      const seconds = Number(((performance.now() - started) / 1000).toFixed(1))
      log.info('retention.removed', `Deleted old records of the kind ${kind}`, {
        kind,
        ...(own === undefined ? {} : { kept }),
        old,
        surplus,
        seconds,
      })
    } catch (error) {
      if (!signal.aborted)
        log.error('retention.failed', `Could not delete old records of the kind ${kind}`, { kind, error })
    }
  }

  /** Deletes the oldest records of all kinds while the database exceeds its size limit. */
  async function keepSmall(signal: AbortSignal): Promise<void> {
    const { maxDatabaseBytes } = limits
    if (maxDatabaseBytes === 0) return
    let removed = 0
    while (database.stats().usedBytes > maxDatabaseBytes && !signal.aborted) {
      const times = retentions
        .map((retention) => retention.oldest?.(AT_ONCE_BY_BYTES) ?? retention.oldest?.(0))
        .filter((time) => time !== undefined)
        .toSorted()
      let gone = 0
      // The oldest record of a kind may have to stay; then younger ones are deleted.
      for (const time of times) {
        if (gone === 0) gone = await removeUpTo(time, signal)
      }
      removed += gone
      if (gone === 0) {
        log.warning('retention.too_large', 'The database exceeds its size limit, and no record in it can be deleted', {
          used_bytes: database.stats().usedBytes,
          max_database_bytes: maxDatabaseBytes,
        })
        break
      }
    }
    if (removed > 0) {
      log.info('retention.removed', 'Deleted the oldest records because the database exceeded its size limit', {
        records: removed,
        used_bytes: database.stats().usedBytes,
      })
    }
  }

  async function removeUpTo(time: string, signal: AbortSignal): Promise<number> {
    let gone = 0
    for (const retention of retentions) {
      if (retention.kind === 'tokens') continue
      gone += await removeAll(retention, formatMicros(microsOf(time) + 1), Infinity, signal)
    }
    return gone
  }

  async function removeOwn(own: OwnRetention, byAge: boolean, signal: AbortSignal): Promise<number> {
    let removed = 0
    let started = performance.now()
    for await (const records of own.remove(now(), byAge)) {
      removed += records
      if (signal.aborted) break
      await giveWay(performance.now() - started)
      started = performance.now()
    }
    return removed
  }

  async function removeAll(
    retention: Retention,
    before: string,
    most: number,
    signal: AbortSignal,
    own?: OwnRetention,
  ): Promise<number> {
    let removed = 0
    let after: string | undefined = ''
    while (after !== undefined && removed < most && !signal.aborted) {
      const started = performance.now()
      const slice = await retention.remove({
        before,
        after,
        limit: Math.min(LIMIT, most - removed),
        ...(own === undefined ? {} : { own }),
      })
      removed += slice.records
      after = slice.next
      await giveWay(performance.now() - started)
    }
    return removed
  }

  return { round }
}

/** As long as a slice has taken belongs to everybody else. */
async function giveWay(tookMs: number): Promise<void> {
  if (tookMs < 1) await setImmediate()
  else await delay(tookMs)
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await delay(milliseconds, undefined, { signal }).catch(() => undefined)
}
