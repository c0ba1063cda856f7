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
