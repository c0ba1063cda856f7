/** The page for Prometheus: right by promtool's judgement, true, and for whom it is meant; and what docs/monitoring.md says of it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { docBlock, docPage } from '../helpers/doc-blocks.ts'
import { writeFlowPack } from '../helpers/flow-pack.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { promtool, readSamples } from '../helpers/promtool.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { call, run, runToEnd, waitForStatus, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { fullOnly } from '../helpers/tiers.ts'

async function scrape(server: TestApp, headers: Record<string, string> = {}): Promise<string> {
  const answer = await server.call<string>('GET', '/metrics', undefined, headers)
  expect(answer.status).toBe(200)
  return answer.text
}

async function valueOf(server: TestApp, name: string, labels: Record<string, string> = {}): Promise<number> {
  const fitting = readSamples(await scrape(server)).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return fitting.reduce((sum, { value }) => sum + value, 0)
}

describe('10.4 /metrics while everybody may read it', () => {
  const folder = makeFolder()
  let server: TestApp
  beforeAll(async () => {
    writeFlowPack(folder.path, {
      two: 'version: 1.0\ntasks: {first: {action: core.noop, next: [{do: second}]}, second: {action: core.noop}}\n',
      fails: 'version: 1.0\ntasks: {a: {action: core.local cmd="exit 1"}}\n',
      waits: 'version: 1.0\ntasks: {ask: {action: core.ask}}\n',
    })
    server = await createTestApp({ basePath: folder.path, settings: { 'actionrunner.actions_pool_size': '1' } })
  })
  afterAll(async () => {
    await server.stop()
    folder.remove()
  })

  fullOnly(it)('10.4 is what promtool takes without a complaint', async () => {
    await runToEnd(server, { cmd: 'echo x' })
    await server.call('GET', '/v1/"quoted\\path')
    await server.call('POST', '/v1/executions', { action: 'core."evil\n\\' })
    const answer = await server.call<string>('GET', '/metrics')
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await promtool(['check', 'metrics'], answer.text)).toBe('')
    expect(readSamples(answer.text).filter(({ name, value }) => name === '' || Number.isNaN(value))).toEqual([])
  })

  it('10.4 counts executions by action and status', async () => {
    const labels = { action: 'core.local', status: 'failed' }
    const before = await valueOf(server, 'svc_action_executions_total', labels)
    await runToEnd(server, { cmd: 'exit 3' })
    expect(await valueOf(server, 'svc_action_executions_total', labels)).toBe(before + 1)
    const runs = await valueOf(server, 'svc_action_execution_duration_seconds_count', { runner: 'local-shell-cmd' })
    await runToEnd(server, { cmd: 'sleep 0.3' })
    const name = 'svc_action_execution_duration_seconds_bucket'
    expect(await valueOf(server, 'svc_action_execution_duration_seconds_count')).toBe(runs + 1)
    expect(await valueOf(server, name, { le: '0.25', runner: 'local-shell-cmd' })).toBeLessThan(runs + 1)
  })

  it('10.4 counts workflows by status, and the executions of their tasks', async () => {
    const count = (status: string): Promise<number[]> =>
      Promise.all([
        valueOf(server, 'svc_workflow_execution_duration_seconds_count', { status }),
        valueOf(server, 'svc_workflow_action_executions_total', { status }),
      ])
    const begin = async (name: string): Promise<string> =>
      (await server.call<{ id: string }>('POST', '/v1/executions', { action: `flow.${name}` })).body.id
    for (const name of ['two', 'fails']) await waitForStatus(server, await begin(name))
    expect(await count('succeeded')).toEqual([1, 2])
    expect(await count('failed')).toEqual([1, 1])
    expect(await valueOf(server, 'svc_workflows_open')).toBe(0)
    await waitForStatus(server, await begin('waits'), ['paused'])
    expect(await valueOf(server, 'svc_workflows_open')).toBe(1)
  })

  it('10.4 shows what runs, what waits and who listens', async () => {
    const first = await run(server, { cmd: 'sleep 60' })
    await waitForStatus(server, first.id, ['running'])
    const second = await run(server, { cmd: 'sleep 60' })
    const events = await openEvents(`${server.urls.stream}/v1/stream`)
    expect(await valueOf(server, 'svc_actionrunner_slots_used')).toBe(1)
    expect(await valueOf(server, 'svc_actionrunner_slots_size')).toBe(1)
    expect(await valueOf(server, 'svc_executions_running')).toBe(1)
    expect(await valueOf(server, 'svc_actionrunner_queue_request')).toBe(1)
    expect(await valueOf(server, 'svc_stream_connections')).toBe(1)
    events.close()
    await waitFor('the stream to be gone', async () => (await valueOf(server, 'svc_stream_connections')) === 0)
    for (const { id } of [second, first]) {
      await server.call('DELETE', `/v1/executions/${id}`)
      await waitForStatus(server, id)
    }
    await waitFor('the slot to be free', async () => (await valueOf(server, 'svc_actionrunner_slots_used')) === 0)
  })

  it('10.4 has routes in place of paths, so that nobody makes names', async () => {
    for (let i = 0; i < 50; i += 1) await server.call('GET', `/v1/nothing-${i}`)
    for (let i = 0; i < 50; i += 1) await server.call('GET', `/v1/executions/${String(i).padStart(24, '0')}`)
    const routes = readSamples(await scrape(server)).filter(({ name }) => name === 'svc_http_requests_total')
    const notFound = routes.filter(({ labels }) => labels['status'] === '404')
    expect(Object.fromEntries(notFound.map(({ labels, value }) => [labels['route'], value]))).toEqual({
      '/executions/:id': 50,
      unknown: expect.any(Number),
    })
  })

  it.each([
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'process_open_fds',
    'svc_build_info',
    'svc_database_file_bytes',
    'svc_database_commits_total',
    'svc_event_loop_delay_max_seconds',
    'svc_log_messages_total',
  ])('10.4 has %s', async (name) => {
    expect(await valueOf(server, name)).toBeGreaterThan(0)
  })

  fullOnly(it)('10.4 docs/monitoring.md has every metric, and none that does not exist', async () => {
    await runToEnd(server, { cmd: 'echo x' })
    // What is known once something has happened.
    await server.call('POST', '/v1/backups')
    const roundAge = 'svc_garbagecollector_last_round_age_seconds'
    await waitFor('a round of the garbage collector', async () => (await scrape(server)).includes(roundAge))
    const families: string[] = (await scrape(server)).match(/(?<=^# TYPE )\w+/gm) ?? []
    const names: string[] = docPage('monitoring.md').match(/\b(svc|process)_[a-z][a-z0-9_]*\b(?![(])/g) ?? []
    const named = new Set(names)
    expect(families.filter((name) => !named.has(name))).toEqual([])
    expect([...named].filter((name) => !families.includes(name))).toEqual([])
  })

  it('10.4 answers on the API listener alone', async () => {
    expect((await call(`${server.urls.stream}/metrics`, 'GET')).status).toBe(404)
    expect((await call(`${server.urls.auth}/metrics`, 'GET')).status).toBe(404)
    const { headers } = await call(`${server.urls.api}/metrics`, 'GET')
    expect(headers.get('cache-control')).toBe('no-store')
  })
})

describe('10.4 /metrics while one has to sign in', () => {
  const folder = makeFolder()
  const token = 'a-word-for-the-scraper'
  const bearer = (word: string): Record<string, string> => ({ Authorization: `Bearer ${word}` })
  let server: TestApp
  let admin: Record<string, string>

  beforeAll(async () => {
    server = await createTestApp({
      basePath: folder.path,
      settings: {
        'auth.enable': 'True',
        'rbac.enable': 'True',
        'rbac.backend': 'default',
        'metrics.prometheus_token': token,
      },
    })
    const login = await call<{ token: string }>(
      `${server.urls.auth}/tokens`,
      'POST',
      {},
      { Authorization: basicAuth('admin', firstPassword(folder.path)) },
    )
    admin = { 'X-Auth-Token': login.body.token }
  })
  afterAll(async () => {
    await server.stop()
    folder.remove()
  })

  const statusWith = async (headers: Record<string, string>): Promise<number> =>
    (await server.call('GET', '/metrics', undefined, headers)).status

  it('10.4 takes the token of the scraper, which opens nothing else', async () => {
    expect(await promtool(['check', 'metrics'], await scrape(server, bearer(token)))).toBe('')
    expect(await statusWith({ Authorization: `bearer   ${token}` })).toBe(200)
    expect((await server.call('GET', '/v1/executions', undefined, bearer(token))).status).toBe(401)
    expect((await server.call('GET', '/v1/apikeys', undefined, bearer(token))).status).toBe(401)
  })

  it.each([
    {},
    bearer(`${token}x`),
    bearer(token.slice(0, -1)),
    { Authorization: 'Bearer ' },
    { Authorization: token },
    { Authorization: `Basic ${token}` },
    { 'X-Auth-Token': token },
  ])('10.4 refuses %j', async (headers) => {
    expect(await statusWith(headers)).toBe(401)
  })

  it('10.4 takes an administrator, and nobody else who is signed in', async () => {
    expect(await statusWith(admin)).toBe(200)
    const user = await server.call('POST', '/v1/users', { name: 'reader', password: 'long enough to be one' }, admin)
    expect(user.status).toBe(201)
    const login = await call<{ token: string }>(
      `${server.urls.auth}/tokens`,
      'POST',
      {},
      { Authorization: basicAuth('reader', 'long enough to be one') },
    )
    expect(await statusWith({ 'X-Auth-Token': login.body.token })).toBe(403)
  })

  it('10.4 never shows the token', async () => {
    await statusWith(bearer('another-word-for-the-scraper'))
    expect(server.log()).not.toContain(token)
    expect(server.log()).not.toContain('another-word')
  })
})

describe('10.4 metrics.prometheus', () => {
  fullOnly(it)('10.4 off, there is no page', async () => {
    await withApp({ settings: { 'metrics.prometheus': 'False' } }, async (server) => {
      expect((await server.call('GET', '/metrics')).status).toBe(404)
    })
  })

  it.each([
    ['metrics.driver', 'graphite'],
    ['metrics.sample_rate', '1.5'],
    ['metrics.prefix', 'a b'],
    ['metrics.prometheus_token', 'short'],
  ])('10.4 %s = %s is refused', async (key, value) => {
    await expect(createTestApp({ settings: { [key]: value } })).rejects.toThrow(key)
  })
})

describe('10.4 docs/monitoring.md', () => {
  const folder = makeFolder()
  const rules = join(folder.path, 'svc.rules.yml')
  writeFileSync(rules, docBlock('monitoring.md', '# svc.rules.yml'))
  afterAll(() => folder.remove())

  fullOnly(it)('10.4 its scrape configuration and its rules are right by promtool', async () => {
    const config = join(folder.path, 'prometheus.yml')
    writeFileSync(config, `${docBlock('monitoring.md', '# prometheus.yml')}rule_files: [svc.rules.yml]\n`)
    expect(await promtool(['check', 'config', config])).toBe('')
    expect(await promtool(['check', 'rules', '--lint-fatal', rules])).toBe('')
  })

  it.each([
    ['SvcDown', { 'up{job="svc",instance="a"}': '1 0x10' }, { job: 'svc' }, 'The server at a does not answer.'],
    [
      'SvcQueueLong',
      { 'svc_actionrunner_queue_work{instance="a"}': '9 10x10', 'svc_actionrunner_queue_cancel{instance="a"}': '0x10' },
      {},
      'Executions queue up at a: 10.',
    ],
    [
      'SvcActionsFail',
      {
        'svc_action_executions_total{instance="a",action="p.bad",status="failed"}': '0+1x10',
        'svc_action_executions_total{instance="a",action="p.good",status="succeeded"}': '0+9x10',
        'svc_action_executions_total{instance="a",action="p.good",status="failed"}': '0+1x10',
      },
      { action: 'p.bad' },
      'More than half of the executions of p.bad fail.',
    ],
    [
      'SvcErrorsLogged',
      {
        'svc_log_messages_total{instance="a",level="ERROR"}': '0 0 0 1x7',
        'svc_log_messages_total{instance="a",level="AUDIT"}': '0+9x10',
      },
      {},
      'a logs errors; see svc status.',
    ],
    [
      'SvcBackupOld',
      { 'up{job="svc",instance="a"}': '1x200', 'svc_backup_last_age_seconds{job="svc",instance="a"}': '200000x200' },
      { job: 'svc' },
      'The newest backup of a is older than two days, or there is none.',
    ],
    [
      'SvcBackupOld',
      { 'up{job="svc",instance="a"}': '1x200' },
      { job: 'svc' },
      'The newest backup of a is older than two days, or there is none.',
    ],
    [
      'SvcBackupOld',
      { 'up{job="svc",instance="a"}': '1x200', 'svc_backup_last_age_seconds{job="svc",instance="a"}': '100000x200' },
      undefined,
      '',
    ],
    ['SvcErrorsLogged', { 'svc_log_messages_total{instance="a",level="INFO"}': '0+9x10' }, undefined, ''],
    ['SvcQueueLong', { 'svc_actionrunner_queue_work{instance="a"}': '9x10' }, undefined, ''],
  ])('10.4 its rule %s: %j', async (alertname, series, labels, summary) => {
    const severities: Record<string, string> = { SvcDown: 'critical' }
    const severity = severities[alertname] ?? 'warning'
    const expected = labels && {
      exp_labels: { instance: 'a', severity, ...labels },
      exp_annotations: { summary },
    }
    const test = {
      rule_files: [rules],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          alert_rule_test: [
            {
              eval_time: alertname === 'SvcBackupOld' ? '3h' : '10m',
              alertname,
              exp_alerts: expected === undefined ? [] : [expected],
            },
          ],
        },
      ],
    }
    const file = join(folder.path, 'test.yml')
    writeFileSync(file, JSON.stringify(test))
    expect(await promtool(['test', 'rules', file])).toBe('')
  })
})
