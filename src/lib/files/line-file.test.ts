import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { openLineFile, type LineFile, type LineFileReport, type Rotation } from './line-file.ts'

let folder: TemporaryFolder
let path: string
let file: LineFile | undefined
/** What was reported, in words. */
let reports: string[]

beforeEach(() => {
  folder = makeFolder()
  path = join(folder.path, 'logs', 'a.log')
  reports = []
})
afterEach(async () => {
  await file?.close()
  file = undefined
  folder.remove()
})

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error)

function open(at = path, rotation?: Rotation): LineFile {
  const report: LineFileReport = {
    failed: (error) => reports.push(codeOf(error)),
    resumed: (lines) => reports.push(`resumed, ${lines} lost`),
    lost: (lines) => reports.push(`${lines} lost`),
    notRotated: (error) => reports.push(`not rotated: ${codeOf(error)}`),
  }
  file = openLineFile(at, report, rotation)
  return file
}

const mode = (at: string): number => statSync(at).mode & 0o777
const linesOf = (at: string): string[] => readFileSync(at, 'utf8').split('\n').slice(0, -1)

describe('the file', () => {
  test('is made for its owner alone, with its folder, and added to', async () => {
    const lines = open()
    expect([mode(join(path, '..')), mode(path)]).toEqual([0o700, 0o600])
    lines.append('one')
    lines.append('two ä')
    await lines.close()
    open().append('three')
    await file?.close()
    expect(readFileSync(path, 'utf8')).toBe('one\ntwo ä\nthree\n')
    expect(reports).toEqual([])
  })

  test('that exists keeps its mode', async () => {
    mkdirSync(join(path, '..'))
    writeFileSync(path, 'before\n')
    chmodSync(path, 0o640)
    open().append('after')
    await file?.close()
    expect(mode(path)).toBe(0o640)
    expect(linesOf(path)).toEqual(['before', 'after'])
  })

  test('that ends in half a line, after a crash, goes on in a new one', async () => {
    mkdirSync(join(path, '..'))
    writeFileSync(path, 'before\nbro')
    open().append('after')
    await file?.close()
    expect(linesOf(path)).toEqual(['before', 'bro', 'after'])
  })

  test('cannot be a folder, below a file, or a pipe', () => {
    mkdirSync(path, { recursive: true })
    expect(() => open()).toThrow('EISDIR')
    writeFileSync(join(folder.path, 'plain'), '')
    expect(() => open(join(folder.path, 'plain', 'x', 'a.log'))).toThrow('ENOTDIR')
    expect(() => open('/proc/nothing/a.log')).toThrow('ENOENT')
    execFileSync('mkfifo', [join(folder.path, 'pipe')])
    expect(() => open(join(folder.path, 'pipe'))).toThrow('ENXIO')
  })

  test('takes lines up to the end, and none after it', async () => {
    const lines = open()
    for (let index = 0; index < 50_000; index += 1) lines.append(`line ${index}`)
    await lines.close()
    lines.append('late')
    await lines.close()
    expect(linesOf(path)).toEqual(Array.from({ length: 50_000 }, (_, index) => `line ${index}`))
  })
})

describe('rotation', () => {
  test('under load loses no line and doubles none', async () => {
    const lines = open()
    const names: string[] = []
    let count = 0
    for (let round = 0; round < 20; round += 1) {
      for (let turn = 0; turn < 20; turn += 1) {
        for (let index = 0; index < 50; index += 1) lines.append(`line ${count++}`)
        await new Promise((resolve) => setImmediate(resolve))
      }
      const name = `${path}.${round}`
      renameSync(path, name)
      names.push(name)
      lines.append(`line ${count++}`)
      await lines.reopen()
      expect(existsSync(path)).toBe(true)
    }
    await lines.close()
    const all = [...names, path].flatMap(linesOf)
    expect(all).toEqual(Array.from({ length: count }, (_, index) => `line ${index}`))
    expect(reports).toEqual([])
  })

  test('goes on in the renamed file while there can be no new one', async () => {
    const lines = open()
    renameSync(path, `${path}.1`)
    mkdirSync(path)
    await lines.reopen()
    expect(reports).toEqual(['EISDIR'])
    lines.append('kept')
    await waitFor('the line', () => linesOf(`${path}.1`).length === 1)
    rmSync(path, { recursive: true })
    await waitFor('the new file', () => existsSync(path))
    lines.append('new')
    await lines.close()
    expect(linesOf(path)).toEqual(['new'])
    expect(reports).toEqual(['EISDIR', 'resumed, 0 lost'])
  })

  test('makes the folder again', async () => {
    const lines = open()
    renameSync(join(path, '..'), join(folder.path, 'old'))
    await lines.reopen()
    lines.append('new')
    await lines.close()
    expect(linesOf(path)).toEqual(['new'])
    expect([mode(join(path, '..')), mode(path)]).toEqual([0o700, 0o600])
  })

  test('into a file that ends in half a line goes on in a new one', async () => {
    const lines = open()
    lines.append('before')
    await waitFor('the line', () => linesOf(path).length === 1)
    renameSync(path, `${path}.1`)
    writeFileSync(path, 'bro')
    await lines.reopen()
    lines.append('after')
    await lines.close()
    expect([linesOf(`${path}.1`), linesOf(path)]).toEqual([['before'], ['bro', 'after']])
  })

  test('a file that was deleted is made again without being told', async () => {
    const lines = open()
    unlinkSync(path)
    await waitFor('a file', () => {
      lines.append('again')
      return existsSync(path)
    })
    await lines.close()
    expect(new Set(linesOf(path))).toEqual(new Set(['again']))
  })
})

describe('without being told', () => {
  const cases: [string, () => void][] = [
    ['moved', () => renameSync(path, join(folder.path, 'moved'))],
    ['moved with its folder', () => renameSync(join(path, '..'), join(folder.path, 'old'))],
    [
      'replaced by another file',
      () => {
        renameSync(path, join(folder.path, 'moved'))
        writeFileSync(path, 'other\n')
      },
    ],
  ]
  test.each(cases)('a file that was %s is made again or continued at its path', async (_, move) => {
    const lines = open()
    lines.append('before')
    await waitFor('the first line', () => linesOf(path).length === 1)
    move()
    await waitFor('a line at the path', () => {
      lines.append('again')
      return existsSync(path) && linesOf(path).includes('again')
    })
    await lines.close()
    expect(linesOf(path)).not.toContain('before')
    expect(reports).toEqual([])
  })
})

describe('a full disk', () => {
  test('is reported once; lines wait for room', async () => {
    mkdirSync(join(path, '..'))
    symlinkSync('/dev/full', path)
    const lines = open()
    lines.append('one')
    await waitFor('the report', () => reports.length > 0)
    lines.append('two')
    unlinkSync(path)
    await waitFor('the lines', () => existsSync(path) && linesOf(path).length === 2)
    expect(linesOf(path)).toEqual(['one', 'two'])
    expect(reports).toEqual(['ENOSPC', 'resumed, 0 lost'])
  })

  test('costs bounded memory, and tells how many lines it has cost', async () => {
    mkdirSync(join(path, '..'))
    symlinkSync('/dev/full', path)
    const lines = open()
    const long = 'x'.repeat(1_000_000)
    for (let index = 0; index < 20; index += 1) lines.append(`${index} ${long}`)
    await waitFor('the report', () => reports.length > 0)
    unlinkSync(path)
    await waitFor('the resumption', () => reports.length > 1)
    await lines.close()
    const kept = linesOf(path).map((line) => line.split(' ')[0])
    expect(kept.length).toBeLessThan(11)
    expect(kept).toEqual(Array.from(kept, (_, index) => String(index)))
    expect(reports[1]).toBe(`resumed, ${20 - kept.length} lost`)
  })

  test('leaves no half line behind', async () => {
    // A limit on the size of files ends a write in the middle, as a full disk does.
    const source = `
      process.on('SIGXFSZ', () => undefined)
      const { openLineFile } = await import(${JSON.stringify(new URL('./line-file.ts', import.meta.url).href)})
      const file = openLineFile(${JSON.stringify(path)}, {
        failed: (error) => console.log(error.code), resumed: () => console.log('resumed'), lost: (n) => console.log(n),
      })
      for (let index = 0; index < 100; index += 1) file.append('line ' + index + 'x'.repeat(90))
      await file.close()`
    const run = 'ulimit -f 4; exec "$0" --input-type=module -e "$1"'
    const stdout = execFileSync('bash', ['-c', run, process.execPath, source], { encoding: 'utf8' })
    const [code, lost] = stdout.trim().split('\n')
    expect(code).toBe('EFBIG')
    const lines = linesOf(path)
    expect(readFileSync(path, 'utf8').endsWith('\n')).toBe(true)
    expect(lines.length).toBeGreaterThan(10)
    expect(lines).toEqual(lines.map((_, index) => `line ${index}${'x'.repeat(90)}`))
    expect(Number(lost)).toBe(100 - lines.length)
  })

  test('does not hold the end up, which tells what is missing', async () => {
    const lines = open('/dev/full')
    lines.append('one')
    lines.append('two')
    await lines.close()
    expect(reports).toEqual(['ENOSPC', '2 lost'])
  })
})

describe('a file of limited size', () => {
  const numbers = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `ü${from + i}`)
  const backups = (count: number): string[] => Array.from({ length: count }, (_, i) => `${path}.${count - i}`)

  test('gives way to a new one; the newest old ones are kept, and none is larger', async () => {
    const lines = open(path, { maxBytes: 1000, backupCount: 3 })
    for (const line of numbers(1000, 3000)) {
      lines.append(line)
      if (line.endsWith('7')) await new Promise((resolve) => setImmediate(resolve))
    }
    await lines.close()
    // Each line has seven bytes.
    expect(backups(3).map((name) => statSync(name).size)).toEqual([994, 994, 994])
    expect(existsSync(`${path}.4`)).toBe(false)
    const kept = [...backups(3), path].flatMap(linesOf)
    expect(kept).toEqual(numbers(3000 - kept.length, 3000))
    expect([mode(path), mode(`${path}.1`)]).toEqual([0o600, 0o600])
    expect(reports).toEqual([])
  })

  test('that is too large already, or is emptied by somebody else, counts as it is', async () => {
    mkdirSync(join(path, '..'))
    writeFileSync(path, `${'x'.repeat(2000)}\n`)
    const lines = open(path, { maxBytes: 1000, backupCount: 1 })
    lines.append('one')
    await lines.close()
    expect([linesOf(path), statSync(`${path}.1`).size]).toEqual([['one'], 2001])
  })

  test('holds a line that is larger than itself alone', async () => {
    const lines = open(path, { maxBytes: 10, backupCount: 5 })
    for (const line of ['a', 'b'.repeat(50), 'c']) lines.append(line)
    await lines.close()
    expect([...backups(2), path].map(linesOf)).toEqual([['a'], ['b'.repeat(50)], ['c']])
  })

  test('keeps all files of a time, whatever their number, and then removes those beyond the number', async () => {
    const keep = { maxBytes: 10, backupCount: 2, keptSeconds: 3600 }
    const lines = open(path, keep)
    for (let n = 0; n < 6; n += 1) lines.append(`line ${n} .`)
    await lines.close()
    expect([...backups(5), path].map(linesOf)).toEqual(Array.from({ length: 6 }, (_, n) => [`line ${n} .`]))
    // Neither a gap in the numbers nor other names matter.
    unlinkSync(`${path}.4`)
    writeFileSync(`${path}.3.gz`, 'packed')
    const old = new Date(Date.now() - 3601_000)
    for (const n of [1, 3, 5]) utimesSync(`${path}.${n}`, old, old)
    const again = open(path, keep)
    again.append('line 6 .')
    await again.close()
    const left = readdirSync(join(path, '..')).filter((name) => name !== 'a.log')
    expect(left.sort()).toEqual(['a.log.1', 'a.log.2', 'a.log.3', 'a.log.3.gz'])
    expect([1, 2, 3].map((n) => linesOf(`${path}.${n}`))).toEqual([['line 5 .'], ['line 4 .'], ['line 3 .']])
    expect(reports).toEqual([])
  })

  test('that cannot be renamed grows on, which is told once', async () => {
    mkdirSync(join(`${path}.1`, 'full'), { recursive: true })
    const lines = open(path, { maxBytes: 100, backupCount: 1 })
    for (const line of numbers(1000, 1100)) {
      lines.append(line)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await lines.close()
    expect(linesOf(path)).toEqual(numbers(1000, 1100))
    expect(reports).toEqual([expect.stringMatching(/^not rotated: E(ISDIR|NOTEMPTY)$/)])
  })

  test('and others that rename it lose no line and double none', async () => {
    const lines = open(path, { maxBytes: 500, backupCount: 1000 })
    const taken: string[] = []
    for (let round = 0; round < 30; round += 1) {
      for (const line of numbers(1000 + round * 100, 1100 + round * 100)) lines.append(line)
      await new Promise((resolve) => setImmediate(resolve))
      const name = `${path}-${round}`
      if (existsSync(path)) {
        renameSync(path, name)
        taken.push(name)
      }
      await lines.reopen()
    }
    await lines.close()
    const names = readdirSync(join(path, '..')).map((name) => join(path, '..', name))
    expect(names.flatMap(linesOf).sort()).toEqual(numbers(1000, 4000))
    expect(taken.length).toBeGreaterThan(0)
  })

  test('a device is not renamed', async () => {
    const lines = open('/dev/null', { maxBytes: 1, backupCount: 1 })
    for (const line of numbers(1000, 1010)) lines.append(line)
    await lines.close()
    expect([existsSync('/dev/null.1'), reports]).toEqual([false, []])
  })
})
