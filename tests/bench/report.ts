/** Rows of the report: each figure beside its budget and a reference measured in the same run. */
export interface Row {
  work: string
  /** What was measured, with its unit. */
  ours: string
  /** The reference, measured in this run; empty where the budget is absolute. */
  reference: string
  budget: string
  isMet: boolean
  /** What has to be known to read the figure. */
  note?: string
  /** Why the budget is missed, where that is known; printed only then. */
  reason?: string
}

export function printRows(rows: readonly Row[]): void {
  const headings = ['work', 'measured', 'reference in this run', 'budget', '']
  const cells = rows.map((row) => [row.work, row.ours, row.reference, row.budget, row.isMet ? 'met' : 'MISSED'])
  const widths = headings.map((heading, i) => Math.max(heading.length, ...cells.map((line) => line[i]?.length ?? 0)))
  const format = (line: string[]): string =>
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  process.stdout.write(`${format(headings)}\n${format(widths.map((width) => '-'.repeat(width)))}\n`)
  for (const [i, line] of cells.entries()) {
    process.stdout.write(`${format(line)}\n`)
    const row = rows[i]
    if (row?.note !== undefined) process.stdout.write(`    ${row.note}\n`)
    if (row?.reason !== undefined && !row.isMet) process.stdout.write(`    ${row.reason}\n`)
  }
}

export const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`
export const perSecond = (value: number): string => `${value.toFixed(0)}/s`
export const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`
export const times = (value: number): string => `${value.toFixed(2)} ×`

/** The value that `share` of the numbers do not exceed. */
export function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5)
