/** Tables `traces`, `trace_components`, `trace_rules`, `trace_rule_counts`, `trace_tag_counts`, `totals`. */
import { sql, type RawBuilder, type SqlBool } from 'kysely'
import {
  isAmong,
  type Compilable,
  type Database,
  type Step,
  columnsOf,
  prepared,
  type TraceComponentTable,
  type TraceTable,
} from '../../db/index.ts'
import type { Place } from '../../http/index.ts'
import { idBound } from '../../core/ids.ts'
import { microsOf } from '../../core/time.ts'
import type { CausedBy, TraceMember, TraceMemberKind } from './types.ts'

/** Filter of a list; `null` matches traces that have no component of the kind. */
export interface TraceFilter {
  ids?: readonly string[]
  trace_tag?: string
  /** Prefix of the tag; not empty. */
  trace_tag_prefix?: string
  /** Ids of members. */
  execution?: string | null
  rule?: string | null
  trigger_instance?: string | null
  /** Ids of the traces that the caller can see, whatever else is requested. */
  within?: readonly string[]
}

type Direction = 'asc' | 'desc'

export interface TraceSort {
  /** Absent: by creation only. */
  tag?: Direction
  /** By creation. */
  id: Direction
}

export interface TraceSearch {
  filter: TraceFilter
  sort: TraceSort
  /** Only when ordered by creation. */
  place?: Place
  /** Undefined: everything. */
  limit: number | undefined
  offset: number
}

export type ComponentRow = Omit<TraceComponentTable, 'n'> & { n: number }

/** Components of one kind with numbers in a range. */
export interface ComponentRange {
  traceId: string
  kind: TraceMemberKind
  after: number
  upTo: number
  limit: number
}

/** Components of all kinds with numbers between two bounds, both exclusive. */
export interface MemberRange {
  traceId: string
  after: number
  before: number
  isDescending: boolean
  limit: number
}

export interface TraceStore {
  find(id: string): TraceTable | undefined
  /** The newest trace with this tag. */
  findByTag(tag: string): TraceTable | undefined
  /** Reads rows lazily, few at a time, if an index gives the order. */
  search(search: TraceSearch): Promise<Iterable<TraceTable>>
  total(filter: TraceFilter): Promise<number>
  /** Number of the component added last, to any trace. */
  lastComponent(): number
  /** In the order of insertion. */
  components(range: ComponentRange): ComponentRow[]
  members(range: MemberRange): ComponentRow[]
  countMembers(traceId: string): Promise<number>

  /** Traces started before a time, oldest first. */
  startedBefore(before: string, afterId: string, limit: number): { id: string; start_timestamp: string }[]
  /** Number of traces. */
  count(): number
  /** Number of components of the kind `rule`; stops counting at `most`. */
  countRules(id: string, most: number): number
  /** Number of components of these traces; stops counting at `most`. */
  countComponents(ids: readonly string[], most: number): number
  /** Deletes at most `limit` components, and the rule entries of these traces that they caused. */
  deleteComponents(ids: readonly string[], limit: number): Step[]
  deleteTraces(ids: readonly string[]): Step

  insert(trace: TraceTable): Step
  /** Fails with `Conflict` when another trace with this tag exists by now. */
  insertFirst(trace: TraceTable): Step
  addMember(traceId: string, member: TraceMember, causedBy: CausedBy | undefined, at: string): Step
}

/** Traces to read on this thread; more, and larger offsets, go to the scan thread. */
const MAX_LOOKED_AT = 1000
const MAX_QUICK_OFFSET = 10_000
const TRACES_TOGETHER = 25
/** Components to count on this thread; more go to the scan thread. */
const MAX_COUNTED = 10_000

export function createTraceStore(database: Database): TraceStore {
  const { build } = database
  const statements = prepareStatements(database)
  const toQuery = <O>(raw: RawBuilder<O>): Compilable<O> => ({ compile: () => raw.compile(build) })

  /** The access path of a filter, its number of traces, and whether it covers the whole filter. */
  function approach(filter: TraceFilter): Approach {
    const {
      ids,
      within,
      trace_tag: tag,
      trace_tag_prefix: prefix,
      rule,
      execution,
      trigger_instance: instance,
    } = filter
    const given = [ids ?? within, tag, prefix, execution, rule, instance].filter((each) => each !== undefined)
    const isAlone = given.length === 1
    const chosen = chosenIds(filter)
    if (chosen !== undefined) return { by: 'ids', size: chosen.length, isAlone }
    if (typeof execution === 'string' || typeof instance === 'string') return { by: 'member', size: 1, isAlone }
    const ways: Approach[] = []
    if (tag !== undefined) ways.push({ by: 'tag', size: tagCount(tag), isAlone })
    if (typeof rule === 'string') {
      ways.push({ by: 'rule', size: database.first(statements.ruleCount(rule))?.count ?? 0, isAlone })
    }
    if (prefix !== undefined) ways.push({ by: 'prefix', size: prefixCount(prefix), isAlone })
    ways.sort((a, b) => a.size - b.size)
    return ways[0] ?? { by: 'all', size: traceCount(), isAlone: given.length === 0 }
  }

  const traceCount = (): number => database.first(statements.total)?.count ?? 0

  /** Stops counting one above the limit. */
  function prefixCount(prefix: string): number {
    const some = sql`select 1 from traces as t where ${hasPrefix(prefix)} limit ${MAX_LOOKED_AT + 1}`
    return database.first(toQuery(sql<{ n: number }>`select count(*) as n from (${some})`))?.n ?? 0
  }

  function tagCount(tag: string): number {
    const counted = database.first(statements.tagCount(tag))?.count
    return counted ?? (database.first(statements.findByTag(tag)) === undefined ? 0 : 1)
  }

  return {
    find: (id) => database.first(statements.find(id)),
    findByTag: (tag) => database.first(statements.findByTag(tag)),
    countRules: (id, most) =>
      database.all(
        build
          .selectFrom('trace_components')
          .select('n')
          .where('trace_id', '=', id)
          .where('kind', '=', 'rule')
          .limit(most),
      ).length,

    async search({ filter, sort, place, limit, offset }) {
      const way = approach(filter)
      const order = filter.trace_tag === undefined ? sort : { id: sort.id }
      // In the order of tags, many traces would have to be sorted before the first is known.
      const by = way.by === 'prefix' && way.size > MAX_LOOKED_AT && order.tag === undefined ? 'all' : way.by
      const page = (at: TraceTable | undefined, count: number, skipped: number): Compilable<TraceTable> =>
        toQuery(pageQuery({ filter, by, sort: order, place, last: at, limit: count, offset: skipped }))
      const isOrdered =
        order.tag === undefined ? ['all', 'tag', 'rule'].includes(way.by) : way.by === 'all' && order.tag === order.id
      if (!way.isAlone || !isOrdered) {
        const query = page(undefined, limit ?? -1, offset)
        return way.size > MAX_LOOKED_AT ? database.scan(query) : database.all(query)
      }
      if (offset <= MAX_QUICK_OFFSET) return walk(undefined, offset)
      const [before] = await database.scan(page(undefined, 1, offset - 1))
      return before === undefined ? [] : walk(before, 0)

      function* walk(from: TraceTable | undefined, skipped: number): Generator<TraceTable, undefined> {
        let last = from
        let skip = skipped
        for (let left = limit ?? Infinity; left > 0; left -= TRACES_TOGETHER) {
          const count = Math.min(left, TRACES_TOGETHER)
          const rows = database.all(page(last, count, skip))
          yield* rows
          if (rows.length < count) return
          last = rows.at(-1)
          skip = 0
        }
      }
    },
    async total(filter) {
      const way = approach(filter)
      const { by, size, isAlone } = way
      if (isAlone && (by === 'all' || by === 'tag' || by === 'rule')) return size
      const query = toQuery(sql<{ n: number }>`select count(*) as n from ${source(by)} where ${conditions(filter, by)}`)
      const [row] = size > MAX_LOOKED_AT ? await database.scan(query) : database.all(query)
      return row?.n ?? 0
    },
    startedBefore: (before, afterId, limit) =>
      database.all(
        build
          .selectFrom('traces')
          .select(['id', 'start_timestamp'])
          .where('id', '>', afterId)
          .where('id', '<', idBound(microsOf(before)))
          .orderBy('id')
          .limit(limit),
      ),
    count: () => traceCount(),
    countComponents: (ids, most) =>
      database.first(
        build
          .selectFrom(
            build.selectFrom('trace_components').select('n').where(isAmong('trace_id', ids)).limit(most).as('some'),
          )
          .select((on) => on.fn.countAll<number>().as('n')),
      )?.n ?? 0,
    deleteComponents(ids, limit) {
      // Both statements of a commit see the same rows.
      const some = sql`select n, object_id, trace_id, kind from trace_components
        where ${isAmong('trace_id', ids)} order by trace_id, kind, n limit ${limit}`
      return [
        {
          query: build
            .deleteFrom('trace_rules')
            .where(
              sql<SqlBool>`(rule_id, trace_id) in (select object_id, trace_id from (${some}) where kind = 'rule')`,
            ),
        },
        { query: build.deleteFrom('trace_components').where(sql<SqlBool>`n in (select n from (${some}))`) },
      ]
    },
    deleteTraces: (ids) => ({ query: build.deleteFrom('traces').where(isAmong('id', ids)) }),
    lastComponent: () => database.first(statements.lastComponent)?.n ?? 0,
    components: (range) => database.all(statements.components(range)),
    members({ traceId, after, before, isDescending, limit }) {
      // The index holds each kind in order; SQLite merges ordered inputs.
      const ofKinds = kinds.map(
        (kind) => sql`select * from trace_components
          where trace_id = ${traceId} and kind = ${kind} and n > ${after} and n < ${before}`,
      )
      const direction = isDescending ? sql`desc` : sql`asc`
      const query = sql<ComponentRow>`${sql.join(ofKinds, sql` union all `)} order by n ${direction} limit ${limit}`
      return database.all(toQuery(query))
    },
    async countMembers(traceId) {
      const counted = (limit: number): Compilable<{ n: number }> =>
        toQuery(
          sql`select count(*) as n from (select 1 from trace_components where trace_id = ${traceId} limit ${limit})`,
        )
      const some = database.first(counted(MAX_COUNTED + 1))?.n ?? 0
      if (some <= MAX_COUNTED) return some
      const [row] = await database.scan(counted(-1))
      return row?.n ?? some
    },

    insert: (row) => ({ query: statements.insertTrace(row) }),
    insertFirst: (row) => ({ query: statements.insertFirstTrace(row), expect: 1 }),
    addMember: (traceId, member, causedBy, at) => ({
      query: statements.insertComponent({
        trace_id: traceId,
        ...member,
        updated_at: at,
        caused_by_type: causedBy?.type ?? null,
        caused_by_id: causedBy?.id ?? null,
      }),
    }),
  }
}

interface Approach {
  /** Given ids, members of at most one trace, one of the two kinds of member in many traces, or all traces. */
  by: 'ids' | 'member' | 'tag' | 'prefix' | 'rule' | 'all'
  size: number
  isAlone: boolean
}

/** The requested ids that the caller can see. */
function chosenIds({ ids, within }: TraceFilter): readonly string[] | undefined {
  if (ids === undefined || within === undefined) return ids ?? within
  const seen = new Set(within)
  return ids.filter((id) => seen.has(id))
}

/** A cross join fixes the join order: SQLite would rather read every trace than walk the traces of a rule. */
function source(by: Approach['by']): RawBuilder<unknown> {
  return by === 'rule' ? sql`trace_rules as r cross join traces as t` : sql`traces as t`
}

function pageQuery(page: {
  filter: TraceFilter
  by: Approach['by']
  sort: TraceSort
  place: Place | undefined
  /** Id of the last trace of the previous page. */
  last: TraceTable | undefined
  limit: number
  offset: number
}): RawBuilder<TraceTable> {
  const { filter, by, place = {}, last, limit, offset } = page
  const { tag, id } = page.sort
  const idColumn = by === 'rule' ? sql`r.trace_id` : sql`t.id`
  const direction = (of: Direction): RawBuilder<unknown> => (of === 'asc' ? sql`asc` : sql`desc`)
  const order =
    tag === undefined
      ? sql`${idColumn} ${direction(id)}`
      : sql`t.trace_tag ${direction(tag)}, ${idColumn} ${direction(id)}`
  const beyond = id === 'asc' ? sql`>` : sql`<`
  const all = [conditions(filter, by)]
  if (place.before !== undefined) all.push(sql`${idColumn} < ${place.before}`)
  if (place.after !== undefined) all.push(sql`${idColumn} > ${place.after}`)
  if (last !== undefined && tag === undefined) all.push(sql`${idColumn} ${beyond} ${last.id}`)
  else if (last !== undefined) all.push(sql`(t.trace_tag, t.id) ${beyond} (${last.trace_tag}, ${last.id})`)
  return sql<TraceTable>`select t.id, t.uid, t.trace_tag, t.start_timestamp from ${source(by)}
    where ${sql.join(all, sql` and `)} order by ${order} limit ${limit} offset ${offset}`
}

/** Sorts after every text with the same prefix. */
const LAST_CHARACTER = String.fromCodePoint(0x10ffff)

function hasPrefix(prefix: string): RawBuilder<unknown> {
  return sql`t.trace_tag >= ${prefix} and t.trace_tag < ${prefix + LAST_CHARACTER}`
}

const kinds = ['execution', 'rule', 'trigger_instance'] as const satisfies TraceMemberKind[]

function conditions(filter: TraceFilter, by: Approach['by']): RawBuilder<unknown> {
  const all: RawBuilder<unknown>[] = []
  const chosen = chosenIds(filter)
  if (chosen !== undefined) all.push(isAmong('t.id', chosen))
  // The unary plus turns the column into an expression, so that no index applies.
  if (filter.trace_tag !== undefined) {
    all.push(by === 'tag' ? sql`t.trace_tag = ${filter.trace_tag}` : sql`+t.trace_tag = ${filter.trace_tag}`)
  }
  if (filter.trace_tag_prefix !== undefined) {
    const prefix = filter.trace_tag_prefix
    all.push(by === 'prefix' ? hasPrefix(prefix) : sql`substr(t.trace_tag, 1, length(${prefix})) = ${prefix}`)
  }
  for (const kind of kinds) {
    const value = filter[kind]
    if (value === undefined) continue
    if (value === null) {
      all.push(sql`not exists (select 1 from trace_components as c where c.trace_id = t.id and c.kind = ${kind})`)
    } else if (kind !== 'rule') {
      // The first condition on the kind is the one of the index.
      all.push(sql`t.id in (select c.trace_id from trace_components as c
        where c.object_id = ${value} and c.kind <> 'rule' and c.kind = ${kind})`)
    } else if (by === 'rule') {
      all.push(sql`t.id = r.trace_id and r.rule_id = ${value}`)
    } else {
      all.push(sql`exists (select 1 from trace_rules as r where r.rule_id = ${value} and r.trace_id = +t.id)`)
    }
  }
  return all.length === 0 ? sql`1` : sql.join(all, sql` and `)
}

/** Statements for every execution and every event; the values here only shape them. */
function prepareStatements({ build }: Database) {
  const trace: TraceTable = { id: '', uid: '', trace_tag: '', start_timestamp: '' }
  const component: Omit<ComponentRow, 'n'> = {
    trace_id: '',
    kind: '',
    object_id: '',
    ref: '',
    updated_at: '',
    caused_by_type: '',
    caused_by_id: '',
  }
  const only = (value: string): unknown[] => [value]
  return {
    find: prepared(build.selectFrom('traces').selectAll().where('id', '=', ''), only),
    findByTag: prepared(
      build.selectFrom('traces').selectAll().where('trace_tag', '=', '').orderBy('id', 'desc').limit(1),
      (tag: string) => [tag, 1],
    ),
    total: build.selectFrom('totals').select('count').where('name', '=', 'traces'),
    tagCount: prepared(build.selectFrom('trace_tag_counts').select('count').where('trace_tag', '=', ''), only),
    ruleCount: prepared(build.selectFrom('trace_rule_counts').select('count').where('rule_id', '=', ''), only),
    lastComponent: build.selectFrom('trace_components').select('n').orderBy('n', 'desc').limit(1),
    components: prepared(
      build
        .selectFrom('trace_components')
        .selectAll()
        .where('trace_id', '=', '')
        .where('kind', '=', '')
        .where('n', '>', 0)
        .where('n', '<=', 0)
        .orderBy('n')
        .limit(1),
      ({ traceId, kind, after, upTo, limit }: ComponentRange) => [traceId, kind, after, upTo, limit],
    ),
    insertTrace: prepared(build.insertInto('traces').values(trace), columnsOf(trace)),
    insertFirstTrace: prepared(
      build
        .insertInto('traces')
        .columns(['id', 'uid', 'trace_tag', 'start_timestamp'])
        .expression(
          build
            .selectNoFrom((on) => [
              on.val('').as('id'),
              on.val('').as('uid'),
              on.val('').as('tag'),
              on.val('').as('at'),
            ])
            .where((on) => on.not(on.exists(build.selectFrom('traces').select('id').where('trace_tag', '=', '')))),
        ),
      (row: TraceTable) => [row.id, row.uid, row.trace_tag, row.start_timestamp, row.trace_tag],
    ),
    insertComponent: prepared(build.insertInto('trace_components').values(component), columnsOf(component)),
  }
}
