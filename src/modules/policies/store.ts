/** Table `policies`. Reads, and functions that return steps. */
import type { Database, Step, PolicyTable } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import type { Policy } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

export interface PolicyFilter {
  name?: string | undefined
  pack?: string | undefined
  resource_ref?: string | undefined
  policy_type?: string | undefined
}

export interface PolicyStore {
  find(id: string): Policy | undefined
  findByRef(ref: string): Policy | undefined
  /** In the order of pack and name. */
  list(filter: PolicyFilter, page: Page): Promise<Policy[]>
  count(filter: PolicyFilter): number
  ofPack(pack: string): Policy[]
  /** About an action, in the order of their references. */
  enabledOf(actionRef: string): Policy[]
  insert(policy: Policy): Step
  /** Fails with `Conflict` unless the row is as it was seen. */
  update(policy: Policy, seenRevision: number): Step
  /** Fails with `Conflict` likewise. */
  delete(policy: Policy): Step
}

/** More rows are read on the scan thread, whose queue is bounded. */
const MAX_QUICK_ROWS = 1000

export function createPolicyStore(database: Database): PolicyStore {
  const { build } = database

  function matching(filter: PolicyFilter) {
    let query = build.selectFrom('policies')
    for (const column of ['pack', 'name', 'resource_ref', 'policy_type'] as const) {
      const value = filter[column]
      if (value !== undefined) query = query.where(column, '=', value)
    }
    return query
  }

  const count = (filter: PolicyFilter): number =>
    database.first(matching(filter).select((on) => on.fn.countAll<number>().as('total')))?.total ?? 0

  const parsed = (row: { record: string }): Policy => readJson(row.record) as Policy // written by `policyRow`
  const first = (row: { record: string } | undefined): Policy | undefined =>
    row === undefined ? undefined : parsed(row)

  return {
    find: (id) => first(database.first(build.selectFrom('policies').select('record').where('id', '=', id))),
    findByRef: (ref) => first(database.first(build.selectFrom('policies').select('record').where('ref', '=', ref))),
    async list(filter, { limit, offset }) {
      const query = matching(filter).select('record').orderBy('pack').orderBy('name')
      const pageOf = query.limit(limit ?? -1).offset(offset)
      const isShort = (limit ?? Infinity) <= MAX_QUICK_ROWS || count(filter) <= MAX_QUICK_ROWS
      return (isShort ? database.all(pageOf) : await database.scan(pageOf)).map(parsed)
    },
    count,
    ofPack: (pack) => database.all(build.selectFrom('policies').select('record').where('pack', '=', pack)).map(parsed),
    enabledOf: (actionRef) =>
      database
        .all(
          build
            .selectFrom('policies')
            .select('record')
            .where('resource_ref', '=', actionRef)
            .where('enabled', '=', 1)
            .orderBy('ref'),
        )
        .map(parsed),
    insert: (policy) => ({ query: build.insertInto('policies').values(policyRow(policy)) }),
    update: (policy, seenRevision) => ({
      query: build
        .updateTable('policies')
        .set(policyRow(policy))
        .where('id', '=', policy.id)
        .where('revision', '=', seenRevision),
      expect: 1,
    }),
    delete: ({ id, revision }) => ({
      query: build.deleteFrom('policies').where('id', '=', id).where('revision', '=', revision),
      expect: 1,
    }),
  }
}

function policyRow(policy: Policy): PolicyTable {
  return {
    id: policy.id,
    revision: policy.revision,
    ref: policy.ref,
    pack: policy.pack,
    name: policy.name,
    resource_ref: policy.resource_ref,
    policy_type: policy.policy_type,
    enabled: Number(policy.enabled),
    record: writeJson(policy),
  }
}
