import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { watchQueries, type QueryPlans } from '../../../tests/helpers/query-plans.ts'
import { newId } from '../../core/ids.ts'
import { Conflict, type Database } from '../../db/database.ts'
import { createRuleStore, type RuleStore } from './store.ts'
import type { Rule } from './types.ts'

const folder = makeFolder()
let real: Database
let plans: QueryPlans
let store: RuleStore

beforeAll(async () => {
  real = (await openDatabase(folder.path)).database
  plans = watchQueries(real, join(folder.path, 'svc.db'))
  store = createRuleStore(plans.database)
})

afterAll(async () => {
  await real.close()
  folder.remove()
})

test('rules of a trigger are found by an index; a change checks the revision', async () => {
  const rule: Rule = {
    id: newId(),
    revision: 1,
    uid: 'rule:test:a',
    ref: 'test.a',
    name: 'a',
    pack: 'test',
    description: '',
    enabled: true,
    type: { ref: 'standard', parameters: {} },
    trigger: { id: 'trigger', ref: 'test.event', type: 'test.event' },
    criteria: {},
    action: { ref: 'core.noop', parameters: {} },
    context: { user: 'svc' },
    tags: [],
  }
  await real.write({ steps: [store.insert(rule)], facts: [] })
  plans.take()
  expect(store.enabledOf('trigger').map(({ id }) => id)).toEqual([rule.id])
  expect(store.boundTo('other')).toEqual([])
  expect(await store.page({ triggers: ['other', 'trigger'] }, { limit: 10, offset: 0 })).toEqual([rule.id])
  expect(store.count({ triggers: ['other'] })).toBe(0)
  expect(plans.take()).toEqual(
    [1, 2, 3, 4].map(() => expect.stringMatching(/^SEARCH rules USING (COVERING )?INDEX rules_trigger/) as string),
  )

  const second = { ...rule, revision: 2, enabled: false }
  await real.write({ steps: [store.update(second, 1)], facts: [] })
  expect([store.find(rule.id), store.findByRef('test.a'), store.enabledText(rule.id)]).toEqual([
    second,
    second,
    undefined,
  ])
  await expect(real.write({ steps: [store.update(second, 1)], facts: [] })).rejects.toThrow(Conflict)
  await expect(real.write({ steps: [store.delete(rule)], facts: [] })).rejects.toThrow(Conflict)
  await expect(real.write({ steps: [store.insert({ ...rule, id: newId() })], facts: [] })).rejects.toThrow(Conflict)
  await real.write({ steps: [store.delete(second)], facts: [] })
  expect(store.find(rule.id)).toBeUndefined()
})
