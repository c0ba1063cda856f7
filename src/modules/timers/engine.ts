/**
 * Fires timers. Rows hold the next time of each; one timeout waits for the nearest. A firing is one unit: the trigger
 * instance, and the row with the time after it, if that still holds the time that was seen. So it never fires twice for
 * one time, whatever dies when.
 */
import type { Bus } from '../../bus/index.ts'
import { Conflict, merge, type Database, type Step, type TimerTable } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { formatMicros, microsOf, offsetTime } from '../../core/time.ts'
import { isTimerType, timerTypes, type Triggers } from '../triggers/index.ts'
import type { Clock } from './clock.ts'
import { createSchedules } from './schedules.ts'
import type { TimerStore } from './store.ts'

/** Longest single timeout: the clock may be set, and stands still for timeouts while the machine sleeps. */
const MAX_TIMEOUT_MS = 60_000
/** Pause after a failure, and while too many instances wait. */
const RETRY_AFTER_MS = 1000
/** Firings, or rows brought up to date, that share a turn. */
const MAX_BATCH = 50

export interface EngineDeps {
  database: Pick<Database, 'write' | 'hasRoom'>
  store: TimerStore
  triggers: Pick<Triggers, 'find' | 'ofType' | 'planDispatch' | 'pendingCount'>
  bus: Bus
  log: Log
  clock: Clock
  settings: EngineSettings
}

export interface EngineSettings {
  /** Of timers that name none. */
  localTimeZone: string
  /** What becomes of the times that passed while no engine ran: made up for once each, or left out. */
  missed: 'once' | 'skip'
  /** Beyond so many trigger instances that wait for rules none is added; the firings are then late. */
  maxPending: number
}

export interface TimerEngine {
  /** Brings the rows up to date with the triggers, and begins to fire. */
  start(): Promise<void>
  /** Resolves when nothing is written any more. */
  stop(): Promise<void>
}

export function createTimerEngine(deps: EngineDeps): TimerEngine {
  const { database, store, triggers, bus, log, clock, settings } = deps
  const schedules = createSchedules({ clock, log, localTimeZone: settings.localTimeZone })
  /** Triggers that are new, changed or gone. */
  const changed = new Set<string>()
  /** Facts count from before the rows are read, so that none is missed. */
  let isListening = false
  let isActive = false
  let isHeldBack = false
  let running: Promise<void> | undefined
  let wasWoken = false
  let cancelWait: (() => void) | undefined

  /** How often the clock had been set back when the rows were last looked at. */
  let knownSetBacks = 0

  for (const name of ['trigger.created', 'trigger.updated', 'trigger.deleted'] as const) {
    bus.subscribe(name, ({ id, type }) => {
      if (!isListening || !isTimerType(type)) return
      changed.add(id)
      wake()
    })
  }

  /** Brings the rows of changed triggers up to date. */
  async function settle(): Promise<void> {
    while (changed.size > 0) {
      const ids = [...changed].slice(0, MAX_BATCH)
      // Taken out first: what changes while this is written is looked at again.
      for (const id of ids) changed.delete(id)
      try {
        const steps = ids.map((id) => settleOne(id)).filter((step) => step !== undefined)
        if (steps.length > 0) await database.write({ steps, facts: [] })
      } catch (error) {
        for (const id of ids) changed.add(id)
        throw error
      }
    }
  }

  function settleOne(id: string): Step | undefined {
    const trigger = triggers.find(id)
    const row = store.find(id)
    if (trigger === undefined || !isTimerType(trigger.type)) {
      schedules.forget(id)
      return row === undefined ? undefined : store.delete(id)
    }
    return row?.trigger_uid === trigger.uid ? undefined : store.put(schedules.rowOf(trigger, row))
  }

  /** At the start: what has changed, and what has passed, while nobody looked; and when the clock was set back. */
  async function catchUp(): Promise<void> {
    const setBacks = clock.setBacks()
    const now = clock.now()
    const nowText = formatMicros(now)
    const rows = new Map<string, TimerTable>()
    for (let after = ''; ;) {
      const page = store.page(after, MAX_BATCH)
      for (const row of page) rows.set(row.trigger_id, row)
      const last = page.at(-1)
      if (last === undefined) break
      after = last.trigger_id
    }
    const steps: Step[] = []
    let missed = 0
    for (const trigger of timerTypes.flatMap((type) => triggers.ofType(type))) {
      const row = rows.get(trigger.id)
      rows.delete(trigger.id)
      const known = row?.trigger_uid === trigger.uid ? row : schedules.rowOf(trigger, row)
      // The clock was ahead. An interval that counts from then would not fire before.
      const current = known.anchor > nowText ? { ...known, anchor: nowText } : known
      const isDue = current.next_timestamp !== null && current.next_timestamp <= nowText
      if (isDue) missed += 1
      const isMadeUpFor = isDue && settings.missed === 'once'
      // Computed anew, because the time zone of the configuration may be another one.
      const next = isMadeUpFor ? current.next_timestamp : schedules.nextOf(trigger, microsOf(current.anchor), now)
      if (current !== row || next !== current.next_timestamp) {
        steps.push(store.put({ ...current, next_timestamp: next }))
      }
    }
    for (const id of rows.keys()) steps.push(store.delete(id))
    for (let i = 0; i < steps.length; i += MAX_BATCH) {
      await database.write({ steps: steps.slice(i, i + MAX_BATCH), facts: [] })
    }
    knownSetBacks = setBacks
    if (missed > 0) {
      const what = settings.missed === 'once' ? 'they fire once now' : 'their missed times are left out'
      log.info('timer.missed', `The time of some timers came while the server was off; ${what}`, { timers: missed })
    }
  }

  /** Fires what is due; until nothing is, or until there is no room. */
  async function fireDue(): Promise<void> {
    while (isActive) {
      if (clock.setBacks() !== knownSetBacks) await catchUp()
      await settle()
      const room = database.hasRoom() ? Math.min(MAX_BATCH, settings.maxPending - triggers.pendingCount()) : 0
      isHeldBack = room <= 0
      if (isHeldBack) return
      const rows = store.due(formatMicros(clock.now()), room)
      if (rows.length === 0) return
      const failures = (await Promise.allSettled(rows.map((row) => fire(row)))).flatMap((result) =>
        result.status === 'rejected' ? [result.reason as unknown] : [],
      )
      if (failures.length > 0) throw failures[0]
    }
  }

  async function fire(row: TimerTable): Promise<void> {
    const { trigger_id, next_timestamp: seen } = row
    const trigger = triggers.find(trigger_id)
    if (seen === null) return
    if (trigger === undefined || row.trigger_uid !== trigger.uid) {
      changed.add(trigger_id)
      return
    }
    const at = clock.now()
    const next = schedules.nextOf(trigger, microsOf(row.anchor), Math.max(at, microsOf(seen)))
    const payload = { executed_at: offsetTime(formatMicros(at), ' '), schedule: null }
    // One trace for each firing: what they have in common is the tag.
    const tag = `${trigger.type.slice(trigger.type.indexOf('.') + 1)}-${trigger.name}`
    const { unit } = triggers.planDispatch(trigger, payload, { kind: 'request', default_tag: tag })
    try {
      await database.write(merge({ steps: [store.advance({ trigger_id, seen, next })], facts: [] }, unit))
    } catch (error) {
      // Its parameters were changed, or it was deleted, in between.
      if (!(error instanceof Conflict)) throw error
    }
  }

  function wake(): void {
    if (!isActive) return
    wasWoken = true
    if (running !== undefined) return
    cancelWait?.()
    cancelWait = undefined
    running = run().finally(() => {
      running = undefined
    })
  }

  async function run(): Promise<void> {
    try {
      while (wasWoken) {
        wasWoken = false
        await fireDue()
      }
      waitForNearest()
    } catch (error) {
      log.error('timer.failed', 'Timers could not fire; they will be tried again', { error })
      waitAtMost(RETRY_AFTER_MS)
    }
  }

  function waitForNearest(): void {
    if (isHeldBack) return waitAtMost(RETRY_AFTER_MS)
    const nearest = store.nearest()
    const ms = nearest === undefined ? MAX_TIMEOUT_MS : Math.ceil((microsOf(nearest) - clock.now()) / 1000)
    waitAtMost(ms)
  }

  function waitAtMost(ms: number): void {
    if (!isActive) return
    cancelWait = clock.wait(Math.min(MAX_TIMEOUT_MS, Math.max(1, ms)), () => {
      cancelWait = undefined
      wake()
    })
  }

  return {
    async start() {
      if (isListening) return
      isListening = true
      await catchUp()
      isActive = true
      wake()
    },
    async stop() {
      isListening = false
      isActive = false
      cancelWait?.()
      cancelWait = undefined
      await running
    },
  }
}
