/** The single executable, where it is meant to run: on a Debian that has neither Node nor anything else of this project. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { makeChroot, runInside, type Chroot, type InsideOptions } from '../helpers/chroot.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { countListening } from '../helpers/resources.ts'
import { call } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { ROOT, runToEnd } from './copy.ts'

const BINARY = join(ROOT, 'dist/bin/svc')
const PROGRAM = '/usr/local/bin/svc'
const FREE_PORTS = ['--api-port', '0', '--auth-port', '0', '--stream-port', '0']
const SUPERUSER = 0

interface Execution {
  id: string
  status: string
  result: { stdout: string; result: unknown; exit_code: number }
}

interface Server {
  child: ChildProcess
  urls: { api: string; auth: string }
  /** Until it answered. */
  startMs: number
  said(): string
  run(action: string, parameters: Record<string, unknown>): Promise<Execution>
  stop(): Promise<number | NodeJS.Signals | null>
}

let folder: TemporaryFolder
let chroot: Chroot
/** The data folder of a server that has no configuration. */
let home = ''
const servers = new Set<Server>()

async function build(...args: string[]): Promise<string> {
  const built = await runToEnd(process.execPath, [join(ROOT, 'scripts/build-binary.mjs'), ...args])
  if (built.code !== 0) throw new Error(built.stdout + built.stderr)
  return built.stdout
}

beforeAll(async () => {
  folder = makeFolder()
  const path = join(folder.path, 'chroot')
  ;[chroot] = await Promise.all([makeChroot(path, ['libpam-modules', 'python3']), build()])
  home = join(path, chroot.home)
  cpSync(BINARY, join(path, PROGRAM))
}, 600_000)

afterAll(() => {
  folder?.remove()
})

beforeEach(() => {
  rmSync(join(home, 'svc_data'), { recursive: true, force: true })
})

afterEach(async () => {
  for (const server of servers) await server.stop()
  // What a server leaves behind would be seen here.
  await waitFor('the end of everything in the chroot', () => chroot.pids().length === 0)
})

async function start(words: readonly string[] = [], options?: InsideOptions): Promise<Server> {
  const [program, ...rest] = chroot.command([PROGRAM, 'serve', ...FREE_PORTS, ...words], options)
  const started = performance.now()
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal))
  })
  let end: number | NodeJS.Signals | null | undefined
  void ended.then((how) => (end = how))
  const [, api = '', auth = ''] = await waitFor('the server to be ready', () => {
    if (end !== undefined) throw new Error(`the server ended (${end}):\n${said}`)
    return /API (\S+) +auth (\S+)/.exec(printed) ?? undefined
  })
  const server: Server = {
    child,
    urls: { api, auth },
    startMs: performance.now() - started,
    said: () => said,
    async run(action, parameters) {
      const created = await call<Execution>(`${api}/v1/executions`, 'POST', { action, parameters })
      if (created.status !== 201) throw new Error(created.text)
      return finished(api, created.body.id)
    },
    async stop() {
      servers.delete(server)
      child.kill('SIGTERM')
      return ended
    },
  }
  servers.add(server)
  return server
}

function finished(api: string, id: string): Promise<Execution> {
  return waitFor('the execution to end', async () => {
    const { body } = await call<Execution>(`${api}/v1/executions/${id}`, 'GET')
    return ['requested', 'scheduled', 'running'].includes(body.status) ? undefined : body
  })
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/** What it prints, and what it ends with. */
function runHere(words: readonly string[], options?: InsideOptions): Promise<{ code: number | null; text: string }> {
  const [program, ...rest] = chroot.command([PROGRAM, ...words], options)
  return runToEnd(program, rest).then(({ code, stdout, stderr }) => ({ code, text: stdout + stderr }))
}

describe('the file', () => {
  test('is the same, byte for byte, when it is built again', async () => {
    const before = sha256(BINARY)
    expect(await build()).toContain('is up to date')
    expect(await build('--force')).toContain('Built dist/bin/svc')
    expect(sha256(BINARY)).toBe(before)
    expect(readFileSync(BINARY).includes(`${ROOT}/`)).toBe(false)
  })

  test('runs where there is no Node, whatever NODE_OPTIONS says', async () => {
    expect(runInside(chroot, ['sh', '-c', 'command -v node || echo none'])).toBe('none\n')
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
    const env = { NODE_OPTIONS: '--require /nonexistent.js', NODE_EXTRA_CA_CERTS: '' }
    expect(await runHere(['--version'], { env })).toEqual({ code: 0, text: `svc ${version}\n` })
  })

  test('is the command of the name that it is called by', async () => {
    const link = join(chroot.path, '/usr/local/bin/svc-rule-tester')
    symlinkSync('svc', link)
    try {
      expect(runInside(chroot, ['svc-rule-tester', '--help'])).toContain('Usage: svc rule test ')
      expect(runInside(chroot, ['/usr/local/bin/svc-rule-tester', '--help'])).toContain('Usage: svc rule test ')
    } finally {
      rmSync(link)
    }
  })

  test('completes words', () => {
    const words = runInside(chroot, [PROGRAM, '__complete', 'zsh', 'svc', 'service', ''])
    expect(words).toContain('uninstall')
  })

  test('holds the licences of what is in it', () => {
    const texts = runInside(chroot, [PROGRAM, '__licenses'])
    for (const name of ['Node.js is licensed', 'better-sqlite3', 'koffi', 'argon2', 'express', 'preact '])
      expect(texts).toContain(name)
    // Not a word of the reader that has gone.
    expect(runInside(chroot, ['sh', '-c', `(${PROGRAM} __licenses | head -c 1) 2>&1`])).toBe(texts[0])
  })

  test('is its own mail program', () => {
    const input = ['None', 'a@x', 'b@x', 'subject', '0', 'text/plain', '', '']
    const words = ['sh', '-c', `printf '%s\\0' "$@" | ${PROGRAM} __send-mail`, 'sh', ...input]
    expect(runInside(chroot, words)).toBe('The body is empty: no mail was sent.\n')
  })
})

describe('a server without any configuration, as an account without rights', () => {
  test('runs commands, webhooks and Python, serves its pages, and leaves nothing behind', async () => {
    const server = await start(['--actionrunner-shutdown-grace-seconds', '0'])
    const { api } = server.urls
    const megabytes = (statSync(BINARY).size / 1e6).toFixed(0)
    const rss = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]
    process.stdout.write(
      `single executable: ${megabytes} MB, ${server.startMs.toFixed(0)} ms to all listeners, ${Number(rss) >> 10} MB RSS\n`,
    )
    // The one in the PATH of this machine is out of its reach.
    const local = await server.run('core.local', { cmd: 'id -u; ls /' })
    expect(local.result.stdout).toMatch(/^64123\nbin\n/)

    const rule = {
      name: 'greeting',
      pack: 'default',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'greet' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo hello {{ trigger.body.name }}' } },
    }
    expect(await call(`${api}/v1/rules`, 'POST', rule)).toMatchObject({ status: 201 })
    expect(await call(`${api}/v1/webhooks/greet`, 'POST', { name: 'Ada' })).toMatchObject({ status: 202 })
    await waitFor('the rule to greet', async () => {
      const { body } = await call<Execution[]>(`${api}/v1/executions?action=core.local&limit=5`, 'GET')
      return body.some(({ result }) => result?.stdout === 'hello Ada')
    })

    // A script of the core pack by the interpreter that waits, and by one that is started for it.
    for (const round of [1, 2]) {
      const python = await server.run('core.pause', { max_pause: 0 })
      expect(python, `round ${round}`).toMatchObject({ status: 'succeeded' })
    }
    const page = await fetch(`${api}/v1/docs/swagger-ui-bundle.js`)
    expect((await page.text()).length).toBeGreaterThan(1_000_000)
    const client = await fetch(`${api}/`)
    const [, script = ''] = /src="\.\/(ui\/[^"]+\.js)"/.exec(await client.text()) ?? []
    for (const encoding of ['identity', 'gzip', 'br']) {
      const file = await fetch(`${api}/${script}`, { headers: { 'Accept-Encoding': encoding } })
      expect([encoding, file.status, file.headers.get('content-type')]).toEqual([
        encoding,
        200,
        'text/javascript; charset=UTF-8',
      ])
    }
    expect((await fetch(`${api}/ui/none.js`)).status).toBe(404)

    await call(`${api}/v1/executions`, 'POST', { action: 'core.local', parameters: { cmd: 'sleep 1000' } })
    await waitFor('the command', () => chroot.pids().some((pid) => nameOf(pid) === 'sleep'))
    expect(await server.stop()).toBe(0)
    expect(chroot.pids()).toEqual([])
    // The add-ons came from files without names.
    expect(readdirSync(join(home, 'svc_data/cache')).filter((name) => name === 'native')).toEqual([])
    expect(statSync(join(home, 'svc_data/cache')).mode & 0o777).toBe(0o700)
  })

  test('checks passwords over TLS', async () => {
    const authority = await makeAuthority(home, 'tls')
    const { certFile, keyFile } = authority.issue('server', 'IP:127.0.0.1')
    chownSync(keyFile, statSync(home).uid, -1)
    const inside = (path: string): string => join(chroot.home, basename(path))
    const tls = ['--auth-use-ssl', '--auth-cert', inside(certFile), '--auth-key', inside(keyFile)]
    const server = await start(['--auth-enable', ...tls])
    const password = readFileSync(join(home, 'svc_data/initial-admin-password'), 'utf8').trim()
    const ca = readFileSync(authority.caFile)
    const login = (with_: string): ReturnType<typeof call> =>
      call(`${server.urls.auth}/tokens`, 'POST', undefined, { Authorization: `Basic ${btoa(`admin:${with_}`)}` }, ca)
    expect(server.urls.auth).toMatch(/^https:/)
    expect(await login(password)).toMatchObject({ status: 201 })
    expect(await login('wrong')).toMatchObject({ status: 401 })
  })

  test('asks PAM in a process of its own', async () => {
    const service = join(chroot.path, 'etc/pam.d/login')
    mkdirSync(dirname(service), { recursive: true })
    writeFileSync(service, 'auth required pam_unix.so\naccount required pam_unix.so\n')
    await ensureDebianPackage('openssl', '/usr/bin/openssl')
    const hash = execFileSync('openssl', ['passwd', '-6', 'right'], { encoding: 'utf8' }).trim()
    appendFileSync(join(chroot.path, 'etc/passwd'), 'alice:x:64124:64124::/:/bin/sh\n')
    appendFileSync(join(chroot.path, 'etc/shadow'), `alice:${hash}:20000::::::\n`)
    const server = await start(['--auth-enable', '--auth-backend', 'pam'], { account: SUPERUSER })
    const helpers = chroot.pids().filter((pid) => commandOf(pid).includes('__pam-helper'))
    expect(helpers.length).toBeGreaterThan(0)
    const login = (password: string): ReturnType<typeof call> =>
      call(`${server.urls.auth}/tokens`, 'POST', undefined, { Authorization: `Basic ${btoa(`alice:${password}`)}` })
    expect(await login('right')).toMatchObject({ status: 201 })
    // A debugger would give the passwords away.
    for (const pid of helpers) process.kill(pid, 'SIGUSR1')
    expect(await login('wrong')).toMatchObject({ status: 401 })
    expect(await login('right')).toMatchObject({ status: 201 })
    expect(helpers.map(countListening)).toEqual(helpers.map(() => 0))
    await server.stop()
    rmSync(join(home, 'svc_data'), { recursive: true, force: true })
  })
})

describe('native add-ons', () => {
  const noexec: InsideOptions = { tmpfsOptions: 'mode=1777,noexec' }
  const native = (): string => join(home, 'svc_data/cache/native')

  test('come from the data folder where temporary folders allow no programs', async () => {
    const first = await start([], noexec)
    expect(await first.run('core.local', { cmd: 'echo hi' })).toMatchObject({ status: 'succeeded' })
    await first.stop()
    const files = readdirSync(native()).toSorted()
    expect(files.map((name) => name.replace(/-[0-9a-f]{16}\.node$/, ''))).toEqual(['argon2', 'better-sqlite3', 'koffi'])
    expect(statSync(native()).mode & 0o777).toBe(0o700)
    const before = files.map((name) => statSync(join(native(), name)).mtimeMs)

    await (await start([], noexec)).stop()
    expect(files.map((name) => statSync(join(native(), name)).mtimeMs)).toEqual(before)

    // A file that somebody has changed is not loaded.
    const [argon2 = ''] = files
    const right = sha256(join(native(), argon2))
    appendFileSync(join(native(), argon2), 'more')
    await (await start([], noexec)).stop()
    expect(sha256(join(native(), argon2))).toBe(right)
  })

  test('come from the folder that SVC_NATIVE_DIR names', async () => {
    const chosen = join(chroot.home, 'chosen')
    const server = await start([], { ...noexec, env: { SVC_NATIVE_DIR: chosen } })
    await server.stop()
    // Files without names.
    expect(readdirSync(join(home, 'chosen'))).toEqual([])
    expect(existsSync(native())).toBe(false)
  })

  test('that no folder can give end the start with what to do', async () => {
    mkdirSync(join(home, 'nothing'), { recursive: true })
    const { code, text } = await runHere(['serve', ...FREE_PORTS], {
      ...noexec,
      cwd: `${chroot.home}/nothing`,
      tmpfs: [`${chroot.home}/nothing`],
      env: { HOME: `${chroot.home}/nothing` },
    })
    expect(code).toBe(1)
    expect(text).toContain('SVC_NATIVE_DIR')
    expect(text).toContain('/dev/shm: ')
  })
})

describe('files that other programs read', () => {
  test('are made anew when they are not as they were, and those of other versions go', async () => {
    await (await start()).stop()
    const cache = join(home, 'svc_data/cache')
    const [name = ''] = readdirSync(cache).filter((each) => each.startsWith('program-'))
    const script = join(cache, name, 'python/lib/start.py')
    const right = sha256(script)
    appendFileSync(script, 'raise SystemExit("changed")\n')
    mkdirSync(join(cache, 'program-0123456789abcdef'))
    const server = await start()
    expect(sha256(script)).toBe(right)
    expect(readdirSync(cache).filter((each) => each.startsWith('program-'))).toEqual([name])
    expect(await server.run('core.pause', { max_pause: 0 })).toMatchObject({ status: 'succeeded' })
  })
})

describe('svc service', () => {
  const service = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runToEnd(BINARY, ['service', ...words, '--root', chroot.path])
    if (code !== 0) throw new Error(stderr + stdout)
    return stdout
  }
  const at = (path: string): string => join(chroot.path, path)
  const unit = '/etc/systemd/system/svc.service'

  test('installs, upgrades, removes, and keeps what operators have written', async () => {
    expect(await service('install')).toMatch(/^written +\/usr\/local\/bin\/svc-rule-tester$/m)
    expect(readFileSync(at('/etc/passwd'), 'utf8')).toMatch(/^svc:x:\d+:\d+:[^:]*:\/var\/lib\/svc:\/bin\/false$/m)
    expect(statSync(at('/etc/svc/svc.conf')).mode & 0o777).toBe(0o640)
    expect(runInside(chroot, ['svc-rule-tester', '--help'])).toContain('Usage: svc rule test ')

    appendFileSync(at('/etc/svc/svc.conf'), '# mine\n')
    const again = await service('install')
    expect(again).not.toMatch(/^(written|made)/m)
    expect(again).toMatch(/^kept +\/etc\/svc\/svc\.conf$/m)

    // Another version, which runs.
    const other = join(folder.path, 'other')
    cpSync(BINARY, other)
    appendFileSync(other, 'another')
    renameSync(other, at(PROGRAM))
    const running = await startService()
    expect(await service('install')).toMatch(/^written +\/usr\/local\/bin\/svc$/m)
    expect((await call(`${running.urls.api}/v1/executions`, 'GET')).status).toBe(401)
    await running.stop()
    expect(sha256(at(PROGRAM))).toBe(sha256(BINARY))

    writeFileSync(at('/usr/local/bin/svc-mine'), '')
    expect(await service('uninstall')).toMatch(/^kept +\/etc\/svc$/m)
    expect(existsSync(at(unit))).toBe(false)
    expect(existsSync(at(PROGRAM))).toBe(false)
    expect(readdirSync(at('/usr/local/bin'))).toEqual(['svc-mine'])
    expect(readFileSync(at('/etc/svc/svc.conf'), 'utf8')).toMatch(/# mine\n$/)
    expect(await service('uninstall', '--purge')).toMatch(/^removed +account svc$/m)
    expect(existsSync(at('/etc/svc'))).toBe(false)
    expect(readFileSync(at('/etc/passwd'), 'utf8')).not.toMatch(/^svc:/m)
    cpSync(BINARY, at(PROGRAM))
  })

  test('writes a unit that systemd understands and finds well protected', async () => {
    await ensureDebianPackage('systemd', '/usr/bin/systemd-analyze')
    await service('install')
    const text = readFileSync(at(unit), 'utf8')
    // The program it names is not on this machine.
    const copy = folder.write('svc.service', text.replace(PROGRAM, BINARY))
    const verified = await runToEnd('/usr/bin/systemd-analyze', ['verify', copy])
    expect(verified).toMatchObject({ code: 0, stdout: '', stderr: '' })
    const security = execFileSync('/usr/bin/systemd-analyze', ['security', '--offline=true', '--threshold=20', copy], {
      encoding: 'utf8',
    })
    expect(security).toContain('Overall exposure level')
    await service('uninstall', '--purge')
    cpSync(BINARY, at(PROGRAM))
  })

  test('starts the server by that unit: with sign-in, its folders, and a word to systemd', async () => {
    await service('install')
    const listener = await startNotifySocket(at('/run/notify'))
    try {
      const server = await startService({ NOTIFY_SOCKET: '/run/notify' })
      await waitFor('READY', () => listener.heard().includes('READY=1'))
      expect((await call(`${server.urls.api}/v1/executions`, 'GET')).status).toBe(401)
      expect(existsSync(at('/var/log/svc/svc.audit.log'))).toBe(true)
      expect(existsSync(at('/var/lib/svc/initial-admin-password'))).toBe(true)
      expect(await server.stop()).toBe(0)
      await waitFor('STOPPING', () => listener.heard().includes('STOPPING=1'))
    } finally {
      await listener.stop()
      await service('uninstall', '--purge')
      cpSync(BINARY, at(PROGRAM))
    }
  })

  test('refuses what it cannot do', async () => {
    const asOutsider = await runHere(['service', 'install'])
    expect(asOutsider).toMatchObject({ code: 1, text: expect.stringContaining('This command needs root') as string })
    const there = at('/usr/local/bin/svc-rule-tester')
    mkdirSync(there)
    const refused = await runToEnd(BINARY, ['service', 'install', '--root', chroot.path])
    expect(refused.code).toBe(1)
    expect(refused.stdout).toContain('exists and is not a link')
    renameSync(there, join(folder.path, 'aside'))
    const noSystem = await runToEnd(BINARY, ['service', 'install', '--root', folder.path])
    expect(noSystem.code).toBe(1)
    expect(noSystem.stdout).toContain('is not the root directory of a system: it has no etc/passwd')
    expect(existsSync(join(folder.path, 'usr'))).toBe(false)
  })

  /** As the unit does. */
  function startService(env: Record<string, string> = {}): Promise<Server> {
    const { uid, gid } = ownerOf('svc')
    for (const path of ['/var/lib/svc', '/var/log/svc']) {
      mkdirSync(at(path), { recursive: true, mode: 0o700 })
      chownSync(at(path), uid, gid)
    }
    return start(['--config-file', '/etc/svc/svc.conf'], { account: 'svc', cwd: '/var/lib/svc', env })
  }

  function ownerOf(name: string): { uid: number; gid: number } {
    const line = readFileSync(at('/etc/passwd'), 'utf8')
      .split('\n')
      .find((each) => each.startsWith(`${name}:`))
    const [, , uid, gid] = line?.split(':') ?? []
    return { uid: Number(uid), gid: Number(gid) }
  }
})

interface NotifySocket {
  /** Every message, a line each. */
  heard(): string[]
  stop(): Promise<void>
}

/** Node has no datagrams on Unix sockets. */
async function startNotifySocket(path: string): Promise<NotifySocket> {
  const script = [
    'import os, socket, sys',
    's = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)',
    's.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); print("bound", flush=True)',
    'while True: print(s.recv(4096).decode(), flush=True)',
  ]
  const child = spawn('python3', ['-c', script.join('\n'), path], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (more: string) => (text += more))
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  await waitFor('the socket', () => text.includes('bound'))
  return {
    heard: () => text.split('\n'),
    async stop() {
      child.kill('SIGKILL')
      await closed
      rmSync(path, { force: true })
    },
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
  } catch {
    return ''
  }
}

function nameOf(pid: number): string {
  return basename(commandOf(pid).split('\0')[0] ?? '')
}
