import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../tests/helpers/query-plans.ts'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import type { Step } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import type { Place } from '../../http/list.ts'
import { newId } from '../../core/ids.ts'
import { now } from '../../core/time.ts'
import { createTraceStore, type TraceFilter, type TraceSearch, type TraceSort, type TraceStore } from './store.ts'
import type { TraceMemberKind } from './types.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

interface KnownTrace {
  id: string
  uid: string
  trace_tag: string
  start_timestamp: string
  members: { kind: TraceMemberKind; id: string }[]
}

let folder: TemporaryFolder
let queries: QueryPlans
let store: TraceStore
/** Oldest first. */
const known: KnownTrace[] = []
const rules = [newId(), newId(), newId()]
const manyTag = 'svc.IntervalTimer-every-second'
const seed = seedOfRun()

beforeAll(async () => {
  folder = makeFolder()
  const path = `${folder.path}/svc.db`
  queries = watchQueries(await openSqlite({ path, synchronous: 'normal', announce: () => undefined }), path)
  store = createTraceStore(queries.database)
  const random = createRandom(seed)
  const steps: Step[] = []
  for (let n = 0; n < 2500; n += 1) {
    const trace_tag = n % 2 === 0 ? manyTag : n % 50 === 1 ? random.pick(['deploy', 'Deploy', '% _']) : `tag-${n}`
    const trace = { id: newId(), uid: `trace:${n}`, trace_tag, start_timestamp: now() }
    const members: KnownTrace['members'] = []
    if (!random.once(4)) members.push({ kind: 'trigger_instance', id: newId() })
    if (!random.once(3)) members.push({ kind: 'execution', id: newId() })
    if (random.once(5)) members.push({ kind: 'execution', id: newId() })
    if (n % 3 !== 0) {
      const rule = random.once(20) ? (rules[1] ?? '') : (rules[0] ?? '')
      members.push({ kind: 'rule', id: rule }, { kind: 'rule', id: rule })
    }
    steps.push(store.insert(trace))
    for (const { kind, id } of members) {
      steps.push(store.addMember(trace.id, { kind, object_id: id, ref: 'core.x' }, undefined, now()))
    }
    known.push({ ...trace, members })
  }
  await queries.database.write({ steps, facts: [] })
})

afterAll(async () => {
  await queries.database.close()
  folder.remove()
})

function fits(trace: KnownTrace, filter: TraceFilter): boolean {
  const has = (kind: TraceMemberKind, wanted: string | null | undefined): boolean => {
    if (wanted === undefined) return true
    const ids = trace.members.filter((member) => member.kind === kind).map(({ id }) => id)
    return wanted === null ? ids.length === 0 : ids.includes(wanted)
  }
  return (
    (filter.ids?.includes(trace.id) ?? true) &&
    (filter.within?.includes(trace.id) ?? true) &&
    (filter.trace_tag === undefined || filter.trace_tag === trace.trace_tag) &&
    trace.trace_tag.startsWith(filter.trace_tag_prefix ?? '') &&
    has('execution', filter.execution) &&
    has('rule', filter.rule) &&
    has('trigger_instance', filter.trigger_instance)
  )
}

function expected({ filter, sort, place = {}, limit, offset }: TraceSearch): string[] {
  const sign = sort.id === 'asc' ? 1 : -1
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
  return known
    .filter((trace) => fits(trace, filter))
    .filter(({ id }) => id > (place.after ?? '') && id < (place.before ?? 'g'))
    .sort((a, b) => {
      const byTag = sort.tag === undefined ? 0 : compare(a.trace_tag, b.trace_tag) * (sort.tag === 'asc' ? 1 : -1)
      return byTag === 0 ? compare(a.id, b.id) * sign : byTag
    })
    .slice(offset, limit === undefined ? undefined : offset + limit)
    .map(({ id }) => id)
}

async function found(search: TraceSearch): Promise<string[]> {
  return [...(await store.search(search))].map(({ id }) => id)
}

const newest: TraceSort = { id: 'desc' }
const someTraces = (count: number): string[] =>
  known
    .filter((_, n) => n % 7 === 3)
    .slice(0, count)
    .map(({ id }) => id)
const memberOf = (kind: TraceMemberKind, n: number): string =>
  known
    .slice(n)
    .flatMap(({ members }) => members)
    .find((member) => member.kind === kind)?.id ?? ''

/** Every value that the filters are tried with, by name. */
const values = (): { [N in keyof Required<TraceFilter>]: (TraceFilter[N] | undefined)[] } => ({
  ids: [undefined, [], someTraces(5), ['x', newId()]],
  within: [undefined, [], someTraces(60)],
  trace_tag: [undefined, manyTag, 'deploy', 'tag-11', '%', "' or 1=1 --"],
  trace_tag_prefix: [undefined, 'svc.', 'de', 'tag-11', '%', "' or 1=1 --"],
  execution: [undefined, null, memberOf('execution', 800), rules[0]],
  rule: [undefined, null, rules[0], rules[1], rules[2], memberOf('execution', 800)],
  trigger_instance: [undefined, null, memberOf('trigger_instance', 800), 'null'],
})

const sorts: TraceSort[] = [
  newest,
  { id: 'asc' },
  { tag: 'asc', id: 'asc' },
  { tag: 'desc', id: 'desc' },
  { tag: 'asc', id: 'desc' },
  { tag: 'desc', id: 'asc' },
]

describe('a search', () => {
  fullOnly(test)(
    'finds by every single filter and every pair what a look at each trace finds, in each order',
    async () => {
      const names = Object.keys(values()) as (keyof TraceFilter)[] // its own keys
      const filters: TraceFilter[] = [{}]
      for (const [i, first] of names.entries()) {
        for (const second of names.slice(i)) {
          for (const a of values()[first]) {
            for (const b of values()[second]) filters.push(toFilter([first, a], [second, b]))
          }
        }
      }
      for (const [n, filter] of filters.entries()) {
        const sort = sorts[n % sorts.length] ?? newest
        for (const [limit, offset] of [
          [10, 0],
          [60, 3],
          [undefined, 20],
        ] as const) {
          const search = { filter, sort, limit, offset }
          expect([search, await found(search)]).toEqual([search, expected(search)])
        }
        expect([filter, await store.total(filter)]).toEqual([
          filter,
          known.filter((trace) => fits(trace, filter)).length,
        ])
      }
    },
    240_000,
  )

  test(`finds by filters at random the same (SVC_TEST_SEED=${seed})`, async () => {
    const random = createRandom(seed)
    for (let n = 0; n < 300; n += 1) {
      const pairs = Object.entries(values()).map(([name, some]): [string, unknown] => [
        name,
        some[random.below(some.length)],
      ])
      const filter = toFilter(...pairs)
      const sort = sorts[random.below(sorts.length)] ?? newest
      const search: TraceSearch = { filter, sort, limit: 1 + random.below(40), offset: random.below(4) }
      if (sort.tag === undefined && random.once(2)) {
        const [one = '', other = ''] = [1, 2].map(() => known[random.below(known.length)]?.id)
        search.place = random.pick<Place>([{ before: one }, { after: one }, { before: one, after: other }])
      }
      expect([search, await found(search), await store.total(filter)]).toEqual([
        search,
        expected(search),
        known.filter((trace) => fits(trace, filter)).length,
      ])
    }
  })

  function toFilter(...pairs: [name: string, value: unknown][]): TraceFilter {
    return Object.fromEntries(pairs.filter(([, value]) => value !== undefined))
  }
})

describe('SQLite', () => {
  const page = async (filter: TraceFilter, sort: TraceSort = newest, offset = 0): Promise<string[]> => {
    queries.take()
    const rows = await found({ filter, sort, limit: 50, offset })
    expect(rows).toEqual(expected({ filter, sort, limit: 50, offset }))
    return queries.take()
  }
  const total = async (filter: TraceFilter): Promise<string[]> => {
    queries.take()
    await store.total(filter)
    return queries.take()
  }

  test.each<[name: string, filter: () => TraceFilter, sort: TraceSort, step: RegExp]>([
    ['all', () => ({}), newest, /^(SCAN|SEARCH) t USING INDEX sqlite_autoindex_traces_1( \(id<\?\))?$/],
    [
      'all, oldest first',
      () => ({}),
      { id: 'asc' },
      /^(SCAN|SEARCH) t USING INDEX sqlite_autoindex_traces_1( \(id>\?\))?$/,
    ],
    [
      'all by tag',
      () => ({}),
      { tag: 'asc', id: 'asc' },
      /^(SCAN|SEARCH) t USING INDEX traces_tag( \(\(trace_tag,id\)>\(\?,\?\)\))?$/,
    ],
    [
      'all by tag, backwards',
      () => ({}),
      { tag: 'desc', id: 'desc' },
      /^(SCAN|SEARCH) t USING INDEX traces_tag( \(\(trace_tag,id\)<\(\?,\?\)\))?$/,
    ],
    [
      'those of a tag',
      () => ({ trace_tag: manyTag }),
      newest,
      /^SEARCH t USING INDEX traces_tag \(trace_tag=\?( AND id<\?)?\)$/,
    ],
    [
      'those of a rule',
      () => ({ rule: rules[0] ?? '' }),
      newest,
      /^SEARCH r USING PRIMARY KEY \(rule_id=\?( AND trace_id<\?)?\); SEARCH t USING INDEX sqlite_autoindex_traces_1 \(id=\?\)$/,
    ],
  ])('walks an index in its order to %s, some at a time', async (_, filter, sort, step) => {
    for (const offset of [0, 100]) {
      const walked = (await page(filter(), sort, offset)).filter((plan) => plan.includes(' t '))
      expect(walked).toEqual([expect.stringMatching(step), expect.stringMatching(step)])
    }
  })

  test('counts them without looking at them', async () => {
    for (const filter of [{}, { trace_tag: manyTag }, { rule: rules[0] ?? '' }]) {
      for (const plan of await total(filter))
        expect(plan).toMatch(/^SEARCH (totals|trace_\w+_counts) USING PRIMARY KEY/)
    }
    expect(await total({ trace_tag: 'tag-11' })).toEqual([
      expect.stringMatching(/^SEARCH trace_tag_counts USING PRIMARY KEY/),
      expect.stringMatching(/^SEARCH traces USING INDEX traces_tag \(trace_tag=\?\)$/),
    ])
  })

  test.each<[string, () => TraceFilter]>([
    ['an execution', () => ({ execution: memberOf('execution', 40) })],
    ['a trigger instance', () => ({ trigger_instance: memberOf('trigger_instance', 40) })],
    [
      'an execution, a tag and a rule',
      () => ({ execution: memberOf('execution', 40), trace_tag: manyTag, rule: rules[0] ?? '' }),
    ],
    [
      'an execution in those that may be seen',
      () => ({ execution: memberOf('execution', 40), within: someTraces(100) }),
    ],
    ['ids', () => ({ ids: someTraces(5) })],
    ['ids of a tag', () => ({ ids: someTraces(5), trace_tag: manyTag })],
    ['what may be seen', () => ({ within: someTraces(100) })],
    ['what may be seen of a rule', () => ({ within: someTraces(100), rule: rules[0] ?? '' })],
  ])('goes from %s to the few traces that can fit', async (_, filter) => {
    for (const sort of [newest, sorts[2] ?? newest]) {
      for (const plan of [...(await page(filter(), sort)), ...(await total(filter()))]) {
        expect(plan).not.toMatch(/thread|SCAN (?!value|json_each)/)
        expect(plan).toMatch(/SEARCH t USING (COVERING )?INDEX sqlite_autoindex_traces_1 \(id=\?\)/)
        expect(plan).not.toMatch(/SEARCH c (?!USING INDEX trace_components_object \(object_id=\?\))/)
        expect(plan).not.toMatch(/SEARCH r (?!(EXISTS )?USING PRIMARY KEY \(rule_id=\? AND trace_id=\?\))/)
      }
    }
  })

  test('begins with the rarer one of a tag and a rule', async () => {
    const byRule = await page({ trace_tag: manyTag, rule: rules[1] ?? '' })
    expect(byRule.at(-1)).toMatch(/^SEARCH r USING PRIMARY KEY \(rule_id=\?\); SEARCH t USING INDEX sqlite_autoindex/)
    const byTag = await page({ trace_tag: 'deploy', rule: rules[0] ?? '' })
    expect(byTag.at(-1)).toMatch(/^SEARCH t USING INDEX traces_tag \(trace_tag=\?\); .*SEARCH r USING .*PRIMARY KEY/)
    expect([...byRule, ...byTag].join()).not.toContain('thread')
  })

  test('looks at very many traces on the thread alone', async () => {
    const filters: TraceFilter[] = [
      { execution: null },
      { rule: null },
      { trigger_instance: null },
      { trace_tag: manyTag, rule: rules[0] ?? '' },
    ]
    for (const filter of filters) {
      for (const plans of [await page(filter), await total(filter)]) {
        expect(plans.filter((plan) => plan.includes(' t '))).toEqual([expect.stringMatching(/^thread: /)])
      }
    }
    // Nothing is found of one of them at once, however many there are of the other.
    expect((await page({ trace_tag: manyTag, rule: rules[2] ?? '' })).join()).not.toContain('thread')
  })

  test('goes by the tag to few of them, by their order to many', async () => {
    const few = await page({ trace_tag_prefix: 'tag-11' })
    expect(few.at(-1)).toMatch(/^SEARCH t USING INDEX traces_tag \(trace_tag>\? AND trace_tag<\?\); USE TEMP B-TREE/)
    const many = await page({ trace_tag_prefix: 'svc.' })
    expect(many.at(-1)).toMatch(/^thread: SCAN t USING INDEX sqlite_autoindex_traces_1$/)
    for (const trace_tag_prefix of ['tag-11', 'svc.']) {
      const counted = (await total({ trace_tag_prefix })).at(-1)
      expect(counted).toMatch(/SEARCH t USING COVERING INDEX traces_tag \(trace_tag>\? AND trace_tag<\?\)$/)
      expect(counted?.startsWith('thread: ')).toBe(trace_tag_prefix === 'svc.')
    }
  })

  test('goes on from a place without looking at what is before it', async () => {
    const place = { before: known[2000]?.id ?? '' }
    queries.take()
    const search = { filter: { trace_tag: manyTag }, sort: newest, place, limit: 10, offset: 0 }
    expect(await found(search)).toEqual(expected(search))
    expect(queries.take().at(-1)).toMatch(/^SEARCH t USING INDEX traces_tag \(trace_tag=\? AND id<\?\)$/)
  })

  test('merges the components of all kinds in their order', async () => {
    const { id, members } = known.find((trace) => trace.members.length > 4) ?? { id: '', members: [] }
    const range = { traceId: id, after: 0, before: Number.MAX_SAFE_INTEGER, isDescending: false, limit: 10 }
    queries.take()
    const all = store.members(range)
    const [plan = ''] = queries.take()
    expect(plan).toMatch(/MERGE/)
    expect(plan).not.toMatch(/SCAN|TEMP B-TREE/)
    expect(all.map(({ kind, object_id: object }) => ({ kind, id: object }))).toEqual(members)
    const last = all.at(-1)?.n ?? 0
    expect(store.members({ ...range, isDescending: true, limit: 2 })).toEqual(all.slice(-2).toReversed())
    expect(store.members({ ...range, after: last - 2 })).toEqual(all.slice(-2))
    expect(store.members({ ...range, before: last })).toEqual(all.slice(0, -1))
    expect(await store.countMembers(id)).toBe(members.length)
    expect(await store.countMembers('none')).toBe(0)
  })

  test('finds the components of a kind in their order', () => {
    queries.take()
    const { id } = known[1] ?? { id: '' }
    expect(
      store.components({ traceId: id, kind: 'rule', after: 0, upTo: store.lastComponent(), limit: 10 }),
    ).toHaveLength(2)
    expect(queries.take()).toEqual([
      'SCAN trace_components',
      'SEARCH trace_components USING INDEX trace_components_trace (trace_id=? AND kind=? AND rowid>? AND rowid<?)',
    ])
  })
})

test('a far offset is found on the thread, and what follows it is walked', async () => {
  const far = { filter: {}, sort: newest, limit: 5, offset: 20_000 }
  queries.take()
  expect(await found(far)).toEqual([])
  expect(queries.take().at(-1)).toMatch(/^thread: SCAN t USING INDEX sqlite_autoindex_traces_1$/)
})

test('counts follow traces that go away', async () => {
  const { database } = queries
  const tag = 'passing'
  const ids = [newId(), newId(), newId()]
  for (const id of ids) {
    await database.write({
      steps: [
        store.insert({ id, uid: id, trace_tag: tag, start_timestamp: now() }),
        store.addMember(id, { kind: 'rule', object_id: tag, ref: 'core.x' }, undefined, now()),
      ],
      facts: [],
    })
  }
  for (const id of ids) {
    const counts = [await store.total({ trace_tag: tag }), await store.total({ rule: tag }), await store.total({})]
    const left = ids.length - ids.indexOf(id)
    expect(counts).toEqual([left, left, known.length + left])
    await database.write({
      steps: [
        { query: database.build.deleteFrom('traces').where('id', '=', id) },
        { query: database.build.deleteFrom('trace_rules').where('trace_id', '=', id) },
      ],
      facts: [],
    })
  }
  expect([await store.total({ trace_tag: tag }), await store.total({ rule: tag }), await store.total({})]).toEqual([
    0,
    0,
    known.length,
  ])
})
