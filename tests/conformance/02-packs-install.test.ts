/** Installing and removing packs on a real server (contract 02, 2.8). */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { markedProcesses } from '../helpers/marked-processes.ts'
import { createTestApp } from '../helpers/app.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp, startServer } from '../helpers/server.ts'
import { makeTar, makeTarGz, type TarEntry } from '../helpers/tar.ts'
import { waitFor } from '../helpers/wait.ts'
import { ensureVenv, makeWheel, quickVenv } from '../helpers/wheel.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'

let server: TestApp
let folder: TemporaryFolder
const at = (...names: string[]): string => join(folder.path, ...names)

beforeAll(async () => {
  await ensureDebianPackage('git', '/usr/bin/git')
  folder = makeFolder()
  server = await createTestApp({ settings: { 'actionrunner.virtualenv_opts': quickVenv.join(',') } })
}, 120_000)
afterAll(async () => {
  await server.stop()
  folder.remove()
})

interface PackFiles {
  version?: string
  /** Lines of the manifest. */
  more?: string
  [path: string]: string | undefined
}

/** Files of a pack with one action, `say`, that prints the version. */
function packFiles(ref: string, { version = '1.0.0', more = '', ...files }: PackFiles = {}): Record<string, string> {
  const action = `name: say\nrunner_type: local-shell-cmd\nparameters:\n  cmd: {default: echo ${ref} ${version}, immutable: true}\n`
  return {
    'pack.yaml': `ref: ${ref}\nname: ${ref}\ndescription: A pack.\nversion: ${version}\nauthor: tests\n${more}`,
    'actions/say.yaml': action,
    ...(files as Record<string, string>), // without those that are named above
  }
}

function write(path: string, files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}

const entriesOf = (top: string, files: Record<string, string>): TarEntry[] =>
  Object.entries(files).map(([path, text]) => ({ path: `${top}${path}`, text }))

function git(path: string, ...args: string[]): string {
  const options = ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'init.defaultBranch=main']
  return execFileSync('git', [...options, ...args], { cwd: path, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

async function start(operation: 'install' | 'uninstall', body: Record<string, unknown>, on = server): Promise<string> {
  const answer = await on.call<{ execution_id: string }>('POST', `/v1/packs/${operation}`, body)
  expect([answer.status, answer.text]).toEqual([202, expect.stringContaining('execution_id')])
  return answer.body.execution_id
}

async function install(source: string, more: Record<string, unknown> = {}): Promise<ExecutionAnswer> {
  return waitForStatus(server, await start('install', { packs: [source], ...more }))
}

async function say(ref: string): Promise<unknown> {
  const { status, body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action: `${ref}.say` })
  if (status !== 201) return text
  return (await waitForStatus(server, body.id)).result['stdout']
}

const installed = async (ref: string): Promise<unknown> => {
  const { status, body } = await server.call<{ version: string }>('GET', `/v1/packs/${ref}`)
  return status === 200 ? body.version : status
}

/** What is left of work that has ended: nothing. */
const leftovers = (): string[] => {
  const path = join(server.basePath, 'packs', '.staging')
  return existsSync(path) ? readdirSync(path) : []
}

describe('installing', () => {
  it('from a folder; again; another version, newer or older', async () => {
    const path = write(at('folder'), packFiles('folder_pack', { 'actions/tool.sh': '#!/bin/sh\n' }))
    chmodSync(join(path, 'actions/tool.sh'), 0o4700)
    const { status, result } = await install(path)
    expect([status, result]).toMatchObject([
      'succeeded',
      { packs: { folder_pack: { version: '1.0.0', registered: { actions: 1 }, problems: [] } } },
    ])
    expect(await say('folder_pack')).toBe('folder_pack 1.0.0')
    write(path, packFiles('folder_pack', { version: '2.0.0' }))
    const again = await install(`file://${path}`)
    expect(again.result).toMatchObject({ packs: { folder_pack: { version: '2.0.0', previous_version: '1.0.0' } } })
    expect(await say('folder_pack')).toBe('folder_pack 2.0.0')
    write(path, packFiles('folder_pack', { version: '0.9.0' }))
    expect((await install(path)).status).toBe('succeeded')
    expect([await installed('folder_pack'), leftovers()]).toEqual(['0.9.0', []])
  })

  it.each(variants(['pack.tar.gz', 'pack.tgz', 'pack.tar']))('from an archive: %s', async (name) => {
    const ref = `archive_${name.replaceAll('.', '_')}`
    const entries = entriesOf('top-1.0/', packFiles(ref))
    writeFileSync(at(name), name.endsWith('.tar') ? makeTar(entries) : makeTarGz(entries))
    expect((await install(at(name))).status).toBe('succeeded')
    expect(await say(ref)).toBe(`${ref} 1.0.0`)
  })

  it('from a git repository: its head, a branch, a tag, a version, a commit, in full and shortened', async () => {
    const path = write(at('repository'), packFiles('from_git'))
    git(path, 'init', '-q')
    const commit = (version: string): string => {
      write(path, packFiles('from_git', { version }))
      git(path, 'add', '.')
      git(path, 'commit', '-qm', version)
      return git(path, 'rev-parse', 'HEAD').trim()
    }
    commit('1.0.0')
    git(path, 'tag', 'v1.0.0')
    const second = commit('1.1.0')
    git(path, 'branch', 'stable/one')
    commit('2.0.0')
    git(path, 'clone', '-q', '--bare', path, at('bare.git'))
    const url = `file://${at('bare.git')}`
    for (const [source, version] of [
      [url, '2.0.0'],
      [`${url}=stable/one`, '1.1.0'],
      [`${url}=v1.0.0`, '1.0.0'],
      [`${url}=1.0.0`, '1.0.0'],
      [`${url}=${second}`, '1.1.0'],
      [`${url}=main`, '2.0.0'],
      [`${url}=${second.slice(0, 10)}`, '1.1.0'],
    ] as const) {
      const { status, result } = await install(source)
      expect([source, status, result['error'], await installed('from_git')]).toEqual([
        source,
        'succeeded',
        undefined,
        version,
      ])
    }
    expect(existsSync(join(server.basePath, 'packs/from_git/.git'))).toBe(false)
    const unknown = await install(`${url}=nowhere`)
    expect([unknown.status, unknown.result['error']]).toEqual([
      'failed',
      expect.stringContaining('no branch, tag or commit'),
    ])
    expect(await say('from_git')).toBe('from_git 1.1.0')
  }, 120_000)

  it('keeps the configuration of the site', async () => {
    const files = packFiles('configured', { 'config.schema.yaml': 'region: {type: string}\n' })
    const path = write(at('configured'), files)
    await install(path)
    expect((await server.call('PUT', '/v1/configs/configured', { region: 'north' })).status).toBe(200)
    await install(path)
    expect((await server.call('GET', '/v1/configs/configured')).body).toMatchObject({ values: { region: 'north' } })
    const removal = await waitForStatus(server, await start('uninstall', { packs: ['configured'] }))
    expect(removal.status).toBe('succeeded')
    expect([await installed('configured'), existsSync(join(server.basePath, 'packs/configured'))]).toEqual([404, false])
    expect((await server.call('GET', '/v1/actions/configured.say')).status).toBe(404)
    expect(readFileSync(join(server.basePath, 'configs/configured.yaml'), 'utf8')).toContain('north')
  })

  it('needs its dependencies, unless they are skipped', async () => {
    const needy = write(at('needy'), packFiles('needy', { more: 'dependencies: [needed=1.0.0]\n' }))
    const needed = write(at('needed'), packFiles('needed', { version: '2.0.0' }))
    const alone = await install(needy)
    expect([alone.status, alone.result['error']]).toEqual([
      'failed',
      expect.stringContaining('needs the pack "needed"'),
    ])
    const wrong = await waitForStatus(server, await start('install', { packs: [needy, needed] }))
    expect([wrong.status, wrong.result['error']]).toEqual(['failed', expect.stringContaining('needs version 1.0.0')])
    expect([await installed('needy'), await installed('needed')]).toEqual([404, 404])
    expect((await install(needy, { skip_dependencies: true })).status).toBe('succeeded')
    write(needed, packFiles('needed'))
    const both = await waitForStatus(server, await start('install', { packs: [needy, needed] }))
    expect([both.status, Object.keys(both.result['packs'] as object)]).toEqual(['succeeded', ['needed', 'needy']])
  })

  it.each([
    ['svc', 'svc_version: ">=99.0.0"\n', /made for svc/],
    ['python', 'python_versions: ["2"]\n', /Python 2/],
  ])('refuses what is made for another %s, unless forced', async (name, more, why) => {
    const path = write(at(`other_${name}`), packFiles(`other_${name}`, { more }))
    const { status, result } = await install(path)
    expect([status, result['error']]).toEqual(['failed', expect.stringMatching(why)])
    expect((await install(path, { force: true })).status).toBe('succeeded')
  })

  it('puts the old one back when the new one has problems, unless forced', async () => {
    const path = write(at('broken'), packFiles('broken'))
    await install(path)
    const bad = { 'actions/bad.yaml': 'name: bad\nrunner_type: unheard-of\n' }
    write(path, packFiles('broken', { version: '2.0.0', ...bad }))
    const { status, result } = await install(path)
    expect([status, result['error']]).toEqual(['failed', expect.stringMatching(/actions\/bad\.yaml:2 .*unheard-of/)])
    expect([await installed('broken'), await say('broken'), leftovers()]).toEqual(['1.0.0', 'broken 1.0.0', []])
    const forced = await install(path, { force: true })
    expect([forced.status, await say('broken')]).toEqual(['succeeded', 'broken 2.0.0'])
  })

  it.each(['core', 'packs', 'default', '_global'])('refuses the name %s', async (ref) => {
    const { status, result } = await install(write(at(`as_${ref}`), packFiles(ref)))
    expect([status, result['error']]).toEqual(['failed', expect.stringMatching(/is part of svc/)])
    const removal = await waitForStatus(server, await start('uninstall', { packs: [ref] }))
    expect([removal.status, removal.result['error']]).toEqual(['failed', expect.stringMatching(/is part of svc/)])
  })

  it('says so when there is nothing to remove', async () => {
    const { status, result } = await waitForStatus(server, await start('uninstall', { packs: ['never_there'] }))
    expect([status, result['error']]).toEqual([
      'failed',
      expect.stringContaining('Pack "never_there" is not installed'),
    ])
  })
})

describe('as executions', () => {
  const execute = async (action: string, parameters: Record<string, unknown>): Promise<ExecutionAnswer> => {
    const { status, body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action, parameters })
    if (status !== 201) throw new Error(text)
    return waitForStatus(server, body.id)
  }

  it('packs.register registers, and fails when something cannot be used', async () => {
    const path = write(join(server.basePath, 'packs/by_hand'), packFiles('by_hand'))
    const fine = await execute('packs.register', { packs: ['by_hand'] })
    expect([fine.status, fine.result]).toMatchObject([
      'succeeded',
      { registered: { actions: 1, rules: 0 }, problems: [], succeeded: true },
    ])
    expect(await say('by_hand')).toBe('by_hand 1.0.0')

    const trigger = { 'triggers/came.yaml': 'name: came\npack: by_hand\n' }
    write(path, { ...packFiles('by_hand', { version: '2.0.0', ...trigger }), 'actions/bad.yaml': 'name: bad\n' })
    const rest = await execute('packs.register', { packs: [path], types: ['actions'] })
    expect([rest.status, rest.result['registered'], rest.result['problems']]).toEqual([
      'failed',
      expect.objectContaining({ actions: 1, triggers: 0 }),
      [expect.stringMatching(/^actions\/bad\.yaml.*runner_type/)],
    ])
    expect(await say('by_hand')).toBe('by_hand 2.0.0')
    const unknown = await execute('packs.register', { packs: ['never_there'] })
    expect([unknown.status, unknown.result['error']]).toEqual(['failed', expect.stringContaining('"never_there"')])
  })

  fullOnly(it)(
    'an installation makes the Python environment, packs.setup_virtualenv brings it up to date, and removing clears it away',
    async () => {
      await ensureVenv()
      const files = {
        'actions/version.yaml': 'name: version\nrunner_type: python-script\nentry_point: version.py\n',
        'actions/version.py':
          'import tiny_test_wheel\nfrom svc.action import Action\n\n\nclass Version(Action):\n    def run(self):\n' +
          '        return tiny_test_wheel.VERSION\n',
      }
      const path = write(at('with_python'), packFiles('with_python', files))
      write(path, { 'requirements.txt': `./${makeWheel(path, '1.0')}\n` })
      const environment = join(server.basePath, 'virtualenvs/with_python')
      const made = await install(path)
      expect([made.status, made.result['error']]).toEqual(['succeeded', undefined])
      const output = await server.call('GET', `/v1/executions/${made.id}/output`)
      expect(output.text).toContain('Successfully installed tiny-test-wheel-1.0')
      expect((await execute('with_python.version', {})).result['result']).toBe('1.0')

      const inPlace = join(server.basePath, 'packs/with_python')
      write(inPlace, { 'requirements.txt': `./${makeWheel(inPlace, '2.0')}\n` })
      writeFileSync(join(environment, 'left-over'), '')
      const kept = await execute('packs.setup_virtualenv', { packs: ['with_python'] })
      expect([kept.status, existsSync(join(environment, 'left-over'))]).toEqual(['succeeded', true])
      expect((await execute('with_python.version', {})).result['result']).toBe('2.0')
      const anew = await execute('packs.setup_virtualenv', { packs: ['with_python'], update: true })
      expect([anew.status, existsSync(join(environment, 'left-over'))]).toEqual(['succeeded', false])

      // What cannot be installed leaves the pack and its environment as they were.
      write(path, {
        ...packFiles('with_python', { version: '3.0.0' }),
        'requirements.txt': '--no-index\nnone-of-ours==1\n',
      })
      const refused = await install(path)
      expect([refused.status, refused.result['error'], await installed('with_python')]).toEqual([
        'failed',
        expect.stringMatching(/Python environment cannot be made: .*none-of-ours/s),
        '1.0.0',
      ])
      expect((await execute('with_python.version', {})).result['result']).toBe('2.0')

      const removal = await waitForStatus(server, await start('uninstall', { packs: ['with_python'] }))
      expect([removal.status, existsSync(environment)]).toEqual(['succeeded', false])
      const unknown = await execute('packs.setup_virtualenv', { packs: ['with_python'] })
      expect([unknown.status, unknown.result['error']]).toEqual(['failed', expect.stringContaining('"with_python"')])
    },
    240_000,
  )

  it('packs.setup_virtualenv makes none for a pack that asks for nothing', async () => {
    await install(write(at('without_python'), packFiles('without_python')))
    const { id, status } = await execute('packs.setup_virtualenv', { packs: ['without_python'] })
    const { text } = await server.call('GET', `/v1/executions/${id}/output`)
    expect([status, text]).toEqual(['succeeded', expect.stringContaining('without_python has no requirements.txt')])
    expect(existsSync(join(server.basePath, 'virtualenvs/without_python'))).toBe(false)
  })
})

describe('hostile sources', () => {
  const cut: TarEntry = { path: 'cut', size: 4_000 }
  const hostile: [string, TarEntry, RegExp | undefined][] = [
    ['a path upwards', { path: '../escaped', text: 'x' }, /outside of the pack/],
    ['a path upwards inside', { path: 'a/../../escaped', text: 'x' }, /outside of the pack/],
    ['an absolute path', { path: '/tmp/svc-escaped', text: 'x' }, /outside of the pack/],
    ['a symbolic link', { path: 'linked', type: '2', link: '/etc/passwd' }, undefined],
    ['a hard link', { path: 'linked', type: '1', link: '/etc/passwd' }, undefined],
    ['a device', { path: 'linked', type: '3' }, undefined],
    ['a pipe', { path: 'linked', type: '6' }, undefined],
    ['more than there is room for', { path: 'large', size: 300_000_000 }, /The pack is too large/],
    ['less than it says', cut, /damaged/],
  ]
  fullOnly(it)('archives that end in the middle leave nothing, however much of them is being written', async () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`lib/${index}.txt`, 'x'.repeat(2000)]))
    writeFileSync(at('cut_short.tgz'), makeTarGz([...entriesOf('', packFiles('cut_short', many)), cut]))
    const ends = await Promise.all(Array.from({ length: 20 }, () => install(at('cut_short.tgz'))))
    expect(ends.filter(({ result }) => !/damaged/.test(String(result['error'])))).toEqual([])
    expect(leftovers()).toEqual([])
  })

  it.each(hostile)('an archive with %s', async (name, entry, why) => {
    const ref = `hostile_${name.replace(/\W/g, '_')}`
    writeFileSync(at(`${ref}.tgz`), makeTarGz([...entriesOf('', packFiles(ref)), entry]))
    const { status, result } = await install(at(`${ref}.tgz`))
    const target = join(server.basePath, 'packs', ref)
    expect([status, existsSync(target) && readdirSync(target).toSorted()]).toEqual(
      why === undefined ? ['succeeded', ['actions', 'pack.yaml']] : ['failed', false],
    )
    expect(String(result['error'])).toMatch(why ?? /^undefined$/)
    expect([existsSync('/tmp/svc-escaped'), existsSync(join(server.basePath, 'packs/escaped')), leftovers()]).toEqual([
      false,
      false,
      [],
    ])
  })

  it('what is no archive, and what is no pack', async () => {
    writeFileSync(at('noise.tar.gz'), 'not an archive')
    expect((await install(at('noise.tar.gz'))).result['error']).toMatch(/damaged|no pack\.yaml/)
    writeFileSync(at('empty.tar'), makeTar([{ path: 'README', text: 'x' }]))
    expect((await install(at('empty.tar'))).result['error']).toMatch(/no pack\.yaml/)
  })

  it.each([
    `--upload-pack=touch /tmp/svc-owned`,
    `ext::sh -c "touch /tmp/svc-owned"`,
    `ssh://-oProxyCommand=touch /tmp/svc-owned/x`,
    `git@-oProxyCommand=touch:x`,
    'http://127.0.0.1/x.git',
    'unheard_of',
    '../../etc',
  ])('%s', async (source) => {
    const { status, result } = await install(source)
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining('No pack can be installed from')])
    expect(existsSync('/tmp/svc-owned')).toBe(false)
  })

  it('a reference that is a path', async () => {
    const path = write(at('sly'), packFiles('../../sly'))
    expect((await install(path)).status).toBe('failed')
    expect((await waitForStatus(server, await start('uninstall', { packs: ['../../sly'] }))).status).toBe('failed')
  })

  it('links of a folder stay where they lead inside, and only there', async () => {
    const path = write(at('links'), packFiles('links'))
    execFileSync('ln', ['-s', 'say.yaml', join(path, 'actions/again.txt')])
    execFileSync('ln', ['-s', '/etc/passwd', join(path, 'stolen')])
    execFileSync('ln', ['-s', '../../..', join(path, 'up')])
    execFileSync('mkfifo', [join(path, 'pipe')])
    expect((await install(path)).status).toBe('succeeded')
    expect(readdirSync(join(server.basePath, 'packs/links')).toSorted()).toEqual(['actions', 'pack.yaml'])
    expect(existsSync(join(server.basePath, 'packs/links/actions/again.txt'))).toBe(true)
  })
})

it.each([{}, { packs: [] }, { packs: 'web' }, { packs: [1] }])('refuses the body %j', async (body) => {
  expect((await server.call('POST', '/v1/packs/install', body)).status).toBe(400)
})

describe('an end in the middle', () => {
  /** Accepts connections and says nothing, so that whoever fetches from it waits for ever. */
  let silent: Server
  let url: string
  beforeAll(async () => {
    silent = createServer((socket) => void socket.on('error', () => undefined).resume())
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve))
    const address = silent.address()
    url = `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/pack.git`
  })
  afterAll(() => void silent.close())

  const fetching = (id: string): Promise<unknown> =>
    waitFor('git to be at work', () => markedProcesses(`SVC_ACTION_EXECUTION_ID=${id}`).length > 0)

  it('cancel ends git, and leaves nothing', async () => {
    const id = await start('install', { packs: [url] })
    await fetching(id)
    await server.call('DELETE', `/v1/executions/${id}`)
    expect((await waitForStatus(server, id)).status).toBe('canceled')
    expect([markedProcesses(`SVC_ACTION_EXECUTION_ID=${id}`), leftovers()]).toEqual([[], []])
  })

  fullOnly(it)('so does the time limit', async () => {
    const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
      action: 'packs.install',
      parameters: { packs: [url], timeout: 1 },
    })
    const { status } = await waitForStatus(server, body.id)
    expect([status, markedProcesses(`SVC_ACTION_EXECUTION_ID=${body.id}`), leftovers()]).toEqual(['timeout', [], []])
  })

  fullOnly(it)(
    'a killed server leaves the pack that was there; the next start clears away the rest',
    async () => {
      const base = makeFolder()
      try {
        const first = await startServer({ basePath: base.path })
        const path = write(at('survivor'), packFiles('survivor'))
        await waitForStatus(first, await start('install', { packs: [path] }, first))
        const id = await start('install', { packs: [url] }, first)
        await fetching(id)
        // As if it had died between the two renames, too.
        execFileSync('mv', [join(base.path, 'packs/survivor'), join(base.path, 'packs/.staging/old-survivor')])
        await first.stop('SIGKILL')
        const second = await createTestApp({ basePath: base.path })
        try {
          expect(readdirSync(join(base.path, 'packs')).toSorted()).toEqual(['default', 'survivor'])
          expect((await second.call('GET', '/v1/actions/survivor.say')).status).toBe(200)
          expect((await waitForStatus(second, id)).status).toBe('abandoned')
          expect(markedProcesses(`SVC_ACTION_EXECUTION_ID=${id}`)).toEqual([])
        } finally {
          await second.stop()
        }
      } finally {
        base.remove()
      }
    },
    120_000,
  )
})
