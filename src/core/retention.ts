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
  /** Leaves the records that these decide about. */
  own?: OwnRetention
}

export interface RetentionSlice {
  /** Records that were deleted, or would be. */
  records: number
  /** Where the next slice begins; undefined: no more old records. */
  next: string | undefined
}

/** Retentions of single actions and rules, as they are at the start of a round. */
export interface OwnRetention {
  /**
   * Deletes what they no longer keep.
   *
   * @param now microseconds since the epoch
   * @param byAge false: only what is beyond their numbers
   * @returns the number of records of each slice
   */
  remove(now: number, byAge: boolean): AsyncIterable<number>
}

export interface Retention {
  kind: RecordKind
  /** Resolves with undefined: no record has a retention of its own. Absent: no record of the kind can have one. */
  readOwn?(): Promise<OwnRetention | undefined>
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
