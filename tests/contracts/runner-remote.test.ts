/** The runners that use SSH, against a real server whose processes are on this machine (contract 03, 3.6 to 3.10). */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import type { RunContext, RunResult } from '../../src/runners/runner.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { markedProcesses } from '../helpers/marked-processes.ts'
import {
  remoteRunners,
  type HostAnswer,
  type RemoteRunners,
  type RemoteSubject,
  type SshOptions,
} from '../helpers/remote-runners.ts'
import { recordRun } from '../helpers/run-context.ts'
import { makeSshSite, type ClientKey, type Sshd, type SshSite } from '../helpers/sshd.ts'
import { startPasswordServer } from '../helpers/password-sshd.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { describeProcessRunner, withTimeLimit } from './runner-suite.ts'

const MAX_RESULT_BYTES = 1000

let made: RemoteRunners
let site: SshSite
let sshd: Sshd
let key: ClientKey
let shared: RemoteSubject
const warnings: string[] = []

const makeRunners = (ssh?: SshOptions, told = warnings): Promise<RemoteSubject> => made.make(ssh, told)

let scripts = 0
function writeScript(text: string): string {
  const path = join(site.folder, `script-${++scripts}.sh`)
  writeFileSync(path, text)
  return path
}

beforeAll(async () => {
  site = await makeSshSite()
  key = site.makeKey('id_allowed')
  sshd = await site.start()
  made = await remoteRunners(site, key.path, MAX_RESULT_BYTES)
  shared = await makeRunners()
})
afterAll(async () => {
  await made.stop()
  await site.stop()
})
afterEach(() => {
  if (warnings.length > 0) throw new Error(`Unexpected warnings: ${warnings.splice(0).join('; ')}`)
})

const read = (result: Record<string, unknown>) => {
  const { stdout, stderr, return_code: code, error } = { ...result, ...(result['127.0.0.1'] as HostAnswer | undefined) }
  return { stdout, stderr, code, error }
}

describeProcessRunner({
  name: 'remote-shell-cmd',
  isVariant: true,
  runner: () => shared.cmd,
  shell: (text, more) => ({ runnerParameters: { cmd: text, hosts: sshd.address, ...more } }),
  read,
  maxResultBytes: MAX_RESULT_BYTES,
  startFailures: [
    ['no hosts', () => ({ runnerParameters: { cmd: ':', hosts: ' , ' } }), /^No hosts specified to run action/],
    ['no host', () => ({ runnerParameters: { cmd: ':', hosts: 'a b' } }), /"a b"/],
    ['no command', () => ({ runnerParameters: { hosts: sshd.address } }), /"cmd"/],
    [
      'too large',
      () => ({ runnerParameters: { cmd: ':', hosts: sshd.address, env: { A: 'x'.repeat(300_000) } } }),
      /too large/,
    ],
    ['bad name', () => ({ runnerParameters: { cmd: ':', hosts: sshd.address, env: { 'A;x': 1 } } }), /"A;x"/],
    ['NUL', () => ({ runnerParameters: { cmd: 'a\0b', hosts: sshd.address } }), /NUL/],
    ['nobody there', () => ({ runnerParameters: { cmd: ':', hosts: '127.0.0.1:9' } }), /^Unable to connect to any one/],
  ],
})

// In the daily run `remote-shell-cmd` stands for both.
fullOnly(describeProcessRunner)({
  name: 'remote-shell-script',
  runner: () => shared.script,
  shell: (text, more) => ({
    entryPoint: writeScript(`#!/bin/sh\n${text}\n`),
    runnerParameters: { hosts: sshd.address, ...more },
  }),
  read,
  maxResultBytes: MAX_RESULT_BYTES,
  startFailures: [
    ['no script', () => ({ runnerParameters: { hosts: sshd.address } }), /entry_point/],
    ['a missing script', () => ({ entryPoint: '/no/such.sh', runnerParameters: { hosts: sshd.address } }), /"such.sh"/],
    [
      'no such folder there',
      () => ({ entryPoint: writeScript('#!/bin/sh\n'), runnerParameters: { hosts: sshd.address, dir: '/no/such' } }),
      /^Failed copying content to remote boxes\. .*\/no\/such/,
    ],
  ],
})

const run = (
  runnerParameters: Record<string, unknown>,
  subject: RemoteSubject = shared,
  more?: Partial<RunContext>,
): Promise<RunResult> =>
  subject.cmd.run(recordRun({ hosts: sshd.address, cmd: 'echo hi', ...runnerParameters }, more).context)

const answerOf = ({ result }: RunResult, host = '127.0.0.1'): HostAnswer => {
  if (result[host] === undefined) throw new Error(`There is nothing of ${host}: ${JSON.stringify(result)}`)
  return result[host] as HostAnswer // one for each host
}

const ended = (returnCode: number, stdout = '', stderr = '') => ({
  failed: returnCode !== 0,
  succeeded: returnCode === 0,
  return_code: returnCode,
  stdout,
  stderr,
})

/** Why none of the hosts could be connected to. */
async function refusal(parameters: Record<string, unknown>, subject?: RemoteSubject): Promise<string> {
  const { status, result } = await run(parameters, subject)
  expect(status).toBe('failed')
  expect(Object.keys(result)).toEqual(['error', 'traceback'])
  return String(result['error'])
}

describe.concurrent('the command on the other side', () => {
  it('has the environment, in whatever characters, and nothing on its standard input', async () => {
    const env = {
      TEXT: `it's $HOME \`id\` $(id) "quoted" \\ back`,
      LINES: 'a\nb\n',
      NUMBER: 1.5,
      YES: true,
      LIST: [1, 'a'],
      EMPTY: '',
      SVC_ACTION_EXECUTION_ID: 'forged',
    }
    const cmd = 'printf "%s|" "$TEXT" "$LINES" "$NUMBER" "$YES" "$LIST" "${EMPTY-unset}" "$(wc -c)"; pwd'
    const { context } = recordRun({ hosts: sshd.address, cmd, env, cwd: site.folder })
    const { stdout } = answerOf(await shared.cmd.run(context))
    expect(stdout).toBe(`${env.TEXT}|a\nb\n|1.5|True|[1,"a"]||0|${site.folder}`)
  })

  it('is given to the shell as it is', async () => {
    const cmd = `printf '%s|' "a  b" 'c"d' $((1+2)) "it's"; echo "\\$HOME"
echo second; # comment`
    expect(answerOf(await run({ cmd }))).toEqual(ended(0, `a  b|c"d|3|it's|$HOME\nsecond`))
    expect(answerOf(await run({ cmd: '-x' }))).toMatchObject({ return_code: 127 })
  })

  fullOnly(it)('may be larger than one argument of a program', async () => {
    const cmd = `${':;'.repeat(100_000)} echo "$0 done"`
    expect(answerOf(await run({ cmd }))).toEqual(ended(0, '/bin/sh done'))
  })

  it('fails where its folder is missing', async () => {
    expect(answerOf(await run({ cwd: '/no/such/folder' }))).toMatchObject({
      succeeded: false,
      stdout: '',
      stderr: expect.stringContaining('/no/such/folder'),
    })
  })

  it.each(
    variants<[string, number, string?]>(
      [
        ['exit 3', 3],
        ['kill -KILL $$', -9, 'killed by signal 9 (SIGKILL; out of memory?)'],
        ['no-such-command-of-ours 2>/dev/null', 127],
        ['kill -TERM $$', -15, 'killed by signal 15 (SIGTERM; asked to terminate)'],
        ['kill -HUP $$', -1, 'killed by signal 1 (SIGHUP; its terminal or session closed?)'],
      ],
      2,
    ),
  )('fails after %j', async (cmd, code, error) => {
    const result = await run({ cmd })
    expect([result.status, answerOf(result)]).toEqual([
      'failed',
      { ...ended(code), ...(error !== undefined && { error }) },
    ])
  })

  fullOnly(it)('shows no secret to other accounts', async () => {
    const secret = 'secret-of-the-environment'
    const hidden = 'echo ready; sleep 1000 # secret-of-the-command'
    const abort = new AbortController()
    const { context, output } = recordRun(
      { hosts: sshd.address, cmd: hidden, env: { PASSWORD: secret } },
      { signal: abort.signal, containsSecret: (text) => text.includes('secret-of-the-command') },
    )
    context.env['SVC_ACTION_AUTH_TOKEN'] = 'secret-of-the-token'
    const running = shared.cmd.run(context)
    await waitFor('the command', () => output.stdout === 'ready\n')
    const commandLines = readdirSync('/proc').flatMap((name) => {
      try {
        return /^\d+$/.test(name) ? [readFileSync(`/proc/${name}/cmdline`, 'utf8')] : []
      } catch {
        return []
      }
    })
    expect(commandLines.some((line) => line.includes('sleep'))).toBe(true)
    expect(commandLines.filter((line) => line.includes('secret-of-'))).toEqual([])
    abort.abort('cancel')
    await running
    expect(markedProcesses(context.executionId)).toEqual([])
  })

  it('may be run by root', async () => {
    await ensureDebianPackage('sudo', '/usr/bin/sudo')
    const { context } = recordRun({
      hosts: sshd.address,
      cmd: 'id -u; echo "$A $SVC_ACTION_EXECUTION_ID"; wc -c',
      env: { A: "it's" },
      sudo: true,
    })
    expect(answerOf(await shared.cmd.run(context))).toEqual(ended(0, `0\nit's ${context.executionId}\n0`))
    const withPassword = await run({ cmd: 'id -u; wc -c', sudo: true, sudo_password: 'not asked for' })
    expect(answerOf(withPassword)).toEqual(ended(0, '0\n0'))
  })

  fullOnly(it)('is what a login shell says that talks, too', async () => {
    const { context } = recordRun({ hosts: sshd.address, cmd: 'printf "%s" "[start 1234"; printf "%s" "[sta" >&2' })
    expect(answerOf(await shared.cmd.run(context))).toEqual(ended(0, '[start 1234', '[sta'))
  })
})

fullOnly(describe.concurrent)('several hosts', () => {
  let second: Sshd
  let both: string
  beforeAll(async () => {
    second = await site.start({ host: '127.0.0.2' })
    both = `${sshd.address},${second.address}`
  })

  fullOnly(it)('have a result each, and say which one wrote', async () => {
    const written: [string, string, string | undefined][] = []
    const result = await run({ hosts: both, cmd: 'echo $SSH_CONNECTION | cut -d" " -f3' }, shared, {
      emit: (type, text, host) => void written.push([type, text, host]),
    })
    expect(result).toEqual({
      status: 'succeeded',
      result: { '127.0.0.1': ended(0, '127.0.0.1'), '127.0.0.2': ended(0, '127.0.0.2') },
    })
    expect(written).toEqual([
      ['stdout', '127.0.0.1\n', '127.0.0.1'],
      ['stdout', '127.0.0.2\n', '127.0.0.2'],
    ])
  })

  fullOnly(it)('share the room of one result', async () => {
    const cmd = `printf '%0${MAX_RESULT_BYTES - 100}d' 0; printf '%0${MAX_RESULT_BYTES / 2}d' 0 >&2`
    const result = await run({ hosts: both, cmd })
    const half = '0'.repeat(MAX_RESULT_BYTES / 2)
    const cut = { ...ended(0, half), stderr: half, stdout_truncated: true }
    expect(result.result).toEqual({ '127.0.0.1': cut, '127.0.0.2': cut })
    expect(answerOf(await run({ hosts: sshd.address, cmd }))).not.toHaveProperty('stdout_truncated')
  })

  fullOnly(it)('come one after the other, or at once', async () => {
    const file = join(site.folder, `at-once-${newId()}`)
    // Each tells that it is there, and waits until another one is, or for nothing.
    const cmd = `echo x >> ${file}; cat ${file} | wc -l; sleep 0.2; rm -f ${file}.no`
    const oneByOne = await run({ hosts: both, cmd })
    expect([answerOf(oneByOne)['stdout'], answerOf(oneByOne, '127.0.0.2')['stdout']]).toEqual(['1', '2'])
    const meet = `echo x >> ${file}-2; while [ "$(wc -l < ${file}-2)" -lt 2 ]; do sleep 0.05; done; echo met`
    const more = Array.from({ length: 4 }, (_, i) => `localhost${i}.invalid`)
    const result = await run({ hosts: [both, ...more].join(), cmd: meet, parallel: true, timeout: 50 })
    expect(answerOf(result)).toEqual(ended(0, 'met'))
    expect(answerOf(result, '127.0.0.2')).toEqual(ended(0, 'met'))
  })

  fullOnly(it)('fail together when one cannot be reached or does not let us in, unless some are enough', async () => {
    const stranger = site.makeKey(`stranger-${newId()}`, { isAllowed: false })
    const closed = await site.start({ host: '127.0.0.3', config: 'AllowUsers nobody-of-this-name' })
    const hosts = `${both},${closed.address},127.0.0.4:9`
    const result = await run({ hosts })
    expect(result.status).toBe('failed')
    expect(Object.keys(result.result)).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'])
    expect(answerOf(result)).toEqual(ended(0, 'hi'))
    const failure = { ...ended(255), timeout: false, traceback: expect.any(String) }
    expect(answerOf(result, '127.0.0.3')).toEqual({ ...failure, error: expect.stringContaining(site.user) })
    expect(answerOf(result, '127.0.0.4')).toEqual({ ...failure, error: expect.stringContaining('127.0.0.4 refused') })
    expect(await refusal({ hosts: both, private_key: stranger.text })).toMatch(
      /^Unable to connect to any one of the hosts/,
    )
    const lenient = await makeRunners({ allowPartialFailure: true })
    expect((await run({ hosts }, lenient)).status).toBe('succeeded')
  })

  fullOnly(it)('time out together only', async () => {
    const cmd = '[ "$(echo $SSH_CONNECTION | cut -d" " -f3)" = 127.0.0.2 ] || exec sleep 1000'
    await withTimeLimit(async (timeout) => {
      const [some, all] = await Promise.all([
        run({ hosts: both, cmd, timeout }),
        run({ hosts: both, cmd: 'sleep 1000', timeout }),
      ])
      expect(all.status).toBe('timeout')
      if (some.status === 'timeout') return false
      expect(some.status).toBe('failed')
      const error = `Action failed to complete in ${timeout} seconds`
      expect(answerOf(some)).toEqual({ ...ended(-9), timeout: true, error, traceback: '' })
      expect(answerOf(some, '127.0.0.2')).toEqual(ended(0))
      return true
    })
  })
})

describe.concurrent('keys of hosts', () => {
  const file = (): string => join(site.folder, `known-${newId()}`)

  it('are kept when they are seen first, and refused when they have changed', async () => {
    const knownHostsFile = file()
    const first = await site.start({ hostKeys: ['rsa', 'ed25519'] })
    const subject = await makeRunners({ knownHostsFile })
    expect((await run({ hosts: first.address }, subject)).status).toBe('succeeded')
    expect(readFileSync(knownHostsFile, 'utf8')).toBe(`[127.0.0.1]:${first.port} ${first.hostKey('ed25519')}\n`)
    await first.stop()
    const second = await site.start({ port: first.port })
    const error = await refusal({ hosts: second.address }, subject)
    expect(error).toMatch(/has changed.*ssh-ed25519 SHA256:.*ssh-ed25519 SHA256:/)
    expect(readFileSync(knownHostsFile, 'utf8')).not.toContain(second.hostKey('ed25519'))
    const careless = await makeRunners({ knownHostsFile, hostKeyChecking: 'off' })
    expect((await run({ hosts: second.address }, careless)).status).toBe('succeeded')
  })

  fullOnly(it)('strict: only those of the file, of the kind that it has', async () => {
    const knownHostsFile = file()
    const server = await site.start({ hostKeys: ['ed25519', 'rsa', 'ecdsa'] })
    const subject = await makeRunners({ knownHostsFile, hostKeyChecking: 'strict' })
    expect(await refusal({ hosts: server.address }, subject)).toMatch(/strict/)
    expect(existsSync(knownHostsFile)).toBe(false)
    for (const kind of ['rsa', 'ecdsa', 'ed25519'] as const) {
      writeFileSync(knownHostsFile, `[127.0.0.1]:${server.port} ${server.hostKey(kind)}\n`)
      const other = await makeRunners({ knownHostsFile, hostKeyChecking: 'strict' })
      expect((await run({ hosts: server.address }, other)).status).toBe('succeeded')
    }
  })
})

describe.concurrent('logging in', () => {
  it.each(variants(['ed25519', 'rsa', 'ecdsa']))('with a key of kind %s as text, and as file', async (type) => {
    const own = site.makeKey(`key-${type}`, { type })
    const subject = await makeRunners({ keyFile: '/no/such/key' })
    expect((await run({ private_key: own.text }, subject)).status).toBe('succeeded')
    const { private_key: _, ...named } = { private_key: own.text, hosts: sshd.address }
    expect((await run({ ...named, private_key: own.path }, await makeRunners())).status).toBe('succeeded')
  })

  fullOnly(it.each(['rsa', 'ed25519', 'ecdsa'] as const))(
    'with a key of kind %s that has a passphrase',
    async (type) => {
      const own = site.makeKey(`locked-${type}`, { type, passphrase: 'open sesame' })
      const subject = await makeRunners()
      expect((await run({ private_key: own.text, passphrase: 'open sesame' }, subject)).status).toBe('succeeded')
      expect(await refusal({ private_key: own.text, passphrase: 'wrong' }, subject)).toMatch(/does not match/)
      expect(await refusal({ private_key: own.text }, subject)).toMatch(/has a passphrase/)
    },
  )

  it('says what is wrong with a key, not what is in it', async () => {
    const broken = key.text.replace(/^[^-].*$/gm, 'AAAA')
    expect(await refusal({ private_key: broken })).toMatch(/unsupported format or kind/)
    expect(await refusal({ private_key: '/etc/passwd' })).toMatch(/without a private key/)
    expect(await refusal({ private_key: '/no/such/key' })).toMatch(/does not exist/)
    const script = await shared.script.run(
      recordRun({ hosts: sshd.address, private_key: key.path }, { entryPoint: writeScript('#!/bin/sh\n') }).context,
    )
    expect(script.result['error']).toMatch(/must be the text of a key/)
  })

  it.each(variants(['password', 'keyboard-interactive']))('with a password, by %s', async (method) => {
    const server = await startPasswordServer(method, 'open sesame')
    try {
      const subject = await makeRunners()
      const parameters = { hosts: `127.0.0.1:${server.port}`, username: 'somebody' }
      expect(answerOf(await run({ ...parameters, password: 'open sesame' }, subject))).toEqual(ended(0, 'hi'))
      expect(await refusal({ ...parameters, password: 'wrong' }, subject)).toMatch(/user "somebody": wrong password/)
      await subject.runners.stop()
    } finally {
      await server.stop()
    }
  })

  it('without key and password: says so', async () => {
    const subject = await makeRunners({ keyFile: '/no/such/key' })
    expect(await refusal({}, subject)).toMatch(/ssh_key_file.*does not exist/)
  })
})

describe.concurrent('connections', () => {
  fullOnly(it)('are used again, by whoever has the same credentials', async () => {
    const server = await site.start()
    const subject = await makeRunners()
    for (let i = 0; i < 3; i++) expect((await run({ hosts: server.address }, subject)).status).toBe('succeeded')
    expect(server.logins()).toBe(1)
    const stranger = site.makeKey(`stranger-${newId()}`, { isAllowed: false })
    expect(await refusal({ hosts: server.address, private_key: stranger.text }, subject)).toMatch(/wrong key/)
    await Promise.all(Array.from({ length: 6 }, () => run({ hosts: server.address, cmd: 'sleep 0.3' }, subject)))
    expect(server.logins()).toBeLessThanOrEqual(7)
    await subject.runners.stop()
    await waitFor('the connections to be closed', () => server.sessions().length === 0)
  })

  fullOnly(it)('are replaced when the server has closed them, also without a word', async () => {
    const server = await site.start()
    const subject = await makeRunners()
    await run({ hosts: server.address }, subject)
    for (const pid of server.sessions()) process.kill(pid, 'SIGKILL')
    expect(answerOf(await run({ hosts: server.address }, subject))).toEqual(ended(0, 'hi'))
    const frozen = server.sessions()
    for (const pid of frozen) process.kill(pid, 'SIGSTOP')
    expect(answerOf(await run({ hosts: server.address }, subject))).toEqual(ended(0, 'hi'))
    for (const pid of frozen) process.kill(pid, 'SIGKILL')
    expect(server.logins()).toBe(3)
  })

  fullOnly(it)('make room elsewhere where a server allows one session each', async () => {
    const server = await site.start({ config: 'MaxSessions 1' })
    const subject = await makeRunners()
    const abort = new AbortController()
    const first = recordRun({ hosts: server.address, cmd: 'echo up; sleep 1000' }, { signal: abort.signal })
    const running = subject.cmd.run(first.context)
    await waitFor('the first', () => first.output.stdout !== '')
    expect(answerOf(await run({ hosts: server.address }, subject))).toEqual(ended(0, 'hi'))
    abort.abort('cancel')
    await running
    expect(markedProcesses(first.context.executionId)).toEqual([])
  })

  fullOnly(it)('that break while a command runs: an error, and the command is ended', async () => {
    const server = await site.start()
    const subject = await makeRunners()
    const { context, output } = recordRun({
      hosts: server.address,
      cmd: 'echo up; trap "" HUP PIPE; sleep 1000; sleep 1000',
    })
    const running = subject.cmd.run(context)
    await waitFor('the command', () => output.stdout === 'up\n')
    for (const pid of server.sessions()) process.kill(pid, 'SIGKILL')
    expect(answerOf(await running)).toEqual({
      ...ended(255, 'up'),
      timeout: false,
      error: expect.stringContaining('broke'),
      traceback: expect.any(String),
    })
    expect(markedProcesses(context.executionId)).toEqual([])
  })

  fullOnly(it)('that break for good: an error, and a warning that something may go on', async () => {
    const server = await site.start()
    const told: string[] = []
    const subject = await makeRunners({}, told)
    const { context, output } = recordRun({ hosts: server.address, cmd: 'echo up; sleep 1000' })
    const running = subject.cmd.run(context)
    await waitFor('the command', () => output.stdout === 'up\n')
    await server.stop()
    expect(answerOf(await running)).toMatchObject({ return_code: 255 })
    expect(told).toEqual([expect.stringContaining(context.executionId)])
    for (const pid of markedProcesses(context.executionId)) process.kill(pid, 'SIGKILL')
  })

  fullOnly(it)('go through a bastion, whose key is checked too', async () => {
    const [bastion, inner] = await Promise.all([site.start({ host: '127.0.0.5' }), site.start()])
    const knownHostsFile = join(site.folder, `known-${newId()}`)
    const subject = await makeRunners({ knownHostsFile })
    const parameters = { hosts: inner.address, bastion_host: bastion.address, cmd: 'echo $SSH_CONNECTION' }
    expect(answerOf(await run(parameters, subject))).toMatchObject({ return_code: 0 })
    await run(parameters, subject)
    expect([bastion.logins(), inner.logins()]).toEqual([1, 1])
    expect(
      readFileSync(knownHostsFile, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' ')[0]),
    ).toEqual([`[127.0.0.5]:${bastion.port}`, `[127.0.0.1]:${inner.port}`])
    const changed = join(site.folder, `known-${newId()}`)
    writeFileSync(changed, `[127.0.0.5]:${bastion.port} ${inner.hostKey('ed25519')}\n`)
    expect(await refusal(parameters, await makeRunners({ knownHostsFile: changed }))).toMatch(
      /127\.0\.0\.5.*has changed/,
    )
    expect(await refusal({ ...parameters, bastion_host: '127.0.0.6:9' }, subject)).toMatch(/127\.0\.0\.6/)
  })

  fullOnly(it)('are made as the configuration of OpenSSH says, when it is to be used', async () => {
    const [jump, inner] = await Promise.all([site.start({ host: '127.0.0.7' }), site.start()])
    const configPath = join(site.folder, `config-${newId()}`)
    const ran = join(site.folder, `ran-${newId()}`)
    const lines = [
      `Match exec "touch ${ran}"`,
      '  Port 1',
      'Host inner*',
      '  HostName 127.0.0.1',
      `  Port ${inner.port}`,
      `  User ${site.user}`,
      `  IdentityFile ${key.path}`,
      '  ProxyJump jump',
      'Host jump',
      `  HostName 127.0.0.7`,
      `  Port ${jump.port}`,
      `  IdentityFile ${key.path}`,
    ]
    writeFileSync(configPath, `${lines.join('\n')}\n`)
    const subject = await makeRunners({ configPath, keyFile: '/no/such/key' })
    expect(answerOf(await run({ hosts: 'inner1' }, subject), 'inner1')).toEqual(ended(0, 'hi'))
    expect([jump.logins(), inner.logins()]).toEqual([1, 1])
    expect(existsSync(ran)).toBe(false)
  })

  describe('with a configuration of OpenSSH', () => {
    const configure = (lines: string[]): Promise<RemoteSubject> => {
      const configPath = join(site.folder, `config-${newId()}`)
      writeFileSync(configPath, `${lines.join('\n')}\n`, { mode: 0o600 })
      return makeRunners({ configPath, keyFile: '/no/such/key' })
    }
    const login = (port: number): string[] => [`  HostName 127.0.0.1`, `  Port ${port}`, `  User ${site.user}`]

    it('go through a ProxyCommand, which ends with them', async () => {
      const inner = await site.start()
      const pids = join(site.folder, `pids-${newId()}`)
      const tunnel = `ssh -F none -q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i ${key.path} -p ${sshd.port} -W 127.0.0.1:%p %r@127.0.0.1`
      const subject = await configure([
        'Host inner',
        '  HostName 192.0.2.1',
        `  Port ${inner.port}`,
        `  User ${site.user}`,
        `  IdentityFile ${key.path}`,
        `  ProxyCommand sh -c 'echo $$ > ${pids}; ${tunnel}'`,
      ])
      for (let i = 0; i < 2; i++) {
        expect(answerOf(await run({ hosts: 'inner' }, subject), 'inner')).toEqual(ended(0, 'hi'))
      }
      expect(inner.logins()).toBe(1)
      const command = join('/proc', readFileSync(pids, 'utf8').trim())
      expect(existsSync(command)).toBe(true)
      await subject.runners.stop()
      await waitFor('the program to end', () => !existsSync(command))
    })

    it('tell what is wrong with a ProxyCommand, and run none with the name of a hostile user', async () => {
      const ran = join(site.folder, `ran-${newId()}`)
      const subject = await configure(['Host *', `  ProxyCommand sh -c 'echo no way to %h >&2; exit 3'`])
      const parameters = { hosts: 'inner', private_key: key.text }
      expect(await refusal(parameters, subject)).toMatch(/ProxyCommand ended with exit code 3: no way to inner/)
      const naming = await configure(['Host *', `  ProxyCommand nc %h %r`])
      expect(await refusal({ ...parameters, username: `x; touch ${ran}` }, naming)).toMatch(/ProxyCommand.*user \(%r\)/)
      expect(existsSync(ran)).toBe(false)
    })

    it('try several keys, and name what keeps them from succeeding', async () => {
      const stranger = site.makeKey(`stranger-${newId()}`, { isAllowed: false })
      const locked = site.makeKey(`locked-${newId()}`, { passphrase: 'open sesame' })
      const files = ['/no/such/key', `${key.path}.pub`, locked.path, stranger.path]
      const own = (paths: string[]): string[] => paths.map((path) => `  IdentityFile ${path}`)
      const subject = await configure([
        'Host good',
        ...login(sshd.port),
        ...own([...files, key.path]),
        'Host bad',
        ...login(sshd.port),
        '  CertificateFile /no/such/certificate',
        ...own(files),
        'Host none',
        ...login(sshd.port),
        ...own(files.slice(0, 3)),
      ])
      expect(answerOf(await run({ hosts: 'good' }, subject), 'good')).toEqual(ended(0, 'hi'))
      const error = await refusal({ hosts: 'bad' }, subject)
      for (const reason of ['wrong key', 'does not exist', 'is a public key', 'passphrase', 'CertificateFile']) {
        expect(error).toContain(reason)
      }
      expect(await refusal({ hosts: 'none' }, subject)).toMatch(/does not exist.*is a public key.*passphrase/)
    })
  })

  fullOnly(it)('fail in time with a server that says nothing, or too much', async () => {
    const { createServer } = await import('node:net')
    const servers = [
      createServer((socket) => void socket.resume().on('error', () => undefined)),
      createServer((socket) => {
        socket.resume().on('error', () => undefined)
        const flood = (): boolean => socket.writable && socket.write('x'.repeat(65_536)) && flood()
        socket.on('drain', flood)
        flood()
      }),
      createServer((socket) => {
        socket.resume().on('error', () => undefined)
        socket.write('SSH-2.0-\x1b[31mhostile\r\n\0\0\0\x01garbage')
      }),
    ]
    const ports = await Promise.all(
      servers.map(
        (server) =>
          new Promise<number>((resolve) => {
            server.listen(0, '127.0.0.1', () => {
              const address = server.address()
              resolve(typeof address === 'object' && address !== null ? address.port : 0)
            })
          }),
      ),
    )
    const subject = await makeRunners({ connectTimeoutSeconds: 1 })
    const errors = await Promise.all(ports.map((port) => refusal({ hosts: `127.0.0.1:${port}` }, subject)))
    expect(errors[0]).toMatch(/within 1 seconds/)
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  })
})

describe.concurrent('scripts', () => {
  const runScript = (text: string, parameters: Record<string, unknown> = {}, more: Partial<RunContext> = {}) => {
    const dir = join(site.folder, `dir-${newId()}`)
    mkdirSync(dir)
    const recorded = recordRun({ hosts: sshd.address, dir, ...parameters }, { entryPoint: writeScript(text), ...more })
    return { ...recorded, dir, folders: () => readdirSync(dir), ended: shared.script.run(recorded.context) }
  }

  it('run in a folder of their own, with their arguments as they are', async () => {
    const hostile = `it's $(id) \`id\` "x"\nnext \\ $HOME ; rm -rf /no/such`
    const {
      ended: running,
      context,
      dir,
      folders,
    } = runScript(
      '#!/bin/sh\nfor i; do printf "[%s]" "$i"; done; stat -c %a "$0"; dirname "$0"',
      {},
      {
        actionParameters: { text: hostile, flag: true, off: false, first: 'a b', list: ['x', 'y'] },
        parameterSchemas: { first: { type: 'string', position: 0 }, list: { type: 'array', position: 1 } },
      },
    )
    expect(answerOf(await running)).toEqual(
      ended(0, `[--text=${hostile}][--flag][a b][x,y]744\n${dir}/${context.liveactionId}`),
    )
    expect(folders()).toEqual([])
  })

  it.each(variants(['#!/bin/sh', '#!/bin/bash -e', '#!/usr/bin/env bash', '']))(
    'of %j are given secrets as arguments that nobody sees',
    async (line) => {
      const value = `it's "geheim"\n$HOME`
      const { ended: running, dir } = runScript(
        `${line}\nprintf '<%s>' "$@"; cat /proc/$$/cmdline | tr '\\0' ' ' >&2; exit 3`,
        {},
        { actionParameters: { a: value, b: 'x' }, parameterSchemas: { a: { secret: true } } },
      )
      const { stdout, stderr, code } = read((await running).result)
      expect([stdout, code]).toEqual([`<--a=${value}><--b=x>`, 3])
      expect(stderr).toContain(dir)
      expect(stderr).not.toContain('geheim')
    },
  )

  fullOnly(it)('leave nothing behind when they fail, time out or are canceled', async () => {
    const text = '#!/bin/sh\nmkdir "$(dirname "$0")/made" && echo x > "$(dirname "$0")/made/file"; echo up; '
    const abort = new AbortController()
    const failed = runScript(`${text} exit 4`)
    const late = runScript(`${text} sleep 1000`, { timeout: 1 })
    const canceled = runScript(`${text} sleep 1000`, {}, { signal: abort.signal })
    await waitFor('the script to be up', () => canceled.output.stdout === 'up\n')
    abort.abort('cancel')
    const results = await Promise.all([failed.ended, late.ended, canceled.ended])
    expect(results.map((result) => answerOf(result)['return_code'])).toEqual([4, -9, -15])
    for (const { folders } of [failed, late, canceled]) expect(folders()).toEqual([])
    for (const { context } of [late, canceled]) expect(markedProcesses(context.executionId)).toEqual([])
  })

  it('have the common files of their pack beside them', async () => {
    const packFolder = join(site.folder, `pack-${newId()}`)
    mkdirSync(join(packFolder, 'actions', 'lib', 'deep'), { recursive: true })
    writeFileSync(join(packFolder, 'actions', 'lib', 'common.sh'), 'greet() { echo "hello $1"; }\n')
    writeFileSync(join(packFolder, 'actions', 'lib', 'deep', 'big'), Buffer.alloc(1_000_003, 7))
    const text = '#!/bin/sh\nhere=$(dirname "$0"); . "$here/lib/common.sh"; greet you; cksum < "$here/lib/deep/big"'
    const { ended: running, folders } = runScript(text, {}, { packFolder })
    const { execFileSync } = await import('node:child_process')
    const sum = execFileSync('cksum', { input: Buffer.alloc(1_000_003, 7), encoding: 'utf8' }).trim()
    expect(answerOf(await running)).toEqual(ended(0, `hello you\n${sum}`))
    symlinkSync('/etc/passwd', join(packFolder, 'actions', 'lib', 'escape'))
    expect((await runScript(text, {}, { packFolder }).ended).result['error']).toMatch(/^Failed copying content.*escape/)
    expect(folders()).toEqual([])
  })

  fullOnly(it)('do not run anywhere when they could not be copied everywhere', async () => {
    const [closed, witness] = [
      await site.start({ host: '127.0.0.8', hasSftp: false }),
      join(site.folder, `w-${newId()}`),
    ]
    const { ended: running, folders } = runScript(`#!/bin/sh\ntouch ${witness}`, {
      hosts: `${sshd.address},${closed.address}`,
    })
    expect(await running).toMatchObject({
      status: 'failed',
      result: { error: expect.stringMatching(/^Failed copying content to remote boxes\. 127\.0\.0\.8: /) },
    })
    expect([existsSync(witness), folders()]).toEqual([false, []])
  })
})

describe('a connection', () => {
  it('sends small packets at once', async () => {
    const noDelay = vi.spyOn(Socket.prototype, 'setNoDelay')
    const server = await site.start()
    const subject = await makeRunners()
    await run({ hosts: server.address }, subject)
    const sockets = noDelay.mock.contexts.filter((socket) => (socket as Socket).remotePort === server.port)
    expect(sockets).toHaveLength(1)
    await subject.runners.stop()
  })
})
