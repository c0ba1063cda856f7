/** Contract 09, 9.3 and 9.7: logging in, API keys, users and roles on the command line, against a real server. */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { jsonOf, runCli, spawnCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront } from '../helpers/front.ts'
import { basicAuth, firstPassword, signIn } from '../helpers/logins.ts'
import { startAtTerminal } from '../helpers/pty.ts'
import { call, executable, withServer, type TestApp } from '../helpers/server.ts'
import { fullOnly, tier, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern, unknownId } from './support.ts'

const base = makeFolder()
const folder = makeFolder()
const home = join(folder.path, 'home')
const configFile = join(home, '.svc', 'config')
const tokenFile = join(home, '.svc', 'token-admin')
const ownerOnly = 0o600

let server: TestApp
let password: string

beforeAll(async () => {
  const settings = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }
  server = await createTestApp({ basePath: base.path, settings })
  password = firstPassword(base.path)
})

afterAll(async () => {
  await server.stop()
  base.remove()
  folder.remove()
})

beforeEach(() => {
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home)
})

interface Call {
  env?: Record<string, string>
  input?: string
}

const envOf = (more: Record<string, string> = {}): Record<string, string> => ({
  HOME: home,
  SVC_API_URL: `${server.urls.api}/v1`,
  SVC_AUTH_URL: server.urls.auth,
  ...more,
})

/** As nobody in particular: whoever the files in `home` log in. */
const svc = (args: readonly string[], { env = {}, input = '' }: Call = {}): Promise<CliExit> =>
  runCli(args, envOf(env), { input })

/** The same in a process of its own, for what Node reads of the environment. */
const spawnSvc = (args: readonly string[], env: Record<string, string>): Promise<CliExit> => spawnCli(args, envOf(env))

let adminToken: string | undefined

/** As the administrator, whatever is in `home`. */
async function admin(...args: string[]): Promise<CliExit> {
  adminToken ??= (await svc(['auth', 'admin', '-t', '-p', password])).stdout.trim()
  return svc(args, { env: { SVC_AUTH_TOKEN: adminToken } })
}

const adminJson = <T>(...args: string[]): Promise<T> => jsonOf<T>(admin, args)

function configure(text: string): void {
  mkdirSync(join(home, '.svc'), { mode: 0o700 })
  writeFileSync(configFile, text, { mode: ownerOnly })
}

const modeOf = (path: string): number => statSync(path).mode & 0o7777
const cell = (text: string): RegExp => new RegExp(`\\| ${text} +\\|`)

const notLoggedIn = /^ERROR: 401 Client Error: Unauthorized\nMESSAGE: .*Token or API key required/

describe('09.3 auth', () => {
  it('09.3 auth prints the record of the token, or the token alone', async () => {
    const record = await svc(['auth', 'admin', '-p', password])
    expect([record.code, record.stderr]).toEqual([0, ''])
    expect(record.stdout).toMatch(cell('admin'))
    expect(record.stdout).toMatch(/\| expiry +\| \w{3}, \d\d \w{3} \d{4} [\d:]{8} UTC +\|/)
    expect([...record.stdout.matchAll(/^\| (\w+)/gm)].map(([, name]) => name)).toEqual([
      'Property',
      'user',
      'token',
      'expiry',
    ])

    const { code, stdout, stderr } = await svc(['auth', 'admin', '-t', '-l', '60'], { input: `${password}\n` })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^[!-~]{32,1024}\n$/)
    expect((await svc(['whoami', '-t', stdout.trim()])).stdout).toContain('Currently logged in as "admin".\n')

    const { stdout: json } = await svc(['auth', 'admin', '-j', '--ttl', '60'], { input: password })
    const { expiry } = JSON.parse(json) as { expiry: string }
    expect(Date.parse(expiry) - Date.now()).toBeLessThanOrEqual(61_000)
    expect(existsSync(join(home, '.svc'))).toBe(false)
  })

  it('09.1 a wrong password, no password and a lifetime beyond the limit: 1', async () => {
    const wrong = await svc(['auth', 'admin', '-p', 'wrong-1'])
    expect(wrong).toEqual({
      code: 1,
      stdout: `ERROR: 401 Client Error: Unauthorized\nMESSAGE: Invalid or missing credentials for url: ${server.urls.auth}/tokens\n`,
      stderr: '',
    })
    const none = await svc(['auth', 'admin'])
    expect([none.code, none.stderr]).toEqual([1, ''])
    expect(none.stdout).toMatch(/^ERROR: Password: standard input is not a terminal/)
    const long = await svc(['auth', 'admin', '-p', password, '-l', '999999999'])
    expect([long.code, long.stdout]).toEqual([
      1,
      expect.stringContaining('TTL specified 999999999 is greater than max allowed'),
    ])
    for (const ttl of ['0', '-1', 'x', '1.5'])
      expect((await svc(['auth', 'admin', '-l', ttl, '-p', password])).code).toBe(2)
    expect((await svc(['auth', 'a:b', '-p', password])).stdout).toMatch(/^ERROR: A user name must not contain a colon/)
  })

  it('09.7 auth and login do not log in by themselves first', async () => {
    configure('[credentials]\nusername = nobody\npassword = no-password\n')
    writeFileSync(join(home, '.svc', 'token-nobody'), 'damaged')
    expect((await svc(['auth', 'admin', '-p', password])).code).toBe(0)
    expect((await svc(['login', 'admin', '-p', password])).code).toBe(0)
  })
})

describe('09.3 login', () => {
  it('09.3 login keeps name and token, and says that the password was not saved', async () => {
    const { code, stdout, stderr } = await svc(['login', 'admin'], { input: `${password}\n` })
    expect([code, stdout]).toEqual([0, 'Logged in as admin\n'])
    expect(stderr).toContain('The password was not saved')
    expect(readFileSync(configFile, 'utf8')).toBe('[credentials]\nusername = admin\n')
    const cached = JSON.parse(readFileSync(tokenFile, 'utf8')) as { token: string; expire_timestamp: number }
    expect(cached).toEqual({
      token: expect.any(String),
      expire_timestamp: expect.any(Number),
      auth_url: server.urls.auth,
    })
    expect(cached.expire_timestamp * 1000 - Date.now()).toBeGreaterThan(80_000_000)
    expect([modeOf(join(home, '.svc')), modeOf(configFile), modeOf(tokenFile)]).toEqual([0o700, ownerOnly, ownerOnly])
    expect((await svc(['whoami'])).stdout).toContain('Currently logged in as "admin".\n')
    const run = await svc(['run', 'core.noop'])
    expect([run.code, run.stderr]).toEqual([0, ''])
  })

  it('09.3 login changes nothing else in the file', async () => {
    const [before, after] = [
      '; mine\n[cli]\r\ntimezone = Asia/Tokyo\n\n[credentials]\n# who\n',
      '\n[general]\nsilence_ssl_warnings=True',
    ]
    configure(`${before}username: bob\npassword = of bob${after}`)
    chmodSync(configFile, 0o640)
    expect((await svc(['login', 'admin', '-p', password])).code).toBe(0)
    expect(readFileSync(configFile, 'utf8')).toBe(`${before}username: admin${after}`)
    expect((await svc(['login', 'admin', '-p', password, '-w'])).stderr).toBe('')
    expect(readFileSync(configFile, 'utf8')).toBe(
      before.replace('# who\n', `password = ${password}\n# who\n`) + `username: admin${after}`,
    )
    expect(modeOf(configFile)).toBe(0o640)
    expect(readdirSync(join(home, '.svc')).toSorted()).toEqual(['config', 'token-admin'])
  })

  it('09.3 a token that cannot be kept: a warning, and nothing of it is left', async () => {
    mkdirSync(tokenFile, { recursive: true, mode: 0o700 })
    const { code, stdout, stderr } = await svc(['login', 'admin', '-p', password])
    expect([code, stdout]).toEqual([0, 'Logged in as admin\n'])
    expect(stderr).toMatch(/^WARNING: Cannot store the token for later commands: EISDIR/)
    expect(stderr).toContain('\nNote: Neither the password nor the token was saved, so later commands')
    expect(readdirSync(join(home, '.svc')).toSorted()).toEqual(['config', 'token-admin'])
  })

  it('09.3 a refused login changes nothing', async () => {
    configure('[credentials]\nusername = bob\n')
    expect((await svc(['login', 'admin', '-p', 'wrong-2'])).code).toBe(1)
    expect(readFileSync(configFile, 'utf8')).toBe('[credentials]\nusername = bob\n')
    expect(readdirSync(join(home, '.svc'))).toEqual(['config'])
    const homeless = await svc(['login', 'admin', '-p', password], { env: { HOME: '' } })
    expect([homeless.code, homeless.stdout]).toEqual([
      1,
      expect.stringMatching(/^ERROR: Cannot store a login without a home .* Set HOME/),
    ])
    const printed = await svc(['--print-config'], { env: { HOME: 'relative' } })
    expect([printed.code, printed.stdout]).toEqual([3, expect.stringMatching(/^# No configuration file is read\n/)])
    const nowhere = await svc(['--skip-config', 'login', 'admin', '-p', password])
    expect([nowhere.code, nowhere.stdout]).toEqual([1, expect.stringContaining('with --skip-config')])
  })

  it('09.7 what goes before the login is named', async () => {
    const { code, stderr } = await svc(['login', 'admin', '-p', password], { env: { SVC_API_KEY: 'some-key' } })
    expect([code, stderr]).toEqual([0, expect.stringContaining('overrides this login')])
  })

  it('09.7 without a cache no token is kept', async () => {
    configure('[cli]\ncache_token = False\n')
    const { stderr } = await svc(['login', 'admin', '-p', password])
    expect(stderr).toContain('cache_token')
    expect(existsSync(tokenFile)).toBe(false)
    expect((await svc(['login', 'admin', '-w', '-p', password])).code).toBe(0)
    expect((await svc(['whoami'])).code).toBe(0)
    expect(existsSync(tokenFile)).toBe(false)
  })
})

describe('09.3 login that cannot be kept', () => {
  it('leaves no token on the server', async () => {
    await admin('user', 'add', 'unkept', '-p', 'unkept-1')
    mkdirSync(join(home, '.svc'), { mode: 0o700 })
    symlinkSync('/proc/nowhere/config', configFile)
    expect(await svc(['login', 'unkept', '-p', 'unkept-1'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^ERROR: Cannot write the configuration file .*: /),
    })
    expect((await admin('token', 'revoke', '--user', 'unkept')).stdout).toBe('No tokens of "unkept" were revoked.\n')
  })
})

describe('09.3 logout', () => {
  const isValid = async (token: string): Promise<boolean> => (await svc(['whoami', '-t', token])).code === 0
  const keptToken = (): string => (JSON.parse(readFileSync(tokenFile, 'utf8')) as { token: string }).token
  const elsewhere = { SVC_AUTH_URL: 'http://127.0.0.1:1' }

  it('the kept token is revoked, and with name and password forgotten; all else stays', async () => {
    configure('[credentials]\n# mine\napi_url = x\n[cli]\ntimezone = Asia/Tokyo\n')
    expect((await svc(['login', 'admin', '-w', '-p', password])).code).toBe(0)
    const token = keptToken()
    const other = (await svc(['auth', 'admin', '-t', '-p', password])).stdout.trim()
    const { code, stdout, stderr } = await svc(['--debug', 'logout'])
    expect([code, stdout]).toEqual([0, 'Logged out admin\n'])
    expect(stderr).toMatch(/^curl -X DELETE .*\/tokens\/\*{8}'?$/m)
    expect(stderr).not.toContain(token)
    expect([await isValid(token), await isValid(other)]).toEqual([false, true])
    expect(readFileSync(configFile, 'utf8')).toBe('[credentials]\n# mine\napi_url = x\n[cli]\ntimezone = Asia/Tokyo\n')
    expect(readdirSync(join(home, '.svc'))).toEqual(['config'])
    expect(await svc(['logout'])).toMatchObject({ code: 0, stdout: 'Not logged in.\n' })
    expect(JSON.parse((await svc(['logout', '-j'])).stdout)).toEqual({ user: null, revoked: 0 })
  })

  it('--all revokes every token of the user', async () => {
    await admin('user', 'add', 'leaver', '-p', 'leaver-1')
    expect((await svc(['login', 'leaver', '-p', 'leaver-1'])).code).toBe(0)
    const other = (await svc(['auth', 'leaver', '-t', '-p', 'leaver-1'])).stdout.trim()
    expect((await svc(['logout', '--all'])).stdout).toBe('2 tokens of "leaver" were revoked.\nLogged out leaver\n')
    expect(await isValid(other)).toBe(false)
    expect(existsSync(join(home, '.svc', 'token-leaver'))).toBe(false)
    // Without a token, with the password.
    writeFileSync(configFile, '[credentials]\nusername = leaver\npassword = leaver-1\n')
    expect(JSON.parse((await svc(['logout', '--all', '-j'])).stdout)).toEqual({ user: 'leaver', revoked: 1 })
    expect([readFileSync(configFile, 'utf8'), readdirSync(join(home, '.svc'))]).toEqual(['[credentials]\n', ['config']])
  })

  it('a token that cannot be deleted: the login is forgotten all the same', async () => {
    await svc(['login', 'admin', '-w', '-p', password])
    rmSync(tokenFile)
    mkdirSync(tokenFile)
    expect(await svc(['logout'])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^ERROR: Cannot delete the stored token: .*token-admin/),
    })
    expect(readFileSync(configFile, 'utf8')).toBe('[credentials]\n')
  })

  it('a server out of reach: the login is forgotten, and a warning tells that the token is still valid', async () => {
    await svc(['login', 'admin', '-p', password])
    const token = keptToken()
    // As a login at a server that is gone.
    const cached = JSON.parse(readFileSync(tokenFile, 'utf8')) as Record<string, unknown>
    writeFileSync(tokenFile, JSON.stringify({ ...cached, auth_url: elsewhere.SVC_AUTH_URL }), { mode: ownerOnly })
    const { code, stdout, stderr } = await svc(['logout'])
    expect([code, stdout]).toEqual([0, 'Logged out admin\n'])
    expect(stderr).toMatch(
      /^WARNING: Could not revoke the token, which stays valid until \w{3}, .* UTC: Cannot connect to http:\/\/127\.0\.0\.1:1: /,
    )
    expect([existsSync(tokenFile), readFileSync(configFile, 'utf8'), await isValid(token)]).toEqual([
      false,
      '[credentials]\n',
      true,
    ])

    await svc(['login', 'admin', '-p', password])
    const before = readFileSync(configFile, 'utf8')
    const all = await svc(['logout', '--all', '-t', token], { env: elsewhere })
    expect([all.code, all.stdout]).toEqual([1, expect.stringMatching(/^ERROR: Cannot connect /)])
    expect([existsSync(tokenFile), readFileSync(configFile, 'utf8')]).toEqual([true, before])
  })

  it('a token is revoked where it was made, and nobody else sees it', async () => {
    await svc(['login', 'admin', '-p', password])
    const token = keptToken()
    const { code, stderr } = await svc(['logout'], { env: { ...elsewhere, SVC_BASIC_AUTH: 'front:door' } })
    expect([code, stderr, await isValid(token)]).toEqual([0, '', false])
  })

  it('tokens that are revoked, expired, damaged or missing do not stand in the way', async () => {
    const login = (): Promise<CliExit> => svc(['login', 'admin', '-p', password])
    const logout = async (): Promise<[number | null, string, string]> => {
      const { code, stdout, stderr } = await svc(['logout'])
      expect(existsSync(tokenFile)).toBe(false)
      return [code, stdout, stderr]
    }
    await login()
    expect((await admin('token', 'revoke', keptToken())).stdout).toBe('Token is revoked.\n')
    expect(await logout()).toEqual([0, 'Logged out admin\n', ''])
    await login()
    const cached = JSON.parse(readFileSync(tokenFile, 'utf8')) as Record<string, unknown>
    writeFileSync(tokenFile, JSON.stringify({ ...cached, expire_timestamp: 1, auth_url: elsewhere.SVC_AUTH_URL }))
    expect(await logout()).toEqual([0, 'Logged out admin\n', ''])
    for (const damaged of [
      '{',
      '{"token": "x", "expire_timestamp": 1e300}',
      '{"token": "x", "expire_timestamp": 1, "auth_url": "?"}',
    ]) {
      await login()
      writeFileSync(tokenFile, damaged)
      expect(await logout()).toEqual([
        0,
        'Logged out admin\n',
        expect.stringMatching(/^WARNING: The stored token file was damaged/),
      ])
    }
    await login()
    rmSync(tokenFile)
    expect(await logout()).toEqual([0, 'Logged out admin\n', expect.stringContaining('No token was stored')])
  })

  it('what is still valid besides is named; without a configuration file there is nothing to log out of', async () => {
    await svc(['login', 'admin', '-p', password])
    const { code, stderr } = await svc(['logout'], { env: { SVC_API_KEY: 'some-key' } })
    expect([code, stderr]).toEqual([0, expect.stringContaining('Another token or API key is set')])
    expect((await svc(['--skip-config', 'logout'])).stdout).toMatch(/^ERROR: Cannot store a login with --skip-config/)
  })
})

describe('01.7 token', () => {
  const make = async (user = 'admin', secret = password): Promise<string> =>
    (await svc(['auth', user, '-t'], { input: secret })).stdout.trim()

  it('01.7 revoke by value, from standard input, by id, and all of a user', async () => {
    const asAdmin = { SVC_AUTH_TOKEN: (await admin('whoami'), adminToken ?? '') }
    const [first, second] = [await make(), await make()]
    const { code, stdout, stderr } = await svc(['--debug', 'token', 'revoke', first, '-'], {
      env: asAdmin,
      input: second,
    })
    expect([code, stdout]).toEqual([0, 'Token is revoked.\nToken is revoked.\n'])
    expect([stderr.includes(first), stderr.includes(second)]).toEqual([false, false])
    const { stdout: json } = await svc(['auth', 'admin', '-j'], { input: password })
    const { id } = JSON.parse(json) as { id: string }
    expect((await admin('token', 'revoke', id)).stdout).toBe(`Token "${id}" is revoked.\n`)
    expect(await admin('token', 'revoke', id, first)).toEqual({
      code: 2,
      stdout: `Token "${id}" is not found.\n\nToken "********" is not found.\n\n`,
      stderr: '',
    })

    await admin('user', 'add', 'tokens', '-p', 'tokens-1')
    const [own, other] = [await make('tokens', 'tokens-1'), await make('tokens', 'tokens-1')]
    const foreign = await svc(['token', 'revoke', '--user', 'admin', '-t', own])
    expect([foreign.code, foreign.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 403 /)])
    expect((await svc(['token', 'revoke', other, '-t', own])).code).toBe(0)
    expect((await admin('token', 'revoke', '--user', 'tokens')).stdout).toBe('1 token of "tokens" was revoked.\n')
    expect(await adminJson('token', 'revoke', '--user', 'tokens')).toEqual({ user: 'tokens', revoked: 0 })
    for (const args of [[], ['x', '--user', 'y']]) expect((await admin('token', 'revoke', ...args)).code).toBe(2)
    expect((await svc(['token', 'revoke', 'x'])).stdout).toMatch(/^ERROR: 401 /)
  })

  it('01.5 validate ends with 0 for a valid token, and with 1 for another', async () => {
    const token = await make()
    const { code, stdout, stderr } = await admin('--debug', 'token', 'validate', token)
    expect([code, stdout, stderr.includes(token)]).toEqual([0, 'The token is valid.\n', false])
    expect(await adminJson('token', 'validate', token)).toEqual({ valid: true })
    await admin('token', 'revoke', token)
    const piped = await svc(['token', 'validate', '-'], { env: { SVC_AUTH_TOKEN: adminToken ?? '' }, input: token })
    expect([piped.code, piped.stdout]).toEqual([1, 'The token is not valid.\n'])
    const json = await admin('token', 'validate', 'nonsense', '-j')
    expect([json.code, JSON.parse(json.stdout)]).toEqual([1, { valid: false }])
    expect((await admin('token', 'validate', '')).code).toBe(1)
    expect((await svc(['token', 'validate', token])).stdout).toMatch(/^ERROR: 401 /)
  })
})

describe('11.7 permission-type', () => {
  it('11.7 list shows all of them in a table; get those of a type of resource', async () => {
    const { code, stdout } = await admin('permission-type', 'list')
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/\| resource_type +\| permission_type +\| description +\|/),
    ])
    expect(stdout).toMatch(/\| action +\| action_execute +\| \w/)
    const records = await adminJson<Record<string, string>[]>('permission-type', 'list')
    expect(records).toContainEqual({
      resource_type: 'action',
      permission_type: 'action_execute',
      description: expect.any(String),
    })
    expect((await admin('permission-type', 'list', '-a', 'permission_type', '-w', '60')).stdout).toMatch(
      /^\+-+\+\n\| permission_type +\|\n/,
    )
    const get = await admin('permission-type', 'get', 'nope', 'action')
    expect([get.code, get.stdout]).toEqual([
      2,
      expect.stringMatching(/^Resource Type "nope" is not found\.\n\n[^]*\| action_execute +\| \w/),
    ])
    expect(await adminJson('permission-type', 'get', 'action')).toMatchObject({ action_execute: expect.any(String) })
  })
})

describe('09.3 whoami', () => {
  it('09.3 tells user, method, end of the token, and roles', async () => {
    const { code, stdout, stderr } = await admin('whoami')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^Currently logged in as "admin"\.\n\nAuthentication method: authentication token\nAuthentication token expire time: \w{3}, .* UTC\n\nRBAC:\n - Enabled: True\n - Roles: system_admin\n$/,
    )
    const key = (await admin('apikey', 'create', '-k')).stdout.trim()
    const withKey = await svc(['whoami', '--api-key', key])
    expect(withKey.stdout).toMatch(/\n\nAuthentication method: API key\n\nRBAC:\n/)
    expect(JSON.parse((await svc(['whoami', '-j', '--api-key', key])).stdout)).toMatchObject({ username: 'admin' })
  })

  it('09.1 without a usable login: Not authenticated, 1', async () => {
    const missing = await svc(['whoami'])
    expect(missing).toEqual({
      code: 1,
      stdout: 'Not authenticated\n',
      stderr: expect.stringContaining('svc login <user>'),
    })
    const wrong = await svc(['whoami', '-t', 'no-token'])
    expect([wrong.code, wrong.stdout]).toEqual([1, 'Not authenticated\n'])
    configure('[credentials]\nusername = admin\npassword = wrong-3\n')
    const stored = await svc(['whoami'])
    expect([stored.code, stored.stdout]).toEqual([1, 'Not authenticated\n'])
    expect(stored.stderr).toBe(`The password of "admin" in ${configFile} is refused. Log in again: svc login admin\n`)
  })
})

describe('09.7 automatic login', () => {
  const stored = (): string => `[credentials]\nusername = admin\npassword = ${password}\n`

  it('09.7 with the stored password, then with the kept token', async () => {
    configure(stored())
    const first = await svc(['--debug', 'whoami'])
    expect(first.code).toBe(0)
    expect(first.stderr).toMatch(/^curl -X POST .*\/tokens$/m)
    const kept = readFileSync(tokenFile, 'utf8')
    expect((await svc(['--version'])).stdout).toMatch(/^svc [\d.]+\nserver [\d.]+ \(/)
    const second = await svc(['--debug', 'whoami'])
    expect([second.code, second.stderr.includes('/tokens')]).toEqual([0, false])
    expect(readFileSync(tokenFile, 'utf8')).toBe(kept)
  })

  it('09.7 a token that was revoked is replaced, or the way to another is named', async () => {
    configure(stored())
    await svc(['whoami'])
    const { token } = JSON.parse(readFileSync(tokenFile, 'utf8')) as { token: string }
    const revoke = (value: string) =>
      call(`${server.urls.auth}/tokens/${value}`, 'DELETE', undefined, { 'X-Auth-Token': value })
    expect((await revoke(token)).status).toBe(204)
    expect((await svc(['run', 'core.noop'])).code).toBe(0)
    const next = JSON.parse(readFileSync(tokenFile, 'utf8')) as { token: string }
    expect(next.token).not.toBe(token)

    writeFileSync(configFile, '[credentials]\nusername = admin\n')
    expect((await svc(['whoami'])).code).toBe(0)
    expect((await revoke(next.token)).status).toBe(204)
    const { code, stdout } = await svc(['run', 'core.noop'])
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^ERROR: 401 [^]*\nLog in again: svc login admin\n$/)])
  })

  it('09.7 an expired token is not sent, and neither is one of another server', async () => {
    configure(stored())
    await svc(['whoami'])
    const cached = JSON.parse(readFileSync(tokenFile, 'utf8')) as Record<string, unknown>
    for (const change of [
      { expire_timestamp: Math.floor(Date.now() / 1000) + 10 },
      { auth_url: 'http://127.0.0.1:1' },
    ]) {
      writeFileSync(tokenFile, JSON.stringify({ ...cached, token: 'must-not-be-sent', ...change }))
      const { code, stderr } = await svc(['--debug', 'whoami'])
      expect([code, stderr.includes(' 401 ')]).toEqual([0, false])
    }

    writeFileSync(configFile, '[credentials]\nusername = admin\n')
    writeFileSync(tokenFile, JSON.stringify({ ...cached, auth_url: 'http://127.0.0.1:1' }))
    expect((await svc(['run', 'core.noop'])).stdout).toContain(
      `The last login is for http://127.0.0.1:1 and not for ${server.urls.auth}.`,
    )
  })

  it('09.7 a damaged file is named, with what to do', async () => {
    configure(stored())
    writeFileSync(tokenFile, '{"token"', { mode: ownerOnly })
    const { code, stdout } = await svc(['whoami'])
    expect([code, stdout]).toEqual([
      1,
      `ERROR: The token file ${tokenFile} is damaged. Delete it and try again: rm ${tokenFile}\n`,
    ])
  })

  it('09.7 an authentication service out of reach: a warning, and the command goes on without', async () => {
    configure(stored())
    const { code, stdout, stderr } = await svc(['run', 'core.noop'], { env: { SVC_AUTH_URL: 'http://127.0.0.1:1' } })
    expect(stderr).toMatch(
      /^WARNING: Not logged in; the authentication service does not answer: Cannot connect to http:\/\/127\.0\.0\.1:1/,
    )
    expect([code, stdout]).toEqual([1, expect.stringMatching(notLoggedIn)])
    expect(stderr.match(/WARNING/g)).toHaveLength(1)
  })

  fullOnly(
    it.each([
      ['ahead', 3],
      ['behind', -3],
    ]),
  )('09.7 a token is kept for as long as it is valid, though the clock is %s', async (_, days) => {
    // A clock of its own for the client, whose token the server's clock ends.
    const clock = join(folder.path, 'clock.cjs')
    writeFileSync(clock, `const { now } = Date; Date.now = () => now() + ${days * 86_400_000}\n`)
    const env = { NODE_OPTIONS: `--require ${clock}` }
    expect((await spawnSvc(['login', 'admin', '-p', password, '-l', '3600'], env)).code).toBe(0)
    expect((await spawnSvc(['whoami'], env)).stdout).toContain('Currently logged in as "admin".\n')
    const { expire_timestamp } = JSON.parse(readFileSync(tokenFile, 'utf8')) as { expire_timestamp: number }
    const secondsLeft = expire_timestamp - days * 86_400 - Date.now() / 1000
    expect([secondsLeft > 3500, secondsLeft < 3700]).toEqual([true, true])
  })

  it('09.7 a credential of a flag or the environment goes before it', async () => {
    configure(stored())
    for (const [args, env] of [
      [['-t', 'no-token'], {}],
      [['--api-key', 'no-key'], {}],
      [[], { SVC_AUTH_TOKEN: 'no-token' }],
      [[], { SVC_API_KEY: 'no-key' }],
    ] as const) {
      const { code, stderr } = await svc(['--debug', 'run', ...args, 'core.noop'], { env })
      expect([args, env, code, stderr.includes('/tokens')]).toEqual([args, env, 1, false])
    }
    writeFileSync(configFile, `${stored()}api_key = no-key\n`)
    expect((await svc(['whoami'])).stdout).toBe('Not authenticated\n')
    expect(existsSync(tokenFile)).toBe(false)
  })

  it("09.1 a token is made with the user's own credentials, without those for a proxy", async () => {
    const seen: [string | undefined, string | undefined, string | undefined][] = []
    const { url, close } = await startFront((request, response) => {
      const { authorization, 'x-auth-token': token } = request.headers
      seen.push([request.url, authorization, typeof token === 'string' ? token : undefined])
      const body =
        request.method === 'POST' ? { token: 'made', expiry: '2099-01-01T00:00:00.000000Z' } : { username: 'admin' }
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    })
    try {
      configure('[credentials]\nusername = admin\npassword = a:b c\nbasic_auth = front:door\n')
      expect((await svc(['whoami'], { env: { SVC_API_URL: url, SVC_AUTH_URL: url } })).code).toBe(0)
    } finally {
      await close()
    }
    expect(seen).toEqual([
      ['/tokens', basicAuth('admin', 'a:b c'), undefined],
      ['/user', basicAuth('front', 'door'), 'made'],
    ])
  })

  it('09.7 with authentication off nobody is asked to log in', async () => {
    const open = await createTestApp()
    try {
      configure('[credentials]\nusername = admin\npassword = p\n')
      const env = { SVC_API_URL: `${open.urls.api}/v1`, SVC_AUTH_URL: open.urls.auth }
      expect(await svc(['whoami'], { env })).toMatchObject({ code: 0, stderr: '' })
      expect((await svc(['auth', 'admin', '-p', 'p'], { env })).stdout).toMatch(
        /^ERROR: 404 [^]*[Aa]uthentication is off/,
      )
      for (const command of ['get', 'disable', 'delete']) {
        const { code, stdout } = await svc(['user', command, 'alice'], { env })
        expect([command, code, stdout]).toEqual([command, 1, expect.stringMatching(/Authentication is off/)])
      }
    } finally {
      await open.stop()
    }
  })
})

interface KeyAnswer {
  id: string
  user: string
  key: string
  key_hash: string
  enabled: boolean
  metadata: Record<string, unknown>
  expires_at: string
  scopes: unknown
}

describe('09.3 apikey', () => {
  const createKey = (...args: string[]): Promise<KeyAnswer> => adminJson<KeyAnswer>('apikey', 'create', ...args)

  it('09.3 create prints the record, or the key alone, which then works', async () => {
    const human = await admin('api-key', 'create', '-m', '{"for": "tests"}')
    expect([human.code, human.stderr]).toEqual([0, expect.stringContaining('Save the key now')])
    expect(human.stdout).toMatch(/\| key +\| \S{43,} +\|/)
    const { code, stdout, stderr } = await admin('apikey', 'create', '-k')
    expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/^\S{43,}\n$/), ''])
    expect((await svc(['whoami'], { env: { SVC_API_KEY: stdout.trim() } })).code).toBe(0)
  })

  it('09.3 a key can be made to end, and to be for one thing alone', async () => {
    const record = await createKey(
      '--expires',
      '30d',
      '--scope',
      'action_execute,action_view@action:core:noop',
      '--scope',
      'execution_list',
    )
    expect(Math.abs(Date.parse(record.expires_at) - Date.now() - 30 * 86_400_000)).toBeLessThan(60_000)
    expect(record.scopes).toEqual([
      { permission_types: ['action_execute', 'action_view'], resource_uid: 'action:core:noop' },
      { permission_types: ['execution_list'] },
    ])
    const env = { SVC_API_KEY: record.key }
    expect((await svc(['run', '-a', 'core.noop'], { env })).code).toBe(0)
    const refused = await svc(['run', '-a', 'core.local', 'date'], { env })
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 403 /)])
  })

  it('09.1 a create that is refused: 2', async () => {
    const refused = await admin('apikey', 'create', '--scope', 'frob_all')
    expect([refused.code, refused.stdout]).toEqual([2, expect.stringMatching(/^ERROR: 400 [^]*frob_all/)])
    for (const args of [
      ['-m', '[1]'],
      ['-m', '{'],
      ['--expires', 'soon'],
      ['--scope', 'Nope'],
    ]) {
      expect({ args, ...(await admin('apikey', 'create', ...args)) }).toEqual({
        args,
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: option /),
      })
    }
    expect((await svc(['apikey', 'create'])).code).toBe(1)
  })

  it('09.3 list: columns, details, a user, secrets', async () => {
    const scopes = ['--scope', 'action_execute,action_view@action:core:local', '--scope', 'execution_list']
    const { id } = await createKey('-u', 'keyholder', '-m', '{"n": 1}', '--expires', '2099-01-31T12:00:00Z', ...scopes)
    const list = await admin('apikey', 'list', '-u', 'keyholder')
    expect([list.code, list.stderr]).toEqual([0, ''])
    expect(list.stdout).toMatch(
      /^[+-]+\n\| id +\| user +\| enabled \| expires_at +\| last_used_at \| scope +\| metadata +\|\n/,
    )
    expect(list.stdout).toContain(
      `| ${id} | keyholder | true    | Sat, 31 Jan 2099 12:00:00 UTC |              | action_ex`,
    )
    expect(list.stdout).toMatch(/\| action_execute,action_view@action:core:local \| \{ .*\n.*\| execution_list +\|/)
    expect(await adminJson('apikey', 'list', '-u', 'keyholder', '-a', 'scope')).toEqual([
      { scope: 'action_execute,action_view@action:core:local\nexecution_list' },
    ])
    const unlimited = await createKey('-u', 'keyholder')
    expect(await adminJson('apikey', 'get', unlimited.id, '-a', 'scope')).toEqual({ scope: 'all' })
    expect((await admin('apikey', 'delete', unlimited.id)).code).toBe(0)
    const detail = await admin('apikey', 'list', '-u', 'keyholder', '-d')
    for (const name of ['enabled', 'created_at', 'key_hash']) expect(detail.stdout).toMatch(cell(name))
    expect(detail.stdout).toContain('********')
    const shown = await adminJson<KeyAnswer[]>('apikey', 'list', '-u', 'keyholder', '--show-secrets')
    expect(shown.map((key) => [key.id, /^\w{64,}$/.test(key.key_hash)])).toEqual([[id, true]])
  })

  it('09.3 get, disable, enable and delete, by id or key', async () => {
    const { id, key } = await createKey()
    const env = { SVC_API_KEY: key }
    const token = { SVC_AUTH_TOKEN: adminToken ?? '' }
    expect((await adminJson<KeyAnswer>('apikey', 'get', id)).id).toBe(id)
    expect((await adminJson<KeyAnswer>('apikey', 'get', key)).id).toBe(id)
    const piped = await svc(['apikey', 'get', '-', '-a', 'id', '-j'], { env: token, input: `${key}\n` })
    expect(JSON.parse(piped.stdout)).toEqual({ id })
    expect((await adminJson<KeyAnswer>('apikey', 'disable', id)).enabled).toBe(false)
    expect((await svc(['whoami'], { env })).stdout).toBe('Not authenticated\n')
    expect((await svc(['apikey', 'enable', '-', '-j'], { env: token, input: key })).code).toBe(0)
    expect((await svc(['whoami'], { env })).code).toBe(0)
    // Nothing else is sent: it could undo what others change at the same time.
    const { stderr } = await admin('--debug', 'apikey', 'enable', id)
    expect([...stderr.matchAll(/^curl -X (\w+).*--data-binary '(.*?)'/gm)].map(([, ...sent]) => sent)).toEqual([
      ['PUT', '{"enabled":true}'],
    ])
    expect(await admin('apikey', 'delete', id)).toEqual({
      code: 0,
      stdout: `API Key "${id}" is deleted.\n`,
      stderr: '',
    })
    expect((await svc(['whoami'], { env })).stdout).toBe('Not authenticated\n')
  })

  it('09.1 an unknown one is not found, 2, and a key is not repeated', async () => {
    for (const command of ['get', 'enable', 'disable', 'delete']) {
      expect({ command, ...(await admin('apikey', command, unknownId)) }).toEqual({
        command,
        code: 2,
        stdout: `API Key "${unknownId}" is not found.\n\n`,
        stderr: '',
      })
      const { code, stdout, stderr } = await admin('--debug', 'apikey', command, 'canary-key/1')
      expect([command, code, stdout]).toEqual([command, 2, 'API Key "********" is not found.\n\n'])
      expect(stderr).not.toContain('canary')
    }
  })

  it('01.9 load takes back what list shows, and on another server makes it', async () => {
    const { id, key } = await createKey('-u', 'loaded', '-m', '{"n": 1}')
    const listed = await admin('apikey', 'list', '-u', 'loaded', '-y', '--show-secrets')
    const file = join(folder.path, 'keys.yaml')
    writeFileSync(file, listed.stdout)
    const load = async (method: 'PUT' | 'POST'): Promise<void> => {
      const { code, stdout, stderr } = await admin('--debug', 'apikey', 'load', file)
      expect([code, stdout]).toEqual([0, expect.stringContaining('| id ')])
      expect(stdout).toMatch(new RegExp(`\\| ${id} +\\| loaded +\\|`))
      expect(stderr.includes('-X POST ')).toBe(method === 'POST')
      expect(stderr).not.toMatch(/[0-9a-f]{64}/)
      expect((await svc(['whoami', '--api-key', key])).stdout).toContain('"loaded"')
    }
    await load('PUT')
    expect((await admin('apikey', 'delete', id)).code).toBe(0)
    await load('POST')
  })

  it('01.9 load: an entry without an id is made, and does not work until it is enabled', async () => {
    const file = join(folder.path, 'key.json')
    writeFileSync(file, JSON.stringify({ user: 'jsoned', key_hash: 'cd'.repeat(64) }))
    const [record] = await adminJson<KeyAnswer[]>('apikey', 'load', file)
    expect(record).toMatchObject({ id: expect.stringMatching(idPattern), user: 'jsoned', enabled: false })
    const again = await admin('apikey', 'load', file)
    expect([again.code, again.stdout]).toEqual([
      2,
      expect.stringMatching(/^ERROR: .*key\.json: entry 1 of 1 failed; [^]*409/),
    ])
  })

  it('01.9 load: a masked file is refused before anything is sent', async () => {
    const file = join(folder.path, 'masked.yaml')
    writeFileSync(file, `- {user: unsent, key_hash: ${'ef'.repeat(64)}}\n- {user: unsent, key_hash: '********'}\n`)
    const { code, stdout } = await admin('apikey', 'load', file)
    expect([code, stdout]).toEqual([2, expect.stringMatching(/nothing was sent:\n {2}entry 2: key_hash is masked/)])
    expect(await adminJson('apikey', 'list', '-u', 'unsent')).toEqual([])
  })
})

describe('01.6 user', () => {
  const token = (): Record<string, string> => ({ SVC_AUTH_TOKEN: adminToken ?? '' })
  const canLogIn = async (user: string, secret: string): Promise<boolean> =>
    (await svc(['auth', user, '-t'], { input: secret })).code === 0

  beforeAll(() => admin('whoami'))

  it('adds, shows, changes, locks out and deletes', async () => {
    const added = await svc(['user', 'add', 'alice', '--nickname', 'chat=al'], { env: token(), input: 'alice-1\n' })
    expect([added.code, added.stderr]).toEqual([0, ''])
    expect(added.stdout).toMatch(cell('alice'))
    expect(added.stdout).not.toContain('alice-1')
    expect(await canLogIn('alice', 'alice-1')).toBe(true)
    expect(
      await adminJson('user', 'update', 'alice', '--service', '--nickname', 'irc=ali', '--nickname', 'chat='),
    ).toMatchObject({
      is_service: true,
      nicknames: { irc: 'ali' },
    })
    expect(await adminJson('user', 'update', 'alice', '--no-service')).toMatchObject({
      is_service: false,
      nicknames: { irc: 'ali' },
    })
    const list = await admin('user', 'list')
    expect(list.stdout).toMatch(/\| name +\| is_service +\| is_disabled +\| has_password +\| created_at +\|/)
    expect(list.stdout).toMatch(cell('alice'))
    expect((await admin('user', 'disable', 'alice')).code).toBe(0)
    expect(await adminJson('user', 'list', '--disabled')).toMatchObject([{ name: 'alice', is_disabled: true }])
    expect(await canLogIn('alice', 'alice-1')).toBe(false)
    expect((await admin('user', 'enable', 'alice')).code).toBe(0)
    expect(await canLogIn('alice', 'alice-1')).toBe(true)
    expect((await svc(['user', 'passwd', 'alice'], { env: token(), input: 'alice-2' })).stdout).toBe(
      'The password of "alice" is changed.\n',
    )
    expect([await canLogIn('alice', 'alice-1'), await canLogIn('alice', 'alice-2')]).toEqual([false, true])
    expect(await admin('user', 'delete', 'alice')).toEqual({
      code: 0,
      stdout: 'User "alice" is deleted.\n',
      stderr: '',
    })
    expect(await canLogIn('alice', 'alice-2')).toBe(false)
  })

  it('the own password is changed with the present one', async () => {
    await svc(['user', 'add', 'own'], { env: token(), input: 'own-1' })
    expect((await svc(['login', 'own', '-w', '-p', 'own-1'])).code).toBe(0)
    const wrong = await svc(['user', 'passwd'], { input: 'own-0\nown-2\n' })
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 40[03] [^]*current_password/)])
    const right = await svc(['user', 'passwd'], { input: 'own-1\nown-2\n' })
    expect([right.code, right.stdout]).toEqual([0, 'The password of "own" is changed.\n'])
    expect(right.stderr).toContain('The configuration file still holds the old password')
    expect([await canLogIn('own', 'own-1'), await canLogIn('own', 'own-2')]).toEqual([false, true])
    const foreign = await svc(['user', 'passwd', 'admin'], { input: 'x-1\n' })
    expect([foreign.code, foreign.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 40[13] /)])
  })

  it('09.1 unknown users: 2; a name that is taken: 2; nothing to change: 2', async () => {
    const missing = { code: 2, stdout: 'User "nobody" is not found.\n\n', stderr: '' }
    for (const args of [
      ['get'],
      ['enable'],
      ['disable'],
      ['delete'],
      ['update', '--service'],
      ['passwd', '-p', 'x-1'],
    ]) {
      const [command = '', ...more] = args
      expect({ args, ...(await admin('user', command, 'nobody', ...more)) }).toEqual({ args, ...missing })
    }
    expect((await admin('user', 'add', 'admin', '-p', 'x-1')).code).toBe(2)
    expect((await admin('user', 'update', 'admin')).code).toBe(2)
    expect((await admin('user', 'add', 'x', '--nickname', 'no-origin')).code).toBe(2)
    const several = await admin('user', 'get', 'nobody', 'admin')
    expect([several.code, several.stdout]).toEqual([
      2,
      expect.stringMatching(/^User "nobody" is not found\.\n\n[^]*\| admin /),
    ])
  })

  it('changes a password file without a server', async () => {
    const file = join(folder.path, 'htpasswd')
    const offline = { SVC_API_URL: 'http://127.0.0.1:1', SVC_AUTH_URL: 'http://127.0.0.1:1' }
    const inFile = (args: string[], input = ''): Promise<CliExit> =>
      svc(['user', ...args, '--file', file], { env: offline, input })
    writeFileSync(file, '# kept\nold:{SHA}x\n')
    expect(await inFile(['add', 'carl'], 'carl-1\n')).toEqual({
      code: 0,
      stdout: `User "carl" was added to ${file}.\n`,
      stderr: '',
    })
    expect(readFileSync(file, 'utf8')).toMatch(/^# kept\nold:\{SHA\}x\ncarl:\$argon2id\$\S+\n$/)
    const before = readFileSync(file, 'utf8')
    expect((await inFile(['add', 'carl', '-p', 'x'])).code).toBe(2)
    expect((await inFile(['passwd', 'nobody', '-p', 'x'])).stdout).toBe('User "nobody" is not found.\n\n')
    expect((await inFile(['passwd', '-p', 'x'])).code).toBe(2)
    expect((await inFile(['add', 'a:b', '-p', 'x'])).stdout).toMatch(/^ERROR: The user name must not contain a colon/)
    expect((await inFile(['add', 'dora', '--service', '-p', 'x'])).code).toBe(2)
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect((await inFile(['passwd', 'carl'], 'carl-2\n')).code).toBe(0)
    expect(readFileSync(file, 'utf8')).not.toBe(before)
    const elsewhere = await svc(['user', 'passwd', 'carl', '-p', 'x', '--file', `${file}.not`], { env: offline })
    expect([elsewhere.code, elsewhere.stdout]).toEqual([2, expect.stringContaining(`No users found in ${file}.not`)])
    expect(await inFile(['delete', 'nobody', 'old'])).toEqual({
      code: 2,
      stdout: `User "nobody" is not found.\n\nUser "old" is deleted from ${file}.\n`,
      stderr: '',
    })
    expect(readFileSync(file, 'utf8')).toMatch(/^# kept\ncarl:\$argon2id\$\S+\n$/)
  })

  it('a lost password of the administrator is set again in the file', async () => {
    const file = join(base.path, 'htpasswd')
    expect((await svc(['user', 'passwd', 'admin', '--file', file], { input: 'found-again\n' })).code).toBe(0)
    expect([await canLogIn('admin', password), await canLogIn('admin', 'found-again')]).toEqual([false, true])
    expect((await svc(['user', 'passwd', 'admin', '--file', file], { input: password })).code).toBe(0)
    adminToken = undefined
    expect((await admin('whoami')).code).toBe(0)
  })
})

describe('09.3 roles', () => {
  const roles = join(base.path, 'rbac', 'roles')
  const assignments = join(base.path, 'rbac', 'assignments')

  beforeAll(() => {
    for (const path of [roles, assignments]) mkdirSync(path, { recursive: true })
    const grant = '- {resource_uid: "action:core:noop", permission_types: [action_execute]}'
    writeFileSync(join(roles, 'ops.yaml'), `name: ops\ndescription: run\npermission_grants:\n  ${grant}\n`)
    writeFileSync(join(assignments, 'olga.yaml'), 'username: olga\nroles: [ops]\n')
  })

  it('11.6 rbac apply prints what it created, updated and removed; so does the executable under its other name', async () => {
    const counts = (text: string, kind: string): string | undefined =>
      new RegExp(`\\| ${kind} +\\| (\\d+) +\\| (\\d+) +\\| (\\d+) +\\|`).exec(text)?.slice(1).join(' ')
    const first = await admin('rbac', 'apply')
    expect([first.code, first.stderr]).toEqual([0, ''])
    expect(first.stdout).toMatch(/\| definitions +\| created +\| updated +\| removed +\|/)
    expect(['roles', 'assignments', 'mappings'].map((kind) => counts(first.stdout, kind))).toEqual([
      '1 0 0',
      '1 0 0',
      '0 0 0',
    ])

    const program = join(folder.path, 'svc-apply-rbac-definitions')
    symlinkSync(executable, program)
    const again = await runCli(['--verbose'], envOf({ SVC_AUTH_TOKEN: adminToken ?? '' }), { program })
    expect([again.code, again.stderr, counts(again.stdout, 'roles')]).toEqual([0, '', '0 0 0'])
    expect(again.stdout).toMatch(/\nRoles:\n[^]*\| ops +\|[^]*\nRole Assignments:\n[^]*\| olga +\|/)
    expect(await adminJson('rbac', 'apply')).toMatchObject({ roles: { created: 0, updated: 0, removed: 0 } })

    writeFileSync(join(roles, 'wrong.yaml'), 'name: admin\n')
    const wrong = await admin('rbac', 'apply')
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 [^]*wrong\.yaml/)])
    rmSync(join(roles, 'wrong.yaml'))
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> }
    expect(manifest.bin['svc-apply-rbac-definitions']).toBe(manifest.bin['svc'])
  })

  it('09.3 role list and get', async () => {
    await admin('rbac', 'apply')
    const list = await admin('role', 'list')
    expect(list.stdout).toMatch(/^\+-.*\n\| id +\| name +\| system +\| description +\|\n/)
    for (const name of ['admin', 'observer', 'ops', 'system_admin']) expect(list.stdout).toMatch(cell(name))
    const system = await adminJson<{ name: string }[]>('role', 'list', '-s')
    expect(system.map(({ name }) => name).toSorted()).toEqual(['admin', 'observer', 'system_admin'])
    expect((await admin('role', 'get', 'ops')).stdout).toMatch(/\| permission_grant_objects +\| \[/)
    expect(await admin('role', 'get', 'nope')).toEqual({ code: 2, stdout: 'Role "nope" is not found.\n\n', stderr: '' })
  })

  it('09.3 role-assignment list and get', async () => {
    await admin('rbac', 'apply')
    const list = await admin('role-assignment', 'list', '-r', 'ops', '-u', 'olga', '-s', 'assignments/olga.yaml')
    expect(list.stdout).toMatch(/\| id +\| role +\| user +\| is_remote +\| source +\| description +\|/)
    expect(list.stdout).toMatch(/\| ops +\| olga +\| false +\| assignments\/olga\.yaml +\|/)
    for (const filter of [['-r', 'admin'], ['-s', 'API'], ['--remote']]) {
      expect([filter, (await admin('role-assignment', 'list', '-u', 'olga', ...filter)).stdout]).toEqual([
        filter,
        'No matching items found\n',
      ])
    }
    const [assignment] = await adminJson<{ id: string }[]>('role-assignment', 'list', '-u', 'olga')
    expect(await adminJson('role-assignment', 'get', assignment?.id ?? '')).toMatchObject({ user: 'olga', role: 'ops' })
    expect((await admin('role-assignment', 'get', unknownId)).stdout).toBe(
      `Role Assignment "${unknownId}" is not found.\n\n`,
    )
  })

  it('11.5 who may not is told so, 1', async () => {
    await admin('user', 'add', 'olga', '-p', 'olga-1')
    expect((await svc(['login', 'olga', '-p', 'olga-1'])).code).toBe(0)
    expect((await svc(['whoami'])).stdout).toContain(' - Roles: ops\n')
    expect((await svc(['run', 'core.noop'])).code).toBe(0)
    expect((await svc(['role-assignment', 'list', '-u', 'olga'])).stdout).toMatch(cell('ops'))
    for (const args of [
      ['role', 'list'],
      ['rbac', 'apply'],
      ['user', 'list'],
      ['role-assignment', 'list'],
      ['run', 'core.local', 'date'],
    ]) {
      const { code, stdout } = await svc(args)
      expect([args, code, stdout]).toEqual([
        args,
        1,
        expect.stringMatching(/^ERROR: 403 Client Error: Forbidden\nMESSAGE: /),
      ])
    }
  })
})

describe('passwords at a terminal', () => {
  const signals = tier === 'full' ? ['TERM', 'HUP', 'QUIT', 'INT'] : ['INT']
  it.each(signals)('the terminal shows again what is typed after SIG%s', async (signal) => {
    const inner = 'echo "pid $$."; exec "$0" "$@"'
    const script = `stty -a; sh -c '${inner}' "$@"; stty -a`
    const words = ['/bin/sh', '-c', script, 'sh', process.execPath, executable, 'login', 'nobody']
    const terminal = await startAtTerminal(words, envOf())
    await terminal.typeAt('Password: ', '')
    const [, pid = ''] = /pid (\d+)\./.exec(terminal.screen()) ?? []
    process.kill(Number(pid), `SIG${signal}`)
    await terminal.exit
    const modes = [...terminal.screen().matchAll(/(-?)\becho\b/g)].map(([, minus]) => minus)
    expect(modes).toEqual(['', ''])
  })

  const command = (...args: string[]): string[] => [process.execPath, executable, ...args]

  it('the terminal of these tests shows what is typed, unless it is told not to', async () => {
    const terminal = await startAtTerminal(['/bin/sh', '-c', 'printf "go: "; read line'])
    await terminal.typeAt('go: ', 'visible\r')
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()).toContain('visible')
  })

  fullOnly(it)('09.3 a question that was stopped is asked again in the foreground, without echo', async () => {
    const inner = 'echo "pid $$."; exec "$0" "$@"'
    // As an interactive shell does with a job that stops.
    const script = `set -m; sh -c '${inner}' "$@"; stty sane; fg`
    const words = ['bash', '--norc', '-c', script, 'bash', ...command('login', 'admin')]
    const terminal = await startAtTerminal(words, envOf())
    await terminal.typeAt('Password: ', '')
    const [, pid = ''] = /pid (\d+)\./.exec(terminal.screen()) ?? []
    const charactersRead = (): number => Number(/^rchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
    const before = charactersRead()
    await terminal.typeAt('Password: ', 'half')
    // What waits in the terminal while a program is stopped is there for whoever reads next.
    await waitFor('the half to be read', () => charactersRead() >= before + 'half'.length)
    process.kill(Number(pid), 'SIGSTOP')
    await terminal.typeAt('Password: ', `${password}\r`, 2)
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()).toContain('Logged in as admin')
    expect(terminal.screen()).not.toContain(password)
  })

  it('09.3 login asks without echo; corrections work', async () => {
    await svc(['user', 'add', 'terminal'], {
      env: { SVC_AUTH_TOKEN: (await admin('whoami'), adminToken ?? '') },
      input: 'pässwörd-😀\n',
    })
    const terminal = await startAtTerminal(command('login', 'terminal'), envOf())
    await terminal.typeAt('Password: ', 'nonsense\u0015pässwörx\u007fd-😀\r')
    expect([await terminal.exit, terminal.screen()]).toEqual([0, expect.stringContaining('Logged in as terminal')])
    expect(terminal.screen()).not.toMatch(/nonsense|sswö|😀/)
    expect((await svc(['whoami'])).stdout).toContain('"terminal"')
  })

  it('09.1 Ctrl-C at the question: 130, and nothing is changed', async () => {
    const terminal = await startAtTerminal(command('login', 'admin'), envOf())
    await terminal.typeAt('Password: ', 'abc\u0003')
    expect(await terminal.exit).toBe(130)
    expect(terminal.screen()).not.toContain('abc')
    expect(existsSync(join(home, '.svc'))).toBe(false)
  })

  it('the terminal is left as it was', async () => {
    const line = `${process.execPath} ${executable} auth admin; echo after; read line`
    const terminal = await startAtTerminal(['/bin/sh', '-c', line], envOf())
    await terminal.typeAt('Password: ', 'secret-1\u0003')
    await terminal.typeAt('after', 'visible\r')
    expect(await terminal.exit).toBe(0)
    expect(terminal.screen()).toContain('visible')
    expect(terminal.screen()).not.toContain('secret-1')
  })

  it('a new password is asked for twice', async () => {
    const file = join(folder.path, 'typed-htpasswd')
    const run = async (first: string, second: string): Promise<[number | null, string]> => {
      const terminal = await startAtTerminal(command('user', 'add', 'erik', '--file', file), envOf())
      await terminal.typeAt('Password of erik: ', `${first}\r`)
      await terminal.typeAt('Password of erik again: ', `${second}\r`)
      return [await terminal.exit, terminal.screen()]
    }
    expect(await run('typed-1', 'typed-2')).toEqual([1, expect.stringContaining('The passwords do not match')])
    expect(existsSync(file)).toBe(false)
    const [code, screen] = await run('typed-1', 'typed-1')
    expect([code, screen.includes('typed-1')]).toEqual([0, false])
    expect(readFileSync(file, 'utf8')).toMatch(/^erik:\$argon2id\$/)
  })
})

describe('09.7 cacert', () => {
  it('over TLS: a known authority is believed, an unknown one refused, and without one there is a warning', async () => {
    const [known, unknown] = [await makeAuthority(folder.path, 'known'), await makeAuthority(folder.path, 'unknown')]
    const { certFile, keyFile } = known.issue('server', 'IP:127.0.0.1')
    const tls = ['auth', 'api', 'stream'].flatMap((section) => [
      [`${section}.use_ssl`, 'True'],
      [`${section}.cert`, certFile],
      [`${section}.key`, keyFile],
    ])
    const secure = await createTestApp({ settings: { 'auth.enable': 'True', ...Object.fromEntries(tls) } })
    try {
      expect(secure.urls.auth).toMatch(/^https:/)
      const secret = firstPassword(secure.basePath)
      const env = { SVC_API_URL: `${secure.urls.api}/v1`, SVC_AUTH_URL: secure.urls.auth }
      const believed = { ...env, SVC_CACERT: known.caFile }
      expect(await svc(['login', 'admin', '-w'], { env: believed, input: secret })).toMatchObject({
        code: 0,
        stderr: '',
      })
      expect(await svc(['whoami'], { env: believed })).toMatchObject({ code: 0, stderr: '' })
      rmSync(tokenFile)
      const kept = readFileSync(configFile, 'utf8')
      for (const args of [
        ['login', 'admin', '-w', '-p', secret],
        ['auth', 'admin', '-p', secret],
      ]) {
        const { code, stdout } = await svc(args, { env: { ...env, SVC_CACERT: unknown.caFile } })
        expect([code, stdout]).toEqual([1, expect.stringMatching(/^ERROR: Cannot connect to https:[^]*certificate/)])
      }
      expect([readFileSync(configFile, 'utf8'), existsSync(tokenFile)]).toEqual([kept, false])
      const wellKnown = { ...env, SVC_CACERT: 'True' }
      expect((await svc(['whoami'], { env: wellKnown })).stdout).toMatch(
        /its certificate is not trusted \(.*\)\. To trust it, name its CA with --cacert <path>\.\n$/,
      )
      // Its authority is known: it is of another host.
      const ofOther = { ...believed, SVC_API_URL: env.SVC_API_URL.replace('127.0.0.1', 'localhost') }
      expect((await svc(['whoami', '-t', 'any'], { env: ofOther })).stdout).toMatch(
        /its certificate is not trusted \(Hostname.* localhost.*\)\.\n$/,
      )
      expect(await spawnSvc(['whoami'], { ...wellKnown, NODE_EXTRA_CA_CERTS: known.caFile })).toMatchObject({
        code: 0,
        stderr: '',
      })
      const notPem = await svc(['whoami'], { env: { ...env, SVC_CACERT: join(base.path, 'htpasswd') } })
      expect([notPem.code, notPem.stdout]).toEqual([
        1,
        expect.stringMatching(/^ERROR: The --cacert file .* contains no certificates\./),
      ])
      const missingFile = await svc(['whoami'], { env: { ...env, SVC_CACERT: '/nowhere.pem' } })
      expect([missingFile.code, missingFile.stdout]).toEqual([
        1,
        expect.stringMatching(/^ERROR: The --cacert file .*\/nowhere\.pem \w/),
      ])
      const plain = await svc(['whoami'], { env: { ...env, SVC_API_URL: server.urls.api.replace('http:', 'https:') } })
      expect([plain.code, plain.stdout]).toEqual([
        1,
        expect.stringMatching(/it does not answer with TLS \(.*\)\. Check whether the address must be http:/),
      ])
      const silenced = ['--config-file', join(folder.path, 'silent'), 'whoami']
      writeFileSync(join(folder.path, 'silent'), '[general]\nsilence_ssl_warnings = True\n', { mode: ownerOnly })
      expect((await svc(silenced, { env })).stderr).not.toContain('WARNING')
      const unchecked = await svc(['whoami'], { env })
      expect([unchecked.code, unchecked.stderr]).toEqual([
        0,
        expect.stringMatching(/^WARNING: The certificate of .* is not verified/),
      ])
    } finally {
      await secure.stop()
    }
  })
})

describe('09.5 who may run an action, but not follow streams', () => {
  it('--tail prints the output at the end, and ends as the execution did', async () => {
    const made = await admin('apikey', 'create', '-k', '--scope', 'action_execute@action:core:local')
    const as = { env: { SVC_API_KEY: made.stdout.trim() } }
    const ran = await svc(['run', '--tail', 'core.local', 'echo hello; echo oops >&2; exit 3'], as)
    expect(ran.code).toBe(1)
    expect(ran.stdout).toMatch(
      /^Execution (\w{24}) has started\.\n\n(hello\noops|oops\nhello)\n\nExecution \1 has completed \(status=failed\)\.\n$/,
    )
    expect(ran.stderr).toContain('No permission to follow streams')
    const id = /\w{24}/.exec(ran.stdout)?.[0] ?? ''

    const tail = await svc(['execution', 'tail', '--type', 'stdout', id], as)
    expect(tail).toEqual({
      code: 0,
      stderr: '',
      stdout: `hello\n\nExecution ${id} has completed (status=failed).\n`,
    })
    // Which output came when is only in the stream.
    const dated = await svc(['execution', 'tail', '--include-metadata', id], as)
    expect([dated.code, dated.stdout]).toEqual([1, expect.stringContaining('"stream_view"')])
  })

  it('09.5 last is the last one that may be seen, for who may list them', async () => {
    const makeKey = async (...permissions: string[]): Promise<Call> => {
      const scopes = permissions.flatMap((each) => ['--scope', each])
      return { env: { SVC_API_KEY: (await admin('apikey', 'create', '-k', ...scopes)).stdout.trim() } }
    }
    const own = 'action_execute@action:core:local'
    const lister = await makeKey(own, 'execution_list')
    const { stdout } = await svc(['run', '--attr', 'id', '--', 'core.local', 'echo'], lister)
    expect((await admin('run', 'core.echo', 'message=of another')).code).toBe(0)
    expect(await svc(['execution', 'get', 'last', '--attr', 'id'], lister)).toEqual({ code: 0, stdout, stderr: '' })
    expect((await svc(['execution', 'get', 'last'], await makeKey(own))).stdout).toMatch(
      /^ERROR: 403 [^]*execution_list/,
    )
  })
})

describe('00.15 secrets', () => {
  it('--debug and --print-config show no password, token or key', async () => {
    const secret = 'canary-password'
    await admin('user', 'add', 'canary', '-p', secret)
    configure(`[credentials]\nusername = canary\npassword = ${secret}\n`)
    const printed: string[] = []
    const debug = async (args: string[], input?: string): Promise<void> => {
      const { code, stderr } = await svc(['--debug', ...args], input === undefined ? {} : { input })
      expect([args, code, /^curl /m.test(stderr)]).toEqual([args, 0, true])
      printed.push(stderr)
    }
    await debug(['auth', 'canary', '-t'], secret)
    await debug(['whoami'])
    await debug(['user', 'passwd'], `${secret}\n${secret}2\n`)
    await debug(['user', 'passwd'], `${secret}2\n${secret}\n`)
    const { token } = JSON.parse(readFileSync(join(home, '.svc', 'token-canary'), 'utf8')) as { token: string }
    const made = await admin('--debug', 'apikey', 'create', '-k')
    printed.push(made.stderr, (await svc(['--debug', 'whoami', '--api-key', made.stdout.trim()])).stderr)
    printed.push((await svc(['--print-config'])).stdout)
    for (const canary of [secret, token, made.stdout.trim(), Buffer.from(`canary:${secret}`).toString('base64')]) {
      expect(printed.filter((text) => text.includes(canary))).toEqual([])
    }
  })
})

describe('what the server says when it has started', () => {
  const modes = [
    ['on', 'True'],
    ['off', 'False'],
  ] as const

  it.each(variants(modes))('can be typed as it stands, with authentication %s', async (_what, enable) => {
    await withServer({ settings: { 'auth.enable': enable } }, async (started) => {
      const lines = () => started.printed().split('\n')
      await waitFor('the end of the greeting', () => lines().includes('or:') && lines().at(-1) === '')
      const env = { ...process.env, HOME: started.basePath, TOKEN: '' }
      if (enable === 'True') {
        env.TOKEN = (await signIn(started, 'admin', firstPassword(started.basePath)))['X-Auth-Token']
      }
      const typed = lines().slice(lines().findIndex((line) => line.includes('/v1/executions')))
      const script = typed.filter((line) => line.startsWith('  ')).join('\n')
      const { stdout } = await promisify(execFile)('/bin/sh', ['-ec', script], { env })
      expect(stdout).toContain('"action":{"id":')
      expect(stdout).toMatch(/^ {2}stdout: hello$/m)
    })
  })
})
