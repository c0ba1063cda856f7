/** The Debian package, on a small Debian: installed, used, upgraded, removed and purged. */
import { execFile, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeDebian, runInside, type Chroot } from '../helpers/chroot.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth } from '../helpers/logins.ts'
import { call } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { recipe } from '../recipes/support.ts'
import { ROOT, runToEnd } from './copy.ts'

const ENABLED = 'etc/systemd/system/multi-user.target.wants/svc.service'
const folder = makeFolder()
let debian: Chroot
let first: string

async function build(...words: string[]): Promise<string> {
  const script = join(ROOT, 'scripts/build-deb.mjs')
  const built = await runToEnd(process.execPath, [script, '--compression', 'none', ...words])
  const [, file] = /^Built (\S+\.deb)/m.exec(built.stdout) ?? []
  if (built.code !== 0 || file === undefined) throw new Error(built.stdout + built.stderr)
  return join(ROOT, file)
}

/** Of a file of the package's machine. */
const at = (path: string): string => join(debian.path, path)
const inside = (...words: string[]): string =>
  runInside(debian, words, {
    account: 'root',
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
  })
const stateOf = (): string => inside('dpkg-query', '--show', '--showformat=${Version} ${db:Status-Status}', 'svc')
function install(deb: string): void {
  copyFileSync(deb, at(`var/tmp/${basename(deb)}`))
  inside('dpkg', '--force-confdef', '--force-confold', '--install', `/var/tmp/${basename(deb)}`)
}
const ownerAndMode = (path: string): string => inside('stat', '--format=%U:%G %a', path).trim()

beforeAll(async () => {
  ;[debian, first] = await Promise.all([makeDebian(join(folder.path, 'debian')), build()])
}, 900_000)
afterAll(() => folder.remove())

test('lintian finds no error', async () => {
  await ensureDebianPackage('lintian', '/usr/bin/lintian')
  const parts = ['control', 'data'].map((part) => `uses-no-compression-for-${part}-tarball`)
  const uncompressed = ['--suppress-tags', parts.join(',')]
  const words = ['--allow-root', '--fail-on', 'none', '--display-level', '>=error', ...uncompressed, first]
  // It reads the whole program, for longer than the runner of tests waits for an answer of this process.
  expect((await promisify(execFile)('lintian', words)).stdout).toBe('')
})

test('the same sources make the same bytes', async () => {
  const hash = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')
  const before = hash(first)
  expect(hash(await build())).toBe(before)
})

describe('one after the other', () => {
  test('installed: program, account, service, and files that only the service reads', () => {
    install(first)
    expect(stateOf()).toMatch(/^\d\S+ installed$/)
    expect(inside('svc', '--version')).toContain(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version)
    expect(inside('svcctl', '--help')).toContain('svcctl')
    expect(inside('getent', 'passwd', 'svc')).toMatch(/^svc:x:\d+:\d+:[^:]*:\/var\/lib\/svc:\/usr\/sbin\/nologin\n$/)
    expect(['/etc/svc/svc.conf', '/var/lib/svc', '/var/log/svc', '/usr/bin/svc'].map(ownerAndMode)).toEqual([
      'root:svc 640',
      'svc:svc 700',
      'svc:svc 750',
      'root:root 755',
    ])
    expect(readlinkSync(at(ENABLED))).toBe('/lib/systemd/system/svc.service')
    expect(execFileSync('gzip', ['-dc', at('usr/share/man/man1/svcctl.1.gz')], { encoding: 'utf8' })).toContain('.TH')
    const complete = '. /usr/share/bash-completion/completions/svc && complete -p svc'
    expect(inside('bash', '-c', complete)).toContain('svc')
  })

  test('every path of the page is there', () => {
    const [, table = ''] = recipe('debian.md').split('\n## Install\n')
    const rows =
      table
        .split('\n## ')[0]
        ?.split('\n')
        .filter((line) => line.startsWith('| `')) ?? []
    const paths = rows.flatMap((row) => [...row.matchAll(/`(\/[^`]*)`/g)].map(([, path = '']) => path))
    expect(paths.length).toBeGreaterThan(5)
    expect(paths.filter((path) => !existsSync(at(path)))).toEqual([])
  })

  test('logrotate accepts its file', async () => {
    await ensureDebianPackage('logrotate', '/usr/sbin/logrotate')
    const file = join(folder.path, 'logrotate')
    // This machine has no such account.
    writeFileSync(file, readFileSync(at('etc/logrotate.d/svc'), 'utf8').replace('su svc svc', 'su root root'))
    const said = execFileSync('sh', ['-c', '/usr/sbin/logrotate --debug "$1" 2>&1', 'sh', file], { encoding: 'utf8' })
    expect(said).not.toMatch(/error/i)
  })

  test('the service runs as its account, and asks for a login', async () => {
    const unit = readFileSync(at('lib/systemd/system/svc.service'), 'utf8')
    const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? []
    expect(command).toBe('/usr/bin/svc serve --config-file /etc/svc/svc.conf')
    const ports = ['--api-port', '0', '--auth-port', '0', '--stream-port', '0']
    const [program, ...words] = debian.command([...command.split(' '), ...ports], {
      account: 'svc',
      cwd: '/var/lib/svc',
    })
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text))
    const exited = new Promise((resolve) => child.once('exit', resolve))
    try {
      const [, api = '', auth = ''] = await waitFor(
        'the service',
        () => /API (\S+) +auth (\S+)/.exec(said) ?? undefined,
      )
      expect((await call(`${api}/v1/executions`, 'GET')).status).toBe(401)
      const password = readFileSync(at('var/lib/svc/initial-admin-password'), 'utf8').trim()
      const Authorization = basicAuth('admin', password)
      const login = await call<{ token: string }>(`${auth}/tokens`, 'POST', {}, { Authorization })
      const body = { action: 'core.local', parameters: { cmd: 'id -un' } }
      const headers = { 'X-Auth-Token': login.body.token, Prefer: 'wait=60' }
      const { id } = (await call<{ id: string }>(`${api}/v1/executions`, 'POST', body, headers)).body
      const printed = await waitFor('the execution', async () => {
        const given = await call<{ result?: { stdout?: string } }>(
          `${api}/v1/executions/${id}`,
          'GET',
          undefined,
          headers,
        )
        return given.body.result?.stdout
      })
      expect(printed).toBe('svc')
    } finally {
      child.kill('SIGTERM')
      await exited
    }
    expect(existsSync(at('var/log/svc/svc.audit.log'))).toBe(true)
  })

  test('upgraded: changes of the administrator stay', async () => {
    const conf = at('etc/svc/svc.conf')
    writeFileSync(conf, `${readFileSync(conf, 'utf8')}\n# of the administrator\n`)
    // As "systemctl disable svc" does it.
    rmSync(at(ENABLED))
    const second = join(folder.path, 'second')
    execFileSync('dpkg-deb', ['--raw-extract', first, second])
    const change = (path: string, from: RegExp, to: string): void => {
      const file = join(second, path)
      const { mode } = statSync(file)
      writeFileSync(file, readFileSync(file, 'utf8').replace(from, to), { mode })
    }
    change('DEBIAN/control', /^Version: .*/m, 'Version: 99.0.0')
    change('etc/svc/svc.conf', /$/, '\n# of the next version\n')
    const deb = join(folder.path, 'svc_99.0.0.deb')
    execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', second, deb], { stdio: 'ignore' })
    install(deb)
    expect(stateOf()).toBe('99.0.0 installed')
    expect(readFileSync(conf, 'utf8')).toMatch(/# of the administrator\n$/)
    expect(readFileSync(at('etc/svc/svc.conf.dpkg-dist'), 'utf8')).toContain('# of the next version')
    expect(ownerAndMode('/etc/svc/svc.conf')).toBe('root:svc 640')
    // Somebody has disabled the service.
    expect(existsSync(at(ENABLED))).toBe(false)
    expect(existsSync(at('var/lib/svc/svc.db'))).toBe(true)
  })

  test('removed: configuration and data stay, and a new installation goes on with them', () => {
    inside('dpkg', '--remove', 'svc')
    expect(stateOf()).toBe('99.0.0 config-files')
    for (const path of ['usr/bin/svc', 'lib/systemd/system/svc.service']) expect(existsSync(at(path))).toBe(false)
    expect(readFileSync(at('etc/svc/svc.conf'), 'utf8')).toContain('# of the administrator')
    expect(existsSync(at('var/lib/svc/svc.db'))).toBe(true)
    install(first)
    expect(stateOf()).toMatch(/ installed$/)
    expect(readFileSync(at('etc/svc/svc.conf'), 'utf8')).toContain('# of the administrator')
    expect(existsSync(at('var/lib/svc/svc.db'))).toBe(true)
  })

  test('purged: nothing is left, also when the service was disabled', () => {
    inside('dpkg', '--purge', 'svc')
    inside('sh', '-c', 'rm /var/tmp/svc_*.deb')
    const found = inside('find', '/', '-xdev', '-name', '*svc*', '-not', '-path', '/proc/*', '-not', '-path', '/usr/*')
    expect(found.split('\n').filter((path) => path !== '' && !path.startsWith('/etc/.pwd'))).toEqual([])
    expect(existsSync(at('usr/bin/svc'))).toBe(false)
    expect(inside('sh', '-c', 'getent passwd svc || echo none')).toBe('none\n')
  })
})
