/** Clients that read slowly, or not at all: what waits for them is bounded, and who reads gets everything. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { createAnswerRoom, type AnswerLimits } from './answers.ts'
import { listReply } from './list.ts'
import type { Route } from './route.ts'

const MIB = 1024 * 1024
/** More than the kernel takes for a client that does not read. */
const RECORD = 'x'.repeat(12 * MIB)
const RECORDS = 4

/** Records that were made for all clients. */
let made = 0

const base = { surface: 'api', permission: 'public', summary: 'Answers much.', response: {} } as const
const routes: Route[] = [
  {
    ...base,
    method: 'get',
    path: '/list',
    handler: () =>
      listReply(
        (function* () {
          for (let i = 0; i < RECORDS; i++) {
            made += 1
            yield RECORD
          }
        })(),
      ),
  },
  { ...base, method: 'get', path: '/one', handler: () => RECORD },
  { ...base, method: 'get', path: '/small', handler: () => 'small' },
  { ...base, method: 'post', path: '/change', handler: () => 'changed' },
]

let http: TestHttp
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await http.close()
})

async function start(answers: Partial<AnswerLimits> = {}): Promise<void> {
  made = 0
  http = await startHttp(routes, {
    answers: { totalBytes: 64 * MIB, bytesPerKey: 30 * MIB, idleMs: 600_000, ...answers },
  })
}

/** Asks and reads nothing. */
function askOnly(path: string): Socket {
  const socket = http.connect()
  sockets.push(socket)
  socket.on('error', () => undefined).pause()
  socket.write(`GET /v1${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  return socket
}

const ask = (path: string, method = 'GET'): Promise<string> =>
  http.raw(`${method} /v1${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)

const headOf = (answer: string): string => answer.slice(0, answer.indexOf('\r\n\r\n'))

test('who does not read fills the room: reads are refused, changes are not, and who goes frees it', async () => {
  await start()
  const readers = [askOnly('/one'), askOnly('/one'), askOnly('/one')]
  const refused = await waitFor('a refusal', async () => {
    const answer = await ask('/small')
    return answer.startsWith('HTTP/1.1 503') && answer
  })
  expect(headOf(refused)).toMatch(/^Retry-After: \d+$/m)
  expect(refused).toContain('QUEUE_FULL')
  expect(await ask('/change', 'POST')).toContain('"changed"')
  for (const reader of readers) reader.destroy()
  await waitFor('room', async () => (await ask('/small')).startsWith('HTTP/1.1 200'))
})

test('a list is made no faster than it is read, and a slow reader gets all of it', async () => {
  await start()
  const reader = askOnly('/list')
  await waitFor('the first record', () => made > 0)
  // Others are answered, again and again; meanwhile nothing more is made.
  for (let i = 0; i < 20; i++) expect(await ask('/small')).toContain('"small"')
  expect(made).toBe(1)
  let length = 0
  reader.on('data', (part: Buffer) => (length += part.length)).resume()
  await waitFor('the whole list', () => length > RECORDS * RECORD.length)
  expect(made).toBe(RECORDS)
})

test('answers that began wait for room in turn, and end', async () => {
  await start({ bytesPerKey: 1 })
  const lists = await Promise.all([
    ask('/list'),
    ...Array.from({ length: 3 }, () => nextTurn().then(() => ask('/list'))),
  ])
  const whole = lists.filter((answer) => answer.startsWith('HTTP/1.1 200'))
  expect(whole.length).toBeGreaterThan(0)
  const areWhole = whole.map((answer) => answer.endsWith('\r\n0\r\n\r\n') && answer.length > RECORDS * RECORD.length)
  expect(areWhole).toEqual(whole.map(() => true))
})

test.each(['/one', '/list'])('who reads nothing of %s is cut, and its room is free again', async (path) => {
  await start({ idleMs: 200, bytesPerKey: 10 * MIB })
  const reader = askOnly(path)
  await waitFor('a refusal', async () => (await ask('/small')).startsWith('HTTP/1.1 503'))
  await waitFor('the cut', async () => (await ask('/small')).startsWith('HTTP/1.1 200'))
  let length = 0
  reader.on('data', (part: Buffer) => (length += part.length)).resume()
  await once(reader, 'close')
  expect(length).toBeLessThan(RECORD.length)
})

test('HEAD makes no list', async () => {
  await start()
  expect(headOf(await ask('/list', 'HEAD'))).toMatch(/^HTTP\/1\.1 200 /)
  expect(made).toBeLessThanOrEqual(1)
})

test('the room: one caller has a part of it, and who waits is served in turn', async () => {
  const room = createAnswerRoom({ totalBytes: 25, bytesPerKey: 10, idleMs: 1 })
  const [a, b, c, d] = [room.begin('one'), room.begin('one'), room.begin('two'), room.begin('three')]
  a.set(10)
  expect([room.hasRoom('one'), room.hasRoom('two')]).toEqual([false, true])
  expect(() => room.check('one')).toThrow('bytes of answers')
  c.set(15)
  expect(room.hasRoom('three')).toBe(false)
  const order: string[] = []
  const first = b.room().then(() => order.push('b'))
  const second = d.room().then(() => order.push('d'))
  a.end()
  a.end()
  await first
  b.set(5)
  await second
  expect(order).toEqual(['b', 'd'])
})
