/** Running rules: `timeout`, `retry`, `overlap` and `delay` of a rule's action (docs/events.md). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { writeFlowPack } from '../helpers/flow-pack.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf, type ErrorAnswer, type TraceAnswer } from './support.ts'

interface Enforcement {
  id: string
  status: string
  trigger_instance_id: string
  execution_id?: string
  failure_reason?: string
  skip_reason?: string
}

const folder = makeFolder()
let server: TestApp
beforeAll(async () => {
  writeFlowPack(folder.path, {
    slow: 'version: 1.0\ntasks: {wait: {action: core.local, input: {cmd: sleep 60}}}\n',
  })
  server = await createTestApp({ basePath: folder.path })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const call = <T = Record<string, unknown>>(
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T & ErrorAnswer>> => server.call<T & ErrorAnswer>(method, `/v1${path}`, body)

/** A rule of a trigger type of its own, and what fires it. */
async function makeJob(name: string, action: object) {
  await call('POST', '/triggertypes', { name, pack: 'jobs' })
  const { status, body, text } = await call<{ id: string }>('POST', '/rules', {
    name,
    pack: 'jobs',
    enabled: true,
    trigger: { type: `jobs.${name}` },
    action: { ref: 'core.local', parameters: { cmd: 'true' }, ...action },
  })
  if (status !== 201) throw new Error(text)
  let fired = 0
  /** Fires it, and resolves with the enforcement. */
  async function fire(payload: object = {}): Promise<Enforcement> {
    fired += 1
    await call('POST', '/webhooks/svc', { trigger: `jobs.${name}`, payload })
    return waitFor(`enforcement ${fired} of ${name}`, async () => {
      const found = await enforcements()
      return found.length === fired && found[0]
    })
  }
  /** Newest first. */
  const enforcements = async (): Promise<Enforcement[]> =>
    (await call<Enforcement[]>('GET', `/ruleenforcements?rule_ref=jobs.${name}&limit=100`)).body
  /** Oldest first. */
  const runs = async (): Promise<ExecutionAnswer[]> =>
    (await call<ExecutionAnswer[]>('GET', `/executions?rule=jobs.${name}&limit=100`)).body.toReversed()
  const ended = (count: number): Promise<ExecutionAnswer[]> =>
    waitFor(`${count} ended runs of ${name}`, async () => {
      const all = await runs()
      return all.length === count && all.every(({ end_timestamp: end }) => end !== undefined) && all
    })
  return { id: body.id, ref: `jobs.${name}`, fire, enforcements, runs, ended }
}

const statusOf = async (id = ''): Promise<string> =>
  (await call<ExecutionAnswer>('GET', `/executions/${id}`)).body.status
const haveStatus = (id: string | undefined, status: string) =>
  waitFor(`${id} to be ${status}`, async () => (await statusOf(id)) === status)

/** A command that writes its name and waits for a file. */
function gate(name: string) {
  const path = join(folder.path, name)
  return {
    cmd: `echo {{ trigger.n | default(0) }} >> '${path}.begun'; while [ ! -e '${path}' ]; do sleep 0.02; done`,
    open: () => writeFileSync(path, ''),
    begun: () => (existsSync(`${path}.begun`) ? readFileSync(`${path}.begun`, 'utf8').trim().split('\n') : []),
  }
}

describe('definitions', () => {
  const post = (action: object) =>
    call('POST', '/rules', {
      name: 'defined',
      pack: 'jobs',
      trigger: { type: 'core.svc.webhook', parameters: { url: 'defined' } },
      action: { ref: 'core.noop', ...action },
    })

  const refused: readonly [object, string][] = [
    [{ timeout: 'soon' }, 'action.timeout: "soon" is not a duration; use seconds such as 90, or text such as'],
    [{ timeout: 0 }, 'action.timeout: a run needs more time than 0 s'],
    [{ timeout: '8d' }, 'action.timeout: 1w1d is more than 1w'],
    [{ delay: '25h' }, 'action.delay: 1d1h is more than 1d'],
    [{ delay: -1 }, 'action.delay'],
    [{ overlap: 'sometimes' }, 'action.overlap'],
    [{ retry: 3 }, 'action.retry'],
    [{ retry: {} }, 'attempts'],
    [{ retry: { attempts: 0 } }, 'action.retry.attempts'],
    [{ retry: { attempts: 101 } }, 'action.retry.attempts'],
    [{ retry: { attempts: 2, times: 3 } }, 'times'],
    [{ retry: { attempts: 2, on: [] } }, 'action.retry.on'],
    [{ retry: { attempts: 2, on: ['canceled'] } }, 'action.retry.on'],
    [{ retry: { attempts: 2, delay: '2d' } }, 'action.retry.delay: 2d is more than 1d'],
    [{ retry: { attempts: 2, backoff: 'exponential' } }, 'action.retry.delay: delays of "backoff: exponential" grow'],
    [
      { retry: { attempts: 2, delay: 1, max_delay: 5 } },
      'action.retry.max_delay: only delays of "backoff: exponential" grow',
    ],
    [
      { retry: { attempts: 2, delay: 9, backoff: 'exponential', max_delay: 5 } },
      'action.retry.max_delay: it is shorter',
    ],
    [{ retry: { attempts: 2, jitter: 'yes' } }, 'action.retry.jitter'],
  ]
  it.each(variants(refused, 4))('%j is refused', async (action, message) => {
    const answer = await post(action)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toContain(message)
  })

  test('are kept as they were written, and sent back whole; null is not given', async () => {
    const running = {
      timeout: '1h30m',
      retry: { attempts: 3, delay: '10s', backoff: 'exponential', max_delay: 600, jitter: true, on: ['failed'] },
      overlap: 'queue',
      delay: 5,
    }
    const made = await post(running)
    expect(made).toMatchObject({ status: 201, body: { action: { ref: 'core.noop', ...running } } })
    const { id } = made.body
    const again = await call('PUT', `/rules/${String(id)}`, made.body)
    expect(again.body['action']).toEqual(made.body['action'])
    const without = { ...(made.body['action'] as object), timeout: null, retry: null, overlap: null, delay: null }
    const cleared = await call('PUT', `/rules/${String(id)}`, { ...made.body, action: without })
    expect(cleared.body['action']).toEqual({ ref: 'core.noop', parameters: {} })
    expect((await call('DELETE', `/rules/${String(id)}`)).status).toBe(204)
  })
})

describe('retry, timeout and delay', () => {
  it('runs a failed action again, and says which attempt it is, in one trace', async () => {
    const job = await makeJob('again', {
      parameters: { cmd: 'echo no space >&2; exit 3' },
      retry: { attempts: 3, delay: 0.05, backoff: 'exponential' },
    })
    await job.fire()
    const [first, second, third] = await job.ended(3)
    expect([first, second, third].map((run) => [run?.status, run?.attempt, run?.retry_of, run?.delay])).toEqual([
      ['failed', undefined, undefined, undefined],
      ['failed', 2, first?.id, 50],
      ['failed', 3, second?.id, 100],
    ])
    const told = await waitFor('three ActionTriggers', async () => {
      const { body } = await call<{ payload: Record<string, unknown> }[]>(
        'GET',
        '/triggerinstances?limit=1000&trigger_type=core.svc.generic.actiontrigger',
      )
      const own = body.map(({ payload }) => payload).filter(({ rule }) => rule === job.ref)
      return own.length === 3 && own.toReversed()
    })
    expect(told.map(({ attempt, will_retry, error }) => [attempt, will_retry, error])).toEqual([
      [1, true, 'exit code 3: no space'],
      [2, true, 'exit code 3: no space'],
      [3, false, 'exit code 3: no space'],
    ])
    const [trace] = (await call<TraceAnswer[]>('GET', `/traces?execution=${third?.id}`)).body
    expect(trace?.action_executions.map(({ object_id: id, caused_by: cause }) => [id, cause.id])).toEqual([
      [first?.id, expect.stringContaining(job.id)],
      [second?.id, first?.id],
      [third?.id, second?.id],
    ])
    expect(await job.enforcements()).toMatchObject([{ status: 'succeeded', execution_id: first?.id }])
  })

  fullOnly(it)(
    'ends with the first success, with the same secrets, and counts instead of a policy of the action',
    async () => {
      const path = join(folder.path, 'second')
      await call('POST', '/policies', {
        name: 'of_local',
        pack: 'jobs',
        resource_ref: 'core.local',
        policy_type: 'action.retry',
        enabled: true,
        parameters: { retry_on: 'failure', max_retry_count: 5 },
      })
      const job = await makeJob('until', {
        parameters: {
          cmd: `[ "$TOKEN" = "t0ps3cret" ] && [ -e '${path}' ] || { touch '${path}'; exit 1; }`,
          env: { TOKEN: 't0ps3cret' },
        },
        retry: { attempts: 5 },
      })
      await job.fire()
      expect((await job.ended(2)).map(({ status }) => status)).toEqual(['failed', 'succeeded'])
      const once = await makeJob('once', { parameters: { cmd: 'exit 1' }, retry: { attempts: 1 } })
      await once.fire()
      await once.ended(1)
      await call('DELETE', '/policies/jobs.of_local')
    },
  )

  fullOnly(it)('does not follow another status than those in "on"', async () => {
    const job = await makeJob('late_only', { parameters: { cmd: 'exit 1' }, retry: { attempts: 3, on: ['timeout'] } })
    await job.fire()
    await job.ended(1)
  })

  fullOnly(it)('a user who cancels a waiting retry ends the job', async () => {
    const job = await makeJob('given_up', { parameters: { cmd: 'exit 1' }, retry: { attempts: 5, delay: '1h' } })
    await job.fire()
    const retry = await waitFor('the retry', async () => (await job.runs())[1])
    await haveStatus(retry.id, 'delayed')
    expect((await call('DELETE', `/executions/${retry.id}`)).status).toBe(200)
    expect((await job.ended(2)).map(({ status }) => status)).toEqual(['failed', 'canceled'])
  })

  fullOnly(it)('the run in flight keeps the rules that it began with', async () => {
    const { cmd, open } = gate('kept')
    const job = await makeJob('edited', { parameters: { cmd: `${cmd}; exit 1` }, retry: { attempts: 2 } })
    const { execution_id: id } = await job.fire()
    await haveStatus(id, 'running')
    const { body } = await call('GET', `/rules/${job.ref}`)
    const { retry: _, ...action } = body['action'] as Record<string, unknown>
    expect((await call('PUT', `/rules/${job.ref}`, { ...body, action })).status).toBe(200)
    open()
    expect((await job.ended(2)).map(({ status }) => status)).toEqual(['failed', 'failed'])
    await job.fire()
    await job.ended(3)
  })

  fullOnly(it)('timeout ends the run, and the next attempt has its own', async () => {
    const job = await makeJob('slow', { parameters: { cmd: 'sleep 60' }, timeout: '200ms', retry: { attempts: 2 } })
    await job.fire()
    const runs = await job.ended(2)
    expect(runs.map(({ status }) => status)).toEqual(['timeout', 'timeout'])
    const whole = await waitForStatus(server, runs[1]?.id ?? '')
    expect(whole.result['error']).toBe('The action took longer than the timeout of its rule, 0.2 seconds.')
  })

  fullOnly(it)('timeout ends a workflow', async () => {
    const job = await makeJob('slow_flow', {
      ref: 'flow.slow',
      parameters: {},
      timeout: '500ms',
    })
    await job.fire()
    expect((await job.ended(1)).map(({ status }) => status)).toEqual(['timeout'])
  })

  fullOnly(it)('delay comes before the first run', async () => {
    const job = await makeJob('later', { delay: '300ms' })
    const { execution_id: id } = await job.fire()
    const run = await waitForStatus(server, id ?? '')
    expect([run.status, run.delay]).toEqual(['succeeded', 300])
    const started = run.log.find(({ status }) => status === 'scheduled')?.timestamp ?? ''
    expect(Date.parse(started) - Date.parse(run.start_timestamp)).toBeGreaterThanOrEqual(300)
  })
})

describe('overlap', () => {
  it('skip: the enforcement says that and why, and nothing runs', async () => {
    const { cmd, open } = gate('skip')
    const job = await makeJob('skipping', { parameters: { cmd }, overlap: 'skip' })
    const { execution_id: id } = await job.fire()
    const skipped = await job.fire()
    expect(skipped).toEqual({
      ...skipped,
      status: 'skipped',
      skip_reason: `Execution ${id} of this rule has not ended, and the rule says "overlap: skip".`,
    })
    expect(Object.keys(skipped)).not.toContain('execution_id')
    expect(Object.keys(skipped)).not.toContain('failure_reason')
    const { body } = await call<{ message: string; rules: object[] }>(
      'GET',
      `/triggerinstances/${skipped.trigger_instance_id}/explain`,
    )
    expect(body.message).toBe(
      'No execution was started. Skipped, because an earlier execution has not ended: jobs.skipping.',
    )
    expect(body.rules).toMatchObject([
      {
        verdict: 'matched',
        running: { overlap: 'skip' },
        enforcement: { status: 'skipped', skip_reason: skipped.skip_reason },
      },
    ])
    open()
    await job.ended(1)
    expect((await job.fire()).status).toBe('succeeded')
  })

  fullOnly(it)('skip: two events at once start one execution', async () => {
    const { cmd, open } = gate('burst')
    const job = await makeJob('burst', { parameters: { cmd }, overlap: 'skip' })
    await Promise.all(
      Array.from({ length: 20 }, () => call('POST', '/webhooks/svc', { trigger: job.ref, payload: {} })),
    )
    const all = await waitFor('20 enforcements', async () => {
      const found = await job.enforcements()
      return found.length === 20 && found
    })
    expect(all.map(({ status }) => status)).toEqual([...Array.from({ length: 19 }, () => 'skipped'), 'succeeded'])
    open()
    await job.ended(1)
  })

  fullOnly(it)('while a retry waits, the job runs', async () => {
    const job = await makeJob('waiting', {
      parameters: { cmd: 'exit 1' },
      overlap: 'skip',
      retry: { attempts: 2, delay: '1h' },
    })
    await job.fire()
    const retry = await waitFor('the retry', async () => (await job.runs())[1])
    expect(await job.fire()).toMatchObject({
      status: 'skipped',
      skip_reason: expect.stringContaining(retry.id) as string,
    })
    await call('DELETE', `/executions/${retry.id}`)
    expect((await job.fire()).status).toBe('succeeded')
  })

  fullOnly(it)('queue: they run one after the other, in their order, also behind a retry', async () => {
    const { cmd, open, begun } = gate('queue')
    const job = await makeJob('queued', {
      parameters: { cmd: `${cmd}; [ {{ trigger.n }} != 1 ]` },
      overlap: 'queue',
      retry: { attempts: 2, delay: 0.2 },
    })
    for (let n = 1; n <= 4; n++) await job.fire({ n })
    const [first, ...others] = await job.runs()
    await haveStatus(first?.id, 'running')
    for (const { id } of others) await haveStatus(id, 'delayed')
    expect(begun()).toEqual(['1'])
    open()
    const ended = await job.ended(5)
    expect(ended.map(({ status }) => status).sort()).toEqual([
      'failed',
      'failed',
      'succeeded',
      'succeeded',
      'succeeded',
    ])
    expect(begun()).toEqual(['1', '1', '2', '3', '4'])
    expect(openRuns(job.id)).toBe(0)
  })

  it('queue: who cancels one that waits lets the next one go first', async () => {
    const { cmd, open, begun } = gate('passed')
    const job = await makeJob('passed', { parameters: { cmd }, overlap: 'queue' })
    for (let n = 1; n <= 3; n++) await job.fire({ n })
    const [, second] = await job.runs()
    await haveStatus(second?.id, 'delayed')
    await call('DELETE', `/executions/${second?.id}`)
    open()
    expect((await job.ended(3)).map(({ status }) => status)).toEqual(['succeeded', 'canceled', 'succeeded'])
    expect(begun()).toEqual(['1', '3'])
  })

  it('replace: the earlier one is canceled, and the new one starts when it is gone', async () => {
    const { cmd, begun, open } = gate('replace')
    const job = await makeJob('replacing', { parameters: { cmd }, overlap: 'replace', retry: { attempts: 3 } })
    await job.fire({ n: 1 })
    await waitFor('the first to begin', () => begun().length === 1)
    await job.fire({ n: 2 })
    await waitFor('the second to begin', () => begun().length === 2)
    const [first, second] = await job.runs()
    const whole = await waitForStatus(server, first?.id ?? '')
    expect(whole).toMatchObject({
      status: 'canceled',
      context: { replaced_by: second?.id },
      result: { message: `Action canceled: execution ${second?.id}, a newer run of its rule, replaces it.` },
    })
    open()
    const ended = await job.ended(2)
    expect(ended.map(({ status }) => status)).toEqual(['canceled', 'succeeded'])
    const begunAt = ended[1]?.log.find(({ status }) => status === 'running')?.timestamp ?? ''
    expect(begunAt >= whole.end_timestamp).toBe(true)
  })

  fullOnly(it)('replace: a retry that waits, and runs that wait, are canceled', async () => {
    const job = await makeJob('replaced_retry', {
      parameters: { cmd: '[ {{ trigger.n }} = 2 ]' },
      overlap: 'replace',
      retry: { attempts: 3, delay: '1h' },
    })
    await job.fire({ n: 1 })
    const retry = await waitFor('the retry', async () => (await job.runs())[1])
    await haveStatus(retry.id, 'delayed')
    await job.fire({ n: 2 })
    expect((await job.ended(3)).map(({ status }) => status)).toEqual(['failed', 'canceled', 'succeeded'])
  })

  fullOnly(it)('queue: no more than 100 run or wait at once', async () => {
    const { cmd, open } = gate('full')
    const job = await makeJob('full', { parameters: { cmd }, overlap: 'queue' })
    for (let n = 0; n < 103; n++) await call('POST', '/webhooks/svc', { trigger: job.ref, payload: { n } })
    const all = await waitFor('103 enforcements', () => {
      const sql = 'select status, failure_reason as reason from rule_enforcements where rule_ref = ? order by id'
      const found = rowsOf<{ status: string; reason: string | null }>(server, sql, job.ref)
      return found.length === 103 && found
    })
    expect(all.slice(0, 100).every(({ status }) => status === 'succeeded')).toBe(true)
    expect(all.slice(100)).toEqual(
      Array.from({ length: 3 }, () => ({
        status: 'skipped',
        reason: '100 executions of this rule run or wait already: no more of them wait at once.',
      })),
    )
    open()
    await waitFor('all to have ended', () => openRuns(job.id) === 0)
  })

  fullOnly(it)('a rule that gets another action still waits for the run of the one before', async () => {
    const { cmd, open } = gate('moved')
    const job = await makeJob('moved', { parameters: { cmd }, overlap: 'queue' })
    await job.fire()
    const { body } = await call('GET', `/rules/${job.ref}`)
    const action = { ...(body['action'] as object), ref: 'core.noop', parameters: {} }
    expect((await call('PUT', `/rules/${job.ref}`, { ...body, action })).status).toBe(200)
    const { execution_id: id } = await job.fire()
    await haveStatus(id, 'delayed')
    open()
    expect((await job.ended(2)).map(({ status }) => status)).toEqual(['succeeded', 'succeeded'])
  })

  it.each(variants(['queue', 'replace', 'skip']))(
    'a caller cannot say that it is a run of a rule: %s',
    async (overlap) => {
      const job = await makeJob(`spoofed_${overlap}`, { overlap })
      const context = { rule: { id: job.id, ref: job.ref }, replaced_by: 'x', running: { overlap } }
      const { body } = await call<ExecutionAnswer>('POST', '/executions', {
        action: 'core.local',
        parameters: { cmd: 'sleep 30' },
        context,
      })
      expect(body.context).not.toHaveProperty('replaced_by')
      const { execution_id: id } = await job.fire()
      expect((await waitForStatus(server, id ?? '')).status).toBe('succeeded')
      await call('DELETE', `/executions/${body.id}`)
    },
  )
})

/** Runs of a rule with `overlap` that have not ended, as the database says. */
const openRuns = (rule: string): number =>
  rowsOf<{ n: number }>(server, 'select count(*) as n from rule_runs where rule_id = ?', rule)[0]?.n ?? -1
