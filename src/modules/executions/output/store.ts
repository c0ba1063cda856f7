/** Table `output_records`: the stored output of executions. */
import { sql, type SqlBool } from 'kysely'
import { columnsOf, isAmong, prepared, type Database, type OutputRecordTable, type Step } from '../../../db/index.ts'
import type { OutputType } from '../../../runners/index.ts'
import type { OutputPlace, OutputRecord } from '../types.ts'
import { noPlace } from './place.ts'

export interface OutputStore {
  /** @param before what the execution has written before it */
  insertOutput(record: OutputRecord, before: OutputPlace): Step
  outputAfter(executionId: string, seq: number, limit: number, type?: OutputType): OutputRecord[]
  /** Those with a `seq` in a range, both ends included, which the caller keeps narrow. */
  outputBetween(executionId: string, from: number, to: number, type?: OutputType): PlacedRecord[]
  /** Of the first record at or after a `seq`. */
  outputPlace(executionId: string, seq: number): NumberedPlace | undefined
  lastOutput(executionId: string): PlacedRecord | undefined
  lastSeq(executionId: string): number
  /** Of all records of an execution. */
  outputIds(executionId: string): string[]

  /** At most `limit` records of these executions. */
  deleteOutputOf(ids: readonly string[], limit: number): Step
  /** All output records in the order in which they were stored. */
  outputFrom(afterRow: number, limit: number): { row: number; id: string }[]
  deleteOutputRows(from: number, upTo: number): Step
}

export interface NumberedPlace extends OutputPlace {
  seq: number
}

/** A record, and what there is before it. */
export interface PlacedRecord extends NumberedPlace, OutputRecord {}

const placeColumns = Object.keys(noPlace) as (keyof OutputPlace)[] // all that it has
const outputColumns = ['execution_id', 'seq', 'id', 'output_type', 'data', 'timestamp', 'host'] as const

export function createOutputStore(database: Database): OutputStore {
  const { build } = database
  const statements = prepareStatements(database)

  return {
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

    outputIds: (executionId) =>
      database
        .all(build.selectFrom('output_records').select('id').where('execution_id', '=', executionId))
        .map(({ id }) => id),
    deleteOutputOf: (ids, limit) => ({
      query: build.deleteFrom('output_records').where(
        sql<SqlBool>`rowid in (
          select rowid from output_records where ${isAmong('execution_id', ids)} limit ${limit})`,
      ),
    }),
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
  }
}

/** The values here only shape the statements. */
function prepareStatements({ build }: Database) {
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
  return {
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
  }
}

function toOutputRecord<Row extends { output_type: string }>(row: Row): Row & { output_type: OutputType } {
  return { ...row, output_type: row.output_type as OutputType } // runners emit no other types
}
