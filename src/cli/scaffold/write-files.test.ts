import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canMount, mountDisk } from '../../../tests/helpers/disks.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { writeFiles } from './write-files.ts'

let folder: TemporaryFolder
const at = (...names: string[]): string => join(folder.path, ...names)
beforeEach(() => {
  folder = makeFolder()
})
afterEach(() => folder.remove())

describe('new files', () => {
  test('get their folders, their text and their permissions, and leave nothing else', async () => {
    await writeFiles([
      { path: at('a/b/run.sh'), text: 'run', isExecutable: true },
      { path: at('a/ä\n.yaml'), text: 'text' },
    ])
    expect([readdirSync(at('a')).toSorted(), readdirSync(at('a/b'))]).toEqual([['b', 'ä\n.yaml'], ['run.sh']])
    expect(readFileSync(at('a/ä\n.yaml'), 'utf8')).toBe('text')
    expect([lstatSync(at('a/b/run.sh')).mode & 0o111, lstatSync(at('a/ä\n.yaml')).mode & 0o111]).toEqual([0o111, 0])
  })

  test('never replace what is there, not even a link to nothing, and all obstacles are named', async () => {
    writeFileSync(at('one'), 'mine')
    symlinkSync('nowhere', at('two'))
    mkdirSync(at('three'))
    const planned = ['one', 'two', 'three', 'new'].map((name) => ({ path: at(name), text: 'theirs', replaces: false }))
    await expect(writeFiles(planned)).rejects.toThrow(
      `These files exist already, so nothing was written:\n  ${at('one')}\n  ${at('two')}\n  ${at('three')}\n`,
    )
    expect([readFileSync(at('one'), 'utf8'), readdirSync(folder.path).toSorted()]).toEqual([
      'mine',
      ['one', 'three', 'two'],
    ])
  })

  test('a file where a folder is needed', async () => {
    writeFileSync(at('one'), 'mine')
    const written = writeFiles([
      { path: at('new/folder/file'), text: 'x' },
      { path: at('one/file'), text: 'x' },
    ])
    await expect(written).rejects.toThrow(
      `Cannot write ${at('one/file')}: ${at('one')} is a file, not a directory. Nothing was written.`,
    )
    expect(readdirSync(folder.path)).toEqual(['one'])
  })

  test('a folder that refuses new folders', async () => {
    await expect(writeFiles([{ path: '/proc/none/file', text: 'x' }])).rejects.toThrow('Cannot write /proc/none/file: ')
  })
})

describe('replaced and removed files', () => {
  test('change together', async () => {
    writeFileSync(at('one'), 'old')
    writeFileSync(at('gone'), 'old')
    await writeFiles([{ path: at('one'), text: 'new', replaces: true }], [at('gone')])
    expect([readFileSync(at('one'), 'utf8'), readdirSync(folder.path)]).toEqual(['new', ['one']])
  })

  test('are as before when one of them cannot be removed', async () => {
    writeFileSync(at('one'), 'old')
    writeFileSync(at('gone'), 'old')
    const written = writeFiles(
      [
        { path: at('one'), text: 'new', replaces: true },
        { path: at('sub/two'), text: 'new' },
      ],
      [at('gone'), at('never')],
    )
    await expect(written).rejects.toThrow(`Cannot write ${at('never')}: it does not exist. Nothing was written.`)
    expect(readdirSync(folder.path).toSorted()).toEqual(['gone', 'one'])
    expect([readFileSync(at('one'), 'utf8'), readFileSync(at('gone'), 'utf8')]).toEqual(['old', 'old'])
  })
})

test.skipIf(!canMount())('a disk that gets full on the way: nothing is left', async () => {
  const disk = mountDisk(at('disk'), { megabytes: 1 })
  try {
    const planned = [
      { path: at('disk/new/small'), text: 'small' },
      { path: at('disk/new/large'), text: 'x'.repeat(2_000_000) },
    ]
    await expect(writeFiles(planned)).rejects.toThrow(
      `Cannot write ${at('disk/new/large')}: the disk is full. Nothing was written.`,
    )
    expect(readdirSync(at('disk'))).toEqual([])
  } finally {
    disk.unmount()
  }
})
