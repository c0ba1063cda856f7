/**
 * Lists and counts of executions, from the tables `executions` and `execution_counts`. SQLite does not know how many
 * executions have a value, so this file chooses the index for each query.
 */
import { sql, type Expression, type ExpressionBuilder, type SelectQueryBuilder, type SqlBool } from 'kysely'
import {
  isAmong,
  type Compilable,
  type Database,
  type ExecutionCountTable,
  type ExecutionTable,
  type Tables,
} from '../../../db/index.ts'
import { asciiLower } from '../../../lib/text/index.ts'
import { idBound } from '../../../core/ids.ts'
import { microsOf } from '../../../core/time.ts'
import type { Place } from '../../../http/index.ts'
import type {
  CountDimension,
  ExecutionFilter,
  ExecutionPage,
  PathFilter,
  SnapshotPart,
  Sort,
  Visibility,
} from './filter.ts'
import { referencedNames } from './filter.ts'

export interface ExecutionListStore {
  /** Ids. */
  page(page: ExecutionPage): Promise<string[]>
  total(filter: ExecutionFilter): Promise<number>
  /** Distinct values that executions have, `''` for none. */
  distinct(dimension: CountDimension, within?: Visibility): Promise<string[]>
  /** References of the actions that have executions. */
  actionRefs(): string[]
  /** Oldest first. */
  childrenOf(parents: readonly string[], limit?: number): { id: string; parent: string }[]
}

/** Up to this many visible executions are found and sorted; more are searched in the order of their ids. */
const MAX_SORTED = 5000
/** Ranges of one index that are merged into one in the order of ids. */
const MAX_MERGED = 20
/** What limits visibility, and its column. */
const visibleBy = [
  ['actionRefs', 'action_ref'],
  ['user', 'user'],
] as const

/** Columns that the words of a search are looked for in. */
const wordColumns = ['action_ref', 'rule', 'user'] as const

/** An offset beyond this is counted off on the scan thread. */
const MAX_QUICK_OFFSET = 10_000

export function createExecutionListStore(database: Database): ExecutionListStore {
  const { build } = database
  const chooseAccessPath = createPlanner(database)
  const actionRefs = actionRefsQuery(database)

  function selectIds(where: ReturnType<typeof conditions>, { before, after }: Place = {}) {
    let query = build.selectFrom('executions').select('id').where(where)
    if (before !== undefined) query = query.where('id', '<', before)
    if (after !== undefined) query = query.where('id', '>', after)
    return query
  }

  return {
    async page({ filter: asked, sort, limit, offset, place }) {
      const given = withReferences(database, asked)
      const way = await chooseAccessPath(given)
      if (leadsNowhere(way)) return []
      const filter = hasWordsBesides(way, given) ? given : withoutWords(given)
      const isInOrder = sort.every(({ column }) => column === 'id')
      const ids = (one: Way | undefined): ReturnType<typeof selectIds> => selectIds(conditions(filter, one), place)
      // SQLite would find what has one of several values and sort all of it; what is in order already it merges.
      const [first, ...others] = isInOrder && way !== undefined ? eachOf(way) : [way]
      let query = others.reduce((merged, one) => merged.unionAll(ids(one)), ids(first))
      for (const { column, direction } of sort) query = query.orderBy(column, direction)
      if (sort.at(-1)?.column !== 'id') query = query.orderBy('id', 'desc')
      query = query.limit(limit ?? -1).offset(offset)
      const rows = isQuick(given, sort, offset, limit) ? database.all(query) : await database.scan(query)
      return rows.map((row) => row.id)
    },
    async total(asked) {
      const filter = withReferences(database, asked)
      if (isCounted(filter)) {
        const counts = countQuery(database, (where) => countConditions(filter, where), filter.within, filter.words)
        return sumOf(database, counts, filter)
      }
      const way = await chooseAccessPath(filter)
      if (leadsNowhere(way)) return 0
      const query = build
        .selectFrom('executions')
        .select((on) => on.fn.countAll<number>().as('n'))
        .where(conditions(filter, way))
      const [row] =
        filter.ids === undefined && filter.liveaction === undefined ? await database.scan(query) : database.all(query)
      return row?.n ?? 0
    },
    async distinct(dimension, within = {}) {
      const query = build.selectFrom('execution_counts').select(dimension).distinct().orderBy(dimension)
      return (await database.scan(withinCounts(query, within))).map((row) => String(row[dimension]))
    },
    actionRefs: () => database.all(actionRefs).flatMap(({ action_ref: ref }) => ref ?? []),
    childrenOf(parents, limit) {
      if (parents.length === 0) return []
      const query = build.selectFrom('executions').select(['id', 'parent']).where(isAmong('parent', parents))
      return database
        .all(query.orderBy('id').limit(limit ?? -1))
        .flatMap(({ id, parent }) => (parent === null ? [] : [{ id, parent }]))
    },
  }
}

const REF_PATH = '$."ref"'
const nameIn = (ref: string): string => ref.slice(ref.indexOf('.') + 1)

/**
 * A filter by the reference of a rule, trigger or trigger type: columns hold their names, and the snapshot of the origin
 * the references. A name with a dot wins over a reference.
 */
function withReferences(database: Database, filter: ExecutionFilter): ExecutionFilter {
  const { build } = database
  let found = filter
  for (const name of referencedNames) {
    const value = filter[name]
    if (!isGiven(value) || value.indexOf('.') <= 0) continue
    const named = build.selectFrom('execution_counts').select('count').where(name, '=', value).limit(1)
    if (database.first(named) !== undefined) continue
    found = {
      ...found,
      [name]: nameIn(value),
      paths: [...(found.paths ?? []), { column: name, path: REF_PATH, value }],
    }
  }
  // The names in these have an index.
  for (const { column, path, value } of found.paths ?? []) {
    const name = referencedNames.find((one) => one === column)
    if (name !== undefined && path === REF_PATH) found = { [name]: nameIn(value), ...found }
  }
  return found
}

/** From each reference to the next one: one action can have as many rows as statuses times users. */
function actionRefsQuery({ build }: Database) {
  return build
    .withRecursive('refs', (with_) =>
      with_
        .selectFrom('execution_counts')
        .select((on) => on.fn.min<string | null>('action_ref').as('action_ref'))
        .unionAll(
          with_
            .selectFrom('refs')
            .where('refs.action_ref', 'is not', null)
            .select((on) =>
              on
                .selectFrom('execution_counts as next')
                .whereRef('next.action_ref', '>', 'refs.action_ref')
                .select((inner) => inner.fn.min('next.action_ref').as('action_ref'))
                .as('action_ref'),
            ),
        ),
    )
    .selectFrom('refs')
    .select('action_ref')
    .where('action_ref', 'is not', null)
}

/** Chooses the access path of a query. */
function createPlanner(database: Database): (filter: ExecutionFilter) => Promise<Way | undefined> {
  const { build } = database

  /** Number of visible executions; stops counting at `max` or above. */
  function countUpTo(max: number, within: Visibility): number {
    const some = withinCounts(build.selectFrom('execution_counts').select('count'), within).limit(max)
    return database.first(build.selectFrom(some.as('some')).select((on) => on.fn.sum<number>('count').as('n')))?.n ?? 0
  }

  /** Values that what matches the words has in a column, one more than can be merged at most. */
  async function valuesOfWords(column: (typeof wordColumns)[number], words: readonly string[]): Promise<string[]> {
    const query = build
      .selectFrom('execution_counts')
      .select(column)
      .distinct()
      .where(haveWords(words))
      .limit(MAX_MERGED + 1)
    return (await database.scan(query)).map((row) => row[column])
  }

  /**
   * The index that is to be walked, when there is a choice: the one that leads to the fewest executions. SQLite knows how
   * many values an index has, not how many executions have this one, and would look for the three runs of a user among a
   * million that succeeded.
   */
  return async function chooseAccessPath(filter: ExecutionFilter): Promise<Way | undefined> {
    if (filter.ids !== undefined || filter.idBeginning !== undefined) return { column: 'id' }
    const few = (['liveaction', 'trigger_instance', 'parent'] as const).find((name) => isGiven(filter[name]))
    if (few !== undefined) return { column: columnOf[few] }
    let best: Way | undefined
    let fewest = Infinity
    for (const [name, column] of visibleBy) {
      const visible = filter.within?.[name]
      if (visible === undefined) continue
      const count = countUpTo(MAX_SORTED, { [name]: visible })
      if (count < MAX_SORTED && count < fewest) [best, fewest] = [{ column }, count]
    }
    const ways: { column: CountDimension; values: readonly string[] }[] = countedFilters.flatMap((name) => {
      const value = filter[name]
      return isGiven(value) ? [{ column: columnOf[name], values: [value] }] : []
    })
    if (filter.statuses !== undefined) ways.push({ column: 'status', values: filter.statuses })
    if (filter.words !== undefined) {
      for (const column of wordColumns) {
        const values = await valuesOfWords(column, filter.words)
        // The index of rules does not lead to what no rule has started.
        if (values.length <= MAX_MERGED && !values.includes('')) ways.push({ column, values })
      }
    }
    if (ways.length === 1 && best === undefined) return ways[0]
    for (const way of ways) {
      const counts = countQuery(database, (where) => where(way.column, 'in', way.values))
      const count = await sumOf(database, counts, filter)
      if (count < fewest) [best, fewest] = [way, count]
    }
    return best
  }
}

/** A search for words may have to add up many combinations, so it runs on the scan thread. */
async function sumOf(database: Database, counts: Compilable<Counted>, { words }: ExecutionFilter): Promise<number> {
  const row = words === undefined ? database.first(counts) : (await database.scan(counts))[0]
  return row?.n ?? 0
}

/** Filters that `execution_counts` can answer, whatever their combination. */
function isCounted({ parent, within: _w, statuses: _s, words: _t, ...filter }: ExecutionFilter): boolean {
  const others = Object.entries(filter).filter(([name]) => !(countedFilters as readonly string[]).includes(name))
  return !isGiven(parent) && others.every(([, value]) => value === undefined)
}

const startedByRule = ['rule', 'trigger', 'trigger_type', 'trigger_instance'] as const

/**
 * Whether one index serves the whole query: at most one equality, in the order of ids. All other queries may have to read
 * every execution, and run on the scan thread.
 */
function isQuick(filter: ExecutionFilter, sort: readonly Sort[], offset: number, limit: number | undefined): boolean {
  if (filter.ids !== undefined || filter.liveaction !== undefined) return true
  if (offset > MAX_QUICK_OFFSET || limit === undefined || limit > MAX_QUICK_OFFSET) return false
  if (filter.within !== undefined || filter.words !== undefined) return false
  // Their indexes hold only what is there.
  if (startedByRule.some((name) => filter[name] === null)) return false
  const { startedAfter: _a, startedBefore: _b, startedFrom: _f, startedTo: _t, ...equalities } = filter
  const given = Object.values(equalities).filter((value) => value !== undefined)
  const inOrder = sort.length === 0 || (sort.length === 1 && sort[0]?.column === 'id')
  return given.length <= 1 && filter.paths === undefined && inOrder
}

type On = ExpressionBuilder<Tables, 'executions'>

/** Filters by an equal value, and where it stands. */
const columnOf = {
  action: 'action_ref',
  status: 'status',
  user: 'user',
  runner: 'runner',
  parent: 'parent',
  liveaction: 'liveaction_id',
  rule: 'rule',
  trigger: 'trigger',
  trigger_type: 'trigger_type',
  trigger_instance: 'trigger_instance',
} as const satisfies Partial<Record<keyof ExecutionFilter, keyof ExecutionTable>>

/** Of how many executions these are true is in `execution_counts`. */
const countedFilters = ['action', 'status', 'user', 'runner', 'rule', 'trigger', 'trigger_type'] as const

function isGiven(value: string | null | undefined): value is string {
  return value !== undefined && value !== null
}

/** An index to be walked, by its column; `values`: where in it, instead of where the filter says. */
interface Way {
  column: keyof ExecutionTable
  values?: readonly string[]
}

function eachOf({ column, values }: Way): [Way, ...Way[]] {
  const [first, ...others] = (values ?? []).map((value): Way => ({ column, values: [value] }))
  return first === undefined ? [{ column }] : [first, ...others]
}

/** No execution has what was looked for. */
const leadsNowhere = (way: Way | undefined): boolean => way?.values?.length === 0

/** Whether words are to be looked for in rows: not where each value that leads to them has all of them. */
function hasWordsBesides(way: Way | undefined, { words = [] }: ExecutionFilter): boolean {
  if (way?.values === undefined || !wordColumns.some((column) => column === way.column)) return words.length > 0
  return !way.values.every((value) => words.every((word) => asciiLower(value).includes(asciiLower(word))))
}

function withoutWords(filter: ExecutionFilter): ExecutionFilter {
  const others = { ...filter }
  delete others.words
  return others
}

/** @param way undefined: SQLite chooses */
function conditions(filter: ExecutionFilter, way: Way | undefined): (on: On) => Expression<SqlBool> {
  // With a sign in front it is no column any more, and no index fits it.
  const left = (column: keyof ExecutionTable): Expression<unknown> =>
    way === undefined || (way.column === column && way.values === undefined)
      ? sql.ref(column)
      : sql`+${sql.ref(column)}`
  return (on) => {
    const all: Expression<SqlBool>[] = []
    const [value, ...others] = way?.values ?? []
    if (way !== undefined && value !== undefined) {
      all.push(others.length === 0 ? on(way.column, '=', value) : on(way.column, 'in', [value, ...others]))
    }
    if (filter.ids !== undefined) all.push(on('id', 'in', filter.ids))
    if (filter.idBeginning !== undefined) {
      all.push(on('id', '>=', filter.idBeginning))
      // Behind every digit.
      all.push(on('id', '<', `${filter.idBeginning}g`))
    }
    const { statuses } = filter
    const hasStatus = way?.column === 'status' && way.values?.every((one) => statuses?.includes(one)) === true
    if (statuses !== undefined && !hasStatus) all.push(isAmong(left('status'), statuses))
    if (filter.words !== undefined) {
      all.push(sql<SqlBool>`(+action_ref, +user, ifnull(rule, '')) in
        (select c.action_ref, c.user, c.rule from execution_counts as c where ${haveWords(filter.words)})`)
    }
    for (const [name, column] of Object.entries(columnOf)) {
      const value = filter[name as keyof typeof columnOf] // its own keys
      if (value === undefined) continue
      all.push(value === null ? sql<SqlBool>`${left(column)} is null` : sql<SqlBool>`${left(column)} = ${value}`)
    }
    // Ids are made from the start time, so the primary key serves time ranges.
    if (filter.startedFrom !== undefined) all.push(on('id', '>=', idBound(microsOf(filter.startedFrom))))
    if (filter.startedAfter !== undefined) all.push(on('id', '>=', idBound(microsOf(filter.startedAfter) + 1)))
    if (filter.startedTo !== undefined) all.push(on('id', '<', idBound(microsOf(filter.startedTo) + 1)))
    if (filter.startedBefore !== undefined) all.push(on('id', '<', idBound(microsOf(filter.startedBefore))))
    for (const each of filter.paths ?? []) {
      all.push(pathCondition(each))
      if (each.unlessSecret !== undefined) all.push(hasNoSecret(each.unlessSecret))
    }
    const { actionRefs, user } = filter.within ?? {}
    if (actionRefs !== undefined) all.push(isAmong(left('action_ref'), actionRefs))
    if (user !== undefined) all.push(sql<SqlBool>`${left('user')} = ${user}`)
    return on.and(all)
  }
}

/** Where the parts are that many executions share. */
const snapshotHashes: Readonly<Record<SnapshotPart, 'action_hash' | 'runner_hash' | 'origin_hash'>> = {
  action: 'action_hash',
  runner: 'runner_hash',
  rule: 'origin_hash',
  trigger: 'origin_hash',
  trigger_type: 'origin_hash',
  trigger_instance: 'origin_hash',
}

function pathCondition({ column, path, value }: PathFilter): Expression<SqlBool> {
  // SQLite's own text of `true` would be 1, and that of a number another than the JSON has.
  const isValue = (json: Expression<unknown>): Expression<SqlBool> =>
    sql<SqlBool>`case json_type(${json}, ${path}) when 'true' then 'true' when 'false' then 'false'
      when 'integer' then ${json} -> ${path} when 'real' then ${json} -> ${path}
      else cast(json_extract(${json}, ${path}) as text) end = ${value}`
  if (column === 'result') {
    return sql<SqlBool>`exists (select 1 from execution_results as r where r.execution_id = executions.id
      and ${isValue(sql.ref('r.result'))})`
  }
  const hash = snapshotHashes[column as SnapshotPart]
  if (hash === undefined) return isValue(sql.ref(column))
  const inside = hash === 'origin_hash' ? sql`(s.record -> ${`$.${column}`})` : sql.ref('s.record')
  return sql<SqlBool>`exists (select 1 from snapshots as s where s.hash = ${sql.ref(`executions.${hash}`)}
    and ${isValue(inside)})`
}

/** By the schemas that the execution was made with. */
function hasNoSecret(parameter: string): Expression<SqlBool> {
  const schemaIn = (part: string): Expression<string> =>
    sql<string>`ifnull(json_extract(s.record, ${`$.${part}."${parameter}"`}), '')`
  return sql<SqlBool>`not exists (select 1 from snapshots as s
    where s.hash in (executions.action_hash, executions.runner_hash)
    and instr(${schemaIn('parameters')} || ${schemaIn('runner_parameters')}, '"secret":true') > 0)`
}

/** Of `execution_counts`. */
function haveWords(words: readonly string[]): Expression<SqlBool> {
  const text = sql<string>`lower(action_ref || ' ' || rule || ' ' || user)`
  return sql.join(
    words.map((word) => sql<SqlBool>`instr(${text}, lower(${word})) > 0`),
    sql` and `,
  ) as Expression<SqlBool> // conditions with `and` between them
}

type CountWhere = (
  column: keyof ExecutionCountTable,
  operator: '=' | 'in',
  value: string | number | readonly string[],
) => void

interface Counted {
  n: number | null
}

function countQuery(
  database: Database,
  narrow: (where: CountWhere) => void,
  within: Visibility = {},
  words: readonly string[] = [],
): Compilable<Counted> {
  let query = database.build.selectFrom('execution_counts').select((on) => on.fn.sum<number | null>('count').as('n'))
  if (words.length > 0) query = query.where(haveWords(words))
  narrow((column, operator, value) => {
    query = query.where(column, operator, value)
  })
  return withinCounts(query, within)
}

function withinCounts<O>(
  query: SelectQueryBuilder<Tables, 'execution_counts', O>,
  { actionRefs, user }: Visibility,
): SelectQueryBuilder<Tables, 'execution_counts', O> {
  let narrowed = query
  if (actionRefs !== undefined) narrowed = narrowed.where(isAmong('action_ref', actionRefs))
  if (user !== undefined) narrowed = narrowed.where('user', '=', user)
  return narrowed
}

function countConditions(filter: ExecutionFilter, where: CountWhere): void {
  for (const name of countedFilters) {
    const value = filter[name]
    if (value !== undefined) where(columnOf[name], '=', value ?? '')
  }
  if (filter.statuses !== undefined) where('status', 'in', filter.statuses)
  if (filter.parent === null) where('child', '=', 0)
}
