/** Contract 01, 1.6 and 1.7: users, their accounts, acting for somebody else, revoking all tokens of a user. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, readFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, type Answer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf, timestampPattern, type ErrorAnswer } from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

interface UserAnswer {
  name: string
  is_service: boolean
  is_disabled: boolean
  nicknames: Record<string, string>
  created_at: string | null
  has_password: boolean | null
}

interface TokenAnswer {
  id: string
  user: string
  token: string
}

type Headers = Record<string, string>

const folder = makeFolder()
const auditFile = join(folder.path, 'audit.log')
let server: TestApp
let adminPassword: string
let admin: Headers
/** May follow streams and make API keys. */
const PEOPLE = ['carol', 'dave', 'erin', 'frank', 'grace', 'held']

beforeAll(async () => {
  for (const name of ['roles', 'assignments']) mkdirSync(join(folder.path, 'rbac', name), { recursive: true })
  const write = (name: string, text: string): void => writeFileSync(join(folder.path, 'rbac', name), text)
  write('assignments/admin.yaml', 'username: admin\nroles: [system_admin]\n')
  write('assignments/boss.yaml', 'username: boss\nroles: [admin]\n')
  write(
    'roles/people.yaml',
    'name: people\npermission_grants:\n  - permission_types: [stream_view, api_key_create, api_key_list]\n' +
      '  - permission_types: [action_all]\n    resource_uid: pack:core\n',
  )
  for (const name of PEOPLE) write(`assignments/${name}.yaml`, `username: ${name}\nroles: [people]\n`)
  server = await createTestApp({
    basePath: folder.path,
    settings: {
      'auth.enable': 'True',
      'rbac.enable': 'True',
      'rbac.backend': 'default',
      'stream.heartbeat': '3600',
      'log.audit_file': auditFile,
      // This file is not about guessing.
      'auth.failures_per_user': '1000',
      'auth.failures_per_address': '1000',
    },
  })
  adminPassword = firstPassword(folder.path)
  admin = await signIn(server, 'admin', adminPassword)
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

const tokens = <T = TokenAnswer & ErrorAnswer>(user: string, password: string, body?: unknown): Promise<Answer<T>> =>
  call<T>(`${server.urls.auth}/tokens`, 'POST', body, { Authorization: basicAuth(user, password) })

const users = <T = UserAnswer & ErrorAnswer>(
  method: string,
  path = '',
  body?: unknown,
  headers = admin,
): Promise<Answer<T>> => server.call<T>(method, `/v1/users${path}`, body, headers)

const whoAmI = (headers: Headers): Promise<Answer<ErrorAnswer & { username: string }>> =>
  server.call<ErrorAnswer & { username: string }>('GET', '/v1/user', undefined, headers)

async function add(name: string, more: Record<string, unknown> = {}): Promise<UserAnswer> {
  const { status, body, text } = await users('POST', '', { name, password: `of ${name}`, ...more })
  if (status !== 201) throw new Error(`${name} cannot be added: ${text}`)
  return body
}

/** Audit lines of an event about somebody. */
const audited = (event: string, about: string): string[] =>
  readFileSync(auditFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"${event}"`) && line.includes(about))

describe('01.6 the record of a user', () => {
  it('is made with an account, and the user logs in at once', async () => {
    const { status, body } = await users('POST', '', {
      name: 'zoë',
      password: 'pass:wörd',
      is_service: true,
      nicknames: { chat: 'zo' },
    })
    expect(status).toBe(201)
    expect(body).toEqual({
      name: 'zoë',
      is_service: true,
      is_disabled: false,
      nicknames: { chat: 'zo' },
      created_at: expect.stringMatching(timestampPattern) as unknown,
      has_password: true,
    })
    expect((await whoAmI(await signIn(server, 'zoë', 'pass:wörd'))).body.username).toBe('zoë')
    expect((await users('GET', `/${encodeURIComponent('zoë')}`)).body).toEqual(body)
    expect(audited('user.created', '"zoë"')).toHaveLength(1)
  })

  it('without a password it is only a record', async () => {
    expect(await add('record-only', { password: undefined })).toMatchObject({ has_password: false, is_service: false })
    expect((await tokens('record-only', 'x')).status).toBe(401)
    expect((await users('PUT', '/record-only', { password: 'later' })).body.has_password).toBe(true)
    expect((await tokens('record-only', 'later')).status).toBe(201)
  })

  it.each([
    [{ name: 'zoë' }, 409, 'already exists'],
    [{ name: 'admin', password: 'x' }, 409, 'already exists'],
    [{}, 400, 'name'],
    [{ name: '' }, 400, 'name must not be empty'],
    [{ name: 'a:b' }, 400, 'name must not contain a colon'],
    [{ name: '#a' }, 400, 'name must not start with "#"'],
    [{ name: 'a\nb' }, 400, 'name must not contain control characters'],
    [{ name: 'x'.repeat(257) }, 400, 'at most 256 characters'],
    [{ name: 'new', password: '' }, 400, 'password must not be empty'],
    [{ name: 'new', password: 'x'.repeat(1025) }, 400, 'password must have at most 1024 bytes'],
    [{ name: 'new', password: 123_454_321 }, 400, 'password must be text'],
    [{ name: 'new', is_disabled: true }, 400, 'is_disabled'],
    [{ name: 'new', nicknames: { chat: 7 } }, 400, 'nicknames'],
    [{ name: 'new', nicknames: { chat: '' } }, 400, 'nicknames'],
  ])('refuses %j with %i', async (body, status, text) => {
    const answer = await users('POST', '', body)
    expect(answer.status).toBe(status)
    expect(answer.body.faultstring).toContain(text)
    expect(answer.text).not.toContain('123454321')
    expect((await users('GET', '/new')).status).toBe(404)
  })

  it('of two who ask for one name at once, one gets it, with its own password', async () => {
    const passwords = ['one', 'two', 'three']
    const answers = await Promise.all(passwords.map((password) => users('POST', '', { name: 'raced', password })))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409])
    const winner = passwords[answers.findIndex(({ status }) => status === 201)]
    for (const password of passwords) {
      expect((await tokens('raced', password)).status).toBe(password === winner ? 201 : 401)
    }
  })

  it('is listed by name, with accounts that nobody has used yet', async () => {
    writeFileSync(join(folder.path, 'htpasswd'), `${readFileSync(join(folder.path, 'htpasswd'), 'utf8')}by-hand:x\n`)
    const { status, body, headers } = await users<UserAnswer[]>('GET', '?limit=1000')
    expect(status).toBe(200)
    const names = body.map(({ name }) => name)
    expect(names).toEqual(names.toSorted())
    expect(headers.get('x-total-count')).toBe(String(names.length))
    expect(body.find(({ name }) => name === 'by-hand')).toEqual({
      name: 'by-hand',
      is_service: false,
      is_disabled: false,
      nicknames: {},
      created_at: null,
      has_password: true,
    })
    const page = await users<UserAnswer[]>('GET', '?limit=2&offset=1')
    expect(page.body.map(({ name }) => name)).toEqual(names.slice(1, 3))
    expect((await users<UserAnswer[]>('GET', '?is_service=true')).body.map(({ name }) => name)).toEqual(['zoë'])
    expect((await users<UserAnswer[]>('GET', '?name=by-hand')).body).toHaveLength(1)
    expect((await users<UserAnswer[]>('GET', '?is_disabled=true')).body).toEqual([])
  })

  it('is changed in part, and a record that was read can be sent back', async () => {
    await add('partial')
    const changed = await users('PUT', '/partial', { is_service: true, nicknames: { chat: 'part' } })
    expect(changed.status).toBe(200)
    expect(changed.body).toMatchObject({ is_service: true, nicknames: { chat: 'part' }, is_disabled: false })
    expect((await users('PUT', '/partial', { nicknames: {} })).body).toMatchObject({ is_service: true, nicknames: {} })
    const { body } = await users('GET', '/partial')
    expect((await users('PUT', '/partial', body)).body).toEqual(body)
    expect((await users('PUT', '/partial', { name: 'other' })).status).toBe(400)
    expect((await users('PUT', '/nobody', { is_service: true })).status).toBe(404)
    const [line = ''] = audited('user.updated', '"partial"')
    expect(line).toContain('is_service')
    expect(line).not.toContain('"part"')
  })

  it('is shown to administrators and its user alone, and changed by administrators', async () => {
    await add('carol')
    await add('dave')
    const carol = await signIn(server, 'carol', 'of carol')
    expect((await users('GET', '/carol', undefined, carol)).body.name).toBe('carol')
    for (const [method, path, body] of [
      ['GET', '/dave', undefined],
      ['GET', '/nobody', undefined],
      ['GET', '', undefined],
      ['POST', '', { name: 'by-carol' }],
      ['PUT', '/dave', { password: 'x' }],
      ['PUT', '/carol', { is_service: true }],
      ['PUT', '/carol', { is_disabled: false }],
      ['PUT', '/carol', { nicknames: { chat: 'boss' } }],
      ['PUT', '/carol', { password: 'x', current_password: 'of carol', is_service: true }],
      ['DELETE', '/dave', undefined],
      ['DELETE', '/carol', undefined],
    ] as const) {
      expect({ method, path, status: (await users(method, path, body, carol)).status }).toEqual({
        method,
        path,
        status: 403,
      })
    }
    expect((await users('GET', '/carol')).body).toMatchObject({ is_service: false, nicknames: {} })
    expect((await tokens('carol', 'of carol')).status).toBe(201)
  })
})

describe('passwords', () => {
  it('a user changes the own one by giving it, and all other tokens of the user end', async () => {
    await add('erin')
    const [own, other] = [await signIn(server, 'erin', 'of erin'), await signIn(server, 'erin', 'of erin')]
    for (const [body, status] of [
      [{ password: 'new' }, 400],
      [{ password: 'new', current_password: 'wrong' }, 403],
      [{ password: 'new', current_password: '' }, 403],
      [{ password: 'new', current_password: 7 }, 400],
      [{ password: '', current_password: 'of erin' }, 400],
    ] as const) {
      expect({ body, status: (await users('PUT', '/erin', body, own)).status }).toEqual({ body, status })
    }
    expect((await whoAmI(other)).status).toBe(200)
    const { status, text } = await users('PUT', '/erin', { password: 'new', current_password: 'of erin' }, own)
    expect(status).toBe(200)
    expect(text).not.toContain('"new"')
    expect((await whoAmI(own)).status).toBe(200)
    expect((await whoAmI(other)).status).toBe(401)
    expect((await tokens('erin', 'of erin')).status).toBe(401)
    expect((await tokens('erin', 'new')).status).toBe(201)
  })

  it('an administrator changes that of anybody, which ends all tokens there are', async () => {
    await add('frank')
    const frank = await signIn(server, 'frank', 'of frank')
    expect((await whoAmI(frank)).status).toBe(200)
    expect((await users('PUT', '/frank', { password: 'by admin' })).status).toBe(200)
    expect((await whoAmI(frank)).status).toBe(401)
    expect((await tokens('frank', 'of frank')).status).toBe(401)
    expect((await tokens('frank', 'by admin')).status).toBe(201)
  })

  it('neither log nor audit file nor database holds one', async () => {
    const secret = 'a-canary-of-a-password'
    await add('canary', { password: secret })
    await users('PUT', '/canary', { password: `${secret}-2` })
    await users(
      'PUT',
      '/canary',
      { password: `${secret}-3`, current_password: `${secret}-wrong` },
      await signIn(server, 'canary', `${secret}-2`),
    )
    await users('POST', '', { name: 'canary', password: secret })
    await users('POST', '', { name: 'a:b', password: secret })
    await users('PUT', '/canary', { password: { secret } })
    for (const text of [
      server.log(),
      ...['audit.log', 'htpasswd', 'svc.db', 'svc.db-wal'].map((name) =>
        readFileSync(join(folder.path, name), 'latin1'),
      ),
    ]) {
      expect(text).not.toContain(secret)
    }
  })

  it('the file with the first one goes when that is changed', async () => {
    const kept = join(folder.path, 'initial-admin-password')
    expect(existsSync(kept)).toBe(true)
    expect((await users('PUT', '/admin', { password: 'of admin' })).status).toBe(200)
    expect(existsSync(kept)).toBe(false)
    // The token that asked for it goes on.
    expect((await whoAmI(admin)).status).toBe(200)
    expect((await tokens('admin', adminPassword)).status).toBe(401)
    expect((await tokens('admin', 'of admin')).status).toBe(201)
  })
})

/** An open event stream of this caller. */
async function follow(headers: Headers): Promise<{ ended: Promise<'end' | 'cut'>; close(): void }> {
  const events = await openEvents(`${server.urls.stream}/v1/stream`, headers)
  expect(events.status).toBe(200)
  return events
}

async function makeKey(headers: Headers): Promise<Headers> {
  const { status, body, text } = await server.call<{ key: string }>('POST', '/v1/apikeys', {}, headers)
  if (status !== 201) throw new Error(text)
  return { 'Svc-Api-Key': body.key }
}

describe('a disabled user', () => {
  it('is refused at once with whatever credential, streams end, and enabling brings all back', async () => {
    await add('grace')
    const token = await signIn(server, 'grace', 'of grace')
    const key = await makeKey(token)
    const streams = [await follow(token), await follow(key)]
    for (const headers of [token, key]) expect((await whoAmI(headers)).status).toBe(200)

    expect((await users('PUT', '/grace', { is_disabled: true })).body.is_disabled).toBe(true)
    for (const headers of [token, key]) {
      const { status, body } = await whoAmI(headers)
      expect(status).toBe(401)
      expect(body.faultstring).toMatch(/disabled/)
    }
    expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(['end', 'end'])
    const [right, wrong] = [await tokens('grace', 'of grace'), await tokens('grace', 'wrong')]
    expect(right.status).toBe(401)
    expect(right.body).toEqual(wrong.body)
    expect(audited('login.refused', 'The user is disabled')).toHaveLength(1)
    const validation = await call<{ valid: boolean }>(
      `${server.urls.auth}/tokens/validate`,
      'POST',
      { token: token['X-Auth-Token'] },
      admin,
    )
    expect(validation.body).toEqual({ valid: false })
    expect((await users<UserAnswer[]>('GET', '?is_disabled=true')).body.map(({ name }) => name)).toEqual(['grace'])

    expect((await users('PUT', '/grace', { is_disabled: false })).body.is_disabled).toBe(false)
    for (const headers of [token, key]) expect((await whoAmI(headers)).status).toBe(200)
    expect((await tokens('grace', 'of grace')).status).toBe(201)
    expect(audited('user.disabled', '"grace"')).toHaveLength(1)
    expect(audited('user.enabled', '"grace"')).toHaveLength(1)
  })

  it('can be an account that nobody has used yet', async () => {
    expect((await users('PUT', '/by-hand', { is_disabled: true })).body).toMatchObject({
      is_disabled: true,
      has_password: true,
    })
  })

  it('is not oneself', async () => {
    expect((await users('PUT', '/admin', { is_disabled: true })).status).toBe(400)
    expect((await users('DELETE', '/admin')).status).toBe(400)
    expect((await whoAmI(admin)).status).toBe(200)
  })
})

describe('a deleted user', () => {
  it('has neither account nor tokens nor API keys, and what runs goes on', async () => {
    const token = await signIn(server, 'carol', 'of carol')
    const key = await makeKey(token)
    const stream = await follow(key)
    const marker = join(folder.path, 'go-on')
    const { body: execution } = await server.call<{ id: string }>(
      'POST',
      '/v1/executions',
      { action: 'core.local', parameters: { cmd: `until [ -e ${marker} ]; do sleep 0.02; done; echo done` } },
      token,
    )
    const statusOf = async (): Promise<string> =>
      (await server.call<{ status: string }>('GET', `/v1/executions/${execution.id}`, undefined, admin)).body.status
    await waitFor('the action to run', async () => (await statusOf()) === 'running')

    const item = { name: 'mine', value: 'x', scope: 'user' }
    expect((await server.call('PUT', '/v1/keys/mine?scope=user', item, token)).status).toBe(200)

    expect((await users('DELETE', '/carol')).status).toBe(204)
    for (const headers of [token, key]) expect((await whoAmI(headers)).status).toBe(401)
    expect(await stream.ended).toBe('end')
    expect((await tokens('carol', 'of carol')).status).toBe(401)
    expect((await users('GET', '/carol')).status).toBe(404)
    expect((await users('DELETE', '/carol')).status).toBe(404)
    expect(readFileSync(join(folder.path, 'htpasswd'), 'utf8')).not.toContain('carol:')
    expect(rowsOf(server, `select id from tokens where user = 'carol'`)).toEqual([])
    expect(rowsOf(server, `select id from api_keys where user = 'carol'`)).toEqual([])
    // Else the next one of this name would have it.
    expect(rowsOf(server, `select id from key_value_pairs where user = 'carol'`)).toEqual([])
    expect(audited('user.deleted', '"carol"')).toHaveLength(1)

    expect(await statusOf()).toBe('running')
    writeFileSync(marker, '')
    await waitFor('its end', async () => (await statusOf()) === 'succeeded')
  })

  it('can be an account that nobody has used', async () => {
    expect((await users('DELETE', '/by-hand')).status).toBe(204)
    expect((await users('GET', '/by-hand')).status).toBe(404)
  })
})

describe('changes of one user at the same time', () => {
  fullOnly(it)('a new password never brings back an account that is being deleted', async () => {
    const change = { password: 'new', current_password: 'of held' }
    // The later of the two begins at another moment of the earlier one each time.
    for (let turns = 0; turns < 40; turns += 2) {
      await add('held')
      const own = await signIn(server, 'held', 'of held')
      const changing = users('PUT', '/held', change, own)
      for (let i = 0; i < turns; i++) await whoAmI(admin)
      expect((await users('DELETE', '/held')).status).toBe(204)
      expect([200, 400, 401, 403, 404, 409]).toContain((await changing).status)
      expect((await users('GET', '/held')).status).toBe(404)
      expect((await tokens('held', 'new')).status).toBe(401)
    }
  })

  it('of those who gave the same current password, one gets the new one', async () => {
    await add('held')
    const own = await signIn(server, 'held', 'of held')
    const passwords = ['one', 'two', 'three']
    const answers = await Promise.all(
      passwords.map((password) => users('PUT', '/held', { password, current_password: 'of held' }, own)),
    )
    const [winner = '', ...others] = passwords.filter((_, i) => answers[i]?.status === 200)
    expect(others).toEqual([])
    // 403: for who came late, it was not the current one any more.
    for (const { status } of answers) expect([200, 403, 409]).toContain(status)
    expect((await tokens('held', winner)).status).toBe(201)
    expect((await users('DELETE', '/held')).status).toBe(204)
  })
})

describe('a request whose body is held back', () => {
  /** Sends all but the last byte, waits until the server knows who is calling, and returns what sends the rest. */
  async function hold(method: string, path: string, body: unknown, headers: Headers): Promise<() => Promise<number>> {
    const bytes = Buffer.from(JSON.stringify(body))
    const id = randomUUID()
    const event = 'X-Auth-Token' in headers ? 'token.validated' : 'api_key.validated'
    const outgoing = request(`${server.urls.api}/v1${path}`, {
      method,
      headers: { ...headers, 'Content-Length': bytes.length, 'X-Request-ID': id },
      agent: false,
    })
    outgoing.write(bytes.subarray(0, -1))
    await waitFor('the credential to be checked', () => audited(event, id).length === 1)
    return async () => {
      outgoing.end(bytes.subarray(-1))
      const [response] = (await once(outgoing, 'response')) as [IncomingMessage] // what this event has
      response.resume()
      return response.statusCode ?? 0
    }
  }

  const rowsOfHeld = (table: string): unknown[] => rowsOf(server, `select * from ${table} where user = 'held'`)

  it('does nothing for a user who was deleted meanwhile, whose account stays deleted', async () => {
    await add('held')
    const [one, other, third] = [
      await signIn(server, 'held', 'of held'),
      await signIn(server, 'held', 'of held'),
      await signIn(server, 'held', 'of held'),
    ]
    const finishers = [
      await hold('POST', '/apikeys', {}, one),
      await hold('POST', '/executions', { action: 'core.noop' }, other),
      await hold('PUT', '/users/held', { password: 'new', current_password: 'of held' }, third),
    ]
    expect((await users('DELETE', '/held')).status).toBe(204)
    for (const finish of finishers) expect(await finish()).toBe(401)
    expect((await users('GET', '/held')).status).toBe(404)
    expect(rowsOfHeld('api_keys')).toEqual([])
  })

  it.each([
    ['the token was revoked', () => call(`${server.urls.auth}/tokens?user=held`, 'DELETE', undefined, admin)],
    ['the user was disabled', () => users('PUT', '/held', { is_disabled: true })],
    ['the user got another password', () => users('PUT', '/held', { password: 'other' })],
  ])('does nothing once %s', async (_, takeAway) => {
    await add('held')
    const finish = await hold('POST', '/apikeys', {}, await signIn(server, 'held', 'of held'))
    expect((await takeAway()).status).toBe(200)
    expect(await finish()).toBe(401)
    expect(rowsOfHeld('api_keys')).toEqual([])
    expect((await users('DELETE', '/held')).status).toBe(204)
  })

  it('does nothing with an API key that was deleted meanwhile, or with roles that were taken away', async () => {
    await add('helper')
    const assignment = join(folder.path, 'rbac', 'assignments', 'helper.yaml')
    const apply = async (): Promise<void> => {
      const { status, text } = await server.call('POST', '/v1/rbac/definitions/apply', {}, admin)
      if (status !== 200) throw new Error(text)
    }
    writeFileSync(assignment, 'username: helper\nroles: [admin]\n')
    await apply()
    const token = await signIn(server, 'helper', 'of helper')
    const key = await makeKey(token)
    const { body: made } = await server.call<{ id: string }>(
      'GET',
      `/v1/apikeys/${key['Svc-Api-Key']}`,
      undefined,
      token,
    )
    const withKey = await hold('POST', '/users', { name: 'made-by-helper' }, key)
    expect((await server.call('DELETE', `/v1/apikeys/${made.id}`, undefined, admin)).status).toBe(204)
    expect(await withKey()).toBe(401)

    const withRole = await hold(
      'POST',
      '/users',
      { name: 'made-by-helper' },
      await signIn(server, 'helper', 'of helper'),
    )
    rmSync(assignment)
    await apply()
    expect(await withRole()).toBe(403)
    expect((await users('GET', '/made-by-helper')).status).toBe(404)
  })
})

describe('01.7 revoking all tokens of a user', () => {
  const revokeAll = (query: string, headers: Headers): Promise<Answer<{ revoked: number } & ErrorAnswer>> =>
    call(`${server.urls.auth}/tokens${query}`, 'DELETE', undefined, headers)

  it('is done by the user or an administrator; streams end, API keys stay', async () => {
    await revokeAll('?user=dave', admin)
    const [one, other] = [await signIn(server, 'dave', 'of dave'), await signIn(server, 'dave', 'of dave')]
    const key = await makeKey(one)
    const stream = await follow(one)
    const erin = await signIn(server, 'erin', 'new')
    expect((await revokeAll('?user=dave', erin)).status).toBe(403)
    expect((await whoAmI(other)).status).toBe(200)
    expect((await revokeAll('?user=dave', admin)).body).toEqual({ revoked: 2 })
    for (const headers of [one, other]) expect((await whoAmI(headers)).status).toBe(401)
    expect(await stream.ended).toBe('end')
    expect((await whoAmI(key)).status).toBe(200)
    const own = await signIn(server, 'dave', 'of dave')
    expect((await revokeAll('', own)).body).toEqual({ revoked: 1 })
    expect((await whoAmI(own)).status).toBe(401)
    expect((await whoAmI(erin)).status).toBe(200)
  })
})

describe('01.6 acting for somebody else', () => {
  beforeAll(async () => {
    await add('bot', { is_service: true })
    await add('heidi', { nicknames: { chat: 'hei', shared: 'same' } })
    await add('ivan', { nicknames: { shared: 'same' } })
    await add('boss', { nicknames: { chat: 'chief' } })
    await add('gone', { nicknames: { chat: 'gone' } })
    await users('PUT', '/gone', { is_disabled: true })
  })

  it.each([
    [{ user: 'heidi' }, 'heidi'],
    [{ user: 'heidi', impersonate_user: 'nobody' }, 'heidi'],
    [{ user: 'made-by-it' }, 'made-by-it'],
    [{ impersonate_user: 'hei', nickname_origin: 'chat' }, 'heidi'],
    [{ user: '', impersonate_user: null }, 'bot'],
  ])('a service account asks for %j and gets a token of %s', async (body, name) => {
    const answer = await tokens('bot', 'of bot', body)
    expect(answer.status).toBe(201)
    expect(answer.body.user).toBe(name)
    expect((await whoAmI({ 'X-Auth-Token': answer.body.token })).body.username).toBe(name)
    expect((await users('GET', `/${name}`)).status).toBe(200)
    const [line = ''] = audited('token.issued', answer.body.id)
    expect(line).toContain('"bot"')
    expect(line).toContain(`"${name}"`)
  })

  it.each([
    ['heidi', { user: 'ivan' }, 400, 'Current user is not a service and cannot request impersonated tokens'],
    ['heidi', { impersonate_user: 'hei' }, 400, 'Current user is not a service and cannot request impersonated tokens'],
    ['never-logged-in', { user: 'ivan' }, 400, 'Could not locate user never-logged-in'],
    ['bot', { impersonate_user: 'hei', nickname_origin: 'mail' }, 400, 'Could not locate user hei@mail'],
    ['bot', { impersonate_user: 'hei' }, 400, "Nickname origin is not provided for nickname 'hei'"],
    ['bot', { impersonate_user: 'same', nickname_origin: 'shared' }, 400, 'same@shared matched more than one username'],
    ['bot', { user: 'gone' }, 400, 'disabled'],
    ['bot', { impersonate_user: 'gone', nickname_origin: 'chat' }, 400, 'disabled'],
    ['bot', { user: 7 }, 400, 'user'],
    ['bot', { user: 'a:b' }, 400, 'user must not contain a colon'],
    ['bot', { user: 'heidi', ttl: 86_401 }, 400, 'TTL specified 86401 is greater than max allowed'],
    ['bot', { user: 'boss' }, 403, 'who is an administrator'],
    ['bot', { impersonate_user: 'chief', nickname_origin: 'chat' }, 403, 'who is an administrator'],
  ] as const)('%s asking for %j is refused with %i', async (name, body, status, text) => {
    if (name === 'never-logged-in') {
      writeFileSync(
        join(folder.path, 'htpasswd'),
        readFileSync(join(folder.path, 'htpasswd'), 'utf8').replace(/^heidi:(.*)$/m, '$&\nnever-logged-in:$1'),
      )
    }
    const password = name === 'never-logged-in' ? 'of heidi' : `of ${name}`
    const answer = await tokens(name, password, body)
    expect(answer.status).toBe(status)
    expect(answer.body.faultstring).toContain(text)
    expect(answer.body.token).toBeUndefined()
  })

  it('who refuses says so in the audit log, with both names', () => {
    const lines = audited('impersonation.refused', '"boss"')
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.every((line) => line.includes('"bot"'))).toBe(true)
  })

  it('a service account that is an administrator may act for administrators', async () => {
    await users('PUT', '/boss', { is_service: true })
    const { status, body } = await tokens('boss', 'of boss', { user: 'admin' })
    expect(status).toBe(201)
    expect(body.user).toBe('admin')
  })
})

it('with authentication off there are no users to manage', async () => {
  const open = await createTestApp()
  try {
    for (const [method, path] of [
      ['GET', '/v1/users'],
      ['GET', '/v1/users/admin'],
      ['DELETE', '/v1/users/admin'],
      ['DELETE', '/auth/v1/tokens'],
    ] as const) {
      const { status, body } = await open.call<ErrorAnswer>(method, path)
      expect({ path, status }).toEqual({ path, status: 404 })
      expect(body.faultstring).toContain('auth.enable')
    }
  } finally {
    await open.stop()
  }
})
