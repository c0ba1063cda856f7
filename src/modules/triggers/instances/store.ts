/** Tables `trigger_instances` and `trigger_instance_counts`: reads, and functions that return steps. */
import { sql, type Expression, type ExpressionBuilder, type SelectQueryBuilder, type SqlBool } from 'kysely'
import {
  isAmong,
  type Database,
  type Step,
  columnsOf,
  prepared,
  type Tables,
  type TriggerInstanceTable,
} from '../../../db/index.ts'
import { MAX_SOURCE_BYTES, type Place } from '../../../http/index.ts'
import { idBound } from '../../../core/ids.ts'
import { microsOf } from '../../../core/time.ts'
import type { QueuedInstance, Repetitions, TriggerInstance, TriggerInstanceStatus } from '../types.ts'
import { readJson, WrittenJson } from '../../../lib/json/index.ts'

/** Filter of instance lists. */
export interface InstanceFilter {
  ids?: readonly string[]
  /** References; matches any of them. */
  triggers?: readonly string[] | undefined
  trigger_type?: string
  status?: string
  /** Wire timestamps, exclusive. */
  after?: string
  before?: string
  /** Types that the caller can view. */
  types?: readonly string[]
}

/** Sorting by `occurrence_time` is sorting by id. */
export type InstanceSortColumn = 'id' | 'trigger' | 'trigger_type' | 'status'

export interface InstanceSort {
  column: InstanceSortColumn
  descending: boolean
}

export interface InstanceQuery {
  filter: InstanceFilter
  sort: readonly InstanceSort[]
  /** Only when sorted by id. */
  place?: Place
  limit: number | undefined
  offset: number
}

/** An instance as stored. */
export type StoredInstance = Omit<TriggerInstance, 'payload'> & { payloadText: string }

export interface InstanceStore {
  insert(instance: StoredInstance): Step
  /** Fails with `Conflict` if the instance is not pending. */
  end(id: string, status: TriggerInstanceStatus): Step
  find(id: string): TriggerInstance | undefined
  typeOf(id: string): string | undefined
  /** Pending instances without payloads, oldest first. */
  pending(afterId: string, limit: number): QueuedInstance[]
  pendingCount(): number
  /** Instances that occurred before a time, oldest first. */
  occurredBefore(
    before: string,
    afterId: string,
    limit: number,
  ): { id: string; status: string; occurrence_time: string }[]
  count(): number
  /** Deletes those of these instances that are not pending. */
  deleteProcessed(ids: readonly string[]): Step
  /** Counts a repetition that has no effect. @param at wire timestamp */
  repeat(id: string, at: string): Step
  repetitionsOf(id: string): Repetitions | undefined
  /** Deletes the counts of those of these instances that no longer exist. */
  deleteRepetitions(ids: readonly string[]): Step
  /** Ids of the traces of pending instances. */
  pendingTraces(): string[]
  page(page: InstanceQuery): Promise<string[]>
  total(filter: InstanceFilter): Promise<number>
  /**
   * Reads instances in the given order, in batches limited by payload size.
   *
   * @param maxPayloadBytes larger payloads are not read; 0: no payload is read
   */
  instances(ids: readonly string[], maxPayloadBytes: number): Generator<ListedInstance>
}

export interface ListedInstance extends TriggerInstance {
  /** Bytes of the payload. An unread payload is null, a long one a `WrittenJson`. */
  payload_size: number
}

/** Pages with a larger offset or limit run on the scan thread. */
const MAX_QUICK_ROWS = 10_000
/** Instances per batch, and bytes of their payloads. */
const INSTANCES_TOGETHER = 25
const MAX_BYTES_TOGETHER = MAX_SOURCE_BYTES
/** Index ranges that one query merges by id. */
const MAX_MERGED = 20

export function createInstanceStore(database: Database): InstanceStore {
  const { build } = database
  const statements = prepareStatements(database)

  const findRow = (id: string): TriggerInstanceTable | undefined =>
    database.first<TriggerInstanceTable>(statements.findInstance(id))

  return {
    insert: ({ payloadText: payload, sealed_headers = null, owner = null, depth = 0, ...instance }) => ({
      query: statements.insertInstance({ ...instance, payload, sealed_headers, owner, depth }),
    }),
    end: (id, status) => ({ query: statements.endInstance({ id, status }), expect: 1 }),
    find(id) {
      const row = findRow(id)
      return row === undefined ? undefined : toInstance(row)
    },
    typeOf: (id) =>
      database.first(build.selectFrom('trigger_instances').select('trigger_type').where('id', '=', id))?.trigger_type,
    pending: (afterId, limit) => database.all<QueuedInstance>(statements.pending({ afterId, limit })),
    pendingCount: () =>
      database.first(
        build
          .selectFrom('trigger_instances')
          .select((on) => on.fn.countAll<number>().as('n'))
          .where('status', '=', 'pending'),
      )?.n ?? 0,

    occurredBefore: (before, afterId, limit) =>
      database.all(
        build
          .selectFrom('trigger_instances')
          .select(['id', 'status', 'occurrence_time'])
          .where('id', '>', afterId)
          .where('id', '<', idBound(microsOf(before)))
          .orderBy('id')
          .limit(limit),
      ),
    count: () =>
      database.first(
        build.selectFrom('trigger_instance_counts').select((on) => on.fn.sum<number | null>('count').as('n')),
      )?.n ?? 0,
    deleteProcessed: (ids) => ({
      query: build.deleteFrom('trigger_instances').where(isAmong('id', ids)).where('status', '!=', 'pending'),
    }),
    repeat: (id, at) => ({
      query: build
        .insertInto('trigger_instance_repetitions')
        .values({ trigger_instance_id: id, count: 1, first_timestamp: at, last_timestamp: at })
        .onConflict((on) =>
          on
            .column('trigger_instance_id')
            .doUpdateSet({ count: sql`trigger_instance_repetitions.count + 1`, last_timestamp: at }),
        ),
    }),
    repetitionsOf: (id) =>
      database.first(
        build
          .selectFrom('trigger_instance_repetitions')
          .select(['count', 'first_timestamp', 'last_timestamp'])
          .where('trigger_instance_id', '=', id),
      ),
    deleteRepetitions: (ids) => ({
      query: build
        .deleteFrom('trigger_instance_repetitions')
        .where(isAmong('trigger_instance_id', ids))
        .where(
          'trigger_instance_id',
          'not in',
          build.selectFrom('trigger_instances').select('id').where(isAmong('id', ids)),
        ),
    }),
    pendingTraces: () =>
      database
        .all(build.selectFrom('trigger_instances').select('trace_id').distinct().where('status', '=', 'pending'))
        .map((row) => row.trace_id),

    async page({ filter, sort, place, limit, offset }) {
      const driving = drivingColumn(database, filter)
      const ids = (triggers: readonly string[] | undefined) =>
        build
          .selectFrom('trigger_instances')
          .select('id')
          .where(conditions({ ...filter, triggers }, driving, place))
      const isInOrder = sort.every(({ column }) => column === 'id')
      // For several values SQLite would sort all matching rows. It merges ranges that are already sorted.
      const [first, ...others] = isInOrder ? mergedTriggers(filter, driving) : []
      let query =
        first === undefined
          ? ids(filter.triggers)
          : others.reduce((merged, trigger) => merged.unionAll(ids([trigger])), ids([first]))
      for (const { column, descending } of sort) query = query.orderBy(column, descending ? 'desc' : 'asc')
      if (sort.at(-1)?.column !== 'id') query = query.orderBy('id', 'desc')
      query = query.limit(limit ?? -1).offset(offset)
      const rows = isQuick(filter, sort, offset, limit) ? database.all(query) : await database.scan(query)
      return rows.map(({ id }) => id)
    },
    async total(filter) {
      if (isCounted(filter)) return countRows(database, filter)
      const query = build
        .selectFrom('trigger_instances')
        .select((on) => on.fn.countAll<number>().as('n'))
        .where(conditions(filter, drivingColumn(database, filter)))
      const [row] = filter.ids === undefined ? await database.scan(query) : database.all(query)
      return row?.n ?? 0
    },
    *instances(ids, maxPayloadBytes) {
      for (let start = 0; start < ids.length; start += INSTANCES_TOGETHER) {
        const some = ids.slice(start, start + INSTANCES_TOGETHER)
        const found = build.selectFrom('trigger_instances')
        const heads = new Map(
          database
            .all(
              found
                .where('id', 'in', some)
                .select([
                  'id',
                  'trigger',
                  'trigger_id',
                  'trigger_type',
                  'occurrence_time',
                  'status',
                  'trace_id',
                  'owner',
                ])
                // SQLite reads the size from the row header, without the payload.
                .select(sql<number>`octet_length(payload)`.as('payload_size')),
            )
            .map((row) => [row.id, row]),
        )
        const wanted = [...heads.values()].filter((row) => row.payload_size <= maxPayloadBytes)
        const isTogether = wanted.reduce((sum, row) => sum + row.payload_size, 0) <= MAX_BYTES_TOGETHER
        const wantedIds = wanted.map(({ id }) => id)
        const payloads = new Map(
          isTogether && wantedIds.length > 0
            ? database.all(found.where('id', 'in', wantedIds).select(['id', 'payload'])).map((row) => [row.id, row])
            : [],
        )
        for (const id of some) {
          const head = heads.get(id)
          if (head === undefined) continue
          const { payload_size: size, ...row } = head
          if (size > maxPayloadBytes)
            yield { ...toInstance({ ...row, payload: 'null', sealed_headers: null, depth: 0 }), payload_size: size }
          else if (isTogether) {
            yield {
              ...toInstance({ ...row, payload: payloads.get(id)?.payload ?? 'null', sealed_headers: null, depth: 0 }),
              payload_size: size,
            }
          } else {
            const whole = findRow(id)
            if (whole !== undefined) yield { ...toInstance(whole, (text) => WrittenJson.of(text)), payload_size: size }
          }
        }
      }
    },
  }
}

/** Prepares the statements that every instance needs. The values here only define the types. */
function prepareStatements({ build }: Database) {
  const instance: TriggerInstanceTable = {
    id: '',
    trigger: '',
    trigger_id: '',
    trigger_type: '',
    occurrence_time: '',
    status: '',
    trace_id: '',
    payload: '',
    sealed_headers: null,
    owner: null,
    depth: 0,
  }
  return {
    insertInstance: prepared(build.insertInto('trigger_instances').values(instance), columnsOf(instance)),
    endInstance: prepared(
      build.updateTable('trigger_instances').set({ status: '' }).where('id', '=', '').where('status', '=', ''),
      ({ id, status }: { id: string; status: string }) => [status, id, 'pending'],
    ),
    findInstance: prepared(build.selectFrom('trigger_instances').selectAll().where('id', '=', ''), (id: string) => [
      id,
    ]),
    pending: prepared(
      build
        .selectFrom('trigger_instances')
        .select(['id', 'trigger_id', 'trigger', 'trigger_type', 'trace_id'])
        .where('status', '=', '')
        .where('id', '>', '')
        .orderBy('id')
        .limit(1),
      ({ afterId, limit }: { afterId: string; limit: number }) => ['pending', afterId, limit],
    ),
  }
}

function toInstance(
  { payload, sealed_headers, owner, depth, ...row }: TriggerInstanceTable,
  read: (text: string) => unknown = readJson,
): TriggerInstance {
  return {
    ...row,
    status: row.status as TriggerInstanceStatus, // only this module sets it
    payload: read(payload),
    ...(sealed_headers === null ? {} : { sealed_headers }),
    ...(owner === null ? {} : { owner }),
    ...(depth === 0 ? {} : { depth }),
  }
}

type On = ExpressionBuilder<Tables, 'trigger_instances'>

/** Columns with totals in `trigger_instance_counts`. */
const countedColumns = ['trigger', 'trigger_type', 'status'] as const

function wantedOf(filter: InstanceFilter, column: (typeof countedColumns)[number]): readonly string[] | undefined {
  if (column === 'trigger') return filter.triggers
  const value = filter[column]
  return value === undefined ? undefined : [value]
}

/** @param driving the column whose index SQLite must use; undefined: SQLite chooses */
function conditions(
  filter: InstanceFilter,
  driving: keyof TriggerInstanceTable | undefined,
  place: Place = {},
): (on: On) => Expression<SqlBool> {
  // The unary plus keeps SQLite from an index on the column.
  const left = (column: keyof TriggerInstanceTable): Expression<unknown> =>
    driving === undefined || driving === column ? sql.ref(column) : sql`+${sql.ref(column)}`
  return (on) => {
    const all: Expression<SqlBool>[] = []
    if (filter.ids !== undefined) all.push(on('id', 'in', [...filter.ids]))
    for (const column of countedColumns) {
      const [value, ...others] = wantedOf(filter, column) ?? []
      if (value === undefined) continue
      all.push(
        others.length === 0 ? sql<SqlBool>`${left(column)} = ${value}` : isAmong(left(column), [value, ...others]),
      )
    }
    // Ids contain the occurrence time, so the primary key serves time ranges.
    if (filter.after !== undefined) all.push(on('id', '>=', idBound(microsOf(filter.after) + 1)))
    if (filter.before !== undefined) all.push(on('id', '<', idBound(microsOf(filter.before))))
    if (place.after !== undefined) all.push(on('id', '>', place.after))
    if (place.before !== undefined) all.push(on('id', '<', place.before))
    if (filter.types !== undefined) all.push(isAmong(left('trigger_type'), filter.types))
    return on.and(all)
  }
}

/**
 * If several columns have an index: the one whose value has the fewest instances. SQLite only knows the average number
 * of instances per value.
 */
function drivingColumn(database: Database, filter: InstanceFilter): keyof TriggerInstanceTable | undefined {
  if (filter.ids !== undefined) return 'id'
  const given = countedColumns.filter((column) => wantedOf(filter, column) !== undefined)
  if (given.length <= 1) return given[0]
  const only = (column: (typeof countedColumns)[number]): InstanceFilter =>
    column === 'trigger' ? { triggers: filter.triggers } : { [column]: filter[column] }
  const counts = given.map((column) => ({ column, count: countRows(database, only(column)) }))
  return counts.reduce((least, each) => (each.count < least.count ? each : least)).column
}

function mergedTriggers(
  { triggers = [] }: InstanceFilter,
  driving: keyof TriggerInstanceTable | undefined,
): readonly string[] {
  return driving === 'trigger' && triggers.length <= MAX_MERGED ? triggers : []
}

/**
 * Whether one index serves the whole query: at most one equality, sorted by id. Every other query can scan the whole
 * table and runs on the scan thread.
 */
function isQuick(
  filter: InstanceFilter,
  sort: readonly InstanceSort[],
  offset: number,
  limit: number | undefined,
): boolean {
  if (filter.ids !== undefined) return true
  if (offset > MAX_QUICK_ROWS || limit === undefined || limit > MAX_QUICK_ROWS) return false
  if (filter.types !== undefined || (filter.triggers?.length ?? 0) > MAX_MERGED) return false
  const given = countedColumns.filter((column) => wantedOf(filter, column) !== undefined)
  return given.length <= 1 && (sort.length === 0 || (sort.length === 1 && sort[0]?.column === 'id'))
}

/** Whether `trigger_instance_counts` has the total of a filter. */
function isCounted({ ids, after, before }: InstanceFilter): boolean {
  return [ids, after, before].every((value) => value === undefined)
}

function countRows(database: Database, filter: InstanceFilter): number {
  let query: SelectQueryBuilder<Tables, 'trigger_instance_counts', { n: number | null }> = database.build
    .selectFrom('trigger_instance_counts')
    .select((on) => on.fn.sum<number | null>('count').as('n'))
  for (const column of countedColumns) {
    const [value, ...others] = wantedOf(filter, column) ?? []
    if (value === undefined) continue
    query = others.length === 0 ? query.where(column, '=', value) : query.where(isAmong(column, [value, ...others]))
  }
  if (filter.types !== undefined) query = query.where(isAmong('trigger_type', filter.types))
  return database.first(query)?.n ?? 0
}
