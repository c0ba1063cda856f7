/** What becomes of processes that outlive the command of an action, and of what they write. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRunners, type Runners } from '../../src/runners/index.ts'
import { createLauncher, type LauncherKind } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import type { RunContext, Runner, RunResult } from '../../src/runners/runner.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { isRunning, markedProcesses } from '../helpers/marked-processes.ts'
import { recordRun } from '../helpers/run-context.ts'
import { variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

/** Children of this process, those that have ended and nobody has waited for included. */
function countChildren(): number {
  const texts = readdirSync('/proc/self/task').map((thread) => {
    try {
      return readFileSync(`/proc/self/task/${thread}/children`, 'utf8')
    } catch {
      return ''
    }
  })
  return texts.join(' ').split(' ').filter(Boolean).length
}

let childrenBefore = 0

const kinds: LauncherKind[] = ['posix-spawn-thread', 'child-process']
const GRACE_SECONDS = 0.5
/** More than a pipe holds: a writer that nobody reads would wait for ever. */
const MUCH = 200_000

interface Background {
  pids?: number[]
  stopped?: number
  message: string
}

const backgroundOf = ({ result }: RunResult): Background | undefined => result['background'] as Background | undefined

describe.each(kinds)('background processes on launcher %s', (kind) => {
  let launcher: Launcher
  let runners: Runners
  let local: Runner
  let folder: TemporaryFolder

  const run = (runnerParameters: Record<string, unknown>, more?: Partial<RunContext>): Promise<RunResult> =>
    local.run(recordRun(runnerParameters, more).context)
  const contentOf = (name: string): string => {
    try {
      return readFileSync(join(folder.path, name), 'utf8')
    } catch {
      return ''
    }
  }

  beforeAll(async () => {
    childrenBefore = countChildren()
    folder = makeFolder()
    launcher = (await createLauncher(kind)).launcher
    runners = await createRunners({
      launcher,
      maxResultBytes: 100_000,
      systemUser: 'svc-no-such-account',
      background: { mode: 'wait', graceSeconds: GRACE_SECONDS },
    })
    const found = runners.list.find(({ definition }) => definition.name === 'local-shell-cmd')
    if (found === undefined) throw new Error('There is no local-shell-cmd')
    local = found
  })
  afterAll(async () => {
    for (const pid of markedProcesses(folder.path)) process.kill(pid, 'SIGKILL')
    // Whoever read their pipes ends with them; a launcher that has stopped would not take the exit status.
    await waitFor('the readers of their pipes to end', () => countChildren() === childrenBefore)
    await runners.stop()
    await launcher.stop()
    folder.remove()
  })

  test('every line of a process substitution is in result and output', async () => {
    const lines =
      'exec > >(while read -r l; do echo "$(date +%T) $l"; done) 2>&1; for i in $(seq 300); do echo $i; done'
    const { context, output } = recordRun({ cmd: `bash -c '${lines}; echo all done'` })
    const { status, result } = await local.run(context)
    expect(String(result['stdout']).split('\n')).toHaveLength(301)
    expect(output.stdout.split('\n')).toHaveLength(302)
    expect([status, result['background']]).toEqual(['succeeded', undefined])
  })

  test('the last line of a pipeline in the background is in result and file', async () => {
    const cmd = `{ echo first; sleep 0.3; echo last; } | tee ${folder.path}/log & echo main`
    const { status, result } = await run({ cmd })
    expect([status, String(result['stdout']).split('\n').sort()]).toEqual(['succeeded', ['first', 'last', 'main']])
    expect([contentOf('log'), result['background']]).toEqual(['first\nlast\n', undefined])
  })

  test('a process is waited for as long as it writes, beyond the grace period', async () => {
    const cmd = '(for i in 1 2 3 4 5; do sleep 0.2; echo $i >&2; done) & echo main'
    expect(await run({ cmd })).toMatchObject({
      status: 'succeeded',
      result: { stdout: 'main', stderr: '1\n2\n3\n4\n5' },
    })
  })

  test('the own program of the command is waited for, however long it pauses', async () => {
    const pause = 'sleep 1.5'
    const parts = [
      `{ echo first; ${pause}; echo last; } | tee ${folder.path}/paused &`,
      `exec 3> >(read -r line; ${pause}; echo "read $line"); echo it >&3;`,
      `(${pause}; echo shell) &`,
      `while read -r line; do ${pause}; echo $line; done <<< loop &`,
    ]
    const cmd = `bash -c '${parts.join(' ')} echo main'`
    const { status, result } = await run({ cmd, background_grace_seconds: 0.1 })
    const lines = ['first', 'last', 'loop', 'main', 'read it', 'shell']
    expect([status, String(result['stdout']).split('\n').sort()]).toEqual(['succeeded', lines])
    expect([contentOf('paused'), result['background']]).toEqual(['first\nlast\n', undefined])
  })

  test('a program with subshells of its own is no part of the command', async () => {
    const ended = await run({ cmd: `bash -c '(sleep 1000; :); :' & echo $!`, timeout: 0 })
    const pids = backgroundOf(ended)?.pids ?? []
    expect([ended.status, pids.length, pids.includes(Number(ended.result['stdout']))]).toEqual(['succeeded', 3, true])
    for (const pid of pids) process.kill(pid, 'SIGKILL')
  })

  test.each([0, 'soon', -1, 1e6])('a grace period of %j is refused', async (background_grace_seconds) => {
    expect(await run({ cmd: 'true', background_grace_seconds })).toMatchObject({
      status: 'failed',
      result: { error: 'The parameter "background_grace_seconds" must be a number of seconds from 0.1 to 86400.' },
    })
  })

  test.each(
    variants<[string, string]>(
      [
        ['a plain job', ''],
        ['nohup', 'nohup'],
        ['setsid', 'setsid'],
      ],
      1,
    ),
  )('a silent process ends the run, goes on, and can write for ever: %s', async (_, prefix) => {
    const name = `silent${prefix}`
    const script = `read go < ${folder.path}/go-${name}
      head -c ${MUCH} /dev/zero; head -c ${MUCH} /dev/zero >&2; sleep 0.1; echo more; echo done > ${folder.path}/${name}`
    const cmd = `mkfifo ${folder.path}/go-${name}; ${prefix} sh -c '${script}' & echo "$!"`
    const ended = await run({ cmd })
    expect([ended.status, ended.result['stdout']]).toEqual(['succeeded', expect.stringMatching(/^\d+$/)])
    const { pids = [], message } = backgroundOf(ended) ?? { message: '' }
    expect(pids.length).toBeGreaterThan(0)
    expect(message).toBe(`still running in background: pid ${pids.join(', ')}`)
    expect(pids.every(isRunning)).toBe(true)
    await run({ cmd: `echo > ${folder.path}/go-${name}` })
    await waitFor('the process to reach its end', () => contentOf(name) === 'done\n', 20_000)
  })

  test('the time limit ends the wait for a process that writes for ever, not the process', async () => {
    const cmd = `while :; do echo x; sleep 0.05; done & echo $!`
    const ended = await run({ cmd, timeout: 1 })
    const pid = Number(String(ended.result['stdout']).match(/\d+/)?.[0])
    expect([ended.status, backgroundOf(ended)?.pids, isRunning(pid)]).toEqual([
      'succeeded',
      expect.arrayContaining([pid]),
      true,
    ])
    process.kill(pid, 'SIGKILL')
  })

  test('a failed command with a background process is failed', async () => {
    const ended = await run({ cmd: 'sleep 1000 & echo $!; exit 3' })
    expect(ended).toMatchObject({ status: 'failed', result: { return_code: 3 } })
    process.kill(Number(ended.result['stdout']), 'SIGKILL')
  })

  test('a cancel while the run waits stops the background process', async () => {
    const abort = new AbortController()
    const { context, output } = recordRun(
      { cmd: 'while :; do echo x; sleep 0.05; done & echo $!' },
      { signal: abort.signal },
    )
    const running = local.run(context)
    await waitFor('output of the background process', () => output.stdout.split('x').length > 4)
    abort.abort('cancel')
    expect((await running).status).toBe('abandoned')
    expect(markedProcesses(context.executionId)).toEqual([])
  })

  test('detach: the run ends with its command, and the process goes on', async () => {
    const script = `until [ -e ${folder.path}/go-detach ]; do echo x; sleep 0.05; done; echo done > ${folder.path}/detach`
    const ended = await run({ cmd: `sh -c '${script}' & echo main`, background_jobs: 'detach', timeout: 0 })
    expect([ended.status, backgroundOf(ended)?.message]).toEqual([
      'succeeded',
      expect.stringContaining('still running in background: pid '),
    ])
    await run({ cmd: `touch ${folder.path}/go-detach` })
    await waitFor('the process to reach its end', () => contentOf('detach') === 'done\n', 20_000)
  })

  test('kill: the process is stopped, also one that holds no pipe', async () => {
    const { context } = recordRun({
      cmd: 'sleep 1000 & setsid sleep 1000 > /dev/null 2>&1 & echo main',
      background_jobs: 'kill',
    })
    const ended = await local.run(context)
    expect([ended.status, backgroundOf(ended)]).toEqual([
      'succeeded',
      { stopped: 2, message: 'stopped in background: 2 processes' },
    ])
    expect(markedProcesses(context.executionId)).toEqual([])
  })

  test('kill: a run without other processes says nothing', async () => {
    const { status, result } = await run({ cmd: 'echo main', background_jobs: 'kill' })
    expect([status, 'background' in result]).toEqual(['succeeded', false])
  })

  test('an unknown mode is refused', async () => {
    expect(await run({ cmd: 'true', background_jobs: 'yes' })).toMatchObject({
      status: 'failed',
      result: { error: 'The parameter "background_jobs" must be wait, detach or kill.' },
    })
  })

  test('no file stays open for processes that go on', async () => {
    if (kind === 'child-process') return
    const before = readdirSync('/proc/self/fd').length
    const pids: number[] = []
    for (let n = 0; n < 8; n++) {
      const { result } = await run({ cmd: 'sleep 1000 & echo $!', background_jobs: 'detach' })
      pids.push(Number(result['stdout']))
    }
    // One for each process that discards output, which the launcher watches; two pipes each would be 16 more.
    const openFiles = (): number => readdirSync('/proc/self/fd').length
    expect(await waitFor('files to be closed', () => openFiles() <= before + 8 + 2)).toBe(true)
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    expect(await waitFor('the rest to be closed', () => openFiles() <= before + 2)).toBe(true)
  })
})
