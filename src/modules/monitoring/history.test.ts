/** The history, on a real database, by a clock of the tests. */
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { createLog } from '../../lib/log/log.ts'
import { microsOf } from '../../core/time.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { createHistory, KEPT_MINUTES, type HistoryRecorder } from './history.ts'
import type { StatusSample } from './types.ts'

const SECOND = 1_000_000
const MINUTE = 60 * SECOND

let folder: TemporaryFolder
let database: Database
let histories: HistoryRecorder[]
let now: number
let gauges: Record<string, number>
let delay: { mean: number; p99: number; max: number }
let sink: TextSink

function create(over: Database = database): HistoryRecorder {
  const history = createHistory({
    database: over,
    log: createLog({ level: 'INFO', format: 'text', stream: sink }),
    readings: () => Object.entries(gauges).map(([key, value]) => ({ key, about: key, value })),
    loopDelay: () => delay,
    now: () => now,
  })
  histories.push(history)
  return history
}

/** The timer of a history is for real time; here a look at the clock is made by hand. */
function pass(history: HistoryRecorder, seconds: number): void {
  for (let passed = 0; passed < seconds; passed += 10) {
    now += Math.min(10, seconds - passed) * SECOND
    history.tick()
  }
}

const all = (history: HistoryRecorder, step = 1): StatusSample[] => history.read(0, step)
const stored = (): number[] =>
  database
    .all(database.build.selectFrom('status_samples').select('minute').orderBy('minute'))
    .map(({ minute }) => minute)

beforeEach(async () => {
  folder = makeFolder()
  database = await openSqlite({ path: join(folder.path, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  histories = []
  now = microsOf('2030-01-01T10:00:20.000000Z')
  gauges = {}
  delay = { mean: 0, p99: 0, max: 0 }
  sink = new TextSink()
})
afterEach(async () => {
  for (const history of histories) await history.stop().catch(() => undefined)
  await database.close()
  folder.remove()
})

test('each minute has its counts and the maximum of its readings', async () => {
  const history = create()
  history.start()
  const { metrics } = history
  metrics.count('execution.status', { status: 'requested' })
  metrics.count('execution.status', { status: 'running' })
  metrics.count('execution.status', { status: 'running' }, -1)
  metrics.count('execution.ended', { action: 'a.b', status: 'failed' })
  metrics.time('execution.run', { action: 'a.b', runner: 'r' }, 2000)
  gauges = { 'actionrunner.queue.request': 7, 'process.memory.resident_bytes': 1e8 }
  delay = { mean: 1, p99: 2, max: 30 }
  pass(history, 10)
  gauges = { 'actionrunner.queue.request': 2, 'process.memory.resident_bytes': 1e8 }
  delay = { mean: 3, p99: 4, max: 5 }
  pass(history, 30)
  metrics.count('execution.ended', { action: 'a.b', status: 'succeeded' })
  metrics.time('trigger.processed', { trigger: 't', type: 't' }, 1)
  const hook = { surface: 'api', method: 'POST', route: '/webhooks/*hook' }
  for (const status of ['202', '200', '401', 'none']) metrics.time('http.response', { ...hook, status }, 1)
  metrics.time('http.response', { ...hook, method: 'GET', status: '200' }, 1)
  metrics.time('http.response', { surface: 'api', method: 'POST', route: '/executions', status: '201' }, 1)
  pass(history, 60)
  expect(all(history)).toMatchObject([
    {
      timestamp: '2030-01-01T10:00:00.000000Z',
      seconds: 40,
      queues: { request: 7, work: 0, cancel: 0, trigger: 0 },
      executions: { started: 1, succeeded: 0, failed: 1, timeout: 0, canceled: 0, abandoned: 0 },
      run_seconds: { p50: expect.closeTo(2, 0), p95: expect.closeTo(2, 0) },
      event_loop: { mean_ms: 3, max_ms: 30 },
      memory: { resident_bytes: 1e8, heap_bytes: 0 },
    },
    {
      timestamp: '2030-01-01T10:01:00.000000Z',
      seconds: 60,
      executions: { started: 0, succeeded: 1, failed: 0 },
      run_seconds: null,
      trigger_instances: 1,
      webhooks: 2,
    },
    { timestamp: '2030-01-01T10:02:00.000000Z', seconds: 0 },
  ])
})

test('an idle server writes once a minute', async () => {
  const history = create()
  history.start()
  pass(history, 40)
  const { units } = database.stats()
  for (let minute = 1; minute <= 10; minute++) {
    pass(history, 60)
    await database.write({ steps: [], facts: [] })
  }
  // Fewer, where a write of the history and one of this test became one unit.
  expect(database.stats().units - units - 10).toBeLessThanOrEqual(10)
  expect(stored()).toHaveLength(11)
})

test('merging minutes adds counts and durations and takes the maximum of gauges', () => {
  const history = create()
  history.start()
  now = microsOf('2030-01-01T10:05:00.000000Z')
  history.tick()
  for (let minute = 0; minute < 5; minute++) {
    history.metrics.count('execution.status', { status: 'running' })
    // 100 ms four times, and once ten seconds.
    history.metrics.time('execution.run', { action: 'a', runner: 'r' }, minute === 2 ? 10_000 : 100)
    gauges = { 'actionrunner.slots.used': minute }
    pass(history, 60)
  }
  const [, joined] = all(history, 5)
  expect(joined).toMatchObject({
    timestamp: '2030-01-01T10:05:00.000000Z',
    seconds: 300,
    executions: { started: 5 },
    slots: { used: 4 },
  })
  expect(joined?.run_seconds?.p50).toBeCloseTo(0.1, 1)
  expect(joined?.run_seconds?.p95).toBeGreaterThan(7)
})

test('no samples while the server is off; a restart continues the same minute', async () => {
  const before = create()
  before.start()
  before.metrics.count('execution.status', { status: 'running' })
  now += 10 * SECOND
  await before.stop()
  now += 10 * SECOND
  const same = create()
  same.metrics.count('execution.status', { status: 'running' })
  same.start()
  now += 10 * SECOND
  expect(all(same)).toMatchObject([{ seconds: 20, executions: { started: 2 } }])
  await same.stop()
  now += 5 * MINUTE
  const later = create()
  later.start()
  expect(all(later).map(({ timestamp }) => timestamp.slice(11, 16))).toEqual(['10:00', '10:05'])
})

test('a crash loses only the current minute', async () => {
  const dead = create()
  dead.start()
  dead.metrics.count('execution.status', { status: 'running' })
  pass(dead, 60)
  await database.write({ steps: [], facts: [] })
  dead.metrics.count('execution.status', { status: 'running' })
  const next = create()
  next.start()
  expect(all(next)).toMatchObject([{ executions: { started: 1 } }, { executions: { started: 0 } }])
})

describe('the clock', () => {
  test('set back: counts go to the existing minutes', () => {
    const history = create()
    history.start()
    pass(history, 60)
    history.metrics.count('execution.status', { status: 'running' })
    now -= 30 * MINUTE
    history.tick()
    history.metrics.count('execution.status', { status: 'running' })
    pass(history, 60)
    const samples = all(history)
    expect(samples.map(({ executions }) => executions.started)).toEqual([1, 0])
    now += 29 * MINUTE
    history.tick()
    history.metrics.count('execution.status', { status: 'running' })
    expect(all(history).map(({ executions }) => executions.started)).toEqual([1, 0, 0, 2])
  })

  test('set forward: the skipped time is not counted', () => {
    const history = create()
    history.start()
    now += 3 * 3600 * SECOND
    history.tick()
    const samples = all(history)
    expect(samples).toHaveLength(2)
    expect(samples.every(({ seconds }) => seconds <= 60)).toBe(true)
  })
})

test('deletes old samples and samples from the future', async () => {
  const history = create()
  history.start()
  const present = history.minuteNow()
  const row = (minute: number) => ({ minute, sample: '{"seconds":60,"gauges":{},"counts":{},"runs":[]}' })
  const steps = [present - KEPT_MINUTES - 1, present - KEPT_MINUTES, present - 60, present + 1, present + 99_999].map(
    (minute) => ({ query: database.build.insertInto('status_samples').values(row(minute)) }),
  )
  await database.write({ steps, facts: [] })
  const [task] = history.maintenance
  await task?.run(new AbortController().signal)
  expect(stored()).toEqual([present - KEPT_MINUTES, present - 60])
  expect(KEPT_MINUTES).toBeGreaterThan(24 * 60)
})

test('unsaved samples stay in memory up to a limit, with one warning', async () => {
  let isFull = true
  const full: Database = {
    ...database,
    write: (unit) => (isFull ? Promise.reject(new Error('no room')) : database.write(unit)),
  }
  const history = create(full)
  history.start()
  for (let minute = 0; minute < 200; minute++) {
    history.metrics.count('execution.status', { status: 'running' })
    pass(history, 60)
    await Promise.resolve()
  }
  expect(stored()).toEqual([])
  const kept = all(history)
  expect(kept.length).toBeGreaterThan(100)
  expect(kept.length).toBeLessThan(130)
  isFull = false
  pass(history, 60)
  await history.stop()
  expect(stored().length).toBeGreaterThanOrEqual(kept.length)
  expect(sink.text.split('status_history.not_stored').length - 1).toBe(1)
})
