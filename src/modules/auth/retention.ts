/** Tokens that expired long ago go (contract 10, 10.5). */
import type { Database } from '../../db/index.ts'
import { retire, type OldRecords, type Retention } from '../../core/retention.ts'
import type { AuthStore } from './store.ts'

const AT_ONCE = 200

export function createTokenRetention(deps: { store: AuthStore; database: Pick<Database, 'write'> }): Retention {
  const { store, database } = deps

  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const [expiry = '', id = ''] = after.split(' ')
    const rows = store.expiredBefore(before, { expiry, id }, limit)
    const last = rows.length < limit ? undefined : rows.at(-1)
    return { ids: rows.map((row) => row.id), next: last && `${last.expiry} ${last.id}` }
  }

  return retire({
    kind: 'tokens',
    atOnce: AT_ONCE,
    look,
    async removeAll(ids) {
      const [result] = await database.write({ steps: [store.deleteTokens(ids)], facts: [] })
      return result?.changes ?? 0
    },
  })
}
