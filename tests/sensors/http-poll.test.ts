/** Sensors that ask an HTTP server: new items become triggers, once each, whatever the server answers. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { TestApp } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { instancesOf, outputOf, register, sensorOf, waitForInstances, waitForState, writePack } from './support.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void

const settings = {
  'http_runner.allowed_private_networks': '127.0.0.0/8',
  'sensorcontainer.respawn_delay': '0.1',
}
/** What the HTTP server answers, by path; tests replace the answers. */
const handlers = new Map<string, Handler>()
const requests = new Map<string, IncomingMessage[]>()
let http: Server
let base: string
let server: TestApp

const json =
  (value: unknown): Handler =>
  (_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  }
const asked = (path: string): IncomingMessage[] => requests.get(path) ?? []

function sensorFile(name: string, more: string, timeout = 30): string {
  return `class_name: ${name}
sensor_type: http-poll
poll_interval: 1
trigger_types: [{ name: ${name.toLowerCase()} }]
http_poll:
  url: ${base}/${name.toLowerCase()}
  timeout: ${timeout}
${more}`
}

async function pollsAgain(path: string): Promise<void> {
  const before = asked(path).length
  await waitFor(`two more requests of ${path}`, () => asked(path).length >= before + 2, 30_000)
}

beforeAll(async () => {
  http = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    requests.set(path, [...asked(path), request])
    const handler = handlers.get(path)
    if (handler === undefined) response.writeHead(404).end()
    else handler(request, response)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  base = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  server = await createTestApp({ settings })
})

afterAll(async () => {
  await server.stop()
  http.closeAllConnections()
  http.close()
})

describe('a sensor of the type http-poll', () => {
  it('dispatches each new item once, with secrets of the configuration, and asks whether anything changed', async () => {
    let items: unknown[] = [{ id: 1, title: 'a' }]
    handlers.set('/issues', (request, response) => {
      const tag = `"${items.length}"`
      response.setHeader('etag', tag)
      if (request.headers['if-none-match'] === tag) response.writeHead(304).end()
      else response.end(JSON.stringify({ list: items }))
    })
    mkdirSync(join(server.basePath, 'configs'), { recursive: true })
    writeFileSync(join(server.basePath, 'configs', 'web.yaml'), 'token: "{{ svckv.system.token }}"\n')
    await server.call('PUT', '/v1/keys/token', { name: 'token', value: 'a secret token' })
    writePack(server.basePath, 'web', {
      'config.schema.yaml': 'token: { type: string, secret: true }\n',
      'sensors/issues.yaml': sensorFile(
        'Issues',
        `  headers: { Authorization: 'Bearer {{ config_context.token }}' }\n  items: $.list[*]\n  key: $.id\n`,
      ),
    })
    await register(server, 'web')
    await waitForInstances(server, 'web.issues', 1)
    items = [
      { id: 2, title: 'b' },
      { id: 1, title: 'a, changed' },
    ]
    const instances = await waitForInstances(server, 'web.issues', 2)
    expect(instances.map(({ payload }) => payload)).toEqual([
      { id: 1, title: 'a' },
      { id: 2, title: 'b' },
    ])
    await waitFor('an unchanged answer', () => asked('/issues').at(-1)?.headers['if-none-match'] === '"2"')
    await pollsAgain('/issues')
    expect(asked('/issues')[0]?.headers).toMatchObject({ authorization: 'Bearer a secret token' })
    expect(await instancesOf(server, 'web.issues')).toHaveLength(2)
    const { runtime } = await sensorOf(server, 'web.Issues')
    expect(runtime).toMatchObject({ state: 'running', dispatches: 2, dropped: 0, restarts: 0 })
    expect(runtime).not.toHaveProperty('pid')
  })

  fullOnly(it)('remembers items over restarts of the server; the first poll may skip what is there', async () => {
    const folder = makeFolder()
    let items = ['old', 'older']
    handlers.set('/news', (request, response) => json(items)(request, response))
    writePack(folder.path, 'again', { 'sensors/news.yaml': sensorFile('News', '  skip_first: true\n') })
    let other = await createTestApp({ settings, basePath: folder.path })
    await register(other, 'again')
    await waitForState(other, 'again.News', 'running')
    await pollsAgain('/news')
    expect(await instancesOf(other, 'again.news')).toEqual([])
    await other.stop()
    items = ['new while svc was away', ...items]
    other = await createTestApp({ settings, basePath: folder.path })
    const instances = await waitForInstances(other, 'again.news', 1)
    await pollsAgain('/news')
    expect(instances.map(({ payload }) => payload)).toEqual([{ value: 'new while svc was away' }])
    expect(await instancesOf(other, 'again.news')).toHaveLength(1)
    await other.stop()
    folder.remove()
  })

  it('skips nothing later when the first answer was empty', async () => {
    let items: number[] = []
    handlers.set('/empty', (request, response) => json(items)(request, response))
    writePack(server.basePath, 'empty', { 'sensors/empty.yaml': sensorFile('Empty', '  skip_first: true\n') })
    await register(server, 'empty')
    await waitForState(server, 'empty.Empty', 'running')
    items = [7]
    expect((await waitForInstances(server, 'empty.empty', 1))[0]?.payload).toEqual({ value: 7 })
  })

  fullOnly(it)(
    'remembers an item that stays in the answer while thousands of others come and go',
    async () => {
      let round = 0
      handlers.set('/churn', (request, response) => {
        const others = Array.from({ length: 1_900 }, (_, n) => `${round}-${n}`)
        round += 1
        json(['stays', ...(round > 8 ? [] : others)])(request, response)
      })
      writePack(server.basePath, 'churn', { 'sensors/churn.yaml': sensorFile('Churn', '') })
      await register(server, 'churn')
      await waitFor('all rounds', () => round > 9, 90_000)
      const { runtime } = await sensorOf(server, 'churn.Churn')
      expect(runtime.dispatches).toBe(8 * 1_900 + 1)
    },
    120_000,
  )

  fullOnly(it)(
    'goes on after hostile answers, and says what was wrong',
    async () => {
      const hostile: Record<string, { handler: Handler; says: RegExp }> = {
        Text: { handler: (_, response) => void response.end('<html>'), says: /is no JSON/ },
        Large: {
          handler: (_, response) => void response.end(`"${'x'.repeat(2_000_000)}"`),
          says: /longer than the limit/,
        },
        Bomb: {
          handler: (_, response) =>
            void response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(50_000_000, ' '))),
          says: /longer than the limit/,
        },
        Deep: { handler: (_, response) => void response.end('['.repeat(500_000)), says: /is no JSON/ },
        Many: { handler: json(Array.from({ length: 2_001 }, (_, n) => n)), says: /has 2001 items, more than 2000/ },
        Hangs: { handler: () => undefined, says: /No complete answer from .* within 1 s/ },
        Drips: {
          handler: (_, response) => {
            const timer = setInterval(() => response.write(' '), 20)
            response.on('close', () => clearInterval(timer))
          },
          says: /No complete answer from .* within 1 s/,
        },
        Cut: {
          handler: (_, response) =>
            void response.writeHead(200, { 'content-length': 50 }).write('[', () => response.destroy()),
          says: /No response from/,
        },
        Unasked: { handler: (_, response) => void response.writeHead(304).end(), says: /status 304/ },
        Loop: {
          handler: (_, response) => void response.writeHead(302, { location: '/loop' }).end(),
          says: /redirects more than 10 times/,
        },
        Inside: {
          handler: (_, response) => void response.writeHead(302, { location: 'http://10.0.0.1/' }).end(),
          says: /is refused/,
        },
        Fails: { handler: (_, response) => void response.writeHead(503).end(), says: /status 503/ },
      }
      const cases = variants(Object.entries(hostile), 4)
      const files: Record<string, string> = {}
      for (const [name, { handler }] of cases) {
        handlers.set(`/${name.toLowerCase()}`, handler)
        // Only these are slow themselves; others may be, on a loaded machine.
        files[`sensors/${name}.yaml`] = sensorFile(name, '', name === 'Hangs' || name === 'Drips' ? 1 : 30)
      }
      writePack(server.basePath, 'hostile', files)
      await register(server, 'hostile')
      for (const [name, { says }] of cases) {
        // oxlint-disable-next-line no-await-in-loop -- they run all the time
        const { runtime } = await waitForState(server, `hostile.${name}`, 'failed')
        expect(`${name}: ${runtime.last_error}`).toMatch(says)
        // oxlint-disable-next-line no-await-in-loop
        expect(await outputOf(server, `hostile.${name}`)).toMatch(says)
      }
      for (const [name] of cases) handlers.set(`/${name.toLowerCase()}`, json([name]))
      for (const [name] of cases) {
        // oxlint-disable-next-line no-await-in-loop
        await waitForInstances(server, `hostile.${name.toLowerCase()}`, 1)
      }
    },
    120_000,
  )

  it('waits as long as the server asks', async () => {
    handlers.set('/limited', (_, response) => void response.writeHead(429, { 'retry-after': '3600' }).end())
    writePack(server.basePath, 'limited', { 'sensors/limited.yaml': sensorFile('Limited', '') })
    await register(server, 'limited')
    const { runtime } = await waitForState(server, 'limited.Limited', 'waiting')
    expect(Date.parse(runtime.next_start ?? '') - Date.now()).toBeGreaterThan(3_000_000)
    expect(asked('/limited')).toHaveLength(1)
  })

  it.each([
    ['lacks', {}, ''],
    [
      'dangles',
      { 'config.schema.yaml': 'token: { type: string, secret: true }\n' },
      'token: "{{ svckv.system.no_such_token }}"\n',
    ],
  ])('says that its configuration lacks what a template uses: %s', async (pack, files, config) => {
    if (config !== '') writeFileSync(join(server.basePath, 'configs', `${pack}.yaml`), config)
    writePack(server.basePath, pack, {
      ...files,
      'sensors/lacks.yaml': sensorFile('Lacks', `  headers: { Authorization: '{{ config_context.token }}' }\n`),
    })
    await register(server, pack)
    const { runtime } = await waitForState(server, `${pack}.Lacks`, 'waiting', 'failed')
    expect(runtime.last_error).toMatch(
      /headers\.Authorization: .*token.* Check the configuration: svc pack config \w+\.$/,
    )
    expect(asked('/lacks')).toEqual([])
  })

  it('drops each item that does not fit the trigger type once, also after a poll that failed', async () => {
    let items: unknown[] = [
      { id: 1, n: 'text' },
      { id: 2, n: 1 },
    ]
    const answer = (): void => void handlers.set('/odd', json(items))
    answer()
    writePack(server.basePath, 'odd', {
      'sensors/odd.yaml': sensorFile('Odd', '  key: $.id\n').replace(
        '{ name: odd }',
        '{ name: odd, payload_schema: { type: object, properties: { n: { type: integer } } } }',
      ),
    })
    await register(server, 'odd')
    await waitForInstances(server, 'odd.odd', 1)
    handlers.set('/odd', (_, response) => void response.writeHead(503).end())
    await waitForState(server, 'odd.Odd', 'waiting', 'failed')
    items = [...items, { id: 3, n: 'other' }, { id: 3, n: 'other' }, { id: 4, n: 2 }]
    answer()
    await waitForInstances(server, 'odd.odd', 2)
    await waitFor(
      'the second message',
      async () => (await outputOf(server, 'odd.Odd')).split('Items were dropped: 1.').length === 3,
    )
    expect((await sensorOf(server, 'odd.Odd')).runtime.dropped).toBe(2)
  })
})

it.each([
  ['poll_interval: 1', '', /at least 1/],
  ['http_poll:', 'poll:', /It is missing/],
  ['sensor_type: http-poll', 'sensor_type: process\nentry_point: a.sh', /sensor_type: http-poll/],
  ['sensor_type: http-poll', 'sensor_type: http-poll\nentry_point: a.sh', /remove it/],
  ['[{ name: wrong }]', '[{ name: wrong }, { name: other }]', /has not exactly one/],
  ['timeout: 30', 'items: "$["', /JSONPath/],
  ['timeout: 30', 'timeout: 1000', /300/],
])('a definition with %j as %j is refused', async (from, to, says) => {
  const text = sensorFile('Wrong', '').replace(from, to)
  writePack(server.basePath, 'wrong', { 'sensors/wrong.yaml': text })
  const { text: answer } = await server.call('POST', '/v1/packs/register', { packs: ['wrong'], fail_on_failure: false })
  expect(answer).toMatch(says)
})
