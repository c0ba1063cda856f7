import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { parseSource, type FindRepository } from './sources.ts'

const shipped = new Map([['examples', '/program/examples']])
const findRepository: FindRepository = (ref) =>
  Promise.resolve(
    ref === 'known'
      ? { url: 'https://git.example/team/stackstorm-other.git', mayBeLocal: false }
      : { why: 'no index has it' },
  )
let folder: TemporaryFolder
let at: (name: string) => string

beforeAll(() => {
  folder = makeFolder()
  at = (name) => join(folder.path, name)
  for (const name of ['web', 'a=b', 'tree']) mkdirSync(at(name))
  for (const name of ['web-1.2.tar.gz', 'web.tgz', 'web.tar', 'web.zip']) writeFileSync(at(name), '')
  execFileSync('git', ['init', '-q', at('tree')])
  execFileSync('git', ['init', '-q', '--bare', at('stackstorm-bare.git')])
})
afterAll(() => folder.remove())

describe('what can be installed', () => {
  it.each([
    ['examples', { kind: 'shipped', path: '/program/examples', name: 'examples' }],
    ['examples=1.0.0', { kind: 'shipped', version: '1.0.0' }],
    ['https://git.example/team/stackstorm-web.git', { kind: 'git', name: 'web' }],
    [
      'https://git.example/team/web/=v1.2.0',
      { kind: 'git', url: 'https://git.example/team/web/', ref: 'v1.2.0', name: 'web' },
    ],
    ['https://git.example/web?a=b=feature/x', { kind: 'git', url: 'https://git.example/web?a=b', ref: 'feature/x' }],
    ['https://robot@[::1]:8443/web.git', { kind: 'git', name: 'web' }],
    [
      'ssh://git@git.example:2222/web.git=abcdef0',
      { kind: 'git', url: 'ssh://git@git.example:2222/web.git', ref: 'abcdef0' },
    ],
    ['git@git.example:team/web.git', { kind: 'git', url: 'git@git.example:team/web.git', name: 'web' }],
    ['known', { kind: 'git', url: 'https://git.example/team/stackstorm-other.git', name: 'known' }],
    ['known=1.2.0', { kind: 'git', name: 'known', ref: '1.2.0' }],
    ['git@git.example:web=main', { kind: 'git', url: 'git@git.example:web', ref: 'main', name: 'web' }],
  ])('%s', async (text, source) => {
    expect(await parseSource(text, shipped, findRepository)).toMatchObject({ text, ...source })
  })

  it.each([
    ['web', { kind: 'folder', name: 'web' }],
    ['web=1.2.0', { kind: 'folder', name: 'web', version: '1.2.0' }],
    ['a=b', { kind: 'folder', name: 'a=b' }],
    ['tree', { kind: 'folder', name: 'tree' }],
    ['tree=main', { kind: 'git', name: 'tree', ref: 'main' }],
    ['stackstorm-bare.git', { kind: 'git', name: 'bare' }],
    ['web-1.2.tar.gz', { kind: 'archive', name: 'web-1.2' }],
    ['web.tgz=1.0.0', { kind: 'archive', name: 'web', version: '1.0.0' }],
    ['web.tar', { kind: 'archive', name: 'web' }],
  ])('on this machine: %s', async (name, source) => {
    expect(await parseSource(at(name), shipped, findRepository)).toMatchObject(source)
    expect(await parseSource(`file://${at(name)}`, shipped, findRepository)).toMatchObject(source)
  })
})

describe('a place on this machine in an index', () => {
  const places = ['web', 'tree', 'stackstorm-bare.git', 'web.tgz', 'nothing']
  const parse = (url: string, mayBeLocal: boolean) =>
    parseSource('named', shipped, () => Promise.resolve({ url, mayBeLocal }))

  it.each(places)('is refused where others write the index: %s', async (name) => {
    for (const url of [at(name), `file://${at(name)}`]) {
      await expect(parse(url, false)).rejects.toThrow(/only an index in a file of the server may name/)
    }
  })

  it('counts where the index is a file of it', async () => {
    expect(await parse(at('web'), true)).toMatchObject({ kind: 'folder', path: at('web'), name: 'named' })
    expect(await parse(`file://${at('stackstorm-bare.git')}`, true)).toMatchObject({ kind: 'git', name: 'named' })
  })
})

describe('what cannot', () => {
  it.each([
    ['', /1 to 4096/],
    ['x'.repeat(5000), /1 to 4096/],
    ['--upload-pack=touch /tmp/x', /begin with "-"/],
    ['-c=x', /begin with "-"/],
    ['web\nmore', /control characters/],
    ['web', /no pack of this name to install: no index has it/],
    ['web=1.2.0', /no pack of this name/],
    ['./web', /no name, path or address/],
    ['ext::sh -c "touch /tmp/x"', /not over ext:/],
    ['ext::https://git.example/x', /not over ext:/],
    ['fd::17/foo', /not over fd:/],
    ['git://git.example/web', /not over git:/],
    ['http://git.example/web', /not over http:/],
    ['transport::https://git.example/web', /not over transport:/],
    ['https://', /no address/],
    ['https://-oProxyCommand=x/web', /no address/],
    ['ssh://-oProxyCommand=touch%20x/web', /follows "="/],
    ['ssh://git@-oProxyCommand=x/web', /no address/],
    ['-oProxyCommand=x:web', /begin with "-"/],
    ['git@-oProxyCommand:web', /its host is none/],
    ['git@git.example:--upload-pack=x', /no name, path or address/],
    ['https://robot:secret@git.example/web', /password/],
    ['https://git.example/web=--upload-pack', /follows "="/],
    ['https://git.example/web=a..b', /follows "="/],
    ['https://git.example/web=a b', /follows "="/],
    ['https://git.example/web=', /follows "="/],
    ['examples=;x', /follows "="/],
    ['/no/such/folder', /no such folder/],
    ['file:///no/such/folder', /no such folder/],
    ['file://elsewhere/web', /not over file:/],
    ['/dev/null', /neither a folder nor a file/],
  ])('%j', async (text, why) => {
    await expect(parseSource(text, shipped, findRepository)).rejects.toMatchObject({
      code: 'PACK_SOURCE_UNUSABLE',
      message: expect.stringMatching(why),
    })
  })

  it('a file that is no archive', async () => {
    await expect(parseSource(at('web.zip'), shipped, findRepository)).rejects.toThrow(/no archive/)
  })

  it('tells no password', async () => {
    const refusal = parseSource('https://robot:hunter2@git.example/web', shipped, findRepository)
    await expect(refusal).rejects.not.toThrow(/hunter2/)
  })
})
