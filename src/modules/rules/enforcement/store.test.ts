import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder } from '../../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../../tests/helpers/query-plans.ts'
import { newId } from '../../../core/ids.ts'
import { formatMicros } from '../../../core/time.ts'
import type { Database } from '../../../db/database.ts'
import { createEnforcementStore, type EnforcementFilter, type EnforcementStore } from './store.ts'
import type { RuleEnforcement } from '../types.ts'

const folder = makeFolder()
let real: Database
let plans: QueryPlans
let store: EnforcementStore
const enforcements: RuleEnforcement[] = []

/** A second apart; of every third no execution came. */
const start = Date.UTC(2030, 0, 1) * 1000
const timeOf = (i: number): string => formatMicros(start + i * 1_000_000)

beforeAll(async () => {
  real = (await openDatabase(folder.path)).database
  plans = watchQueries(real, join(folder.path, 'svc.db'))
  store = createEnforcementStore(plans.database)
  for (let i = 0; i < 60; i++) {
    const name = `r${i % 5}`
    enforcements.push({
      id: newId(start + i * 1_000_000),
      trigger_instance_id: `instance-${Math.floor(i / 2)}`,
      ...(i % 3 === 0 ? { failure_reason: 'why' } : { execution_id: `execution-${i}` }),
      rule: { id: `id-${name}`, ref: `test.${name}`, uid: `rule:test:${name}` },
      enforced_at: timeOf(i),
      status: i % 3 === 0 ? 'failed' : 'succeeded',
    })
  }
  await real.write({ steps: enforcements.map((enforcement) => store.insert(enforcement)), facts: [] })
})

afterAll(async () => {
  await real.close()
  folder.remove()
})

type Kept = (enforcement: RuleEnforcement, i: number) => boolean

test.for<[filter: EnforcementFilter, kept: Kept, page: RegExp, total: RegExp]>([
  [{}, () => true, /^SCAN rule_enforcements USING COVERING INDEX sqlite_autoindex/, /^SCAN rule_enforcement_counts/],
  [
    { rule_ref: 'test.r1' },
    ({ rule }) => rule.ref === 'test.r1',
    /^SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_rule \(rule_ref=\?\)$/,
    /^SEARCH rule_enforcement_counts USING PRIMARY KEY \(rule_ref=\?\)$/,
  ],
  [
    { rule_id: 'id-r2' },
    ({ rule }) => rule.id === 'id-r2',
    /^SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_rule_id \(rule_id=\?\)$/,
    /^SCAN rule_enforcement_counts/,
  ],
  [
    { trigger_instances: ['instance-7'], rule_ref: 'test.r4' },
    ({ trigger_instance_id: id, rule }) => id === 'instance-7' && rule.ref === 'test.r4',
    /^SEARCH rule_enforcements USING INDEX rule_enforcements_instance \(trigger_instance_id=\?\)$/,
    /^SEARCH rule_enforcements USING INDEX rule_enforcements_instance/,
  ],
  [
    { trigger_instances: ['instance-7', 'instance-3', 'instance-none'] },
    ({ trigger_instance_id: id }) => ['instance-7', 'instance-3'].includes(id),
    /^SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_instance \(trigger_instance_id=\?\); /,
    /^SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_instance/,
  ],
  [{ trigger_instances: [] }, () => false, /^SEARCH rule_enforcements/, /^SEARCH rule_enforcements/],
  [
    { execution: 'execution-10' },
    ({ execution_id: id }) => id === 'execution-10',
    /^SEARCH rule_enforcements USING INDEX rule_enforcements_execution \(execution_id=\?\); USE TEMP B-TREE/,
    /^SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_execution/,
  ],
  [{ execution: null }, ({ status }) => status === 'failed', /^thread: /, /^SCAN rule_enforcement_counts/],
  [
    { after: timeOf(10), before: timeOf(20) },
    (_, i) => i > 10 && i < 20,
    /^SEARCH rule_enforcements USING COVERING INDEX sqlite_autoindex_rule_enforcements_1 \(id>\? AND id<\?\)$/,
    /^thread: SEARCH rule_enforcements USING .*\(id>\? AND id<\?\)$/,
  ],
  [
    { rule_ref: 'test.r1', after: timeOf(30) },
    ({ rule }, i) => rule.ref === 'test.r1' && i > 30,
    /^SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_rule \(rule_ref=\? AND id>\?\)$/,
    /^thread: SEARCH rule_enforcements USING COVERING INDEX rule_enforcements_rule/,
  ],
  [{ rule_ref: 'test.r1', rule_id: 'id-r2' }, () => false, /^thread: SEARCH/, /^SEARCH rule_enforcement_counts/],
  [{ within: ['test.r0', 'test.r3'] }, ({ rule }) => /[03]$/.test(rule.ref), /^thread: /, /rule_enforcement_counts/],
  [{ within: [] }, () => false, /^thread: /, /rule_enforcement_counts/],
])('filter %j: results, pages, totals and query plans', async ([filter, kept, page, total]) => {
  const ids = enforcements.filter(kept).map(({ id }) => id)
  plans.take()
  const found = await store.page(filter, [{ name: 'id', descending: true }], { limit: 50, offset: 0 })
  expect(found).toEqual(ids.toReversed().slice(0, 50))
  expect(plans.take()).toEqual([expect.stringMatching(page)])
  expect(await store.count(filter)).toBe(ids.length)
  expect(plans.take()).toEqual([expect.stringMatching(total)])
  const oldest = await store.page(filter, [{ name: 'id', descending: false }], { limit: 3, offset: 2 })
  expect(oldest).toEqual(ids.slice(2, 5))
})

test('other sort orders, large pages and large offsets run on the scan thread', async () => {
  plans.take()
  const byRule = await store.page({}, [{ name: 'rule_ref', descending: true }], { limit: 12, offset: 0 })
  expect(byRule).toEqual(
    enforcements
      .filter(({ rule }) => rule.ref === 'test.r4')
      .map(({ id }) => id)
      .toReversed(),
  )
  for (const page of [
    { limit: undefined, offset: 0 },
    { limit: 10, offset: 20_000 },
  ]) {
    await store.page({}, [], page)
  }
  expect(plans.take()).toEqual([1, 2, 3].map(() => expect.stringMatching(/^thread: /) as string))
})

test('a stored enforcement is read back unchanged', () => {
  const [failed, succeeded] = enforcements
  expect(store.find(failed?.id ?? '')).toEqual(failed)
  expect(store.findByIds([succeeded?.id ?? '', 'nope'])).toEqual([succeeded])
  expect(store.ofInstance('instance-0')).toEqual([failed, succeeded])
  expect(store.ofInstance('instance-99')).toEqual([])
  expect(store.enforcedRefs()).toEqual(['test.r0', 'test.r1', 'test.r2', 'test.r3', 'test.r4'])
})

test('the newest enforcement of each rule is found by an index', async () => {
  plans.take()
  const last = store.lastOf(['id-r3', 'id-none', 'id-r0'])
  expect([...last].toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual([
    ['id-r0', enforcements[55]],
    ['id-r3', enforcements[58]],
  ])
  expect(plans.take()).toEqual([expect.stringMatching(/COVERING INDEX rule_enforcements_rule_id \(rule_id=\?\)/)])
  expect(store.lastOf([]).size).toBe(0)
})
