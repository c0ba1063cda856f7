/** Hundreds of clients that ask for much and read nothing: the server stays small, and answers others. */
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { readMemory, watchMemory } from '../helpers/resources.ts'
import { run, runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

const CLIENTS = 400
/** Of the whole server, as `VmRSS` counts it. */
const MAX_RSS_MIB = 600
const LARGE_BYTES = 9_900_000

const folder = makeFolder()
let server: TestServer
let large = ''
beforeAll(async () => {
  server = await startServer({ basePath: folder.path })
  const both = `head -c ${LARGE_BYTES} /dev/zero | tr "\\0" x; head -c ${LARGE_BYTES} /dev/zero | tr "\\0" y >&2`
  large = (await runToEnd(server, { cmd: both, timeout: 600 })).id
  const many = Array.from({ length: 100 }, () => run(server, { cmd: 'head -c 200000 /dev/zero | tr "\\0" x' }))
  for (const { id } of await Promise.all(many)) await waitForStatus(server, id)
  await server.stop()
})
// A server of its own for each test: when memory returns to the system belongs to the engine.
beforeEach(async () => {
  server = await startServer({ basePath: folder.path })
})
afterEach(async () => {
  await server.stop('SIGKILL')
})
afterAll(() => folder.remove())

it.each([
  ['a page of a list', () => '/v1/executions?limit=100'],
  ['a list of everything, the largest first', () => '/v1/executions?limit=-1&sort_asc=1'],
  ['an execution with a result of 20 MB', () => `/v1/executions/${large}`],
  ['that result', () => `/v1/executions/${large}/result`],
  ['its output', () => `/v1/executions/${large}/output`],
])('%s', async (_name, path) => {
  const before = readMemory(server.pid)
  const watch = watchMemory(server.pid)
  let growth = Infinity
  const sockets: Socket[] = []
  const answered = new Set<Socket>()
  for (let i = 0; i < CLIENTS; i++) {
    const socket = connect(Number(new URL(server.urls.api).port), '127.0.0.1')
    sockets.push(socket)
    const done = (): void => void answered.add(socket)
    socket
      .on('error', () => undefined)
      .once('readable', done)
      .once('close', done)
    socket.write(`GET ${path()} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  }
  try {
    // Each has the beginning of its answer or a refusal, or was cut.
    await waitFor('the answers', () => answered.size === CLIENTS)
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'core.noop' })
    expect(body.id).toMatch(/^[0-9a-f]{24}$/)
  } finally {
    growth = watch.stop()
    for (const socket of sockets) socket.destroy()
  }
  expect(before + growth).toBeLessThan(MAX_RSS_MIB)
})
