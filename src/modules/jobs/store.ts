/** Table `jobs`: reads, and functions that return steps. */
import { sql } from 'kysely'
import { isAmong, prepared, type Compilable, type Database, type JobTable, type Step } from '../../db/index.ts'

/** How a run of a rule ended, after its last attempt. Times are wire timestamps. */
export interface JobEnd {
  ruleId: string
  ruleRef: string
  executionId: string
  status: string
  at: string
  /** Of a success: see `JobTable.last_success_for`. */
  successFor: string | undefined
}

/** What is expected of a rule, and whether it was missed. */
export type JobExpectation = Pick<
  JobTable,
  | 'trigger_uid'
  | 'since_timestamp'
  | 'due_timestamp'
  | 'due_by_timestamp'
  | 'success_by_timestamp'
  | 'check_timestamp'
  | 'missed_timestamp'
  | 'missed_reason'
>

export const nothingExpected: JobExpectation = {
  trigger_uid: null,
  since_timestamp: null,
  due_timestamp: null,
  due_by_timestamp: null,
  success_by_timestamp: null,
  check_timestamp: null,
  missed_timestamp: null,
  missed_reason: null,
}

/** From now on; the engine finds out by when. */
export const beginAt = (now: string): JobExpectation => ({
  ...nothingExpected,
  since_timestamp: now,
  check_timestamp: now,
})

export interface JobStore {
  find(ruleId: string): JobTable | undefined
  findByIds(ruleIds: readonly string[]): JobTable[]
  /** Those to look at, the longest overdue first. */
  due(at: string, limit: number): JobTable[]
  /** When the next is to be looked at. */
  nearest(): string | undefined
  /** Those of which something is expected, after a rule, by rule. */
  expecting(afterRuleId: string, limit: number): JobTable[]
  /** Rules that are late, by reference. */
  late(limit?: number): Pick<JobTable, 'rule_id' | 'rule_ref' | 'missed_timestamp'>[]
  countLate(): number
  /** Rules that have succeeded, the longest known first. */
  successes(limit: number): { rule_ref: string; last_success_timestamp: string }[]
  /** Stores how a run ended. A success ends the state of being late. */
  end(end: JobEnd): Step
  /** Sets what is expected of a rule from now on. */
  expect(rule: { id: string; ref: string }, expectation: JobExpectation): Step
  /** The same if there is a row: nothing is expected. */
  expectNothing(rule: { id: string; ref: string }): Step
  /** Fails with `Conflict` if the row has changed. */
  change(row: Pick<JobTable, 'rule_id' | 'revision'>, change: Partial<JobExpectation>): Step
  delete(ruleId: string): Step
}

export function createJobStore(database: Database): JobStore {
  const { build } = database
  const rows = build.selectFrom('jobs').selectAll()
  const late = build.selectFrom('jobs').where('missed_timestamp', 'is not', null)

  const find = prepared(rows.where('rule_id', '=', ''), (ruleId: string) => [ruleId])

  const revised = sql<number>`jobs.revision + 1`
  const ended = { last_execution_id: '', last_status: '', last_end_timestamp: '' }
  const begun = { rule_id: '', rule_ref: '', revision: 1, ...ended }
  const valuesOf = ({ executionId, status, at }: JobEnd) => [executionId, status, at]
  const failed = prepared(
    build
      .insertInto('jobs')
      .values(begun)
      .onConflict((on) => on.column('rule_id').doUpdateSet({ rule_ref: '', revision: revised, ...ended })),
    (end: JobEnd) => [end.ruleId, end.ruleRef, 1, ...valuesOf(end), end.ruleRef, ...valuesOf(end)],
  )
  const succeeded = prepared(
    build
      .insertInto('jobs')
      .values({ ...begun, last_success_timestamp: '', last_success_for: '' })
      .onConflict((on) =>
        on.column('rule_id').doUpdateSet({
          rule_ref: '',
          revision: revised,
          ...ended,
          last_success_timestamp: '',
          // A run can end after one that began later. One that is said to begin later than now: the clock was set back.
          last_success_for: sql<string>`case when jobs.last_success_for <= ${''} then max(jobs.last_success_for, ${''}) else ${''} end`,
          check_timestamp: sql<
            string | null
          >`case when jobs.missed_timestamp is null then jobs.check_timestamp else ${''} end`,
          missed_timestamp: null,
          missed_reason: null,
        }),
      ),
    (end: JobEnd & { successFor: string }) => {
      const { at, successFor } = end
      const inserted = [end.ruleId, end.ruleRef, 1, ...valuesOf(end), at, successFor]
      return [...inserted, end.ruleRef, ...valuesOf(end), at, at, successFor, successFor, at, null, null]
    },
  )

  return {
    find: (ruleId) => database.first(find(ruleId) as Compilable<JobTable>), // it selects whole rows
    findByIds: (ruleIds) => (ruleIds.length === 0 ? [] : database.all(rows.where(isAmong('rule_id', ruleIds)))),
    due: (at, limit) =>
      database.all(
        rows
          .where('check_timestamp', 'is not', null)
          .where('check_timestamp', '<=', at)
          .orderBy('check_timestamp')
          .limit(limit),
      ),
    nearest: () =>
      database.first(
        build
          .selectFrom('jobs')
          .select('check_timestamp')
          .where('check_timestamp', 'is not', null)
          .orderBy('check_timestamp')
          .limit(1),
      )?.check_timestamp ?? undefined,
    expecting: (afterRuleId, limit) =>
      database.all(
        rows
          .where('since_timestamp', 'is not', null)
          .where('rule_id', '>', afterRuleId)
          .orderBy('rule_id')
          .limit(limit),
      ),
    late: (limit = -1) =>
      database.all(late.select(['rule_id', 'rule_ref', 'missed_timestamp']).orderBy('rule_ref').limit(limit)),
    countLate: () => database.first(late.select((on) => on.fn.countAll<number>().as('total')))?.total ?? 0,
    successes: (limit) =>
      database.all(
        build
          .selectFrom('jobs')
          .select(['rule_ref', 'last_success_timestamp'])
          .where('last_success_timestamp', 'is not', null)
          .orderBy('rule_id')
          .limit(limit)
          .$narrowType<{ last_success_timestamp: string }>(),
      ),
    end: ({ successFor, ...end }) => ({
      query: successFor === undefined ? failed({ ...end, successFor }) : succeeded({ ...end, successFor }),
    }),
    expect: ({ id, ref }, expectation) => ({
      query: build
        .insertInto('jobs')
        .values({ rule_id: id, rule_ref: ref, revision: 1, ...expectation })
        .onConflict((on) => on.column('rule_id').doUpdateSet({ rule_ref: ref, revision: revised, ...expectation })),
    }),
    expectNothing: ({ id, ref }) => ({
      query: build
        .updateTable('jobs')
        .set({ rule_ref: ref, revision: revised, ...nothingExpected })
        .where('rule_id', '=', id),
    }),
    change: ({ rule_id, revision }, change) => ({
      query: build
        .updateTable('jobs')
        .set({ ...change, revision: revision + 1 })
        .where('rule_id', '=', rule_id)
        .where('revision', '=', revision),
      expect: 1,
    }),
    delete: (ruleId) => ({ query: build.deleteFrom('jobs').where('rule_id', '=', ruleId) }),
  }
}
