/** Tables `notifications` and `notification_failures`: reads, and functions that return steps. */
import { sql, type SqlBool } from 'kysely'
import { columnsOf, isAmong, prepared, type Database, type NotificationTable, type Step } from '../../db/index.ts'
import { idBound, microsOfId } from '../../core/ids.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import type { Page, Place } from '../../http/index.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'
import type { Content, Notification, NotificationStatus, Occasion } from './types.ts'

export interface NotificationFilter {
  status?: NotificationStatus | undefined
  destination?: string | undefined
  rule?: string | undefined
  execution?: string | undefined
  /** Only of executions of this user. */
  user?: string | undefined
  /** Only of executions of these actions; absent: all, also those of none. */
  actions?: readonly string[] | undefined
}

/** Whether it is a recovery: only the writer knows, because another success may come first. */
export type Recovery = 'recovered only' | 'recovered or succeeded'

export interface NotificationStore {
  find(id: string): Notification | undefined
  /** Newest first. */
  list(filter: NotificationFilter, page: Page, place: Place | undefined): Promise<Notification[]>
  count(filter: NotificationFilter): Promise<number>
  /** References of the actions that notifications are about. */
  actions(): Promise<string[]>
  insert(notification: Notification): Step
  /** The same, if the job has failed before; else nothing, or as a success. */
  insertRecovery(notification: Notification, recovery: Recovery): Step
  hasFailed(job: string): boolean
  markFailed(job: string, since: string): Step
  clearFailed(job: string): Step
  /** Those that wait for a destination, oldest first. */
  pending(destination: string, limit: number): Notification[]
  /** By destination: how many wait, or are being sent. */
  waiting(): Map<string, number>
  /** Sent, alone or in a digest, since a time. */
  countSent(destination: string, job: string, since: string): number
  /** @param from the status that it must have. Fails with `Conflict` otherwise */
  change(id: string, from: NotificationStatus, to: Partial<Changeable>): Step
  /** Makes waiting ones parts of a digest. */
  digest(ids: readonly string[], digest: string, at: string): Step
  /** Waits again, from the beginning. Fails with `Conflict` when it is being sent. */
  replay(id: string, at: string): Step
  /** After a crash: what was being sent waits again. */
  resume(): Step
  /** Those that have ended, oldest first. */
  endedBefore(before: string, afterId: string, limit: number): { id: string; isEnded: boolean }[]
  countAll(): number
  delete(ids: readonly string[]): Step
  /** Failures of long ago, of jobs that may not exist any more. */
  forgetFailures(before: string): Step
}

interface Changeable {
  status: NotificationStatus
  attempts: number
  due_at: string
  queued_at: string
  sent_at: string | null
  error: string | null
  digest: string | null
}

const ended = ['sent', 'failed', 'suppressed', 'digested'] as const

export function createNotificationStore(database: Database): NotificationStore {
  const { build } = database
  const all = build.selectFrom('notifications').selectAll()
  const sample: NotificationTable = {
    id: '',
    destination: '',
    occasion: '',
    status: '',
    job: '',
    rule: '',
    execution: '',
    action: '',
    user: '',
    attempts: 0,
    due_at: '',
    queued_at: '',
    sent_at: '',
    error: '',
    digest: '',
    content: '',
  }
  const columns = Object.keys(sample) as (keyof NotificationTable)[] // its own keys
  const insertRow = prepared(build.insertInto('notifications').values(sample), columnsOf(sample))

  function matching(filter: NotificationFilter) {
    let query = build.selectFrom('notifications')
    for (const column of ['status', 'destination', 'rule', 'execution', 'user'] as const) {
      const value = filter[column]
      if (value !== undefined) query = query.where(column, '=', value)
    }
    return filter.actions === undefined ? query : query.where(isAmong('action', filter.actions))
  }

  return {
    find(id) {
      const row = database.first(all.where('id', '=', id))
      return row === undefined ? undefined : toNotification(row)
    },
    async list(filter, { limit, offset }, place) {
      let query = matching(filter).selectAll()
      if (place?.before !== undefined) query = query.where('id', '<', place.before)
      if (place?.after !== undefined) query = query.where('id', '>', place.after)
      const rows = await database.scan(
        query
          .orderBy('id', 'desc')
          .limit(limit ?? -1)
          .offset(offset),
      )
      return rows.map(toNotification)
    },
    async count(filter) {
      const [row] = await database.scan(matching(filter).select((on) => on.fn.countAll<number>().as('n')))
      return row?.n ?? 0
    },
    async actions() {
      const rows = await database.scan(build.selectFrom('notifications').select('action').distinct())
      return rows.flatMap(({ action }) => action ?? [])
    },
    insert: (notification) => ({ query: insertRow(toRow(notification)) }),
    insertRecovery(notification, recovery) {
      const row = toRow(notification)
      const hasFailed = sql<SqlBool>`exists (select 1 from notification_failures where job = ${notification.job})`
      const values = columns.map((column) =>
        column === 'occasion' && recovery === 'recovered or succeeded'
          ? sql`case when ${hasFailed} then 'recovered' else 'succeeded' end`
          : sql`${row[column]}`,
      )
      const condition = recovery === 'recovered only' ? hasFailed : sql<SqlBool>`1`
      return {
        query: {
          compile: () =>
            sql`insert into notifications (${sql.join(columns.map((column) => sql.ref(column)))})
              select ${sql.join(values)} where ${condition}`.compile(build),
        },
      }
    },
    hasFailed: (job) =>
      database.first(build.selectFrom('notification_failures').select('job').where('job', '=', job)) !== undefined,
    markFailed: (job, since) => ({
      query: build.insertInto('notification_failures').values({ job, since }).orIgnore(),
    }),
    clearFailed: (job) => ({ query: build.deleteFrom('notification_failures').where('job', '=', job) }),
    pending: (destination, limit) =>
      database
        .all(all.where('destination', '=', destination).where('status', '=', 'pending').orderBy('id').limit(limit))
        .map(toNotification),
    waiting() {
      const rows = database.all(
        build
          .selectFrom('notifications')
          .select((on) => ['destination', on.fn.countAll<number>().as('n')])
          .where('status', 'in', ['pending', 'sending'])
          .groupBy('destination'),
      )
      return new Map(rows.map(({ destination, n }) => [destination, n]))
    },
    countSent: (destination, job, since) =>
      database.first(
        build
          .selectFrom('notifications')
          .select((on) => on.fn.countAll<number>().as('n'))
          .where('destination', '=', destination)
          .where('job', '=', job)
          .where('sent_at', '>=', since),
      )?.n ?? 0,
    change: (id, from, to) => ({
      query: build.updateTable('notifications').set(to).where('id', '=', id).where('status', '=', from),
      expect: 1,
    }),
    digest: (ids, digest, at) => ({
      query: build
        .updateTable('notifications')
        .set({ status: 'digested', digest, sent_at: at })
        .where(isAmong('id', ids))
        .where('status', '=', 'pending'),
      expect: ids.length,
    }),
    replay: (id, at) => ({
      query: build
        .updateTable('notifications')
        .set({ status: 'pending', attempts: 0, due_at: at, queued_at: at, error: null, digest: null, sent_at: null })
        .where('id', '=', id)
        .where('status', '!=', 'sending'),
      expect: 1,
    }),
    resume: () => ({
      query: build.updateTable('notifications').set({ status: 'pending' }).where('status', '=', 'sending'),
    }),
    endedBefore: (before, afterId, limit) =>
      database
        .all(
          build
            .selectFrom('notifications')
            .select(['id', 'status'])
            .where('id', '>', afterId)
            .where('id', '<', idBound(microsOf(before)))
            .orderBy('id')
            .limit(limit),
        )
        .map(({ id, status }) => ({ id, isEnded: (ended as readonly string[]).includes(status) })),
    countAll: () =>
      database.first(build.selectFrom('notifications').select((on) => on.fn.countAll<number>().as('n')))?.n ?? 0,
    delete: (ids) => ({ query: build.deleteFrom('notifications').where(isAmong('id', ids)) }),
    forgetFailures: (before) => ({ query: build.deleteFrom('notification_failures').where('since', '<', before) }),
  }
}

function toRow({ created_at: _created, content, ...row }: Notification): NotificationTable {
  return { ...row, action: content.action ?? null, user: content.user ?? null, content: writeJson(content) }
}

function toNotification({ content, action: _a, user: _u, ...row }: NotificationTable): Notification {
  return {
    ...row,
    occasion: row.occasion as Occasion, // written by `toRow`
    status: row.status as NotificationStatus,
    created_at: formatMicros(microsOfId(row.id)),
    content: readJson(content) as Content,
  }
}
