import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { isRunning, markedProcesses } from '../../../tests/helpers/marked-processes.ts'
import { recordRun } from '../../../tests/helpers/run-context.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { RunResult } from '../runner.ts'
import { createLauncher } from './create-launcher.ts'
import { createBackgroundRuns } from './background-runs.ts'
import { createDirectoryCheck } from './directory-check.ts'
import { createProcessTrees, MARKER_NAME, type ProcessTrees } from './kill-tree.ts'
import type { Launcher } from './launcher.ts'
import { readMarker, readProcess } from './process-table.ts'
import { type Command, type CommandDeps, runCommand } from './run-command.ts'

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

function depsOf(more: Partial<CommandDeps> = {}): CommandDeps {
  const directoryCheck = createDirectoryCheck()
  const background = createBackgroundRuns({ launcher, warn: () => undefined })
  return { launcher, trees, background, directoryCheck, maxResultBytes: 1000, warn: () => undefined, ...more }
}

/** Without a limit of time. */
function commandOf(executionId: string, cmd: string): Command {
  const env = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', [MARKER_NAME]: executionId }
  return { spawn: { file: '/bin/sh', args: ['-c', cmd], env }, timeoutSeconds: 0 }
}

it('leaves nothing behind when its launcher cannot tell any more how it ends', async () => {
  const forgetful: Launcher = {
    name: 'forgetful',
    spawn: async (request) => ({
      ...(await launcher.spawn(request)),
      exited: Promise.resolve({ code: null, signal: null }),
    }),
    stop: () => Promise.resolve(),
  }
  const { context } = recordRun({})
  const command = commandOf(context.executionId, 'sleep 1000 & exec sleep 1000')
  const result = await runCommand(depsOf({ launcher: forgetful }), context, command)
  expect(result).toMatchObject({ status: 'abandoned', result: { return_code: -9 } })
  expect(markedProcesses(context.executionId)).toEqual([])
})

it('ends on a cancel what has left its session, its parents and its environment', async () => {
  const abort = new AbortController()
  const { context, output } = recordRun({}, { signal: abort.signal })
  const script = `until grep -q 'realtime timeout *[0-9]' /proc/$$/limits; do :; done
    (setsid env -i /bin/sh -c 'echo $$; exec sleep 1000' &); exec sleep 1000`
  const running = runCommand(depsOf(), context, commandOf(context.executionId, script))
  await waitFor('the pid', () => output.stdout.endsWith('\n'))
  const pid = Number(output.stdout)
  await waitFor('the new program', () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n')
  expect(readMarker(pid, MARKER_NAME)).toBeUndefined()
  expect(readProcess(pid)?.ppid).not.toBe(process.pid)
  abort.abort('cancel')
  expect(await running).toMatchObject({ status: 'abandoned', result: { return_code: -15 } })
  expect(isRunning(pid)).toBe(false)
})

it('starts nothing in a directory whose file system does not answer', async () => {
  const { context, started } = recordRun({})
  const { spawn } = commandOf(context.executionId, 'true')
  const result = await runCommand(depsOf({ directoryCheck: () => Promise.resolve(false) }), context, {
    spawn: { ...spawn, cwd: '/silent' },
    timeoutSeconds: 0,
  })
  expect(result).toMatchObject({ status: 'failed', result: { error: expect.stringContaining('"/silent"') } })
  expect(started).toEqual([])
})

describe('a script that somebody writes', () => {
  const folder = makeFolder()
  const path = join(folder.path, 'script')
  writeFileSync(path, '#!/bin/sh\necho written\n')
  chmodSync(path, 0o755)
  afterAll(() => folder.remove())

  /** @param attempted before each attempt to start it */
  async function runWhileWritten(attempted: (attempt: number, writing: number) => void): Promise<RunResult> {
    const writing = openSync(path, 'r+')
    let attempts = 0
    const counting: Launcher = {
      name: 'counting',
      spawn(request) {
        attempts += 1
        attempted(attempts, writing)
        return launcher.spawn(request)
      },
      stop: () => Promise.resolve(),
    }
    const { context } = recordRun({})
    const { spawn } = commandOf(context.executionId, '')
    const command = { spawn: { ...spawn, file: path, args: [] }, timeoutSeconds: 0 }
    return runCommand(depsOf({ launcher: counting }), context, command)
  }

  it('is started once nobody does any more', async () => {
    const result = await runWhileWritten((attempt, writing) => attempt === 3 && closeSync(writing))
    expect(result).toMatchObject({ status: 'succeeded', result: { stdout: 'written' } })
  })

  it('is not waited for much longer', async () => {
    let file = 0
    const result = await runWhileWritten((_, writing) => (file = writing))
    closeSync(file)
    expect([result.status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('ETXTBSY')])
  })
})
