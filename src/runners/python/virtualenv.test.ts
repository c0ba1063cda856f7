import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TestClock } from '../../../tests/helpers/clock.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { markedProcesses } from '../../../tests/helpers/marked-processes.ts'
import { recordRun, type RecordedRun } from '../../../tests/helpers/run-context.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { ensureVenv, makeWheel, quickVenv } from '../../../tests/helpers/wheel.ts'
import { createRunners, type Runners } from '../index.ts'
import { createLauncher } from '../process/create-launcher.ts'
import type { Launcher } from '../process/launcher.ts'
import type { RunContext, RunResult } from '../runner.ts'

let base: string
let launcher: Launcher
let folder: TemporaryFolder
let count = 0

beforeAll(async () => {
  base = await ensureVenv()
  ;({ launcher } = await createLauncher())
  folder = makeFolder()
})
afterAll(async () => {
  await launcher.stop()
  folder.remove()
})

interface World {
  /** Of the runners. */
  clock: TestClock
  pack: string
  packFolder: string
  venv: string
  runners: Runners
  /** Goes on with other runners, as another server would. */
  restart(): Promise<void>
  /** Makes a wheel of that version what the pack requires. */
  require(version: string): void
  start(more?: Partial<RunContext>): RecordedRun & { ended: Promise<RunResult> }
}

/** @param options of the module venv */
async function makeWorld(options = quickVenv): Promise<World> {
  const pack = `mine${++count}`
  const packFolder = join(folder.path, 'packs', pack)
  mkdirSync(join(packFolder, 'actions'), { recursive: true })
  const entryPoint = join(packFolder, 'actions', 'version.py')
  writeFileSync(
    entryPoint,
    'import sys\nimport tiny_test_wheel\nfrom svc.action import Action\n\n\nclass Version(Action):\n' +
      '    def run(self):\n        return [tiny_test_wheel.VERSION, sys.prefix]\n',
  )
  const basePath = join(folder.path, 'base')
  const clock = new TestClock()
  const boot = (): Promise<Runners> =>
    createRunners({
      launcher,
      clock,
      maxResultBytes: 100_000,
      basePath,
      systemUser: 'svc-no-such-account',
      python: { virtualenvOpts: options, pipOpts: ['--no-index'] },
    })
  let runners = await boot()
  return {
    clock,
    pack,
    packFolder,
    venv: join(basePath, 'virtualenvs', pack),
    get runners() {
      return runners
    },
    async restart() {
      await runners.stop()
      runners = await boot()
    },
    require(version) {
      writeFileSync(join(packFolder, 'requirements.txt'), `./${makeWheel(packFolder, version)}\n`)
    },
    start(more = {}) {
      const runner = runners.list.find(({ definition }) => definition.name === 'python-script')
      if (runner === undefined) throw new Error('python-script is missing in the list')
      const recorded = recordRun({}, { pack, packFolder, entryPoint, ...more })
      return { ...recorded, ended: runner.run(recorded.context) }
    },
  }
}

const neverAborted = new AbortController().signal

describe.concurrent('virtual environments', () => {
  fullOnly(it)(
    'one is made with pip of its own, for whoever comes first, and once',
    async () => {
      const world = await makeWorld(['--system-site-packages'])
      world.require('1.0')
      const runs = [world.start(), world.start(), world.start()]
      for (const { ended } of runs) {
        expect(await ended).toEqual({
          status: 'succeeded',
          result: { stdout: '', stderr: '', exit_code: 0, result: ['1.0', world.venv] },
        })
      }
      const told = runs.map(({ output }) => output.other)
      expect(told.filter((text) => text.includes('Successfully installed tiny-test-wheel-1.0'))).toHaveLength(1)
      expect(told.filter((text) => text !== '')).toHaveLength(1)
      const again = world.start()
      expect(await again.ended).toMatchObject({ status: 'succeeded' })
      expect(again.output.other).toBe('')
      await world.runners.stop()
    },
    240_000,
  )

  fullOnly(it)(
    'one follows its requirements, and is finished when it was left half-made',
    async () => {
      const world = await makeWorld()
      world.require('1.0')
      expect((await world.start().ended).result['result']).toEqual(['1.0', world.venv])
      world.require('2.0')
      const changed = world.start()
      expect((await changed.ended).result['result']).toEqual(['2.0', world.venv])
      expect(changed.output.other).toContain('tiny-test-wheel-2.0')

      writeFileSync(join(world.venv, 'left-over'), '')
      await world.restart()
      const kept = world.start()
      expect((await kept.ended).result['result']).toEqual(['2.0', world.venv])
      expect(kept.output.other).toBe('')

      // As a crash leaves it.
      rmSync(join(world.venv, '.svc-requirements.json'))
      await world.restart()
      expect((await world.start().ended).result['result']).toEqual(['2.0', world.venv])
      expect(existsSync(join(world.venv, 'left-over'))).toBe(false)

      writeFileSync(join(world.venv, 'left-over'), '')
      const { virtualenvs } = world.runners
      const made = await virtualenvs.recreate(world.pack, world.packFolder, { signal: neverAborted })
      expect(made).toEqual({ program: join(world.venv, 'bin', 'python') })
      expect(existsSync(join(world.venv, 'left-over'))).toBe(false)

      await virtualenvs.remove(world.pack)
      expect(existsSync(world.venv)).toBe(false)
      expect((await world.start().ended).result['result']).toEqual(['2.0', world.venv])
      await world.runners.stop()
    },
    240_000,
  )

  fullOnly(it)(
    'what pip says is why an action fails; all that waited are told, and the next one is told without pip',
    async () => {
      const world = await makeWorld()
      writeFileSync(join(world.packFolder, 'requirements.txt'), 'no-such-package-of-ours==1.0\n')
      const runs = [world.start(), world.start()]
      for (const { ended } of runs) {
        expect(await ended).toMatchObject({
          status: 'failed',
          result: { error: expect.stringMatching(/requirements of the pack "mine\d+".*no-such-package-of-ours/s) },
        })
      }
      expect(runs.filter(({ output }) => output.other !== '')).toHaveLength(1)
      const { virtualenvs } = world.runners
      expect(await virtualenvs.examine(world.pack, world.packFolder)).toEqual({
        missing: ['no-such-package-of-ours'],
        problem: expect.stringMatching(/no-such-package-of-ours/),
      })
      await world.restart()
      const next = world.start()
      expect((await next.ended).result['error']).toMatch(
        /no-such-package-of-ours[^]*\nThat was at 20.*svc tries again after 20[^]*requirements.txt.*packs.setup_virtualenv packs=mine\d+/,
      )
      expect(next.output.other).toBe('')
      // Whoever asks for it gets another try.
      const emitted: string[] = []
      const emit = (_: string, text: string): undefined => void emitted.push(text)
      const asked = await world.runners.virtualenvs.ensure(world.pack, world.packFolder, { signal: neverAborted, emit })
      expect([asked, emitted.join('')]).toEqual([
        { problem: expect.stringMatching(/no-such-package-of-ours/) },
        expect.stringMatching(/no-such-package-of-ours/),
      ])
      world.require('1.0')
      expect(await world.runners.virtualenvs.examine(world.pack, world.packFolder)).toEqual({
        missing: ['tiny-test-wheel'],
      })
      expect((await world.start().ended).result['result']).toEqual(['1.0', world.venv])
      expect(await world.runners.virtualenvs.examine(world.pack, world.packFolder)).toEqual({ missing: [] })
      await world.runners.stop()
    },
    240_000,
  )

  fullOnly(it)(
    'one that could not be made is tried again after minutes, later after hours, also after a restart',
    async () => {
      const world = await makeWorld()
      const { clock, packFolder } = world
      // Its name is the requirement; the wheel is the index that is back.
      writeFileSync(join(packFolder, 'requirements.txt'), './tiny_test_wheel-1.0-py3-none-any.whl\n')
      /** What pip says to an execution; empty: pip has not been asked. */
      const attempt = async (): Promise<[status: string, pip: boolean]> => {
        const run = world.start()
        const { status } = await run.ended
        return [status, run.output.other !== '']
      }
      const MINUTE = 60_000
      expect(await attempt()).toEqual(['failed', true])
      clock.advance(5 * MINUTE - 1)
      expect(await attempt()).toEqual(['failed', false])
      await world.restart()
      expect(await attempt()).toEqual(['failed', false])
      clock.advance(1)
      expect(await attempt()).toEqual(['failed', true])
      clock.advance(10 * MINUTE - 1)
      expect(await attempt()).toEqual(['failed', false])
      clock.advance(1)
      makeWheel(packFolder, '1.0')
      expect(await attempt()).toEqual(['succeeded', true])
      expect((await world.start().ended).result['result']).toEqual(['1.0', world.venv])
      await world.runners.stop()
    },
    240_000,
  )

  fullOnly(it)(
    'a canceled one is not waited for, leaves no process, and is made by those that wait',
    async () => {
      const world = await makeWorld()
      world.require('1.0')
      // It never ends by itself: pip asks whoever holds the other end of the pipe.
      execFileSync('mkfifo', [join(world.packFolder, 'more.txt')])
      const requirements = readFileSync(join(world.packFolder, 'requirements.txt'), 'utf8')
      writeFileSync(join(world.packFolder, 'requirements.txt'), `${requirements}-r more.txt\n`)
      const abort = new AbortController()
      const canceled = world.start({ signal: abort.signal })
      await waitFor('pip', () => markedProcesses(canceled.context.executionId).length > 0 && existsSync(world.venv))
      const waiter = new AbortController()
      const waiting = world.start({ signal: waiter.signal })
      const other = world.start()
      waiter.abort('cancel')
      expect(await waiting.ended).toMatchObject({ status: 'abandoned' })
      abort.abort('cancel')
      expect(await canceled.ended).toMatchObject({ status: 'abandoned' })
      expect(markedProcesses(canceled.context.executionId)).toEqual([])
      await waitFor('pip again', () => markedProcesses(other.context.executionId).length > 0)
      rmSync(join(world.packFolder, 'more.txt'))
      writeFileSync(join(world.packFolder, 'more.txt'), '')
      // Whether it looked before or after: pip fails for the pipe that is gone, or succeeds.
      for (const pid of markedProcesses(other.context.executionId)) process.kill(pid, 'SIGTERM')
      await other.ended
      expect((await world.start().ended).result['result']).toEqual(['1.0', world.venv])
      await world.runners.stop()
    },
    240_000,
  )

  it('a pack without requirements has the Python of all, and one whose file cannot be read is told so', async () => {
    const world = await makeWorld()
    const { virtualenvs } = world.runners
    expect(await virtualenvs.ensure(world.pack, world.packFolder, { signal: neverAborted })).toEqual({ program: base })
    expect(existsSync(world.venv)).toBe(false)
    mkdirSync(join(world.packFolder, 'requirements.txt'))
    expect(await virtualenvs.ensure(world.pack, world.packFolder, { signal: neverAborted })).toEqual({
      problem: expect.stringContaining('requirements.txt'),
    })
    await world.runners.stop()
  })
})
