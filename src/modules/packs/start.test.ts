import { copyFileSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../../../tests/helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'

const reads: string[] = []
const { open } = fs

/** Modules are shared by test files, so that the file system is watched, not a module. */
beforeAll(() => {
  fs.open = (path, ...more) => {
    reads.push(String(path))
    return open(path, ...more)
  }
  syncBuiltinESMExports()
})
afterAll(() => {
  fs.open = open
  syncBuiltinESMExports()
})

let folder: TemporaryFolder

/** Files of packs of the site that the server reads while it starts. */
async function readsOfStart(use: (app: InProcessApp) => Promise<void> | void = () => undefined): Promise<string[]> {
  reads.length = 0
  const app = await createTestApp({ basePath: folder.path })
  const packs = join(folder.path, 'packs/')
  const found = reads.filter((path) => path.startsWith(packs)).map((path) => path.slice(packs.length))
  try {
    await use(app)
  } finally {
    await app.stop()
  }
  return found.toSorted()
}

function put(path: string, text: string): void {
  const file = join(folder.path, 'packs', path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const action = (name: string, description: string): string =>
  `name: ${name}\nrunner_type: noop\ndescription: ${description}\n`

const packs = ['one', 'two', 'three', 'waits']

beforeEach(() => {
  folder = makeFolder()
  for (const pack of packs) {
    put(`${pack}/pack.yaml`, `name: ${pack}\ndescription: d\nversion: 1.0.0\nauthor: a\n`)
    for (const name of ['a', 'b']) put(`${pack}/actions/${name}.yaml`, action(name, 'old'))
  }
  put('waits/rules/r.yaml', 'name: r\nenabled: true\ntrigger: {type: one.event}\naction: {ref: core.noop}\n')
})
afterEach(() => folder.remove())

const description = async (app: InProcessApp, ref: string): Promise<unknown> =>
  (await app.call<{ description: string }>('GET', `/v1/actions/${ref}`)).body.description

test('a start reads no pack that is unchanged, also one with problems', async () => {
  expect(await readsOfStart()).not.toEqual([])
  expect(await readsOfStart()).toEqual([])
  expect(
    await readsOfStart(async (app) => {
      expect(app.log()).toMatch(/1 pack has problems.*waits/)
      expect((await app.call<unknown[]>('GET', '/v1/actions?pack=waits')).body).toHaveLength(2)
    }),
  ).toEqual([])
})

test('what has changed while the server was down is read, though size and time are as before', async () => {
  await readsOfStart()
  const file = join(folder.path, 'packs/two/actions/a.yaml')
  const { atime, mtime } = statSync(file)
  rmSync(file)
  writeFileSync(file, action('a', 'new'))
  utimesSync(file, atime, mtime)
  const read = await readsOfStart(async (app) => expect(await description(app, 'two.a')).toBe('new'))
  expect(read).toEqual(['two/actions/a.yaml', 'two/actions/b.yaml', 'two/pack.yaml'])
})

test('a pack that has gone is told of, and costs the others nothing', async () => {
  await readsOfStart()
  rmSync(join(folder.path, 'packs/three'), { recursive: true })
  expect(await readsOfStart((app) => expect(app.log()).toContain('Pack "three" has no folder any more'))).toEqual([])
})

test('after a database of before, the files count', async () => {
  await readsOfStart()
  const databases = readdirSync(folder.path).filter((name) => name.startsWith('svc.db'))
  for (const name of databases) copyFileSync(join(folder.path, name), join(folder.path, `${name}.before`))
  put('one/actions/a.yaml', action('a', 'new'))
  await readsOfStart(async (app) => expect(await description(app, 'one.a')).toBe('new'))
  for (const name of readdirSync(folder.path).filter((each) => /^svc\.db(?:-wal|-shm)?$/.test(each)))
    rmSync(join(folder.path, name))
  for (const name of databases) copyFileSync(join(folder.path, `${name}.before`), join(folder.path, name))
  await readsOfStart(async (app) => expect(await description(app, 'one.a')).toBe('new'))
})

test('a pack whose rule lacks a trigger type is read again when the type has come', async () => {
  await readsOfStart(async (app) => {
    expect((await app.call('GET', '/v1/rules/waits.r')).status).toBe(404)
    const type = { name: 'event', pack: 'one' }
    expect((await app.call('POST', '/v1/triggertypes', type)).status).toBe(201)
  })
  const read = await readsOfStart(async (app) => expect((await app.call('GET', '/v1/rules/waits.r')).status).toBe(200))
  expect(read).toContain('waits/rules/r.yaml')
  expect(read.filter((path) => !path.startsWith('waits/'))).toEqual([])
})
