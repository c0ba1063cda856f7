import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeProblem } from '../../lib/text/metadata.ts'
import { readPack, type PackContent } from './read.ts'

const manifest = 'name: Mine\ndescription: d\nversion: 1.2.3\nauthor: a\n'

let root: string
let folder: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'svc-pack-'))
  folder = join(root, 'mine')
  put('pack.yaml', manifest)
})

afterEach(() => rmSync(root, { recursive: true }))

function put(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), content)
}

async function read(): Promise<PackContent> {
  const content = await readPack(folder)
  if (!('ref' in content)) throw new Error(content.problems.map(describeProblem).join('\n'))
  return content
}

async function problemsOfManifest(text: string): Promise<string[]> {
  put('pack.yaml', text)
  const content = await readPack(folder)
  expect(content).not.toHaveProperty('ref')
  return content.problems.map(describeProblem)
}

describe('the manifest', () => {
  test('is kept whole, its ref is the name of the folder when it has none', async () => {
    put('pack.yaml', `${manifest}stackable: 1\nemail: ""\nsvc_version: ">=1.0.0, <2.0.0"\npython_versions: ["3"]\n`)
    const content = await read()
    expect(content.ref).toBe('mine')
    expect(content.manifest).toMatchObject({ name: 'Mine', version: '1.2.3', stackable: 1 })
    expect(content.problems).toEqual([])
  })

  test('its own ref wins', async () => {
    put('pack.yaml', `${manifest}ref: other\n`)
    expect((await read()).ref).toBe('other')
  })

  test.each([
    ['name: x\n', `pack.yaml: 'description' is a required property`],
    [manifest.replace('1.2.3', '1.2'), `pack.yaml:3 (version): version: 1.2 is not of type 'string'`],
    [manifest.replace('1.2.3', 'one'), `pack.yaml:3 (version): version: 'one' does not match`],
    [`${manifest}ref: Big\n`, `pack.yaml:5 (ref): ref: 'Big' does not match`],
    [`${manifest}email: nobody\n`, `pack.yaml:5 (email): email: 'nobody' is not a 'email'`],
    [
      `${manifest}python_versions: [3]\n`,
      `pack.yaml:5 (python_versions.0): python_versions[0]: 3 is not one of ['2', '3']`,
    ],
    ['a: [', 'pack.yaml:1: '],
    ['- a\n', `pack.yaml: ['a'] is not of type 'object'`],
  ])('%j is refused', async (text, problem) => {
    expect(await problemsOfManifest(text)).toEqual([expect.stringContaining(problem)])
  })

  test('missing, there is no pack', async () => {
    rmSync(join(folder, 'pack.yaml'))
    expect(await readPack(folder)).toEqual({ problems: [{ file: 'pack.yaml', message: 'the file is missing' }] })
  })

  test('a folder whose name cannot be a ref needs one', async () => {
    folder = join(root, 'My-Pack')
    expect(await problemsOfManifest(manifest)).toEqual([expect.stringContaining('pack.yaml (ref): ref is needed')])
  })
})

describe('metadata files', () => {
  test('YAML and JSON directly in the folder, in order of names; all else is ignored', async () => {
    put('actions/b.yaml', 'name: b\n')
    put('actions/a.json', '{"name": "a"}')
    put('actions/.hidden.yaml', ': [')
    put('actions/script.py', 'print(1)')
    put('actions/c.yml', 'name: c\n')
    put('actions/workflows/deep.yaml', ': [')
    mkdirSync(join(folder, 'actions/folder.yaml'))
    const content = await read()
    expect(content.actions.files.map(({ path, document }) => [path, document.value])).toEqual([
      ['actions/a.json', { name: 'a' }],
      ['actions/b.yaml', { name: 'b' }],
      ['actions/c.yml', { name: 'c' }],
    ])
    expect(content.problems).toEqual([])
  })

  test('a pack without actions is a pack', async () => {
    expect((await read()).actions.files).toEqual([])
  })

  test('trigger types and rules are read likewise', async () => {
    put('triggers/event.yaml', 'name: event\n')
    put('rules/react.yaml', 'name: react\n')
    put('rules/bad.json', '{')
    put('later/later.yaml', ': [')
    const content = await read()
    expect(content.triggers.files.map(({ path }) => path)).toEqual(['triggers/event.yaml'])
    expect(content.rules.files.map(({ path, document }) => [path, document.value])).toEqual([
      ['rules/react.yaml', { name: 'react' }],
    ])
    expect([...content.rules.paths]).toEqual(['rules/bad.json', 'rules/react.yaml'])
    expect(content.problems.map(({ file }) => file)).toEqual(['rules/bad.json'])
  })

  test('a broken one does not stop the others', async () => {
    put('actions/bad.yaml', 'name: x\nparameters: [\n')
    put('actions/binary.yaml', Uint8Array.of(0x61, 0x3a, 0x20, 0xff, 0xfe))
    put('actions/good.yaml', 'name: good\n')
    put('actions/huge.yaml', `name: ${'x'.repeat(1_100_000)}\n`)
    const content = await read()
    expect(content.actions.files.map(({ path }) => path)).toEqual(['actions/good.yaml'])
    expect([...content.actions.paths]).toHaveLength(4)
    expect(content.problems.map(describeProblem)).toEqual([
      expect.stringMatching(/^actions\/bad\.yaml:\d: /),
      'actions/binary.yaml: the file is not valid UTF-8',
      'actions/huge.yaml: the file is larger than 1048576 bytes',
    ])
  })

  test('nothing outside of the pack is read', async () => {
    writeFileSync(join(root, 'secret.yaml'), 'name: secret\n')
    put('actions/inside.yaml', 'name: inside\n')
    symlinkSync(join(root, 'secret.yaml'), join(folder, 'actions/leak.yaml'))
    symlinkSync('inside.yaml', join(folder, 'actions/link.yaml'))
    symlinkSync('nowhere.yaml', join(folder, 'actions/loose.yaml'))
    const content = await read()
    expect(content.actions.files.map(({ path }) => path)).toEqual(['actions/inside.yaml', 'actions/link.yaml'])
    expect(content.problems.map(describeProblem)).toEqual([
      'actions/leak.yaml: the file lies outside of the folder; links may not lead out of it',
      'actions/loose.yaml: the file is missing',
    ])
  })

  test('a named pipe is no file and holds nothing up', async () => {
    mkdirSync(join(folder, 'actions'))
    execFileSync('mkfifo', [join(folder, 'actions/pipe.yaml')])
    expect((await read()).problems).toEqual([{ file: 'actions/pipe.yaml', message: 'this is not a regular file' }])
  })
})
