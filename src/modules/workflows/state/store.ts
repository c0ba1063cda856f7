/** Tables of the rows of a run: the steps that store what an event changes, and how a state is loaded from them. */
import { sql, type RawBuilder } from 'kysely'
import { columnsOf, prepared, type Compilable, type Database, type Step, type Tables } from '../../../db/index.ts'
import { readJson, writeJson } from '../../../lib/json/index.ts'
import {
  addRows,
  emptyState,
  errorKey,
  isCompleted,
  type Changes,
  type ErrorEntry,
  type InstanceRow,
  type ItemRow,
  type State,
  type StoredRows,
  type TaskStatus,
  type WorkflowRow,
} from '../conductor/index.ts'

export interface StateStore {
  /**
   * Stores the rows that an event changes, all but that of the workflow itself.
   *
   * @param at wire timestamp of the event
   */
  save(workflow: string, changes: Changes, seal: Seal, at: string): Step[]
  /** @param number that no other call for the workflow has @param sealed JSON array, encrypted */
  saveSecrets(workflow: string, number: number, sealed: string): Step
  /** Reads a state part by part: others may work between two parts of a large one. */
  load(id: string, workflow: WorkflowRow, open: Open): Promise<{ state: State; secrets: unknown[] }>
  /** Deletes rows of the workflows, at most so many of each table. */
  deleteSome(workflows: readonly string[], limit: number): Step[]
}

/** Encrypts a text that contains a secret; undefined: it contains none. */
export type Seal = (text: string) => string | undefined
/** Decrypts what `Seal` has returned. */
export type Open = (sealed: string) => string

/** JSON text of an object; with secrets, the encrypted text as a JSON string. */
export function writeValues(values: object, seal: Seal): string {
  const text = writeJson(values)
  const sealed = seal(text)
  return sealed === undefined ? text : writeJson(sealed)
}

/** The object that `writeValues` has written. */
export function readValues(text: string, open: Open): unknown {
  const value = readJson(text)
  return typeof value === 'string' ? readJson(open(value)) : value
}

/** Rows that are read at once: some milliseconds of work. */
const MAX_ROWS_PER_PART = 500
/** Of the long texts among them. A longer one is read alone. */
const MAX_BYTES_PER_PART = 1024 * 1024

export function createStateStore(database: Database): StateStore {
  const tables = defineTables(database)

  function* save(workflow: string, changes: Changes, seal: Seal, at: string): Generator<Compilable> {
    const { instances, arrivals, items, contexts, joins, sources, routes, errors } = changes
    yield* changed(tables.tasks, workflow, instances, (row) => ({
      workflow,
      number: row.id,
      task: row.task,
      route: row.route,
      status: row.status,
      start_order: row.order,
      pass: row.pass,
      is_ready: Number(row.isReady),
      is_cleanup: Number(row.isCleanup),
      is_terminal: Number(row.isTerminal),
      context: row.context,
      previous: writeJson(row.previous),
      arrivals: row.arrivals,
      taken: row.taken === null ? null : writeJson(row.taken),
      retries: row.retries,
      retry: row.retry === null ? null : writeJson(row.retry),
      items: row.items === null ? null : writeJson(row.items),
      start_timestamp: row.order === null || row.status === 'retrying' ? null : at,
      end_timestamp: isCompleted(row.status) ? at : null,
    }))
    yield* changed(tables.arrivals, workflow, arrivals, ({ instance, index, from, transition, context }) => ({
      workflow,
      instance,
      position: index,
      source: from,
      transition,
      context,
    }))
    yield* changed(tables.items, workflow, items, ({ instance, index, status, source }) => ({
      workflow,
      instance,
      position: index,
      status,
      source,
    }))
    yield* changed(tables.contexts, workflow, contexts, ({ id, parents, values }) => ({
      workflow,
      number: id,
      parents: writeJson(parents),
      values: writeValues(values, seal),
    }))
    yield* changed(tables.joins, workflow, joins, (row) => ({ workflow, ...row }))
    yield* changed(tables.sources, workflow, sources, ({ firedBefore, hasArrived, ...row }) => ({
      workflow,
      ...row,
      fired_before: firedBefore,
      has_arrived: Number(hasArrived),
    }))
    yield* changed(tables.routes, workflow, routes, ({ id, ...row }) => ({ workflow, number: id, ...row }))
    yield* changed(tables.errors, workflow, errors, ({ id, instance, entry }) => ({
      workflow,
      number: id,
      instance,
      entry: writeValues(entry, seal),
    }))
  }

  /** Long tables after each other, in parts of which all but the last of a table are full. */
  function* parts(workflow: string, open: Open): Generator<{ rows: Partial<StoredRows>; isFull: boolean }> {
    for (const { rows, isFull } of tables.routes.parts(workflow)) {
      const routes = rows.map(({ number: id, parent, origin }) => ({ id, parent, origin }))
      yield { rows: { routes }, isFull }
    }
    for (const { rows, isFull } of tables.tasks.parts(workflow)) {
      const instances = rows.map((row): InstanceRow => ({
        id: row.number,
        task: row.task,
        route: row.route,
        status: row.status as TaskStatus, // written by `save`, as all of these
        order: row.start_order,
        pass: row.pass,
        isReady: row.is_ready === 1,
        isCleanup: row.is_cleanup === 1,
        context: row.context,
        previous: readJson(row.previous) as InstanceRow['previous'],
        arrivals: row.arrivals,
        taken: row.taken === null ? null : (readJson(row.taken) as number[]),
        retries: row.retries,
        retry: row.retry === null ? null : (readJson(row.retry) as InstanceRow['retry']),
        isTerminal: row.is_terminal === 1,
        items: row.items === null ? null : (readJson(row.items) as InstanceRow['items']),
      }))
      yield { rows: { instances }, isFull }
    }
    for (const { rows, isFull } of tables.arrivals.parts(workflow)) {
      const arrivals = rows.map(({ instance, position: index, source: from, transition, context }) => ({
        instance,
        index,
        from,
        transition,
        context,
      }))
      yield { rows: { arrivals }, isFull }
    }
    for (const { rows, isFull } of tables.items.parts(workflow)) {
      const items = rows.map(({ instance, position: index, status, source }): ItemRow => ({
        instance,
        index,
        status: status as ItemRow['status'],
        source,
      }))
      yield { rows: { items }, isFull }
    }
    for (const { rows, isFull } of tables.contexts.parts(workflow)) {
      const contexts = rows.map(({ number: id, parents, values }) => ({
        id,
        parents: readJson(parents) as number[],
        values: readValues(values, open) as Record<string, unknown>,
      }))
      yield { rows: { contexts }, isFull }
    }
    for (const { rows, isFull } of tables.joins.parts(workflow)) {
      const joins = rows.map(({ task, route, arrived, fired }) => ({ task, route, arrived, fired }))
      yield { rows: { joins }, isFull }
    }
    for (const { rows, isFull } of tables.sources.parts(workflow)) {
      const sources = rows.map(({ task, route, source, fired_before, has_arrived }) => ({
        task,
        route,
        source,
        firedBefore: fired_before,
        hasArrived: has_arrived === 1,
      }))
      yield { rows: { sources }, isFull }
    }
    for (const { rows, isFull } of tables.errors.parts(workflow)) {
      const errors = rows.map(({ number: id, instance, entry: text }) => {
        const entry = readValues(text, open) as ErrorEntry
        return { id, instance, key: errorKey(entry), entry }
      })
      yield { rows: { errors }, isFull }
    }
  }

  return {
    save: (workflow, changes, seal, at) => Array.from(save(workflow, changes, seal, at), (query) => ({ query })),
    saveSecrets: (workflow, number, secrets) => ({ query: tables.secrets.put({ workflow, number, secrets }) }),
    async load(id, workflow, open) {
      let state: State = { ...emptyState(), workflow }
      const secrets: unknown[] = []
      for (const { rows, isFull } of tables.secrets.parts(id)) {
        for (const row of rows) secrets.push(...(readJson(open(row.secrets)) as unknown[])) // written by `saveSecrets`
        if (isFull) await new Promise((resolve) => setImmediate(resolve))
      }
      for (const { rows, isFull } of parts(id, open)) {
        state = addRows(state, rows)
        if (isFull) await new Promise((resolve) => setImmediate(resolve))
      }
      return { state, secrets }
    },
    deleteSome: (workflows, limit) =>
      Object.values(tables).map((table) => ({ query: table.deleteSome(workflows, limit) })),
  }
}

/** Steps for the rows of a table that differ, and one for those that are removed. */
function* changed<Key extends number | string, Row, Stored>(
  table: Pick<RowTable<Stored>, 'put' | 'remove'>,
  workflow: string,
  rows: ReadonlyMap<Key, Row | undefined>,
  toStored: (row: Row) => Stored,
): Generator<Compilable> {
  const removed: Key[] = []
  for (const [key, row] of rows)
    if (row === undefined) removed.push(key)
    else yield table.put(toStored(row))
  if (removed.length > 0) yield table.remove(workflow, removed)
}

interface RowTable<Stored> {
  put(row: Stored): Compilable
  /** @param keys as in the maps of a state: a number, or several with slashes between them */
  remove(workflow: string, keys: readonly (number | string)[]): Compilable
  parts(workflow: string): Generator<{ rows: Stored[]; isFull: boolean }>
  deleteSome(workflows: readonly string[], limit: number): Compilable
}

/** In the order in which a state is loaded. */
function defineTables(database: Database) {
  const define = <Name extends RowTableName>(...given: TableDefinition<Name>) => defineTable(database, ...given)
  return {
    tasks: define(
      'workflow_tasks',
      ['number'],
      {
        workflow: '',
        number: 0,
        task: 0,
        route: 0,
        status: '',
        start_order: 0,
        pass: 0,
        is_ready: 0,
        is_cleanup: 0,
        is_terminal: 0,
        context: 0,
        previous: '',
        arrivals: 0,
        taken: '',
        retries: 0,
        retry: '',
        items: '',
        start_timestamp: '',
        end_timestamp: '',
      },
      { merged: { start_timestamp: timeOfAttempt('start_timestamp'), end_timestamp: timeOfAttempt('end_timestamp') } },
    ),
    arrivals: define('workflow_arrivals', ['instance', 'position'], {
      workflow: '',
      instance: 0,
      position: 0,
      source: 0,
      transition: 0,
      context: 0,
    }),
    items: define('workflow_items', ['instance', 'position'], {
      workflow: '',
      instance: 0,
      position: 0,
      status: '',
      source: 0,
    }),
    contexts: define(
      'workflow_contexts',
      ['number'],
      { workflow: '', number: 0, parents: '', values: '' },
      { long: 'values' },
    ),
    joins: define('workflow_joins', ['task', 'route'], { workflow: '', task: 0, route: 0, arrived: 0, fired: 0 }),
    sources: define('workflow_join_sources', ['task', 'route', 'source'], {
      workflow: '',
      task: 0,
      route: 0,
      source: 0,
      fired_before: 0,
      has_arrived: 0,
    }),
    routes: define('workflow_routes', ['number'], { workflow: '', number: 0, parent: 0, origin: '' }),
    errors: define(
      'workflow_errors',
      ['number'],
      { workflow: '', number: 0, instance: 0, entry: '' },
      { long: 'entry' },
    ),
    secrets: define('workflow_secrets', ['number'], { workflow: '', number: 0, secrets: '' }, { long: 'secrets' }),
  }
}

type RowTableName =
  | 'workflow_tasks'
  | 'workflow_arrivals'
  | 'workflow_items'
  | 'workflow_contexts'
  | 'workflow_joins'
  | 'workflow_join_sources'
  | 'workflow_routes'
  | 'workflow_errors'
  | 'workflow_secrets'

type TableDefinition<Name extends RowTableName> = [
  name: Name,
  /** Columns of the key behind `workflow`. */
  keys: (keyof Tables[Name] & string)[],
  /** Has the columns of the table. */
  sample: Tables[Name],
  options?: {
    /** A column with texts that may be long. */
    long?: keyof Tables[Name] & string
    /** What an update makes of columns. Default: the given value */
    merged?: Partial<Record<keyof Tables[Name] & string, RawBuilder<unknown>>>
  },
]

/** A time of a task stays for as long as its attempt is the same and has such a time. */
const timeOfAttempt = (column: 'start_timestamp' | 'end_timestamp'): RawBuilder<unknown> => {
  const [known, given] = [sql.ref(`workflow_tasks.${column}`), sql.ref(`excluded.${column}`)]
  return sql`case when ${given} is not null and workflow_tasks.retries = excluded.retries
    then ifnull(${known}, ${given}) else ${given} end`
}

function defineTable<Name extends RowTableName>(
  database: Database,
  ...[name, keys, sample, { long, merged = {} } = {}]: TableDefinition<Name>
): RowTable<Tables[Name]> {
  type Stored = Tables[Name]
  const compilable = <Row>(query: RawBuilder<Row>): Compilable<Row> => ({
    compile: () => query.compile(database.build),
  })
  const table = sql.table(name)
  const columns = Object.keys(sample) as (keyof Stored & string)[] // the sample has exactly the columns of the table
  const refs = (names: readonly string[]): RawBuilder<unknown> => sql.join(names.map((column) => sql.ref(column)))
  const places = (names: readonly string[]): RawBuilder<unknown> => sql.join(names.map(() => ''))
  const key = refs(keys)

  const setting = columns
    .filter((column) => column !== 'workflow' && !(keys as string[]).includes(column))
    .map((column) => sql`${sql.ref(column)} = ${merged[column] ?? sql.ref(`excluded.${column}`)}`)
  const put = prepared(
    compilable(
      sql`insert into ${table} (${refs(columns)}) values (${places(columns)})
        on conflict (workflow, ${key}) do update set ${sql.join(setting)}`,
    ),
    columnsOf<Stored & object>(sample),
  )
  const value = keys.length === 1 ? sql`value` : sql.join(keys.map((_, index) => sql`value ->> ${sql.lit(index)}`))
  const remove = prepared(
    compilable(
      sql`delete from ${table} where workflow = ${''} and (${key}) in (select ${value} from json_each(${''}))`,
    ),
    (use: { workflow: string; removed: unknown[] }) => [use.workflow, writeJson(use.removed)],
  )
  const select = (what: RawBuilder<unknown>): Compilable =>
    compilable(
      sql`select ${what} from ${table} where workflow = ${''} and (${key}) > (${places(keys)}) order by ${key} limit ${''}`,
    )
  const parametersOf = ({ workflow, after, limit }: Place): unknown[] => [workflow, ...after, limit]
  const rowsAfter = prepared(select(sql`*`) as Compilable<Stored>, parametersOf)
  const sizesAfter = prepared(
    select(sql`octet_length(${sql.ref(long ?? 'workflow')}) as bytes`) as Compilable<{ bytes: number }>,
    parametersOf,
  )
  const deleteSome = prepared(
    compilable(
      sql`delete from ${table} where (workflow, ${key}) in (select workflow, ${key} from ${table}
        where workflow in (select value from json_each(${''})) limit ${0})`,
    ),
    (use: { workflows: readonly string[]; limit: number }) => [writeJson(use.workflows), use.limit],
  )

  /** How many of the next rows to read at once. */
  function nextCount(workflow: string, after: readonly number[]): number {
    if (long === undefined) return MAX_ROWS_PER_PART
    let bytes = 0
    const sizes = database.all(sizesAfter({ workflow, after, limit: MAX_ROWS_PER_PART }))
    const count = sizes.findIndex((row) => (bytes += row.bytes) > MAX_BYTES_PER_PART)
    return count === -1 ? MAX_ROWS_PER_PART : Math.max(1, count)
  }

  return {
    put: (row) => put(row),
    remove: (workflow, removed) =>
      remove({
        workflow,
        removed: removed.map((text) => (typeof text === 'number' ? text : text.split('/').map(Number))),
      }),
    *parts(workflow) {
      let after: readonly number[] = keys.map(() => -1)
      for (let isFull = true; isFull;) {
        const limit = nextCount(workflow, after)
        const rows = database.all(rowsAfter({ workflow, after, limit }))
        const last = rows.at(-1)
        isFull = last !== undefined && rows.length === limit
        if (last !== undefined) after = keys.map((column) => last[column] as number)
        yield { rows, isFull }
      }
    },
    deleteSome: (workflows, limit) => deleteSome({ workflows, limit }),
  }
}

interface Place {
  workflow: string
  after: readonly number[]
  limit: number
}
