/** The rows of `tests/golden/workflows` in which svc differs on purpose, with the reason. They are fewer than 1 % of all rows. */
import type { GoldenFile } from './players.ts'

const unread = 'data is not evaluated'
const writable = 'an object within a list or object is valid JSON'
const units = 'the unit and the days are right'
const lateArrival = 'a late arrival at a join is ignored, also while the items of the join run: no action runs twice'
const sameRoute =
  'the end of an action that a cycle has started twice belongs to the instance that asked for it, never to a later one'

/** File → row → reason. */
export const onPurpose: Readonly<Record<GoldenFile, Readonly<Record<string, string>>>> = {
  jinja: {
    j0311: 'use_none keeps null, which svc never turns into text',
    j0512: 'what a template has printed is not evaluated again',
    j0522: 'autoescape is no statement of svc',
    j0531: unread,
    j0532: unread,
    j0533: unread,
  },
  yaql: {
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
  },
  conduct: {
    'h054/oldest': unread,
    'r0103/oldest': sameRoute,
    'r0103/newest': sameRoute,
    'r0103/1': sameRoute,
    'r0111/oldest': lateArrival,
    'r0111/1': lateArrival,
    'r0125/oldest': sameRoute,
    'r0125/1': sameRoute,
    'r0208/oldest': lateArrival,
  },
  inspect: {},
  chain: { k088: 'the message says as well what to write instead' },
}
