/** A database that becomes as small as its content, and is complete whatever happens meanwhile. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { canMount, mountDisk } from '../../../tests/helpers/disks.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { createLog } from '../../lib/log/index.ts'
import { compactDatabase } from './compact.ts'
import { readFileSpace } from './header.ts'
import { openSqlite } from './open.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

const childFile = join(import.meta.dirname, '../../../tests/fixtures/database-child.ts')

let folder: TemporaryFolder
let path: string
beforeEach(() => {
  folder = makeFolder()
  path = join(folder.path, 'svc.db')
})
afterEach(() => folder.remove())

const open = () => openSqlite({ path, synchronous: 'normal', announce: () => undefined })

/** With one user; `megabytes` of content and as much unused space. */
async function create(megabytes = 1): Promise<void> {
  const database = await open()
  await database.write({
    steps: [{ query: database.build.insertInto('users').values({ name: 'ann', is_service: 0, created_at: '' }) }],
    facts: [],
  })
  await database.close()
  const tool = new Sqlite(path)
  for (const table of ['junk', 'ballast']) {
    tool.exec(`create table ${table} (x)`)
    const insert = tool.prepare(`insert into ${table} values (zeroblob(1000000))`)
    for (let n = 0; n < megabytes; n++) insert.run()
  }
  tool.exec('drop table junk')
  tool.close()
}

async function users(): Promise<string[]> {
  const database = await open()
  const names = database.all(database.build.selectFrom('users').select('name')).map(({ name }) => name)
  await database.close()
  return names
}

const filesOf = (): string[] => readdirSync(folder.path).toSorted()

test('the file is as large as its content, and keeps its mode, its name and what is in it', async () => {
  await create()
  chmodSync(path, 0o640)
  const before = statSync(path)
  const { bytesBefore, bytesAfter } = await compactDatabase({ path })
  const after = statSync(path)
  expect(bytesBefore).toBe(before.size)
  expect(bytesAfter).toBe(after.size)
  expect(before.size - after.size).toBeGreaterThan(900_000)
  expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, before.gid])
  expect(filesOf()).toEqual(['svc.db', 'svc.db-lock'])
  expect(await users()).toEqual(['ann'])
})

test('a link to it stays a link, and a file of another tool can shrink by itself afterwards', async () => {
  await create()
  const tool = new Sqlite(path)
  tool.exec('pragma auto_vacuum = none; vacuum')
  tool.close()
  const link = join(folder.path, 'link.db')
  symlinkSync(path, link)
  await compactDatabase({ path: link })
  expect(filesOf()).toEqual(['link.db', 'svc.db', 'svc.db-lock'])
  const reader = new Sqlite(path, { readonly: true })
  expect(reader.pragma('auto_vacuum', { simple: true })).toBe(2)
  reader.close()
})

test('the changes in the log of a killed server are in the new file', async () => {
  const child = spawn(process.execPath, [childFile, 'write-and-die', path])
  await once(child, 'exit')
  expect(existsSync(`${path}-wal`)).toBe(true)
  await compactDatabase({ path })
  expect(filesOf()).toEqual(['svc.db', 'svc.db-lock'])
  expect(await users()).toHaveLength(300)
})

test('what is in use, damaged, of something else or missing is refused and stays as it is', async () => {
  await expect(compactDatabase({ path })).rejects.toThrow(`${path} does not exist.`)
  await create()
  const server = await open()
  await expect(compactDatabase({ path })).rejects.toThrow('is in use by another running server. Stop it first')
  await server.close()
  const reader = new Sqlite(path)
  reader.exec('pragma journal_mode = wal; begin; select * from users')
  await expect(compactDatabase({ path })).rejects.toThrow('Another program has')
  reader.close()
  const foreign = join(folder.path, 'foreign.db')
  new Sqlite(foreign).exec('create table x (y)').close()
  await expect(compactDatabase({ path: foreign })).rejects.toThrow('is not a database of svc')
  const damaged = join(folder.path, 'damaged.db')
  writeFileSync(damaged, 'x'.repeat(5000))
  await expect(compactDatabase({ path: damaged })).rejects.toThrow('is damaged')
  expect(statSync(damaged).size).toBe(5000)
  expect(filesOf().filter((name) => name.includes('compacting'))).toEqual([])
  expect(await users()).toEqual(['ann'])
})

test.skipIf(!canMount())('without enough free space is refused with how much it needs', async () => {
  const small = join(folder.path, 'small')
  const disk = mountDisk(small, { megabytes: 28 })
  path = join(small, 'svc.db')
  try {
    await create(8)
    const before = statSync(path).size
    disk.fillUpTo(4_000_000)
    await expect(compactDatabase({ path })).rejects.toThrow(
      /^Not enough disk space in .*small: the new file needs [89]\.\d MiB, and 3\.\d MiB are free\. Free some space/,
    )
    expect(statSync(path).size).toBe(before)
    expect(readdirSync(small).toSorted()).toEqual(['filler', 'svc.db', 'svc.db-lock'])
    disk.free()
    const { bytesAfter } = await compactDatabase({ path })
    expect(bytesAfter).toBeLessThan(before / 1.5)
  } finally {
    disk.unmount()
  }
})

test('an unused copy of a killed restore is deleted at the next start, which says so', async () => {
  await create()
  for (const suffix of ['', '-wal', '-journal']) writeFileSync(`${path}.restoring${suffix}`, 'half')
  const sink = new TextSink()
  const log = createLog({ level: 'INFO', format: 'text', stream: sink })
  for (let start = 0; start < 2; start++) {
    const database = await openSqlite({ path, synchronous: 'normal', announce: () => undefined, log })
    await database.close()
  }
  await log.close()
  expect(sink.text.match(/event=database\.restore_interrupted/g)).toHaveLength(1)
  expect(sink.text).toContain('run svc restore again')
  expect(filesOf()).toEqual(['svc.db', 'svc.db-lock'])
})

test('a file that cannot shrink by itself says so once, and names what to do', async () => {
  await create(20)
  const tool = new Sqlite(path)
  tool.exec('create table more (x)')
  tool.pragma('auto_vacuum = none')
  tool.exec('vacuum')
  for (let n = 0; n < 20; n++) tool.exec('insert into more values (zeroblob(1000000))')
  tool.exec('drop table more')
  tool.close()
  expect(await readFileSpace(path)).toMatchObject({ canShrink: false })
  const sink = new TextSink()
  const log = createLog({ level: 'INFO', format: 'text', stream: sink })
  const database = await openSqlite({ path, synchronous: 'normal', announce: () => undefined, log })
  for (let round = 0; round < 3; round++) await database.reclaim(new AbortController().signal)
  await database.close()
  await log.close()
  expect(sink.text.match(/event=database\.\w+/g)).toEqual(['event=database.cannot_shrink'])
  expect(sink.text).toContain('Stop the server and run svc compact once')
  await compactDatabase({ path })
  const space = await readFileSpace(path)
  expect(space).toMatchObject({ canShrink: true, fileBytes: statSync(path).size })
  expect(space?.unusedBytes).toBeLessThan(1_000_000)
})

fullOnly(test)('a run that is killed leaves the database as it was, and the next start deletes the rest', async () => {
  await create(60)
  const child = spawn(process.execPath, [childFile, 'compact', path])
  const ended = once(child, 'exit')
  await waitFor('the new file', () => (statSync(`${path}.compacting`, { throwIfNoEntry: false })?.size ?? 0) > 0)
  child.kill('SIGKILL')
  await ended
  // Also where the kill came too late.
  for (const suffix of ['', '-journal']) writeFileSync(`${path}.compacting${suffix}`, 'half')
  expect(await users()).toEqual(['ann'])
  expect(filesOf()).toEqual(['svc.db', 'svc.db-lock'])
})
