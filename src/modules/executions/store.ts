/**
 * Tables `executions`, `execution_results` and `snapshots`: reads, and functions that return steps.
 * Lists and counts are in `list/store.ts`, output in `output/store.ts`, processes in `run/store.ts`.
 */
import { createHash } from 'node:crypto'
import { sql, type SqlBool } from 'kysely'
import {
  isAmong,
  columnsOf,
  prepared,
  type Database,
  type Step,
  type ExecutionResultTable,
  type ExecutionTable,
} from '../../db/index.ts'
import { microsOf } from '../../core/time.ts'
import { idBound } from '../../core/ids.ts'
import { Lru } from '../../lib/cache/index.ts'
import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
import { rememberJson, storedJson } from '../../core/stored-json.ts'
import { createRuleRunStore, type RuleRunStore } from './overlap/store.ts'
import { finalStatuses, openStatuses } from './state.ts'
import type { Execution, ExecutionOrigin, ExecutionStatus, Liveaction, LogEntry } from './types.ts'
import { readJson, writeJson, WrittenJson } from '../../lib/json/index.ts'

/** Of those that something happens to when their time has come. */
export type DueStatus = 'delayed' | 'pending' | 'started'

/** When an execution is due. */
export interface DueOf {
  id: string
  due_timestamp: string
}

// Spelled out, not bound, so that the partial indexes serve them.
const hasDueStatus = {
  delayed: sql<SqlBool>`status = 'delayed'`,
  pending: sql<SqlBool>`status = 'pending'`,
  // Workflows with a time limit.
  started: sql<SqlBool>`status in ('running', 'pausing', 'paused', 'resuming') and due_timestamp is not null`,
} as const satisfies Record<DueStatus, unknown>

export interface ExecutionStore {
  find(id: string): Execution | undefined
  /** With `result`: null when there is none. */
  findWithResult(id: string): Execution | undefined
  statusOf(id: string): ExecutionStatus | undefined
  /** Whether an execution has this live action. */
  hasLiveaction(id: string): boolean
  findByIds(ids: readonly string[]): Execution[]
  /** The ids in the same order, in batches whose rows and results do not exceed the limits; a larger one comes alone. */
  batches(ids: readonly string[], limits: { count: number; bytes: number }): Generator<string[]>
  lastId(): string | undefined
  /** Oldest first. */
  withStatus(status: ExecutionStatus, afterId: string, limit: number): Execution[]
  due(status: DueStatus, at: string, limit: number): Execution[]
  nextDue(status: DueStatus): string | undefined
  /** All with a time. */
  withDue(status: DueStatus): DueOf[]
  /** Gives one another time, if it still has any. Its revision stays: no change of it depends on that time. */
  putDue(due: DueOf): Step
  /** Gives one a time; as `putDue`, its revision stays. */
  setDue(due: DueOf): Step
  /** Those of an action that wait for others of it and not for a time, oldest first. */
  waitingOf(actionRef: string, afterId: string, limit: number): Execution[]
  /** References of the actions of which some are delayed, be it for a time or for others. */
  delayedActions(): string[]
  countWithStatus(...statuses: ExecutionStatus[]): number
  /** Of one parent, that have not ended, oldest first. */
  openChildren(parent: string, afterId: string, limit: number): Execution[]
  /** Those that rules started for it, oldest first. */
  ofTriggerInstance(id: string): string[]
  /** A long one as `WrittenJson`. */
  results(ids: readonly string[]): Map<string, unknown>
  resultText(id: string): string | undefined
  /** Of a result that has secrets. */
  sealedResult(id: string): string | undefined

  insert(execution: Execution): Step[]
  /** The runs of rules with `overlap` that have not ended. */
  ruleRuns: RuleRunStore
  /** Fails with `Conflict` unless the row is at the revision that was seen. */
  update(execution: Execution, seenRevision: number): Step[]

  /** Those made before a time, oldest first. */
  madeBefore(before: string, afterId: string, limit: number, actionRef?: string): Aged[]
  aged(ids: readonly string[]): Aged[]
  /** Those of a keeper made before another execution, oldest first. */
  rootsOf(keeper: Keeper, page: { after: string; before: string; limit: number }): Promise<Aged[]>
  /** The oldest of the newest so many of a keeper; undefined: there are fewer. */
  newestOf(keeper: Keeper, count: number): Promise<string | undefined>
  /** All that executions have started, and what those have, the highest levels first. */
  families(roots: readonly string[], limit: number): Promise<{ root: string; id: string; status: ExecutionStatus }[]>
  /** How many there are. */
  count(): number
  /** Traces of those that have not ended. */
  openTraces(): string[]
  /** With their results; only those that have ended. */
  deleteEnded(ids: readonly string[]): Step[]
}

/** Whose executions an own retention decides about, those at the top: of a rule, or of an action without those of rules. */
export type Keeper =
  { rule: { id: string; name: string } } | { action: string; except: readonly { id: string; name: string }[] }

/** What tells whether an execution may go. */
export interface Aged {
  id: string
  action_ref: string
  /** Name of the rule that started it, and its id. */
  rule: string | null
  rule_id: string | null
  status: ExecutionStatus
  parent: string | null
  start_timestamp: string
  end_timestamp: string | null
}

/** Long parameters that were read of late: each event of a workflow reads its execution. */
const MAX_LONG_PARAMETERS = 100
const MAX_LONG_PARAMETERS_CHARS = 16 * 1024 * 1024

/** Spelled out, not bound, so that the partial index on them serves it. */
const isWaiting = sql<SqlBool>`status = 'delayed' and due_timestamp is null`

/** SQLite knows the lengths without reading the texts. */
const rowBytes =
  sql<number>`octet_length(parameters) + octet_length(context) + octet_length(log) + octet_length(liveaction) + ifnull(octet_length(sealed_parameters), 0) + ifnull(result_size, 0)`.as(
    'bytes',
  )

export function createExecutionStore(database: Database): ExecutionStore {
  const { build } = database
  const snapshots = createSnapshots(database)
  const statements = prepareStatements(database)
  const ruleRuns = createRuleRunStore(database)

  const counted = build.selectFrom('execution_counts').select((on) => on.fn.sum<number | null>('count').as('n'))
  const agedRows = build
    .selectFrom('executions')
    .select(['id', 'action_ref', 'rule', 'origin_hash', 'status', 'parent', 'start_timestamp', 'end_timestamp'])
  type AgedRow = Omit<Aged, 'rule_id' | 'status'> & { status: string; origin_hash: string | null }
  const toAged = ({ origin_hash: hash, status, ...row }: AgedRow): Aged => ({
    ...row,
    status: status as ExecutionStatus, // only `state.ts` makes statuses
    rule_id: hash === null ? null : ((snapshots.get(hash) as Partial<ExecutionOrigin>).rule?.id ?? null), // stored under its own hash
  })
  /** On the scan thread: rows of others may lie between. */
  function ofKeeper(keeper: Keeper) {
    const ruleId = sql`json_extract((select record from snapshots where hash = origin_hash), '$.rule.id')`
    const roots = agedRows.where('parent', 'is', null)
    if ('rule' in keeper) {
      return roots.where('rule', '=', keeper.rule.name).where(sql<SqlBool>`${ruleId} = ${keeper.rule.id}`)
    }
    const others = roots.where('action_ref', '=', keeper.action)
    if (keeper.except.length === 0) return others
    return others.where(sql<SqlBool>`(rule is null or not exists (
      select 1 from json_each(${writeJson(keeper.except)}) as other
      where json_extract(other.value, '$.name') = rule and json_extract(other.value, '$.id') = ${ruleId}))`)
  }
  const toExecution = ({ parameters, ...row }: ExecutionTable): Execution =>
    executionOf(row, parametersOf(parameters), snapshots)

  function resultSteps({ id, result, sealed_result }: Execution): Step[] {
    if (result === undefined || result === null) return []
    return [
      { query: statements.putResult({ execution_id: id, result: storedJson(result), sealed: sealed_result ?? null }) },
    ]
  }

  const longParameters = new Lru<string, Parameters>(MAX_LONG_PARAMETERS, MAX_LONG_PARAMETERS_CHARS)

  const find = (id: string): Execution | undefined => {
    const known = longParameters.get(id)
    if (known !== undefined) {
      const rest = database.first(statements.findWithoutParameters(id))
      return rest && executionOf(rest, known, snapshots)
    }
    const row = database.first(statements.find(id))
    if (row === undefined) return undefined
    const execution = toExecution(row)
    const { length } = row.parameters
    if (length >= MIN_KEPT_LENGTH) longParameters.set(id, execution.parameters, length)
    return execution
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
    openChildren: (parent, afterId, limit) =>
      database
        .all(
          build
            .selectFrom('executions')
            .selectAll()
            .where('parent', '=', parent)
            .where(isAmong('status', openStatuses))
            .where('id', '>', afterId)
            .orderBy('id')
            .limit(limit),
        )
        .map(toExecution),
    ofTriggerInstance: (id) =>
      database
        .all(build.selectFrom('executions').select('id').where('trigger_instance', '=', id).orderBy('id'))
        .map((row) => row.id),
    statusOf: (id) =>
      database.first(build.selectFrom('executions').select('status').where('id', '=', id))?.status as
        ExecutionStatus | undefined, // only `state.ts` makes statuses
    hasLiveaction: (id) =>
      database.first(build.selectFrom('executions').select('id').where('liveaction_id', '=', id)) !== undefined,
    findByIds: (ids) =>
      ids.length === 0
        ? []
        : database.all(build.selectFrom('executions').selectAll().where(isAmong('id', ids))).map(toExecution),
    *batches(ids, limits) {
      for (let start = 0; start < ids.length; start += limits.count) {
        const some = ids.slice(start, start + limits.count)
        const rows = database.all(build.selectFrom('executions').select(['id', rowBytes]).where(isAmong('id', some)))
        const bytesOf = new Map(rows.map(({ id, bytes }) => [id, bytes]))
        let batch: string[] = []
        let total = 0
        for (const id of some) {
          const bytes = bytesOf.get(id) ?? 0
          if (batch.length > 0 && total + bytes > limits.bytes) {
            yield batch.splice(0)
            total = 0
          }
          batch.push(id)
          total += bytes
        }
        if (batch.length > 0) yield batch
      }
    },
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
    ...dueQueries(database, toExecution),
    countWithStatus: (...statuses) => database.first(counted.where('status', 'in', statuses))?.n ?? 0,
    results(ids) {
      const found = new Map<string, unknown>()
      if (ids.length === 0) return found
      for (const row of database.all(
        build.selectFrom('execution_results').selectAll().where(isAmong('execution_id', ids)),
      )) {
        found.set(row.execution_id, WrittenJson.of(row.result))
      }
      return found
    },
    resultText,
    ruleRuns,
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
            parameters: storedJson(execution.parameters),
            ...changing(execution),
          }),
        },
        ...resultSteps(execution),
        ...ruleRuns.begin(execution),
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

    madeBefore(before, afterId, limit, actionRef) {
      let query = agedRows
        .where('id', '>', afterId)
        .where('id', '<', idBound(microsOf(before)))
        .orderBy('id')
        .limit(limit)
      if (actionRef !== undefined) query = query.where('action_ref', '=', actionRef)
      return database.all(query).map(toAged)
    },
    aged: (ids) => (ids.length === 0 ? [] : database.all(agedRows.where(isAmong('id', ids))).map(toAged)),
    async rootsOf(keeper, { after, before, limit }) {
      const query = ofKeeper(keeper).where('id', '>', after).where('id', '<', before).orderBy('id').limit(limit)
      return (await database.scan(query)).map(toAged)
    },
    async newestOf(keeper, count) {
      const query = ofKeeper(keeper)
        .orderBy('id', 'desc')
        .limit(1)
        .offset(count - 1)
      return (await database.scan(query))[0]?.id
    },
    families: (roots, limit) =>
      database.scan({
        compile: () =>
          sql<{ root: string; id: string; status: ExecutionStatus }>`with recursive family (root, id, status) as (
            select root.value, executions.id, status from json_each(${writeJson(roots)}) as root
              join executions on executions.parent = root.value
            union all select root, executions.id, executions.status from family join executions on executions.parent = family.id
            limit ${limit}) select root, id, status from family`.compile(build),
      }),
    count: () => database.first(counted)?.n ?? 0,
    openTraces: () =>
      database
        .all(build.selectFrom('executions').select('trace_id').distinct().where(isAmong('status', openStatuses)))
        .map((row) => row.trace_id),
    deleteEnded: (ids) => [
      { query: build.deleteFrom('execution_results').where(isAmong('execution_id', ids)) },
      {
        query: build.deleteFrom('executions').where(isAmong('id', ids)).where(isAmong('status', finalStatuses)),
      },
    ],
  }
}

/** Reads of executions that wait for a time or for others. */
function dueQueries(
  database: Database,
  toExecution: (row: ExecutionTable) => Execution,
): Pick<ExecutionStore, 'due' | 'nextDue' | 'withDue' | 'putDue' | 'setDue' | 'waitingOf' | 'delayedActions'> {
  const { build } = database
  return {
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
    setDue: ({ id, due_timestamp }) => ({
      query: build.updateTable('executions').set({ due_timestamp }).where('id', '=', id),
    }),
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
  }
}

/** Shorter parameters are written again where their text is needed. */
const MIN_KEPT_LENGTH = 64 * 1024

type Parameters = Execution['parameters']

function parametersOf(text: string): Parameters {
  // Written by `insert` above from a value of this type.
  const parameters = readJson(text) as Parameters
  if (text.length >= MIN_KEPT_LENGTH) rememberJson(parameters, text)
  return parameters
}

type OtherColumns = Omit<ExecutionTable, 'parameters'>

function executionOf(row: OtherColumns, parameters: Parameters, snapshots: Snapshots): Execution {
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
    parameters,
    sealed_parameters: row.sealed_parameters,
    // Written by `insert` and `update` below from values of these types.
    context: readJson(row.context) as Record<string, unknown>,
    log: readJson(row.log) as LogEntry[],
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
    context: writeJson(execution.context),
    log: writeJson(execution.log),
    liveaction: writeJson(execution.liveaction),
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
  const changingValues = columnsOf(changing)
  const { parameters: _, ...others } = execution
  const names = Object.keys(others) as (keyof OtherColumns)[] // the sample has all columns
  return {
    find: prepared(build.selectFrom('executions').selectAll().where('id', '=', ''), (id: string) => [id]),
    findWithoutParameters: prepared(build.selectFrom('executions').select(names).where('id', '=', ''), (id: string) => [
      id,
    ]),
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
  }
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
  const records = new Lru<string, unknown>(MAX_SNAPSHOTS)

  return {
    step(record) {
      let hash = hashes.get(record)
      if (hash !== undefined && records.has(hash)) return { hash, steps: [] }
      const text = writeJson(record)
      hash ??= createHash('sha256').update(text).digest('base64url')
      hashes.set(record, hash)
      if (database.first(build.selectFrom('snapshots').select('hash').where('hash', '=', hash)) !== undefined) {
        records.set(hash, record)
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
        records.set(hash, record)
      }
      return record
    },
  }
}
