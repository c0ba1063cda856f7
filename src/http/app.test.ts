import { once } from 'node:events'
import { Agent, get, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { connect, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { createMemoryLedger } from '../../tests/helpers/ledger.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { createHttpApp } from './app.ts'
import { nameTaken, permissionDenied, storageFailed } from '../core/errors.ts'
import { createLog } from '../lib/log/log.ts'
import { allRights, type AccessControl } from './authenticate.ts'
import { ListenError, listen } from './listeners.ts'
import { createOriginPolicy } from './origin.ts'
import { createPeers } from './peers.ts'
import { Reply, type ApiRequest, type Guard, type JsonRoute, type Route } from './route.ts'
import { fullOnly } from '../../tests/helpers/tiers.ts'

const route = (
  method: JsonRoute['method'],
  path: string,
  handler: JsonRoute['handler'],
  more: Partial<Omit<JsonRoute, 'permission'>> = {},
  guard: Guard = { permission: 'public' },
): JsonRoute => ({ surface: 'api', method, path, summary: '', response: {}, handler, ...more, ...guard })

const answer = (name: string) => (request: ApiRequest) => ({ name, params: request.params })

let chunksGiven = 0
let chunksClosed = false

async function* endlessText(): AsyncGenerator<string> {
  try {
    for (;;) {
      chunksGiven += 1
      yield 'x'.repeat(10_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
  } finally {
    chunksClosed = true
  }
}

async function* failingText(): AsyncGenerator<string> {
  yield 'the beginning'
  await Promise.resolve()
  throw new Error('the rest is unreadable')
}

let counted = 0

/** Lets answers through one at a time. */
const gate = { begun: 0, open: (): void => undefined }

const routes: Route[] = [
  route('get', '/gate', async () => {
    gate.begun += 1
    const name = `gate ${gate.begun}`
    await new Promise<void>((resolve) => (gate.open = resolve))
    return name
  }),
  // On purpose in an order that would be wrong.
  route('get', '/things/:id', answer('one')),
  route('put', '/things/:id', answer('change')),
  route('delete', '/things/:id', () => undefined, { status: 204 }),
  route('get', '/things/:id/:part', answer('part')),
  route('get', '/things/:id/output', answer('output')),
  route('get', '/things/views/filters', answer('filters')),
  route('get', '/things/views/:view', answer('view')),
  route('get', '/things', answer('list'), { aliases: ['/oldthings'] }),
  route('post', '/things', ({ body }) => new Reply({ body }, { headers: { 'X-More': '1' } }), {
    status: 201,
    body: {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' } },
      additionalProperties: false,
    },
  }),
  route('get', '/files/*path', answer('file')),
  route('get', '/typed', ({ query }) => query, {
    query: { limit: { type: 'integer', description: '' }, tags: { type: 'array', description: '' } },
  }),
  route('post', '/unread', () => ({ done: true })),
  route('get', '/whoami', ({ principal }) => principal, {}, { permission: 'authenticated' }),
  route(
    'post',
    '/admin',
    () => ({}),
    { body: {} },
    { permission: 'execution_stop', resource: () => ({ uid: 'execution:1' }) },
  ),
  route(
    'post',
    '/counted',
    () => ({ number: (counted += 1) }),
    { status: 201, body: {} },
    { permission: 'authenticated' },
  ),
  route('get', '/text', () => 'plain ä', { mediaType: 'text/plain; charset=UTF-8' }),
  route('get', '/bytes', () => new Reply(Buffer.from([0, 255]), { status: 203 }), { mediaType: 'image/x' }),
  route('get', '/quoted', () => 'a string'),
  route('get', '/null', () => null),
  route('get', '/nothing', () => undefined),
  route('get', '/endless', endlessText, { mediaType: 'text/plain' }),
  route('get', '/failing-text', failingText, { mediaType: 'text/plain' }),
  route('get', '/bug', () => {
    throw new TypeError('secret details of /etc/svc')
  }),
  route('get', '/async-bug', () => Promise.reject(new Error('later details'))),
  route('get', '/taken', () => {
    throw nameTaken('Rule "a.b"', '65f0a1b2c3d4e5f60718293a')
  }),
  route('get', '/full', () => {
    throw storageFailed(new Error('SQLITE_FULL inside'))
  }),
  route('post', '/tokens', answer('token'), { surface: 'auth' }),
  route('get', '/things', answer('auth things'), { surface: 'auth' }),
]

const access: AccessControl = {
  authenticate: () => ({ user: 'somebody', isAdmin: false, method: 'token' }),
  login: () => ({ user: 'somebody', isAdmin: false, method: 'basic' }),
  rightsOf: () => ({
    ...allRights,
    may: () => false,
    require(permission) {
      throw permissionDenied(`"${permission}" is not yours`)
    },
  }),
  hasCredential: () => true,
  isCurrent: () => true,
  watch: () => () => undefined,
}

let http: TestHttp
let isStarting = false
let isStopping = false
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

beforeAll(async () => {
  http = await startHttp(routes, {
    access,
    maxBodyBytes: 50_000,
    isStarting: () => isStarting,
    isStopping: () => isStopping,
  })
})

afterAll(async () => {
  agent.destroy()
  await http.close()
})

interface Answer {
  status: number
  headers: IncomingMessage['headers']
  text: string
  body: Record<string, unknown>
  /** Tells connections apart. */
  localPort: number | undefined
}

/** Over one connection that is kept alive, so that what a request leaves behind hits the next one. */
async function call(method: string, path: string, headers: OutgoingHttpHeaders = {}, body?: string): Promise<Answer> {
  const outgoing = httpRequest(http.urls.api, { method, path, headers, agent })
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage] // what this event has
  const received = await text(response)
  const isJson = response.headers['content-type']?.startsWith('application/json') === true && received !== ''
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: received,
    body: isJson ? (JSON.parse(received) as Record<string, unknown>) : {}, // or another JSON value, in one test
    localPort: outgoing.socket?.localPort,
  }
}

describe('routing', () => {
  test.each([
    ['/v1/things', { name: 'list', params: {} }],
    ['/v1/things/', { name: 'list', params: {} }],
    ['/api/v1/things?limit=1', { name: 'list', params: {} }],
    ['/v1/oldthings', { name: 'list', params: {} }],
    ['/v1/things/a', { name: 'one', params: { id: 'a' } }],
    ['/v1/things/views', { name: 'one', params: { id: 'views' } }],
    ['/v1/things/a/output', { name: 'output', params: { id: 'a' } }],
    ['/v1/things/a/b', { name: 'part', params: { id: 'a', part: 'b' } }],
    ['/v1/things/views/filters', { name: 'filters', params: {} }],
    ['/v1/things/views/other', { name: 'view', params: { view: 'other' } }],
    ['/v1/%74hings/a', { name: 'one', params: { id: 'a' } }],
    ['/v1/things/a%2Fb', { name: 'one', params: { id: 'a/b' } }],
    ['/v1/things/%2e%2e%2f%2e%2e', { name: 'one', params: { id: '../..' } }],
    ['/v1/things/..', { name: 'one', params: { id: '..' } }],
    ['/v1/things/%E2%82%AC%00', { name: 'one', params: { id: '€\0' } }],
    ['/v1/things/__proto__', { name: 'one', params: { id: '__proto__' } }],
    ['/v1/files/a/b/c.txt', { name: 'file', params: { path: 'a/b/c.txt' } }],
    ['/v1/files/a%2Fb/c', { name: 'file', params: { path: 'a/b/c' } }],
    ['/auth/v1/things', { name: 'auth things', params: {} }],
    ['http://127.0.0.1:9101/v1/things?limit=1', { name: 'list', params: {} }],
    ['HTTPS://LOCALHOST/v1/things/a%2Fb', { name: 'one', params: { id: 'a/b' } }],
  ])('GET %s', async (path, body) => {
    expect(await call('GET', path)).toMatchObject({ status: 200, body })
  })

  test.each([
    '/v1/nothing-here',
    '/v1/Things',
    '/v1//things',
    '//v1/things',
    '/v1/things/a/b/c',
    '/v1/things//output',
    '/v1/things;x=1',
    '/v1/things%00',
    '/v1/../things',
    '/v1/./things',
    '/v1/x/../things',
    '/v1/%2e%2e/things',
    '/v2/things',
    '/v1/tokens',
    '/auth/v1/whoami',
    '/stream/v1/things',
    'http://127.0.0.1/v2/things',
    'http://user@127.0.0.1/v1/things',
    'ftp://127.0.0.1/v1/things',
  ])('GET %s is unknown', async (path) => {
    const unknown = await call('GET', path)
    expect(unknown.status).toBe(404)
    expect(unknown.body).toEqual({ faultstring: 'The resource could not be found.', code: 'ROUTE_UNKNOWN' })
  })

  test('other surfaces answer on the API listener only', async () => {
    expect((await fetch(`${http.urls.auth}/tokens`, { method: 'POST' })).status).toBe(200)
    expect((await fetch(`${http.urls.auth}/auth/v1/tokens`, { method: 'POST' })).status).toBe(200)
    expect((await fetch(`${http.urls.auth}/api/v1/things/a`)).status).toBe(404)
    expect((await fetch(`${http.urls.auth}/v1/things/a`)).status).toBe(404)
    expect((await fetch(`${http.urls.stream}/auth/v1/tokens`, { method: 'POST' })).status).toBe(404)
    expect((await call('POST', '/auth/v1/tokens')).status).toBe(200)
  })

  test.each([
    ['POST', '/v1/things/a', 'GET, PUT, DELETE'],
    ['PATCH', '/v1/things', 'GET, POST'],
    ['DELETE', '/v1/things/views/filters', 'GET'],
    ['DELETE', '/v1/oldthings', 'GET'],
    ['TRACE', '/v1/things', 'GET, POST'],
    ['HEAD', '/v1/admin', 'POST'],
  ])('%s %s: another method', async (method, path, allowed) => {
    const refused = await call(method, path)
    expect(refused.status).toBe(405)
    expect(refused.headers['allow']).toBe(allowed)
    expect(refused.body['code']).toBe(method === 'HEAD' ? undefined : 'METHOD_NOT_ALLOWED')
  })

  test('HEAD is GET without the body', async () => {
    const { headers } = await call('GET', '/v1/things')
    const head = await call('HEAD', '/v1/things')
    expect(head).toMatchObject({ status: 200, text: '' })
    expect(head.headers['content-length']).toBe(headers['content-length'])
    expect(head.headers['content-type']).toBe(headers['content-type'])
  })

  test('a path that cannot be decoded says so', async () => {
    const refused = await call('GET', '/v1/things/%ff')
    expect(refused.status).toBe(400)
    expect(refused.body['code']).toBe('PATH_UNDECODABLE')
  })
})

describe('every answer', () => {
  const kinds: [string, string, number, OutgoingHttpHeaders?][] = [
    ['GET', '/v1/things', 200],
    ['GET', '/v1/nothing-here', 404],
    ['PATCH', '/v1/things', 405],
    ['GET', '/v1/%', 400],
    ['POST', '/v1/things', 400],
    ['POST', '/v1/admin', 403],
    ['GET', '/v1/bug', 500],
    ['GET', '/v1/full', 503],
    ['DELETE', '/v1/things/a', 204],
    ['GET', '/v1/text', 200],
    ['OPTIONS', '/v1/things', 200],
    ['OPTIONS', '/no/such/path', 200],
    ['OPTIONS', '/v1/%', 200],
    ['GET', '/v1/things', 403, { Host: 'rebound.example' }],
    ['POST', '/v1/things', 403, { Origin: 'http://evil.example' }],
  ]

  test.each(kinds)('%s %s, %d: has request id, CORS and security headers', async (method, path, status, headers) => {
    const got = await call(method, path, { Origin: 'http://allowed.example', 'X-Request-ID': 'trace-me', ...headers })
    expect(got.status).toBe(status)
    expect(got.headers).toMatchObject({
      'x-request-id': 'trace-me',
      'access-control-allow-origin': 'http://allowed.example',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET,POST,PUT,DELETE,OPTIONS',
      'access-control-expose-headers': 'Content-Type,X-Limit,X-Total-Count,X-Request-ID',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'x-xss-protection': '0',
      'referrer-policy': 'no-referrer',
    })
    expect(got.headers['x-powered-by']).toBeUndefined()
    expect(got.headers['etag']).toBeUndefined()
    expect('faultstring' in got.body && 'code' in got.body).toBe(status >= 400)
    expect(method === 'OPTIONS' ? got.text : '').toBe('')
  })

  test.each([undefined, '', 'a b', 'a\tb', 'ü', 'x'.repeat(129)])('makes a request id instead of %j', async (given) => {
    const got = await call(
      'GET',
      '/v1/things',
      given === undefined ? {} : { 'X-Request-ID': Buffer.from(given).toString('latin1') },
    )
    expect(got.headers['x-request-id']).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  })
})

describe('answers', () => {
  test.each([
    ['/v1/text', 200, 'text/plain; charset=UTF-8', 'plain ä'],
    ['/v1/bytes', 203, 'image/x', '\0\ufffd'],
    ['/v1/quoted', 200, 'application/json; charset=UTF-8', '"a string"'],
    ['/v1/null', 200, 'application/json; charset=UTF-8', 'null'],
    ['/v1/nothing', 200, undefined, ''],
  ])('%s', async (path, status, type, expected) => {
    const got = await call('GET', path)
    expect(got).toMatchObject({ status, text: expected })
    expect(got.headers['content-type']).toBe(type)
  })

  test('204 has neither body nor length', async () => {
    const got = await call('DELETE', '/v1/things/a')
    expect(got).toMatchObject({ status: 204, text: '' })
    expect(got.headers['content-length']).toBeUndefined()
  })

  test('a reply has its own headers, the route its status', async () => {
    const got = await call('POST', '/v1/things', {}, '{"name":"x"}')
    expect(got).toMatchObject({ status: 201, body: { body: { name: 'x' } } })
    expect(got.headers['x-more']).toBe('1')
  })

  test('pieces are read only as fast as the client takes them, and no further once it has gone', async () => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${http.urls.api}/v1/endless`, { agent: false }, resolve).once('error', reject)
    })
    response.pause()
    // Held back: as many turns of the event loop pass without another piece as would have given a hundred.
    let given = -1
    await waitFor('the writer to be held back', async () => {
      const isHeldBack = given === chunksGiven
      given = chunksGiven
      for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
      return isHeldBack && given > 0
    })
    response.destroy()
    await waitFor('the pieces to end', () => chunksClosed)
    expect(http.logged()).not.toContain('PREMATURE')
  })

  test('a text that breaks off is a broken answer, not a short one', async () => {
    const response = await fetch(`${http.urls.api}/v1/failing-text`)
    await expect(response.text()).rejects.toThrow('terminated')
    await waitFor('the log', () => http.logged().includes('the rest is unreadable'))
  })
})

describe('requests', () => {
  test('query parameters have their declared types, others do not exist', async () => {
    expect((await call('GET', '/v1/typed?limit=5&tags=a,b&other=1')).body).toEqual({ limit: 5, tags: ['a', 'b'] })
    const refused = await call('GET', '/v1/typed?limit=many')
    expect(refused.status).toBe(400)
    expect(refused.body['faultstring']).toBe('Parameter "limit" is not of type integer')
  })

  test.each([
    ['', "'name' is a required property"],
    ['{"name":1}', "1 is not of type 'string'"],
    ['{"name":"a","x":1}', "Additional properties are not allowed ('x' was unexpected)"],
    ['[]', 'Input body needs to be an object, got: array'],
  ])('the body %j is refused', async (body, message) => {
    const refused = await call('POST', '/v1/things', {}, body)
    expect(refused.status).toBe(400)
    expect(refused.body['faultstring']).toContain(message)
  })

  test.each([
    ['a value', JSON.stringify({ name: 'a', ['x'.repeat(198) + '😀😀']: 1 })],
    ['the text', '😀'],
  ])('a message that repeats %s is never cut inside a character', async (_what, body) => {
    const refused = await call('POST', '/v1/things', {}, body)
    expect(refused.status).toBe(400)
    const message = String(refused.body['faultstring'])
    expect(message).toContain('\ufffd')
    expect(message.isWellFormed()).toBe(true)
  })

  test('permission is looked at before the body is', async () => {
    const refused = await call('POST', '/v1/admin', {}, '{malformed')
    expect(refused).toMatchObject({ status: 403, body: { code: 'PERMISSION_DENIED' } })
  })

  test.each([
    ['no route', 'POST', '/v1/nothing-here', 404],
    ['a method that is none', 'PATCH', '/v1/things', 405],
    ['no permission', 'POST', '/v1/admin', 403],
    ['a route without a body', 'POST', '/v1/unread', 200],
    ['a GET', 'GET', '/v1/things', 200],
    ['a DELETE', 'DELETE', '/v1/things/a', 204],
    ['OPTIONS', 'OPTIONS', '/v1/things', 200],
    ['a body that is too large', 'POST', '/v1/things', 413],
  ])('the next one is understood after an unread body: %s', async (_what, method, path, status) => {
    const body = JSON.stringify({ name: `GET /v1/smuggled HTTP/1.1\r\n\r\n${'x'.repeat(60_000)}` })
    const first = await call(method, path, { 'Content-Length': Buffer.byteLength(body) }, body)
    expect(first.status).toBe(status)
    const next = await call('GET', '/v1/things/next')
    expect(next).toMatchObject({ status: 200, body: { name: 'one', params: { id: 'next' } } })
    expect(next.localPort).toBe(first.localPort)
  })

  test('a chunked body that nobody reads is dropped, too', async () => {
    const answers = await http.raw(
      'POST /v1/unread HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n' +
        `2710\r\n${'x'.repeat(10_000)}\r\n0\r\n\r\n` +
        'GET /v1/things/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    )
    expect(answers).toContain('{"done":true}')
    expect(answers).toContain('"id":"next"')
  })

  fullOnly(test)('one that is answered and goes on sending for ever is cut', async () => {
    const answered = await http.raw('POST /v1/unread HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n')
    expect(answered).toContain('{"done":true}')
  })
})

describe('errors', () => {
  test('an unexpected one is 500, without details to the client and with all of them in the log', async () => {
    for (const [path, detail] of [
      ['/v1/bug', 'secret details of /etc/svc'],
      ['/v1/async-bug', 'later details'],
    ] as const) {
      const got = await call('GET', path, { 'X-Request-ID': `id-of${path.replaceAll('/', '-')}` })
      expect(got.status).toBe(500)
      expect(got.body).toEqual({ faultstring: 'Internal Server Error', code: 'INTERNAL' })
      const lines = http.logged().split('\n')
      const line = lines.find((one) => one.includes(`id-of${path.replaceAll('/', '-')}`)) ?? ''
      expect(line).toContain('request.failed')
      expect(line).toContain(detail)
    }
  })

  test('409 names the object that exists', async () => {
    const got = await call('GET', '/v1/taken')
    expect(got.status).toBe(409)
    expect(got.body).toMatchObject({ 'conflict-id': '65f0a1b2c3d4e5f60718293a' })
    expect(got.body['faultstring']).toContain('a.b')
  })

  test('503 has its cause in the log only', async () => {
    const got = await call('GET', '/v1/full')
    expect(got.status).toBe(503)
    expect(got.text).not.toContain('SQLITE_FULL')
    expect(Number(got.headers['retry-after'])).toBeGreaterThan(0)
    expect(http.logged()).toContain('SQLITE_FULL')
  })

  test('a flood of refusals is ten lines', async () => {
    for (let i = 0; i < 30; i += 1) expect((await call('GET', '/v1/full')).status).toBe(503)
    expect(http.logged().match(/event=request\.refused/g)).toHaveLength(10)
  })

  test('only what waiting helps against asks to wait', async () => {
    expect((await call('GET', '/v1/bug')).headers).not.toHaveProperty('retry-after')
    expect((await call('GET', '/v1/taken')).headers).not.toHaveProperty('retry-after')
  })

  test('a client’s own mistake is not logged', async () => {
    const before = http.logged()
    await call('GET', '/v1/nothing-here')
    await call('POST', '/v1/things', {}, '{')
    expect(http.logged()).toBe(before)
  })
})

test('a request with an Idempotency-Key is carried out once, whoever lost its answer', async () => {
  const send = async (key: string, body: string): Promise<unknown[]> => {
    const got = await call(
      'POST',
      '/v1/counted',
      { 'Content-Type': 'application/json', ...(key === '' ? {} : { 'Idempotency-Key': key }) },
      body,
    )
    expect(got.status).toBe(201)
    return [got.body['number'], got.headers['idempotent-replayed']]
  }
  const [first = 0] = await send('a', '{"n": 1}')
  const after = (n: number): number => Number(first) + n
  expect(await send('a', '{"n": 1}')).toEqual([first, 'true'])
  expect(await send('b', '{"n": 1}')).toEqual([after(1), undefined])
  expect(await send('', '{"n": 1}')).toEqual([after(2), undefined])
  expect(await send('', '{"n": 1}')).toEqual([after(3), undefined])
})

describe('requests sent ahead of the answers', () => {
  test('are carried out one after another', async () => {
    const before = gate.begun
    const pipelined = http.raw(
      'GET /v1/gate HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(2) +
        'GET /v1/things/last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    )
    await waitFor('the first', () => gate.begun === before + 1)
    await call('GET', '/v1/things')
    expect(gate.begun).toBe(before + 1)
    gate.open()
    await waitFor('the second', () => gate.begun === before + 2)
    gate.open()
    const answers = await pipelined
    expect([...answers.matchAll(/"(gate \d+|last)"/g)].map((match) => match[1])).toEqual([
      `gate ${before + 1}`,
      `gate ${before + 2}`,
      'last',
    ])
  })

  test('are not begun once the client has gone', async () => {
    const before = gate.begun
    chunksClosed = false
    await http.raw(
      ['/v1/endless', '/v1/gate'].map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''),
      (received) => received.includes('xxx'),
    )
    await waitFor('the end of the first', () => chunksClosed)
    await call('GET', '/v1/things')
    expect(gate.begun).toBe(before)
  })

  test('are at most a hundred', async () => {
    const request = 'GET /v1/gate HTTP/1.1\r\nHost: localhost\r\n\r\n'
    expect(await http.raw(request.repeat(102))).toBe('')
    gate.open()
  })
})

describe('what cannot be read as a request', () => {
  const post = 'POST /v1/things HTTP/1.1\r\nHost: localhost\r\n'

  test.each([
    ['no HTTP', 'hello\r\n\r\n', 400, 'REQUEST_MALFORMED'],
    ['two lengths', `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400, 'REQUEST_MALFORMED'],
    ['a length and chunks', `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`, 400, 'REQUEST_MALFORMED'],
    ['a folded header', `${post}X-A: b\r\n c\r\n\r\n`, 400, 'REQUEST_MALFORMED'],
    ['a chunk that is none', `${post}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, 400, 'REQUEST_MALFORMED'],
    ['a long address', `GET /v1/things?id=${'a'.repeat(20_000)} HTTP/1.1\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ])('%s is answered with a reason, and the end', async (_what, sent, status, code) => {
    const answered = await http.raw(sent)
    const [head = '', body = ''] = answered.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(head).toMatch(/^X-Request-ID: [0-9a-f-]{36}$/m)
    expect(head).toContain(`Content-Length: ${body.length}`)
    expect(head).toContain('Connection: close')
    expect(JSON.parse(body)).toMatchObject({ code, faultstring: expect.stringMatching(/^The .{20}/) as unknown })
  })

  test('is not answered in the place of a request that is carried out', async () => {
    const before = gate.begun
    const request = 'GET /v1/gate HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const answered = http.raw(`${request}${request}hello\r\n\r\n`)
    await waitFor('the first', () => gate.begun === before + 1)
    gate.open()
    expect((await answered).match(/HTTP\/1\.1 \d+|gate \d+|REQUEST_MALFORMED/g)).toEqual([
      'HTTP/1.1 200',
      `gate ${before + 1}`,
      'HTTP/1.1 400',
      'REQUEST_MALFORMED',
    ])
    expect(gate.begun).toBe(before + 1)
  })

  test('does not mix with an answer that has begun', async () => {
    let isSent = false
    const socket = connect(Number(new URL(http.urls.api).port), '127.0.0.1')
    let received = ''
    socket.on('data', (part: Buffer) => {
      received += part.toString('latin1')
      if (isSent) return
      isSent = true
      socket.write('hello\r\n\r\n')
    })
    socket.write('GET /v1/endless HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'close')
    expect(received).toContain('200 OK')
    expect(received).not.toContain('REQUEST_MALFORMED')
  })
})

test.each([
  ['DELETE', '/v1/things/', 404],
  ['DELETE', '/v1/things', 405],
  ['PUT', '/v1/things/', 404],
  ['PUT', '/v1/things', 405],
  ['PATCH', '/v1/things/', 405],
  ['GET', '/v1/things/', 200],
])('%s %s, without an id: %d', async (method, path, status) => {
  const answer = await call(method, path)
  expect(answer.status).toBe(status)
  const advice = `The path ends without an id: use ${method} /v1/things/<id>.`
  expect(answer.body['faultstring'] === advice).toBe(status === 404)
})

describe('origins', () => {
  test('a foreign page cannot post, not even text, and a rebound name cannot read', async () => {
    const evil = { Origin: 'http://evil.example', 'Content-Type': 'text/plain' }
    expect(await call('POST', '/v1/things', evil, '{"name":"x"}')).toMatchObject({
      status: 403,
      body: { code: 'ORIGIN_REFUSED' },
    })
    expect((await call('GET', '/v1/things', { Host: 'evil.example:9101' })).status).toBe(403)
    expect((await call('GET', '/v1/things', evil)).headers['access-control-allow-origin']).toBe(
      'http://allowed.example',
    )
  })
})

describe('the host', () => {
  test('of an absolute address counts instead of the header', async () => {
    const rebound = await call('GET', 'http://evil.example/v1/things', { Host: '127.0.0.1' })
    expect(rebound).toMatchObject({ status: 403, body: { code: 'ORIGIN_REFUSED' } })
    expect((await call('GET', 'http://127.0.0.1/v1/things', { Host: 'evil.example' })).status).toBe(200)
    expect((await call('GET', 'http://127.0.0.1?x=/v1/things')).status).toBe(404)
    const query = await call('GET', 'http://127.0.0.1/v1/typed?limit=7')
    expect(query.body).toEqual({ limit: 7 })
  })

  test.each(['', 'Host: 127.0.0.1\r\nhost: evil.example\r\n'])('is given once, not as %j', async (hosts) => {
    const answered = await http.raw(`GET /v1/things HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`)
    expect(answered).toMatch(/^HTTP\/1\.1 400 /)
    expect(answered).toContain('"code":"HEADER_INVALID"')
  })

  test('need not be given in HTTP/1.0', async () => {
    expect(await http.raw('GET /v1/things HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

test('while the server starts, requests are refused', async () => {
  isStarting = true
  try {
    const refused = await call('GET', '/v1/things')
    expect(refused.status).toBe(503)
    expect(refused.body['code']).toBe('STARTING')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(await call('GET', '/healthz')).toMatchObject({ status: 200, body: { status: 'ok' } })
    expect(await call('GET', '/readyz')).toMatchObject({
      status: 503,
      body: { status: 'unavailable', reasons: ['starting'] },
    })
  } finally {
    isStarting = false
  }
})

test('while the server stops, requests are refused and connections end', async () => {
  isStopping = true
  try {
    const refused = await call('GET', '/v1/things')
    expect(refused.status).toBe(503)
    expect(refused.body['code']).toBe('SHUTTING_DOWN')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  } finally {
    isStopping = false
  }
})

describe('listeners', () => {
  const log = createLog({ level: 'CRITICAL', format: 'text' })
  const app = createHttpApp({
    routes,
    access,
    origins: createOriginPolicy({ allowedOrigins: [], knownHosts: undefined }),
    peers: createPeers([]),
    maxBodyBytes: 1000,
    events: { heartbeatSeconds: 60, maxQueuedBytes: 1000 },
    logs: { auth: log, api: log, stream: log },
    isStopping: () => false,
    ledger: createMemoryLedger(),
  })

  test('say which address cannot be had, and why', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const taken = listen(app, { surface: 'api', host: '127.0.0.1', port })
    await expect(taken).rejects.toThrow(ListenError)
    await expect(taken).rejects.toThrow(
      `api.port: cannot listen on 127.0.0.1:${port} (the port is in use): process ${process.pid} (`,
    )
    await expect(listen(app, { surface: 'auth', host: '192.0.2.1', port: 0 })).rejects.toThrow(
      'auth.port: cannot listen on 192.0.2.1:0 (this machine does not have that address)',
    )
    other.close()
  })

  test('name an address that can be called', async () => {
    for (const [host, pattern] of [
      ['0.0.0.0', /^http:\/\/127\.0\.0\.1:\d+$/],
      ['localhost', /^http:\/\/localhost:\d+$/],
    ] as const) {
      const listener = await listen(app, { surface: 'api', host, port: 0 })
      expect(listener.url).toMatch(pattern)
      expect((await fetch(`${listener.url}/v1/things`, { headers: { Connection: 'close' } })).status).toBe(200)
      await listener.close(1000)
    }
  })

  test('end requests under way when their grace is over', async () => {
    const listener = await listen(app, { surface: 'api', host: '127.0.0.1', port: 0 })
    const response = await fetch(`${listener.url}/v1/endless`)
    await listener.close(10)
    await expect(fetch(listener.url)).rejects.toThrow('fetch failed')
    await expect(response.text()).rejects.toThrow('terminated')
    await listener.close(0)
  })
})
