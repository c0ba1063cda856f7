/** The disk is full for a while: requests are refused in words, running executions wait for room, nothing is lost. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BALLAST_BYTES } from '../../src/db/sqlite/ballast.ts'
import { findDamage, findProcesses, readOutput, readRows, withDatabase } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { canMount, mountDisk, mountSilentDisk, type TestDisk } from '../helpers/disks.ts'
import { run, runToEnd, startServer, waitForStatus, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { writeFlowPack } from '../helpers/workflows.ts'
import { fullOnly } from '../helpers/tiers.ts'

let folder: TemporaryFolder
let basePath = ''
let disk: TestDisk
let server: TestServer | undefined

describe.skipIf(!canMount())('a disk that is full for a while', () => {
  beforeEach(() => {
    folder = makeFolder()
    basePath = join(folder.path, 'small')
    disk = mountDisk(basePath, { megabytes: 32 })
  })
  afterEach(async () => {
    await server?.stop('SIGKILL')
    server = undefined
    disk.unmount()
    folder.remove()
  })

  it('holds up a workflow, which then goes on where it was', async () => {
    const note = (task: string): string => `echo ${task} >> ${folder.path}/ran`
    writeFlowPack(basePath, {
      steps: `
version: 1.0
tasks:
  first:
    action: core.local
    input: {cmd: "until [ -e ${folder.path}/go ]; do sleep 0.02; done; ${note('first')}", timeout: 0}
    next: [{when: <% succeeded() %>, do: 'left, right'}]
  left:
    action: core.local
    input: {cmd: "${note('left')}"}
    next: [{do: last}]
  right:
    action: core.local
    input: {cmd: "${note('right')}"}
    next: [{do: last}]
  last:
    join: all
    action: core.local
    input: {cmd: "${note('last')}"}
`,
    })
    const settings = { 'log.level': 'ERROR', 'database.reserve_bytes': '0' }
    const started = await startServer({ basePath, settings })
    server = started
    const { id } = await run(started, {}, { action: 'flow.steps' })
    await waitFor('the first task', () => readRows(basePath, `status = 'running'`).size === 2)
    await waitFor('a refusal', async () => {
      disk.fill()
      const { status } = await started.call('POST', '/v1/executions', {
        action: 'core.local',
        parameters: { cmd: `echo ${'x'.repeat(20_000)}` },
      })
      return status === 507
    })
    writeFileSync(join(folder.path, 'go'), '')
    // Its end may still find room, and what follows does not.
    await waitFor(
      'the end of the first task',
      () =>
        /not_stored|scheduler.failed/.test(started.log()) ||
        readRows(basePath, `parent is not null and status = 'succeeded'`).size > 0,
    )
    disk.free()
    expect((await waitForStatus(started, id)).status).toBe('succeeded')
    const ran = readFileSync(join(folder.path, 'ran'), 'utf8').trim().split('\n')
    expect([ran[0], ran.slice(1, 3).sort(), ran.slice(3)]).toEqual(['first', ['left', 'right'], ['last']])
    expect(findDamage(basePath)).toEqual([])
  })

  it('delays what runs and refuses what is new, and that is all', async () => {
    const started = await startServer({
      basePath,
      settings: { 'log.level': 'CRITICAL', 'database.reserve_bytes': '0' },
    })
    server = started
    const go = join(folder.path, 'go')
    mkdirSync(go)
    const waitForGo = (name: string): string => `until [ -e ${go}/${name} ]; do sleep 0.02; done`
    // One writes all the time, one ends while the disk is full, one is canceled then, and one waits for its turn.
    const writer = await run(started, {
      cmd: `i=0; until [ -e ${go}/end ]; do i=$((i+1)); echo line $i; sleep 0.002; done; echo $i > ${folder.path}/written`,
      timeout: 0,
    })
    const ending = await run(started, {
      cmd: `echo begun; ${waitForGo('full')}; echo ended; touch ${folder.path}/ended`,
    })
    const canceled = await run(started, { cmd: 'echo begun; exec sleep 1000', timeout: 0 })
    const delayed = await run(started, { cmd: 'echo delayed' }, { delay: 500 })
    for (const { id } of [writer, ending, canceled]) {
      await waitFor('its output', () => readOutput(basePath, id).length > 0)
    }

    // The database takes what is left piece by piece, and what it frees itself.
    const refusal = await waitFor('a refusal', async () => {
      disk.fill()
      const answer = await started.call<ExecutionAnswer>('POST', '/v1/executions', {
        action: 'core.local',
        parameters: { cmd: `echo ${'x'.repeat(20_000)}` },
      })
      return answer.status !== 201 && answer
    })
    expect(refusal.status).toBe(507)
    expect(refusal.headers.get('retry-after')).toBe('5')
    expect(refusal.body).toEqual({ code: 'STORAGE_FULL', faultstring: expect.stringContaining('nothing was stored') })
    mkdirSync(join(go, 'full'))
    await waitFor('the command to end', () => readdirSync(folder.path).includes('ended'))
    const cancel = await started.call('DELETE', `/v1/executions/${canceled.id}`)
    // Its process ends now, whatever the disk can record of it.
    expect(cancel).toMatchObject({ status: 200, body: { status: 'canceling' } })
    await waitFor('its process to end', () => findProcesses(canceled.id).length === 0)
    // Reading works, and every further request is answered.
    for (const path of ['/v1/executions', `/v1/executions/${writer.id}`, `/v1/executions/${writer.id}/output`]) {
      expect((await started.call('GET', path)).status).toBe(200)
    }
    for (let n = 0; n < 20; n++) {
      const answer = await started.call('POST', '/v1/executions', { action: 'core.noop' })
      expect([201, 507]).toContain(answer.status)
    }

    disk.free()
    const again = await waitFor('room', async () => {
      const answer = await started.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' })
      return answer.status === 201 && answer.body
    })
    expect(await waitForStatus(started, again.id)).toMatchObject({ status: 'succeeded' })
    expect(await waitForStatus(started, ending.id)).toMatchObject({
      status: 'succeeded',
      result: { stdout: 'begun\nended' },
    })
    expect(await waitForStatus(started, canceled.id)).toMatchObject({ status: 'canceled' })
    expect(await waitForStatus(started, delayed.id)).toMatchObject({ status: 'succeeded' })
    mkdirSync(join(go, 'end'))
    expect(await waitForStatus(started, writer.id)).toMatchObject({ status: 'succeeded' })
    const lines = Number(readFileSync(join(folder.path, 'written'), 'utf8'))
    const { text } = await started.call('GET', `/v1/executions/${writer.id}/output`)
    expect(text).toBe(Array.from({ length: lines }, (_, index) => `line ${index + 1}\n`).join(''))

    const { code } = await started.stop()
    server = undefined
    expect(code).toBe(0)
    expect(findDamage(basePath)).toEqual([])
  })

  fullOnly(describe)('cancels with what is kept for that', () => {
    const ballast = (): string => join(basePath, 'svc.db-reserve')
    const settings = { 'log.level': 'CRITICAL', 'database.reserve_bytes': '0' }
    const SLEEPERS = 8

    /** Runs that sleep, and one that writes, so that the database needs more and more room. */
    async function startAll(started: TestServer): Promise<string[]> {
      const writer = await run(started, { cmd: 'while echo line; do sleep 0.005; done', timeout: 0 })
      const ids: string[] = []
      for (let n = 0; n < SLEEPERS; n++) {
        ids.push((await run(started, { cmd: 'echo begun; exec sleep 1000', timeout: 0 })).id)
      }
      for (const id of [writer.id, ...ids]) await waitFor('its output', () => readOutput(basePath, id).length > 0)
      return ids
    }

    async function cancel(started: TestServer, id: string): Promise<void> {
      disk.fill()
      const answer = await started.call('DELETE', `/v1/executions/${id}`)
      expect(answer).toMatchObject({ status: 200, body: { status: 'canceling' } })
      await waitFor('its process to end', () => findProcesses(id).length === 0)
    }

    fullOnly(it)('a file that is released when the disk is full, and made anew when it has room', async () => {
      const started = await startServer({ basePath, settings })
      server = started
      await waitFor('the file', () => statSync(ballast(), { throwIfNoEntry: false })?.size === BALLAST_BYTES)
      // No hole, which would take no space.
      expect(statSync(ballast()).blocks * 512).toBeGreaterThanOrEqual(BALLAST_BYTES)
      const ids = await startAll(started)
      const canceled: string[] = []
      for (const id of ids) {
        if (!existsSync(ballast())) break
        await cancel(started, id)
        canceled.push(id)
      }
      expect(existsSync(ballast())).toBe(false)
      // Its space is for cancels and ends alone.
      const answer = await started.call('POST', '/v1/executions', { action: 'core.noop' })
      expect(answer).toMatchObject({ status: 507, body: { code: 'STORAGE_FULL' } })
      expect(await (await fetch(`${started.urls.api}/readyz`)).json()).toMatchObject({ reasons: ['storage_full'] })
      disk.free()
      await waitFor('the file again', () => statSync(ballast(), { throwIfNoEntry: false })?.size === BALLAST_BYTES)
      const again = await waitFor('room', async () => {
        const { status, body } = await started.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' })
        return status === 201 && body.id
      })
      expect(await waitForStatus(started, again)).toMatchObject({ status: 'succeeded' })
      for (const id of canceled) expect((await waitForStatus(started, id)).status).toBe('canceled')
      expect((await fetch(`${started.urls.api}/readyz`)).status).toBe(200)
    })

    fullOnly(it)('and a crash before there is room leaves no execution that seems to run', async () => {
      const started = await startServer({ basePath, settings })
      server = started
      const ids = await startAll(started)
      // The first ones fit into what is kept; the last ones may not.
      for (const id of ids) await cancel(started, id)
      await started.stop('SIGKILL')
      disk.free()
      const stored = new Map(
        withDatabase(basePath, (database) =>
          database.prepare<[], { id: string; status: string }>('select id, status from executions').all(),
        ).map(({ id, status }) => [id, status]),
      )
      const next = await startServer({ basePath, settings })
      server = next
      for (const id of ids) {
        const { status } = await waitForStatus(next, id)
        // A cancel that could not be stored is a run that the server has lost.
        expect([id, status]).toEqual([id, stored.get(id) === 'running' ? 'abandoned' : 'canceled'])
        expect(findProcesses(id)).toEqual([])
      }
      expect(ids.filter((id) => stored.get(id) !== 'running')).not.toEqual([])
      expect(findDamage(basePath)).toEqual([])
    })
  })

  fullOnly(it)('takes on nothing new before it is full, and finishes what has begun', async () => {
    const reserve = 8 * 1_048_576
    const started = await startServer({
      basePath,
      settings: { 'database.reserve_bytes': String(reserve), 'actionrunner.actions_pool_size': '1' },
    })
    server = started
    const rules: [name: string, trigger: Record<string, unknown>][] = [
      ['on_timer', { type: 'core.svc.IntervalTimer', parameters: { unit: 'seconds', delta: 1 } }],
      ['on_webhook', { type: 'core.svc.webhook', parameters: { url: 'told' } }],
    ]
    for (const [name, trigger] of rules) {
      const rule = { name, trigger, enabled: true, action: { ref: 'core.noop' } }
      expect((await started.call('POST', '/v1/rules', rule)).status).toBe(201)
    }
    const firings = (): number =>
      withDatabase(basePath, (database) =>
        Number(
          database.prepare(`select count(*) from trigger_instances where payload like '%executed_at%'`).pluck().get(),
        ),
      )
    await waitFor('the timer', () => firings() > 0)
    const running = await run(started, {
      cmd: `echo begun; until [ -e ${folder.path}/go ]; do sleep 0.02; done; yes 0123456789 | head -c 1000000`,
    })
    await waitForStatus(started, running.id, ['running'])
    const waiting = await run(started, { cmd: 'echo waited' })

    disk.fillUpTo(reserve / 2)
    const hook = { seen: true }
    const refusal = await waitFor('a refusal', async () => {
      const answer = await started.call('POST', '/v1/webhooks/told', hook)
      return answer.status !== 202 && answer
    })
    expect(refusal).toMatchObject({ status: 507, body: { code: 'STORAGE_FULL' } })
    for (const path of ['/v1/executions', `/v1/executions/${running.id}/re_run`]) {
      const answer = await started.call('POST', path, path === '/v1/executions' ? { action: 'core.noop' } : {})
      expect(answer).toMatchObject({ status: 507, body: { code: 'STORAGE_FULL' } })
    }
    const before = firings()
    writeFileSync(join(folder.path, 'go'), '')
    const ended = await waitForStatus(started, running.id)
    expect(ended).toMatchObject({ status: 'succeeded', result_size: expect.any(Number) })
    const { text } = await started.call('GET', `/v1/executions/${running.id}/output`)
    expect(text).toHaveLength('begun\n'.length + 1_000_000)
    // Its slot is free, and still nobody begins.
    expect((await started.call<ExecutionAnswer>('GET', `/v1/executions/${waiting.id}`)).body.status).toBe('requested')
    // One that was seen due before the disk was looked at may still have come.
    expect(firings()).toBeLessThanOrEqual(before + 1)
    const key = { name: 'small', value: 'kept' }
    expect((await started.call('PUT', '/v1/keys/small', key)).status).toBe(200)

    disk.free()
    expect(await waitForStatus(started, waiting.id)).toMatchObject({ status: 'succeeded' })
    expect((await started.call('POST', '/v1/webhooks/told', hook)).status).toBe(202)
    await waitFor('the timer', () => firings() > before + 1)
    expect(started.log()).toContain('svc accepts no new work')
    expect(started.log()).toContain('has enough free space again')
    expect((await started.stop()).code).toBe(0)
    server = undefined
    expect(findDamage(basePath)).toEqual([])
  })

  fullOnly(it)('goes on where the log of audits has no room', async () => {
    const logs = join(folder.path, 'logs')
    const small = mountDisk(logs, { megabytes: 1 })
    try {
      const started = await startServer({
        basePath,
        settings: { 'log.audit_file': join(logs, 'audit.log'), 'database.reserve_bytes': '0' },
      })
      server = started
      small.fill()
      for (let n = 0; n < 5; n++) {
        const { id } = await run(started, { cmd: 'echo done' })
        expect(await waitForStatus(started, id)).toMatchObject({ status: 'succeeded' })
      }
      expect((await started.stop()).code).toBe(0)
      server = undefined
    } finally {
      small.unmount()
    }
  })
})

fullOnly(describe.skipIf(!canMount() || !existsSync('/dev/fuse')))('a disk of the backups that does not answer', () => {
  it('keeps nobody waiting but whoever wants a backup, and does not keep the server from stopping', async () => {
    const folder = makeFolder()
    const place = join(folder.path, 'backups')
    const settings = { 'backup.directory': join(place, 'mine') }
    const server = await startServer({ basePath: folder.path, settings })
    const disk = await mountSilentDisk(place)
    try {
      const backups = [1, 2].map(() => server.call('POST', '/v1/backups'))
      expect(await Promise.race(backups)).toMatchObject({ status: 409, body: { code: 'BACKUP_UNDER_WAY' } })
      expect((await runToEnd(server, { cmd: 'echo on' })).status).toBe('succeeded')
      expect(await server.stop()).toMatchObject({ code: 0 })
      await Promise.allSettled(backups)
    } finally {
      await disk.release()
      await server.stop('SIGKILL')
      folder.remove()
    }
  })
})
