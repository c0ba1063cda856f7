/** Computes the next firing time of timers and their rows. */
import type { TimerTable } from '../../db/index.ts'
import { microsOfId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Clock } from '../../core/clock.ts'
import { formatMicros } from '../../core/time.ts'
import { readTimer, type TimerSchedule, type TimerType } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import { nextTime } from './next-time.ts'

export interface Schedules {
  /** Wire text; null: never. */
  nextOf(trigger: TriggerRecord, anchorMicros: number, afterMicros: number): string | null
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

  function nextOf(trigger: TriggerRecord, anchorMicros: number, afterMicros: number): string | null {
    const schedule = scheduleOf(trigger)
    const micros = schedule === undefined ? undefined : nextTime(schedule, anchorMicros, afterMicros)
    return micros === undefined ? null : formatMicros(micros)
  }

  function rowOf(trigger: TriggerRecord, before: TimerTable | undefined): TimerTable {
    // A trigger created while the engine was off also starts at its creation.
    const anchor = before === undefined ? microsOfId(trigger.id) : clock.now()
    const next = nextOf(trigger, anchor, anchor)
    if (next === null && scheduleOf(trigger) !== undefined) {
      log.warning('timer.never', 'The timer never fires: no future time matches its parameters', {
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
