/** Contract 01, 1.9: API keys; 00, 0.5 (reasons of a 401) and 0.15 (masking). */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, type Answer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern, impossibleIds, rowsOf, send, timestampPattern, unknownId } from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

interface KeyAnswer {
  id: string
  uid: string
  user: string
  key: string
  key_hash: string
  metadata: Record<string, unknown>
  created_at: string
  enabled: boolean
  expires_at?: string
  scopes?: unknown
  last_used_at?: string
  faultstring: string
  'conflict-id'?: string
}

interface UserAnswer {
  username: string
  authentication: Record<string, unknown>
  rbac: { is_admin: boolean }
  faultstring: string
}

const mask = '********'
const folder = makeFolder()
let server: TestApp
let administrator: Record<string, string>

const login = (at: TestApp): Promise<Record<string, string>> => signIn(at, 'admin', firstPassword(at.basePath))

/** The fuzz below would otherwise have to wait after each failure. */
const settings = { 'auth.enable': 'True', 'auth.failures_per_address': '0', 'log.level': 'DEBUG' }

beforeAll(async () => {
  server = await createTestApp({ basePath: folder.path, settings })
  administrator = await login(server)
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

/** As the administrator unless the headers say otherwise. */
function ask<T = KeyAnswer>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = administrator,
): Promise<Answer<T>> {
  return server.call<T>(method, `/v1/apikeys${path}`, body, headers)
}

async function make(body: object = {}): Promise<KeyAnswer> {
  const answer = await ask('POST', '', body)
  if (answer.status !== 201) throw new Error(`not made (${answer.status}): ${answer.text}`)
  return answer.body
}

const withKey = (key: string): Record<string, string> => ({ 'Svc-Api-Key': key })

const whoAmI = (headers: Record<string, string>, query = ''): Promise<Answer<UserAnswer>> =>
  server.call<UserAnswer>('GET', `/v1/user${query}`, undefined, headers)

const hashOf = (key: string): string => createHash('sha512').update(`saltnpeper${key}`).digest('hex')

/** Digests that no other test has. */
let digests = 0
const newDigest = (): string => hashOf(`digest ${(digests += 1)}`)

describe('01.9 create', () => {
  it('01.9 answers 201 with the record and, this once, the value', async () => {
    const { status, body } = await ask('POST', '', { metadata: { used_by: 'my integration' } })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(idPattern),
      uid: mask,
      user: 'admin',
      key: expect.stringMatching(/^[A-Za-z0-9_-]{43,100}$/),
      metadata: { used_by: 'my integration' },
      created_at: expect.stringMatching(timestampPattern),
      enabled: true,
    })
    const { body: record } = await ask('GET', `/${body.id}?show_secrets=true`)
    const { key, uid, ...rest } = body
    expect(uid).toBe(mask)
    expect(record).toEqual({ ...rest, key_hash: hashOf(key), uid: `api_key:${hashOf(key)}` })
  })

  it('01.9 an empty body makes a key of whoever asks; no two are alike', async () => {
    const [a, b] = [await make(), await make()]
    expect([a.user, b.user, a.metadata]).toEqual(['admin', 'admin', {}])
    expect(a.key).not.toBe(b.key)
  })

  it('01.9 with key_hash no value is made, and the one it was made from works', async () => {
    const value = 'a key/of+another~installation='
    const { body } = await ask('POST', '', { key_hash: hashOf(value).toUpperCase(), user: 'imported' })
    expect(body.key).toBeNull()
    expect((await whoAmI(withKey(value))).body.username).toBe('imported')
  })

  it('01.9 a given id is kept', async () => {
    const made = await make({ id: '0123456789abcdef0123aaaa' })
    expect(made.id).toBe('0123456789abcdef0123aaaa')
    expect((await ask('GET', `/${made.id}`)).status).toBe(200)
  })

  it('01.9 one made disabled does not work until it is enabled', async () => {
    const { id, key } = await make({ enabled: false })
    expect((await whoAmI(withKey(key))).status).toBe(401)
    expect((await ask('PUT', `/${id}`, { enabled: true })).body.enabled).toBe(true)
    expect((await whoAmI(withKey(key))).status).toBe(200)
  })

  it('01.9 an owner whom nobody knows yet becomes a user, on PUT as well', async () => {
    const { id } = await make({ user: 'first-seen' })
    await ask('PUT', `/${id}`, { user: 'seen-on-put' })
    const names = rowsOf<{ name: string }>(server, `select name from users where name like '%seen%' order by name`)
    expect(names.map(({ name }) => name)).toEqual(['first-seen', 'seen-on-put'])
    expect((await ask('GET', `/${id}`)).body.user).toBe('seen-on-put')
  })

  it('01.9 a digest or an id that is there already is a conflict, and names it', async () => {
    const digest = newDigest()
    const { id } = await make({ key_hash: digest })
    for (const body of [
      { key_hash: digest },
      { key_hash: digest.toUpperCase() },
      { id },
      { id, key_hash: newDigest() },
    ]) {
      const answer = await ask('POST', '', body)
      expect([answer.status, answer.body['conflict-id']]).toEqual([409, id])
      expect(answer.text).not.toContain(digest)
    }
  })

  it('01.9 of several at once with one digest, one is made', async () => {
    const digest = newDigest()
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask('POST', '', { key_hash: digest })))
    const made = answers.filter(({ status }) => status === 201)
    const refused = answers.filter(({ status }) => status === 409)
    expect([made.length, refused.length]).toEqual([1, 4])
    expect(new Set(refused.map(({ body }) => body['conflict-id']))).toEqual(new Set([made[0]?.body.id]))
  })

  it.each<[object, string]>([
    [{ other: 1 }, "Additional properties are not allowed ('other' was unexpected)"],
    [{ key: 'k' }, "Additional properties are not allowed ('key' was unexpected)"],
    [{ user: 7 }, "7 is not of type 'string', 'null'"],
    [{ user: 'x'.repeat(257) }, 'user must have at most 256 characters'],
    [{ user: 'a\u0000b' }, 'user must not contain control characters'],
    [{ metadata: [] }, "is not of type 'object'"],
    [{ metadata: null }, "is not of type 'object'"],
    [{ metadata: { text: 'x'.repeat(70_000) } }, 'metadata may have 65536 bytes'],
    [{ enabled: 'yes' }, "'yes' is not of type 'boolean'"],
    [{ id: 'abc' }, 'id must have 24 lower-case hexadecimal characters'],
    [{ id: 'ABCDEFABCDEFABCDEFABCDEF' }, 'id must have 24 lower-case hexadecimal characters'],
    [{ key_hash: mask }, 'show_secrets=true'],
    [{ key_hash: '' }, 'key_hash must be the SHA-512 digest of a key'],
    [{ key_hash: null }, 'key_hash must be the SHA-512 digest of a key'],
    [{ key_hash: 'a'.repeat(127) }, 'key_hash must be the SHA-512 digest of a key'],
    [{ key_hash: 'g'.repeat(128) }, 'key_hash must be the SHA-512 digest of a key'],
    [{ expires_at: 'tomorrow' }, 'expires_at must be a time in UTC'],
    [{ expires_at: '2030-02-30T00:00:00Z' }, 'expires_at must be a time in UTC'],
    [{ expires_at: '2030-01-01T00:00:00+01:00' }, 'expires_at must be a time in UTC'],
    [{ expires_at: '2001-01-01T00:00:00Z' }, 'has passed already'],
    [{ scopes: 'all' }, 'scopes'],
    [{ scopes: [] }, 'scopes'],
    [{ scopes: [{ permission_types: ['everything'] }] }, 'Invalid permission type "everything"'],
  ])('01.9 refused with 400: %j', async (body, message) => {
    const answer = await ask('POST', '', body)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toContain(message)
  })

  it('01.9 a key that was put in the wrong place is not repeated', async () => {
    const { key } = await make()
    for (const [method, path] of [
      ['POST', ''],
      ['PUT', `/${key}`],
    ] as const) {
      const { status, text } = await ask(method, path, { key_hash: key })
      expect(status).toBe(400)
      expect(text).not.toContain(key)
    }
  })

  it('01.9 a body that is no object, or no JSON', async () => {
    for (const body of ['[]', '7', 'null', '{']) expect((await ask('POST', '', body)).status).toBe(400)
  })
})

describe('01.9 list', () => {
  let ids: string[]
  let emptied: TestApp
  let headers: Record<string, string>
  const base = makeFolder()
  const list = (query = ''): Promise<Answer<KeyAnswer[] & { faultstring: string }>> =>
    emptied.call<KeyAnswer[] & { faultstring: string }>('GET', `/v1/apikeys${query}`, undefined, headers)

  beforeAll(async () => {
    emptied = await createTestApp({ basePath: base.path, settings })
    headers = await login(emptied)
    ids = []
    for (let i = 0; i < 60; i++) {
      const given = i === 40 ? { id: '000000000000000000000001' } : {}
      const body = { user: i % 3 === 0 ? 'third' : 'others', metadata: { number: i }, ...given }
      ids.push((await emptied.call<KeyAnswer>('POST', '/v1/apikeys', body, headers)).body.id)
    }
  })

  afterAll(async () => {
    await emptied.stop()
    base.remove()
  })

  it('01.9 is in the order in which the keys were made, 50 unless it is said, with the total', async () => {
    const { status, headers: answered, body } = await list()
    expect(status).toBe(200)
    expect(body.map(({ id }) => id)).toEqual(ids.slice(0, 50))
    expect([answered.get('x-total-count'), answered.get('x-limit')]).toEqual(['60', '50'])
  })

  it('01.9 pages', async () => {
    const { body, headers: answered } = await list('?limit=7&offset=38')
    expect(body.map(({ id }) => id)).toEqual(ids.slice(38, 45))
    expect([answered.get('x-total-count'), answered.get('x-limit')]).toEqual(['60', '7'])
    const all = await list('?limit=-1')
    expect(all.body.map(({ id }) => id)).toEqual(ids)
    expect([all.headers.get('x-total-count'), all.headers.get('x-limit')]).toEqual(['60', null])
    expect((await list('?offset=100')).body).toEqual([])
  })

  it.each(['limit=0', 'limit=-2', 'limit=x', 'offset=-1', 'offset=2147483648', 'show_secrets=perhaps'])(
    '00.8 ?%s is refused with 400',
    async (query) => {
      expect((await list(`?${query}`)).status).toBe(400)
    },
  )

  it('00.10 of one user', async () => {
    const { body, headers: answered } = await list('?user=third&limit=5&offset=2')
    expect(body.map(({ id }) => id)).toEqual(ids.filter((_, i) => i % 3 === 0).slice(2, 7))
    expect(answered.get('x-total-count')).toBe('20')
    expect((await list("?user='%20or%201=1")).body).toEqual([])
  })

  it('00.15 masks digest and uid, unless the administrator asks for them', async () => {
    const masked = await list('?limit=-1')
    expect(new Set(masked.body.flatMap(({ key_hash, uid }) => [key_hash, uid]))).toEqual(new Set([mask]))
    const open = await list('?limit=-1&show_secrets=yes')
    for (const { key_hash: digest, uid } of open.body) {
      expect(digest).toMatch(/^[0-9a-f]{128}$/)
      expect(uid).toBe(`api_key:${digest}`)
    }
  })

  it('00.4 is JSON without nulls, and without the value', async () => {
    const { text } = await list('?limit=-1&show_secrets=true')
    expect(text).not.toContain('null')
    expect(text).not.toContain('"key"')
  })
})

describe('01.9 get, update, delete', () => {
  it('01.9 a key is found by its id and by its value', async () => {
    const { id, key } = await make({ metadata: { a: 1 } })
    for (const name of [id, key, encodeURIComponent(key)]) {
      const { status, body } = await ask('GET', `/${name}`)
      expect([status, body.id, body.key_hash, body.uid]).toEqual([200, id, mask, mask])
      expect(body).not.toHaveProperty('key')
    }
    expect((await ask('GET', `/${key}?show_secrets=true`)).body.key_hash).toBe(hashOf(key))
    expect((await ask('GET', `/${hashOf(key)}`)).status).toBe(404)
  })

  it('01.9 one that is not there: 404, which repeats an id but nothing that may be a key', async () => {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const body = method === 'PUT' ? {} : undefined
      const answer = await ask(method, `/${unknownId}`, body)
      expect([answer.status, answer.body.faultstring]).toEqual([404, expect.stringContaining(unknownId)])
      for (const value of [...impossibleIds, 'k'.repeat(86), 'x'.repeat(4000)]) {
        const { status, text } = await ask(method, `/${value}`, body)
        expect({ value, status }).toEqual({ value, status: 404 })
        expect(text).not.toContain(decodeURIComponent(value))
      }
    }
  })

  it('01.9 enable and disable: what was read is sent back with the flag turned', async () => {
    const { id, key } = await make({
      metadata: { a: { b: [1, null] } },
      expires_at: '2100-01-01 00:00:00.123+00:00',
      scopes: [{ permission_types: ['execution_list'] }],
    })
    await whoAmI(withKey(key))
    const { body: record } = await ask('GET', `/${id}`)
    expect(record.last_used_at).toMatch(timestampPattern)
    for (const enabled of [false, true]) {
      const { status, body } = await ask('PUT', `/${id}`, { ...record, enabled })
      expect([status, body]).toEqual([200, { ...record, enabled }])
      expect((await whoAmI(withKey(key))).status).toBe(enabled ? 200 : 401)
    }
    const open = (await ask('GET', `/${id}?show_secrets=true`)).body
    expect((await ask('PUT', `/${id}`, open)).body).toEqual({ ...record, last_used_at: open.last_used_at })
  })

  it('01.9 what is left out stays; null takes expiry and scopes away', async () => {
    const { id, key } = await make({
      metadata: { a: 1 },
      expires_at: '2100-01-01T00:00:00Z',
      scopes: [{ permission_types: ['webhook_send'], resource_uid: 'webhook:sample' }],
    })
    const before = (await ask('GET', `/${id}`)).body
    expect(before.expires_at).toBe('2100-01-01T00:00:00.000000Z')
    for (const body of [{}, { key_hash: mask }, { key_hash: '' }, { key_hash: null }, { key_hash: hashOf(key) }]) {
      expect((await ask('PUT', `/${key}`, body)).body).toEqual(before)
    }
    const { expires_at: expiry, scopes, ...rest } = before
    expect([expiry === undefined, scopes === undefined]).toEqual([false, false])
    expect((await ask('PUT', `/${id}`, { expires_at: null, scopes: null, metadata: {} })).body).toEqual({
      ...rest,
      metadata: {},
    })
    expect((await whoAmI(withKey(key))).status).toBe(200)
  })

  it('01.9 neither the digest nor the id can be changed', async () => {
    const { id, key } = await make()
    for (const digest of [newDigest(), 'short', 'x'.repeat(128)]) {
      const { status, body } = await ask('PUT', `/${id}`, { key_hash: digest })
      expect([status, body.faultstring]).toEqual([400, expect.stringContaining('Update of key_hash is not allowed.')])
    }
    expect((await ask('PUT', `/${id}`, { id: unknownId })).status).toBe(400)
    expect((await ask('PUT', `/${id}`, { other: 1 })).status).toBe(400)
    expect((await whoAmI(withKey(key))).status).toBe(200)
  })

  it('01.9 a deleted key is worthless at once, and can be loaded again', async () => {
    const { id, key } = await make()
    for (let i = 0; i < 3; i++) expect((await whoAmI(withKey(key))).status).toBe(200)
    const gone = await ask('DELETE', `/${key}`)
    expect([gone.status, gone.text]).toEqual([204, ''])
    expect((await whoAmI(withKey(key))).status).toBe(401)
    expect((await ask('DELETE', `/${id}`)).status).toBe(404)
    expect((await ask('GET', `/${id}`)).status).toBe(404)
    expect((await ask('POST', '', { id, key_hash: hashOf(key) })).status).toBe(201)
    expect((await whoAmI(withKey(key))).status).toBe(200)
  })
})

describe('01.8 a key as a credential', () => {
  it('01.8 counts as header or query, and acts as its owner', async () => {
    const { key } = await make({ user: 'robot' })
    const expected = (location: string): object => ({
      username: 'robot',
      authentication: { method: 'API key', location },
      rbac: { enabled: false, roles: [], is_admin: true },
    })
    for (const [headers, query, location] of [
      [withKey(key), '', 'header'],
      [{ 'sVC-aPI-kEY': key }, '', 'header'],
      [{}, `?svc-api-key=${key}`, 'query'],
      [withKey(key), '?svc-api-key=wrong', 'header'],
    ] as const) {
      const answer = await whoAmI(headers as Record<string, string>, query)
      expect(answer.body).toEqual(expected(location))
      expect(answer.headers.getSetCookie()).toEqual([])
    }
    expect((await whoAmI({}, `?Svc-Api-Key=${key}`)).status).toBe(401)
    expect((await whoAmI({ Cookie: `svc-api-key=${key}` })).status).toBe(401)
    expect((await whoAmI({ 'X-Auth-Token': key })).status).toBe(401)
  })

  it('01.8 an execution that it requests is its owner’s', async () => {
    const { key } = await make({ user: 'robot' })
    const { status, body } = await server.call<{ context: { user: string } }>(
      'POST',
      '/v1/executions',
      { action: 'core.noop' },
      withKey(key),
    )
    expect([status, body.context.user]).toEqual([201, 'robot'])
  })

  fullOnly(it)('00.5 401: unknown, disabled, expired, each with its text', async () => {
    const unknown = await whoAmI(withKey('nobody-has-it'))
    expect([unknown.status, unknown.body.faultstring]).toEqual([
      401,
      `Unauthorized - ApiKey with key_hash=${hashOf('nobody-has-it')} not found.`,
    ])
    const { id, key } = await make()
    await ask('PUT', `/${id}`, { enabled: false })
    const disabled = await whoAmI(withKey(key))
    expect([disabled.status, disabled.body.faultstring]).toEqual([401, 'Unauthorized - API key is disabled.'])

    const short = await make({ expires_at: new Date(Date.now() + 5000).toISOString() })
    expect((await whoAmI(withKey(short.key))).status).toBe(200)
    const expired = await waitFor('the key to expire', async () => {
      const answer = await whoAmI(withKey(short.key))
      return answer.status === 200 ? undefined : answer
    })
    expect([expired.status, expired.body.faultstring]).toEqual([401, 'Unauthorized - API key has expired.'])
    expect((await ask('PUT', `/${short.id}`, { expires_at: null })).status).toBe(200)
    expect((await whoAmI(withKey(short.key))).status).toBe(200)
  })

  it('01.8 with scopes it is no administrator, and can do nothing about credentials', async () => {
    const { id, key } = await make({
      scopes: [{ permission_types: ['execution_list', 'api_key_all', 'api_key_list'] }],
    })
    expect((await whoAmI(withKey(key))).body.rbac.is_admin).toBe(false)
    expect((await server.call('GET', '/v1/executions', undefined, withKey(key))).status).toBe(200)
    expect((await server.call('GET', '/v1/actions', undefined, withKey(key))).status).toBe(403)
    expect((await server.call('GET', '/v1/executions?limit=-1', undefined, withKey(key))).status).toBe(403)
    expect((await ask('PUT', `/${id}`, { scopes: null }, withKey(key))).status).toBe(403)
    expect((await ask('DELETE', `/${id}`, undefined, withKey(key))).status).toBe(403)
    expect((await ask('POST', '', {}, withKey(key))).status).toBe(403)
    const token = administrator['X-Auth-Token'] ?? ''
    const revoked = await call(`${server.urls.auth}/tokens/${token}`, 'DELETE', undefined, withKey(key))
    expect(revoked.status).toBe(403)
    expect((await whoAmI(administrator)).status).toBe(200)
  })

  it('CVE-2021-41111 a list that somebody without all rights sees holds no secret bytes', async () => {
    const { key } = await make({ scopes: [{ permission_types: ['api_key_list', 'api_key_view'] }] })
    const { status, text, body } = await ask<KeyAnswer[]>(
      'GET',
      '?show_secrets=true&limit=100',
      undefined,
      withKey(key),
    )
    expect(status).toBe(200)
    expect(body.length).toBeGreaterThan(1)
    expect(text).not.toMatch(/[0-9a-f]{64}/)
    expect(text).not.toContain(key)
  })

  it.each(['deleted', 'disabled', 'given to somebody else'])('01.9 a stream ends when its key is %s', async (what) => {
    const { id, key } = await make()
    const other = await make()
    const events = await openEvents(`${server.urls.stream}/v1/stream?svc-api-key=${key}`)
    const others = await openEvents(`${server.urls.stream}/v1/stream`, withKey(other.key))
    expect([events.status, others.status]).toEqual([200, 200])
    if (what === 'deleted') await ask('DELETE', `/${id}`)
    else await ask('PUT', `/${id}`, what === 'disabled' ? { enabled: false } : { user: 'somebody-else' })
    expect(await events.ended).toBe('end')
    // The other one goes on: it still hears of what happens.
    await server.call('POST', '/v1/executions', { action: 'core.noop' }, administrator)
    await others.frame(({ event }) => event === 'svc.execution__create')
    others.close()
  })

  it('timingSafeEqual keys of every length and of any bytes are refused with 401', async () => {
    const { key } = await make()
    const values = [
      ...Array.from({ length: key.length - 1 }, (_, i) => key.slice(0, i + 1)),
      `${key}x`,
      `${key}, ${key}`,
      key.toUpperCase(),
      hashOf(key),
      'x'.repeat(1024),
      'x'.repeat(1025),
      'x'.repeat(12_000),
      Buffer.from('ключ 键').toString('latin1'),
      '\u0080\u00ff\u00fe',
      "' or 1=1 --",
      '%00%ff%zz',
      '{"key": 1}',
    ]
    for (const value of values) {
      const header = await send(server.urls.api, { path: '/v1/user', headers: withKey(value) })
      const query = await send(server.urls.api, { path: `/v1/user?svc-api-key=${encodeURIComponent(value)}` })
      expect({ value, statuses: [header.status, query.status] }).toEqual({ value, statuses: [401, 401] })
    }
    for (const raw of ['%ff%fe', '%00', '%ed%a0%80', '%', '+', '%zz']) {
      expect((await send(server.urls.api, { path: `/v1/user?svc-api-key=${raw}` })).status).toBe(401)
    }
    expect((await whoAmI(withKey(key))).status).toBe(200)
  })
})

it('10.3 makes audit lines that name the key by its id', async () => {
  const { id, key } = await make({ user: 'audited' })
  await whoAmI(withKey(key))
  await ask('PUT', `/${id}`, { enabled: false })
  await whoAmI(withKey(key))
  await ask('DELETE', `/${id}`)
  const lines = await waitFor('the last line', () => {
    const found = server
      .log()
      .split('\n')
      .filter((line) => line.includes(id))
    return found.some((line) => line.includes('ApiKey deleted')) && found
  })
  for (const text of [
    `ApiKey created. ApiKey.id=${id}`,
    `API key with id "${id}" is validated.`,
    `API Key updated. ApiKey.id=${id}.`,
    `API key with id "${id}" is disabled.`,
    `ApiKey deleted. ApiKey.id=${id}`,
  ]) {
    expect(lines.filter((line) => line.includes(text))).toHaveLength(1)
  }
  expect(server.log()).toContain('Registered new user "audited".')
})

describe('with access control', () => {
  const base = makeFolder()
  let guarded: TestApp
  let root: Record<string, string>
  /** User name → headers of a key without scopes. */
  const as: Record<string, Record<string, string>> = {}

  const at = <T = KeyAnswer>(user: string, method: string, path: string, body?: unknown): Promise<Answer<T>> =>
    guarded.call<T>(method, `/v1/apikeys${path}`, body, as[user] ?? root)

  beforeAll(async () => {
    const define = (kind: string, name: string, text: string): void => {
      mkdirSync(join(base.path, 'rbac', kind), { recursive: true })
      writeFileSync(join(base.path, 'rbac', kind, `${name}.yaml`), text)
    }
    const roles: Record<string, string> = {
      maker: '[{permission_types: [api_key_create, api_key_list]}]',
      robots:
        '[{permission_types: [api_key_create, action_list]}, {permission_types: [user_impersonate]}, ' +
        '{resource_uid: "action:core:noop", permission_types: [action_execute]}, ' +
        '{resource_uid: "action:core:local", permission_types: [action_execute]}]',
    }
    for (const [name, grants] of Object.entries(roles)) {
      define('roles', name, `name: ${name}\npermission_grants: ${grants}\n`)
    }
    const assigned = { admin: 'system_admin', watcher: 'observer', alice: 'maker', bob: 'maker', carol: 'robots' }
    for (const [user, role] of Object.entries(assigned)) {
      define('assignments', user, `username: ${user}\nroles: [${role}]\n`)
    }
    guarded = await createTestApp({
      basePath: base.path,
      settings: { ...settings, 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    root = await login(guarded)
    for (const user of ['alice', 'bob', 'carol', 'watcher']) {
      as[user] = withKey((await at('admin', 'POST', '', { user })).body.key)
    }
  })

  afterAll(async () => {
    await guarded.stop()
    base.remove()
  })

  it('11.3 a list is of own keys unless one may see the others, whatever is asked for', async () => {
    const owners = async (user: string, query = ''): Promise<[string[], string | null]> => {
      const { body, headers } = await at<KeyAnswer[]>(user, 'GET', query)
      return [body.map((key) => key.user), headers.get('x-total-count')]
    }
    expect(await owners('alice')).toEqual([['alice'], '1'])
    expect(await owners('alice', '?user=bob')).toEqual([[], '0'])
    expect(await owners('alice', '?user=null&show_secrets=true&offset=0&limit=100')).toEqual([[], '0'])
    expect(await owners('watcher')).toEqual([['alice', 'bob', 'carol', 'watcher'], '4'])
    expect(await owners('admin', '?user=bob')).toEqual([['bob'], '1'])
    expect((await at('carol', 'GET', '')).status).toBe(403)
    const { text } = await at('watcher', 'GET', '?show_secrets=true')
    expect(text).not.toMatch(/[0-9a-f]{64}/)
  })

  it('01.9 the owner of a key may look at it, change it and delete it; others are told what they lack', async () => {
    const { id, key } = (await at('alice', 'POST', '', {})).body
    for (const [method, permission, body] of [
      ['GET', 'api_key_view'],
      ['PUT', 'api_key_modify', { enabled: false }],
      ['DELETE', 'api_key_delete'],
    ] as const) {
      for (const name of [id, key]) {
        const { status, body: answer, text } = await at('bob', method, `/${name}`, body)
        expect([status, answer.faultstring]).toEqual([
          403,
          `User "bob" doesn't have required permission "${permission}" on resource "api_key:${id}"`,
        ])
        expect(text).not.toContain(key)
      }
    }
    expect((await at('watcher', 'GET', `/${id}`)).status).toBe(200)
    expect((await at('watcher', 'PUT', `/${id}`, {})).status).toBe(403)
    expect((await at('alice', 'PUT', `/${id}`, { enabled: false })).status).toBe(200)
    expect((await at('alice', 'DELETE', `/${id}`)).status).toBe(204)
    await waitFor('the refusal in the log', () => guarded.log().includes(`on resource "api_key:${id}"`))
    expect(guarded.log()).not.toContain(key)
  })

  it('st2#6380 a key for somebody else, by each way, needs the permission to act for them', async () => {
    const foreign = [
      { user: 'bob' },
      { user: 'admin', key_hash: newDigest() },
      { user: 'nobody', id: unknownId, key_hash: newDigest(), enabled: false },
    ]
    for (const body of foreign) {
      const answer = await at('alice', 'POST', '', body)
      expect([answer.status, answer.body.faultstring]).toEqual([
        403,
        `User "alice" doesn't have required permission "user_impersonate" on resource "user:${body.user}"`,
      ])
    }
    const { id } = (await at('alice', 'POST', '', {})).body
    expect((await at('alice', 'PUT', `/${id}`, { user: 'admin' })).status).toBe(403)
    expect((await at('carol', 'POST', '', { user: 'bob' })).status).toBe(201)
    // Acting for an administrator would make one.
    expect((await at('carol', 'POST', '', { user: 'admin' })).status).toBe(403)
    expect((await at('admin', 'POST', '', { user: 'bob' })).status).toBe(201)
    const keys = (await at<KeyAnswer[]>('admin', 'GET', '?user=nobody')).body
    expect(keys).toEqual([])
  })

  it('01.8 a key limited to one action runs that action and nothing else', async () => {
    const scopes = [{ permission_types: ['action_execute'], resource_uid: 'action:core:noop' }]
    const { key } = (await at('carol', 'POST', '', { scopes })).body
    const run = (action: string, headers = withKey(key)): Promise<Answer<{ id: string }>> =>
      guarded.call<{ id: string }>('POST', '/v1/executions', { action }, headers)
    const { status, body } = await run('core.noop')
    expect(status).toBe(201)
    expect((await guarded.call('GET', `/v1/executions/${body.id}`, undefined, withKey(key))).status).toBe(200)
    expect((await run('core.local')).status).toBe(403)
    expect((await run('core.local', as['carol'])).status).not.toBe(403)
    expect((await guarded.call('GET', '/v1/actions', undefined, withKey(key))).status).toBe(403)
    expect((await guarded.call('GET', '/v1/actions', undefined, as['carol'])).status).toBe(200)
  })

  it('01.8 a key of an administrator with scopes makes no administrator', async () => {
    const scopes = [{ permission_types: ['api_key_list', 'api_key_view', 'user_impersonate', 'execution_list'] }]
    const { key } = (await at('admin', 'POST', '', { scopes })).body
    const { body } = await guarded.call<UserAnswer>('GET', '/v1/user', undefined, withKey(key))
    expect([body.username, body.rbac.is_admin]).toEqual(['admin', false])
    const list = await guarded.call('GET', '/v1/apikeys?show_secrets=true', undefined, withKey(key))
    expect(list.text).not.toMatch(/[0-9a-f]{64}/)
    expect((await guarded.call('GET', '/v1/rbac/roles', undefined, withKey(key))).status).toBe(403)
    expect((await guarded.call('POST', '/v1/apikeys', {}, withKey(key))).status).toBe(403)
  })
})

describe('while authentication is off', () => {
  it('01.9 keys can be prepared, and belong to the system user', async () => {
    const open = await createTestApp()
    try {
      const { status, body } = await open.call<KeyAnswer>('POST', '/v1/apikeys', {})
      expect(status).toBe(201)
      const { user } = (await open.call<KeyAnswer>('GET', `/v1/apikeys/${body.key}?show_secrets=1`)).body
      const { username } = (await open.call<UserAnswer>('GET', '/v1/user')).body
      expect([body.user, user]).toEqual([username, username])
      expect((await open.call<KeyAnswer[]>('GET', '/v1/apikeys')).body).toHaveLength(1)
      expect((await open.call('PUT', `/v1/apikeys/${body.id}`, { enabled: false })).status).toBe(200)
      expect((await open.call('DELETE', `/v1/apikeys/${body.id}`)).status).toBe(204)
    } finally {
      await open.stop()
    }
  })

  it('00.15 api.mask_secrets = False shows digests to all', async () => {
    const open = await createTestApp({ settings: { 'api.mask_secrets': 'False' } })
    try {
      const { body } = await open.call<KeyAnswer>('POST', '/v1/apikeys', {})
      expect(body).not.toHaveProperty('key_hash')
      expect((await open.call<KeyAnswer[]>('GET', '/v1/apikeys')).body[0]?.key_hash).toBe(hashOf(body.key))
      const { body: changed } = await open.call<KeyAnswer>('PUT', `/v1/apikeys/${body.id}`, {})
      expect([changed.key_hash, changed.uid]).toEqual([hashOf(body.key), `api_key:${hashOf(body.key)}`])
    } finally {
      await open.stop()
    }
  })
})

it('CVE-2022-31044 the value of a key is found nowhere under base_path and in no log, and works after a restart', async () => {
  const base = makeFolder()
  try {
    const first = await createTestApp({ basePath: base.path, settings: { ...settings, 'log.audit_file': 'audit.log' } })
    const headers = await login(first)
    const { id, key } = (await first.call<KeyAnswer>('POST', '/v1/apikeys', {}, headers)).body
    const wrong = 'svc_canary-canary-canary-canary-canary-canary-12'
    for (const value of [key, wrong]) {
      const path = `/v1/apikeys/${value}`
      await first.call('GET', path, undefined, headers)
      await first.call('PUT', path, { enabled: 'x' }, headers)
      await first.call('PUT', path, { key_hash: value }, headers)
      await first.call('POST', path, {}, headers)
      await first.call('GET', `${path}/more`, undefined, headers)
      await first.call('GET', `/v1/user?svc-api-key=${value}`)
      await first.call('GET', `/v1/user`, undefined, withKey(value))
      await first.call('GET', `/v1/user`, undefined, { ...headers, ...withKey(value) })
      await send(first.urls.api, { path: `${path}%zz`, headers })
      await send(first.urls.api, { path, headers: withKey(`${value}x`) })
    }
    await first.call('DELETE', `/v1/apikeys/${wrong}`, undefined, headers)
    await first.call('POST', '/v1/executions', { action: 'core.noop' }, withKey(key))
    const used = (await first.call<KeyAnswer>('GET', `/v1/apikeys/${id}`, undefined, headers)).body.last_used_at
    await first.stop()
    const texts = filesUnder(base.path).map((path): [string, string] => [path, readFileSync(path, 'latin1')])
    expect(texts.some(([path, text]) => path.endsWith('audit.log') && text.includes(id))).toBe(true)
    expect(texts.some(([path, text]) => path.endsWith('svc.db') && text.includes(hashOf(key)))).toBe(true)
    for (const [name, text] of [...texts, ['the log', first.log()]] as const) {
      for (const value of [key, wrong]) {
        for (const form of [
          value,
          Buffer.from(value).toString('base64').slice(0, -4),
          Buffer.from(value).toString('hex'),
        ]) {
          expect({ name, found: text.includes(form) }).toEqual({ name, found: false })
        }
      }
    }

    const second = await createTestApp({ basePath: base.path, settings })
    try {
      const [row] = rowsOf<{ last_used_at: string }>(second, 'select last_used_at from api_keys')
      expect(row?.last_used_at).toBe(used)
      const { body } = await second.call<UserAnswer>('GET', '/v1/user', undefined, withKey(key))
      expect(body.username).toBe('admin')
    } finally {
      await second.stop()
    }
  } finally {
    base.remove()
  }
})

function filesUnder(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
