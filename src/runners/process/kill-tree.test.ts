import { spawn as spawnDirectly } from 'node:child_process'
import { randomInt } from 'node:crypto'
import fs, { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { isRunning, markedProcesses } from '../../../tests/helpers/marked-processes.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { newId } from '../../core/ids.ts'
import { createLauncher } from './create-launcher.ts'
import { createProcessTrees, MARKER_NAME, type ProcessTrees } from './kill-tree.ts'
import type { Child, Launcher } from './launcher.ts'
import { markOf, readMark, readMarker, readProcess } from './process-table.ts'

const PATH = process.env['PATH'] ?? '/usr/bin:/bin'
/** Told apart from the script that starts them by the NUL between arguments, and from other runs by their numbers. */
const seconds = randomInt(100_000, 1_000_000) * 10
const SLEEPS = [`sleep\u0000${seconds + 1}`, `sleep\u0000${seconds + 2}`] as const
let launcher: Launcher
let trees: ProcessTrees
beforeAll(async () => {
  const chosen = await createLauncher()
  launcher = chosen.launcher
  trees = createProcessTrees({ launcher })
})
afterAll(async () => {
  await trees.stop()
  await launcher.stop()
})

/** Starts a script that says something once it is up. */
async function start(script: string, marker = newId(), env: Record<string, string> = {}, mark?: bigint) {
  const child = await launcher.spawn({
    file: '/bin/sh',
    args: ['-c', script],
    env: { PATH, [MARKER_NAME]: marker, ...env },
    ...(mark === undefined ? {} : { mark }),
  })
  const output = await new Promise<string>((resolve) => {
    child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()))
  })
  return { child, marker, identity: child.identity, output }
}

/** Nobody takes the end of a child that outlives its launcher. */
async function letGo({ stdout, stderr, exited }: Child): Promise<void> {
  stdout.destroy()
  stderr.destroy()
  await exited
}

describe('kill', () => {
  it('ends a tree and counts it', async () => {
    const { child, marker, identity } = await start('sleep 1000 & sleep 1000 & echo up; wait')
    // A grace that no test would live to see.
    expect(await trees.kill({ marker, identity, graceMs: 600_000 })).toEqual({ killed: 3, survivors: [] })
    expect(await child.exited).toEqual({ code: null, signal: 'SIGTERM' })
    expect(markedProcesses(marker)).toEqual([])
    await letGo(child)
  })

  it('sends KILL at once without grace', async () => {
    const { child, marker, identity } = await start(`trap 'echo term' TERM; echo up; while :; do sleep 0.01; done`)
    await trees.kill({ marker, identity, graceMs: 0 })
    expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' })
    await letGo(child)
  })

  it('counts the grace from TERM, however long the tree was looked for', async () => {
    const { child, marker, identity } = await start(`trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done`)
    const graceMs = 1000
    const killed = trees.kill({ marker, identity, graceMs })
    for (const end = performance.now() + 2 * graceMs; performance.now() < end;) continue
    await killed
    expect(await child.exited).toEqual({ code: 3, signal: null })
    await letGo(child)
  })

  it('finds a child that has hidden its marker, by its parent and by its session', async () => {
    const script = `env -i /bin/sleep ${seconds + 1} & setsid env -i /bin/sleep ${seconds + 2} & echo up; wait`
    const { child, marker, identity } = await start(script)
    await waitFor('both', () => {
      const hidden = [...markedProcesses(SLEEPS[0]), ...markedProcesses(SLEEPS[1])]
      return hidden.filter((pid) => readMarker(pid, MARKER_NAME) === undefined).length === 2
    })
    expect(await trees.kill({ marker, identity, graceMs: 2000 })).toEqual({ killed: 3, survivors: [] })
    expect([...markedProcesses(SLEEPS[0]), ...markedProcesses(SLEEPS[1])]).toEqual([])
    await letGo(child)
  })

  it('leaves alone what this process has started otherwise while it started the run', async () => {
    const marker = newId()
    const mark = String(markOf(marker))
    // As if they had inherited the mark: a helper with a child, and a process that has escaped.
    const helper = spawnDirectly('prlimit', [`--rttime=${mark}:`, 'sh', '-c', 'echo up; sleep 1000; true'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    await new Promise((resolve) => helper.stdout.once('data', resolve))
    const script = `(setsid env -i /usr/bin/prlimit --rttime=${mark}: /bin/sleep ${seconds + 1} &); echo up; exec sleep 1000`
    const { child, identity } = await start(script, marker)
    const escaped = (): number[] => markedProcesses(SLEEPS[0]).filter((pid) => readMark(pid) === markOf(marker))
    await waitFor('the one that escapes', () => escaped().length === 1 && readProcess(escaped()[0] ?? 0)?.ppid === 1)
    try {
      const found = (await trees.find({ marker, identity })).map(({ pid }) => pid)
      expect(new Set(found)).toEqual(new Set([identity.pid, ...escaped()]))
      expect(await trees.kill({ marker, identity, graceMs: 2000 })).toEqual({ killed: 2, survivors: [] })
      expect([readMark(helper.pid ?? 0), isRunning(helper.pid ?? 0)]).toEqual([markOf(marker), true])
      expect(escaped()).toEqual([])
    } finally {
      process.kill(-(helper.pid ?? 0), 'SIGKILL')
      await new Promise((resolve) => helper.once('close', resolve))
      await letGo(child)
    }
  })

  it('finds nothing of a tree that has ended, quickly', async () => {
    const { child, marker, identity } = await start('echo up')
    await child.exited
    expect(await trees.kill({ marker, identity, graceMs: 2000 })).toEqual({ killed: 0, survivors: [] })
    await letGo(child)
  })

  it('does not touch a process that got the pid of one that ended', async () => {
    const { child, identity } = await start('echo up; exec sleep 1000')
    const stranger = { pid: identity.pid, startTime: String(Number(identity.startTime) - 1) }
    expect(await trees.kill({ marker: newId(), identity: stranger, graceMs: 0 })).toEqual({ killed: 0, survivors: [] })
    expect(isRunning(identity.pid)).toBe(true)
    process.kill(identity.pid, 'SIGKILL')
    await letGo(child)
  })

  it('spares others, those of other executions and those that merely mention the marker', async () => {
    const target = await start('echo up; exec sleep 1000')
    const others = await Promise.all([
      start('echo up; exec sleep 1000'),
      start('echo up; exec sleep 1000', `${target.marker}0`),
      start('echo up; exec sleep 1000', newId(), { OTHER: `${MARKER_NAME}=${target.marker}` }),
      start('echo up; exec sleep 1000', newId(), { [`X${MARKER_NAME}`]: target.marker }),
    ])
    const { marker, identity } = target
    expect(await trees.kill({ marker, identity, graceMs: 2000 })).toEqual({ killed: 1, survivors: [] })
    expect(others.map((other) => isRunning(other.identity.pid))).toEqual([true, true, true, true])
    await Promise.all(others.map((other) => trees.kill({ ...other, graceMs: 0 })))
    for (const { child } of [target, ...others]) await letGo(child)
  })

  it('ends 60 trees at once with no more reading than for a few', async () => {
    const started = await Promise.all(Array.from({ length: 60 }, () => start('sleep 1000 & echo up; wait')))
    const reports = await Promise.all(started.map((one) => trees.kill({ ...one, graceMs: 2000 })))
    expect(reports).toEqual(started.map(() => ({ killed: 2, survivors: [] })))
    for (const { child, marker } of started) {
      expect(markedProcesses(marker)).toEqual([])
      await letGo(child)
    }
  })

  it('keeps the event loop free: a thread looks at the processes and signals them', async () => {
    const script = 'i=0; while [ $i -lt 300 ]; do sleep 1000 & i=$((i + 1)); done; echo up; wait'
    const { child, marker, identity } = await start(script)
    const open = vi.spyOn(fs, 'openSync')
    const kill = vi.spyOn(process, 'kill')
    syncBuiltinESMExports()
    try {
      expect(await trees.kill({ marker, identity, graceMs: 2000 })).toEqual({ killed: 301, survivors: [] })
      expect(open.mock.calls.filter(([path]) => String(path).startsWith('/proc/'))).toEqual([])
      expect(kill).not.toHaveBeenCalled()
      // The spies see what this thread does.
      readProcess(process.pid)
      expect(open).toHaveBeenCalledWith(`/proc/${process.pid}/stat`, 'r')
    } finally {
      open.mockRestore()
      kill.mockRestore()
      syncBuiltinESMExports()
    }
    await letGo(child)
  })
})

describe('killOrphans', () => {
  it('ends what carries the marker, with its session and descendants, and nothing else', async () => {
    const first = await start('env -i /bin/sleep 1003 & setsid sleep 1000 & echo up; wait')
    const second = await start('(setsid sh -c "echo up; exec sleep 1000" &)')
    const stranger = await start('echo up; exec sleep 1000')
    await second.child.exited
    // While one program takes the place of another there is no environment to find it by.
    await waitFor('the program', () =>
      markedProcesses(second.marker).some((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('sleep')),
    )
    const hidden = await start('echo up; exec env -i sleep 1004')
    await waitFor('the marker to be gone', () => readMarker(hidden.identity.pid, MARKER_NAME) === undefined)
    const report = await trees.killOrphans([
      { marker: first.marker, identity: first.identity },
      { marker: second.marker, identity: second.identity },
      { marker: hidden.marker, identity: hidden.identity },
      // A pid that was used again.
      { marker: newId(), identity: { ...stranger.identity, startTime: first.identity.startTime.slice(0, -1) } },
      { marker: newId() },
    ])
    expect(report).toEqual({ killed: 5, survivors: [] })
    expect(isRunning(hidden.identity.pid)).toBe(false)
    expect([first, second].flatMap(({ marker }) => markedProcesses(marker))).toEqual([])
    expect(isRunning(stranger.identity.pid)).toBe(true)
    await trees.kill({ ...stranger, graceMs: 0 })
    for (const { child } of [first, second, hidden, stranger]) await letGo(child)
  })

  it('ends what was not recorded and has cleared its environment', async () => {
    const marker = newId()
    const { child, identity } = await start('echo up; exec env -i sleep 1000', marker, {}, markOf(marker))
    const stranger = await start('echo up; exec env -i sleep 1000', newId(), {}, markOf(newId()))
    const pids = [identity.pid, stranger.identity.pid]
    await waitFor('the markers to be gone', () => pids.every((pid) => readMarker(pid, MARKER_NAME) === undefined))
    expect(await trees.killOrphans([{ marker }])).toEqual({ killed: 1, survivors: [] })
    expect(await child.exited).toEqual({ code: null, signal: 'SIGTERM' })
    expect(isRunning(stranger.identity.pid)).toBe(true)
    await trees.kill({ ...stranger, graceMs: 0 })
    for (const one of [child, stranger.child]) await letGo(one)
  })

  it('does nothing for nothing', async () => {
    expect(await trees.killOrphans([])).toEqual({ killed: 0, survivors: [] })
  })

  it('does not end the server that sweeps, whatever marker it carries', async () => {
    const marker = newId()
    const module = new URL('./kill-tree.ts', import.meta.url)
    const launcherModule = new URL('./child-process.ts', import.meta.url)
    const source = `
      import { createProcessTrees } from ${JSON.stringify(module.href)}
      import { createChildProcessLauncher } from ${JSON.stringify(launcherModule.href)}
      const trees = createProcessTrees({ launcher: createChildProcessLauncher() })
      console.log(JSON.stringify(await trees.killOrphans([{ marker: ${JSON.stringify(marker)} }])))`
    const child = spawnDirectly(process.execPath, ['--input-type=module', '-e', source], {
      env: { PATH, [MARKER_NAME]: marker },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect([code, JSON.parse(output)]).toEqual([0, { killed: 0, survivors: [] }])
  })
})

describe('the process table', () => {
  it('knows a process whose name looks like fields', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-names-'))
    const program = join(folder, ') Z 1 1 (')
    copyFileSync('/bin/sleep', program)
    const { child, identity } = await start(`echo up; exec "${program}" 1000`)
    await waitFor('the new name', () => readFileSync(`/proc/${identity.pid}/comm`, 'utf8') === ') Z 1 1 (\n')
    const row = readProcess(identity.pid)
    expect(row).toEqual({
      pid: identity.pid,
      ppid: process.pid,
      pgid: identity.pid,
      sid: identity.pid,
      startTime: Number(identity.startTime),
      alive: true,
      isFork: false,
    })
    process.kill(identity.pid, 'SIGKILL')
    await child.exited
    expect(readProcess(identity.pid)).toBeUndefined()
    await letGo(child)
    rmSync(folder, { recursive: true })
  })

  it('tells marks apart, and from limits that somebody has set', async () => {
    const [marker, other] = [newId(), newId()]
    expect(markOf(marker)).not.toBe(markOf(other))
    expect(markOf('not an id')).toBeUndefined()
    const marked = await start('echo up; exec sleep 1000', marker, {}, markOf(marker))
    const limited = await start('echo up; exec sleep 1000', other, {}, 1_000_000n)
    expect(readFileSync(`/proc/${limited.identity.pid}/limits`, 'utf8')).toMatch(/timeout +1000000 /)
    expect(readMark(marked.identity.pid)).toBe(markOf(marker))
    expect(readMark(limited.identity.pid)).toBeUndefined()
    for (const { child, identity } of [marked, limited]) {
      process.kill(identity.pid, 'SIGKILL')
      await letGo(child)
    }
  })

  it('finds a marker behind a large environment', async () => {
    const env = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`A${index}`, 'x'.repeat(100_000)]))
    const { child, identity, marker } = await start('echo up; exec sleep 1000', newId(), env)
    // While one program takes the place of another there is no environment to read.
    await waitFor('the marker', () => readMarker(identity.pid, MARKER_NAME) === marker)
    expect(readMarker(identity.pid, 'ABSENT')).toBeUndefined()
    process.kill(identity.pid, 'SIGKILL')
    await letGo(child)
  })
})
