/** Contract 03, 3.6: `content_version` runs the files of a pack as of a git revision. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { makeSshSite } from '../helpers/sshd.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'

let base: TemporaryFolder
let server: TestApp
/** A clone in the folder of the packs. */
let clone: string

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

function git(folder: string, ...args: string[]): string {
  const identity = ['-c', 'user.name=tests', '-c', 'user.email=tests@example.test']
  return execFileSync('git', ['-C', folder, ...identity, ...args], { encoding: 'utf8' }).trim()
}

const parameters = 'parameters:\n  name: {type: string, position: 0, default: you}\n'
const filesOf = (ref: string, version: string): Record<string, string> => ({
  'pack.yaml': `name: ${ref}\nref: ${ref}\ndescription: x\nversion: ${version}\nauthor: tests\nemail: tests@example.test\n`,
  'actions/say.yaml': `name: say\nrunner_type: local-shell-script\nentry_point: say.sh\n${parameters}`,
  'actions/say.sh': `#!/bin/sh\necho "${version} $1 $(cat "$(dirname "$0")/../etc/beside")"\n`,
  'actions/send.yaml': `name: send\nrunner_type: remote-shell-script\nentry_point: send.sh\n${parameters}`,
  'actions/send.sh': `#!/bin/sh\necho "${version} $1 $(cat "$(dirname "$0")/lib/helper.py")"\n`,
  'actions/tell.yaml': `name: tell\nrunner_type: python-script\nentry_point: tell.py\n${parameters}`,
  'actions/tell.py':
    'import os\nimport helper\nfrom svc.action import Action\n\n\nclass Tell(Action):\n' +
    '    def run(self, name):\n        return [helper.VERSION, name, os.path.basename(os.getcwd())]\n',
  'actions/lib/helper.py': `VERSION = "${version}"\n`,
  'etc/beside': `beside ${version}`,
})

/** @returns the commits */
function makeRepository(folder: string, ref: string): string[] {
  mkdirSync(folder, { recursive: true })
  git(folder, 'init', '-q', '-b', 'main')
  return ['1.0.0', '2.0.0'].map((version) => {
    write(folder, filesOf(ref, version))
    git(folder, 'add', '-A')
    git(folder, 'commit', '-qm', version)
    git(folder, 'tag', `v${version}`)
    return git(folder, 'rev-parse', 'HEAD')
  })
}

beforeAll(async () => {
  base = makeFolder()
  clone = join(base.path, 'packs/cloned')
  makeRepository(clone, 'cloned')
  write(join(base.path, 'packs/plain'), filesOf('plain', '1.0.0'))
  server = await createTestApp({ basePath: base.path })
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs: ['cloned', 'plain'] })
  if (status !== 200) throw new Error(text)
})
afterAll(async () => {
  await server.stop()
  base.remove()
})

const run = (action: string, given: Record<string, unknown> = {}): Promise<ExecutionAnswer> =>
  runToEnd(server, given, { action })

async function manage(operation: string, packs: string[]): Promise<ExecutionAnswer> {
  const { body } = await server.call<{ execution_id: string }>('POST', `/v1/packs/${operation}`, { packs })
  return waitForStatus(server, body.execution_id, ['succeeded', 'failed'])
}

it('03.6 content_version runs scripts and Python of a branch, tag or commit, with the files beside them', async () => {
  write(clone, filesOf('cloned', '3.0.0'))
  const said = async (given: Record<string, unknown>): Promise<unknown[]> => [
    (await run('cloned.say', given)).result['stdout'],
    (await run('cloned.tell', given)).result['result'],
  ]
  expect(await said({})).toEqual(['3.0.0 you beside 3.0.0', ['3.0.0', 'you', 'cloned']])
  const first = git(clone, 'rev-parse', 'v1.0.0')
  for (const [revision, version] of [
    ['v1.0.0', '1.0.0'],
    ['1.0.0', '1.0.0'],
    ['main', '2.0.0'],
    [first, '1.0.0'],
    [first.slice(0, 8), '1.0.0'],
    ['HEAD', '2.0.0'],
  ] as const) {
    expect([revision, await said({ content_version: revision, name: 'me' })]).toEqual([
      revision,
      [`${version} me beside ${version}`, [version, 'me', 'cloned']],
    ])
  }
  // Two commits, whatever they are called.
  expect(readdirSync(join(base.path, 'versions/cloned'))).toHaveLength(3)
  expect(git(clone, 'worktree', 'list').split('\n')).toHaveLength(1)
})

fullOnly(it)('03.6 other hosts get the script of the revision, and its actions/lib', async () => {
  const site = await makeSshSite()
  try {
    const { path } = site.makeKey('id_allowed')
    const { address } = await site.start()
    const login = { hosts: address, username: site.user, private_key: readFileSync(path, 'utf8') }
    const said = async (given: Record<string, unknown>): Promise<unknown> => {
      const { result } = await run('cloned.send', { ...login, name: 'me', ...given })
      return Object.values(result).map((one) => (one as { stdout?: string }).stdout ?? one)
    }
    expect(await said({ content_version: 'v1.0.0' })).toEqual(['1.0.0 me VERSION = "1.0.0"'])
    expect(await said({ content_version: 'main' })).toEqual(['2.0.0 me VERSION = "2.0.0"'])
  } finally {
    await site.stop()
  }
})

it('03.6 the metadata are those of the installed pack, the script must be in the revision', async () => {
  write(clone, {
    'actions/new.yaml': 'name: new\nrunner_type: local-shell-script\nentry_point: new.sh\n',
    'actions/new.sh': 'echo new\n',
  })
  await server.call('POST', '/v1/packs/register', { packs: ['cloned'] })
  expect((await run('cloned.new')).result).toMatchObject({ stdout: 'new' })
  const { status, result } = await run('cloned.new', { content_version: 'v1.0.0' })
  expect([status, result]).toEqual([
    'failed',
    { error: expect.stringContaining('does not exist'), traceback: expect.any(String) },
  ])
})

it.each([
  ['cloned.say', 'nowhere', 'no branch, tag or commit "nowhere"'],
  ['cloned.send', 'nowhere', 'no branch, tag or commit "nowhere"'],
  ['cloned.tell', 'nowhere', 'no branch, tag or commit "nowhere"'],
  ['cloned.say', '--upload-pack=touch /tmp/x', 'must be a branch, tag or commit'],
  ['cloned.say', '../../etc', 'must be a branch, tag or commit'],
  ['plain.say', 'v1.0.0', 'no git repository of the pack "plain"'],
  ['plain.tell', 'v1.0.0', 'no git repository of the pack "plain"'],
])('03.6 %s fails at the revision %s', async (action, revision, error) => {
  const { status, result } = await run(action, {
    content_version: revision,
    ...(action === 'cloned.send' ? { hosts: '192.0.2.1' } : {}),
  })
  expect([status, result]).toEqual(['failed', { error: expect.stringContaining(error), traceback: expect.any(String) }])
})

it('03.6 a pack that was installed from a repository has its revisions, until it is removed', async () => {
  const repository = join(base.path, 'repository')
  makeRepository(repository, 'fetched')
  expect((await manage('install', [`file://${repository}=v2.0.0`])).status).toBe('succeeded')
  expect(existsSync(join(base.path, 'packs/fetched/.git'))).toBe(false)
  const at = async (revision?: string): Promise<unknown> => {
    const { result } = await run('fetched.say', revision === undefined ? {} : { content_version: revision })
    return result['stdout'] ?? result['error']
  }
  expect([await at(), await at('v1.0.0'), await at('main')]).toEqual([
    '2.0.0 you beside 2.0.0',
    '1.0.0 you beside 1.0.0',
    '2.0.0 you beside 2.0.0',
  ])
  expect((await manage('uninstall', ['fetched'])).status).toBe('succeeded')
  expect(readdirSync(join(base.path, 'versions/fetched'))).toEqual([])

  // From files alone, it has none.
  const plain = join(base.path, 'files')
  write(plain, filesOf('fetched', '3.0.0'))
  expect((await manage('install', [plain])).status).toBe('succeeded')
  expect([await at(), await at('v1.0.0')]).toEqual([
    '3.0.0 you beside 3.0.0',
    expect.stringContaining('no git repository of the pack "fetched"'),
  ])
})
