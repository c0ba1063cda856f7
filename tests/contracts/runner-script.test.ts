import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { createRunners, type Runners } from '../../src/runners/index.ts'
import { createLauncher, type LauncherKind } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import type { Runner } from '../../src/runners/runner.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { tier } from '../helpers/tiers.ts'
import { describeProcessRunner, type RunParts } from './runner-suite.ts'

/** `runner.test.ts` tries both each day. */
const kinds: LauncherKind[] = tier === 'full' ? ['posix-spawn-thread', 'child-process'] : ['posix-spawn-thread']
const MAX_RESULT_BYTES = 1000

describe.each(kinds)('scripts on launcher %s', (kind) => {
  let launcher: Launcher
  let runners: Runners
  let runner: Runner
  let pack: TemporaryFolder
  let count = 0

  beforeAll(async () => {
    ;({ launcher } = await createLauncher(kind))
    pack = makeFolder()
    mkdirSync(join(pack.path, 'actions'))
    runners = await createRunners({
      launcher,
      maxResultBytes: MAX_RESULT_BYTES,
      systemUser: 'svc-no-such-account',
      env: { ...process.env, SVC_AUTH__SECRET: 'hidden' },
    })
    const found = runners.list.find(({ definition }) => definition.name === 'local-shell-script')
    if (found === undefined) throw new Error('local-shell-script is missing in the list')
    runner = found
  })
  afterAll(async () => {
    await runners.stop()
    await launcher.stop()
    pack.remove()
  })

  function script(text: string, runnerParameters: Record<string, unknown> = {}): RunParts {
    count += 1
    const entryPoint = join(pack.path, 'actions', `script-${count}.sh`)
    writeFileSync(entryPoint, text)
    return { entryPoint, packFolder: pack.path, runnerParameters }
  }

  describeProcessRunner({
    name: 'local-shell-script',
    isVariant: true,
    runner: () => runner,
    shell: (text, more) => script(`#!/bin/sh\n${text}\n`, more),
    read: ({ stdout, stderr, return_code: code, error }) => ({ stdout, stderr, code, error }),
    maxResultBytes: MAX_RESULT_BYTES,
    startFailures: [
      ['no such folder', () => script('#!/bin/sh\n', { cwd: '/no/such/folder' }), /"\/no\/such\/folder"/],
      ['no entry point', () => ({ packFolder: pack.path, runnerParameters: {} }), /entry_point/],
      [
        'no such script',
        () => ({ ...script(''), entryPoint: join(pack.path, 'actions/gone.sh') }),
        /"actions\/gone\.sh".*does not exist/,
      ],
      [
        'no such interpreter',
        () => script('#!/no/such/program -x\n'),
        /"actions\/script-\d+\.sh".*"\/no\/such\/program"/,
      ],
      [
        'too large',
        () => ({ ...script('#!/bin/sh\n'), actionParameters: { long: 'x'.repeat(300_000) } }),
        /"actions\/script-\d+\.sh".*too large/,
      ],
    ],
  })
})
