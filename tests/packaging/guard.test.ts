/** The entry guard of src/cli.ts: on a Node below the floor the pinned one takes over, or one line says why not. */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, ROOT, runToEnd } from './copy.ts'
import { tier } from '../helpers/tiers.ts'

const PINNED = `node-${process.platform}-${process.arch}`
const OLD = '20.1.0'
/** For so long after a signal the same one is a repetition (src/cli.ts). */
const SAME_SIGNAL_MS = 500

/** What the guard starts in these tests: tells who runs it, repeats signals, and ends as its first argument says. */
const PROGRAM = `
console.log(JSON.stringify({ node: process.execPath, flags: process.execArgv, args: process.argv.slice(2), pid: process.pid }))
const [how, value] = process.argv.slice(2)
if (how === 'exit') process.exitCode = Number(value)
if (how === 'die') process.kill(process.pid, value)
if (how === 'signals') {
  for (const name of value.split(',')) process.on(name, () => console.log(name))
  process.stdin.on('end', () => process.exit(5)).resume()
  console.log('ready')
}
if (how === 'last') {
  process.on('SIGTERM', () => process.exit(console.log('SIGTERM')))
  setInterval(() => undefined, 1000)
  console.log('ready')
}
`

interface Seen {
  node: string
  flags: string[]
  args: string[]
  pid: number
}

/** A way to run the guard on a Node below the floor. */
interface OldNode {
  name: string
  file: string
  args: string[]
  env: Record<string, string>
}

const FAKED: OldNode = {
  name: `a Node that calls itself ${OLD}`,
  file: process.execPath,
  args: ['--require', join(ROOT, 'tests/packaging/fake-node-version.cjs')],
  env: { FAKE_NODE_VERSION: OLD },
}

function findOldNodes(): OldNode[] {
  const candidates = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'node'))
    .filter((file) => existsSync(file))
  const files = [...new Set(candidates.map((file) => realpathSync(file)))]
  return files.flatMap((file) => {
    const version = spawnSync(file, ['--version'], { encoding: 'utf8' }).stdout.trim()
    const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(version) ?? []
    const isOld = Number(major) < 22 || (Number(major) === 22 && Number(minor) < 14)
    return isOld ? [{ name: `this machine's Node ${version}`, file, args: [], env: {} }] : []
  })
}

let folder = ''
let cli = ''

beforeAll(async () => {
  const built = await runToEnd(process.execPath, [join(ROOT, 'scripts/build.mjs')])
  if (built.code !== 0) throw new Error(built.stderr)
})

beforeEach(() => {
  folder = makeFolder()
  mkdirSync(join(folder, 'dist'))
  mkdirSync(join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  cli = join(folder, 'dist/cli.js')
  cpSync(join(ROOT, 'dist/cli.js'), cli)
  writeFileSync(join(folder, 'dist/main.js'), PROGRAM)
  symlinkSync(join(ROOT, 'node_modules', PINNED), join(folder, 'node_modules', PINNED))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function pinnedNode(): string {
  return realpathSync(join(ROOT, 'node_modules', PINNED, 'bin/node'))
}

/** Replaces the pinned package by one that says it is `version` and whose `bin/node` is this text. */
function replacePinned(version: string, text: string): void {
  const place = join(folder, 'node_modules', PINNED)
  rmSync(place)
  mkdirSync(join(place, 'bin'), { recursive: true })
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: PINNED, version }))
  writeFileSync(join(place, 'bin/node'), text)
}

function runOn(old: OldNode, args: string[]): ReturnType<typeof runToEnd> {
  return runToEnd(old.file, [...old.args, cli, ...args], { env: { ...process.env, ...old.env } })
}

function readSeen(stdout: string): Seen {
  const seen: Seen = JSON.parse(stdout.split('\n')[0] ?? '')
  return { ...seen, node: realpathSync(seen.node) }
}

/** Starts the program that repeats signals; `lines` yields what it prints, starting after `ready`. */
async function startRepeating(old: OldNode, signals: string, how = 'signals') {
  const args = [...old.args, cli, how, signals]
  const child = spawn(old.file, args, { env: { ...process.env, ...old.env }, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async (): Promise<string | undefined> => {
    const { value, done } = await lines.next()
    return done === true ? undefined : value
  }
  while ((await next()) !== 'ready') expect(child.exitCode).toBeNull()
  return { child, next, ended }
}

describe.each([FAKED, ...(tier === 'full' ? findOldNodes() : [])])('on $name', (old) => {
  test('the pinned Node runs the program with the same arguments', async () => {
    const { code, stdout, stderr } = await runOn(old, ['exit', '0', '--flag', 'a b', ''])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(readSeen(stdout)).toMatchObject({ node: pinnedNode(), args: ['exit', '0', '--flag', 'a b', ''] })
  })

  test('the server, and it alone, gets the flags that keep it small, wherever its configuration file is named', async () => {
    for (const [args, isServer] of [
      [['serve'], true],
      [['--config-file', 'svc.conf', 'serve'], true],
      [['--debug', 'serve', '--api-port', '0'], true],
      [['run', 'core.local', 'serve'], false],
      [['--help'], false],
    ] as const) {
      const { flags } = readSeen((await runOn(old, [...args])).stdout)
      const names = flags.map((flag) => flag.split('=', 1)[0])
      for (const name of ['--max-semi-space-size', '--heap-growing-percent']) {
        expect({ args, name, isGiven: names.includes(name) }).toEqual({ args, name, isGiven: isServer })
      }
    }
  })

  test('the exit code is passed on', async () => {
    expect(await runOn(old, ['exit', '37'])).toMatchObject({ code: 37, signal: null })
  })

  test('an end by a signal is passed on', async () => {
    expect(await runOn(old, ['die', 'SIGKILL'])).toMatchObject({ code: null, signal: 'SIGKILL' })
    expect(await runOn(old, ['die', 'SIGTERM'])).toMatchObject({ code: null, signal: 'SIGTERM' })
  })

  test('each request to read or open files again reaches the program', async () => {
    const signals = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const
    const { child, next, ended } = await startRepeating(old, signals.join(','))
    for (const signal of [...signals, ...signals]) {
      child.kill(signal)
      expect(await next()).toBe(signal)
    }
    child.stdin.end()
    expect(await next()).toBeUndefined()
    expect(await ended).toEqual({ code: 5, signal: null })
  })

  test('a signal reaches the program as soon as that is ready, however slow the process is that started it', async () => {
    const slow = join(folder, 'slow.cjs')
    writeFileSync(
      slow,
      `const processes = require('node:child_process')
      const { spawn } = processes
      processes.spawn = (...given) => {
        const child = spawn(...given)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
        return child
      }`,
    )
    const { child, next, ended } = await startRepeating({ ...old, args: [...old.args, '--require', slow] }, 'SIGINT')
    child.kill('SIGINT')
    expect(await next()).toBe('SIGINT')
    child.stdin.end()
    expect(await ended).toEqual({ code: 5, signal: null })
  })

  test('signals and the end of stdin reach the program, a repetition of a key press does not', async () => {
    const signals = ['SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGTERM'] as const
    const { child, next, ended } = await startRepeating(old, signals.join(','))
    let sentAt = 0
    for (const signal of signals) {
      sentAt = performance.now()
      child.kill(signal)
      expect(await next()).toBe(signal)
    }
    child.kill('SIGTERM')
    child.stdin.end()
    const passedOn: { line: string; afterMs: number }[] = []
    for (let line = await next(); line !== undefined; line = await next()) {
      passedOn.push({ line, afterMs: performance.now() - sentAt })
    }
    // On a machine that stalls the second one may come too late to be a repetition.
    expect(passedOn.filter(({ line, afterMs }) => line !== 'SIGTERM' || afterMs <= SAME_SIGNAL_MS)).toEqual([])
    expect(await ended).toEqual({ code: 5, signal: null })
  })

  test('the program ends orderly when the process that started it is killed', async () => {
    const { child, next } = await startRepeating(old, 'SIGTERM', 'last')
    child.kill('SIGKILL')
    expect(await next()).toBe('SIGTERM')
    expect(await next()).toBeUndefined()
  })

  test('without the pinned package: one line and exit code 78', async () => {
    rmSync(join(folder, 'node_modules', PINNED))
    const { code, stdout, stderr } = await runOn(old, ['exit', '0'])
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' })
    expect(stderr).toMatch(/^svc: needs Node\.js 22\.14 or newer; this is [\d.]+, and [^\n]+\n$/)
    expect(stderr).toContain('npm ci')
  })

  test('a pinned package below the floor is as good as none', async () => {
    replacePinned('22.13.1', '#!/bin/sh\nexit 0\n')
    chmodSync(join(folder, 'node_modules', PINNED, 'bin/node'), 0o755)
    expect(await runOn(old, ['exit', '0'])).toMatchObject({ code: 78, stdout: '' })
  })

  test('a pinned Node that cannot be started: one line and exit code 78', async () => {
    replacePinned('24.21.0', 'not executable')
    const { code, stderr } = await runOn(old, ['exit', '0'])
    expect(code).toBe(78)
    expect(stderr).toMatch(/^svc: needs Node\.js 22\.14 or newer; [^\n]+ cannot be started here: [^\n]+\n$/)
  })

  test('the built program answers', async () => {
    const manifest: { version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const args = [...old.args, join(ROOT, 'dist/cli.js'), '--version']
    const { code, stdout, stderr } = await runToEnd(old.file, args, { env: { ...process.env, ...old.env } })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(manifest.version)
  })
})

test('a Node at or above the floor runs the program itself', async () => {
  for (const version of ['22.14.0', '24.0.0', '100.0.0']) {
    const result = await runOn({ ...FAKED, env: { FAKE_NODE_VERSION: version } }, ['exit', '3'])
    expect(result).toMatchObject({ code: 3, stderr: '' })
    expect(readSeen(result.stdout).node).toBe(realpathSync(process.execPath))
  }
})

test('the executable can be run by its name', async () => {
  const path = [join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  const result = await runToEnd(cli, ['exit', '4'], { env: { ...process.env, PATH: path } })
  expect(result).toMatchObject({ code: 4, stderr: '' })
})
