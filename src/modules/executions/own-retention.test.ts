import { afterEach, beforeEach, expect, test } from 'vitest'
import { noWorkflows } from '../../../tests/helpers/engine.ts'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../tests/helpers/query-plans.ts'
import { newId } from '../../core/ids.ts'
import type { Keep } from '../../core/keep.ts'
import type { Retention } from '../../core/retention.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { createOutputStore } from './output/store.ts'
import type { ExecutionWorkflows } from './ports.ts'
import { createRetentions } from './retention.ts'
import { createExecutionStore, type ExecutionStore } from './store.ts'
import type { ExecutionStatus } from './types.ts'

const DAY = 86_400_000_000

let folder: TemporaryFolder
let database: Database
let plans: QueryPlans
let store: ExecutionStore
let retention: Retention
let actionKeeps: { ref: string; keep: Keep }[]
let ruleKeeps: { id: string; name: string; keep: Keep }[]
let holders: Map<string, string>
/** Executions whose workflows were removed, in this order. */
let workflowsOf: string[]

beforeEach(async () => {
  folder = makeFolder()
  const path = `${folder.path}/svc.db`
  database = await openSqlite({ path, synchronous: 'normal', announce: () => undefined })
  plans = watchQueries(database, path)
  store = createExecutionStore(plans.database)
  actionKeeps = []
  ruleKeeps = []
  holders = new Map()
  workflowsOf = []
  const workflows: ExecutionWorkflows = {
    ...noWorkflows,
    holdersOf: (ids) => new Map([...holders].filter(([id]) => ids.includes(id))),
    remove(ids) {
      workflowsOf.push(...ids)
      // They hold their actions no longer.
      for (const [id, holder] of holders) if (ids.includes(holder)) holders.delete(id)
      return Promise.resolve()
    },
  }
  const [found] = createRetentions({
    store,
    outputStore: createOutputStore(database),
    workflows,
    rules: { keeps: () => Promise.resolve(ruleKeeps) },
    actions: { keeps: () => Promise.resolve(actionKeeps) },
    database,
  })
  if (found === undefined) throw new Error('executions have no retention')
  retention = found
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

interface Made {
  daysAgo: number
  action?: string
  status?: ExecutionStatus
  parent?: string
  rule?: { id: string; name: string }
}

async function make({ daysAgo, action = 'core.local', status = 'succeeded', parent, rule }: Made): Promise<string> {
  const start = nowMicros() - daysAgo * DAY
  const id = newId(start)
  const named = { id: 't', uid: '', ref: 't.t', name: 't', pack: 't', description: '' }
  const execution = makeExecution({
    id,
    action_ref: action,
    status,
    parent: parent ?? null,
    ...(rule && {
      rule: rule.name,
      origin: {
        rule: { ...named, ...rule },
        trigger: { ...named, type: 't.t' },
        trigger_type: named,
      },
    }),
    start_timestamp: formatMicros(start),
    end_timestamp: status === 'running' ? null : formatMicros(start + 1_000_000),
  })
  await database.write({ steps: store.insert(execution), facts: [] })
  return id
}

/** As a round does: first what says itself how long it is kept, then the others. */
async function round(days = 0, byAge = true): Promise<number> {
  const own = await retention.readOwn?.()
  let removed = 0
  if (own !== undefined) for await (const records of own.remove(nowMicros(), byAge)) removed += records
  if (days === 0) return removed
  const before = formatMicros(nowMicros() - days * DAY)
  for (let after: string | undefined = ''; after !== undefined;) {
    const slice: { records: number; next: string | undefined } = await retention.remove({
      before,
      after,
      limit: 1000,
      ...(own && { own }),
    })
    removed += slice.records
    after = slice.next
  }
  return removed
}

const left = (...ids: string[]): boolean[] => ids.map((id) => store.find(id) !== undefined)

test('the age of an action is its own, shorter or longer than that of all', async () => {
  actionKeeps = [
    { ref: 'a.short', keep: { days: 2 } },
    { ref: 'a.long', keep: { days: 100 } },
    { ref: 'a.ever', keep: { days: 0 } },
  ]
  const ids = [
    await make({ daysAgo: 3, action: 'a.short' }),
    await make({ daysAgo: 1, action: 'a.short' }),
    await make({ daysAgo: 50, action: 'a.long' }),
    await make({ daysAgo: 101, action: 'a.long' }),
    await make({ daysAgo: 999, action: 'a.ever' }),
    await make({ daysAgo: 50 }),
    await make({ daysAgo: 3 }),
  ]
  expect(await round(30)).toBe(3)
  expect(left(...ids)).toEqual([false, true, true, false, true, false, true])
  // While the clock is not believed nothing goes by its age.
  const old = await make({ daysAgo: 3, action: 'a.short' })
  expect(await round(0, false)).toBe(0)
  expect(left(old)).toEqual([true])
})

test('the newest of a number stay; what has not ended stays besides', async () => {
  actionKeeps = [{ ref: 'a.counted', keep: { count: 3 } }]
  const running = await make({ daysAgo: 90, action: 'a.counted', status: 'running' })
  const ids: string[] = []
  for (let daysAgo = 80; daysAgo > 10; daysAgo -= 1) ids.push(await make({ daysAgo, action: 'a.counted' }))
  await make({ daysAgo: 90 })
  expect(await round(0, false)).toBe(67)
  expect(left(running, ...ids.slice(-3))).toEqual([true, true, true, true])
  expect(store.count()).toBe(5)
  expect(await round()).toBe(0)
})

test('a rule decides before its action, by its id, not by its name alone', async () => {
  const mine = { id: '1'.repeat(24), name: 'nightly' }
  const other = { id: '2'.repeat(24), name: 'nightly' }
  ruleKeeps = [{ ...mine, keep: { days: 100, count: 2 } }]
  actionKeeps = [{ ref: 'a.b', keep: { days: 5 } }]
  const ids = [
    await make({ daysAgo: 60, action: 'a.b', rule: mine }),
    await make({ daysAgo: 50, action: 'a.b', rule: mine }),
    await make({ daysAgo: 40, action: 'a.b', rule: mine }),
    await make({ daysAgo: 40, action: 'a.b', rule: other }),
    await make({ daysAgo: 4, action: 'a.b', rule: other }),
    await make({ daysAgo: 40, action: 'a.b' }),
    await make({ daysAgo: 40, rule: other }),
  ]
  expect(await round(30)).toBe(4)
  expect(left(...ids)).toEqual([false, true, true, false, true, false, false])
})

test('what an execution has started goes and stays with it, whatever its action says', async () => {
  actionKeeps = [
    { ref: 'a.short', keep: { days: 2 } },
    { ref: 'a.long', keep: { days: 100 } },
    { ref: 'a.part', keep: { days: 1 } },
  ]
  const family = async (action: string, daysAgo: number, status: ExecutionStatus = 'succeeded'): Promise<string[]> => {
    const root = await make({ daysAgo, action })
    const child = await make({ daysAgo, action: 'a.part', parent: root })
    return [root, child, await make({ daysAgo, parent: child, status })]
  }
  const short = await family('a.short', 3)
  const open = await family('a.short', 3, 'running')
  const long = await family('a.long', 50)
  holders = new Map(short.slice(1).map((id) => [id, short[0] ?? '']))
  expect(await round(30)).toBe(3)
  expect(left(...short, ...open, ...long)).toEqual([false, false, false, true, true, true, true, true, true])
  expect(workflowsOf).toContain(short[0])
})

test('an execution stays while a later one runs its workflow again', async () => {
  actionKeeps = [{ ref: 'a.flow', keep: { days: 2 } }]
  const root = await make({ daysAgo: 9, action: 'a.flow' })
  const child = await make({ daysAgo: 9, parent: root })
  const again = await make({ daysAgo: 1, action: 'a.flow' })
  holders = new Map([[child, again]])
  expect(await round()).toBe(0)
  expect(left(root, child, again)).toEqual([true, true, true])
  holders.clear()
  expect(await round()).toBe(2)
})

test('the tables are not read as a whole, and not on the main thread', async () => {
  ruleKeeps = [{ id: '1'.repeat(24), name: 'nightly', keep: { days: 5, count: 5 } }]
  actionKeeps = [{ ref: 'a.b', keep: { days: 5, count: 5 } }]
  for (let n = 0; n < 8; n += 1) await make({ daysAgo: 9, action: 'a.b', rule: { id: '3', name: 'nightly' } })
  plans.take()
  await round()
  const seen = plans.take()
  expect(seen.length).toBeGreaterThan(4)
  for (const plan of seen.filter((each) => !each.includes('json_each') && each.includes('executions'))) {
    expect(plan).toMatch(/USING (COVERING )?INDEX/)
    expect(plan).not.toMatch(/SCAN executions(?! USING)/)
  }
  expect(seen.filter((plan) => plan.startsWith('thread: ')).length).toBeGreaterThan(3)
})
