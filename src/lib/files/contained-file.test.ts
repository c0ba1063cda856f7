import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { createContainedFiles } from './contained-file.ts'

let folder: TemporaryFolder
let path: string
const read = createContainedFiles({ files: 10, chars: 1000 })
const text = (name = 'a'): ReturnType<typeof read> => read(join(folder.path, 'in'), name, 10)
const write = (content: string): void => writeFileSync(path, content)

/** Until a file that exists now is old enough to be remembered. */
const settle = async (): Promise<void> => {
  while (Date.now() - statSync(path).ctimeMs <= 1000) await delay(20)
}

beforeEach(() => {
  folder = makeFolder()
  mkdirSync(join(folder.path, 'in'))
  path = join(folder.path, 'in', 'a')
  write('one')
})
afterEach(() => folder.remove())

test('a young file is read each time, also if its size and time stay', async () => {
  expect(await text()).toEqual({ text: 'one' })
  const { atime, mtime } = statSync(path)
  write('two')
  utimesSync(path, atime, mtime)
  expect(await text()).toEqual({ text: 'two' })
})

test('a remembered file is read again when it has changed, was replaced, or is not allowed any more', async () => {
  await settle()
  for (let time = 0; time < 2; time++) expect(await text()).toEqual({ text: 'one' })
  const { atime, mtime } = statSync(path)
  write('two')
  utimesSync(path, atime, mtime)
  expect(await text()).toEqual({ text: 'two' })

  await settle()
  expect(await text()).toEqual({ text: 'two' })
  write('longer than ten')
  expect(await text()).toEqual({ problem: 'too large' })
  renameSync(path, join(folder.path, 'outside'))
  symlinkSync(join(folder.path, 'outside'), path)
  expect(await text()).toEqual({ problem: 'outside' })
  rmSync(path)
  expect(await text()).toEqual({ problem: 'missing' })
})
