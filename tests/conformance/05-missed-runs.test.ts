/** Jobs: what svc knows of the runs of rules, and what it says of those that are missed. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { microsOf } from '../../src/core/time.ts'
import { createTestApp } from '../helpers/app.ts'
import { TestClock } from '../helpers/clock.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { Answer, TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
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
  expect?: object
  expected_timestamp?: string
  late_since_timestamp?: string
  late_reason?: string
}

interface Execution {
  id: string
  status: string
  end_timestamp: string
}

const folder = makeFolder()
let clock: TestClock
let server: TestApp

beforeAll(async () => {
  clock = new TestClock()
  server = await createTestApp({ clock, settings: { 'metrics.prometheus': 'True' } })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

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

interface Missed {
  id: string
  status: string
  occurrence_time: string
  payload: {
    rule: { id: string; ref: string }
    reason: string
    due_timestamp: string
    late_seconds: number
    expect: object
    last_success_timestamp: string | null
    execution_id: string | null
    trace_id: string | null
  }
}

/** What svc has said of a rule, the oldest first. */
async function missesOf(name: string, on = server): Promise<Missed['payload'][]> {
  const { body } = await on.call<Missed[]>('GET', '/v1/triggerinstances?trigger=core.svc.missed&limit=-1')
  return body
    .map(({ payload }) => payload)
    .filter(({ rule: { ref } }) => ref === `jobs.${name}`)
    .toReversed()
}

const waitForMisses = (name: string, count: number, on = server): Promise<Missed['payload'][]> =>
  waitFor(`${count} misses of ${name}`, async () => {
    const misses = await missesOf(name, on)
    // The engine tries again by a clock that stands still.
    const [failure] = /^.*event=job\.failed.*$/m.exec(on.log()) ?? []
    if (failure !== undefined) throw new Error(failure)
    return misses.length >= count && misses
  })

const later = (time: string, seconds: number): string =>
  new Date(Date.parse(time) + seconds * 1000).toISOString().slice(0, 19) + time.slice(19)

const MINUTE = 60_000

describe('expect: within', () => {
  /** A job that fails while there is no file with its name. */
  const file = (name: string): string => join(folder.path, name)
  const hourly = (name: string, more: object = {}): Promise<Job> =>
    createRule(name, {
      trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'minutes', delta: 60 + ++intervals } },
      action: { ref: 'core.local', parameters: { cmd: `test -e ${file(name)}` } },
      expect: { within: '10m' },
      ...more,
    })
  let intervals = 0

  const expected = (name: string): Promise<Job & { expected_timestamp: string; next_timestamp: string }> =>
    waitFor('what is expected', async () => {
      const known = await job(name)
      const { expected_timestamp: by, next_timestamp: next } = known
      // A timer counts from its creation, by the clock of this machine: first it makes up for what the test has skipped.
      const isAhead = next !== undefined && microsOf(next) > clock.now()
      const hasRun = known.fired_timestamp === undefined || known.last_status !== undefined
      return by !== undefined && isAhead && hasRun && { ...known, expected_timestamp: by, next_timestamp: next }
    })

  /** Lets the timer fire, and waits for the end of the run. */
  async function fire(name: string): Promise<Job> {
    const { next_timestamp: next, last_execution_id: last } = await job(name)
    if (next !== undefined) clock.moveTo(Math.max(clock.now(), microsOf(next)))
    return waitFor('the end of the run', async () => {
      const known = await job(name)
      return known.last_execution_id !== last && known
    })
  }

  it('says once that no run has succeeded in time, and again only after a success', async () => {
    const { id } = await hourly('failing')
    const { expected_timestamp: by, next_timestamp: due } = await expected('failing')
    expect(by).toBe(later(due, 600))
    const { last_execution_id: execution, last_status: status } = await fire('failing')
    expect(status).toBe('failed')
    clock.moveTo(microsOf(by) - 1000)
    expect(await missesOf('failing')).toEqual([])
    clock.moveTo(microsOf(by))
    const [missed] = await waitForMisses('failing', 1)
    const { body: ran } = await server.call<{ context: { trace_context: { id_: string } } }>(
      'GET',
      `/v1/executions/${execution}`,
    )
    expect(missed).toEqual({
      rule: { id, ref: 'jobs.failing' },
      reason: 'failed',
      due_timestamp: due,
      late_seconds: 600,
      expect: { within: '10m' },
      last_success_timestamp: null,
      execution_id: execution,
      trace_id: ran.context.trace_context.id_,
    })
    const late = await job('failing')
    expect(late).toMatchObject({ late_since_timestamp: due, late_reason: 'failed', expect: { within: '10m' } })
    expect(late).not.toHaveProperty('expected_timestamp')
    const { body: listed } = await server.call<Job[]>('GET', '/v1/jobs?late=true&include_attributes=late_reason')
    expect(listed.map(({ ref }) => ref)).toContain('jobs.failing')
    const { body: state } = await server.call<{ attention: string[]; gauges: Record<string, number> }>(
      'GET',
      '/v1/status',
    )
    expect(state.attention.join()).toMatch(/late: .*jobs\.failing/)
    expect(state.gauges['rules.late']).toBeGreaterThan(0)

    // It stays late.
    await fire('failing')
    await fire('failing')
    clock.advance(20 * MINUTE)
    writeFileSync(file('failing'), '')
    const back = await fire('failing')
    expect(back).not.toHaveProperty('late_since_timestamp')
    expect(await missesOf('failing')).toHaveLength(1)

    rmSync(file('failing'))
    const { expected_timestamp: second } = await expected('failing')
    await fire('failing')
    clock.moveTo(microsOf(second))
    const [, again] = await waitForMisses('failing', 2)
    expect(again).toMatchObject({ reason: 'failed', last_success_timestamp: back.last_success_timestamp })
    await server.call('DELETE', `/v1/rules/${id}`)
  })

  it('says nothing while runs succeed', async () => {
    writeFileSync(file('good'), '')
    await hourly('good')
    for (let i = 0; i < 3; i += 1) {
      const { expected_timestamp: by } = await expected('good')
      expect((await fire('good')).last_status).toBe('succeeded')
      clock.moveTo(microsOf(by))
      await waitFor('the next due time', async () => (await expected('good')).expected_timestamp > by)
    }
    expect(await missesOf('good')).toEqual([])
  })
})

describe('expect: every', () => {
  it('counts from the creation, then from each success; a heartbeat that stops is told of once', async () => {
    const day = 24 * 60 * MINUTE
    const created = clock.now()
    await createRule('heartbeat', { ...hook('heartbeat'), expect: { every: '24h' } })
    const { expected_timestamp: by = '' } = await waitFor('what is expected', async () => {
      const known = await job('heartbeat')
      return known.expected_timestamp !== undefined && known
    })
    expect(microsOf(by) - created).toBe(day * 1000)
    clock.moveTo(microsOf(by))
    const [missed] = await waitForMisses('heartbeat', 1)
    expect(missed).toMatchObject({ reason: 'not_started', due_timestamp: by, execution_id: null, trace_id: null })
    clock.advance(3 * day)
    await run('heartbeat', 'true')
    expect(await job('heartbeat')).not.toHaveProperty('late_since_timestamp')
    clock.advance(day - MINUTE)
    await run('heartbeat', 'true')
    clock.advance(2 * MINUTE)
    await waitFor(
      'the next look',
      async () => microsOf((await job('heartbeat')).expected_timestamp ?? '') > clock.now() + 1,
    )
    expect(await missesOf('heartbeat')).toHaveLength(1)
    clock.advance(day)
    const [, second] = await waitForMisses('heartbeat', 2)
    expect(second?.last_success_timestamp).toBe((await job('heartbeat')).last_success_timestamp)
  })

  it('a disabled rule expects nothing; an edit starts the count anew', async () => {
    const rule = await createRule('edited', { ...hook('edited'), expect: { every: '1h' } })
    clock.advance(61 * MINUTE)
    await waitForMisses('edited', 1)
    const put = async (more: object): Promise<void> => {
      const { body } = await server.call<object>('GET', `/v1/rules/${rule.id}`)
      expect((await server.call('PUT', `/v1/rules/${rule.id}`, { ...body, ...more })).status).toBe(200)
    }
    await put({ description: 'Edited.' })
    expect(await job('edited')).not.toHaveProperty('late_since_timestamp')
    await put({ enabled: false })
    expect(await job('edited')).toMatchObject({ expect: { every: '1h' } })
    expect(await job('edited')).not.toHaveProperty('expected_timestamp')
    clock.advance(120 * MINUTE)
    await put({ enabled: true })
    await waitFor(
      'what is expected',
      async () => microsOf((await job('edited')).expected_timestamp ?? '') > clock.now(),
    )
    expect(await missesOf('edited')).toHaveLength(1)
    // Without it, nothing is expected; null is the same.
    await put({ expect: null })
    const { body } = await server.call<object>('GET', `/v1/rules/${rule.id}`)
    expect(body).not.toHaveProperty('expect')
    expect(await job('edited')).not.toHaveProperty('expect')
  })

  it('a run that has not ended', async () => {
    const name = join(folder.path, 'goes-on')
    await createRule('slow', {
      ...hook('slow'),
      action: { ref: 'core.local', parameters: { cmd: `until test -e ${name}; do sleep 0.05; done` } },
      expect: { every: '1h' },
    })
    await server.call('POST', '/v1/webhooks/jobs/slow', {})
    const open = await waitFor('the run', async () => {
      const { body } = await server.call<Execution[]>('GET', '/v1/executions?rule=slow&status=running')
      return body[0]
    })
    clock.advance(61 * MINUTE)
    const [missed] = await waitForMisses('slow', 1)
    expect(missed).toMatchObject({ reason: 'still_running', execution_id: open.id })
    writeFileSync(name, '')
    await waitFor('the end', async () => (await job('slow')).late_since_timestamp === undefined)
  })
})

describe('what may be expected', () => {
  it.each<[string, unknown, string]>([
    ['no schedule', { within: '10m' }, 'Use "every", such as "every: 24h"'],
    ['nothing', {}, 'it needs "within" or "every"'],
    ['another word', { each: '10m' }, 'each'],
    ['no duration', { every: 'daily' }, 'expect.every: "daily" is not a duration'],
    ['too short', { every: 0 }, 'expect.every: it must be at least 1s'],
    ['too long', { every: '2000d' }, 'expect.every: it must be at most'],
    ['text', '24h', 'expect'],
  ])('%s is refused', async (_, given, message) => {
    const answer = await create('wrong', { ...hook('wrong'), expect: given })
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toContain(message)
  })

  it('both, on a timer, as the author wrote them', async () => {
    const expectation = { within: 600, every: '1d2h' }
    const { id } = await createRule('both', {
      trigger: { type: 'core.svc.CronTimer', parameters: { minute: 7 } },
      expect: expectation,
    })
    const { body } = await server.call<Job>('GET', `/v1/rules/${id}`)
    expect(body.expect).toEqual(expectation)
    expect((await server.call('DELETE', `/v1/rules/${id}`)).status).toBe(204)
  })

  it('the files of packs say it too; without it again, nothing is expected', async () => {
    const pack = join(server.basePath, 'packs', 'beats')
    mkdirSync(join(pack, 'rules'), { recursive: true })
    writeFileSync(join(pack, 'pack.yaml'), 'name: beats\nversion: 1.0.0\ndescription: d\nauthor: a\nemail: a@b.cd\n')
    const rule = 'name: beat\nenabled: true\ntrigger:\n  type: core.svc.webhook\n  parameters: {url: beat}\n'
    const write = async (expectation: string): Promise<string> => {
      writeFileSync(join(pack, 'rules', 'beat.yaml'), `${rule}action: {ref: core.noop}\n${expectation}`)
      const { text } = await server.call('POST', '/v1/packs/register', { packs: ['beats'], types: ['rules'] })
      return text
    }
    await write('expect: {every: 26h}\n')
    expect((await server.call<Job>('GET', '/v1/jobs/beats.beat')).body.expect).toEqual({ every: '26h' })
    expect(await write('expect: {within: 26h}\n')).toContain('expect.within')
    await write('')
    expect((await server.call<Job>('GET', '/v1/jobs/beats.beat')).body).not.toHaveProperty('expect')
  })
})

describe('a server that was off', () => {
  /** One rule that fails and one that succeeds, due twice an hour; the server is off for ten hours. */
  async function afterTenHours(
    missed: 'once' | 'skip',
    use: (on: TestApp, due: string) => Promise<void>,
  ): Promise<void> {
    const data = makeFolder()
    const settings = { 'timersengine.missed': missed, 'timersengine.local_timezone': 'UTC' }
    const options = { clock, basePath: data.path, settings }
    try {
      let on = await createTestApp(options)
      const rule = async (name: string, cmd: string): Promise<void> => {
        const trigger = { type: 'core.svc.CronTimer', parameters: { minute: '*/30' } }
        const given = { name, pack: 'jobs', enabled: true, trigger, expect: { within: '10m' } }
        await on.call('POST', '/v1/rules', { ...given, action: { ref: 'core.local', parameters: { cmd } } })
      }
      await rule('bad', 'exit 1')
      await rule('fine', 'true')
      const due = await waitFor('the due time', async () => {
        const { body } = await on.call<Job[]>('GET', '/v1/jobs?pack=jobs')
        const next = body[1]?.next_timestamp ?? ''
        const isReady = body.every((each) => each.expected_timestamp !== undefined && each.next_timestamp === next)
        return isReady && microsOf(next) > clock.now() && next
      })
      await on.stop()
      clock.moveTo(microsOf(due) + 10 * 60 * MINUTE * 1000)
      on = await createTestApp(options)
      try {
        await use(on, due)
      } finally {
        await on.stop()
      }
    } finally {
      data.remove()
    }
  }

  it('tells once of what passed, when the run at the start has had its time', () =>
    afterTenHours('once', async (on, due) => {
      const jobs = await waitFor('the runs', async () => {
        const { body } = await on.call<Job[]>('GET', '/v1/jobs?pack=jobs')
        return body.every(({ last_status: status }) => status !== undefined) && body
      })
      expect(jobs.map(({ last_status: status }) => status)).toEqual(['failed', 'succeeded'])
      expect(jobs[0]?.expected_timestamp).toBe(later(due, 36_600))
      clock.advance(9 * MINUTE)
      expect(await missesOf('bad', on)).toEqual([])
      clock.advance(MINUTE)
      const [missed] = await waitForMisses('bad', 1, on)
      expect(missed).toMatchObject({ reason: 'failed', due_timestamp: due, late_seconds: 36_600 })
      await waitFor('the next due time', async () => {
        const { body } = await on.call<Job>('GET', '/v1/jobs/jobs.fine')
        return microsOf(body.expected_timestamp ?? '') > clock.now()
      })
      // Further times of the clock do not wait for real processes: only the rule that is late already is certain.
      expect(await missesOf('fine', on)).toEqual([])
      clock.advance(60 * MINUTE)
      expect((await missesOf('bad', on)).length).toBe(1)
    }))

  fullOnly(it)('tells at once of what the timer does not make up for', () =>
    afterTenHours('skip', async (on, due) => {
      for (const name of ['bad', 'fine']) {
        const [missed] = await waitForMisses(name, 1, on)
        expect(missed).toMatchObject({ reason: 'server_down', due_timestamp: due, late_seconds: 36_000 })
      }
    }),
  )
})
