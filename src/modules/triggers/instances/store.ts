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
import type { Place } from '../../../http/index.ts'
import { idBound } from '../../../core/ids.ts'
import { readJson } from '../../../lib/text/index.ts'
import { microsOf } from '../../../core/time.ts'
import type { QueuedInstance, TriggerInstance, TriggerInstanceStatus } from '../types.ts'

/** What a list of instances can be narrowed by. */
export interface InstanceFilter {
  ids?: readonly string[]
  /** References, of which each will do. */
  triggers?: readonly string[] | undefined
  trigger_type?: string
  status?: string
  /** Wire timestamps, exclusive. */
  after?: string
  before?: string
  /** Types that the caller may see. */
  types?: readonly string[]
}

/** `occurrence_time` is the order of ids. */
export type InstanceSortColumn = 'id' | 'trigger' | 'trigger_type' | 'status'

export interface InstanceSort {
  column: InstanceSortColumn
  descending: boolean
}

export interface InstancePage {
  filter: InstanceFilter
  sort: readonly InstanceSort[]
  /** Only in the order of ids. */
  place?: Place
  limit: number | undefined
  offset: number
}

/** An instance as its row has it. */
export type StoredInstance = Omit<TriggerInstance, 'payload'> & { payloadText: string }

export interface InstanceStore {
  insert(instance: StoredInstance): Step
  /** Fails with `Conflict` unless it is pending. */
  end(id: string, status: TriggerInstanceStatus): Step
  find(id: string): TriggerInstance | undefined
  /** Without payloads, oldest first. */
  pending(afterId: string, limit: number): QueuedInstance[]
  pendingCount(): number
  /** Those that occurred before a time, oldest first. */
  occurredBefore(
    before: string,
    afterId: string,
    limit: number,
  ): { id: string; status: string; occurrence_time: string }[]
  /** How many there are. */
  count(): number
  /** Of these those that have been looked at. */
  deleteProcessed(ids: readonly string[]): Step
  /** Traces of those that have not been looked at yet. */
  pendingTraces(): string[]
  page(page: InstancePage): Promise<string[]>
  total(filter: InstanceFilter): Promise<number>
  /**
   * In the order given, as many at once as their size allows.
   *
   * @param maxPayloadBytes larger payloads are not read; 0: none is
   */
  instances(ids: readonly string[], maxPayloadBytes: number): Generator<ListedInstance>
}

export interface ListedInstance extends TriggerInstance {
  /** Bytes of the payload, which is null where it has not been read. */
  payload_size: number
}

/** An offset or a limit beyond this is counted off on the scan thread. */
const MAX_QUICK_ROWS = 10_000
/** Instances of a list that are read at once, and what their payloads may have together. */
const INSTANCES_TOGETHER = 25
const MAX_BYTES_TOGETHER = 1024 * 1024
/** Limit of index ranges that one query merges in the order of ids. */
const MAX_MERGED = 20

export function createInstanceStore(database: Database): InstanceStore {
  const { build } = database
  const statements = prepareStatements(database)

  function find(id: string): TriggerInstance | undefined {
    const row = database.first<TriggerInstanceTable>(statements.findInstance(id))
    return row === undefined ? undefined : toInstance(row)
  }

  return {
    insert: ({ payloadText: payload, ...instance }) => ({
      query: statements.insertInstance({ ...instance, payload }),
    }),
    end: (id, status) => ({ query: statements.endInstance({ id, status }), expect: 1 }),
    find,
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
      // SQLite would find what has one of several values and sort all of it; what is in order already it merges.
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
                .select(['id', 'trigger', 'trigger_id', 'trigger_type', 'occurrence_time', 'status', 'trace_id'])
                // Read from the head of the row: nothing of the payload is.
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
          if (size > maxPayloadBytes) yield { ...toInstance({ ...row, payload: 'null' }), payload_size: size }
          else if (isTogether) {
            yield { ...toInstance({ ...row, payload: payloads.get(id)?.payload ?? 'null' }), payload_size: size }
          } else {
            const whole = find(id)
            if (whole !== undefined) yield { ...whole, payload_size: size }
          }
        }
      }
    },
  }
}

/** What every instance needs; the values here only shape the statements. */
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

function toInstance({ payload, ...row }: TriggerInstanceTable): TriggerInstance {
  return { ...row, status: row.status as TriggerInstanceStatus, payload: readJson(payload) } // only this module sets it
}

type On = ExpressionBuilder<Tables, 'trigger_instances'>

/** Filters of which `trigger_instance_counts` says of how many instances they are true, and what they ask for. */
const countedColumns = ['trigger', 'trigger_type', 'status'] as const

function wantedOf(filter: InstanceFilter, column: (typeof countedColumns)[number]): readonly string[] | undefined {
  if (column === 'trigger') return filter.triggers
  const value = filter[column]
  return value === undefined ? undefined : [value]
}

/** @param driving the column whose index is to be walked; undefined: SQLite chooses */
function conditions(
  filter: InstanceFilter,
  driving: keyof TriggerInstanceTable | undefined,
  place: Place = {},
): (on: On) => Expression<SqlBool> {
  // With a sign in front it is no column any more, and no index fits it.
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
    // Ids are made from the time of the occurrence, so the primary key serves time ranges.
    if (filter.after !== undefined) all.push(on('id', '>=', idBound(microsOf(filter.after) + 1)))
    if (filter.before !== undefined) all.push(on('id', '<', idBound(microsOf(filter.before))))
    if (place.after !== undefined) all.push(on('id', '>', place.after))
    if (place.before !== undefined) all.push(on('id', '<', place.before))
    if (filter.types !== undefined) all.push(isAmong(left('trigger_type'), filter.types))
    return on.and(all)
  }
}

/**
 * The column whose index is to be walked, when there is a choice: the one that leads to the fewest instances. SQLite knows
 * how many values an index has, not how many instances have this one.
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
 * Whether one index serves the whole query: at most one equality, in the order of ids. Everything else may have to look at
 * every instance there is and goes to the scan thread.
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

/** Filters that `trigger_instance_counts` can answer, in any combination. */
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
