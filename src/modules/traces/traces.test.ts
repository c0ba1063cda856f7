import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { idBound, newId } from '../../core/ids.ts'
import { microsOf, now } from '../../core/time.ts'
import { createLog } from '../../lib/log/log.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { createTraces, type TracePlan, type Traces } from './index.ts'
import type { Cause, TraceMember } from './types.ts'

const log = createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() })
let folder: TemporaryFolder
let database: Database
let traces: Traces

beforeEach(async () => {
  folder = makeFolder()
  database = await openSqlite({ path: join(folder.path, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  traces = createTraces({ database, log, maxPageSize: 100, openTraces: () => [] })
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

const member = (ref = 'core.local'): TraceMember => ({ kind: 'execution', object_id: newId(), ref })

/** Plans and commits, as whoever makes the member does. */
async function joinTrace(cause: Cause, one = member()): Promise<TracePlan> {
  const plan = traces.plan(cause, one, now())
  await database.write(plan.unit)
  return plan
}

const request = (more: { trace_id?: string; trace_tag?: string } = {}): Cause => ({
  kind: 'request',
  default_tag: 'execution-1',
  ...more,
})

const allTraces = () => database.all(database.build.selectFrom('traces').selectAll().orderBy('id'))
const membersOf = (traceId: string) =>
  database.all(
    database.build
      .selectFrom('trace_components')
      .selectAll()
      .where('trace_id', '=', traceId)
      .orderBy(sql`n`),
  )

describe('a request', () => {
  test('that names no trace starts one, with the default tag', async () => {
    const one = member()
    const { trace_id } = await joinTrace(request(), one)
    const [trace, ...others] = allTraces()
    expect(others).toEqual([])
    expect(trace).toMatchObject({ id: trace_id, trace_tag: 'execution-1' })
    expect(trace?.uid).toMatch(/^trace:[0-9a-f]{32}$/)
    expect(membersOf(trace_id)).toMatchObject([
      { kind: 'execution', object_id: one.object_id, ref: 'core.local', caused_by_type: null, caused_by_id: null },
    ])
    expect(membersOf(trace_id)[0]?.updated_at).toBe(trace?.start_timestamp)
  })

  test('starts one whose id says when it was made', async () => {
    const { trace_id } = await joinTrace(request())
    const [trace] = allTraces()
    const micros = microsOf(trace?.start_timestamp ?? '')
    expect(trace_id >= idBound(micros) && trace_id < idBound(micros + 1)).toBe(true)
  })

  test('may have been caused by something, in whatever trace that is', async () => {
    const caused_by = { type: 'action_execution', id: 'parent' } as const
    const { trace_id } = await joinTrace({ ...request({ trace_tag: 'apart' }), caused_by })
    await joinTrace({ ...request({ trace_tag: 'apart' }), caused_by })
    await joinTrace({ ...request({ trace_id }), caused_by })
    expect(membersOf(trace_id).map(({ caused_by_type: type, caused_by_id: id }) => ({ type, id }))).toEqual([
      caused_by,
      caused_by,
      caused_by,
    ])
  })

  test('with a tag that another one has just started plans again, and joins', async () => {
    const plans = [
      traces.plan(request({ trace_tag: 'new' }), member(), now()),
      traces.plan(request({ trace_tag: 'new' }), member(), now()),
    ]
    const results = await Promise.allSettled(plans.map(({ unit }) => database.write(unit)))
    expect(results).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { name: 'Conflict' } }])
    expect((await joinTrace(request({ trace_tag: 'new' }))).trace_id).toBe(plans[0]?.trace_id)
    expect([allTraces().length, membersOf(plans[0]?.trace_id ?? '').length]).toEqual([1, 2])
  })

  test('with a tag starts a trace once and joins it afterwards', async () => {
    const first = await joinTrace(request({ trace_tag: 'deploy' }))
    const second = await joinTrace(request({ trace_tag: 'deploy' }))
    const other = await joinTrace(request({ trace_tag: 'Deploy' }))
    expect(second.trace_id).toBe(first.trace_id)
    expect(other.trace_id).not.toBe(first.trace_id)
    expect(membersOf(first.trace_id)).toHaveLength(2)
  })

  test('with a tag that several traces have joins the newest', async () => {
    const ids = [newId(), newId(), newId()]
    for (const id of [ids[1], ids[2], ids[0]]) {
      const row = { id: id ?? '', uid: '', trace_tag: 'deploy', start_timestamp: '' }
      await database.write({ steps: [{ query: database.build.insertInto('traces').values(row) }], facts: [] })
    }
    expect((await joinTrace(request({ trace_tag: 'deploy' }))).trace_id).toBe(ids[2])
  })

  test('with an id joins that trace, whatever the tag says', async () => {
    const { trace_id } = await joinTrace(request({ trace_tag: 'deploy' }))
    expect((await joinTrace(request({ trace_id }))).trace_id).toBe(trace_id)
    expect((await joinTrace(request({ trace_id, trace_tag: 'other' }))).trace_id).toBe(trace_id)
    expect(membersOf(trace_id)).toHaveLength(3)
    expect(allTraces()).toHaveLength(1)
  })

  test.each(['000000000000000000000000', 'nonsense', '', '../x', 'x'.repeat(5000)])(
    'with the unknown id %j is refused',
    (trace_id) => {
      expect(() => traces.plan(request({ trace_id }), member(), now())).toThrow(
        expect.objectContaining({
          code: 'TRACE_UNKNOWN',
          kind: 'invalid',
          message: expect.stringContaining(`Unable to find Trace with id="${trace_id.slice(0, 200)}`) as unknown,
        }),
      )
    },
  )
})

test('what something in a trace causes joins it, and says what caused it', async () => {
  const { trace_id } = await joinTrace(request())
  const child = member('core.noop')
  await joinTrace({ kind: 'inherited', trace_id, caused_by: { type: 'action_execution', id: 'parent' } }, child)
  await joinTrace({ kind: 'inherited', trace_id, caused_by: undefined })
  expect(membersOf(trace_id).map(({ caused_by_type, caused_by_id }) => [caused_by_type, caused_by_id])).toEqual([
    [null, null],
    ['action_execution', 'parent'],
    [null, null],
  ])
  expect(membersOf(trace_id)[1]).toMatchObject({ object_id: child.object_id, ref: 'core.noop' })
  expect(allTraces()).toHaveLength(1)
})

test('a plan writes nothing by itself', () => {
  const plan = traces.plan(request(), member(), now())
  expect(plan.unit.steps).toHaveLength(2)
  expect(plan.unit.facts).toEqual([{ name: 'trace.grown', payload: { id: plan.trace_id } }])
  expect(allTraces()).toEqual([])
})

test('a trace that something joins while its many components go stays', async () => {
  const open: string[] = []
  const { retention = [] } = createTraces({ database, log, maxPageSize: 100, openTraces: () => open })
  const { trace_id } = await joinTrace(request())
  await Promise.all(Array.from({ length: 600 }, () => joinTrace(request({ trace_id }))))
  const removing = retention[0]?.remove({ before: '9999-01-01T00:00:00.000000Z', after: '', limit: 10 })
  open.push(trace_id)
  const { object_id } = await joinTrace(request({ trace_id })).then(
    () => membersOf(trace_id).at(-1) ?? { object_id: '' },
  )
  expect(await removing).toMatchObject({ records: 0 })
  expect(allTraces()).toMatchObject([{ id: trace_id }])
  expect(membersOf(trace_id).at(-1)).toMatchObject({ object_id })
  open.length = 0
  expect(await retention[0]?.remove({ before: '9999-01-01T00:00:00.000000Z', after: '', limit: 10 })).toMatchObject({
    records: 1,
  })
  expect(membersOf(trace_id)).toEqual([])
})
