import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { fullOnly } from '../helpers/tiers.ts'
import { playConduct } from './conduct.ts'
import { onPurpose } from './on-purpose.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

/** What differs unexpectedly, and how many rows differ at all. */
function play(isRestarted: boolean): { shown: string; differing: number } {
  const tally = playConduct(folder, isRestarted)
  const differences = tally.differences.filter(({ id }) => onPurpose.conduct[id] === undefined)
  return { shown: printTally({ name: tally.name, agree: 0, differences }), differing: tally.differences.length }
}

const agreement = { shown: 'conduct: 0 agree, 0 differ', differing: Object.keys(onPurpose.conduct).length }

test('the conductor agrees with the golden data', () => {
  expect(play(false)).toEqual(agreement)
})

fullOnly(test)('the conductor agrees with the golden data when the server restarts before each event', () => {
  expect(play(true)).toEqual(agreement)
})
