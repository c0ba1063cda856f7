/** A case that svc answers in another way than the golden data. */
export interface Difference {
  readonly id: string
  /** What was evaluated, as JSON. */
  readonly input: string
  readonly expected: string
  readonly actual: string
}

/** How svc and a file of golden data agree. */
export interface Tally {
  /** As in `jinja`. */
  readonly name: string
  readonly agree: number
  readonly differences: readonly Difference[]
}

/** `NAME: n agree, n differ`, then each difference. */
export function printTally({ name, agree, differences }: Tally): string {
  const lines = differences.map(
    ({ id, input, expected, actual }) => `${id} ${input}\n  expected ${expected}\n  actual   ${actual}`,
  )
  return [`${name}: ${agree} agree, ${differences.length} differ`, ...lines].join('\n')
}
