/** Endpoints of contract 05, 5.8. A timer is the record of its trigger with its firing times. */
import { contentNotFound, queryInvalid, timerTypeUnknown } from '../../core/errors.ts'
import { listReply, pageHeaders, route, textFilter, type Rights, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import {
  DEFAULT_NEXT_RUNS,
  isTimerType,
  MAX_NEXT_RUNS,
  readTimer,
  TimerPreview,
  TimerPreviewRequest,
  TimerRecord,
  timerTypes,
  timeZoneOf,
  type Triggers,
} from '../triggers/index.ts'
import type { TriggerRecord } from '../triggers/types.ts'
import type { TimerTimes } from './engine.ts'
import { nextTimes } from './next-time.ts'
import { timerResource } from '../../core/permissions.ts'
import { formatMicros } from '../../core/time.ts'
import type { Clock } from '../../core/clock.ts'

function nextRunsQuery(standard: number, max: number) {
  const description = `How many of its next times a timer has in the answer, 0 to ${max}; default ${standard}.`
  return { next_runs: { type: 'integer', description } } as const
}

/** @throws QUERY_INVALID */
function countIn(given: unknown, { standard, max }: { standard: number; max: number }): number {
  if (typeof given !== 'number') return standard
  if (given < 0 || given > max) throw queryInvalid(`The parameter "next_runs" must be a number from 0 to ${max}.`)
  return given
}

export function createTimerRoutes(deps: {
  triggers: Pick<Triggers, 'find' | 'ofType' | 'record' | 'planUse'>
  /** See `Rules.refsOf`. */
  readonly rulesOf: (triggerId: string, rights: Rights) => string[]
  /** See `TimerEngine.timesOf`; undefined too if timers are off. */
  readonly timesOf: (trigger: TriggerRecord, count: number) => TimerTimes | undefined
  /** Default time zone of timers. */
  localTimeZone: string
  clock: Pick<Clock, 'now'>
}): Route[] {
  const { triggers, rulesOf, timesOf, localTimeZone, clock } = deps

  function getTimer(refOrId: string): TriggerRecord {
    const trigger = triggers.find(refOrId)
    if (trigger === undefined || !isTimerType(trigger.type)) throw contentNotFound(refOrId)
    return trigger
  }

  function recordOf(timer: TriggerRecord, rights: Rights, count: number): TimerRecord {
    const { next, nextIfUsed, runs, fired, previous } = timesOf(timer, count) ?? {}
    return {
      ...triggers.record(timer),
      timezone: timeZoneOf(timer.parameters, localTimeZone),
      ...(nextIfUsed ? { next_timestamp: nextIfUsed } : {}),
      ...(fired ? { fired_timestamp: fired } : {}),
      ...(next ? { next_run: next } : {}),
      ...(previous ? { previous_run: previous } : {}),
      ...(runs !== undefined && count > 0 ? { next_runs: runs } : {}),
      rules: rulesOf(timer.id, rights),
    }
  }

  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/timers',
      summary: 'Lists the timers that the caller can view, oldest first.',
      permission: 'timer_list',
      query: {
        timer_type: { type: 'string', description: `One of ${timerTypes.join(', ')}.` },
        // Finding them takes the processor 0.1 ms a timer, and the list has all timers.
        ...nextRunsQuery(0, DEFAULT_NEXT_RUNS),
      },
      failures: [400],
      response: Type.Array(TimerRecord),
      handler({ query, rights }) {
        const wanted = textFilter(query, 'timer_type')
        if (wanted !== undefined && !isTimerType(wanted)) throw timerTypeUnknown(wanted, timerTypes)
        const timers = (wanted === undefined ? timerTypes : [wanted])
          .flatMap((type) => triggers.ofType(type))
          .filter(({ uid }) => rights.may('timer_view', timerResource(uid)))
          .sort((a, b) => (a.id < b.id ? -1 : 1))
        const count = countIn(query['next_runs'], { standard: 0, max: DEFAULT_NEXT_RUNS })
        return listReply(recordsOf(timers, rights, count), pageHeaders({ limit: undefined, offset: 0 }, timers.length))
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/timers/:ref_or_id',
      summary: 'Gets one timer.',
      permission: 'timer_view',
      resource: ({ params }) => timerResource(getTimer(params.ref_or_id).uid),
      query: nextRunsQuery(DEFAULT_NEXT_RUNS, MAX_NEXT_RUNS),
      failures: [400, 404],
      response: TimerRecord,
      handler({ params, query, rights }) {
        const count = countIn(query['next_runs'], { standard: DEFAULT_NEXT_RUNS, max: MAX_NEXT_RUNS })
        return recordOf(getTimer(params.ref_or_id), rights, count)
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/timers/preview',
      summary: 'Says when a timer with these parameters would fire. It creates nothing.',
      permission: 'timer_list',
      body: TimerPreviewRequest,
      response: TimerPreview,
      failures: [400],
      changesNothing: true,
      handler: ({ body }) => preview(body),
    }),
  ]

  function preview({ type, parameters, count = DEFAULT_NEXT_RUNS }: TimerPreviewRequest): TimerPreview {
    if (!isTimerType(type)) throw timerTypeUnknown(type, timerTypes)
    // Checked as the trigger of a rule is; the plan is not carried out.
    const { trigger } = triggers.planUse(type, parameters ?? {})
    const read = readTimer(type, trigger.parameters, localTimeZone)
    const now = clock.now()
    return {
      timezone: timeZoneOf(trigger.parameters, localTimeZone),
      next_runs: 'problem' in read ? [] : nextTimes(read.schedule, now, now, count).map(formatMicros),
    }
  }

  function* recordsOf(timers: readonly TriggerRecord[], rights: Rights, count: number): Generator<TimerRecord> {
    for (const timer of timers) yield recordOf(timer, rights, count)
  }
}
