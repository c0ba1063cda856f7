import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { printTally, type Tally } from '../golden-workflows/tally.ts'
import { playMetadata } from './metadata.ts'
import { onPurpose } from './on-purpose.ts'
import { playYaml } from './yaml.ts'

const folder = fileURLToPath(new URL('../golden/stackstorm/', import.meta.url))

/** Without the rows that differ on purpose; each of these differs. */
function unexpected({ differences, ...tally }: Tally, reasons: Readonly<Record<string, string>> = {}): string {
  const ids = new Set(differences.map(({ id }) => id))
  expect(Object.keys(reasons).filter((id) => !ids.has(id))).toEqual([])
  return printTally({ ...tally, differences: differences.filter(({ id }) => reasons[id] === undefined) })
}

test('packs are registered as the golden data says', async () => {
  expect(unexpected(await playMetadata(folder), onPurpose.metadata)).toBe('metadata: 477 agree, 0 differ')
})

test('YAML is read as the golden data says', () => {
  expect(unexpected(playYaml(folder), onPurpose.yaml)).toBe('yaml: 370 agree, 0 differ')
})
