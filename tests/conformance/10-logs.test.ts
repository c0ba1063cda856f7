/** Contract 10, 10.3: the log files of a real server, what is on their lines, and what bad input makes of them. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { docBlock } from '../helpers/doc-blocks.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { basicAuth } from '../helpers/logins.ts'
import { call, runToEnd, startServer, waitForStatus, withServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

const folders: TemporaryFolder[] = []
afterEach(() => folders.splice(0).forEach((folder) => folder.remove()))

function newFolder(): string {
  const folder = makeFolder()
  folders.push(folder)
  return folder.path
}

const linesOf = (path: string): string[] => readFileSync(path, 'utf8').split('\n').slice(0, -1)

/** The lines of a file once one of them fits. */
function waitForLine(path: string, fits: RegExp): Promise<string[]> {
  return waitFor(`${fits} in ${path}`, () => {
    const lines = existsSync(path) ? linesOf(path) : []
    return lines.some((line) => fits.test(line)) && lines
  })
}

/** As the packages of the incumbent bring it, with files in this folder. */
const pythonLogging = (folder: string, name: string): string => `[loggers]
keys=root
[handlers]
keys=consoleHandler, fileHandler, auditHandler
[formatters]
keys=verboseConsoleFormatter, gelfFormatter
[logger_root]
level=INFO
handlers=consoleHandler, fileHandler, auditHandler
[handler_consoleHandler]
class=StreamHandler
level=DEBUG
formatter=verboseConsoleFormatter
args=(sys.stdout,)
[handler_fileHandler]
class=svccommon.log.FormatNamedFileHandler
level=INFO
formatter=verboseConsoleFormatter
args=("${folder}/${name}.log",)
[handler_auditHandler]
class=svccommon.log.FormatNamedFileHandler
level=AUDIT
formatter=gelfFormatter
args=("${folder}/${name}.audit.log",)
[formatter_verboseConsoleFormatter]
class=svccommon.logging.formatters.ConsoleLogFormatter
format=%(asctime)s %(thread)s %(levelname)s %(module)s [-] %(message)s
[formatter_gelfFormatter]
class=svccommon.logging.formatters.GelfLogFormatter
format=%(message)s
`

describe('10.2 logging', () => {
  fullOnly(it)('10.2 the configuration of an existing installation: each part has its files', async () => {
    const folder = newFolder()
    const logs = join(folder, 'var', 'log', 'svc')
    const settings: Record<string, string> = { 'sensorcontainer.logging': '/etc/svc/logging.sensorcontainer.conf' }
    for (const part of ['api', 'auth', 'stream', 'actionrunner', 'rulesengine', 'notifier', 'timersengine']) {
      const file = join(folder, `logging.${part}.conf`)
      writeFileSync(file, pythonLogging(logs, `svc${part}`))
      settings[`${part}.logging`] = file
    }
    settings['garbagecollector.logging'] = join(folder, 'logging.none.conf')
    await withServer({ settings: { ...settings, 'log.level': 'ERROR' } }, async (server) => {
      const { id } = await runToEnd(server, { cmd: 'true' })
      const answer = await call(`${server.urls.auth}/nothing`, 'GET')
      const runner = await waitForLine(join(logs, 'svcactionrunner.log'), /AUDIT Liveaction completed/)
      expect(runner.every((line) => line.includes(id))).toBe(true)
      const requestId = String(answer.headers.get('X-Request-ID'))
      await waitForLine(join(logs, 'svcauth.log'), new RegExp(`INFO Request answered .*${requestId}`))
      const api = await waitForLine(join(logs, 'svcapi.log'), /INFO Request answered .*status=201/)
      expect(api.join()).not.toContain(requestId)
      const warned = api.filter((line) => / WARNING \w+\.logging: /.test(line))
      expect(warned).toEqual([expect.stringMatching(/ garbagecollector\.logging: .*none\.conf does not exist/)])
      expect(api.some((line) => line.includes('INFO Ignored options of other releases: sensorcontainer.logging'))).toBe(
        true,
      )
      const audits = await waitForLine(join(logs, 'svcactionrunner.audit.log'), /"_event":"execution.completed"/)
      expect(JSON.parse(audits.at(-1) ?? '')).toMatchObject({
        _event: 'execution.completed',
        _execution_id: id,
        level: 6,
      })
      expect(server.log()).not.toContain('INFO')
    })
  })

  it('10.2 a configuration that is wrong stops the start, with its file and line', async () => {
    const file = join(newFolder(), 'logging.conf')
    writeFileSync(file, pythonLogging('/x', 'a').replace('level=INFO', 'level=LOUD'))
    const started = startServer({ settings: { 'api.logging': file } })
    await expect(started).rejects.toThrow(`api.logging: ${file}:8: logger_root.level: must be one of`)
    await expect(started).rejects.toThrow('(78)')
    writeFileSync(file, pythonLogging('/proc/nothing', 'a'))
    const unwritable = startServer({ settings: { 'api.logging': file } })
    await expect(unwritable).rejects.toThrow('api.logging: /proc/nothing/a.log cannot be written: the directory cannot')
  })
})

describe('10.3 log.file', () => {
  it('10.3 holds what is on standard error, and is rotated by size; audit files stay for their days', async () => {
    const basePath = newFolder()
    const settings = { 'log.file': 'logs/svc.log', 'log.max_bytes': '20000', 'log.backup_count': '3' }
    const server = await startServer({ basePath, settings })
    const logs = join(basePath, 'logs')
    const { id: first } = await runToEnd(server, { cmd: 'true' })
    const more = async (): Promise<void> => {
      for (let count = 0; count < 5; count += 1) await runToEnd(server, { cmd: 'true' })
    }
    while (!existsSync(join(logs, 'svc.log.3')) || !existsSync(join(logs, 'svc.audit.log.5'))) {
      await Promise.all([more(), more(), more()])
    }
    // Else one might just be renamed.
    await server.stop()
    const [audit, others] = [true, false].map((isAudit) =>
      readdirSync(logs).filter((name) => name.includes('audit') === isAudit),
    )
    expect(others?.sort()).toEqual(['svc.log', 'svc.log.1', 'svc.log.2', 'svc.log.3'])
    // None is missing: the oldest has the first record.
    const oldest = `svc.audit.log.${(audit?.length ?? 0) - 1}`
    expect(audit?.includes(oldest)).toBe(true)
    expect(linesOf(join(logs, oldest))[0]).toContain(first)
    for (const name of readdirSync(logs)) expect(statSync(join(logs, name)).size).toBeLessThanOrEqual(20_000)
    const kept = ['.3', '.2', '.1', ''].flatMap((end) => linesOf(join(logs, `svc.log${end}`)))
    expect(server.log().endsWith(`${kept.join('\n')}\n`)).toBe(true)
  })

  it('10.3 SIGUSR1 begins a new one after a rename; one that is deleted is made again', async () => {
    await withServer({ settings: { 'log.file': 'logs/svc.log', 'log.format': 'json' } }, async (server) => {
      const path = join(server.basePath, 'logs', 'svc.log')
      await runToEnd(server, { cmd: 'true' })
      renameSync(path, `${path}-1`)
      process.kill(server.pid, 'SIGUSR1')
      await waitFor('the new file', () => existsSync(path))
      rmSync(path)
      await waitFor('it again', async () => {
        await runToEnd(server, { cmd: 'true' })
        return existsSync(path)
      })
      for (const line of [...linesOf(path), ...linesOf(`${path}-1`)]) {
        expect(JSON.parse(line)).toMatchObject({ event: expect.any(String) as unknown })
      }
    })
  })

  fullOnly(it)('10.3 logrotate as docs/monitoring.md has it takes the files, and no line is lost', async () => {
    const folder = newFolder()
    const settings = { 'log.file': join(folder, 'svc.log'), 'log.audit_file': join(folder, 'svc.audit.log') }
    const logrotate = '/usr/sbin/logrotate'
    await ensureDebianPackage('logrotate', logrotate)
    await withServer({ settings }, async (server) => {
      const config = docBlock('monitoring.md', '# /etc/logrotate.d/svc')
        .replaceAll('/var/log/svc', folder)
        .replace('su svc svc', `su ${userInfo().username} ${userInfo().username}`)
        .replace(/systemctl .*/, `kill -USR1 ${server.pid}`)
      writeFileSync(join(folder, 'rotate.conf'), config, { mode: 0o600 })
      const ids: string[] = []
      for (let round = 1; round <= 3; round += 1) {
        ids.push((await runToEnd(server, { cmd: 'true' })).id)
        execFileSync(logrotate, ['--force', '--state', join(folder, 'state'), join(folder, 'rotate.conf')])
        await waitFor('the new files', () => existsSync(settings['log.file']) && existsSync(settings['log.audit_file']))
      }
      const textOf = (name: string): string => {
        const bytes = readFileSync(join(folder, name))
        return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
      }
      const names = readdirSync(folder)
      expect(names.filter((name) => name.startsWith('svc.audit.log')).sort()).toEqual(
        ['', '.1', '.2.gz', '.3.gz'].map((end) => `svc.audit.log${end}`),
      )
      const completed = await waitFor('all lines', () => {
        const found = readdirSync(folder)
          .filter((name) => name.startsWith('svc.audit.log'))
          .flatMap((name) => textOf(name).match(/"_event":"execution.completed".*/g) ?? [])
        return found.length >= ids.length && found
      })
      expect(completed).toHaveLength(ids.length)
      for (const id of ids) expect(completed.filter((line) => line.includes(id))).toHaveLength(1)
    })
  })

  fullOnly(it)(
    '10.3 a full disk: requests are answered and actions run, and one line on standard error tells',
    async () => {
      await withServer({ settings: { 'log.file': '/dev/full' } }, async (server) => {
        expect((await runToEnd(server, { cmd: 'true' })).status).toBe('succeeded')
        await waitFor('the line', () => server.log().includes('log.lines_lost'))
        expect(server.log().match(/ERROR The log file cannot be written.*\/dev\/full.*ENOSPC/g)).toHaveLength(1)
      })
    },
  )
})

fullOnly(describe)('10.3 log options', () => {
  it('10.3 log.excludes leaves out events, log.redirect_stderr brings in what others write', async () => {
    const folder = newFolder()
    const other = join(folder, 'other.cjs')
    writeFileSync(
      other,
      `process.on('SIGWINCH', () => { process.emitWarning('of Node.js'); console.error('one\\n\\x1b[31mtwo'); })`,
    )
    await withServer(
      {
        settings: { 'log.excludes': 'request,requests', 'log.redirect_stderr': 'True' },
        env: { NODE_OPTIONS: `--require ${other}` },
      },
      async (server) => {
        await runToEnd(server, { cmd: 'true' })
        process.kill(server.pid, 'SIGWINCH')
        await waitFor('the warning', () => server.log().includes('process.warning'))
        const lines = server.log().split('\n').slice(0, -1)
        expect(lines.filter((line) => !/^\d{4}-\d\d-\d\d .*\(event=/.test(line))).toEqual([])
        expect(lines).toContainEqual(expect.stringMatching(/WARNING one \(event=stderr\.line\)$/))
        expect(lines).toContainEqual(expect.stringMatching(/WARNING \\u001b\[31mtwo \(event=stderr\.line\)$/))
        expect(lines).toContainEqual(expect.stringMatching(/WARNING .*event=process\.warning, error=.*of Node\.js/))
        expect(lines.filter((line) => line.includes('event=request.'))).toEqual([])
        expect(lines.some((line) => line.includes('AUDIT'))).toBe(true)
      },
    )
  })
})

describe('10.3 hostile bytes', () => {
  const hostile = '\u001b[2J\u0007\u202e\u2028\u0085 AUDIT Access granted (event=token.issued)'
  /** What a header may hold, as bytes. */
  const inHeader = Buffer.from(`\u202e\u0085\u2028"x"`).toString('latin1')

  /** Sent as it is, which `fetch` would refuse. */
  function raw(server: TestServer, path: string, headers: Record<string, string>): Promise<void> {
    const { hostname, port } = new URL(server.urls.api)
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, path, headers, insecureHTTPParser: true }, (answer) => {
        answer.resume().once('end', resolve)
      })
      sent.once('error', reject)
      sent.end()
    })
  }

  it('10.3 whatever is sent, each message is one printable line of bounded length, with the ids it belongs to', async () => {
    const log = { 'log.file': 'logs/svc.log', 'log.level': 'DEBUG' }
    const settings = { ...log, 'auth.enable': 'False', 'content.watch': 'True' }
    await withServer({ settings }, async (server) => {
      mkdirSync(join(server.basePath, 'packs', 'bad\u001b[2J'), { recursive: true })
      writeFileSync(join(server.basePath, 'packs', 'bad\u001b[2J', 'pack.yaml'), `name: "${'\\u202e'.repeat(100)}"\n`)
      const path = `/v1/${encodeURIComponent(hostile)}?x=${'y'.repeat(4000)}&token=canary`
      await raw(server, path, { 'x-request-id': 'mine-1', 'user-agent': inHeader })
      await raw(server, '/v1/\u00ff', {})
      await raw(server, '/v1/actions', { 'x-request-id': `${inHeader}${'z'.repeat(5000)}` })
      await call(`${server.urls.auth}/tokens`, 'POST', {}, { Authorization: basicAuth(hostile, 'x') })
      for (const user of [hostile, '\ud800', 'u'.repeat(100_000)]) {
        await server.call(
          'POST',
          '/v1/executions',
          JSON.stringify({ action: hostile, user, parameters: { cmd: user } }),
        )
        await server.call('POST', `/v1/packs/register`, { packs: [user] })
        await server.call('PUT', `/v1/keys/${encodeURIComponent(user.toWellFormed())}`, { value: user })
      }
      const { id } = await runToEnd(server, { cmd: `printf '\\033[2J\\000\\377%s' "${hostile}" >&2; exit 3` })
      const odd = await server.call<{ id: string }>('POST', '/v1/executions', {
        action: 'core.local',
        parameters: { cmd: 'true', env: { [hostile]: hostile } },
        context: { [hostile]: hostile },
      })
      if (odd.status === 201) await waitForStatus(server, odd.body.id)

      const lines = await waitForLine(join(server.basePath, 'logs', 'svc.log'), /bad\\u001b/)
      await waitForLine(join(server.basePath, 'logs', 'svc.log'), new RegExp(`Liveaction completed.*${id}`))
      for (const line of lines) {
        expect(line).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ .* \(event=[\w.]+(, .*)?\)$/)
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
        expect(line.length).toBeLessThan(40_000)
        expect(line).not.toContain('canary')
      }
      expect(lines.filter((line) => line.includes('request_id=mine-1')).length).toBeGreaterThanOrEqual(2)
      expect(lines.filter((line) => line.includes('zzzzz'))).toEqual([])
      const ofRequests = lines.filter((line) => line.includes('event=request.'))
      expect(ofRequests.filter((line) => !/request_id=[\w-]+/.test(line))).toEqual([])
      const ofExecutions = lines.filter((line) => line.includes('event=execution.'))
      expect(ofExecutions.filter((line) => !/execution_id=[0-9a-f]{24}/.test(line))).toEqual([])
      for (const line of linesOf(join(server.basePath, 'logs', 'svc.audit.log'))) JSON.parse(line)
    })
  })
})
