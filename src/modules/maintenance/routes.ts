/** Purging on request: old records of one kind, a bounded piece of work for each request. */
import { setTimeout as delay } from 'node:timers/promises'
import { bodyInvalid, namedNotFound } from '../../core/errors.ts'
import { aboutCaller, type ApiRequest, type Route } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { recordKinds, type OldRecords, type Retention } from '../../core/retention.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import { parseTimestamp } from '../../core/time.ts'
import { shown } from '../../lib/text/index.ts'

/** So long a request goes on with the next slice. */
const WORK_MS = 200
const LIMIT = 1000

interface PurgeRequest {
  before: string
  after?: string
  action_ref?: string
  incomplete?: boolean
  dry_run?: boolean
}

const requestSchema: JsonSchema = {
  title: 'PurgeRequest',
  type: 'object',
  required: ['before'],
  properties: {
    before: { type: 'string', description: 'UTC time, such as 2030-01-01T00:00:00Z: what is older goes.' },
    after: {
      type: 'string',
      maxLength: 200,
      description: 'The `next` of the answer before; absent in the first request.',
    },
    action_ref: { type: 'string', maxLength: 500, description: 'Executions only: those of this action.' },
    incomplete: {
      type: 'boolean',
      description: 'Executions only: cancel those that have not ended; they go once they have.',
    },
    dry_run: { type: 'boolean', description: 'Only count.' },
  },
  additionalProperties: false,
}

const answerSchema: JsonSchema = {
  title: 'PurgeResult',
  type: 'object',
  required: ['kind', 'records', 'canceled', 'dry_run', 'next'],
  properties: {
    kind: { type: 'string' },
    records: { type: 'integer', description: 'How many have gone, or would go.' },
    canceled: { type: 'integer', description: 'How many executions have been cancelled, or would be.' },
    dry_run: { type: 'boolean' },
    next: { type: ['string', 'null'], description: 'The `after` of the next request; null: that was all.' },
  },
}

/** Cancels the executions that have not ended among the next ones. @returns how many that were, or would be */
export type CancelOld = (caller: ApiRequest, old: OldRecords, dryRun: boolean) => Promise<number>

export function createRoutes(deps: {
  retentions: readonly Retention[]
  cancelOld: CancelOld
  log: Log
  /** All of a kind has gone: its room can be given back. */
  purged(): void
}): Route[] {
  const { retentions, cancelOld, log } = deps

  async function purge(request: ApiRequest): Promise<unknown> {
    const kind = request.params['kind'] ?? ''
    const retention = retentions.find((each) => each.kind === kind)
    if (retention === undefined) throw namedNotFound(`Kind of record "${shown(kind)}"`)
    const {
      after = '',
      action_ref: actionRef,
      incomplete = false,
      dry_run: dryRun = false,
      ...body
    } = readBody(request)
    const before = parseTimestamp(body.before)
    if (before === undefined) throw bodyInvalid('before: it must be a UTC time such as 2030-01-01T00:00:00Z.')
    if (kind !== 'executions' && (actionRef !== undefined || incomplete)) {
      throw bodyInvalid('action_ref, incomplete: only executions can be chosen by them.')
    }
    const until = performance.now() + WORK_MS
    let records = 0
    let canceled = 0
    let next: string | undefined = after
    do {
      const began = performance.now()
      const old: OldRecords = { before, after: next, limit: LIMIT, ...(actionRef === undefined ? {} : { actionRef }) }
      const slice = incomplete ? { ...old, limit: 50 } : old
      if (incomplete) canceled += await cancelOld(request, slice, dryRun)
      const done: { records: number; next: string | undefined } = dryRun
        ? retention.count(slice)
        : await retention.remove(slice)
      records += done.records
      next = done.next
      // As long as the slice has taken belongs to everybody else.
      await delay(performance.now() - began)
    } while (next !== undefined && performance.now() < until)
    if (!dryRun && records > 0) {
      log.audit('records.purged', `Old records of the kind ${kind} were purged.`, {
        kind,
        before,
        ...(actionRef === undefined ? {} : { action: actionRef }),
        records,
        ...aboutCaller(request),
      })
      if (next === undefined) deps.purged()
    }
    return { kind, records, canceled, dry_run: dryRun, next: next ?? null }
  }

  return [
    {
      surface: 'api',
      method: 'post',
      path: '/purge/:kind',
      permission: 'administrator',
      summary: `Delete old records: ${recordKinds.join(', ')}. Repeat with \`after\` until \`next\` is null.`,
      body: requestSchema,
      response: answerSchema,
      failures: [400, 404, 503],
      handler: purge,
    },
  ]
}

function readBody(request: ApiRequest): PurgeRequest {
  return request.body as PurgeRequest // checked by the schema
}
