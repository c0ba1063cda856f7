import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { fullOnly } from '../helpers/tiers.ts'
import { playConduct } from './conduct.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

const lateArrival = 'a late arrival at a join is ignored, also while the items of the join run'
const sameRoute = 'the end of an action that a cycle has started twice belongs to the instance that asked for it'

/** Rows in which svc differs on purpose, or knowingly. */
const onPurpose: Readonly<Record<string, string>> = {
  'h054/oldest': 'input that looks like an expression is data',
  'r0103/oldest': sameRoute,
  'r0103/newest': sameRoute,
  'r0103/1': sameRoute,
  'r0111/oldest': lateArrival,
  'r0111/1': lateArrival,
  'r0125/oldest': sameRoute,
  'r0125/1': sameRoute,
  'r0208/oldest': lateArrival,
}

/** What differs unexpectedly, and how many rows differ at all. */
function play(isRestarted: boolean): { shown: string; differing: number } {
  const tally = playConduct(folder, isRestarted)
  const differences = tally.differences.filter(({ id }) => onPurpose[id] === undefined)
  return { shown: printTally({ name: tally.name, agree: 0, differences }), differing: tally.differences.length }
}

const agreement = { shown: 'conduct: 0 agree, 0 differ', differing: Object.keys(onPurpose).length }

test('the conductor agrees with the golden data', () => {
  expect(play(false)).toEqual(agreement)
})

fullOnly(test)('the conductor agrees with the golden data when the server restarts before each event', () => {
  expect(play(true)).toEqual(agreement)
})
