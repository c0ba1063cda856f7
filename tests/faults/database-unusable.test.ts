/** A database that cannot be used, or only in part: it is said in words, the file stays as it is, and a backup brings all back. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { finalStatuses, findDamage, readRows, withDatabase } from '../helpers/audit.ts'
import { runCli, type CliExit } from '../helpers/cli.ts'
import { canMount, mountBreakableDisk, mountDisk } from '../helpers/disks.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { run, runToEnd, startServer, waitForLog, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let folder: TemporaryFolder
let basePath = ''
let server: TestServer | undefined

beforeEach(() => {
  folder = makeFolder()
  basePath = join(folder.path, 'data')
  mkdirSync(basePath)
})
afterEach(async () => {
  await server?.stop('SIGKILL')
  server = undefined
  folder.remove()
})

const database = (): string => join(basePath, 'svc.db')

async function start(settings: Record<string, string> = {}): Promise<TestServer> {
  server = await startServer({ basePath, settings })
  return server
}

async function stop(): Promise<void> {
  expect((await server?.stop())?.code).toBe(0)
  server = undefined
}

const svc = (...args: string[]): Promise<CliExit> => runCli([...args, '--config-file', join(basePath, 'test.conf')], {})

/** The path of the backup. */
async function backUp(): Promise<string> {
  const { code, stdout } = await svc('backup', '-j')
  expect(code).toBe(0)
  const { path } = JSON.parse(stdout) as { path: string } // of the answer of POST /v1/backups
  return path
}

function overwrite(bytes: Buffer, from: number, length: number): Buffer {
  const changed = Buffer.from(bytes)
  changed.fill(0xa5, from, from + length)
  return changed
}

describe('a database that cannot be used', () => {
  it('stops the start in words and stays as it is, until a backup takes its place', async () => {
    const before = await start()
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await runToEnd(before, { cmd: `echo ${n}; seq 1 5000` })).id)
    const backup = await backUp()
    await stop()
    const whole = readFileSync(database())

    const newer = join(folder.path, 'newer.db')
    writeFileSync(newer, whole)
    const connection = new Sqlite(newer)
    connection.exec(`insert into kysely_migration values ('9999-later', '')`)
    connection.close()
    const faults: [what: string, bytes: Buffer, words: RegExp][] = [
      [
        'a header',
        overwrite(whole, 0, 100),
        /svc\.db cannot be used: file is not a database\. It is damaged.*svc restore/,
      ],
      [
        'a half',
        whole.subarray(0, whole.length / 2),
        /svc\.db cannot be used: database disk image is malformed\. .*svc restore/,
      ],
      [
        'the schema',
        overwrite(whole, 100, 3900),
        /svc\.db cannot be used: database disk image is malformed\. .*svc restore/,
      ],
      ['a text', Buffer.from('no database\n'.repeat(1000)), /svc\.db cannot be used: file is not a database\./],
      [
        'a newer release',
        readFileSync(newer),
        /made by a newer release \(it has the migrations 9999-later\).*svc restore FILE/,
      ],
    ]
    for (const [what, bytes, words] of faults) {
      writeFileSync(database(), bytes)
      const error = await start().then(
        () => 'it started',
        (cause: unknown) => String(cause),
      )
      expect([what, error]).toEqual([what, expect.stringMatching(words)])
      expect([what, error]).toEqual([what, expect.stringContaining('ended before it was ready (1)')])
      expect([what, readFileSync(database()).equals(bytes)]).toEqual([what, true])
      expect(readdirSync(basePath).filter((name) => /-(wal|shm|journal)$/.test(name))).toEqual([])
    }
    // What may be all that is left of a database is not deleted.
    rmSync(database())
    writeFileSync(`${database()}-wal`, 'its log')
    await expect(start()).rejects.toThrow(
      /svc\.db cannot be used: it is missing or empty, but its log .*svc\.db-wal exists/,
    )
    expect(readFileSync(`${database()}-wal`, 'utf8')).toBe('its log')
    rmSync(`${database()}-wal`)
    await waitForLog(await start(), 'event=database.new')
    await stop()

    writeFileSync(database(), overwrite(whole, 0, 100))
    const { code, stdout } = await svc('restore', backup)
    expect([code, stdout]).toEqual([0, expect.stringContaining('is kept as ')])
    const kept = /is kept as (\S+)\.\n/.exec(stdout)?.[1] ?? ''
    expect(readFileSync(kept).equals(overwrite(whole, 0, 100))).toBe(true)
    const again = await start()
    for (const id of ids) expect(await waitForStatus(again, id)).toMatchObject({ status: 'succeeded' })
    await runToEnd(again, { cmd: 'true' })
    await stop()
    expect(findDamage(basePath)).toEqual([])
  })

  it('of which a part is damaged serves the rest and says so; no backup is kept of it, and one from before helps', async () => {
    const before = await start()
    const { id } = await runToEnd(before, { cmd: 'seq 1 100000' })
    const backup = await backUp()
    await stop()
    // The pages of the output alone.
    const bytes = readFileSync(database())
    const at = bytes.indexOf('\n50000\n50001\n')
    expect(at).toBeGreaterThan(0)
    const page = at - (at % 4096)
    writeFileSync(database(), overwrite(bytes, page, 4096))

    const partly = await start()
    expect((await runToEnd(partly, { cmd: 'echo served' })).result['stdout']).toBe('served')
    expect((await partly.call('GET', `/v1/executions/${id}`)).status).toBe(200)
    const refused = await partly.call('POST', '/v1/backups')
    expect(refused).toMatchObject({ status: 503, body: { code: 'BACKUP_FAILED' } })
    expect(refused.text).toContain('the database is damaged')
    await waitForLog(partly, 'event=database.damaged')
    expect(readdirSync(join(basePath, 'backups'))).toHaveLength(1)
    await stop()

    expect((await svc('restore', backup)).code).toBe(0)
    const again = await start()
    const { text } = await again.call('GET', `/v1/executions/${id}/output`)
    expect(text).toHaveLength(588_895)
    await stop()
    expect(findDamage(basePath)).toEqual([])
  })
})

describe('backups under load', () => {
  it('have every execution that was accepted before they began, and the server goes on from there', async () => {
    const loaded = await start({ 'log.level': 'WARNING' })
    const accepted: string[] = []
    let isOver = false
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver) accepted.push((await run(loaded, { cmd: 'echo load; seq 1 500' })).id)
    })
    await waitFor('some load', () => accepted.length > 40)
    const backups: { path: string; before: string[] }[] = []
    for (let n = 0; n < 3; n++) {
      const before = [...accepted]
      backups.push({ path: await backUp(), before })
    }
    isOver = true
    await Promise.all(clients)
    // Nobody tells it to stop.
    await loaded.stop('SIGKILL')

    const last = backups.at(-1)?.path ?? ''
    for (const { path, before } of backups) {
      const copy = new Sqlite(path, { readonly: true })
      const ids = new Set(copy.prepare('select id from executions').pluck().all())
      copy.close()
      expect(before.filter((id) => !ids.has(id))).toEqual([])
    }
    expect((await svc('restore', last)).code).toBe(0)
    await start()
    await waitFor('everything to end', () =>
      [...readRows(basePath).values()].every(({ status }) => finalStatuses.has(status)),
    )
    const rows = readRows(basePath)
    expect(backups.at(-1)?.before.filter((id) => !rows.has(id))).toEqual([])
    const ended = new Set([...rows.values()].map(({ status }) => status))
    expect([...ended].filter((status) => status !== 'succeeded' && status !== 'abandoned')).toEqual([])
    await stop()
    expect(findDamage(basePath)).toEqual([])
  })

  it('that a SIGKILL cuts leave nothing that the next start does not remove', async () => {
    const first = await start()
    // Some megabytes, so that there is time.
    await runToEnd(first, { cmd: 'head -c 30000000 /dev/urandom | base64 -w 1000' })
    const cut = first.call('POST', '/v1/backups').catch(() => undefined)
    const backups = join(basePath, 'backups')
    const partial = (): boolean => {
      try {
        return readdirSync(backups).some((name) => name.includes('.partial'))
      } catch {
        return false
      }
    }
    await waitFor('the copy to begin', partial)
    await first.stop('SIGKILL')
    await cut
    await start()
    expect(readdirSync(backups).filter((name) => name.includes('.partial'))).toEqual([])
    await backUp()

    // Told to stop in the middle of one, it stops.
    const stopped = server?.call('POST', '/v1/backups').catch(() => undefined)
    await waitFor('the copy to begin', partial)
    await stop()
    await stopped
    expect(readdirSync(backups).filter((name) => name.includes('.partial'))).toEqual([])
  })
})

describe.skipIf(!canMount())('disks that cannot be written', () => {
  it('a disk that is read-only stops the start in words', async () => {
    const disk = mountDisk(basePath, { megabytes: 16 })
    try {
      await start()
      await stop()
      const bytes = readFileSync(database())
      execFileSync('mount', ['-o', 'remount,ro', basePath])
      // Its own configuration is elsewhere now.
      const refused = startServer({
        basePath: folder.path,
        settings: { 'system.base_path': basePath, 'log.audit_file': '' },
      })
      await expect(refused).rejects.toThrow(
        /ended before it was ready \(1\)[^]*svc\.db cannot be used: the file system is read-only/,
      )
      expect(readFileSync(database()).equals(bytes)).toBe(true)
    } finally {
      disk.unmount()
    }
  })

  it('a disk that becomes read-only: what is read is answered, the rest is refused, and all goes on after a repair', async () => {
    const disk = mountBreakableDisk(join(folder.path, 'disk'), { megabytes: 48 })
    try {
      basePath = join(folder.path, 'disk', 'data')
      mkdirSync(basePath)
      const settings = { 'database.synchronous': 'full', 'database.reserve_bytes': '0' }
      const started = await start(settings)
      const { id } = await runToEnd(started, { cmd: 'echo kept' })
      disk.break()
      await waitFor(
        'a refusal',
        async () => (await started.call('PUT', '/v1/keys/k', { name: 'k', value: 'v' })).status === 503,
      )
      expect((await started.call('GET', `/v1/executions/${id}`)).status).toBe(200)
      expect(await started.call('POST', '/v1/backups')).toMatchObject({ status: 503, body: { code: 'BACKUP_FAILED' } })
      await started.stop('SIGKILL')
      server = undefined
      disk.repair()
      const again = await start(settings)
      expect(await waitForStatus(again, id)).toMatchObject({ status: 'succeeded' })
      await backUp()
      await stop()
      expect(findDamage(basePath)).toEqual([])
    } finally {
      await server?.stop('SIGKILL')
      server = undefined
      disk.unmount()
    }
  })

  it('a backup that finds its disk full leaves nothing there, and the server goes on', async () => {
    const backups = join(folder.path, 'backups')
    const disk = mountDisk(backups, { megabytes: 5 })
    try {
      const started = await start({ 'backup.directory': backups })
      await runToEnd(started, { cmd: 'head -c 1000000 /dev/urandom | base64 -w 1000' })
      const good = await backUp()
      const refused = await started.call('POST', '/v1/backups')
      expect(refused).toMatchObject({ status: 507, body: { code: 'BACKUP_HAS_NO_ROOM' } })
      await waitForLog(started, 'ERROR The disk of the backup directory has too little free space')
      expect(readdirSync(backups)).toEqual([good.slice(backups.length + 1)])
      const { code, stdout } = await svc('backup')
      expect([code, stdout]).toEqual([1, expect.stringContaining('set backup.directory to another disk')])
      expect((await runToEnd(started, { cmd: 'echo on' })).result['stdout']).toBe('on')
      await stop()
      expect(withDatabase(basePath, (each) => each.pragma('quick_check', { simple: true }))).toBe('ok')

      // No room for what is restored either.
      const small = mountDisk(join(folder.path, 'small'), { megabytes: 1 })
      try {
        const file = join(folder.path, 'small.conf')
        writeFileSync(file, `[system]\nbase_path = ${join(folder.path, 'small')}\n`)
        const restored = await runCli(['restore', good, '--config-file', file], {})
        expect([restored.code, restored.stdout]).toEqual([
          1,
          expect.stringContaining('Not enough disk space for the backup'),
        ])
        expect(readdirSync(join(folder.path, 'small'))).toEqual(['svc.db-lock'])
      } finally {
        small.unmount()
      }
    } finally {
      disk.unmount()
    }
  })
})
