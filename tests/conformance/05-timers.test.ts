/** Contract 05, 5.8: timers. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { secondsBetween } from '../../src/core/time.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { TestClock } from '../helpers/clock.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRandom, seedOfRun } from '../helpers/random.ts'
import { startServer, waitForLog, withServer, type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern, impossibleIds, rowsOf, unknownId, type ErrorAnswer } from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

interface Timer {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  type: string
  description: string
  parameters: Record<string, unknown>
  rules: string[]
  next_timestamp?: string
  fired_timestamp?: string
  timezone: string
  next_run?: string
  previous_run?: string
  next_runs?: string[]
}

interface Instance {
  id: string
  trigger: string
  payload: { executed_at: string; schedule: unknown }
  occurrence_time: string
  status: string
}

interface Rule {
  id: string
  ref: string
  trigger: { type: string; ref: string; parameters: Record<string, unknown> }
}

const SECOND = 1_000_000
const microsOf = (text: string): number =>
  Date.parse(text.slice(0, 23).replace(' ', 'T') + 'Z') * 1000 + Number(text.slice(23, 26))

let names = 0
const makeRule = (on: TestApp, type: string, parameters: unknown, more = {}): Promise<Answer<Rule & ErrorAnswer>> => {
  names += 1
  return on.call('POST', '/v1/rules', {
    name: `timed-${names}`,
    enabled: true,
    trigger: { type: `core.svc.${type}`, parameters },
    action: { ref: 'core.noop' },
    ...more,
  })
}

async function makeTimer(on: TestApp, type: string, parameters: unknown, more = {}): Promise<Rule> {
  const answer = await makeRule(on, type, parameters, more)
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body
}

/** The oldest first. */
async function instancesOf(on: TestApp, rule: Rule): Promise<Instance[]> {
  const path = `/v1/triggerinstances?trigger=${rule.trigger.ref}&limit=-1`
  return (await on.call<Instance[]>('GET', path)).body.toReversed()
}

const waitForInstances = (on: TestApp, rule: Rule, count: number): Promise<Instance[]> =>
  waitFor(`${count} firings of ${rule.trigger.ref}`, async () => {
    const instances = await instancesOf(on, rule)
    return instances.length >= count && instances
  })

interface Row {
  anchor: string
  fired_timestamp: string | null
}

function rowOf(on: TestApp, { trigger }: Rule): Row {
  const statement = 'select anchor, fired_timestamp from timers join triggers on id = trigger_id where ref = ?'
  const [row] = rowsOf<Row>(on, statement, trigger.ref)
  if (row === undefined) throw new Error(`the timer ${trigger.ref} has no row`)
  return row
}

const timerOf = async (on: TestApp, { trigger }: Rule): Promise<Timer> =>
  (await on.call<Timer>('GET', `/v1/timers/${trigger.ref}`)).body

/** Moves the clock to the time at which a timer fires next, and waits until it has. @returns all firings so far */
async function fire(on: TestApp, moved: TestClock, rule: Rule): Promise<Instance[]> {
  const { length } = await instancesOf(on, rule)
  const next = await waitFor('the next time', async () => (await timerOf(on, rule)).next_timestamp)
  moved.moveTo(microsOf(next))
  const instances = await waitForInstances(on, rule, length + 1)
  expect(instances).toHaveLength(length + 1)
  expect(microsOf(instances.at(-1)?.payload.executed_at ?? '')).toBe(microsOf(next))
  return instances
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const get = <T = ErrorAnswer>(path: string) => server.call<T>('GET', `/v1${path}`)

describe('05.8 the three types', () => {
  it.each(['IntervalTimer', 'DateTimer', 'CronTimer'])('05.8 core.svc.%s is a trigger type', async (name) => {
    const { body } = await get<Record<string, unknown>>(`/triggertypes/core.svc.${name}`)
    expect(body).toMatchObject({
      ref: `core.svc.${name}`,
      pack: 'core',
      parameters_schema: { properties: { timezone: { type: 'string' } }, additionalProperties: false },
      payload_schema: { properties: { executed_at: { type: 'string' } } },
    })
  })

  it.each<[string, unknown, RegExp]>([
    ['IntervalTimer', { unit: 'seconds' }, /delta/],
    ['IntervalTimer', { delta: 1 }, /unit/],
    ['IntervalTimer', {}, /unit|delta|missing required "parameters"/],
    ['IntervalTimer', { unit: 'years', delta: 1 }, /unit/],
    ['IntervalTimer', { unit: 'seconds', delta: 0 }, /delta/],
    ['IntervalTimer', { unit: 'seconds', delta: -1 }, /delta/],
    ['IntervalTimer', { unit: 'seconds', delta: 'soon' }, /delta/],
    ['IntervalTimer', { unit: 'seconds', delta: 1, timezone: 'Mars/Olympus' }, /timezone.*Mars\/Olympus/],
    ['IntervalTimer', { unit: 'seconds', delta: 1, hour: 1 }, /hour/],
    ['DateTimer', { timezone: 'UTC' }, /date/],
    ['DateTimer', { date: 'tomorrow' }, /date.*"tomorrow".*2030/],
    ['DateTimer', { date: '2030-02-30' }, /date.*2030-02-30/],
    ['CronTimer', { hour: 24 }, /hour/],
    ['CronTimer', { hour: '24' }, /hour.*0 to 23/],
    ['CronTimer', { day_of_week: 7 }, /day_of_week/],
    ['CronTimer', { day_of_week: 'someday' }, /day_of_week.*someday.*0 is Monday/],
    ['CronTimer', { minute: '*/0' }, /minute.*step/],
    ['CronTimer', { minute: '5-1' }, /minute.*5-1/],
    ['CronTimer', { day: '6th mon' }, /day.*6th mon.*2nd fri/],
    ['CronTimer', { hour: '*; drop table timers' }, /hour/],
    ['CronTimer', { second: `${'1,'.repeat(200)}1` }, /second/],
    ['CronTimer', { fortnight: 1 }, /fortnight/],
  ])('05.5 %s %j is refused with 400', async (type, parameters, message) => {
    const { status, body } = await makeRule(server, type, parameters)
    expect(status).toBe(400)
    expect(body.faultstring).toMatch(message)
    expect(rowsOf(server, `select * from triggers where type = 'core.svc.' || ? and is_managed = 1`, type)).toEqual([])
  })
})

describe('05.8 firing', () => {
  // One of each test: what is made after the clock was moved would be made in its past, because ids carry the real time.
  let clock: TestClock
  let timed: TestApp
  beforeEach(async () => {
    clock = new TestClock()
    timed = await createTestApp({ clock })
  })
  afterEach(async () => {
    await timed.stop()
  })

  const getTimed = <T>(path: string) => timed.call<T>('GET', `/v1${path}`)

  it('05.8 an interval: the first time one interval after it was made, then without drift, each with its execution and trace', async () => {
    const before = Date.now() * 1000
    const rule = await makeTimer(timed, 'IntervalTimer', { unit: 'seconds', delta: 1 })
    const after = Date.now() * 1000
    let instances: Instance[] = []
    for (let n = 0; n < 4; n++) instances = await fire(timed, clock, rule)
    const times = instances.map(({ payload }) => {
      expect(payload).toEqual({
        executed_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\+00:00$/),
        schedule: null,
      })
      return microsOf(payload.executed_at)
    })
    const { anchor } = rowOf(timed, rule)
    // The server looks at the system clock every ten seconds, and at a steady one in between.
    expect(microsOf(anchor)).toBeGreaterThanOrEqual(before - SECOND)
    expect(microsOf(anchor)).toBeLessThanOrEqual(after + SECOND)
    expect(times.map((time) => time - microsOf(anchor))).toEqual([1, 2, 3, 4].map((n) => n * SECOND))

    const { name } = await timerOf(timed, rule)
    interface Trace {
      id: string
      trace_tag: string
      trigger_instances: { object_id: string; caused_by: object }[]
      rules: { ref: string }[]
    }
    const traces = (await getTimed<Trace[]>(`/traces?trace_tag=svc.IntervalTimer-${name}&limit=-1`)).body
    const ids = instances.map(({ id }) => id)
    const traced = await waitFor('the first firing to be traced whole', async () => {
      const [first] = (await getTimed<Trace[]>(`/traces?trigger_instance=${ids[0] ?? ''}`)).body
      return first !== undefined && first.rules.length > 0 && first
    })
    expect(traced).toMatchObject({
      trace_tag: `svc.IntervalTimer-${name}`,
      trigger_instances: [{ object_id: ids[0], caused_by: {} }, ...traced.trigger_instances.slice(1)],
      rules: [{ ref: rule.ref }],
    })
    // Each firing has a trace of its own: they share the tag.
    expect(traces).toHaveLength(4)
    expect(new Set(traces.map(({ id }) => id)).size).toBe(traces.length)
    const { body: enforcements } = await getTimed<{ status: string; execution_id: string }[]>(
      `/ruleenforcements?trigger_instance=${ids[0] ?? ''}`,
    )
    expect(enforcements).toEqual([
      expect.objectContaining({ status: 'succeeded', execution_id: expect.stringMatching(idPattern) }),
    ])
  })

  it('05.8 expressions: at whole seconds', async () => {
    const rule = await makeTimer(timed, 'CronTimer', { second: '*', timezone: 'Asia/Kolkata' })
    await fire(timed, clock, rule)
    const [first, second] = await fire(timed, clock, rule)
    expect(first?.payload.executed_at).toMatch(/\.000000\+00:00$/)
    expect(microsOf(second?.payload.executed_at ?? '') - microsOf(first?.payload.executed_at ?? '')).toBe(SECOND)
    // One that is late passes over the seconds that it has missed.
    clock.advance(5400)
    await waitForInstances(timed, rule, 3)
    const { next_timestamp: next, fired_timestamp: fired } = await timerOf(timed, rule)
    expect(secondsBetween(fired ?? '', next ?? '')).toBe(5)
    expect(rowOf(timed, rule).fired_timestamp).toEqual(expect.stringMatching(/\.000000Z$/))
    expect(await fire(timed, clock, rule)).toHaveLength(4)
  })

  it('05.8 a date: once; a past one never, with a warning', async () => {
    const past = await makeTimer(timed, 'DateTimer', { date: '2001-01-01 12:00' })
    const due = new Date(clock.now() / 1000 + 3_600_000).toISOString()
    const rule = await makeTimer(timed, 'DateTimer', { date: due })
    const other = await makeTimer(timed, 'IntervalTimer', { unit: 'seconds', delta: 1 })
    await fire(timed, clock, other)
    expect(await instancesOf(timed, rule)).toEqual([])
    const [instance] = await fire(timed, clock, rule)
    expect(microsOf(instance?.payload.executed_at ?? '')).toBe(Date.parse(due) * 1000)
    await waitForInstances(timed, other, 2)
    clock.advance(7_200_000)
    await waitForInstances(timed, other, 3)
    expect(await instancesOf(timed, rule)).toHaveLength(1)
    expect(await instancesOf(timed, past)).toEqual([])
    const { ref } = await timerOf(timed, past)
    await waitForLog(timed, new RegExp(`WARNING.*never fires.*${ref}`))
  })

  it('05.8 a disabled rule keeps its timer, which does not fire until the rule is enabled', async () => {
    const every = { unit: 'seconds', delta: 1, timezone: 'Europe/Malta' }
    const rule = await makeTimer(timed, 'IntervalTimer', every, { enabled: false })
    const other = await makeTimer(timed, 'IntervalTimer', { ...every, timezone: 'Europe/Rome' })
    await fire(timed, clock, other)
    expect(await instancesOf(timed, rule)).toEqual([])
    const { body: timer } = await getTimed<Timer>(`/timers/${rule.trigger.ref}`)
    expect(timer).toMatchObject({ next_timestamp: expect.any(String) as string })
    expect(timer.fired_timestamp).toBeUndefined()
    const { status } = await timed.call('PUT', `/v1/rules/${rule.id}`, { ...rule, enabled: true })
    expect(status).toBe(200)
    await fire(timed, clock, rule)
    const count = (await instancesOf(timed, rule)).length
    await timed.call('PUT', `/v1/rules/${rule.id}`, { ...rule, enabled: false })
    await fire(timed, clock, other)
    expect(await instancesOf(timed, rule)).toHaveLength(count)
  })

  it('05.5 rules with equal parameters share a timer; it goes with the last, and fires no more', async () => {
    const first = await makeTimer(timed, 'IntervalTimer', { unit: 'seconds', delta: 1, timezone: 'UTC' })
    const second = await makeTimer(timed, 'IntervalTimer', { timezone: 'UTC', delta: 1, unit: 'seconds' })
    const other = await makeTimer(timed, 'IntervalTimer', { unit: 'seconds', delta: 1 })
    expect(second.trigger.ref).toBe(first.trigger.ref)
    await fire(timed, clock, first)
    await timed.call('DELETE', `/v1/rules/${first.ref}`)
    await fire(timed, clock, second)
    await timed.call('DELETE', `/v1/rules/${second.ref}`)
    expect((await getTimed(`/timers/${first.trigger.ref}`)).status).toBe(404)
    await waitFor('the row to go', () => {
      const rows = rowsOf(timed, `select * from timers where trigger_id not in (select id from triggers)`)
      return rows.length === 0
    })
    const last = await instancesOf(timed, second)
    // Two seconds have passed for it as well.
    await waitForInstances(timed, other, 1)
    await fire(timed, clock, other)
    await fire(timed, clock, other)
    expect(await instancesOf(timed, second)).toEqual(last)
  })
})

describe('05.8 crontab text', () => {
  it('05.8 a rule has it beside the time zone, and gets it back as written', async () => {
    const parameters = { cron: '0 9 L * *', timezone: 'Asia/Kolkata', start: '2099-12-01', end: '2101-01-01' }
    const rule = await makeTimer(server, 'CronTimer', parameters)
    const timer = await waitFor('the timer', async () => {
      const read = await timerOf(server, rule)
      return read.next_timestamp !== undefined && read
    })
    expect(timer).toMatchObject({ parameters, next_timestamp: '2099-12-31T03:30:00.000000Z' })
    await server.call('DELETE', `/v1/rules/${rule.ref}`)
  })

  it.each([
    [{ cron: '0 9 * * mon-fri', hour: 5 }, /cron: .*hour beside it contradicts it; give one or the other/],
    [{ cron: '0 25 * * *' }, /cron: hour: "25" is outside of the range of the field, 0 to 23/],
    [{ cron: '@reboot' }, /cron: @reboot is not a time.*systemd unit/],
    [{ cron: '*'.repeat(501) }, /cron/],
    [{ cron: '0 9 * * *', end: 'never' }, /end: "never" is not a date/],
  ])('05.8 400 says what is wrong: %j', async (parameters, problem) => {
    const { status, body } = await makeRule(server, 'CronTimer', parameters)
    expect([status, body.faultstring]).toEqual([400, expect.stringMatching(problem)])
  })
})

describe('05.8 endpoints', () => {
  const rules: Rule[] = []
  beforeAll(async () => {
    rules.push(await makeTimer(server, 'IntervalTimer', { unit: 'weeks', delta: 3 }))
    rules.push(await makeTimer(server, 'CronTimer', { hour: '*/6', timezone: 'Europe/Berlin' }))
    rules.push(await makeTimer(server, 'DateTimer', { date: '2100-01-01' }))
    rules.push(await makeTimer(server, 'IntervalTimer', { unit: 'days', delta: 3 }))
  })
  afterAll(async () => {
    for (const { ref } of rules) await server.call('DELETE', `/v1/rules/${ref}`)
  })

  it('05.8 the list: whole, in the order of making, records of triggers', async () => {
    await waitFor('all of them to know when they are due', async () => {
      const { body: timers } = await get<Timer[]>('/timers')
      return timers.every((timer) => 'next_timestamp' in timer)
    })
    const { status, body, headers } = await get<Timer[]>('/timers')
    expect(status).toBe(200)
    expect(body.map(({ ref }) => ref)).toEqual(rules.map(({ trigger }) => trigger.ref))
    expect(headers.get('X-Total-Count')).toBe('4')
    const [first] = body
    expect(first).toEqual({
      id: expect.stringMatching(idPattern),
      uid: `trigger:core:${first?.name ?? ''}:${createHash('md5').update('{"delta":3,"unit":"weeks"}').digest('hex')}`,
      ref: `core.${first?.name ?? ''}`,
      name: expect.stringMatching(/^[0-9a-f-]{36}$/),
      pack: 'core',
      type: 'core.svc.IntervalTimer',
      description: '',
      parameters: { unit: 'weeks', delta: 3 },
      timezone: expect.any(String),
      next_timestamp: expect.stringMatching(/Z$/),
      next_run: first?.next_timestamp,
      rules: [rules[0]?.ref],
    })
    expect((await get<Timer[]>('/timers?limit=1&offset=1')).body).toHaveLength(4)
  })

  it('05.8 filtered by type; another word is refused', async () => {
    const of = async (type: string) => (await get<Timer[]>(`/timers?timer_type=${type}`)).body.map(({ ref }) => ref)
    const refs = rules.map(({ trigger }) => trigger.ref)
    expect(await of('core.svc.IntervalTimer')).toEqual([refs[0], refs[3]])
    expect(await of('core.svc.CronTimer')).toEqual([refs[1]])
    expect(await of('core.svc.DateTimer')).toEqual([refs[2]])
    for (const type of ['svc.IntervalTimer', 'core.svc.webhook', 'core.svc.intervaltimer', '%27%20or%201=1--']) {
      const { status, body } = await get(`/timers?timer_type=${type}`)
      expect([type, status, body.code]).toEqual([type, 400, 'TIMER_TYPE_UNKNOWN'])
      expect(body.faultstring).toMatch(/core\.svc\.IntervalTimer, core\.svc\.DateTimer, core\.svc\.CronTimer/)
    }
  })

  it('05.8 one, by reference and by id; 404', async () => {
    const { ref = '' } = rules[1]?.trigger ?? {}
    const { status, body } = await get<Timer>(`/timers/${ref}`)
    expect([status, body.type, body.parameters]).toEqual([
      200,
      'core.svc.CronTimer',
      { hour: '*/6', timezone: 'Europe/Berlin' },
    ])
    expect((await get(`/timers/${body.id}`)).body).toEqual(body)
    // Other triggers are no timers.
    const others = [unknownId, 'core.nothing', 'core.svc.IntervalTimer', 'core.svc.generic.actiontrigger']
    for (const one of [...others, ...impossibleIds]) {
      expect([one, (await get(`/timers/${one}`)).status]).toEqual([one, 404])
    }
  })
})

describe('05.8 next and previous runs', () => {
  const daily = { cron: '30 9 * * *', timezone: 'Asia/Kolkata', start: '2099-01-01' }
  const dayOf = (day: number) => `2099-01-0${day}T04:00:00.000000Z`

  it('of a timer: five, or as many as asked for; in lists on request', async () => {
    const rule = await makeTimer(server, 'CronTimer', daily)
    await waitFor('the row', async () => (await timerOf(server, rule)).next_run)
    const path = `/timers/${rule.trigger.ref}`
    const one = (await get<Timer>(path)).body
    expect(one).toMatchObject({ timezone: 'Asia/Kolkata', next_run: dayOf(1), next_runs: [1, 2, 3, 4, 5].map(dayOf) })
    expect(one.previous_run).toBeUndefined()
    expect((await get<Timer>(`${path}?next_runs=2`)).body.next_runs).toEqual([1, 2].map(dayOf))
    expect((await get<Timer>(`${path}?next_runs=0`)).body.next_runs).toBeUndefined()
    expect((await get<Timer>(`${path}?next_runs=50`)).body.next_runs).toHaveLength(50)
    expect((await get<Timer[]>('/timers?next_runs=3')).body.at(-1)?.next_runs).toEqual([1, 2, 3].map(dayOf))
    expect((await get<Timer[]>('/timers')).body.at(-1)).not.toHaveProperty('next_runs')
    for (const wrong of [
      `${path}?next_runs=51`,
      `${path}?next_runs=-1`,
      '/timers?next_runs=6',
      '/timers?next_runs=x',
    ]) {
      expect([wrong, (await get(wrong)).status]).toEqual([wrong, 400])
    }
    await server.call('DELETE', `/v1/rules/${rule.ref}`)
  })

  interface View {
    ref: string
    next_run?: string | null
    previous_run?: string | null
    next_runs?: string[]
  }

  it('of a rule: in its view, in lists on request; a disabled rule has none', async () => {
    const rule = await makeTimer(server, 'CronTimer', daily)
    const off = await makeTimer(server, 'CronTimer', daily, { enabled: false })
    const other = await makeTimer(server, 'IntervalTimer', { unit: 'weeks', delta: 1 }, { enabled: false })
    const viewOf = async ({ ref }: Rule) => (await get<View>(`/rules/views/${ref}`)).body
    await waitFor('the row', async () => (await viewOf(rule)).next_run)
    const runs = { next_run: dayOf(1), previous_run: null, next_runs: [1, 2, 3, 4, 5].map(dayOf) }
    const none = { next_run: null, previous_run: null, next_runs: [] }
    expect(await viewOf(rule)).toMatchObject(runs)
    // Both have one timer.
    expect(await viewOf(off)).toMatchObject(none)
    expect(await viewOf(other)).toMatchObject(none)
    const list = async (attributes: string) =>
      (await get<View[]>(`/rules/views?include_attributes=${attributes}`)).body.filter(({ ref }) =>
        [rule.ref, off.ref].includes(ref),
      )
    const asked = await list('ref,next_run,previous_run,next_runs')
    expect(asked.find(({ ref }) => ref === rule.ref)).toMatchObject(runs)
    expect(asked.find(({ ref }) => ref === off.ref)).toMatchObject(none)
    expect((await list('ref,next_run')).find(({ ref }) => ref === rule.ref)).not.toHaveProperty('next_runs')
    expect((await get<View[]>('/rules/views')).body[0]).not.toHaveProperty('next_run')
    for (const { ref } of [rule, off, other]) await server.call('DELETE', `/v1/rules/${ref}`)
  })

  it('of a timer that has fired: when it did', async () => {
    const moved = new TestClock()
    await withApp({ clock: moved }, async (app) => {
      const rule = await makeTimer(app, 'IntervalTimer', { unit: 'hours', delta: 1 })
      const [instance] = await fire(app, moved, rule)
      const { previous_run: previous, fired_timestamp: fired } = await timerOf(app, rule)
      expect(microsOf(previous ?? '')).toBe(microsOf(instance?.payload.executed_at ?? ''))
      expect(fired).toBe(previous)
    })
  })

  it('05.8 a timer that no rule uses does not fire', async () => {
    const moved = new TestClock()
    await withApp({ clock: moved }, async (app) => {
      const made = {
        pack: 'mine',
        name: 'alone',
        type: 'core.svc.IntervalTimer',
        parameters: { unit: 'seconds', delta: 1 },
      }
      expect((await app.call('POST', '/v1/triggers', made)).status).toBe(201)
      const other = await makeTimer(app, 'IntervalTimer', { unit: 'seconds', delta: 2 })
      await fire(app, moved, other)
      expect((await app.call<Instance[]>('GET', '/v1/triggerinstances?trigger=mine.alone')).body).toEqual([])
      const { body } = await app.call<Timer>('GET', '/v1/timers/mine.alone')
      expect([body.next_run, body.next_runs]).toEqual([undefined, []])
      // A rule starts it, and the end of the rule stops it.
      const { ref } = await makeTimer(app, 'IntervalTimer', made.parameters)
      const used = { trigger: { type: made.type, ref: 'mine.alone', parameters: {} }, id: '', ref }
      await fire(app, moved, used)
      await app.call('DELETE', `/v1/rules/${ref}`)
      const count = (await instancesOf(app, used)).length
      await fire(app, moved, other)
      await fire(app, moved, other)
      expect(await instancesOf(app, used)).toHaveLength(count)
    })
  })
})

describe('05.8 preview', () => {
  const preview = (body: unknown) =>
    server.call<{ timezone: string; next_runs: string[] } & ErrorAnswer>('POST', '/v1/timers/preview', body)

  it('gives the next times and creates nothing', async () => {
    const before = (await get<Timer[]>('/timers')).body
    const parameters = { cron: '0 9 L * *', timezone: 'Asia/Kolkata', start: '2099-12-01', end: '2100-01-31 12:00' }
    const { status, body } = await preview({ type: 'core.svc.CronTimer', parameters, count: 3 })
    expect([status, body]).toEqual([
      200,
      { timezone: 'Asia/Kolkata', next_runs: ['2099-12-31T03:30:00.000000Z', '2100-01-31T03:30:00.000000Z'] },
    ])
    const interval = await preview({ type: 'core.svc.IntervalTimer', parameters: { unit: 'days', delta: 1 } })
    expect(interval.body.next_runs).toHaveLength(5)
    const date = await preview({ type: 'core.svc.DateTimer', parameters: { run_at: '2001-01-01' } })
    expect(date.body.next_runs).toEqual([])
    expect((await preview({ type: 'core.svc.CronTimer', count: 50 })).body.next_runs).toHaveLength(50)
    expect((await get<Timer[]>('/timers')).body).toEqual(before)
  })

  it.each([
    [{ type: 'core.svc.CronTimer', parameters: { cron: '0 25 * * *' } }, /cron: hour: "25" is outside of the range/],
    [{ type: 'core.svc.IntervalTimer', parameters: { unit: 'days' } }, /'delta' is a required property/],
    [{ type: 'core.svc.DateTimer' }, /'date' is a required property, or 'run_at'/],
    [{ type: 'core.svc.CronTimer', parameters: { timezone: 'Mars/Olympus' } }, /"Mars\/Olympus" is not a time zone/],
    [{ type: 'core.svc.webhook', parameters: { url: 'x' } }, /core\.svc\.IntervalTimer/],
    [{ type: 'core.svc.CronTimer', count: 51 }, /count/],
  ])('says what is wrong: %j', async (body, problem) => {
    const answer = await preview(body)
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringMatching(problem)])
  })
})

describe('05.8, 11.3 who sees which', () => {
  it('the list holds those that the caller may view', async () => {
    const folder = makeFolder()
    const digest = createHash('md5').update('{"delta":1,"unit":"weeks"}').digest('hex')
    const files: Record<string, string> = {
      'roles/one.yaml': `name: one\npermission_grants:\n  - permission_types: [timer_list]\n  - resource_uid: timer:mine:first:${digest}\n    permission_types: [timer_view]\n`,
      'roles/lists.yaml': 'name: lists\npermission_grants:\n  - permission_types: [timer_list]\n',
      'assignments/admin.yaml': 'username: admin\nroles: [system_admin]\n',
      'assignments/one.yaml': 'username: one\nroles: [one]\n',
      'assignments/lists.yaml': 'username: lists\nroles: [lists]\n',
      'assignments/watcher.yaml': 'username: watcher\nroles: [observer]\n',
    }
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder.path, 'rbac', path, '..'), { recursive: true })
      writeFileSync(join(folder.path, 'rbac', path), text)
    }
    const settings = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }
    await withApp({ basePath: folder.path, settings }, async (secured) => {
      const admin = await signIn(secured, 'admin', firstPassword(folder.path))
      for (const [name, delta] of [
        ['first', 1],
        ['second', 2],
      ] as const) {
        const trigger = { pack: 'mine', name, type: 'core.svc.IntervalTimer', parameters: { unit: 'weeks', delta } }
        expect((await secured.call('POST', '/v1/triggers', trigger, admin)).status).toBe(201)
      }
      // The same schedule: the rule uses the trigger that exists.
      const trigger = { type: 'core.svc.IntervalTimer', parameters: { unit: 'weeks', delta: 1 } }
      const rule = { name: 'weekly', pack: 'mine', trigger, action: { ref: 'core.noop' } }
      expect((await secured.call('POST', '/v1/rules', rule, admin)).status).toBe(201)
      const seenBy = async (user: string) => {
        const { body: key } = await secured.call<{ key: string }>('POST', '/v1/apikeys', { user }, admin)
        const headers = { 'Svc-Api-Key': key.key }
        const list = await secured.call<Timer[]>('GET', '/v1/timers', undefined, headers)
        const names = list.status === 200 ? list.body.map(({ name, rules }) => [name, ...rules].join()) : list.status
        const statuses = ['first', 'second'].map(
          async (name) => (await secured.call('GET', `/v1/timers/mine.${name}`, undefined, headers)).status,
        )
        return [names, list.headers.get('X-Total-Count'), ...(await Promise.all(statuses))]
      }
      expect(await seenBy('admin')).toEqual([['first,mine.weekly', 'second'], '2', 200, 200])
      expect(await seenBy('watcher')).toEqual([['first,mine.weekly', 'second'], '2', 200, 200])
      // May view the timer and not the rule.
      expect(await seenBy('one')).toEqual([['first'], '1', 200, 403])
      expect(await seenBy('lists')).toEqual([[], '0', 403, 403])
      expect(await seenBy('nobody')).toEqual([403, null, 403, 403])
    })
    folder.remove()
  })
})

describe('05.8, 10.2 on and off', () => {
  it('timersengine.enable = False: nothing fires, endpoints answer', async () => {
    const moved = new TestClock()
    await withApp({ settings: { 'timersengine.enable': 'False' }, clock: moved }, async (off) => {
      const due = new Date(moved.now() / 1000 + 3_600_000).toISOString()
      const rule = await makeTimer(off, 'DateTimer', { date: due })
      expect((await off.call<Timer[]>('GET', '/v1/timers')).body).toHaveLength(1)
      expect((await timerOf(off, rule)).type).toBe('core.svc.DateTimer')
      expect(moved.waits).toBe(0)
      moved.advance(7_200_000)
      expect(await instancesOf(off, rule)).toEqual([])
    })
  })

  /** A server with two timers whose times pass while it is off. */
  const pass = async (missed: string) => {
    const folder = makeFolder()
    const settings = { 'timersengine.missed': missed, 'timersengine.local_timezone': 'UTC' }
    const options = { basePath: folder.path, settings, clock: new TestClock() }
    let interval: Rule | undefined
    let date: Rule | undefined
    await withApp(options, async (first) => {
      interval = await makeTimer(first, 'IntervalTimer', { unit: 'seconds', delta: 1 })
      await fire(first, options.clock, interval)
      const due = new Date(options.clock.now() / 1000 + 3_600_000).toISOString()
      date = await makeTimer(first, 'DateTimer', { date: due })
      // Nothing is known of it unless it was stored.
      await waitFor('the rows', () => rowsOf<{ n: number }>(first, 'select count(*) as n from timers')[0]?.n === 2)
    })
    options.clock.advance(7_200_400)
    if (interval === undefined || date === undefined) throw new Error('two rules were made')
    return { folder, options, interval, date }
  }

  it('05.8 what was missed while the server was off is made up for once, and the grid stays', async () => {
    const { folder, options, interval, date } = await pass('once')
    await withApp(options, async (second) => {
      await waitForInstances(second, date, 1)
      await waitForInstances(second, interval, 2)
      await fire(second, options.clock, interval)
      const instances = await fire(second, options.clock, interval)
      const anchor = microsOf(rowOf(second, interval).anchor)
      const [first, late, ...further] = instances.map(({ payload }) => microsOf(payload.executed_at) - anchor)
      expect(first).toBe(SECOND)
      // Two hours passed in between, and no firing came for each second of them.
      expect(late).toBe(7201.4 * SECOND)
      expect(further).toEqual([7202 * SECOND, 7203 * SECOND])
      expect(await instancesOf(second, date)).toHaveLength(1)
      await waitForLog(second, /svc fires them once now/)
    })
    folder.remove()
  })

  fullOnly(it)('timersengine.missed = skip leaves it out', async () => {
    const { folder, options, interval, date } = await pass('skip')
    await withApp(options, async (second) => {
      await fire(second, options.clock, interval)
      expect(await fire(second, options.clock, interval)).toHaveLength(3)
      expect(await instancesOf(second, date)).toEqual([])
      await waitForLog(second, /svc skips the missed times/)
    })
    folder.remove()
  })

  const seed = seedOfRun()
  fullOnly(it)(`05.8 killed at any moment, it fires each time at most once and goes on (seed ${seed})`, async () => {
    const random = createRandom(seed)
    const folder = makeFolder()
    const settings = { 'timersengine.local_timezone': 'UTC' }
    const rules: Rule[] = []
    const dates: Rule[] = []
    const total = (on: TestApp): number =>
      rowsOf<{ n: number }>(on, `select count(*) as n from trigger_instances`)[0]?.n ?? 0
    for (let round = 0; round < 8; round += 1) {
      const victim = await startServer({ basePath: folder.path, settings })
      if (round === 0) {
        for (const delta of [1, 1, 2]) {
          rules.push(
            await makeTimer(victim, 'IntervalTimer', {
              unit: 'seconds',
              delta,
              timezone: ['UTC', 'GMT', 'EST'][rules.length],
            }),
          )
        }
        rules.push(await makeTimer(victim, 'CronTimer', { second: '*' }))
        rules.push(await makeTimer(victim, 'CronTimer', { cron: '*/2 * * * * *', jitter_seconds: 60 }))
      }
      // Due before the kill, while the server is off, or after its next start.
      for (let i = 0; i < 3; i += 1) {
        const runAt = new Date(Date.now() + 100 + random.below(3000)).toISOString()
        dates.push(await makeTimer(victim, 'DateTimer', { run_at: runAt, jitter_seconds: random.below(2) }))
      }
      const until = performance.now() + random.below(1500)
      await waitFor('the moment', () => performance.now() > until)
      await victim.stop('SIGKILL')
    }
    await withServer({ basePath: folder.path, settings }, async (last) => {
      const seen = total(last)
      await waitFor('timers to go on', async () => {
        const counts = await Promise.all(rules.map(async (rule) => (await instancesOf(last, rule)).length))
        return total(last) >= seen + 8 && Math.min(...counts) > 3
      })
      for (const [i, rule] of rules.entries()) {
        const row = rowOf(last, rule)
        const isCron = i >= 3
        const start = isCron ? 0 : microsOf(row.anchor)
        const step = (isCron ? i - 2 : Number(rule.trigger.parameters['delta'])) * SECOND
        const times = (await instancesOf(last, rule)).map(({ payload }) => microsOf(payload.executed_at))
        const slots = times.map((time) => Math.floor((time - start) / step))
        expect(slots).toEqual([...new Set(slots)].toSorted((a, b) => a - b))
        expect((microsOf(row.fired_timestamp ?? '') - start) % step).toBe(0)
      }
      // A run at a date is neither lost nor doubled, whenever it was due.
      for (const date of dates) {
        await waitForInstances(last, date, 1)
        const executions = `/v1/executions?rule=${date.ref}&limit=-1`
        await waitFor('its execution', async () => (await last.call<object[]>('GET', executions)).body.length > 0)
        expect((await last.call<object[]>('GET', executions)).body).toHaveLength(1)
        expect(await instancesOf(last, date)).toHaveLength(1)
      }
      // What a firing leads to happens once as well.
      const doubled = rowsOf(
        last,
        'select trigger_instance_id, rule_id from rule_enforcements group by 1, 2 having count(*) > 1',
      )
      expect(doubled).toEqual([])
    })
    folder.remove()
  })
})
