/** Contract 10.4: what a statsd server gets from a server under a mixed load, and what Prometheus reads. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeFlowPack } from '../helpers/flow-pack.ts'
import { makeFolder } from '../helpers/folders.ts'
import { run, runToEnd, startServer, waitForStatus, type TestServer } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { startStatsd, type StatsdServer } from '../helpers/statsd.ts'
import { waitFor } from '../helpers/wait.ts'

describe('10.4 statsd', () => {
  const folder = makeFolder()
  let statsd: StatsdServer
  let server: TestServer

  beforeAll(async () => {
    statsd = await startStatsd()
    const pack = join(folder.path, 'packs', 'measured')
    mkdirSync(join(pack, 'actions'), { recursive: true })
    writeFileSync(
      join(pack, 'pack.yaml'),
      'name: measured\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: a@example.com\n',
    )
    writeFileSync(
      join(pack, 'actions', 'echo_deep.yaml'),
      'name: echo_deep\nrunner_type: local-shell-cmd\nenabled: true\nparameters: {cmd: {default: echo x}}\n',
    )
    writeFlowPack(folder.path, {
      two: 'version: 1.0\ntasks: {first: {action: core.noop, next: [{do: second}]}, second: {action: core.noop}}\n',
    })
    server = await startServer({
      basePath: folder.path,
      settings: {
        'metrics.driver': 'statsd',
        'metrics.port': String(statsd.port),
        'metrics.prefix': 'test.one',
        'actionrunner.actions_pool_size': '2',
      },
      // A client library would make tags of them, which plain servers do not read.
      env: { DD_ENV: 'prod', DD_TAGS: 'a:b', DD_AGENT_HOST: '192.0.2.1', DD_ENTITY_ID: 'x' },
    })
    try {
      await load(server)
    } finally {
      // Sends what waits.
      await server.stop()
    }
  })
  afterAll(async () => {
    await statsd.stop()
    folder.remove()
  })

  /** Something of everything that is measured. */
  async function load(of: TestServer): Promise<void> {
    await runToEnd(of, { cmd: 'exit 0' })
    await runToEnd(of, { cmd: 'exit 3' })
    await runToEnd(of, { cmd: 'sleep 60', timeout: 1 })
    const long = await run(of, { cmd: 'sleep 60' })
    await waitForStatus(of, long.id, ['running'])
    await of.call('DELETE', `/v1/executions/${long.id}`)
    await waitForStatus(of, long.id)
    const deep = await of.call<{ id: string }>('POST', '/v1/executions', { action: 'measured.echo_deep' })
    expect(deep).toMatchObject({ status: 201 })
    await waitForStatus(of, deep.body.id)
    const workflow = await of.call<{ id: string }>('POST', '/v1/executions', { action: 'flow.two' })
    expect((await waitForStatus(of, workflow.body.id)).status).toBe('succeeded')
    const rule = await of.call('POST', '/v1/rules', {
      name: 'hooked',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'measured' } },
      criteria: { 'trigger.body.go': { type: 'eq', pattern: 'yes' } },
      action: { ref: 'core.noop' },
    })
    expect(rule).toMatchObject({ status: 201 })
    for (const go of ['yes', 'no']) expect((await of.call('POST', '/v1/webhooks/measured', { go })).status).toBe(202)
    await waitFor('the enforcement', async () => {
      const { body } = await of.call<unknown[]>('GET', '/v1/ruleenforcements')
      return body.length === 1
    })
    const events = await openEvents(`${of.urls.stream}/v1/stream`)
    await waitFor('the gauge of open streams', () =>
      statsd.of('svc.test.one.stream.connections', 'g').some(({ value }) => value === 1),
    )
    events.close()
    await waitFor('the end of the stream to be counted', () => statsd.count('svc.test.one.stream.request') === 1)
    // What nobody is to make a name of.
    for (const path of [
      '/v1/unknown/a:1|c',
      '/v1/%0Aevil:1%7Cc',
      '/v1/actions/core.a%0Aevil:1%7Cc%7C%23x',
      '/v1/executions/last',
    ]) {
      await of.call('GET', path)
    }
    await of.call('POST', '/v1/executions', { action: 'core.evil\nevil:1|c|@0.1|#x:y' })
    await of.call('GET', '/v1/executions')
    await waitFor(
      'both instances to be processed',
      () => statsd.count('svc.test.one.rule.default.hooked.processed') === 2,
    )
  }

  const key = (name: string): string => `svc.test.one.${name}`

  it('10.4 takes every line, in packets that fit a network', () => {
    expect(statsd.broken).toEqual([])
    expect(statsd.samples.length).toBeGreaterThan(200)
    expect(statsd.longestPacketBytes).toBeLessThanOrEqual(1432)
    expect([...statsd.names()].filter((name) => !name.startsWith('svc.test.one.'))).toEqual([])
  })

  it.each([
    ['action.executions', 9],
    ['action.core.local.executions', 4],
    ['action.measured.echo_deep.executions', 1],
    ['orquesta.workflow.executions', 1],
    ['orquesta.action.executions', 2],
    ['rule.processed', 2],
    ['rule.default.hooked.processed', 2],
  ])('10.4 %s is a counter and a timer', (name, count) => {
    expect(statsd.count(key(name))).toBe(count)
    expect(statsd.of(key(name), 'ms')).toHaveLength(count)
  })

  it('10.4 timers are milliseconds', () => {
    const longest = Math.max(...statsd.of(key('action.core.local.executions'), 'ms').map(({ value }) => value))
    expect(longest).toBeGreaterThanOrEqual(1000)
    expect(longest).toBeLessThan(120_000)
  })

  it.each([
    ['succeeded', 6],
    ['failed', 1],
    ['timeout', 1],
    ['canceled', 1],
    ['requested', 0],
    ['scheduled', 0],
    ['running', 0],
    ['canceling', 0],
  ])('10.4 action.executions.%s counts who comes and who goes: %i are left', (status, left) => {
    const name = key(`action.executions.${status}`)
    expect(statsd.of(name, 'c').length).toBeGreaterThan(0)
    expect(statsd.count(name)).toBe(left)
  })

  it.each(['rule.matched', 'rule.default.hooked.matched'])('10.4 %s is a counter', (name) => {
    expect(statsd.count(key(name))).toBe(1)
    expect(statsd.of(key(name), 'ms')).toEqual([])
  })

  it('10.4 trigger.<ref>.processed is a counter and a timer', () => {
    const names = [...statsd.names()].filter((name) => /^svc\.test\.one\.trigger\.core\..+\.processed$/.test(name))
    expect(names).toHaveLength(1)
    expect(statsd.count(names[0] ?? '')).toBe(2)
    expect(statsd.of(names[0] ?? '', 'ms')).toHaveLength(2)
  })

  it.each(['scheduler.handle_execution', 'notifier.action.executions', 'notifier.apply_post_run_policies'])(
    '10.4 %s is a counter and a timer, for each execution',
    (name) => {
      // Once more where somebody else was faster, so that it is planned again.
      expect(statsd.count(key(name))).toBeGreaterThanOrEqual(9)
      expect(statsd.of(key(name), 'ms')).toHaveLength(statsd.count(key(name)))
    },
  )

  it.each([
    'action.executions.update_status',
    ...['runners', 'actions', 'aliases', 'configs', 'policies', 'rules', 'sensors', 'triggers'].map(
      (kind) => `register.${kind}`,
    ),
  ])('10.4 %s is a timer', (name) => {
    expect(statsd.of(key(name), 'ms').length).toBeGreaterThan(0)
    expect(statsd.of(key(name), 'c')).toEqual([])
  })

  it('10.4 requests are counted by listener, method, path and status', () => {
    expect(statsd.count(key('api.request.method.DELETE'))).toBe(1)
    expect(statsd.count(key('api.request.path._v1_webhooks_hook'))).toBe(2)
    expect(statsd.count(key('api.response.status.202'))).toBe(2)
    expect(statsd.count(key('stream.request.path._v1_stream'))).toBe(1)
    expect(statsd.count(key('stream.request'))).toBe(1)
    expect(statsd.count(key('api.request.total'))).toBe(statsd.count(key('api.request')))
    expect(statsd.of(key('api.request'), 'ms')).toHaveLength(statsd.count(key('api.request')))
  })

  it('10.4 single objects and unknown paths are not, and nobody injects a line', () => {
    const paths = [...statsd.names()].filter((name) => name.includes('.request.path.'))
    expect(paths.filter((name) => /actions_|unknown|evil|last/.test(name))).toEqual([])
    // That is DELETE.
    expect(statsd.count(key('api.request.path._v1_executions_id'))).toBe(1)
    expect([...statsd.names()].filter((name) => name.includes('evil'))).toEqual([])
    expect(statsd.of(key('api.response.status.404'), 'c')).toEqual([])
  })

  it.each([
    'actionrunner.queue.request',
    'actionrunner.queue.work',
    'actionrunner.queue.cancel',
    'actionrunner.slots.used',
    'actionrunner.slots.size',
    'rulesengine.queue.trigger',
    'stream.connections',
    'event_loop.delay_p99_ms',
    'database.log_bytes',
    'process.memory.resident_bytes',
  ])('10.4, 10.7 %s is a gauge', (name) => {
    expect(statsd.of(key(name), 'g').length).toBeGreaterThan(0)
  })
})
