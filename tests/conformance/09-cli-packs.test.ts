/** `svc pack` as its users run it (contract 09, 9.3). */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { header, missing, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { startServer, type TestServer } from '../helpers/server.ts'

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
  const { api, auth, stream } = server.urls
  return runCli(args, {
    HOME: folder.path,
    SVC_API_URL: `${api}/v1`,
    SVC_AUTH_URL: `${auth}/v1`,
    SVC_STREAM_URL: `${stream}/v1`,
  })
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
  expect([install.code, install.stdout]).toEqual([0, expect.stringContaining('Installed shown 1.0.0: 1 actions')])
  expect((await svc('action', 'get', 'shown.say')).code).toBe(0)
  const remove = await svc('pack', 'remove', 'shown')
  expect([remove.code, remove.stdout]).toEqual([0, expect.stringContaining('Removed shown')])
  expect(await svc('pack', 'remove', 'shown')).toEqual(missing('Pack', 'shown'))
})

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
    'actions: 0\nrules: 0\n',
    expect.stringMatching(/^wrong\/actions\/say\.yaml:2 \(runner_type\): .*unheard-of/),
  ])
  expect((await svc('pack', 'register', 'wrong', '--no-fail-on-failure')).code).toBe(0)
  expect((await svc('pack', 'register', 'packs')).code).toBe(0)
  expect((await svc('pack', 'register', 'none')).code).toBe(1)
})

it('needs something to install', async () => {
  expect((await svc('pack', 'install')).code).toBe(2)
})
