import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { noPlace, placeBehind } from '../src/modules/executions/output/place.ts'
import type { OutputPlace, OutputType } from '../src/modules/executions/types.ts'
import { openDatabase } from '../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../tests/helpers/folders.ts'
import { createRandom, seedOfRun } from '../tests/helpers/random.ts'
import { migrations } from './index.ts'

let folder: TemporaryFolder

beforeEach(() => {
  folder = makeFolder()
})

afterEach(() => folder.remove())

const seed = seedOfRun()
test(`0005 counts the output of a release before as it is counted now (seed ${seed})`, async () => {
  const random = createRandom(seed)
  const path = join(folder.path, 'svc.db')
  const old = new Sqlite(path)
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: old }) })
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } })
  expect((await migrator.migrateTo('0004-content')).error).toBeUndefined()

  const insert = old.prepare(
    'insert into output_records (execution_id, seq, id, output_type, data, timestamp) values (?, ?, ?, ?, ?, ?)',
  )
  const ids = ['a', 'b', 'c']
  const places = new Map<string, OutputPlace>(ids.map((id) => [id, noPlace]))
  const seqs = new Map<string, number>()
  const expected = new Map<string, OutputPlace>()
  old.transaction(() => {
    for (let i = 0; i < 3000; i++) {
      const id = random.pick(['a', 'b', 'c'])
      const seq = (seqs.get(id) ?? 0) + 1
      seqs.set(id, seq)
      const type = random.pick<OutputType>(['stdout', 'stderr', 'other'])
      const data = Array.from({ length: 1 + random.below(20) }, () =>
        random.pick(['a', '\n', 'ä', '😀', '\0', '\r']),
      ).join('')
      insert.run(id, seq, `record ${i}`, type, data, '')
      const before = places.get(id) ?? noPlace
      expected.set(`${id} ${seq}`, before)
      const record = { execution_id: id, seq, id: '', output_type: type, data, timestamp: '', host: null }
      places.set(id, placeBehind(record, before))
    }
  })()
  await db.destroy()

  const { database } = await openDatabase(folder.path)
  await database.close()
  const now = new Sqlite(path)
  const rows = now
    .prepare(`select execution_id || ' ' || seq as name, ${Object.keys(noPlace).join()} from output_records`)
    .all() as (OutputPlace & { name: string })[]
  now.close()
  expect(new Map(rows.map(({ name, ...place }) => [name, place]))).toEqual(expected)
})
