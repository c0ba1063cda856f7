/** Copies of a database in use, and the check of a file: what the port promises, on real files. */
import {
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
  closeSync,
  truncateSync,
} from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import { checkDatabase } from '../../src/db/sqlite/check.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { migrations } from '../../migrations/index.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { fullOnly } from '../helpers/tiers.ts'

let folder: TemporaryFolder
let database: Database
let path: string
let copies: string

beforeEach(async () => {
  folder = makeFolder()
  copies = join(folder.path, 'copies')
  path = join(folder.path, 'svc.db')
  database = await openSqlite({ path, synchronous: 'normal', announce: () => undefined })
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

const never = new AbortController().signal

async function addUser(name: string): Promise<void> {
  const query = database.build.insertInto('users').values({ name, is_service: 0, created_at: 'x'.repeat(2000) })
  await database.write({ steps: [{ query }], facts: [] })
}

function namesIn(file: string): unknown[] {
  const connection = new Sqlite(file, { readonly: true })
  try {
    return connection.prepare('select name from users order by name').pluck().all()
  } finally {
    connection.close()
  }
}

describe('a copy', () => {
  test('has what was written before it began, and is one whole file, while others go on writing', async () => {
    const before = Array.from({ length: 300 }, (_, n) => `a${String(n).padStart(4, '0')}`)
    await Promise.all(before.map(addUser))
    const to = join(folder.path, 'copy.db')
    let isDone = false
    const copying = database.backup(to, never).finally(() => (isDone = true))
    let written = 0
    while (!isDone) await addUser(`b${String(written++).padStart(6, '0')}`)
    const copy = await copying
    expect(copy).toEqual({
      path: to,
      bytes: statSync(to).size,
      sha256: createHash('sha256').update(readFileSync(to)).digest('hex'),
    })
    expect(statSync(to).mode & 0o777).toBe(0o600)
    const found = namesIn(to)
    expect(found.slice(0, 300)).toEqual(before)
    expect(written).toBeGreaterThan(found.length - 300)
    expect(namesIn(path)).toHaveLength(300 + written)
    expect(readdirSync(folder.path).filter((name) => name.startsWith('copy.db'))).toEqual(['copy.db'])
    // Read only, in place, without anything beside it.
    expect(readFileSync(to).subarray(18, 20)).toEqual(Buffer.from([1, 1]))
  })

  test('that is ended, refused or impossible leaves nothing behind', async () => {
    const to = join(folder.path, 'copy.db')
    const ending = new AbortController()
    const copying = database.backup(to, ending.signal)
    ending.abort(new Error('enough'))
    await expect(copying).rejects.toThrow('enough')
    await expect(database.backup(join(copies, 'copy.db'), never)).rejects.toMatchObject({
      code: 'BACKUP_FAILED',
      message: expect.stringContaining('it does not exist'),
    })
    writeFileSync(to, 'kept')
    await expect(database.backup(to, never)).rejects.toMatchObject({ code: 'BACKUP_FAILED' })
    expect(readFileSync(to, 'utf8')).toBe('kept')
    expect(readdirSync(folder.path).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('is not made where the database would have too little room afterwards', async () => {
    const greedy = await openSqlite({
      path: join(folder.path, 'greedy.db'),
      synchronous: 'normal',
      announce: () => undefined,
      reserveBytes: 1e15,
    })
    const to = join(folder.path, 'copy.db')
    await expect(greedy.backup(to, never)).rejects.toMatchObject({ code: 'BACKUP_HAS_NO_ROOM', kind: 'storage_full' })
    await greedy.close()
  })

  test('of a damaged database is refused, in words', async () => {
    await Promise.all(Array.from({ length: 300 }, (_, n) => addUser(`a${n}`)))
    await database.close()
    overwrite(path, 40_960, 200_000)
    database = await openSqlite({ path, synchronous: 'normal', announce: () => undefined })
    const refused = database.backup(join(folder.path, 'copy.db'), never)
    await expect(refused).rejects.toMatchObject({
      code: 'BACKUP_FAILED',
      message: expect.stringContaining('the database is damaged'),
    })
    expect(readdirSync(folder.path).filter((name) => name.startsWith('copy.db'))).toEqual([])
  })
})

function overwrite(file: string, from: number, bytes: number): void {
  const handle = openSync(file, 'r+')
  writeSync(handle, Buffer.alloc(bytes, 0xa5), 0, bytes, from)
  closeSync(handle)
}

describe('the check', () => {
  test('finds nothing wrong with a file in use, and tells its migrations', async () => {
    await addUser('ada')
    for (const thorough of [false, true]) {
      expect(await checkDatabase(path, { thorough })).toEqual({ damage: [], migrations: Object.keys(migrations) })
    }
    expect(namesIn(path)).toEqual(['ada'])
  })

  fullOnly(test)('tells what is damaged, and of a file that is no database', async () => {
    await Promise.all(Array.from({ length: 300 }, (_, n) => addUser(`a${n}`)))
    await database.close()
    const bytes = readFileSync(path)
    const check = async (change: (file: string) => void): Promise<{ damage: string[] }> => {
      const file = join(folder.path, 'changed.db')
      writeFileSync(file, bytes)
      change(file)
      const found = readFileSync(file)
      const result = await checkDatabase(file)
      expect(readFileSync(file)).toEqual(found)
      return result
    }
    expect((await check((file) => overwrite(file, 40_960, 200_000))).damage.length).toBeGreaterThan(0)
    expect((await check((file) => truncateSync(file, bytes.length / 2))).damage).not.toEqual([])
    expect(await check((file) => overwrite(file, 0, 100))).toEqual({
      damage: ['file is not a database'],
      migrations: undefined,
    })
    expect(await check((file) => writeFileSync(file, ''))).toEqual({ damage: [], migrations: undefined })
    await expect(checkDatabase(join(folder.path, 'missing.db'))).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('before a migration', () => {
  const names = Object.keys(migrations)
  const last = names.at(-1) ?? ''
  const copies = (): string[] => readdirSync(join(folder.path, 'backups'))

  /** A file of the release before, with somebody in it. */
  async function makeOlder(): Promise<string> {
    const file = join(folder.path, 'older.db')
    const connection = new Sqlite(file)
    connection.pragma('journal_mode = wal')
    const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) })
    const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } })
    expect((await migrator.migrateTo(names.at(-2) ?? '')).error).toBeUndefined()
    connection.exec(`insert into users (name, is_service, created_at) values ('ada', 0, '')`)
    await db.destroy()
    return file
  }

  const open = (file: string, backupDirectory = join(folder.path, 'backups')): Promise<Database> =>
    openSqlite({ path: file, synchronous: 'normal', announce: () => undefined, backupDirectory })

  test('a copy is made, of the structure that was', async () => {
    const file = await makeOlder()
    await (await open(file)).close()
    const [copy = '', ...others] = copies()
    expect(others).toEqual([])
    expect(copy).toMatch(new RegExp(`^svc-\\d{8}T\\d{6}\\.\\d{3}Z-before-${last}\\.db$`))
    expect(await checkDatabase(join(folder.path, 'backups', copy))).toEqual({
      damage: [],
      migrations: names.slice(0, -1),
    })
    expect(namesIn(join(folder.path, 'backups', copy))).toEqual(['ada'])
    expect(namesIn(file)).toEqual(['ada'])
    // Neither a new file nor one that is as it should be has anything to be kept.
    await (await open(file)).close()
    await (await open(join(folder.path, 'new.db'))).close()
    expect(copies()).toEqual([copy])
  })

  test('nothing is changed when it cannot be made, and it can be done without', async () => {
    const file = await makeOlder()
    writeFileSync(join(folder.path, 'file'), '')
    await expect(open(file, join(folder.path, 'file', 'backups'))).rejects.toThrow(
      new RegExp(
        `\\(${last}\\), and the backup before it could not be made in [^ ]*/file/backups \\(backup\\.directory\\): [^ ]*/file is a file, not a directory.* --backup-before-migration False\\.$`,
      ),
    )
    expect((await checkDatabase(file)).migrations).toEqual(names.slice(0, -1))
    await (await openSqlite({ path: file, synchronous: 'normal', announce: () => undefined })).close()
    expect((await checkDatabase(file)).migrations).toEqual(names)
  })

  fullOnly(test)('a start that fails again and again makes no further copies', async () => {
    const file = await makeOlder()
    const connection = new Sqlite(file)
    connection.exec(`create trigger no before insert on kysely_migration begin select raise(abort, 'not now'); end`)
    connection.close()
    for (let n = 0; n < 3; n++) await expect(open(file)).rejects.toThrow('not now')
    expect(copies()).toHaveLength(1)
    const again = new Sqlite(file)
    again.exec(`drop trigger no`)
    again.close()
    await (await open(file)).close()
    expect(copies()).toHaveLength(2)
  })
})
