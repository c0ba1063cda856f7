/** Configuration files of StackStorm (docs/compatibility.md). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig, optionEntries, renamedOptions } from '../../src/config/index.ts'
import { calledAsStackstorm } from '../../src/core/compat/index.ts'
import { makeFolder } from '../helpers/folders.ts'
import { projectRoot } from '../helpers/server.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

const theirs = `# Of the packages.
[system]
base_path = ${folder.path}
[api]
host = 127.0.0.1 # of the listener
port = 9111 ; and its port
allow_origin = http://a.example # a comment
mask_secrets = None
[auth]
enable = False
[metrics]
driver = noop
prefix = None
[database]
host = 127.0.0.1
password = secret#1
[coordination]
url = redis://:x@127.0.0.1
[made_up]
option = 1
`
const file = join(folder.path, 'st2.conf')
writeFileSync(file, theirs)

const on = { SVC_COMPAT__STACKSTORM: 'True' }

it('is read with the option on: comments behind values, None, and options without effect in one note', () => {
  for (const request of [
    { files: [file], env: on },
    { files: [file], env: {}, flags: { 'compat.stackstorm': 'True' } },
  ]) {
    const { config, warnings, notes } = loadConfig({ ...request, cwd: folder.path })
    expect([config.api.host, config.api.port, config.api.allow_origin]).toEqual([
      '127.0.0.1',
      9111,
      ['http://a.example'],
    ])
    expect([config.api.mask_secrets, config.metrics.prefix, config.compat.stackstorm]).toEqual([true, '', true])
    expect(warnings.filter((warning) => warning.includes('unknown option'))).toEqual([])
    expect(notes.join()).toContain('Options without effect')
    for (const name of ['database.host', 'coordination.url', 'made_up.option']) expect(notes.join()).toContain(name)
  }
})

it('says so itself: [compat] stackstorm in the file', () => {
  const own = join(folder.path, 'own.conf')
  writeFileSync(own, `${theirs}[compat]\nstackstorm = True\n`)
  expect(loadConfig({ files: [own], env: {}, cwd: folder.path }).config.api.port).toBe(9111)
})

it('says False itself: neither the name of the program nor its own comments change that', () => {
  const own = join(folder.path, 'off.conf')
  writeFileSync(own, `[system]\nbase_path = ${folder.path}\n[compat]\nstackstorm = False\n`)
  const called = { [calledAsStackstorm]: 'True' }
  const isOn = (request: Parameters<typeof loadConfig>[0]): boolean => loadConfig(request).config.compat.stackstorm
  expect(isOn({ files: [], env: called, cwd: folder.path })).toBe(true)
  expect(isOn({ files: [own], env: called, cwd: folder.path })).toBe(false)
  expect(isOn({ files: [own], env: { ...called, ...on }, cwd: folder.path })).toBe(true)
  expect(isOn({ files: [own], env: called, flags: { 'compat.stackstorm': 'True' }, cwd: folder.path })).toBe(true)
  // How the file is read is decided by it too.
  writeFileSync(own, `[api]\nport = 9111 # port\n[compat]\nstackstorm = False\n`)
  expect(() => loadConfig({ files: [own], env: called, cwd: folder.path })).toThrow('on a separate line')
})

describe('the configuration of its packages', () => {
  const packaged = join(import.meta.dirname, 'st2.conf')
  let section = ''
  /** Section and name, and the line. */
  const options = readFileSync(packaged, 'utf8')
    .split('\n')
    .flatMap((line): [key: string, section: string, line: string][] => {
      section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section
      const name = /^(\w+) =/.exec(line)?.[1]
      return name === undefined ? [] : [[`${section}.${name}`, section, line]]
    })
  const ours = new Set(optionEntries.map(({ key }) => key))
  const renamed = options.filter(([key]) => Object.hasOwn(renamedOptions, key))
  const same = options.filter(([key]) => ours.has(key))
  const others = options.filter(([key]) => !ours.has(key) && !Object.hasOwn(renamedOptions, key))

  it('is read whole: the options without effect are in one note', () => {
    const { warnings, notes, risks } = loadConfig({ files: [packaged], env: on, cwd: folder.path })
    expect([warnings, notes]).toEqual([risks, [expect.stringMatching(/^Options without effect: /)]])
    const set = others.filter(([, , line]) => !line.endsWith('= None')).map(([key]) => key)
    expect(notes.join().replace('Options without effect: ', '').split(', ').toSorted()).toEqual(set.toSorted())
  })

  it('has as many options with and without effect as the documentation says', () => {
    const documentation = readFileSync(join(projectRoot, 'docs/compatibility.md'), 'utf8').replace(/\s+/g, ' ')
    expect(documentation).toContain(
      `Of the ${options.length} options that StackStorm's packages can set, svc has ${same.length} in the same section under the same name and ${renamed.length} under a newer name; ${others.length} are without effect.`,
    )
  })

  it('each without effect is named when it is set', () => {
    const file = join(folder.path, 'others.conf')
    const text = others.map(([, inside, line]) => `[${inside}]\n${line.replace(/= None$/, '= 1')}\n`).join('')
    writeFileSync(file, text)
    const { notes } = loadConfig({ files: [file], env: on, cwd: folder.path })
    for (const [key] of others) expect(notes.join()).toContain(key)
  })
})

it('with the option off a comment behind a value is refused with advice', () => {
  expect(() => loadConfig({ files: [file], env: {}, cwd: folder.path })).toThrow('write the comment on a separate line')
})

it('is found where no configuration of ours is, and only if it is asked for', () => {
  const empty = makeFolder()
  const request = { cwd: empty.path, systemFile: join(empty.path, 'none.conf'), stackstormFile: file }
  expect(loadConfig({ ...request, env: on }).files).toEqual([file])
  expect(loadConfig({ ...request, env: {} }).files).toEqual([])
  writeFileSync(join(empty.path, 'svc.conf'), '[api]\nport = 9112\n')
  expect(loadConfig({ ...request, env: on }).files).toEqual(['svc.conf'])
  empty.remove()
})
