/** What became of each record of an import, for the report. */
import { HttpFailure } from '../failures.ts'

/**
 * `imported`: made here. `changed`: an earlier import had made it, and its source has changed. `replaced`: what was here was
 * replaced, as asked for. `conflict`: it differs from what is here, which stays. `refused`: svc cannot take it.
 */
export type Outcome = 'imported' | 'changed' | 'replaced' | 'unchanged' | 'conflict' | 'refused' | 'skipped'

export interface Row {
  kind: string
  name: string
  outcome: Outcome
  /** Why, or what else is to be known. */
  why?: string
  /** The file and record it comes from. */
  source?: string
}

export type Counts = Record<string, Partial<Record<Outcome, number>>>

/** Counts every row, and passes each on. */
export function createRows(take: (row: Row) => void): { add: (row: Row) => void; counts: Counts } {
  const counts: Counts = {}
  return {
    counts,
    add(row) {
      const ofKind = (counts[row.kind] ??= {})
      ofKind[row.outcome] = (ofKind[row.outcome] ?? 0) + 1
      take(row)
    },
  }
}

/** What the server says when it refuses something; other errors are thrown again. */
export function refusalOf(error: unknown): string {
  if (!(error instanceof HttpFailure) || error.status >= 500 || error.status === 401) throw error
  return /\nMESSAGE: ([^]*) for url: \S*$/.exec(error.message)?.[1] ?? error.message
}
