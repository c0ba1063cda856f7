import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { removeExpiredFiles } from './expired-files.ts'

const folder = makeFolder()
afterEach(() => folder.remove())
const at = (name: string): string => join(folder.path, name)
const day = 86_400_000

function write(name: string, ageMs: number): void {
  mkdirSync(dirname(at(name)), { recursive: true })
  writeFileSync(at(name), name)
  const time = new Date(Date.now() - ageMs)
  utimesSync(at(name), time, time)
}

test('removes old files and folders that they leave empty, and nothing else', async () => {
  write('cache/old/deep/a.pyc', 40 * day)
  write('cache/mixed/old.pyc', 31 * day)
  write('cache/mixed/new.pyc', 29 * day)
  write('outside/old.pyc', 90 * day)
  symlinkSync(at('outside'), at('cache/link'))
  symlinkSync(at('outside/old.pyc'), at('cache/mixed/link.pyc'))
  const removed = await removeExpiredFiles(at('cache'), Date.now() - 30 * day, new AbortController().signal)
  expect(removed).toBe(2)
  expect(['cache/old/deep', 'cache/mixed/old.pyc'].filter((name) => existsSync(at(name)))).toEqual([])
  const kept = ['cache/mixed/new.pyc', 'outside/old.pyc', 'cache/link', 'cache/mixed/link.pyc']
  expect(kept.filter((name) => !existsSync(at(name)))).toEqual([])
})

test('finds nothing in a folder that is not there, and does nothing when it is to stop', async () => {
  expect(await removeExpiredFiles(at('missing'), Date.now(), new AbortController().signal)).toBe(0)
  write('cache/old.pyc', 40 * day)
  expect(await removeExpiredFiles(at('cache'), Date.now(), AbortSignal.abort())).toBe(0)
  expect(existsSync(at('cache/old.pyc'))).toBe(true)
})
