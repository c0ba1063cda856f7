/** Backups while the server runs, by hand and by a schedule, and restoring them. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, describe, expect, test } from 'vitest'
import { jsonOf, spawnCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { run, runToEnd, waitForLog, waitForStatus, type TestApp, startServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

interface Backup {
  name: string
  path: string
  kind: string
  bytes: number
  made_at: string
  sha256: string
  removed: string[]
  not_included: { what: string; path: string }[]
}

const folders: TemporaryFolder[] = []
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()))

function newFolder(): string {
  const folder = makeFolder()
  folders.push(folder)
  return folder.path
}

const svc =
  ({ configFile }: Pick<TestApp, 'configFile'>) =>
  (...args: string[]): Promise<CliExit> =>
    spawnCli([...args, '--config-file', configFile], {})

describe('10 backup', () => {
  test('one that is made on request is a whole database, is listed, and tells what else has to be kept', () =>
    withApp({}, async (server) => {
      const { id } = await runToEnd(server, { cmd: 'echo kept' })
      expect((await server.call('PUT', '/v1/keys/word', { name: 'word', value: 'v', secret: true })).status).toBe(200)
      expect((await server.call('GET', '/v1/backups')).body).toEqual([])
      const made = await server.call<Backup>('POST', '/v1/backups')
      expect(made.status).toBe(201)
      const { path, name, bytes, sha256, not_included: elsewhere } = made.body
      expect(path).toBe(join(server.basePath, 'backups', name))
      expect(made.body).toMatchObject({ kind: 'requested', bytes: statSync(path).size, removed: [] })
      expect(sha256).toBe(createHash('sha256').update(readFileSync(path)).digest('hex'))
      expect([statSync(path).mode & 0o777, statSync(join(server.basePath, 'backups')).mode & 0o777]).toEqual([
        0o600, 0o700,
      ])
      expect(elsewhere.map((each) => each.path)).toEqual([
        server.configFile,
        ...['keys', 'packs', 'configs', 'overrides'].map((each) => join(server.basePath, each)),
      ])
      // The keys are not beside what they open.
      expect(readdirSync(join(server.basePath, 'backups'))).toEqual([name])
      const copy = new Sqlite(path, { readonly: true })
      try {
        expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
        expect(copy.prepare('select status from executions where id = ?').pluck().get(id)).toBe('succeeded')
      } finally {
        copy.close()
      }
      const byCommand = await jsonOf<Backup>(svc(server), ['backup'])
      const listed = await jsonOf<Backup[]>(svc(server), ['backup', 'list'])
      expect(listed.map((each) => each.name)).toEqual([byCommand.name, name])
      expect(listed[1]).toEqual({ name, path, kind: 'requested', bytes, made_at: made.body.made_at })
      const status = await server.call<{ gauges: Record<string, number> }>('GET', '/v1/status')
      expect(status.body.gauges['backup.last_age_seconds']).toBeGreaterThanOrEqual(0)
      await waitForLog(server, 'event=backup.made')
    }))

  fullOnly(test)(
    'only one is made at a time; what a killed server has left goes, and what is not its own stays',
    async () => {
      const basePath = newFolder()
      const backups = join(basePath, 'backups')
      mkdirSync(backups)
      const left = 'svc-20300101T100000.000Z-scheduled.db.partial'
      const foreign = ['svc.db', 'notes.partial', 'svc-2030.db.partial', 'svc-20300101T100000.000Z-mine.db']
      for (const name of [left, `${left}-journal`, ...foreign]) writeFileSync(join(backups, name), 'x')
      const server = await createTestApp({ basePath })
      let count = 0
      try {
        await waitFor('what was left to go', () => readdirSync(backups).length === foreign.length)
        expect(readdirSync(backups).toSorted()).toEqual(foreign.toSorted())
        const answers = await Promise.all(Array.from({ length: 4 }, () => server.call('POST', '/v1/backups')))
        const made = answers.filter(({ status }) => status === 201)
        const refused = answers.filter(({ status }) => status !== 201)
        expect(made.length).toBeGreaterThan(0)
        for (const each of refused) expect(each).toMatchObject({ status: 409, body: { code: 'BACKUP_UNDER_WAY' } })
        expect((await server.call<Backup[]>('GET', '/v1/backups')).body).toHaveLength(made.length)
        count = made.length
      } finally {
        await server.stop()
      }
      expect(readdirSync(backups)).toHaveLength(foreign.length + count)
    },
  )

  fullOnly(test)('scheduled ones are rotated; a failure is told, removes nothing, and is tried again', async () => {
    const basePath = newFolder()
    const backups = join(basePath, 'backups')
    mkdirSync(backups)
    const old = ['svc-20200101T100000.000Z-scheduled.db', 'svc-20200102T100000.000Z-scheduled.db']
    const kept = ['svc-20200101T100000.000Z.db', 'svc-20200101T100000.000Z-before-0003-events.db', 'svc.db']
    for (const name of [...old, ...kept]) writeFileSync(join(backups, name), 'x')
    const settings = { 'backup.interval': '1', 'backup.keep': '2', 'log.level': 'INFO' }
    const server = await createTestApp({ basePath, settings })
    const scheduled = (): string[] => readdirSync(backups).filter((name) => name.endsWith('-scheduled.db'))
    try {
      await waitFor('the old ones to go', () => old.every((name) => !scheduled().includes(name)))
      expect(scheduled()).toHaveLength(2)
      expect(readdirSync(backups)).toEqual(expect.arrayContaining(kept))
    } finally {
      await server.stop()
    }

    // No directory can be made where a file is.
    writeFileSync(join(basePath, 'file'), '')
    const failing = await createTestApp({ basePath, settings: { ...settings, 'backup.directory': 'file/backups' } })
    try {
      const told = (): number => failing.log().split('ERROR The backup failed').length - 1
      await waitFor('the second failure', () => told() > 1)
      const refused = await failing.call('POST', '/v1/backups')
      expect(refused).toMatchObject({ status: 503, body: { code: 'BACKUP_FAILED' } })
      expect(refused.text).toContain('a part of the path is a file')
      expect(refused.text).not.toContain(basePath)
    } finally {
      await failing.stop()
    }
    expect(scheduled()).toHaveLength(2)
  })
})

describe('10 restore', () => {
  test('brings back what was there, keeps what is there, and the server goes on from then', async () => {
    const basePath = newFolder()
    const server = await startServer({ basePath })
    const before = await runToEnd(server, { cmd: 'echo before' })
    const waiting = await run(server, { cmd: 'echo again' }, { delay: 3_600_000 })
    const running = await run(server, { cmd: 'exec sleep 1000', timeout: 0 })
    await waitForStatus(server, running.id, ['running'])
    const { name } = await jsonOf<Backup>(svc(server), ['backup'])
    const after = await runToEnd(server, { cmd: 'echo after' })
    const refused = await svc(server)('restore', name)
    expect(refused.code).toBe(1)
    expect(refused.stdout).toContain('is in use by another running server. Stop it first (svc stop).')
    // Its write-ahead log stays.
    await server.stop('SIGKILL')
    expect(await jsonOf<{ name: string }[]>(svc(server), ['backup', 'list'])).toMatchObject([{ name }])
    const unreadable = await spawnCli(['backup', 'list', '--config-file', server.configFile], {
      SVC_BACKUP__DIRECTORY: server.configFile,
    })
    expect(unreadable).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^ERROR: Cannot read backup\.directory: /),
    })

    // As root does it for the account of the server.
    if (process.getuid?.() === 0) {
      chmodSync(dirname(server.configFile), 0o755)
      chmodSync(server.configFile, 0o644)
      execFileSync('chown', ['-R', '4711:4712', basePath])
    }
    const owner = statSync(join(basePath, 'svc.db'))
    const restored = await svc(server)('restore', name)
    expect(restored).toMatchObject({ code: 0, stderr: '' })
    const kept = /is kept as (\S+)\.\n/.exec(restored.stdout)?.[1] ?? ''
    expect(existsSync(`${kept}-wal`)).toBe(true)
    const { uid, gid, mode } = statSync(join(basePath, 'svc.db'))
    expect([uid, gid, mode & 0o777]).toEqual([owner.uid, owner.gid, 0o600])
    expect(readdirSync(basePath).filter((each) => /^svc\.db-(wal|shm)|restoring/.test(each))).toEqual([])

    const again = await createTestApp({ basePath })
    expect((await again.call('GET', `/v1/executions/${before.id}`)).body).toMatchObject({
      status: 'succeeded',
      result: { stdout: 'before' },
    })
    expect((await again.call('GET', `/v1/executions/${after.id}`)).status).toBe(404)
    expect(await waitForStatus(again, running.id)).toMatchObject({ status: 'abandoned' })
    expect((await again.call('GET', `/v1/executions/${waiting.id}`)).body).toMatchObject({ status: 'delayed' })
    await again.call('DELETE', `/v1/executions/${waiting.id}`)
    expect((await runToEnd(again, { cmd: 'echo on' })).result['stdout']).toBe('on')
    await again.stop()

    // What was kept is whole, with its log: it can be brought back in the same way.
    expect((await svc(server)('restore', kept)).code).toBe(0)
    const back = await createTestApp({ basePath })
    expect((await back.call('GET', `/v1/executions/${after.id}`)).body).toMatchObject({ status: 'succeeded' })
    await back.stop()
  })

  fullOnly(test)('root puts a backup nowhere but where the account of the server could', async () => {
    const folder = newFolder()
    chmodSync(folder, 0o755)
    const basePath = join(folder, 'data')
    mkdirSync(basePath)
    const [configFile, backup, precious] = ['svc.conf', 'backup.db', 'precious'].map((name) => join(folder, name))
    writeFileSync(configFile ?? '', `[system]\nbase_path = ${basePath}\n`)
    writeFileSync(precious ?? '', 'mine')
    const connection = new Sqlite(backup)
    connection.exec('create table kysely_migration (name text)')
    connection.close()
    const restore = (): Promise<CliExit> => spawnCli(['restore', backup ?? '', '--config-file', configFile ?? ''], {})

    symlinkSync(precious ?? '', join(basePath, 'svc.db'))
    for (const path of [basePath, join(basePath, 'svc.db')]) lchownSync(path, 65534, 65534)
    expect(await restore()).toMatchObject({ code: 1, stdout: expect.stringContaining('Cannot restore') })
    expect(readFileSync(precious ?? '', 'utf8')).toBe('mine')
    rmSync(join(basePath, 'svc.db'))
    symlinkSync(join(folder, 'made'), join(basePath, 'svc.db-lock'))
    expect((await restore()).code).toBe(1)
    expect(readdirSync(folder).toSorted()).toEqual(['backup.db', 'data', 'precious', 'svc.conf'])
    rmSync(join(basePath, 'svc.db-lock'))
    expect(await restore()).toMatchObject({ code: 0, stderr: '' })
    expect(statSync(join(basePath, 'svc.db')).uid).toBe(65534)
  })

  fullOnly(test)('refuses what is no backup, is damaged or newer, and changes nothing then', async () => {
    const basePath = newFolder()
    const server = await createTestApp({ basePath })
    await runToEnd(server, { cmd: 'seq 1 20000' })
    const { path } = (await server.call<Backup>('POST', '/v1/backups')).body
    await server.stop()
    const database = join(basePath, 'svc.db')
    const bytes = readFileSync(database)
    const made = (name: string, make: (file: string) => void): string => {
      const file = join(basePath, name)
      make(file)
      return file
    }
    const withTables = (sql: string) => (file: string) => {
      const connection = new Sqlite(file)
      connection.exec(sql)
      connection.close()
    }
    const newer = made('newer', (file) => {
      copyFileSync(path, file)
      withTables(`insert into kysely_migration values ('9999-later', '')`)(file)
    })
    const damaged = made('damaged', (file) => {
      const content = readFileSync(path)
      content.fill(0xa5, content.length / 2, content.length / 2 + 20_000)
      writeFileSync(file, content)
    })
    const refusals: [file: string, words: string][] = [
      [newer, 'made by a newer release (it has the migrations 9999-later)'],
      [damaged, 'damaged is damaged: '],
      [made('half', (file) => writeFileSync(file, readFileSync(path).subarray(0, 100_000))), 'half is damaged: '],
      [made('text', (file) => writeFileSync(file, 'no database'.repeat(100))), 'file is not a database'],
      [made('empty', (file) => writeFileSync(file, '')), 'empty is not a database of svc.'],
      [made('other', withTables('create table users (name text)')), 'other is not a database of svc.'],
      [database, 'is the database itself'],
      [basePath, 'is not a file.'],
    ]
    for (const [file, words] of refusals) {
      const { code, stdout } = await svc(server)('restore', file)
      expect([code, stdout]).toEqual([1, expect.stringContaining(words)])
    }
    expect(await svc(server)('restore', path, '--dry-run')).toMatchObject({ code: 0 })
    expect(readFileSync(database)).toEqual(bytes)
    expect(readdirSync(basePath).filter((name) => /restor/.test(name))).toEqual([])
  })
})
