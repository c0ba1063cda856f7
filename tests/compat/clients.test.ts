/** What clients of StackStorm need, whatever names they use (docs/compatibility.md). */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, runToEnd, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

type Json = Record<string, unknown>

const folder = makeFolder()
let app: TestApp
beforeAll(async () => {
  for (const name of ['apple', 'berry']) {
    const pack = join(folder.path, 'packs', name)
    mkdirSync(pack, { recursive: true })
    writeFileSync(
      join(pack, 'pack.yaml'),
      `name: ${name}\ndescription: A fruit.\nversion: 1.0.0\nauthor: us\nemail: us@x.org\n`,
    )
    writeFileSync(join(pack, 'config.schema.yaml'), 'color: {type: string}\n')
    mkdirSync(join(pack, 'sensors'))
    writeFileSync(
      join(pack, 'sensors', 'ripe.yaml'),
      `class_name: Ripe\nentry_point: ripe.py\ndescription: Looks.\nenabled: false\npoll_interval: 30\ntrigger_types: [{name: ripe, description: It is.}]\n`,
    )
    writeFileSync(join(pack, 'sensors', 'ripe.py'), 'class Ripe:\n    pass\n')
    mkdirSync(join(folder.path, 'configs'), { recursive: true })
    writeFileSync(join(folder.path, 'configs', `${name}.yaml`), 'color: red\n')
  }
  const settings = { 'auth.enable': 'False', 'api.allow_origin': 'http://page.example' }
  app = await createTestApp({ basePath: folder.path, settings })
  await app.call('POST', '/v1/packs/register', { packs: ['apple', 'berry'] })
  await app.call('POST', '/v1/apikeys', { metadata: {} })
  for (const name of ['one', 'two']) {
    const rule = { name, pack: 'default', trigger: { type: 'core.svc.webhook', parameters: { url: name } } }
    await app.call('POST', '/v1/rules', { ...rule, action: { ref: 'core.noop' }, enabled: true })
    await app.call('POST', `/v1/webhooks/${name}`, {})
  }
})
afterAll(async () => {
  await app.stop()
  folder.remove()
})

const list = async (path: string): Promise<Json[]> => {
  const answer = await app.call<Json[]>('GET', path)
  if (!Array.isArray(answer.body)) throw new Error(`${path}: ${answer.text}`)
  return answer.body
}

describe('lists by id', () => {
  it.each([
    '/v1/packs',
    '/v1/config_schemas',
    '/v1/configs',
    '/v1/policytypes',
    '/v1/rules',
    '/v1/rules/views',
    '/v1/runnertypes',
    '/v1/ruleenforcements',
    '/v1/ruleenforcements/views',
    '/v1/triggertypes',
  ])('%s', async (path) => {
    const all = await list(path)
    const ids = all.map(({ id }) => String(id))
    expect(ids.length).toBeGreaterThan(1)
    const [first = '', second = ''] = ids
    const one = await app.call<Json[]>('GET', `${path}?id=${second}`)
    expect([one.body.map(({ id }) => id), one.headers.get('x-total-count')]).toEqual([[second], '1'])
    expect((await list(`${path}?id=${first},${second}`)).map(({ id }) => String(id)).toSorted()).toEqual(
      [first, second].toSorted(),
    )
    expect(await list(`${path}?id=0123456789abcdef01234567`)).toEqual([])
    expect(await list(`${path}?id=nonsense`)).toEqual([])
    expect((await app.call('GET', `${path}?id=${'a,'.repeat(101)}`)).status).toBe(400)
    expect(one.headers.get('warning')).toBeNull()
  })

  it('/v1/apikeys', async () => {
    await withAuth(async (server, headers) => {
      const make = async (): Promise<string> =>
        String((await server.call('POST', '/v1/apikeys', {}, headers)).body['id'])
      const [first, second] = [await make(), await make()]
      const found = await server.call<Json[]>('GET', `/v1/apikeys?id=${second}`, undefined, headers)
      expect([found.body.map(({ id }) => id), found.headers.get('x-total-count')]).toEqual([[second], '1'])
      const names = ['created_at', 'enabled', 'id', 'key_hash', 'metadata', 'uid', 'user']
      expect(Object.keys(found.body[0] ?? {}).toSorted()).toEqual(expect.arrayContaining(names))
      const both = await server.call<Json[]>('GET', `/v1/apikeys?id=${second},${first}`, undefined, headers)
      expect(both.body.map(({ id }) => id)).toEqual([first, second])
      const none = await server.call<Json[]>('GET', '/v1/apikeys?id=0123456789abcdef01234567', undefined, headers)
      expect(none.body).toEqual([])
    })
  })
})

/**
 * Attributes that StackStorm's records always have, by the path that answers with them. Of a list, its first record counts.
 * svc has `svc_version` of packs in place of `stackstorm_version`.
 */
const attributes: Record<string, string> = {
  '/v1/actions':
    'description enabled entry_point id name notify output_schema pack parameters ref runner_type tags uid',
  '/v1/actions/views/overview': 'description enabled entry_point id name pack parameters ref runner_type uid',
  '/v1/actionalias':
    'ack action_ref description enabled extra formats id immutable_parameters name pack ref result uid',
  '/v1/actionalias/help': 'available helpstrings',
  '/v1/config_schemas': 'attributes id pack',
  '/v1/configs': 'id pack values',
  '/v1/executions?action=core.echo':
    'action context end_timestamp elapsed_seconds id liveaction log parameters result result_size runner start_timestamp status web_url',
  '/v1/executions?rule=one': 'rule trigger trigger_instance trigger_type',
  '/v1/executions/views/filters': 'action rule runner status trigger trigger_type user',
  '/v1/inquiries': 'id roles route schema ttl users',
  '/v1/keys': 'encrypted id name scope secret uid value',
  '/v1/packs':
    'author contributors dependencies description email files id keywords name path python_versions ref svc_version system uid version',
  '/v1/packs/index': 'index status',
  '/v1/packs/index/health': 'indexes packs',
  '/v1/policies': 'description enabled id name pack parameters policy_type ref resource_ref uid',
  '/v1/policytypes': 'description enabled id module name parameters ref resource_type uid',
  '/v1/rbac/permission_types': 'action api_key execution pack rule sensor_type trace webhook',
  '/v1/rules': 'action context criteria description enabled id name pack ref tags trigger type uid',
  '/v1/rules/views': 'action criteria description enabled id name pack ref tags trigger type uid',
  '/v1/ruleenforcements': 'enforced_at execution_id id rule status trigger_instance_id',
  '/v1/ruleenforcements/views':
    'enforced_at execution execution_id id rule status trigger_instance trigger_instance_id',
  '/v1/ruletypes': 'description enabled id name parameters',
  '/v1/runnertypes': 'description enabled id name runner_module runner_package runner_parameters uid',
  '/v1/sensortypes': 'artifact_uri description enabled entry_point id name pack poll_interval ref trigger_types uid',
  '/v1/service_registry/groups': 'groups',
  '/v1/service_registry/groups/api/members': 'members',
  '/v1/timers': 'description id name pack parameters ref type uid',
  '/v1/traces': 'action_executions id rules start_timestamp trace_tag trigger_instances uid',
  '/v1/triggerinstances': 'id occurrence_time payload status trigger',
  '/v1/triggers': 'description id name pack parameters ref type uid',
  '/v1/triggertypes': 'description id name pack parameters_schema payload_schema ref tags uid',
  '/v1/user': 'authentication rbac username',
  '/v1/webhooks': 'description id name pack parameters ref type uid',
  '/auth/v1/sso': 'enabled',
}

it("records have the attributes of StackStorm's", async () => {
  await app.call('PUT', '/v1/keys/color', { name: 'color', value: 'red' })
  const alias = { name: 'say', pack: 'default', action_ref: 'core.echo', formats: ['say {{ message }}'] }
  await app.call('POST', '/v1/actionalias', alias)
  const parameters = { threshold: 3, action: 'delay' }
  const policy = { name: 'few', pack: 'default', resource_ref: 'core.noop', policy_type: 'action.concurrency' }
  await app.call('POST', '/v1/policies', { ...policy, parameters })
  const trigger = { type: 'core.svc.IntervalTimer', parameters: { unit: 'hours', delta: 9 } }
  await app.call('POST', '/v1/rules', { name: 'tick', pack: 'default', trigger, action: { ref: 'core.noop' } })
  await runToEnd(app, { message: 'x' }, { action: 'core.echo' })
  await runToEndPending()
  await waitFor('the execution of the rule', async () => (await list('/v1/executions?rule=one')).length > 0)

  const missing: string[] = []
  for (const [path, names] of Object.entries(attributes)) {
    const { body } = await app.call<Json | Json[]>('GET', path)
    const record = Array.isArray(body) ? body[0] : body
    if (record === undefined) missing.push(`${path}: no record`)
    missing.push(
      ...names.split(' ').flatMap((name) => (record !== undefined && name in record ? [] : `${path}: ${name}`)),
    )
  }
  expect(missing).toEqual([])
})

describe('sorted lists', () => {
  it.each([
    ['/v1/packs', 'ref'],
    ['/v1/packs', 'name'],
    ['/v1/runnertypes', 'name'],
    ['/v1/configs', 'pack'],
    ['/v1/config_schemas', 'pack'],
    ['/v1/packs', 'id'],
    ['/v1/runnertypes', 'id'],
  ])('%s by %s', async (path, name) => {
    const up = (await list(`${path}?sort=${name}`)).map((record) => String(record[name]))
    const down = (await list(`${path}?sort=-${name}`)).map((record) => String(record[name]))
    expect(up).toEqual(up.toSorted())
    expect(up.length).toBeGreaterThan(1)
    expect(down).toEqual(up.toReversed())
    expect((await list(`${path}?sort=-${name}&limit=1&offset=1`)).map((record) => record[name])).toEqual([down[1]])
  })
})

it('attributes and names of the lists that took none', async () => {
  const [runner = {}] = await list('/v1/runnertypes?name=noop&include_attributes=description')
  expect(Object.keys(runner).toSorted()).toEqual(['description', 'id', 'name'])
  const [without = {}] = await list('/v1/runnertypes?name=noop&exclude_attributes=runner_parameters')
  expect(Object.keys(without)).not.toContain('runner_parameters')
  await runToEndPending()
  const [inquiry = {}] = await list('/v1/inquiries?include_attributes=route')
  expect(Object.keys(inquiry).toSorted()).toEqual(['id', 'route'])
  const [whole = {}] = await list('/v1/inquiries?exclude_attributes=schema')
  expect(Object.keys(whole)).not.toContain('schema')
  expect((await list('/v1/policytypes?name=retry')).map(({ name }) => name)).toEqual(['retry'])
  expect(await list('/v1/policytypes?name=nothing')).toEqual([])
  expect((await list('/v1/config_schemas?name=berry')).map(({ pack }) => pack)).toEqual(['berry'])
  expect(await list('/v1/config_schemas?name=nothing')).toEqual([])
})

async function runToEndPending(): Promise<void> {
  const made = await app.call('POST', '/v1/executions', { action: 'core.ask', parameters: { route: 'x' } })
  for (;;) {
    const { body } = await app.call('GET', `/v1/executions/${String(made.body['id'])}`)
    if (body['status'] === 'pending') return
    if (body['status'] === 'failed') throw new Error(JSON.stringify(body['result']))
  }
}

async function withAuth(use: (server: TestApp, headers: Record<string, string>) => Promise<void>): Promise<void> {
  const server = await createTestApp({ settings: { 'auth.enable': 'True', 'api.allow_origin': 'http://page.example' } })
  try {
    const Authorization = basicAuth('admin', firstPassword(server.basePath))
    const { body } = await call<{ token: string }>(`${server.urls.auth}/tokens`, 'POST', {}, { Authorization })
    await use(server, { 'X-Auth-Token': body.token })
  } finally {
    await server.stop()
  }
}

it('a login on a page sets the cookie, which opens an event stream; foreign pages and programs get none', async () => {
  await withAuth(async (server, headers) => {
    const Authorization = basicAuth('admin', firstPassword(server.basePath))
    const login = async (from: Record<string, string>, body: Json = {}, at = `${server.urls.api}/auth/tokens`) =>
      call<Json>(at, 'POST', body, { Authorization, ...from })
    const own = await login({ Origin: server.urls.api })
    const cookie = own.headers.get('set-cookie') ?? ''
    expect([own.status, cookie]).toEqual([
      201,
      expect.stringMatching(/^auth-token=\S+; HttpOnly; Max-Age=\d+; Path=\/; SameSite=Lax/),
    ])
    const [pair = ''] = cookie.split(';')
    expect(pair).toBe(`auth-token=${String(own.body['token'])}`)
    const stream = await openEvents(`${server.urls.api}/stream/v1/stream`, { Cookie: pair })
    expect(stream.status).toBe(200)
    stream.close()
    expect((await login({ Origin: 'http://page.example' })).headers.get('set-cookie')).toContain('auth-token=')
    expect((await login({})).headers.get('set-cookie')).toBeNull()
    for (const from of [{ Origin: 'http://evil.example' }, { 'Sec-Fetch-Site': 'cross-site' }]) {
      const foreign = await login(from)
      expect([foreign.status, foreign.headers.get('set-cookie')]).toEqual([403, null])
    }
    // A browser must not become somebody else by a token that is made for another user.
    await server.call('POST', '/v1/users', { name: 'robot', password: 'secret robot 1' }, headers)
    const other = await login({ Origin: server.urls.api }, { user: 'robot' })
    expect(other.headers.get('set-cookie')).toBeNull()
  })
})

it('the pack actions answer what clients read', async () => {
  const read = async (action: string, more: Json = {}): Promise<[string, Json]> => {
    const { status, result } = await runToEnd(app, { packs: ['apple'], ...more }, { action })
    expect([action, status, JSON.stringify(result)]).toEqual([action, 'succeeded', expect.any(String)])
    const { result: sentence, output } = result as { result: string; output: Json }
    expect(output).toEqual({
      packs_list: ['apple'],
      message: sentence,
      conflict_list: [],
      warning_list: [],
    })
    return [sentence, output]
  }
  expect((await read('packs.setup_virtualenv'))[0]).toContain('apple')
  const source = join(folder.path, 'packs', 'apple')
  const other = makeFolder()
  cpSync(source, join(other.path, 'apple'), { recursive: true })
  expect((await read('packs.uninstall'))[0]).toContain('apple')
  expect((await read('packs.install', { packs: [`file://${join(other.path, 'apple')}`] }))[0]).toContain('apple')
  other.remove()
})
