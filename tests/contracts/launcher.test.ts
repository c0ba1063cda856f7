import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLauncher, type LauncherKind } from '../../src/runners/process/create-launcher.ts'
import {
  type Child,
  type Exit,
  type Launcher,
  type SpawnRequest,
  MAX_STDIN_BYTES,
  SpawnError,
} from '../../src/runners/process/launcher.ts'
import { isRunning } from '../helpers/marked-processes.ts'
import { rounds } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const PATH = process.env['PATH'] ?? '/usr/bin:/bin'
const kinds: LauncherKind[] = ['posix-spawn-thread', 'child-process']

const shell = (script: string, more: Partial<SpawnRequest> = {}): SpawnRequest => ({
  file: '/bin/sh',
  args: ['-c', script],
  env: { PATH },
  ...more,
})

async function finish(child: Child): Promise<{ stdout: string; stderr: string; exit: Exit }> {
  const [stdout, stderr, exit] = await Promise.all([text(child.stdout), text(child.stderr), child.exited])
  return { stdout, stderr, exit }
}

async function failure(launcher: Launcher, request: SpawnRequest): Promise<SpawnError> {
  const outcome = await launcher.spawn(request).then(
    () => 'started',
    (error: unknown) => error,
  )
  if (!(outcome instanceof SpawnError)) throw new Error(`Expected a SpawnError, got ${String(outcome)}`)
  return outcome
}

const openEnds = { stdin: 'open', hasReply: true } as const

const absent = (what: string): never => {
  throw new Error(`The child has no ${what}.`)
}

/** The first piece of output, and all that follows. */
function firstLine({ stdout }: Child): { line: Promise<string>; rest: Promise<string> } {
  const pieces: string[] = []
  const { promise: line, resolve } = Promise.withResolvers<string>()
  const rest = new Promise<string>((end) => {
    stdout.setEncoding('utf8').on('data', (piece: string) => {
      if (pieces.push(piece) === 1) resolve(piece)
    })
    stdout.once('end', () => end(pieces.slice(1).join('')))
  })
  return { line, rest }
}

const openFds = (): number => readdirSync('/proc/self/fd').length

function fdsKeptOverExec(): string[] {
  const O_CLOEXEC = 0o2000000
  return readdirSync('/proc/self/fd').filter((fd) => {
    if (Number(fd) < 3) return false
    try {
      const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0'
      return (Number.parseInt(flags, 8) & O_CLOEXEC) === 0
    } catch {
      // The one that listed the folder.
      return false
    }
  })
}

describe.each(kinds)('launcher %s', (kind) => {
  let launcher: Launcher
  let folder: string
  const run = async (request: SpawnRequest) => finish(await launcher.spawn(request))

  beforeAll(async () => {
    const chosen = await createLauncher(kind)
    launcher = chosen.launcher
    folder = mkdtempSync(join(tmpdir(), 'svc-launcher-'))
  })
  afterAll(async () => {
    await launcher.stop()
    rmSync(folder, { recursive: true })
  })

  it('bears its name', () => {
    expect(launcher.name).toBe(kind)
  })

  it('tells output and exit code', async () => {
    expect(await run(shell('echo out; echo err >&2; exit 3'))).toEqual({
      stdout: 'out\n',
      stderr: 'err\n',
      exit: { code: 3, signal: null },
    })
  })

  it.each(['TERM', 'KILL', 'HUP', 'ABRT', 'SEGV'])('tells that SIG%s ended it', async (name) => {
    const { exit } = await run(shell(`ulimit -c 0; kill -${name} $$`))
    expect(exit).toEqual({ code: null, signal: `SIG${name}` })
  })

  it('passes arguments as they are', async () => {
    const args = ['', ' a b ', '*', '$HOME', '"quoted"', 'zwölf 漢字 🦊', 'new\nline', '\\']
    const { stdout } = await run({ file: '/bin/sh', args: ['-c', 'printf "[%s]" "$@"', 'sh', ...args], env: { PATH } })
    expect(stdout).toBe(args.map((argument) => `[${argument}]`).join(''))
  })

  it('gives exactly the environment asked for', async () => {
    const env = { EMPTY: '', TEXT: 'a b=c', UNICODE: 'ü🦊', LINES: 'x\ny' }
    const { stdout } = await run({ file: '/usr/bin/env', args: ['-0'], env })
    const seen = Object.fromEntries(
      stdout
        .split('\0')
        .filter(Boolean)
        .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    )
    expect(seen).toEqual(env)
  })

  it('starts a program without any environment', async () => {
    expect((await run({ file: '/usr/bin/env', args: [], env: {} })).stdout).toBe('')
  })

  it('starts in the working directory asked for', async () => {
    expect((await run(shell('pwd -P', { cwd: '/usr/bin' }))).stdout).toBe('/usr/bin\n')
  })

  it('puts the child at the head of its own session and group', async () => {
    const child = await launcher.spawn(shell('read -r stat < /proc/$$/stat; echo "$stat"'))
    const { pid, startTime } = child.identity
    const fields = (await finish(child)).stdout
      .trim()
      .replace(/^.*\) /, '')
      .split(' ')
    expect(fields.slice(2, 4)).toEqual([String(pid), String(pid)])
    expect(fields[19]).toBe(startTime)
  })

  it('resets ignored and blocked signals', async () => {
    const { stdout } = await run(shell('grep -E "^Sig(Blk|Ign)" /proc/self/status'))
    const masks = [...stdout.matchAll(/^\w+:\s*(\w+)$/gm)].map((match) => BigInt(`0x${match[1]}`))
    // 32 and 33 belong to the C library.
    const foreign = masks.map((mask) => mask & ~(0b11n << 31n))
    expect(foreign).toEqual([0n, 0n])
  })

  it('hands on no open file but the three', async () => {
    const { stdout } = await run(shell('ls /proc/self/fd'))
    // `ls` itself opens the folder as 3. What this process was started with open only the thread can close.
    const inherited = kind === 'posix-spawn-thread' ? [] : fdsKeptOverExec()
    expect(stdout.trim().split('\n').sort()).toEqual(['0', '1', '2', '3', ...inherited].sort())
  })

  it('has /dev/null on stdin', async () => {
    expect((await run(shell('readlink /proc/self/fd/0; cat'))).stdout).toBe('/dev/null\n')
  })

  it('never has a socket on stdin, and feeds what it is given', async () => {
    const { stdout } = await run(shell('readlink /proc/self/fd/0; cat', { stdin: Buffer.from('fed\n') }))
    expect(stdout).not.toContain('socket')
    expect(stdout).toMatch(/\nfed\n$/)
  })

  it.each([0, 1, 4096, 4097, 65_536, 3_000_000])('feeds %i bytes to stdin', async (bytes) => {
    const { stdout } = await run(shell('wc -c', { stdin: Buffer.alloc(bytes, 'x') }))
    expect(Number(stdout)).toBe(bytes)
  })

  it('keeps stdin open for what comes later, and reads the reply beside the output', async () => {
    const child = await launcher.spawn(shell('echo up; cat >&3; echo done; ls /proc/self/fd', openEnds))
    const reply = text(child.reply ?? absent('reply'))
    const stdout = firstLine(child)
    expect(await stdout.line).toBe('up\n')
    for (const piece of ['one ', 'x'.repeat(200_000), ' end']) child.stdin?.write(piece)
    child.stdin?.end()
    expect(await child.exited).toEqual({ code: 0, signal: null })
    expect(await reply).toBe(`one ${'x'.repeat(200_000)} end`)
    const [done, ...fds] = (await stdout.rest).trim().split('\n')
    const inherited = kind === 'posix-spawn-thread' ? [] : fdsKeptOverExec()
    expect([done, fds.sort()]).toEqual(['done', [...new Set(['0', '1', '2', '3', '4', ...inherited])].sort()])
  })

  it('does not mind a child that ends before anybody writes to it', async () => {
    const child = await launcher.spawn(shell('exit 5', openEnds))
    child.reply?.resume()
    expect((await child.exited).code).toBe(5)
    child.stdin?.end(Buffer.alloc(1_000_000))
    await waitFor('stdin to be given up', () => child.stdin?.destroyed === true)
  })

  it('lets nobody else hold an open stdin', async () => {
    const [first, second] = await Promise.all([
      launcher.spawn(shell('cat; echo ended', openEnds)),
      launcher.spawn(shell('cat', openEnds)),
    ])
    const stdout = text(first.stdout)
    first.stdin?.end('last words ')
    expect(await stdout).toBe('last words ended\n')
    expect(isRunning(second.identity.pid)).toBe(true)
    second.stdin?.end()
    expect((await second.exited).code).toBe(0)
  })

  it('does not mind a child that leaves its stdin unread', async () => {
    const { exit } = await run(shell('exit 4', { stdin: Buffer.alloc(1_000_000) }))
    expect(exit.code).toBe(4)
  })

  it('does not let bash source ~/.bashrc', async () => {
    const marker = join(folder, 'bashrc-was-read')
    writeFileSync(join(folder, '.bashrc'), `touch ${marker}\n`)
    for (const stdin of [undefined, Buffer.from('x')]) {
      const request = { file: '/bin/bash', args: ['-c', 'ls -a "$HOME"'], env: { PATH, HOME: folder } }
      const { stdout } = await run(stdin === undefined ? request : { ...request, stdin })
      expect(stdout).toContain('.bashrc\n')
      expect(stdout).not.toContain('bashrc-was-read')
    }
  })

  it('passes every byte on', async () => {
    const child = await launcher.spawn(shell(String.raw`printf '\000\377\200a\303'`))
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.resume()
    await new Promise((resolve) => child.stdout.once('close', resolve))
    expect(Buffer.concat(chunks).toString('hex')).toBe('00ff8061c3')
    expect((await child.exited).code).toBe(0)
  })

  it('passes 50 MB on with a reader that pauses', async () => {
    const child = await launcher.spawn(shell('head -c 50000000 /dev/zero'))
    child.stderr.resume()
    let bytes = 0
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      child.stdout.pause()
      setImmediate(() => child.stdout.resume())
    })
    await new Promise((resolve) => child.stdout.once('end', resolve))
    expect(bytes).toBe(50_000_000)
    expect((await child.exited).code).toBe(0)
  })

  it('does not mind a child that closes its outputs early', async () => {
    const child = await launcher.spawn(shell('exec 1>&- 2>&-; exec sleep 1000'))
    expect(await Promise.all([text(child.stdout), text(child.stderr)])).toEqual(['', ''])
    expect(isRunning(child.identity.pid)).toBe(true)
    process.kill(child.identity.pid, 'SIGKILL')
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' })
  })

  it('tells the end of a child whose pipes a background process holds', async () => {
    const child = await launcher.spawn(shell('sleep 1000 & echo $!'))
    child.stderr.resume()
    const output = new Promise<string>((resolve) => {
      child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()))
    })
    expect(await child.exited).toEqual({ code: 0, signal: null })
    const background = Number(await output)
    expect(isRunning(background)).toBe(true)
    expect(child.stdout.readableEnded).toBe(false)
    process.kill(background, 'SIGKILL')
    await new Promise((resolve) => child.stdout.once('close', resolve))
  })

  const notFolder = '/etc/passwd'
  it.each<[string, string, Partial<SpawnRequest>]>([
    ['a program that does not exist', 'ENOENT', { file: '/no/such/program' }],
    ['a file that is no program', 'EACCES', { file: notFolder }],
    ['a program below a file', 'ENOTDIR', { file: `${notFolder}/program` }],
    ['a program without its path', 'EINVAL', { file: 'sh' }],
    ['a working directory that does not exist', 'ENOENT', { cwd: '/no/such/folder' }],
    ['a working directory that is a file', 'ENOTDIR', { cwd: notFolder }],
    ['a relative working directory', 'EINVAL', { cwd: 'tmp' }],
    ['an argument that is too long', 'E2BIG', { args: ['-c', ':', 'x'.repeat(200_000)] }],
    ['an argument with NUL', 'EINVAL', { args: ['a\0b'] }],
    ['a program with NUL', 'EINVAL', { file: '/bin/sh\0' }],
    ['a working directory with NUL', 'EINVAL', { cwd: '/tmp\0' }],
    ['a variable with NUL', 'EINVAL', { env: { A: 'x\0y' } }],
    ['a variable name with =', 'EINVAL', { env: { 'A=B': 'x' } }],
    ['a variable without a name', 'EINVAL', { env: { '': 'x' } }],
    ['too much for stdin', 'E2BIG', { stdin: new Uint8Array(MAX_STDIN_BYTES + 1) }],
  ])('refuses %s with %s', async (_, errno, change) => {
    const error = await failure(launcher, shell(':', change))
    expect(error.errno).toBe(errno)
    expect(error.message.includes('working directory')).toBe(change.cwd !== undefined)
  })

  it('leaks no file over hundreds of children', async () => {
    const count = rounds({ daily: 8, full: 100 })
    await run(shell(':'))
    const before = openFds()
    const unread = Buffer.alloc(100_000)
    for (let round = 0; round < count; round++) {
      await Promise.all([
        run(shell(':')),
        run(shell('cat', { stdin: Buffer.from('x') })),
        run(shell(':', { stdin: unread })),
        launcher.spawn(shell('cat >&3', openEnds)).then((child) => {
          child.stdin?.end('x')
          return Promise.all([finish(child), text(child.reply ?? absent('reply'))])
        }),
        failure(launcher, shell(':', { file: '/no/such/program', ...openEnds })),
        failure(launcher, shell(':', { file: '/no/such/program' })),
        failure(launcher, shell('cat', { cwd: '/no/such/folder', stdin: unread })),
      ])
    }
    // Other threads of the test run open and close files too; a leak of one kind alone would make one each round.
    expect(await waitFor('files to be closed', () => openFds() < before + count / 2)).toBe(true)
  }, 240_000)

  it('runs many at once and mixes nothing up', async () => {
    const count = rounds({ daily: 20, full: 200 })
    const outcomes = await Promise.all(
      Array.from({ length: count }, (_, index) => run(shell(`echo ${index}; exit ${index}`))),
    )
    expect(outcomes.map(({ stdout, exit }) => [stdout, exit.code])).toEqual(
      outcomes.map((_, index) => [`${index}\n`, index]),
    )
  }, 240_000)

  it('is stopped as often as one likes, and starts nothing afterwards', async () => {
    const { launcher: other } = await createLauncher(kind)
    await Promise.all([other.stop(), other.stop()])
    await other.stop()
    expect((await failure(other, shell(':'))).errno).toBe('ECANCELED')
  })
})
