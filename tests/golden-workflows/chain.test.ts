import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { playChain } from './chain.ts'
import { onPurpose } from './on-purpose.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

test.each([
  ['as it is', false],
  ['when the server restarts before each event', true],
])('the conductor of chains agrees with the golden data %s', (_, isRestarted) => {
  const tally = playChain(folder, isRestarted)
  const unexpected = tally.differences.filter(({ id }) => onPurpose.chain[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe('chain: 69 agree, 0 differ')
})
