/** `svc pack` as its users run it (contract 09, 9.3). */
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { header, missing, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { startAtTerminal } from '../helpers/pty.ts'
import { executable, waitForStatus, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestApp
let folder: TemporaryFolder

beforeAll(async () => {
  folder = makeFolder()
  server = await createTestApp()
}, 120_000)
afterAll(async () => {
  await server.stop()
  folder.remove()
})

function svc(...args: string[]): Promise<CliExit> {
  return runCli(args, env())
}

function env({ api, auth, stream } = server.urls): Record<string, string> {
  return {
    HOME: folder.path,
    SVC_API_URL: `${api}/v1`,
    SVC_AUTH_URL: `${auth}/v1`,
    SVC_STREAM_URL: `${stream}/v1`,
  }
}

function makePack(ref: string, action = 'name: say\nrunner_type: noop\n'): string {
  const path = join(folder.path, ref)
  mkdirSync(join(path, 'actions'), { recursive: true })
  writeFileSync(join(path, 'pack.yaml'), `name: ${ref}\ndescription: A pack.\nversion: 1.0.0\nauthor: tests\n`)
  writeFileSync(join(path, 'actions/say.yaml'), action)
  return path
}

it('lists and shows packs', async () => {
  const list = await svc('pack', 'list')
  expect([list.code, header(list.stdout)]).toEqual([0, ['ref', 'name', 'description', 'version', 'author']])
  const get = await svc('pack', 'get', 'packs', '-a', 'ref,version')
  expect([get.code, get.stdout]).toEqual([0, expect.stringContaining('packs')])
  expect(await svc('pack', 'get', 'none')).toEqual(missing('Pack', 'none'))
})

it('installs, shows what is said meanwhile, and removes', async () => {
  const install = await svc('pack', 'install', makePack('shown'))
  expect([install.code, install.stdout]).toEqual([0, expect.stringContaining('Installed shown 1.0.0: 1 action\n')])
  expect((await svc('action', 'get', 'shown.say')).code).toBe(0)
  const remove = await svc('pack', 'remove', 'shown')
  expect([remove.code, remove.stdout]).toEqual([0, expect.stringContaining('Removed shown')])
  expect(await svc('pack', 'remove', 'shown')).toEqual(missing('Pack', 'shown'))
})

it('installs what is named from where it is run, in a version or none', async () => {
  makePack('near')
  execFileSync('tar', ['-czf', 'near.tar.gz', 'near'], { cwd: folder.path })
  const fine = expect.stringMatching(/(?:Installed|Replaced 1\.0\.0 by) near 1\.0\.0: 1 action$/m)
  const expected = [
    ['./near', 0, fine],
    ['near/', 0, fine],
    ['./near/../near=1.0.0', 0, fine],
    ['near.tar.gz', 0, fine],
    ['near.tar.gz=1.0.0', 0, fine],
    ['./near.tar.gz=v1.0.0', 0, fine],
    ['near.tar.gz=2.0.0', 1, expect.stringContaining('the version of the pack that is there is 1.0.0')],
    // A name, although there is a folder of that name.
    ['near', 1, expect.stringContaining('there is no pack of this name to install: no index is configured')],
    ['core', 1, expect.stringContaining('The pack "core" is part of svc')],
  ] as const
  const outcomes = await Promise.all(
    expected.map(async ([source]) => {
      const { code, stdout } = await runCli(['pack', 'install', source], env(), { cwd: folder.path })
      return [source, code, stdout]
    }),
  )
  expect(outcomes).toEqual(expected)
}, 120_000)

it('fails as the installation does, and says why', async () => {
  const { code, stdout } = await svc('pack', 'install', 'unheard_of')
  expect([code, stdout]).toEqual([1, expect.stringContaining('no pack of this name')])
  const machine = await svc('pack', 'install', 'unheard_of', '-j')
  expect([machine.code, JSON.parse(machine.stdout)]).toMatchObject([1, { status: 'failed' }])
})

it('registers, and tells what is wrong where', async () => {
  const path = makePack('wrong', 'name: say\nrunner_type: unheard-of\n')
  const install = await svc('pack', 'install', '--force', path)
  expect(install.code).toBe(0)
  const { code, stdout, stderr } = await svc('pack', 'register', 'wrong', '--types', 'action,rule')
  expect([code, stdout, stderr]).toEqual([
    1,
    expect.stringMatching(/\| actions +\| 0 +\|\n\| rules +\| 0 +\|\n/),
    expect.stringMatching(/^wrong\/actions\/say\.yaml:2 \(runner_type\): .*unheard-of/),
  ])
  expect((await svc('pack', 'register', 'wrong', '--no-fail-on-failure')).code).toBe(0)
  expect((await svc('pack', 'register', 'packs')).code).toBe(0)
  expect((await svc('pack', 'register', 'none')).code).toBe(2)
})

it('needs something to install', async () => {
  expect((await svc('pack', 'install')).code).toBe(2)
})

it('prints files byte for byte, and what is no text neither on a terminal nor in JSON', async () => {
  const path = makePack('pictures')
  const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x00, 0xff, 0xfe, 0x0a])
  writeFileSync(join(path, 'picture.png'), bytes)
  const text = Buffer.from('\ufeffa\r\nno end')
  writeFileSync(join(path, 'actions/text.txt'), text)
  await svc('pack', 'install', path)
  const read = async (name: string): Promise<Buffer> => {
    const args = [executable, 'pack', 'file', 'pictures', name]
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: env(), encoding: 'buffer' })
    return stdout
  }
  expect(await read('picture.png')).toEqual(bytes)
  expect(await read('actions/text.txt')).toEqual(text)
  const machine = await svc('pack', 'file', 'pictures', 'picture.png', '-j')
  expect([machine.code, machine.stdout]).toEqual([1, expect.stringContaining('is not text')])
  const terminal = await startAtTerminal(
    [process.execPath, executable, 'pack', 'file', 'pictures', 'picture.png'],
    env(),
  )
  expect([await terminal.exit, terminal.screen()]).toEqual([1, expect.stringContaining('is not text')])
})

it('keeps secrets that it has never seen, and prints none', async () => {
  const path = makePack('secretive')
  const attributes = [
    'token: {type: string, secret: true}',
    'port: {type: integer}',
    'keys: {type: array, items: {secret: true}}',
  ]
  writeFileSync(join(path, 'config.schema.yaml'), attributes.join('\n'))
  await svc('pack', 'install', path)
  const stored = (): string => readFileSync(join(server.basePath, 'configs', 'secretive.yaml'), 'utf8')
  const config = (input: string, ...args: string[]): Promise<CliExit> =>
    runCli(['pack', 'config', 'secretive', '--debug', ...args], env(), { input })

  const first = await config('first-secret\n1\nsecond-secret,third-secret\n')
  expect([first.code, stored()]).toEqual([
    0,
    'token: first-secret\nport: 1\nkeys:\n  - second-secret\n  - third-secret\n',
  ])
  const second = await config('\n2\n\n')
  expect([second.code, stored()]).toEqual([
    0,
    'token: first-secret\nport: 2\nkeys:\n  - second-secret\n  - third-secret\n',
  ])
  const file = join(folder.path, 'values.yaml')
  writeFileSync(file, 'token: "********"\nkeys: [fourth-secret]\n')
  const third = await config('', '--file', file)
  expect([third.code, stored()]).toEqual([0, 'token: first-secret\nkeys:\n  - fourth-secret\n'])
  for (const { stdout, stderr } of [first, second, third]) expect(stdout + stderr).not.toMatch(/\w+-secret/)

  await server.call('PUT', '/v1/configs/secretive', {})
  const nothing = await config('********\n')
  expect([nothing.code, nothing.stdout]).toEqual([1, expect.stringContaining('there is none in its place')])
})

it('changes nothing when the answers end, or nobody has given any', async () => {
  const path = makePack('unanswered')
  writeFileSync(join(path, 'config.schema.yaml'), 'port: {type: integer, default: 1}\nname: {type: string}\n')
  await svc('pack', 'install', path)
  const piped = await svc('pack', 'config', 'unanswered')
  expect([piped.code, piped.stdout]).toEqual([1, expect.stringContaining('has no answers')])
  for (const [keys, code] of [
    ['\u0004', 1],
    ['\u0003', 130],
  ] as const) {
    const terminal = await startAtTerminal([process.execPath, executable, 'pack', 'config', 'unanswered'], env())
    await terminal.typeAt('port (integer) [1]: ', '5\r')
    await terminal.typeAt('name (string) [none]: ', keys)
    expect([keys, await terminal.exit]).toEqual([keys, code])
  }
  expect((await server.call('GET', '/v1/configs/unanswered')).status).toBe(404)
})

fullOnly(it)('says at a terminal what is being installed; Ctrl-C asks what shall become of that', async () => {
  const connections = new Set<Socket>()
  const silent = createServer((connection) => void connections.add(connection.on('error', () => undefined)))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const source = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/slow.git`
  try {
    const install = [process.execPath, executable, 'pack', 'install', source]
    const left = await startAtTerminal(install, env(), 100)
    await left.typeAt(`Installing ${source} (`, '\u0003')
    await left.typeAt('keep waiting (w)?', '\r')
    expect(await left.exit).toBe(130)
    const [, id = ''] = /\s+svc execution cancel ([0-9a-f]{24})\s*$/.exec(left.screen()) ?? []
    expect((await svc('execution', 'cancel', id)).code).toBe(0)
    await waitForStatus(server, id, ['canceled'])

    const canceled = await startAtTerminal(install, env(), 100)
    await canceled.typeAt(`Installing ${source} (`, '\u0003')
    await canceled.typeAt('keep waiting (w)?', 'c')
    expect(await canceled.exit).toBe(130)
    expect(canceled.screen()).toMatch(/Execution [0-9a-f]{24} has completed \(status=canceled\)\./)
  } finally {
    for (const connection of connections) connection.destroy()
    silent.close()
  }
})

it('takes types as several words, or with commas', async () => {
  for (const types of [['action', 'rules'], ['actions,rule']]) {
    const { stdout } = await svc('pack', 'register', 'packs', '--types', ...types, '-j')
    expect(Object.keys(JSON.parse(stdout) as object)).toEqual(['actions', 'rules'])
  }
  const { code, stdout } = await svc('pack', 'register', '--types', 'action', 'packs')
  expect([code, stdout]).toEqual([1, expect.stringContaining("'packs' is not one of")])
})

it('prints the packs that were installed or removed, in every form', async () => {
  const path = makePack('printed')
  const one = await svc('pack', 'install', path, '-j')
  expect(JSON.parse(one.stdout)).toMatchObject({ ref: 'printed', version: '1.0.0' })
  const two = await svc('pack', 'install', path, makePack('other'), '-j', '-a', 'ref')
  expect(JSON.parse(two.stdout)).toEqual([{ ref: 'printed' }, { ref: 'other' }])
  const table = await svc('pack', 'install', path, makePack('other'))
  expect(header(table.stdout)).toEqual(['ref', 'name', 'description', 'version', 'author'])
  const removed = await svc('pack', 'remove', 'printed', '-y')
  expect(removed.stdout).toMatch(/^---\n(?:.+\n)*ref: printed\n/)
  const shown = await svc('pack', 'remove', 'other', '-w', '20', '-a', 'ref', 'version')
  expect([shown.code, shown.stdout]).toEqual([
    0,
    expect.stringMatching(/^\| ref +\| other +\|\n(?:.*\n)*?\| version +\| 1\.0\.0/m),
  ])
})

it('tells whoever may install and not look which execution does it', async () => {
  const base = makeFolder()
  const rbac = createRbacFiles(base.path)
  rbac.assign('admin', 'system_admin')
  rbac.define('packer', [{ types: ['pack_install', 'pack_uninstall'] }])
  const settings = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }
  const guarded = await createTestApp({ basePath: base.path, settings })
  try {
    const admin = await signIn(guarded, 'admin', firstPassword(base.path))
    const { body } = await guarded.call<{ key: string }>('POST', '/v1/apikeys', { user: 'packer' }, admin)
    const as = (...args: string[]): Promise<CliExit> => runCli(args, { ...env(guarded.urls), SVC_API_KEY: body.key })
    const statusOf = async (id = ''): Promise<string> =>
      (await guarded.call<{ status: string }>('GET', `/v1/executions/${id}`, undefined, admin)).body.status
    for (const args of [
      ['install', 'examples'],
      ['remove', 'examples'],
    ]) {
      const { code, stdout } = await as('pack', ...args)
      const [, id] =
        /^Execution ([0-9a-f]{24}) does the work\. You have no permission to view it\.\n$/.exec(stdout) ?? []
      expect([code, id, stdout]).toEqual([0, expect.any(String), expect.any(String)])
      await waitFor('its end', async () => (await statusOf(id)) === 'succeeded')
    }
    const machine = await as('pack', 'install', 'examples', '-j')
    expect([machine.code, JSON.parse(machine.stdout)]).toEqual([0, { execution_id: expect.any(String) }])
    const other = await as('pack', 'register')
    expect([other.code, other.stdout]).toEqual([1, expect.stringContaining('pack_register')])
  } finally {
    await guarded.stop()
    base.remove()
  }
}, 120_000)
