/** Contract 01: tokens, credentials on requests, the password file; 00, 0.4 (cookie) and 0.5 (reasons of a 401). */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import jwt from 'jsonwebtoken'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, waitForLog, type Answer, type TestApp } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { send, type ErrorAnswer, type RawAnswer } from './support.ts'

const HTPASSWD = '/usr/bin/htpasswd'
const noSlowDown = { 'auth.failures_per_user': '0', 'auth.failures_per_address': '0' }
const folder = makeFolder()

interface TokenAnswer {
  id: string
  user: string
  token: string
  expiry: string
}

interface UserAnswer {
  username: string
  authentication: { method: string | null; location: string | null; token_expire?: string }
  rbac: { enabled: boolean; roles: string[]; is_admin: boolean }
}

let server: TestApp
let password: string
let token: TokenAnswer

beforeAll(async () => {
  await ensureDebianPackage('apache2-utils', HTPASSWD)
  // Failures are many here; that they slow down is in 01-slow-down.
  const settings = { 'auth.enable': 'True', 'auth.token_ttl': '3600', ...noSlowDown }
  server = await createTestApp({ basePath: folder.path, settings })
  password = firstPassword(folder.path)
  token = (await login()).body
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

/** As the administrator unless the header says otherwise. */
function login<T = TokenAnswer>(body?: unknown, authorization = basicAuth('admin', password)): Promise<Answer<T>> {
  return call<T>(`${server.urls.auth}/tokens`, 'POST', body, { Authorization: authorization })
}

const withToken = (value: string): Record<string, string> => ({ 'X-Auth-Token': value })

/** `GET /user` with these headers and this query. */
const whoAmI = (headers: Record<string, string>, query = ''): Promise<Answer<UserAnswer & ErrorAnswer>> =>
  server.call<UserAnswer & ErrorAnswer>('GET', `/v1/user${query}`, undefined, headers)

const missing = 'Unauthorized - One of Token or API key required.'

/** The server looks at the system clock every ten seconds, and at a steady one in between. */
const CLOCKS_APART_MS = 1000

/** @param before milliseconds since the epoch, from before the request */
function expectLifetime(expiry: string, seconds: number, before: number): void {
  const made = Date.parse(expiry) - seconds * 1000
  expect(made).toBeGreaterThan(before - CLOCKS_APART_MS)
  expect(made).toBeLessThan(Date.now() + CLOCKS_APART_MS)
}

describe('01.2 token creation', () => {
  it('01.2 answers 201 with the token, and the address of the API in a header', async () => {
    const before = Date.now()
    const { status, headers, body } = await login()
    expect(status).toBe(201)
    expect(headers.get('x-api-url')).toBe(server.urls.api)
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      user: 'admin',
      token: expect.stringMatching(/^[!-~]{32,1024}$/),
      expiry: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      metadata: {},
      service: false,
    })
    expectLifetime(body.expiry, 3600, before)
    expect((await whoAmI(withToken(body.token))).body.username).toBe('admin')
  })

  it.each([
    ['auth', '/tokens'],
    ['auth', '/tokens/'],
    ['auth', '/v1/tokens'],
    ['auth', '/auth/v1/tokens'],
    ['auth', '/auth/tokens'],
    ['api', '/auth/v1/tokens'],
    ['api', '/auth/tokens'],
  ] as const)('01.2 the %s listener answers %s', async (surface, path) => {
    const { status } = await call(`${server.urls[surface]}${path}`, 'POST', undefined, {
      Authorization: basicAuth('admin', password),
    })
    expect(status).toBe(201)
  })

  it.each([
    ['no header', undefined],
    ['empty header', ''],
    ['another scheme', `Bearer ${Buffer.from('admin:x').toString('base64')}`],
    ['a scheme that contains Basic', 'XBasic '],
    ['only the scheme', 'Basic'],
    ['not base64', 'Basic ???'],
    ['no colon', `Basic ${Buffer.from('admin').toString('base64')}`],
    ['three words', `${basicAuth('admin', 'x')} y`],
    ['not UTF-8', `Basic ${Buffer.from([0x61, 0x3a, 0xff]).toString('base64')}`],
    ['wrong password', basicAuth('admin', 'wrong')],
    ['empty password', basicAuth('admin', '')],
    ['empty user', basicAuth('', 'wrong')],
    ['unknown user', basicAuth('mallory', 'wrong')],
    ['unknown user with a name of the runtime', basicAuth('__proto__', 'wrong')],
    ['very long password', basicAuth('admin', 'x'.repeat(8000))],
    ['very long user', basicAuth('x'.repeat(8000), 'x')],
    ['NUL', basicAuth('admin\0', 'x')],
    ['letter case of the user', 'Admin'],
  ])('01.2 refused: %s', async (name, authorization) => {
    const given =
      name === 'letter case of the user'
        ? basicAuth('Admin', password)
        : name === 'a scheme that contains Basic'
          ? `X${basicAuth('admin', password)}`
          : authorization
    const headers = given === undefined ? undefined : { Authorization: given }
    const { status, body } = await call<ErrorAnswer>(`${server.urls.auth}/tokens`, 'POST', undefined, headers)
    expect(status).toBe(401)
    expect(body.faultstring).toBe('Invalid or missing credentials')
  })

  it('01.2 the scheme counts in any letter case', async () => {
    expect((await login(undefined, basicAuth('admin', password).replace('Basic', 'bAsIc'))).status).toBe(201)
  })

  it('01.2 a password in the Authorization header opens nothing else', async () => {
    const { status, body } = await whoAmI({ Authorization: basicAuth('admin', password) })
    expect(status).toBe(401)
    expect(body.faultstring).toBe(missing)
  })

  it('01.2 a token does not make a token', async () => {
    const { status } = await call(`${server.urls.auth}/tokens`, 'POST', {}, withToken(token.token))
    expect(status).toBe(401)
  })

  it.each([
    [{ ttl: 0 }, '0 is less than the minimum of 1'],
    [{ ttl: -5 }, '-5 is less than the minimum of 1'],
    [{ ttl: '60' }, "'60' is not of type 'integer', 'null'"],
    [{ ttl: 1.5 }, "1.5 is not of type 'integer', 'null'"],
    [{ ttl: true }, "is not of type 'integer', 'null'"],
    [{ ttl: [60] }, "is not of type 'integer', 'null'"],
    [{ ttl: 3601 }, 'TTL specified 3601 is greater than max allowed 3600.'],
    [{ ttl: 1e15 }, 'is greater than max allowed 3600.'],
  ])('01.2 lifetime: %j is refused with 400', async (body, message) => {
    const answer = await login<ErrorAnswer>(body)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toContain(message)
  })

  it.each([
    [{ ttl: 3600 }, 3600],
    [{ ttl: 60 }, 60],
    [{ ttl: null }, 3600],
    [{ other: { any: 'thing' } }, 3600],
    [{}, 3600],
  ])('01.2 lifetime: %j gives %d seconds', async (body, seconds) => {
    const before = Date.now()
    const answer = await login(body)
    expect(answer.status).toBe(201)
    expectLifetime(answer.body.expiry, seconds, before)
  })

  it('01.2 the body of a stranger is not looked at', async () => {
    expect((await login({ ttl: -1 }, basicAuth('admin', 'wrong'))).status).toBe(401)
    expect((await login('not json', basicAuth('admin', 'wrong'))).status).toBe(401)
    expect((await login('not json')).status).toBe(400)
    expect((await login([])).status).toBe(400)
  })

  it.each([{ user: 'root' }, { impersonate_user: 'root', nickname_origin: 'chat' }])(
    '01.6 nobody gets a token of another user: %j',
    async (body) => {
      const answer = await login<ErrorAnswer>(body)
      expect(answer.status).toBe(400)
      expect(answer.body.faultstring).toContain('is not a service and cannot request impersonated tokens')
    },
  )

  fullOnly(it)('01.2 many logins at once are answered one way or the other', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async () => (await login(undefined, basicAuth('admin', 'wrong'))).status),
    )
    // Two are checked at a time and 64 wait; the rest is turned away before it costs anything.
    expect(new Set(statuses)).toEqual(new Set([401, 503]))
    expect(statuses.filter((status) => status === 401).length).toBeGreaterThanOrEqual(66)
    expect((await login()).status).toBe(201)
  })
})

describe('01.4 the password file', () => {
  const file = (): string => join(folder.path, 'htpasswd')
  const set = (user: string, secret: string, ...flags: string[]): void => {
    execFileSync(HTPASSWD, ['-i', ...flags, file(), user], { input: secret, stdio: 'pipe' })
  }

  it.each([
    ['-m', 'zoë', 'a:b::ü€'],
    ['-B', 'with blank', 'pass word'],
    ['-s', 'sha', 'x'],
    ['-2', 'sha256', ':starts:with:colon'],
    ['-5', 'sha512', '日本語'],
  ])('01.4 a user added with htpasswd %s logs in at once', async (flag, user, secret) => {
    set(user, secret, flag)
    const { status, body } = await login(undefined, basicAuth(user, secret))
    expect(status).toBe(201)
    expect(body.user).toBe(user)
    expect((await login(undefined, basicAuth(user, `${secret}x`))).status).toBe(401)
    expect((await whoAmI(withToken(body.token))).body.username).toBe(user)
  })

  it('01.4 a changed password counts at once, a removed user is refused', async () => {
    set('carol', 'one', '-m')
    expect((await login(undefined, basicAuth('carol', 'one'))).status).toBe(201)
    set('carol', 'two', '-m')
    expect((await login(undefined, basicAuth('carol', 'one'))).status).toBe(401)
    expect((await login(undefined, basicAuth('carol', 'two'))).status).toBe(201)
    execFileSync(HTPASSWD, ['-D', file(), 'carol'], { stdio: 'pipe' })
    expect((await login(undefined, basicAuth('carol', 'two'))).status).toBe(401)
  })

  it('01.4 a file that has gone is an internal error, not a refusal', async () => {
    const content = readFileSync(file())
    execFileSync('rm', [file()])
    const answer = await login<ErrorAnswer>()
    writeFileSync(file(), content, { mode: 0o600 })
    expect(answer.status).toBe(500)
    expect(answer.body.faultstring).toBe('Internal Server Error')
    expect((await login()).status).toBe(201)
  })

  it('01.4 the first start left an administrator of its own, readable by nobody else', async () => {
    for (const name of ['htpasswd', 'initial-admin-password', 'keys/token.key']) {
      expect({ name, mode: statSync(join(folder.path, name)).mode & 0o777 }).toEqual({ name, mode: 0o600 })
    }
    expect(statSync(join(folder.path, 'keys')).mode & 0o777).toBe(0o700)
    await waitForLog(server, join(folder.path, 'initial-admin-password'))
    expect(server.log()).not.toContain(password)
  })
})

describe('01.3, 01.4 settings that stop the start, each in one line', () => {
  it.each([
    [
      { 'auth.backend': 'keystone' },
      'auth.backend: no authentication backend is named "keystone"; available: flat_file',
    ],
    [
      { 'auth.backend_kwargs': '{"file_path": "/nonexistent/htpasswd"}' },
      'auth.backend_kwargs: file_path /nonexistent/htpasswd does not exist',
    ],
    [{ 'auth.backend_kwargs': '{"file": "htpasswd"}' }, 'auth.backend_kwargs: flat_file has no argument "file"'],
    [{ 'auth.backend_kwargs': '{"file_path": ' }, 'auth.backend_kwargs: must be a JSON object'],
    [{ 'auth.mode': 'digest' }, 'auth.mode: must be one of standalone, proxy'],
  ])('01.3 %j', async (settings, line) => {
    const base = makeFolder()
    try {
      const start = createTestApp({ basePath: base.path, settings: { 'auth.enable': 'True', ...settings } })
      const error = await start.then(
        (started) => started.stop().then(() => 'it started'),
        (failure: unknown) => String(failure),
      )
      expect(error.split('\n').filter((text) => text.includes(line))).toHaveLength(1)
      expect(error).not.toMatch(/\n\s+at /)
      expect(existsSync(join(base.path, 'htpasswd'))).toBe(false)
    } finally {
      base.remove()
    }
  })
})

describe('01.8 credentials on requests', () => {
  it('01.8 a token counts as header, query or cookie, and the answer says which', async () => {
    const bare = `${token.expiry.slice(0, 19)}Z`
    const describeToken = (location: string): UserAnswer => ({
      username: 'admin',
      authentication: { method: 'authentication token', location, token_expire: bare },
      rbac: { enabled: false, roles: [], is_admin: true },
    })
    expect((await whoAmI(withToken(token.token))).body).toEqual(describeToken('header'))
    expect((await whoAmI({ 'x-AUTH-token': token.token })).body).toEqual(describeToken('header'))
    expect((await whoAmI({}, `?x-auth-token=${token.token}`)).body).toEqual(describeToken('query'))
    expect((await whoAmI({ Cookie: `auth-token=${token.token}` })).body).toEqual(describeToken('cookie'))
  })

  it.each([
    ['nothing', () => whoAmI({}), missing],
    ['empty headers', () => whoAmI({ 'X-Auth-Token': '', 'Svc-Api-Key': ' ' }), missing],
    ['empty query', () => whoAmI({}, '?x-auth-token=&svc-api-key='), missing],
    ['upper case in the query', () => whoAmI({}, `?X-Auth-Token=${token.token}`), missing],
    ['empty cookie', () => whoAmI({ Cookie: 'auth-token=' }), missing],
    ['a wrong token', () => whoAmI(withToken('0123456789abcdef0123456789abcdef')), 'Unauthorized - Invalid token.'],
    ['the id of a token', () => whoAmI(withToken(token.id)), 'Unauthorized - Invalid token.'],
    ['a wrong cookie', () => whoAmI({ Cookie: 'auth-token=nonsense' }), 'Unauthorized - Invalid token.'],
    [
      'a wrong header before a good query',
      () => whoAmI(withToken('x'), `?x-auth-token=${token.token}`),
      'Unauthorized - Invalid token.',
    ],
    [
      'a wrong header before a good cookie',
      () => whoAmI({ ...withToken('x'), Cookie: `auth-token=${token.token}` }),
      'Unauthorized - Invalid token.',
    ],
  ])('00.5 401: %s', async (_name, request, message) => {
    const { status, body } = await request()
    expect(status).toBe(401)
    expect(body.faultstring).toBe(message)
  })

  it('01.8 a good header before a wrong query or cookie', async () => {
    const answer = await whoAmI({ ...withToken(token.token), Cookie: 'auth-token=nonsense' }, '?x-auth-token=nonsense')
    expect(answer.body.authentication.location).toBe('header')
  })

  it.each([
    ['two headers', { 'Svc-Api-Key': 'k' }, '', true],
    ['token as header, key in the query', {}, '?svc-api-key=k', true],
    ['token in the query, key as header', { 'Svc-Api-Key': 'k' }, '?x-auth-token=TOKEN', false],
    ['both in the query', {}, '?svc-api-key=k&x-auth-token=TOKEN', false],
  ])('01.8 two kinds of credentials: %s', async (_name, headers: Record<string, string>, query, hasHeader) => {
    const all = { ...headers, ...(hasHeader ? withToken(token.token) : {}) }
    const { status, body } = await whoAmI(all, query.replace('TOKEN', token.token))
    expect(status).toBe(401)
    expect(body.faultstring).toBe('Unauthorized - Only one of Token or API key expected.')
  })

  it('00.5 an unknown API key is named by its hash alone, also beside a good cookie', async () => {
    const key = 'kéy+that/nobody=has'
    const digest = createHash('sha512').update(`saltnpeper${key}`).digest('hex')
    const answers = [
      await whoAmI({ 'Svc-Api-Key': encodeURIComponent(key) }),
      await whoAmI({}, `?svc-api-key=${encodeURIComponent(key)}`),
      await whoAmI({ Cookie: `auth-token=${token.token}` }, `?svc-api-key=${encodeURIComponent(key)}`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401])
    for (const { body } of answers.slice(1)) {
      expect(body.faultstring).toBe(`Unauthorized - ApiKey with key_hash=${digest} not found.`)
    }
  })

  it('01.8 tokens of every length and alphabet are refused with 401', async () => {
    const values = [
      ...Array.from({ length: 40 }, (_, i) => token.token.slice(0, 3 * i + 1)).filter((value) => value !== token.token),
      `${token.token}x`,
      `${token.token}.`,
      `${token.token}, ${token.token}`,
      token.token.toLowerCase(),
      'x'.repeat(1024),
      'x'.repeat(1025),
      'x'.repeat(12_000),
      '.'.repeat(500),
      '../../etc/passwd',
      "' or 1=1 --",
      '{"alg":"none"}',
      'äöü',
    ]
    for (const value of values) {
      const { status } = await send(server.urls.api, { path: '/v1/user', headers: { 'X-Auth-Token': value } })
      expect({ value, status }).toEqual({ value, status: 401 })
    }
  })

  it('01.8 a token signed with nothing, or with another key, is refused', async () => {
    const [header = '', payload = ''] = token.token.split('.')
    const none = Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')
    const key = readFileSync(join(folder.path, 'keys', 'token.key'), 'utf8').trim()
    const forgeries = [
      `${none}.${payload}.`,
      `${header}.${payload}.`,
      jwt.sign({ jti: token.id }, 'secret'),
      jwt.sign({ jti: token.id }, 'x'.repeat(48)),
      // The text of the key file is not the key.
      jwt.sign({ jti: token.id }, key),
      jwt.sign({ jti: token.id }, Buffer.from(key, 'base64url'), { algorithm: 'HS512' }),
      jwt.sign({ jti: 'ffffffffffffffffffffffff' }, Buffer.from(key, 'base64url')),
    ]
    for (const forgery of forgeries) {
      const { status, body } = await whoAmI(withToken(forgery))
      expect({ forgery, status, text: body.faultstring }).toEqual({
        forgery,
        status: 401,
        text: 'Unauthorized - Invalid token.',
      })
    }
    expect((await whoAmI(withToken(jwt.sign({ jti: token.id }, Buffer.from(key, 'base64url'))))).status).toBe(200)
  })
})

describe('00.4 the cookie', () => {
  const secondsLeft = (): number => (Date.parse(token.expiry) - Date.now()) / 1000

  it('00.4 follows a token in the header or the query', async () => {
    for (const [headers, query] of [[withToken(token.token)], [{}, `?x-auth-token=${token.token}`]] as const) {
      const before = secondsLeft()
      const answer = await whoAmI(headers, query)
      const [cookie, ...others] = answer.headers.getSetCookie()
      expect(others).toEqual([])
      const [, age] = /^auth-token=[^;]+; HttpOnly; Max-Age=(\d+); Path=\/; SameSite=Lax$/.exec(cookie ?? '') ?? []
      const apart = CLOCKS_APART_MS / 1000
      expect(Number(age)).toBeLessThan(before + apart)
      expect(Number(age)).toBeGreaterThan(Math.floor(secondsLeft()) - apart)
      expect((await whoAmI({ Cookie: cookie?.split(';')[0] ?? '' })).body.authentication.location).toBe('cookie')
    }
  })

  it('00.4 does not follow a cookie, a refusal or a login', async () => {
    const answers = [
      await whoAmI({ Cookie: `auth-token=${token.token}` }),
      await whoAmI(withToken('x')),
      await whoAmI({}),
      await login(),
    ]
    for (const answer of answers) expect(answer.headers.getSetCookie()).toEqual([])
  })

  it('00.4 is for TLS only when the request came that way', async () => {
    const { headers } = await whoAmI({ ...withToken(token.token), 'X-Forwarded-Proto': 'https' })
    expect(headers.getSetCookie()[0]).toMatch(/; Secure$/)
  })

  const submit = (headers: Record<string, string>): Promise<RawAnswer> =>
    send(server.urls.api, {
      method: 'POST',
      path: '/v1/executions',
      headers: { 'Content-Type': 'text/plain', Cookie: `auth-token=${token.token}`, ...headers },
      body: '{"action": "core.noop"}',
    })

  it('00.4 changes nothing for a page of another origin', async () => {
    const own = server.urls.api
    const stranger = new URL(own)
    stranger.port = '1'
    for (const headers of [
      { Origin: 'http://evil.example' },
      { Origin: 'null' },
      { Origin: stranger.origin },
      { Origin: `${own}.evil.example` },
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
    ]) {
      expect({ headers, status: (await submit(headers)).status }).toEqual({ headers, status: 403 })
    }
    for (const headers of [{ Origin: own }, { Origin: own, 'Sec-Fetch-Site': 'same-origin' }, {}]) {
      expect({ headers, status: (await submit(headers)).status }).toEqual({ headers, status: 201 })
    }
  })
})

describe('01.5, 01.7 validation, expiry, revocation', () => {
  const validate = (value: unknown): Promise<Answer<{ valid: boolean } & ErrorAnswer>> =>
    call(`${server.urls.auth}/auth/v1/tokens/validate`, 'POST', { token: value }, withToken(token.token))
  const revoke = (value: string, by = token.token): Promise<Answer> =>
    call(`${server.urls.auth}/tokens/${value}`, 'DELETE', undefined, withToken(by))

  fullOnly(it)('01.7 a token is refused once its time has come', async () => {
    const { body } = await login({ ttl: 5 })
    expect((await whoAmI(withToken(body.token))).status).toBe(200)
    expect((await validate(body.token)).body).toEqual({ valid: true })
    const refused = await waitFor('the token to expire', async () => {
      const answer = await whoAmI(withToken(body.token))
      return answer.status === 200 ? undefined : answer
    })
    expect(refused.status).toBe(401)
    expect(refused.body.faultstring).toBe('Unauthorized - Token has expired.')
    expect(Date.now()).toBeGreaterThan(Date.parse(body.expiry) - CLOCKS_APART_MS)
    expect((await whoAmI({ Cookie: `auth-token=${body.token}` })).body.faultstring).toBe(refused.body.faultstring)
    expect((await validate(body.token)).body).toEqual({ valid: false })
    expect((await revoke(body.token)).status).toBe(204)
    expect((await whoAmI(withToken(body.token))).body.faultstring).toBe('Unauthorized - Invalid token.')
  })

  it('01.7 a revoked token is refused at once, others of the user are not', async () => {
    const { body } = await login()
    const { body: other } = await login()
    for (let i = 0; i < 3; i++) expect((await whoAmI(withToken(body.token))).status).toBe(200)
    const answer = await revoke(body.token, body.token)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect((await whoAmI(withToken(body.token))).body.faultstring).toBe('Unauthorized - Invalid token.')
    expect((await whoAmI(withToken(other.token))).status).toBe(200)
    expect((await revoke(body.token)).status).toBe(404)
    expect((await revoke(other.id)).status).toBe(204)
    expect((await whoAmI(withToken(other.token))).status).toBe(401)
  })

  it.each(['nonsense', 'ffffffffffffffffffffffff', 'a'.repeat(3000), '%00', '..%2f', 'a.b.c'])(
    '01.7 revoking %s finds nothing, and the answer does not repeat it',
    async (value) => {
      const { status, text } = await revoke(value)
      expect(status).toBe(404)
      expect(text).not.toContain(value)
    },
  )

  it('01.5 validation', async () => {
    expect((await validate(token.token)).body).toEqual({ valid: true })
    expect((await validate('nonsense')).body).toEqual({ valid: false })
    for (const value of [undefined, null, '']) {
      const { status, body } = await validate(value)
      expect(status).toBe(400)
      expect(body.faultstring).toContain('Token is not provided.')
    }
    expect((await validate(7)).status).toBe(400)
    const anonymous = await call<ErrorAnswer>(`${server.urls.auth}/tokens/validate`, 'POST', { token: token.token })
    expect([anonymous.status, anonymous.body.faultstring]).toEqual([401, missing])
  })

  fullOnly(it)('01.7 tokens outlive the server, on the key that was made at the first start', async () => {
    const base = makeFolder()
    const settings = { 'auth.enable': 'True' }
    try {
      const first = await createTestApp({ basePath: base.path, settings })
      const secret = firstPassword(base.path)
      const { body } = await call<TokenAnswer>(
        `${first.urls.auth}/tokens`,
        'POST',
        {},
        { Authorization: basicAuth('admin', secret) },
      )
      await first.stop()
      const second = await createTestApp({ basePath: base.path, settings })
      const answer = await second.call<UserAnswer>('GET', '/v1/user', undefined, withToken(body.token))
      expect(second.log()).not.toContain(secret)
      await second.stop()
      expect(answer.body.username).toBe('admin')
    } finally {
      base.remove()
    }
  })
})

describe('01.7 signing out', () => {
  const signOut = (headers: Record<string, string>, path = '/auth/v1/tokens/current'): Promise<RawAnswer> =>
    send(server.urls.api, { method: 'DELETE', path, headers })
  const cleared = /^auth-token=; HttpOnly; Max-Age=0; Path=\/; SameSite=Lax$/

  it('01.7 revokes the token of the request and no other, and makes the browser forget it', async () => {
    const { body: other } = await login()
    for (const carrier of ['header', 'query', 'cookie'] as const) {
      const { body } = await login()
      const inQuery = carrier === 'query' ? `?x-auth-token=${body.token}` : ''
      const headers: Record<string, string> =
        carrier === 'header'
          ? withToken(body.token)
          : carrier === 'cookie'
            ? { Cookie: `auth-token=${body.token}` }
            : {}
      const answer = await signOut(headers, `/auth/v1/tokens/current${inQuery}`)
      expect([carrier, answer.status, answer.text]).toEqual([carrier, 204, ''])
      expect(answer.headers['set-cookie']).toEqual([expect.stringMatching(cleared)])
      expect((await whoAmI(withToken(body.token))).body.faultstring).toBe('Unauthorized - Invalid token.')
      await waitForLog(server, `event=token.revoked, user=admin, remote_address=127.0.0.1`)
      await waitForLog(server, new RegExp(`AUDIT Token with id "${body.id}" of "admin" is revoked\\.`))
    }
    expect((await whoAmI(withToken(other.token))).status).toBe(200)
  })

  it('01.7 the header goes before the cookie, which is forgotten all the same', async () => {
    const [{ body: sent }, { body: kept }] = [await login(), await login()]
    const answer = await signOut({ ...withToken(sent.token), Cookie: `auth-token=${kept.token}` })
    expect([answer.status, answer.headers['set-cookie']]).toEqual([204, [expect.stringMatching(cleared)]])
    expect((await whoAmI(withToken(sent.token))).status).toBe(401)
    expect((await whoAmI(withToken(kept.token))).status).toBe(200)
  })

  it('01.7 a page of another origin cannot sign anybody out', async () => {
    const { body } = await login()
    const cookie = { Cookie: `auth-token=${body.token}` }
    for (const foreign of [{ Origin: 'http://evil.example' }, { 'Sec-Fetch-Site': 'same-site' }]) {
      const answer = await signOut({ ...cookie, ...foreign })
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
    }
    expect((await whoAmI(withToken(body.token))).status).toBe(200)
    expect((await signOut({ ...cookie, Origin: server.urls.api })).status).toBe(204)
  })

  it('01.7 over TLS the cookie goes as it came: marked for TLS alone', async () => {
    const { body } = await login()
    const { headers } = await signOut({ ...withToken(body.token), 'X-Forwarded-Proto': 'https' })
    expect(headers['set-cookie']).toEqual([expect.stringMatching(/^auth-token=; .*; Secure$/)])
  })

  it('01.7 without a token there is nothing to revoke', async () => {
    const { body: made } = await server.call<{ key: string }>('POST', '/v1/apikeys', {}, withToken(token.token))
    const byKey = await signOut({ 'Svc-Api-Key': made.key })
    expect([byKey.status, JSON.parse(byKey.text)]).toMatchObject([400, { code: 'TOKEN_NOT_USED' }])
    expect(byKey.headers['set-cookie']).toBeUndefined()
    expect((await signOut({})).status).toBe(401)
    expect((await signOut(withToken('nonsense'))).status).toBe(401)
  })
})

describe('00.4 the user whom a page expects', () => {
  const whoAmIAs = (expected: string, headers: Record<string, string>): Promise<Answer<UserAnswer & ErrorAnswer>> =>
    whoAmI({ ...headers, 'Svc-Expected-User': expected })

  it('00.4 a cookie of somebody else proves nothing then', async () => {
    const cookie = { Cookie: `auth-token=${token.token}` }
    expect((await whoAmIAs('admin', cookie)).body.username).toBe('admin')
    for (const expected of ['alice', 'Admin', 'admin, admin', 'admin%', '%']) {
      const { status, body } = await whoAmIAs(expected, cookie)
      expect([expected, status, body]).toMatchObject([expected, 401, { code: 'USER_CHANGED' }])
      expect(body.faultstring).not.toContain('admin')
    }
    // Whoever sends a token says itself who is calling.
    expect((await whoAmIAs('alice', withToken(token.token))).status).toBe(200)
  })

  it('00.4 names are percent-encoded, as headers have no other way', async () => {
    const name = 'Zoë Ω/%,"'
    const secret = 'a long enough password'
    await server.call('POST', '/v1/users', { name, password: secret }, withToken(token.token))
    const { body } = await login(undefined, basicAuth(name, secret))
    const cookie = { Cookie: `auth-token=${body.token}` }
    expect((await whoAmIAs(encodeURIComponent(name), cookie)).body.username).toBe(name)
    expect((await whoAmIAs('Zo', cookie)).status).toBe(401)
  })
})

describe('01.1 routes demand a credential', () => {
  interface OpenApi {
    paths: Record<string, Record<string, { security?: Record<string, unknown>[] }>>
  }

  it('00.5 the answer says what is wrong with the credential: none, wrong, expired', async () => {
    const { body: short } = await login({ ttl: 1 })
    await waitFor('the token to expire', async () => (await whoAmI(withToken(short.token))).status === 401)
    const credentials: [string, Record<string, string>][] = [
      [missing, {}],
      ['Unauthorized - Invalid token.', withToken('wrong')],
      ['Unauthorized - Token has expired.', withToken(short.token)],
    ]
    // 11-matrix sends each kind to every endpoint.
    for (const [method, path, isLogin] of [
      ['GET', '/v1/executions', false],
      ['POST', '/v1/executions', false],
      ['DELETE', '/v1/apikeys/ffffffffffffffffffffffff', false],
      ['GET', '/stream/v1/stream', false],
      ['POST', '/auth/v1/tokens', true],
    ] as const) {
      for (const [message, headers] of credentials) {
        const { status, body } = await server.call<ErrorAnswer>(
          method,
          path,
          method === 'GET' ? undefined : {},
          headers,
        )
        const text = isLogin ? 'Invalid or missing credentials' : message
        expect({ method, path, status, text: body.faultstring }).toEqual({ method, path, status: 401, text })
      }
    }
  })

  it('00.2 the public routes are known ones', async () => {
    const { body } = await server.call<OpenApi>('GET', '/v1/openapi.json', undefined, withToken(token.token))
    const isPublic = (operation: { security?: unknown[] }): boolean => operation.security?.length === 0
    const open = Object.entries(body.paths).filter(([, operations]) => Object.values(operations).some(isPublic))
    expect(open.map(([path]) => path).toSorted()).toEqual([
      '/auth/v1/sso',
      '/auth/v1/sso/callback',
      '/auth/v1/sso/request',
      '/healthz',
      '/readyz',
      '/v1/docs',
      '/v1/docs/{file}',
      '/v1/openapi.json',
      '/v1/ui/{file}',
    ])
  })

  const tricks = [
    '/tokens/..;/executions',
    '/tokens/../executions',
    '/tokens/%2e%2e/executions',
    '/tokens/..%2fexecutions',
    '/tokens/..%2Fvalidate',
    '/auth/v1/tokens/..;/..;/api/v1/executions',
    '/docs/..;/executions',
    '/docs/../executions',
    '/docs/..%2fexecutions',
    '/docs/%2e%2e/executions',
    '/v1/docs/..%2f..%2fv1%2fexecutions',
    '/openapi.json/../executions',
    '/openapi.json/executions',
    '/executions/openapi.json',
    '/executions/docs',
    '/executions/tokens',
    '/executions;/docs',
    '/executions;openapi.json',
    '/executions%3Bdocs',
    '/executions?/openapi.json',
    '/executions#/openapi.json',
    '/executions/',
    '/executions//',
    '//executions',
    '//docs/../executions',
    '/v1//executions',
    '//v1//executions',
    '/v1/./executions',
    '/./v1/executions',
    '/v1/%65xecutions',
    '/%76%31/executions',
    '/v1%2fexecutions',
    '/v1/executions%00',
    '/v1/executions%00/docs',
    '/v1/executions%20',
    '/v1/executions%2f',
    '/V1/executions',
    '/v1/EXECUTIONS',
    '/api/api/executions',
    '/api/v1/v1/executions',
    '/auth/v1/executions',
    '/auth/api/v1/executions',
    '/stream/../api/v1/executions',
    '/stream/v1/../../v1/executions',
    '/v1/executions?x-auth-token',
    '/v1/executions?permission=public',
    '/v1/executions/last',
    '/v1/executions/last/output',
    '/v1/executions/views/filters',
    '/v1/actionexecutions',
    '/v1/actions?auth.enable=False',
    '/v1/user',
    '/v1/',
    '*',
    '/ui',
    '/ui/',
    '/ui/../executions',
    '/ui/..%2fexecutions',
    '/ui/..;/executions',
    '/index.html/../executions',
    'http://localhost/v1/executions',
    'http://evil.example/v1/executions',
    '//evil.example/v1/executions',
  ]

  it.each(variants(['GET', 'POST', 'DELETE', 'PUT', 'HEAD'], 2))(
    'CVE-2026-53576 no way of writing a path gets around it: %s',
    async (method) => {
      for (const surface of ['api', 'auth', 'stream'] as const) {
        for (const path of tricks) {
          const { status, text } = await send(server.urls[surface], {
            method,
            path,
            headers: method === 'GET' || method === 'HEAD' ? {} : { 'Content-Type': 'application/json' },
            ...(method === 'GET' || method === 'HEAD' ? {} : { body: '{"action": "core.noop"}' }),
          })
          expect({ surface, path, status: [400, 401, 404, 405].includes(status) ? 'refused' : status, text }).toEqual({
            surface,
            path,
            status: 'refused',
            text,
          })
        }
      }
    },
  )

  it.each([
    'X-HTTP-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Forwarded-User',
    'Remote-User',
    'X-Remote-User',
  ])('01.3 the header %s is no credential in standalone mode', async (name) => {
    for (const value of ['admin', 'GET', '/v1/docs']) {
      const { status } = await whoAmI({ [name]: value })
      expect(status).toBe(401)
      const created = await call(`${server.urls.auth}/tokens`, 'POST', {}, { [name]: value })
      expect(created.status).toBe(401)
    }
  })

  it('01.1 nothing was created without a credential', async () => {
    const { body: before } = await server.call<{ id: string }[]>(
      'GET',
      '/v1/executions?limit=-1',
      undefined,
      withToken(token.token),
    )
    const answer = await server.call('POST', '/v1/executions', { action: 'core.noop' })
    expect(answer.status).toBe(401)
    const { body: after } = await server.call<{ id: string }[]>(
      'GET',
      '/v1/executions?limit=-1',
      undefined,
      withToken(token.token),
    )
    expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
  })

  it('01.1 an execution is its caller’s', async () => {
    const { status, body } = await server.call<{ context: { user: string } }>(
      'POST',
      '/v1/executions',
      { action: 'core.noop' },
      withToken(token.token),
    )
    expect(status).toBe(201)
    expect(body.context.user).toBe('admin')
  })

  it('01.1 OPTIONS needs none', async () => {
    for (const surface of ['api', 'auth', 'stream'] as const) {
      expect((await send(server.urls[surface], { method: 'OPTIONS', path: '/v1/executions' })).status).toBe(200)
    }
  })
})

describe('01.1 while authentication is off', () => {
  let open: TestApp
  beforeAll(async () => {
    open = await createTestApp()
  })
  afterAll(async () => {
    await open.stop()
  })

  it('01.10 the caller is the system user, whatever credentials are sent', async () => {
    for (const headers of [{}, withToken('nonsense'), { ...withToken('x'), 'Svc-Api-Key': 'y' }]) {
      const { status, body, headers: answered } = await open.call<UserAnswer>('GET', '/v1/user', undefined, headers)
      expect(status).toBe(200)
      expect(body).toEqual({
        username: 'svc',
        authentication: { method: null, location: null },
        rbac: { enabled: false, roles: [], is_admin: true },
      })
      expect(answered.getSetCookie()).toEqual([])
    }
  })

  it('01.2 there are no tokens to be had, and the answer says why', async () => {
    const answer = await call<ErrorAnswer>(
      `${open.urls.auth}/tokens`,
      'POST',
      {},
      { Authorization: basicAuth('a', 'b') },
    )
    expect(answer.status).toBe(404)
    expect(answer.body.faultstring).toContain('auth.enable')
    expect(readdirSync(open.basePath)).not.toContain('htpasswd')
    expect(readdirSync(open.basePath)).not.toContain('keys')
  })
})

describe('10.3 audit', () => {
  it('10.3 logins, refusals and revocations are told, secrets are not', async () => {
    const wrong = 'a-wrong-password-nobody-has'
    await login(undefined, basicAuth('eve', wrong))
    const { body } = await login()
    await call(`${server.urls.auth}/tokens/${body.token}`, 'DELETE', undefined, withToken(token.token))
    await whoAmI({ 'Svc-Api-Key': 'canary-key' }, '?ignored=1')
    await whoAmI({}, '?x-auth-token=canary-token')
    const lines = await waitFor('the lines', () => {
      const found = server.log().split('\n')
      return found.some((line) => line.includes('event=token.revoked') && line.includes(body.id)) ? found : undefined
    })
    const audited = (event: string, ...texts: string[]): boolean =>
      lines.some(
        (line) =>
          line.includes(' AUDIT ') && line.includes(`event=${event}`) && texts.every((text) => line.includes(text)),
      )
    expect(audited('user.registered', 'Registered new user', 'admin', '127.0.0.1')).toBe(true)
    expect(audited('token.issued', 'Access granted to', body.id, body.expiry)).toBe(true)
    expect(audited('login.refused', 'Invalid credentials provided', 'user=eve')).toBe(true)
    expect(audited('login.refused', 'Authorization header not provided')).toBe(true)
    expect(audited('login.refused', 'Unsupported authorization type: Bearer')).toBe(true)
    expect(audited('login.refused', 'Access denied to anonymous user')).toBe(true)
    expect(audited('token.expired', 'has expired')).toBe(true)
    expect(audited('token.revoked', body.id)).toBe(true)

    for (const secret of [wrong, token.token, body.token, 'canary-key', 'canary-token']) {
      expect(server.log()).not.toContain(secret)
    }
  })

  it('01.7 no file holds a token or the password of a login', async () => {
    const { body } = await login(undefined, basicAuth('admin', password))
    expect((await whoAmI(withToken(body.token))).status).toBe(200)
    const files = readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const holding = (text: string): string[] =>
      files
        .filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(text))
        .map(({ name }) => name)
    expect(holding(body.id).length).toBeGreaterThan(0)
    for (const part of [body.token, body.token.split('.')[2] ?? '', token.token]) expect(holding(part)).toEqual([])
    expect(holding(password)).toEqual(['initial-admin-password'])
  })
})
