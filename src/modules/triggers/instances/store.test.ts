import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../../tests/helpers/query-plans.ts'
import type { Database } from '../../../db/database.ts'
import { newId } from '../../../core/ids.ts'
import { formatMicros } from '../../../core/time.ts'
import { WrittenJson } from '../../../lib/json/index.ts'
import { createInstanceStore, type InstanceFilter, type InstanceSort, type InstanceStore } from './store.ts'
import { variants } from '../../../../tests/helpers/tiers.ts'

let folder: TemporaryFolder
let database: Database
let queries: QueryPlans
let store: InstanceStore

/** Microseconds; the instances are a second apart. */
const START = 1_900_000_000_000_000
const newestFirst: InstanceSort[] = [{ column: 'id', descending: true }]

beforeEach(async () => {
  folder = makeFolder()
  const opened = await openDatabase(folder.path)
  database = opened.database
  queries = watchQueries(database, join(folder.path, 'svc.db'))
  store = createInstanceStore(queries.database)
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

/** Instances of three types, oldest first: `big` most of the time, `rare` every tenth; every 20th is pending. */
async function fill(count: number, payload: (i: number) => unknown = (i) => ({ i })): Promise<string[]> {
  const ids: string[] = []
  const steps = Array.from({ length: count }, (_, i) => {
    const micros = START + i * 1_000_000
    const id = newId(micros)
    ids.push(id)
    const type = i % 10 === 0 ? 'p.rare' : 'p.big'
    return store.insert({
      id,
      trigger: `${type}${i % 2}`,
      trigger_id: 't',
      trigger_type: type,
      occurrence_time: formatMicros(micros),
      status: i % 20 === 0 ? 'pending' : 'processed',
      trace_id: 'r',
      payloadText: JSON.stringify(payload(i)),
    })
  })
  await database.write({ steps, facts: [] })
  return ids
}

const page = (filter: InstanceFilter, more: Partial<Parameters<InstanceStore['page']>[0]> = {}): Promise<string[]> =>
  store.page({ filter, sort: newestFirst, limit: 10, offset: 0, ...more })

describe('pages and totals', () => {
  test.each(
    variants<[InstanceFilter, RegExp]>(
      [
        [{}, /^SCAN trigger_instances USING (COVERING )?INDEX/],
        [
          { triggers: ['p.big1'] },
          /SEARCH trigger_instances USING COVERING INDEX trigger_instances_trigger \(trigger=\?\)$/,
        ],
        [
          { triggers: ['p.big1', 'p.rare0', 'p.none'] },
          /^(?=.*MERGE)(?!.*SCAN)(.*SEARCH trigger_instances USING COVERING INDEX trigger_instances_trigger \(trigger=\?\)){3}/,
        ],
        [{ triggers: ['p.big1', 'p.rare0'], status: 'pending' }, /INDEX trigger_instances_status \(status=\?\);/],
        [
          { trigger_type: 'p.rare' },
          /SEARCH trigger_instances USING COVERING INDEX trigger_instances_type \(trigger_type=\?\)$/,
        ],
        [
          { status: 'pending' },
          /SEARCH trigger_instances USING COVERING INDEX trigger_instances_status \(status=\?\)$/,
        ],
        [{ trigger_type: 'p.big', status: 'pending' }, /INDEX trigger_instances_status \(status=\?\)$/],
        [{ trigger_type: 'p.rare', status: 'processed' }, /INDEX trigger_instances_type \(trigger_type=\?\)$/],
        [{ after: formatMicros(START) }, /SEARCH .*\(id>\?\)$/],
        [{ ids: ['a', 'b'] }, /SEARCH .*\(id=\?\)/],
      ],
      5,
    ),
  )('of %j use an index, without sorting', async (filter, plan) => {
    await fill(200)
    queries.take()
    await page(filter)
    const plans = queries.take()
    expect(plans.at(-1)).toMatch(plan)
    expect(plans.join()).not.toContain('TEMP B-TREE')
  })

  test.each(
    variants<[InstanceFilter, number]>(
      [
        [{}, 200],
        [{ triggers: ['p.big1'] }, 100],
        [{ triggers: ['p.big1', 'p.rare0', 'p.none'] }, 120],
        [{ triggers: ['p.big1', 'p.rare0'], status: 'pending' }, 10],
        [{ trigger_type: 'p.rare' }, 20],
        [{ trigger_type: 'p.rare', status: 'pending' }, 10],
        [{ trigger_type: 'p.none' }, 0],
        [{ types: ['p.rare', 'p.none'] }, 20],
        [{ types: [] }, 0],
      ],
      4,
    ),
  )('the total of %j comes from the counts', async (filter, total) => {
    await fill(200)
    queries.take()
    expect(await store.total(filter)).toBe(total)
    expect(queries.take().join()).not.toMatch(/trigger_instances\b/)
    expect(await page(filter, { limit: undefined })).toHaveLength(total)
  })

  test('of several triggers are sorted by time, from every page start', async () => {
    const ids = await fill(100)
    const newest = ids.toReversed().filter((_, n) => n % 2 === 0 || n % 10 === 9)
    const filter = { triggers: ['p.big1', 'p.rare0'] }
    const [at = '', before = ''] = [newest[14], newest[5]]
    expect(await page(filter)).toEqual(newest.slice(0, 10))
    expect(await page(filter, { offset: 7 })).toEqual(newest.slice(7, 17))
    expect(await page(filter, { place: { before: at } })).toEqual(newest.slice(15, 25))
    expect(await page(filter, { place: { before: at }, offset: 3 })).toEqual(newest.slice(18, 28))
    expect(await page(filter, { place: { after: at, before } })).toEqual(newest.slice(6, 14))
    expect(await page({}, { place: { after: ids[90] ?? '' } })).toEqual(ids.slice(91).toReversed())
    // More than are merged are sorted, on the thread.
    const many = { triggers: [...filter.triggers, ...Array.from({ length: 30 }, (_, n) => `p.none${n}`)] }
    queries.take()
    expect(await page(many, { offset: 7 })).toEqual(newest.slice(7, 17))
    expect(queries.take().at(-1)).toMatch(/^thread: /)
  })

  test('of times: both bounds are exclusive', async () => {
    const ids = await fill(5)
    const at = (i: number): string => formatMicros(START + i * 1_000_000)
    const filter = { after: at(1), before: at(4) }
    expect(await page(filter)).toEqual([ids[3], ids[2]])
    expect(await store.total(filter)).toBe(2)
    expect(await page({ after: at(1) })).toEqual([ids[4], ids[3], ids[2]])
    expect(await page({ before: at(1) })).toEqual([ids[0]])
    expect(await page({ before: '0001-01-01T00:00:00.000000Z' })).toEqual([])
  })

  test('queries whose cost grows with the table run on the scan thread', async () => {
    await fill(40)
    queries.take()
    await page({ types: ['p.rare'] })
    await page({}, { offset: 20_000 })
    await page({}, { limit: undefined })
    await page({ trigger_type: 'p.rare', status: 'pending' })
    await page({}, { sort: [{ column: 'trigger', descending: false }] })
    await store.total({ after: formatMicros(START) })
    const plans = queries.take().filter((plan) => !plan.includes('trigger_instance_counts'))
    expect(plans).toHaveLength(6)
    expect(plans.filter((plan) => !plan.startsWith('thread: '))).toEqual([])
  })

  test('counts follow every change', async () => {
    const ids = await fill(40)
    await database.write({ steps: [store.end(ids[0] ?? '', 'processing_failed')], facts: [] })
    await database.write({
      steps: [{ query: database.build.deleteFrom('trigger_instances').where('id', '=', ids[1] ?? '') }],
      facts: [],
    })
    const totals = ['pending', 'processed', 'processing_failed'].map((status) => store.total({ status }))
    expect(await Promise.all(totals)).toEqual([1, 37, 1])
  })

  test('pending instances have an index of their own', async () => {
    const ids = await fill(60)
    queries.take()
    expect(store.pending('', 10).map(({ id }) => id)).toEqual([ids[0], ids[20], ids[40]])
    expect(store.pending(ids[20] ?? '', 10).map(({ id }) => id)).toEqual([ids[40]])
    expect(store.pendingCount()).toBe(3)
    expect(queries.take().join('; ')).toMatch(
      /^(SEARCH .* INDEX trigger_instances_status \(status=\? AND id>\?\); ){2}SEARCH .* INDEX trigger_instances_status \(status=\?\)$/,
    )
  })
})

describe('instances', () => {
  test('are returned in the given order without missing ones', async () => {
    const ids = await fill(60)
    const wanted = [ids[40], ids[3], 'nothing', ids[50], ...ids.slice(0, 30)].map((id) => id ?? '')
    const found = [...store.instances(wanted, Infinity)]
    expect(found.map(({ id }) => id)).toEqual(wanted.filter((id) => id !== 'nothing'))
    expect(found[0]).toEqual({
      id: ids[40],
      trigger: 'p.rare0',
      trigger_id: 't',
      trigger_type: 'p.rare',
      occurrence_time: formatMicros(START + 40_000_000),
      status: 'pending',
      trace_id: 'r',
      payload: { i: 40 },
      payload_size: 8,
    })
    expect([...store.instances([], Infinity)]).toEqual([])
  })

  test('payloads above the limit are not read', async () => {
    const ids = await fill(3, (i) => 'x'.repeat(i * 10))
    const found = [...store.instances(ids, 12)]
    expect(found.map(({ payload, payload_size: size }) => [payload, size])).toEqual([
      ['', 2],
      ['x'.repeat(10), 12],
      [null, 22],
    ])
  })

  test('large payloads are read one by one and only if requested', async () => {
    const ids = await fill(20, (i) => ({ i, text: 'x'.repeat(200_000) }))
    queries.take()
    const one = store.instances(ids, Infinity)
    const indexOf = ({ payload }: { payload: unknown }): unknown => (WrittenJson.read(payload) as { i: number }).i
    const first = one.next().value
    expect(first === undefined ? undefined : indexOf(first)).toBe(0)
    expect(queries.take()).toHaveLength(2)
    expect([...one].map(indexOf)).toEqual(Array.from({ length: 19 }, (_, i) => i + 1))
    queries.take()
    expect([...store.instances(ids, 0)].map(({ payload }) => payload)).toEqual(ids.map(() => null))
    expect(queries.take()).toHaveLength(1)
  })
})
