/** Configuration files of StackStorm (docs/compatibility.md). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import { makeFolder } from '../helpers/folders.ts'

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
