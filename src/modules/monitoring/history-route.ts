import { queryInvalid } from '../../core/errors.ts'
import { parseTime, route, type Route } from '../../http/index.ts'
import { microsOf } from '../../core/time.ts'
import { KEPT_MINUTES, type HistoryRecorder } from './history.ts'
import { StatusHistory } from './types.ts'

const DEFAULT_MINUTES = 60
const MAX_STEP = 60
const MICROS_PER_MINUTE = 60_000_000

export function createHistoryRoute(history: Pick<HistoryRecorder, 'read' | 'minuteNow'>): Route {
  return route({
    surface: 'api',
    method: 'get',
    path: '/status/history',
    permission: 'administrator',
    summary: 'Gets status samples of the last hour, or since a time within the last day. One sample covers one minute.',
    query: {
      since: { type: 'string', description: 'UTC time. Default: an hour ago. svc keeps a little more than a day.' },
      step: { type: 'integer', description: 'Minutes per sample, from 1 to 60. Default: 1.' },
    },
    response: StatusHistory,
    failures: [400],
    handler({ query }): StatusHistory {
      const since = parseTime(query, 'since')
      const { step = 1 } = query
      if (step < 1 || step > MAX_STEP) {
        throw queryInvalid(`Parameter "step" must be from 1 to ${MAX_STEP}.`)
      }
      const last = history.minuteNow()
      const first = since === undefined ? last - DEFAULT_MINUTES : Math.floor(microsOf(since) / MICROS_PER_MINUTE)
      return { step_seconds: step * 60, samples: history.read(Math.max(first, last - KEPT_MINUTES), step) }
    },
  })
}
