import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder as makeTemporaryFolder } from '../../../tests/helpers/folders.ts'
import { createSecretFile, makeFolder, replaceFile, replaceSecretFile } from './secret-file.ts'

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

test('a disk that is full is named by the file, of which nothing is left', () => {
  const path = join(folder.path, 'full')
  const program = `
    import { replaceSecretFile } from ${JSON.stringify(new URL('./secret-file.ts', import.meta.url).href)}
    await replaceSecretFile(process.argv[1], 'x'.repeat(100_000)).catch((error) => console.log(error.code, error.message))
  `
  // A limit on the size of files stands for the disk.
  const run = 'ulimit -f 4; exec "$0" --input-type=module -e "$1" "$2"'
  const said = execFileSync('/bin/bash', ['-c', run, process.execPath, program, path], { encoding: 'utf8' })
  expect(said).toBe(`EFBIG EFBIG: file too large, write '${path}'\n`)
  expect(readdirSync(folder.path).filter((name) => name === 'full' || name.endsWith('.tmp'))).toEqual([])
})

test('nothing of a secret is left beside what cannot be replaced', async () => {
  const place = join(folder.path, 'place')
  const path = join(place, 'taken')
  mkdirSync(path, { recursive: true })
  const { uid, gid } = statSync(place)
  const isDirectory = expect.objectContaining({ code: 'EISDIR' })
  await expect(replaceSecretFile(path, 'x')).rejects.toEqual(isDirectory)
  await expect(
    replaceFile(path, Buffer.from('x'), { mode: 0o600, uid, gid }, () => Promise.resolve(true)),
  ).rejects.toEqual(isDirectory)
  expect(readdirSync(place)).toEqual(['taken'])
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
