/** Table `rule_runs`: executions of rules with `overlap` that have not ended, in the order in which they may run. */
import { prepared, type Database, type Step, type Unit } from '../../../db/index.ts'
import type { Execution } from '../types.ts'

export interface RuleRunStore {
  /** Steps of a new execution; a retry takes the place of the attempt before. */
  begin(execution: Execution): Step[]
  /** The last steps of the end of an execution, after those of its retry; undefined: none. */
  planEnd(execution: Execution): Unit | undefined
  /** Whether no run of its rule comes before it. */
  isFirst(executionId: string): boolean
  /** Grows in the order of the runs; undefined: it has ended, or its rule has no `overlap`. */
  placeOf(executionId: string): number | undefined
  /** Ids of the runs of a rule that have not ended, in their order. */
  ofRule(ruleId: string, limit: number): string[]
  /** Ids of the runs of its rule that come before it, in their order. */
  before(executionId: string, limit: number): string[]
  /** All that have not ended, in the order of their places. */
  all(afterPlace: number, limit: number): { place: number; id: string }[]
}

export function createRuleRunStore(database: Database): RuleRunStore {
  const { build } = database
  // The values here only shape the statements.
  const insert = prepared(
    build.insertInto('rule_runs').values({ rule_id: '', execution_id: '' }),
    (run: { rule: string; id: string }) => [run.rule, run.id],
  )
  const handOver = prepared(
    build.updateTable('rule_runs').set({ execution_id: '' }).where('execution_id', '=', ''),
    (run: { from: string; to: string }) => [run.to, run.from],
  )
  const remove = prepared(build.deleteFrom('rule_runs').where('execution_id', '=', ''), (id: string) => [id])

  const find = (id: string) =>
    database.first(build.selectFrom('rule_runs').select(['n', 'rule_id']).where('execution_id', '=', id))

  function before(id: string, limit: number): string[] {
    const own = find(id)
    if (own === undefined) return []
    return database
      .all(
        build
          .selectFrom('rule_runs')
          .select('execution_id')
          .where('rule_id', '=', own.rule_id)
          .where('n', '<', own.n)
          .orderBy('n')
          .limit(limit),
      )
      .map((row) => row.execution_id)
  }

  return {
    begin(execution) {
      const { id, origin } = execution
      const { running, retry_of: from } = execution.liveaction
      if (running?.overlap === undefined || origin === null) return []
      return [{ query: from === undefined ? insert({ rule: origin.rule.id, id }) : handOver({ from, to: id }) }]
    },
    planEnd: ({ id, liveaction: { running } }) =>
      running?.overlap === undefined ? undefined : { steps: [{ query: remove(id) }], facts: [] },
    isFirst: (id) => before(id, 1).length === 0,
    placeOf: (id) => find(id)?.n,
    ofRule: (ruleId, limit) =>
      database
        .all(
          build.selectFrom('rule_runs').select('execution_id').where('rule_id', '=', ruleId).orderBy('n').limit(limit),
        )
        .map((row) => row.execution_id),
    before,
    all: (afterPlace, limit) =>
      database
        .all(
          build
            .selectFrom('rule_runs')
            .select(['n', 'execution_id'])
            .where('n', '>', afterPlace)
            .orderBy('n')
            .limit(limit),
        )
        .map((row) => ({ place: row.n, id: row.execution_id })),
  }
}
