/** `svcctl`, and `svc start`, `stop` and `restart`, with servers that go on in the background. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { components } from '../../src/core/components.ts'
import { readRunFile, startTimeOf } from '../../src/core/run-file.ts'
import { spawnCli, type CliExit } from '../helpers/cli.ts'
import { askBySocket } from '../helpers/control-socket.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { call, executable, run, startServer, waitForStatus } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

let folder: TemporaryFolder
let configFile = ''

beforeEach(() => {
  folder = makeFolder()
  configFile = configure()
})

afterEach(async () => {
  await spawnCli(['stop', '--now', '--config-file', configFile], {})
  folder.remove()
})

function configure(more = ''): string {
  const path = join(folder.path, 'svc.conf')
  const ports = ['auth', 'api', 'stream'].map((section) => `[${section}]\nport = 0\n`).join('')
  writeFileSync(path, `[system]\nbase_path = ${folder.path}/data\n${ports}${more}`)
  return path
}

/** Called by another of its names. */
function runAs(
  program: string,
  words: readonly string[],
  input = '',
  env: Record<string, string> = {},
): Promise<CliExit> {
  const link = join(folder.path, program)
  if (!existsSync(link)) symlinkSync(executable, link)
  return spawnCli(words, { SVC_CONFIG_FILE: configFile, ...env }, { program: link, input })
}

const svcctl = (...words: string[]): Promise<CliExit> => runAs('svcctl', words)

const base = (): string => join(folder.path, 'data')
const pidNow = (): number | undefined => readRunFile(base())?.pid
const ask = <T>(method: string, path: string, body?: unknown): Promise<{ status: number | undefined; body: T }> =>
  askBySocket<T>(join(base(), 'svc.sock'), method, path, body)

function statusText(lineOf: (name: string, isIncluded: boolean) => string): string {
  const lines = components.map(({ name, module }) => lineOf(name, module !== undefined))
  return `##### svc components status #####\n${lines.join('\n')}\n`
}

describe('10.6 svcctl', () => {
  fullOnly(test)('tells all components as one process, starts, restarts and stops them', async () => {
    const allStopped = statusText((name) => `${name} is not running.`)
    expect(await svcctl('status')).toEqual({ code: 0, stdout: allStopped, stderr: '' })
    expect(await svcctl('stop')).toMatchObject({ code: 0 })

    const started = await svcctl('start')
    expect(started.code).toBe(0)
    const first = pidNow()
    expect(started.stdout).toContain(`The server runs as process ${first} and logs to ${base()}/logs/svc.log.`)
    const running = statusText((name, is) => (is ? `${name} PID: ${first}` : `${name} is not running.`))
    expect((await svcctl('status')).stdout).toBe(running)
    expect((await svcctl('start')).stdout).toBe(`The server already runs (process ${first}).\n`)
    expect((await svcctl('queues')).stdout).toContain('| request | 0        | 10    |')

    const restarted = await svcctl('restart-component', 'svcapi')
    expect(restarted.code).toBe(0)
    expect(restarted.stdout).toMatch(/^svcapi runs in one process with all components/)
    expect(pidNow()).not.toBe(first)
    expect(pidNow()).toBeDefined()
    expect((await svcctl('restart')).code).toBe(0)

    expect(await svcctl('stop')).toMatchObject({ code: 0 })
    expect((await svcctl('status')).stdout).toBe(allStopped)
  })

  test('a word that it does not know is answered with its usage and 1', async () => {
    for (const words of [
      [],
      ['foo'],
      ['restart-component'],
      ['restart-component', 'foo'],
      ['reopen-log-files', 'foo'],
    ]) {
      const { code, stdout } = await svcctl(...words)
      expect(code).toBe(1)
      expect(stdout).toContain('Usage: svcctl <command>')
    }
    expect(await svcctl('reopen-log-files', 'svcapi')).toMatchObject({
      code: 1,
      stdout: 'ERROR: svcapi is not running.\n',
    })
  })

  fullOnly(test)('log files are opened anew, timers that are off do not run, and content is registered', async () => {
    configFile = configure('[timersengine]\nenable = False\n')
    await svcctl('start')
    expect((await svcctl('status')).stdout).toContain('\nsvctimersengine is not running.\n')
    expect((await svcctl('reopen-log-files', 'svctimersengine')).code).toBe(1)

    const audit = join(base(), 'logs', 'svc.audit.log')
    expect(spawnSync('mv', [audit, `${audit}.1`]).status).toBe(0)
    expect(await svcctl('reopen-log-files', 'svcapi')).toEqual({ code: 0, stdout: '', stderr: '' })
    const reloaded = await svcctl('reload')
    expect(reloaded.code).toBe(0)
    expect(reloaded.stdout).toMatch(/\| actions +\| +\d+/)
    expect(reloaded.stdout).not.toContain('| policies')
    expect(reloaded.stdout).toContain(`svcapi PID: ${pidNow()}\n`)
    // The signal was sent before.
    await waitFor('the audit file to go on', () => readFileSync(audit, 'utf8').includes('pack.registered'))

    const pack = join(base(), 'packs', 'broken')
    mkdirSync(join(pack, 'actions'), { recursive: true })
    writeFileSync(join(pack, 'pack.yaml'), 'name: broken\ndescription: b\nversion: 1.0.0\nauthor: a\n')
    writeFileSync(join(pack, 'actions', 'a.yaml'), 'name: a\nrunner_type: no-such-runner\n')
    const failed = await svcctl('reload', '--register-actions')
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('broken/actions/a.yaml') })
    expect(failed.stdout).not.toContain('| rules')
    expect(failed.stdout).toContain('##### svc components status #####')

    const register = (...words: string[]): Promise<CliExit> => runAs('svc-register-content', words)
    expect((await register('--register-all')).code).toBe(1)
    expect((await register('--register-all', '--register-no-fail-on-failure')).code).toBe(0)
    expect((await register('--register-pack', pack)).code).toBe(1)
    expect((await register('--register-policies', '--register-pack', 'core')).stdout).toMatch(/^\| policies/m)
    expect(await register()).toMatchObject({ code: 1, stdout: expect.stringContaining('--register-all') })
    expect((await register('--register-setup-virtualenvs', '--register-pack', 'core')).code).toBe(0)
  })

  fullOnly(test)('clean drops records and logs after a y, and nothing else', async () => {
    await svcctl('start')
    const first = pidNow()
    await ask('PUT', '/v1/keys/kept', { name: 'kept', value: 'hidden', secret: true })
    await ask('PUT', '/v1/keys/plain', { name: 'plain', value: 'x' })
    const keys = readFileSync(join(base(), 'keys', 'secrets.json'), 'utf8')
    for (const answer of ['', 'n\n', 'yes\n']) {
      expect(await runAs('svcctl', ['clean'], answer)).toMatchObject({ code: 1, stdout: 'Nothing was deleted.\n' })
    }
    expect(pidNow()).toBe(first)
    expect((await ask('GET', '/v1/keys/plain')).status).toBe(200)

    const cleaned = await runAs('svcctl', ['clean'], 'y\n')
    expect(cleaned.code).toBe(0)
    expect(cleaned.stdout).toContain(`${base()}/svc.db is deleted.\n`)
    expect(pidNow()).not.toBe(first)
    expect((await ask('GET', '/v1/keys/plain')).status).toBe(404)
    expect((await ask('GET', '/v1/actions/core.local')).status).toBe(200)
    expect(readFileSync(join(base(), 'logs', 'svc.audit.log'), 'utf8')).not.toContain('kept')
    expect(readFileSync(join(base(), 'keys', 'secrets.json'), 'utf8')).toBe(keys)
  })
})

fullOnly(describe)('10.9 stopping and starting again', () => {
  const control = (...words: string[]): Promise<CliExit> => spawnCli([...words, '--config-file', configFile], {})

  test('a server is started again with what it was started with; what runs may finish, unless there is no time', async () => {
    const server = await startServer({
      basePath: folder.path,
      env: { SVC_WEBUI__WEBUI_BASE_URL: 'https://automation.example' },
    })
    configFile = server.configFile
    const { id } = await run(server, { cmd: `while ! test -e ${folder.path}/go; do sleep 0.01; done; echo done` })
    await waitForStatus(server, id, ['running'])
    const restarting = control('restart')
    writeFileSync(join(folder.path, 'go'), '')
    expect((await restarting).code).toBe(0)
    expect(await server.exited).toEqual({ code: 0, signal: null })

    const socket = join(folder.path, 'svc.sock')
    const { body } = await askBySocket<{ status: string; web_url: string }>(socket, 'GET', `/v1/executions/${id}`)
    expect(body.status).toBe('succeeded')
    expect(body.web_url).toContain('https://automation.example')

    const made = await askBySocket<{ id: string }>(socket, 'POST', '/v1/executions', {
      action: 'core.local',
      parameters: { cmd: 'sleep 1000', timeout: 0 },
    })
    expect(made.status).toBe(201)
    const before = readRunFile(folder.path)
    const stopping = control('stop')
    await waitFor('the server to stop', async () => (await call(`${before?.urls.api}/readyz`, 'GET')).status === 503)
    // Whoever starts it meanwhile has a server afterwards.
    const starting = control('start')
    expect(await control('stop', '--now')).toMatchObject({ code: 0 })
    expect(await stopping).toMatchObject({ code: 0 })
    expect(await starting).toMatchObject({ code: 0, stdout: expect.stringContaining('svc is ready') })
    expect(readRunFile(folder.path)?.pid).not.toBe(before?.pid)

    expect(await control('stop', '--now')).toMatchObject({ code: 0 })
    expect(readRunFile(folder.path)).toBeUndefined()
  })

  test('no process is signalled that only has the pid of a server', async () => {
    const other = spawn('sleep', ['1000'])
    await once(other, 'spawn')
    mkdirSync(base())
    writeFileSync(join(base(), 'svc.run'), JSON.stringify({ pid: other.pid, process_start_time: 1 }))
    expect((await control('stop')).stdout).toBe(`No server runs with the base path ${base()}.\n`)
    expect((await control('reload')).code).toBe(1)
    expect((await control('reopen-logs')).code).toBe(1)
    // Whoever may write there could have root end what it likes.
    const named = { pid: other.pid, process_start_time: startTimeOf(other.pid ?? 0) }
    writeFileSync(join(base(), 'svc.run'), JSON.stringify(named))
    expect(readRunFile(base())).toMatchObject(named)
    chownSync(join(base(), 'svc.run'), 65534, 65534)
    expect((await control('stop')).stdout).toBe(`No server runs with the base path ${base()}.\n`)
    expect(other.exitCode ?? other.signalCode).toBeNull()
    other.kill('SIGKILL')
    await once(other, 'exit')
  })

  test('why a server does not start is told, and what another account may not do', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const failed = await spawnCli(['start', '--config-file', configFile], { SVC_API__PORT: String(port) })
    expect(failed.code).toBe(1)
    expect(failed.stdout).toContain(`api.port`)
    taken.close()

    expect((await control('start')).code).toBe(0)
    chmodSync(folder.path, 0o755)
    const unprivileged = ['--reuid', '65534', '--regid', '65534', '--clear-groups']
    const asNobody = (...words: string[]): { status: number | null; stdout: string } =>
      spawnSync('setpriv', [...unprivileged, process.execPath, executable, ...words, '--config-file', configFile], {
        encoding: 'utf8',
      })
    expect(asNobody('stop')).toMatchObject({ status: 1, stdout: expect.stringContaining('No permission to read') })
    chmodSync(base(), 0o755)
    expect(asNobody('stop')).toMatchObject({ status: 1, stdout: expect.stringContaining('belongs to another account') })
    expect(asNobody('restart')).toMatchObject({ status: 1, stdout: expect.stringContaining('another account') })
    expect(asNobody('svcctl', 'status')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`PID: ${pidNow()}`),
    })
    expect((await control('stop')).code).toBe(0)
    expect(asNobody('start')).toMatchObject({ status: 1, stdout: expect.stringContaining('another account (0)') })
  })

  test('where the server is a service of systemd, it is systemd that starts and stops it', async () => {
    // systemd runs no tests: a stand-in, in a namespace of mounts where a machine looks as after svc service install.
    const [pidFile, calls] = ['pid', 'calls'].map((name) => join(folder.path, name))
    const serve = `${process.execPath} ${executable} serve --config-file /etc/svc/svc.conf`
    const systemctl = `#!/bin/sh
case $1 in
  show) cat ${pidFile} ;;
  start) echo start >> ${calls}; : > ${base()}/out; ${serve} >> ${base()}/out 2>&1 & echo $! > ${pidFile}
    until grep -q ready ${base()}/out; do sleep 0.01; done ;;
  stop) echo stop >> ${calls}; pid=$(cat ${pidFile}); kill $pid
    while grep -qs '^State:[[:space:]]*[^ZX]' /proc/$pid/status; do sleep 0.01; done; echo 0 > ${pidFile} ;;
esac
`
    mkdirSync(base(), { mode: 0o700 })
    writeFileSync(join(folder.path, 'systemctl'), systemctl, { mode: 0o755 })
    writeFileSync(pidFile ?? '', '0\n')
    const svc = `${process.execPath} ${executable}`
    const script = `set -e
mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system /run/upper /run/work
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc
mkdir -p /etc/svc /etc/systemd/system; cp ${configFile} /etc/svc/svc.conf; touch /etc/systemd/system/svc.service
export PATH=${folder.path}:$PATH; cd /
${svc} start; ${svc} start; ${svc} svcctl status | grep svcapi; ${svc} restart
${svc} restart --now; ${svc} stop; ${svc} stop; cat ${calls}
`
    const { status, stdout } = spawnSync('unshare', ['--mount', 'sh', '-c', script], { encoding: 'utf8' })
    expect(stdout.replaceAll(/\b\d+\b/g, 'N')).toBe(
      [
        'systemd has started the server.',
        'The server already runs (process N).',
        'svcapi PID: N',
        'The server, process N, has stopped.',
        'systemd has started the server.',
        'The server, process N, has stopped.',
        'systemd has started the server.',
        'The server, process N, has stopped.',
        `No server runs with the base path ${base()}.`,
        // Without patience it is told by signals.
        'start\nstop\nstart\nstart\nstop\n',
      ].join('\n'),
    )
    expect(status).toBe(0)
  })
})
