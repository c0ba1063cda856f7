import { mkdirSync, renameSync, rmSync, symlinkSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { watchDirectories, type DirectoryWatch } from './directory-watch.ts'

let folder: TemporaryFolder
let tree: DirectoryWatch
let changes: string[]
/** Paths of the watches that are open. */
let open: string[]

const at = (path: string): string => join(folder.path, path)
const put = (path: string): void => writeFileSync(at(path), String(Math.random()))
const paths = (): string[] => open.map((path) => path.slice(folder.path.length)).toSorted()

beforeEach(async () => {
  folder = makeFolder()
  changes = []
  open = []
  mkdirSync(at('a/b'), { recursive: true })
  mkdirSync(at('a/skipped'))
  for (let i = 0; i < 20; i += 1) put(`a/b/f${i}`)
  const counted = ((path: string, options: object, listener: () => void) => {
    const one = watch(path, options, listener)
    open.push(path)
    const close = one.close.bind(one)
    return Object.assign(one, {
      close() {
        open.splice(open.indexOf(path), 1)
        close()
      },
    })
  }) as typeof watch
  tree = watchDirectories({
    enters: (path) => !path.endsWith('skipped'),
    changed: (path) => changes.push(path),
    failed: (error) => {
      throw error
    },
    watch: counted,
  })
  await tree.add(folder.path)
})
afterEach(() => {
  tree.stop()
  folder.remove()
})

const seen = async (path: string): Promise<void> => {
  put(path)
  await waitFor(path, () => changes.includes(at(path)))
}

test('each directory has one watch, and what is in it none', async () => {
  expect(paths()).toEqual(['', '/a', '/a/b'])
  await seen('a/b/f1')
  await seen('a/new')
  rmSync(at('a/b/f2'))
  await waitFor('the file that is gone', () => changes.includes(at('a/b/f2')))
  tree.stop()
  expect(open).toEqual([])
})

test('directories come with those below them, and go', async () => {
  mkdirSync(at('c/d/skipped'), { recursive: true })
  await waitFor('the watches', () => paths().length === 5)
  await tree.settled()
  expect(paths()).toEqual(['', '/a', '/a/b', '/c', '/c/d'])
  await seen('c/d/f')
  rmSync(at('c'), { recursive: true })
  await waitFor('their end', () => paths().length === 3)
})

test('a directory that moves or is replaced is watched where it is', async () => {
  renameSync(at('a'), at('moved'))
  await waitFor('the watches', () => paths().join() === ',/moved,/moved/b')
  await seen('moved/b/f1')
  rmSync(at('moved'), { recursive: true })
  mkdirSync(at('moved/b'), { recursive: true })
  changes.length = 0
  await waitFor('the other directory there', () => {
    put('moved/b/f1')
    return changes.includes(at('moved/b/f1'))
  })
  expect(paths()).toEqual(['', '/moved', '/moved/b'])
})

test('links are not followed', async () => {
  symlinkSync(at('a'), at('link'))
  await waitFor('the link', () => changes.includes(at('link')))
  await tree.settled()
  expect(paths()).toEqual(['', '/a', '/a/b'])
})
