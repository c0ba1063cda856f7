/** Jobs: what svc knows of the runs of rules, and what it says of those that are missed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { TestClock } from '../helpers/clock.ts'
import type { Answer, TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer } from './support.ts'

interface Job {
  id: string
  ref: string
  enabled: boolean
  trigger: { type: string; ref: string }
  action: { ref: string }
  next_timestamp?: string
  fired_timestamp?: string
  last_execution_id?: string
  last_status?: string
  last_end_timestamp?: string
  last_success_timestamp?: string
}

interface Execution {
  id: string
  status: string
  end_timestamp: string
}

let clock: TestClock
let server: TestApp

beforeAll(async () => {
  clock = new TestClock()
  server = await createTestApp({ clock, settings: { 'metrics.prometheus': 'True' } })
})
afterAll(async () => server.stop())

const create = (name: string, rule: object): Promise<Answer<Job & ErrorAnswer>> =>
  server.call('POST', '/v1/rules', { name, pack: 'jobs', enabled: true, action: { ref: 'core.noop' }, ...rule })

async function createRule(name: string, rule: object): Promise<Job> {
  const answer = await create(name, rule)
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body
}

const hook = (name: string): object => ({ trigger: { type: 'core.svc.webhook', parameters: { url: `jobs/${name}` } } })

/** A rule that runs what the webhook says. */
const commands = (name: string): Promise<Job> =>
  createRule(name, {
    ...hook(name),
    action: { ref: 'core.local', parameters: { cmd: '{{ trigger.body.cmd }}' } },
  })

const isEnded = ({ end_timestamp: end }: Execution): boolean => typeof end === 'string'

/** Runs the job and waits for its end. */
async function run(name: string, cmd: string): Promise<Execution> {
  const { body } = await server.call<{ executions: { id: string }[] }>(
    'POST',
    `/v1/webhooks/jobs/${name}`,
    { cmd },
    { Prefer: 'wait=10' },
  )
  return ended(body.executions[0]?.id ?? '')
}

const ended = (id: string): Promise<Execution> =>
  waitFor('the end', async () => {
    const { body } = await server.call<Execution>('GET', `/v1/executions/${id}`)
    return isEnded(body) && body
  })

const job = async (name: string): Promise<Job> => (await server.call<Job>('GET', `/v1/jobs/jobs.${name}`)).body

describe('what is known of runs', () => {
  it('the last run and the last success of a rule, whatever triggers it', async () => {
    const rule = await commands('known')
    expect(await job('known')).toEqual({
      id: rule.id,
      ref: 'jobs.known',
      pack: 'jobs',
      name: 'known',
      description: '',
      enabled: true,
      trigger: { type: 'core.svc.webhook', ref: rule.trigger.ref },
      action: { ref: 'core.local' },
    })
    const good = await run('known', 'true')
    const after = await job('known')
    expect(after).toMatchObject({ last_execution_id: good.id, last_status: 'succeeded' })
    expect(after.last_success_timestamp).toBe(after.last_end_timestamp)
    clock.advance(60_000)
    const bad = await run('known', 'exit 1')
    const { last_success_timestamp: success } = after
    expect(await job('known')).toMatchObject({
      last_execution_id: bad.id,
      last_status: 'failed',
      last_success_timestamp: success,
    })
    expect((await job('known')).last_end_timestamp).not.toBe(success)
    // By id, and as views on request.
    expect((await server.call<Job>('GET', `/v1/jobs/${rule.id}`)).body.last_status).toBe('failed')
    const { body: views } = await server.call<{ job: Job }[]>(
      'GET',
      '/v1/rules/views?pack=jobs&name=known&include_attributes=job',
    )
    expect(views[0]?.job).toMatchObject({ last_execution_id: bad.id, last_success_timestamp: success })
    const { body: rules } = await server.call<object[]>('GET', '/v1/rules/views?pack=jobs&name=known')
    expect(rules[0]).not.toHaveProperty('job')
  })

  it('a timer has its next and previous run', async () => {
    await createRule('timed', {
      trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'hours', delta: 5 } },
    })
    const first = await waitFor('the next run', async () => (await job('timed')).next_timestamp)
    expect(await job('timed')).not.toHaveProperty('fired_timestamp')
    clock.advance(5 * 3_600_000)
    const after = await waitFor('the end of a run', async () => {
      const known = await job('timed')
      return known.last_status !== undefined && known
    })
    expect(after.fired_timestamp! >= first).toBe(true) // it has fired
    expect(after.next_timestamp! > first).toBe(true)
    expect(after.last_status).toBe('succeeded')
  })

  it('a re-run of a run counts; an execution that only says so does not', async () => {
    await commands('repeated')
    const bad = await run('repeated', 'exit 1')
    const { body: other } = await server.call<Execution>('POST', '/v1/executions', {
      action: 'core.noop',
      context: { 're-run': { ref: bad.id } },
    })
    await ended(other.id)
    expect((await job('repeated')).last_execution_id).toBe(bad.id)
    const { body: again } = await server.call<Execution>('POST', `/v1/executions/${bad.id}/re_run`, {
      parameters: { cmd: 'true' },
    })
    await ended(again.id)
    expect(await job('repeated')).toMatchObject({ last_execution_id: again.id, last_status: 'succeeded' })
  })

  it('a run counts after its last attempt', async () => {
    await commands('tried')
    const policy = {
      name: 'again',
      pack: 'jobs',
      resource_ref: 'core.local',
      policy_type: 'action.retry',
      enabled: true,
      parameters: { retry_on: 'failure', max_retry_count: 1, delay: 0 },
    }
    const { body: made, text } = await server.call<Job>('POST', '/v1/policies', policy)
    expect(text).toContain('"id"')
    try {
      const first = await run('tried', 'exit 1')
      const last = await waitFor('the second attempt', async () => (await job('tried')).last_execution_id)
      expect(last).not.toBe(first.id)
    } finally {
      await server.call('DELETE', `/v1/policies/${made.id}`)
    }
  })

  it('lists: filters and pages as rules have them', async () => {
    await createRule('off', { ...hook('off'), enabled: false })
    const refs = async (query: string): Promise<string[]> =>
      (await server.call<Job[]>('GET', `/v1/jobs?pack=jobs&${query}`)).body.map(({ ref }) => ref)
    const all = await refs('')
    expect(all).toEqual(all.toSorted())
    expect(all).toContain('jobs.off')
    expect(await refs('enabled=true')).toEqual(all.filter((ref) => ref !== 'jobs.off'))
    expect(await refs('limit=2&offset=1')).toEqual(all.slice(1, 3))
    const answer = await server.call<Job[]>('GET', '/v1/jobs?name=off&include_attributes=enabled')
    expect(answer.body).toEqual([
      { id: expect.any(String), ref: 'jobs.off', pack: 'jobs', name: 'off', enabled: false },
    ])
    expect(answer.headers.get('x-total-count')).toBe('1')
    expect((await server.call('GET', '/v1/jobs/jobs.nope')).status).toBe(404)
  })

  it('a metric has the last success of each rule under its name of today', async () => {
    const rule = await commands('counted')
    await run('counted', 'true')
    const series = async (): Promise<string[]> =>
      (await server.call('GET', '/metrics')).text
        .split('\n')
        .filter((line) => line.startsWith('svc_rule_last_success_timestamp_seconds{') && line.includes('counted'))
    const at = Date.parse((await job('counted')).last_success_timestamp ?? '') / 1000
    expect(await series()).toEqual([`svc_rule_last_success_timestamp_seconds{rule="jobs.counted"} ${at}`])
    const { body } = await server.call<Record<string, unknown>>('GET', `/v1/rules/${rule.id}`)
    expect((await server.call('PUT', `/v1/rules/${rule.id}`, { ...body, name: 'recounted' })).status).toBe(200)
    expect(await series()).toEqual([`svc_rule_last_success_timestamp_seconds{rule="jobs.recounted"} ${at}`])
    expect((await server.call('DELETE', `/v1/rules/${rule.id}`)).status).toBe(204)
    expect(await series()).toEqual([])
  })
})
