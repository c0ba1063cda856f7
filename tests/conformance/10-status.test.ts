/** `GET /v1/status` and `svc status` where something needs attention; `GET /v1/status/history`. */
import { describe, expect, test } from 'vitest'
import type { StatusHistory, StatusSample } from '../../src/modules/monitoring/types.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { run, runToEnd, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

interface Status {
  status: string
  attention: string[]
  pid: number
  urls: Record<string, string>
  queues: { name: string; length: number; limit: number }[]
  components: { name: string; state: string }[]
  disk: { free_bytes: number; total_bytes: number }
  gauges: Record<string, number>
}

test('10.7 a queue with as many messages as the guideline says needs attention, and an engine that is off does not', () =>
  withApp({ settings: { 'actionrunner.actions_pool_size': '1', 'timersengine.enable': 'False' } }, async (server) => {
    const look = async (): Promise<Status> => (await server.call<Status>('GET', '/v1/status')).body
    expect(await look()).toMatchObject({ status: 'ok', attention: [], pid: process.pid, urls: server.urls })
    const config = ['--config-file', server.configFile]
    expect((await runCli(['status', ...config], {})).code).toBe(0)

    const ids: string[] = []
    for (let i = 0; i < 11; i++) ids.push((await run(server, { cmd: 'sleep 1000', timeout: 0 })).id)
    const busy = await waitFor('ten to wait', async () => {
      const status = await look()
      return status.queues[0]?.length === 10 && status
    })
    expect(busy).toMatchObject({
      status: 'attention',
      attention: ['The queue "request" has 10 messages; the recommended limit is 10.'],
      gauges: { 'actionrunner.slots.used': 1, 'actionrunner.slots.size': 1, 'executions.running': 1 },
    })
    expect(busy.components.find(({ name }) => name === 'svctimersengine')?.state).toBe('disabled')
    expect(busy.disk.total_bytes).toBeGreaterThan(busy.disk.free_bytes)
    const told = await runCli(['status', ...config], {})
    expect(told.code).toBe(1)
    expect(told.stdout).toContain(
      'Needs attention:\n  The queue "request" has 10 messages; the recommended limit is 10.\n',
    )
    expect(told.stdout).toContain('running       1 of 1 slots\n')
    for (const id of ids.toReversed()) await server.call('DELETE', `/v1/executions/${id}`)
  }))

fullOnly(test)('10.7 a trace of a rule that starts itself needs attention: status, doctor and log say so', () =>
  withApp({ settings: { 'rules.max_depth': '0' } }, async (server) => {
    const rule = {
      name: 'loop',
      enabled: true,
      trigger: { type: 'core.svc.generic.actiontrigger' },
      criteria: { 'trigger.status': { type: 'eq', pattern: 'succeeded' } },
      action: { ref: 'core.noop' },
    }
    const { body } = await server.call<{ id: string }>('POST', '/v1/rules', rule)
    await runToEnd(server, { cmd: 'true' })
    const look = async () =>
      (await server.call<Status & { growing_traces: { id: string }[] }>('GET', '/v1/status')).body
    const found = await waitFor('the trace to grow', async () => {
      const { growing_traces: growing } = await look()
      return growing.length > 0 && growing
    })
    const id = found[0]?.id ?? ''
    expect((await server.call('DELETE', `/v1/rules/${body.id}`)).status).toBe(204)
    expect((await look()).attention).toEqual([
      expect.stringMatching(`^Trace ${id} has grown by \\d+ members within a minute`),
    ])
    expect(server.log()).toContain(`Trace ${id} has grown by more than 1000 members within a minute.`)
    const doctor = await runCli(['doctor', 'server', '--config-file', server.configFile], {})
    expect(doctor.stdout).toContain(`Trace ${id} has grown by more than 1,000 members within a minute.`)
  }),
)

describe('the history', () => {
  const historyOf = async (server: TestApp, query = ''): Promise<StatusHistory> => {
    const { status, body } = await server.call<StatusHistory>('GET', `/v1/status/history${query}`)
    expect(status).toBe(200)
    return body
  }
  /** The test may last from one minute to the next. */
  const sum = (samples: readonly StatusSample[], of: (sample: StatusSample) => number): number =>
    samples.reduce((total, sample) => total + of(sample), 0)

  fullOnly(test)('10.7 counts what began, what ended and how, and what came in, over a restart', async () => {
    const folder = makeFolder()
    try {
      const before = await createTestApp({ basePath: folder.path })
      const beganAt = Date.now()
      for (const cmd of ['sleep 0.3', 'true', 'exit 3']) await runToEnd(before, { cmd })
      await runToEnd(before, { cmd: 'sleep 1000', timeout: 1 })
      await before.call('POST', '/v1/rules', {
        name: 'on_hook',
        pack: 'core',
        enabled: true,
        trigger: { type: 'core.svc.webhook', parameters: { url: 'history' } },
        action: { ref: 'core.noop' },
      })
      expect((await before.call('POST', '/v1/webhooks/history', { a: 1 })).status).toBe(202)
      expect((await before.call('POST', '/v1/webhooks/nowhere', { a: 1 })).status).toBe(404)
      const seen = await waitFor('the execution of the rule to be counted', async () => {
        const { samples } = await historyOf(before)
        return sum(samples, ({ executions }) => executions.succeeded) === 3 && samples
      })
      const { memory, slots, seconds, timestamp } = seen[0] ?? {}
      expect(memory?.resident_bytes).toBeGreaterThan(10_000_000)
      expect(slots?.size).toBeGreaterThan(0)
      expect(seconds).toBeGreaterThan(0.5)
      expect(Date.parse(timestamp ?? '')).toBeGreaterThan(beganAt - 61_000)
      await before.stop()

      const after = await createTestApp({ basePath: folder.path })
      const { step_seconds: step, samples } = await historyOf(after, '?step=60&since=2001-01-01T00:00:00Z')
      expect(step).toBe(3600)
      expect(sum(samples, ({ executions }) => executions.started)).toBe(5)
      expect(sum(samples, ({ executions }) => executions.succeeded)).toBe(3)
      expect(sum(samples, ({ executions }) => executions.failed)).toBe(1)
      expect(sum(samples, ({ executions }) => executions.timeout)).toBe(1)
      expect(sum(samples, (sample) => sample.webhooks)).toBe(1)
      expect(sum(samples, (sample) => sample.trigger_instances)).toBe(1)
      const longest = Math.max(...samples.map((sample) => sample.run_seconds?.p95 ?? 0))
      expect(longest).toBeGreaterThan(0.8)
      // Of the one that was stopped, however long that took.
      expect(longest).toBeLessThan(100)
      await after.stop()
    } finally {
      folder.remove()
    }
  })

  fullOnly(test)('10.7 a server that has just begun has one sample, or two', () =>
    withApp({}, async (server) => {
      const { step_seconds: step, samples } = await historyOf(server)
      expect(step).toBe(60)
      expect([1, 2]).toContain(samples.length)
      expect(samples.every(({ run_seconds: runs }) => runs === null)).toBe(true)
      const since = new Date(Date.now() + 3_600_000).toISOString()
      expect((await historyOf(server, `?since=${since}`)).samples).toEqual([])
      for (const query of ['?since=yesterday', '?step=0', '?step=61', '?step=1.5', '?step=x']) {
        const { status } = await server.call('GET', `/v1/status/history${query}`)
        expect([query, status]).toEqual([query, 400])
      }
    }),
  )

  test('11.3 is for administrators', () =>
    withApp(
      { settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' } },
      async (server) => {
        const admin = await signIn(server, 'admin', firstPassword(server.basePath))
        expect((await server.call('GET', '/v1/status/history', undefined, admin)).status).toBe(200)
        await server.call('POST', '/v1/users', { name: 'alice', password: 'x' }, admin)
        const alice = await signIn(server, 'alice', 'x')
        expect((await server.call('GET', '/v1/status/history', undefined, alice)).status).toBe(403)
        expect((await server.call('GET', '/v1/status/history')).status).toBe(401)
      },
    ))
})
