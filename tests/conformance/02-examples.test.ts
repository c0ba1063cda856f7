/** The pack `examples` as a newcomer uses it: everything in it works. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
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
  web = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json')
    if (request.url === '/missing') response.statusCode = 404
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
  const registered = { actions: 9, rules: 2, aliases: 1, policies: 1, sensors: 1, triggers: 1 }
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

describe('its workflows', () => {
  it('deploy', async () => {
    const { status, result } = await run('examples.deploy', { version: '1.2' })
    expect([status, result['output']]).toEqual([
      'succeeded',
      { state: 'deployed', report: ['web-1 has package-1.2', 'web-2 has package-1.2'] },
    ])
  })

  it('deploy: what fails is repeated and rolled back', async () => {
    const { id, status, result } = await run('examples.deploy', { version: '1.3-bad', hosts: ['$(id)'] })
    expect([status, result['output']]).toEqual(['failed', { state: 'rolled back', report: ['cannot install'] }])
    const { body } = await server.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}&sort_asc=true`)
    const tasks = body.map(({ context }) => (context['orquesta'] as { task_name: string }).task_name)
    expect(tasks.sort()).toEqual(['check', 'install', 'install', 'pack', 'roll_back'])
  })

  it('check_urls', async () => {
    const bad = `${url}missing`
    const { status, result } = await run('examples.check_urls', { urls: [url, bad] })
    expect([status, result['output']]).toEqual(['succeeded', { good: [url], bad: [bad] }])
  })

  it('wait_for', async () => {
    const dead = await run('examples.wait_for', { cmd: 'echo no; false', times: 2, pause: 0 })
    expect([dead.status, dead.result['output']]).toEqual(['failed', { tried: 2, answer: 'no' }])
    const cmd = 'n=$(cat "$HOME/n" 2>/dev/null); echo x$n > "$HOME/n"; test "$n" = x && echo there'
    const found = await run('examples.wait_for', { cmd: cmd.replaceAll('$HOME', server.basePath), pause: 0 })
    expect([found.status, found.result['output']]).toEqual(['succeeded', { tried: 2, answer: 'there' }])
  })

  it.for([
    [{ approved: true, comment: 'fine' }, 'succeeded', { comment: 'fine', state: 'deployed' }],
    [{ approved: false }, 'failed', { comment: null, state: 'not approved' }],
  ] as const)('approve: %j', async ([response, status, output]) => {
    const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
      action: 'examples.approve',
      parameters: { what: '1.2' },
    })
    const inquiry = await waitFor('the inquiry', async () => {
      const path = `/v1/executions?parent=${body.id}&status=pending`
      return (await server.call<ExecutionAnswer[]>('GET', path)).body[0]
    })
    await server.call('PUT', `/v1/inquiries/${inquiry.id}`, { id: inquiry.id, response })
    const ended = await waitForStatus(server, body.id)
    expect([ended.status, ended.result['output']]).toEqual([status, output])
  })

  it.for(['deploy', 'check_urls', 'wait_for', 'approve'])('%s has no mistake', async (name) => {
    const path = join(server.basePath, 'packs/examples/actions/workflows', `${name}.yaml`)
    const query = `action=examples.${name}&hints=true`
    const headers = { 'Content-Type': 'text/plain' }
    const answer = await fetch(`${server.urls.api}/v1/workflows/inspect?${query}`, {
      method: 'POST',
      headers,
      body: readFileSync(path),
    })
    expect(await answer.json()).toEqual([])
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

it('its sensor dispatches the load of the machine once it is enabled', async () => {
  const path = '/v1/sensortypes/examples.HeartbeatSensor'
  expect((await server.call<{ enabled: boolean }>('GET', path)).body.enabled).toBe(false)
  expect((await server.call('PUT', path, { enabled: true })).status).toBe(200)
  const found = await waitFor('a trigger instance', async () => {
    const { body } = await server.call<{ payload: unknown }[]>('GET', '/v1/triggerinstances?trigger=examples.heartbeat')
    return body[0]
  })
  expect(found.payload).toEqual({ load: expect.any(Number) as number })
  await server.call('PUT', path, { enabled: false })
})
