import { afterAll, beforeAll, expect, it } from 'vitest'
import { markedProcesses } from '../../../tests/helpers/marked-processes.ts'
import { recordRun } from '../../../tests/helpers/run-context.ts'
import { createLauncher } from './create-launcher.ts'
import { createDirectoryCheck } from './directory-check.ts'
import { createProcessTrees, MARKER_NAME, type ProcessTrees } from './kill-tree.ts'
import type { Launcher } from './launcher.ts'
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
