import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { playExpressions } from './expressions.ts'
import { printTally } from './tally.ts'

const folder = fileURLToPath(new URL('../golden/workflows/', import.meta.url))

const unread = 'data is not evaluated'
const writable = 'an object within a list or object is valid JSON'
const units = 'the unit and the days are right'

/** Cases in which svc differs on purpose. */
const onPurpose: Readonly<Record<string, string>> = {
  j0311: 'use_none keeps null, which svc never turns into text',
  j0512: 'what a template has printed is not evaluated again',
  j0522: 'autoescape is no statement of svc',
  j0531: unread,
  j0532: unread,
  j0533: unread,
  y0125: 'svc knows no characters by name',
  y1912: 'NaN is no JSON',
  y3205: writable,
  y3206: writable,
  y3213: writable,
  y3216: writable,
  y3218: writable,
  y3229: 'a quote at the end is kept',
  y3238: 'a query finds what is deep within the data',
  y3240: 'the error is one of the query',
  y3263: units,
  y3264: units,
  y3268: units,
  y3528: unread,
  y3530: unread,
  y3535: unread,
  y3538: unread,
  y3540: unread,
}

test.each([
  ['jinja', 255],
  ['yaql', 2528],
] as const)('%s agrees with the golden data', (name, count) => {
  const tally = playExpressions(folder, name)
  const unexpected = tally.differences.filter(({ id }) => onPurpose[id] === undefined)
  expect(printTally({ ...tally, differences: unexpected })).toBe(`${name}: ${tally.agree} agree, 0 differ`)
  expect(tally.agree + tally.differences.length).toBe(count)
})
