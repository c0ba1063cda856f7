import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder as makeTemporaryFolder } from '../tests/helpers/folders.ts'
import { createSecretFile, makeFolder, replaceSecretFile } from './secret-file.ts'

const folder = makeTemporaryFolder()
afterAll(() => folder.remove())

test('folders that are missing are for their owner alone', async () => {
  const path = join(folder.path, 'a', 'b', 'key')
  expect(await createSecretFile(path, 'x')).toBe(true)
  for (const [made, mode] of [
    [path, 0o600],
    [join(folder.path, 'a', 'b'), 0o700],
    [join(folder.path, 'a'), 0o700],
  ] as const) {
    expect(statSync(made).mode & 0o777).toBe(mode)
  }
})

test('several at the same time make one folder', async () => {
  const path = join(folder.path, 'c', 'd', 'e')
  await Promise.all(Array.from({ length: 20 }, () => makeFolder(path)))
  expect(statSync(path).isDirectory()).toBe(true)
})

test.each([
  ['one that takes no folders', '/proc/nothing/below', 'ENOENT'],
  ['a file', join(folder.path, 'file', 'below'), 'EEXIST'],
])('below %s it ends with an error', async (_what, path, code) => {
  writeFileSync(join(folder.path, 'file'), '')
  const failure = expect.objectContaining({ code })
  await expect(makeFolder(path)).rejects.toEqual(failure)
  await expect(createSecretFile(join(path, 'key'), 'x')).rejects.toEqual(failure)
  await expect(replaceSecretFile(join(path, 'key'), 'x')).rejects.toEqual(failure)
  expect(existsSync(path)).toBe(false)
})
