/** Port: modules delete their old records slice by slice, oldest first. Each slice is a few milliseconds of work. */

/** In the order of a round (contract 10, 10.5). */
export const recordKinds = [
  'executions',
  'output',
  'trigger-instances',
  'traces',
  'tokens',
  'rule-enforcements',
  'notifications',
  'workflows',
] as const

export type RecordKind = (typeof recordKinds)[number]

export interface OldRecords {
  /** Wire timestamp: older records are deleted. */
  before: string
  /** Where the previous slice ended; empty: start at the beginning. */
  after: string
  /** Most records that one slice examines. */
  limit: number
  /** Executions only: limits the deletion to this action. */
  actionRef?: string
}

export interface RetentionSlice {
  /** Records that were deleted, or would be. */
  records: number
  /** Where the next slice begins; undefined: no more old records. */
  next: string | undefined
}

export interface Retention {
  kind: RecordKind
  /** Counts the records that `remove` would delete. */
  count(old: OldRecords): RetentionSlice
  /** Deletes old records, except those that others still need: unfinished records and their parents. */
  remove(old: OldRecords): Promise<RetentionSlice>
  /** The number of records; absent where the module does not count them. */
  total?(): number
  /** Wire timestamp of the oldest record that can be deleted, after skipping this many; undefined: there are fewer. */
  oldest?(skip: number): string | undefined
}

/** Records that are deleted by id alone. */
export interface Ageing {
  kind: RecordKind
  /** Most records that one statement deletes. */
  atOnce: number
  /** Finds old records and the start of the next slice. */
  readonly look: (old: OldRecords) => { ids: string[]; next: string | undefined }
  /** Resolves with the number of deleted records; never called without ids. */
  readonly removeAll: (ids: string[]) => Promise<number>
}

export function retire({ kind, atOnce, look, removeAll }: Ageing): Pick<Retention, 'kind' | 'count' | 'remove'> {
  return {
    kind,
    count(old) {
      const { ids, next } = look(old)
      return { records: ids.length, next }
    },
    async remove(old) {
      const { ids, next } = look({ ...old, limit: Math.min(old.limit, atOnce) })
      return { records: ids.length === 0 ? 0 : await removeAll(ids), next }
    },
  }
}
