import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { playExpressions } from './expressions.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

/** Cases in which svc differs on purpose. */
const onPurpose: Readonly<Record<string, string>> = {
  j0311: 'use_none keeps null, which no parameter of svc turns into text',
  j0512: 'what a block has printed is not evaluated again',
  j0522: 'autoescape is no statement of svc',
  j0531: 'data is not evaluated',
  j0532: 'data is not evaluated',
  j0533: 'data is not evaluated',
}

test('Jinja agrees with the golden data', () => {
  const tally = playExpressions(folder, 'jinja')
  const unexpected = tally.differences.filter(({ id }) => onPurpose[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe(`jinja: ${tally.agree} agree, 0 differ`)
  expect(tally.agree).toBeGreaterThanOrEqual(248)
})
