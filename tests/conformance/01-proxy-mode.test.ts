/** Contract 01, 1.3: a web server in front says who logs in. The tests are that web server, and its impostors. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, waitForLog, type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, send, type ErrorAnswer } from './support.ts'

/** The one peer that is believed. */
const PROXY = '127.0.0.1'
/** Another machine, as far as the server can tell. */
const STRANGER = '127.0.0.2'
/** A name that begins like the proxy's. */
const LOOKALIKE = '127.0.0.11'

interface Login {
  status: number
  body: ErrorAnswer & { user: string; token: string }
  retryAfter: string | undefined
}

interface LoginOptions {
  from?: string
  path?: string
  surface?: 'auth' | 'api'
}

type Headers = Record<string, string | string[]>

async function loginAt(server: TestApp, headers: Headers, options: LoginOptions = {}): Promise<Login> {
  const { from = PROXY, path = '/tokens', surface = 'auth' } = options
  const answer = await send(server.urls[surface], { method: 'POST', path, headers, from })
  const retryAfter = answer.headers['retry-after']
  return {
    status: answer.status,
    body: JSON.parse(answer.text) as Login['body'], // the assertions find out
    retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined,
  }
}

/** As a web server writes it: Node.js would refuse characters beyond Latin-1. */
const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const folder = makeFolder()
let server: TestApp

beforeAll(async () => {
  server = await createTestApp({
    basePath: folder.path,
    settings: {
      'auth.enable': 'True',
      'auth.mode': 'proxy',
      'auth.trusted_proxies': PROXY,
      // What a standalone server would stumble over is not even looked at.
      'auth.backend': 'no_such_backend',
      'auth.backend_kwargs': '{"file_path": "/nonexistent/htpasswd"}',
      'auth.failures_per_address': '200',
    },
  })
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

const login = (headers: Headers, options?: LoginOptions): Promise<Login> => loginAt(server, headers, options)

const whoAmI = (token: string): Promise<Answer<{ username: string }>> =>
  server.call<{ username: string }>('GET', '/v1/user', undefined, { 'X-Auth-Token': token })

const lastRecord = (event: string, fits: Record<string, unknown>): Promise<Record<string, unknown>> =>
  waitFor(`an audit record ${event} with ${JSON.stringify(fits)}`, () =>
    auditRecords(server, event).findLast((record) =>
      Object.entries(fits).every(([name, value]) => record[name] === value),
    ),
  )

describe('01.3 a trusted peer', () => {
  it.each(['Remote-User', 'X-Remote-User', 'X-Forwarded-User', 'x-FORWARDED-user'])(
    '01.3 names the user in %s',
    async (header) => {
      const { status, body } = await login({ [header]: 'alice' })
      expect([status, body.user]).toEqual([201, 'alice'])
      expect((await whoAmI(body.token)).body.username).toBe('alice')
    },
  )

  it.each([
    ['the first of all', { 'X-Forwarded-User': 'carol', 'X-Remote-User': 'bob', 'Remote-User': 'alice' }, 'alice'],
    ['the first of two', { 'X-Forwarded-User': 'carol', 'X-Remote-User': 'bob' }, 'bob'],
    ['beside a password that nobody checks', { 'Remote-User': 'dave', Authorization: basicAuth('eve', 'x') }, 'dave'],
  ])('01.3 several names: %s counts', async (_name, headers, user) => {
    const { status, body } = await login(headers)
    expect([status, body.user]).toEqual([201, user])
  })

  it.each(['EXAMPLE\\Alice', 'alice@example.com', 'Alice', 'zoë 日本', "o'neil; --", '__proto__', 'a'.repeat(256)])(
    '01.3 a name is taken as it is spelled: %s',
    async (user) => {
      const { status, body } = await login({ 'Remote-User': utf8(user) })
      expect([status, body.user]).toEqual([201, user])
      expect((await whoAmI(body.token)).body.username).toBe(user)
    },
  )

  it.each([
    ['auth', '/tokens'],
    ['auth', '/v1/tokens'],
    ['auth', '/auth/v1/tokens'],
    ['api', '/auth/v1/tokens'],
    ['api', '/auth/tokens'],
  ] as const)('01.3 the %s listener answers %s by the same rule', async (surface, path) => {
    const headers = { 'Remote-User': 'alice' }
    expect((await login(headers, { surface, path })).status).toBe(201)
    expect((await login(headers, { surface, path, from: STRANGER })).status).toBe(401)
    expect((await login({}, { surface, path })).status).toBe(401)
  })

  it('01.3 the first login makes the user known', async () => {
    expect((await login({ 'Remote-User': 'newcomer' })).status).toBe(201)
    expect((await login({ 'Remote-User': 'newcomer' })).status).toBe(201)
    await lastRecord('token.issued', { _user: 'newcomer' })
    expect(auditRecords(server, 'user.registered').filter((record) => record['_user'] === 'newcomer')).toHaveLength(1)
  })

  it.each([
    ['nothing', {}],
    ['only Basic', { Authorization: basicAuth('alice', 'secret') }],
    ['names in other headers', { Remote_User: 'alice', 'X-User': 'alice', From: 'alice' }],
    ['an empty name', { 'Remote-User': '' }],
    ['an empty name before a good one', { 'Remote-User': '', 'X-Forwarded-User': 'alice' }],
    ['blanks', { 'Remote-User': '   ' }],
    ['the same name twice', { 'Remote-User': ['alice', 'alice'] }],
    ['two names', { 'X-Forwarded-User': ['alice', 'root'] }],
    ['two names in one', { 'X-Forwarded-User': 'alice, root' }],
    ['Latin-1', { 'Remote-User': 'zo\u00eb' }],
    ['a tab', { 'Remote-User': 'al\tice' }],
    ['an encoded control character', { 'Remote-User': utf8('al\u0085ice') }],
    ['an encoded line separator', { 'Remote-User': utf8('al\u2028ice') }],
    ['257 characters', { 'Remote-User': 'a'.repeat(257) }],
  ] as [string, Headers][])('01.3 without a name: %s → 401, audited', async (_name, headers) => {
    const before = auditRecords(server, 'login.refused').length
    const { status, body } = await login(headers)
    expect([status, body.faultstring]).toEqual([401, 'Invalid or missing credentials'])
    await waitFor('the audit record', () => auditRecords(server, 'login.refused').length > before)
  })

  it('01.3 its word on the address is for the audit log: X-Forwarded-For before Remote-Addr', async () => {
    const addresses: [Headers, string][] = [
      [{ 'Remote-Addr': '198.51.100.1' }, '198.51.100.1'],
      [{ 'X-Remote-Addr': '198.51.100.2' }, '198.51.100.2'],
      [{ 'Remote-Addr': '198.51.100.3', 'X-Forwarded-For': '198.51.100.4' }, '198.51.100.4'],
      [{ 'Remote-Addr': 'somewhere' }, PROXY],
      [{}, PROXY],
    ]
    for (const [index, [headers, address]] of addresses.entries()) {
      expect((await login({ ...headers, 'Remote-User': `from${index}` })).status).toBe(201)
      const record = await lastRecord('token.issued', { _user: `from${index}` })
      expect(record['_remote_address']).toBe(address)
    }
  })

  it('01.3 a disabled user is refused, and so are tokens from before', async () => {
    const admin = (await login({ 'Remote-User': 'alice' })).body.token
    const before = await login({ 'Remote-User': 'mallory' })
    expect(before.status).toBe(201)
    const set = async (isDisabled: boolean): Promise<void> => {
      const answer = await server.call(
        'PUT',
        '/v1/users/mallory',
        { is_disabled: isDisabled },
        { 'X-Auth-Token': admin },
      )
      expect(answer.status).toBe(200)
    }
    await set(true)
    expect((await login({ 'Remote-User': 'mallory' })).status).toBe(401)
    expect((await whoAmI(before.body.token)).status).toBe(401)
    await set(false)
    expect((await login({ 'Remote-User': 'mallory' })).status).toBe(201)
  })

  it('01.3 there are no passwords to set', async () => {
    const { token } = (await login({ 'Remote-User': 'alice' })).body
    const body = { name: 'erin', password: 'a long password' }
    expect((await server.call('POST', '/v1/users', body, { 'X-Auth-Token': token })).status).toBe(400)
    expect(existsSync(join(folder.path, 'htpasswd'))).toBe(false)
  })

  it('01.3 no backend was made, and no password file', async () => {
    expect(existsSync(join(folder.path, 'htpasswd'))).toBe(false)
    expect(readdirSync(folder.path)).not.toContain('initial-admin-password')
    await waitForLog(server, /WARNING auth\.mode: .*127\.0\.0\.1.*can log in as any user/)
  })
})

describe('01.3 anybody else', () => {
  it.each([
    ['Remote-User', STRANGER, {}],
    ['X-Remote-User', STRANGER, {}],
    ['X-Forwarded-User', STRANGER, {}],
    ['Remote-User', LOOKALIKE, {}],
    ['Remote-User', STRANGER, { 'X-Forwarded-For': PROXY, 'X-Real-IP': PROXY, Forwarded: `for=${PROXY}` }],
    ['Remote-User', STRANGER, { 'Remote-Addr': PROXY, 'X-Remote-Addr': PROXY }],
    ['Remote-User', STRANGER, { Authorization: basicAuth('admin', 'x'), 'X-Forwarded-Proto': 'https' }],
  ])('01.3 who names a user in %s from %s (%j) is refused and audited', async (header, from, more) => {
    const name = `spoof-${Math.random()}`
    const { status, body } = await login({ ...more, [header]: name }, { from })
    expect([status, body.faultstring]).toEqual([401, 'Invalid or missing credentials'])
    expect((await lastRecord('login.spoofed', { _user: name }))['_remote_address']).toBe(from)
  })

  it('01.3 the name that was tried is bounded and printable in the audit log', async () => {
    const name = utf8(`hostile\u2028\u202e${'x'.repeat(6000)}`)
    expect((await login({ 'Remote-User': name }, { from: STRANGER })).status).toBe(401)
    const record = await waitFor('the audit record', () =>
      auditRecords(server, 'login.spoofed').find((found) => String(found['_user']).startsWith('hostile')),
    )
    expect(String(record['_user']).length).toBeLessThanOrEqual(201)
    expect(String(record['_user'])).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })

  it('01.3 a password is no way around it', async () => {
    expect((await login({ Authorization: basicAuth('admin', 'secret') }, { from: STRANGER })).status).toBe(401)
  })

  it('01.3 the headers are no credential for anything but a login', async () => {
    for (const path of ['/v1/user', '/v1/executions', '/v1/actions']) {
      const { status } = await send(server.urls.api, { path, headers: { 'Remote-User': 'alice' }, from: PROXY })
      expect({ path, status }).toEqual({ path, status: 401 })
    }
  })
})

describe('01.3 settings', () => {
  it('01.3 spoofs slow down, the proxy does not', async () => {
    const limited = await createTestApp({
      settings: {
        'auth.enable': 'True',
        'auth.mode': 'proxy',
        'auth.trusted_proxies': PROXY,
        'auth.failures_per_address': '3',
        'auth.failure_window': '3600',
      },
    })
    try {
      const spoof = (): Promise<Login> => loginAt(limited, { 'Remote-User': 'root' }, { from: STRANGER })
      for (let n = 0; n < 3; n++) expect((await spoof()).status).toBe(401)
      // On a machine that stalls, the first wait, of a second, can pass unseen.
      const { body, retryAfter } = await waitFor('a wait', async () => {
        const answer = await spoof()
        return answer.status === 429 && answer
      })
      expect(body.code).toBe('TOO_MANY_FAILURES')
      expect(Number(retryAfter)).toBeGreaterThanOrEqual(1)
      expect((await loginAt(limited, { 'Remote-User': 'alice' })).status).toBe(201)
      const behind = { 'Remote-User': 'alice', 'X-Forwarded-For': STRANGER }
      expect((await loginAt(limited, behind)).status).toBe(201)
    } finally {
      await limited.stop()
    }
  })

  it('01.3 in standalone mode the headers are nothing', async () => {
    const standalone = await createTestApp({ settings: { 'auth.enable': 'True' } })
    try {
      for (const header of ['Remote-User', 'X-Remote-User', 'X-Forwarded-User']) {
        expect((await loginAt(standalone, { [header]: 'admin' })).status).toBe(401)
      }
      const refused = await waitFor('the audit records', () => {
        const found = auditRecords(standalone, 'login.refused')
        return found.length >= 3 && found.map((record) => record['short_message'])
      })
      expect(new Set(refused)).toEqual(new Set(['Authorization header not provided']))
      expect(auditRecords(standalone, 'login.spoofed')).toEqual([])
    } finally {
      await standalone.stop()
    }
  })

  it('01.3 auth.remote_user_header names the only header that counts', async () => {
    const settings = { 'auth.enable': 'True', 'auth.mode': 'proxy', 'auth.trusted_proxies': PROXY }
    const strict = await createTestApp({ settings: { ...settings, 'auth.remote_user_header': 'X-Forwarded-User' } })
    try {
      const forged = { 'Remote-User': 'root', 'X-Remote-User': ['root', 'root'] }
      const { status, body } = await loginAt(strict, { ...forged, 'X-Forwarded-User': 'alice' })
      expect([status, body.user]).toEqual([201, 'alice'])
      expect((await loginAt(strict, forged)).status).toBe(401)
      expect((await loginAt(strict, { 'X-Forwarded-User': 'alice' }, { from: STRANGER })).status).toBe(401)
    } finally {
      await strict.stop()
    }
  })

  it.each([
    [{ 'auth.remote_user_header': 'Authorization' }, 'auth.remote_user_header: must be empty or the name of a header'],
    [{ 'auth.remote_user_header': 'a b' }, 'auth.remote_user_header: must be empty or the name of a header'],
    [{ 'auth.trusted_proxies': '' }, 'auth.trusted_proxies: must not be empty'],
    [{ 'auth.trusted_proxies': '0.0.0.0/0' }, 'auth.trusted_proxies: with auth.mode = proxy'],
    [
      { 'rbac.enable': 'True', 'rbac.backend': 'default', 'rbac.sync_remote_groups': 'True' },
      'rbac.sync_remote_groups: with auth.mode = proxy',
    ],
    [{ 'auth.mode': 'Basic' }, 'auth.mode: must be one of standalone, proxy'],
  ])('01.3 %j stops the start in one line', async (settings, line) => {
    const all = { 'auth.enable': 'True', 'auth.mode': 'proxy', ...settings }
    const outcome = await createTestApp({ settings: all }).then(
      (started) => started.stop().then(() => 'it started'),
      (failure: unknown) => String(failure),
    )
    expect(outcome.split('\n').filter((text) => text.includes(line))).toHaveLength(1)
    expect(outcome).not.toMatch(/\n\s+at /)
  })

  it('01.3 with authentication off nobody is asked', async () => {
    const open = await createTestApp({ settings: { 'auth.mode': 'proxy' } })
    try {
      const answer = await call<ErrorAnswer>(`${open.urls.auth}/tokens`, 'POST', {}, { 'Remote-User': 'alice' })
      expect(answer.status).toBe(404)
      expect((await open.call('GET', '/v1/user')).body).toMatchObject({ username: 'svc' })
    } finally {
      await open.stop()
    }
  })
})
