import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../tests/helpers/query-plans.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import type { TraceTable } from '../../db/tables.ts'
import { parseAttributes, type Projection } from '../../http/list.ts'
import { summaryAttributes, traceAttributes, writeTrace } from './record.ts'
import { createTraceStore, type TraceStore } from './store.ts'
import type { TraceMemberKind, TraceRecord } from './types.ts'

const trace: TraceTable = {
  id: 't',
  uid: 'trace:1',
  trace_tag: 'a "tag"\n',
  start_timestamp: '2030-01-01T00:00:00.000000Z',
}
const everything: Projection = { needed: undefined, apply: (record) => record }

let folder: TemporaryFolder
let queries: QueryPlans
let store: TraceStore

beforeEach(async () => {
  folder = makeFolder()
  const path = `${folder.path}/svc.db`
  queries = watchQueries(await openSqlite({ path, synchronous: 'normal', announce: () => undefined }), path)
  store = createTraceStore(queries.database)
  await queries.database.write({ steps: [store.insert(trace)], facts: [] })
})

afterEach(async () => {
  await queries.database.close()
  folder.remove()
})

async function add(kind: TraceMemberKind, count: number, from = 0): Promise<void> {
  const steps = Array.from({ length: count }, (_, n) =>
    store.addMember('t', { kind, object_id: `${kind}${from + n}`, ref: 'core.x' }, { type: 'rule', id: 'r:i' }, 'now'),
  )
  await queries.database.write({ steps, facts: [] })
}

const textOf = (wanted = everything): string => [...writeTrace(store, trace, wanted)].join('')
const including = (...names: string[]): Projection =>
  parseAttributes(
    { include_attributes: names },
    { known: [...traceAttributes, ...summaryAttributes], excludable: [], always: ['id'] },
  )

test('a trace without components', () => {
  expect(JSON.parse(textOf())).toEqual({ ...trace, action_executions: [], rules: [], trigger_instances: [] })
})

test.each([1, 249, 250, 251, 500, 600])('all of %i components of a kind, in their order', async (count) => {
  await add('execution', count)
  await add('rule', 2)
  await add('execution', 1, count)
  const record = JSON.parse(textOf()) as TraceRecord
  expect(record.action_executions.map(({ object_id: id }) => id)).toEqual(
    Array.from({ length: count + 1 }, (_, n) => `execution${n}`),
  )
  const cause = { type: 'rule', id: 'r:i' }
  expect(record.rules).toEqual([
    { object_id: 'rule0', ref: 'core.x', updated_at: 'now', caused_by: cause },
    { object_id: 'rule1', ref: 'core.x', updated_at: 'now', caused_by: cause },
  ])
})

test('what is not wanted is not read', async () => {
  await add('execution', 3)
  queries.take()
  expect(JSON.parse(textOf(including('trace_tag')))).toEqual({ id: 't', trace_tag: trace.trace_tag })
  expect(queries.take().filter((plan) => plan.includes('trace_components_trace'))).toEqual([])
  expect(JSON.parse(textOf(including('rules')))).toEqual({ id: 't', rules: [] })
  expect(queries.take().filter((plan) => plan.includes('trace_components_trace'))).toHaveLength(1)
})

test('paths reach into components', async () => {
  await add('execution', 2)
  expect(JSON.parse(textOf(including('action_executions.object_id', 'action_executions.caused_by.id')))).toEqual({
    id: 't',
    action_executions: [0, 1].map((n) => ({ object_id: `execution${n}`, caused_by: { id: 'r:i' } })),
  })
})

test('a long one is read as it is taken, and does not grow meanwhile', async () => {
  await add('execution', 2000)
  const pieces = writeTrace(store, trace, everything)
  let text = ''
  for (let n = 0; n < 4; n += 1) text += pieces.next().value ?? ''
  expect(queries.take().filter((plan) => plan.includes('trace_components_trace'))).toHaveLength(2)
  await add('execution', 300, 2000)
  await add('trigger_instance', 1)
  for (const piece of pieces) {
    expect(piece.length).toBeLessThan(50_000)
    text += piece
  }
  const record = JSON.parse(text) as TraceRecord
  expect([record.action_executions.length, record.trigger_instances.length]).toEqual([2000, 0])
})

test('what it began with and how much it holds are told to who asks', async () => {
  expect(JSON.parse(textOf(including('origin', 'component_count')))).toEqual({
    id: 't',
    origin: null,
    component_count: 0,
  })
  await add('trigger_instance', 1)
  await add('execution', 1100)
  expect(JSON.parse(textOf(including('origin', 'component_count')))).toEqual({
    id: 't',
    origin: {
      seq: expect.any(Number) as number,
      kind: 'trigger_instance',
      object_id: 'trigger_instance0',
      ref: 'core.x',
      updated_at: 'now',
      caused_by: { type: 'rule', id: 'r:i' },
    },
    component_count: 1000,
  })
  expect(JSON.parse(textOf(including('origin.kind')))).toEqual({ id: 't', origin: { kind: 'trigger_instance' } })
})

test('more components than are counted here are counted on the thread', async () => {
  for (let from = 0; from < 12_000; from += 4000) await add('execution', 4000, from)
  queries.take()
  expect(await store.countMembers('t')).toBe(12_000)
  expect(queries.take().at(-1)).toMatch(
    /^thread: .*SEARCH trace_components USING COVERING INDEX trace_components_trace/,
  )
})
