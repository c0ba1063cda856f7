/** Tables `actions` and `runner_types`. Records are kept whole; what is filtered by has a column of its own. */
import { sql, type SqlBool } from 'kysely'
import type { Keep } from '../../core/keep.ts'
import type { Database, Step } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import type { ActionRecord, RunnerTypeRecord } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

export interface ActionFilter {
  pack?: string | undefined
  name?: string | undefined
  ids?: readonly string[] | undefined
}

export interface ActionStore {
  find(id: string): ActionRecord | undefined
  findByRef(ref: string): ActionRecord | undefined
  /** In the order of pack and name. */
  list(filter: ActionFilter, page: Page): Promise<ActionRecord[]>
  count(filter: ActionFilter): number
  ofPack(pack: string): ActionRecord[]
  /** Those that say how long they keep their executions. */
  keeps(): Promise<{ ref: string; keep: Keep }[]>
  insert(action: ActionRecord): Step
  update(action: ActionRecord): Step
  delete(id: string): Step

  findRunnerType(id: string): RunnerTypeRecord | undefined
  findRunnerTypeByName(name: string): RunnerTypeRecord | undefined
  /** In the order of their names. */
  listRunnerTypes(names: readonly string[] | undefined, page: Page): RunnerTypeRecord[]
  insertRunnerType(runnerType: RunnerTypeRecord): Step
  updateRunnerType(runnerType: RunnerTypeRecord): Step
}

/** More rows are read on the scan thread, whose queue is bounded. */
const MAX_QUICK_ROWS = 1000

export function createActionStore(database: Database): ActionStore {
  const { build } = database

  function matching(filter: ActionFilter) {
    let query = build.selectFrom('actions')
    if (filter.pack !== undefined) query = query.where('pack', '=', filter.pack)
    if (filter.name !== undefined) query = query.where('name', '=', filter.name)
    if (filter.ids !== undefined) query = query.where('id', 'in', [...filter.ids])
    return query
  }

  function named(names: readonly string[] | undefined) {
    const query = build.selectFrom('runner_types')
    return names === undefined ? query : query.where('name', 'in', [...names])
  }

  const count = (filter: ActionFilter): number =>
    database.first(matching(filter).select((eb) => eb.fn.countAll<number>().as('total')))?.total ?? 0

  return {
    find: (id) =>
      parsed<ActionRecord>(database.first(build.selectFrom('actions').select('record').where('id', '=', id))),
    findByRef: (ref) =>
      parsed<ActionRecord>(database.first(build.selectFrom('actions').select('record').where('ref', '=', ref))),
    async list(filter, page) {
      const query = matching(filter).select('record').orderBy('pack').orderBy('name')
      const pageOf = query.limit(page.limit ?? -1).offset(page.offset)
      const isShort = (page.limit ?? Infinity) <= MAX_QUICK_ROWS || count(filter) <= MAX_QUICK_ROWS
      const rows = isShort ? database.all(pageOf) : await database.scan(pageOf)
      return rows.map((row) => parsed<ActionRecord>(row))
    },
    count,
    ofPack: (pack) =>
      database
        .all(build.selectFrom('actions').select('record').where('pack', '=', pack))
        .map((row) => parsed<ActionRecord>(row)),
    keeps: async () =>
      (
        await database.scan(
          build
            .selectFrom('actions')
            .select(['ref', sql<string>`json_extract(record, '$.keep')`.as('keep')])
            .where(sql<SqlBool>`json_extract(record, '$.keep') is not null`)
            .orderBy('ref'),
        )
      ).map(({ ref, keep }) => ({ ref, keep: readJson(keep) as Keep })), // checked with the action
    insert: (action) => ({ query: build.insertInto('actions').values(actionRow(action)) }),
    update: (action) => ({
      query: build.updateTable('actions').set(actionRow(action)).where('id', '=', action.id),
      expect: 1,
    }),
    delete: (id) => ({ query: build.deleteFrom('actions').where('id', '=', id) }),

    findRunnerType: (id) =>
      parsed<RunnerTypeRecord>(database.first(build.selectFrom('runner_types').select('record').where('id', '=', id))),
    findRunnerTypeByName: (name) =>
      parsed<RunnerTypeRecord>(
        database.first(build.selectFrom('runner_types').select('record').where('name', '=', name)),
      ),
    listRunnerTypes(names, page) {
      const query = named(names)
        .select('record')
        .orderBy('name')
        .limit(page.limit ?? -1)
        .offset(page.offset)
      return database.all(query).map((row) => parsed<RunnerTypeRecord>(row))
    },
    insertRunnerType: (runnerType) => ({ query: build.insertInto('runner_types').values(runnerTypeRow(runnerType)) }),
    updateRunnerType: (runnerType) => ({
      query: build.updateTable('runner_types').set(runnerTypeRow(runnerType)).where('id', '=', runnerType.id),
      expect: 1,
    }),
  }
}

function actionRow(action: ActionRecord) {
  return {
    id: action.id,
    ref: action.ref,
    pack: action.pack,
    name: action.name,
    enabled: Number(action.enabled),
    runner_type: action.runner_type,
    record: writeJson(action),
  }
}

function runnerTypeRow(runnerType: RunnerTypeRecord) {
  return {
    id: runnerType.id,
    name: runnerType.name,
    enabled: Number(runnerType.enabled),
    record: writeJson(runnerType),
  }
}

function parsed<R>(row: { record: string }): R
function parsed<R>(row: { record: string } | undefined): R | undefined
function parsed<R>(row: { record: string } | undefined): R | undefined {
  return row === undefined ? undefined : (readJson(row.record) as R) // written by `actionRow` or `runnerTypeRow`
}
