/** Old notifications are deleted once they wait no more. */
import type { Database } from '../../db/index.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { microsOfId } from '../../core/ids.ts'
import { retire, type OldRecords, type Retention } from '../../core/retention.ts'
import type { NotificationStore } from './store.ts'

const AT_ONCE = 500
/** Failures of jobs that have not run since. */
const FAILURES_KEPT_MICROS = 365 * 86_400_000_000
const END_OF_TIME = '9999-12-31T00:00:00.000000Z'

export function createNotificationRetention(deps: {
  store: NotificationStore
  database: Pick<Database, 'write'>
}): Retention {
  const { store, database } = deps

  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = store.endedBefore(before, after, limit)
    return {
      ids: rows.filter(({ isEnded }) => isEnded).map(({ id }) => id),
      next: rows.length < limit ? undefined : rows.at(-1)?.id,
    }
  }

  return {
    ...retire({
      kind: 'notifications',
      atOnce: AT_ONCE,
      look,
      async removeAll(ids) {
        const before = formatMicros(nowMicros() - FAILURES_KEPT_MICROS)
        const [deleted] = await database.write({ steps: [store.delete(ids), store.forgetFailures(before)], facts: [] })
        return deleted?.changes ?? 0
      },
    }),
    total: () => store.countAll(),
    oldest(skip) {
      const row = store.endedBefore(END_OF_TIME, '', skip + 1).at(skip)
      return row === undefined ? undefined : formatMicros(microsOfId(row.id))
    },
  }
}
