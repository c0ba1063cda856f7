import { EventEmitter } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createLog } from '../../lib/log/log.ts'
import { createWatcher, type Watcher, type WatcherDeps } from './watcher.ts'

let root: string
let sink: TextSink
let watcher: Watcher
let calls: { folders: string[]; packs: string[] }[]

const packs = (): string => join(root, 'packs')

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-watch-'))
  mkdirSync(join(root, 'packs/mine/actions'), { recursive: true })
  mkdirSync(join(root, 'configs'))
  mkdirSync(join(root, 'overrides'))
  sink = new TextSink()
  calls = []
})
afterEach(async () => {
  await watcher.stop()
  rmSync(root, { recursive: true })
})

async function start(more: Partial<WatcherDeps> = {}, since?: number): Promise<boolean> {
  watcher = createWatcher({
    log: createLog({ level: 'DEBUG', format: 'text', stream: sink }),
    basePaths: [packs()],
    configsPath: join(root, 'configs'),
    overridesPath: join(root, 'overrides'),
    packFolders: () => Promise.resolve([]),
    changed: (folders, some) => {
      calls.push({ folders: [...folders].toSorted(), packs: [...some].toSorted() })
      return Promise.resolve()
    },
    ...more,
  })
  return watcher.start(since)
}

function put(path: string, text = 'x'): void {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const mine = (): string => join(packs(), 'mine')

test('thousands of changes are one', async () => {
  await start()
  for (let i = 0; i < 2_000; i++) put(`packs/mine/actions/a${i}.yaml`)
  put('packs/other/pack.yaml')
  put('configs/mine.yaml')
  put('overrides/_global.yaml')
  await waitFor('the changes', () => calls.length > 0)
  expect(calls).toEqual([{ folders: [mine(), join(packs(), 'other')], packs: ['_global', 'mine'] }])
})

describe('the first look', () => {
  const changedAt = (path: string): number => statSync(join(root, path)).ctimeMs

  /** Writes until the clock of the file system is past that of all that was there. */
  function putLater(path: string, than: number): void {
    do put(path, String(changedAt('packs') + Math.random()))
    while (changedAt(path) <= than)
  }

  test('names what has changed since a time, and nothing else', async () => {
    for (const pack of ['mine', 'other', 'third']) put(`packs/${pack}/actions/a.yaml`)
    put('configs/third.yaml')
    put('configs/other.yaml')
    const before = Math.max(...['packs', 'configs', 'packs/third/actions/a.yaml', 'configs/other.yaml'].map(changedAt))
    putLater('packs/other/actions/a.yaml', before)
    putLater('configs/third.yaml', before)
    expect(await start({}, before + 0.001)).toBe(false)
    await waitFor('the changes', () => calls.length > 0)
    expect(calls).toEqual([{ folders: [join(packs(), 'other')], packs: ['third'] }])
    // A file that is gone changes its folder.
    rmSync(join(root, 'packs/mine/actions/a.yaml'))
    await watcher.stop()
    calls = []
    expect(await start({}, changedAt('packs/mine/actions'))).toBe(false)
    await waitFor('the change', () => calls.length > 0)
    expect(calls[0]?.folders).toContain(mine())
  })

  test('cannot say which pack or configuration is gone, or what has changed before it looked', async () => {
    put('configs/third.yaml')
    expect(await start()).toBe(true)
    await watcher.stop()
    expect(await start({}, Math.max(changedAt('packs'), changedAt('configs')) + 1_000)).toBe(false)
    await watcher.stop()
    rmSync(join(root, 'configs/third.yaml'))
    expect(await start({}, changedAt('configs'))).toBe(true)
  })
})

test('what registering does not look at is not noticed', async () => {
  await start()
  for (const path of [
    'packs/mine/.git/index',
    'packs/mine/actions/.a.yaml.swp',
    'packs/mine/actions/__pycache__/a.pyc',
    'packs/mine/node_modules/m/index.js',
    'packs/mine/lib/deep/er.py',
    'packs/.new-pack/pack.yaml',
    'configs/.mine.yaml.tmp',
    'configs/notes.txt',
    'overrides/notes.txt',
    'overrides/deep/mine.yaml',
  ]) {
    put(path)
  }
  put('packs/second/pack.yaml')
  await waitFor('the changes', () => calls.length > 0)
  // That there are such folders is seen, not what is in them.
  expect(calls.flatMap(({ folders }) => folders)).toContain(join(packs(), 'second'))
  expect(calls.flatMap((one) => one.packs)).toEqual([])
  expect(calls.flatMap(({ folders }) => folders).some((folder) => folder.includes('.new-pack'))).toBe(false)
})

test('folders of packs that are links are followed', async () => {
  mkdirSync(join(root, 'elsewhere/actions'), { recursive: true })
  symlinkSync(join(root, 'elsewhere'), join(packs(), 'linked'))
  await start({ packFolders: () => Promise.resolve([join(packs(), 'linked'), mine()]) })
  put('elsewhere/actions/a.yaml')
  await waitFor('the changes', () => calls.length > 0)
  expect(calls).toEqual([{ folders: [join(packs(), 'linked')], packs: [] }])
})

test('changes that come while others are registered are registered afterwards', async () => {
  let release = (): void => undefined
  let running = 0
  let most = 0
  await start({
    changed: async (folders) => {
      running += 1
      most = Math.max(most, running)
      calls.push({ folders: [...folders], packs: [] })
      if (calls.length === 1) await new Promise<void>((resolve) => (release = resolve))
      running -= 1
    },
  })
  put('packs/mine/pack.yaml')
  await waitFor('the first', () => calls.length === 1)
  put('packs/mine/pack.yaml', 'y')
  put('packs/other/pack.yaml')
  release()
  await waitFor('the second', () => calls.length === 2)
  expect([most, calls[1]?.folders.toSorted()]).toEqual([1, [mine(), join(packs(), 'other')]])
})

test('where the system watches no more files it goes on without, and says what to do', async () => {
  let isClosed = false
  const fake = Object.assign(new EventEmitter(), {
    close: () => {
      isClosed = true
      return Promise.resolve()
    },
    add: () => undefined,
  })
  const load = () => Promise.resolve({ watch: () => fake }) as unknown as ReturnType<NonNullable<WatcherDeps['load']>>
  const starting = start({ load })
  await waitFor('the listeners', () => fake.listenerCount('error') > 0)
  fake.emit('error', Object.assign(new Error('no space'), { code: 'ENOSPC' }))
  await starting
  expect(isClosed).toBe(true)
  expect(sink.text).toMatch(/WARNING.*max_user_watches.*svc pack register/)
  fake.emit('error', Object.assign(new Error('no space'), { code: 'ENOSPC' }))
  expect(sink.text.match(/max_user_watches/g)).toHaveLength(1)
})

test('nothing comes after its end', async () => {
  await start()
  put('packs/mine/pack.yaml')
  await watcher.stop()
  await watcher.stop()
  expect(calls).toEqual([])
})
