/** Table `rules`: reads, and functions that return steps. */
import { sql, type SqlBool } from 'kysely'
import type { Keep } from '../../core/keep.ts'
import { isAmong, type Database, type Step, type RuleTable } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import type { RuleKeep } from '../executions/ports.ts'
import type { Rule } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

export interface RuleFilter {
  name?: string | undefined
  pack?: string | undefined
  /** Reference of the action. */
  action?: string | undefined
  /** Ids of triggers; matches any of them. */
  triggers?: readonly string[] | undefined
  enabled?: boolean | undefined
  user?: string | undefined
  /** Matches any of them. */
  ids?: readonly string[] | undefined
}

export interface RuleStore {
  find(id: string): Rule | undefined
  findByRef(ref: string): Rule | undefined
  findByIds(ids: readonly string[]): Rule[]
  /** Ids of one page, by pack and name. */
  page(filter: RuleFilter, page: Page): Promise<string[]>
  /** Fields for permission checks, by pack and name. */
  keys(filter: RuleFilter): Promise<{ id: string; ref: string; user: string }[]>
  count(filter: RuleFilter): number
  ofPack(pack: string): Rule[]
  /** Enabled rules of a trigger, oldest first. Pass `record` to `readRule`. */
  enabledOf(triggerId: string): { id: string; record: string }[]
  /** Ids and revisions of the enabled rules of a trigger, oldest first. */
  revisionsOf(triggerId: string): { id: string; revision: number }[]
  /** Enabled rules after an id, by id. Pass `record` to `readRule`. */
  enabledAfter(id: string, limit: number): { id: string; record: string }[]
  /** Column `record` of an enabled rule. */
  enabledText(id: string): string | undefined
  /** Like `enabledOf`, including disabled rules. */
  boundTo(triggerId: string): { id: string; record: string }[]
  /** Reference and owner of each rule of a trigger, enabled or not, by reference. */
  namesOf(triggerId: string): { ref: string; user: string }[]
  /** Those that say how long they keep their executions. */
  keeps(): Promise<RuleKeep[]>
  insert(rule: Rule): Step
  /** Fails with `Conflict` if the row has another revision. */
  update(rule: Rule, seenRevision: number): Step
  /** Fails with `Conflict` if the row has changed. */
  delete(rule: Rule): Step
}

/** Larger pages run on the scan thread, which limits the number of waiting searches. */
const MAX_QUICK_ROWS = 1000

/** Parses column `record`. */
export function readRule(text: string): Rule {
  return readJson(text) as Rule // written by `ruleRow`
}

export function createRuleStore(database: Database): RuleStore {
  const { build } = database
  function matching(filter: RuleFilter) {
    let query = build.selectFrom('rules')
    if (filter.pack !== undefined) query = query.where('pack', '=', filter.pack)
    if (filter.name !== undefined) query = query.where('name', '=', filter.name)
    if (filter.action !== undefined) query = query.where('action_ref', '=', filter.action)
    if (filter.triggers !== undefined) query = query.where(isAmong('trigger_id', filter.triggers))
    if (filter.enabled !== undefined) query = query.where('enabled', '=', Number(filter.enabled))
    if (filter.user !== undefined) query = query.where('user', '=', filter.user)
    if (filter.ids !== undefined) query = query.where(isAmong('id', filter.ids))
    return query
  }

  const bound = (triggerId: string) =>
    build.selectFrom('rules').select(['id', 'record']).where('trigger_id', '=', triggerId).orderBy('id')

  const count = (filter: RuleFilter): number =>
    database.first(matching(filter).select((on) => on.fn.countAll<number>().as('total')))?.total ?? 0

  const parsed = (row: { record: string } | undefined): Rule | undefined =>
    row === undefined ? undefined : readRule(row.record)

  return {
    find: (id) => parsed(database.first(build.selectFrom('rules').select('record').where('id', '=', id))),
    findByRef: (ref) => parsed(database.first(build.selectFrom('rules').select('record').where('ref', '=', ref))),
    findByIds: (ids) =>
      database
        .all(build.selectFrom('rules').select('record').where(isAmong('id', ids)))
        .map(({ record }) => readRule(record)),
    async page(filter, { limit, offset }) {
      const query = matching(filter)
        .select('id')
        .orderBy('pack')
        .orderBy('name')
        .limit(limit ?? -1)
        .offset(offset)
      const isShort = (limit ?? Infinity) <= MAX_QUICK_ROWS || count(filter) <= MAX_QUICK_ROWS
      return (isShort ? database.all(query) : await database.scan(query)).map(({ id }) => id)
    },
    keys: (filter) => database.scan(matching(filter).select(['id', 'ref', 'user']).orderBy('pack').orderBy('name')),
    count,
    ofPack: (pack) =>
      database
        .all(build.selectFrom('rules').select('record').where('pack', '=', pack))
        .map(({ record }) => readRule(record)),
    enabledOf: (triggerId) => database.all(bound(triggerId).where('enabled', '=', 1)),
    revisionsOf: (triggerId) =>
      database.all(
        build
          .selectFrom('rules')
          .select(['id', 'revision'])
          .where('trigger_id', '=', triggerId)
          .where('enabled', '=', 1)
          .orderBy('id'),
      ),
    enabledAfter: (id, limit) =>
      database.all(
        build
          .selectFrom('rules')
          .select(['id', 'record'])
          .where('enabled', '=', 1)
          .where('id', '>', id)
          .orderBy('id')
          .limit(limit),
      ),
    boundTo: (triggerId) => database.all(bound(triggerId)),
    namesOf: (triggerId) =>
      database.all(
        build.selectFrom('rules').select(['ref', 'user']).where('trigger_id', '=', triggerId).orderBy('ref'),
      ),
    enabledText: (id) =>
      database.first(build.selectFrom('rules').select('record').where('id', '=', id).where('enabled', '=', 1))?.record,
    keeps: async () =>
      (
        await database.scan(
          build
            .selectFrom('rules')
            .select(['id', 'name', sql<string>`json_extract(record, '$.keep')`.as('keep')])
            .where(sql<SqlBool>`json_extract(record, '$.keep') is not null`)
            .orderBy('id'),
        )
      ).map(({ keep, ...rule }) => ({ ...rule, keep: readJson(keep) as Keep })), // checked with the rule
    insert: (rule) => ({ query: build.insertInto('rules').values(ruleRow(rule)) }),
    update: (rule, seenRevision) => ({
      query: build
        .updateTable('rules')
        .set(ruleRow(rule))
        .where('id', '=', rule.id)
        .where('revision', '=', seenRevision),
      expect: 1,
    }),
    delete: ({ id, revision }) => ({
      query: build.deleteFrom('rules').where('id', '=', id).where('revision', '=', revision),
      expect: 1,
    }),
  }
}

function ruleRow(rule: Rule): RuleTable {
  return {
    id: rule.id,
    revision: rule.revision,
    ref: rule.ref,
    pack: rule.pack,
    name: rule.name,
    enabled: Number(rule.enabled),
    action_ref: rule.action.ref,
    trigger_id: rule.trigger.id,
    trigger: rule.trigger.ref,
    user: rule.context.user,
    record: writeJson(rule),
  }
}
