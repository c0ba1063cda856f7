/** The disk is full for a while: requests are refused in words, running executions wait for room, nothing is lost. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findDamage, readOutput } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { run, startServer, waitForStatus, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

/** Only root can make a small file system; in some containers not even root. */
function canMount(): boolean {
  if (process.getuid?.() !== 0) return false
  const probe = makeFolder()
  try {
    mount(probe.path)
    execFileSync('umount', [probe.path])
    return true
  } catch {
    return false
  } finally {
    probe.remove()
  }
}

function mount(path: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', path], { stdio: 'ignore' })
}

let folder: TemporaryFolder
let basePath = ''
let server: TestServer | undefined

/** Takes all the room there is. */
function fillDisk(): void {
  const file = openSync(join(basePath, 'filler'), 'a')
  try {
    for (const block of [Buffer.alloc(1_048_576), Buffer.alloc(1)]) {
      try {
        for (;;) writeSync(file, block)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
    }
  } finally {
    closeSync(file)
  }
}

describe.skipIf(!canMount())('a disk that is full for a while', () => {
  beforeEach(() => {
    folder = makeFolder()
    basePath = join(folder.path, 'small')
    mkdirSync(basePath)
    mount(basePath)
  })
  afterEach(async () => {
    await server?.stop('SIGKILL')
    server = undefined
    execFileSync('umount', ['--lazy', basePath])
    folder.remove()
  })

  it('delays what runs and refuses what is new, and that is all', async () => {
    const started = await startServer({ basePath, settings: { 'log.level': 'CRITICAL' } })
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
      fillDisk()
      const answer = await started.call<ExecutionAnswer>('POST', '/v1/executions', {
        action: 'core.local',
        parameters: { cmd: `echo ${'x'.repeat(20_000)}` },
      })
      return answer.status !== 201 && answer
    })
    expect(refusal.status).toBe(503)
    expect(refusal.body).toEqual({
      code: 'STORAGE_FAILED',
      faultstring: 'The database cannot be written at the moment; nothing was stored.',
    })
    mkdirSync(join(go, 'full'))
    await waitFor('the command to end', () => readdirSync(folder.path).includes('ended'))
    const cancel = await started.call('DELETE', `/v1/executions/${canceled.id}`)
    expect([200, 503]).toContain(cancel.status)
    // Reading works, and every further request is answered.
    for (const path of ['/v1/executions', `/v1/executions/${writer.id}`, `/v1/executions/${writer.id}/output`]) {
      expect((await started.call('GET', path)).status).toBe(200)
    }
    for (let n = 0; n < 20; n++) {
      const answer = await started.call('POST', '/v1/executions', { action: 'core.noop' })
      expect([201, 503]).toContain(answer.status)
    }

    rmSync(join(basePath, 'filler'))
    const again = await waitFor('room', async () => {
      const answer = await started.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' })
      return answer.status === 201 && answer.body
    })
    expect(await waitForStatus(started, again.id)).toMatchObject({ status: 'succeeded' })
    expect(await waitForStatus(started, ending.id)).toMatchObject({
      status: 'succeeded',
      result: { stdout: 'begun\nended' },
    })
    if (cancel.status === 503) await started.call('DELETE', `/v1/executions/${canceled.id}`)
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
})
