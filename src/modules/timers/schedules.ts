/** Computes the next firing time of timers and their rows. */
import type { TimerTable } from '../../db/index.ts'
import { microsOfId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Clock } from '../../core/clock.ts'
import { formatMicros } from '../../core/time.ts'
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

export function createSchedules(deps: { clock: Pick<Clock, 'now'>; log: Log; localTimeZone: string }): Schedules {
  const { clock, log, localTimeZone } = deps
  /** Schedules by trigger id, with the uid they were read for. */
  const known = new Map<string, { uid: string; schedule: TimerSchedule | undefined }>()

  function scheduleOf(trigger: TriggerRecord): TimerSchedule | undefined {
    const read = known.get(trigger.id)
    if (read?.uid === trigger.uid) return read.schedule
    const fresh = readTimer(trigger.type as TimerType, trigger.parameters, localTimeZone) // callers know the type
    if ('problem' in fresh) {
      log.error('timer.unusable', `The timer never fires: ${fresh.problem}`, { trigger: trigger.ref })
    }
    const schedule = 'problem' in fresh ? undefined : fresh.schedule
    known.set(trigger.id, { uid: trigger.uid, schedule })
    return schedule
  }

  function duesAfter(trigger: TriggerRecord, anchorMicros: number, afterMicros: number, count: number): string[] {
    const schedule = scheduleOf(trigger)
    return schedule === undefined ? [] : nextTimes(schedule, anchorMicros, afterMicros, count).map(formatMicros)
  }

  function draw(trigger: TriggerRecord, anchorMicros: number, afterMicros: number): ReturnType<Schedules['draw']> {
    const schedule = scheduleOf(trigger)
    const due = schedule === undefined ? undefined : nextTime(schedule, anchorMicros, afterMicros)
    if (schedule === undefined || due === undefined) return { due_timestamp: null, next_timestamp: null }
    const next = due + Math.floor(Math.random() * (maxJitter(schedule, anchorMicros, due) + 1))
    return { due_timestamp: formatMicros(due), next_timestamp: formatMicros(next) }
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
