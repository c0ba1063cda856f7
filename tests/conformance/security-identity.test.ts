/** What happened to others (the public reports named in each title), as far as it is about who is calling, and does not happen here. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { withServer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, countExecutions, send, type ErrorAnswer, type RawAnswer, type RawRequest } from './support.ts'
import { fullOnly, rounds, tier } from '../helpers/tiers.ts'

const surfaces = ['auth', 'api', 'stream'] as const

/** Failures are many here; that they slow down is in 01-slow-down. */
const withAuth = { 'auth.enable': 'True', 'auth.failures_per_user': '0', 'auth.failures_per_address': '0' }

async function tokenOf(server: TestApp, ca?: Buffer): Promise<string> {
  const { status, text } = await send(server.urls.auth, {
    method: 'POST',
    path: '/tokens',
    headers: { Authorization: basicAuth('admin', firstPassword(server.basePath)) },
    ...(ca === undefined ? {} : { ca }),
  })
  expect(status).toBe(201)
  return (JSON.parse(text) as { token: string }).token // the answer to a login
}

let server: TestApp
let token: string
const GOOD = 'https://good.example'

beforeAll(async () => {
  server = await createTestApp({ settings: { ...withAuth, 'api.allow_origin': `${GOOD}, http://127.0.0.1:3000` } })
  token = await tokenOf(server)
})

afterAll(() => server.stop())

const bearing = (more: Record<string, string> = {}): Record<string, string> => ({ 'X-Auth-Token': token, ...more })

/** Still there, and quick enough to answer at all. */
async function expectAlive(): Promise<void> {
  const { status } = await send(server.urls.api, { path: '/v1/user', headers: bearing() })
  expect(status).toBe(200)
}

describe('st2#6390, CVE-2019-9580: CORS that reflects origins or takes null', () => {
  const foreign = [
    'null',
    'NULL',
    'https://evil.example',
    'http://good.example',
    'https://good.example:8443',
    'https://good.example.evil.example',
    'https://evilgood.example',
    'https://sub.good.example',
    'https://good.example.',
    'https://good.example/',
    'HTTPS://GOOD.EXAMPLE',
    'https://good.example@evil.example',
    'https://user@good.example',
    'https://good.example, https://evil.example',
    'http://127.0.0.1:3000.evil',
    'http://evil127.0.0.1:3000',
    'http://127.0.0.1:30000',
    'http://127.0.0.1',
    'http://127.0.0.1.:3000',
    'http://localhost:3000',
    'file://',
    '*',
    '',
  ]
  /** Requests whose answers come from every part of the server. */
  const requests: [string, (typeof surfaces)[number], RawRequest][] = [
    ['an answer', 'api', { path: '/v1/user', headers: { 'X-Auth-Token': 'TOKEN' } }],
    ['a 401', 'api', { path: '/v1/user' }],
    ['a 404', 'api', { path: '/nowhere', headers: { 'X-Auth-Token': 'TOKEN' } }],
    ['a 405', 'api', { path: '/v1/user', method: 'DELETE', headers: { 'X-Auth-Token': 'TOKEN' } }],
    ['a 400', 'api', { path: '/v1/%zz' }],
    ['a public page', 'api', { path: '/v1/openapi.json' }],
    ['a preflight', 'api', { path: '/v1/executions', method: 'OPTIONS' }],
    ['a preflight of a login', 'auth', { path: '/tokens', method: 'OPTIONS' }],
    ['a login', 'auth', { path: '/tokens', method: 'POST' }],
    ['a stream that is refused', 'stream', { path: '/v1/stream' }],
  ]

  function originsOf({ headers }: Pick<RawAnswer, 'headers'>): unknown {
    return {
      allowed: headers['access-control-allow-origin'],
      withCredentials: headers['access-control-allow-credentials'],
      vary: headers['vary'],
    }
  }

  const of = (allowed: string): unknown => ({ allowed, withCredentials: 'true', vary: 'Origin' })

  const withOrigin = (request: RawRequest, origin: string): RawRequest => ({
    ...request,
    headers: {
      ...(request.headers?.['X-Auth-Token'] === undefined ? {} : { 'X-Auth-Token': token }),
      Origin: origin,
      'Access-Control-Request-Method': 'POST',
    },
  })

  it.each(requests)('%s names no foreign origin, and an allowed one', async (_name, surface, request) => {
    for (const origin of foreign) {
      const answer = await send(server.urls[surface], withOrigin(request, origin))
      expect({ origin, ...(originsOf(answer) as object) }).toEqual({ origin, ...(of(GOOD) as object) })
    }
    for (const origin of [GOOD, 'http://127.0.0.1:3000']) {
      expect(originsOf(await send(server.urls[surface], withOrigin(request, origin)))).toEqual(of(origin))
    }
  })

  it('a stream neither', async () => {
    for (const [origin, allowed] of [
      ['https://evil.example', GOOD],
      ['null', GOOD],
      ['http://127.0.0.1:3000', 'http://127.0.0.1:3000'],
    ] as const) {
      const events = await openEvents(`${server.urls.stream}/v1/stream`, bearing({ Origin: origin }))
      expect(events.status).toBe(200)
      expect(originsOf(events)).toEqual(of(allowed))
      events.close()
    }
  })

  it('a foreign page changes nothing, whatever it carries', async () => {
    const before = countExecutions(server)
    for (const origin of foreign) {
      for (const headers of [bearing(), { Cookie: `auth-token=${token}` }, {}]) {
        const { status, text } = await send(server.urls.api, {
          method: 'POST',
          path: '/v1/executions',
          headers: { ...headers, Origin: origin, 'Content-Type': 'application/json' },
          body: '{"action": "core.noop"}',
        })
        const { code } = JSON.parse(text) as ErrorAnswer
        expect({ origin, status, code }).toEqual({ origin, status: 403, code: 'ORIGIN_REFUSED' })
      }
    }
    expect(countExecutions(server)).toBe(before)
  })

  it('* lets everybody read what needs no credentials, and nobody use those of the browser', async () => {
    await withApp({ settings: { ...withAuth, 'api.allow_origin': `*, ${GOOD}` } }, async (open) => {
      const cookie = `auth-token=${await tokenOf(open)}`
      for (const origin of foreign.filter((name) => name !== '')) {
        const answer = await send(open.urls.api, { path: '/v1/user', headers: { Origin: origin, Cookie: cookie } })
        expect(originsOf(answer)).toEqual({ allowed: '*', withCredentials: undefined, vary: 'Origin' })
        const { status } = await send(open.urls.api, {
          method: 'POST',
          path: '/v1/executions',
          headers: { Origin: origin, Cookie: cookie, 'Content-Type': 'application/json' },
          body: '{"action": "core.noop"}',
        })
        expect({ origin, status }).toEqual({ origin, status: 403 })
      }
      const named = await send(open.urls.api, { path: '/v1/user', headers: { Origin: GOOD, Cookie: cookie } })
      expect(originsOf(named)).toEqual(of(GOOD))
      expect(countExecutions(open)).toBe(0)
    })
  })

  fullOnly(it)('over TLS neither, and the page of the same name without TLS is a foreign one', async () => {
    const folder = makeFolder()
    try {
      const authority = await makeAuthority(folder.path, 'origins')
      const { certFile, keyFile } = authority.issue('server', 'IP:127.0.0.1')
      const ca = readFileSync(authority.caFile)
      const tls = surfaces.flatMap((section) => [
        [`${section}.use_ssl`, 'True'],
        [`${section}.cert`, certFile],
        [`${section}.key`, keyFile],
      ])
      const settings = { ...withAuth, 'api.allow_origin': GOOD, ...(Object.fromEntries(tls) as Record<string, string>) }
      await withApp({ ca, settings }, async (secure) => {
        const cookie = `auth-token=${await tokenOf(secure, ca)}`
        const create = (origin: string): Promise<RawAnswer> =>
          send(secure.urls.api, {
            method: 'POST',
            path: '/v1/executions',
            headers: { Origin: origin, Cookie: cookie, 'Content-Type': 'application/json' },
            body: '{"action": "core.noop"}',
            ca,
          })
        const plain = secure.urls.api.replace('https:', 'http:')
        for (const origin of ['null', 'https://evil.example', plain]) {
          const answer = await create(origin)
          expect({ origin, status: answer.status, ...(originsOf(answer) as object) }).toEqual({
            origin,
            status: 403,
            ...(of(GOOD) as object),
          })
        }
        expect((await create(secure.urls.api)).status).toBe(201)
        expect((await create(GOOD)).status).toBe(201)
      })
    } finally {
      folder.remove()
    }
  })
})

describe('CVE-2025-68949: an address list that is compared as text', () => {
  const refusedFrom = async (at: TestApp, from: string, headers: Record<string, string>): Promise<unknown> => {
    const user = `who-${Math.random()}`
    const { port } = new URL(at.urls.auth)
    await send(`http://127.0.0.1:${port}`, {
      method: 'POST',
      path: '/tokens',
      headers: { ...headers, Authorization: basicAuth(user, 'x') },
      from,
    })
    const record = await waitFor('the audit record', () =>
      auditRecords(at, 'login.refused').find((found) => found['_user'] === user),
    )
    return record['_remote_address']
  }

  it.each([
    ['127.0.0.1', '', '127.0.0.1'],
    ['127.0.0.1', '203.0.113.5', '203.0.113.5'],
    ['127.0.0.1', '203.0.113.5, 10.0.0.1', '203.0.113.5'],
    ['127.0.0.1', '203.0.113.5, ::ffff:10.0.0.1', '203.0.113.5'],
    ['127.0.0.1', '203.0.113.5, 110.0.0.10', '110.0.0.10'],
    ['127.0.0.1', '203.0.113.5, 10.0.0.11', '10.0.0.11'],
    ['127.0.0.1', '203.0.113.5, 10.0.0.1.evil.example', '127.0.0.1'],
    ['127.0.0.1', '10.0.0.1, 203.0.113.5', '203.0.113.5'],
    ['127.0.0.11', '203.0.113.5', '127.0.0.11'],
    ['127.0.0.2', '127.0.0.1', '127.0.0.2'],
    ['127.0.0.2', '10.0.0.1', '127.0.0.2'],
  ])('from %s with X-Forwarded-For "%s" it is %s', async (from, forwarded, address) => {
    const settings = { ...withAuth, 'auth.trusted_proxies': '127.0.0.1, 10.0.0.1' }
    lists ??= await createTestApp({ settings })
    expect(await refusedFrom(lists, from, forwarded === '' ? {} : { 'X-Forwarded-For': forwarded })).toBe(address)
  })

  let lists: TestApp | undefined
  afterAll(() => lists?.stop())

  it('seen through an IPv6 socket too', async () => {
    const settings = { ...withAuth, 'auth.host': '::ffff:127.0.0.1', 'auth.trusted_proxies': '127.0.0.1' }
    await withApp({ settings }, async (mapped) => {
      expect(await refusedFrom(mapped, '127.0.0.1', { 'X-Forwarded-For': '203.0.113.5' })).toBe('203.0.113.5')
      expect(await refusedFrom(mapped, '127.0.0.11', { 'X-Forwarded-For': '203.0.113.5' })).toBe('127.0.0.11')
    })
  })

  it('without a trusted proxy nobody is believed', async () => {
    await withApp({ settings: { ...withAuth, 'auth.trusted_proxies': '' } }, async (alone) => {
      expect(await refusedFrom(alone, '127.0.0.1', { 'X-Forwarded-For': '203.0.113.5' })).toBe('127.0.0.1')
    })
  })
})

interface Operation {
  security?: unknown[]
}

/** The endpoints that the server itself publishes: `[method, path with variables filled in, whether it is public]`. */
async function endpoints(): Promise<[string, string, boolean][]> {
  const { text } = await send(server.urls.api, { path: '/v1/openapi.json' })
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, Operation>> } // an OpenAPI document
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security }]): [string, string, boolean] => [
      method.toUpperCase(),
      path
        .replace('/docs/{file}', '/docs/start.js')
        .replace('/ui/{file}', '/ui/index.html')
        .replaceAll(/\{[^}]+\}/g, 'core.noop'),
      security?.length === 0,
    ]),
  )
}

describe('CVE-2026-53576: a public ending that switches authentication off', () => {
  it('no spelling of any path opens more than the public paths', async () => {
    const canary = `canary-${Math.random()}`
    const created = await send(server.urls.api, {
      method: 'POST',
      path: '/v1/executions',
      headers: bearing({ 'Content-Type': 'application/json' }),
      body: JSON.stringify({ action: 'core.local', parameters: { cmd: `echo ${canary}` } }),
    })
    expect(created.status).toBe(201)

    const all = await endpoints()
    const open = [...new Set(all.filter(([, , isPublic]) => isPublic).map(([, path]) => path))]
    const closed = [...new Set(all.filter(([, , isPublic]) => !isPublic).map(([, path]) => path))]
    expect(open.toSorted()).toEqual([
      '/auth/v1/sso',
      '/auth/v1/sso/callback',
      '/auth/v1/sso/request',
      '/healthz',
      '/readyz',
      '/v1/docs',
      '/v1/docs/start.js',
      '/v1/openapi.json',
      '/v1/ui/index.html',
    ])
    expect(closed).toEqual(expect.arrayContaining(['/v1/executions', '/v1/user', '/stream/v1/stream']))
    const openTexts = new Set<string>()
    for (const path of open) openTexts.add((await send(server.urls.api, { path })).text)

    const spellings = (path: string): string[] => [
      path,
      `${path}/`,
      `${path}//`,
      `/${path}`,
      `/.${path}`,
      `/x/..${path}`,
      `/%2e%2e${path}`,
      `${path}/.`,
      `${path}/..`,
      `${path}/%2e`,
      `${path};`,
      `${path};a=b`,
      `${path}%00`,
      `${path}%20`,
      `${path}%23`,
      `${path}%3f`,
      `${path}?`,
      `${path}#`,
      `${path}.json`,
      `${path}.`,
      path.toUpperCase(),
      path.replace('/v1', '/V1'),
      path.replace(/[a-z]$/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
      path.replace(/\/([^/]*)$/, '%2f$1'),
      path.replace(/\/([^/]*)$/, '\\$1'),
      path.replaceAll('/', '//'),
      path.replace('/v1', ''),
      path.replace('/v1', '/v1/v1'),
      path.replace('/v1', '/api/v1'),
    ]
    const closedEach = rounds({ daily: 24, full: 1 })
    const someClosed = closed.filter((_, index) => index % closedEach === 0)
    const paths = new Set([...open, ...someClosed].flatMap(spellings))
    for (const inner of ['/v1/executions', '/v1/user', '/v1/apikeys', '/stream/v1/stream']) {
      for (const outer of open) {
        const ending = outer.replace(/^\/v1/, '')
        for (const glue of ['', ';', '/..', '/%2e%2e', '%2f..', '%00', '?', '%3f', '%23', '//']) {
          paths.add(`${inner}${glue}${ending}`)
          paths.add(`${outer}${glue}${inner}`)
          paths.add(`${outer}/..${glue}${inner.slice(3)}`)
        }
      }
    }
    const opened: unknown[] = []
    const look = async (surface: (typeof surfaces)[number], method: string, path: string): Promise<void> => {
      const { status, text } = await send(server.urls[surface], { method, path, cutsStreams: true })
      const isPublic = status === 200 && (openTexts.has(text) || (method === 'HEAD' && text === ''))
      if (![400, 401, 404, 405].includes(status) && !isPublic) opened.push({ surface, method, path, status })
      if (text.includes(canary)) opened.push({ surface, method, path, text })
    }
    const queue = [...paths].flatMap((path, place) =>
      // The daily run tries every other path with one of the nine.
      surfaces
        .flatMap((surface) => ['GET', 'POST', 'DELETE'].map((method) => [surface, method, path] as const))
        .filter((_, index) => (index + place) % rounds({ daily: 18, full: 1 }) === 0),
    )
    expect(queue.length).toBeGreaterThan(rounds({ daily: 400, full: 5000 }))
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) await look(...next)
      }),
    )
    expect(opened).toEqual([])
  })
})

describe('CVE-2021-28667: text that is no text, and a log that never ends', () => {
  const bytes = (...codes: number[]): string => Buffer.from(codes).toString('latin1')
  /** As header bytes: invalid UTF-8, an overlong NUL, a lone surrogate, a cut character, everything beyond ASCII. */
  const headerTexts = [
    bytes(0xff, 0xfe, 0xfd),
    bytes(0xc0, 0x80),
    bytes(0xed, 0xa0, 0x80),
    bytes(0xe2, 0x82),
    bytes(...Array.from({ length: 128 }, (_, n) => n + 0x80)),
    `\t${bytes(0xff)}\t`,
    bytes(0xff).repeat(4000),
  ]
  const escaped = ['%00', '%ED%A0%80', '%ff%fe', '%', '%u0000', '%c0%80', '%F4%90%80%80', '%E2%80%A8', '%0d%0aX:%20y']
  const jsonTexts = ['\\ud800', '\\udc00x', 'a\\u0000b', '\\u2028\\u202e', '\\ud800'.repeat(5000), '\\uffff']

  it('in headers: token, key, cookie, Authorization, request id', async () => {
    for (const text of headerTexts) {
      for (const [name, value] of [
        ['X-Auth-Token', text],
        ['Svc-Api-Key', text],
        ['Cookie', `auth-token=${text}`],
        ['Cookie', text],
      ] as const) {
        const { status } = await send(server.urls.api, { path: '/v1/user', headers: { [name]: value } })
        expect({ name, text: text.slice(0, 20), status }).toEqual({ name, text: text.slice(0, 20), status: 401 })
      }
      for (const value of [text, `Basic ${text}`, `${text} abc`]) {
        const headers = { Authorization: value, 'X-Request-ID': text, 'X-Forwarded-For': text }
        const { status } = await send(server.urls.auth, { method: 'POST', path: '/tokens', headers })
        expect({ value: value.slice(0, 20), status }).toEqual({ value: value.slice(0, 20), status: 401 })
      }
    }
    await expectAlive()
  })

  it('in user and password of Basic', async () => {
    const parts = [
      Buffer.from([0xff]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.from([0]),
      Buffer.from('\u2028\u202e\ufeff'),
      Buffer.from('\u{10ffff}'.repeat(60)),
    ]
    for (const part of parts) {
      for (const whole of [
        Buffer.concat([part, Buffer.from(':x')]),
        Buffer.concat([Buffer.from('admin:'), part]),
        Buffer.concat([part, Buffer.from(':'), part]),
        part,
      ]) {
        const headers = { Authorization: `Basic ${whole.toString('base64')}` }
        const { status } = await send(server.urls.auth, { method: 'POST', path: '/tokens', headers })
        expect({ whole, status }).toEqual({ whole, status: 401 })
      }
    }
    await expectAlive()
  })

  it('in the query', async () => {
    for (const text of escaped) {
      for (const name of ['x-auth-token', 'svc-api-key']) {
        const { status } = await send(server.urls.api, { path: `/v1/user?${name}=${text}` })
        expect({ name, text, status }).toEqual({ name, text, status: 401 })
      }
      const { status } = await send(server.urls.api, { path: `/v1/user?${text}=${text}`, headers: bearing() })
      expect({ text, status }).toEqual({ text, status: 200 })
    }
    await expectAlive()
  })

  fullOnly(it)('in the body of a login and of a validation', async () => {
    const login = (body: string | Buffer): Promise<RawAnswer> =>
      send(server.urls.auth, {
        method: 'POST',
        path: '/tokens',
        headers: {
          Authorization: basicAuth('admin', firstPassword(server.basePath)),
          'Content-Type': 'application/json',
        },
        body,
      })
    const validate = (body: string | Buffer): Promise<RawAnswer> =>
      send(server.urls.auth, {
        method: 'POST',
        path: '/tokens/validate',
        headers: bearing({ 'Content-Type': 'application/json' }),
        body,
      })
    for (const text of jsonTexts) {
      for (const name of ['user', 'impersonate_user', 'nickname_origin', 'ttl', text]) {
        const { status } = await login(`{"${name}": "${text}"}`)
        expect([201, 400]).toContain(status)
      }
      const { status, text: answer } = await validate(`{"token": "${text}"}`)
      expect([status, answer]).toEqual([200, '{"valid":false}'])
    }
    for (const part of [0xff, 0x00, 0xc0, 0xed]) {
      const body = Buffer.concat([Buffer.from('{"token": "'), Buffer.from([part]), Buffer.from('"}')])
      expect((await validate(body)).status).toBeLessThan(500)
      expect((await login(body)).status).toBeLessThan(500)
    }
    await expectAlive()
  })

  it('leaves one printable line of log for each, and nothing failed', () => {
    const log = server.log()
    expect(log).not.toContain('event=request.failed')
    // oxlint-disable-next-line no-control-regex -- these are what must not be there
    expect(log).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202e]/)
    for (const line of log.split('\n')) expect(line.length).toBeLessThan(40_000)
  })
})

describe('GHSA-6qr9-g2xw-cw92: no authentication by default, and reachable', () => {
  /** Local addresses of the sockets that a process listens on, as the kernel writes them. */
  function listeningOn(pid: number): string[] {
    const inodes = new Set(
      readdirSync(`/proc/${pid}/fd`).map((fd) => {
        try {
          return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
        } catch {
          return undefined
        }
      }),
    )
    return ['tcp', 'tcp6', 'udp', 'udp6'].flatMap((protocol) => {
      const file = `/proc/${pid}/net/${protocol}`
      if (!existsSync(file)) return []
      const rows = readFileSync(file, 'utf8').trim().split('\n').slice(1)
      return rows
        .map((row) => row.trim().split(/\s+/))
        .filter((row) => (protocol.startsWith('udp') || row[3] === '0A') && inodes.has(row[9] ?? ''))
        .map((row) => row[1]?.split(':')[0] ?? '')
    })
  }

  fullOnly(it)('a first start is out of reach of other machines', async () => {
    await withServer({}, (fresh) => {
      const addresses = listeningOn(fresh.pid)
      expect(addresses).toHaveLength(3)
      // 127.0.0.1
      expect(new Set(addresses)).toEqual(new Set(['0100007F']))
      return Promise.resolve()
    })
  })

  it.each(['auth.host', 'api.host', 'stream.host'])(
    'without authentication, %s does not leave loopback',
    async (name) => {
      for (const host of ['0.0.0.0', '::']) {
        const outcome = await createTestApp({ settings: { [name]: host } }).then(
          (started) => started.stop().then(() => 'it started'),
          (failure: unknown) => String(failure),
        )
        expect(outcome).toContain(`${name}: ${host} is reachable from other machines while authentication is off`)
      }
    },
  )
})

describe('many "timingSafeEqual" reports: a throw for another length', () => {
  it('tokens, keys and passwords of every length are refused with 401', async () => {
    const lengths = [
      ...(tier === 'full' ? Array.from({ length: 70 }, (_, n) => n + 1) : [1, 16, 24, 31, 32, 33, 60, 64]),
      127,
      128,
      129,
      255,
      256,
      511,
      512,
      1023,
      1024,
      1025,
      7000,
    ]
    for (const length of lengths) {
      const text = 'a'.repeat(length)
      const found = [
        (await send(server.urls.api, { path: '/v1/user', headers: { 'X-Auth-Token': text } })).status,
        (await send(server.urls.api, { path: '/v1/user', headers: { 'Svc-Api-Key': text } })).status,
        (await send(server.urls.api, { path: `/v1/user?x-auth-token=${text}` })).status,
        (await send(server.urls.api, { path: '/v1/user', headers: { Cookie: `auth-token=${text}` } })).status,
      ]
      expect({ length, found }).toEqual({ length, found: [401, 401, 401, 401] })
    }
    for (const length of [1, 2, 24, 25, 26, 72, 73, 1024, 1025, 7000]) {
      const headers = { Authorization: basicAuth('admin', 'a'.repeat(length)) }
      const { status } = await send(server.urls.auth, { method: 'POST', path: '/tokens', headers })
      expect({ length, status }).toEqual({ length, status: 401 })
    }
    const nearly = [
      token.slice(0, -1),
      token.slice(1),
      `${token}a`,
      token.replace(/.$/, (end) => (end === 'A' ? 'B' : 'A')),
    ]
    for (const text of nearly) {
      expect((await send(server.urls.api, { path: '/v1/user', headers: { 'X-Auth-Token': text } })).status).toBe(401)
    }
  })
})

describe('without logins', () => {
  let open: TestApp
  beforeAll(async () => {
    open = await createTestApp()
  })
  afterAll(async () => {
    await open.stop()
  })
  const run = (headers: Record<string, string>, path = '/v1/executions', method = 'POST'): Promise<RawAnswer> =>
    send(open.urls.api, { method, path, headers, body: '{"action": "core.noop"}' })

  it('a page of another site or port starts nothing, with or without an origin', async () => {
    const before = countExecutions(open)
    const foreignHeaders: Record<string, string>[] = [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'cross-site', Origin: 'null' },
      { Origin: 'http://localhost:8080', 'Sec-Fetch-Site': 'same-site' },
      { Origin: 'http://127.0.0.1:3000' },
    ]
    for (const headers of foreignHeaders) {
      for (const [method, path] of [
        ['POST', '/v1/executions'],
        ['POST', '/v1/webhooks/x'],
        ['PUT', '/v1/rules/x'],
        ['DELETE', '/v1/rules/x'],
        ['PROPFIND', '/v1/executions'],
        ['POST', '/auth/tokens'],
      ] as const) {
        const { status, text } = await run(headers, path, method)
        expect({ headers, method, path, status, code: (JSON.parse(text) as ErrorAnswer).code }).toEqual({
          headers,
          method,
          path,
          status: 403,
          code: 'ORIGIN_REFUSED',
        })
      }
    }
    expect(countExecutions(open)).toBe(before)
  })

  it('its own page, a program, and a link from elsewhere work', async () => {
    const ownHeaders: Record<string, string>[] = [
      {},
      { Origin: open.urls.api, 'Sec-Fetch-Site': 'same-origin' },
      { 'Sec-Fetch-Site': 'none' },
    ]
    for (const headers of ownHeaders) {
      expect([headers, (await run(headers)).status]).toEqual([headers, 201])
    }
    const link = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }
    expect((await send(open.urls.api, { path: '/', headers: link })).status).toBe(200)
    const events = await openEvents(`${open.urls.api}/v1/stream`, { 'Sec-Fetch-Site': 'same-origin' })
    expect(events.status).toBe(200)
    events.close()
  })

  it.each<Record<string, string>>([
    { 'X-Forwarded-For': '203.0.113.9' },
    { 'X-Forwarded-For': '127.0.0.1, 203.0.113.9' },
    { 'X-Forwarded-For': '203.0.113.9, 127.0.0.1' },
    { 'X-Forwarded-For': 'unknown' },
    { Forwarded: 'for=192.0.2.43;proto=https' },
    { Forwarded: 'for=127.0.0.1, FOR="[2001:db8::1]:4711"' },
    { 'X-Real-IP': '10.0.0.7' },
  ])('who comes through a proxy is refused: %j', async (headers) => {
    for (const url of Object.values(open.urls)) {
      const { status, text } = await send(url, { path: '/v1/stream', headers })
      expect([status, text]).toEqual([403, expect.stringContaining('FORWARDED_REFUSED')])
      expect(text).toContain('auth.enable')
    }
    const before = countExecutions(open)
    expect((await run(headers)).status).toBe(403)
    expect(countExecutions(open)).toBe(before)
    expect((await send(open.urls.api, { path: '/healthz', headers })).status).toBe(200)
  })

  it.each<Record<string, string>>([
    { 'X-Forwarded-For': '127.0.0.1' },
    { 'X-Forwarded-For': '::1, ::ffff:127.0.0.1, 127.0.0.1:4711' },
    { Forwarded: 'for="[::1]:4711";host=localhost;proto=http' },
    { 'X-Real-IP': '::1' },
  ])('a proxy for programs of this machine is not: %j', async (headers) => {
    expect((await run(headers)).status).toBe(201)
  })

  it('an open network takes forwarded requests, under known names only', async () => {
    const settings = { 'system.allow_open_network': 'True', 'api.allowed_hosts': 'svc.example' }
    await withApp({ settings }, async (app) => {
      const statusOf = async (host: string): Promise<number> =>
        (await send(app.urls.api, { path: '/v1/user', headers: { Host: host, 'X-Forwarded-For': '203.0.113.9' } }))
          .status
      expect([await statusOf('svc.example'), await statusOf('evil.example')]).toEqual([200, 403])
    })
  })
})

describe('Cronicle: keys in the query that pages of other origins can use', () => {
  it('an answer to a key in the query is for nobody else to read, run or keep', async () => {
    const { text } = await send(server.urls.api, {
      method: 'POST',
      path: '/v1/apikeys',
      headers: bearing({ 'Content-Type': 'application/json' }),
      body: '{}',
    })
    const { key } = JSON.parse(text) as { key: string }
    const origin = 'https://evil.example'
    for (const credential of [`svc-api-key=${key}`, `x-auth-token=${token}`]) {
      const {
        status,
        headers,
        text: answer,
      } = await send(server.urls.api, {
        path: `/v1/user?${credential}&callback=steal&jsonp=steal`,
        headers: { Origin: origin },
      })
      expect(status).toBe(200)
      expect(headers['access-control-allow-origin']).toBe(GOOD)
      expect(headers['content-type']).toBe('application/json; charset=UTF-8')
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['referrer-policy']).toBe('no-referrer')
      expect(headers['cache-control']).toBe('no-store')
      expect(JSON.parse(answer)).toMatchObject({ username: 'admin' })
      const before = countExecutions(server)
      const refused = await send(server.urls.api, {
        method: 'POST',
        path: `/v1/executions?${credential}`,
        headers: { Origin: origin, 'Content-Type': 'text/plain' },
        body: '{"action": "core.noop"}',
      })
      expect(refused.status).toBe(403)
      expect(countExecutions(server)).toBe(before)
    }
  })

  it('a link with a token of somebody else does not make a browser go on as that user', async () => {
    const path = `/v1/user?x-auth-token=${bearing({})['X-Auth-Token']}`
    for (const [headers, isKept] of [
      [{}, true],
      [{ 'Sec-Fetch-Site': 'none' }, true],
      [{ 'Sec-Fetch-Site': 'same-origin' }, true],
      [{ 'Sec-Fetch-Site': 'cross-site', Origin: GOOD }, true],
      [{ 'Sec-Fetch-Site': 'cross-site' }, false],
      [{ 'Sec-Fetch-Site': 'same-site' }, false],
      [{ Origin: 'https://evil.example' }, false],
      [{ Origin: 'null' }, false],
    ] as const) {
      const answer = await send(server.urls.api, { path, headers })
      expect([headers, answer.status, answer.headers['set-cookie'] !== undefined]).toEqual([headers, 200, isKept])
    }
  })

  it('answers with a new credential are kept nowhere', async () => {
    const login = await send(server.urls.auth, {
      method: 'POST',
      path: '/tokens',
      headers: { Authorization: basicAuth('admin', firstPassword(server.basePath)) },
    })
    const key = await send(server.urls.api, {
      method: 'POST',
      path: '/v1/apikeys',
      headers: bearing({ 'Content-Type': 'application/json' }),
      body: '{}',
    })
    expect([login.status, key.status]).toEqual([201, 201])
    for (const { headers } of [login, key]) {
      expect([headers['cache-control'], headers['referrer-policy']]).toEqual(['no-store', 'no-referrer'])
    }
  })
})

describe('CVE-2021-21297: prototypes polluted by bodies and queries', () => {
  it('names of the runtime in a body or a query are names like any other', async () => {
    const headers = {
      Authorization: basicAuth('admin', firstPassword(server.basePath)),
      'Content-Type': 'application/json',
    }
    const login = (body: string): Promise<RawAnswer> =>
      send(server.urls.auth, { method: 'POST', path: '/tokens', headers, body })
    for (const body of [
      '{"__proto__": {"ttl": 1, "isAdmin": true, "polluted": "yes"}}',
      '{"metadata": {"\\u005f_proto__": {"polluted": "yes"}}}',
      '{"ttl": null, "__proto__": null}',
    ]) {
      const { status, text } = await login(body)
      expect({ body, status }).toEqual({ body, status: 400 })
      expect((JSON.parse(text) as ErrorAnswer).faultstring).toContain('"__proto__"')
    }
    for (const body of [
      '{"constructor": {"prototype": {"ttl": 1, "polluted": "yes"}}}',
      '{"ttl": null, "toString": "x", "hasOwnProperty": 1, "valueOf": [], "__defineGetter__": "x"}',
    ]) {
      const { status, text } = await login(body)
      expect({ body, status }).toEqual({ body, status: 201 })
      const { expiry } = JSON.parse(text) as { expiry: string }
      // Not the second that the prototype would have given it.
      expect(Date.parse(expiry) - Date.now()).toBeGreaterThan(3_600_000)
    }
    const queries = [
      `__proto__[x-auth-token]=${token}`,
      `__proto__.x-auth-token=${token}`,
      `constructor[prototype][x-auth-token]=${token}`,
      `x-auth-token[]=${token}`,
      `x-auth-token[value]=${token}`,
      '__proto__=x&constructor=y&toString=z',
    ]
    for (const query of queries) {
      expect((await send(server.urls.api, { path: `/v1/user?${query}` })).status).toBe(401)
      const { status, text } = await send(server.urls.api, { path: `/v1/user?${query}`, headers: bearing() })
      expect(status).toBe(200)
      const user = JSON.parse(text) as object
      expect(Object.keys(user).toSorted()).toEqual(['authentication', 'rbac', 'username'])
    }
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    for (const user of names) {
      const authorization = basicAuth(user, 'x')
      const login = await send(server.urls.auth, {
        method: 'POST',
        path: '/tokens',
        headers: { Authorization: authorization },
      })
      expect({ user, status: login.status }).toEqual({ user, status: 401 })
    }
    expect((await send(server.urls.api, { path: '/v1/user' })).status).toBe(401)
    expect((await send(server.urls.api, { path: '/v1/user', headers: bearing() })).text).not.toContain('polluted')
  })
})
