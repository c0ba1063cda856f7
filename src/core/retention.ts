/** What modules offer so that their old records can go: slice by slice, oldest first, each slice a few milliseconds of work. */

/** In the order of a round (contract 10, 10.5). */
export const recordKinds = [
  'executions',
  'output',
  'trigger-instances',
  'traces',
  'tokens',
  'rule-enforcements',
] as const

export type RecordKind = (typeof recordKinds)[number]

export interface OldRecords {
  /** Wire timestamp: what is older goes. */
  before: string
  /** Where the slice before has ended; empty: at the beginning. */
  after: string
  /** Most records to look at. */
  limit: number
  /** Executions only: those of this action. */
  actionRef?: string
}

export interface RetentionSlice {
  /** How many went, or would go. */
  records: number
  /** Where the next slice begins; undefined: there is nothing more that is old. */
  next: string | undefined
}

export interface Retention {
  kind: RecordKind
  /** What `remove` would do. */
  count(old: OldRecords): RetentionSlice
  /** What others still need stays: whatever has not ended, and what it belongs to. */
  remove(old: OldRecords): Promise<RetentionSlice>
  /** How many there are; absent where nobody has counted them. */
  total?(): number
  /** Wire timestamp of the oldest that could go, after passing over so many; undefined: there are not so many. */
  oldest?(skip: number): string | undefined
}

/** Records that are known by their ids alone. */
export interface Ageing {
  kind: RecordKind
  /** Most records that go at once. */
  atOnce: number
  /** Which are old, and where the next slice begins. */
  readonly look: (old: OldRecords) => { ids: string[]; next: string | undefined }
  /** Resolves with how many went; never called without ids. */
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
