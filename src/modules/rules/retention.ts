/** Old rule enforcements go (contract 10, 10.5). */
import type { Database } from '../../db/database.ts'
import type { OldRecords, Retention } from '../../retention.ts'
import type { RuleStore } from './store.ts'

const AT_ONCE = 200

export function createRetention(deps: { store: RuleStore; database: Pick<Database, 'write'> }): Retention {
  const { store, database } = deps

  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = store.enforcedBefore(before, after, limit)
    return { ids: rows.map(({ id }) => id), next: rows.length < limit ? undefined : rows.at(-1)?.id }
  }

  return {
    kind: 'rule-enforcements',
    count(old) {
      const { ids, next } = look(old)
      return { records: ids.length, next }
    },
    async remove(old) {
      const { ids, next } = look({ ...old, limit: Math.min(old.limit, AT_ONCE) })
      if (ids.length === 0) return { records: 0, next }
      const [result] = await database.write({ steps: [store.deleteEnforcements(ids)], facts: [] })
      return { records: result?.changes ?? 0, next }
    },
    total: () => store.countAllEnforcements(),
    oldest: (skip) => store.enforcedBefore('9999-12-31T00:00:00.000000Z', '', skip + 1).at(skip)?.enforced_at,
  }
}
