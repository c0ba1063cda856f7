import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, utimesSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRunners, type Runners } from '../../src/runners/index.ts'
import { createLauncher, type LauncherKind } from '../../src/runners/process/create-launcher.ts'
import type { Launcher } from '../../src/runners/process/launcher.ts'
import { markOf, readMark } from '../../src/runners/process/process-table.ts'
import type { RunContext, Runner, RunResult } from '../../src/runners/runner.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { isRunning, markedProcesses } from '../helpers/marked-processes.ts'
import { recordRun, type RecordedRun } from '../helpers/run-context.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly, tier, variants } from '../helpers/tiers.ts'
import { describeProcessRunner } from './runner-suite.ts'

/** `runner.test.ts` tries both each day. */
const kinds: LauncherKind[] = tier === 'full' ? ['posix-spawn-thread', 'child-process'] : ['posix-spawn-thread']
const MAX_RESULT_BYTES = 600_000

const dedent = (text: string): string => text.replace(/^\n/, '').replace(/^ {8}/gm, '')

describe.each(kinds)('python-script on launcher %s', (kind) => {
  let launcher: Launcher
  let runners: Runners
  let runner: Runner
  let folder: TemporaryFolder
  let packFolder: string
  let count = 0
  const warnings: string[] = []

  const make = async (settings: Partial<Parameters<typeof createRunners>[0]> = {}) => {
    const made = await createRunners({
      launcher,
      maxResultBytes: MAX_RESULT_BYTES,
      basePath: join(folder.path, 'base'),
      systemUser: 'svc-no-such-account',
      env: { ...process.env, SVC_AUTH__SECRET: 'hidden' },
      warn: (message) => warnings.push(message),
      ...settings,
    })
    const found = made.list.find(({ definition }) => definition.name === 'python-script')
    if (found === undefined) throw new Error('python-script is missing in the list')
    return { runners: made, runner: found }
  }

  /** Path of a new action file. */
  function file(source: string, name = `action_${++count}.py`): string {
    const path = join(packFolder, 'actions', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, source)
    return path
  }

  /** An action whose `run` has this body; `self` and the parameters `p` are there. */
  const action = (body: string, before = ''): string =>
    file(
      `import os, sys, time\nfrom svc.action import Action\n${before}\n\nclass Example(Action):\n    def run(self, **p):\n` +
        body.replace(/^/gm, '        '),
    )

  function start(
    entryPoint: string,
    more: Partial<RunContext> = {},
    parameters: Record<string, unknown> = {},
    on: Runner = runner,
  ): RecordedRun & { id: string; ended: Promise<RunResult> } {
    const recorded = recordRun(parameters, { entryPoint, packFolder, pack: 'mine', ...more })
    return { ...recorded, id: recorded.context.executionId, ended: on.run(recorded.context) }
  }

  const run = (body: string, more: Partial<RunContext> = {}, parameters: Record<string, unknown> = {}) =>
    start(action(body), more, parameters).ended
  const value = async (...given: Parameters<typeof run>): Promise<unknown> => {
    const { status, result } = await run(...given)
    expect([status, result['stderr']]).toEqual(['succeeded', ''])
    return result['result']
  }

  beforeAll(async () => {
    ;({ launcher } = await createLauncher(kind))
    folder = makeFolder()
    packFolder = realpathSync(folder.path)
    packFolder = join(packFolder, 'packs', 'mine')
    mkdirSync(join(packFolder, 'actions', 'lib'), { recursive: true })
    ;({ runners, runner } = await make())
  })
  afterAll(async () => {
    await runners.stop()
    await launcher.stop()
    folder.remove()
    if (warnings.length > 0) throw new Error(`Unexpected warnings: ${warnings.join('; ')}`)
  })

  let shell: string | undefined
  describeProcessRunner({
    name: 'python-script',
    isVariant: true,
    runner: () => runner,
    shell(text, more) {
      shell ??= action(
        'code = subprocess.call(["/bin/sh", "-c", p["text"]])\nif code != 0:\n    sys.exit(code)',
        'import subprocess',
      )
      return { entryPoint: shell, packFolder, pack: 'mine', runnerParameters: { ...more }, actionParameters: { text } }
    },
    read: ({ stdout, stderr, exit_code: code, error }) => ({
      stdout: String(stdout).replace(/\n$/, ''),
      stderr: String(stderr).replace(/\n$/, ''),
      code,
      error,
    }),
    maxResultBytes: MAX_RESULT_BYTES,
    startFailures: [
      ['no entry point', () => ({ runnerParameters: {}, packFolder }), /entry_point/],
      [
        'no file',
        () => ({ runnerParameters: {}, packFolder, entryPoint: join(packFolder, 'actions/no.py') }),
        /no\.py/,
      ],
    ],
  })

  describe('processes that outlive the action', () => {
    const grace = { background_grace_seconds: 0.1 }

    it('are waited for while they write, or run code of the action', async () => {
      const body = `
        subprocess.Popen(["sh", "-c", "for i in 1 2 3; do sleep 0.05; echo program; done"])
        if os.fork() == 0:
            time.sleep(1.5)
            print("fork", flush=True)
            os._exit(0)
        return 7`
      const { status, result } = await start(action(dedent(body), 'import subprocess'), {}, grace).ended
      expect([status, result['result'], result['background']]).toEqual(['succeeded', 7, undefined])
      expect(String(result['stdout']).split('\n').sort()).toEqual(['', 'fork', 'program', 'program', 'program'])
    })

    it('go on when they write nothing, and can write for ever', async () => {
      const [go, done] = [join(folder.path, 'go'), join(folder.path, 'done')]
      const silent = `until [ -e ${go} ]; do sleep 0.05; done; head -c 200000 /dev/zero; echo done > ${done}`
      const body = `
        job = subprocess.Popen(["sh", "-c", "${silent}"])
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        return job.pid`
      const { status, result } = await start(action(dedent(body), 'import subprocess'), {}, grace).ended
      const { pids, message } = result['background'] as { pids: number[]; message: string }
      expect([status, pids.includes(Number(result['result']))]).toEqual(['succeeded', true])
      expect(message).toBe(`still running in background: pid ${pids.join(', ')}`)
      writeFileSync(go, '')
      await waitFor('the process to reach its end', () => existsSync(done))
      for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL')
    })
  })

  describe('what comes back', () => {
    it('is what run() returns', async () => {
      const returned = { text: 'zwölf 🦊', number: 1.5, list: [1, null, true], deep: { a: {} } }
      const { status, result } = await run('print("out")\nreturn p["given"]', { actionParameters: { given: returned } })
      expect([status, result]).toEqual(['succeeded', { stdout: 'out\n', stderr: '', exit_code: 0, result: returned }])
    })

    it('has each name as it was, however JSON writes it', async () => {
      // One after the other: what was read before is what another may be taken for.
      for (const name of ['\\', '\n', 'é', '\u0007']) {
        const given = { beside: 1, [name]: 2 }
        expect(await value('return p["given"]', { actionParameters: { given } })).toEqual(given)
      }
    })

    it.each<[string, RunResult['status'], unknown]>([
      ['pass', 'succeeded', null],
      ['return (True, 1)', 'succeeded', 1],
      ['return (False, {"why": "x"})', 'failed', { why: 'x' }],
      ['return (1, 2, 3)', 'succeeded', [1, 2, 3]],
      ['return False', 'succeeded', false],
      ['return {1: 2}', 'succeeded', '{1: 2}'],
      ['return (None, {"a": (1, 2)})', 'succeeded', { a: [1, 2] }],
      ['return object', 'succeeded', "<class 'object'>"],
      ['return {"a": {1, }}', 'succeeded', "{'a': {1}}"],
      ['return [float("nan"), 2.5]', 'succeeded', [null, 2.5]],
      ['return (False, b"x")', 'failed', 'x'],
      ['return (False, b"\\xff")', 'failed', "b'\\xff'"],
      ['return "\\udc80"', 'succeeded', "'\\udc80'"],
      ['return (True, "\\udc80")', 'succeeded', '\\udc80'],
      ['import uuid\nreturn {"id": uuid.UUID(int=1)}', 'succeeded', { id: '00000000-0000-0000-0000-000000000001' }],
      ['import datetime\nreturn datetime.date(2026, 1, 2)', 'succeeded', '2026-01-02'],
      ['import decimal\nreturn decimal.Decimal("1.10")', 'succeeded', "Decimal('1.10')"],
      ['import decimal\nreturn (True, decimal.Decimal("1.10"))', 'succeeded', '1.10'],
      ['a = []\na.append(a)\nreturn a', 'succeeded', '[[...]]'],
    ])('%s', async (body, status, returned) => {
      expect(await run(body)).toEqual({ status, result: { stdout: '', stderr: '', exit_code: 0, result: returned } })
    })

    it('is a failure with code 220 when the status is no boolean', async () => {
      const { status, result } = await run('print("out")\nreturn ("yes", 1)')
      expect([status, result]).toEqual([
        'failed',
        {
          error: expect.stringMatching(/status.*boolean.*str/),
          traceback: expect.any(String),
          exit_code: 220,
          stdout: 'out\n',
          stderr: '',
        },
      ])
    })

    it('is a traceback of the action alone when it throws', async () => {
      const { status, result } = await run('print("before")\nraise ValueError("not so")')
      expect([status, result]).toMatchObject(['failed', { exit_code: 1, result: 'None', stdout: 'before\n' }])
      expect(result['stderr']).toMatch(/^Traceback[^]*in run\n[^]*ValueError: not so\n$/)
      expect(result['stderr']).not.toContain('worker.py')
    })

    it('is one line when run does not take the parameters', async () => {
      const path = file('from svc.action import Action\n\n\nclass A(Action):\n    def run(self, b):\n        pass\n')
      const { status, result } = await start(path).ended
      expect([status, result['stderr']]).toEqual([
        'failed',
        expect.stringMatching(/^TypeError: .*run\(\) missing 1 required positional argument: 'b'\n$/),
      ])
    })

    it.each<[string, RunResult['status'], number]>([
      ['sys.exit(3)', 'failed', 3],
      ['sys.exit()', 'failed', 0],
      ['os._exit(4)', 'failed', 4],
      ['os._exit(0)', 'failed', 0],
    ])('is nothing after %s', async (body, status, code) => {
      expect(await run(body)).toMatchObject({ status, result: { exit_code: code, result: 'None' } })
    })

    it.each([
      ['os.kill(os.getpid(), 15)', -15, /^killed by signal 15 \(SIGTERM; /],
      ['os.kill(os.getpid(), 9)', -9, /^killed by signal 9 \(SIGKILL; out of memory\?\)$/],
    ])('is the name of the signal after %s', async (body, code, error) => {
      const result = { exit_code: code, result: 'None', error: expect.stringMatching(error) }
      expect(await run(body)).toMatchObject({ status: 'failed', result })
    })

    it('is bounded', async () => {
      const [fits, cut] = await Promise.all([
        run(`return "x" * ${MAX_RESULT_BYTES - 100}`),
        run(`return "x" * ${MAX_RESULT_BYTES}`),
      ])
      expect([fits.status, String(fits.result['result']).length]).toEqual(['succeeded', MAX_RESULT_BYTES - 100])
      expect(cut).toMatchObject({
        status: 'failed',
        result: { result: 'None', error: expect.stringContaining('max_result_bytes') },
      })
    })

    it('is no business of what the action does with the descriptor', async () => {
      expect(await run('os.write(3, b"{}garbage")\nreturn 1')).toMatchObject({
        status: 'failed',
        result: { result: 'None' },
      })
    })

    it('survives parameters of a megabyte', async () => {
      const text = 'ü'.repeat(600_000)
      expect(await value('return len(p["text"])', { actionParameters: { text } })).toBe(600_000)
    })

    it('prints what cannot be printed', async () => {
      const { status, result } = await run('print("\\udcff ü")\nsys.stdout.buffer.write(b"\\xff\\n")')
      expect([status, result['stdout']]).toEqual([
        'succeeded',
        expect.stringMatching(/^\\udcff ü\n\ufffd\n$|^\ufffd\n\\udcff ü\n$/),
      ])
    })

    it('has all that was printed, also without a line end, by threads and at the end', async () => {
      const { result } = await run(
        `threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
atexit.register(lambda: print("atexit"))
print("x" * 300000, end="")`.replace(/^/, 'import atexit, threading\n'),
      )
      expect(result['stdout']).toBe(`${'x'.repeat(300_000)}thread\natexit\n`)
    })

    it.each(
      variants([
        ['as it is', {}, {}, ['one 1\n', 'two']],
        ['by a server that runs unbuffered', { PYTHONUNBUFFERED: '1' }, {}, ['one 1\n', 'two']],
        ['unbuffered where it is asked for', {}, { env: { PYTHONUNBUFFERED: 1 } }, ['one', ' ', '1', '\n', 'two']],
      ]),
    )('is written line by line, %s', async (_, more, parameters, expected) => {
      const other = await make({
        python: { poolSize: 0 },
        env: { PATH: process.env['PATH'] ?? '', ...more },
        passEnvironment: ['PYTHON*'],
      })
      // A socket keeps writes apart.
      const entry = action(
        `reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
os.dup2(writer.fileno(), 1)
print("one", 1)
print("two", end="", flush=True)
reader.setblocking(False)
written = []
try:
    while True:
        written.append(reader.recv(1000).decode())
except BlockingIOError:
    return [text for text in written if text]`,
        'import socket',
      )
      expect((await start(entry, {}, parameters, other.runner).ended).result['result']).toEqual(expected)
      await other.runners.stop()
    })

    it('comes while the action runs', async () => {
      const abort = new AbortController()
      const { output, ended } = start(action('print("line")\ntime.sleep(1000)'), { signal: abort.signal })
      await waitFor('the line', () => output.stdout === 'line\n')
      abort.abort('cancel')
      expect(await ended).toMatchObject({ status: 'abandoned', result: { stdout: 'line\n', result: 'None' } })
    })

    it('is told by nobody else: a fork that comes back has no result', async () => {
      const { status, result } = await run(
        'child = os.fork()\nif child == 0:\n    return "child"\nos.waitpid(child, 0)\nreturn "parent"',
      )
      expect([status, result['result']]).toEqual(['succeeded', 'parent'])
    })
  })

  describe('the logger', () => {
    const body =
      'for name in ("debug", "info", "warning", "error", "critical"):\n    getattr(self.logger, name)("say %s", name)'
    it('writes to stderr', async () => {
      const { result } = await run(body)
      expect(result['stderr']).toBe(
        ['DEBUG   ', 'INFO    ', 'WARNING ', 'ERROR   ', 'CRITICAL']
          .map((level) => `svc.actions.python.Example: ${level} say ${level.trim().toLowerCase()}\n`)
          .join(''),
      )
    })

    it.each([
      ['ERROR', 2],
      ['AUDIT', 3],
      ['CRITICAL', 1],
    ])('from %s on', async (level, lines) => {
      const { result } = await run(body, {}, { log_level: level })
      expect(String(result['stderr']).match(/\n/g)).toHaveLength(lines)
    })
  })

  describe('what is around an action', () => {
    it('has the configuration of its pack, asked for once', async () => {
      let asked = 0
      const config = () => ({ values: { asked: ++asked, password: 's3cret' } })
      expect(await value('return self.config', { config })).toEqual({ asked: 1, password: 's3cret' })
    })

    it('is told when the configuration cannot be had', async () => {
      const config = () => {
        throw new Error('config: no such key')
      }
      expect(await run('pass', { config })).toMatchObject({
        status: 'failed',
        result: { error: 'config: no such key' },
      })
    })

    it('is the environment of the contract', async () => {
      const { context } = recordRun({})
      const env = {
        ...context.env,
        SVC_ACTION_API_URL: 'http://127.0.0.1:9101/v1',
        SVC_ACTION_AUTH_TOKEN: 'tok',
        SVC_ACTION_PACK_NAME: 'mine',
      }
      const asked = 'return {k: os.environ.get(k) for k in p["names"]}'
      const names = [
        'SVC_API_URL',
        'SVC_AUTH_TOKEN',
        'SVC_ACTION_AUTH_TOKEN',
        'SVC_ACTION_PACK_NAME',
        'SVC_ACTION_DEBUG',
        'GIVEN',
        'FLAG',
        'PYTHONPATH',
        'SVC_AUTH__SECRET',
      ]
      const found = {
        SVC_API_URL: 'http://127.0.0.1:9101/v1',
        SVC_AUTH_TOKEN: 'tok',
        SVC_ACTION_AUTH_TOKEN: 'tok',
        SVC_ACTION_PACK_NAME: 'mine',
        SVC_ACTION_DEBUG: 'False',
        GIVEN: null,
        FLAG: null,
        PYTHONPATH: process.env['PYTHONPATH'] ?? null,
        SVC_AUTH__SECRET: null,
      }
      expect(await value(asked, { env, actionParameters: { names } })).toEqual(found)
      const given = { GIVEN: 1, FLAG: true, PYTHONPATH: '/evil', pythonpath: '/evil', SVC_ACTION_PACK_NAME: 'forged' }
      expect(await value(asked, { env, actionParameters: { names } }, { env: given, debug: true })).toEqual({
        ...found,
        GIVEN: '1',
        FLAG: 'True',
        SVC_ACTION_DEBUG: 'True',
      })
    })

    it('is the folder of the pack, and nothing on stdin', async () => {
      expect(await value('return [os.getcwd(), sys.stdin.read(), os.readlink("/proc/self/fd/0")]')).toEqual([
        packFolder,
        '',
        '/dev/null',
      ])
    })

    it('is a process that no other action was in', async () => {
      const entry = action(
        'sys.modules["json"].state = getattr(sys.modules["json"], "state", 0) + 1\nos.environ["LEFT"] = "x"\n' +
          'return [os.getpid(), sys.modules["json"].state]',
        'assert "LEFT" not in os.environ',
      )
      const seen = []
      for (let round = 0; round < 6; round++) seen.push((await start(entry).ended).result['result'])
      expect(seen.map((pair) => (pair as number[])[1])).toEqual([1, 1, 1, 1, 1, 1])
      expect(new Set(seen.map((pair) => (pair as number[])[0])).size).toBe(6)
    })

    it('leaves nothing in the folder of the pack', async () => {
      file('VALUE = 1\n', 'lib/helper_of_mine.py')
      expect(await value('import helper_of_mine\nreturn helper_of_mine.VALUE')).toBe(1)
      expect(readdirSync(packFolder, { recursive: true }).filter((name) => String(name).includes('pyc'))).toEqual([])
    })

    it('refuses a revision without packs, and a wrong environment', async () => {
      expect(await run('pass', {}, { content_version: 'v1' })).toMatchObject({
        status: 'failed',
        result: { error: expect.stringContaining('content_version') },
      })
      expect(await run('pass', {}, { env: 'x' })).toMatchObject({ result: { error: expect.stringContaining('"env"') } })
    })
  })

  describe('what an action imports', () => {
    it.each([
      'from st2common.runners.base_action import Action',
      'from st2actions.runners.pythonrunner import Action',
      'import svc.action; Action = svc.action.Action',
    ])('%s', async (line) => {
      const entry = file(`${line}\nclass A(Action):\n    def run(self):\n        return Action.__module__\n`)
      expect((await start(entry).ended).result['result']).toBe('svc.action')
    })

    it('is beside it, in actions/lib, and in lib where that is allowed', async () => {
      file('VALUE = "beside"\n', 'beside_it.py')
      file('VALUE = "package"\n', 'lib/inside_lib.py')
      file('', 'lib/__init__.py')
      mkdirSync(join(packFolder, 'lib'), { recursive: true })
      writeFileSync(join(packFolder, 'lib', 'common_of_pack.py'), 'VALUE = "common"\n')
      const entry = action(
        'return [beside_it.VALUE, inside_lib.VALUE, again.VALUE, common_of_pack and common_of_pack.VALUE]',
        'import beside_it, inside_lib\nfrom lib import inside_lib as again\ntry:\n    import common_of_pack\nexcept ImportError:\n    common_of_pack = None',
      )
      expect((await start(entry).ended).result['result']).toEqual(['beside', 'package', 'package', null])
      const other = await make({ python: { enableCommonLibs: true } })
      try {
        const { result } = await start(entry, {}, {}, other.runner).ended
        expect(result['result']).toEqual(['beside', 'package', 'package', 'common'])
      } finally {
        await other.runners.stop()
      }
    })

    it('is told where it lies when it lies in lib of the pack, which others do not share', async () => {
      mkdirSync(join(packFolder, 'lib', 'shared_by_pack'), { recursive: true })
      const { result } = await start(action('pass', 'from shared_by_pack.tool import X')).ended
      expect(result['stderr']).toMatch(
        /No module named 'shared_by_pack'\nThe pack has it in lib\/: set enable_common_libs/,
      )
    })

    it.each([
      ['from urllib2 import URLError', /Only Python 2 has urllib2: .*newer version of the pack\.\n$/],
      ['import yaml_of_nobody', /add that to the requirements.txt of the pack\.\n$/],
      ['import st2common.services.keyvalues', /svc has no such module of StackStorm.*docs\/packs.md.*\n$/],
      ['import os.nothing', /'os' is not a package\n$/],
    ])('is told what to do when a module is missing: %s', async (line, expected) => {
      expect((await start(action('pass', line)).ended).result['stderr']).toMatch(expected)
    })

    fullOnly(it)('is what the file says now, as large and as old as it may be', async () => {
      const path = join(packFolder, 'actions', 'lib', 'replaced.py')
      const asks = action('return replaced.VALUE', 'import replaced')
      // As archives have it whose files all bear one date.
      const date = new Date('2026-01-01T00:00:00Z')
      // Whoever runs the tests may have Python keep no bytecode.
      const keeping = await make({ env: { PATH: process.env['PATH'] ?? '' } })
      const values: unknown[] = []
      try {
        for (const text of ['VALUE = 1', 'VALUE = 2', 'VALUE = 3']) {
          writeFileSync(path, text)
          utimesSync(path, date, date)
          values.push((await start(asks, {}, {}, keeping.runner).ended).result['result'])
        }
      } finally {
        await keeping.runners.stop()
      }
      expect(values).toEqual([1, 2, 3])
    })

    fullOnly(it)('is the real module where the action bears its name, loaded in advance or not', async () => {
      const other = await make({ python: { poolSize: 0 } })
      for (const [name, on] of [
        ['uuid', runner],
        ['uuid', other.runner],
        ['statistics', other.runner],
      ] as const) {
        const entry = file(
          `import ${name}\nfrom svc.action import Action\nclass A(Action):\n    def run(self):\n        return ${name}.__file__\n`,
          `named/${name}.py`,
        )
        const { result } = await start(entry, {}, {}, on).ended
        expect([result['result'], result['stderr']]).toEqual([expect.stringMatching(`/python3[^/]*/${name}\\.py$`), ''])
      }
      await other.runners.stop()
    })

    it.each([
      ['x = 1\n', /no class/],
      ['from svc.action import Action\n', /no class/],
    ])('fails clearly: %j', async (source, error) => {
      const { status, result } = await start(file(source)).ended
      expect([status, result['error']]).toEqual(['failed', expect.stringMatching(error)])
    })

    it.each<[string, string, RegExp, unknown]>([
      [
        'a module that is missing',
        'import no_such_module\n',
        /^Traceback.*\n  File "\S+\.py", line 1,[^]*no_such_module'\n.*requirements.txt of the pack/,
        0,
      ],
      ['a line that is no Python', 'x = 1\ndef y(:\n', /^  File "\S+\.py", line 2\n[^]*SyntaxError/, 0],
      ['parameters that run() lacks', '', /^TypeError: .*run\(\) got an unexpected keyword argument 'more'\n$/, 1],
      ['a class that cannot be made', '', /^TypeError: .*__init__\(\) missing 1 required .*'extra'\n$/, 2],
    ])('is told where it is wrong, without files of others: %s', async (_, before, expected, kind) => {
      const init = kind === 2 ? '    def __init__(self, config, extra, **more):\n        pass\n' : ''
      const entry = file(
        `${before}from svc.action import Action\nclass A(Action):\n${init}    def run(self):\n        pass\n`,
      )
      const { result } = await start(entry, { actionParameters: kind === 1 ? { more: 1 } : {} }).ended
      expect(result).toMatchObject({ exit_code: 1, result: 'None', stderr: expect.stringMatching(expected) })
      expect(result['stderr']).not.toMatch(/worker\.py|importlib/)
    })

    it('is the class that can be made, among several', async () => {
      const entry = file(
        `import abc
from svc.action import Action
class A(Action):
    @abc.abstractmethod
    def help(self): pass
    def run(self): return "A"
class B(Action):
    def run(self): return "B"
`,
      )
      expect((await start(entry).ended).result['result']).toBe('B')
    })

    it('is the first class by name that has run(), with a warning when there are several', async () => {
      const body = (name: string): string => `    def run(self):\n        return "${name}"\n`
      const entry = file(
        'from svc.action import Action\n' +
          `class Real(Action):\n${body('Real')}class Base(Action):\n${body('Base')}class Abstract(Action):\n    pass\n` +
          // Takes no configuration, so that it can hardly be meant.
          `class AHelper:\n${body('AHelper')}`,
        'several.py',
      )
      const { result } = await start(entry).ended
      expect(result).toMatchObject({
        result: 'Base',
        stderr:
          'svc.actions.python.Base: WARNING  The entry point "several.py" defines several classes with a method run: ' +
          'Base, Real, AHelper. The first by name is the action.\n',
      })
    })

    it.each([
      ['class A:\n    def __init__(self, config=None, action_service=None):\n        self.config = config\n'],
      ['class A:\n    def __init__(self, config):\n        self.config = config\n'],
      ['class A:\n    pass\n'],
      ['import dataclasses\n@dataclasses.dataclass\nclass A:\n    config: dict\n'],
    ])('may be a class without our base class: %j', async (source) => {
      const run = '    def run(self):\n        return [self.config, type(self.action_service).__name__]\n'
      expect(
        (await start(file(source.replace('    pass\n', '') + run), { config: () => ({ values: { a: 1 } }) }).ended)
          .result,
      ).toMatchObject({
        result: [{ a: 1 }, 'ActionService'],
        stderr: '',
      })
    })

    it('may be a class made before there was a service', async () => {
      const entry = file(
        'from svc.action import Action\nclass Base(Action):\n    pass\nclass A(Base):\n    def __init__(self, config):\n' +
          '        super().__init__(config)\n    def run(self):\n        return type(self.action_service).__name__\n',
      )
      expect((await start(entry).ended).result['result']).toBe('ActionService')
    })
  })

  describe('secrets and ends', () => {
    it('shows neither parameters nor configuration nor token to others', async () => {
      const secret = `s3cret${kind}`
      const { context } = recordRun({})
      const body = `mine = open("/proc/self/cmdline").read() + open("/proc/self/environ").read()
return p["secret"] in mine or self.config["a"] in mine or os.environ["SVC_AUTH_TOKEN"] in mine`
      for (const parameters of [{}, { env: { A: 'b' } }]) {
        const more = {
          actionParameters: { secret },
          config: () => ({ values: { a: `config-${secret}` } }),
          env: { ...context.env, SVC_ACTION_AUTH_TOKEN: `token-${secret}` },
        }
        expect(await value(body, more, parameters)).toBe(false)
      }
    })

    it('finds forks in sessions of their own without the variable, by the mark', async () => {
      const entry = action(
        `for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(os.getpid(), flush=True)
        while True:
            time.sleep(1000)
time.sleep(1000)`,
        'import signal',
      )
      // The first warms the pool up, so that the second has an interpreter that was waiting.
      await run('pass')
      await waitFor('an interpreter', () => waitingInterpreters().length > 0)
      const abort = new AbortController()
      const { output, ended, id, started } = start(entry, { signal: abort.signal })
      let pids: number[]
      try {
        pids = await waitFor('both forks', () => {
          const found = output.stdout.trim().split('\n').map(Number)
          return found.length === 2 && found.every((pid) => pid > 0) && found
        })
        expect(started).toHaveLength(1)
        for (const pid of pids) expect(readMark(pid)).toBe(markOf(id))
      } finally {
        abort.abort('cancel')
        await ended
      }
      expect(pids.filter(isRunning)).toEqual([])
      expect(markedProcesses(id)).toEqual([])
    })

    it.each(
      variants(
        [
          ['a refusal', 'HTTP/1.1 403 F\r\nContent-Length: 21\r\n\r\n{"faultstring": "no"}', /403: no$/, 403],
          [
            'a redirect, which is not followed with the token',
            'HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n',
            /302/,
            302,
          ],
          [
            'cut short',
            'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12',
            /could not reach the server/,
            null,
          ],
          ['no HTTP', 'nonsense\r\n\r\n', /could not reach the server/, null],
          ['no JSON', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n<', /not JSON/, null],
        ],
        2,
      ),
    )('has one error for what the server answers: %s', async (_, answer, message, status) => {
      const server = createServer((socket) =>
        socket.once('data', () => socket.end(answer)).on('error', () => undefined),
      )
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const { port } = server.address() as AddressInfo // listens on TCP
      const body = `try:
    return self.action_service.get_user_info()
except action_service.ServiceError as error:
    return [str(error), error.status]`
      const entry = action(body, 'from svc import action_service')
      const env = {
        ...recordRun({}).context.env,
        SVC_ACTION_API_URL: `http://127.0.0.1:${port}/v1`,
        SVC_ACTION_AUTH_TOKEN: 'x',
      }
      const proxies = { env: { http_proxy: 'http://127.0.0.1:1', HTTP_PROXY: 'http://127.0.0.1:1' } }
      const { result } = await start(entry, { env }, proxies).ended
      expect(result['result']).toEqual([expect.stringMatching(message), status])
      server.close()
    })

    fullOnly(it)('works without a pool, and where Python is told not to trust the folder of a program', async () => {
      const env = { PATH: process.env['PATH'] ?? '', PYTHONSAFEPATH: '1' }
      const other = await make({ python: { poolSize: 0 }, env })
      expect((await start(action('return 1'), {}, {}, other.runner).ended).result['result']).toBe(1)
      await other.runners.stop()
    })

    it('hands over what an interpreter says that cannot begin', async () => {
      expect(await run('pass', {}, { env: { PYTHONHASHSEED: 'none' } })).toMatchObject({
        status: 'failed',
        result: {
          error: expect.stringContaining('exited before'),
          stderr: expect.stringContaining('PYTHONHASHSEED'),
          exit_code: 1,
        },
      })
    })

    it('goes on with another interpreter when the waiting ones were killed', async () => {
      await run('pass')
      await waitFor('an interpreter', () => waitingInterpreters().length > 0)
      for (const pid of waitingInterpreters()) process.kill(pid, 'SIGKILL')
      expect(await value('return 1')).toBe(1)
    })

    it('says what is wrong with the interpreter', async () => {
      const bad = join(folder.path, 'python3')
      writeFileSync(bad, '#!/bin/sh\necho nonsense\n', { mode: 0o755 })
      const cases: [Record<string, unknown>, RegExp][] = [
        [{ python: { binary: bad } }, /does not behave like Python/],
        [{ python: { binary: '/no/such/python' } }, /python_binary/],
        [{ env: { PATH: '/no/such/folder' } }, /no python3 in its PATH/],
      ]
      for (const [settings, error] of cases) {
        const other = await make(settings)
        const { status, result } = await start(action('pass'), {}, {}, other.runner).ended
        expect([status, result['error']]).toEqual(['failed', expect.stringMatching(error)])
        await other.runners.stop()
      }
    })
  })
})

/** Pids of interpreters that have no job yet, or are being started. */
function waitingInterpreters(): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const isOurs = readFileSync(`/proc/${name}/stat`, 'latin1').split(') ')[1]?.split(' ')[1] === String(process.pid)
      const isWaiting = readFileSync(`/proc/${name}/cmdline`, 'latin1').includes('/lib/start.py')
      return isOurs && isWaiting && isRunning(Number(name)) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

it('the interpreter that the tests use is there', () => {
  expect(execFileSync('python3', ['--version'], { encoding: 'utf8' })).toMatch(/^Python 3\./)
})
