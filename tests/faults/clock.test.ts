/**
 * The clock of the machine leaps both ways while the server runs: what runs is not disturbed, what waits for a time is not
 * forgotten, and what happens gets the time of the clock as it is now.
 */
import { globSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { findDamage, readRows, withDatabase } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { run, runToEnd, startServer, waitForStatus, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { openEvents, outputOf } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

const DAY_MS = 86_400_000

let folder: TemporaryFolder
let server: TestServer
let offsetMs = 0

beforeAll(() => ensureDebianPackage('faketime', '/usr/bin/faketime'))
beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  await server.stop('SIGKILL')
  folder.remove()
})

/** Sets the clock of the server, and of nothing else. */
function setClock(days: number): void {
  offsetMs = days * DAY_MS
  const file = join(folder.path, 'clock')
  writeFileSync(`${file}.new`, `${days < 0 ? '' : '+'}${days}d`)
  renameSync(`${file}.new`, file)
}

async function start(settings: Record<string, string> = {}, days = 0): Promise<void> {
  setClock(days)
  const [library = ''] = globSync('/usr/lib/*/faketime/libfaketime.so.1')
  server = await startServer({
    basePath: folder.path,
    settings,
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: join(folder.path, 'clock'),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  })
}

const count = (sql: string): number =>
  withDatabase(folder.path, (database) => Number(database.prepare(sql).pluck().get()))

async function addTimer(name: string, type: string, parameters: Record<string, unknown>): Promise<void> {
  const trigger = { type: `core.svc.${type}`, parameters }
  const rule = { name, trigger, enabled: true, action: { ref: 'core.noop' } }
  expect((await server.call('POST', '/v1/rules', rule)).status).toBe(201)
}

const fired = (type: string): number =>
  count(`select count(*) from trigger_instances where trigger_type = 'core.svc.${type}'`)

describe('a clock that leaps', () => {
  it('disturbs nothing that runs, and forgets nothing that waits', async () => {
    await start()
    await addTimer('by_interval', 'IntervalTimer', { unit: 'seconds', delta: 1 })
    await addTimer('by_cron', 'CronTimer', { second: '*', timezone: 'UTC' })
    const go = join(folder.path, 'go')
    const long = await run(server, { cmd: `echo 0; until [ -e ${go} ]; do sleep 0.02; done; echo end`, timeout: 120 })
    await waitForStatus(server, long.id, ['running'])
    const output = `${server.urls.stream}/v1/executions/${long.id}/output`
    const watched = await openEvents(output)
    await watched.frame(({ event }) => event === 'svc.execution.output__create')
    const all = [long]

    for (const days of [1, -1, 365, 0]) {
      const limited = await run(server, { cmd: 'exec sleep 1000', timeout: 1 })
      await waitForStatus(server, limited.id, ['running'])
      const delayed = await run(server, { cmd: 'true' }, { delay: 500 })
      setClock(days)
      const [intervals, crons] = [fired('IntervalTimer'), fired('CronTimer')]
      const now = await runToEnd(server, { cmd: 'echo now' })
      expect(Math.abs(Date.parse(now.start_timestamp) - Date.now() - offsetMs)).toBeLessThan(DAY_MS / 2)
      expect(now).toMatchObject({ status: 'succeeded', result: { stdout: 'now' } })
      const later = await runToEnd(server, { cmd: 'true' }, { delay: 100 })
      expect(later.status).toBe('succeeded')
      expect((await waitForStatus(server, delayed.id)).status).toBe('succeeded')
      expect((await waitForStatus(server, limited.id)).status).toBe('timeout')
      await waitFor('the timers', () => fired('IntervalTimer') > intervals + 1 && fired('CronTimer') > crons + 1)
      expect((await server.call<ExecutionAnswer>('GET', `/v1/executions/${long.id}`)).body.status).toBe('running')
      all.push(limited, delayed, now, later)
    }

    writeFileSync(go, '')
    expect(await waitForStatus(server, long.id)).toMatchObject({ status: 'succeeded', result: { stdout: '0\nend' } })
    await watched.ended
    expect(outputOf(watched.frames)).toBe('0\nend\n')
    const [first] = watched.frames
    const again = await openEvents(output, { 'Last-Event-ID': first?.id ?? '' })
    await again.ended
    expect(outputOf(again.frames)).toBe('end\n')

    // A second of each timer for the seconds that passed, and none for those that the clock left out.
    expect(fired('IntervalTimer')).toBeLessThan(1000)
    await waitFor(
      'all to end',
      () => count(`select count(*) from executions where end_timestamp is null`) === 0 || undefined,
    )
    expect(count('select count(*) from executions where elapsed_seconds < 0')).toBe(0)
    const rows = readRows(folder.path)
    expect(all.filter(({ id }) => !rows.has(id))).toEqual([])
    expect(await server.stop()).toEqual({ code: 0, signal: null })
    expect(findDamage(folder.path)).toEqual([])
  })

  it('may be put right while no server runs', async () => {
    await start({}, 365)
    await addTimer('by_interval', 'IntervalTimer', { unit: 'seconds', delta: 2 })
    await addTimer('by_cron', 'CronTimer', { second: '*/2', timezone: 'UTC' })
    await waitFor('the timers', () => fired('IntervalTimer') > 0 && fired('CronTimer') > 0)
    const { id } = await run(server, { cmd: 'echo delayed' }, { delay: 2000 })
    await waitForStatus(server, id, ['delayed'])
    await server.stop('SIGKILL')
    const before = [fired('IntervalTimer'), fired('CronTimer')]
    await start()
    expect(await waitForStatus(server, id)).toMatchObject({ status: 'succeeded', result: { stdout: 'delayed' } })
    const [intervals = 0, crons = 0] = before
    await waitFor('the timers', () => fired('IntervalTimer') > intervals && fired('CronTimer') > crons)
    expect(count('select count(*) from executions where elapsed_seconds < 0')).toBe(0)
  })

  it('ends tokens by the clock, and has those work that were made before and after', async () => {
    await start({ 'auth.enable': 'True' })
    const password = firstPassword(folder.path)
    const status = async (token: Record<string, string>): Promise<number> =>
      (await server.call('GET', '/v1/executions', undefined, token)).status
    const first = await signIn(server, 'admin', password)
    setClock(365)
    expect(await status(first)).toBe(401)
    const ahead = await signIn(server, 'admin', password)
    expect(await status(ahead)).toBe(200)
    setClock(0)
    expect(await status(first)).toBe(200)
    const last = await signIn(server, 'admin', password)
    expect(await status(last)).toBe(200)
  })
})
