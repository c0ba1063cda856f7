/** Contract 09, 9.1 and 9.7: how the client reaches the server, with which credentials, and what it shows of that. */
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { runCli, spawnCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { passOn, startFront } from '../helpers/front.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { startProxy, type TestProxy } from '../helpers/proxy.ts'
import { createTestApp } from '../helpers/app.ts'
import { executable, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern } from './support.ts'

const folder = makeFolder()
const home = join(folder.path, 'home')
const configFile = join(home, '.svc', 'config')

let server: TestApp
let password: string

beforeAll(async () => {
  server = await createTestApp({ settings: { 'auth.enable': 'True' } })
  password = firstPassword(server.basePath)
})

afterAll(async () => {
  await server.stop()
  folder.remove()
})

beforeEach(() => {
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home)
})

const svc = (args: readonly string[], env: Record<string, string> = {}, input = ''): Promise<CliExit> =>
  runCli(args, { HOME: home, ...env }, { input })

function configure(text: string): void {
  mkdirSync(join(home, '.svc'), { mode: 0o700 })
  writeFileSync(configFile, text, { mode: 0o600 })
}

const placeOf = (url: string): string => new URL(url).host

describe('09.7 the configuration file', () => {
  const own = join(home, '.svc')
  const warningsOf = async (env: Record<string, string> = {}, ...flags: string[]): Promise<string[]> => {
    const { code, stderr } = await svc([...flags, '--print-config'], env)
    expect(code).toBe(3)
    return stderr.split('\n').filter((line) => line !== '')
  }

  it('09.7 a file, or the own folder, that is open to others is warned of', async () => {
    configure('')
    expect(await warningsOf()).toEqual([])
    chmodSync(own, 0o750)
    chmodSync(configFile, 0o640)
    expect(await warningsOf()).toEqual([])
    chmodSync(own, 0o755)
    expect(await warningsOf()).toEqual([`WARNING: ${own} is open to other users; close it with: chmod o-rwx ${own}`])
    chmodSync(configFile, 0o604)
    expect(await warningsOf()).toHaveLength(2)
    // The folder of a file that is named belongs to whoever has chosen it.
    for (const found of [
      await warningsOf({}, '--config-file', configFile),
      await warningsOf({ SVC_CONFIG_FILE: configFile }),
    ]) {
      expect(found).toEqual([`WARNING: ${configFile} is open to other users; close it with: chmod o-rwx ${configFile}`])
    }
  })

  it('09.7 it is skipped when told to; one that is named has to be there', async () => {
    configure('[cli]\ntimezone = Asia/Tokyo\n')
    const isRead = async (args: string[], env: Record<string, string> = {}): Promise<boolean> => {
      const { code, stdout } = await svc([...args, '--print-config'], env)
      expect([args, env, code]).toEqual([args, env, 3])
      return stdout.includes('Asia/Tokyo')
    }
    expect(await isRead([])).toBe(true)
    expect(await isRead(['--skip-config'])).toBe(false)
    expect(await isRead([], { SVC_CLI_SKIP_CONFIG: '1' })).toBe(false)
    expect(await isRead([], { SVC_CLI_SKIP_CONFIG: '0' })).toBe(true)
    expect(await isRead([], { SVC_CLI_SKIP_CONFIG: '1', SVC_CONFIG_FILE: configFile })).toBe(false)
    expect(await isRead(['--config-file', configFile], { SVC_CLI_SKIP_CONFIG: '1' })).toBe(true)
    for (const [args, env] of [
      [['--config-file', '/nowhere/config', 'whoami'], {}],
      [['whoami', '--config-file', '/nowhere/config'], {}],
      [['--config-file', '/nowhere/config', '--print-config'], {}],
      [['whoami'], { SVC_CONFIG_FILE: '/nowhere/config' }],
    ] as const) {
      expect(await svc(args, env)).toEqual({
        code: 1,
        stdout: 'ERROR: The configuration file /nowhere/config does not exist.\n',
        stderr: '',
      })
    }
  })

  it('09.7 values are literal, a password with % and : too', async () => {
    const secret = 'pa%(b)s%%:w;#d'
    const env = { SVC_API_URL: `${server.urls.api}/v1`, SVC_AUTH_URL: server.urls.auth }
    const token = (await svc(['auth', 'admin', '-t'], env, password)).stdout.trim()
    await svc(['user', 'add', 'percent', '-t', token], env, `${secret}\n`)
    configure(`[credentials]\nusername = percent\npassword = ${secret}\n`)
    expect((await svc(['whoami'], env)).stdout).toContain('"percent"')
  })
})

describe('09.1 credentials for a front', () => {
  it('09.1 go with every request to API and streams; who logs in sends the own ones alone', async () => {
    const seen: [string, string | undefined][] = []
    const front = await startFront((request, response) => {
      const { method = 'GET', url = '/', headers } = request
      const { authorization } = headers
      seen.push([`${method} ${url.split('?', 1)[0]}`, authorization])
      if (authorization !== basicAuth('front', 'do:or') && url !== '/auth/tokens') {
        response.writeHead(401, { 'WWW-Authenticate': 'Basic' }).end('the front')
        return
      }
      passOn(request, response, new URL(url, server.urls.api))
    })
    try {
      const env = { SVC_API_URL: `${front.url}/v1` }
      const account = `[credentials]\nusername = admin\npassword = ${password}\n`
      const run = ['run', '--tail', 'core.local', 'echo inside']
      configure(account)
      const refused = await svc(run, env)
      expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 401 [^]*the front/)])
      seen.length = 0
      for (const [args, more] of [
        [['--basic-auth', 'front:do:or'], {}],
        [[], { SVC_BASIC_AUTH: 'front:do:or' }],
      ] as const) {
        const { code, stdout } = await svc([...args, ...run], { ...env, ...more })
        expect([args, code, stdout]).toEqual([args, 0, expect.stringContaining('\ninside\n')])
      }
      writeFileSync(configFile, `${account}basic_auth = front:do:or\n[cli]\ncache_token = False\n`)
      expect((await svc(run, env)).code).toBe(0)
      expect((await svc(['token', 'revoke', '--user', 'admin'], env)).code).toBe(0)
      expect(seen.some(([what]) => what.startsWith('GET /stream/v1/'))).toBe(true)
      for (const [what, authorization] of seen) {
        const expected = what === 'POST /auth/tokens' ? basicAuth('admin', password) : basicAuth('front', 'do:or')
        expect([what, authorization]).toEqual([what, expected])
      }
    } finally {
      await front.close()
    }
  })
})

describe('09.1 addresses', () => {
  it('09.1 --api-version is in the addresses that are derived', async () => {
    const { code, stdout } = await svc(['--api-version', 'v7', '--url', 'http://127.0.0.1', '--print-config'])
    expect([code, stdout]).toEqual([3, expect.stringContaining('url = http://127.0.0.1:9101/v7\n')])
    expect(stdout).toContain('url = http://127.0.0.1:9102/v7\n')
    const proxy = await startProxy({ hosts: { 'svc.test:9101': placeOf(server.urls.api) } })
    try {
      const env = { SVC_BASE_URL: 'http://svc.test', http_proxy: proxy.url }
      const asked = await svc(['--api-version', 'v7', 'whoami', '-t', 'x'], env)
      expect([asked.code, proxy.requests]).toEqual([1, ['GET http://svc.test:9101/v7/user']])
    } finally {
      await proxy.close()
    }
  })
})

describe('09.7 network proxies', () => {
  let proxy: TestProxy
  /** A name that only the proxy knows. */
  const behind = (scheme = 'http'): Record<string, string> => ({
    SVC_BASE_URL: `${scheme}://svc.test`,
  })

  beforeAll(async () => {
    proxy = await startProxy({
      hosts: {
        'svc.test:9100': placeOf(server.urls.auth),
        'svc.test:9101': placeOf(server.urls.api),
        'svc.test:9102': placeOf(server.urls.stream),
      },
    })
  })
  afterAll(() => proxy.close())

  it('09.7 requests, logins and event streams go through it', async () => {
    configure(`[credentials]\nusername = admin\npassword = ${password}\n`)
    const env = { ...behind(), http_proxy: proxy.url }
    const whoami = await svc(['whoami'], env)
    expect(whoami).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('"admin"') })
    const ran = await svc(['run', '--tail', 'core.local', 'echo through'], env)
    expect([ran.code, ran.stderr, ran.stdout]).toEqual([0, '', expect.stringContaining('\nthrough\n')])
    expect(proxy.requests.slice(0, 2)).toEqual(['POST http://svc.test:9100/tokens', 'GET http://svc.test:9101/v1/user'])
    expect(proxy.requests).toContainEqual(expect.stringMatching(/^GET http:\/\/svc\.test:9102\/v1\/\w+/))
    expect(proxy.credentials.every((each) => each === undefined)).toBe(true)
  })

  fullOnly(it)('09.7 either letter case, and the scheme may be missing', async () => {
    for (const env of [{ HTTP_PROXY: proxy.url }, { http_proxy: `127.0.0.1:${proxy.port}` }]) {
      const { code, stdout } = await svc(['whoami'], { ...behind(), ...env })
      expect([code, stdout]).toEqual([1, 'Not authenticated\n'])
    }
  })

  it('09.7 no_proxy, and what runs on this machine, are asked directly', async () => {
    const before = proxy.requests.length
    for (const name of ['no_proxy', 'NO_PROXY']) {
      const direct = await svc(['whoami'], { ...behind(), http_proxy: proxy.url, [name]: '.test' })
      expect([direct.code, direct.stdout]).toEqual([
        1,
        expect.stringMatching(/^ERROR: Cannot connect to http:\/\/svc\.test:9101: the host name cannot be resolved/),
      ])
    }
    const local = await svc(['whoami'], { SVC_API_URL: `${server.urls.api}/v1`, http_proxy: proxy.url })
    expect(local.stdout).toBe('Not authenticated\n')
    expect(proxy.requests.length).toBe(before)
  })

  fullOnly(it)('09.7 https goes through a tunnel, and the certificate is that of the server', async () => {
    const authority = await makeAuthority(folder.path, 'behind')
    const { certFile, keyFile } = authority.issue('svc', 'DNS:svc.test')
    const tls = ['auth', 'api', 'stream'].flatMap((section) => [
      [`${section}.use_ssl`, 'True'],
      [`${section}.cert`, certFile],
      [`${section}.key`, keyFile],
    ])
    const secure = await createTestApp({ settings: { 'auth.enable': 'True', ...Object.fromEntries(tls) } })
    const tunnel = await startProxy({
      hosts: {
        'svc.test:9100': placeOf(secure.urls.auth),
        'svc.test:9101': placeOf(secure.urls.api),
        'svc.test:9102': placeOf(secure.urls.stream),
      },
      credential: basicAuth('al ice', 'pro:xy@1'),
    })
    try {
      const secret = firstPassword(secure.basePath)
      configure(`[credentials]\nusername = admin\npassword = ${secret}\n`)
      const named = `http://al%20ice:pro%3Axy%401@127.0.0.1:${tunnel.port}`
      const env = { ...behind('https'), https_proxy: named, SVC_CACERT: authority.caFile }
      const ran = await svc(['--debug', 'run', '--tail', 'core.local', 'echo through'], env)
      expect([ran.code, ran.stdout]).toEqual([0, expect.stringContaining('\nthrough\n')])
      expect(new Set(tunnel.requests)).toEqual(
        new Set(['CONNECT svc.test:9100', 'CONNECT svc.test:9101', 'CONNECT svc.test:9102']),
      )
      expect(ran.stderr).toContain(` -x 'http://al%20ice:********@127.0.0.1:${tunnel.port}' `)
      expect(ran.stderr).not.toMatch(/pro:xy|pro%3Axy/)

      const refused = await svc(['whoami'], { ...env, https_proxy: `http://al%20ice:wrong@127.0.0.1:${tunnel.port}` })
      expect([refused.code, refused.stdout, refused.stderr]).toEqual([
        1,
        expect.stringMatching(
          /^ERROR: Cannot connect to https:\/\/svc\.test:9101: the proxy http:\/\/127\.0\.0\.1:\d+ \(https_proxy\) refuses the connection \(HTTP\/1\.1 407 Proxy Authentication Required\)\.\n$/,
        ),
        '',
      ])
      const elsewhere = await makeAuthority(folder.path, 'elsewhere')
      const mistrusted = await svc(['whoami', '-t', 'x'], { ...env, SVC_CACERT: elsewhere.caFile })
      expect([mistrusted.code, mistrusted.stdout]).toEqual([
        1,
        expect.stringMatching(/^ERROR: Cannot connect .*certificate/),
      ])
      const unchecked = await svc(['whoami', '-t', 'x'], { ...env, SVC_CACERT: 'false' })
      expect([unchecked.stdout, unchecked.stderr]).toEqual([
        'Not authenticated\n',
        expect.stringMatching(/^WARNING: The certificate of svc\.test:9101 is not verified/),
      ])
    } finally {
      await tunnel.close()
      await secure.stop()
    }
  })

  it('09.7 credentials of the proxy are sent to it, and shown nowhere', async () => {
    const strict = await startProxy({
      hosts: { 'svc.test:9101': placeOf(server.urls.api) },
      credential: basicAuth('al', 'hush-1'),
    })
    try {
      const env = { ...behind(), http_proxy: `http://al:hush-1@127.0.0.1:${strict.port}` }
      const { stdout, stderr } = await svc(['--debug', 'whoami', '--basic-auth', 'front:hush-2'], env)
      expect(stdout).toBe('Not authenticated\n')
      expect(strict.credentials).toEqual([basicAuth('al', 'hush-1')])
      expect(stderr).not.toMatch(/hush|aHVzaC/)
      const refused = await svc(['whoami'], { ...env, http_proxy: `http://al:hush-3@127.0.0.1:${strict.port}` })
      expect([refused.code, refused.stdout]).toEqual([
        1,
        expect.stringMatching(
          /^ERROR: 407 Client Error: Proxy Auth[^]*the proxy http:\/\/127\.0\.0\.1:\d+ \(http_proxy\)\.\n$/,
        ),
      ])
      expect(refused.stdout).not.toContain('hush')
      const lost = await svc(['whoami'], { ...env, SVC_BASE_URL: 'http://nowhere.test' })
      expect([lost.code, lost.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 502 [^]*no such host[^]*the proxy/)])
    } finally {
      await strict.close()
    }
  })

  fullOnly(it)('09.7 a proxy that is down, unknown or no proxy is named', async () => {
    for (const [address, message] of [
      [
        'http://u:hush@127.0.0.1:1',
        /the proxy http:\/\/127\.0\.0\.1:1 \(HTTP_PROXY\) refuses connections\. Correct HTTP_PROXY/,
      ],
      [
        'http://proxy.invalid:3128',
        /the host name of the proxy http:\/\/proxy\.invalid:3128 \(HTTP_PROXY\) cannot be resolved/,
      ],
      ['socks5://hush@127.0.0.1:1', /^ERROR: HTTP_PROXY is not the address of an HTTP proxy/],
    ] as const) {
      const { code, stdout, stderr } = await svc(['whoami'], { ...behind(), HTTP_PROXY: address })
      expect([code, stdout, stderr]).toEqual([1, expect.stringMatching(message), ''])
      expect(stdout).not.toContain('hush')
    }
  })

  fullOnly(it)('09.7 a Node that knows no proxies: one warning, and not without a word around it', async () => {
    const older = join(folder.path, 'older.cjs')
    writeFileSync(
      older,
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.14.0' } })\n",
    )
    const env = { HOME: home, ...behind(), http_proxy: proxy.url, NODE_OPTIONS: `--require ${older}` }
    configure(`[credentials]\nusername = admin\npassword = ${password}\n`)
    const before = proxy.requests.length
    const { code, stderr } = await spawnCli(['whoami'], env)
    expect(code).toBe(1)
    expect(stderr).toMatch(/^WARNING: The proxy in http_proxy is not used: Node\.js 22\.14\.0 has no proxy support/)
    expect(stderr.match(/The proxy in/g)).toHaveLength(1)
    expect(proxy.requests.length).toBe(before)
    const exempt = await spawnCli(['whoami'], { ...env, no_proxy: 'svc.test' })
    expect(exempt.stderr).not.toContain('The proxy in')
  })
})

describe('09.1 --debug', () => {
  /** Lines of a shell, each with the credential that was masked in it. */
  const curlLines = (stderr: string): string[] => [...stderr.matchAll(/^curl .*$/gm)].map(([line]) => line)
  const runInShell = async (line: string): Promise<unknown> =>
    JSON.parse((await promisify(execFile)('/bin/sh', ['-c', line])).stdout)
  const urls = (): Record<string, string> => ({ SVC_API_URL: `${server.urls.api}/v1`, SVC_AUTH_URL: server.urls.auth })
  let token: string

  beforeAll(async () => {
    await ensureDebianPackage('curl', '/usr/bin/curl')
    token = (await svc(['auth', 'admin', '-t'], urls(), password)).stdout.trim()
  })

  fullOnly(it)(
    '09.1 its lines do the same when they are pasted with the credential, answers being comments',
    async () => {
      const odd = `it's "quoted" $HOME \`id\` \u200b\u001b[31m\n😀`
      const env = { ...urls(), SVC_AUTH_TOKEN: token }
      const ran = await svc(['--debug', 'run', '-a', 'core.echo', `message=${odd}`], env)
      expect(ran.code).toBe(0)
      expect(ran.stderr.split('\n').filter((line) => line !== '' && !/^(curl |# )/.test(line))).toEqual([])
      expect(ran.stderr).not.toContain(token)
      const [line = ''] = curlLines(ran.stderr).filter((each) => each.includes('-X POST'))
      const repeated = await runInShell(line.replace('X-Auth-Token: ********', `X-Auth-Token: ${token}`))
      expect(repeated).toMatchObject({ id: expect.stringMatching(idPattern) as string, parameters: { message: odd } })

      const login = await svc(['--debug', 'auth', 'admin'], env, password)
      const [create = ''] = curlLines(login.stderr)
      expect(await runInShell(create.replace("'admin:********'", `'admin:${password}'`))).toMatchObject({
        user: 'admin',
      })
    },
  )

  fullOnly(it)('09.1 over TLS, and past a proxy that the client goes around', async () => {
    const authority = await makeAuthority(folder.path, "it's pasted")
    const { certFile, keyFile } = authority.issue('pasted', 'IP:127.0.0.1')
    const tls = { 'api.use_ssl': 'True', 'api.cert': certFile, 'api.key': keyFile }
    const secure = await createTestApp({ settings: tls })
    try {
      const env = {
        SVC_API_URL: `${secure.urls.api}/v1`,
        HTTPS_PROXY: 'http://127.0.0.1:1',
        https_proxy: 'http://127.0.0.1:1',
      }
      for (const [cacert, flag] of [
        [authority.caFile, ' --cacert '],
        ['false', ' -k '],
      ] as const) {
        const { code, stderr } = await svc(['--debug', 'whoami', '--cacert', cacert], env)
        expect([cacert, code, stderr]).toEqual([cacert, 0, expect.stringContaining(flag)])
        const [line = ''] = curlLines(stderr)
        const pasted = `export HTTPS_PROXY=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1; ${line}`
        expect(await runInShell(pasted)).toMatchObject({ username: expect.any(String) })
      }
    } finally {
      await secure.stop()
    }
  })

  it('00.15 no secret is in them', async () => {
    const file = (name: string, text: string): string => {
      const path = join(folder.path, name)
      writeFileSync(path, text)
      return path
    }
    const env = { ...urls(), SVC_AUTH_TOKEN: token, INHERITED: 'hush-env', SVC_BASIC_AUTH: 'front:hush-basic' }
    const debug = async (args: string[], input = ''): Promise<void> => {
      const { code, stdout, stderr } = await svc(['--debug', ...args], env, input)
      expect([args, code, /^ERROR.*[^]*/m.exec(stdout)?.[0], curlLines(stderr).length > 0]).toEqual([
        args,
        0,
        undefined,
        true,
      ])
      expect([args, stderr.match(/.*(?:hush|aHVzaC).*/g)]).toEqual([args, null])
    }
    const action = `name: keeper
pack: default
runner_type: local-shell-cmd
entry_point: ''
parameters:
  cmd: {default: 'true', immutable: true}
  pin: {type: string, secret: true, default: hush-default}
  login: {type: object, properties: {user: {type: string}, code: {type: string, secret: true}}}
`
    await debug(['action', 'create', file('keeper.yaml', action)])
    await debug(['run', '-a', 'default.keeper', 'pin=hush-pin', 'login={"user": "al", "code": "hush-code"}'])
    await debug(['run', '-a', '-e', 'core.local', 'true'])
    await debug(['key', 'set', '-e', 'debugged', 'hush-value'])
    await debug(['key', 'get', 'debugged', '-a', 'name'])
    const rule = `name: keeping
pack: default
enabled: false
trigger: {type: core.svc.webhook, parameters: {url: keeping, signature: {scheme: github, secret: hush-signature}}}
action: {ref: default.keeper, parameters: {pin: hush-rule, login: {user: al, code: hush-nested}}}
`
    await debug(['rule', 'create', file('keeping.yaml', rule)])
    await debug(['user', 'add', 'debugged'], 'hush-password\n')
    await debug(['user', 'passwd', 'debugged'], 'hush-password-2\n')
    const asked = await svc(['run', '-a', 'core.ask', '-j'], env)
    const { id } = JSON.parse(asked.stdout) as { id: string }
    await waitFor('the question', async () => (await svc(['inquiry', 'get', id], env)).code === 0)
    await debug(['inquiry', 'respond', id, '-r', '{"continue": true, "why": "hush-answer"}'])
    const sources = ['https://al:hush-git@127.0.0.1:1/a.git', 'https://hush-token@127.0.0.1:1/b.git']
    const installed = await svc(['--debug', 'pack', 'install', ...sources], env)
    expect(installed.stderr).toContain('https://********@127.0.0.1:1/a.git')
    expect(`${installed.stdout}${installed.stderr}`).not.toMatch(/hush/)
  })
})

/** Only root can put another file in place of that with the name servers; in some containers not even root. */
function canMount(): boolean {
  return spawnSync('unshare', ['--mount', 'mount', '--bind', '/dev/null', '/etc/resolv.conf']).status === 0
}

fullOnly(describe.skipIf(!canMount()))('09.1 a name server that does not answer', () => {
  let silent: Socket
  const address = '127.0.53.77'
  const file = join(folder.path, 'resolv.conf')

  beforeAll(async () => {
    writeFileSync(file, `nameserver ${address}\noptions timeout:30 attempts:1\n`)
    silent = createSocket('udp4')
    await new Promise<void>((resolve) => silent.bind(53, address, resolve))
  })
  afterAll(() => silent.close())

  function start(args: readonly string[]): ChildProcess {
    const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    const words = ['--mount', 'sh', '-c', script, file, process.execPath, executable, ...args]
    const env = { PATH: process.env['PATH'] ?? '', HOME: home, SVC_API_URL: 'http://slow.example.org/v1' }
    return spawn('unshare', words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  }

  it('09.1 Ctrl-C does not wait for it', { timeout: 20_000 }, async () => {
    const asked = once(silent, 'message')
    const child = start(['action', 'list'])
    await asked
    child.kill('SIGINT')
    // As a shell tells: 130.
    expect(await once(child, 'exit')).toEqual([null, 'SIGINT'])
  })

  it.each([
    ['completion', '__complete', 'zsh', 'svc', 'action', 'get', ''],
    ['--version', '--version'],
  ])('09.1 nor does %s', { timeout: 20_000 }, async (_what, ...args) => {
    expect(await once(start(args), 'exit')).toEqual([0, null])
  })
})
