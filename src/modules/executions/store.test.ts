import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import type { Database } from '../../db/database.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { createExecutionStore, type ExecutionStore } from './store.ts'

let folder: TemporaryFolder
let database: Database
let store: ExecutionStore
const asked: string[] = []

beforeEach(async () => {
  folder = makeFolder()
  const real = await openSqlite({ path: `${folder.path}/svc.db`, synchronous: 'normal', announce: () => undefined })
  asked.length = 0
  database = {
    ...real,
    first(query) {
      asked.push(query.compile().sql)
      return real.first(query)
    },
  }
  store = createExecutionStore(database)
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

test('reads long parameters once, and everything else each time', async () => {
  const execution = makeExecution({ parameters: { text: 'ä'.repeat(100_000) } })
  await database.write({ steps: store.insert(execution), facts: [] })
  const first = store.find(execution.id)
  expect(first).toEqual({ ...execution, result: undefined })
  asked.length = 0

  const running = { ...execution, status: 'running' as const, revision: execution.revision + 1 }
  await database.write({ steps: store.update(running, execution.revision), facts: [] })
  const due = { id: execution.id, due_timestamp: '2030-01-01T00:00:00.000000Z' }
  await database.write({ steps: [store.setDue(due)], facts: [] })
  const again = store.find(execution.id)
  expect(again).toEqual({ ...first, status: 'running', revision: running.revision, ...due })
  expect(again?.parameters).toBe(first?.parameters)
  expect(asked.filter((sql) => /\*|[^_]parameters/.test(sql))).toEqual([])
})
