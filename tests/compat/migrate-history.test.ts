/** `svc migrate import --history`: what has run on StackStorm can be read here, and causes nothing. */
import { zstdCompressSync } from 'node:zlib'
import { Binary, Long, ObjectId, serialize } from 'bson'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { makeInstallation, type Installation } from './installation.ts'

interface Summary {
  counts: Record<string, Record<string, number>>
  attention: { name: string; outcome: string; why?: string }[]
  problems: string[]
  history: Record<string, number>
}

const action = {
  id: '5a1f0c2e4b0a1d2c3e4f0001',
  ref: 'shop.order',
  name: 'order',
  pack: 'shop',
  runner_type: 'local-shell-cmd',
  parameters: { card: { type: 'string', secret: true }, item: { type: 'string' } },
}
const runner = { name: 'local-shell-cmd', runner_parameters: { cmd: { type: 'string' } } }

const parentId = '5a1f0c2e4b0a1d2c3e4f1001'
const childId = '5a1f0c2f4b0a1d2c3e4f1002'
const traceId = '5a1f0c2e4b0a1d2c3e4f2001'

/** As the API and the command line export it. */
const child = {
  id: childId,
  status: 'failed',
  start_timestamp: '2017-11-29T20:00:00.000250Z',
  end_timestamp: '2017-11-29T20:00:02.500250Z',
  action,
  runner,
  liveaction: {
    id: '5a1f0c2f4b0a1d2c3e4f3002',
    action: 'shop.order',
    callback: { source: 'hook' },
    runner_info: { hostname: 'old', pid: 7 },
    notify: { 'on-complete': { routes: ['chat'] } },
  },
  parameters: { card: '4111-1111', item: 'book' },
  result: { stdout: 'paid with 4111-1111', succeeded: false, big: 12345678901234567890n },
  context: { user: 'ada', parent: { pack: 'shop' } },
  log: [
    { status: 'requested', timestamp: '2017-11-29T20:00:00.000250Z' },
    { status: 'running', timestamp: '2017-11-29T20:00:01.000000Z' },
    { status: 'failed', timestamp: '2017-11-29T20:00:02.500250Z' },
  ],
  parent: parentId,
  rule: { id: '5a1f0c2e4b0a1d2c3e4f4001', name: 'on_order', pack: 'shop', ref: 'shop.on_order' },
  trigger: { name: 'x', pack: 'core', ref: 'core.x', type: 'core.st2.webhook' },
  trigger_type: { name: 'st2.webhook', pack: 'core', ref: 'core.st2.webhook' },
  trigger_instance: { id: '5a1f0c2e4b0a1d2c3e4f5001', payload: {}, trigger: 'core.x' },
}
const parent = {
  id: parentId,
  status: 'canceled',
  start_timestamp: '2017-11-29T19:59:58.000000Z',
  end_timestamp: '2017-11-29T20:00:03.000000Z',
  action: { ...action, ref: 'shop.flow', name: 'flow', runner_type: 'orquesta', parameters: {} },
  runner: { name: 'orquesta', runner_parameters: {} },
  liveaction: { id: '5a1f0c2e4b0a1d2c3e4f3001', action: 'shop.flow' },
  result: { output: null },
  context: { user: 'ada' },
}
const trace = {
  id: traceId,
  trace_tag: 'order-1',
  start_timestamp: '2017-11-29T19:59:58.000000Z',
  action_executions: [
    { object_id: parentId, ref: 'shop.flow', updated_at: '2017-11-29T19:59:58.000000Z', caused_by: {} },
    {
      object_id: childId,
      ref: 'shop.order',
      updated_at: '2017-11-29T20:00:00.000250Z',
      caused_by: { type: 'action_execution', id: parentId },
    },
  ],
  rules: [],
  trigger_instances: [],
}

/** JSON with large numbers. */
const json = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? `big:${inner}` : inner)).replaceAll(
    /"big:(\d+)"/g,
    '$1',
  )

describe('svc migrate import --history', () => {
  let old: Installation
  let app: InProcessApp
  beforeEach(async () => {
    old = makeInstallation()
    app = await createTestApp()
  })
  afterEach(async () => {
    await app.stop()
    old.remove()
  })

  const cli = (...args: string[]) => runCli(args, { SVC_API_URL: `${app.urls.api}/v1` })

  async function importAll(...args: string[]): Promise<Summary & { code: number | null; text: string }> {
    const { code, stdout, stderr } = await runCli(
      ['migrate', 'import', old.path, '--config-file', app.configFile, '-j', ...args],
      {},
    )
    expect(stderr).toBe('')
    return { code, text: stdout, ...(JSON.parse(stdout) as Summary) }
  }

  const read = async (path: string): Promise<unknown> => (await app.call('GET', path)).body

  test('shows what has run, with its times, its secrets masked, and causes nothing', async () => {
    await app.call('POST', '/v1/rules', {
      name: 'every_end',
      enabled: true,
      trigger: { type: 'core.svc.generic.actiontrigger', parameters: {} },
      criteria: {},
      action: { ref: 'core.noop' },
    })
    old.write(
      'executions.json',
      json([
        child,
        parent,
        { ...parent, id: '5a1f0c2e4b0a1d2c3e4f1003', status: 'running' },
        { ...parent, id: '5a1f0c2e4b0a1d2c3e4f1004', status: 'odd' },
      ]),
    )
    old.write('traces.json', [trace])
    expect(await importAll()).toMatchObject({ code: 0, counts: {}, history: { execution: 4, trace: 1 } })
    const counts = { execution: { imported: 2, skipped: 1, refused: 1 }, trace: { imported: 1 } }
    expect(await importAll('--history', '--dry-run')).toMatchObject({ counts })
    expect(await read('/v1/executions')).toEqual([])
    const first = await importAll('--history')
    expect(first).toMatchObject({ code: 1, counts, history: {}, problems: [] })
    expect(first.attention).toEqual([
      expect.objectContaining({ name: '5a1f0c2e4b0a1d2c3e4f1004', why: 'svc does not know its status' }),
    ])

    expect(await read(`/v1/executions/${childId}`)).toMatchObject({
      id: childId,
      status: 'failed',
      start_timestamp: '2017-11-29T20:00:00.000250Z',
      end_timestamp: '2017-11-29T20:00:02.500250Z',
      elapsed_seconds: 2.5,
      parent: parentId,
      parameters: { card: '********', item: 'book' },
      result: { stdout: 'paid with ********', succeeded: false },
      context: { user: 'ada' },
      log: child.log,
      liveaction: {
        id: '5a1f0c2f4b0a1d2c3e4f3002',
        callback: { source: 'hook' },
        runner_info: { hostname: 'old', pid: 7 },
        notify: { 'on-complete': { routes: ['chat'] } },
      },
      rule: { name: 'on_order', ref: 'shop.on_order' },
      trigger: { type: 'core.svc.webhook' },
      trigger_type: { ref: 'core.svc.webhook' },
      trigger_instance: { id: '5a1f0c2e4b0a1d2c3e4f5001' },
    })
    expect((await app.call('GET', `/v1/executions/${childId}/result`)).text).toContain('12345678901234567890')
    expect(await read(`/v1/executions/${childId}?show_secrets=true`)).toMatchObject({
      parameters: { card: '4111-1111' },
    })
    expect(await read(`/v1/executions/${parentId}`)).toMatchObject({
      status: 'canceled',
      children: [childId],
      result: { output: null },
    })
    expect((await cli('execution', 'list')).stdout).toContain(parentId)
    expect((await cli('execution', 'get', childId)).stdout).toContain('shop.order')
    expect((await cli('trace', 'get', traceId)).stdout).toContain(childId)
    expect(await read(`/v1/traces?execution=${childId}`)).toMatchObject([{ id: traceId, trace_tag: 'order-1' }])

    const again = await importAll('--history')
    expect(again.counts).toEqual({ execution: { unchanged: 2, skipped: 1, refused: 1 }, trace: { unchanged: 1 } })
    // The first to be told of an end is one of here.
    await app.call('POST', '/v1/executions', { action: 'core.noop' })
    const { stdout } = await cli('run', 'core.noop')
    expect(stdout).toContain('succeeded')
    const instances = (await read('/v1/triggerinstances?trigger_type=core.svc.generic.actiontrigger')) as object[]
    expect(JSON.stringify(instances)).not.toContain(childId)
  })

  test('what led to them can be read too: trigger instances, enforcements, and the way between them', async () => {
    const instanceId = '5a1f0c2d4b0a1d2c3e4f5001'
    const enforcementId = '5a1f0c2e4b0a1d2c3e4f6001'
    const instance = {
      id: instanceId,
      trigger: 'core.0a1b2c3d-1111-2222-3333-444455556666',
      occurrence_time: '2017-11-29T19:59:57.000000Z',
      payload: { body: { order: 42 }, headers: { Authorization: 'Bearer s3cr3t', 'X-Shop': 'a' } },
      status: 'processed',
    }
    const enforcement = {
      id: enforcementId,
      trigger_instance_id: instanceId,
      execution_id: childId,
      rule: { id: '5a1f0c2e4b0a1d2c3e4f4001', ref: 'shop.on_order', uid: 'rule:shop:on_order' },
      enforced_at: '2017-11-29T19:59:58.000000Z',
      status: 'succeeded',
    }
    old.write('executions.json', json([child, parent]))
    old.write('triggers.json', [
      { ref: instance.trigger, type: 'core.st2.webhook', name: 'x', pack: 'core', parameters: { url: 'order' } },
    ])
    old.write('instances.json', [
      instance,
      { ...instance, id: '5a1f0c2d4b0a1d2c3e4f5002', status: 'pending' },
      { ...instance, id: '5a1f0c2d4b0a1d2c3e4f5003', status: 'processing_failed', trigger: 'shop.gone', payload: {} },
      { ...instance, id: 'x' },
    ])
    old.write('enforcements.json', [
      enforcement,
      { ...enforcement, id: '5a1f0c2e4b0a1d2c3e4f6002', execution_id: null, failure_reason: 'no such action' },
    ])
    old.write('traces.json', [
      {
        ...trace,
        rules: [{ object_id: enforcement.rule.id, ref: 'shop.on_order', updated_at: enforcement.enforced_at }],
        trigger_instances: [{ object_id: instanceId, ref: instance.trigger, updated_at: instance.occurrence_time }],
      },
    ])
    const first = await importAll('--history')
    expect(first.counts).toMatchObject({
      trigger_instance: { imported: 2, skipped: 1, refused: 1 },
      rule_enforcement: { imported: 2 },
      trace: { imported: 1 },
    })
    expect(first.text).not.toContain('s3cr3t')
    expect(await read(`/v1/triggerinstances/${instanceId}`)).toMatchObject({
      id: instanceId,
      trigger: instance.trigger,
      trigger_type: 'core.svc.webhook',
      occurrence_time: instance.occurrence_time,
      payload: { body: { order: 42 }, headers: { Authorization: '********', 'X-Shop': 'a' } },
      status: 'processed',
    })
    expect(await read('/v1/triggerinstances?status=processing_failed')).toMatchObject([{ trigger_type: 'shop.gone' }])
    expect(await read(`/v1/ruleenforcements/views/${enforcementId}`)).toMatchObject({
      rule: { ref: 'shop.on_order' },
      status: 'succeeded',
      trigger_instance: { id: instanceId, payload: { body: { order: 42 } } },
      execution: { id: childId, status: 'failed' },
    })
    expect(await read(`/v1/ruleenforcements?execution=${childId}`)).toMatchObject([{ id: enforcementId }])
    expect(await read('/v1/ruleenforcements?rule_ref=shop.on_order')).toMatchObject([
      { status: 'failed', failure_reason: 'no such action' },
      { id: enforcementId },
    ])
    expect(await read(`/v1/traces?trigger_instance=${instanceId}`)).toMatchObject([{ id: traceId }])
    expect((await cli('trigger-instance', 'get', instanceId)).stdout).toContain('core.svc.webhook')
    expect((await importAll('--history')).counts).toMatchObject({
      trigger_instance: { unchanged: 2, skipped: 1, refused: 1 },
      rule_enforcement: { unchanged: 2 },
    })
    for (const kind of ['trigger-instances', 'rule-enforcements']) {
      const answer = await app.call('POST', `/v1/purge/${kind}`, { before: '2018-01-01T00:00:00Z' })
      expect(answer.status).toBe(200)
    }
    expect(await read('/v1/triggerinstances')).toEqual([])
    expect(await read('/v1/ruleenforcements')).toEqual([])
  })

  test('their output is there, in its order, without their secrets, once', async () => {
    const record = (i: number, more: object = {}): object => ({
      id: `5a1f0c304b0a1d2c3e4f700${i}`,
      execution_id: childId,
      action_ref: 'shop.order',
      runner_ref: 'local-shell-cmd',
      timestamp: `2017-11-29T20:00:01.00000${i}Z`,
      output_type: 'stdout',
      data: `line ${i}\n`,
      ...more,
    })
    old.write('executions.json', json([child, parent]))
    old.write('output.json', [
      record(1),
      record(2, { data: 'paid with 4111-1111\n' }),
      record(3, { output_type: 'stderr', data: 'oh é\n' }),
      record(4, { execution_id: '5a1f0c2f4b0a1d2c3e4f9999' }),
    ])
    expect((await importAll('--history', '--dry-run')).counts).toMatchObject({ execution_output: { imported: 4 } })
    const first = await importAll('--history')
    expect(first).toMatchObject({ code: 0, counts: { execution_output: { imported: 3, skipped: 1 } } })
    const text = 'line 1\npaid with ********\n'
    expect((await app.call('GET', `/v1/executions/${childId}/output?output_type=stdout`)).text).toBe(text)
    expect((await cli('execution', 'tail', childId)).stdout).toContain('oh é')
    old.write('more.json', [record(1), record(5)])
    expect((await importAll('--history')).counts).toMatchObject({
      execution_output: { imported: 1, unchanged: 4, skipped: 1 },
    })
    expect((await app.call('GET', `/v1/executions/${childId}/output?output_type=stdout`)).text).toBe(`${text}line 5\n`)
    await app.call('POST', '/v1/purge/output', { before: '2018-01-01T00:00:00Z' })
    expect((await app.call('GET', `/v1/executions/${childId}/output`)).text).toBe('')
  })

  test('what only their live actions know is taken from these', async () => {
    const live = (i: number): string => `5a1f10004b0a1d2c3e4f800${i}`
    const one = (i: number, more: object): Uint8Array =>
      serialize({
        _id: new ObjectId(`5a1f10004b0a1d2c3e4f900${i}`),
        start_timestamp: Long.fromNumber(1_511_985_600_000_250),
        action: { ...action, runner_type: { name: 'local-shell-cmd' } },
        runner,
        liveaction: live(i),
        context: { user: 'ada' },
        ...more,
      })
    const result = new Binary(Buffer.from('{"stdout": "done"}'))
    old.write(
      'dump/st2/action_execution_d_b.bson',
      Buffer.concat([
        one(1, { status: 'running' }),
        one(2, { status: 'succeeded' }),
        one(3, { status: 'running' }),
        one(4, { status: 'failed', result: new Binary(Buffer.from('{"own": 1}')) }),
      ]),
    )
    const of = (i: number, more: object): Uint8Array =>
      serialize({ _id: new ObjectId(live(i)), action: 'shop.order', action_is_workflow: false, ...more })
    old.write(
      'dump/st2/live_action_d_b.bson',
      Buffer.concat([
        of(1, { status: 'timeout', result, end_timestamp: new Date(1_511_985_602_000), callback: { source: 'hook' } }),
        of(2, { status: 'succeeded', result }),
        of(3, { status: 'running' }),
        of(4, { status: 'succeeded', result }),
      ]),
    )
    expect((await importAll('--history')).counts).toEqual({ execution: { imported: 3, skipped: 1 } })
    expect(await read('/v1/executions/5a1f10004b0a1d2c3e4f9001')).toMatchObject({
      status: 'timeout',
      end_timestamp: '2017-11-29T20:00:02.000000Z',
      result: { stdout: 'done' },
      liveaction: { id: live(1), callback: { source: 'hook' } },
    })
    expect(await read('/v1/executions/5a1f10004b0a1d2c3e4f9002')).toMatchObject({ result: { stdout: 'done' } })
    expect(await read('/v1/executions/5a1f10004b0a1d2c3e4f9004')).toMatchObject({
      status: 'failed',
      result: { own: 1 },
    })
  })

  test('a user of its own is left for later while authentication is off', async () => {
    old.write('users.json', [{ name: 'robot', is_service: true, nicknames: {} }])
    const { code, counts } = await importAll()
    expect([code, counts]).toEqual([0, { user: { skipped: 1 } }])
    expect((await importAll('--dry-run')).counts).toEqual({ user: { skipped: 1 } })
  })

  test('the cleanup counts them by their own times', async () => {
    old.write('executions.json', json([child, parent]))
    old.write('traces.json', [trace])
    await importAll('--history')
    await app.call('POST', '/v1/purge/executions', { before: '2017-11-29T00:00:00Z' })
    expect(await read('/v1/executions')).toHaveLength(2)
    await app.call('POST', '/v1/purge/executions', { before: '2018-01-01T00:00:00Z' })
    expect(await read('/v1/executions')).toEqual([])
  })

  test('reads the database as it is stored', async () => {
    const at = 1_511_985_600_000_250
    const stored = (value: unknown, header = ''): Binary =>
      new Binary(Buffer.concat([Buffer.from(header), Buffer.from(JSON.stringify(value))]))
    const compressed = zstdCompressSync(Buffer.from(JSON.stringify({ stdout: 'x'.repeat(10_000) })))
    const document = (id: string, more: Record<string, unknown>): Record<string, unknown> => ({
      _id: new ObjectId(id),
      status: 'succeeded',
      start_timestamp: Long.fromNumber(at),
      end_timestamp: Long.fromNumber(at + 1_000_000),
      action: { ...action, id: undefined, _id: new ObjectId(), runner_type: { name: 'local-shell-cmd' } },
      runner,
      liveaction: id,
      parameters: stored({ 'item．name': 'book' }),
      context: { user: 'ada' },
      log: [{ status: 'succeeded', timestamp: new Date(1_511_985_601_000) }],
      ...more,
    })
    const ids = ['5a1f10004b0a1d2c3e4f0001', '5a1f10004b0a1d2c3e4f0002', '5a1f10004b0a1d2c3e4f0003'] as const
    const documents = [
      document(ids[0], { result: stored({ a: 1 }), liveaction: { id: '5a1f0c2f4b0a1d2c3e4f3001' } }),
      document(ids[1], { result: new Binary(Buffer.concat([Buffer.from('o:z:'), compressed])) }),
      document(ids[2], { result: stored({ b: 2 }, 'o:n:') }),
      document('5a1f10004b0a1d2c3e4f0004', { result: new Binary(Buffer.from('{"cut": ')) }),
      document('5a1f10004b0a1d2c3e4f0005', { result: new Binary(compressed.subarray(0, 10)) }),
    ]
    old.write(
      'dump/st2/action_execution_d_b.bson',
      Buffer.concat(documents.map((each) => Buffer.from(serialize(each)))),
    )
    const { counts, attention } = await importAll('--history')
    expect(counts).toEqual({ execution: { imported: 3, refused: 2 } })
    expect(attention.map(({ why }) => why)).toEqual([
      expect.stringContaining('damaged'),
      expect.stringContaining('damaged'),
    ])
    expect(await read(`/v1/executions/${ids[0]}`)).toMatchObject({
      start_timestamp: '2017-11-29T20:00:00.000250Z',
      elapsed_seconds: 1,
      parameters: { 'item.name': 'book' },
      result: { a: 1 },
      runner: { name: 'local-shell-cmd' },
      liveaction: { id: '5a1f0c2f4b0a1d2c3e4f3001' },
    })
    expect(await read(`/v1/executions/${ids[1]}`)).toMatchObject({ result: { stdout: 'x'.repeat(10_000) } })
    expect(await read(`/v1/executions/${ids[2]}`)).toMatchObject({
      result: { b: 2 },
      liveaction: { id: '5a1f10004b0a1d2c3e4f0003' },
    })
    expect((await importAll('--history')).counts).toEqual({ execution: { unchanged: 3, refused: 2 } })
  })

  test('one that the server refuses does not keep the others out', async () => {
    const large = { ...child, id: '5a1f0c2f4b0a1d2c3e4f1005', log: Array.from({ length: 1001 }, () => child.log[0]) }
    const twice = { ...child, id: '5a1f0c2f4b0a1d2c3e4f1006' }
    old.write('executions.json', json([parent, large, child, twice]))
    const { counts, attention } = await importAll('--history')
    expect(counts).toEqual({ execution: { imported: 2, refused: 2 } })
    expect(attention.map(({ name }) => name)).toEqual([large.id, twice.id])
    old.write('executions.json', json([{ ...twice, id: '5a1f0c2f4b0a1d2c3e4f1007' }]))
    expect((await importAll('--history')).attention).toEqual([
      expect.objectContaining({ why: 'another execution has its live action' }),
    ])
  })

  fullOnly(test)(
    '20,000 executions need no more memory than a few',
    async () => {
      const count = 20_000
      const records = Array.from({ length: count }, (_, i) =>
        json({
          ...child,
          id: `5a1f0c2f${i.toString(16).padStart(16, '0')}`,
          liveaction: {},
          result: { stdout: `${i} `.repeat(200) },
        }),
      )
      old.write('executions.json', `[${records.join(',')}]`)
      records.length = 0
      await importAll('--dry-run')
      const before = process.memoryUsage().rss
      expect((await importAll('--history')).counts).toEqual({ execution: { imported: count } })
      expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024)
      const { headers } = await app.call('GET', '/v1/executions?limit=1')
      expect(headers.get('x-total-count')).toBe(String(count))
    },
    300_000,
  )
})
