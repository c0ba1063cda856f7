/** `svc doctor`: each check with something that really is as it should not be, and a server that is well. */
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkNames } from '../../src/cli/commands/doctor.ts'
import { loadConfig } from '../../src/config/load.ts'
import { clock } from '../../src/doctor/clock.ts'
import { database } from '../../src/doctor/database.ts'
import { checks, type Finding } from '../../src/doctor/index.ts'
import { startTimeOf } from '../../src/core/run-file.ts'
import { makeAuthority } from '../helpers/certificates.ts'
import { runCli, spawnCli } from '../helpers/cli.ts'
import { askBySocket } from '../helpers/control-socket.ts'
import { mountDisk } from '../helpers/disks.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { executable, runToEnd, waitForLog, withServer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'

let folder: TemporaryFolder
let base = ''
let configFile = ''

beforeEach(() => {
  folder = makeFolder()
  base = join(folder.path, 'data')
  mkdirSync(base, { mode: 0o700 })
  configure({})
})
afterEach(() => folder.remove())

/** @param options `section.option` → value */
function configure(options: Record<string, string>): void {
  configFile = join(folder.path, 'svc.conf')
  const lines = Object.entries({
    'system.base_path': base,
    'auth.port': '0',
    'api.port': '0',
    'stream.port': '0',
    ...options,
  })
  // A section may begin anew.
  const sections = Map.groupBy(lines, ([key]) => key.split('.')[0] ?? '')
  const texts = [...sections].map(
    ([name, rows]) => `[${name}]\n${rows.map(([key, value]) => `${key.slice(name.length + 1)} = ${value}\n`).join('')}`,
  )
  writeFileSync(configFile, texts.join(''), { mode: 0o600 })
}

async function examine(names: readonly string[], env: Record<string, string> = {}): Promise<Finding[]> {
  const args = ['doctor', ...names, '--config-file', configFile, '-j']
  const { code, stdout, stderr } = await (env['TZ'] === undefined ? runCli : spawnCli)(args, {
    LANG: 'C.UTF-8',
    ...env,
  })
  expect(stderr).toBe('')
  const { status, findings } = JSON.parse(stdout) as { status: string; findings: Finding[] }
  const isWell = findings.every(({ state }) => state === 'ok' || state === 'skipped')
  expect([code, status]).toEqual(isWell ? [0, 'ok'] : [1, 'attention'])
  for (const finding of findings)
    expect('remedy' in finding).toBe(finding.state === 'warning' || finding.state === 'problem')
  return findings
}

/** What is wrong, in short. */
async function wrong(names: readonly string[], env: Record<string, string> = {}): Promise<string[]> {
  const found = (await examine(names, env)).filter(({ state }) => state === 'warning' || state === 'problem')
  return found.map(({ state, message }) => `${state}: ${message}`)
}

const noUrls = { auth: '', api: '', stream: '' }

/** As if this process were the server. */
function pretendToRun(version: string, url: string): void {
  const run = { pid: process.pid, process_start_time: startTimeOf(process.pid), started_at: '', version }
  writeFileSync(join(base, 'svc.run'), JSON.stringify({ ...run, urls: { auth: url, api: url, stream: url } }))
}

const smallQueue = {
  'actionrunner.actions_pool_size': '1',
  'actionrunner.queue_limit': '1',
  'actionrunner.shutdown_grace_seconds': '0',
}

describe('svc doctor', () => {
  test('finds nothing to be changed in a server that is well', () =>
    withApp({ basePath: base, settings: { 'auth.enable': 'True' } }, async (server) => {
      configFile = server.configFile
      await waitForLog(server, 'auth.first_administrator')
      expect(await wrong(['settings'])).toEqual([
        `warning: The user "admin" still has its initial password, which is in ${base}/initial-admin-password.`,
      ])
      rmSync(join(base, 'initial-admin-password'))
      const findings = await examine(checkNames.filter((name) => !['disk', 'clock', 'account'].includes(name)))
      expect(findings.filter(({ state }) => state !== 'ok' && state !== 'skipped')).toEqual([])
      const probe = findings.find(({ check }) => check === 'execution')
      expect(probe?.message).toMatch(/^The server ran core\.local in \d+ ms\.$/)

      const human = await runCli(['doctor', 'server', 'locale', '--config-file', configFile], {})
      expect(human).toMatchObject({ code: 0, stdout: expect.stringContaining('No problems found.\n') })
    }))

  // The tests of continuous integration run as root, in a container.
  test.runIf(process.getuid?.() === 0)('says that commands run as root, as status and the log do', async () => {
    configure({ 'system_user.user': 'nobody-here' })
    expect(await wrong(['account'])).toEqual([
      'warning: A server that root starts runs commands as root: "nobody-here" is no account without privileges.',
    ])
    await withApp({ basePath: base, settings: { 'system_user.user': 'nobody-here' } }, async (server) => {
      configFile = server.configFile
      const remedy =
        'Create the account (useradd --system --create-home nobody-here) or set system_user.user to an account without privileges, and restart the server.'
      const { body } = await server.call<{ command_account: object }>('GET', '/v1/status')
      expect(body.command_account).toEqual({ user: 'root', is_root: true, remedy })
      const [finding] = await examine(['account'])
      expect(finding).toMatchObject({ state: 'warning', message: expect.stringContaining('run as root'), remedy })
      const said = await runCli(['status', '--config-file', configFile], {})
      expect(said.stdout).toContain(`account       commands run as root. ${remedy}\n`)
      expect(server.log()).toContain(`commands run as root. ${remedy}`)
    })
  })

  // The check gives the server a minute.
  fullOnly(test)('sees when a server runs no actions', () =>
    withApp({ basePath: base, settings: smallQueue }, async (server) => {
      configFile = server.configFile
      // One that runs, and one that waits: there is no room for a third.
      const sleep = { action: 'core.local', parameters: { cmd: 'sleep 1000', timeout: 0 } }
      for (let i = 0; i < 2; i++) await askBySocket(join(base, 'svc.sock'), 'POST', '/v1/executions', sleep)
      expect(await wrong(['execution'])).toEqual([expect.stringContaining('could not run core.local')])
    }),
  )

  test('has a name for every check, and none for others', async () => {
    expect(checks.map(({ name }) => name)).toEqual([...checkNames])
    expect((await runCli(['doctor', 'nothing'], {})).code).toBe(2)
  })

  test('Python environments of packs that could not be made', async () => {
    expect(await wrong(['environments'])).toEqual([])
    const failed = join(base, 'virtualenvs', 'web')
    mkdirSync(failed, { recursive: true })
    mkdirSync(join(base, 'virtualenvs', 'fine'))
    writeFileSync(
      join(failed, '.svc-failed.json'),
      '{"problem": "pip\\n\\nfound no flask", "at": "2026-01-02T03:04:05Z"}',
    )
    expect(await wrong(['environments'])).toEqual([
      'warning: Actions of the pack "web" fail: pip found no flask (2026-01-02T03:04:05Z)',
    ])
  })

  test('configuration files of packs that are not used', async () => {
    const pack = join(base, 'packs', 'web')
    mkdirSync(pack, { recursive: true })
    mkdirSync(join(base, 'configs'))
    writeFileSync(join(pack, 'pack.yaml'), 'name: web\ndescription: d\nversion: 1.0.0\nauthor: a\n')
    writeFileSync(join(base, 'configs', 'web.yaml'), 'a: 1\nb: [\n')
    await withApp({ basePath: base }, async (server) => {
      configFile = server.configFile
      expect(await wrong(['configurations'])).toEqual([
        expect.stringMatching(
          /^warning: The configuration of the pack "web" has a problem: configs\/web\.yaml:\d: .*; actions that use it fail\.$/,
        ),
      ])
      writeFileSync(join(base, 'configs', 'web.yaml'), 'a: 1\n')
      await server.call('POST', '/v1/packs/register', { packs: ['web'] })
      expect(await wrong(['configurations'])).toEqual([])
    })
    expect(await examine(['configurations'])).toMatchObject([{ state: 'skipped' }])
  })

  test('a configuration that cannot be used, and options that nobody knows', async () => {
    configure({ 'api.prot': '9101' })
    expect(await wrong(['configuration'])).toEqual([
      expect.stringMatching(/^warning: api\.prot: unknown option.*did you mean api\.port\?/),
    ])
    configure({ 'api.port': 'many' })
    expect(await wrong([])).toEqual([expect.stringMatching(/^problem: api\.port: must be a whole number/)])
    rmSync(configFile)
    expect(await wrong([])).toEqual([expect.stringContaining('does not exist')])
  })

  test('options without effect, which are nothing to change', async () => {
    configure({ 'compat.stackstorm': 'True', 'database.host': '127.0.0.1', 'made_up.option': '1' })
    expect(await examine(['configuration'])).toEqual([
      expect.objectContaining({ state: 'ok', message: expect.stringContaining('all options are known') }),
      expect.objectContaining({ state: 'ok', message: 'Options without effect: database.host, made_up.option.' }),
    ])
    configure({ 'scheduler.pool_size': '10' })
    expect((await examine(['configuration'])).map(({ message }) => message)).toContain(
      'Ignored options of other releases: scheduler.pool_size.',
    )
  })

  test('settings that are not safe', async () => {
    configure({
      'system.allow_open_network': 'True',
      'system.debug': 'True',
      'api.host': '0.0.0.0',
      'api.mask_secrets': 'False',
      'api.allow_origin': '*',
      'log.mask_secrets': 'False',
      'auth.trusted_proxies': '0.0.0.0/0',
      'ssh_runner.host_key_checking': 'off',
      'http_runner.allowed_private_networks': '::/0',
    })
    expect((await wrong(['settings'])).map((line) => /^warning: ([\w.]+):/.exec(line)?.[1])).toEqual([
      'system.allow_open_network',
      'system.debug',
      'api.host',
      'api.mask_secrets',
      'log.mask_secrets',
      'api.allow_origin',
      'auth.trusted_proxies',
      'ssh_runner.host_key_checking',
      'http_runner.allowed_private_networks',
    ])
    configure({ 'auth.enable': 'True' })
    writeFileSync(
      join(base, 'htpasswd'),
      'eve:{SHA}M2ZwAPIjzotojdTeKZYsgbua+2M=\nbob:{SHA}aaaaaaaaaaaaaaaaaaaaaaaaaaa=\n',
    )
    const guessed = await wrong(['settings'])
    expect(guessed).toEqual(['problem: The password of the user "eve" is easy to guess.'])
  })

  test('another version than the one that runs, and listeners that do not answer', async () => {
    pretendToRun('0.0.1', 'http://127.0.0.1:1')
    expect(await wrong(['server'])).toEqual([expect.stringContaining(`Process ${process.pid} runs version 0.0.1`)])
    expect(await wrong(['listeners'])).toEqual(
      ['auth', 'api', 'stream'].map((name) =>
        expect.stringContaining(`problem: The ${name} listener does not answer at http://127.0.0.1:1:`),
      ),
    )
    expect(await wrong(['execution'])).toEqual([
      expect.stringMatching(/^problem: The server could not run core\.local/),
    ])
  })

  test('files that others can read, or that belong to somebody else', async () => {
    mkdirSync(join(base, 'keys'), { mode: 0o700 })
    for (const name of ['svc.db', 'htpasswd', 'keys/token.key']) writeFileSync(join(base, name), '', { mode: 0o600 })
    expect(await wrong(['permissions'])).toEqual([])
    chmodSync(base, 0o707)
    chmodSync(join(base, 'svc.db'), 0o604)
    chmodSync(join(base, 'htpasswd'), 0o602)
    chownSync(join(base, 'keys', 'token.key'), 65534, 65534)
    configure({ 'metrics.prometheus_token': 'a-word-that-is-secret' })
    chmodSync(configFile, 0o644)
    expect(await wrong(['permissions'])).toEqual([
      `problem: Other accounts can write to ${base}.`,
      `problem: Other accounts can read ${base}/svc.db or write to it.`,
      `problem: ${base}/keys/token.key belongs to the account 65534, but the server runs as the account 0.`,
      `problem: Other accounts can read ${base}/htpasswd or write to it.`,
      `problem: Other accounts can read ${configFile}, which contains metrics.prometheus_token.`,
    ])
    chmodSync(configFile, 0o602)
    expect((await wrong(['permissions'])).at(-1)).toBe(`problem: Other accounts can write to ${configFile}.`)
  })

  test('disks without room, and without inodes', async () => {
    const place = join(base, 'small')
    const small = mountDisk(place, { megabytes: 16 })
    try {
      configure({ 'database.path': `${place}/svc.db` })
      expect(await wrong(['disk'])).toEqual([expect.stringMatching(/^problem: .*less than database\.reserve_bytes/)])
      configure({ 'database.path': `${place}/svc.db`, 'database.reserve_bytes': '0' })
      small.fillUpTo(500_000)
      expect(await wrong(['disk'])).toEqual([expect.stringMatching(/^warning: .*is almost full/)])
      small.free()
      execFileSync('mount', ['-o', 'remount,nr_inodes=40', place])
      for (let i = 0; i < 38; i++) writeFileSync(join(place, String(i)), '')
      expect(await wrong(['disk'])).toEqual([expect.stringMatching(/^warning: .* of 40 inodes free/)])
    } finally {
      small.unmount()
    }
  })

  fullOnly(test)('a database that is damaged, of another release, or none; and a clock that is wrong', async () => {
    expect((await examine(['database']))[0]?.state).toBe('skipped')
    const server = await createTestApp({ basePath: base })
    for (let i = 0; i < 3; i++) await runToEnd(server, { cmd: 'true' })
    await server.stop()
    const path = join(base, 'svc.db')
    expect(await wrong(['database', 'clock'])).toEqual([])
    // As the server would make them.
    for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })

    const change = (sql: string): void => {
      const connection = new Sqlite(path)
      connection.exec(sql)
      connection.close()
    }
    change(`update executions set start_timestamp = '2090-01-01T00:00:00.000000Z'`)
    expect(await wrong(['clock'])).toEqual([expect.stringContaining('behind the newest execution (2090-01-01')])
    const loaded = loadConfig({ files: [configFile], env: {}, cwd: base })
    const at = (now: string): unknown =>
      clock.run({
        loaded,
        running: undefined,
        env: {},
        account: undefined,
        probe: () => Promise.resolve({ failure: '' }),
        status: () => Promise.resolve(undefined),
        configProblems: () => Promise.resolve(undefined),
        now: () => new Date(now),
      })
    expect(await at('1970-01-02T00:00:00Z')).toMatchObject([{ state: 'problem' }])
    change(`update executions set start_timestamp = '2026-01-01T00:00:00.000000Z'`)
    writeFileSync(join(folder.path, 'timedatectl'), '#!/bin/sh\necho no\n', { mode: 0o755 })
    expect(await wrong(['clock'], { PATH: `${folder.path}:/usr/bin:/bin` })).toEqual([
      'warning: The clock is not synchronized over the network.',
    ])

    change(`delete from kysely_migration where name = (select max(name) from kysely_migration)`)
    expect(await wrong(['database'])).toEqual([])
    configure({ 'backup.before_migration': 'False' })
    expect(await wrong(['database'])).toEqual([expect.stringMatching(/^warning: .* of an older release/)])
    change(`insert into kysely_migration values ('9999-from-the-future', '')`)
    expect(await wrong(['database'])).toEqual([expect.stringMatching(/^problem: .*9999-from-the-future/)])
    const size = statSync(path).size
    const file = openSync(path, 'r+')
    for (let at = 8192; at < size; at += 4096) writeSync(file, 'x'.repeat(2000), at)
    closeSync(file)
    expect(await wrong(['database'])).toEqual([expect.stringMatching(/^problem: .*is damaged/)])
    writeFileSync(path, 'no database at all, but text that is long enough to be looked at'.repeat(100))
    expect(await wrong(['database'])).toEqual([expect.stringMatching(/^problem: .*is damaged/)])
  })

  test('a database that is shrinking, and one that cannot', async () => {
    const path = join(base, 'svc.db')
    await withApp({ basePath: base }, async () => {
      const found = await database.run({
        loaded: loadConfig({ files: [configFile], env: {}, cwd: base }),
        running: { pid: process.pid, process_start_time: 0, started_at: '', version: '', urls: noUrls },
        env: {},
        account: undefined,
        probe: () => Promise.resolve({ failure: '' }),
        status: () =>
          Promise.resolve({
            notReady: [],
            reclaimingBytes: 3_221_225_472,
            growingTraces: [],
            lateRules: 0,
            cutTraces: [],
            commandAccount: undefined,
          }),
        configProblems: () => Promise.resolve(undefined),
        now: () => new Date(),
      })
      expect(found).toEqual([
        {
          state: 'ok',
          message: expect.stringMatching(/^The server is shrinking .*svc\.db: 3\.0 GiB of .* still to return/),
        },
        expect.objectContaining({ state: 'skipped' }),
      ])
    })
    const connection = new Sqlite(path)
    connection.pragma('auto_vacuum = none')
    connection.exec('vacuum; create table more (x)')
    for (let n = 0; n < 20; n++) connection.exec('insert into more values (zeroblob(1000000))')
    connection.exec('drop table more')
    connection.close()
    expect(await wrong(['database'])).toEqual([
      expect.stringMatching(
        /^warning: .*svc\.db has 19\.\d MiB of unused space and cannot shrink while the server runs/,
      ),
    ])
    expect((await runCli(['compact', '--config-file', configFile], {})).code).toBe(0)
    expect(await wrong(['database'])).toEqual([])
  })

  test('ports that are taken, and addresses of other machines', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const [program = ''] = readFileSync('/proc/self/cmdline', 'utf8').split('\0')
    configure({ 'api.port': String(port), 'auth.enable': 'True', 'stream.host': '192.0.2.1' })
    expect(await wrong(['listeners'])).toEqual([
      `problem: api.port: ${port} is in use by process ${process.pid} (${basename(program)}).`,
      'problem: stream.host: 192.0.2.1 is not an address of this machine.',
    ])
    taken.close()
  })

  test('certificates that end soon, and keys of others', async () => {
    const authority = await makeAuthority(folder.path, 'a')
    const [one, other] = ['one', 'other'].map((name) => authority.issue(name, 'IP:127.0.0.1'))
    configure({
      'api.use_ssl': 'True',
      'api.cert': one?.certFile ?? '',
      'api.key': one?.keyFile ?? '',
      'auth.use_ssl': 'True',
      'auth.cert': one?.certFile ?? '',
      'auth.key': other?.keyFile ?? '',
    })
    for (const { keyFile } of [one, other].filter((each) => each !== undefined)) chmodSync(keyFile, 0o600)
    expect(await wrong(['certificates'])).toEqual([
      expect.stringMatching(/^problem: auth\.key: .* is not the key of the certificate/),
      expect.stringMatching(/^warning: The certificate of the api listener expires on .*, in 1 days/),
    ])
  })

  test('what the machine gives', async () => {
    const few = spawnSync(
      'sh',
      [
        '-c',
        `ulimit -n 300; exec "$0" "$@"`,
        process.execPath,
        executable,
        'doctor',
        'open_files',
        '--config-file',
        configFile,
      ],
      { encoding: 'utf8' },
    )
    expect(few).toMatchObject({ status: 1, stdout: expect.stringContaining('can open 300 files') })

    const programs = join(folder.path, 'bin')
    mkdirSync(programs)
    const lacks = (): Promise<string[]> => wrong(['programs'], { PATH: programs })
    expect(await lacks()).toEqual([
      expect.stringContaining('problem: Python actions cannot run'),
      expect.stringContaining('warning: git is not in the PATH'),
    ])
    writeFileSync(join(programs, 'git'), '', { mode: 0o755 })
    writeFileSync(join(programs, 'python3'), '#!/bin/sh\necho 3.4\n', { mode: 0o755 })
    expect(await lacks()).toEqual([expect.stringContaining('python3 is Python 3.4')])
    writeFileSync(join(programs, 'python3'), '#!/bin/sh\necho 3.11; exit 1\n', { mode: 0o755 })
    expect(await lacks()).toEqual([expect.stringContaining('python3 has no venv')])
    // What the account of the server has made of it is not run by root.
    writeFileSync(join(programs, 'python3'), '#!/bin/sh\necho 2.$(/usr/bin/id -u)\n', { mode: 0o755 })
    chmodSync(folder.path, 0o755)
    chownSync(base, 65534, 65534)
    expect(await lacks()).toEqual([expect.stringContaining('python3 is Python 2.65534')])

    expect(await wrong(['locale'], { LANG: 'de_DE.ISO-8859-1' })).toEqual([
      expect.stringContaining('The locale is de_DE'),
    ])
    expect(await wrong(['locale'], { LC_ALL: 'POSIX' })).toEqual([expect.stringContaining('The locale is POSIX')])
    expect(await wrong(['time_zone'], { TZ: 'Nowhere/Town' })).toEqual([expect.stringContaining('TZ is Nowhere/Town')])
  })

  fullOnly(test)('10.1 a server says at its start that the locale is not UTF-8', () =>
    withServer({ env: { LANG: 'C' } }, async (server) => {
      await waitForLog(server, 'locale.not_utf8')
      expect(server.log()).toContain('Set LANG=C.UTF-8')
    }),
  )

  test('an account that may see nothing of the server is told so', () => {
    chmodSync(folder.path, 0o755)
    chmodSync(configFile, 0o644)
    const unprivileged = ['--reuid', '65534', '--regid', '65534', '--clear-groups']
    const command = [process.execPath, executable, 'doctor', '--config-file', configFile]
    expect(spawnSync('setpriv', [...unprivileged, ...command], { encoding: 'utf8' })).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('No permission to read'),
    })
  })
})
