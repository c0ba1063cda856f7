/**
 * What every runner that starts processes owes (docs/architecture.md, section 11; contract 03, 3.8 to 3.10). A runner joins by
 * saying how it is made to run a piece of shell.
 */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { OutputType, RunContext, Runner, RunResult } from '../../src/runners/runner.ts'
import { markedProcesses } from '../helpers/marked-processes.ts'
import { recordRun } from '../helpers/run-context.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

/** What differs from `recordRun`'s context. */
export type RunParts = Partial<RunContext> & { runnerParameters: Record<string, unknown> }

export interface RunnerSubject {
  name: string
  /** Asked once everything has been set up. */
  runner(): Runner
  /**
   * A run in which `/bin/sh` carries out the text, and whose end is that of the shell.
   *
   * @param more runner parameters that all runners have
   */
  shell(text: string, more?: { timeout?: number; env?: Record<string, unknown> }): RunParts
  /** What the result holds of each; of several hosts, of the first. */
  read(result: Record<string, unknown>): { stdout: unknown; stderr: unknown; code: unknown; error: unknown }
  /** `actionrunner.max_result_bytes` of the runner; at least 1000. */
  maxResultBytes: number
  /** What keeps a run from starting → what its error says. */
  startFailures: readonly (readonly [what: string, parts: () => RunParts, error: RegExp])[]
  /** Of the executions it carried out, so that their processes are found; default: as everywhere on this machine. */
  readonly processes?: (executionId: string) => number[]
  /** Whether the daily run leaves what takes long to other runners. */
  readonly isVariant?: boolean
}

const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))

/** Processes that do not want to end. */
export const stubbornScripts = ['ignores-term.sh', 'leaves-session.sh', 'forks-twice.sh', 'forks-while-dying.sh']

/**
 * Runs with a time limit that is long enough for a command to get going: each one that was not is followed by a longer one.
 *
 * @param run whether the command had got going when its time was over
 */
export async function withTimeLimit(run: (seconds: number) => Promise<boolean>): Promise<void> {
  for (let seconds = 2; !(await run(seconds)); seconds *= 3) expect(seconds).toBeLessThan(100)
}

export function describeProcessRunner(subject: RunnerSubject): void {
  const slow = subject.isVariant === true ? fullOnly(it) : it
  const processes = subject.processes ?? ((id: string) => markedProcesses(id))

  function start(
    parts: RunParts,
    more: Partial<RunContext> = {},
  ): { id: string; output: Record<OutputType, string>; ended: Promise<RunResult>; started: unknown[] } {
    const { context, output, started } = recordRun(parts.runnerParameters, { ...parts, ...more })
    return { id: context.executionId, output, started, ended: subject.runner().run(context) }
  }

  // What waits for one run does not keep another from running.
  describe.concurrent(`${subject.name}: what every runner owes`, () => {
    it('succeeds with code 0 and hands over what was written', async () => {
      const { output, ended } = start(subject.shell('echo out; echo err >&2'))
      const { status, result } = await ended
      expect([status, subject.read(result)]).toMatchObject(['succeeded', { stdout: 'out', stderr: 'err', code: 0 }])
      expect(output).toEqual({ stdout: 'out\n', stderr: 'err\n', other: '' })
    })

    it('fails with another code', async () => {
      const { status, result } = await start(subject.shell('echo out; exit 3')).ended
      expect([status, subject.read(result)]).toMatchObject(['failed', { stdout: 'out', code: 3 }])
    })

    it.each(subject.startFailures)('says why it cannot start: %s', async (_, parts, error) => {
      const { status, result } = await start(parts()).ended
      expect([status, subject.read(result).error]).toEqual(['failed', expect.stringMatching(error)])
    })

    slow('replaces invalid bytes, and those alone', async () => {
      const { output, ended } = start(subject.shell(String.raw`printf 'a\377\303'; printf '\274\360\237'`))
      const { result } = await ended
      expect(subject.read(result).stdout).toBe('a\ufffdü\ufffd')
      expect(output.stdout).toBe('a\ufffdü\ufffd')
    })

    slow('keeps the head of a large output and emits the whole', async () => {
      const { output, ended } = start(subject.shell("yes '12345678ü' | head -n 100000"))
      const { status, result } = await ended
      const { stdout } = subject.read(result)
      expect([status, output.stdout.length]).toEqual(['succeeded', 1_000_000])
      expect(Buffer.byteLength(String(stdout))).toBeLessThanOrEqual(subject.maxResultBytes)
      expect(output.stdout.startsWith(String(stdout))).toBe(true)
      expect(JSON.stringify(result)).toContain('"stdout_truncated":true')
    })

    slow('is not held up by a slow reader, which loses nothing', async () => {
      let emitted = ''
      const { ended } = start(subject.shell('yes | head -c 300000'), {
        emit: async (_, text) => {
          await new Promise((resolve) => setImmediate(resolve))
          emitted += text
        },
      })
      expect([(await ended).status, emitted.length]).toEqual(['succeeded', 300_000])
    })

    it('tells which execution it carries out, and nothing that belongs to the server', async () => {
      const { id, ended } = start(subject.shell('echo "$SVC_ACTION_EXECUTION_ID [$SVC_AUTH__SECRET]"'))
      expect(subject.read((await ended).result).stdout).toBe(`${id} []`)
    })

    slow('stops at the time limit and keeps what was written', async () => {
      await withTimeLimit(async (timeout) => {
        const { id, output, ended } = start(subject.shell('echo before; sleep 1000', { timeout }))
        const { status, result } = await ended
        expect([status, processes(id)]).toEqual(['timeout', []])
        if (output.stdout === '') return false
        expect(subject.read(result)).toMatchObject({ stdout: 'before', code: -9 })
        expect(subject.read(result).error).toBe(`Action failed to complete in ${timeout} seconds`)
        expect(output.stdout).toBe('before\n')
        return true
      })
    })

    it.each(subject.isVariant === true ? variants(['cancel', 'shutdown']) : ['cancel', 'shutdown'])(
      'ends on %s with what was written',
      async (reason) => {
        const abort = new AbortController()
        const { id, output, ended } = start(subject.shell('echo before; sleep 1000'), { signal: abort.signal })
        await waitFor('output', () => output.stdout === 'before\n')
        abort.abort(reason)
        expect(subject.read((await ended).result).stdout).toBe('before')
        expect(processes(id)).toEqual([])
      },
    )

    it('does not start what is aborted already', async () => {
      const { output, ended } = start(subject.shell('echo started'), { signal: AbortSignal.abort('cancel') })
      expect((await ended).status).not.toBe('succeeded')
      expect(output.stdout).toBe('')
    })

    it('ends what is aborted while it is being started', async () => {
      const abort = new AbortController()
      const { id, ended } = start(subject.shell('sleep 1000'), { signal: abort.signal })
      abort.abort('cancel')
      expect((await ended).status).not.toBe('succeeded')
      expect(processes(id)).toEqual([])
    })

    slow('ends what does not want to end, by time-out and by cancel', { timeout: 180_000 }, async () => {
      await Promise.all(
        stubbornScripts.map(async (name) => {
          const abort = new AbortController()
          // Without a pause one of them would take the machine from whatever else is tested; tests/stress has that.
          const timed = start(subject.shell(`exec ${fixture(name)} 0.01`, { timeout: 2 }))
          const canceled = start(subject.shell(`exec ${fixture(name)} 0.01`), { signal: abort.signal })
          await waitFor(`${name} to be up`, () => canceled.output.stdout !== '' || name === 'ignores-term.sh')
          await waitFor(`processes of ${name}`, () => processes(canceled.id).length > 0)
          abort.abort('cancel')
          const [first, second] = await Promise.all([timed.ended, canceled.ended])
          expect([name, first.status]).toEqual([name, 'timeout'])
          expect([name, second.status]).not.toEqual([name, 'succeeded'])
          for (const { id } of [timed, canceled]) expect([name, processes(id)]).toEqual([name, []])
        }),
      )
    })
  })
}
