/**
 * Who may do what with keys (contract 05, 5.11; 11, 11.3 and 11.4 rule 10), with a real server, and in whose name templates
 * read them. What is allowed stands here as the contract says it. CVE-2018-20345, CVE-2022-44009, st2#6379.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { createTestApp } from '../helpers/app.ts'
import { finalStatuses, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, type ErrorAnswer } from './support.ts'

interface KeyAnswer extends ErrorAnswer {
  id: string
  name: string
  scope: string
  user?: string
  value: string
  encrypted: boolean
}

type Headers = Record<string, string>
type Verb = 'view' | 'decrypt' | 'set' | 'delete'
const verbs = ['view', 'decrypt', 'set', 'delete'] as const

const run = 'key_value_pair:svckv.system:app.key'

/** Role → what it grants. The system role of the same name is assigned instead where there is one. */
const roles: Record<string, { types: string[]; on?: string }[]> = {
  viewer: [{ types: ['key_value_pair_view'], on: run }],
  lister: [{ types: ['key_value_pair_list'], on: run }],
  setter: [{ types: ['key_value_pair_set'], on: run }],
  deleter: [{ types: ['key_value_pair_delete'], on: run }],
  owner: [{ types: ['key_value_pair_all'], on: run }],
  elsewhere: [{ types: ['key_value_pair_all'], on: 'key_value_pair:svckv.system:app' }],
  everywhere: [{ types: ['key_value_pair_list'] }],
  thief: [{ types: ['key_value_pair_all'], on: 'key_value_pair:svckv.user:root:app.key' }],
}
const allowed: Record<string, readonly Verb[]> = {
  root: verbs,
  observer: ['view'],
  viewer: ['view', 'decrypt'],
  lister: ['view', 'decrypt'],
  setter: ['view', 'decrypt', 'set'],
  deleter: ['view', 'decrypt', 'delete'],
  owner: verbs,
  elsewhere: [],
  everywhere: [],
  thief: [],
  nobody: [],
}
const noPlainText = 'Decrypt option requires administrator access'
const users = Object.keys(allowed)
const runs = ['runner', 'impersonator', 'author']

const folder = makeFolder()
let server: TestApp
let administrator: Headers
const headersOf: Record<string, Headers> = {}

async function makeKey(user: string, more: object = {}): Promise<Headers> {
  const answer = await server.call<{ key: string }>('POST', '/v1/apikeys', { user, ...more }, administrator)
  if (answer.status !== 201) throw new Error(`no key (${answer.status}): ${answer.text}`)
  return { 'Svc-Api-Key': answer.body.key }
}

const as = (user: string, method: string, path: string, body?: unknown): Promise<Answer<KeyAnswer>> =>
  server.call<KeyAnswer>(method, path, body, headersOf[user] ?? {})
const list = (user: string, query: string): Promise<Answer<KeyAnswer[] & ErrorAnswer>> =>
  server.call(`GET`, `/v1/keys?${query}`, undefined, headersOf[user] ?? {})

async function prepare(value = 'canary-app'): Promise<void> {
  const { status, text } = await as('root', 'PUT', '/v1/keys/app.key', { name: 'app.key', value, secret: true })
  if (status !== 200) throw new Error(`not set (${status}): ${text}`)
}

const denied = (user: string, permission: string, uid: string): string =>
  `User "${user}" doesn't have required permission "${permission}" on resource "${uid}"`

beforeAll(async () => {
  const { define, assign } = createRbacFiles(folder.path)
  assign('admin', 'system_admin')
  assign('root', 'admin')
  assign('observer', 'observer')
  for (const [name, grants] of Object.entries(roles)) define(name, grants)
  const mayRun = { types: ['action_execute'], on: 'action:core:echo' }
  define('runner', [mayRun, { types: ['key_value_pair_view'], on: run }])
  define('impersonator', [mayRun, { types: ['user_impersonate'] }])
  define('author', [
    mayRun,
    { types: ['rule_create', 'rule_modify'], on: 'pack:web' },
    { types: ['key_value_pair_view'], on: 'key_value_pair:svckv.system:public' },
    { types: ['key_value_pair_view'], on: 'key_value_pair:svckv.system:starter' },
    { types: ['trigger_view'], on: 'trigger:core:svc.key_value_pair.create' },
  ])
  // Rules run as the system user, which therefore needs a role (rule 11).
  define('svc', [
    { types: ['key_value_pair_view'], on: run },
    { types: ['key_value_pair_view'], on: 'key_value_pair:svckv.system:public' },
  ])
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
  })
  administrator = await signIn(server, 'admin', firstPassword(folder.path))
  for (const user of [...users, ...runs]) headersOf[user] = await makeKey(user)
  await prepare()
  await as('root', 'PUT', '/v1/keys/public', { name: 'public', value: 'for all' })
  for (const user of users) {
    const body = { name: 'app.key', value: `canary-of-${user}`, scope: 'user', secret: true }
    const { status, text } = await as(user, 'PUT', '/v1/keys/app.key', body)
    if (status !== 200) throw new Error(`not set (${status}): ${text}`)
  }
}, 120_000)

afterAll(async () => {
  await server.stop()
  folder.remove()
})

describe('11.4 rule 10 items of the system', () => {
  const request: Record<Verb, (user: string) => Promise<Answer<KeyAnswer>>> = {
    view: (user) => as(user, 'GET', '/v1/keys/app.key'),
    decrypt: (user) => as(user, 'GET', '/v1/keys/app.key?decrypt=true'),
    set: (user) => as(user, 'PUT', '/v1/keys/app.key', { name: 'app.key', value: 'canary-app', secret: true }),
    delete: (user) => as(user, 'DELETE', '/v1/keys/app.key'),
  }
  const permissionOf: Record<Verb, string> = {
    view: 'key_value_pair_view',
    decrypt: 'key_value_pair_view',
    set: 'key_value_pair_set',
    delete: 'key_value_pair_delete',
  }

  it.each(users.flatMap((user) => verbs.map((verb) => [user, verb] as const)))('%s: %s', async (user, verb) => {
    await prepare()
    const { status, body, text } = await request[verb](user)
    const isAllowed = allowed[user]?.includes(verb) === true
    const isObserving = user === 'observer' && verb === 'decrypt'
    expect({ status, why: body.faultstring }).toEqual(
      isAllowed
        ? { status: verb === 'delete' ? 204 : 200, why: undefined }
        : { status: 403, why: isObserving ? noPlainText : denied(user, permissionOf[verb], run) },
    )
    expect(text.includes('canary')).toBe(isAllowed && verb === 'decrypt')
    const { status: after } = await as('root', 'GET', '/v1/keys/app.key')
    expect(after).toBe(isAllowed && verb === 'delete' ? 404 : 200)
  })

  it.each(users)('%s learns by no answer whether there is another key', async (user) => {
    const isAllowed = user === 'root' || user === 'observer'
    const answers = await Promise.all(
      ['public', 'never-set'].map((name) => as(user, 'GET', `/v1/keys/${name}`).then(({ status }) => status)),
    )
    expect(answers).toEqual(isAllowed ? [200, 404] : [403, 403])
  })

  it('refusals are audited, with who, what and where', async () => {
    const text = denied('nobody', 'key_value_pair_set', run)
    const refusal = await waitFor('the refusal to be in the file', () =>
      auditRecords(server, 'permission.denied').find((record) => record['short_message'] === text),
    )
    expect(refusal).toMatchObject({ _user: 'nobody', _method: 'PUT', _path: '/keys/:name' })
  })
})

describe('11.4 rule 10 items of users', () => {
  it.each(users)('%s has full rights on own items, whatever the role', async (user) => {
    const own = await as(user, 'GET', '/v1/keys/app.key?scope=user&decrypt=true')
    expect(own.body).toMatchObject({ value: `canary-of-${user}`, user, scope: 'svckv.user' })
    const body = { name: 'temporary', value: 'x', scope: 'user' }
    expect((await as(user, 'PUT', '/v1/keys/temporary', body)).status).toBe(200)
    expect((await as(user, 'DELETE', '/v1/keys/temporary?scope=user')).status).toBe(204)
  })

  it.each(users.filter((user) => user !== 'root'))('%s does not get at items of somebody else', async (user) => {
    const put = (more: object) => as(user, 'PUT', '/v1/keys/app.key', { name: 'app.key', value: 'taken', ...more })
    const answers: Answer<ErrorAnswer>[] = [
      await as(user, 'GET', '/v1/keys/app.key?user=root'),
      await as(user, 'GET', '/v1/keys/app.key?user=root&decrypt=true'),
      await as(user, 'GET', '/v1/keys/app.key?scope=user&user=root'),
      await as(user, 'GET', '/v1/keys/app.key?scope=system&user=root'),
      await list(user, 'user=root'),
      await list(user, 'user=root&scope=all&decrypt=true'),
      await put({ scope: 'user', user: 'root' }),
      await put({ scope: 'svckv.user', user: 'root' }),
      await put({ user: 'root' }),
      await as(user, 'DELETE', '/v1/keys/app.key?scope=user&user=root'),
      await as(user, 'DELETE', '/v1/keys/app.key?user=root'),
    ]
    for (const { status, body, text } of answers) {
      expect([status, body.faultstring]).toEqual([403, '"user" attribute can only be provided by admins'])
      expect(text).not.toContain('canary')
    }
    const { body } = await as('root', 'GET', '/v1/keys/app.key?scope=user&decrypt=true')
    expect(body.value).toBe('canary-of-root')
  })

  it('root, an administrator, does', async () => {
    const theirs = await as('root', 'GET', '/v1/keys/app.key?user=viewer&decrypt=true')
    expect(theirs.body).toMatchObject({ user: 'viewer', value: 'canary-of-viewer' })
    expect((await list('root', 'user=viewer')).body.map(({ user }) => user)).toEqual(['viewer'])
    const body = { name: 'gift', value: 'x', scope: 'user', user: 'viewer' }
    expect((await as('root', 'PUT', '/v1/keys/gift', body)).body.user).toBe('viewer')
    expect((await as('viewer', 'GET', '/v1/keys/gift?scope=user')).status).toBe(200)
    expect((await as('root', 'DELETE', '/v1/keys/gift?scope=user&user=viewer')).status).toBe(204)
  })
})

describe('5.11 lists', () => {
  const sees: Record<string, string[]> = {
    root: ['app.key', 'public'],
    observer: ['app.key', 'public'],
    viewer: ['app.key'],
    lister: ['app.key'],
    setter: ['app.key'],
    deleter: ['app.key'],
    owner: ['app.key'],
  }

  it.each(users)('%s sees what is granted, and own items', async (user) => {
    await prepare()
    const system = sees[user] ?? []
    const ofSystem = await list(user, '')
    expect(ofSystem.body.map(({ name }) => name)).toEqual(system)
    expect(ofSystem.headers.get('x-total-count')).toBe(String(system.length))
    const all = await list(user, 'scope=all')
    expect(all.body.map(({ name, user: owner }) => [name, owner])).toEqual([
      ...system.map((name) => [name, undefined]),
      ['app.key', user],
    ])
    expect(`${ofSystem.text}${all.text}`).not.toContain('canary')
    const own = await list(user, 'scope=user&decrypt=true')
    expect(own.body.map(({ value }) => value)).toEqual([`canary-of-${user}`])
    for (const scope of ['system', 'all']) {
      const open = await list(user, `scope=${scope}&decrypt=true`)
      expect([open.status, open.body.faultstring]).toEqual(
        user === 'root' ? [200, undefined] : [403, 'Decrypt option requires administrator access'],
      )
    }
    const everything = await list(user, 'limit=-1')
    expect(everything.status).toBe(user === 'root' ? 200 : 403)
  })

  it('an API key with scopes sees what its user may within them', async () => {
    const scopes = [{ permission_types: ['key_value_pair_view'], resource_uid: run }]
    for (const user of ['root', 'owner', 'elsewhere']) {
      headersOf['scoped'] = await makeKey(user, { scopes })
      const expected = user === 'elsewhere' ? [] : ['app.key']
      expect((await list('scoped', 'scope=all')).body.map(({ name }) => name)).toEqual(expected)
      expect((await list('scoped', 'scope=all&decrypt=true')).status).toBe(403)
      const one = await as('scoped', 'GET', '/v1/keys/app.key')
      expect(one.status).toBe(user === 'elsewhere' ? 403 : 200)
      expect((await as('scoped', 'GET', '/v1/keys/app.key?scope=user')).status).toBe(403)
      expect((await as('scoped', 'GET', '/v1/keys/app.key?user=viewer')).status).toBe(403)
      expect((await as('scoped', 'DELETE', '/v1/keys/app.key')).status).toBe(403)
      const taken = { name: 'app.key', value: 'AA', encrypted: true }
      expect((await as('scoped', 'PUT', '/v1/keys/app.key', taken)).status).toBe(403)
    }
  })

  it('cipher text is brought along by administrators alone', async () => {
    await prepare()
    const { value } = (await as('root', 'GET', '/v1/keys/app.key')).body
    const body = { name: 'app.key', value, encrypted: true }
    const refused = await as('owner', 'PUT', '/v1/keys/app.key', body)
    expect([refused.status, refused.body.faultstring]).toEqual([
      403,
      'Pre-encrypted option requires administrator access',
    ])
    expect((await as('root', 'PUT', '/v1/keys/app.key', body)).status).toBe(200)
  })
})

describe('02.6, CVE-2022-44009 templates of executions', () => {
  const echo = (user: string, message: string, more: object = {}): Promise<Answer<ExecutionAnswer>> =>
    server.call<ExecutionAnswer>(
      'POST',
      '/v1/executions',
      { action: 'core.echo', parameters: { message }, ...more },
      headersOf[user],
    )
  const end = (id: string): Promise<ExecutionAnswer> =>
    waitFor(`execution ${id} to end`, async () => {
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, administrator)
      return finalStatuses.includes(body.status) && body
    })
  const refusal = (user: string, uid: string): string =>
    `Failed to render parameter "message": ${denied(user, 'key_value_pair_view', uid)}`

  it('read what the caller may view, and nothing else', async () => {
    await prepare()
    const ran = await echo('runner', '{{ svckv.system.app.key | decrypt_kv }}')
    // It was read: what is not known to be the secret is not hidden.
    expect((await end(ran.body.id)).result['stdout']).toBe('********')
    for (const [message, uid] of [
      ['{{ svckv.system.public }}', 'key_value_pair:svckv.system:public'],
      ['{{ svckv.system.never_set }}', 'key_value_pair:svckv.system:never_set'],
      ["{{ svckv['system']['public'] | default('x') }}", 'key_value_pair:svckv.system:public'],
    ] as const) {
      const refused = await echo('runner', message)
      expect([refused.status, refused.body.faultstring]).toEqual([400, refusal('runner', uid)])
    }
  })

  it('cipher text that was seen elsewhere is not decrypted', async () => {
    const { value } = (await as('viewer', 'GET', '/v1/keys/app.key?scope=user')).body
    const refused = await echo('runner', `{{ '${value}' | decrypt_kv }}`)
    expect(refused.body.faultstring).toBe(refusal('runner', 'key_value_pair:svckv.user:viewer:app.key'))
    expect(refused.text).not.toContain('canary')
  })

  it('st2#6379 "user" in the request reads nothing in the name of somebody else', async () => {
    const foreign = await echo('runner', '{{ svckv.user.app.key | decrypt_kv }}', { user: 'root' })
    expect([foreign.status, foreign.text.includes('canary')]).toEqual([403, false])
    const claimed = await echo('runner', '{{ svckv.user.app.key | decrypt_kv }}', { context: { api_user: 'root' } })
    expect([claimed.status, claimed.text.includes('canary')]).toEqual([403, false])
    // Whoever may act for others still writes the templates.
    const acting = await echo('impersonator', '{{ svckv.user.app.key | decrypt_kv }}', { user: 'viewer' })
    expect([acting.status, acting.body.faultstring]).toEqual([
      400,
      refusal('impersonator', 'key_value_pair:svckv.user:viewer:app.key'),
    ])
    const system = await echo('impersonator', '{{ svckv.system.app.key | decrypt_kv }}', { user: 'runner' })
    expect(system.body.faultstring).toBe(refusal('impersonator', run))
  })

  it('an API key with scopes reads within them', async () => {
    const scopes = [
      { permission_types: ['action_execute'], resource_uid: 'action:core:echo' },
      { permission_types: ['key_value_pair_view'], resource_uid: 'key_value_pair:svckv.system:public' },
    ]
    headersOf['limited'] = await makeKey('root', { scopes })
    const ran = await echo('limited', '{{ svckv.system.public }}')
    expect((await end(ran.body.id)).result['stdout']).toBe('for all')
    const refused = await echo('limited', '{{ svckv.system.app.key }}')
    expect(refused.body.faultstring).toBe(refusal('root', run))
  })

  it('rules read what both the system user and whoever wrote them may view', async () => {
    const made = async (user: string, message: string): Promise<string> => {
      const name = `${user}-${Object.keys(headersOf).length}-${message.length}`
      const body = {
        name,
        pack: 'web',
        enabled: true,
        trigger: { type: 'core.svc.key_value_pair.create' },
        criteria: { 'trigger.object.name': { type: 'equals', pattern: 'starter' } },
        action: { ref: 'core.echo', parameters: { message } },
      }
      const answer = await server.call('POST', '/v1/rules', body, headersOf[user])
      if (answer.status !== 201) throw new Error(`no rule (${answer.status}): ${answer.text}`)
      return `web.${name}`
    }
    const rules = {
      good: await made('author', '{{ svckv.system.public }}'),
      bad: await made('author', '{{ svckv.system.app.key | decrypt_kv }}'),
      root: await made('root', '{{ svckv.system.app.key | decrypt_kv }}'),
    }
    await as('root', 'PUT', '/v1/keys/starter', { name: 'starter', value: 'x' })
    const enforcements = await waitFor('the rules to be enforced', async () => {
      const { body } = await server.call<
        { rule: { ref: string }; status: string; failure_reason?: string; execution_id?: string }[]
      >('GET', '/v1/ruleenforcements?limit=50', undefined, administrator)
      return body.length >= 3 && body
    })
    const of = (ref: string) => enforcements.find(({ rule }) => rule.ref === ref)
    expect(of(rules.bad)).toMatchObject({
      status: 'failed',
      failure_reason: expect.stringContaining(denied('author', 'key_value_pair_view', run)),
    })
    expect((await end(of(rules.good)?.execution_id ?? '')).result['stdout']).toBe('for all')
    expect((await end(of(rules.root)?.execution_id ?? '')).result['stdout']).toBe('********')
  })
})

describe('CVE-2018-20345 what is asked for is never more than what may be seen', () => {
  it('for each combination of parameters', async () => {
    await prepare()
    const choices: Record<string, (string | undefined)[]> = {
      scope: [undefined, 'system', 'user', 'all', 'svckv.system', 'svckv.user'],
      user: [undefined, 'self', 'root'],
      prefix: [undefined, 'app', ''],
      decrypt: [undefined, 'true'],
      limit: [undefined, '1'],
    }
    const queries = Object.entries(choices).reduce<string[]>(
      (all, [name, values]) =>
        all.flatMap((query) => values.map((value) => (value === undefined ? query : `${query}&${name}=${value}`))),
      [''],
    )
    let seen = 0
    for (const user of ['viewer', 'nobody', 'observer']) {
      for (const query of queries) {
        const answer = await list(user, query.replace('=self', `=${user}`))
        const isFine =
          answer.status === 403 ||
          answer.body.every(
            ({ name, user: owner }) =>
              owner === user ||
              (owner === undefined && (user === 'observer' || (user === 'viewer' && name === 'app.key'))),
          )
        const foreign = (answer.text.match(/canary-[\w-]+/g) ?? []).filter((value) => value !== `canary-of-${user}`)
        const { status } = answer
        const isRefused = query.includes('user=root') ? status === 403 : status !== 200
        expect({ user, query, isFine, foreign, status: isRefused ? 403 : 200 }).toEqual({
          user,
          query,
          isFine: true,
          foreign: [],
          status,
        })
        seen += answer.status === 200 ? answer.body.length : 0
      }
    }
    expect(seen).toBeGreaterThan(100)
  })
})
