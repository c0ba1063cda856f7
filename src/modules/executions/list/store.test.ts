import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { makeExecution } from '../../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import type { Compilable, Database } from '../../../db/database.ts'
import { openSqlite } from '../../../db/sqlite/open.ts'
import { newId } from '../../../core/ids.ts'
import { createExecutionStore, type ExecutionStore } from '../store.ts'
import type { ExecutionFilter } from './filter.ts'
import { createExecutionListStore, type ExecutionListStore } from './store.ts'
import type { ExecutionStatus } from '../types.ts'

let folder: TemporaryFolder
let database: Database
let store: ExecutionStore
let list: ExecutionListStore
/** The last search that was made. */
let searched: Compilable | undefined

beforeEach(async () => {
  folder = makeFolder()
  const path = `${folder.path}/svc.db`
  const real = await openSqlite({ path, synchronous: 'normal', announce: () => undefined })
  database = {
    ...real,
    scan: (query) => {
      searched = query
      return real.scan(query)
    },
  }
  store = createExecutionStore(database)
  list = createExecutionListStore(database)
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

async function add(count: number, status: ExecutionStatus, user: string, parent: string | null = null): Promise<void> {
  const steps = Array.from({ length: count }, () => store.insert(makeExecution({ status, user, parent })))
  await database.write({ steps: steps.flat(), facts: [] })
}

/** How SQLite goes about the last search. */
function planOfSearch(): string {
  const { sql, parameters } = searched?.compile() ?? { sql: '', parameters: [] }
  const connection = new Sqlite(`${folder.path}/svc.db`, { readonly: true })
  try {
    const rows = connection.prepare(`explain query plan ${sql}`).all(...parameters) as { detail: string }[] // SQLite's columns
    return rows.map(({ detail }) => detail).join('; ')
  } finally {
    connection.close()
  }
}

test('a search walks the index that leads to the fewest executions', async () => {
  const parent = newId()
  await add(300, 'succeeded', 'svc')
  await add(3, 'succeeded', 'once')
  await add(2, 'failed', 'svc', parent)
  const search = async (filter: ExecutionFilter): Promise<string> => {
    const page = { filter, sort: [], limit: 10, offset: 0 }
    const ids = await list.page(page)
    expect(ids).toHaveLength(Math.min(10, await list.total(filter)))
    await list.page(page)
    return planOfSearch()
  }
  expect(await search({ status: 'succeeded', user: 'once' })).toMatch(/executions_user \(user=\?\)$/)
  expect(await search({ status: 'failed', user: 'svc' })).toMatch(/executions_status \(status=\?\)$/)
  expect(await search({ status: 'failed', user: 'svc', action: 'core.local', parent: null })).toMatch(
    /executions_status \(status=\?\)$/,
  )
  expect(await search({ status: 'failed', parent })).toMatch(/executions_parent \(parent=\?\)$/)
  expect(await search({ status: 'succeeded', user: 'once', startedAfter: '2020-01-01T00:00:00.000000Z' })).toMatch(
    /executions_user \(user=\? AND id>\?\)$/,
  )
})

test('what has one of several values is merged in the order of ids, without a look at the table', async () => {
  const parent = newId()
  for (let i = 0; i < 20; i++) {
    await add(5, 'succeeded', 'svc')
    await add(1, 'failed', 'ada')
    await add(1, 'timeout', 'Adam')
    await add(1, 'failed', 'ada', parent)
  }
  const search = async (filter: ExecutionFilter): Promise<[ids: string[], total: number, plan: string]> => {
    const ids = await list.page({ filter, sort: [], limit: -1, offset: 0 })
    // Far enough for the thread.
    await list.page({ filter, sort: [], limit: 10, offset: 10_001 })
    const plan = planOfSearch()
    return [ids, await list.total(filter), plan]
  }
  const rows = store.findByIds(await list.page({ filter: {}, sort: [], limit: 1000, offset: 0 }))
  const newest = rows.toSorted((a, b) => (a.id < b.id ? 1 : -1))
  const idsOf = (fits: (row: (typeof rows)[number]) => boolean): string[] => newest.filter(fits).map(({ id }) => id)
  const isBad = ({ status }: { status: ExecutionStatus }): boolean => status === 'failed' || status === 'timeout'
  const bad = idsOf((row) => isBad(row) && row.parent === null)
  expect(bad).toHaveLength(40)
  const merged =
    /^MERGE \(UNION ALL\).*COVERING INDEX executions_status \(status=\?\).*executions_status \(status=\?\)$/
  expect(await search({ statuses: ['failed', 'timeout'], parent: null })).toEqual([
    bad,
    40,
    expect.stringMatching(merged),
  ])
  const none = await search({ statuses: ['running', 'pending'] })
  expect(none.slice(0, 2)).toEqual([[], 0])

  const byWord = idsOf(({ user }) => user !== 'svc')
  const users =
    /^MERGE \(UNION ALL\).*COVERING INDEX executions_user \(user=\?\).*COVERING INDEX executions_user \(user=\?\)$/
  expect(await search({ words: ['ADA'] })).toEqual([byWord, 60, expect.stringMatching(users)])
  expect(
    (await search({ words: ['ada', 'local'], statuses: ['failed', 'timeout'], parent: null })).slice(0, 2),
  ).toEqual([bad, 40])
  expect((await search({ words: ['adam'], statuses: ['failed', 'running'] })).slice(0, 2)).toEqual([[], 0])
  expect((await search({ words: ['nobody'] })).slice(0, 2)).toEqual([[], 0])
  // Counted one by one, where times are asked for.
  const startedAfter = '2020-01-01T00:00:00.000000Z'
  expect((await search({ words: ['ada'], statuses: ['failed', 'timeout'], startedAfter })).slice(0, 2)).toEqual([
    byWord,
    60,
  ])
  expect((await search({ words: ['nobody'], startedAfter })).slice(0, 2)).toEqual([[], 0])

  const byStatus = await list.page({
    filter: { statuses: ['failed', 'timeout'] },
    sort: [{ column: 'status', direction: 'asc' }],
    limit: 100,
    offset: 0,
  })
  expect(byStatus).toEqual([
    ...idsOf(({ status }) => status === 'failed'),
    ...idsOf(({ status }) => status === 'timeout'),
  ])
})

test('what no rule has started is looked for on the thread, what one has started is not', async () => {
  const rule = { rule: 'r', trigger: 't', trigger_type: 'y' }
  const started = Array.from({ length: 3 }, () => makeExecution({ ...rule, trigger_instance: newId() }))
  const byHand = makeExecution()
  const steps = [...started, byHand].flatMap((execution) => store.insert(execution))
  await database.write({ steps, facts: [] })
  const search = async (filter: ExecutionFilter): Promise<[string[], string]> => {
    searched = undefined
    const ids = await list.page({ filter, sort: [], limit: 10, offset: 0 })
    return [ids.toSorted(), searched === undefined ? 'here' : planOfSearch()]
  }
  const all = started.map(({ id }) => id).toSorted()
  for (const [name, value] of Object.entries(rule)) {
    expect([name, await search({ [name]: value })]).toEqual([name, [all, 'here']])
    expect([name, await search({ [name]: null })]).toEqual([
      name,
      [[byHand.id], expect.stringContaining('SCAN executions')],
    ])
  }
  const [one] = started
  expect(await search({ trigger_instance: one?.trigger_instance ?? '' })).toEqual([[one?.id], 'here'])
  expect(await search({ trigger_instance: null })).toEqual([[byHand.id], expect.stringContaining('SCAN executions')])
  const both = await search({ rule: 'r', trigger_instance: one?.trigger_instance ?? '' })
  expect(both).toEqual([[one?.id], expect.stringContaining('executions_trigger_instance (trigger_instance=?)')])
})

test('of few that may be seen, all are looked at, instead of all that there are', async () => {
  await add(300, 'succeeded', 'svc')
  await add(3, 'succeeded', 'once')
  const few = [makeExecution({ action_ref: 'core.rare' }), makeExecution({ action_ref: 'core.rarer', user: 'once' })]
  await database.write({ steps: few.flatMap((execution) => store.insert(execution)), facts: [] })
  expect(list.actionRefs()).toEqual(['core.local', 'core.rare', 'core.rarer'])
  const search = async (filter: ExecutionFilter): Promise<[number, string]> => {
    const ids = await list.page({ filter, sort: [], limit: 10, offset: 0 })
    return [ids.length, planOfSearch()]
  }
  const actionRefs = ['core.rare', 'core.rarer']
  const byAction = expect.stringContaining('executions_action (action_ref=?)') as unknown
  const byUser = expect.stringContaining('executions_user (user=?)') as unknown
  for (const filter of [{}, { parent: null }]) {
    expect(await search({ ...filter, within: { actionRefs } })).toEqual([2, byAction])
    expect(await search({ ...filter, within: { user: 'once' } })).toEqual([4, byUser])
  }
  expect(await search({ status: 'succeeded', within: { user: 'once' } })).toEqual([3, byUser])
  expect(await search({ user: 'once', within: { actionRefs: [...actionRefs, 'core.local'] } })).toEqual([4, byUser])
  expect(await search({ within: { actionRefs, user: 'once' } })).toEqual([1, byAction])
  expect(await search({ within: { actionRefs: [] } })).toEqual([0, byAction])
})

test('a filter finds booleans by the words of JSON', async () => {
  for (const flag of [true, false]) {
    await database.write({ steps: store.insert(makeExecution({ parameters: { flag } })), facts: [] })
  }
  const totals = ['true', 'false', '1'].map((value) =>
    list.total({ paths: [{ column: 'parameters', path: '$.flag', value }] }),
  )
  expect(await Promise.all(totals)).toEqual([1, 1, 0])
})

test('for words, what is counted is added up on the thread, however many combinations there are', async () => {
  await add(3, 'succeeded', 'ada')
  await add(2, 'failed', 'grace')
  const first = vi.spyOn(database, 'first')
  const all = vi.spyOn(database, 'all')
  const filter = { words: ['local'], statuses: ['succeeded', 'failed'] }
  expect(await list.total(filter)).toBe(5)
  expect(await list.page({ filter, sort: [{ column: 'id', direction: 'desc' }], limit: 10, offset: 0 })).toHaveLength(5)
  const here = [...first.mock.calls, ...all.mock.calls].map(([query]) => query.compile().sql)
  expect(here.filter((text) => text.includes('execution_counts'))).toEqual([])
})
