import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { chmodSync, chownSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Account, ACCOUNT_HOME, createAccount } from '../../tests/helpers/accounts.ts'
import { makeFolder, type TemporaryFolder } from '../../tests/helpers/folders.ts'
import { markedProcesses } from '../../tests/helpers/marked-processes.ts'
import type { LauncherKind } from './process/create-launcher.ts'
import type { SystemUserDecision } from './process/system-user.ts'
import type { RunContext, RunResult } from './runner.ts'
import { fullOnly, variants } from '../../tests/helpers/tiers.ts'

const PASSWORD = 'correct horse'
const TRUSTING = 'ALL=(ALL) NOPASSWD: ALL'
const fixture = (name: string): string => fileURLToPath(new URL(`../../tests/fixtures/${name}`, import.meta.url))

interface Answer extends RunResult {
  number: number
  executionId: string
  output: { stdout: string; stderr: string }
  warnings: unknown[]
}

/** A process that runs commands under the account `server`. */
class OtherAccount {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  readonly decision: Promise<SystemUserDecision>

  constructor(kind: LauncherKind, account: string, systemUser: string) {
    this.#child = spawn(process.execPath, [fixture('run-as.ts'), kind, account, systemUser], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/tmp', LANG: 'C' },
    })
    const lines = createInterface({ input: this.#child.stdout })
    this.decision = new Promise((resolve, reject) => {
      lines.once('line', (line) => {
        resolve(JSON.parse(line))
        lines.on('line', (next) => {
          const answer: Answer = JSON.parse(next)
          this.#waiting.get(answer.number)?.(answer)
        })
      })
      lines.once('close', () => reject(new Error('The process of the other account ended; its error is above.')))
    })
  }

  run(parameters: Record<string, unknown>, cancelAfterOutput = false): Promise<Answer> {
    return this.#ask({ runner: 'local-shell-cmd', parameters, cancelAfterOutput })
  }

  /** Of which this must not be seen. */
  runHidden(parameters: Record<string, unknown>, secret: string): Promise<Answer> {
    return this.#ask({ runner: 'local-shell-cmd', parameters, secret })
  }

  runScript(more: Partial<RunContext>, parameters: Record<string, unknown> = {}): Promise<Answer> {
    return this.#ask({ runner: 'local-shell-script', parameters, more })
  }

  #ask(request: Record<string, unknown>): Promise<Answer> {
    const number = this.#waiting.size
    return new Promise((resolve) => {
      this.#waiting.set(number, resolve)
      this.#child.stdin.write(`${JSON.stringify({ number, ...request })}\n`)
    })
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('close', resolve))
    this.#child.stdin.end()
    await ended
  }
}

let server: Account
let system: Account
let other: OtherAccount | undefined
/** Serves all tests in which sudo asks for nothing, and so remembers nothing. */
let trusted: OtherAccount | undefined

beforeAll(async () => {
  server = await createAccount('svc-test-server', PASSWORD)
  system = await createAccount('svc-test-system')
}, 240_000)
afterEach(async () => {
  await other?.stop()
  other = undefined
  server.allow('')
})
afterAll(async () => {
  await trusted?.stop()
  server.remove()
  system.remove()
})

async function start(rule: string, kind: LauncherKind = 'posix-spawn-thread'): Promise<OtherAccount> {
  server.allow(rule)
  if (rule === TRUSTING) {
    trusted ??= new OtherAccount(kind, server.name, system.name)
    await trusted.decision
    return trusted
  }
  other = new OtherAccount(kind, server.name, system.name)
  await other.decision
  return other
}

describe('the system user', () => {
  it('runs the commands when sudo lets it', async () => {
    const account = await start(TRUSTING)
    expect(await account.decision).toMatchObject({ mode: 'sudo', processUser: server.name, isRoot: false })
    const { result } = await account.run({ cmd: 'id -un; echo "$HOME $SVC_ACTION_PACK_NAME"' })
    expect(result).toMatchObject({ stdout: `${system.name}\n${ACCOUNT_HOME} core`, stderr: '', return_code: 0 })
  })

  fullOnly(it)('gives way to the process user when sudo does not let it, and says why', async () => {
    const account = await start('')
    expect(await account.decision).toMatchObject({ mode: 'process-user', reason: expect.stringContaining(system.name) })
    expect((await account.run({ cmd: 'id -un' })).result['stdout']).toBe(server.name)
  })

  fullOnly(it)('is reached with a password where sudo asks for one', async () => {
    const account = await start(`ALL=(${system.name}) ALL`)
    expect(await account.decision).toMatchObject({ mode: 'process-user' })
    const { result } = await account.run({ cmd: 'id -un', sudo_password: PASSWORD })
    expect(result).toMatchObject({ stdout: system.name, stderr: '' })
  })
})

describe('sudo', () => {
  it('runs as root', async () => {
    const account = await start(TRUSTING)
    const { result } = await account.run({ cmd: 'id -un; echo "$SVC_ACTION_PACK_NAME"', sudo: true })
    expect(result).toMatchObject({ stdout: 'root\ncore', stderr: '', return_code: 0 })
  })

  it('does not tell anybody about a command with a secret in it', async () => {
    const account = await start(TRUSTING)
    const cmd = `: hunter22-secret; tr '\\0' ' ' < /proc/$$/cmdline; env`
    for (const sudo of [false, true]) {
      const { result } = await account.runHidden({ cmd, sudo }, 'hunter22-secret')
      expect(result).toMatchObject({ stdout: expect.stringContaining('eval'), stderr: '', return_code: 0 })
      expect(result['stdout']).not.toContain('hunter22')
    }
  })

  it('takes the password, which the command never sees', async () => {
    const account = await start('ALL=(ALL) ALL')
    const cmd = 'id -un; cat; echo; ps -eo args; env'
    const { result, output } = await account.run({ cmd, sudo: true, sudo_password: PASSWORD })
    expect(result).toMatchObject({ stdout: expect.stringMatching(/^root\n\n.*COMMAND/), stderr: '' })
    expect(JSON.stringify([result, output])).not.toContain(PASSWORD)
  })

  it.each(variants([TRUSTING, 'ALL=(ALL) ALL']))('leaves nothing but the input on stdin with %j', async (rule) => {
    const account = await start(rule)
    const stdin = `$(id)\n${'x'.repeat(70_000)}\nend`
    const { result } = await account.run({ cmd: 'cat', stdin, sudo: true, sudo_password: PASSWORD })
    expect(result).toMatchObject({ stdout: stdin, return_code: 0 })
  })

  it.each(variants([TRUSTING, 'ALL=(ALL) ALL']))('does not leave the password on stdin with %j', async (rule) => {
    const account = await start(rule)
    for (let round = 0; round < 2; round++) {
      const { result } = await account.run({ cmd: 'cat; echo end', sudo: true, sudo_password: PASSWORD })
      expect(result).toMatchObject({ stdout: 'end', return_code: 0 })
    }
  })

  fullOnly(it)('fails with -1 when the password is wrong, and soon', async () => {
    const account = await start('ALL=(ALL) ALL')
    const { status, result, output } = await account.run({ cmd: 'echo ran', sudo: true, sudo_password: 'wrong guess' })
    expect(status).toBe('failed')
    expect(result).toMatchObject({ return_code: -1, stdout: '', error: expect.stringContaining('password') })
    expect(JSON.stringify([result, output])).not.toContain('wrong guess')
  })

  fullOnly(it)('fails like any command when it needs a password and has none', async () => {
    const account = await start('ALL=(ALL) ALL')
    const { status, result } = await account.run({ cmd: 'echo ran', sudo: true })
    expect(status).toBe('failed')
    expect(result).toMatchObject({ return_code: 1, stdout: '', stderr: expect.stringContaining('sudo') })
    expect(result).not.toHaveProperty('error')
  })
})

const rules = [
  ['without a password', TRUSTING, {}],
  ['with a password', 'ALL=(ALL) ALL', { sudo_password: PASSWORD }],
] as const
const stubborn = variants(['ignores-term.sh', 'leaves-session.sh', 'forks-twice.sh', 'forks-while-dying.sh'], 2)

it.each(variants(rules))(
  'ends processes of root %s',
  async (_, rule, more) => {
    const account = await start(rule)
    await Promise.all(
      stubborn.map(async (name) => {
        const answer = await account.run({ cmd: fixtureText(name), sudo: true, timeout: 60, ...more }, true)
        expect(answer.output.stdout).toContain('ready')
        expect(answer.warnings).toEqual([])
        expect(markedProcesses(answer.executionId)).toEqual([])
      }),
    )
  },
  240_000,
)

/** The script itself, because another account may not read the file. */
function fixtureText(name: string): string {
  return readFileSync(fixture(name), 'utf8')
}

fullOnly(it)('ends processes of the system user', async () => {
  const account = await start(`ALL=(${system.name}) NOPASSWD: ALL`)
  const answer = await account.run({ cmd: `id -un; ${fixtureText('leaves-session.sh')}`, timeout: 30 }, true)
  expect(answer.output.stdout).toContain(system.name)
  expect(markedProcesses(answer.executionId)).toEqual([])
})

describe('a script', () => {
  let pack: TemporaryFolder
  beforeAll(() => {
    pack = makeFolder()
    chmodSync(pack.path, 0o755)
  })
  afterAll(() => pack.remove())

  const text = `
    case "$(cat /proc/$$/cmdline /proc/$PPID/cmdline | tr '\\0' ' ')" in *geheim*) seen=seen ;; *) seen=hidden ;; esac
    echo "$(id -un) $* [$SVC_ACTION_PARAM_password] $seen"`
  /** Written by root, so that the account of the server cannot change it. */
  function script(mode: number, owner?: Account, line = '#!/bin/sh'): Partial<RunContext> {
    const entryPoint = join(pack.path, 'script')
    rmSync(entryPoint, { force: true })
    writeFileSync(entryPoint, line + text)
    if (owner !== undefined) chownSync(entryPoint, owner.uid, owner.gid)
    chmodSync(entryPoint, mode)
    return {
      entryPoint,
      packFolder: pack.path,
      parameterSchemas: { first: { position: 0 }, password: { secret: true } },
      actionParameters: { first: `a 'b' $HOME`, password: 'geheim' },
    }
  }
  const printed = (user: string): string => `${user} --password=geheim a 'b' $HOME [geheim] hidden`

  it('runs as the system user and as root, with its arguments and secrets', async () => {
    const account = await start(TRUSTING)
    for (const line of ['#!/bin/sh', '#!/bin/bash -eu', '']) {
      const parts = script(0o755, undefined, line)
      expect((await account.runScript(parts)).result).toMatchObject({ stdout: printed(system.name), stderr: '' })
      expect((await account.runScript(parts, { sudo: true })).result['stdout']).toBe(printed('root'))
      const { result } = await account.runScript(parts, { secret_arguments: false, sudo: true })
      expect(result['stdout']).toBe(`root a 'b' $HOME [geheim] hidden`)
    }
  })

  it('of the system user is made executable by it', async () => {
    const account = await start(TRUSTING)
    for (const line of ['#!/bin/sh', '#!/bin/bash']) {
      const parts = script(0o644, system, line)
      expect((await account.runScript(parts)).result['stdout']).toBe(printed(system.name))
    }
  })

  fullOnly(it)('that nobody may make executable does not start', async () => {
    const account = await start('')
    const { status, result } = await account.runScript(script(0o644))
    expect([status, result['error']]).toEqual(['failed', expect.stringMatching(/"script" is not executable.*chmod/)])
    expect((await account.runScript(script(0o600))).result['error']).toMatch(/cannot read it/)
  })
})
