import { execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import koffi from 'koffi'
import { afterEach, describe, expect, it } from 'vitest'
import { isRunning } from '../../../tests/helpers/marked-processes.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Launcher, SpawnRequest } from './launcher.ts'
import { createPosixSpawnLauncher } from './posix-spawn.ts'

const fixture = (name: string): URL => new URL(`../../../tests/fixtures/${name}`, import.meta.url)
const PATH = process.env['PATH'] ?? '/usr/bin:/bin'
const shell = (script: string): SpawnRequest => ({ file: '/bin/sh', args: ['-c', script], env: { PATH } })
const runFile = promisify(execFile)
const waitpid = koffi.load(null).func('int waitpid(int pid, void *status, int options)')

/** The pids that open pidfds of this process stand for; -1 for one that was reaped. */
function watchedPids(): number[] {
  return readdirSync('/proc/self/fdinfo').flatMap((fd) => {
    try {
      const pid = /^Pid:\s*(-?\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1]
      return pid === undefined ? [] : [Number(pid)]
    } catch {
      // Closed between the two looks.
      return []
    }
  })
}

let launcher: Launcher | undefined
afterEach(async () => {
  await launcher?.stop()
  launcher = undefined
})

describe('a thread that dies', () => {
  it('rejects what it had not started, and the next one tells the ends of its children', async () => {
    const dying = await createPosixSpawnLauncher({ threadUrl: fixture('dying-launcher-thread.ts') })
    launcher = dying
    await (
      await dying.spawn(shell(':'))
    ).exited
    const running = await Promise.all([7, 8, 9].map((code) => dying.spawn(shell(`read -r x; exit ${code}`))))
    const waiting = await dying.spawn(shell('exec sleep 1000'))

    const outcomes = await Promise.allSettled([dying.spawn(shell('die-now')), dying.spawn(shell('echo same turn'))])
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'SpawnError', errno: 'ECANCELED' } })
    }
    expect(isRunning(waiting.identity.pid)).toBe(true)

    const child = await dying.spawn(shell('echo again'))
    expect(await text(child.stdout)).toBe('again\n')
    expect(await child.exited).toEqual({ code: 0, signal: null })
    // Ended before or after the new thread took over, each end is told.
    expect(await Promise.all(running.map((one) => one.exited))).toEqual(
      [7, 8, 9].map((code) => ({ code, signal: null })),
    )
    // The children of the thread before last are not forgotten either.
    await expect(dying.spawn(shell('die-now'))).rejects.toMatchObject({ errno: 'ECANCELED' })
    await (
      await dying.spawn(shell(':'))
    ).exited
    process.kill(waiting.identity.pid, 'SIGTERM')
    expect(await waiting.exited).toEqual({ code: null, signal: 'SIGTERM' })
    for (const one of [...running, waiting, child]) {
      one.stdout.destroy()
      one.stderr.destroy()
    }
    const pids = [...running, waiting, child].map(({ identity }) => identity.pid)
    await waitFor(
      'the pidfds of both threads to be closed',
      () => !watchedPids().some((pid) => pid === -1 || pids.includes(pid)),
    )
  })

  it('is reported when it cannot start', async () => {
    const failed = createPosixSpawnLauncher({ threadUrl: fixture('no-such-thread.ts') })
    await expect(failed).rejects.toThrow(/no-such-thread/)
  })
})

describe('stopping', () => {
  it('tells nothing about the end of a child that outlives the launcher', async () => {
    launcher = await createPosixSpawnLauncher()
    const child = await launcher.spawn(shell('exec sleep 1000'))
    await launcher.stop()
    expect(await child.exited).toEqual({ code: null, signal: null })
    expect(isRunning(child.identity.pid)).toBe(true)
    process.kill(child.identity.pid, 'SIGKILL')
    child.stdout.destroy()
    child.stderr.destroy()
    await waitFor('its end', () => !isRunning(child.identity.pid))
    // Nobody else does: its launcher is gone.
    expect(waitpid(child.identity.pid, null, 0)).toBe(child.identity.pid)
  })

  it('rejects what is under way', async () => {
    launcher = await createPosixSpawnLauncher()
    const pending = launcher.spawn(shell(':'))
    const settled = pending.then(
      (child) => child.exited,
      (error: unknown) => error,
    )
    await launcher.stop()
    expect(await settled).toBeDefined()
  })
})

/** Runs a script in a Node of its own. */
function node(script: string, ...args: string[]): Promise<{ stdout: string }> {
  const module = fileURLToPath(new URL('./posix-spawn.ts', import.meta.url))
  const source = `import { createPosixSpawnLauncher } from ${JSON.stringify(module)}; const launcher = await createPosixSpawnLauncher(); ${script}`
  return runFile(process.execPath, ['--input-type=module', '-e', source, ...args], { timeout: 60_000 })
}

describe('a process that never stops its launcher', () => {
  it('ends when nothing else is left to do', async () => {
    expect((await node('console.log("done")')).stdout).toBe('done\n')
  })

  it('ends at process.exit while a child runs', async () => {
    const script =
      'const c = await launcher.spawn({ file: "/bin/sleep", args: ["1000"], env: {} }); console.log(c.identity.pid); process.exit(0)'
    const pid = Number((await node(script)).stdout)
    expect(isRunning(pid)).toBe(true)
    process.kill(pid, 'SIGKILL')
  })

  it('ends when an error is thrown', async () => {
    await expect(node('throw new Error("thrown")')).rejects.toMatchObject({ code: 1 })
  })

  it('does not end before its child', async () => {
    const script =
      'const c = await launcher.spawn({ file: "/bin/sleep", args: ["0.1"], env: {} }); c.stdout.destroy(); c.stderr.destroy(); void c.exited.then((e) => console.log(JSON.stringify(e)))'
    expect(JSON.parse((await node(script)).stdout)).toEqual({ code: 0, signal: null })
  })
})

it('marks a child before it can start another', async () => {
  const script = `
    const outputs = []
    for (let n = 0; n < 50; n++) {
      const mark = 2n ** 61n + BigInt(n)
      const command = '(exec grep "realtime timeout" /proc/self/limits) & wait'
      const child = await launcher.spawn({ file: '/bin/sh', args: ['-c', command], env: { PATH: process.argv[1] }, mark })
      let output = ''
      for await (const chunk of child.stdout) output += chunk
      child.stderr.destroy()
      outputs.push(output.includes(' ' + mark + ' '))
    }
    const own = (await import('node:fs')).readFileSync('/proc/self/limits', 'utf8')
    console.log(JSON.stringify({ unmarked: outputs.filter((isMarked) => !isMarked).length, own }))`
  const { unmarked, own }: { unmarked: number; own: string } = JSON.parse((await node(script, PATH)).stdout)
  expect(unmarked).toBe(0)
  expect(own).toBe(readFileSync('/proc/self/limits', 'utf8'))
})

it('refuses with EMFILE where files run out, and leaks none', async () => {
  const command = 'ulimit -n 96; exec "$0" "$1"'
  const child = spawn('/bin/sh', ['-c', command, process.execPath, fileURLToPath(fixture('out-of-files.ts'))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { outcomes, leaked }: { outcomes: string[]; leaked: number } = JSON.parse(await text(child.stdout))
  expect(leaked).toBe(0)
  expect(outcomes.slice(0, 2)).toEqual(['EMFILE', 'EMFILE'])
  expect(outcomes.slice(-2)).toEqual(['0 10', '0 10000'])
  for (const outcome of outcomes) expect(['EMFILE', '0 10', '0 10000']).toContain(outcome)
})
