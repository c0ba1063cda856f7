import { appendFileSync, mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { createFilter, scanPack } from './files.ts'

let folder: TemporaryFolder

beforeEach(() => {
  folder = makeFolder()
  put('pack.yaml', 'name: a\n')
  put('actions/a.yaml', 'name: a\n')
  put('actions/a.sh', 'true\n')
})
afterEach(() => folder.remove())

function put(path: string, text = ''): void {
  const file = join(folder.path, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

describe('the list of files', () => {
  test('leaves out what is generated, hidden or ignored', async () => {
    put('.gitignore', '# made\n*.log\n/build/\nlib/*.tmp\n!lib/keep.tmp\n')
    for (const path of [
      'a.log',
      'lib/b.log',
      'build/x',
      'lib/build/x',
      'lib/c.tmp',
      'lib/keep.tmp',
      '.env',
      '.git/config',
      'node_modules/m/i.js',
      'lib/__pycache__/a.pyc',
      'lib/a.pyc',
    ]) {
      put(path)
    }
    symlinkSync('..', join(folder.path, 'lib', 'loop'))
    const { files, isCut } = await scanPack(folder.path)
    expect({ files, isCut }).toEqual({
      files: ['actions/a.sh', 'actions/a.yaml', 'lib/build/x', 'lib/keep.tmp', 'lib/loop', 'pack.yaml'],
      isCut: false,
    })
    expect(await scanPack(folder.path, true)).toEqual(await scanPack(folder.path))
  })

  test('is cut where it would never end', async () => {
    mkdirSync(join(folder.path, Array.from({ length: 30 }, () => 'd').join('/')), { recursive: true })
    expect(await scanPack(folder.path)).toMatchObject({ isCut: true })
  })

  test('a .gitignore that would match for ever is not matched', async () => {
    const name = `${'a'.repeat(240)}b`
    put('.gitignore', `${'*a'.repeat(100)}c\n${'*a*a'.repeat(1)}c\n*.log\n`)
    put(name)
    put('x.log')
    const isHidden = await createFilter(folder.path)
    expect([isHidden(name, false), isHidden('x.log', false)]).toEqual([false, true])
    expect((await scanPack(folder.path)).files).toContain(name)
  })

  test('a folder that is missing is an error', async () => {
    await expect(scanPack(join(folder.path, 'nothing'))).rejects.toThrow('ENOENT')
  })
})

describe('the fingerprint', () => {
  const fingerprint = async (): Promise<string> => {
    const later = (await scanPack(folder.path)).fingerprint
    expect((await scanPack(folder.path, true)).fingerprint).toBe(later)
    return later
  }

  test('is the same when nothing has changed', async () => {
    expect(await fingerprint()).toBe(await fingerprint())
  })

  test.each<[string, () => void]>([
    ['metadata is changed', () => put('actions/a.yaml', 'name: b\n')],
    ['metadata is appended to', () => appendFileSync(join(folder.path, 'actions/a.yaml'), 'x: 1\n')],
    ['a file comes', () => put('lib/new.py')],
    ['a file goes', () => rmSync(join(folder.path, 'actions/a.sh'))],
    ['the manifest is changed', () => put('pack.yaml', 'name: b\n')],
    ['a schema comes', () => put('config.schema.yaml', 'a: {}\n')],
    ['ignored metadata comes', () => put('.gitignore', 'actions/')],
    [
      'the time is set back to what it was',
      () => {
        put('actions/a.yaml', 'name: b\n')
        utimesSync(join(folder.path, 'actions/a.yaml'), new Date(0), new Date(0))
      },
    ],
    ['a link leads nowhere', () => symlinkSync('loop.yaml', join(folder.path, 'actions/loop.yaml'))],
  ])('is another when %s', async (_, change) => {
    const before = await fingerprint()
    change()
    expect(await fingerprint()).not.toBe(before)
  })

  test('is the same when a script is changed: it is read when it runs', async () => {
    const before = await fingerprint()
    put('actions/a.sh', 'false\n')
    expect(await fingerprint()).toBe(before)
  })
})
