import { EventEmitter } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { createLog } from '../../lib/log/log.ts'
import { createWatcher, type Watcher, type WatcherDeps } from './watcher.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

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

async function start(more: Partial<WatcherDeps> = {}): Promise<void> {
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
  return watcher.start()
}

function put(path: string, text = 'x'): void {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const mine = (): string => join(packs(), 'mine')

fullOnly(test)('thousands of changes are one', async () => {
  await start()
  for (let i = 0; i < 2_000; i++) put(`packs/mine/actions/a${i}.yaml`)
  put('packs/other/pack.yaml')
  put('configs/mine.yaml')
  put('overrides/_global.yaml')
  await waitFor('the changes', () => calls.length > 0)
  expect(calls).toEqual([{ folders: [mine(), join(packs(), 'other')], packs: ['_global', 'mine'] }])
})

test('folders that come, are replaced and move are watched, with what is in them', async () => {
  await start()
  const next = async (path: string, folder: string): Promise<void> => {
    await waitFor('what came before', () => calls.length > 0)
    calls = []
    put(path)
    await waitFor(path, () => calls.some(({ folders }) => folders.includes(join(packs(), folder))))
  }
  put('packs/new/actions/lib/a.py')
  await next('packs/new/actions/lib/a.py', 'new')
  rmSync(join(packs(), 'new'), { recursive: true })
  put('packs/new/actions/a.yaml')
  await next('packs/new/actions/a.yaml', 'new')
  renameSync(join(packs(), 'new'), join(packs(), 'moved'))
  await next('packs/moved/actions/a.yaml', 'moved')
  expect(calls.flatMap(({ packs: some }) => some)).toEqual([])
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

test('where the system watches no more directories it goes on without, and says what to do', async () => {
  const open: string[] = []
  const limited = ((path: string) => {
    if (open.length === 3) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    open.push(path)
    return Object.assign(new EventEmitter(), { close: () => open.splice(open.indexOf(path), 1) })
  }) as unknown as NonNullable<WatcherDeps['watch']>
  await start({ watch: limited })
  expect(open).toEqual([])
  expect(sink.text).toMatch(/WARNING.*max_user_watches.*svc pack register/)
  expect(sink.text.match(/max_user_watches/g)).toHaveLength(1)
})

test('nothing comes after its end', async () => {
  await start()
  put('packs/mine/pack.yaml')
  await watcher.stop()
  await watcher.stop()
  expect(calls).toEqual([])
})
