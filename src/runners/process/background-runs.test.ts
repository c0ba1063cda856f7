import { closeSync, fstatSync, openSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createBackgroundRuns } from './background-runs.ts'
import { ChildOutput } from './child-output.ts'
import { createLauncher } from './create-launcher.ts'
import { type Child, type Launcher, SpawnError } from './launcher.ts'

let launcher: Launcher
beforeAll(async () => {
  launcher = (await createLauncher()).launcher
})
afterAll(() => launcher.stop())

interface Ended {
  child: Child
  pid: number
  outputs: { stdout: ChildOutput; stderr: ChildOutput }
}

/** A child that has ended and left a process behind that writes all the time. */
async function leaveBehind(): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin' }
  const args = ['-c', 'while :; do echo x; sleep 0.02; done & echo pid $!']
  const child = await launcher.spawn({ file: '/bin/sh', args, env })
  const output = (stream: Child['stdout']): ChildOutput =>
    new ChildOutput(stream, { maxBytes: 100, emit: () => undefined })
  const outputs = { stdout: output(child.stdout), stderr: output(child.stderr) }
  await child.exited
  await outputs.stdout.drain()
  await outputs.stderr.drain()
  return { child, pid: Number(/pid (\d+)/.exec(outputs.stdout.text)?.[1]), outputs }
}

test('refuses a run beyond the limit, and takes the next when a process has ended', async () => {
  const runs = createBackgroundRuns({ launcher, warn: () => undefined, maxRuns: 1 })
  const [first, second] = [await leaveBehind(), await leaveBehind()]
  expect(await runs.take(first.child, first.outputs)).toBe(true)
  expect(await runs.take(second.child, second.outputs)).toBe(false)
  process.kill(first.pid, 'SIGKILL')
  await waitFor('room', () => runs.count === 0)
  expect(await runs.take(second.child, second.outputs)).toBe(true)
  process.kill(second.pid, 'SIGKILL')
  await waitFor('the end', () => runs.count === 0)
})

test('reads the pipes itself, and says so, when no process can be started', async () => {
  const said: string[] = []
  const runs = createBackgroundRuns({
    launcher: { ...launcher, discard: () => Promise.reject(new SpawnError('EAGAIN', 'no more processes')) },
    warn: (message, fields) => said.push(`${message} ${String(fields['error'])}`),
  })
  const { child, pid, outputs } = await leaveBehind()
  expect(await runs.take(child, outputs)).toBe(true)
  expect([said, child.stdout.destroyed]).toEqual([[expect.stringContaining('no more processes')], false])
  process.kill(pid, 'SIGKILL')
  await waitFor('the end', () => runs.count === 0)
})

test('hands over the pipes of the run, though they end and their numbers go to other files', async () => {
  const { child, pid, outputs } = await leaveBehind()
  const { stdout, stderr } = child.descriptors ?? { stdout: -1, stderr: -1 }
  const pipes = [stdout, stderr].map((fd) => fstatSync(fd).ino)
  let given: number[] = []
  const discard: Launcher['discard'] = async (fds) => {
    process.kill(pid, 'SIGKILL')
    await Promise.all([outputs.stdout.ended, outputs.stderr.ended])
    await waitFor('the streams to close their descriptors', () => child.stdout.closed && child.stderr.closed)
    const others = [openSync('/dev/null', 'r'), openSync('/dev/null', 'r')]
    given = fds.map((fd) => fstatSync(fd).ino)
    for (const fd of others) closeSync(fd)
    return { ended: Promise.resolve() }
  }
  const runs = createBackgroundRuns({ launcher: { ...launcher, discard }, warn: () => undefined })
  expect(await runs.take(child, outputs)).toBe(true)
  expect(given).toEqual(pipes)
})
