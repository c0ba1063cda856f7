/**
 * Tables `workflow_executions`, `workflow_definitions`, `workflow_actions`, and lists of `workflow_tasks`: reads, and
 * functions that return steps. The rows of a run are stored and loaded in `state/store.ts`.
 */
import { createHash } from 'node:crypto'
import { sql, type SqlBool } from 'kysely'
import {
  columnsOf,
  isAmong,
  prepared,
  type Database,
  type Step,
  type WorkflowActionTable,
  type WorkflowExecutionTable,
  type WorkflowTaskTable,
} from '../../db/index.ts'
import { readJson } from '../../lib/json/index.ts'
import {
  emptyState,
  isCompleted,
  type Arrival,
  type Changes,
  type InstanceRow,
  type ItemCounts,
  type State,
  type TaskStatus,
  type WorkflowRow,
  type WorkflowStatus,
} from './conductor/index.ts'
import { createStateStore, readValues, writeValues, type Open, type Seal, type StateStore } from './state/store.ts'

/** A run, without its rows and values. */
export interface WorkflowHeader {
  readonly id: string
  /** Id of the execution that runs it. */
  readonly execution: string
  /** Ids of earlier executions, separated by spaces, of which tasks still ran when it was re-run; null: none */
  readonly earlier: string | null
  /** Id of the workflow at the top of its tree; its own id, if it is that one. */
  readonly root: string
  /** Name of the runner type. */
  readonly runner: string
  /** `hashOf` the text of its definition. */
  readonly definition: string
  readonly start_timestamp: string
  readonly revision: number
  readonly status: WorkflowStatus
  /** null: it is not over */
  readonly end_timestamp: string | null
  /** The request that is on its way to the children; null: all have it */
  readonly cascade: CascadeRequest | null
  /** Children up to this one have it. */
  readonly cascade_after: string
  /** Output records of its execution; the lines in them, and their bytes. */
  readonly line_records: number
  readonly lines: number
  readonly line_bytes: number
}

/** `withdraw`: the workflow has failed, and what waits in it for somebody has become useless. */
export type CascadeRequest = 'pause' | 'resume' | 'cancel' | 'withdraw'

export type NewWorkflow = Pick<WorkflowHeader, 'id' | 'execution' | 'root' | 'runner' | 'start_timestamp'>

export interface LoadedWorkflow {
  readonly header: WorkflowHeader
  /** Those that its expressions have read. */
  readonly secrets: readonly unknown[]
  readonly state: State
}

/** An execution that a workflow has started. */
export interface WorkflowAction {
  /** Id of the execution. */
  readonly execution: string
  readonly workflow: string
  readonly instance: number
  /** null: the task has no items */
  readonly item: number | null
  readonly attempt: number
  /** Id of the task execution: one per instance and attempt. */
  readonly task_execution: string
}

/** An instance that has started, as lists show it. */
export interface WorkflowTask {
  readonly number: number
  /** Index in `Definition.tasks`. */
  readonly task: number
  readonly route: number
  readonly status: TaskStatus
  readonly order: number
  readonly retries: number
  readonly items: ItemCounts | null
  /** Of the latest attempt; null: it is still to start. */
  readonly start_timestamp: string | null
  readonly end_timestamp: string | null
}

/** An instance with how it came about, and what it has led to. */
export interface LinkedTask extends WorkflowTask {
  readonly pass: number
  readonly retry: InstanceRow['retry']
  /** The arrivals at a join are rows of their own: `arrivals` counts them. */
  readonly previous: readonly Pick<Arrival, 'from' | 'transition'>[]
  readonly arrivals: number
  readonly taken: InstanceRow['taken']
}

/** Instances by status; those that have started and are none of these wait for their next attempt. */
export type TaskCounts = Pick<
  WorkflowRow,
  'starts' | 'commands' | 'active' | 'held' | 'succeeded' | 'failed' | 'canceled'
>

export interface WorkflowStore {
  find(id: string): WorkflowHeader | undefined
  /** The workflow that the execution runs. */
  ofExecution(execution: string): WorkflowHeader | undefined
  definitionText(hash: string): string | undefined
  output(id: string, open: Open): Readonly<Record<string, unknown>> | null
  /**
   * Reads a run. Nobody may change it until it is loaded.
   *
   * @throws Error when somebody did
   */
  load(id: string, open: Open): Promise<LoadedWorkflow | undefined>
  /** Those that are not over, in the order of their ids. */
  open(afterId: string, limit: number): WorkflowHeader[]
  countOpen(): number
  /** Those with a request that is on its way to their children, in the order of their ids. */
  cascadingIds(afterId: string, limit: number): string[]
  /** Those that start tasks as soon as they get the event `continue`. */
  readyIds(afterId: string, limit: number): string[]

  actionOf(execution: string): WorkflowAction | undefined
  /** @param item null: the task has no items */
  latestAction(workflow: string, instance: number, item: number | null): WorkflowAction | undefined
  /** The latest of each item, in the order of items; at most `limit`. */
  latestActions(workflow: string, instance: number, fromItem: number, limit: number): WorkflowAction[]
  /** All of an instance, in the order of items and then of time. */
  actionsOf(workflow: string, instance: number, after: WorkflowAction | undefined, limit: number): WorkflowAction[]
  /**
   * Instances that have started, in that order.
   *
   * @param after position of the last one that is known; -1: none
   * @param without tasks whose instances are left out; default: none
   */
  tasks(workflow: string, after: number, limit: number, without?: readonly number[]): LinkedTask[]
  /** Arrivals at a join, first ones first. */
  arrivalsAt(workflow: string, instance: number, limit: number): Pick<Arrival, 'from' | 'transition'>[]
  /** Of instances that have started: the task, and the position. */
  placesOf(workflow: string, instances: readonly number[]): Pick<WorkflowTask, 'number' | 'task' | 'order'>[]
  counts(workflow: string): TaskCounts | undefined
  findTask(workflow: string, instance: number): WorkflowTask | undefined

  /** A new run: its state is `emptyState()`. */
  insert(workflow: NewWorkflow, definition: string): Changed
  /**
   * What an event changes. Fails with `Conflict` unless the stored run has the revision of the header.
   *
   * @param at wire timestamp of the event
   */
  save(header: WorkflowHeader, changes: Changes, options: { seal: Seal; at: string }): Changed
  /** Fails a run whose rows cannot be read. Fails with `Conflict` as `save` does. */
  giveUp(header: WorkflowHeader, at: string): Changed
  /** Gives the run to another execution. @param earlier as in the header. Fails with `Conflict` as `save` does. */
  reassign(header: WorkflowHeader, execution: string, earlier: string | null): Changed
  /** How far a request has come on its way to the children. @param request null: all have it */
  putCascade(header: WorkflowHeader, request: CascadeRequest | null, after: string): Changed
  putAction(action: WorkflowAction): Step
  /** The counts of lines in the header. */
  putLines(header: WorkflowHeader): Step
  /** Secrets that an event has read first. @param header after the event @param sealed JSON array, encrypted */
  putSecrets(header: WorkflowHeader, sealed: string): Step

  /** In the order of ids. @param bound the id of a workflow that started at that time would be above it */
  startedBefore(bound: string, afterId: string, limit: number): AgedWorkflow[]
  /** Executions that workflows have started → those that run these workflows. */
  holdersOf(executions: readonly string[]): Map<string, string>
  /** Takes workflows that are over from the executions that run them. Nobody finds such a workflow again. */
  detach(executions: readonly string[]): Step
  /** Workflows that nobody finds any more. */
  detached(limit: number): DetachedWorkflow[]
  /** Deletes rows of the workflows, at most so many of each table: some are left if a step changes as many. */
  deleteRows(workflows: readonly string[], limit: number): Step[]
  /** Deletes workflows that have no other rows left, and the texts that no other workflow uses. */
  deleteHeaders(workflows: readonly DetachedWorkflow[]): Step[]
}

export interface AgedWorkflow {
  readonly id: string
  readonly execution: string
  /** Wire timestamp; null: it is open */
  readonly end: string | null
  /** The same of the workflow at the top of its tree; undefined: that is gone */
  readonly rootEnd: string | null | undefined
  /** Tasks that still run. */
  readonly active: number
}

export type DetachedWorkflow = Pick<WorkflowHeader, 'id' | 'definition'>

/** Steps, and the header as it is when they are stored. */
export interface Changed {
  readonly steps: Step[]
  readonly header: WorkflowHeader
}

export const hashOf = (definition: string): string => createHash('sha256').update(definition).digest('base64url')

/** Spelled out, not bound, so that the partial index serves it. */
const isReady = sql<SqlBool>`((status in ('running', 'resuming') and ready > 0) or (status = 'failed' and cleanups > 0))`

const headerColumns = [
  'id',
  'execution',
  'earlier',
  'root',
  'runner',
  'definition',
  'start_timestamp',
  'revision',
  'status',
  'end_timestamp',
  'cascade',
  'cascade_after',
  'line_records',
  'lines',
  'line_bytes',
] as const

export function createWorkflowStore(database: Database): WorkflowStore {
  const { build } = database
  const rows = createStateStore(database)
  const statements = prepareStatements(database)

  const find = (id: string): WorkflowHeader | undefined =>
    database.first(statements.find(id)) as WorkflowHeader | undefined // only the conductor makes statuses

  return {
    find,
    ofExecution: (execution) => database.first(statements.ofExecution(execution)) as WorkflowHeader | undefined, // as above
    definitionText: (hash) =>
      database.first(build.selectFrom('workflow_definitions').select('text').where('hash', '=', hash))?.text,
    output(id, open) {
      const text = database.first(build.selectFrom('workflow_executions').select('output').where('id', '=', id))?.output
      return toOutput(text ?? null, open)
    },
    async load(id, open) {
      const row = database.first(build.selectFrom('workflow_executions').selectAll().where('id', '=', id))
      const header = row === undefined ? undefined : toHeader(row)
      if (row === undefined || header === undefined) return undefined
      const { state, secrets } = await rows.load(id, toWorkflowRow(row, open), open)
      if (find(id)?.revision !== header.revision)
        throw new Error(`the workflow ${id} has changed while it was loaded: lock it, or load it again`)
      return { header, secrets, state }
    },
    cascadingIds: (afterId, limit) =>
      database
        .all(
          build
            .selectFrom('workflow_executions')
            .select('id')
            .where('cascade', 'is not', null)
            .where('id', '>', afterId)
            .orderBy('id')
            .limit(limit),
        )
        .map(({ id }) => id),
    open: (afterId, limit) =>
      database.all(
        build
          .selectFrom('workflow_executions')
          .select(headerColumns)
          .where('end_timestamp', 'is', null)
          .where('execution', 'is not', null)
          .where('id', '>', afterId)
          .orderBy('id')
          .limit(limit),
      ) as WorkflowHeader[], // as above
    countOpen: () =>
      database.first(
        build
          .selectFrom('workflow_executions')
          .select((on) => on.fn.countAll<number>().as('n'))
          .where('end_timestamp', 'is', null),
      )?.n ?? 0,
    readyIds: (afterId, limit) =>
      database
        .all(
          build
            .selectFrom('workflow_executions')
            .select('id')
            .where(isReady)
            .where('id', '>', afterId)
            .orderBy('id')
            .limit(limit),
        )
        .map(({ id }) => id),
    ...actionQueries(database, statements),
    ...taskQueries(database),

    insert(workflow, text) {
      const header = {
        ...workflow,
        definition: hashOf(text),
        revision: 0,
        status: newWorkflow.status,
        end_timestamp: null,
        earlier: null,
        cascade: null,
        cascade_after: '',
        ...noLines,
      }
      const steps = [
        {
          query: build
            .insertInto('workflow_definitions')
            .values({ hash: header.definition, text })
            .onConflict((on) => on.doNothing()),
        },
        {
          query: statements.insert({
            ...header,
            ...newWorkflow,
            output: null,
          }),
        },
      ]
      return { steps, header }
    },
    save(before, changes, { seal, at }) {
      const { workflow } = changes
      const header: WorkflowHeader = {
        ...before,
        revision: before.revision + 1,
        status: workflow.status,
        end_timestamp: isCompleted(workflow.status) ? (before.end_timestamp ?? at) : null,
      }
      const changing = {
        ...workflow,
        revision: header.revision,
        end_timestamp: header.end_timestamp,
        output: workflow.output === null ? null : writeValues(workflow.output, seal),
      }
      const update = { query: statements.update({ changing, id: before.id, seen: before.revision }), expect: 1 }
      return { steps: [update, ...rows.save(before.id, changes, seal, at)], header }
    },
    giveUp(before, at) {
      const changed = { revision: before.revision + 1, status: 'failed', end_timestamp: at } as const
      const query = build
        .updateTable('workflow_executions')
        .set({ ...changed, ready: 0, cleanups: 0, active: 0, held: 0, request: null, cascade: null, cascade_after: '' })
        .where('id', '=', before.id)
        .where('revision', '=', before.revision)
      return { steps: [{ query, expect: 1 }], header: { ...before, ...changed, cascade: null, cascade_after: '' } }
    },
    reassign(before, execution, earlier) {
      const header = { ...before, execution, earlier, revision: before.revision + 1 }
      const query = build
        .updateTable('workflow_executions')
        .set({ execution, earlier, revision: header.revision, ...noLines })
        .where('id', '=', before.id)
        .where('revision', '=', before.revision)
      return { steps: [{ query, expect: 1 }], header }
    },
    putCascade: (before, cascade, after) => ({
      steps: [
        {
          query: build
            .updateTable('workflow_executions')
            .set({ cascade, cascade_after: after })
            .where('id', '=', before.id),
        },
      ],
      header: { ...before, cascade, cascade_after: after },
    }),
    putAction: (action) => ({ query: statements.putAction(action) }),
    putLines: (header) => ({ query: statements.putLines(header) }),
    putSecrets: ({ id, revision }, sealed) => rows.saveSecrets(id, revision, sealed),
    ...removal(database, rows),
  }
}

type Statements = ReturnType<typeof prepareStatements>

function actionQueries(
  database: Database,
  statements: Statements,
): Pick<WorkflowStore, 'actionOf' | 'latestAction' | 'latestActions' | 'actionsOf'> {
  const { build } = database
  const ofInstance = (workflow: string, instance: number) =>
    build.selectFrom('workflow_actions').where('workflow', '=', workflow).where('instance', '=', instance)
  return {
    actionOf: (execution) => database.first(statements.actionOf(execution)),
    latestAction: (workflow, instance, item) => database.first(statements.latestAction({ workflow, instance, item })),
    latestActions: (workflow, instance, fromItem, limit) =>
      // SQLite takes the other columns from the row with the maximum.
      database.all(
        ofInstance(workflow, instance)
          .select(['workflow', 'instance', 'item', 'attempt', 'task_execution'])
          .select((on) => on.fn.max('execution').as('execution'))
          .where('item', '>=', fromItem)
          .groupBy('item')
          .orderBy('item')
          .limit(limit),
      ),
    actionsOf(workflow, instance, after, limit) {
      let query = ofInstance(workflow, instance).selectAll().orderBy('item').orderBy('execution').limit(limit)
      if (after?.item === null) query = query.where('item', 'is', null).where('execution', '>', after.execution)
      else if (after !== undefined)
        query = query.where(sql<SqlBool>`(item, execution) > (${after.item}, ${after.execution})`)
      return database.all(query)
    },
  }
}

function removal(
  database: Database,
  rows: StateStore,
): Pick<WorkflowStore, 'startedBefore' | 'holdersOf' | 'detach' | 'detached' | 'deleteRows' | 'deleteHeaders'> {
  const { build } = database
  return {
    startedBefore: (bound, afterId, limit) =>
      database
        .all(
          build
            .selectFrom('workflow_executions as own')
            .leftJoin('workflow_executions as top', 'top.id', 'own.root')
            .select(['own.id', 'own.execution', 'own.end_timestamp as end', 'own.active'])
            .select(['top.id as root', 'top.end_timestamp as rootEnd'])
            .where('own.id', '>', afterId)
            .where('own.id', '<', bound)
            .where('own.execution', 'is not', null)
            .$narrowType<{ execution: string }>()
            .orderBy('own.id')
            .limit(limit),
        )
        .map(({ root, rootEnd, ...row }) => ({ ...row, rootEnd: root === null ? undefined : rootEnd })),
    holdersOf(executions) {
      const found = database.all(
        build
          .selectFrom('workflow_actions')
          .innerJoin('workflow_executions', 'workflow_executions.id', 'workflow_actions.workflow')
          .select(['workflow_actions.execution as child', 'workflow_executions.execution as holder'])
          .where(isAmong('workflow_actions.execution', executions)),
      )
      return new Map(found.flatMap(({ child, holder }) => (holder === null ? [] : [[child, holder]])))
    },
    detach: (executions) => ({
      query: build
        .updateTable('workflow_executions')
        .set((on) => ({ execution: null, revision: on('revision', '+', 1) }))
        .where(isAmong('execution', executions))
        .where('end_timestamp', 'is not', null),
    }),
    detached: (limit) =>
      database.all(
        build
          .selectFrom('workflow_executions')
          .select(['id', 'definition'])
          .where('execution', 'is', null)
          .limit(limit),
      ),
    deleteRows: (workflows, limit) => [
      ...rows.deleteSome(workflows, limit),
      {
        query: build
          .deleteFrom('workflow_actions')
          .where(
            'execution',
            'in',
            build.selectFrom('workflow_actions').select('execution').where(isAmong('workflow', workflows)).limit(limit),
          ),
      },
    ],
    deleteHeaders: (workflows) => [
      {
        query: build
          .deleteFrom('workflow_executions')
          .where(
            isAmong(
              'id',
              workflows.map(({ id }) => id),
            ),
          )
          .where('execution', 'is', null),
      },
      {
        query: build
          .deleteFrom('workflow_definitions')
          .where(
            isAmong(
              'hash',
              workflows.map(({ definition }) => definition),
            ),
          )
          .where(sql<SqlBool>`not exists (select 1 from workflow_executions where definition = hash)`),
      },
    ],
  }
}

function taskQueries(
  database: Database,
): Pick<WorkflowStore, 'tasks' | 'findTask' | 'arrivalsAt' | 'placesOf' | 'counts'> {
  const { build } = database
  const started = build.selectFrom('workflow_tasks').select(taskColumns).where('start_order', 'is not', null)
  const findTask = prepared(
    started.where('workflow', '=', '').where('number', '=', 0),
    (use: { workflow: string; instance: number }) => [use.workflow, use.instance],
  )
  const toTask = ({ start_order: order, items, status, ...row }: TaskColumns): WorkflowTask => ({
    ...row,
    order: order ?? 0,
    status: status as TaskStatus, // written by `save`, as are the counts
    items: items === null ? null : (readJson(items) as ItemCounts),
  })
  return {
    tasks: (workflow, after, limit, without = []) =>
      database
        .all(
          started
            .select(['pass', 'retry', 'previous', 'arrivals', 'taken'])
            .where('workflow', '=', workflow)
            .where('start_order', '>', after)
            .where((where) => where.not(isAmong('task', without)))
            .orderBy('start_order')
            .limit(limit),
        )
        .map(({ pass, retry, previous, arrivals, taken, ...row }) => ({
          ...toTask(row),
          pass,
          arrivals,
          retry: retry === null ? null : (readJson(retry) as LinkedTask['retry']), // written by `save`, as these two
          previous: readJson(previous) as LinkedTask['previous'],
          taken: taken === null ? null : (readJson(taken) as LinkedTask['taken']),
        })),
    arrivalsAt: (workflow, instance, limit) =>
      database.all(
        build
          .selectFrom('workflow_arrivals')
          .select(['source as from', 'transition'])
          .where('workflow', '=', workflow)
          .where('instance', '=', instance)
          .orderBy('position')
          .limit(limit),
      ),
    placesOf: (workflow, instances) =>
      instances.length === 0
        ? []
        : database
            .all(
              build
                .selectFrom('workflow_tasks')
                .select(['number', 'task', 'start_order'])
                .where('workflow', '=', workflow)
                .where(isAmong('number', instances)),
            )
            .map(({ number, task, start_order: order }) => ({ number, task, order: order ?? 0 })),
    counts: (workflow) =>
      database.first(
        build
          .selectFrom('workflow_executions')
          .select(['starts', 'commands', 'active', 'held', 'succeeded', 'failed', 'canceled'])
          .where('id', '=', workflow),
      ),
    findTask(workflow, instance) {
      const row = database.first(findTask({ workflow, instance }))
      return row === undefined ? undefined : toTask(row)
    },
  }
}

const taskColumns = [
  'number',
  'task',
  'route',
  'status',
  'start_order',
  'retries',
  'items',
  'start_timestamp',
  'end_timestamp',
] as const
type TaskColumns = Pick<WorkflowTaskTable, (typeof taskColumns)[number]>

const { workflow: newWorkflow } = emptyState()
/** Of an execution that has written none. */
export const noLines = { line_records: 0, lines: 0, line_bytes: 0 }

const toOutput = (text: string | null, open: Open): WorkflowRow['output'] =>
  text === null ? null : (readValues(text, open) as WorkflowRow['output']) // written by `save`

/** undefined: it is being deleted */
function toHeader(row: WorkflowExecutionTable): WorkflowHeader | undefined {
  if (row.execution === null) return undefined
  const { id, execution, earlier, root, runner, definition, start_timestamp, revision, end_timestamp, cascade_after } =
    row
  const { line_records, lines, line_bytes } = row
  const status = row.status as WorkflowStatus // only the conductor makes statuses
  const cascade = row.cascade as WorkflowHeader['cascade'] // only `putCascade` writes it
  return {
    id,
    execution,
    earlier,
    root,
    runner,
    definition,
    start_timestamp,
    revision,
    status,
    end_timestamp,
    cascade,
    cascade_after,
    line_records,
    lines,
    line_bytes,
  }
}

function toWorkflowRow(row: WorkflowExecutionTable, open: Open): WorkflowRow {
  const { request, instances, contexts, routes, errors, starts, commands, active, held, ready, cleanups } = row
  const { idle, published } = row
  const { succeeded, failed, canceled } = row
  return {
    status: row.status as WorkflowStatus, // written by `save`, as is the request
    request: request as WorkflowRow['request'],
    instances,
    contexts,
    routes,
    errors,
    starts,
    commands,
    active,
    held,
    succeeded,
    failed,
    canceled,
    ready,
    cleanups,
    idle,
    published,
    output: toOutput(row.output, open),
  }
}

/** What every event needs; the values here only shape the statements. */
function prepareStatements({ build }: Database) {
  const changing = {
    revision: 0,
    status: '',
    end_timestamp: '',
    request: '',
    instances: 0,
    contexts: 0,
    routes: 0,
    errors: 0,
    starts: 0,
    commands: 0,
    active: 0,
    held: 0,
    succeeded: 0,
    failed: 0,
    canceled: 0,
    ready: 0,
    cleanups: 0,
    idle: 0,
    published: 0,
    output: '',
  } satisfies Partial<WorkflowExecutionTable>
  const workflow: WorkflowExecutionTable = {
    id: '',
    execution: '',
    earlier: null,
    root: '',
    runner: '',
    definition: '',
    start_timestamp: '',
    cascade: '',
    cascade_after: '',
    ...changing,
    ...noLines,
  }
  const action: WorkflowActionTable = {
    execution: '',
    workflow: '',
    instance: 0,
    item: 0,
    attempt: 0,
    task_execution: '',
  }
  const lineValues = columnsOf<typeof noLines>(noLines)
  const changingValues = columnsOf<Pick<WorkflowExecutionTable, keyof typeof changing>>(changing)
  return {
    insert: prepared(build.insertInto('workflow_executions').values(workflow), columnsOf(workflow)),
    update: prepared(
      build.updateTable('workflow_executions').set(changing).where('id', '=', '').where('revision', '=', 0),
      (use: { changing: Pick<WorkflowExecutionTable, keyof typeof changing>; id: string; seen: number }) => [
        ...changingValues(use.changing),
        use.id,
        use.seen,
      ],
    ),
    putLines: prepared(
      build.updateTable('workflow_executions').set(noLines).where('id', '=', ''),
      ({ id, ...header }: WorkflowHeader) => [...lineValues(header), id],
    ),
    find: prepared(
      build
        .selectFrom('workflow_executions')
        .select(headerColumns)
        .where('id', '=', '')
        .where('execution', 'is not', null),
      (id: string) => [id],
    ),
    ofExecution: prepared(
      build.selectFrom('workflow_executions').select(headerColumns).where('execution', '=', ''),
      (execution: string) => [execution],
    ),
    putAction: prepared(build.replaceInto('workflow_actions').values(action), columnsOf(action)),
    actionOf: prepared(
      build.selectFrom('workflow_actions').selectAll().where('execution', '=', ''),
      (execution: string) => [execution],
    ),
    latestAction: prepared(
      build
        .selectFrom('workflow_actions')
        .selectAll()
        .where('workflow', '=', '')
        .where('instance', '=', 0)
        .where(sql<SqlBool>`item is ${null}`)
        .orderBy('execution', 'desc')
        .limit(1),
      (use: { workflow: string; instance: number; item: number | null }) => [use.workflow, use.instance, use.item, 1],
    ),
  }
}
