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
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import { checkDatabase } from '../../src/db/sqlite/check.ts'
import { openSqlite } from '../../src/db/sqlite/open.ts'
import { migrations } from '../../migrations/index.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'

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

function names(file: string): unknown[] {
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
    const found = names(to)
    expect(found.slice(0, 300)).toEqual(before)
    expect(written).toBeGreaterThan(found.length - 300)
    expect(names(path)).toHaveLength(300 + written)
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
      message: expect.stringContaining('ENOENT'),
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
    expect(names(path)).toEqual(['ada'])
  })

  test('tells what is damaged, and of a file that is no database', async () => {
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
