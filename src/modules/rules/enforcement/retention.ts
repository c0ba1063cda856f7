/** Deletes old rule enforcements (contract 10, 10.5). */
import type { Database } from '../../../db/index.ts'
import { retire, type OldRecords, type Retention } from '../../../core/retention.ts'
import type { EnforcementStore } from './store.ts'

const AT_ONCE = 200

export function createEnforcementRetention(deps: {
  store: EnforcementStore
  database: Pick<Database, 'write'>
}): Retention {
  const { store, database } = deps

  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = store.enforcedBefore(before, after, limit)
    return { ids: rows.map(({ id }) => id), next: rows.length < limit ? undefined : rows.at(-1)?.id }
  }

  return {
    ...retire({
      kind: 'rule-enforcements',
      atOnce: AT_ONCE,
      look,
      async removeAll(ids) {
        const [result] = await database.write({ steps: [store.delete(ids)], facts: [] })
        return result?.changes ?? 0
      },
    }),
    total: () => store.countAll(),
    oldest: (skip) => store.enforcedBefore('9999-12-31T00:00:00.000000Z', '', skip + 1).at(skip)?.enforced_at,
  }
}
