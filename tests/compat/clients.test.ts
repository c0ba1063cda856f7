/** What clients of StackStorm need, whatever names they use (docs/compatibility.md). */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, runToEnd, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'

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
      const both = await server.call<Json[]>('GET', `/v1/apikeys?id=${second},${first}`, undefined, headers)
      expect(both.body.map(({ id }) => id)).toEqual([first, second])
      const none = await server.call<Json[]>('GET', '/v1/apikeys?id=0123456789abcdef01234567', undefined, headers)
      expect(none.body).toEqual([])
    })
  })
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
