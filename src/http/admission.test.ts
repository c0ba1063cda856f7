/** What is taken on at once, and what happens to the rest. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { makeAuthority } from '../../tests/helpers/certificates.ts'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { startHttp, type TestHttp, type TestTls } from '../../tests/helpers/http.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { createRequestAdmission, surplusOf, type AdmissionLimits } from './admission.ts'
import type { JsonRoute, Route } from './route.ts'
import { readTlsIdentity } from './tls.ts'

/** Answers that wait. */
let waiting: (() => void)[] = []
const MAX_BYTES = 1000

const at = (path: string, more: Pick<JsonRoute, 'handler' | 'isUrgent' | 'mediaType'>): Route => ({
  surface: 'api',
  method: 'post',
  path,
  summary: '',
  response: {},
  permission: 'public',
  body: { type: 'object' },
  ...more,
})
const handler = (): string => 'done'
const gate = (): Promise<string> =>
  new Promise((resolve) => {
    waiting.push(() => resolve('opened'))
  })

async function* endlessText(): AsyncGenerator<string> {
  for (;;) {
    yield 'x'
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const routes: Route[] = [
  at('/gate', { handler: gate }),
  at('/quick', { handler }),
  at('/stop', { handler, isUrgent: true }),
  at('/text', { handler: endlessText, mediaType: 'text/plain' }),
  {
    surface: 'api',
    method: 'get',
    path: '/events',
    summary: '',
    kind: 'stream',
    permission: 'public',
    handler: () => (sink) =>
      new Promise((resolve) => {
        sink.closed.addEventListener('abort', () => resolve())
      }),
  },
]

let http: TestHttp
const sockets: Socket[] = []

async function start(limits: AdmissionLimits, tls?: TestTls): Promise<void> {
  http = await startHttp(routes, { maxBodyBytes: MAX_BYTES }, tls, createRequestAdmission(limits))
}
afterEach(async () => {
  for (const open of waiting.splice(0)) open()
  for (const socket of sockets.splice(0)) socket.destroy()
  await http.close()
})

const request = (path: string, { method = 'POST', body = '{}' } = {}): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`

interface Opened {
  socket: Socket
  readonly received: () => string
}

/** A connection on which nothing is sent yet. */
async function open(): Promise<Opened> {
  const socket = http.connect()
  sockets.push(socket)
  let received = ''
  socket.setEncoding('latin1').on('data', (text: string) => (received += text))
  socket.on('error', () => undefined)
  await once(socket, 'secureConnect' in socket ? 'secureConnect' : 'connect')
  return { socket, received: () => received }
}

/** Sends one request on a connection of its own. @returns the beginning of the answer */
async function ask(path: string, more: { method?: string; body?: string } = {}): Promise<string> {
  const { socket, received } = await open()
  socket.write(request(path, more))
  await waitFor('an answer', () => received().includes('\r\n\r\n') || socket.closed)
  return received()
}

const refused = (limit: number, what: string): RegExp =>
  new RegExp(`^HTTP/1\\.1 503 [^]*Retry-After: 5\\r\\n[^]*"Too many ${what} are waiting \\(limit ${limit}\\)`)

describe('requests', () => {
  test('beyond the limit are refused, those that stop something and health aside, until others are answered', async () => {
    await start({ requests: 2 })
    const first = [ask('/v1/gate'), ask('/v1/gate')]
    await waitFor('both', () => waiting.length === 2)
    expect(await ask('/v1/quick')).toMatch(refused(2, 'requests'))
    expect(await ask('/v1/stop')).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ask('/healthz', { method: 'GET' })).toMatch(/^HTTP\/1\.1 200 /)
    // What is not answered by the application at all costs nothing.
    expect(await ask('/v1/nothing')).toMatch(/^HTTP\/1\.1 404 /)
    waiting.pop()?.()
    await Promise.any(first)
    expect(await ask('/v1/quick')).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('of clients that have gone are counted until their work is over', async () => {
    await start({ requests: 1 })
    const { socket } = await open()
    socket.write(request('/v1/gate'))
    await waitFor('the request', () => waiting.length === 1)
    socket.destroy()
    waiting.pop()?.()
    expect(await waitFor('room', async () => (await ask('/v1/quick')).includes(' 200 '))).toBe(true)
  })

  test('whose body is held back take no place', async () => {
    await start({ requests: 1 })
    for (let n = 0; n < 5; n += 1) {
      const { socket } = await open()
      socket.write(request('/v1/gate').slice(0, -1))
    }
    expect(await ask('/v1/quick')).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('may fill sixteen of the largest bodies together', async () => {
    await start({})
    const held: Opened[] = []
    for (let n = 0; n < 17; n += 1) {
      const one = await open()
      one.socket.write(request('/v1/quick', { body: `"${'x'.repeat(MAX_BYTES - 2)}"` }).slice(0, -1))
      held.push(one)
    }
    await waitFor('one to be refused', () => held.some(({ received }) => received().includes(' 503 ')))
    expect(held.filter(({ received }) => received() !== '')).toHaveLength(1)
    held.forEach(({ socket }) => socket.destroy())
    expect(await waitFor('room', async () => (await ask('/v1/quick')).includes(' 200 '))).toBe(true)
  })
})

describe('streams', () => {
  test('take no place of requests, and at most three quarters of the connections', async () => {
    await start({ requests: 1, connections: 8 })
    expect(await ask('/v1/text')).toMatch(/^HTTP\/1\.1 200 /)
    for (let n = 1; n < 6; n += 1) expect(await ask('/v1/events', { method: 'GET' })).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ask('/v1/events', { method: 'GET' })).toMatch(refused(6, 'streams'))
    expect(await ask('/v1/quick')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe.each(['http', 'https'] as const)('connections over %s', (kind) => {
  const folder = makeFolder()
  let tls: TestTls | undefined
  beforeAll(async () => {
    if (kind === 'http') return
    const authority = await makeAuthority(folder.path, 'test')
    const { certFile: cert, keyFile: key } = authority.issue('one', 'IP:127.0.0.1')
    const reading = await readTlsIdentity('api', { cert, key })
    if ('problems' in reading) throw new Error(reading.problems.join())
    tls = {
      ca: readFileSync(authority.caFile),
      identity: reading.identity,
      headers: {},
      handshakeFailed: () => undefined,
    }
  }, 240_000)
  afterAll(() => folder.remove())

  test('beyond the limit are for one request, which is refused unless it asks for health or stops something', async () => {
    await start({ connections: 8 }, tls)
    for (let n = 0; n < 8; n += 1) await open()
    const mine = sockets.slice()
    expect(await ask('/v1/quick')).toMatch(refused(8, 'connections'))
    expect(await ask('/healthz', { method: 'GET' })).toMatch(/^HTTP\/1\.1 200 /)
    expect(await ask('/v1/stop')).toMatch(/^HTTP\/1\.1 200 /)
    await waitFor('the end of these', () => sockets.every((socket) => socket.closed !== mine.includes(socket)))
    mine[0]?.destroy()
    expect(await waitFor('room', async () => (await ask('/v1/quick')).includes(' 200 '))).toBe(true)
  })

  test('that are too many even for that lose the one that came first', async () => {
    await start({ connections: 8 }, tls)
    for (let n = 0; n < 8; n += 1) await open()
    const surplus: Opened[] = []
    for (let n = 0; n <= surplusOf(8); n += 1) surplus.push(await open())
    await waitFor('the first to be closed', () => surplus[0]?.socket.closed)
    // In the middle of a handshake there are no words for it.
    expect(surplus[0]?.received()).toMatch(kind === 'http' ? refused(8, 'connections') : /^$/)
    expect(surplus.filter(({ socket }) => socket.closed)).toHaveLength(1)
    expect(sockets.slice(0, 8).some((socket) => socket.closed)).toBe(false)
    expect(await ask('/v1/stop')).toMatch(/^HTTP\/1\.1 200 /)
  })
})
