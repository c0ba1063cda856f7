import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../tests/helpers/folders.ts'
import { migrations } from './index.ts'

let folder: TemporaryFolder

beforeEach(() => {
  folder = makeFolder()
})

afterEach(() => folder.remove())

test('0019 knows the last run and the last success of each rule from its executions', async () => {
  const database = new Sqlite(join(folder.path, 'svc.db'))
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database }) })
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } })
  expect((await migrator.migrateTo('0015-pack-disabled-files')).error).toBeUndefined()

  const rule = database.prepare("insert into rules values (?, 1, ?, ?, ?, 1, 'core.noop', 't', 't', 'admin', '{}')")
  rule.run('r1', 'a.same', 'a', 'same')
  rule.run('r2', 'b.same', 'b', 'same')
  rule.run('r3', 'a.never', 'a', 'never')
  rule.run('r4', 'a.failing', 'a', 'failing')
  const execution = database.prepare(
    `insert into executions (id, revision, status, liveaction_id, action_ref, runner, user, action_hash, runner_hash, trace_id,
      rule, start_timestamp, end_timestamp, parameters, context, log, liveaction)
      values (?, 1, ?, ?, 'core.noop', 'noop', 'svc', '', '', '', ?, '', ?, '{}', ?, '[]', '{}')`,
  )
  const runs: [string, string, string, string | null, string][] = [
    ['1', 'r1', 'succeeded', '2030-01-01', 'same'],
    ['2', 'r2', 'succeeded', '2030-01-02', 'same'],
    ['3', 'r1', 'succeeded', '2030-01-03', 'same'],
    ['4', 'r1', 'failed', '2030-01-04', 'same'],
    ['5', 'r1', 'running', null, 'same'],
    ['6', 'r4', 'timeout', '2030-01-06', 'failing'],
    ['7', 'gone', 'succeeded', '2030-01-07', 'deleted'],
  ]
  for (const [id, of, status, end, name] of runs) {
    execution.run(id, status, `live${id}`, name, end, JSON.stringify({ rule: { id: of } }))
  }
  expect((await migrator.migrateTo('0019-jobs')).error).toBeUndefined()
  const rows = database
    .prepare(
      `select rule_id, rule_ref, last_execution_id as last, last_status as status, last_end_timestamp as at,
        last_success_timestamp as success from jobs order by rule_id`,
    )
    .all()
  expect(rows).toEqual([
    { rule_id: 'r1', rule_ref: 'a.same', last: '4', status: 'failed', at: '2030-01-04', success: '2030-01-03' },
    { rule_id: 'r2', rule_ref: 'b.same', last: '2', status: 'succeeded', at: '2030-01-02', success: '2030-01-02' },
    { rule_id: 'r4', rule_ref: 'a.failing', last: '6', status: 'timeout', at: '2030-01-06', success: null },
  ])
  await db.destroy()
})
