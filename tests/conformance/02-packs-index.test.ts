/** Indexes of packs, and installing by name (contract 02, 2.8) on a running server. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startProxy } from '../helpers/proxy.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import type { ErrorAnswer } from './support.ts'

const folder = makeFolder()
const at = (...names: string[]): string => join(folder.path, ...names)

function git(path: string, ...args: string[]): void {
  const options = ['-c', 'user.name=t', '-c', 'user.email=t@example.org', '-c', 'init.defaultBranch=main']
  execFileSync('git', [...options, ...args], { cwd: path, stdio: 'ignore' })
}

/** A repository with one tag for each version. */
function repository(ref: string, versions: readonly string[], more = ''): string {
  const path = at(`${ref}-repository`)
  for (const version of versions) {
    const files = {
      'pack.yaml': `ref: ${ref}\nname: ${ref}\ndescription: d\nversion: ${version}\nauthor: a\n${more}`,
      'actions/say.yaml': 'name: say\nrunner_type: noop\n',
    }
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(path, name)), { recursive: true })
      writeFileSync(join(path, name), text)
    }
    git(path, 'init', '-q')
    git(path, 'add', '.')
    git(path, 'commit', '-qm', version)
    git(path, 'tag', `v${version}`)
  }
  return `file://${path}/.git`
}

async function listen(handler: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

let server: TestApp
let place: { url: string; server: Server }
const asked: string[] = []
beforeAll(async () => {
  await ensureDebianPackage('git', '/usr/bin/git')
  const packs = {
    web: { name: 'web', version: '2.0.0', repo_url: repository('web', ['1.0.0', '2.0.0']) },
    shop: { name: 'shop', version: '1.0.0', repo_url: repository('shop', ['1.0.0'], 'dependencies: [web=1.0.0]\n') },
    circle: { name: 'circle', repo_url: repository('circle', ['1.0.0'], 'dependencies: [round]\n') },
    round: { name: 'round', repo_url: repository('round', ['1.0.0'], 'dependencies: [circle]\n') },
    lonely: { name: 'lonely', repo_url: repository('lonely', ['1.0.0'], 'dependencies: [nowhere]\n') },
    nothing: { name: 'nothing' },
    insecure: { name: 'insecure', repo_url: 'http://git.example.org/x.git' },
    option: { name: 'option', repo_url: '--upload-pack=touch /tmp/x' },
  }
  writeFileSync(at('index.json'), JSON.stringify({ metadata: {}, packs }))
  place = await listen((request, response) => {
    asked.push(request.url ?? '')
    if (request.url === '/moved.json') response.writeHead(302, { Location: '/index.json' }).end()
    else
      response.end(
        JSON.stringify({
          packs: {
            far: { name: 'far', description: 'Far away.', repo_url: at('web') },
            web: { name: 'later' },
          },
        }),
      )
  })
  server = await createTestApp({
    settings: {
      'content.index_url': `file://${at('index.json')}, ${place.url}/moved.json, file://${at('missing.json')}`,
      'http_runner.allowed_private_networks': '127.0.0.1',
    },
  })
}, 120_000)
afterAll(async () => {
  await server.stop()
  place.server.close()
  folder.remove()
})

async function install(source: string, more: Record<string, unknown> = {}): Promise<ExecutionAnswer> {
  const { body } = await server.call<{ execution_id: string }>('POST', '/v1/packs/install', {
    packs: [source],
    ...more,
  })
  return waitForStatus(server, body.execution_id)
}

const installed = async (ref: string): Promise<unknown> => {
  const { status, body } = await server.call<{ version: string }>('GET', `/v1/packs/${ref}`)
  return status === 200 ? body.version : status
}

test('GET /packs/index has the packs of all indexes, the first one wins, and says what failed', async () => {
  const { status, body } = await server.call<{ status: unknown[]; index: Record<string, { name: string }> }>(
    'GET',
    '/v1/packs/index',
  )
  expect(status).toBe(200)
  expect(Object.keys(body.index).toSorted()).toEqual(
    ['circle', 'far', 'insecure', 'lonely', 'nothing', 'option', 'round', 'shop', 'web'].toSorted(),
  )
  expect(body.index['web']).toMatchObject({ ref: 'web', name: 'web' })
  expect(body.status).toEqual([
    { url: `file://${at('index.json')}`, packs: 8, message: 'Success.', error: null },
    { url: `${place.url}/moved.json`, packs: 2, message: 'Success.', error: null },
    { url: `file://${at('missing.json')}`, packs: 0, message: 'The file does not exist.', error: 'unresponsive' },
  ])
  expect(asked).toEqual(['/moved.json', '/index.json'])
})

test('GET /packs/index/health counts them', async () => {
  const { body } = await server.call('GET', '/v1/packs/index/health')
  expect(body).toMatchObject({
    indexes: { count: 3, valid: 2, invalid: 1, errors: { unresponsive: 1 }, status: [{}, {}, {}] },
    packs: { count: 9 },
  })
})

test('POST /packs/index/search finds by words, or one pack', async () => {
  const search = async (body: unknown): Promise<unknown> =>
    (await server.call('POST', '/v1/packs/index/search', body)).body
  expect(await search({ query: 'AWAY far' })).toEqual([
    { ref: 'far', name: 'far', description: 'Far away.', repo_url: at('web') },
  ])
  expect(await search({ query: 'no such words' })).toEqual([])
  expect(await search({ pack: 'far' })).toEqual({
    ref: 'far',
    name: 'far',
    description: 'Far away.',
    repo_url: at('web'),
  })
  expect(await search({ pack: 'none' })).toEqual([])
  for (const body of [{}, { query: 1 }, { query: 'a', pack: 'b' }, { query: 'x'.repeat(2000) }]) {
    const { status } = await server.call<ErrorAnswer>('POST', '/v1/packs/index/search', body)
    expect([body, status]).toEqual([body, 400])
  }
})

test('a pack is installed by its name, at its newest state or a version', async () => {
  expect(await install('web')).toMatchObject({ status: 'succeeded' })
  expect(await installed('web')).toBe('2.0.0')
  expect(await install('web=1.0.0')).toMatchObject({ status: 'succeeded' })
  expect(await installed('web')).toBe('1.0.0')
  const { status, result } = await install('web=9.9.9')
  expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('9.9.9')])
  expect(await installed('web')).toBe('1.0.0')
})

test('dependencies come from the index too, also in a circle; unless they are skipped', async () => {
  const { body } = await server.call<{ execution_id: string }>('POST', '/v1/packs/uninstall', { packs: ['web'] })
  await waitForStatus(server, body.execution_id)
  expect(await install('shop')).toMatchObject({ status: 'succeeded' })
  expect([await installed('shop'), await installed('web')]).toEqual(['1.0.0', '1.0.0'])
  expect(await install('circle')).toMatchObject({ status: 'succeeded' })
  expect(await installed('round')).toBe('1.0.0')
  const { status, result } = await install('lonely')
  expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('nowhere')])
  expect(await installed('lonely')).toBe(404)
  expect(await install('lonely', { skip_dependencies: true })).toMatchObject({ status: 'succeeded' })
})

test.each([
  ['unheard_of', /no index has it; file:.*missing\.json: The file does not exist/],
  ['nothing', /does not say where its repository is/],
  ['insecure', /https:\/\/ and ssh:\/\/, not over http:/],
  ['option', /its index gives the address/],
  ['far', /its index gives the address .*only an index in a file of the server may name a place/],
])('what an index cannot give is said: %s', async (name, message) => {
  const { status, result } = await install(name)
  expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringMatching(message)])
})

test('without an index nothing is asked; private addresses need a permission', async () => {
  const before = asked.length
  const none = await createTestApp({})
  const closed = await createTestApp({ settings: { 'content.index_url': `${place.url}/index.json` } })
  try {
    expect((await none.call('GET', '/v1/packs/index')).body).toEqual({ status: [], index: {} })
    const { body } = await none.call<{ execution_id: string }>('POST', '/v1/packs/install', { packs: ['web'] })
    const ended = await waitForStatus(none, body.execution_id)
    expect(JSON.stringify(ended.result)).toMatch(/no index is configured \(content\.index_url\)/)
    expect((await closed.call('GET', '/v1/packs/index')).body).toMatchObject({
      status: [{ error: 'unresponsive', message: expect.stringMatching(/allowed_private_networks/) as unknown }],
    })
    expect(asked).toHaveLength(before)
  } finally {
    await none.stop()
    await closed.stop()
  }
})

fullOnly(test)('02.8 indexes and repositories are reached through the proxies of the environment', async () => {
  const proxy = await startProxy({ hosts: { 'index.test': new URL(place.url).host } })
  const variables = { http_proxy: proxy.url, https_proxy: proxy.url, no_proxy: 'exempt.test' }
  const before = { ...process.env }
  Object.assign(process.env, variables)
  const other = await createTestApp({
    settings: { 'content.index_url': 'http://index.test/i.json, http://exempt.test:9/i.json' },
  })
  try {
    const { body } = await other.call<{ index: unknown }>('GET', '/v1/packs/index')
    expect(JSON.stringify(body)).toContain('Far away.')
    const started = await other.call<{ execution_id: string }>('POST', '/v1/packs/install', {
      packs: ['https://git.test/x.git'],
    })
    const { status, result } = await waitForStatus(other, started.body.execution_id)
    expect([status, JSON.stringify(result)]).toEqual(['failed', expect.stringContaining('https://git.test/x.git')])
    expect(new Set(proxy.requests)).toEqual(new Set(['GET http://index.test/i.json', 'CONNECT git.test:443']))
  } finally {
    await other.stop()
    for (const name of Object.keys(variables)) {
      if (before[name] === undefined) Reflect.deleteProperty(process.env, name)
      else process.env[name] = before[name]
    }
    await proxy.close()
  }
})
