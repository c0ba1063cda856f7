/** When the timer fired that started a run. */
import { microsOf, parseTimestamp } from '../../core/time.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { Triggers } from '../triggers/index.ts'

/** By the clock of the timers, in microseconds; undefined: the trigger instance is deleted, or of no timer. */
export type FiringOf = (triggerInstanceId: string) => number | undefined

export function createFiringOf(triggers: Pick<Triggers, 'findInstance'>): FiringOf {
  return (id) => {
    const payload = triggers.findInstance(id)?.payload
    const executed = isObject(payload) ? payload['executed_at'] : undefined
    const time = typeof executed === 'string' ? parseTimestamp(executed) : undefined
    return time === undefined ? undefined : microsOf(time)
  }
}
