import type { InspectionEntry } from '../types.ts'
import { compareText } from '../definition/graph.ts'

/** A definition with more mistakes needs another look after the first ones are corrected. */
const MAX_ENTRIES = 1_000
/** Of the texts of all entries together. */
const MAX_CHARS = 4 * 1_048_576

/** Collects entries, up to a limit. */
export class Findings {
  readonly entries: InspectionEntry[] = []
  #chars = 0
  #hasMore = false

  constructor(known: { readonly entries: readonly InspectionEntry[]; readonly hasMore: boolean } = nothing) {
    this.addAll(known.entries)
    this.#hasMore = known.hasMore
  }

  /** Whether some entries had no room. */
  get hasMore(): boolean {
    return this.#hasMore
  }

  addAll(entries: Iterable<InspectionEntry>): void {
    for (const entry of entries) {
      this.#chars += sizeOf(entry)
      this.#hasMore ||= this.entries.length === MAX_ENTRIES || this.#chars > MAX_CHARS
      if (this.#hasMore) return
      this.entries.push(entry)
    }
  }

  /** By type and rule. Of one rule, entries about actions stand in the order of the tasks, others in that of the paths. */
  sorted(): InspectionEntry[] {
    const sorted = this.entries.toSorted(
      (a, b) =>
        compareText(a.type, b.type) ||
        compareText(a.schema_path ?? '', b.schema_path ?? '') ||
        (a.type === 'content' ? 0 : compareText(a.spec_path ?? '', b.spec_path ?? '')),
    )
    return this.#hasMore ? [...sorted, moreThan(sorted.length)] : sorted
  }
}

const sizeOf = ({ message, spec_path, schema_path, expression }: InspectionEntry): number =>
  [message, spec_path, schema_path, expression].reduce((sum, text) => sum + (text?.length ?? 0), 0)

const nothing = { entries: [], hasMore: false }

function moreThan(count: number): InspectionEntry {
  const message = `The definition has more than these ${count} problems. Correct them and inspect it again.`
  return { type: 'syntax', message, spec_path: null, schema_path: null }
}
