/** Table `output_records`: the stored output of executions. */
import { sql, type Expression, type SqlBool } from 'kysely'
import { columnsOf, isAmong, prepared, type Database, type OutputRecordTable, type Step } from '../../../db/index.ts'
import { writeJson } from '../../../lib/json/index.ts'
import type { OutputType } from '../../../runners/index.ts'
import type { OutputPlace, OutputRecord } from '../types.ts'
import { asciiLower } from '../../../lib/text/index.ts'
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
  /**
   * Those of the executions whose output may have the text in it; the others certainly have not. On the scan thread.
   *
   * @throws QUEUE_FULL
   */
  mayContain(ids: readonly string[], needle: Needle): Promise<string[]>
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

/** What to look for; an empty text stands for any text beyond ASCII. */
export interface Needle {
  text: string
  /** Of ASCII letters. */
  ignoreCase: boolean
}

/** Of the output of an execution; the search reads one with more anyway. */
const MAX_SCANNED_RECORDS = 1024
const MAX_SCANNED_BYTES = 1024 * 1024

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

    async mayContain(ids, needle) {
      if (ids.length === 0) return []
      const bytesBefore = sql`r.stdout_bytes + r.stderr_bytes + r.other_bytes`
      const query = build
        .selectFrom(sql<{ key: number; value: string }>`json_each(${writeJson(ids)})`.as('e'))
        .select('e.value as id')
        .where(
          sql<SqlBool>`exists (select 1 from output_records as r where r.execution_id = e.value
              and r.seq <= ${MAX_SCANNED_RECORDS} and ${bytesBefore} < ${MAX_SCANNED_BYTES} and (${mayHave(needle)}))
            or (select r.seq > ${MAX_SCANNED_RECORDS} or ${bytesBefore} >= ${MAX_SCANNED_BYTES}
              from output_records as r where r.execution_id = e.value order by r.seq desc limit 1)`,
        )
        .orderBy('e.key')
      return (await database.scan(query)).map(({ id }) => id)
    },
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

/**
 * Whether a record `r`, or its seam with the one before, may have the text. One with a control sequence of terminals or
 * with NUL may: the search leaves out the first, and SQLite takes the second for the end of a text.
 */
function mayHave({ text, ignoreCase }: Needle): Expression<SqlBool> {
  if (text === '') return sql<SqlBool>`octet_length(r.data) > length(r.data) or instr(r.data, char(0)) > 0`
  const fold = (data: Expression<unknown>): Expression<unknown> => (ignoreCase ? sql`lower(${data})` : data)
  const wanted = ignoreCase ? asciiLower(text) : text
  // In UTF-16 units: at least as many as SQLite counts characters.
  const { length } = text
  const has = (data: Expression<unknown>): Expression<SqlBool> => sql<SqlBool>`instr(${fold(data)}, ${wanted}) > 0`
  const seam = sql`substr(b.data, ${-length}) || substr(r.data, 1, ${length})`
  return sql<SqlBool>`${has(sql.ref('r.data'))} or instr(r.data, char(27)) > 0 or instr(r.data, char(0)) > 0
    or (r.seq > 1 and exists (select 1 from (select data from output_records as p
        where p.execution_id = r.execution_id and p.seq < r.seq order by p.seq desc limit 1) as b
      where ${has(seam)} or (length(b.data) < ${length} and substr(b.data, -1) <> char(10))))`
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
