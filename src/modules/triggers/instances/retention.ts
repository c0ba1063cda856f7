/** Deletes old trigger instances (contract 10, 10.5). */
import type { Database } from '../../../db/index.ts'
import { retire, type OldRecords, type Retention } from '../../../core/retention.ts'
import type { InstanceStore } from './store.ts'

/** Instances per batch; payloads can be long. */
const AT_ONCE = 100

export function createInstanceRetention(deps: { store: InstanceStore; database: Pick<Database, 'write'> }): Retention {
  const { store, database } = deps

  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = store.occurredBefore(before, after, limit)
    const ids = rows.filter(({ status }) => status !== 'pending').map(({ id }) => id)
    return { ids, next: rows.length < limit ? undefined : rows.at(-1)?.id }
  }

  return {
    ...retire({
      kind: 'trigger-instances',
      atOnce: AT_ONCE,
      look,
      async removeAll(ids) {
        const [result] = await database.write({
          steps: [store.deleteProcessed(ids), store.deleteRepetitions(ids)],
          facts: [],
        })
        return result?.changes ?? 0
      },
    }),
    total: () => store.count(),
    oldest: (skip) => store.occurredBefore('9999-12-31T00:00:00.000000Z', '', skip + 1).at(skip)?.occurrence_time,
  }
}
