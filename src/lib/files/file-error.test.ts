import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { describeFileError, reasonOfFileError } from './file-error.ts'

let folder: TemporaryFolder
beforeEach(() => {
  folder = makeFolder()
  writeFileSync(join(folder.path, 'file'), '')
  symlinkSync(join(folder.path, 'nothing'), join(folder.path, 'link'))
  mkdirSync(join(folder.path, 'folder'))
})
afterEach(() => folder.remove())

function errorOf(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('it worked')
}

describe('an error of the file system in words', () => {
  test.each([
    ['a file instead of the folder', 'file', 'it is a file, not a directory'],
    ['a file above the folder', 'file/a/b', '/file is a file, not a directory'],
    ['a link to nothing instead of the folder', 'link', 'it is a symbolic link to nothing'],
    ['a folder that exists', 'folder', 'a part of the path is a file'],
  ])('names %s', (_, name, words) => {
    const path = join(folder.path, name)
    const error = errorOf(() => mkdirSync(path))
    expect(describeFileError(path, error).replace(folder.path, '')).toBe(words)
  })

  test('says what does not exist', async () => {
    const path = join(folder.path, 'nothing', 'below')
    expect(
      describeFileError(
        path,
        errorOf(() => readdirSync(path)),
      ),
    ).toBe('it does not exist')
    await expect(mkdir(path).catch(reasonOfFileError)).resolves.toBe('the directory cannot be created')
  })

  test('names no path without being asked for it', () => {
    const path = join(folder.path, 'file', 'a')
    expect(reasonOfFileError(errorOf(() => mkdirSync(path)))).toBe('a part of the path is a file')
    expect(reasonOfFileError(new Error('Disk on fire'))).toBe('Disk on fire')
  })
})
