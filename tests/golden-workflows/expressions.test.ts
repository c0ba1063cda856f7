import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { playExpressions } from './expressions.ts'
import { onPurpose } from './on-purpose.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

test.each([
  ['jinja', 255],
  ['yaql', 2528],
] as const)('%s agrees with the golden data', (name, count) => {
  const tally = playExpressions(folder, name)
  const unexpected = tally.differences.filter(({ id }) => onPurpose[name][id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe(`${name}: ${tally.agree} agree, 0 differ`)
  expect(tally.agree + tally.differences.length).toBe(count)
})
