/** Purging on request: deletes old records of one kind, in a bounded amount of work per request. */
import { setTimeout as delay } from 'node:timers/promises'
import { bodyInvalid, namedNotFound } from '../../core/errors.ts'
import { aboutCaller, route, type ApiRequest, type Caller, type Route } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { recordKinds, type OldRecords, type Retention } from '../../core/retention.ts'
import { parseTimestamp } from '../../core/time.ts'
import { shown } from '../../lib/text/index.ts'
import { PurgeRequest, PurgeResult } from './types.ts'

/** A request starts no further batch after this time. */
const WORK_MS = 200
const BATCH_SIZE = 1000
/** Cancelling costs more than deleting. */
const CANCEL_BATCH_SIZE = 50

type PurgeCaller = Caller & Pick<ApiRequest, 'rights'>

/** Cancels the incomplete executions of the batch. @returns their number, also on a dry run */
export type CancelOld = (caller: PurgeCaller, old: OldRecords, dryRun: boolean) => Promise<number>

export function createMaintenanceRoutes(deps: {
  retentions: readonly Retention[]
  cancelOld: CancelOld
  log: Log
  /** The last record of the request is deleted: the database can return free pages. */
  purged(): void
}): Route[] {
  const { retentions, cancelOld, log } = deps

  async function purge(kind: string, body: PurgeRequest, request: PurgeCaller): Promise<PurgeResult> {
    const retention = retentions.find((each) => each.kind === kind)
    if (retention === undefined) throw namedNotFound(`Kind of record "${shown(kind)}"`)
    const { after = '', action_ref: actionRef, incomplete = false, dry_run: dryRun = false } = body
    const before = parseTimestamp(body.before)
    if (before === undefined)
      throw bodyInvalid('before: it must be a UTC time such as 2030-01-01T00:00:00Z.', { path: ['before'] })
    if (kind !== 'executions' && (actionRef !== undefined || incomplete)) {
      throw bodyInvalid('action_ref, incomplete: only executions can be chosen by them.')
    }
    const limit = incomplete ? CANCEL_BATCH_SIZE : BATCH_SIZE
    const until = performance.now() + WORK_MS
    let records = 0
    let canceled = 0
    let next: string | undefined = after
    do {
      const began = performance.now()
      const old: OldRecords = { before, after: next, limit, ...(actionRef === undefined ? {} : { actionRef }) }
      if (incomplete) canceled += await cancelOld(request, old, dryRun)
      const done: { records: number; next: string | undefined } = dryRun
        ? retention.count(old)
        : await retention.remove(old)
      records += done.records
      next = done.next
      // Other work gets as much time as the batch took.
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
    route({
      surface: 'api',
      method: 'post',
      path: '/purge/:kind',
      permission: 'administrator',
      summary: `Deletes old records: ${recordKinds.join(', ')}. Repeat with \`after\` until \`next\` is null.`,
      body: PurgeRequest,
      response: PurgeResult,
      failures: [400, 404, 503],
      handler: (request) => purge(request.params.kind, request.body, request),
    }),
  ]
}
