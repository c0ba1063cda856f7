/** The gatherer, on a real database and a real event loop. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createMemoryBus } from '../../bus/memory.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import type { Database } from '../../db/database.ts'
import { createLog } from '../../lib/log/log.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createMonitoring, type Monitoring, type ServerFacts } from './index.ts'

let folder: TemporaryFolder
let database: Database
let monitoring: Monitoring
const log = createLog({ level: 'INFO', format: 'text', stream: new TextSink() })

beforeEach(async () => {
  folder = makeFolder()
  database = await openSqlite({ path: join(folder.path, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  monitoring = createMonitoring({
    database,
    bus: createMemoryBus(() => undefined),
    log,
    config: {
      driver: 'noop',
      host: '127.0.0.1',
      port: 8125,
      prefix: '',
      sample_rate: 1,
      prometheus: true,
      prometheus_token: '',
    },
    tracing: { otlp_endpoint: '', otlp_headers: {}, service_name: 'svc' },
    causeOf: () => undefined,
    // A minute that ends would be a commit.
    now: () => 1_893_456_000_000_000,
  })
  await monitoring.start?.()
})
afterEach(async () => {
  await monitoring.stop?.()
  await database.close()
  folder.remove()
})

const facts: Omit<ServerFacts, 'modules'> = {
  startedAt: '2030-01-01T00:00:00.000000Z',
  basePath: '/',
  urls: () => ({ auth: '', api: '', stream: '' }),
  notReady: () => [],
  commandAccount: { user: 'svc', isRoot: false, remedy: '' },
}
const valueOf = (key: string): number | undefined => monitoring.readings().find((each) => each.key === key)?.value

test('gauges of the process and of the database have current values', async () => {
  monitoring.observe([monitoring], facts)
  expect(valueOf('database.file_bytes')).toBeGreaterThanOrEqual(4096)
  expect(valueOf('database.log_bytes')).toBeGreaterThan(100_000)
  expect(valueOf('process.memory.resident_bytes')).toBeGreaterThan(10_000_000)
  expect(valueOf('database.waiting_units')).toBe(0)
  const written = Promise.all([1, 2].map(() => database.write({ steps: [], facts: [] })))
  expect(valueOf('database.waiting_units')).toBe(2)
  await written
  expect(valueOf('database.waiting_units')).toBe(0)
  expect(database.stats()).toMatchObject({ commits: 1, units: 2 })
})

test('a gauge that throws or returns no number is skipped', () => {
  const gauge = (key: string, read: () => number) => ({ key, about: key, read })
  const broken = (): number => {
    throw new Error('not now')
  }
  monitoring.observe(
    [{ name: 'a', gauges: [gauge('a.broken', broken), gauge('a.nan', () => NaN), gauge('a.fine', () => 3)] }],
    facts,
  )
  expect(monitoring.readings()).toEqual([{ key: 'a.fine', about: 'a.fine', value: 3 }])
})

test('a busy event loop has a delay', async () => {
  const delay = await waitFor('a delay of 100 ms', () => {
    const until = performance.now() + 200
    while (performance.now() < until);
    const now = monitoring.loopDelay()
    return now.max >= 100 && now
  })
  expect(delay.p99).toBeGreaterThanOrEqual(delay.mean)
  expect(delay.max).toBeGreaterThanOrEqual(delay.p99)
})
