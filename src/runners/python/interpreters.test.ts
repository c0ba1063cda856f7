import { execFileSync, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { isRunning } from '../../../tests/helpers/marked-processes.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { fullOnly, tier } from '../../../tests/helpers/tiers.ts'
import { inheritedEnvironment } from '../environment.ts'
import { createLauncher, type LauncherKind } from '../process/create-launcher.ts'
import type { Launcher } from '../process/launcher.ts'
import { createInterpreters, startScript, type Interpreters, type InterpretersOptions } from './interpreters.ts'

/** `runner.test.ts` tries both each day. */
const kinds: LauncherKind[] = tier === 'full' ? ['posix-spawn-thread', 'child-process'] : ['posix-spawn-thread']
const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim()

describe.each(kinds)('interpreters on launcher %s', (kind) => {
  let launcher: Launcher
  let folder: TemporaryFolder
  let interpreters: Interpreters | undefined

  function make(options: Partial<InterpretersOptions> = {}): Interpreters {
    interpreters = createInterpreters({
      launcher,
      size: 2,
      env: inheritedEnvironment(),
      startFile: fileURLToPath(startScript),
      cacheFolder: folder.path,
      ...options,
    })
    return interpreters
  }
  const pids = (of: Interpreters): number[] => of.waiting.map(({ identity }) => identity.pid)
  const full = (of: Interpreters, size = 2): Promise<number[]> =>
    waitFor('the pool to be full', () => of.waiting.length === size && pids(of))
  const ended = (of: number[]): Promise<boolean> => waitFor('their ends', () => of.every((pid) => !isRunning(pid)))

  beforeAll(async () => {
    ;({ launcher } = await createLauncher(kind))
    folder = makeFolder()
  })
  afterEach(() => interpreters?.stop())
  afterAll(async () => {
    await launcher.stop()
    folder.remove()
  })

  it('starts none before the first is asked for, then as many as it is to', async () => {
    const all = make({ size: 3 })
    expect(all.waiting).toEqual([])
    expect(all.take(python)).toBeUndefined()
    const waiting = await full(all, 3)
    const taken = all.take(python)
    expect(taken?.identity.pid).toBe(waiting[0])
    expect(await full(all, 3)).not.toContain(waiting[0])
    taken?.stdin?.end()
    expect((await taken?.exited)?.code).toBe(0)
  })

  it('keeps none with size 0', () => {
    const all = make({ size: 0 })
    expect(all.take(python)).toBeUndefined()
    expect(all.take(python)).toBeUndefined()
  })

  it('ends them when nobody wants them any more', async () => {
    const all = make({ idleMs: 2000 })
    all.take(python)
    const waiting = await full(all)
    await ended(waiting)
    expect(all.waiting).toEqual([])
  })

  it('ends those of a program that has changed, and those that wait at the end', async () => {
    const all = make()
    all.take(python)
    const first = await full(all)
    all.forget(python)
    await ended(first)
    all.take(python)
    const second = await full(all)
    await all.stop()
    expect(second.filter(isRunning)).toEqual([])
    expect([all.take(python), all.waiting]).toEqual([undefined, []])
  })

  it('ends also those that are being started', async () => {
    const all = make()
    all.take(python)
    await waitFor('a start', () => all.waiting.length > 0)
    const waiting = pids(all)
    await all.stop()
    expect(waiting.filter(isRunning)).toEqual([])
  })

  it('keeps those of a few programs', async () => {
    const all = make({ size: 1 })
    // The same program by other names.
    const names = ['', './', '././', './././', '././././'].map((dots) => python.replace(/\/([^/]+)$/, `/${dots}$1`))
    for (const [index, name] of names.entries()) {
      all.take(name)
      await full(all, Math.min(index + 1, 4))
    }
    expect(all.take(names[0] ?? '')).toBeUndefined()
  })

  it('does not give away one that has died', async () => {
    const all = make({ size: 1 })
    all.take(python)
    const [pid = 0] = await full(all, 1)
    process.kill(pid, 'SIGKILL')
    await waitFor('its end to be noticed', () => all.waiting.length === 0)
    expect(all.take(python)).toBeUndefined()
    expect(await full(all, 1)).not.toEqual([pid])
  })

  it('does not try for ever to start what cannot be started', async () => {
    let starts = 0
    const all = make({
      launcher: {
        ...launcher,
        name: 'failing',
        stop: () => Promise.resolve(),
        spawn: () => {
          starts += 1
          return Promise.reject(new Error('no more processes'))
        },
      },
    })
    all.take(python)
    await waitFor('the starts', () => starts === 2)
    await all.stop()
    expect(starts).toBe(2)
  })

  fullOnly(it)('leaves nobody behind when the server is killed', async () => {
    const server = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('../../../tests/fixtures/keeps-interpreters.ts', import.meta.url)),
        kind,
        python,
        folder.path,
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    let printed = ''
    server.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    const waiting = await waitFor(
      'its interpreters',
      () => printed.endsWith('\n') && printed.trim().split(' ').map(Number),
    )
    expect(waiting.filter(isRunning)).toHaveLength(2)
    server.kill('SIGKILL')
    await ended(waiting)
  })
})
