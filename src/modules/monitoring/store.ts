/** Table `status_samples`. Reads, and functions that return steps. */
import { type Database, type Step, prepared, type StatusSampleTable } from '../../db/index.ts'

export interface MonitoringStore {
  /** Samples from `first` to `last`, both included, in order. */
  samples(first: number, last: number): StatusSampleTable[]
  /** Inserts or replaces. */
  put(row: StatusSampleTable): Step
  /** Deletes all samples outside of this range. */
  keep(first: number, last: number): Step
}

export function createMonitoringStore(database: Database): MonitoringStore {
  const { build } = database
  const put = prepared(
    build
      .insertInto('status_samples')
      .values({ minute: 0, sample: '' })
      .onConflict((on) => on.column('minute').doUpdateSet({ sample: '' })),
    ({ minute, sample }: StatusSampleTable) => [minute, sample, sample],
  )
  return {
    samples: (first, last) =>
      database.all(
        build
          .selectFrom('status_samples')
          .selectAll()
          .where('minute', '>=', first)
          .where('minute', '<=', last)
          .orderBy('minute'),
      ),
    put: (row) => ({ query: put(row) }),
    keep: (first, last) => ({
      query: build
        .deleteFrom('status_samples')
        .where((on) => on.or([on('minute', '<', first), on('minute', '>', last)])),
    }),
  }
}
