/**
 * Fires timers that enabled rules use. Each row has the next time of its timer; one timeout waits
 * for the earliest. A firing is one transaction: it stores the trigger instance and advances the row, provided that the
 * row still has the time for which the timer fires. So a timer never fires twice for one time, even across crashes.
 */
import type { Bus } from '../../bus/index.ts'
import { Conflict, merge, type Database, type Step, type TimerTable } from '../../db/index.ts'
import { createPause } from '../../lib/concurrency/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Clock } from '../../core/clock.ts'
import { microsOfId } from '../../core/ids.ts'
import { formatMicros, microsOf, offsetTime } from '../../core/time.ts'
import { isTimerType, timerTypes, type Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { createSchedules } from './schedules.ts'
import type { TimerStore } from './store.ts'

/** Maximum of one timeout: the clock can be set, and timeouts stop while the machine sleeps. */
const MAX_TIMEOUT_MS = 60_000
/** Pause after a failure and while too many instances are pending. */
const RETRY_AFTER_MS = 1000
/** Firings or row updates before the engine yields to the event loop. */
const MAX_BATCH = 50

export interface EngineDeps {
  database: Pick<Database, 'write' | 'hasRoom'>
  store: TimerStore
  triggers: Pick<Triggers, 'find' | 'ofType' | 'planDispatch' | 'pendingCount'>
  bus: Bus
  log: Log
  clock: Pick<Clock, 'now' | 'setBacks' | 'wait'>
  /** Whether an enabled rule uses the trigger. Other timers do not fire. */
  readonly isUsed: (triggerId: string) => boolean
  settings: EngineSettings
}

export interface EngineSettings {
  /** Default time zone of timers. */
  localTimeZone: string
  /** Handling of times missed while the engine was off: fire once per timer, or skip. */
  missed: 'once' | 'skip'
  /** Maximum number of pending trigger instances. Timers fire late beyond it. */
  maxPending: number
}

export interface TimerEngine {
  /** Updates the rows from the triggers, then starts to fire. */
  start(): Promise<void>
  /** Resolves when all writes are finished. */
  stop(): Promise<void>
  /** When a timer fires. @param count of `runs` */
  timesOf(trigger: TriggerRecord, count: number): TimerTimes
  /** The first time of its schedule after another; undefined: none. Microseconds. */
  dueAfter(trigger: TriggerRecord, afterMicros: number): number | undefined
}

/** Wire text; null: never. */
export interface TimerTimes {
  /** When it fires next; null too if no enabled rule uses it. */
  next: string | null
  /** When it would fire next if an enabled rule used it. */
  nextIfUsed: string | null
  /** `next`, and the times of the schedule that follow. */
  runs: string[]
  /** The time of the schedule for which it last fired. */
  fired: string | null
  /** When it last fired. */
  previous: string | null
}

export function createTimerEngine(deps: EngineDeps): TimerEngine {
  const { database, store, triggers, bus, log, clock, isUsed, settings } = deps
  const schedules = createSchedules({ clock, log, localTimeZone: settings.localTimeZone })
  /** Ids of new, changed and deleted triggers. */
  const changed = new Set<string>()
  /** Set before the rows are read, so that no fact is missed. */
  let isListening = false
  let isActive = false
  let isHeldBack = false
  let running: Promise<void> | undefined
  let wasWoken = false
  let cancelWait: (() => void) | undefined

  /** `clock.setBacks()` when the rows were last updated. */
  let knownSetBacks = 0

  for (const name of ['trigger.created', 'trigger.updated', 'trigger.deleted'] as const) {
    bus.subscribe(name, ({ id, type }) => {
      if (!isListening || !isTimerType(type)) return
      changed.add(id)
      wake()
    })
  }

  bus.subscribe('rule.changed', ({ trigger_ids: ids }) => {
    if (!isListening) return
    for (const id of ids) {
      if (isTimerType(triggers.find(id)?.type ?? '')) changed.add(id)
    }
    if (changed.size > 0) wake()
  })

  /** Updates the rows of changed triggers. */
  async function settle(): Promise<void> {
    while (changed.size > 0) {
      const ids = [...changed].slice(0, MAX_BATCH)
      // Removed first, so that a change during the write is handled again.
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
    const known = row?.trigger_uid === trigger.uid ? row : schedules.rowOf(trigger, row)
    const times = !isUsed(id) ? never : known.next_timestamp === null ? drawFor(trigger, known) : known
    return known === row && times.next_timestamp === row.next_timestamp ? undefined : store.put(withTimes(known, times))
  }

  /** In the rhythm of the timer; times while no enabled rule used it are not made up for. */
  function drawFor(trigger: TriggerRecord, { anchor }: Pick<TimerTable, 'anchor'>): Times {
    return schedules.draw(trigger, microsOf(anchor), clock.now())
  }

  /** Updates all rows at start, for changes and times missed while the engine was off, and after a clock set back. */
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
    const pause = createPause()
    for (const trigger of timerTypes.flatMap((type) => triggers.ofType(type))) {
      const row = rows.get(trigger.id)
      rows.delete(trigger.id)
      const known = row?.trigger_uid === trigger.uid ? row : schedules.rowOf(trigger, row)
      // The clock was ahead. An interval with that anchor would not fire until the clock reaches it.
      const current = known.anchor > nowText ? { ...known, anchor: nowText } : known
      const isDue = isUsed(trigger.id) && current.next_timestamp !== null && current.next_timestamp <= nowText
      if (isDue) missed += 1
      const times = isUsed(trigger.id) ? timesAtStart(trigger, current, { isDue, nowText }) : never
      if (current !== row || times.next_timestamp !== current.next_timestamp) {
        steps.push(store.put(withTimes(current, times)))
      }
      await pause()
    }
    for (const id of rows.keys()) steps.push(store.delete(id))
    for (let i = 0; i < steps.length; i += MAX_BATCH) {
      await database.write({ steps: steps.slice(i, i + MAX_BATCH), facts: [] })
    }
    knownSetBacks = setBacks
    if (missed > 0) {
      const what = settings.missed === 'once' ? 'svc fires them once now' : 'svc skips the missed times'
      log.info('timer.missed', `Timers missed their times while the server was off; ${what}`, { timers: missed })
    }
  }

  /** Computed again, because the configured time zone can have changed; what was drawn for the same time stays. */
  function timesAtStart(
    trigger: TriggerRecord,
    row: TimerTable,
    { isDue, nowText }: { isDue: boolean; nowText: string },
  ): Times {
    const { anchor, due_timestamp: due } = row
    if (isDue) return settings.missed === 'once' ? row : drawFor(trigger, row)
    const waitsForJitter = due !== null && due <= nowText
    if (waitsForJitter) return row
    const [first = null] = schedules.duesAfter(trigger, microsOf(anchor), microsOf(nowText), 1)
    return due === first ? row : drawFor(trigger, row)
  }

  /** Fires due timers until none is due or the maximum of pending instances is reached. */
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
    if (trigger === undefined || row.trigger_uid !== trigger.uid || !isUsed(trigger_id)) {
      changed.add(trigger_id)
      return
    }
    const at = clock.now()
    const { due_timestamp: due, next_timestamp: next } = schedules.draw(
      trigger,
      microsOf(row.anchor),
      Math.max(at, microsOf(seen)),
    )
    const payload = { executed_at: offsetTime(formatMicros(at), ' '), schedule: null }
    // Each firing has its own trace. All traces of a timer share the tag.
    const tag = `${trigger.type.slice(trigger.type.indexOf('.') + 1)}-${trigger.name}`
    const { unit } = triggers.planDispatch(trigger, payload, { kind: 'request', default_tag: tag })
    try {
      const change = { trigger_id, seen, next, due, fired: row.due_timestamp ?? seen, run: formatMicros(at) }
      await database.write(merge({ steps: [store.advance(change)], facts: [] }, unit))
    } catch (error) {
      // The trigger was changed or deleted concurrently.
      if (!(error instanceof Conflict)) throw error
    }
  }

  function wake(): void {
    if (!isActive) return
    wasWoken = true
    if (running !== undefined) return
    cancelWait?.()
    cancelWait = undefined
    running = run()
  }

  async function run(): Promise<void> {
    try {
      while (wasWoken) {
        wasWoken = false
        await fireDue()
      }
      waitForNearest()
    } catch (error) {
      log.error('timer.failed', 'Could not fire timers; svc retries', { error })
      waitAtMost(RETRY_AFTER_MS)
    } finally {
      // At once: who is woken from now on must not take this run for one that looks again.
      running = undefined
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

  /** The row of a timer; of a new one, or one with new parameters, what it will be without jitter: it is written soon. */
  function rowFor(trigger: TriggerRecord): TimerTable {
    const row = store.find(trigger.id)
    if (row?.trigger_uid === trigger.uid) return row
    const anchor = row === undefined ? microsOfId(trigger.id) : clock.now()
    const [due = null] = isUsed(trigger.id) ? schedules.duesAfter(trigger, anchor, anchor, 1) : []
    return {
      trigger_id: trigger.id,
      trigger_uid: trigger.uid,
      anchor: formatMicros(anchor),
      due_timestamp: due,
      next_timestamp: due,
      fired_timestamp: null,
      run_timestamp: null,
    }
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
    dueAfter(trigger, afterMicros) {
      const row = store.find(trigger.id)
      // Without a row of its own yet, it counts from its creation.
      const anchor = row?.trigger_uid === trigger.uid ? microsOf(row.anchor) : microsOfId(trigger.id)
      const [due] = schedules.duesAfter(trigger, anchor, afterMicros, 1)
      return due === undefined ? undefined : microsOf(due)
    },
    timesOf(trigger, count) {
      const row = rowFor(trigger)
      const { anchor, due_timestamp: due, next_timestamp: next, fired_timestamp: fired, run_timestamp: run } = row
      const duesAfter = (after: number, some: number): string[] =>
        schedules.duesAfter(trigger, microsOf(anchor), after, some)
      const isShown = next !== null && count > 0
      return {
        next,
        nextIfUsed: next ?? (isUsed(trigger.id) ? null : (duesAfter(clock.now(), 1)[0] ?? null)),
        runs: isShown ? [next, ...duesAfter(microsOf(due ?? next), count - 1)] : [],
        fired,
        previous: run ?? fired,
      }
    },
  }
}

type Times = Pick<TimerTable, 'due_timestamp' | 'next_timestamp'>

const never: Times = { due_timestamp: null, next_timestamp: null }

function withTimes(row: TimerTable, { due_timestamp, next_timestamp }: Times): TimerTable {
  return { ...row, due_timestamp, next_timestamp }
}
