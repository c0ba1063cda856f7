import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { isRunning, markedProcesses } from '../../../tests/helpers/marked-processes.ts'
import { recordRun } from '../../../tests/helpers/run-context.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createLauncher } from './create-launcher.ts'
import { createDirectoryCheck } from './directory-check.ts'
import { createProcessTrees, MARKER_NAME, type ProcessTrees } from './kill-tree.ts'
import type { Launcher } from './launcher.ts'
import { readMarker, readProcess } from './process-table.ts'
import { runCommand } from './run-command.ts'

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
  const result = await runCommand(
    { launcher: forgetful, trees, directoryCheck: createDirectoryCheck(), maxResultBytes: 1000, warn: () => undefined },
    context,
    {
      spawn: {
        file: '/bin/sh',
        args: ['-c', 'sleep 1000 & exec sleep 1000'],
        env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', [MARKER_NAME]: context.executionId },
      },
      timeoutSeconds: 0,
    },
  )
  expect(result).toMatchObject({ status: 'abandoned', result: { return_code: -9 } })
  expect(markedProcesses(context.executionId)).toEqual([])
})

it('ends on a cancel what has left its session, its parents and its environment', async () => {
  const abort = new AbortController()
  const { context, output } = recordRun({}, { signal: abort.signal })
  const deps = {
    launcher,
    trees,
    directoryCheck: createDirectoryCheck(),
    maxResultBytes: 1000,
    warn: () => undefined,
  }
  const running = runCommand(deps, context, {
    spawn: {
      file: '/bin/sh',
      args: [
        '-c',
        `until grep -q 'realtime timeout *[0-9]' /proc/$$/limits; do :; done
        (setsid env -i /bin/sh -c 'echo $$; exec sleep 1000' &); exec sleep 1000`,
      ],
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', [MARKER_NAME]: context.executionId },
    },
    timeoutSeconds: 0,
  })
  await waitFor('the pid', () => output.stdout.endsWith('\n'))
  const pid = Number(output.stdout)
  await waitFor('the new program', () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n')
  expect(readMarker(pid, MARKER_NAME)).toBeUndefined()
  expect(readProcess(pid)?.ppid).not.toBe(process.pid)
  abort.abort('cancel')
  expect(await running).toMatchObject({ status: 'abandoned', result: { return_code: -15 } })
  expect(isRunning(pid)).toBe(false)
})
