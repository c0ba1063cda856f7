/** Records per read. */
const RECORDS_TOGETHER = 100

/** Reads in batches, because a list can contain every record. */
export function* inOrder<T extends { id: string }>(
  ids: readonly string[],
  find: (ids: readonly string[]) => T[],
): Generator<T> {
  for (let start = 0; start < ids.length; start += RECORDS_TOGETHER) {
    const some = ids.slice(start, start + RECORDS_TOGETHER)
    const found = new Map(find(some).map((item) => [item.id, item]))
    for (const id of some) {
      const item = found.get(id)
      if (item !== undefined) yield item
    }
  }
}
