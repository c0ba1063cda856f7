import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { printTally } from '../golden-workflows/tally.ts'
import { playResults } from './results.ts'

const inOutput = 'the value does not come with the output, so no text in it can be in the way'
const onPurpose: Readonly<Record<string, string>> = { res_148: inOutput, res_149: inOutput }

test('actions have the results of the golden data', async () => {
  const { differences, ...tally } = await playResults(fileURLToPath(new URL('../golden/stackstorm/', import.meta.url)))
  const unexpected = differences.filter(({ id }) => onPurpose[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe('results: 112 agree, 0 differ')
})
