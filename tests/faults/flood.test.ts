/** More requests and connections than the server takes on: the rest is told to come again, and what is accepted is done. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { findDamage, readRows } from '../helpers/audit.ts'
import { askBySocket } from '../helpers/control-socket.ts'
import { acceptedIds, executionOf, flood, floodAtOnce, holdConnections, tally } from '../helpers/flood.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword, signIn } from '../helpers/logins.ts'
import { countFiles, watchMemory } from '../helpers/resources.ts'
import { run, runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let folder: TemporaryFolder
let server: TestServer
const REQUESTS = 20

async function start(settings: Record<string, string>): Promise<void> {
  folder = makeFolder()
  server = await startServer({ basePath: folder.path, settings: { 'log.level': 'ERROR', ...settings } })
}
afterEach(async () => {
  await server.stop('SIGKILL')
  folder.remove()
})

/** Everything that was accepted has ended well, and nothing else is there. */
async function expectAllDone(ids: readonly string[]): Promise<void> {
  await waitFor('all to end', () => [...readRows(folder.path).values()].every(({ status }) => status === 'succeeded'))
  expect([...readRows(folder.path).keys()].toSorted()).toEqual(ids.toSorted())
}

describe('a flood', () => {
  it('of executions: each is accepted and done, or refused', async () => {
    await start({ 'system.max_requests': String(REQUESTS), 'actionrunner.queue_limit': '100' })
    const files = countFiles(server.pid)
    const memory = watchMemory(server.pid)
    const answers = await flood(
      server.urls.api,
      Array.from({ length: 2000 }, (_, n) => executionOf(`echo ${n}`)),
    )
    const counts = tally(answers)
    expect(Object.keys(counts).toSorted()).toEqual(['201', '503, again'])
    const ids = acceptedIds(answers)
    expect(ids.length).toBeGreaterThan(0)
    await expectAllDone(ids)
    // 2000 requests of 64 KiB would be more.
    expect(memory.stop()).toBeLessThan(100)
    expect((await runToEnd(server, { cmd: 'echo again' })).status).toBe('succeeded')
    // A thread that searches the database may stay for a while.
    await waitFor('all connections to be gone', () => countFiles(server.pid) <= files + 15)
    expect((await server.stop()).code).toBe(0)
    expect(findDamage(folder.path)).toEqual([])
  })

  it('of lists and streams of unlike kinds leaves room for what stops executions', async () => {
    await start({ 'system.max_requests': String(REQUESTS), 'system.max_connections': '100' })
    const running = await run(server, { cmd: `until [ -e ${folder.path}/go ]; do sleep 0.02; done`, timeout: 0 })
    await waitForStatus(server, running.id, ['running'])
    const paths = [
      '/v1/executions?limit=100',
      '/v1/actions?limit=100',
      '/v1/actions/views/overview',
      // Each stays until the execution has ended; there may be 75.
      `/stream/v1/executions/${running.id}/output`,
    ]
    const listed = Array.from({ length: 400 }, (_, n) => ({ path: paths[n % paths.length] ?? '' }))
    const stopping = { method: 'DELETE', path: `/v1/executions/${running.id}` }
    const answers = await floodAtOnce(server, server.urls.api, [...listed, stopping])
    expect(tally(answers.slice(-1))).toEqual({ 200: 1 })
    expect(Object.keys(tally(answers.slice(0, -1))).toSorted()).toEqual(['200', '503, again'])
    expect(await waitForStatus(server, running.id)).toMatchObject({ status: 'canceled' })
  })

  it('of logins does not hold up who is logged in', async () => {
    await start({ 'auth.enable': 'True', 'auth.failures_per_address': '1000' })
    const token = await signIn(server, 'admin', firstPassword(folder.path))
    const logins = flood(
      server.urls.auth,
      Array.from({ length: 200 }, (_, n) => ({
        path: '/tokens',
        body: {},
        headers: { Authorization: basicAuth(`user${n}`, 'wrong') },
      })),
    )
    const seen = await server.call('GET', '/v1/executions', undefined, token)
    expect(seen.status).toBe(200)
    const counts = tally(await logins)
    expect(Object.keys(counts).filter((kind) => !['401', '429, again', '503, again'].includes(kind))).toEqual([])
    await signIn(server, 'admin', firstPassword(folder.path))
  })
})

describe('connections that are held', () => {
  const beginnings = {
    'and say nothing': '',
    'in the middle of the headers': 'POST /v1/executions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ',
    'in the middle of a body':
      'POST /v1/executions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
  }

  it.each(Object.entries(beginnings))('%s', async (_what, beginning) => {
    await start({ 'system.max_requests': String(REQUESTS), 'system.max_connections': '60' })
    const go = join(folder.path, 'go')
    const running = await run(server, { cmd: `until [ -e ${go} ]; do sleep 0.02; done`, timeout: 0 })
    const stopped = await run(server, { cmd: 'exec sleep 1000', timeout: 0 })
    for (const { id } of [running, stopped]) await waitForStatus(server, id, ['running'])
    const held = await holdConnections(server.urls.api, 59, beginning)
    const one = executionOf('true')
    const last = await waitFor('a refusal', async () => {
      const [answer] = await flood(server.urls.api, [one])
      if (typeof answer === 'object' && answer.status === 503) return answer
      held.push(...(await holdConnections(server.urls.api, 1, beginning)))
      return undefined
    })
    expect(last).toMatchObject({ retryAfter: '5', text: expect.stringContaining('"QUEUE_FULL"') })
    const others = [
      { path: '/healthz' },
      { path: '/readyz' },
      { method: 'DELETE', path: `/v1/executions/${stopped.id}` },
    ]
    for (const other of others) expect(tally(await flood(server.urls.api, [other]))).toEqual({ 200: 1 })
    const bySocket = await askBySocket(join(folder.path, 'svc.sock'), 'POST', one.path, one.body)
    expect(bySocket.status).toBe(201)
    writeFileSync(go, '')

    for (const socket of held) socket.destroy()
    await waitFor('room', async () =>
      (await flood(server.urls.api, [{ path: '/v1/actions' }])).every(
        (answer) => typeof answer === 'object' && answer.status === 200,
      ),
    )
    expect(await waitForStatus(server, running.id)).toMatchObject({ status: 'succeeded' })
    expect(await waitForStatus(server, stopped.id)).toMatchObject({ status: 'canceled' })
    expect(await waitForStatus(server, String(bySocket.body['id']))).toMatchObject({ status: 'succeeded' })
  })
})
