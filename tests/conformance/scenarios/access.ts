/** Logging in, API keys, users and roles: on a server with access control. */
import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signIn } from '../../helpers/logins.ts'
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestApp } from '../../helpers/server.ts'
import { unknownId } from '../support.ts'

const passwords = { admin: 'admin-1', olga: 'olga-1', bob: 'bob-1' }
type User = keyof typeof passwords

const files: Readonly<Record<string, string>> = {
  'rbac/roles/ops.yaml':
    'name: ops\ndescription: runs commands\npermission_grants:\n' +
    '  - resource_uid: action:core:local\n    permission_types: [action_execute, action_view]\n' +
    '  - permission_types: [execution_list]\n',
  'rbac/assignments/admin.yaml': 'username: admin\nroles: [system_admin]\n',
  'rbac/assignments/olga.yaml': 'username: olga\nroles: [ops]\ndescription: on call\n',
  htpasswd: Object.entries(passwords)
    .map(([user, password]) => `${user}:{SHA}${createHash('sha1').update(password).digest('base64')}\n`)
    .join(''),
}

/** Base path of the server; what a client of its own keeps is below it. */
let base = '.'

/** Accounts and roles, and the credential of an administrator: each client logs in by itself. */
export function prepareAccess(basePath: string): Promise<Record<string, string>> {
  base = basePath
  for (const folder of ['rbac/roles', 'rbac/assignments']) mkdirSync(join(base, folder), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(base, name), text, { mode: 0o600 })
  return Promise.resolve({ SVC_CONFIG_FILE: configFor('admin') })
}

function configFor(user: User): string {
  const path = join(base, `${user}.conf`)
  writeFileSync(path, `[credentials]\nusername = ${user}\npassword = ${passwords[user]}\n`, { mode: 0o600 })
  return path
}

interface KeyRecord {
  id: string
  key: string
}

export function accessScenarios(server: TestApp): Scenario[] {
  const home = join(base, 'home')
  /** Whoever `home` logs in. */
  const ofHome = { HOME: home, SVC_CONFIG_FILE: '' }
  /** A user with the role `ops`. */
  const asOlga = (): Record<string, string> => ({ SVC_CONFIG_FILE: base === '.' ? '' : configFor('olga') })

  const headers = new Map<User, Promise<Record<string, string>>>()
  const headersOf = (user: User): Promise<Record<string, string>> => {
    const known = headers.get(user) ?? signIn(server, user, passwords[user])
    headers.set(user, known)
    return known
  }
  /** What is to be deleted need not be there. */
  const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const answer = await server.call<T>(method, path, body, await headersOf('admin'))
    if (answer.status >= 400 && !(method === 'DELETE' && answer.status === 404)) {
      throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    }
    return answer.body
  }
  const makeToken = async (user: User): Promise<string> => (await signIn(server, user, passwords[user]))['X-Auth-Token']

  const keyId = (body: unknown = {}): Promise<string> => makeKey(body).then(({ id }) => id)
  const makeKey = (body: unknown = {}): Promise<KeyRecord> => ask<KeyRecord>('POST', '/v1/apikeys', body)
  const user =
    (name: string, body: object = {}) =>
    async (): Promise<void> => {
      await ask('DELETE', `/v1/users/${name}`)
      await ask('POST', '/v1/users', { name, password: `${name}-1`, ...body })
    }
  const noUser = (name: string) => () => ask('DELETE', `/v1/users/${name}`)
  /** As after `svc login olga`. */
  const loggedIn = async (): Promise<void> => {
    loggedOut()
    const token = await makeToken('olga')
    mkdirSync(join(home, '.svc'), { recursive: true, mode: 0o700 })
    const write = (name: string, text: string): void => writeFileSync(join(home, '.svc', name), text, { mode: 0o600 })
    write('config', '[credentials]\nusername = olga\n')
    write('token-olga', JSON.stringify({ token, expire_timestamp: 4_000_000_000, auth_url: '' }))
  }
  const loggedOut = (): void => {
    rmSync(home, { recursive: true, force: true })
    mkdirSync(home, { recursive: true })
  }
  const keyFile = (): string => {
    const path = join(base, 'keys.yaml')
    const hash = createHash('sha512').update('a key of another server').digest('hex')
    writeFileSync(path, `- user: porter\n  key_hash: ${hash}\n  metadata: {used_by: deploy}\n  enabled: true\n`)
    return path
  }
  /** Everything of a user. */
  const noKeys = async (name: string): Promise<void> => {
    for (const { id } of await ask<KeyRecord[]>('GET', `/v1/apikeys?user=${name}`))
      await ask('DELETE', `/v1/apikeys/${id}`)
  }
  const unstable: NonNullable<Scenario['unstable']> = [
    [/\S*\/home\/\.svc\//g, '/home/olga/.svc/'],
    [/\S*\/(htpasswd|keys\.yaml)/g, '/srv/$1'],
    // Of the same length, so that tables stay straight.
    [/\beyJ[\w-]{33}\.[\w-]{46}\.[\w-]{43}/g, `TOKEN${'-'.repeat(122)}`],
    [/\bsvc_[\w-]{43}/g, `svc_KEY${'-'.repeat(40)}`],
  ]

  const scenarios: Scenario[] = [
    {
      command: 'user list',
      // The first login makes the record of a user.
      before: () => Promise.all([headersOf('admin'), headersOf('olga'), headersOf('bob')]),
      args: () => ['user', 'list'],
    },

    {
      command: 'auth',
      args: () => ['auth', 'olga', '-l', '3600'],
      input: 'olga-1\n',
      typed: [['Password: ', 'olga-1\r']],
    },
    { command: 'auth', about: 'only the token', args: () => ['auth', 'olga', '-t', '-p', 'olga-1'] },
    {
      command: 'auth',
      about: 'wrong password',
      args: () => ['auth', 'olga'],
      input: 'olga-2\n',
      typed: [['Password: ', 'olga-2\r']],
    },

    {
      command: 'login',
      before: loggedOut,
      args: () => ['login', 'olga'],
      env: ofHome,
      input: 'olga-1\n',
      typed: [['Password: ', 'olga-1\r']],
    },
    {
      command: 'login',
      about: 'keeping the password',
      before: loggedOut,
      args: () => ['login', 'olga', '-w'],
      env: ofHome,
      input: 'olga-1\n',
      typed: [['Password: ', 'olga-1\r']],
    },
    {
      command: 'login',
      about: 'wrong password',
      before: loggedOut,
      args: () => ['login', 'olga', '-p', 'olga-2'],
      env: ofHome,
    },
    { command: 'logout', before: loggedIn, args: () => ['logout'], env: ofHome },
    {
      command: 'logout',
      about: 'everywhere',
      before: async () => {
        await ask('DELETE', '/auth/tokens?user=olga')
        await loggedIn()
        await makeToken('olga')
      },
      args: () => ['logout', '--all'],
      env: ofHome,
    },
    { command: 'logout', about: 'nobody', before: loggedOut, args: () => ['logout'], env: ofHome },

    { command: 'whoami', args: () => ['whoami'] },
    {
      command: 'whoami',
      about: 'with an API key',
      args: async () => ['whoami', '--api-key', (await makeKey({ user: 'olga' })).key],
    },
    { command: 'whoami', about: 'nobody', before: loggedOut, args: () => ['whoami'], env: ofHome },

    { command: 'token revoke', args: async () => ['token', 'revoke', await makeToken('bob')] },
    {
      command: 'token revoke',
      about: 'typed',
      args: () => ['token', 'revoke', '-'],
      input: 'no-token\n',
      typed: [['Token: ', 'no-token\r']],
    },
    {
      command: 'token revoke',
      about: 'all of a user',
      before: async () => {
        await ask('DELETE', '/auth/tokens?user=bob')
        await makeToken('bob')
      },
      args: () => ['token', 'revoke', '--user', 'bob'],
    },
    { command: 'token revoke', about: 'nothing named', args: () => ['token', 'revoke'] },
    { command: 'token validate', args: async () => ['token', 'validate', await makeToken('bob')] },
    { command: 'token validate', about: 'not valid', args: () => ['token', 'validate', 'no-token'] },

    {
      command: 'apikey create',
      args: () => [
        'apikey',
        'create',
        '-u',
        'porter',
        '-m',
        '{"used_by": "deploy"}',
        '--scope',
        'action_execute@action:core:local',
      ],
    },
    { command: 'apikey create', about: 'only the key', args: () => ['apikey', 'create', '-k', '--expires', '30d'] },
    { command: 'apikey create', about: 'refused', args: () => ['apikey', 'create', '-u', 'bob'], env: asOlga() },
    {
      command: 'apikey list',
      before: async () => {
        await noKeys('porter')
        await makeKey({ user: 'porter', metadata: { used_by: 'deploy' } })
        await makeKey({ user: 'porter' })
      },
      args: () => ['apikey', 'list', '-u', 'porter'],
    },
    {
      command: 'apikey get',
      args: async () => ['apikey', 'get', await keyId({ user: 'porter', metadata: { used_by: 'deploy' } })],
    },
    { command: 'apikey get', about: 'unknown', args: () => ['apikey', 'get', unknownId, 'no-key'] },
    { command: 'apikey disable', args: async () => ['apikey', 'disable', await keyId({ user: 'porter' })] },
    {
      command: 'apikey enable',
      args: async () => ['apikey', 'enable', await keyId({ user: 'porter', enabled: false })],
    },
    { command: 'apikey delete', args: async () => ['apikey', 'delete', await keyId(), unknownId] },
    { command: 'apikey load', before: () => noKeys('porter'), args: () => ['apikey', 'load', keyFile()] },
    {
      command: 'apikey load',
      about: 'already there',
      before: async () => {
        await noKeys('porter')
        await ask('POST', '/v1/apikeys', {
          user: 'porter',
          key_hash: createHash('sha512').update('a key of another server').digest('hex'),
        })
      },
      args: () => ['apikey', 'load', keyFile()],
    },

    {
      command: 'user add',
      before: noUser('nina'),
      args: () => ['user', 'add', 'nina', '--nickname', 'chat=ni'],
      input: 'nina-1\n',
      typed: [
        ['Password of nina: ', 'nina-1\r'],
        ['Password of nina again: ', 'nina-1\r'],
      ],
    },
    {
      command: 'user add',
      about: 'already there',
      before: user('nina'),
      args: () => ['user', 'add', 'nina', '-p', 'nina-1'],
    },
    { command: 'user add', about: 'refused', args: () => ['user', 'add', 'nora', '-p', 'nora-1'], env: asOlga() },
    {
      command: 'user add',
      about: 'in a file',
      before: () => {
        rmSync(join(base, 'other'), { recursive: true, force: true })
        mkdirSync(join(base, 'other'))
      },
      args: () => ['user', 'add', 'nina', '--file', join(base, 'other', 'htpasswd')],
      input: 'nina-1\n',
      typed: [
        ['Password of nina: ', 'nina-1\r'],
        ['Password of nina again: ', 'nina-2\r'],
      ],
    },
    {
      command: 'user get',
      before: user('nina', { nicknames: { chat: 'ni' } }),
      args: () => ['user', 'get', 'nina', 'nobody'],
    },
    {
      command: 'user update',
      before: user('nina', { nicknames: { chat: 'ni' } }),
      args: () => ['user', 'update', 'nina', '--service', '--nickname', 'chat=', '--nickname', 'irc=nina'],
    },
    { command: 'user update', about: 'nothing named', args: () => ['user', 'update', 'nina'] },
    { command: 'user disable', before: user('nina'), args: () => ['user', 'disable', 'nina'] },
    {
      command: 'user enable',
      before: async () => {
        await user('nina')()
        await ask('PUT', '/v1/users/nina', { is_disabled: true })
      },
      args: () => ['user', 'enable', 'nina'],
    },
    { command: 'user delete', before: user('nina'), args: () => ['user', 'delete', 'nina', 'nobody'] },
    {
      command: 'user passwd',
      before: user('nina'),
      args: () => ['user', 'passwd', 'nina'],
      input: 'nina-2\n',
      typed: [
        ['New password of nina: ', 'nina-2\r'],
        ['New password of nina again: ', 'nina-2\r'],
      ],
    },
    {
      command: 'user passwd',
      about: 'the own one, wrongly',
      args: () => ['user', 'passwd'],
      env: asOlga(),
      input: 'olga-0\nolga-2\n',
      typed: [
        ['Current password: ', 'olga-0\r'],
        ['New password of olga: ', 'olga-2\r'],
        ['New password of olga again: ', 'olga-2\r'],
      ],
    },

    { command: 'role list', args: () => ['role', 'list'] },
    { command: 'role list', about: 'refused', args: () => ['role', 'list'], env: asOlga() },
    { command: 'role get', args: () => ['role', 'get', 'ops', 'nope'] },
    { command: 'role-assignment list', args: () => ['role-assignment', 'list', '-u', 'olga'], env: asOlga() },
    {
      command: 'role-assignment get',
      args: async () => {
        const [assignment] = await ask<{ id: string }[]>('GET', '/v1/rbac/role_assignments?user=olga')
        return ['role-assignment', 'get', assignment?.id ?? '', unknownId]
      },
    },
    {
      command: 'permission-type list',
      args: () => ['permission-type', 'list'],
      notAtTerminal: 'longer than a screen',
    },
    { command: 'permission-type get', args: () => ['permission-type', 'get', 'action', 'nope'] },
    { command: 'rbac apply', args: () => ['rbac', 'apply', '--verbose'] },
    {
      command: 'rbac apply',
      about: 'a wrong file',
      before: () => writeFileSync(join(base, 'rbac', 'roles', 'wrong.yaml'), 'name: ops\n'),
      args: () => ['rbac', 'apply'],
    },
  ]
  return scenarios.map((scenario) => ({ ...scenario, unstable }))
}
