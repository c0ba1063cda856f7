import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createRunners, type Runners } from '../../src/runners/index.ts'
import { createLauncher, type LauncherKind } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import type { RunContext, Runner, RunResult } from '../../src/runners/runner.ts'
import { isRunning, markedProcesses } from '../helpers/marked-processes.ts'
import { recordRun } from '../helpers/run-context.ts'
import { waitFor } from '../helpers/wait.ts'
import { describeProcessRunner, withTimeLimit } from './runner-suite.ts'

const kinds: LauncherKind[] = ['posix-spawn-thread', 'child-process']
const MAX_RESULT_BYTES = 1000

const ended = (returnCode: number, stdout = '', stderr = '') => ({
  failed: returnCode !== 0,
  succeeded: returnCode === 0,
  return_code: returnCode,
  stdout,
  stderr,
})

describe.each(kinds)('runners on launcher %s', (kind) => {
  let launcher: Launcher
  let runners: Runners
  let local: Runner
  let noop: Runner
  let folder: string
  const warnings: string[] = []

  const run = (runnerParameters: Record<string, unknown>, more?: Partial<RunContext>): Promise<RunResult> =>
    local.run(recordRun(runnerParameters, more).context)

  beforeAll(async () => {
    const chosen = await createLauncher(kind)
    launcher = chosen.launcher
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-runner-')))
    runners = await createRunners({
      launcher,
      maxResultBytes: MAX_RESULT_BYTES,
      systemUser: 'svc-no-such-account',
      env: { ...process.env, INHERITED: 'yes', ANOTHER: 'no', SVC_AUTH__SECRET: 'hidden' },
      passEnvironment: ['INHERITED'],
      warn: (message) => warnings.push(message),
    })
    const byName = new Map(runners.list.map((runner) => [runner.definition.name, runner]))
    const found = [byName.get('local-shell-cmd'), byName.get('noop')]
    if (found[0] === undefined || found[1] === undefined) throw new Error('A runner is missing in the list')
    ;[local, noop] = [found[0], found[1]]
  })
  afterAll(async () => {
    await runners.stop()
    await launcher.stop()
    rmSync(folder, { recursive: true })
  })
  afterEach(() => {
    if (warnings.length > 0) throw new Error(`Unexpected warnings: ${warnings.splice(0).join('; ')}`)
  })

  describeProcessRunner({
    name: 'local-shell-cmd',
    isVariant: kind === 'child-process',
    runner: () => local,
    shell: (text, more) => ({ runnerParameters: { cmd: text, ...more } }),
    read: ({ stdout, stderr, return_code: code, error }) => ({ stdout, stderr, code, error }),
    maxResultBytes: MAX_RESULT_BYTES,
    startFailures: [
      ['no such folder', () => ({ runnerParameters: { cmd: ':', cwd: '/no/such/folder' } }), /"\/no\/such\/folder"/],
      ['too large', () => ({ runnerParameters: { cmd: 'x'.repeat(300_000) } }), /too large/],
    ],
  })

  describe('a command that ends by itself', () => {
    it('succeeds with code 0', async () => {
      const { context, output, started } = recordRun({ cmd: 'echo out; echo err >&2' })
      expect(await local.run(context)).toEqual({ status: 'succeeded', result: ended(0, 'out', 'err') })
      expect(output).toEqual({ stdout: 'out\n', stderr: 'err\n', other: '' })
      expect(started).toEqual([{ pid: expect.any(Number), startTime: expect.stringMatching(/^\d+$/) }])
    })

    it('fails with any other code', async () => {
      expect(await run({ cmd: 'exit 3' })).toEqual({ status: 'failed', result: ended(3) })
    })

    it.each<[string, number, RegExp]>([
      ['kill -HUP $$', -1, /^killed by signal 1 \(SIGHUP; /],
      ['ulimit -c 0; kill -SEGV $$', -11, /^killed by signal 11 \(SIGSEGV; invalid memory access\)$/],
      ['kill -KILL $$', -9, /^killed by signal 9 \(SIGKILL; out of memory\?\)$/],
      ['kill -TERM $$', -15, /^killed by signal 15 \(SIGTERM; /],
      ['kill -USR1 $$', -10, /^killed by signal 10 \(SIGUSR1\)$/],
      [
        "exec 2>/dev/null; sh -c 'kill -9 $$'; exit $?",
        137,
        /^exit code 137: .* killed by signal 9 \(SIGKILL; out of memory\?\)$/,
      ],
    ])('fails and names the signal after %j', async (cmd, code, error) => {
      const result = { ...ended(code), error: expect.stringMatching(error) }
      expect(await run({ cmd })).toEqual({ status: 'failed', result })
    })

    it('fails with 127 for an unknown command', async () => {
      const { status, result } = await run({ cmd: 'no-such-command-of-ours' })
      expect(status).toBe('failed')
      expect(result).toMatchObject({ return_code: 127, stderr: expect.stringContaining('no-such-command-of-ours') })
    })

    it.each([
      [String.raw`a\n`, 'a'],
      [String.raw`a\n\n`, 'a\n'],
      [String.raw`a\r\n`, 'a'],
      [String.raw`a\r`, 'a\r'],
      [String.raw`\n`, ''],
      [String.raw`a`, 'a'],
    ])('takes one line end off %j', async (printed, stdout) => {
      expect((await run({ cmd: `printf '${printed}'` })).result['stdout']).toBe(stdout)
    })

    it('keeps the head of a large output and emits the whole', async () => {
      const { context, output } = recordRun({ cmd: "yes '12345678ü' | head -n 100000; yes e | head -n 500 >&2" })
      const { status, result } = await local.run(context)
      expect(status).toBe('succeeded')
      // 11 bytes a line: byte 1000 is the last of "12345678ü".
      expect(result['stdout']).toBe(`${'12345678ü\n'.repeat(90)}12345678ü`)
      expect(result).toMatchObject({ stdout_truncated: true, stderr: `${'e\n'.repeat(499)}e` })
      expect(result).not.toHaveProperty('stderr_truncated')
      expect(output.stdout).toHaveLength(1_000_000)
    })
  })

  describe('parameters', () => {
    it('puts the environment together in order', async () => {
      const env = { INHERITED: 'no', GIVEN: 1, FLAG: true, SVC_ACTION_PACK_NAME: 'forged' }
      const { result } = await run({
        cmd: 'echo "$INHERITED $GIVEN $FLAG $SVC_ACTION_PACK_NAME [$SVC_AUTH__SECRET$ANOTHER]"',
        env,
      })
      expect(result['stdout']).toBe('no 1 True core []')
      expect((await run({ cmd: 'echo $INHERITED' })).result['stdout']).toBe('yes')
    })

    it('starts in the working directory', async () => {
      expect((await run({ cmd: 'pwd -P', cwd: folder })).result['stdout']).toBe(folder)
    })

    it('runs the command line as it is', async () => {
      const cmd = `printf '%s|' "a  b" '$HOME' "$((1 + 1))" 'ä"'; cat <<E\nhere\nE`
      expect((await run({ cmd })).result['stdout']).toBe('a  b|$HOME|2|ä"|here')
    })

    it('does not show others a command with a secret in it, which notices nothing of that', async () => {
      const runHidden = (cmd: string): Promise<RunResult> =>
        run({ cmd, env: { A: 'b' } }, { containsSecret: () => true })
      const shown = (await runHidden(`: hunter22; tr '\\0' ' ' < /proc/$$/cmdline; env | grep -e hunter -e ^A=`)).result
      expect(shown['stdout']).toBe('/bin/sh -c eval "unset SVC_ACTION_COMMAND;$SVC_ACTION_COMMAND" A=b')
      for (const cmd of [
        `printf '%s|' "a  b" '$A' "$((1 + 1))" 'ä"' "$#" "$-"; cat <<E\nhere\nE`,
        'echo $LINENO\necho $LINENO; exit 3',
        '# a comment\nset -e; false; echo never',
        '-no-such-program',
        'cat; readlink /proc/self/fd/0',
        'f() { local x=1; return 4; }; f',
        'kill -TERM $$',
        'echo "',
      ]) {
        const [plain, hidden] = [await run({ cmd, env: { A: 'b' } }), await runHidden(cmd)]
        const { stderr: _plain, ...expected } = plain.result
        const { stderr: _hidden, ...result } = hidden.result
        expect({ cmd, result, status: hidden.status }).toEqual({ cmd, result: expected, status: plain.status })
      }
    })

    it('has nothing on stdin', async () => {
      expect((await run({ cmd: 'cat; readlink /proc/self/fd/0' })).result['stdout']).toBe('/dev/null')
    })

    it('does not let bash source ~/.bashrc, even where the server came by ssh', async () => {
      writeFileSync(join(folder, '.bashrc'), 'echo sourced\n')
      const env = { HOME: folder }
      expect((await run({ cmd: 'unset SHLVL; bash -c "echo plain"', env })).result['stdout']).toBe('plain')
    })

    it.each<[Record<string, unknown>, RegExp]>([
      [{ cmd: ':', cwd: '/no/such/folder' }, /"\/no\/such\/folder"/],
      [{ cmd: ':', cwd: '/etc/passwd' }, /working directory "\/etc\/passwd"/],
      [{}, /"cmd"/],
      [{ cmd: 'a\0b' }, /NUL/],
      [{ cmd: ':', env: { 'A=B': 1 } }, /"A=B"/],
      [{ cmd: ':', env: ['x'] }, /"env"/],
      [{ cmd: ':', timeout: -1 }, /"timeout"/],
      [{ cmd: 'x'.repeat(300_000) }, /too large/],
      [{ cmd: ':', sudo: true, sudo_password: 'a\nb' }, /"sudo_password"/],
    ])('cannot start with %j', async (runnerParameters, error) => {
      expect(await run(runnerParameters)).toEqual({
        status: 'failed',
        result: { error: expect.stringMatching(error), traceback: expect.any(String) },
      })
    })

    it('cannot start with an entry point', async () => {
      const { status, result } = await run({ cmd: ':' }, { entryPoint: '/some/file' })
      expect([status, result['error']]).toEqual(['failed', expect.stringContaining('ntry point')])
    })
  })

  describe('stopping', () => {
    it('lets a command end within the grace, and is a time-out still', async () => {
      const cmd = `trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.01; done`
      await withTimeLimit(async (timeout) => {
        const { status, result } = await run({ cmd, timeout })
        expect(status).toBe('timeout')
        if (result['stdout'] === '') return false
        expect(result).toMatchObject({ return_code: -9, stdout: 'up\ncleaned' })
        return true
      })
    })

    it('has no limit with timeout 0', async () => {
      expect((await run({ cmd: 'sleep 0.1; echo late', timeout: 0 })).result['stdout']).toBe('late')
    })

    it.each(['cancel', 'shutdown'])('ends on %s with what was written', async (reason) => {
      const abort = new AbortController()
      const { context, output, started } = recordRun({ cmd: 'echo before; sleep 1000' }, { signal: abort.signal })
      const running = local.run(context)
      await waitFor('output', () => output.stdout === 'before\n')
      abort.abort(reason)
      const { result } = await running
      expect(result).toMatchObject({ failed: true, return_code: -15, stdout: 'before' })
      expect(started.map(({ pid }) => isRunning(pid))).toEqual([false])
    })

    it('does not start what is aborted already', async () => {
      const { context, started } = recordRun({ cmd: ':' }, { signal: AbortSignal.abort('cancel') })
      expect((await local.run(context)).result).toMatchObject({ failed: true, stdout: '' })
      expect(started).toEqual([])
    })

    it('leaves no process behind when the caller throws', async () => {
      const { context } = recordRun(
        { cmd: 'sleep 1000' },
        {
          processStarted: () => {
            throw new Error('no room for a row')
          },
        },
      )
      await expect(local.run(context)).rejects.toThrow('no room for a row')
      expect(markedProcesses(context.executionId)).toEqual([])
    })
  })

  it('noop does nothing', async () => {
    const { context, output, started } = recordRun({})
    expect(await noop.run(context)).toEqual({
      status: 'succeeded',
      result: { failed: false, succeeded: true, return_code: 0 },
    })
    expect([output, started]).toEqual([{ stdout: '', stderr: '', other: '' }, []])
  })
})
