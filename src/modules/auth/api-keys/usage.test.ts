import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import type { Database, Unit } from '../../../db/database.ts'
import { openSqlite } from '../../../db/sqlite/open.ts'
import { createLog, type RootLog } from '../../../lib/log/log.ts'
import { formatMicros } from '../../../core/time.ts'
import { createApiKeyStore, type ApiKeyStore } from './store.ts'
import { createApiKeyUsage, type ApiKeyUsage } from './usage.ts'

const logged = new TextSink()
let folder: TemporaryFolder
let log: RootLog
let database: Database
let store: ApiKeyStore
let usage: ApiKeyUsage
/** Microseconds since the epoch. */
let clock: number
let units: Unit[]
let failure: Error | undefined

beforeEach(async () => {
  folder = makeFolder()
  logged.text = ''
  log = createLog({ level: 'WARNING', format: 'text', stream: logged })
  database = await openSqlite({ path: join(folder.path, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  store = createApiKeyStore(database)
  clock = Date.UTC(2026, 0, 1) * 1000
  units = []
  failure = undefined
  const recording: Database = {
    ...database,
    write(unit) {
      units.push(unit)
      return failure === undefined ? database.write(unit) : Promise.reject(failure)
    },
  }
  // Only these: the database has timers and turns of its own.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  usage = createApiKeyUsage({ database: recording, store, log, now: () => clock })
})

afterEach(async () => {
  await usage.stop()
  vi.useRealTimers()
  await database.close()
  await log.close()
  folder.remove()
})

async function addKey(id: string): Promise<string> {
  const row = { id, user: 'alice', key_hash: id, metadata: '{}', created_at: '', enabled: 1 }
  await database.write({
    steps: [store.insert({ ...row, expires_at: null, scopes: null, last_used_at: null })],
    facts: [],
  })
  return id
}

const stored = (id: string): string | null | undefined => store.find(id)?.last_used_at

/** Lets the writing that a minute has begun come to its end. */
async function passMinute(): Promise<void> {
  await vi.advanceTimersByTimeAsync(60_000)
  await usage.flush()
}

test('many uses of many keys are one writing a minute, and known before', async () => {
  const [a, b, unused] = [await addKey('a'), await addKey('b'), await addKey('unused')]
  for (let i = 0; i < 1000; i++) {
    clock += 10
    usage.note(a)
  }
  usage.note(b)
  const last = formatMicros(clock)
  expect([usage.lastOf(a), usage.lastOf(b), usage.lastOf(unused)]).toEqual([last, last, undefined])
  expect(units).toEqual([])
  await vi.advanceTimersByTimeAsync(59_999)
  expect(units).toEqual([])
  await passMinute()
  expect(units.map(({ steps }) => steps.length)).toEqual([2])
  expect([stored(a), stored(b), stored(unused)]).toEqual([last, last, null])
  expect(usage.lastOf(a)).toBeUndefined()

  await passMinute()
  expect(units).toHaveLength(1)
  clock += 120_000_000
  usage.note(a)
  await passMinute()
  expect(units).toHaveLength(2)
  expect([stored(a), stored(b)]).toEqual([formatMicros(clock), last])
})

test('what was noted while the server stops is written, later uses are not', async () => {
  const id = await addKey('a')
  usage.note(id)
  const last = formatMicros(clock)
  await usage.stop()
  expect(stored(id)).toBe(last)
  clock += 1
  usage.note(id)
  await usage.stop()
  expect(stored(id)).toBe(last)
  const before = units.length
  await vi.advanceTimersByTimeAsync(120_000)
  expect(units).toHaveLength(before)
})

test('a use during the writing is kept for the next', async () => {
  const id = await addKey('a')
  usage.note(id)
  const first = formatMicros(clock)
  const flushed = usage.flush()
  clock += 5
  usage.note(id)
  await flushed
  expect(stored(id)).toBe(first)
  expect(usage.lastOf(id)).toBe(formatMicros(clock))
  await passMinute()
  expect(stored(id)).toBe(formatMicros(clock))
})

test('what cannot be written is logged and tried again', async () => {
  const id = await addKey('a')
  failure = new Error('disk full')
  usage.note(id)
  await passMinute()
  expect(logged.text).toContain('api_key.usage_not_written')
  expect(stored(id)).toBe(null)
  failure = undefined
  await passMinute()
  expect(stored(id)).toBe(formatMicros(clock))
})

test('an earlier use never replaces a later one, and deleted keys do not matter', async () => {
  const id = await addKey('a')
  usage.note(id)
  usage.note('gone')
  await usage.flush()
  const later = formatMicros(clock)
  clock -= 1_000_000
  usage.note(id)
  await usage.flush()
  expect(stored(id)).toBe(later)
  expect(logged.text).toBe('')
})

test('it notes no more keys than it should, and writes them in pieces', async () => {
  for (let i = 0; i < 10_001; i++) usage.note(`k${i}`)
  expect([usage.lastOf('k9999'), usage.lastOf('k10000')]).toEqual([formatMicros(clock), undefined])
  await usage.flush()
  expect(usage.lastOf('k9999')).toBeUndefined()
  expect(units.map(({ steps }) => steps.length)).toEqual(Array.from({ length: 20 }, () => 500))
})
