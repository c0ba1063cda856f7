/** What the parameters of timers mean: the next time of each, and its row. */
import type { TimerTable } from '../../db/index.ts'
import { microsOfId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import { formatMicros } from '../../core/time.ts'
import { readTimer, type TimerSchedule, type TimerType } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { nextTime } from './next-time.ts'
import type { Clock } from './clock.ts'

export interface Schedules {
  /** Wire text; null: never. */
  nextOf(trigger: TriggerRecord, anchorMicros: number, afterMicros: number): string | null
  /** The row of a trigger that has none yet, or had other parameters. */
  rowOf(trigger: TriggerRecord, before: TimerTable | undefined): TimerTable
  /** Of a trigger that is gone. */
  forget(triggerId: string): void
}

export function createSchedules(deps: { clock: Pick<Clock, 'now'>; log: Log; localTimeZone: string }): Schedules {
  const { clock, log, localTimeZone } = deps
  /** Trigger id → the uid it was read for, and what it means. */
  const known = new Map<string, { uid: string; schedule: TimerSchedule | undefined }>()

  function scheduleOf(trigger: TriggerRecord): TimerSchedule | undefined {
    const read = known.get(trigger.id)
    if (read?.uid === trigger.uid) return read.schedule
    const fresh = readTimer(trigger.type as TimerType, trigger.parameters, localTimeZone) // callers know the type
    if ('problem' in fresh) {
      log.error('timer.unusable', `A timer cannot fire: ${fresh.problem}`, { trigger: trigger.ref })
    }
    const schedule = 'problem' in fresh ? undefined : fresh.schedule
    known.set(trigger.id, { uid: trigger.uid, schedule })
    return schedule
  }

  /** Wire text; null: never. */
  function nextOf(trigger: TriggerRecord, anchorMicros: number, afterMicros: number): string | null {
    const schedule = scheduleOf(trigger)
    const micros = schedule === undefined ? undefined : nextTime(schedule, anchorMicros, afterMicros)
    return micros === undefined ? null : formatMicros(micros)
  }

  /** The row of a trigger that has none yet, or had other parameters. */
  function rowOf(trigger: TriggerRecord, before: TimerTable | undefined): TimerTable {
    // A trigger that was made while nobody listened counts from then on as well.
    const anchor = before === undefined ? microsOfId(trigger.id) : clock.now()
    const next = nextOf(trigger, anchor, anchor)
    if (next === null && scheduleOf(trigger) !== undefined) {
      log.warning('timer.never', 'A timer never fires: no time that its parameters describe is to come', {
        trigger: trigger.ref,
        trigger_type: trigger.type,
      })
    }
    return {
      trigger_id: trigger.id,
      trigger_uid: trigger.uid,
      anchor: formatMicros(anchor),
      next_timestamp: next,
      fired_timestamp: null,
    }
  }

  return { nextOf, rowOf, forget: (triggerId) => void known.delete(triggerId) }
}
