import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { playInspections, playStarts } from './inspect.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

test('inspection agrees with the golden data', async () => {
  expect(printTally(await playInspections(folder))).toBe('inspect: 121 agree, 0 differ')
})

test('so do the inspections before golden runs', async () => {
  const tally = await playStarts(folder)
  expect(printTally(tally)).toBe(`inspect before runs: ${tally.agree} agree, 0 differ`)
  expect(tally.agree).toBeGreaterThan(380)
})
