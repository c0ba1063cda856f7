import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { onPurpose } from './on-purpose.ts'

const idsIn = (name: string): string[] =>
  readFileSync(fileURLToPath(new URL(`../golden/workflows/${name}.jsonl`, import.meta.url)), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => /"id": *"([^"]+)"/.exec(line)?.[1] ?? '')

test('fewer than 1 % of the golden rows differ on purpose', () => {
  const rows = Object.entries(onPurpose).map(([name, reasons]) => ({
    ids: idsIn(name),
    differing: Object.keys(reasons),
  }))
  for (const { ids, differing } of rows) expect(ids).toEqual(expect.arrayContaining(differing))
  const count = (lists: readonly (readonly string[])[]): number => lists.flat().length
  expect(count(rows.map(({ differing }) => differing))).toBeLessThan(count(rows.map(({ ids }) => ids)) / 100)
})
