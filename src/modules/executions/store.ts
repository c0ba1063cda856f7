/**
 * Tables `executions`, `execution_results`, `output_records`, `processes`, `snapshots`, `execution_counts`.
 * Reads, and functions that return steps.
 */
import { createHash } from 'node:crypto'
import { sql, type ExpressionBuilder, type Expression, type SelectQueryBuilder, type SqlBool } from 'kysely'
import {
  isAmong,
  columnsOf,
  prepared,
  type Compilable,
  type Database,
  type Step,
  type ExecutionCountTable,
  type ExecutionResultTable,
  type ExecutionTable,
  type OutputRecordTable,
  type ProcessTable,
  type Tables,
} from '../../db/index.ts'
import { microsOf } from '../../core/time.ts'
import type { Place } from '../../http/index.ts'
import { idBound } from '../../core/ids.ts'
import { readJson } from '../../lib/text/index.ts'
import type { OutputType, RecordedProcess } from '../../runners/index.ts'
import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
import { resultJson } from '../../core/result-json.ts'
import { noPlace } from './output-place.ts'
import { finalStatuses, openStatuses } from './state.ts'
import type {
  Execution,
  ExecutionOrigin,
  ExecutionStatus,
  Liveaction,
  LogEntry,
  OutputPlace,
  OutputRecord,
} from './types.ts'

/** What a list can be narrowed by; `null` matches records where the attribute is missing. */
export interface ExecutionFilter {
  ids?: string[]
  action?: string
  status?: string
  /** Two or more, of which each will do. */
  statuses?: readonly string[]
  user?: string
  runner?: string
  parent?: string | null
  liveaction?: string
  rule?: string | null
  trigger?: string | null
  trigger_type?: string | null
  trigger_instance?: string | null
  /** Wire timestamps. */
  startedAfter?: string
  startedBefore?: string
  /** Inclusive. */
  startedFrom?: string
  startedTo?: string
  /** Of the id; lower case hexadecimal digits. */
  idBeginning?: string
  /** Each is in the action reference, the name of the rule or the acting user, whatever the case of its letters. */
  words?: readonly string[]
  /** Conditions on paths inside the record: `context.user` = `x`. */
  paths?: PathFilter[]
  /** What the caller may see, whatever else is asked for. */
  within?: Visibility
}

export interface PathFilter {
  column: PathColumn
  path: string
  value: string
  /** Of a parameter. Executions do not match if anything in it is secret: whoever asks could try out values. */
  unlessSecret?: string
}

/** Which executions somebody may see; what is absent does not limit. */
export interface Visibility {
  /** Executions of these actions. */
  actionRefs?: readonly string[]
  /** Executions of this acting user. */
  user?: string
}

/** Columns that hold what `filter` can look into. */
export type PathColumn = 'parameters' | 'context' | 'liveaction' | 'result'

export type SortColumn =
  'id' | 'status' | 'action_ref' | 'user' | 'runner' | 'parent' | 'rule' | 'trigger' | 'trigger_type'

export interface Sort {
  column: SortColumn
  direction: 'asc' | 'desc'
}

export interface ExecutionPage {
  filter: ExecutionFilter
  sort: Sort[]
  /** Only in the order of ids. */
  place?: Place
  limit: number | undefined
  offset: number
}

export type CountDimension = Exclude<keyof ExecutionCountTable, 'count' | 'child'>

/** Of those that something happens to when their time has come. */
export type DueStatus = 'delayed' | 'pending'

/** When an execution is due. */
export interface DueOf {
  id: string
  due_timestamp: string
}

// Spelled out, not bound, so that the partial indexes serve them.
const hasDueStatus = {
  delayed: sql<SqlBool>`status = 'delayed'`,
  pending: sql<SqlBool>`status = 'pending'`,
} as const satisfies Record<DueStatus, unknown>

export interface ExecutionStore {
  find(id: string): Execution | undefined
  /** With `result`: null when there is none. */
  findWithResult(id: string): Execution | undefined
  statusOf(id: string): ExecutionStatus | undefined
  findByIds(ids: readonly string[]): Execution[]
  lastId(): string | undefined
  /** Oldest first. */
  withStatus(status: ExecutionStatus, afterId: string, limit: number): Execution[]
  due(status: DueStatus, at: string, limit: number): Execution[]
  nextDue(status: DueStatus): string | undefined
  /** All with a time. */
  withDue(status: DueStatus): DueOf[]
  /** Gives one another time, if it still has any. Its revision stays: no change of it depends on that time. */
  putDue(due: DueOf): Step
  /** Those of an action that wait for others of it and not for a time, oldest first. */
  waitingOf(actionRef: string, afterId: string, limit: number): Execution[]
  /** References of the actions of which some are delayed, be it for a time or for others. */
  delayedActions(): string[]
  countWithStatus(...statuses: ExecutionStatus[]): number
  page(page: ExecutionPage): Promise<string[]>
  total(filter: ExecutionFilter): Promise<number>
  /** Distinct values that executions have, `''` for none. */
  distinct(dimension: CountDimension, within?: Visibility): Promise<string[]>
  /** Of what there are executions. */
  actionRefs(): string[]
  /** Oldest first. */
  childrenOf(parents: readonly string[], limit?: number): { id: string; parent: string }[]
  /** Those that rules started for it, oldest first. */
  ofTriggerInstance(id: string): string[]
  results(ids: readonly string[]): Map<string, unknown>
  resultText(id: string): string | undefined
  /** Of a result that has secrets. */
  sealedResult(id: string): string | undefined

  insert(execution: Execution): Step[]
  /** Fails with `Conflict` unless the row is at the revision that was seen. */
  update(execution: Execution, seenRevision: number): Step[]

  /** @param before what the execution has written before it */
  insertOutput(record: OutputRecord, before: OutputPlace): Step
  outputAfter(executionId: string, seq: number, limit: number, type?: OutputType): OutputRecord[]
  /** Those with a `seq` in a range, both ends included, which the caller keeps narrow. */
  outputBetween(executionId: string, from: number, to: number, type?: OutputType): PlacedRecord[]
  /** Of the first record at or after a `seq`. */
  outputPlace(executionId: string, seq: number): NumberedPlace | undefined
  lastOutput(executionId: string): PlacedRecord | undefined
  lastSeq(executionId: string): number

  /** Those made before a time, oldest first. */
  madeBefore(before: string, afterId: string, limit: number, actionRef?: string): Aged[]
  /** How many there are. */
  count(): number
  /** Traces of those that have not ended. */
  openTraces(): string[]
  /** At most so many records of them. */
  deleteOutputOf(ids: readonly string[], limit: number): Step
  /** With their results; only those that have ended. */
  deleteEnded(ids: readonly string[]): Step[]
  /** All output records in the order in which they were stored. */
  outputFrom(afterRow: number, limit: number): { row: number; id: string }[]
  deleteOutputRows(from: number, upTo: number): Step

  insertProcess(executionId: string, process: RecordedProcess): Step
  deleteProcess(executionId: string): Step
  processes(): Map<string, RecordedProcess>
}

export interface NumberedPlace extends OutputPlace {
  seq: number
}

/** A record, and what there is before it. */
export interface PlacedRecord extends NumberedPlace, OutputRecord {}

/** What tells whether an execution may go. */
export interface Aged {
  id: string
  status: ExecutionStatus
  parent: string | null
  start_timestamp: string
  end_timestamp: string | null
}

/** So few executions that may be seen are rather found and sorted than looked for among all the others. */
const MAX_SORTED = 5000
/** So many ways through an index are merged into one in the order of ids. */
const MAX_MERGED = 20
/** What limits what may be seen, and where it stands. */
const visibleBy = [
  ['actionRefs', 'action_ref'],
  ['user', 'user'],
] as const

/** What words are looked for in. */
const wordColumns = ['action_ref', 'rule', 'user'] as const

/** Spelled out, not bound, so that the partial index on them serves it. */
const isWaiting = sql<SqlBool>`status = 'delayed' and due_timestamp is null`

/** An offset beyond this is counted off on the scan thread. */
const MAX_QUICK_OFFSET = 10_000

export function createExecutionStore(database: Database): ExecutionStore {
  const { build } = database
  const snapshots = createSnapshots(database)
  const statements = prepareStatements(database)

  function toExecution(row: ExecutionTable): Execution {
    return {
      id: row.id,
      revision: row.revision,
      status: row.status as ExecutionStatus, // only `state.ts` makes statuses
      liveaction_id: row.liveaction_id,
      action_ref: row.action_ref,
      user: row.user,
      action: snapshots.get(row.action_hash) as ActionRecord, // stored under its own hash
      runner: snapshots.get(row.runner_hash) as RunnerTypeRecord, // as above
      trace_id: row.trace_id,
      parent: row.parent,
      rule: row.rule,
      trigger: row.trigger,
      trigger_type: row.trigger_type,
      trigger_instance: row.trigger_instance,
      origin: row.origin_hash === null ? null : (snapshots.get(row.origin_hash) as ExecutionOrigin), // as above
      start_timestamp: row.start_timestamp,
      end_timestamp: row.end_timestamp,
      elapsed_seconds: row.elapsed_seconds,
      delay: row.delay,
      due_timestamp: row.due_timestamp,
      result_size: row.result_size,
      // Written by `insert` and `update` below from values of these types.
      parameters: readJson(row.parameters) as Record<string, unknown>,
      sealed_parameters: row.sealed_parameters,
      context: readJson(row.context) as Record<string, unknown>,
      log: JSON.parse(row.log) as LogEntry[],
      liveaction: readJson(row.liveaction) as Liveaction,
    }
  }

  function changing(execution: Execution): Changing {
    return {
      revision: execution.revision,
      status: execution.status,
      end_timestamp: execution.end_timestamp,
      elapsed_seconds: execution.elapsed_seconds,
      due_timestamp: execution.due_timestamp,
      result_size: execution.result_size,
      context: JSON.stringify(execution.context),
      log: JSON.stringify(execution.log),
      liveaction: JSON.stringify(execution.liveaction),
    }
  }

  function resultSteps({ id, result, sealed_result }: Execution): Step[] {
    if (result === undefined || result === null) return []
    return [
      { query: statements.putResult({ execution_id: id, result: resultJson(result), sealed: sealed_result ?? null }) },
    ]
  }

  const find = (id: string): Execution | undefined => {
    const row = database.first(build.selectFrom('executions').selectAll().where('id', '=', id))
    return row === undefined ? undefined : toExecution(row)
  }

  /** Executions that may be seen; `max` or more if there are so many. */
  function countUpTo(max: number, within: Visibility): number {
    const some = withinCounts(build.selectFrom('execution_counts').select('count'), within).limit(max)
    return database.first(build.selectFrom(some.as('some')).select((on) => on.fn.sum<number>('count').as('n')))?.n ?? 0
  }

  /** There may be many combinations to be added up: who looks for words waits for that elsewhere. */
  async function sumOf(counts: Compilable<Counted>, { words }: ExecutionFilter): Promise<number> {
    const row = words === undefined ? database.first(counts) : (await database.scan(counts))[0]
    return row?.n ?? 0
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
  async function bestWay(filter: ExecutionFilter): Promise<Way | undefined> {
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
      const count = await sumOf(counts, filter)
      if (count < fewest) [best, fewest] = [way, count]
    }
    return best
  }

  function selectIds(where: ReturnType<typeof conditions>, { before, after }: Place = {}) {
    let query = build.selectFrom('executions').select('id').where(where)
    if (before !== undefined) query = query.where('id', '<', before)
    if (after !== undefined) query = query.where('id', '>', after)
    return query
  }

  const resultText = (id: string): string | undefined =>
    database.first(build.selectFrom('execution_results').select('result').where('execution_id', '=', id))?.result

  return {
    find,
    findWithResult(id) {
      const execution = find(id)
      if (execution === undefined) return undefined
      const text = resultText(id)
      execution.result = text === undefined ? null : readJson(text)
      return execution
    },
    ofTriggerInstance: (id) =>
      database
        .all(build.selectFrom('executions').select('id').where('trigger_instance', '=', id).orderBy('id'))
        .map((row) => row.id),
    statusOf: (id) =>
      database.first(build.selectFrom('executions').select('status').where('id', '=', id))?.status as
        ExecutionStatus | undefined, // only `state.ts` makes statuses
    findByIds: (ids) =>
      ids.length === 0
        ? []
        : database.all(build.selectFrom('executions').selectAll().where(isAmong('id', ids))).map(toExecution),
    lastId: () => database.first(build.selectFrom('executions').select('id').orderBy('id', 'desc').limit(1))?.id,
    withStatus: (status, afterId, limit) =>
      database
        .all(
          build
            .selectFrom('executions')
            .selectAll()
            .where('status', '=', status)
            .where('id', '>', afterId)
            .orderBy('id')
            .limit(limit),
        )
        .map(toExecution),
    due: (status, at, limit) =>
      database
        .all(
          build
            .selectFrom('executions')
            .selectAll()
            .where(hasDueStatus[status])
            .where('due_timestamp', '<=', at)
            .orderBy('due_timestamp')
            .limit(limit),
        )
        .map(toExecution),
    nextDue: (status) =>
      database.first(
        build
          .selectFrom('executions')
          .select('due_timestamp')
          .where(hasDueStatus[status])
          .where('due_timestamp', 'is not', null)
          .orderBy('due_timestamp')
          .limit(1),
      )?.due_timestamp ?? undefined,
    withDue: (status) =>
      database
        .all(
          build
            .selectFrom('executions')
            .select(['id', 'due_timestamp'])
            .where(hasDueStatus[status])
            .where('due_timestamp', 'is not', null),
        )
        .flatMap(({ id, due_timestamp }) => (due_timestamp === null ? [] : [{ id, due_timestamp }])),
    putDue: ({ id, due_timestamp }) => ({
      query: build
        .updateTable('executions')
        .set({ due_timestamp })
        .where('id', '=', id)
        .where('due_timestamp', 'is not', null),
    }),
    waitingOf: (actionRef, afterId, limit) =>
      database
        .all(
          build
            .selectFrom('executions')
            .selectAll()
            .where(isWaiting)
            .where('action_ref', '=', actionRef)
            .where('id', '>', afterId)
            .orderBy('id')
            .limit(limit),
        )
        .map(toExecution),
    delayedActions: () =>
      database
        .all(
          build
            .selectFrom('execution_counts')
            .select('action_ref')
            .distinct()
            .where('status', '=', 'delayed')
            .where('count', '>', 0),
        )
        .map((row) => row.action_ref),
    countWithStatus: (...statuses) => countRows(database, (where) => where('status', 'in', statuses)),

    async page({ filter: given, sort, limit, offset, place }) {
      const way = await bestWay(given)
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
    async total(filter) {
      if (isCounted(filter)) {
        const counts = countQuery(database, (where) => countConditions(filter, where), filter.within, filter.words)
        return sumOf(counts, filter)
      }
      const way = await bestWay(filter)
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
    actionRefs: () => database.all(statements.actionRefs).flatMap(({ action_ref: ref }) => ref ?? []),
    childrenOf(parents, limit) {
      if (parents.length === 0) return []
      const query = build.selectFrom('executions').select(['id', 'parent']).where(isAmong('parent', parents))
      return database
        .all(query.orderBy('id').limit(limit ?? -1))
        .flatMap(({ id, parent }) => (parent === null ? [] : [{ id, parent }]))
    },
    results(ids) {
      const found = new Map<string, unknown>()
      if (ids.length === 0) return found
      for (const row of database.all(
        build.selectFrom('execution_results').selectAll().where(isAmong('execution_id', ids)),
      )) {
        found.set(row.execution_id, readJson(row.result))
      }
      return found
    },
    resultText,
    sealedResult: (id) =>
      database.first(build.selectFrom('execution_results').select('sealed').where('execution_id', '=', id))?.sealed ??
      undefined,

    insert(execution) {
      const action = snapshots.step(execution.action)
      const runner = snapshots.step(execution.runner)
      const origin = execution.origin === null ? undefined : snapshots.step(execution.origin)
      return [
        ...action.steps,
        ...runner.steps,
        ...(origin?.steps ?? []),
        {
          query: statements.insertExecution({
            id: execution.id,
            liveaction_id: execution.liveaction_id,
            action_ref: execution.action_ref,
            runner: execution.runner.name,
            user: execution.user,
            action_hash: action.hash,
            runner_hash: runner.hash,
            trace_id: execution.trace_id,
            parent: execution.parent,
            rule: execution.rule,
            trigger: execution.trigger,
            trigger_type: execution.trigger_type,
            trigger_instance: execution.trigger_instance,
            origin_hash: origin?.hash ?? null,
            sealed_parameters: execution.sealed_parameters,
            start_timestamp: execution.start_timestamp,
            delay: execution.delay,
            parameters: JSON.stringify(execution.parameters),
            ...changing(execution),
          }),
        },
        ...resultSteps(execution),
      ]
    },
    update: (execution, seenRevision) => [
      {
        query: statements.updateExecution({
          changing: changing(execution),
          id: execution.id,
          seen: seenRevision,
        }),
        expect: 1,
      },
      ...resultSteps(execution),
    ],

    insertOutput: (record, before) => ({ query: statements.insertOutput({ record, before }) }),
    outputAfter(executionId, seq, limit, type) {
      let query = build
        .selectFrom('output_records')
        .select(outputColumns)
        .where('execution_id', '=', executionId)
        .where('seq', '>', seq)
        .orderBy('seq')
        .limit(limit)
      if (type !== undefined) query = query.where('output_type', '=', type)
      return database.all(query).map(toOutputRecord)
    },
    outputBetween(executionId, from, to, type) {
      const range = { executionId, from, to }
      const query =
        type === undefined ? statements.outputBetween(range) : statements.outputOfTypeBetween({ ...range, type })
      return database.all(query).map(toOutputRecord)
    },
    outputPlace: (executionId, seq) => database.first(statements.outputPlace({ executionId, seq })),
    lastOutput(executionId) {
      const row = database.first(statements.lastOutput(executionId))
      return row === undefined ? undefined : toOutputRecord(row)
    },
    lastSeq: (executionId) =>
      database.first(
        build
          .selectFrom('output_records')
          .select('seq')
          .where('execution_id', '=', executionId)
          .orderBy('seq', 'desc')
          .limit(1),
      )?.seq ?? 0,

    madeBefore(before, afterId, limit, actionRef) {
      let query = build
        .selectFrom('executions')
        .select(['id', 'status', 'parent', 'start_timestamp', 'end_timestamp'])
        .where('id', '>', afterId)
        .where('id', '<', idBound(microsOf(before)))
        .orderBy('id')
        .limit(limit)
      if (actionRef !== undefined) query = query.where('action_ref', '=', actionRef)
      return database.all(query) as Aged[] // only `state.ts` makes statuses
    },
    count: () => countRows(database, () => undefined),
    openTraces: () =>
      database
        .all(build.selectFrom('executions').select('trace_id').distinct().where(isAmong('status', openStatuses)))
        .map((row) => row.trace_id),
    deleteOutputOf: (ids, limit) => ({
      query: build.deleteFrom('output_records').where(
        sql<SqlBool>`rowid in (
          select rowid from output_records where ${isAmong('execution_id', ids)} limit ${limit})`,
      ),
    }),
    deleteEnded: (ids) => [
      { query: build.deleteFrom('execution_results').where(isAmong('execution_id', ids)) },
      {
        query: build.deleteFrom('executions').where(isAmong('id', ids)).where(isAmong('status', finalStatuses)),
      },
    ],
    outputFrom: (afterRow, limit) =>
      database.all(
        build
          .selectFrom('output_records')
          .select([sql<number>`rowid`.as('row'), 'id'])
          .where(sql<SqlBool>`rowid > ${afterRow}`)
          .orderBy(sql`rowid`)
          .limit(limit),
      ),
    deleteOutputRows: (from, upTo) => ({
      query: build.deleteFrom('output_records').where(sql<SqlBool>`rowid between ${from} and ${upTo}`),
    }),

    insertProcess: (executionId, { pid, startTime, bootId }) => ({
      query: statements.putProcess({ execution_id: executionId, pid, start_time: startTime, boot_id: bootId }),
    }),
    deleteProcess: (executionId) => ({ query: statements.deleteProcess(executionId) }),
    processes: () =>
      new Map(
        database
          .all(build.selectFrom('processes').selectAll())
          .map((row) => [row.execution_id, { pid: row.pid, startTime: row.start_time, bootId: row.boot_id }]),
      ),
  }
}

type Changing = Pick<
  ExecutionTable,
  | 'revision'
  | 'status'
  | 'end_timestamp'
  | 'elapsed_seconds'
  | 'due_timestamp'
  | 'result_size'
  | 'context'
  | 'log'
  | 'liveaction'
>

const placeColumns = Object.keys(noPlace) as (keyof OutputPlace)[] // all that it has
const outputColumns = ['execution_id', 'seq', 'id', 'output_type', 'data', 'timestamp', 'host'] as const

/** What every execution needs; the values here only shape the statements. */
function prepareStatements({ build }: Database) {
  const changing: Changing = {
    revision: 0,
    status: '',
    end_timestamp: '',
    elapsed_seconds: 0,
    due_timestamp: '',
    result_size: 0,
    context: '',
    log: '',
    liveaction: '',
  }
  const execution: ExecutionTable = {
    id: '',
    liveaction_id: '',
    action_ref: '',
    runner: '',
    user: '',
    action_hash: '',
    runner_hash: '',
    trace_id: '',
    parent: '',
    rule: '',
    trigger: '',
    trigger_type: '',
    trigger_instance: '',
    origin_hash: '',
    sealed_parameters: null,
    start_timestamp: '',
    delay: 0,
    parameters: '',
    ...changing,
  }
  const output: OutputRecordTable = {
    execution_id: '',
    seq: 0,
    id: '',
    output_type: '',
    data: '',
    timestamp: '',
    host: null,
    ...noPlace,
  }
  const outputValues = columnsOf<OutputRecord>({
    execution_id: '',
    seq: 0,
    id: '',
    output_type: 'stdout',
    data: '',
    timestamp: '',
    host: null,
  })
  const placeValues = columnsOf<OutputPlace>(noPlace)
  const outputBetween = build
    .selectFrom('output_records')
    .selectAll()
    .where('execution_id', '=', '')
    .where('seq', '>=', 0)
    .where('seq', '<=', 0)
    .orderBy('seq')
  const changingValues = columnsOf(changing)
  return {
    insertExecution: prepared(build.insertInto('executions').values(execution), columnsOf(execution)),
    updateExecution: prepared(
      build.updateTable('executions').set(changing).where('id', '=', '').where('revision', '=', 0),
      (use: { changing: Changing; id: string; seen: number }) => [...changingValues(use.changing), use.id, use.seen],
    ),
    putResult: prepared(
      build
        .insertInto('execution_results')
        .values({ execution_id: '', result: '', sealed: '' })
        .onConflict((on) => on.column('execution_id').doUpdateSet({ result: '', sealed: '' })),
      (row: ExecutionResultTable) => [row.execution_id, row.result, row.sealed, row.result, row.sealed],
    ),
    insertOutput: prepared(
      build.insertInto('output_records').values(output),
      ({ record, before }: { record: OutputRecord; before: OutputPlace }) => [
        ...outputValues(record),
        ...placeValues(before),
      ],
    ),
    outputBetween: prepared(
      outputBetween,
      ({ executionId, from, to }: { executionId: string; from: number; to: number }) => [executionId, from, to],
    ),
    outputOfTypeBetween: prepared(
      outputBetween.where('output_type', '=', ''),
      (range: { executionId: string; from: number; to: number; type: OutputType }) => [
        range.executionId,
        range.from,
        range.to,
        range.type,
      ],
    ),
    outputPlace: prepared(
      build
        .selectFrom('output_records')
        .select(['seq', ...placeColumns])
        .where('execution_id', '=', '')
        .where('seq', '>=', 0)
        .orderBy('seq')
        .limit(1),
      ({ executionId, seq }: { executionId: string; seq: number }) => [executionId, seq, 1],
    ),
    lastOutput: prepared(
      build.selectFrom('output_records').selectAll().where('execution_id', '=', '').orderBy('seq', 'desc').limit(1),
      (executionId: string) => [executionId, 1],
    ),
    putProcess: prepared(
      build
        .insertInto('processes')
        .values({ execution_id: '', pid: 0, start_time: '', boot_id: '' })
        .onConflict((on) => on.column('execution_id').doUpdateSet({ pid: 0, start_time: '', boot_id: '' })),
      ({ execution_id, pid, start_time, boot_id }: ProcessTable) => {
        const values = [pid, start_time, boot_id]
        return [execution_id, ...values, ...values]
      },
    ),
    // From each to the next one: of one action there can be as many rows as statuses times users.
    actionRefs: build
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
      .where('action_ref', 'is not', null),
    deleteProcess: prepared(build.deleteFrom('processes').where('execution_id', '=', ''), (id: string) => [id]),
  }
}

function toOutputRecord<Row extends { output_type: string }>(row: Row): Row & { output_type: OutputType } {
  return { ...row, output_type: row.output_type as OutputType } // runners emit no other types
}

interface Snapshots {
  /** Hash of a record, and the steps that store it if this process has not done so yet. */
  step(record: ActionRecord | RunnerTypeRecord | ExecutionOrigin): { hash: string; steps: Step[] }
  get(hash: string): unknown
}

const MAX_SNAPSHOTS = 2000

/** Equal records are stored once and parsed once. */
function createSnapshots(database: Database): Snapshots {
  const { build } = database
  const hashes = new WeakMap<object, string>()
  const records = new Map<string, unknown>()

  function remember(hash: string, record: unknown): void {
    records.set(hash, record)
    if (records.size > MAX_SNAPSHOTS) {
      const oldest = records.keys().next()
      if (oldest.done !== true) records.delete(oldest.value)
    }
  }

  return {
    step(record) {
      let hash = hashes.get(record)
      if (hash !== undefined && records.has(hash)) return { hash, steps: [] }
      const text = JSON.stringify(record)
      hash ??= createHash('sha256').update(text).digest('base64url')
      hashes.set(record, hash)
      if (database.first(build.selectFrom('snapshots').select('hash').where('hash', '=', hash)) !== undefined) {
        remember(hash, record)
        return { hash, steps: [] }
      }
      // Remembered only once it is read back: the unit that stores it may still be refused.
      return {
        hash,
        steps: [
          {
            query: build
              .insertInto('snapshots')
              .values({ hash, record: text })
              .onConflict((on) => on.doNothing()),
          },
        ],
      }
    },
    get(hash) {
      let record = records.get(hash)
      if (record === undefined) {
        const row = database.first(build.selectFrom('snapshots').select('record').where('hash', '=', hash))
        record = row === undefined ? {} : readJson(row.record)
        remember(hash, record)
      }
      return record
    },
  }
}

/** Filters that `execution_counts` can answer, whatever their combination. */
function isCounted({ parent, within: _w, statuses: _s, words: _t, ...filter }: ExecutionFilter): boolean {
  const others = Object.entries(filter).filter(([name]) => !(countedFilters as readonly string[]).includes(name))
  return !isGiven(parent) && others.every(([, value]) => value === undefined)
}

const startedByRule = ['rule', 'trigger', 'trigger_type', 'trigger_instance'] as const

/**
 * Whether one index serves the whole query: at most one equality, in the order of ids. Everything else may have to look at
 * every execution there is and goes to the scan thread.
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

/** As SQLite does. */
const asciiLower = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

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

function pathCondition({ column, path, value }: PathFilter): Expression<SqlBool> {
  // SQLite's own text of `true` would be 1.
  const isValue = (json: Expression<unknown>): Expression<SqlBool> =>
    sql<SqlBool>`case json_type(${json}, ${path}) when 'true' then 'true' when 'false' then 'false'
      else cast(json_extract(${json}, ${path}) as text) end = ${value}`
  if (column === 'result') {
    return sql<SqlBool>`exists (select 1 from execution_results as r where r.execution_id = executions.id
      and ${isValue(sql.ref('r.result'))})`
  }
  return isValue(sql.ref(column))
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

function countRows(database: Database, narrow: (where: CountWhere) => void): number {
  return database.first(countQuery(database, narrow))?.n ?? 0
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
