/** Rounds and tasks with records that are only numbers, and a clock of the test's own. */
import { afterEach, describe, expect, test } from 'vitest'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { DatabaseStats } from '../../db/database.ts'
import { createLog } from '../../lib/log/log.ts'
import type { Module } from '../../core/module.ts'
import { recordKinds, type RecordKind, type Retention } from '../../core/retention.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import { createClockGuard } from './clock-guard.ts'
import { createMaintenance, type Maintenance } from './index.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

const DAY = 86_400_000_000
const HOUR_MS = 3_600_000
const NOW = microsOf('2030-01-01T00:00:00.000000Z')

/** Made at these times, oldest first; some have not ended. */
class Records {
  readonly kind: RecordKind
  times: number[]
  readonly open: ReadonlySet<number>
  slices = 0

  constructor(kind: RecordKind, daysAgo: readonly number[], open: readonly number[] = []) {
    this.kind = kind
    this.times = daysAgo.map((days) => NOW - days * DAY)
    this.open = new Set(open.map((days) => NOW - days * DAY))
  }

  get retention(): Retention {
    const look = (before: string, after: string, limit: number): { gone: number[]; next: string | undefined } => {
      const from = after === '' ? -Infinity : Number(after)
      const some = this.times.filter((time) => time > from && time < microsOf(before)).slice(0, Math.min(limit, 2))
      const last = some.at(-1)
      return { gone: some.filter((time) => !this.open.has(time)), next: last === undefined ? undefined : String(last) }
    }
    return {
      kind: this.kind,
      count: ({ before, after, limit }) => {
        const { gone, next } = look(before, after, limit)
        return { records: gone.length, next }
      },
      remove: ({ before, after, limit }) => {
        this.slices += 1
        const { gone, next } = look(before, after, limit)
        this.times = this.times.filter((time) => !gone.includes(time))
        return Promise.resolve({ records: gone.length, next })
      },
      total: () => this.times.length,
      oldest: (skip) => {
        const time = this.times[skip]
        return time === undefined ? undefined : formatMicros(time)
      },
    }
  }

  /** Days ago. */
  get left(): number[] {
    return this.times.map((time) => (NOW - time) / DAY)
  }
}

const stops: Maintenance[] = []
afterEach(async () => {
  for (const maintenance of stops.splice(0)) await maintenance.stop?.()
})

interface Setting {
  days?: Partial<Record<RecordKind, number>>
  maxRecords?: number
  maxDatabaseBytes?: number
  usedBytes?: () => number
  modules?: Module[]
  newest?: string
  clock?: { now: () => number; monotonic: () => number }
}

async function start(
  records: readonly Records[],
  setting: Setting = {},
): Promise<{ maintenance: Maintenance; log: TextSink }> {
  const sink = new TextSink()
  const none = Object.fromEntries(recordKinds.map((kind) => [kind, 0])) as Record<RecordKind, number>
  const maintenance = createMaintenance({
    database: {
      stats: () => ({ usedBytes: setting.usedBytes?.() ?? 0 }) as DatabaseStats,
      reclaim: () => Promise.resolve(),
    },
    log: createLog({ level: 'DEBUG', format: 'text', stream: sink }),
    modules: [{ name: 'records', retention: records.map((each) => each.retention) }, ...(setting.modules ?? [])],
    cancelOld: () => Promise.resolve(0),
    newest: () => setting.newest,
    clock: setting.clock ?? { now: () => NOW, monotonic: () => 0 },
    settings: {
      days: { ...none, ...setting.days },
      maxRecords: setting.maxRecords ?? 0,
      maxDatabaseBytes: setting.maxDatabaseBytes ?? 0,
      pauseSeconds: 0,
      intervalSeconds: 86_400,
    },
  })
  stops.push(maintenance)
  await maintenance.start?.()
  return { maintenance, log: sink }
}

describe('rounds', () => {
  test('what is older than its kind is kept goes, and what has not ended stays', async () => {
    const executions = new Records('executions', [40, 31, 30.5, 29, 1], [31])
    const traces = new Records('traces', [400])
    const { maintenance } = await start([executions, traces], { days: { executions: 30 } })
    await maintenance.collect()
    expect(executions.left).toEqual([31, 29, 1])
    expect(traces.left).toEqual([400])
    expect(traces.slices).toBe(0)
  })

  test('of too many the oldest go that have ended', async () => {
    const executions = new Records('executions', [9, 8, 7, 6, 5, 4], [9, 7])
    const { maintenance, log } = await start([executions], { maxRecords: 3 })
    await maintenance.collect()
    expect(executions.left).toEqual([9, 7, 4])
    expect(log.text).toContain('surplus=3')
  })

  test('of a database that is too large the oldest of all kinds go', async () => {
    const days = Array.from({ length: 40 }, (_, n) => 50 - n)
    const executions = new Records('executions', days, [50, 49])
    const instances = new Records('trigger-instances', days)
    const tokens = new Records('tokens', [100])
    const usedBytes = (): number => (executions.times.length + instances.times.length) * 100
    const { maintenance } = await start([executions, instances, tokens], { maxDatabaseBytes: 5000, usedBytes })
    await maintenance.collect()
    expect(usedBytes()).toBeLessThanOrEqual(5000)
    expect(executions.left.slice(0, 2)).toEqual([50, 49])
    expect(tokens.left).toEqual([100])
    // No more than that.
    expect(usedBytes()).toBeGreaterThan(3000)
  })

  test('a database that is too large by what has not ended is told of', async () => {
    const executions = new Records('executions', [3, 2], [3, 2])
    const { maintenance, log } = await start([executions], { maxDatabaseBytes: 1, usedBytes: () => 100 })
    await maintenance.collect()
    expect(log.text).toContain('retention.too_large')
    expect(executions.left).toEqual([3, 2])
  })

  test('a kind that fails costs the others nothing, and a task neither', async () => {
    const broken = new Records('executions', [9]).retention
    const traces = new Records('traces', [9])
    const ran: string[] = []
    const failing: Module = {
      name: 'failing',
      retention: [{ ...broken, remove: () => Promise.reject(new Error('cannot be read')) }],
      maintenance: [
        { name: 'breaks', everySeconds: 86_400, run: () => Promise.reject(new Error('breaks')) },
        {
          name: 'works',
          everySeconds: 86_400,
          run: () => {
            ran.push('works')
            return Promise.resolve()
          },
        },
      ],
    }
    const { maintenance, log } = await start([traces], { days: { executions: 1, traces: 1 }, modules: [failing] })
    await maintenance.collect()
    expect(traces.left).toEqual([])
    expect(log.text).toContain('cannot be read')
    expect(log.text).toContain('The task "breaks" failed')
    expect(ran).toContain('works')
  })

  fullOnly(test)('tasks run by themselves, one at a time, and a stop does not wait for the next', async () => {
    let running = 0
    let runs = 0
    const task = (name: string): { name: string; everySeconds: number; run: () => Promise<void> } => ({
      name,
      everySeconds: 0.01,
      async run() {
        running += 1
        expect(running).toBe(1)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
        runs += 1
      },
    })
    const { maintenance } = await start([], { modules: [{ name: 'tasks', maintenance: [task('a'), task('b')] }] })
    await waitFor('some runs', () => runs > 6)
    await maintenance.stop?.()
    const before = runs
    await new Promise((resolve) => setImmediate(resolve))
    expect(runs).toBe(before)
  })
})

describe('a clock that is wrong', () => {
  const at = { wallMs: 0, realMs: 0 }
  const clock = { now: () => NOW + at.wallMs * 1000, monotonic: () => at.realMs }
  const pass = (ms: number): void => {
    at.wallMs += ms
    at.realMs += ms
  }
  const guardOf = (newest?: string): ReturnType<typeof createClockGuard> => {
    Object.assign(at, { wallMs: 0, realMs: 0 })
    return createClockGuard({ ...clock, newest: () => newest })
  }

  test('deletes nothing for a day after it has leapt forward', () => {
    const guard = guardOf()
    pass(10 * HOUR_MS)
    expect(guard.reason()).toBeUndefined()
    at.wallMs += 3650 * 24 * HOUR_MS
    expect(guard.reason()).toContain('leapt forward by 87600 hours')
    pass(23 * HOUR_MS)
    expect(guard.reason()).toBeDefined()
    pass(2 * HOUR_MS)
    expect(guard.reason()).toBeUndefined()
  })

  test('may be put right by a little, and go back, as it likes', () => {
    const guard = guardOf()
    at.wallMs += 20 * 60_000
    expect(guard.reason()).toBeUndefined()
    at.wallMs -= 365 * 24 * HOUR_MS
    expect(guard.reason()).toBeUndefined()
  })

  test('deletes nothing for an hour after a start before which nothing has happened for long', () => {
    const guard = guardOf(formatMicros(NOW - 3 * DAY))
    expect(guard.reason()).toContain('more than a day old')
    pass(2 * HOUR_MS)
    expect(guard.reason()).toBeUndefined()
    expect(guardOf(formatMicros(NOW - DAY / 2)).reason()).toBeUndefined()
  })

  test('does not keep too many records', async () => {
    const executions = new Records('executions', [40, 39, 38])
    const { maintenance, log } = await start([executions], {
      days: { executions: 30 },
      maxRecords: 2,
      newest: formatMicros(NOW - 38 * DAY),
    })
    await maintenance.collect()
    expect(executions.left).toEqual([39, 38])
    expect(log.text).toContain('retention.held')
  })
})
