import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { CliFailure } from '../failures.ts'
import { readRecordFile } from './record-file.ts'

const folder = makeFolder()
const { write } = folder
afterAll(() => folder.remove())

async function failureOf(path: string): Promise<CliFailure> {
  const error = await readRecordFile(path).catch((reason: unknown) => reason)
  if (error instanceof CliFailure) return error
  throw new Error(`not refused: ${path}`, { cause: error })
}

describe('files of one record', () => {
  test('YAML as the files of packs, or JSON', async () => {
    const rule = { name: 'r', enabled: true, criteria: { 'trigger.a': { type: 'eq', pattern: '2030-01-01' } } }
    const yaml = 'name: r\nenabled: yes\ncriteria:\n  trigger.a: {type: eq, pattern: "2030-01-01"}\n'
    for (const name of ['a.yaml', 'a.yml', 'a.YAML']) expect(await readRecordFile(write(name, yaml))).toEqual(rule)
    expect(await readRecordFile(write('a.json', JSON.stringify(rule)))).toEqual(rule)
  })

  test.each<[string, string, string | Uint8Array, RegExp]>([
    ['an unknown ending', 'x.txt', '{}', /^The file \S+x\.txt must end with \.json, \.yaml or \.yml$/],
    ['no ending', 'yaml', '{}', /must end with/],
    ['a fault in YAML', 'x.yaml', 'name: r\nenabled: true\naction: {ref: [\n', /x\.yaml:\d+: /],
    ['a fault in JSON', 'x.json', '{\n"name": "r",\n}', /x\.json:3: .*JSON/],
    ['a duplicate key', 'x.yaml', 'name: r\npack: p\nname: q\n', /x\.yaml:3: /],
    [
      'several documents',
      'x.yaml',
      'a: 1\n---\na: 2\n',
      /x\.yaml:2: one YAML document is needed, and here another one begins$/,
    ],
    ['nothing', 'x.yaml', '# nothing\n', /x\.yaml: one YAML document .* the file has none$/],
    ['null', 'x.json', 'null', /x\.json: the file is empty; it must contain a mapping$/],
    ['a list', 'x.json', '[{"name": "r"}]', /x\.json: the file must contain a mapping, not a list$/],
    ['text', 'x.yaml', 'hello', /x\.yaml: the file must contain a mapping, not a string$/],
    ['foreign types', 'x.yaml', 'a: !!js/function "x"', /x\.yaml:1: /],
    ['a prototype', 'x.json', '{"__proto__": {"a": 1}}', /x\.json \(__proto__\): .*not allowed/],
    ['bytes', 'x.yaml', new Uint8Array([0x61, 0x3a, 0xff]), /x\.yaml is not UTF-8$/],
    ['too much', 'x.yaml', '#'.repeat(1024 * 1024 + 1), /x\.yaml is larger than 1048576 bytes$/],
  ])('%s: refused, with the place', async (_, name, content, message) => {
    const { message: said, exitCode } = await failureOf(write(name, content))
    expect([said, exitCode]).toEqual([expect.stringMatching(message), 2])
  })

  test('aliases that stand for more than they say are refused', async () => {
    const lines = Array.from(
      { length: 12 },
      (_, n) => `a${n}: &a${n} [${n === 0 ? '1' : `*a${n - 1}, *a${n - 1}, *a${n - 1}`}]`,
    )
    expect((await failureOf(write('x.yaml', lines.join('\n')))).message).toMatch(/stands for more than \d+ values/)
  })

  test('a file that is missing, or a folder', async () => {
    expect((await failureOf(join(folder.path, 'none.yaml'))).message).toMatch(/none\.yaml does not exist$/)
    mkdirSync(join(folder.path, 'folder.yaml'))
    expect((await failureOf(join(folder.path, 'folder.yaml'))).message).toMatch(/folder\.yaml is not a file$/)
  })
})
