import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder } from '../../../../tests/helpers/folders.ts'
import { startHttp, type TestHttp } from '../../../../tests/helpers/http.ts'
import { call, type Answer } from '../../../../tests/helpers/server.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import type { Database } from '../../../db/database.ts'
import type { Principal } from '../../../http/route.ts'
import { createLog, type RootLog } from '../../../lib/log/log.ts'
import { now, nowMicros } from '../../../core/time.ts'
import { createGrantSet, type Grant } from '../../rbac/resolve.ts'
import { createRights } from '../../rbac/rights.ts'
import { createAuthStore, type AuthStore } from '../store.ts'
import { createApiKeys, type ApiKeys } from './index.ts'

interface KeyAnswer {
  id: string
  uid: string
  user: string
  key: string | null
  key_hash: string
  metadata: unknown
  enabled: boolean
  expires_at?: string
  scopes?: unknown
  last_used_at?: string
  faultstring: string
  'conflict-id'?: string
}

const folder = makeFolder()
const logged = new TextSink()
let log: RootLog
let database: Database
let http: TestHttp
let keys: ApiKeys
/** Microseconds that the clock is ahead. */
let ahead = 0
let isEnabled = true
let grants: Record<string, Grant[]>
let store: AuthStore
/** Called at the last moment before a request with a body is carried out. */
let atLast: (() => void) | undefined

beforeAll(async () => {
  log = createLog({ level: 'DEBUG', format: 'text', stream: logged })
  const opened = await openDatabase(folder.path)
  const { bus } = opened
  database = opened.database
  store = createAuthStore(database)
  keys = createApiKeys({
    database,
    bus,
    log,
    users: store,
    maxPageSize: 100,
    maskSecrets: true,
    now: () => nowMicros() + ahead,
  })
  keys.start()
  const ofUser = (user: string) => ({
    isAdmin: user === 'root',
    isObserver: user === 'observer',
    grants: createGrantSet(grants[user] ?? []),
  })
  http = await startHttp(keys.routes, {
    logs: { auth: log, api: log, stream: log },
    access: {
      async authenticate(request): Promise<Principal> {
        const given = request.headers['svc-api-key']
        if (typeof given === 'string') {
          const { id, user, scopes } = keys.check(given)
          keys.noteUse(id)
          return { user, isAdmin: false, method: 'api_key', apiKeyId: id, ...(scopes === undefined ? {} : { scopes }) }
        }
        const user = String(request.headers['x-user'])
        await database.write({ steps: [store.insertUser(user, now())], facts: [] })
        return { user, isAdmin: !isEnabled || user === 'root', method: 'token' }
      },
      login: () => {
        throw new Error('nobody logs in here')
      },
      rightsOf: (principal) => createRights(principal, { enabled: isEnabled, isolation: false, ofUser }),
      hasCredential: () => true,
      isCurrent() {
        atLast?.()
        return true
      },
      watch: () => () => undefined,
    },
  })
})

afterAll(async () => {
  await http.close()
  await keys.stop()
  await database.close()
  await log.close()
  folder.remove()
})

beforeEach(() => {
  logged.text = ''
  grants = {}
})

afterEach(async () => {
  ahead = 0
  isEnabled = true
  atLast = undefined
  await database.write({ steps: [{ query: database.build.deleteFrom('api_keys') }], facts: [] })
})

/** As a user, or with a key: `key:<value>`. */
function ask<T = KeyAnswer>(as: string, method: string, path: string, body?: unknown): Promise<Answer<T>> {
  const headers = as.startsWith('key:') ? { 'Svc-Api-Key': as.slice('key:'.length) } : { 'X-User': as }
  return call<T>(`${http.urls.api}/v1/apikeys${path}`, method, body, headers as Record<string, string>)
}

async function make(body: object = {}, as = 'root'): Promise<KeyAnswer & { key: string }> {
  const answer = await ask(as, 'POST', '', body)
  if (answer.status !== 201) throw new Error(`not made (${answer.status}): ${answer.text}`)
  return answer.body as KeyAnswer & { key: string } // without a digest in the body one is made
}

const webhookScope = { permission_types: ['webhook_send'], resource_uid: 'webhook:sample' }

describe('who may do what to whose keys', () => {
  test('who is deleted at the same moment leaves no key behind, and does not come back by it', async () => {
    grants = { eve: [{ permission_types: ['api_key_create', 'user_impersonate'] }] }
    for (const user of ['eve', 'alice']) {
      await make({ user }, 'eve')
      let deletion: Promise<unknown> | undefined
      // Its unit is in the line, and not carried out yet.
      atLast = () => {
        deletion ??= database.write({ steps: [store.deleteUser('eve'), keys.removalOf('eve')], facts: [] })
      }
      const { status, body } = await ask<{ code: string }>('eve', 'POST', '', { user })
      expect([status, body.code]).toEqual([409, 'CONFLICT'])
      await deletion
      atLast = undefined
      expect(store.findUser('eve')).toBeUndefined()
      expect((await ask<unknown[]>('root', 'GET', '?user=eve')).body).toEqual([])
    }
    expect((await ask<unknown[]>('root', 'GET', '?user=alice')).body).toHaveLength(1)
  })

  test('without grants nobody makes or lists keys; the owner of one may look at it, change it and delete it', async () => {
    expect((await ask('alice', 'POST', '', {})).status).toBe(403)
    expect((await ask('alice', 'GET', '')).status).toBe(403)
    const { id } = await make({ user: 'alice' })
    expect((await ask('alice', 'GET', `/${id}`)).body.user).toBe('alice')
    expect((await ask('alice', 'PUT', `/${id}`, { enabled: false })).body.enabled).toBe(false)
    for (const [method, body] of [['GET'], ['PUT', { enabled: true }], ['DELETE']] as const) {
      const { status, body: answer } = await ask('mallory', method, `/${id}`, body)
      expect(status).toBe(403)
      expect(answer.faultstring).toMatch(
        new RegExp(`^User "mallory" doesn't have required permission "api_key_\\w+" on resource "api_key:${id}"$`),
      )
    }
    expect((await ask('alice', 'DELETE', `/${id}`)).status).toBe(204)
    expect((await ask('alice', 'GET', `/${id}`)).status).toBe(404)
  })

  test('permissions of the type, and on one key', async () => {
    const mine = await make({ user: 'bob' })
    const other = await make({ user: 'carol' })
    const { key_hash: keyHash } = (await ask('root', 'GET', `/${mine.id}?show_secrets=true`)).body
    grants = {
      one: [{ permission_types: ['api_key_view', 'api_key_modify'], resource_uid: `api_key:${keyHash}` }],
      all: [{ permission_types: ['api_key_all'] }],
    }
    expect((await ask('one', 'GET', `/${mine.id}`)).status).toBe(200)
    expect((await ask('one', 'GET', `/${other.id}`)).status).toBe(403)
    expect((await ask('one', 'PUT', `/${mine.id}`, { enabled: false })).status).toBe(200)
    expect((await ask('one', 'DELETE', `/${mine.id}`)).status).toBe(403)
    expect((await ask('all', 'GET', `/${other.id}`)).status).toBe(200)
    expect((await ask('all', 'PUT', `/${other.id}`, { enabled: false })).status).toBe(200)
    expect((await ask('all', 'DELETE', `/${other.id}`)).status).toBe(204)
  })

  test('a list holds own keys and those that may be viewed, its total too', async () => {
    const ids: string[] = []
    for (const user of ['alice', 'bob', 'alice', 'carol', 'alice']) ids.push((await make({ user })).id)
    const { key_hash: carols } = (await ask('root', 'GET', `/${ids[3]}?show_secrets=true`)).body
    grants = {
      alice: [{ permission_types: ['api_key_list'] }],
      dave: [
        { permission_types: ['api_key_list'] },
        { permission_types: ['api_key_view'], resource_uid: `api_key:${carols}` },
      ],
      erin: [{ permission_types: ['api_key_list', 'api_key_view'] }],
    }
    const seen = async (as: string, query = ''): Promise<[string[], string | null]> => {
      const { body, headers } = await ask<KeyAnswer[]>(as, 'GET', query)
      return [body.map(({ id }) => id), headers.get('x-total-count')]
    }
    const [a1, b, a2, c, a3] = ids
    expect(await seen('root')).toEqual([ids, '5'])
    expect(await seen('observer')).toEqual([ids, '5'])
    expect(await seen('erin')).toEqual([ids, '5'])
    expect(await seen('alice')).toEqual([[a1, a2, a3], '3'])
    expect(await seen('alice', '?limit=2&offset=1')).toEqual([[a2, a3], '3'])
    expect(await seen('alice', '?offset=9')).toEqual([[], '3'])
    expect(await seen('alice', '?user=bob')).toEqual([[], '0'])
    expect(await seen('dave')).toEqual([[c], '1'])
    expect(await seen('root', '?user=bob')).toEqual([[b], '1'])
    expect(await seen('root', '?limit=2&offset=1')).toEqual([[b, a2], '5'])
    expect((await ask('alice', 'GET', '?limit=-1')).status).toBe(403)
    expect(await seen('root', '?limit=-1')).toEqual([ids, '5'])
  })

  test('the digest is for administrators; others who ask for it get the mask', async () => {
    grants = { viewer: [{ permission_types: ['api_key_list', 'api_key_all'] }] }
    const { id } = await make({ user: 'alice' })
    for (const as of ['viewer', 'alice']) {
      const { body } = await ask(as, 'GET', `/${id}?show_secrets=true`)
      expect([body.key_hash, body.uid]).toEqual(['********', '********'])
    }
    const list = await ask<KeyAnswer[]>('viewer', 'GET', '?show_secrets=true')
    expect(list.body.map((record) => [record.key_hash, record.uid])).toEqual([['********', '********']])
    const { body } = await ask('root', 'GET', `/${id}?show_secrets=true`)
    expect(body.key_hash).toMatch(/^[0-9a-f]{128}$/)
    expect(body.uid).toBe(`api_key:${body.key_hash}`)
  })
})

describe('st2#6380 keys are made for whoever makes them', () => {
  beforeEach(() => {
    grants = {
      maker: [{ permission_types: ['api_key_create'] }],
      actor: [
        { permission_types: ['api_key_create', 'api_key_all'] },
        { permission_types: ['user_impersonate'], resource_uid: 'user:robot' },
      ],
      modifier: [{ permission_types: ['api_key_create', 'api_key_all'] }],
    }
  })

  test.for(['root', 'robot', 'nobody-yet'])('st2#6380 a foreign user, %s, is refused', async (user) => {
    const digest = 'ab'.repeat(64)
    for (const body of [{ user }, { user, key_hash: digest }, { user, enabled: false, id: 'f'.repeat(24) }]) {
      const answer = await ask('maker', 'POST', '', body)
      expect(answer.status).toBe(403)
      expect(answer.body.faultstring).toContain('user_impersonate')
    }
    expect(logged.text).toContain('permission.denied')
    expect(database.all(database.build.selectFrom('api_keys').selectAll())).toEqual([])
  })

  test('st2#6380 without a user, or with the own one, it is the maker’s; the permission opens others', async () => {
    for (const body of [{}, { user: null }, { user: '' }, { user: 'maker' }]) {
      expect((await make(body, 'maker')).user).toBe('maker')
    }
    expect((await make({ user: 'robot' }, 'actor')).user).toBe('robot')
    expect((await ask('actor', 'POST', '', { user: 'root' })).status).toBe(403)
  })

  test('st2#6380 nor does an update give a key to somebody, or make one of somebody else do more', async () => {
    const own = await make({}, 'maker')
    expect((await ask('maker', 'PUT', `/${own.id}`, { user: 'root' })).status).toBe(403)
    expect((await ask('maker', 'PUT', `/${own.id}`, { user: 'maker', scopes: [webhookScope] })).status).toBe(200)
    expect((await ask('maker', 'PUT', `/${own.id}`, { scopes: null })).status).toBe(200)

    const limited = await make({ user: 'root', scopes: [webhookScope], expires_at: '2100-01-01T00:00:00Z' })
    for (const body of [
      { scopes: null },
      { scopes: [{ permission_types: ['action_execute'] }] },
      { expires_at: null },
      { expires_at: '2101-01-01T00:00:00Z' },
    ]) {
      expect((await ask('modifier', 'PUT', `/${limited.id}`, body)).status).toBe(403)
    }
    const same = { scopes: [webhookScope], expires_at: '2100-01-01 00:00:00+00:00', enabled: false, user: 'root' }
    expect((await ask('modifier', 'PUT', `/${limited.id}`, same)).status).toBe(200)
    expect((await ask('modifier', 'PUT', `/${limited.id}`, { enabled: true })).status).toBe(403)
    expect((await ask('modifier', 'PUT', `/${limited.id}`, { user: 'modifier' })).status).toBe(200)
  })
})

describe('keys with scopes', () => {
  test('have no say about keys, whatever they name', async () => {
    isEnabled = false
    const all = ['list', 'view', 'create', 'modify', 'delete', 'all'].map((verb) => `api_key_${verb}`)
    const scoped = await make({ user: 'alice', scopes: [{ permission_types: [...all, 'user_impersonate'] }] })
    const other = await make({ user: 'alice' })
    const as = `key:${scoped.key}`
    expect((await ask(as, 'GET', '')).status).toBe(200)
    expect((await ask(as, 'GET', `/${other.id}?show_secrets=1`)).body.key_hash).toBe('********')
    for (const id of [scoped.id, other.id, scoped.key]) {
      for (const [method, body] of [['PUT', { scopes: null }], ['PUT', {}], ['DELETE']] as const) {
        const { status, body: answer } = await ask(as, method, `/${id}`, body)
        expect([status, answer.faultstring]).toEqual([403, expect.stringContaining('An API key with scopes cannot')])
      }
    }
    expect((await ask(as, 'POST', '', {})).status).toBe(403)
    expect((await ask(`key:${other.key}`, 'POST', '', {})).status).toBe(201)
  })

  test('do no more than their scopes, though their user may', async () => {
    isEnabled = false
    const { key } = await make({ user: 'alice', scopes: [webhookScope] })
    const { status, body } = await ask(`key:${key}`, 'GET', '')
    expect([status, body.faultstring]).toEqual([
      403,
      'The scopes of the API key of user "alice" lack permission "api_key_list"',
    ])
  })

  test.for<[unknown, string]>([
    [[], 'scopes'],
    [{}, 'scopes'],
    [[{}], "'permission_types' is a required property"],
    [[{ permission_types: [] }], 'permission_types'],
    [[{ permission_types: ['action_execute'], more: 1 }], "'more' was unexpected"],
    [[{ permission_types: ['action_exec'] }], 'scopes[0]: Invalid permission type "action_exec"'],
    [[{ permission_types: ['toString'] }], 'scopes[0]: Invalid permission type "toString"'],
    [[webhookScope, { permission_types: ['constructor'] }], 'scopes[1]: Invalid permission type "constructor"'],
    [
      [{ permission_types: ['action_execute'], resource_uid: 'webhook:sample' }],
      'scopes[0]: Invalid permission type "action_execute" for resource type "webhook"',
    ],
    [
      [{ permission_types: ['policy_view'], resource_uid: 'pack:core' }],
      'scopes[0]: Invalid permission type "policy_view" for resource type "pack"',
    ],
    [
      [{ permission_types: ['action_execute'], resource_uid: 'core.local' }],
      'scopes[0]: Invalid resource "core.local"',
    ],
    [[{ permission_types: ['action_execute'], resource_uid: 'action:' }], 'scopes[0]: Invalid resource "action:"'],
    [[{ permission_types: ['action_execute'], resource_uid: '__proto__:x' }], 'scopes[0]: Invalid resource'],
    [[{ permission_types: ['action_execute'], resource_uid: '' }], 'resource_uid'],
    [[{ permission_types: ['action_execute'], resource_uid: null }], 'resource_uid'],
  ])('wrong scopes are refused: %j', async ([scopes, message]) => {
    const { id } = await make()
    for (const [method, path] of [
      ['POST', ''],
      ['PUT', `/${id}`],
    ] as const) {
      const { status, body } = await ask('root', method, path, { scopes })
      expect(status).toBe(400)
      expect(body.faultstring).toContain(message)
    }
  })

  test('a hundred scopes are enough', async () => {
    const scopes = Array.from({ length: 101 }, () => webhookScope)
    expect((await ask('root', 'POST', '', { scopes })).status).toBe(400)
    expect((await ask('root', 'POST', '', { scopes: scopes.slice(1) })).status).toBe(201)
  })

  test.for([
    [webhookScope],
    [{ permission_types: ['action_execute'] }],
    [{ permission_types: ['action_execute', 'action_view', 'rule_all', 'pack_view'], resource_uid: 'pack:core' }],
    [{ permission_types: ['execution_list', 'stream_view'] }, webhookScope],
  ])('right ones are kept: %j', async (scopes) => {
    const { id, scopes: made } = await make({ scopes })
    expect(made).toEqual(scopes)
    expect((await ask('root', 'GET', `/${id}`)).body.scopes).toEqual(scopes)
  })
})

describe('verification', () => {
  test('finds a key by the digest alone, which is the one of installations that people come from', async () => {
    const value = 'MGQ0YjU3ZjM0Y2E2YmQ2Y2Y5YzVkMTIzNDU2Nzg5MGFiY2RlZg'
    const digest = createHash('sha512').update('saltnpeper').update(value).digest('hex')
    const made = await ask('root', 'POST', '', { key_hash: digest.toUpperCase(), user: 'alice' })
    expect([made.status, made.body.key]).toEqual([201, null])
    expect(keys.check(value)).toMatchObject({ id: made.body.id, user: 'alice', obstacle: undefined })
    expect(() => keys.check(`${value}x`)).toThrow('key_hash=')
    expect(() => keys.check(digest)).toThrow('key_hash=')
  })

  test('a change, a deletion and a disabled user count at once, though a check is remembered', async () => {
    const { id, key } = await make({ user: 'alice' })
    const principal: Principal = { user: 'alice', isAdmin: false, method: 'api_key', apiKeyId: id }
    expect(keys.check(key).obstacle).toBeUndefined()
    await ask('root', 'PUT', `/${id}`, { enabled: false })
    expect(keys.check(key).obstacle).toBe('disabled')
    expect(keys.isValid(principal)).toBe(false)
    await ask('root', 'PUT', `/${id}`, { enabled: true })
    expect(keys.check(key).obstacle).toBeUndefined()
    expect(keys.isValid(principal)).toBe(true)

    for (const [disabled, obstacle] of [
      [1, 'user_disabled'],
      [0, undefined],
    ] as const) {
      const query = database.build.updateTable('users').set({ is_disabled: disabled }).where('name', '=', 'alice')
      await database.write({
        steps: [{ query, expect: 1 }],
        facts: [{ name: 'user.changed', payload: { name: 'alice' } }],
      })
      expect(keys.check(key).obstacle).toBe(obstacle)
      expect(keys.isValid(principal)).toBe(obstacle === undefined)
    }

    await ask('root', 'PUT', `/${id}`, { scopes: [webhookScope] })
    const { scopes } = keys.check(key)
    expect(scopes).toEqual([webhookScope])
    expect(keys.isValid(principal)).toBe(false)
    expect(scopes !== undefined && keys.isValid({ ...principal, scopes })).toBe(true)

    await ask('root', 'PUT', `/${id}`, { user: 'bob' })
    expect(keys.check(key).user).toBe('bob')
    expect(scopes !== undefined && keys.isValid({ ...principal, scopes })).toBe(false)

    await ask('root', 'DELETE', `/${id}`)
    expect(() => keys.check(key)).toThrow('not found')
  })

  test('the scopes of a key are one frozen object for all its requests', async () => {
    const { key } = await make({ scopes: [webhookScope] })
    const { scopes } = keys.check(key)
    expect(Object.isFrozen(scopes)).toBe(true)
    expect(keys.check(key).scopes).toBe(scopes)
  })

  test('the expiry is looked at with each request', async () => {
    const { key } = await make({ expires_at: '2100-01-01T00:00:00Z' })
    expect(keys.check(key).obstacle).toBeUndefined()
    ahead = (Date.parse('2100-01-01T00:00:00Z') - Date.now()) * 1000 - 60_000_000
    expect(keys.check(key).obstacle).toBeUndefined()
    ahead += 120_000_000
    expect(keys.check(key).obstacle).toBe('expired')
  })

  test('timingSafeEqual: whatever is sent as a key is merely unknown', async () => {
    const { key } = await make()
    const values = [
      ...Array.from({ length: key.length }, (_, length) => key.slice(0, length)),
      ...Array.from({ length: key.length }, (_, at) => `${key.slice(0, at)}~${key.slice(at + 1)}`),
      `${key}x`,
      ` ${key}`,
      key.toUpperCase(),
      'x'.repeat(1024),
      'x'.repeat(1025),
      'x'.repeat(100_000),
      '\0',
      '\ud800',
      'ключ',
      "' or 1=1 --",
    ]
    for (const value of values) {
      expect(() => keys.check(value)).toThrow(
        expect.objectContaining({ code: 'API_KEY_UNKNOWN', kind: 'unauthenticated' }),
      )
    }
    expect(keys.check(key).obstacle).toBeUndefined()
  })
})
