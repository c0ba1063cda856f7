/** `Idempotency-Key` on changes of the API: carried out once, answered again, across restarts and lost answers. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { Answer } from '../helpers/server.ts'
import { countExecutions, rowsOf, type ErrorAnswer } from './support.ts'

type Body = Record<string, unknown> & ErrorAnswer & { id: string }

const folder = makeFolder()
const settings = { 'auth.enable': 'True', 'actionrunner.shutdown_grace_seconds': '0' }
let server: InProcessApp
let admin: Record<string, string>
let other: Record<string, string>

async function start(more: Record<string, string> = {}): Promise<void> {
  mkdirSync(join(folder.path, 'notifications'), { recursive: true })
  const destination = 'name: dead\nchannel: webhook\nwebhook_url: http://127.0.0.1:1/\n'
  writeFileSync(join(folder.path, 'notifications', 'dead.yaml'), destination)
  server = await createTestApp({ basePath: folder.path, settings: { ...settings, ...more } })
  admin = await signIn(server, 'admin', firstPassword(folder.path))
}

beforeAll(async () => {
  await start()
  const key = await server.call<{ key: string }>('POST', '/v1/apikeys', { user: 'other' }, admin)
  other = { 'Svc-Api-Key': key.body.key }
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

let made = 0
const fresh = (): string => `name${++made}`

const keyed = (
  key: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = admin,
): Promise<Answer<Body>> => server.call<Body>(method, path, body, { ...headers, 'Idempotency-Key': key })

const noop = { action: 'core.noop' }
const isReplay = ({ headers }: Answer<unknown>): boolean => headers.get('idempotent-replayed') === 'true'

function change(sql: string, ...values: unknown[]): void {
  const database = new Sqlite(join(server.basePath, 'svc.db'))
  try {
    database.prepare(sql).run(...values)
  } finally {
    database.close()
  }
}

/** As if the server had been killed between the change and its answer. */
const loseAnswers = (): void => change('update idempotent_requests set status = null, answer = null')
const rows = (): Record<string, unknown>[] => rowsOf(server, 'select * from idempotent_requests')

async function makeRule(): Promise<Body> {
  const name = fresh()
  const answer = await server.call<Body>('POST', '/v1/rules', ruleOf(name), admin)
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}

const ruleOf = (name: string, cmd = 'true'): Record<string, unknown> => ({
  name,
  enabled: false,
  trigger: { type: 'core.svc.webhook', parameters: { url: name } },
  action: { ref: 'core.local', parameters: { cmd } },
})

describe('a key names one request of one user', () => {
  test('the same request gets the first answer', async () => {
    const before = countExecutions(server)
    const first = await keyed('same', 'POST', '/v1/executions', noop)
    const again = await keyed('same', 'POST', '/v1/executions', noop)
    expect([first.status, isReplay(first), again.status, isReplay(again)]).toEqual([201, false, 201, true])
    expect(again.text).toBe(first.text)
    expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(countExecutions(server) - before).toBe(1)
  })

  test.for([
    ['another body', 'POST', '/v1/executions', { ...noop, context: {} }, {}],
    ['a body that means the same', 'POST', '/v1/executions', '{ "action": "core.noop" }', {}],
    ['another query', 'POST', '/v1/executions?show_secrets=true', noop, {}],
    ['another path', 'POST', '/v1/rules', ruleOf('never'), {}],
    ['another method', 'DELETE', '/v1/rules/default.never', undefined, {}],
    ['another Svc-Context', 'POST', '/v1/executions', noop, { 'Svc-Context': '{"a":1}' }],
  ] as const)('%s is refused', async ([what, method, path, body, headers]) => {
    await keyed('one', 'POST', '/v1/executions', noop)
    const before = countExecutions(server)
    const refused = await keyed('one', method, path, body, { ...admin, ...headers })
    expect([refused.status, refused.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED'])
    const named = { path: 'method or path', method: 'method or path' }
    const [, word = ''] = /^another (?:Svc-)?(\w+)/.exec(what) ?? ['', 'body']
    expect(refused.body.faultstring).toContain((named as Record<string, string>)[word] ?? word)
    expect(countExecutions(server)).toBe(before)
  })

  test('whole numbers that differ beyond 2^53 are different bodies', async () => {
    const of = (n: string): string => `{"action": "core.noop", "context": {"n": ${n}}}`
    const first = await keyed('number', 'POST', '/v1/executions', of('9007199254740993'))
    expect([first.status, first.text.includes('9007199254740993')]).toEqual([201, true])
    expect((await keyed('number', 'POST', '/v1/executions', of('9007199254740992'))).status).toBe(409)
    expect((await keyed('number', 'POST', '/v1/executions', of('9007199254740993'))).text).toBe(first.text)
  })

  test('another user has keys of their own', async () => {
    const path = '/v1/apikeys'
    const first = await keyed('shared', 'POST', path, { metadata: { of: 'admin' } })
    const theirs = await keyed('shared', 'POST', path, { metadata: { of: 'other' } }, other)
    expect([first.status, theirs.status, isReplay(theirs)]).toEqual([201, 201, false])
    expect(theirs.body['user']).toBe('other')
  })

  test('a new token of the user is the same caller; a key with scopes is another', async () => {
    const first = await keyed('token', 'POST', '/v1/executions', noop)
    const later = await signIn(server, 'admin', firstPassword(folder.path))
    expect((await keyed('token', 'POST', '/v1/executions', noop, later)).body.id).toBe(first.body.id)
    const scopes = [{ permission_types: ['action_execute'], resource_uid: 'action:core:noop' }]
    const key = await server.call<{ key: string }>('POST', '/v1/apikeys', { scopes }, admin)
    const scoped = await keyed('token', 'POST', '/v1/executions', noop, { 'Svc-Api-Key': key.body.key })
    expect([scoped.status, isReplay(scoped)]).toEqual([201, false])
  })

  test('many at once cause one', async () => {
    const before = countExecutions(server)
    const answers = await Promise.all(Array.from({ length: 30 }, () => keyed('many', 'POST', '/v1/executions', noop)))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(1)
    expect(countExecutions(server) - before).toBe(1)
  })

  test('a refused request can be corrected', async () => {
    expect((await keyed('wrong', 'POST', '/v1/executions', { action: 'core.absent' })).status).toBe(400)
    expect((await keyed('wrong', 'POST', '/v1/executions', noop)).status).toBe(201)
  })

  test('a refusal that leaves a record is the answer', async () => {
    const before = countExecutions(server)
    const body = { action: 'core.local', parameters: { cmd: '{{ absent.attribute }}' } }
    const first = await keyed('failed', 'POST', '/v1/executions', body)
    const again = await keyed('failed', 'POST', '/v1/executions', body)
    expect([first.status, first.body.code, isReplay(first)]).toEqual([400, 'TEMPLATE_FAILED', false])
    expect([again.status, again.text, isReplay(again)]).toEqual([400, first.text, true])
    expect(countExecutions(server) - before).toBe(1)
  })
})

describe('keys', () => {
  test.for(['', ' ', '\t'])('%j is no key', async (key) => {
    const before = rows().length
    const answers = [await keyed(key, 'POST', '/v1/executions', noop), await keyed(key, 'POST', '/v1/executions', noop)]
    expect(answers.map((answer) => [answer.status, isReplay(answer)])).toEqual(Array(2).fill([201, false]))
    expect(rows().length).toBe(before)
  })

  test('a long one is refused, not ignored', async () => {
    const before = countExecutions(server)
    const refused = await keyed('k'.repeat(256), 'POST', '/v1/executions', noop)
    expect([refused.status, refused.body.code]).toEqual([400, 'HEADER_INVALID'])
    expect(countExecutions(server)).toBe(before)
    expect((await keyed('k'.repeat(255), 'POST', '/v1/executions', noop)).status).toBe(201)
  })

  test.for(['"quoted"', 'a, b', `'; drop table users; --`, 'Ã©ÿ', '__proto__', '{{ 7 * 7 }}'])(
    '%s is any text',
    async (key) => {
      const first = await keyed(key, 'POST', '/v1/executions', noop)
      const again = await keyed(key, 'POST', '/v1/executions', noop)
      expect([first.status, again.text, isReplay(again)]).toEqual([201, first.text, true])
    },
  )

  test('neither the key nor an answer is stored in plain text', async () => {
    const first = await keyed('canary-of-the-key', 'POST', '/v1/apikeys', { metadata: { a: 'canary-of-answer' } })
    const again = await keyed('canary-of-the-key', 'POST', '/v1/apikeys', { metadata: { a: 'canary-of-answer' } })
    expect([first.status, again.text]).toEqual([201, first.text])
    const stored = JSON.stringify(rows())
    for (const text of ['canary', String(first.body['key'])]) expect(stored).not.toContain(text)
    await server.stop()
    expect(readFileSync(join(folder.path, 'svc.db')).includes(String(first.body['key']))).toBe(false)
    await start()
  })

  test('requests that only ask ignore it', async () => {
    const before = rows().length
    const body = { token: 'x' }
    for (let i = 0; i < 2; i++) {
      const answer = await server.call('POST', '/auth/v1/tokens/validate', body, { ...admin, 'Idempotency-Key': 'v' })
      expect([answer.status, isReplay(answer)]).toEqual([200, false])
    }
    expect(rows().length).toBe(before)
  })
})

describe('time', () => {
  test('a restart changes nothing', async () => {
    const first = await keyed('restart', 'POST', '/v1/executions', noop)
    await server.stop()
    await start()
    const again = await keyed('restart', 'POST', '/v1/executions', noop)
    expect([again.status, again.text, isReplay(again)]).toEqual([201, first.text, true])
    expect((await keyed('restart', 'POST', '/v1/executions', { ...noop, delay: 1 })).status).toBe(409)
  })

  test('after 24 hours the key is forgotten', async () => {
    const first = await keyed('old', 'POST', '/v1/executions', noop)
    const age = (hours: number): void =>
      change(
        'update idempotent_requests set created_at = ?',
        new Date(Date.now() - hours * 3_600_000).toISOString().replace('Z', '000Z'),
      )
    age(23.9)
    expect((await keyed('old', 'POST', '/v1/executions', noop)).body.id).toBe(first.body.id)
    age(24.1)
    const later = await keyed('old', 'POST', '/v1/executions', { ...noop, context: { b: 1 } })
    expect([later.status, isReplay(later), later.body.id === first.body.id]).toEqual([201, false, false])
    expect(await keyed('old', 'POST', '/v1/executions', { ...noop, context: { b: 1 } })).toMatchObject({
      text: later.text,
    })
    // Each new one deletes some that have expired.
    const before = rows().length
    for (let i = 0; i < 3; i++) await keyed(fresh(), 'POST', '/v1/executions', noop)
    expect(rows().length).toBeLessThan(Math.max(before, 4))
  })

  test('the keys of a deleted user go with the user', async () => {
    const name = fresh()
    await server.call('POST', '/v1/users', { name, password: 'a long password' }, admin)
    const theirs = await signIn(server, name, 'a long password')
    await keyed(
      'mine',
      'PUT',
      `/v1/users/${name}`,
      { password: 'another one', current_password: 'a long password' },
      theirs,
    )
    expect(rowsOf(server, 'select 1 from idempotent_requests where user = ?', name)).toHaveLength(1)
    expect((await keyed(fresh(), 'DELETE', `/v1/users/${name}`)).status).toBe(204)
    expect(rowsOf(server, 'select 1 from idempotent_requests where user = ?', name)).toEqual([])
  })
})

/** A change whose answer was lost in a crash: no record twice, and the answer is the record as it is now. */
describe('a lost answer', () => {
  interface Case {
    name: string
    method?: string
    prepare?: () => Promise<string>
    path: (prepared: string) => string
    body?: (name: string) => unknown
    /** Counts what must not be there twice. */
    count?: string
    /** Attributes that differ between the first answer and the next. */
    except?: readonly string[]
  }
  const changing = [
    'status',
    'log',
    'end_timestamp',
    'elapsed_seconds',
    'liveaction',
    'result',
    'result_size',
    'children',
  ]
  const create = async (path: string, body: unknown): Promise<string> => {
    const answer = await server.call<Body>('POST', path, body, admin)
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.body.id
  }
  const actionOf = (name: string): object => ({
    name,
    pack: 'default',
    runner_type: 'noop',
    enabled: true,
    entry_point: '',
  })
  const policyOf = (name: string): object => ({
    name,
    pack: 'default',
    resource_ref: 'core.noop',
    policy_type: 'action.concurrency',
    parameters: { threshold: 1000, action: 'delay' },
  })
  const typeOf = (name: string): object => ({ name, pack: 'default', payload_schema: {}, parameters_schema: {} })
  const triggerOf = (name: string): object => ({
    name,
    pack: 'default',
    type: 'core.svc.webhook',
    parameters: { url: name },
  })
  const aliasOf = (name: string): object => ({
    name,
    pack: 'default',
    action_ref: 'core.noop',
    formats: [`say ${name}`],
  })
  const said = { user: 'ann', source_channel: 'ops' }
  const later = { ...noop, delay: 3_600_000 }
  /** A `PUT` of what was created just before. */
  const changeOf = (
    what: string,
    path: string,
    of: (name: string) => object,
    body: (name: string) => unknown,
    table: string,
  ): Case => ({
    name: `change of ${what}`,
    method: 'PUT',
    prepare: () => create(path, of(fresh())),
    path: (id) => `${path}/${id}`,
    body,
    count: table,
  })
  let command = { name: '', text: '' }
  const cases: Case[] = [
    { name: 'execution', path: () => '/v1/executions', body: () => noop, count: 'executions', except: changing },
    {
      name: 're-run',
      prepare: () => create('/v1/executions', noop),
      path: (id) => `/v1/executions/${id}/re_run`,
      body: () => ({}),
      count: 'executions',
      except: changing,
    },
    { name: 'alias', path: () => '/v1/actionalias', body: aliasOf, count: 'action_aliases' },
    changeOf(
      'an alias',
      '/v1/actionalias',
      aliasOf,
      (name) => ({ ...aliasOf(name), enabled: false }),
      'action_aliases',
    ),
    {
      name: 'command of a chat',
      async prepare() {
        const name = fresh()
        await create('/v1/actionalias', aliasOf(name))
        command = { name, text: `say ${name}` }
        return name
      },
      path: () => '/v1/aliasexecution',
      body: () => ({ ...said, name: command.name, format: command.text, command: command.text }),
      count: 'executions',
      except: ['execution'],
    },
    {
      name: 'command of a chat that finds its alias',
      async prepare() {
        const name = fresh()
        await create('/v1/actionalias', aliasOf(name))
        command = { name, text: `say ${name}` }
        return name
      },
      path: () => '/v1/aliasexecution/match_and_execute',
      body: () => ({ ...said, command: command.text }),
      count: 'executions',
      except: ['results'],
    },
    {
      name: 'copy of an action',
      path: () => '/v1/actions/core.noop/clone',
      body: (name) => ({ dest_pack: 'default', dest_action: name }),
      count: 'actions',
    },
    {
      name: 'change of a sensor',
      method: 'PUT',
      async prepare() {
        const pack = join(server.basePath, 'packs/idempotent')
        mkdirSync(join(pack, 'sensors'), { recursive: true })
        writeFileSync(
          join(pack, 'pack.yaml'),
          'name: idempotent\nref: idempotent\ndescription: x\nversion: 1.0.0\nauthor: x\n',
        )
        writeFileSync(
          join(pack, 'sensors/one.yaml'),
          'class_name: Sensor\nentry_point: one.py\nenabled: false\ntrigger_types: []\n',
        )
        writeFileSync(join(pack, 'sensors/one.py'), '')
        const registered = await server.call('POST', '/v1/packs/register', { packs: ['idempotent'] }, admin)
        if (registered.status !== 200) throw new Error(registered.text)
        return ''
      },
      path: () => '/v1/sensortypes/idempotent.Sensor',
      body: () => ({ enabled: false }),
    },
    {
      name: 'pack installation',
      path: () => '/v1/packs/install',
      body: () => ({ packs: ['file:///nothing-here'] }),
      count: 'executions',
    },
    {
      name: 'pack removal',
      path: () => '/v1/packs/uninstall',
      body: () => ({ packs: ['absent'] }),
      count: 'executions',
    },
    { name: 'rule', path: () => '/v1/rules', body: ruleOf, count: 'rules' },
    {
      name: 'change of a rule',
      method: 'PUT',
      prepare: async () => String((await makeRule())['ref']),
      path: (ref) => `/v1/rules/${ref}`,
      // Its old reference leads nowhere afterwards.
      body: (name) => ruleOf(`${name}-renamed`, 'false'),
      count: 'rules',
    },
    {
      name: 'deletion of a rule',
      method: 'DELETE',
      prepare: async () => String((await makeRule())['ref']),
      path: (ref) => `/v1/rules/${ref}`,
    },
    {
      name: 'action',
      path: () => '/v1/actions',
      body: actionOf,
      count: 'actions',
    },
    {
      name: 'policy',
      path: () => '/v1/policies',
      body: policyOf,
      count: 'policies',
    },
    {
      name: 'trigger type',
      path: () => '/v1/triggertypes',
      body: typeOf,
      count: 'trigger_types',
    },
    {
      name: 'trigger',
      path: () => '/v1/triggers',
      body: triggerOf,
      count: 'triggers',
    },
    {
      name: 'trigger instance',
      async prepare() {
        const rule = await makeRule()
        const hook = await server.call('POST', `/v1/webhooks/${String(rule['name'])}`, { a: 1 }, admin)
        return hook.headers.get('svc-trigger-instance-id') ?? ''
      },
      path: (id) => `/v1/triggerinstances/${id}/re_emit`,
      count: 'trigger_instances',
    },
    { name: 'test of a destination', path: () => '/v1/notifications/destinations/dead/test', count: 'notifications' },
    {
      name: 'replay of a notification',
      async prepare() {
        const tested = await server.call<Body>('POST', '/v1/notifications/destinations/dead/test', undefined, admin)
        return tested.body.id
      },
      path: (id) => `/v1/notifications/${id}/replay`,
      // It is being sent.
      except: ['attempts', 'status', 'due_at', 'error'],
    },
    { name: 'user', path: () => '/v1/users', body: (name) => ({ name, password: 'a long password' }), count: 'users' },
    {
      name: 'API key by its digest',
      path: () => '/v1/apikeys',
      body: () => ({ key_hash: String(++made).padStart(128, '0') }),
      count: 'api_keys',
    },
    {
      name: 'datastore item',
      method: 'PUT',
      path: () => '/v1/keys/lost',
      body: (name) => ({ name: 'lost', value: name }),
      count: 'key_value_pairs',
    },
    {
      name: 'configuration',
      method: 'PUT',
      path: () => '/v1/configs/core',
      body: () => ({}),
    },
    {
      name: 'cancelation',
      method: 'DELETE',
      prepare: () => create('/v1/executions', later),
      path: (id) => `/v1/executions/${id}`,
    },
    changeOf(
      'an execution',
      '/v1/executions',
      () => later,
      () => ({ status: 'canceled' }),
      'executions',
    ),
    changeOf('an action', '/v1/actions', actionOf, actionOf, 'actions'),
    changeOf('a policy', '/v1/policies', policyOf, policyOf, 'policies'),
    changeOf('a trigger type', '/v1/triggertypes', typeOf, typeOf, 'trigger_types'),
    changeOf('a trigger', '/v1/triggers', triggerOf, triggerOf, 'triggers'),
    changeOf(
      'an API key',
      '/v1/apikeys',
      () => ({}),
      () => ({ enabled: false }),
      'api_keys',
    ),
    {
      name: 'change of a user',
      method: 'PUT',
      async prepare() {
        const name = fresh()
        await create('/v1/users', { name })
        return name
      },
      path: (name) => `/v1/users/${name}`,
      body: () => ({ nicknames: { chat: 'nick' }, password: 'a long password' }),
    },
    {
      name: 'change of a runner type',
      method: 'PUT',
      path: () => '/v1/runnertypes/noop',
      body: () => ({ enabled: true }),
    },
    {
      name: 'response to an inquiry',
      method: 'PUT',
      async prepare() {
        const { body } = await server.call<Body>('POST', '/v1/executions', { action: 'core.ask' }, admin)
        await expect
          .poll(async () => (await server.call<Body>('GET', `/v1/inquiries/${body.id}`, undefined, admin)).status)
          .toBe(200)
        return body.id
      },
      path: (id) => `/v1/inquiries/${id}`,
      body: () => ({ response: { continue: true } }),
    },
  ]

  test.for(cases)('$name', async ({ method = 'POST', prepare, path, body, count, except = [] }) => {
    const number = (): number =>
      count === undefined ? 0 : (rowsOf<{ n: number }>(server, `select count(*) as n from ${count}`)[0]?.n ?? -1)
    const prepared = (await prepare?.()) ?? ''
    const key = fresh()
    const sent = body?.(key)
    const first = await keyed(key, method, path(prepared), sent)
    expect(first).toSatisfy(({ status }: Answer<Body>) => status < 300)
    const before = number()
    loseAnswers()
    const again = await keyed(key, method, path(prepared), sent)
    expect([again.status, isReplay(again)]).toEqual([first.status, true])
    const compared = (answer: Answer<Body>): unknown =>
      typeof answer.body === 'object'
        ? Object.fromEntries(Object.entries(answer.body).filter(([name]) => !except.includes(name)))
        : answer.body
    expect(compared(again)).toEqual(compared(first))
    expect(number()).toBe(before)
    // The answer is stored now.
    expect((await keyed(key, method, path(prepared), sent)).text).toBe(again.text)
    expect((await keyed(key, 'POST', '/v1/executions', { ...noop, context: { other: true } })).status).toBe(409)
    expect(number()).toBe(before)
  })

  test('there is a case for each change that must not run twice', async () => {
    const { body } = await server.call<Record<'paths', Record<string, object>>>('GET', '/v1/openapi.json')
    const others = Object.entries(body.paths).flatMap(([path, methods]) => {
      const pattern = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
      return Object.entries(methods).flatMap(([method, operation]) => {
        const text = JSON.stringify(operation)
        // A deletion has one answer, whatever it deletes.
        if (!text.includes('"Idempotency-Key"') || text.includes('"204"')) return []
        const isCase = cases.some(
          (each) => (each.method ?? 'POST').toLowerCase() === method && pattern.test(each.path('x')),
        )
        return isCase ? [] : [`${method} ${path}`]
      })
    })
    expect(others.toSorted()).toEqual([
      'delete /auth/v1/tokens',
      'post /v1/backups',
      // A record that is here already is left alone.
      'post /v1/executions/import',
      'post /v1/executions/output/import',
      'post /v1/packs/register',
      'post /v1/purge/{kind}',
      'post /v1/rbac/definitions/apply',
      'post /v1/ruleenforcements/import',
      'post /v1/traces/import',
      'post /v1/triggerinstances/import',
      // Has a store of its own.
      'post /v1/webhooks/{hook}',
    ])
  })

  test('a new API key is named, because its value is gone', async () => {
    const first = await keyed('lost-key', 'POST', '/v1/apikeys', {})
    const before = rowsOf(server, 'select 1 from api_keys').length
    loseAnswers()
    const again = await keyed('lost-key', 'POST', '/v1/apikeys', {})
    expect([again.status, again.body.code, again.body['conflict-id']]).toEqual([
      409,
      'IDEMPOTENCY_ANSWER_LOST',
      first.body.id,
    ])
    expect(rowsOf(server, 'select 1 from api_keys').length).toBe(before)
  })

  test('what was deleted since is named', async () => {
    const name = fresh()
    const first = await keyed(name, 'POST', '/v1/rules', ruleOf(name))
    await server.call('DELETE', `/v1/rules/default.${name}`, undefined, admin)
    expect((await keyed(name, 'POST', '/v1/rules', ruleOf(name))).text).toBe(first.text)
    loseAnswers()
    const again = await keyed(name, 'POST', '/v1/rules', ruleOf(name))
    expect([again.status, again.body.code]).toEqual([409, 'IDEMPOTENCY_ANSWER_LOST'])
    expect((await server.call('GET', `/v1/rules/default.${name}`, undefined, admin)).status).toBe(404)
  })

  test('a user without a password yet gets it', async () => {
    const name = fresh()
    const body = { name, password: 'a long password' }
    await keyed(name, 'POST', '/v1/users', body)
    loseAnswers()
    // As if the server had been killed before it wrote the file.
    const file = join(folder.path, 'htpasswd')
    writeFileSync(file, readFileSync(file, 'utf8').replace(new RegExp(`^${name}:.*\n`, 'm'), ''))
    const again = await keyed(name, 'POST', '/v1/users', body)
    expect([again.status, again.body['has_password']]).toEqual([201, true])
    await signIn(server, name, 'a long password')
  })
})

describe('sizes', () => {
  test('large bodies are compared to the last byte', async () => {
    const of = (end: string): unknown => ({
      action: 'core.local',
      parameters: { cmd: `true # ${'x'.repeat(600_000)}${end}` },
    })
    const first = await keyed('large', 'POST', '/v1/executions', of('a'))
    expect(first.status).toBe(201)
    expect((await keyed('large', 'POST', '/v1/executions', of('a'))).body.id).toBe(first.body.id)
    expect((await keyed('large', 'POST', '/v1/executions', of('b'))).status).toBe(409)
  })

  test('an answer above 1 MiB is made again', async () => {
    const body = { name: 'long', value: 'x'.repeat(1_048_550) }
    const first = await keyed('long', 'PUT', '/v1/keys/long', body)
    expect(first.status).toBe(200)
    expect(rowsOf(server, 'select 1 from idempotent_requests where answer is null and status = 200')).toHaveLength(1)
    const again = await keyed('long', 'PUT', '/v1/keys/long', body)
    expect([again.status, again.text === first.text, isReplay(again)]).toEqual([200, true, true])
  })
})

test('without encryption no answer is stored, and the records are answered', async () => {
  await server.stop()
  await start({ 'keyvalue.enable_encryption': 'False' })
  try {
    const name = fresh()
    const first = await keyed(name, 'POST', '/v1/rules', ruleOf(name))
    expect(rowsOf(server, 'select answer from idempotent_requests order by number desc limit 1')).toEqual([
      { answer: null },
    ])
    const again = await keyed(name, 'POST', '/v1/rules', ruleOf(name))
    expect([again.status, again.text, isReplay(again)]).toEqual([201, first.text, true])
  } finally {
    await server.stop()
    await start()
  }
})
