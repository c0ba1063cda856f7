import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
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

test.each([
  ['', false],
  [' when the server restarts before each event', true],
])('the conductor agrees with the golden data%s', (_, isRestarted) => {
  const tally = playConduct(folder, isRestarted)
  const unexpected = tally.differences.filter(({ id }) => onPurpose[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe(`conduct: ${tally.agree} agree, 0 differ`)
  expect(tally.differences.length).toBeLessThanOrEqual(Object.keys(onPurpose).length)
})
