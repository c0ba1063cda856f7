/** Endpoints of contract 05, 5.8. A timer is the record of its trigger with its firing times. */
import { contentNotFound, timerTypeUnknown } from '../../core/errors.ts'
import { listReply, pageHeaders, route, textFilter, type Rights, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { isTimerType, timerTypes, TimerRecord, type Triggers } from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import type { TimerEngine } from './engine.ts'
import type { TimerStore } from './store.ts'
import { timerResource } from '../../core/permissions.ts'

export function createTimerRoutes(deps: {
  triggers: Pick<Triggers, 'find' | 'ofType' | 'record'>
  /** See `Rules.refsOf`. */
  readonly rulesOf: (triggerId: string, rights: Rights) => string[]
  /** Undefined: timers are off. */
  timers: (Pick<TimerStore, 'find'> & Pick<TimerEngine, 'nextOf'>) | undefined
}): Route[] {
  const { triggers, rulesOf, timers } = deps

  function getTimer(refOrId: string): TriggerRecord {
    const trigger = triggers.find(refOrId)
    if (trigger === undefined || !isTimerType(trigger.type)) throw contentNotFound(refOrId)
    return trigger
  }

  function recordOf(timer: TriggerRecord, rights: Rights): TimerRecord {
    const row = timers?.find(timer.id)
    const next = timers?.nextOf(timer)
    const times = {
      ...(next ? { next_timestamp: next } : {}),
      ...(row?.fired_timestamp ? { fired_timestamp: row.fired_timestamp } : {}),
    }
    return { ...triggers.record(timer), ...times, rules: rulesOf(timer.id, rights) }
  }

  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/timers',
      summary: 'Lists the timers that the caller can view, oldest first.',
      permission: 'timer_list',
      query: { timer_type: { type: 'string', description: `One of ${timerTypes.join(', ')}.` } },
      failures: [400],
      response: Type.Array(TimerRecord),
      handler({ query, rights }) {
        const wanted = textFilter(query, 'timer_type')
        if (wanted !== undefined && !isTimerType(wanted)) throw timerTypeUnknown(wanted, timerTypes)
        const timers = (wanted === undefined ? timerTypes : [wanted])
          .flatMap((type) => triggers.ofType(type))
          .filter(({ uid }) => rights.may('timer_view', timerResource(uid)))
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        return listReply(recordsOf(timers, rights), pageHeaders({ limit: undefined, offset: 0 }, timers.length))
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/timers/:ref_or_id',
      summary: 'Gets one timer.',
      permission: 'timer_view',
      resource: ({ params }) => timerResource(getTimer(params.ref_or_id).uid),
      failures: [404],
      response: TimerRecord,
      handler: ({ params, rights }) => recordOf(getTimer(params.ref_or_id), rights),
    }),
  ]

  function* recordsOf(timers: readonly TriggerRecord[], rights: Rights): Generator<TimerRecord> {
    for (const timer of timers) yield recordOf(timer, rights)
  }
}
