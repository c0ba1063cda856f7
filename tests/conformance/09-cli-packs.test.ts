/** `svc pack` as its users run it (contract 09, 9.3). */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { header, missing, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestServer
let folder: TemporaryFolder

beforeAll(async () => {
  folder = makeFolder()
  server = await startServer()
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
    ['near', 1, expect.stringContaining('there is no pack of this name to install (there is: examples)')],
    ['core', 1, expect.stringContaining('The pack "core" belongs to the program')],
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

it('tells whoever may install and not look which execution does it', async () => {
  const base = makeFolder()
  const rbac = createRbacFiles(base.path)
  rbac.assign('admin', 'system_admin')
  rbac.define('packer', [{ types: ['pack_install', 'pack_uninstall'] }])
  const settings = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }
  const guarded = await startServer({ basePath: base.path, settings })
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
        /^Execution ([0-9a-f]{24}) does it; you may not view executions of that action\.\n$/.exec(stdout) ?? []
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
