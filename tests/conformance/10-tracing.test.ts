/** Spans for OpenTelemetry: their form, their parents, and a collector that is gone. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { startCollector, type CollectedSpan, type Collector } from '../helpers/collector.ts'
import { call, runToEnd, waitForLog, withServer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const padded = (traceId: string): string => traceId.padStart(32, '0')

describe('10 tracing.otlp_endpoint', () => {
  let collector: Collector
  let server: TestApp
  beforeAll(async () => {
    collector = await startCollector()
    server = await createTestApp({
      settings: {
        'tracing.otlp_endpoint': collector.url,
        'tracing.otlp_headers': '{"X-Collector-Key": "geheimes Wort"}',
        'tracing.service_name': 'automation',
      },
    })
  })
  afterAll(async () => {
    await server.stop()
    await collector.stop()
  })

  const spanOf = (fits: (span: CollectedSpan) => boolean): Promise<CollectedSpan> =>
    waitFor('the span', () => collector.spans.find(fits))
  const ofExecution = (id: string): Promise<CollectedSpan> =>
    spanOf(({ name, attributes }) => attributes['svc.execution.id'] === id && !name.startsWith('rule '))

  it('10 an execution is a span with its times, its statuses and its outcome', async () => {
    const execution = await runToEnd(server, { cmd: 'sleep 0.2; exit 3' })
    const span = await ofExecution(execution.id)
    expect(span).toMatchObject({
      name: 'core.local',
      kind: 1,
      status: { code: 2, message: 'failed' },
      attributes: {
        'svc.action.ref': 'core.local',
        'svc.runner': 'local-shell-cmd',
        'svc.execution.status': 'failed',
        'svc.user': 'svc',
      },
      resource: { 'service.name': 'automation', 'process.pid': String(process.pid) },
    })
    expect(span.parentSpanId).toBeUndefined()
    const elapsed = Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e9
    expect(elapsed).toBeCloseTo(execution.elapsed_seconds, 4)
    expect(span.events.map(({ name }) => name)).toEqual(['requested', 'scheduled', 'running', 'failed'])
    const milliseconds = Number(BigInt(span.startTimeUnixNano) / 1_000_000n)
    expect(Math.abs(milliseconds - Date.parse(execution.start_timestamp))).toBeLessThanOrEqual(1)
    expect(collector.requests.at(-1)?.['x-collector-key']).toBe('geheimes Wort')
  })

  it('10 what a webhook leads to is one trace: trigger, rule, execution, and what that triggers', async () => {
    for (const [name, trigger, action] of [
      ['first', { type: 'core.svc.webhook', parameters: { url: 'traced' } }, 'core.noop'],
      ['second', { type: 'core.svc.generic.actiontrigger' }, 'core.local'],
    ] as const) {
      const criteria = name === 'second' ? { 'trigger.action_name': { type: 'eq', pattern: 'core.noop' } } : {}
      const parameters = action === 'core.local' ? { cmd: 'true' } : {}
      const made = await server.call('POST', '/v1/rules', {
        name,
        enabled: true,
        trigger,
        criteria,
        action: { ref: action, parameters },
      })
      expect(made.status).toBe(201)
    }
    await server.call('POST', '/v1/webhooks/traced', {})
    const last = await spanOf(
      ({ name, attributes }) => name === 'core.local' && attributes['svc.rule.ref'] === 'default.second',
    )
    const parentOf = (span: CollectedSpan): Promise<CollectedSpan> =>
      spanOf(({ spanId }) => spanId === span.parentSpanId)
    const chain = [last]
    for (let span = last; span.parentSpanId !== undefined; chain.push(span)) span = await parentOf(span)
    expect(chain.map(({ name }) => name)).toEqual([
      'core.local',
      'rule default.second',
      'trigger core.svc.generic.actiontrigger',
      'core.noop',
      'rule default.first',
      'trigger core.svc.webhook',
    ])
    expect(new Set(chain.map(({ traceId }) => traceId)).size).toBe(1)
    expect(last.traceId).toBe(padded(String(last.attributes['svc.trace.id'])))
    expect(new Set(chain.map(({ spanId }) => spanId)).size).toBe(chain.length)
  })

  it('10 every span is as OTLP says', () => {
    expect(collector.spans.length).toBeGreaterThan(6)
    expect(collector.broken).toEqual([])
  })

  fullOnly(it)('10 a collector that is busy gets them later, once; one that refuses does not', async () => {
    collector.answer = { status: 503 }
    const { id } = await runToEnd(server, { cmd: 'true' })
    await waitForLog(server, 'event=tracing.failed')
    expect(collector.spans.some(({ attributes }) => attributes['svc.execution.id'] === id)).toBe(false)
    collector.answer = { status: 200 }
    await ofExecution(id)
    await waitForLog(server, 'event=tracing.resumed')
    expect(collector.spans.filter(({ attributes }) => attributes['svc.execution.id'] === id)).toHaveLength(1)

    collector.answer = { status: 400 }
    await runToEnd(server, { cmd: 'true' })
    const dropped = async (): Promise<number> => {
      const { text } = await call<string>(`${server.urls.api}/metrics`, 'GET')
      return Number(/^svc_tracing_dropped_spans (\d+)$/m.exec(text)?.[1])
    }
    await waitFor('spans to be dropped', async () => (await dropped()) > 0)
    collector.answer = { status: 200 }
  })

  it('10 its headers are in no log', () => {
    expect(server.log()).not.toContain('geheimes Wort')
  })
})

describe('10 a collector that is gone', () => {
  fullOnly(it)('10 disturbs nobody, holds no stop, and gets what waits once it is there', async () => {
    const gone = await startCollector()
    await gone.stop()
    await withServer({ settings: { 'tracing.otlp_endpoint': gone.url } }, async (server) => {
      const { id } = await runToEnd(server, { cmd: 'true' })
      await waitForLog(server, 'event=tracing.failed')
      const back = await startCollector(Number(new URL(gone.url).port))
      try {
        await waitFor('the span', () => back.spans.some(({ attributes }) => attributes['svc.execution.id'] === id))
        // What is in the queue at the end is sent.
        const last = await runToEnd(server, { cmd: 'true' })
        expect(await server.stop()).toEqual({ code: 0, signal: null })
        expect(back.spans.some(({ attributes }) => attributes['svc.execution.id'] === last.id)).toBe(true)
      } finally {
        await back.stop()
      }
      expect(server.log().match(/event=tracing\.failed/g)).toHaveLength(1)
    })
  })

  fullOnly(it)('10 with nobody ever there, the stop says what is lost', async () => {
    const gone = await startCollector()
    await gone.stop()
    await withServer({ settings: { 'tracing.otlp_endpoint': gone.url } }, async (server) => {
      await runToEnd(server, { cmd: 'true' })
      expect(await server.stop()).toEqual({ code: 0, signal: null })
      expect(server.log()).toContain('event=tracing.lost, lost=1')
    })
  })

  it.each(['nonsense', 'ftp://127.0.0.1'])('10 tracing.otlp_endpoint = %s is refused', async (value) => {
    await expect(createTestApp({ settings: { 'tracing.otlp_endpoint': value } })).rejects.toThrow(
      'tracing.otlp_endpoint',
    )
  })
})
