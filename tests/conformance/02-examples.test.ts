/** The pack `examples` as a newcomer uses it: everything in it works. */
import { execFile } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { createTestApp } from '../helpers/app.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

let server: TestApp
let web: Server
let url: string
let installation: ExecutionAnswer

beforeAll(async () => {
  await ensureDebianPackage('python3', '/usr/bin/python3')
  await ensureDebianPackage('curl', '/usr/bin/curl')
  web = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json')
    response.end('{"fine": true}')
  })
  await new Promise<void>((resolve) => void web.listen(0, '127.0.0.1', resolve))
  const address = web.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`
  server = await createTestApp({ settings: { 'http_runner.allowed_private_networks': '127.0.0.0/8' } })
  installation = await run('packs.install', { packs: ['examples'] })
}, 120_000)
afterAll(async () => {
  await server.stop()
  web.closeAllConnections()
  await new Promise((resolve) => web.close(resolve))
})

async function run(action: string, parameters: Record<string, unknown>): Promise<ExecutionAnswer> {
  const { status, body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action, parameters })
  if (status !== 201) throw new Error(text)
  return waitForStatus(server, body.id)
}

it('is installed by its name, without a problem', () => {
  const registered = { actions: 5, rules: 2, aliases: 1, policies: 1 }
  expect([installation.status, installation.result]).toMatchObject([
    'succeeded',
    { packs: { examples: { registered, problems: [] } } },
  ])
})

describe('its actions', () => {
  it('disk_usage', async () => {
    const { status, result } = await run('examples.disk_usage', { folder: '/etc', unit: 'k' })
    expect([status, result['stdout']]).toEqual(['succeeded', expect.stringMatching(/^\d+\s\/etc$/)])
  })

  it('greet', async () => {
    await run('examples.greet', { name: 'Ada' })
    await server.call('PUT', '/v1/configs/examples', { greeting: 'Good day' })
    const { status, result } = await run('examples.greet', { name: 'Ada' })
    expect([status, result['result'], result['stderr']]).toEqual([
      'succeeded',
      { text: 'Good day, Ada!', count: 2 },
      expect.stringContaining('greeted 2 times'),
    ])
  })

  it('notify', async () => {
    const { status, result, parameters } = await run('examples.notify', { subject: "it's $(full)", token: 'hunter2' })
    expect([status, result['stdout'], parameters['token']]).toEqual([
      'succeeded',
      "info: it's $(full)",
      expect.stringMatching(/^\*+$/),
    ])
  })

  it('check_url', async () => {
    const { status, result } = await run('examples.check_url', { url })
    expect([status, result]).toMatchObject(['succeeded', { body: { fine: true } }])
  })

  fullOnly(it)('one_at_a_time: the second waits for the first', async () => {
    const both = await Promise.all([1, 2].map(() => run('examples.one_at_a_time', { seconds: 1 })))
    expect(both.map(({ status }) => status)).toEqual(['succeeded', 'succeeded'])
    expect(both.flatMap(({ log }) => log.map((entry) => entry.status))).toContain('delayed')
  })
})

it('its webhook starts an action, its timer waits to be enabled', async () => {
  const { body: rule } = await server.call<{ description: string }>('GET', '/v1/rules/examples.on_webhook')
  const [, command = ''] = /(curl .*)/.exec(rule.description) ?? []
  // Not synchronously: the server is in this process.
  const line = command
    .replace('curl', 'curl -s')
    .replace('http://127.0.0.1:9101', server.urls.api)
    .replace('it works', 'sent')
  const { stdout } = await promisify(execFile)('sh', ['-c', line])
  expect(JSON.parse(stdout)).toEqual({ subject: 'sent' })
  const started = await waitFor('the rule to start the action', async () => {
    const list = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?action=examples.notify&status=succeeded')
    return list.body.find(({ result }) => result['stdout'] === 'info: sent')
  })
  expect(started.status).toBe('succeeded')
  expect((await server.call('GET', '/v1/rules/examples.every_minute')).body).toMatchObject({ enabled: false })
  expect((await server.call('GET', '/v1/actionalias/examples.greet')).body).toMatchObject({
    action_ref: 'examples.greet',
  })
})
