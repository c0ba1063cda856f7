/** More than fits: thousands of executions at once, a full queue, clients that vanish. */
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { readRows } from '../helpers/audit.ts'
import { countFiles } from '../helpers/resources.ts'
import { run, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly, rounds } from '../helpers/tiers.ts'

let server: TestServer
const sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server.stop('SIGKILL')
})

function countByStatus(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of readRows(server.basePath).values()) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

describe('many executions at once', () => {
  it('all run, each once, the oldest first', async () => {
    server = await startServer({ settings: { 'log.level': 'WARNING', 'actionrunner.actions_pool_size': '20' } })
    const total = rounds({ daily: 100, full: 2000 })
    let next = 0
    /** Counts requests and answers. */
    let moment = 0
    const requests = new Map<string, { asked: number; answered: number }>()
    const post = async (): Promise<void> => {
      while (next < total) {
        next += 1
        const asked = ++moment
        const { id } = await run(server, { cmd: `echo ${next} >> ${server.basePath}/runs` })
        requests.set(id, { asked, answered: ++moment })
      }
    }
    await Promise.all(Array.from({ length: 32 }, post))
    await waitFor('all to end', () => countByStatus()['succeeded'] === total, 400_000)

    const starts = [...readRows(server.basePath)]
      .map(([id, { log }]) => ({ id, at: log.find(({ status }) => status === 'scheduled')?.timestamp ?? '' }))
      .toSorted((a, b) => (a.at + a.id < b.at + b.id ? -1 : 1))
    // Requests under way at the same time have no order. None that was made after an answer starts before what was answered.
    let lastAsked = 0
    const overtaken = starts.filter(({ id }) => {
      const { asked, answered } = requests.get(id) ?? { asked: 0, answered: 0 }
      const isOvertaken = lastAsked > answered
      lastAsked = Math.max(lastAsked, asked)
      return isOvertaken
    })
    expect(overtaken).toEqual([])
    expect(requests.size).toBe(total)
    const runs = readFileSync(`${server.basePath}/runs`, 'utf8').trim().split('\n').map(Number)
    expect(runs.toSorted((a, b) => a - b)).toEqual(Array.from({ length: total }, (_, index) => index + 1))
  })
})

fullOnly(describe)('a full queue', () => {
  fullOnly(it)('refuses with 503, says so, stores nothing, and accepts again once there is room', async () => {
    const limit = 20
    server = await startServer({
      settings: { 'actionrunner.actions_pool_size': '1', 'actionrunner.queue_limit': String(limit) },
    })
    const blocker = await run(server, { cmd: `until [ -e ${server.basePath}/go ]; do sleep 0.02; done` })
    await waitForStatus(server, blocker.id, ['running'])
    for (let n = 0; n < limit; n++) await run(server, { cmd: 'true' })
    const rerun = `/v1/executions/${blocker.id}/re_run`
    for (const [path, body] of [
      ['/v1/executions', { action: 'core.local', parameters: { cmd: 'true' } }],
      ['/v1/executions', { action: 'core.local', parameters: { cmd: 'true' }, delay: 1000 }],
      [rerun, {}],
    ] as const) {
      const refused = await server.call('POST', path, body)
      expect(refused.status).toBe(503)
      expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      expect(refused.body).toEqual({
        code: 'QUEUE_FULL',
        faultstring: `Too many executions are waiting (limit ${limit}); try again later.`,
      })
    }
    expect(readRows(server.basePath).size).toBe(limit + 1)
    // Everything else still works.
    expect((await server.call('GET', '/v1/executions?limit=1')).status).toBe(200)

    writeFileSync(`${server.basePath}/go`, '')
    const accepted = await waitFor('room in the queue', async () => {
      const answer = await server.call<{ id: string }>('POST', '/v1/executions', {
        action: 'core.local',
        parameters: { cmd: 'true' },
      })
      return answer.status === 201 && answer.body
    })
    expect(await waitForStatus(server, accepted.id)).toMatchObject({ status: 'succeeded' })
  })
})

fullOnly(describe)('clients that vanish', () => {
  /** A request whose answer is only awaited, in one piece or in part. */
  function send(url: string, text: (host: string) => string): Promise<Socket> {
    const { hostname, port, host } = new URL(url)
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }, () => {
        socket.write(text(host), () => resolve(socket))
      })
      socket.on('error', reject)
      socket.resume()
      sockets.push(socket)
    })
  }
  const whole = (path: string) => (host: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`

  it('leave nothing behind, however they go', async () => {
    server = await startServer({ settings: { 'stream.heartbeat': '0.1' } })
    const { id } = await run(server, {
      cmd: `until [ -e ${server.basePath}/go ]; do echo tick; sleep 0.02; done`,
      timeout: 0,
    })
    await waitForStatus(server, id, ['running'])
    const before = countFiles(server.pid)
    const { api, stream } = server.urls
    for (let n = 0; n < 25; n++) {
      await send(stream, whole('/v1/stream?events=svc.execution.output__create'))
      await send(stream, whole(`/v1/executions/${id}/output`))
      await send(api, whole(`/v1/executions/${id}/output`))
      // Half a request: the head, or the head and half a body.
      await send(api, (host) => `GET /v1/executions HTTP/1.1\r\nHost: ${host}\r\n`)
      await send(
        api,
        (host) =>
          `POST /v1/executions HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"ac`,
      )
    }
    // Some of the files counted before, such as a kept connection of this client, may have gone since.
    await waitFor('the connections', () => countFiles(server.pid) >= before + sockets.length - 10)
    sockets.forEach((socket, index) => {
      if (index % 2 === 0) socket.destroy()
      else socket.resetAndDestroy()
    })
    // The thread that copies the write-ahead log may have started since: it has ten.
    await waitFor('the files to be closed', () => countFiles(server.pid) <= before + 10, 60_000)

    writeFileSync(`${server.basePath}/go`, '')
    expect(await waitForStatus(server, id)).toMatchObject({ status: 'succeeded' })
    const { body } = await server.call<unknown[]>('GET', '/v1/executions')
    expect(body.length).toBe(1)
  })
})
