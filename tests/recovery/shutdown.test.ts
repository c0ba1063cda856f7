/** Stopping in order: what may finish, what is ended, what continues at the next start (decision 17). */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SAME_SIGNAL_MS } from '../../src/cli/signals.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { run, startServer, waitForLog, waitForStatus, type TestServer } from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { findDamage, findProcesses, readOutput, readRecordedIds, readRows } from '../helpers/audit.ts'
import { fullOnly } from '../helpers/tiers.ts'

let folder: TemporaryFolder
const servers: TestServer[] = []
const clients: EventClient[] = []

beforeEach(() => {
  folder = makeFolder()
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  for (const server of servers.splice(0)) await server.stop('SIGKILL')
  for (const { pid } of findProcesses(folder.path)) process.kill(pid, 'SIGKILL')
  folder.remove()
})

async function start(settings: Record<string, string> = {}, env: Record<string, string> = {}): Promise<TestServer> {
  const server = await startServer({ basePath: folder.path, settings, env })
  servers.push(server)
  return server
}

/** Resolves with the exit code. */
async function ended(server: TestServer): Promise<number | null> {
  const { code } = await server.exited
  servers.splice(servers.indexOf(server), 1)
  return code
}

/** Tells it once more to stop, so that it ends this execution. Resolves with the exit code. */
async function hurried(server: TestServer, id: string): Promise<number | null> {
  await waitForLog(server, 'event=server.stopping')
  // Before, it is the same request; and once it has ended all but its process, nobody is there to hear another one.
  await delay(SAME_SIGNAL_MS)
  process.kill(server.pid, 'SIGTERM')
  await waitFor('the server to hurry', () => readRows(folder.path).get(id)?.status === 'abandoned')
  return await ended(server)
}

/** Whether a request is answered with 503, or not even taken. */
function isRefused(server: TestServer): Promise<boolean> {
  return server.call('POST', '/v1/executions', { action: 'core.noop' }).then(
    ({ status }) => status === 503,
    () => true,
  )
}

/** A command of this test: found again by the folder in its command line. */
function command(text: string): Record<string, unknown> {
  return { cmd: `: ${folder.path}; ${text}`, timeout: 0 }
}

/** Starts a command that prints `up`, and waits for that. */
async function runUntilUp(server: TestServer, text: string): Promise<string> {
  const { id } = await run(server, command(text))
  await waitFor('the command to be up', () => readOutput(folder.path, id).some(({ data }) => data.includes('up')))
  return id
}

async function open(url: string): Promise<EventClient> {
  const client = await openEvents(url)
  clients.push(client)
  return client
}

function historyOf(id: string): string {
  const log = readRows(folder.path).get(id)?.log ?? []
  return log.map(({ status }) => status).join(' ')
}

describe('a server that is told to stop', () => {
  fullOnly(it)('ends also while a file system that does not answer holds one of its threads', async () => {
    const pipe = join(folder.path, 'silent')
    execFileSync('mkfifo', [pipe])
    const preload = join(import.meta.dirname, '../fixtures/opens-silent-file.cjs')
    const server = await start({}, { NODE_OPTIONS: `--require ${preload}`, SILENT_FILE: pipe })
    process.kill(server.pid, 'SIGTERM')
    expect(await ended(server)).toBe(0)
  })

  fullOnly(it)(
    'lets commands finish for the grace, then ends the others, and keeps the rest for the next start',
    async () => {
      const settings = { 'actionrunner.actions_pool_size': '4', 'actionrunner.shutdown_grace_seconds': '600' }
      const server = await start(settings)
      // Long enough for the others to have taken every slot before, on a busy machine as well.
      const delayed = await run(server, command('echo delayed'), { delay: 10_000 })
      await waitForStatus(server, delayed.id, ['delayed'])
      const quick = await runUntilUp(server, `echo up; until [ -e ${folder.path}/go ]; do sleep 0.02; done; echo done`)
      const slow = await runUntilUp(server, 'echo up; sleep 1000')
      const stubborn = await runUntilUp(
        server,
        `setsid sh -c 'trap "" TERM; echo up; while :; do sleep 1; done' & wait`,
      )
      const last = await runUntilUp(server, 'echo up; trap "echo cleaned; exit 7" TERM; while :; do sleep 0.02; done')
      const waiting = await run(server, command('echo waited'))

      const output = await open(`${server.urls.stream}/v1/executions/${slow}/output`)
      await output.frame(({ data }) => data.includes('up'))
      const general = await open(`${server.urls.stream}/v1/stream`)
      const { pid } = server
      process.kill(pid, 'SIGTERM')
      const streamEnds = Promise.all([output.ended, general.ended])
      expect(await streamEnds).toEqual(['end', 'end'])
      expect(output.raw()).not.toContain('EOF')
      // Still in its grace: nothing was ended yet, and nobody can ask for more.
      expect(await isRefused(server)).toBe(true)
      expect(readRows(folder.path).get(quick)?.status).toBe('running')
      writeFileSync(join(folder.path, 'go'), '')
      await waitFor('the command to end', () => readRows(folder.path).get(quick)?.status === 'succeeded')
      expect(await hurried(server, slow)).toBe(0)

      expect(findProcesses(folder.path)).toEqual([])
      expect(historyOf(quick)).toBe('requested scheduled running succeeded')
      expect(historyOf(slow)).toBe('requested scheduled running abandoned')
      expect(historyOf(stubborn)).toBe('requested scheduled running abandoned')
      expect(historyOf(last)).toBe('requested scheduled running abandoned')
      const said = readOutput(folder.path, last).filter(({ output_type }) => output_type === 'stdout')
      expect(said.map(({ data }) => data).join('')).toBe('up\ncleaned\n')
      expect(historyOf(waiting.id)).toBe('requested')
      expect(historyOf(delayed.id)).toMatch(/^requested delayed( requested)?$/)
      expect(readRecordedIds(folder.path)).toEqual([])
      expect(findDamage(folder.path)).toEqual([])

      const next = await start(settings)
      for (const { id } of [waiting, delayed]) {
        expect(await waitForStatus(next, id)).toMatchObject({ status: 'succeeded' })
      }
      const again = await next.call<{ status: string; result: unknown }>('GET', `/v1/executions/${slow}`)
      expect(again.body).toMatchObject({
        status: 'abandoned',
        result: { stdout: 'up', succeeded: false, failed: true },
      })
      process.kill(next.pid, 'SIGINT')
      expect(await ended(next)).toBe(0)
    },
  )

  fullOnly(it)('takes the same signal right after the first for the same request', async () => {
    const server = await start({ 'actionrunner.shutdown_grace_seconds': '20' })
    const id = await runUntilUp(server, `echo up; until [ -e ${folder.path}/go ]; do sleep 0.02; done; echo done`)
    process.kill(server.pid, 'SIGTERM')
    process.kill(server.pid, 'SIGTERM')
    // It refuses new connections, so it has understood.
    await waitFor('the server to refuse', () => isRefused(server))
    writeFileSync(join(folder.path, 'go'), '')
    expect(await ended(server)).toBe(0)
    expect(historyOf(id)).toBe('requested scheduled running succeeded')
  })

  fullOnly(it)('hurries when it is told again', async () => {
    const server = await start({ 'actionrunner.shutdown_grace_seconds': '600' })
    const id = await runUntilUp(server, 'echo up; sleep 1000')
    process.kill(server.pid, 'SIGTERM')
    expect(await hurried(server, id)).toBe(0)
    expect(historyOf(id)).toBe('requested scheduled running abandoned')
    expect(findProcesses(folder.path)).toEqual([])
  })

  it('stops although clients hold connections and streams open', async () => {
    const server = await start({ 'actionrunner.shutdown_grace_seconds': '0' })
    const id = await runUntilUp(server, 'echo up; sleep 1000')
    const paused = await open(`${server.urls.stream}/v1/executions/${id}/output`)
    paused.pause()
    const streams = await Promise.all([1, 2, 3].map(() => open(`${server.urls.stream}/v1/stream`)))
    process.kill(server.pid, 'SIGTERM')
    expect(await ended(server)).toBe(0)
    expect(await Promise.all(streams.map((stream) => stream.ended))).toEqual(['end', 'end', 'end'])
  })
})

fullOnly(describe)('an error that nobody caught', () => {
  it.each([
    ['thrown', `throw new Error('a bug in disguise')`],
    ['rejected', `void Promise.reject(new Error('a bug in disguise'))`],
  ])('%s: is logged, ends the server at once, and the next one goes on', async (_how, fault) => {
    const code = `process.on('SIGUSR2', () => { ${fault} })`
    const server = await startServer({
      basePath: folder.path,
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` },
    })
    servers.push(server)
    const id = await runUntilUp(server, 'echo up; sleep 1000')
    process.kill(server.pid, 'SIGUSR2')
    expect(await ended(server)).toBe(1)
    expect(server.log()).toMatch(/CRITICAL .*event=server\.fault.*a bug in disguise/)
    await start()
    expect(historyOf(id)).toBe('requested scheduled running abandoned')
    expect(findProcesses(id)).toEqual([])
  })
})
