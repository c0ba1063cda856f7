/** Starting after a crash: killed on the way, beside a living server, among strangers. */
import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { executable, run, runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { findDamage, findProcesses, readRecordedIds, readRows, readStartTime } from '../helpers/audit.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { fullOnly, rounds } from '../helpers/tiers.ts'

const seed = seedOfRun()
const random = createRandom(seed)

let folder: TemporaryFolder
const children: ChildProcess[] = []
const servers: TestServer[] = []

beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop('SIGKILL')
  for (const child of children.splice(0)) await killed(child)
  for (const { pid } of findProcesses(folder.path)) process.kill(pid, 'SIGKILL')
  folder.remove()
})

function start(settings: Record<string, string> = {}): Promise<TestServer> {
  return startServer({ basePath: folder.path, settings }).then((server) => {
    servers.push(server)
    return server
  })
}

function kill(server: TestServer): Promise<unknown> {
  servers.splice(servers.indexOf(server), 1)
  return server.stop('SIGKILL')
}

/** Kills a child of ours and waits until it is gone. */
function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
  })
  child.kill('SIGKILL')
  return gone
}

/** Begins to start a server and kills it after so many milliseconds, ready or not. */
async function startAndKill(configFile: string, afterMs: number): Promise<void> {
  const child = spawn(process.execPath, [executable, 'serve', '--config-file', configFile], {
    cwd: folder.path,
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: 'ignore',
  })
  children.push(child)
  await new Promise((resolve) => setTimeout(resolve, afterMs))
  await killed(child)
}

/** A command of this test: found again by the folder in its command line. */
function command(text: string): { cmd: string } {
  return { cmd: `: ${folder.path}; ${text}` }
}

function waitForRecord(id: string): Promise<true | undefined> {
  return waitFor(`the process of ${id} to be recorded`, () => readRecordedIds(folder.path).includes(id) || undefined)
}

const FRESH_STARTS = rounds({ daily: 1, full: 12 })
const KILLED_STARTS = rounds({ daily: 1, full: 8 })

describe(`a server killed while it starts (SVC_TEST_SEED=${seed})`, () => {
  it('leaves a new database that the next one can use, whenever it is killed', async () => {
    const begunAt = performance.now()
    const first = await start()
    const startMs = performance.now() - begunAt
    await kill(first)
    for (let n = 0; n < FRESH_STARTS; n++) {
      const basePath = join(folder.path, `fresh-${n}`)
      const configFile = join(folder.path, `fresh-${n}.conf`)
      const ports = ['auth', 'api', 'stream'].map((section) => `[${section}]\nport = 0\n`).join('')
      writeFileSync(configFile, `[system]\nbase_path = ${basePath}\n${ports}`)
      // Loading the program is half of a start; what is of interest comes then.
      await startAndKill(configFile, startMs / 3 + random.below(startMs))
      const server = await startServer({ basePath: folder.path, settings: { 'system.base_path': basePath } })
      servers.push(server)
      expect(await runToEnd(server, { cmd: 'echo works' })).toMatchObject({
        status: 'succeeded',
        result: { stdout: 'works' },
      })
      await kill(server)
      expect(findDamage(basePath)).toEqual([])
    }
  })

  fullOnly(it)('recovers as often as it takes', async () => {
    const settings = { 'actionrunner.actions_pool_size': '6' }
    let server = await start(settings)
    // First, while a slot is free: without one nobody looks at its delay yet.
    const delayed = await run(server, command('echo delayed'), { delay: 6000 })
    await waitForStatus(server, delayed.id, ['delayed'])
    const stubborn = await Promise.all(
      [1, 2].map(() => run(server, { ...command('trap "" TERM; echo up; sleep 1000; sleep 1000'), timeout: 0 })),
    )
    const sleepers = await Promise.all(
      [1, 2].map(() => run(server, { ...command('setsid sleep 1000 & echo up; wait'), timeout: 0 })),
    )
    const canceled = await run(server, { ...command('trap "" TERM; echo up; sleep 1000; sleep 1000'), timeout: 0 })
    const bare = await run(server, {
      ...command(
        `until [ -e ${folder.path}/go ]; do sleep 0.02; done; exec env -i sh -c ': ${folder.path}; sleep 1000'`,
      ),
      timeout: 0,
    })
    for (const { id } of [...stubborn, ...sleepers, canceled, bare]) {
      await waitForStatus(server, id, ['running'])
      await waitForRecord(id)
    }
    const waiting = await run(server, command('echo waited'))
    await server.call('DELETE', `/v1/executions/${canceled.id}`)
    writeFileSync(join(folder.path, 'go'), '')
    await waitFor('the environment to be cleared', () =>
      findProcesses(folder.path).some(({ commandLine }) => commandLine.startsWith('sh -c : ') || undefined),
    )
    await waitForStatus(server, canceled.id, ['canceling'])
    await kill(server)

    // The stubborn ones make a recovery take two seconds.
    for (let n = 0; n < KILLED_STARTS; n++) await startAndKill(server.configFile, 150 + random.below(2500))

    server = await start(settings)
    const born = readStartTime(server.pid) ?? 0
    expect(findProcesses(folder.path).filter(({ startTime, pid }) => startTime < born && pid !== server.pid)).toEqual(
      [],
    )
    for (const { id } of [delayed, waiting]) {
      await waitForStatus(server, id)
    }
    const rows = readRows(folder.path)
    const historyOf = ({ id }: { id: string }): string | undefined =>
      rows
        .get(id)
        ?.log.map(({ status }) => status)
        .join(' ')
    for (const execution of [...stubborn, ...sleepers, bare]) {
      expect(historyOf(execution)).toBe('requested scheduled running abandoned')
    }
    expect(historyOf(canceled)).toBe('requested scheduled running canceling canceled')
    // They run as soon as one recovery is through, and then the next kill may just meet them.
    expect(historyOf(waiting)).toMatch(/^requested scheduled running (succeeded|abandoned)$/)
    expect(historyOf(delayed)).toMatch(/^requested delayed requested scheduled running (succeeded|abandoned)$/)
    expect(readRecordedIds(folder.path)).toEqual([])
    expect(findDamage(folder.path)).toEqual([])
  })
})

fullOnly(describe)('a second server on the same data', () => {
  it('is refused by name and touches nothing', async () => {
    const first = await start()
    const { id } = await run(first, { ...command('echo up; sleep 1000'), timeout: 0 })
    await waitForStatus(first, id, ['running'])
    await waitForRecord(id)
    await expect(startServer({ basePath: folder.path })).rejects.toThrow(
      /before it was ready \(1\)[^]*svc\.db is in use by another running server\. "svc stop" stops it/,
    )
    expect((await first.call('GET', `/v1/executions/${id}`)).body).toMatchObject({ status: 'running' })
    expect(readRecordedIds(folder.path)).toEqual([id])
    expect(findProcesses(folder.path).length).toBeGreaterThan(0)
  })
})

fullOnly(describe)('a recorded process', () => {
  /** A process that is none of the server's, leads its session and says so. */
  async function makeStranger(): Promise<{ child: ChildProcess; pid: number; startTime: string }> {
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
    children.push(child)
    const pid = child.pid ?? 0
    const startTime = await waitFor('the process', () => readStartTime(pid))
    return { child, pid, startTime: String(startTime) }
  }

  /** A database with an execution that a dead server was running, and another process in the place of its own. */
  async function crashWith(change: (recorded: { pid: number; start_time: string; boot_id: string }) => object) {
    const server = await start()
    const { id } = await run(server, { ...command('sleep 1000'), timeout: 0 })
    await waitForRecord(id)
    await kill(server)
    const database = new Sqlite(join(folder.path, 'svc.db'))
    const recorded = database
      .prepare<[string], { pid: number; start_time: string; boot_id: string }>(
        'select pid, start_time, boot_id from processes where execution_id = ?',
      )
      .get(id)
    if (recorded === undefined) throw new Error('the process is not recorded')
    database
      .prepare('update processes set pid = @pid, start_time = @start_time, boot_id = @boot_id')
      .run({ ...recorded, ...change(recorded) })
    database.close()
    return id
  }

  it.each([
    ['its start time differs', (pid: number) => ({ pid })],
    [
      'it was recorded before the machine was started',
      (pid: number, startTime: string) => ({
        pid,
        start_time: startTime,
        boot_id: 'c0ffee00-0000-4000-8000-000000000000',
      }),
    ],
  ])('is left alone when %s', async (_why, change) => {
    const stranger = await makeStranger()
    const id = await crashWith(() => change(stranger.pid, stranger.startTime))
    const server = await start()
    expect(readRows(folder.path).get(id)?.status).toBe('abandoned')
    expect(readStartTime(stranger.pid)).toBe(Number(stranger.startTime))
    // What carries the marker of the execution is found without the record.
    expect(findProcesses(id)).toEqual([])
    expect(readRecordedIds(folder.path)).toEqual([])
    await kill(server)
  })

  it('is killed with its session when pid, start time and boot agree, whatever its environment says', async () => {
    const stranger = await makeStranger()
    await crashWith(() => ({ pid: stranger.pid, start_time: stranger.startTime }))
    await start()
    expect(readStartTime(stranger.pid)).toBeUndefined()
  })
})

fullOnly(describe)('a server that cannot finish its start', () => {
  it('ends when it is told to, although it waits for room on the disk', async () => {
    const server = await start()
    const { id } = await runToEnd(server, command('true'))
    await kill(server)
    const database = new Sqlite(join(folder.path, 'svc.db'))
    const row = database.prepare('select * from executions where id = ?').get(id) as Record<string, unknown> // as ran
    const columns = Object.keys(row)
    const insert = database.prepare(
      `insert into executions (${columns.join()}) values (${columns.map((name) => `@${name}`).join()})`,
    )
    for (let n = 1; n <= 60; n++) {
      insert.run({ ...row, id: n.toString(16).padStart(24, '0'), liveaction_id: `${n}`, status: 'canceling' })
    }
    database.pragma('wal_checkpoint(truncate)')
    database.close()

    // No file may grow beyond 40 KB: the write-ahead log is full after the first few of them.
    const limited = ['-c', 'ulimit -f "$0" && exec "$@"', '40', process.execPath, executable, 'serve']
    const child = spawn('/bin/bash', [...limited, '--config-file', server.configFile], {
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    children.push(child)
    let log = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
    await waitFor('the disk to be full', () => log.includes('event=execution.not_stored'))
    child.kill('SIGTERM')
    await waitFor('its end', () => child.exitCode !== null)
    expect(child.exitCode).toBe(0)
    expect(log).toContain('event=server.stopped_early')

    await start()
    expect([...readRows(folder.path).values()].filter(({ status }) => status === 'canceling')).toEqual([])
  })

  it('while it waits for a file system that does not answer, a signal ends it', async () => {
    const server = await start({ 'auth.enable': 'True' })
    await kill(server)
    // Whoever opens a file that another process has leased waits until that one gives it back, or for 45 seconds.
    const lease = `
      const { openSync } = require('node:fs')
      const fcntl = require('koffi').load('libc.so.6').func('int fcntl(int, int, ...)')
      process.on('SIGIO', () => console.log('asked'))
      console.log(fcntl(openSync(process.argv[1], 'r+'), 1024, 'int', 1))
      process.stdin.resume()
    `
    const holder = spawn(process.execPath, ['-e', lease, join(folder.path, 'keys', 'token.key')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    children.push(holder)
    let said = ''
    holder.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
    await waitFor('the lease', () => said.startsWith('0\n'))

    const child = spawn(process.execPath, [executable, 'serve', '--config-file', server.configFile], {
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: 'ignore',
    })
    children.push(child)
    await waitFor('the wait', () => said.includes('asked'))
    child.kill('SIGTERM')
    await waitFor('its end', () => child.exitCode !== null)
    expect(child.exitCode).toBe(0)
    expect(holder.exitCode).toBeNull()
  })
})
