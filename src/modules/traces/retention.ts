/** Old traces go with their components (contract 10, 10.5). */
import type { Database } from '../../db/index.ts'
import { retire, type OldRecords, type Retention } from '../../core/retention.ts'
import type { TraceStore } from './store.ts'

const TRACES_AT_ONCE = 50
const COMPONENTS_AT_ONCE = 500

export function createTraceRetention(deps: {
  store: TraceStore
  database: Pick<Database, 'write'>
  /** Ids of traces that something belongs to which has not ended. */
  readonly openTraces: () => Iterable<string>
}): Retention {
  const { store, database, openTraces } = deps

  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = store.startedBefore(before, after, limit)
    return {
      ids: notOpen(rows.map(({ id }) => id)),
      next: rows.length < limit ? undefined : rows.at(-1)?.id,
    }
  }

  function notOpen(ids: string[]): string[] {
    if (ids.length === 0) return ids
    const open = new Set(openTraces())
    return ids.filter((id) => !open.has(id))
  }

  return {
    ...retire({
      kind: 'traces',
      atOnce: TRACES_AT_ONCE,
      look,
      async removeAll(all) {
        let ids = all
        // A trace may have a million components. After a crash in between it has fewer, and the next run removes it. The
        // same holds for a trace that gets a new component now.
        while (store.countComponents(ids, COMPONENTS_AT_ONCE + 1) > COMPONENTS_AT_ONCE) {
          await database.write({ steps: store.deleteComponents(ids, COMPONENTS_AT_ONCE), facts: [] })
          ids = notOpen(ids)
        }
        if (ids.length === 0) return 0
        const results = await database.write({
          steps: [...store.deleteComponents(ids, 2 * COMPONENTS_AT_ONCE), store.deleteTraces(ids)],
          facts: [],
        })
        return results.at(-1)?.changes ?? 0
      },
    }),
    total: () => store.count(),
    oldest: (skip) => store.startedBefore('9999-12-31T00:00:00.000000Z', '', skip + 1).at(skip)?.start_timestamp,
  }
}
