import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { startTriggers, type TriggersWorld } from '../../../tests/helpers/triggers.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { computedMs } from '../../../tests/helpers/work.ts'
import type { Database } from '../../db/database.ts'
import { createLog } from '../../lib/log/log.ts'
import { formatMicros, microsOf, nowMicros } from '../../core/time.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { createTimerEngine, type EngineSettings, type TimerEngine } from './engine.ts'
import { createTimerStore } from './store.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

const SECOND = 1_000_000
const HOUR = 3600 * SECOND

/** For the one wait of an engine: records it, and can be set back. Whole servers take `TestClock` of the helpers. */
class EngineClock {
  micros = nowMicros()
  waiting: { at: number; ms: number; fn: () => void } | undefined
  readonly waits: number[] = []
  count = 0
  now(): number {
    return this.micros
  }
  setBacks(): number {
    return this.count
  }
  wait(ms: number, fn: () => void): () => void {
    const waiting = { at: this.micros + ms * 1000, ms, fn }
    this.waiting = waiting
    this.waits.push(ms)
    return () => {
      if (this.waiting === waiting) this.waiting = undefined
    }
  }
  /** Sets the time, and calls who waits for it or for less. @returns whether somebody did */
  set(micros: number): boolean {
    this.micros = micros
    const waiting = this.waiting
    // Waiting is done in whole milliseconds.
    if (waiting === undefined || waiting.at >= micros + 1000) return false
    this.waiting = undefined
    waiting.fn()
    return true
  }
}

let folder: TemporaryFolder
/** Ids of triggers without an enabled rule. */
const unused = new Set<string>()
let world: TriggersWorld
let clock: EngineClock
let sink: TextSink
let engine: TimerEngine
/** What the next writes fail with, if anything. */
let failing: (() => Error | undefined) | undefined
/** What the next write waits for, if anything. */
let gate: Promise<void> | undefined

beforeEach(async () => {
  folder = makeFolder()
  failing = undefined
  gate = undefined
  unused.clear()
  const around = (database: Database): Database => ({
    ...database,
    build: database.build,
    write: async (unit) => {
      const error = failing?.()
      if (error !== undefined) throw error
      await gate
      return database.write(unit)
    },
  })
  world = await startTriggers(folder.path, { around })
  clock = new EngineClock()
  sink = new TextSink()
  engine = createEngine()
})

afterEach(async () => {
  await engine.stop()
  await world.stop()
  folder.remove()
})

function createEngine(more: Partial<EngineSettings> = {}, own: EngineClock = clock): TimerEngine {
  return createTimerEngine({
    database: world.database,
    store: createTimerStore(world.database),
    triggers: world.triggers,
    bus: world.bus,
    log: createLog({ level: 'INFO', format: 'text', stream: sink }),
    clock: own,
    isUsed: (id) => !unused.has(id),
    settings: { localTimeZone: 'America/Los_Angeles', missed: 'once', maxPending: 1000, ...more },
  })
}

async function makeTimer(type: string, parameters: Record<string, unknown>): Promise<TriggerRecord> {
  const { trigger, unit } = world.triggers.planUse(type, parameters)
  await world.database.write(unit)
  return trigger
}

const everySeconds = (delta: number) => makeTimer('core.svc.IntervalTimer', { unit: 'seconds', delta })

interface Row {
  trigger_id: string
  anchor: string
  next_timestamp: string | null
  due_timestamp: string | null
  fired_timestamp: string | null
  run_timestamp: string | null
}

const rows = (): Row[] =>
  world.database.all({
    compile: () => sql<Row>`select * from timers order by trigger_id`.compile(world.database.build),
  })
const rowOf = (trigger: TriggerRecord): Row | undefined => rows().find((row) => row.trigger_id === trigger.id)

interface Fired {
  trigger_id: string
  executed_at: string
  tag: string
  trace_id: string
}

const fired = (trigger?: TriggerRecord): Fired[] =>
  world.database
    .all({
      compile: () =>
        sql<Omit<Fired, 'executed_at'> & { payload: string }>`select trigger_id, payload, trace_id, trace_tag as tag
          from trigger_instances join traces on traces.id = trace_id order by trigger_instances.id`.compile(
          world.database.build,
        ),
    })
    .filter(({ trigger_id }) => trigger === undefined || trigger_id === trigger.id)
    .map(({ payload, ...row }) => ({
      ...row,
      executed_at: (JSON.parse(payload) as { executed_at: string }).executed_at,
    }))

/** Once the engine has done what there is to do. */
const resting = () => waitFor('the engine to wait', () => clock.waiting !== undefined)

async function at(micros: number): Promise<void> {
  clock.set(micros)
  await resting()
}

const nextOf = (trigger: TriggerRecord): number => microsOf(rowOf(trigger)?.next_timestamp ?? '')

/** As the rules do when one is enabled or disabled. */
async function use(timer: TriggerRecord, isUsed: boolean): Promise<void> {
  if (isUsed) unused.delete(timer.id)
  else unused.add(timer.id)
  const payload = { id: 'a'.repeat(24), ref: 'a.b', change: 'updated', trigger_ids: [timer.id] } as const
  world.bus.publish({ name: 'rule.changed', payload: { ...payload, trigger_ids: [...payload.trigger_ids] } })
  await waitFor('the row', () => (rowOf(timer)?.next_timestamp != null) === isUsed)
  await resting()
}

describe('a timer whose rules are all disabled', () => {
  test('does not fire and wakes nobody; its next time is still known', async () => {
    await engine.start()
    const timer = await everySeconds(5)
    await waitFor('the row', () => rowOf(timer))
    const anchor = microsOf(rowOf(timer)?.anchor ?? '')
    await use(timer, false)
    await at(anchor + HOUR)
    expect([fired(), rowOf(timer)]).toEqual([[], expect.objectContaining({ fired_timestamp: null })])
    expect(clock.waiting?.ms).toBe(60_000)
    expect(engine.timesOf(timer, 5)).toMatchObject({
      next: null,
      nextIfUsed: formatMicros(anchor + HOUR + 5 * SECOND),
      runs: [],
    })
  })

  test('goes on in its rhythm once one is enabled; nothing is made up for', async () => {
    await engine.start()
    const timer = await everySeconds(30)
    await waitFor('the row', () => rowOf(timer))
    const anchor = microsOf(rowOf(timer)?.anchor ?? '')
    await use(timer, false)
    await at(anchor + HOUR + 7 * SECOND)
    await use(timer, true)
    expect(nextOf(timer)).toBe(anchor + HOUR + 30 * SECOND)
    expect(fired()).toEqual([])
    await at(anchor + HOUR + 30 * SECOND)
    expect(fired(timer)).toHaveLength(1)
    // A change of a rule that is enabled changes nothing.
    const before = rowOf(timer)
    await use(timer, true)
    expect(rowOf(timer)).toEqual(before)
  })

  test('stays silent across a restart, also with missed = once; a date that passed is gone', async () => {
    await engine.start()
    const date = formatMicros(clock.micros + HOUR)
    const timers = [await everySeconds(30), await makeTimer('core.svc.DateTimer', { date })]
    await waitFor('the rows', () => rows().length === 2)
    await resting()
    await engine.stop()
    // The rule was disabled while the server was off: the rows still have their times.
    for (const { id } of timers) unused.add(id)
    clock.micros += 2 * HOUR
    engine = createEngine()
    await engine.start()
    await resting()
    expect(fired()).toEqual([])
    expect(rows().map(({ next_timestamp: next }) => next)).toEqual([null, null])
    expect(sink.text).not.toContain('missed their times')
    unused.clear()
    const [interval, ofDate] = timers
    if (interval === undefined || ofDate === undefined) throw new Error('two were made')
    await use(interval, true)
    expect(engine.timesOf(ofDate, 5)).toMatchObject({ next: null, nextIfUsed: null, runs: [] })
    expect(fired()).toEqual([])
  })
})

describe('firing', () => {
  test('starts one interval after the trigger was created and keeps the grid', async () => {
    await engine.start()
    const timer = await everySeconds(30)
    await waitFor('the row', () => rowOf(timer))
    await resting()
    const anchor = microsOf(rowOf(timer)?.anchor ?? '')
    expect(nextOf(timer)).toBe(anchor + 30 * SECOND)
    await at(anchor + 30 * SECOND - 1)
    expect(fired()).toEqual([])

    // Late, as timeouts are.
    for (const late of [0, 900_000, 29_999_999]) {
      await at(nextOf(timer) + late)
      const instances = fired(timer)
      const at1 = formatMicros(clock.micros)
      expect(instances.at(-1)?.executed_at).toBe(at1.replace('T', ' ').replace('Z', '+00:00'))
      expect((nextOf(timer) - anchor) % (30 * SECOND)).toBe(0)
      expect(nextOf(timer) - clock.micros).toBeGreaterThan(0)
      expect(nextOf(timer) - clock.micros).toBeLessThanOrEqual(30 * SECOND)
    }
    expect(fired(timer)).toHaveLength(3)
    // One trace for each, all with one tag.
    expect(new Set(fired().map(({ tag }) => tag))).toEqual(new Set([`svc.IntervalTimer-${timer.name}`]))
    expect(new Set(fired().map(({ trace_id }) => trace_id)).size).toBe(3)
  })

  test('several missed intervals are one firing', async () => {
    await engine.start()
    const timer = await everySeconds(5)
    await waitFor('the row', () => rowOf(timer))
    await resting()
    await at(clock.micros + 3 * HOUR)
    expect(fired(timer)).toHaveLength(1)
    expect(nextOf(timer) - clock.micros).toBeLessThanOrEqual(5 * SECOND)
  })

  test('a date timer fires once', async () => {
    await engine.start()
    const date = formatMicros(clock.micros + HOUR)
    const timer = await makeTimer('core.svc.DateTimer', { date })
    await waitFor('the row', () => rowOf(timer))
    await resting()
    expect(rowOf(timer)?.next_timestamp).toBe(date)
    await at(clock.micros + HOUR)
    expect(fired(timer)).toHaveLength(1)
    expect(rowOf(timer)).toMatchObject({ next_timestamp: null, fired_timestamp: date })
    await at(clock.micros + 24 * HOUR)
    await engine.stop()
    engine = createEngine()
    await engine.start()
    await resting()
    expect(fired(timer)).toHaveLength(1)
    expect(sink.text).toBe('')
  })

  test('a date in the past and expressions without a match never fire, which is logged once', async () => {
    await engine.start()
    const past = await makeTimer('core.svc.DateTimer', { date: '2001-01-01T00:00:00Z' })
    const never = await makeTimer('core.svc.CronTimer', { month: 2, day: 30 })
    await waitFor('the rows', () => rows().length === 2)
    await engine.stop()
    engine = createEngine()
    await engine.start()
    await resting()
    await at(clock.micros + 24 * HOUR)
    expect(fired()).toEqual([])
    const warnings = sink.text.split('\n').filter((line) => line.includes('WARNING'))
    expect(warnings).toHaveLength(2)
    for (const { ref } of [past, never]) expect(sink.text).toContain(ref)
  })

  test('uses the time zone of the timer, else the configured one', async () => {
    await engine.start()
    const own = await makeTimer('core.svc.CronTimer', { hour: 12, timezone: 'Asia/Kolkata' })
    const local = await makeTimer('core.svc.CronTimer', { hour: 12 })
    await waitFor('the rows', () => rows().length === 2)
    expect(rowOf(own)?.next_timestamp).toMatch(/T06:30:00\.000000Z$/)
    expect(rowOf(local)?.next_timestamp).toMatch(/T(19|20):00:00\.000000Z$/)
    await engine.stop()
    engine = createEngine({ localTimeZone: 'UTC' })
    await engine.start()
    await resting()
    expect(rowOf(own)?.next_timestamp).toMatch(/T06:30:00\.000000Z$/)
    expect(rowOf(local)?.next_timestamp).toMatch(/T12:00:00\.000000Z$/)
  })

  test('uses one timeout of at most a minute', async () => {
    await engine.start()
    await resting()
    expect(clock.waits).toEqual([60_000])
    const timer = await makeTimer('core.svc.IntervalTimer', { unit: 'weeks', delta: 200 })
    await waitFor('the row', () => rowOf(timer))
    await resting()
    const due = nextOf(timer)
    // Four years are more milliseconds than a timeout can have; the clock jumps.
    expect(due - clock.micros).toBeGreaterThan(2 ** 31 * 1000)
    expect(clock.waiting?.ms).toBe(60_000)
    await at(due - 10 * SECOND)
    expect(clock.waiting?.ms).toBe(10_000)
    await at(due)
    expect(fired(timer)).toHaveLength(1)
    expect(Math.max(...clock.waits)).toBe(60_000)
  })

  fullOnly(test)('thousands of timers with one time fire once each', async () => {
    const made = await Promise.all(
      Array.from({ length: 3000 }, (_, i) => makeTimer('core.svc.IntervalTimer', { unit: 'hours', delta: i + 1 })),
    )
    await engine.start()
    await resting()
    expect(rows()).toHaveLength(3000)
    await at(clock.micros + 3001 * HOUR)
    expect(
      fired()
        .map(({ trigger_id }) => trigger_id)
        .sort(),
    ).toEqual(made.map(({ id }) => id).sort())
  })
})

describe('a timer with jitter', () => {
  const hourly = (jitter_seconds: number, more = {}) =>
    makeTimer('core.svc.CronTimer', { cron: '0 * * * *', jitter_seconds, ...more })
  const delayOf = (timer: TriggerRecord): number => {
    const { due_timestamp: due, next_timestamp: next } = rowOf(timer) ?? {}
    return microsOf(next ?? '') - microsOf(due ?? '')
  }

  test('fires within it after the time of its schedule, and keeps the schedule', async () => {
    await engine.start()
    const timer = await hourly(600)
    await waitFor('the row', () => rowOf(timer))
    const delays = new Set<number>()
    for (let i = 0; i < 5; i += 1) {
      const due = rowOf(timer)?.due_timestamp ?? ''
      expect(due).toMatch(/:00:00\.000000Z$/)
      const delay = delayOf(timer)
      expect(delay).toBeGreaterThanOrEqual(0)
      expect(delay).toBeLessThanOrEqual(600 * SECOND)
      delays.add(delay)
      await at(nextOf(timer) - 1)
      expect(fired(timer)).toHaveLength(i)
      await at(nextOf(timer))
      expect(fired(timer)).toHaveLength(i + 1)
      expect(rowOf(timer)).toMatchObject({ fired_timestamp: due, run_timestamp: formatMicros(clock.micros) })
      expect(microsOf(rowOf(timer)?.due_timestamp ?? '')).toBe(microsOf(due) + HOUR)
    }
    expect(delays.size).toBeGreaterThan(1)
    const { next, runs, fired: last, previous } = engine.timesOf(timer, 3) ?? {}
    const due = microsOf(rowOf(timer)?.due_timestamp ?? '')
    expect(runs).toEqual([next, formatMicros(due + HOUR), formatMicros(due + 2 * HOUR)])
    expect([last, previous]).toEqual([formatMicros(due - HOUR), formatMicros(clock.micros)])
  })

  test('stays before its next time and not after its end', async () => {
    await engine.start()
    const often = await makeTimer('core.svc.IntervalTimer', { unit: 'seconds', delta: 2, jitter_seconds: 86_400 })
    const end = formatMicros(Math.ceil(clock.micros / HOUR) * HOUR + 5)
    const ending = await hourly(3600, { end })
    await waitFor('the rows', () => rows().length === 2)
    expect(rowOf(ending)?.next_timestamp).toBeOneOf([0, 1, 2, 3, 4, 5].map((i) => formatMicros(microsOf(end) - 5 + i)))
    for (let i = 1; i <= 20; i += 1) {
      expect(delayOf(often)).toBeLessThan(2 * SECOND)
      await at(nextOf(often))
      expect(fired(often)).toHaveLength(i)
    }
  })

  test('keeps what it has drawn across restarts, also between its due time and its firing', async () => {
    await engine.start()
    const timer = await hourly(3000)
    await waitFor('the row', () => rowOf(timer))
    await resting()
    const restart = async (micros: number) => {
      await engine.stop()
      clock.micros = micros
      engine = createEngine()
      await engine.start()
      await resting()
    }
    const drawn = [rowOf(timer)?.due_timestamp, rowOf(timer)?.next_timestamp]
    const next = nextOf(timer)
    const due = microsOf(drawn[0] ?? '')
    for (const micros of [clock.micros, due, Math.floor((due + next) / 2), next - 1]) {
      await restart(micros)
      expect([rowOf(timer)?.due_timestamp, rowOf(timer)?.next_timestamp]).toEqual(drawn)
    }
    expect(fired(timer)).toEqual([])
    expect(sink.text).not.toContain('missed their times')
    await restart(next + SECOND)
    expect(fired(timer)).toHaveLength(1)
    await restart(clock.micros)
    expect(fired(timer)).toHaveLength(1)
    expect(microsOf(rowOf(timer)?.due_timestamp ?? '')).toBe(due + HOUR)
  })
})

test('that a timer never fires is found out once, for a start and for all that ask', async () => {
  const timer = await makeTimer('core.svc.CronTimer', { month: 2, day: 30 })
  await engine.start()
  const begun = computedMs()
  for (let n = 0; n < 2000; n += 1) expect(engine.timesOf(timer, 5)).toMatchObject({ next: null, nextIfUsed: null })
  // Each search takes many milliseconds.
  expect(computedMs() - begun).toBeLessThan(5_000)
})

test('a timer whose row is not written yet says when it fires', async () => {
  await engine.start()
  const timer = await makeTimer('core.svc.IntervalTimer', { unit: 'hours', delta: 1 })
  const early = engine.timesOf(timer, 2)
  await waitFor('the row', () => rows().some(({ trigger_id: id }) => id === timer.id))
  expect(early).toEqual(engine.timesOf(timer, 2))
  expect(early.runs).toHaveLength(2)
})

fullOnly(test)('a start with many timers that never fire lets others work', async () => {
  await Promise.all(
    Array.from({ length: 300 }, (_, i) =>
      makeTimer('core.svc.CronTimer', { month: 2, day: 30, second: i % 60, hour: Math.floor(i / 60) }),
    ),
  )
  await engine.start()
  await engine.stop()
  expect(rows()).toHaveLength(300)
  // Nothing is left to write, so that only the search for their times takes turns.
  engine = createEngine()
  let turns = 0
  const counting = setInterval(() => (turns += 1), 0)
  await engine.start()
  clearInterval(counting)
  expect(turns).toBeGreaterThan(3)
})

describe('while the engine was off', () => {
  async function passHours(missed: 'once' | 'skip'): Promise<TriggerRecord[]> {
    await engine.start()
    const timers = [
      await everySeconds(60),
      await makeTimer('core.svc.CronTimer', { minute: '*/10' }),
      await makeTimer('core.svc.DateTimer', { date: formatMicros(clock.micros + HOUR) }),
    ]
    const later = await makeTimer('core.svc.IntervalTimer', { unit: 'days', delta: 7 })
    await waitFor('the rows', () => rows().length === 4)
    await engine.stop()
    clock.set(clock.micros + 5 * HOUR + 30 * SECOND)
    engine = createEngine({ missed })
    await engine.start()
    await resting()
    return [...timers, later]
  }

  test('missed times fire once', async () => {
    const [interval, cron, date, later] = await passHours('once')
    expect(
      fired()
        .map(({ trigger_id }) => trigger_id)
        .sort(),
    ).toEqual([interval, cron, date].map((timer) => timer?.id ?? '').toSorted())
    expect(sink.text).toMatch(/svc fires them once now.*timers=3/)
    for (const timer of [interval, cron, later]) expect(timer && nextOf(timer)).toBeGreaterThan(clock.micros)
    expect(interval && (nextOf(interval) - microsOf(rowOf(interval)?.anchor ?? '')) % (60 * SECOND)).toBe(0)
    expect(date && rowOf(date)?.next_timestamp).toBeNull()
    await at(clock.micros + 60 * SECOND)
    expect(fired(interval)).toHaveLength(2)
  })

  test('missed times are skipped', async () => {
    const [interval, cron, date, later] = await passHours('skip')
    expect(fired()).toEqual([])
    expect(sink.text).toMatch(/svc skips the missed times.*timers=3/)
    for (const timer of [interval, cron, later]) expect(timer && nextOf(timer)).toBeGreaterThan(clock.micros)
    expect(date && rowOf(date)?.next_timestamp).toBeNull()
    await at(clock.micros + 60 * SECOND)
    expect(fired(interval)).toHaveLength(1)
  })

  test('new triggers count from their creation; deleted ones leave no row', async () => {
    const timer = await everySeconds(60)
    const gone = await everySeconds(61)
    await engine.start()
    await resting()
    expect(rows()).toHaveLength(2)
    await engine.stop()
    const other = await everySeconds(62)
    await world.database.write(world.triggers.planRelease(gone.id))
    // One that was made after now would be taken for one from before the clock was set back.
    clock.micros = nowMicros()
    engine = createEngine()
    await engine.start()
    await resting()
    expect(rows().map(({ trigger_id }) => trigger_id)).toEqual([timer.id, other.id].sort())
    const made = Number.parseInt(other.id.slice(0, 8), 16)
    expect(Math.floor(nextOf(other) / SECOND)).toBe(made + 62)
    expect(fired()).toEqual([])
  })
})

describe('changes of triggers', () => {
  test('a deleted timer no longer fires', async () => {
    await engine.start()
    const timer = await everySeconds(10)
    await waitFor('the row', () => rowOf(timer))
    await world.database.write(world.triggers.planRelease(timer.id))
    await waitFor('the row to go', () => rows().length === 0)
    await resting()
    await at(clock.micros + HOUR)
    expect(fired()).toEqual([])
  })

  test('a timer deleted while its row is written leaves no row', async () => {
    await engine.start()
    await resting()
    const { trigger, unit } = world.triggers.planUse('core.svc.IntervalTimer', { unit: 'seconds', delta: 10 })
    const making = world.database.write(unit)
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    await making
    // The row is on its way; the trigger goes past it.
    await waitFor('the engine to write', () => clock.waiting === undefined)
    gate = undefined
    await world.database.write(world.triggers.planRelease(trigger.id))
    resolve()
    await waitFor('the engine to rest', () => clock.waiting !== undefined)
    expect(rows()).toEqual([])
  })

  test('new parameters count from their change', async () => {
    await engine.start()
    const timer = await everySeconds(3600)
    await waitFor('the row', () => rowOf(timer))
    clock.set(clock.micros + 50 * SECOND)
    const update = world.triggers.routes?.find(({ method, path }) => method === 'put' && path === '/triggers/:id')
    if (update === undefined || update.kind === 'stream') throw new Error('there is no such route')
    // It can be changed while no rule uses it.
    await world.database.write({
      steps: [{ query: { compile: () => sql`update triggers set uses = 0`.compile(world.database.build) } }],
      facts: [],
    })
    await update.handler({
      principal: { user: 'svc', isAdmin: true, method: 'none' },
      rights: {
        may: () => true,
        require: () => undefined,
        requireAdministrator: () => undefined,
        onlyOf: undefined,
        named: () => [],
      },
      params: { id: timer.id },
      query: {},
      body: { type: timer.type, parameters: { unit: 'seconds', delta: 20 } },
      headers: {},
      requestId: '-',
      remoteAddress: '127.0.0.1',
      isSecure: false,
      onClose: () => () => undefined,
    })
    await waitFor('the new time', () => nextOf(timer) === clock.micros + 20 * SECOND)
    await resting()
    await at(clock.micros + 20 * SECOND)
    expect(fired(timer)).toHaveLength(1)
  })
})

describe('a time never fires twice', () => {
  test('with two engines on one database', async () => {
    const second = new EngineClock()
    const others = [engine, createEngine({}, second)]
    const timers = await Promise.all([everySeconds(7), everySeconds(11), everySeconds(13)])
    for (const one of others) await one.start()
    await waitFor('the rows', () => rows().length === 3)
    const anchor = clock.micros
    for (let i = 1; i <= 60; i += 1) {
      clock.set(anchor + i * SECOND)
      second.set(anchor + i * SECOND)
      await waitFor('both to wait', () => clock.waiting !== undefined && second.waiting !== undefined)
    }
    await Promise.all(others.map((one) => one.stop()))
    for (const timer of timers) {
      const delta = Number(timer.parameters['delta']) * SECOND
      const start = microsOf(rowOf(timer)?.anchor ?? '')
      const slots = fired(timer).map(({ executed_at }) =>
        Math.floor((microsOf(executed_at.replace(' ', 'T').replace('+00:00', 'Z')) - start) / delta),
      )
      expect(slots).toEqual(Array.from({ length: slots.length }, (_, i) => i + 1))
      expect(slots.length).toBeGreaterThanOrEqual(Math.floor((60 * SECOND) / delta) - 1)
    }
  })

  test('a storage failure delays a firing and loses none', async () => {
    await engine.start()
    const timer = await everySeconds(30)
    await waitFor('the row', () => rowOf(timer))
    await resting()
    failing = () => new Error('disk full')
    await at(nextOf(timer))
    expect(sink.text).toContain('disk full')
    expect(fired()).toEqual([])
    expect(clock.waiting?.ms).toBe(1000)
    await at(clock.micros + SECOND)
    failing = undefined
    await at(clock.micros + SECOND)
    expect(fired(timer)).toHaveLength(1)
  })

  test('a new timer is stored after a storage failure', async () => {
    await engine.start()
    await resting()
    failing = () => new Error('disk full')
    const made = world.triggers.planUse('core.svc.IntervalTimer', { unit: 'seconds', delta: 3 })
    const really = failing
    failing = undefined
    const write = world.database.write(made.unit)
    failing = really
    await write
    await waitFor('the failure', () => sink.text.includes('disk full'))
    await resting()
    expect(rows()).toEqual([])
    failing = undefined
    await at(clock.micros + SECOND)
    expect(rowOf(made.trigger)).toBeDefined()
  })

  test('timers fire late, once, while too many instances are pending', async () => {
    await engine.stop()
    engine = createEngine({ maxPending: 2 })
    await engine.start()
    const timer = await everySeconds(1)
    world.awaited.add(timer.id)
    await waitFor('the row', () => rowOf(timer))
    await resting()
    for (let i = 0; i < 5; i += 1) await at(clock.micros + SECOND)
    expect(fired(timer)).toHaveLength(2)
    expect(clock.waiting?.ms).toBe(1000)
    const [oldest] = world.triggers.pending('', 1)
    const id = oldest?.id ?? ''
    const { steps } = world.triggers.planProcessed(id, 'processed')
    await world.database.write({
      steps,
      facts: [{ name: 'trigger_instance.processed', payload: { id, execution_ids: [] } }],
    })
    await at(clock.micros + SECOND)
    expect(fired(timer)).toHaveLength(3)
  })
})
