/** Tables `rule_enforcements` and `rule_enforcement_counts`: reads, and functions that return steps. */
import { sql, type Expression, type ExpressionBuilder, type SqlBool } from 'kysely'
import {
  isAmong,
  type Database,
  type Step,
  columnsOf,
  prepared,
  type RuleEnforcementTable,
  type Tables,
} from '../../../db/index.ts'
import type { Page, SortField } from '../../../http/index.ts'
import { idBound } from '../../../core/ids.ts'
import { microsOf } from '../../../core/time.ts'
import type { RuleEnforcement } from '../types.ts'
import { writeJson } from '../../../lib/json/index.ts'

export interface EnforcementFilter {
  rule_ref?: string
  rule_id?: string
  /** Id; null: enforcements without an execution. */
  execution?: string | null
  /** Ids; matches any of them. */
  trigger_instances?: readonly string[]
  /** Matches any of them. */
  ids?: readonly string[]
  /** Wire timestamps, exclusive. */
  after?: string
  before?: string
  /** References of the rules that the caller can view; absent: all. */
  within?: readonly string[]
}

/** `id` sorts by time. */
export type EnforcementSortColumn = 'id' | 'rule_ref' | 'rule_id' | 'execution_id' | 'trigger_instance_id'

export interface EnforcementStore {
  find(id: string): RuleEnforcement | undefined
  findByIds(ids: readonly string[]): RuleEnforcement[]
  /** Enforcements of an instance, oldest first. */
  ofInstance(triggerInstanceId: string): RuleEnforcement[]
  /** Ids of one page. */
  page(filter: EnforcementFilter, sort: readonly SortField<EnforcementSortColumn>[], page: Page): Promise<string[]>
  count(filter: EnforcementFilter): Promise<number>
  /** The newest enforcement of each rule, by rule id. */
  lastOf(ruleIds: readonly string[]): Map<string, RuleEnforcement>
  countAll(): number
  /** References of all rules with enforcements. */
  enforcedRefs(): string[]
  insert(enforcement: RuleEnforcement): Step
  /** Enforcements before a time, oldest first. */
  enforcedBefore(before: string, afterId: string, limit: number): { id: string; enforced_at: string }[]
  delete(ids: readonly string[]): Step
}

/** Longer or deeper pages run on the scan thread, which limits the number of waiting searches. */
const MAX_QUICK_ROWS = 1000
const MAX_QUICK_OFFSET = 10_000

export function createEnforcementStore(database: Database): EnforcementStore {
  const { build } = database
  const enforcementRow: RuleEnforcementTable = {
    id: '',
    rule_id: '',
    rule_ref: '',
    rule_uid: '',
    trigger_instance_id: '',
    execution_id: '',
    failure_reason: '',
    enforced_at: '',
    status: '',
  }
  const insertRow = prepared(build.insertInto('rule_enforcements').values(enforcementRow), columnsOf(enforcementRow))

  return {
    find(id) {
      const row = database.first(build.selectFrom('rule_enforcements').selectAll().where('id', '=', id))
      return row === undefined ? undefined : toEnforcement(row)
    },
    findByIds: (ids) =>
      database.all(build.selectFrom('rule_enforcements').selectAll().where(isAmong('id', ids))).map(toEnforcement),
    ofInstance: (triggerInstanceId) =>
      database
        .all(
          build
            .selectFrom('rule_enforcements')
            .selectAll()
            .where('trigger_instance_id', '=', triggerInstanceId)
            .orderBy('id'),
        )
        .map(toEnforcement),
    async page(filter, sort, { limit, offset }) {
      let query = build.selectFrom('rule_enforcements').select('id').where(conditions(filter))
      for (const { name, descending } of sort) query = query.orderBy(name, descending ? 'desc' : 'asc')
      if (sort.at(-1)?.name !== 'id') query = query.orderBy('id', 'desc')
      query = query.limit(limit ?? -1).offset(offset)
      const isInOrder = sort.length === 0 || (sort.length === 1 && sort[0]?.name === 'id')
      const isShort = (limit ?? Infinity) <= MAX_QUICK_ROWS && offset <= MAX_QUICK_OFFSET
      const isQuick = isFew(filter) || (isInOrder && isShort && isServedByOneIndex(filter))
      return (isQuick ? database.all(query) : await database.scan(query)).map(({ id }) => id)
    },
    async count(filter) {
      const {
        rule_ref: ref,
        rule_id: ruleId,
        execution,
        trigger_instances: instances,
        after,
        before,
        within,
        ids,
      } = filter
      if (
        instances === undefined &&
        ids === undefined &&
        typeof execution !== 'string' &&
        after === undefined &&
        before === undefined
      ) {
        let query = build
          .selectFrom('rule_enforcement_counts')
          .select((on) => on.fn.sum<number | null>('count').as('n'))
        if (ref !== undefined) query = query.where('rule_ref', '=', ref)
        if (ruleId !== undefined) query = query.where('rule_id', '=', ruleId)
        // Exactly those that succeeded have an execution.
        if (execution === null) query = query.where('status', '!=', 'succeeded')
        if (within !== undefined) query = query.where(isAmong('rule_ref', within))
        return database.first(query)?.n ?? 0
      }
      const query = build
        .selectFrom('rule_enforcements')
        .select((on) => on.fn.countAll<number>().as('n'))
        .where(conditions(filter))
      const [row] = isFew(filter) ? database.all(query) : await database.scan(query)
      return row?.n ?? 0
    },
    lastOf(ruleIds) {
      // One index lookup per rule, whatever the number of its enforcements.
      const newest = sql`select (
        select id from rule_enforcements where rule_id = rule.value order by id desc limit 1
      ) from json_each(${writeJson(ruleIds)}) as rule`
      const rows = database.all(
        build
          .selectFrom('rule_enforcements')
          .selectAll()
          .where(sql<SqlBool>`id in (${newest})`),
      )
      return new Map(rows.map((row) => [row.rule_id, toEnforcement(row)]))
    },
    enforcedRefs: () =>
      database
        .all(build.selectFrom('rule_enforcement_counts').select('rule_ref').distinct())
        .map(({ rule_ref: ref }) => ref),
    countAll: () =>
      database.first(
        build.selectFrom('rule_enforcement_counts').select((on) => on.fn.sum<number | null>('count').as('n')),
      )?.n ?? 0,
    enforcedBefore: (before, afterId, limit) =>
      database.all(
        build
          .selectFrom('rule_enforcements')
          .select(['id', 'enforced_at'])
          .where('id', '>', afterId)
          .where('id', '<', idBound(microsOf(before)))
          .orderBy('id')
          .limit(limit),
      ),
    delete: (ids) => ({ query: build.deleteFrom('rule_enforcements').where(isAmong('id', ids)) }),
    insert: (enforcement) => ({
      query: insertRow({
        id: enforcement.id,
        rule_id: enforcement.rule.id,
        rule_ref: enforcement.rule.ref,
        rule_uid: enforcement.rule.uid,
        trigger_instance_id: enforcement.trigger_instance_id,
        execution_id: enforcement.execution_id ?? null,
        failure_reason: enforcement.failure_reason ?? enforcement.skip_reason ?? null,
        enforced_at: enforcement.enforced_at,
        status: enforcement.status,
      }),
    }),
  }
}

function toEnforcement(row: RuleEnforcementTable): RuleEnforcement {
  const status = row.status as RuleEnforcement['status'] // written by `insert`
  return {
    id: row.id,
    trigger_instance_id: row.trigger_instance_id,
    ...(row.execution_id === null ? {} : { execution_id: row.execution_id }),
    ...(row.failure_reason === null
      ? {}
      : { [status === 'skipped' ? 'skip_reason' : 'failure_reason']: row.failure_reason }),
    rule: { ref: row.rule_ref, uid: row.rule_uid, id: row.rule_id },
    enforced_at: row.enforced_at,
    status,
  }
}

const equalities = {
  execution: 'execution_id',
  trigger_instances: 'trigger_instance_id',
  rule_id: 'rule_id',
  rule_ref: 'rule_ref',
} as const satisfies Partial<Record<keyof EnforcementFilter, keyof RuleEnforcementTable>>

/** An execution has one enforcement, an instance at most one per rule of its trigger. */
function isFew({ execution, trigger_instances: instances }: EnforcementFilter): boolean {
  return typeof execution === 'string' || instances !== undefined
}

/** Otherwise the query can scan the whole table. */
function isServedByOneIndex({ rule_ref: ref, rule_id: id, execution, within }: EnforcementFilter): boolean {
  return within === undefined && execution !== null && (ref === undefined || id === undefined)
}

function conditions(
  filter: EnforcementFilter,
): (on: ExpressionBuilder<Tables, 'rule_enforcements'>) => Expression<SqlBool> {
  return (on) => {
    const all: Expression<SqlBool>[] = []
    let driven = false
    for (const [name, column] of Object.entries(equalities)) {
      const value = filter[name as keyof typeof equalities] // its own keys
      if (value === undefined) continue
      if (value === null) {
        all.push(on(column, 'is', null))
        continue
      }
      // The unary plus keeps SQLite from an index on this column: the index of the first filter gives the fewest rows.
      const left = driven ? sql`+${sql.ref(column)}` : sql.ref(column)
      const [first, ...others] = typeof value === 'string' ? [value] : value
      all.push(
        first !== undefined && others.length === 0 ? sql<SqlBool>`${left} = ${first}` : isAmong(left, [value].flat()),
      )
      driven = true
    }
    // Ids contain the enforcement time, so the primary key serves time ranges.
    if (filter.after !== undefined) all.push(on('id', '>=', idBound(microsOf(filter.after) + 1)))
    if (filter.before !== undefined) all.push(on('id', '<', idBound(microsOf(filter.before))))
    if (filter.ids !== undefined) all.push(isAmong('id', filter.ids))
    if (filter.within !== undefined) all.push(isAmong('rule_ref', filter.within))
    return on.and(all)
  }
}
