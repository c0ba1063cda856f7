import { queryInvalid } from '../../core/errors.ts'
import { parseTime, type JsonRoute } from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { microsOf } from '../../core/time.ts'
import { KEPT_MINUTES, type History } from './history.ts'
import type { StatusHistory } from './types.ts'

const DEFAULT_MINUTES = 60
const MAX_STEP = 60
const MICROS_PER_MINUTE = 60_000_000

const number: JsonSchema = { type: 'number' }
const integer: JsonSchema = { type: 'integer' }

function record(properties: Record<string, JsonSchema>, about?: string): JsonSchema {
  const description = about === undefined ? {} : { description: about }
  return { type: 'object', required: Object.keys(properties), properties, ...description }
}

const sampleSchema: JsonSchema = {
  title: 'StatusSample',
  ...record(
    {
      timestamp: { type: 'string', format: 'date-time', description: 'When it begins.' },
      seconds: { type: 'number', description: 'For how long of it the server was there.' },
      queues: record({ request: integer, work: integer, cancel: integer, trigger: integer }, 'The highest length.'),
      slots: record({ used: integer, size: integer }),
      executions: record(
        {
          started: integer,
          succeeded: integer,
          failed: integer,
          timeout: integer,
          canceled: integer,
          abandoned: integer,
        },
        'How many have begun to run, and how many have ended with each status.',
      ),
      run_seconds: {
        type: ['object', 'null'],
        required: ['p50', 'p95'],
        properties: { p50: number, p95: number },
        description: 'How long half, and 95 of 100, of the runs that have ended took at most; null when none has.',
      },
      trigger_instances: { type: 'integer', description: 'That rules were looked at for.' },
      webhooks: { type: 'integer', description: 'Requests to webhooks that were taken in.' },
      event_loop: record({ mean_ms: number, max_ms: number }, 'The highest of several readings.'),
      memory: record({ resident_bytes: integer, heap_bytes: integer }, 'Likewise.'),
    },
    'How the server was for a while.',
  ),
}

export function createHistoryRoute(history: Pick<History, 'read' | 'minuteNow'>): JsonRoute {
  return {
    surface: 'api',
    method: 'get',
    path: '/status/history',
    permission: 'administrator',
    summary: 'How the server was in the last hour, or since a time within the last day: a sample a minute.',
    query: {
      since: { type: 'string', description: 'In UTC; default: an hour ago. A little more than a day is kept.' },
      step: { type: 'integer', description: 'Minutes that are joined to one sample, from 1 to 60; default 1.' },
    },
    response: {
      title: 'StatusHistory',
      ...record({
        step_seconds: integer,
        samples: {
          type: 'array',
          items: sampleSchema,
          description:
            'In the order of time. There is none for a time when the server was not there; the last one is of the minute that runs.',
        },
      }),
    },
    failures: [400],
    handler({ query }): StatusHistory {
      const since = parseTime(query, 'since')
      const { step = 1 } = query
      if (typeof step !== 'number' || step < 1 || step > MAX_STEP) {
        throw queryInvalid(`Parameter "step" must be from 1 to ${MAX_STEP}.`)
      }
      const last = history.minuteNow()
      const first = since === undefined ? last - DEFAULT_MINUTES : Math.floor(microsOf(since) / MICROS_PER_MINUTE)
      return { step_seconds: step * 60, samples: history.read(Math.max(first, last - KEPT_MINUTES), step) }
    },
  }
}
