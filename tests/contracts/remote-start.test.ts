/** What happens between the login and the command: login shells, their startup files, forced commands (contract 03, 3.9). */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { markedProcesses } from '../helpers/marked-processes.ts'
import { recordRun } from '../helpers/run-context.ts'
import { remoteRunners, runThere, type RemoteRunners, type RemoteSubject } from '../helpers/remote-runners.ts'
import { makeSshSite, type SshSite } from '../helpers/sshd.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

let site: SshSite
let made: RemoteRunners
let patient: RemoteSubject
/** Its login shells have one second. */
let hasty: RemoteSubject

beforeAll(async () => {
  site = await makeSshSite()
  made = await remoteRunners(site, site.makeKey('id_allowed').path, 1000)
  patient = await made.make()
  hasty = await made.make({ startLimitSeconds: 1 })
})
afterAll(async () => {
  await made.stop()
  await site.stop()
})

/** A server whose account has this login shell: `$SSH_ORIGINAL_COMMAND` is what the client asks for. */
async function startWith(loginShell: string): Promise<string> {
  const file = join(site.folder, `shell-${newId()}`)
  writeFileSync(file, `#!/bin/bash\n${loginShell}\n`, { mode: 0o755 })
  return (await site.start({ config: `ForceCommand ${file}` })).address
}

/** A server whose account has bash with this `.bashrc`, which bash reads for commands over SSH. */
function startWithBashrc(text: string): Promise<string> {
  const home = join(site.folder, `home-${newId()}`)
  mkdirSync(home)
  writeFileSync(join(home, '.bashrc'), text)
  return startWith(`export HOME=${home} SHLVL=0; exec bash -c "$SSH_ORIGINAL_COMMAND"`)
}

const ended = (returnCode: number, stdout: string, stderr = '') => ({
  failed: returnCode !== 0,
  succeeded: returnCode === 0,
  return_code: returnCode,
  stdout,
  stderr,
})

describe.concurrent('startup files of a login shell', () => {
  test.each(
    variants<[what: string, text: string, stdout: string, stderr: string]>([
      ['takes what input there is', 'while read -r -t 0.2 line; do :; done', 'RAN', ''],
      ['prints before', 'echo "Welcome"; printf "no line end" >&2', 'Welcome\nRAN', 'no line end'],
      ['prints a lot', 'yes "0123456789" | head -c 900; echo', `${'0123456789\n'.repeat(81)}012345678\nRAN`, ''],
      ['closes standard error', 'exec 2>/dev/null', 'RAN', ''],
      ['closes standard output', 'exec >/dev/null', '', ''],
      ['fails', 'no-such-command 2>/dev/null; false', 'RAN', ''],
    ]),
  )('%s: the command runs', async (_, text, stdout, stderr) => {
    const hosts = await startWithBashrc(text)
    const { status, answer } = await runThere(patient, { hosts, cmd: 'echo RAN' })
    expect([status, answer]).toEqual(['succeeded', ended(0, stdout, stderr)])
  })

  fullOnly(test)('reads its standard input to the end: failed, and nothing ran', async () => {
    const hosts = await startWithBashrc('echo "Please choose a user: "\nwhile read -r answer; do :; done')
    const { status, answer } = await runThere(hasty, { hosts, cmd: 'echo RAN' })
    expect(status).toBe('failed')
    expect(answer).toMatchObject({
      ...ended(255, 'Please choose a user: '),
      error: expect.stringMatching(/did not run.*waits for input.*\.bashrc/),
    })
  })

  fullOnly(test)('waits for ever: failed in time, canceled at once', async () => {
    const hosts = await startWithBashrc('echo up; while [ -e ~ ]; do sleep 0.1; done')
    const { status, answer } = await runThere(hasty, { hosts, cmd: 'echo RAN' })
    expect([status, answer['error']]).toEqual(['failed', expect.stringMatching(/did not start it within 1 seconds/)])
    const abort = new AbortController()
    const { context, output } = recordRun({ hosts, cmd: 'echo RAN' }, { signal: abort.signal })
    const running = patient.cmd.run(context)
    await waitFor('the startup file', () => output.stdout === 'up\n')
    abort.abort('cancel')
    await running
    expect([output.stdout, markedProcesses(context.executionId)]).toEqual(['up\n', []])
  })

  test('calls exit: failed with its code, and what it printed', async () => {
    const hosts = await startWithBashrc('echo "only for people"; exit 0')
    const { status, answer } = await runThere(patient, { hosts, cmd: 'echo RAN' })
    expect(status).toBe('failed')
    expect(answer).toMatchObject({
      ...ended(255, 'only for people'),
      error: expect.stringMatching(/ended with exit code 0 before it started it.*do not call exit/),
    })
  })
})

describe.concurrent('a login shell', () => {
  test.each(
    variants<[what: string, shell: string]>(
      [
        ['true', 'exec /bin/true -c "$SSH_ORIGINAL_COMMAND"'],
        ['nologin', 'exec /usr/sbin/nologin -c "$SSH_ORIGINAL_COMMAND"'],
        ['a restricted shell', 'exec bash -r -c "$SSH_ORIGINAL_COMMAND"'],
        ['a forced command', 'echo backup done'],
        ['a forced command that takes all input', 'cat >/dev/null'],
        ['a forced command that prints its input', 'cat'],
        ['a shell that is killed', 'kill -KILL $$'],
      ],
      2,
    ),
  )('%s: failed, and says so', async (_, shell) => {
    const hosts = await startWith(shell)
    const secret = 'secret-of-the-environment'
    const { status, answer, output } = await runThere(hasty, { hosts, cmd: 'echo RAN', env: { SECRET: secret } })
    expect([status, answer['error']]).toEqual(['failed', expect.stringMatching(/^The command did not run on 127/)])
    // The account must not be shown what it was not started for.
    expect(JSON.stringify([answer, output])).not.toMatch(/RAN|secret-of/)
  })

  test.each(
    variants<[name: string, path: string, package_: string]>([
      ['fish', '/usr/bin/fish', 'fish'],
      ['zsh', '/usr/bin/zsh', 'zsh'],
      ['tcsh', '/usr/bin/tcsh', 'tcsh'],
      ['mksh', '/usr/bin/mksh', 'mksh'],
    ]),
  )('%s: the command runs', async (_, path, package_) => {
    await ensureDebianPackage(package_, path)
    const hosts = await startWith(`exec ${path} -c "$SSH_ORIGINAL_COMMAND"`)
    const env = { A: `it's "a" \\ $HOME !x` }
    const { status, answer } = await runThere(patient, { hosts, cmd: 'printf %s "$A"', env })
    expect([status, answer]).toEqual(['succeeded', ended(0, env.A)])
  })

  fullOnly(test)('busybox as every shell of the host: the command runs', async () => {
    await ensureDebianPackage('busybox', '/usr/bin/busybox')
    const hosts = await startWith('exec busybox sh -c "${SSH_ORIGINAL_COMMAND//\\/bin\\/sh/\\/usr\\/bin\\/busybox sh}"')
    const { status, answer } = await runThere(patient, { hosts, cmd: 'echo "$A"', env: { A: `it's` } })
    expect([status, answer]).toEqual(['succeeded', ended(0, `it's`)])
  })
})

describe.concurrent('a script', () => {
  test('where startup files print: says why it cannot be copied', async () => {
    const hosts = await startWith('echo Welcome to this machine; exec /usr/lib/openssh/sftp-server')
    const { context } = recordRun({ hosts }, { entryPoint: join(site.folder, 'script.sh') })
    writeFileSync(context.entryPoint, '#!/bin/sh\n')
    const { status, result } = await hasty.script.run(context)
    expect([status, result['error']]).toEqual(['failed', expect.stringMatching(/prints.*\.bashrc/)])
  })
})

fullOnly(describe)('a connection that breaks before the command starts', () => {
  test('failed, and nothing ran', async () => {
    const file = join(site.folder, `shell-${newId()}`)
    writeFileSync(file, '#!/bin/sh\necho up\nwhile [ -e "$0" ]; do sleep 0.1; done\n', { mode: 0o755 })
    const server = await site.start({ config: `ForceCommand ${file}` })
    const { context, output } = recordRun({ hosts: server.address, cmd: 'echo RAN' })
    const running = patient.cmd.run(context)
    await waitFor('the shell', () => output.stdout === 'up\n')
    for (const pid of server.sessions()) process.kill(pid, 'SIGKILL')
    const { status, result } = await running
    expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('the connection broke')])
  })
})
