/** Contract 11: who may do what. Every endpoint × every role is in `11-matrix`; here is what a matrix does not show. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import {
  call,
  startServer,
  waitForStatus,
  type Answer,
  type ExecutionAnswer,
  type TestServer,
} from '../helpers/server.ts'
import { openEvents, outputOf, type EventClient } from '../helpers/sse.ts'
import { fullOnly, rounds, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern, rowsOf, unknownId, type ErrorAnswer } from './support.ts'

interface RoleAnswer {
  id: string
  name: string
  description: string
  system: boolean
  permission_grant_ids: string[]
  permission_grant_objects: { id: string; resource_uid: string; resource_type: string; permission_types: string[] }[]
}

interface AssignmentAnswer {
  id: string
  user: string
  role: string
  description: string
  is_remote: boolean
  source: string
}

type Files = Record<string, string | undefined>

const password = (user: string): string => `the password of ${user}`
const userNames = ['root', 'sys', 'watcher', 'alice', 'bob', 'vera', 'nora', 'hal', 'ira', 'pat', 'carol'] as const
type User = (typeof userNames)[number]

/** Who may run what, and who may only look. */
const definitions: Files = {
  'roles/ops.yaml': `name: ops
description: run commands and follow them
permission_grants:
  - resource_uid: action:core:local
    permission_types: [action_execute]
  - resource_uid: action:core:echo
    permission_types: [action_execute]
  - permission_types: [execution_list, execution_views_filters_list, stream_view, action_list]
`,
  'roles/viewer.yaml': `name: viewer
permission_grants:
  - resource_uid: pack:core
    permission_types: [action_view]
  - permission_types: [execution_list]
`,
  'roles/helper.yaml': `name: helper
permission_grants:
  - permission_types: [user_impersonate]
  - resource_uid: action:core:noop
    permission_types: [action_execute]
`,
  'roles/one-helper.yaml': `name: one-helper
permission_grants:
  - resource_uid: user:alice
    permission_types: [user_impersonate]
  - resource_uid: action:core:noop
    permission_types: [action_execute]
`,
  'roles/packer.yaml': `name: packer
permission_grants:
  - resource_uid: pack:core
    permission_types: [pack_all]
`,
  'roles/noop-only.yaml': `name: noop-only
permission_grants:
  - resource_uid: action:core:noop
    permission_types: [action_view]
  - permission_types: [execution_list, execution_views_filters_list, stream_view]
`,
  'assignments/root.yaml': 'username: root\nroles: [admin]\n',
  'assignments/sys.yaml': 'username: sys\nroles: [system_admin]\n',
  'assignments/watcher.yaml': 'username: watcher\nroles: [observer]\n',
  'assignments/alice.yaml': 'username: alice\nroles: [ops]\ndescription: on call\n',
  'assignments/bob.yaml': 'username: bob\nroles: [ops]\n',
  'assignments/vera.yaml': 'username: vera\nroles: [viewer]\n',
  'assignments/hal.yaml': 'username: hal\nroles: [helper]\n',
  'assignments/ira.yaml': 'username: ira\nroles: [one-helper]\n',
  'assignments/pat.yaml': 'username: pat\nroles: [packer]\n',
  'assignments/carol.yaml': 'username: carol\nroles: [noop-only]\n',
}

/** A server whose users are in a password file made with openssl. */
interface Place extends TestServer {
  as<T = Record<string, unknown>>(
    user: User,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Answer<T & ErrorAnswer>>
  headersOf(user: User): Promise<Record<string, string>>
  follow(user: User, path: string): Promise<EventClient>
  /** Undefined removes. */
  write(files: Files): void
  apply(): Promise<Answer<Record<string, Record<string, number>> & ErrorAnswer>>
  /** Lines of the log that tell of this event. */
  audits(event: string): string[]
}

let hashes: Map<string, string>
const clients: EventClient[] = []

function writeDefinitions(basePath: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(basePath, 'rbac', path)
    if (text === undefined) {
      rmSync(file)
      continue
    }
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

function writeUsers(basePath: string, names: readonly string[] = userNames): string {
  const file = join(basePath, 'users')
  writeFileSync(file, names.map((name) => `${name}:${hashes.get(name) ?? ''}\n`).join(''))
  return file
}

const withRoles = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }

async function startPlace(folder: TemporaryFolder, settings: Record<string, string> = {}): Promise<Place> {
  const file = writeUsers(folder.path)
  const server = await startServer({
    basePath: folder.path,
    settings: { ...withRoles, 'auth.backend_kwargs': JSON.stringify({ file_path: file }), ...settings },
  })
  const logins = new Map<User, Promise<Record<string, string>>>()
  const headersOf = (user: User): Promise<Record<string, string>> => {
    const headers = logins.get(user) ?? signIn(server, user, password(user))
    logins.set(user, headers)
    return headers
  }
  const place: Place = {
    ...server,
    headersOf,
    as: async (user, method, path, body) => server.call(method, path, body, await headersOf(user)),
    async follow(user, path) {
      const client = await openEvents(`${server.urls.stream}${path}`, await headersOf(user))
      clients.push(client)
      return client
    },
    write: (files) => writeDefinitions(folder.path, files),
    apply: () => place.as('root', 'POST', '/v1/rbac/definitions/apply'),
    audits: (event) =>
      server
        .log()
        .split('\n')
        .filter((line) => line.includes(' AUDIT ') && line.includes(event)),
  }
  return place
}

/** An execution that has ended, unless it is to go on. */
async function run(on: Place, user: User, action: string, cmd?: string): Promise<ExecutionAnswer> {
  const body = { action, parameters: cmd === undefined ? {} : { cmd } }
  const { status, body: execution, text } = await on.as<ExecutionAnswer>(user, 'POST', '/v1/executions', body)
  if (status !== 201) throw new Error(`not accepted (${status}): ${text}`)
  return execution
}

async function toEnd(on: Place, { id }: ExecutionAnswer): Promise<ExecutionAnswer> {
  const headers = await on.headersOf('root')
  return waitForStatus({ ...on, call: (method, path, body) => on.call(method, path, body, headers) }, id)
}

const folder = makeFolder()
let place: Place
/** What has been run before the tests. */
let aliceLocal: ExecutionAnswer
let rootNoop: ExecutionAnswer

beforeAll(async () => {
  await ensureDebianPackage('openssl', '/usr/bin/openssl')
  hashes = new Map(
    userNames.map((name) => [
      name,
      execFileSync('openssl', ['passwd', '-6', '-salt', 'rounds=1000$saltsalt', '-stdin'], {
        input: `${password(name)}\n`,
        encoding: 'utf8',
      }).trim(),
    ]),
  )
  writeDefinitions(folder.path, definitions)
  place = await startPlace(folder)
  aliceLocal = await toEnd(place, await run(place, 'alice', 'core.local', 'echo of alice'))
  rootNoop = await toEnd(place, await run(place, 'root', 'core.noop'))
})

afterAll(async () => {
  for (const client of clients) client.close()
  await place.stop()
  folder.remove()
})

const missing = (user: string, permission: string, uid?: string): string =>
  `User "${user}" doesn't have required permission "${permission}"${uid === undefined ? '' : ` on resource "${uid}"`}`

describe('11.1 roles', () => {
  it.each(['root', 'sys'] as const)('11.1 %s may do everything, and GET /user says so', async (user) => {
    const { body } = await place.as<{ rbac: unknown }>(user, 'GET', '/v1/user')
    expect(body.rbac).toEqual({ enabled: true, roles: [user === 'root' ? 'admin' : 'system_admin'], is_admin: true })
    expect((await place.as(user, 'PUT', '/v1/runnertypes/noop', { enabled: true })).status).toBe(200)
    expect((await place.as(user, 'GET', '/v1/executions?limit=-1')).status).toBe(200)
    expect((await place.as(user, 'GET', '/v1/rbac/roles')).status).toBe(200)
  })

  it('11.1 the observer looks at everything and changes nothing', async () => {
    for (const path of [
      '/v1/actions',
      '/v1/actions/core.local',
      '/v1/runnertypes/noop',
      `/v1/executions/${aliceLocal.id}`,
    ]) {
      expect([path, (await place.as('watcher', 'GET', path)).status]).toEqual([path, 200])
    }
    expect((await place.as('watcher', 'GET', '/v1/executions/views/filters')).status).toBe(200)
    const refused = await place.as('watcher', 'POST', '/v1/executions', { action: 'core.noop' })
    expect([refused.status, refused.body.faultstring]).toEqual([
      403,
      missing('watcher', 'action_execute', 'action:core:noop'),
    ])
    expect((await place.as('watcher', 'PUT', '/v1/runnertypes/noop', { enabled: false })).status).toBe(403)
    expect((await place.as('watcher', 'DELETE', `/v1/executions/${aliceLocal.id}`)).status).toBe(403)
    expect((await place.as('watcher', 'GET', '/v1/rbac/roles')).status).toBe(403)
  })

  it('11.1 who has no role may do nothing but ask who it is', async () => {
    const { status, body } = await place.as<{ rbac: unknown }>('nora', 'GET', '/v1/user')
    expect([status, body.rbac]).toEqual([200, { enabled: true, roles: [], is_admin: false }])
    const { 'X-Auth-Token': token } = await place.headersOf('nora')
    const answer = await call<{ valid: boolean }>(
      `${place.urls.auth}/tokens/validate`,
      'POST',
      { token },
      await place.headersOf('nora'),
    )
    expect(answer.body).toEqual({ valid: true })
    for (const path of [
      '/v1/actions',
      '/v1/executions',
      '/v1/executions/last',
      '/v1/runnertypes',
      '/v1/rbac/permission_types',
    ]) {
      expect([path, (await place.as('nora', 'GET', path)).status]).toEqual([path, 403])
    }
  })

  it('00.8 only administrators go beyond the maximum page', async () => {
    const beyond = await place.as('alice', 'GET', '/v1/executions?limit=101')
    expect([beyond.status, beyond.body.faultstring]).toEqual([403, 'Limit "101" specified, maximum value is "100"'])
    expect((await place.as('alice', 'GET', '/v1/executions?limit=-1')).status).toBe(403)
    expect((await place.as('root', 'GET', '/v1/executions?limit=101')).status).toBe(200)
  })
})

describe('11.3, 11.5 what each endpoint needs, and what a refusal says', () => {
  it.each<
    [user: User, method: string, path: () => string, body: unknown, permission: string, uid: (() => string) | undefined]
  >([
    ['vera', 'GET', () => '/v1/actions', undefined, 'action_list', undefined],
    ['nora', 'GET', () => '/v1/actions/core.local', undefined, 'action_view', () => 'action:core:local'],
    ['pat', 'GET', () => '/v1/actions/core.local', undefined, 'action_view', () => 'action:core:local'],
    ['nora', 'GET', () => '/v1/actions/views/overview', undefined, 'action_list', undefined],
    ['nora', 'GET', () => '/v1/runnertypes', undefined, 'runner_type_list', undefined],
    ['nora', 'GET', () => '/v1/runnertypes/noop', undefined, 'runner_type_view', () => 'runner_type:noop'],
    ['alice', 'PUT', () => '/v1/runnertypes/noop', { enabled: false }, 'runner_type_modify', () => 'runner_type:noop'],
    ['nora', 'GET', () => '/v1/executions', undefined, 'execution_list', undefined],
    ['vera', 'GET', () => '/v1/executions/views/filters', undefined, 'execution_views_filters_list', undefined],
    ['alice', 'POST', () => '/v1/executions', { action: 'core.noop' }, 'action_execute', () => 'action:core:noop'],
    [
      'vera',
      'POST',
      () => '/v1/executions',
      { action: 'core.local', parameters: { cmd: 'id' } },
      'action_execute',
      () => 'action:core:local',
    ],
    [
      'carol',
      'GET',
      () => `/v1/executions/${aliceLocal.id}`,
      undefined,
      'execution_view',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'carol',
      'GET',
      () => `/v1/executions/${aliceLocal.id}/output`,
      undefined,
      'execution_view',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'carol',
      'GET',
      () => `/v1/executions/${aliceLocal.id}/result`,
      undefined,
      'execution_view',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'carol',
      'GET',
      () => `/v1/executions/${aliceLocal.id}/attribute/result`,
      undefined,
      'execution_view',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'carol',
      'GET',
      () => `/v1/executions/${aliceLocal.id}/children`,
      undefined,
      'execution_view',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'vera',
      'POST',
      () => `/v1/executions/${aliceLocal.id}/re_run`,
      {},
      'execution_rerun',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'vera',
      'DELETE',
      () => `/v1/executions/${aliceLocal.id}`,
      undefined,
      'execution_stop',
      () => `execution:${aliceLocal.id}`,
    ],
    [
      'vera',
      'PUT',
      () => `/v1/executions/${aliceLocal.id}`,
      { status: 'canceled' },
      'execution_stop',
      () => `execution:${aliceLocal.id}`,
    ],
    ['nora', 'POST', () => '/v1/apikeys', {}, 'api_key_create', undefined],
    ['nora', 'GET', () => '/v1/apikeys', undefined, 'api_key_list', undefined],
  ])('11.5 %s: %s', async (user, method, path, body, permission, uid) => {
    const before = place.audits('permission.denied').length
    const { status, body: answer } = await place.as(user, method, path(), body)
    expect([status, answer.faultstring, answer.code]).toEqual([
      403,
      missing(user, permission, uid?.()),
      'PERMISSION_DENIED',
    ])
    await waitFor('the audit line', () =>
      place
        .audits('permission.denied')
        .slice(before)
        .some((line) => line.includes(`user=${user}`) && line.includes(permission)),
    )
  })

  it('11.5 unknown objects are 404 first', async () => {
    for (const path of [`/v1/executions/${unknownId}`, '/v1/actions/core.nothing', '/v1/runnertypes/nothing']) {
      expect([path, (await place.as('nora', 'GET', path)).status]).toEqual([path, 404])
    }
    const { status } = await place.as('nora', 'POST', '/v1/executions', { action: 'core.nothing' })
    expect(status).toBe(400)
  })

  it('11.3 whoever may run an action sees its executions, whoever’s they are', async () => {
    for (const part of ['', '/output', '/result', '/attribute/status', '/children']) {
      expect([part, (await place.as('bob', 'GET', `/v1/executions/${aliceLocal.id}${part}`)).status]).toEqual([
        part,
        200,
      ])
      expect([part, (await place.as('vera', 'GET', `/v1/executions/${aliceLocal.id}${part}`)).status]).toEqual([
        part,
        200,
      ])
    }
    const again = await place.as<ExecutionAnswer>('bob', 'POST', `/v1/executions/${aliceLocal.id}/re_run`, {})
    expect([again.status, again.body.context['user']]).toEqual([201, 'bob'])
    expect((await toEnd(place, again.body)).status).toBe('succeeded')
  })

  it('11.3 secrets are shown to administrators only', async () => {
    const secret = 'shown to administrators'
    const parameters = { cmd: 'true', sudo_password: secret }
    const { body } = await place.as<ExecutionAnswer>('root', 'POST', '/v1/executions', {
      action: 'core.local_sudo',
      parameters,
    })
    await toEnd(place, body)
    for (const [user, shown] of [
      ['root', secret],
      ['sys', secret],
      ['vera', '********'],
      ['watcher', '********'],
    ] as const) {
      const path = `/v1/executions/${body.id}?show_secrets=true`
      const answer = await place.as<ExecutionAnswer>(user, 'GET', path)
      expect([user, answer.body.parameters['sudo_password']]).toEqual([user, shown])
    }
  })

  it('03.4 a re-run with changes gives nobody the secrets of somebody else', async () => {
    const secret = 'known to bob alone'
    const parameters = { cmd: 'true', sudo_password: secret }
    const { body } = await place.as<ExecutionAnswer>('bob', 'POST', '/v1/executions', {
      action: 'core.local',
      parameters,
    })
    const rerun = (
      user: User,
      request: unknown,
      query = '',
      id = body.id,
    ): Promise<Answer<ExecutionAnswer & ErrorAnswer>> =>
      place.as(user, 'POST', `/v1/executions/${id}/re_run${query}`, request)
    const printing = { cmd: 'true {{ sudo_password }}' }
    const refused = await rerun('alice', { parameters: printing })
    expect([refused.status, refused.body.code]).toEqual([403, 'PERMISSION_DENIED'])
    expect(refused.body.faultstring).toBe(
      'The execution has secret parameters (sudo_password) of "bob". Replace these secrets too, or re-run it without changes.',
    )
    await waitFor('the audit line', () => place.audits('permission.denied').at(-1)?.includes('sudo_password'))

    const own = { ...printing, sudo_password: 'known to alice' }
    for (const [user, request, query, cmd] of [
      ['alice', {}, '', 'true'],
      ['alice', { parameters: own }, '', 'true known to alice'],
      ['alice', { parameters: { cmd: 'true 1' } }, '?no_merge=true', 'true 1'],
      ['alice', { parameters: { cmd: 'true 2' }, keep: ['cmd'] }, '?no_merge=true', 'true 2'],
      ['alice', { keep: ['sudo_password', 'cmd'] }, '?no_merge=true', 'true'],
      ['bob', { parameters: printing, keep: ['sudo_password'] }, '?no_merge=true', `true ${secret}`],
      ['bob', { parameters: printing }, '', `true ${secret}`],
      ['root', { parameters: printing }, '', `true ${secret}`],
    ] as const) {
      const answer = await rerun(user, request, query)
      const shown = cmd.replace(/known to .*/, '********')
      expect([user, answer.status, answer.body.parameters]).toMatchObject([user, 201, { cmd: shown }])
      const whole = `/v1/executions/${answer.body.id}?show_secrets=true`
      expect((await place.as<ExecutionAnswer>('root', 'GET', whole)).body.parameters).toMatchObject({ cmd })
    }

    // Neither beside values of one's own, nor without what they were used with.
    for (const request of [{ parameters: printing, keep: ['sudo_password'] }, { keep: ['sudo_password'] }]) {
      const answer = await rerun('alice', request, '?no_merge=true')
      expect([answer.status, answer.body.code]).toEqual([403, 'PERMISSION_DENIED'])
    }

    // They stay bob's in whatever is made of it.
    const { body: unchanged } = await rerun('alice', {})
    expect((await rerun('alice', { parameters: printing }, '', unchanged.id)).status).toBe(403)
    expect((await rerun('bob', { parameters: printing }, '', unchanged.id)).status).toBe(201)
    const { body: ofAlice } = await rerun('alice', { parameters: own })
    expect((await rerun('bob', { parameters: printing }, '', ofAlice.id)).status).toBe(403)
    expect((await rerun('alice', { parameters: printing }, '', ofAlice.id)).status).toBe(201)

    // A key of bob's with scopes may be anybody's.
    const scopes = [{ permission_types: ['action_execute'], resource_uid: 'action:core:local' }]
    const { key } = (await place.as<{ key: string }>('root', 'POST', '/v1/apikeys', { user: 'bob', scopes })).body
    const path = `/v1/executions/${body.id}/re_run`
    const byKey = (request: unknown): ReturnType<Place['call']> =>
      place.call('POST', path, request, { 'Svc-Api-Key': key })
    expect((await byKey({ parameters: printing })).status).toBe(403)
    expect((await byKey({})).status).toBe(201)
  })

  it('CVE-2025-52554 nobody stops an execution without the right to run its action', async () => {
    const long = await run(place, 'root', 'core.local', 'sleep 600')
    try {
      for (const user of ['vera', 'watcher', 'carol', 'nora', 'pat'] as const) {
        const answers = [
          await place.as(user, 'DELETE', `/v1/executions/${long.id}`),
          await place.as(user, 'PUT', `/v1/executions/${long.id}`, { status: 'canceled' }),
          await place.as(user, 'PUT', `/v1/executions/${long.id}`, { status: 'succeeded', result: {} }),
        ]
        expect([user, answers.map(({ status }) => status)]).toEqual([user, [403, 403, 403]])
      }
      const { body } = await place.as<ExecutionAnswer>('root', 'GET', `/v1/executions/${long.id}`)
      expect(['requested', 'scheduled', 'running']).toContain(body.status)
    } finally {
      expect((await place.as('alice', 'DELETE', `/v1/executions/${long.id}`)).status).toBe(200)
      expect((await toEnd(place, long)).status).toBe('canceled')
    }
  })

  it('03.1 the context names the roles of the acting user', async () => {
    expect(aliceLocal.context).toMatchObject({ user: 'alice', pack: 'core', rbac: { user: 'alice', roles: ['ops'] } })
    expect(rootNoop.context).toMatchObject({ rbac: { user: 'root', roles: ['admin'] } })
  })
})

describe('11.4 rule 12, st2#6379: acting for somebody else', () => {
  const noopFor = (user: string): unknown => ({ action: 'core.noop', user })

  it('st2#6379 `user` needs a permission of its own; a refusal is audited and nothing runs', async () => {
    const before = rowsOf(place, 'select id from executions').length
    const denials = place.audits('permission.denied').length
    const body = { action: 'core.local', parameters: { cmd: 'id' }, user: 'root' }
    const answer = await place.as('alice', 'POST', '/v1/executions', body)
    expect([answer.status, answer.body.faultstring]).toEqual([403, missing('alice', 'user_impersonate', 'user:root')])
    await waitFor('the audit line', () =>
      place
        .audits('permission.denied')
        .slice(denials)
        .some((line) => line.includes('user=alice') && line.includes('user_impersonate')),
    )
    const rerun = await place.as('alice', 'POST', `/v1/executions/${aliceLocal.id}/re_run`, { user: 'bob' })
    expect(rerun.status).toBe(403)
    expect(rowsOf(place, 'select id from executions')).toHaveLength(before)
  })

  it('11.4 naming oneself needs none', async () => {
    const body = { action: 'core.local', parameters: { cmd: 'true' }, user: 'alice' }
    const { status, body: execution } = await place.as<ExecutionAnswer>('alice', 'POST', '/v1/executions', body)
    expect(status).toBe(201)
    await toEnd(place, execution)
  })

  it.each<[user: User, of: string, status: number]>([
    ['hal', 'alice', 201],
    ['hal', 'somebody unknown', 201],
    ['hal', 'root', 403],
    ['hal', 'sys', 403],
    ['ira', 'alice', 201],
    ['ira', 'bob', 403],
    ['root', 'sys', 201],
    ['root', 'alice', 201],
    ['watcher', 'alice', 403],
  ])('11.4 %s for %s: %s', async (user, of, status) => {
    const answer = await place.as<ExecutionAnswer>(user, 'POST', '/v1/executions', noopFor(of))
    expect([answer.status, answer.body.code]).toEqual([status, status === 201 ? undefined : 'PERMISSION_DENIED'])
    if (status === 201) await toEnd(place, answer.body)
  })

  it('03.1 nobody becomes somebody else through the parent of an execution', async () => {
    const context = { parent: { execution_id: rootNoop.id, user: 'alice' } }
    const body = { action: 'core.local', parameters: { cmd: 'id' }, context }
    const answer = await place.as('alice', 'POST', '/v1/executions', body)
    expect([answer.status, answer.body.faultstring]).toEqual([403, missing('alice', 'user_impersonate', 'user:root')])
    const headers = { ...(await place.headersOf('alice')), 'svc-context': JSON.stringify(context) }
    const byHeader = await place.call(
      'POST',
      '/v1/executions',
      { action: 'core.local', parameters: { cmd: 'id' } },
      headers,
    )
    expect(byHeader.status).toBe(403)
    const own = { parent: { execution_id: aliceLocal.id } }
    const child = await place.as<ExecutionAnswer>('alice', 'POST', '/v1/executions', { ...body, context: own })
    expect([child.status, child.body.context['user']]).toEqual([201, 'alice'])
    await toEnd(place, child.body)
  })
})

describe('CVE-2018-20345 lists hold what may be seen, whatever is asked for', () => {
  interface Listed {
    id: string
    action: { ref: string }
  }

  it('each query parameter', async () => {
    for (const [user, action, cmd] of [
      ['alice', 'core.echo', undefined],
      ['bob', 'core.local', 'echo bob'],
      ['root', 'core.local', 'exit 3'],
      ['hal', 'core.noop', undefined],
    ] as const) {
      const parameters = action === 'core.echo' ? { message: 'x' } : cmd === undefined ? {} : { cmd }
      const { body } = await place.as<ExecutionAnswer>(user, 'POST', '/v1/executions', { action, parameters })
      await toEnd(place, body)
    }
    const { body: document } = await place.call<{ paths: Record<string, { get: { parameters: { name: string }[] } }> }>(
      'GET',
      '/v1/openapi.json',
    )
    const declared = document.paths['/v1/executions']?.get.parameters.map(({ name }) => name) ?? []
    const values: Record<string, string[]> = {
      id: [aliceLocal.id, `${aliceLocal.id},${rootNoop.id}`],
      action: ['core.local', 'core.noop', 'core.echo'],
      status: ['succeeded', 'failed', 'canceled', 'succeeded,failed'],
      search: ['core', 'noop', 'bob', 'local root', rootNoop.id, rootNoop.id.slice(0, 12)],
      output: ['bob', 'x'],
      output_ignore_case: ['true'],
      output_cursor: ['f'.repeat(24), `${aliceLocal.id}.1.0`],
      include_matches: ['1'],
      before_id: [rootNoop.id, 'f'.repeat(24)],
      after_id: [aliceLocal.id, '0'.repeat(24)],
      max_parameters_size: ['0'],
      user: ['alice', 'root', 'bob', 'carol'],
      runner: ['noop', 'local-shell-cmd'],
      parent: ['null', aliceLocal.id],
      liveaction: [String(aliceLocal.liveaction['id']), String(rootNoop.liveaction['id'])],
      rule: ['null', 'x'],
      trigger: ['null'],
      trigger_type: ['null'],
      trigger_instance: ['null'],
      timestamp: [aliceLocal.start_timestamp, `${aliceLocal.start_timestamp}..${rootNoop.start_timestamp}`],
      timestamp_gt: ['2000-01-01T00:00:00.000000Z', aliceLocal.start_timestamp],
      timestamp_lt: ['2100-01-01T00:00:00.000000Z'],
      filter: ['action.ref:core.local', 'context.user:alice', 'result.stdout:bob', 'runner.name:noop'],
      sort: ['status', '-action.ref', 'user', 'id'],
      sort_asc: ['1'],
      sort_desc: ['1'],
      include_attributes: ['action.ref', 'action.ref,result,parameters,context'],
      exclude_attributes: ['result'],
      show_secrets: ['true'],
      limit: ['100'],
      offset: ['0'],
    }
    expect(Object.keys(values).sort()).toEqual([...declared].sort())
    const queries = [
      '',
      // The daily run asks for the first value of each.
      ...Object.entries(values).flatMap(([name, all]) =>
        variants(all).map((value) => {
          const query = `${name}=${encodeURIComponent(value)}`
          return /^(?:output_|include_matches)/.test(name) ? `${query}&output=bob` : query
        }),
      ),
    ]
    let seen = 0
    let hidden = 0
    for (const query of queries) {
      const wanted = query.includes('clude_attributes') ? query : `${query}&include_attributes=action.ref`
      const all = await place.as<Listed[]>('root', 'GET', `/v1/executions?${wanted}`)
      for (const [user, mayView] of [
        ['carol', (ref: string) => ref === 'core.noop'],
        ['alice', (ref: string) => ref === 'core.local' || ref === 'core.echo'],
        ['vera', () => true],
      ] as const) {
        const { status, body, headers } = await place.as<Listed[]>(user, 'GET', `/v1/executions?${wanted}`)
        expect([user, query, status]).toEqual([user, query, 200])
        const permitted = all.body.filter(({ action }) => mayView(action.ref)).map(({ id }) => id)
        expect([user, query, body.map(({ id }) => id)]).toEqual([user, query, permitted])
        // Pages that go on from an id are not counted, nor what is found in outputs.
        const total = /^(?:before|after)_id|output/.test(query) ? null : String(permitted.length)
        expect([user, query, headers.get('x-total-count')]).toEqual([user, query, total])
        seen += permitted.length
        hidden += all.body.length - permitted.length
      }
    }
    expect(seen).toBeGreaterThan(rounds({ daily: 25, full: 50 }))
    expect(hidden).toBeGreaterThan(rounds({ daily: 25, full: 50 }))
  })

  it('pages of what may be seen are full', async () => {
    const { body, headers } = await place.as<Listed[]>('carol', 'GET', '/v1/executions?limit=2')
    expect(body.map(({ action }) => action.ref)).toEqual(['core.noop', 'core.noop'])
    const next = await place.as<Listed[]>('carol', 'GET', '/v1/executions?limit=2&offset=2')
    expect(next.body.filter(({ id }) => body.some((before) => before.id === id))).toEqual([])
    expect(next.headers.get('x-total-count')).toBe(headers.get('x-total-count'))
  })

  it('a search of outputs finds those that may be seen', async () => {
    const request = { action: 'core.local', parameters: { cmd: 'echo output-of-root' } }
    const { body: ran } = await place.as<ExecutionAnswer>('root', 'POST', '/v1/executions', request)
    await toEnd(place, ran)
    const search = (user: User, more = ''): Promise<Answer<Listed[] & ErrorAnswer>> =>
      place.as<Listed[]>(user, 'GET', `/v1/executions?output=output-of-root&include_matches=1${more}`)
    expect((await search('root')).body.map(({ id }) => id)).toEqual([ran.id])
    expect((await search('carol')).body).toEqual([])
    // A cursor that was made up leads to nothing else.
    expect((await search('carol', `&output_cursor=${ran.id}.1.0`)).body).toEqual([])
    expect((await search('hal')).status).toBe(403)
  })

  it('the distinct values of filters are those of what may be seen', async () => {
    const { body } = await place.as<Record<string, string[]>>('carol', 'GET', '/v1/executions/views/filters')
    expect(body['action']).toEqual(['core.noop'])
    expect(body['runner']).toEqual(['noop'])
    expect(body['user']).not.toContain('bob')
  })

  it('children that may not be seen are left out', async () => {
    const parent = { action: 'core.noop', context: { parent: { execution_id: rootNoop.id } } }
    const visible = await place.as<ExecutionAnswer>('root', 'POST', '/v1/executions', parent)
    const other = await place.as<ExecutionAnswer>('root', 'POST', '/v1/executions', {
      ...parent,
      action: 'core.local',
      parameters: { cmd: 'true' },
    })
    await toEnd(place, visible.body)
    await toEnd(place, other.body)
    const { body } = await place.as<Listed[]>('carol', 'GET', `/v1/executions/${rootNoop.id}/children`)
    expect(body.map(({ id }) => id)).toEqual([visible.body.id])
    const all = await place.as<Listed[]>('root', 'GET', `/v1/executions/${rootNoop.id}/children`)
    expect(all.body.map(({ id }) => id)).toEqual([visible.body.id, other.body.id])
  })
})

describe('11.3 streams', () => {
  it('11.3 the general stream needs stream_view and shows what may be seen', async () => {
    const refused = await place.as('vera', 'GET', '/stream/v1/stream')
    expect([refused.status, refused.body.faultstring]).toEqual([403, missing('vera', 'stream_view')])

    const everything = '/v1/stream?events=*'
    const [ofCarol, ofAlice, ofWatcher] = await Promise.all([
      place.follow('carol', everything),
      place.follow('alice', everything),
      place.follow('watcher', everything),
    ])
    for (const client of [ofCarol, ofAlice, ofWatcher]) await waitFor('the stream', () => client.raw() !== '')
    const local = await run(place, 'bob', 'core.local', 'echo seen')
    await toEnd(place, local)
    const noop = await run(place, 'hal', 'core.noop')
    await toEnd(place, noop)
    const isEnd =
      ({ id }: ExecutionAnswer) =>
      ({ event, data }: { event: string; data: string }) =>
        event === 'svc.execution__update' && data.includes(id) && data.includes('"status":"succeeded"')
    await ofWatcher.frame(isEnd(noop))
    await ofCarol.frame(isEnd(noop))
    await ofAlice.frame(isEnd(local))
    expect(ofCarol.raw()).not.toContain(local.id)
    expect(ofCarol.raw()).not.toContain('seen')
    expect(ofAlice.raw()).not.toContain(noop.id)
    expect(outputOf(ofAlice.frames)).toContain('seen')
    expect(ofWatcher.raw()).toContain(local.id)
  })

  it('11.3 the output of one execution needs stream_view and execution_view', async () => {
    const path = `/v1/executions/${aliceLocal.id}/output`
    for (const [user, status, permission, uid] of [
      ['vera', 403, 'stream_view', undefined],
      ['carol', 403, 'execution_view', `execution:${aliceLocal.id}`],
      ['nora', 403, 'stream_view', undefined],
    ] as const) {
      const answer = await call<ErrorAnswer>(
        `${place.urls.stream}${path}`,
        'GET',
        undefined,
        await place.headersOf(user),
      )
      expect([user, answer.status, answer.body.faultstring]).toEqual([user, status, missing(user, permission, uid)])
    }
    const client = await place.follow('bob', path)
    expect(await client.ended).toBe('end')
    expect(outputOf(client.frames)).toBe('of alice\n')
  })

  it('04.2 a stream does not tell of the end of what may not be seen', async () => {
    const hidden = await run(place, 'root', 'core.local', 'sleep 600')
    const query = `end_event=svc.execution__update&end_execution_id=${hidden.id}`
    const ofCarol = await place.follow('carol', `/v1/stream?${query}`)
    const ofAlice = await place.follow('alice', `/v1/stream?${query}`)
    for (const client of [ofCarol, ofAlice]) await waitFor('the stream', () => client.raw() !== '')
    await place.as('root', 'DELETE', `/v1/executions/${hidden.id}`)
    expect(await ofAlice.ended).toBe('end')
    const after = await run(place, 'root', 'core.noop')
    await ofCarol.frame(({ data }) => data.includes(after.id))
    await toEnd(place, after)
  })
})

describe('11.7 roles and assignments', () => {
  it('11.7 permission types, by the type of resource', async () => {
    const { body } = await place.as<Record<string, Record<string, string>>>('root', 'GET', '/v1/rbac/permission_types')
    expect(Object.keys(body)).toEqual(
      expect.arrayContaining(['runner_type', 'pack', 'action', 'execution', 'stream', 'inquiry', 'key_value_pair']),
    )
    expect(body['execution']).toHaveProperty('execution_view', expect.stringMatching(/\w/))
    expect(
      Object.values(body)
        .flatMap((types) => Object.values(types))
        .filter((text) => !/^[A-Z].*\.$/.test(text)),
    ).toEqual([])
    const one = await place.as('root', 'GET', '/v1/rbac/permission_types/webhook')
    expect(one.body).toEqual(body['webhook'])
    for (const type of ['car', 'constructor', '__proto__']) {
      const unknown = await place.as('root', 'GET', `/v1/rbac/permission_types/${type}`)
      expect([unknown.status, unknown.body.faultstring]).toEqual([404, `Invalid resource type: ${type}`])
    }
  })

  it('11.7 roles, filtered, paged, one by name or id', async () => {
    const { body, headers } = await place.as<RoleAnswer[]>('root', 'GET', '/v1/rbac/roles')
    expect(body.map(({ name }) => name)).toEqual([
      'admin',
      'helper',
      'noop-only',
      'observer',
      'one-helper',
      'ops',
      'packer',
      'system_admin',
      'viewer',
    ])
    expect([headers.get('x-total-count'), headers.get('x-limit')]).toEqual(['9', '100'])
    const names = async (query: string): Promise<string[]> =>
      (await place.as<RoleAnswer[]>('root', 'GET', `/v1/rbac/roles?${query}`)).body.map(({ name }) => name)
    expect(await names('system=true')).toEqual(['admin', 'observer', 'system_admin'])
    expect(await names('system=false')).toHaveLength(6)
    expect(await names('limit=2&offset=1')).toEqual(['helper', 'noop-only'])

    const viewer = body.find(({ name }) => name === 'viewer')
    expect(viewer).toEqual({
      id: expect.stringMatching(idPattern),
      name: 'viewer',
      description: '',
      system: false,
      permission_grant_ids: viewer?.permission_grant_objects.map(({ id }) => id),
      permission_grant_objects: [
        {
          id: expect.stringMatching(idPattern),
          resource_uid: 'pack:core',
          resource_type: 'pack',
          permission_types: ['action_view'],
        },
        {
          id: expect.stringMatching(idPattern),
          resource_uid: null,
          resource_type: null,
          permission_types: ['execution_list'],
        },
      ],
    })
    for (const nameOrId of ['viewer', viewer?.id ?? '']) {
      expect((await place.as('root', 'GET', `/v1/rbac/roles/${nameOrId}`)).body).toEqual(viewer)
    }
    for (const nameOrId of ['nothing', unknownId]) {
      const unknown = await place.as('root', 'GET', `/v1/rbac/roles/${nameOrId}`)
      expect([unknown.status, unknown.body.faultstring]).toEqual([
        404,
        `Resource with a name or id "${nameOrId}" not found`,
      ])
    }
  })

  it('11.7 assignments, filtered, paged, one by id', async () => {
    const list = async (user: User, query: string): Promise<Answer<AssignmentAnswer[] & ErrorAnswer>> =>
      place.as<AssignmentAnswer[]>(user, 'GET', `/v1/rbac/role_assignments?${query}`)
    const { body, headers } = await list('root', '')
    expect(body).toHaveLength(10)
    expect(headers.get('x-total-count')).toBe('10')
    const ofAlice = (await list('root', 'user=alice')).body
    expect(ofAlice).toEqual([
      {
        id: expect.stringMatching(idPattern),
        user: 'alice',
        role: 'ops',
        description: 'on call',
        is_remote: false,
        source: 'assignments/alice.yaml',
      },
    ])
    const users = async (query: string): Promise<string[]> => (await list('root', query)).body.map(({ user }) => user)
    expect((await users('role=ops')).sort()).toEqual(['alice', 'bob'])
    expect(await users('source=assignments/bob.yaml')).toEqual(['bob'])
    expect(await users('remote=true')).toEqual([])
    expect(await users('remote=false')).toHaveLength(10)
    expect(await users('role=ops&user=bob')).toEqual(['bob'])
    expect(await users('limit=3&offset=9')).toHaveLength(1)

    const [assignment] = ofAlice
    for (const user of ['root', 'alice'] as const) {
      expect((await place.as(user, 'GET', `/v1/rbac/role_assignments/${assignment?.id ?? ''}`)).body).toEqual(
        assignment,
      )
    }
    const unknown = await place.as('root', 'GET', `/v1/rbac/role_assignments/${unknownId}`)
    expect([unknown.status, unknown.body.faultstring]).toEqual([
      404,
      `Unable to identify resource with id "${unknownId}".`,
    ])
  })

  it('11.5 others see their own assignments, and say so', async () => {
    expect((await place.as<AssignmentAnswer[]>('bob', 'GET', '/v1/rbac/role_assignments?user=bob')).body).toHaveLength(
      1,
    )
    const [ofAlice] = (await place.as<AssignmentAnswer[]>('root', 'GET', '/v1/rbac/role_assignments?user=alice')).body
    for (const path of [
      '/v1/rbac/role_assignments',
      '/v1/rbac/role_assignments?user=alice',
      '/v1/rbac/role_assignments?user=Bob',
      `/v1/rbac/role_assignments/${ofAlice?.id ?? ''}`,
    ]) {
      for (const user of ['bob', 'watcher'] as const) {
        const { status, body } = await place.as(user, 'GET', path)
        expect([path, status, body.faultstring]).toEqual([path, 403, 'Administrator or self access required'])
      }
    }
  })

  it.each(['/v1/rbac/permission_types', '/v1/rbac/permission_types/action', '/v1/rbac/roles', '/v1/rbac/roles/ops'])(
    '11.5 %s is for administrators',
    async (path) => {
      for (const user of ['alice', 'watcher', 'nora'] as const) {
        const { status, body } = await place.as(user, 'GET', path)
        expect([user, status, body.faultstring]).toEqual([user, 403, 'Administrator access required'])
      }
    },
  )
})

describe('11.7 the OpenAPI document', () => {
  it('11.7 answers fit it', async () => {
    interface Operation {
      responses: Record<string, { content?: Record<string, { schema: object }> }>
    }
    const { body: document } = await place.call<{
      paths: Record<string, Record<string, Operation>>
      components: object
    }>('GET', '/v1/openapi.json')
    const [assignment] = (await place.as<AssignmentAnswer[]>('root', 'GET', '/v1/rbac/role_assignments')).body
    for (const [method, path, real] of [
      ['get', '/v1/rbac/permission_types', ''],
      ['get', '/v1/rbac/permission_types/{type}', '/v1/rbac/permission_types/pack'],
      ['get', '/v1/rbac/roles', ''],
      ['get', '/v1/rbac/roles/{name_or_id}', '/v1/rbac/roles/ops'],
      ['get', '/v1/rbac/role_assignments', ''],
      ['get', '/v1/rbac/role_assignments/{id}', `/v1/rbac/role_assignments/${assignment?.id ?? ''}`],
      ['post', '/v1/rbac/definitions/apply', ''],
    ] as const) {
      const schema = document.paths[path]?.[method]?.responses['200']?.content?.['application/json']?.schema
      const answer = await place.as('root', method.toUpperCase(), real === '' ? path : real)
      const ajv = new Ajv2020({ strict: false })
      const fits = ajv.validate({ ...schema, components: document.components }, answer.body)
      expect([path, answer.status, fits, ajv.errorsText()]).toEqual([path, 200, true, 'No errors'])
    }
  })
})

describe('11.6 applying definitions', () => {
  const none = { created: 0, updated: 0, removed: 0 }

  it('11.6 is for administrators', async () => {
    for (const user of ['alice', 'watcher'] as const) {
      expect((await place.as(user, 'POST', '/v1/rbac/definitions/apply')).status).toBe(403)
    }
  })

  it('11.6 a second time changes nothing and says so', async () => {
    const ids = async (): Promise<unknown> => [
      (await place.as('root', 'GET', '/v1/rbac/roles')).body,
      (await place.as('root', 'GET', '/v1/rbac/role_assignments')).body,
    ]
    const before = await ids()
    const { status, body } = await place.apply()
    expect([status, body]).toEqual([200, { roles: none, assignments: none, mappings: none }])
    expect(await ids()).toEqual(before)
  })

  it('11.6 a change counts at once, and is told in the audit log', async () => {
    expect((await place.as('nora', 'GET', '/v1/actions')).status).toBe(403)
    place.write({
      'assignments/nora.yaml': 'username: nora\nroles: [ops, viewer]\n',
      'mappings/g.yaml': 'group: g\nroles: [ops]\n',
    })
    const made = await place.apply()
    expect(made.body).toEqual({
      roles: none,
      assignments: { ...none, created: 2 },
      mappings: { ...none, created: 1 },
    })
    expect((await place.as('nora', 'GET', '/v1/actions')).status).toBe(200)
    const lines = await waitFor('the audit lines', () => {
      const found = place.audits('role_assignment.created').filter((line) => line.includes('nora'))
      return found.length === 2 && found
    })
    expect(lines[0]).toContain('user=root')
    await waitFor('the audit line of the whole', () =>
      place.audits('rbac.definitions_applied').at(-1)?.includes('assignments 2 created, 0 updated, 0 removed'),
    )

    place.write({ 'assignments/nora.yaml': undefined, 'mappings/g.yaml': undefined })
    const gone = await place.apply()
    expect(gone.body).toMatchObject({ assignments: { ...none, removed: 2 }, mappings: { ...none, removed: 1 } })
    expect((await place.as('nora', 'GET', '/v1/actions')).status).toBe(403)
    await waitFor('the audit lines', () => place.audits('role_assignment.removed').length === 2)
  })

  it('11.6 SIGHUP does the same', async () => {
    const status = async (): Promise<number> => (await place.as('nora', 'GET', '/v1/actions')).status
    const before = await status()
    place.write({ 'assignments/nora.yaml': 'username: nora\nroles: [ops]\n' })
    process.kill(place.pid, 'SIGHUP')
    await waitFor('the role', async () => (await status()) === 200)
    place.write({ 'assignments/nora.yaml': undefined })
    process.kill(place.pid, 'SIGHUP')
    await waitFor('the role to be gone', async () => (await status()) === 403)
    expect(before).toBe(403)
  })

  it('11.6 what is wrong is told whole, and nothing is changed', async () => {
    place.write({
      'roles/wrong.yaml': 'name: wrong\npermission_grants:\n  - permission_types: [execution_view]\n',
      'assignments/nora.yaml': 'username: nora\nroles: [ops, nothing]\n',
      'assignments/second.yaml': 'username: alice\nroles: []\n',
    })
    try {
      const { status, body } = await place.apply()
      expect([status, body.code]).toEqual([400, 'DEFINITIONS_INVALID'])
      for (const part of [
        'roles/wrong.yaml:3',
        'Invalid permission type "execution_view". Valid global permission types which can be used without a resource id are: ',
        'assignments/nora.yaml:2',
        'Role "nothing" does not exist',
        'Duplicate definition file found for user "alice"',
      ]) {
        expect(body.faultstring).toContain(part)
      }
      expect(body.faultstring).not.toContain(folder.path)
      expect((await place.as('nora', 'GET', '/v1/actions')).status).toBe(403)
      expect((await place.as('alice', 'GET', '/v1/actions')).status).toBe(200)
      process.kill(place.pid, 'SIGHUP')
      await waitFor('the log', () => /ERROR .*Role "nothing" does not exist/.test(place.log()))
      expect((await place.as('alice', 'GET', '/v1/actions')).status).toBe(200)
    } finally {
      place.write({
        'roles/wrong.yaml': undefined,
        'assignments/nora.yaml': undefined,
        'assignments/second.yaml': undefined,
      })
    }
  })

  it('11.6 streams end when their right is gone, and others go on', async () => {
    const long = await run(place, 'root', 'core.local', 'echo first; sleep 600')
    try {
      place.write({ 'assignments/nora.yaml': 'username: nora\nroles: [ops]\n' })
      await place.apply()
      const general = await place.follow('nora', '/v1/stream')
      const output = await place.follow('nora', `/v1/executions/${long.id}/output`)
      const ofAlice = await place.follow('alice', '/v1/stream')
      for (const client of [general, output, ofAlice]) await waitFor('the stream', () => client.raw() !== '')
      await output.frame(({ data }) => data.includes('first'))
      // She may still follow streams, but not see executions of this action.
      place.write({ 'assignments/nora.yaml': 'username: nora\nroles: [noop-only]\n' })
      await place.apply()
      expect(await output.ended).toBe('end')
      expect(output.raw()).not.toContain('EOF')
      const noop = await run(place, 'root', 'core.noop')
      await general.frame(({ data }) => data.includes(noop.id))
      place.write({ 'assignments/nora.yaml': undefined })
      await place.apply()
      expect(await general.ended).toBe('end')
      const echo = await run(place, 'alice', 'core.local', 'true')
      await ofAlice.frame(({ data }) => data.includes(echo.id))
      await toEnd(place, noop)
      await toEnd(place, echo)
    } finally {
      await place.as('root', 'DELETE', `/v1/executions/${long.id}`)
      await toEnd(place, long)
    }
  })

  it('11.1 administrators can be taken away by their file alone, and that counts at once', async () => {
    place.write({ 'assignments/nora.yaml': 'username: nora\nroles: [system_admin]\n' })
    await place.apply()
    expect((await place.as('nora', 'GET', '/v1/rbac/roles')).status).toBe(200)
    place.write({ 'assignments/nora.yaml': undefined })
    await place.apply()
    expect((await place.as('nora', 'GET', '/v1/rbac/roles')).status).toBe(403)
  })
})

describe('11.4 permission isolation', () => {
  const isolatedFolder = makeFolder()
  let isolated: Place
  let own: ExecutionAnswer
  let foreign: ExecutionAnswer

  beforeAll(async () => {
    writeDefinitions(isolatedFolder.path, definitions)
    isolated = await startPlace(isolatedFolder, { 'rbac.permission_isolation': 'True' })
    own = await toEnd(isolated, await run(isolated, 'alice', 'core.local', 'echo own'))
    foreign = await toEnd(isolated, await run(isolated, 'bob', 'core.local', 'echo foreign'))
  })

  afterAll(async () => {
    await isolated.stop()
    isolatedFolder.remove()
  })

  it('11.4 lists hold one’s own executions', async () => {
    const { body, headers } = await isolated.as<ExecutionAnswer[]>('alice', 'GET', '/v1/executions')
    expect(body.map(({ id }) => id)).toEqual([own.id])
    expect(headers.get('x-total-count')).toBe('1')
    const asked = await isolated.as<ExecutionAnswer[]>('alice', 'GET', '/v1/executions?user=bob')
    expect([asked.body, asked.headers.get('x-total-count')]).toEqual([[], '0'])
    const { body: views } = await isolated.as<Record<string, string[]>>('alice', 'GET', '/v1/executions/views/filters')
    expect(views['user']).toEqual(['alice'])
  })

  it.each([
    ['GET', '', undefined],
    ['GET', '/output', undefined],
    ['GET', '/result', undefined],
    ['GET', '/attribute/status', undefined],
    ['GET', '/children', undefined],
    ['POST', '/re_run', {}],
    ['DELETE', '', undefined],
    ['PUT', '', { status: 'canceled' }],
  ] as const)('11.5 %s %s of a foreign execution', async (method, part, body) => {
    const text = `User "alice" doesn't have access to resource "execution:${foreign.id}" due to resource permission isolation.`
    const answer = await isolated.as('alice', method, `/v1/executions/${foreign.id}${part}`, body)
    expect([answer.status, answer.body.faultstring]).toEqual([403, text])
    const observer = await isolated.as('watcher', method, `/v1/executions/${foreign.id}${part}`, body)
    expect([observer.status, observer.body.faultstring]).toEqual([403, text.replace('alice', 'watcher')])
  })

  it('11.4 one’s own, and everything for administrators', async () => {
    expect((await isolated.as('alice', 'GET', `/v1/executions/${own.id}`)).status).toBe(200)
    expect((await isolated.as('root', 'GET', `/v1/executions/${own.id}`)).status).toBe(200)
    const { headers } = await isolated.as('root', 'GET', '/v1/executions')
    expect(headers.get('x-total-count')).toBe('2')
  })

  it('11.4 the event stream tells of one’s own', async () => {
    const client = await isolated.follow('alice', '/v1/stream?events=*')
    await waitFor('the stream', () => client.raw() !== '')
    const bobs = await toEnd(isolated, await run(isolated, 'bob', 'core.local', 'true'))
    const alices = await toEnd(isolated, await run(isolated, 'alice', 'core.local', 'true'))
    await client.frame(({ data }) => data.includes(alices.id))
    expect(client.raw()).not.toContain(bobs.id)
    const refused = await isolated.as('alice', 'GET', `/stream/v1/executions/${bobs.id}/output`)
    expect(refused.status).toBe(403)
  })
})

fullOnly(describe)('11 while access control is off', () => {
  it('11.7 lists are empty for anybody, definitions are not looked at, and everybody is administrator', async () => {
    const offFolder = makeFolder()
    writeDefinitions(offFolder.path, {
      'roles/broken.yaml': '[',
      'assignments/bob.yaml': 'username: bob\nroles: [admin]\n',
    })
    const off = await startPlace(offFolder, { 'rbac.enable': 'False' })
    try {
      for (const path of ['roles', 'roles?system=true', 'role_assignments', 'role_assignments?user=root']) {
        const { status, body, headers } = await off.as<unknown[]>('nora', 'GET', `/v1/rbac/${path}`)
        expect([path, status, body, headers.get('x-total-count')]).toEqual([path, 200, [], '0'])
      }
      expect((await off.as('nora', 'GET', '/v1/rbac/roles/admin')).status).toBe(404)
      expect((await off.as('nora', 'GET', `/v1/rbac/role_assignments/${unknownId}`)).status).toBe(404)
      expect((await off.as('nora', 'GET', '/v1/rbac/permission_types')).body).toHaveProperty('action')
      const apply = await off.as('nora', 'POST', '/v1/rbac/definitions/apply')
      expect([apply.status, apply.body.code]).toEqual([400, 'ACCESS_CONTROL_OFF'])
      const { body } = await off.as<{ rbac: unknown }>('nora', 'GET', '/v1/user')
      expect(body.rbac).toEqual({ enabled: false, roles: [], is_admin: true })
      const execution = await run(off, 'nora', 'core.noop')
      expect(execution.context).not.toHaveProperty('rbac')
      await toEnd(off, execution)
      expect(rowsOf(off, 'select id from roles')).toEqual([])
      process.kill(off.pid, 'SIGHUP')
      await waitFor('the reload', () => off.log().includes('server.reloading'))
      expect((await off.as('nora', 'GET', '/v1/executions?limit=-1')).status).toBe(200)
      expect(off.log()).not.toContain('broken.yaml')
    } finally {
      await off.stop()
      offFolder.remove()
    }
  })
})

describe('11.6 the start', () => {
  async function withFolder(work: (folder: TemporaryFolder) => Promise<void>): Promise<void> {
    const own = makeFolder()
    try {
      await work(own)
    } finally {
      own.remove()
    }
  }
  const adminFile = ({ path }: TemporaryFolder): string => join(path, 'rbac', 'assignments', 'admin.yaml')

  it('11.6 wrong definitions stop it, with everything that is wrong', () =>
    withFolder(async (own) => {
      writeDefinitions(own.path, {
        'roles/a.yaml': 'name: observer\n',
        'roles/b.yaml': '',
        'assignments/a.yaml': 'username: alice\nroles: [nothing]\n',
      })
      const start = startServer({ basePath: own.path, settings: withRoles })
      await expect(start).rejects.toThrow(/ended before it was ready \(1\)/)
      const message = await start.catch((error: unknown) => String(error))
      expect(message).toMatch(/cannot start the server: The definition files in .*\/rbac cannot be used:/)
      expect(message).toContain('roles/a.yaml:1 (name): "observer" is a system role')
      expect(message).toContain('Role definition file "roles/b.yaml" is empty and invalid')
      expect(message).toContain('assignments/a.yaml:2 (roles.0): Role "nothing" does not exist')
    }))

  fullOnly(it)('11.1 a fresh installation: the account that was made is administrator', () =>
    withFolder(async (own) => {
      const server = await createTestApp({ basePath: own.path, settings: withRoles })
      try {
        expect(readFileSync(adminFile(own), 'utf8')).toContain('username: "admin"\nroles:\n  - system_admin\n')
        expect(server.log()).not.toContain('There is no administrator')
        const headers = await signIn(server, 'admin', firstPassword(own.path))
        const user = await server.call<{ rbac: unknown }>('GET', '/v1/user', undefined, headers)
        expect(user.body.rbac).toEqual({ enabled: true, roles: ['system_admin'], is_admin: true })
      } finally {
        await server.stop()
      }
    }),
  )

  fullOnly(it)('11.1 access control switched on later: the same, while the account has its first password', () =>
    withFolder(async (own) => {
      await (await createTestApp({ basePath: own.path, settings: { 'auth.enable': 'True' } })).stop()
      expect(existsSync(adminFile(own))).toBe(false)
      await (await createTestApp({ basePath: own.path, settings: withRoles })).stop()
      expect(existsSync(adminFile(own))).toBe(true)
    }),
  )

  it('11.1 behind the name `admin` may be somebody else: a changed password file makes nobody administrator', () =>
    withFolder(async (own) => {
      await (await createTestApp({ basePath: own.path, settings: { 'auth.enable': 'True' } })).stop()
      writeFileSync(join(own.path, 'htpasswd'), `admin:${hashes.get('alice') ?? ''}\n`)
      const server = await createTestApp({ basePath: own.path, settings: withRoles })
      await server.stop()
      expect(existsSync(adminFile(own))).toBe(false)
      expect(server.log()).toContain('There is no administrator')
    }))

  fullOnly(it)(
    '11.1 a password file of the operator makes nobody administrator, and the warning says what to write',
    () =>
      withFolder(async (own) => {
        const file = writeUsers(own.path, ['root', 'alice'])
        writeFileSync(file, readFileSync(file, 'utf8').replace('root:', 'admin:'))
        const settings = { ...withRoles, 'auth.backend_kwargs': JSON.stringify({ file_path: file }) }
        const server = await createTestApp({ basePath: own.path, settings })
        await server.stop()
        expect(existsSync(adminFile(own))).toBe(false)
        expect(existsSync(dirname(adminFile(own)))).toBe(true)
        expect(server.log()).toMatch(
          /WARNING .*There is no administrator\. Write a file such as .*rbac\/assignments\/NAME\.yaml/,
        )
      }),
  )
})
