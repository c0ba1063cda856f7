/**
 * Notices jobs that are missed. Each row has the time of the next look at it; one timeout waits for the earliest. A look is
 * one transaction: it moves the row on, or marks it as late together with the trigger instance and the notifications that
 * tell of it, provided that the row is as it was seen. So svc tells of each miss once, even across crashes.
 */
import type { Bus } from '../../bus/index.ts'
import type { Clock } from '../../core/clock.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import { Conflict, merge, type Database, type JobTable, type Unit } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Rules } from '../rules/index.ts'
import type { Rule } from '../rules/types.ts'
import type { Timers } from '../timers/index.ts'
import type { Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import {
  afterSetBack,
  afterStart,
  beginCount,
  checkOf,
  lookAt,
  readExpected,
  type Circumstances,
  type Count,
  type Expected,
  type Miss,
  type Success,
} from './expectation.ts'
import type { PlanMiss } from './miss.ts'
import { nothingExpected, type JobExpectation, type JobStore } from './store.ts'

/** Maximum of one timeout: the clock can be set, and timeouts stop while the machine sleeps. */
const MAX_TIMEOUT_MS = 60_000
/** Pause after a failure, and while the disk is full. */
const RETRY_AFTER_MS = 1000
/** Rows that are looked at before the engine yields to the event loop. */
const MAX_BATCH = 50

export interface JobEngine {
  start(): Promise<void>
  /** Resolves when all writes are finished. */
  stop(): Promise<void>
}

export function createJobEngine(deps: {
  database: Pick<Database, 'write' | 'hasRoom'>
  store: JobStore
  rules: Pick<Rules, 'find'>
  triggers: Pick<Triggers, 'find'>
  timers: Pick<Timers, 'timesOf' | 'dueAfter' | 'isMadeUpFor'>
  readonly planMiss: PlanMiss
  bus: Bus
  log: Log
  clock: Pick<Clock, 'now' | 'setBacks' | 'wait'>
}): JobEngine {
  const { database, store, rules, triggers, timers, planMiss, bus, log, clock } = deps
  let startedAt = 0
  let isActive = false
  let running: Promise<void> | undefined
  let wasWoken = false
  let cancelWait: (() => void) | undefined
  /** `clock.setBacks()` when the rows were last looked through. */
  let knownSetBacks = 0

  // Both have set the time of the next look to now.
  bus.subscribe('rule.changed', wake)
  bus.subscribe('job.changed', ({ late }) => {
    if (!late) wake()
  })

  function circumstancesOf(trigger: TriggerRecord): Circumstances {
    const fired = timers.timesOf(trigger.id, 0)?.previous
    return {
      now: clock.now(),
      startedAt,
      firedAt: fired == null ? undefined : microsOf(fired),
      isMadeUpFor: timers.isMadeUpFor,
      dueAfter: (after) => timers.dueAfter(trigger, after),
    }
  }

  /** What is expected of the rule of a row, and when; undefined: nothing. */
  function read(row: JobTable): { rule: Rule; expected: Expected; trigger: TriggerRecord } | undefined {
    const rule = rules.find(row.rule_id)
    if (rule?.expect === undefined || !rule.enabled) return undefined
    const trigger = triggers.find(rule.trigger.id)
    return trigger && { rule, expected: readExpected(rule.expect), trigger }
  }

  /** @returns undefined: the row stays as it is */
  function planLook(row: JobTable): { unit: Unit; miss?: Miss; rule?: Rule } | undefined {
    const known = read(row)
    if (known === undefined) return { unit: planChange(row, nothingExpected) }
    const { rule, expected, trigger } = known
    const circumstances = circumstancesOf(trigger)
    const count = countOf(row)
    if (row.trigger_uid !== trigger.uid) {
      // A new count, or the parameters of the trigger were changed.
      const now = row.trigger_uid === null && count !== undefined ? count.since : circumstances.now
      const begun = beginCount(expected, { ...circumstances, now })
      return { unit: planChange(row, { ...columnsOf(begun), trigger_uid: trigger.uid }) }
    }
    if (count === undefined) return { unit: planChange(row, { check_timestamp: null }) }
    const found = lookAt(expected, count, successOf(row, circumstances.now), circumstances)
    if ('count' in found) return { unit: planChange(row, columnsOf(found.count)) }
    const { miss } = found
    const { due, reason, unit } = planMiss({ row, rule, miss, ...circumstances, expected })
    const next = miss.isOfTimer ? afterMiss(count, expected, circumstances.dueAfter(miss.due)) : count
    const change = { ...columnsOf(next), check_timestamp: null, missed_timestamp: due, missed_reason: reason }
    return { unit: merge(planChange(row, change), unit), miss, rule }
  }

  const planChange = (row: JobTable, change: Partial<JobExpectation>): Unit => ({
    steps: [store.change(row, change)],
    facts: [],
  })

  async function look(row: JobTable): Promise<void> {
    const planned = planLook(row)
    if (planned === undefined) return
    try {
      await database.write(planned.unit)
    } catch (error) {
      // A run has ended, or the rule was changed: the next look sees it.
      if (!(error instanceof Conflict)) throw error
      wasWoken = true
      return
    }
    if (planned.miss !== undefined) {
      log.warning('job.missed', `The rule "${planned.rule?.ref ?? ''}" has not succeeded in time`, {
        rule: planned.rule?.ref,
        due: formatMicros(planned.miss.due),
      })
    }
  }

  /** Looks through all rows of which something is expected: at the start, and after the clock was set back. */
  async function lookThrough(
    recount: (expected: Expected, count: Count, row: JobTable, circumstances: Circumstances) => Count,
  ): Promise<void> {
    const setBacks = clock.setBacks()
    for (let after = ''; ;) {
      const page = store.expecting(after, MAX_BATCH)
      const last = page.at(-1)
      if (last === undefined) break
      after = last.rule_id
      const units = page.flatMap((row) => {
        const known = read(row)
        const count = countOf(row)
        // Of a late one the next success decides; the others are looked at.
        if (known === undefined || count === undefined || row.trigger_uid !== known.trigger.uid) return []
        const next = recount(known.expected, count, row, circumstancesOf(known.trigger))
        const change = columnsOf(next)
        if (row.missed_timestamp !== null) change.check_timestamp = null
        return planChange(row, change)
      })
      for (const unit of units) {
        await database.write(unit).catch((error: unknown) => {
          if (!(error instanceof Conflict)) throw error
        })
      }
    }
    knownSetBacks = setBacks
  }

  async function lookAtDue(): Promise<boolean> {
    while (isActive) {
      if (clock.setBacks() !== knownSetBacks) {
        await lookThrough((expected, count, _row, circumstances) => afterSetBack(expected, count, circumstances))
      }
      if (!database.hasRoom()) return false
      const rows = store.due(formatMicros(clock.now()), MAX_BATCH)
      if (rows.length === 0) return true
      const failures = (await Promise.allSettled(rows.map((row) => look(row)))).flatMap((result) =>
        result.status === 'rejected' ? [result.reason as unknown] : [],
      )
      if (failures.length > 0) throw failures[0]
    }
    return true
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
      let hasRoom = true
      while (wasWoken) {
        wasWoken = false
        hasRoom = await lookAtDue()
      }
      const nearest = store.nearest()
      if (!hasRoom) waitAtMost(RETRY_AFTER_MS)
      else if (nearest !== undefined) waitAtMost(Math.ceil((microsOf(nearest) - clock.now()) / 1000))
    } catch (error) {
      log.error('job.failed', 'Could not look for jobs that are late; svc retries', { error })
      waitAtMost(RETRY_AFTER_MS)
    } finally {
      // At once: who is woken from now on must not take this run for one that looks again.
      running = undefined
    }
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
      if (isActive) return
      startedAt = clock.now()
      await lookThrough((expected, count, row, circumstances) =>
        afterStart(expected, count, successOf(row, circumstances.now), circumstances),
      )
      isActive = true
      wake()
    },
    async stop() {
      isActive = false
      cancelWait?.()
      cancelWait = undefined
      await running
    },
  }
}

/** The due times after one that was missed. */
function afterMiss(count: Count, { within }: Expected, due: number | undefined): Count {
  return { ...count, due, dueBy: due === undefined || within === undefined ? undefined : due + within }
}

function countOf(row: JobTable): Count | undefined {
  const since = microsOrNone(row.since_timestamp)
  if (since === undefined) return undefined
  return {
    since,
    due: microsOrNone(row.due_timestamp),
    dueBy: microsOrNone(row.due_by_timestamp),
    successBy: microsOrNone(row.success_by_timestamp),
  }
}

/** One that is said to be later than now is not believed: the clock was set back. */
function successOf(row: JobTable, now: number): Success | undefined {
  const at = microsOrNone(row.last_success_timestamp)
  const servedFor = microsOrNone(row.last_success_for) ?? at
  return at === undefined || servedFor === undefined || at > now ? undefined : { at, servedFor }
}

function columnsOf(count: Count): Omit<JobExpectation, 'trigger_uid' | 'missed_timestamp' | 'missed_reason'> {
  return {
    since_timestamp: formatMicros(count.since),
    due_timestamp: textOrNone(count.due),
    due_by_timestamp: textOrNone(count.dueBy),
    success_by_timestamp: textOrNone(count.successBy),
    check_timestamp: textOrNone(checkOf(count)),
  }
}

const microsOrNone = (text: string | null): number | undefined => (text === null ? undefined : microsOf(text))
const textOrNone = (micros: number | undefined): string | null => (micros === undefined ? null : formatMicros(micros))
