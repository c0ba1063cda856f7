/** Whether executions that wait for policies wait for each other, through the workflows that they belong to. */

/** An execution above a limit. */
export interface Wait {
  /** Key of the limit. */
  readonly key: string
  /** Ids of the workflows that cannot end before it. */
  readonly above: ReadonlySet<string>
}

/**
 * A workflow that counts for a limit ends after its tasks. When each execution that counts for the limit is above one that
 * waits, and the same holds for the limits of those, none of them ever runs.
 *
 * @param holdersOf ids of the executions that count for a limit
 */
export function waitsForItself(
  wanted: Wait,
  others: readonly Wait[],
  holdersOf: (key: string) => readonly string[],
): boolean {
  let stuck = [wanted, ...others]
  for (;;) {
    const blocked = new Set(stuck.flatMap(({ above }) => [...above]))
    const left = stuck.filter(({ key }) => holdersOf(key).every((holder) => blocked.has(holder)))
    if (!left.includes(wanted)) return false
    if (left.length === stuck.length) return true
    stuck = left
  }
}
