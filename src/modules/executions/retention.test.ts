import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { noWorkflows } from '../../../tests/helpers/engine.ts'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { newId } from '../../core/ids.ts'
import type { RecordKind, Retention } from '../../core/retention.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { noPlace } from './output/place.ts'
import { createOutputStore, type OutputStore } from './output/store.ts'
import { createRetentions } from './retention.ts'
import { createExecutionStore, type ExecutionStore } from './store.ts'
import type { ExecutionStatus } from './types.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

const DAY = 86_400_000_000
/** Neither a rule nor an action says how long it keeps its executions. */
const none = { keeps: () => Promise.resolve([]) }
let folder: TemporaryFolder
let database: Database
let store: ExecutionStore
let outputStore: OutputStore
let retentions: Retention[]

beforeEach(async () => {
  folder = makeFolder()
  database = await openSqlite({ path: `${folder.path}/svc.db`, synchronous: 'normal', announce: () => undefined })
  store = createExecutionStore(database)
  outputStore = createOutputStore(database)
  retentions = createRetentions({ store, outputStore, workflows: noWorkflows, rules: none, actions: none, database })
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

interface Made {
  daysAgo: number
  status?: ExecutionStatus
  parent?: string | null
  endDaysAgo?: number
  outputRecords?: number
}

async function make({
  daysAgo,
  status = 'succeeded',
  parent = null,
  endDaysAgo,
  outputRecords = 0,
}: Made): Promise<string> {
  const start = nowMicros() - daysAgo * DAY
  const id = newId(start)
  const ended = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'].includes(status)
  const execution = makeExecution({
    id,
    status,
    parent,
    start_timestamp: formatMicros(start),
    end_timestamp: ended ? formatMicros(nowMicros() - (endDaysAgo ?? daysAgo) * DAY) : null,
    result: { stdout: 'kept' },
  })
  const output = Array.from({ length: outputRecords }, (_, index) =>
    outputStore.insertOutput(
      {
        id: newId(start + index),
        execution_id: id,
        seq: index + 1,
        output_type: 'stdout',
        data: 'x'.repeat(5000),
        timestamp: formatMicros(start + index),
        host: null,
      },
      noPlace,
    ),
  )
  await database.write({ steps: [...store.insert(execution), ...output], facts: [] })
  return id
}

const of = (kind: RecordKind): Retention => {
  const found = retentions.find((each) => each.kind === kind)
  if (found === undefined) throw new Error(kind)
  return found
}

async function removeAll(kind: RecordKind, daysAgo: number, limit = 1000): Promise<number> {
  const before = formatMicros(nowMicros() - daysAgo * DAY)
  const count = { counted: 0, removed: 0 }
  for (let after: string | undefined = ''; after !== undefined;) {
    const slice: { records: number; next: string | undefined } = of(kind).count({ before, after, limit })
    count.counted += slice.records
    after = slice.next
  }
  for (let after: string | undefined = ''; after !== undefined;) {
    const slice: { records: number; next: string | undefined } = await of(kind).remove({ before, after, limit })
    count.removed += slice.records
    after = slice.next
  }
  expect(count.removed).toBe(count.counted)
  return count.removed
}

function rows(sql: string): unknown[] {
  const connection = new Sqlite(`${folder.path}/svc.db`, { readonly: true })
  try {
    return connection.prepare(sql).pluck().all()
  } finally {
    connection.close()
  }
}

test('executions that ended before the time go with their output and results, and the counts follow', async () => {
  const old = await make({ daysAgo: 9, outputRecords: 250 })
  await make({ daysAgo: 9, status: 'failed' })
  const young = await make({ daysAgo: 2, outputRecords: 3 })
  const long = await make({ daysAgo: 30, endDaysAgo: 1 })
  for (const status of ['running', 'pending', 'requested', 'delayed', 'paused'] as const)
    await make({ daysAgo: 30, status })
  expect(await removeAll('executions', 7)).toBe(2)
  expect(store.find(old)).toBeUndefined()
  expect(store.find(young)).toBeDefined()
  expect(store.find(long)).toBeDefined()
  expect(rows('select count(*) from output_records')).toEqual([3])
  expect(rows('select count(*) from execution_results')).toEqual([7])
  expect(rows('select sum(count) from execution_counts')).toEqual([7])
  expect(store.count()).toBe(7)
  expect(await removeAll('executions', 7)).toBe(0)
})

test('many go in slices, also where those that stay are among them', async () => {
  for (let n = 0; n < 70; n++) await make({ daysAgo: 9, status: n % 7 === 0 ? 'running' : 'succeeded' })
  expect(await removeAll('executions', 7, 20)).toBe(60)
  expect(store.count()).toBe(10)
})

test('what belongs to an execution that goes on stays with it', async () => {
  const parent = await make({ daysAgo: 30, status: 'running' })
  const child = await make({ daysAgo: 20, parent })
  const orphan = await make({ daysAgo: 20, parent: newId() })
  expect(await removeAll('executions', 7)).toBe(1)
  expect(store.find(child)).toBeDefined()
  expect(store.find(orphan)).toBeUndefined()
})

test('old output goes alone, also of executions that run', async () => {
  const ended = await make({ daysAgo: 9, outputRecords: 250 })
  const running = await make({ daysAgo: 8, status: 'running', outputRecords: 5 })
  const young = await make({ daysAgo: 1, outputRecords: 4 })
  expect(await removeAll('output', 7)).toBe(255)
  expect(store.find(ended)).toBeDefined()
  expect(outputStore.outputAfter(running, 0, 10)).toEqual([])
  expect(outputStore.outputAfter(young, 0, 10)).toHaveLength(4)
  expect(await removeAll('output', 7)).toBe(0)
})

test('the file becomes smaller, and the log too once nobody writes', async () => {
  for (let n = 0; n < 20; n++) await make({ daysAgo: 9, outputRecords: 100 })
  await make({ daysAgo: 1, outputRecords: 100 })
  await waitFor('all of it to be in the file', () => database.stats().fileBytes > 8_000_000)
  await removeAll('executions', 7)
  await database.reclaim(new AbortController().signal)
  await waitFor('the file to be small', () => database.stats().fileBytes < 2_500_000)
  await waitFor('the log to be small', () => database.stats().logBytes <= 1024 * 1024)
  const { fileBytes, usedBytes } = database.stats()
  expect(fileBytes - usedBytes).toBeLessThan(1_100_000)
})

fullOnly(test)('a file that cannot give room back, because another tool has made it, ends the attempt', async () => {
  const path = `${folder.path}/other.db`
  const tool = new Sqlite(path)
  tool.exec('create table junk (x)')
  const insert = tool.prepare('insert into junk values (?)')
  for (let i = 0; i < 2000; i++) insert.run('x'.repeat(4000))
  tool.exec('drop table junk')
  tool.close()
  const other = await openSqlite({ path, synchronous: 'normal', announce: () => undefined })
  const { fileBytes } = other.stats()
  await other.reclaim(new AbortController().signal)
  expect(other.stats().fileBytes).toBe(fileBytes)
  await other.close()
})

test('the oldest, and how many there are', async () => {
  expect(of('executions').oldest?.(0)).toBeUndefined()
  for (const daysAgo of [9, 5, 3]) await make({ daysAgo })
  expect(of('executions').total?.()).toBe(3)
  const times = [0, 1, 2].map((skip) => of('executions').oldest?.(skip) ?? '')
  expect(times).toEqual(times.toSorted())
  expect(new Set(times).size).toBe(3)
  expect(of('executions').oldest?.(3)).toBeUndefined()
})
