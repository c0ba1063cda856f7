/** Computes the next firing time of timers and their rows. */
import type { TimerTable } from '../../db/index.ts'
import { microsOfId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Clock } from '../../core/clock.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import { readTimer, type TimerSchedule, type TimerType } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { MAX_MICROS, nextTime, nextTimes } from './next-time.ts'

export interface Schedules {
  /** The first times of the schedule after another; wire texts. */
  duesAfter(trigger: TriggerRecord, anchorMicros: number, afterMicros: number, count: number): string[]
  /** The first time of the schedule after another, and when the timer fires for it: later by a random jitter. */
  draw(
    trigger: TriggerRecord,
    anchorMicros: number,
    afterMicros: number,
  ): Pick<TimerTable, 'due_timestamp' | 'next_timestamp'>
  /** The row of a trigger that is new or has new parameters. */
  rowOf(trigger: TriggerRecord, before: TimerTable | undefined): TimerTable
  /** Call when a trigger is deleted. */
  forget(triggerId: string): void
}

/** The schedule of a trigger. */
interface Known {
  /** Of the trigger when it was read. */
  uid: string
  /** Undefined: the parameters are no longer valid. */
  schedule: TimerSchedule | undefined
  /** With this anchor no time matches after that one: to find that out again would cost milliseconds each time. */
  none: { anchor: number; after: number } | undefined
}

export function createSchedules(deps: { clock: Pick<Clock, 'now'>; log: Log; localTimeZone: string }): Schedules {
  const { clock, log, localTimeZone } = deps
  const known = new Map<string, Known>()

  function knownOf(trigger: TriggerRecord): Known {
    const read = known.get(trigger.id)
    if (read?.uid === trigger.uid) return read
    const fresh = readTimer(trigger.type as TimerType, trigger.parameters, localTimeZone) // callers know the type
    if ('problem' in fresh) {
      log.error('timer.unusable', `The timer never fires: ${fresh.problem}`, { trigger: trigger.ref })
    }
    const schedule = 'problem' in fresh ? undefined : fresh.schedule
    const entry = { uid: trigger.uid, schedule, none: undefined }
    known.set(trigger.id, entry)
    return entry
  }

  const scheduleOf = (trigger: TriggerRecord): TimerSchedule | undefined => knownOf(trigger).schedule

  function duesAfter(trigger: TriggerRecord, anchorMicros: number, afterMicros: number, count: number): string[] {
    const entry = knownOf(trigger)
    const { schedule, none } = entry
    if (schedule === undefined || count <= 0) return []
    if (none?.anchor === anchorMicros && afterMicros >= none.after) return []
    const dues = nextTimes(schedule, anchorMicros, afterMicros, count)
    if (dues.length === 0) entry.none = { anchor: anchorMicros, after: afterMicros }
    return dues.map(formatMicros)
  }

  function draw(trigger: TriggerRecord, anchorMicros: number, afterMicros: number): ReturnType<Schedules['draw']> {
    const schedule = scheduleOf(trigger)
    const [dueText] = duesAfter(trigger, anchorMicros, afterMicros, 1)
    if (schedule === undefined || dueText === undefined) return { due_timestamp: null, next_timestamp: null }
    const due = microsOf(dueText)
    const next = due + Math.floor(Math.random() * (maxJitter(schedule, anchorMicros, due) + 1))
    return { due_timestamp: dueText, next_timestamp: formatMicros(next) }
  }

  function rowOf(trigger: TriggerRecord, before: TimerTable | undefined): TimerTable {
    // A trigger created while the engine was off also starts at its creation.
    const anchor = before === undefined ? microsOfId(trigger.id) : clock.now()
    const times = draw(trigger, anchor, anchor)
    if (times.next_timestamp === null && scheduleOf(trigger) !== undefined) {
      log.warning('timer.never', 'The timer never fires: no future time matches its parameters', {
        trigger: trigger.ref,
        trigger_type: trigger.type,
      })
    }
    return {
      trigger_id: trigger.id,
      trigger_uid: trigger.uid,
      anchor: formatMicros(anchor),
      ...times,
      fired_timestamp: null,
      run_timestamp: null,
    }
  }

  return {
    duesAfter,
    draw,
    rowOf,
    forget: (triggerId) => void known.delete(triggerId),
  }
}

/** Microseconds by which a firing can be late, so that it stays before the next due time and not after the end. */
function maxJitter(schedule: TimerSchedule, anchorMicros: number, due: number): number {
  const { jitterSeconds = 0, end = Infinity } = schedule
  if (jitterSeconds === 0) return 0
  const following = nextTime(schedule, anchorMicros, due) ?? Infinity
  return Math.min(jitterSeconds * 1_000_000, following - due - 1, end - due, MAX_MICROS - due)
}
