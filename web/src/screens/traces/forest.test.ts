import { describe, expect, test } from 'vitest'
import type { CausedBy, TraceMemberKind, TraceMemberRecord } from '../../api/records.ts'
import { buildForest, memberOf, secondsAfter } from './forest.ts'
import { groupForest, type GroupOptions } from './groups.ts'
import { layOut, MARGIN, NODE_WIDTH } from './layout.ts'
import { fullOnly } from '../../../../tests/helpers/tiers.ts'

let seq = 0
function record(kind: TraceMemberKind, id: string, cause?: CausedBy, ref = `ref.${kind}`): TraceMemberRecord {
  seq += 1
  return { seq, kind, object_id: id, ref, updated_at: '', caused_by: cause ?? {} }
}
const instance = (id: string, execution?: string): TraceMemberRecord =>
  record('trigger_instance', id, execution === undefined ? undefined : { type: 'action_execution', id: execution })
const rule = (id: string, ofInstance: string): TraceMemberRecord =>
  record('rule', id, { type: 'trigger_instance', id: ofInstance })
const execution = (id: string, cause?: string, ref?: string): TraceMemberRecord =>
  record('execution', id, cause === undefined ? undefined : { type: 'rule', id: cause }, ref)

/** A webhook, what a rule started for it, and what another rule started when that had ended. */
const cascade = (): TraceMemberRecord[] => [
  instance('i1'),
  rule('r1', 'i1'),
  execution('e1', 'r1:i1'),
  instance('i2', 'e1'),
  rule('r2', 'i2'),
  execution('e2', 'r2:i2'),
  instance('i3', 'e2'),
]

const plain: GroupOptions = { statusOf: () => '', groupFrom: undefined, opened: new Set(), most: 1000 }

describe('a forest', () => {
  test('has each member below its cause', () => {
    const { roots, children, depth } = buildForest(cascade())
    expect(roots.map(({ key }) => key)).toEqual(['i1'])
    expect([...children].map(([key, some]) => [key, some.map((child) => child.key)])).toEqual([
      ['i1', ['r1:i1']],
      ['r1:i1', ['e1']],
      ['e1', ['i2']],
      ['i2', ['r2:i2']],
      ['r2:i2', ['e2']],
      ['e2', ['i3']],
    ])
    expect(depth.get('i3')).toBe(6)
  })

  test('has a rule once for each trigger instance', () => {
    const records = [instance('i1'), instance('i2'), rule('r', 'i1'), rule('r', 'i2'), execution('e', 'r:i2')]
    const { children, members } = buildForest(records)
    expect(members).toHaveLength(5)
    expect([children.get('r:i1'), children.get('r:i2')?.map(({ key }) => key)]).toEqual([undefined, ['e']])
  })

  test('has as roots what has no cause, or one that is not in it, and knows no circles', () => {
    const child = record('execution', 'child', { type: 'action_execution', id: 'elsewhere' })
    const odd = [
      record('execution', 'a', { type: 'action_execution', id: 'b' }),
      record('execution', 'b', { type: 'action_execution', id: 'a' }),
      record('execution', 'self', { type: 'action_execution', id: 'self' }),
    ]
    const { roots } = buildForest([child, ...odd])
    expect(roots.map(({ key }) => key)).toEqual(['child', 'a', 'self'])
    expect(memberOf(child).cause?.id).toBe('elsewhere')
  })

  test('takes a member that is told twice once', () => {
    const records = cascade()
    expect(buildForest([...records, ...records]).members).toHaveLength(7)
  })
})

test('time is told from the start of the trace', () => {
  const start = '2030-01-01T00:00:00.500000Z'
  expect(secondsAfter(start, '2030-01-01T00:00:02.000000Z')).toBe(1.5)
  expect(secondsAfter(start, '2029-01-01T00:00:02.000000Z')).toBe(0)
})

describe('a drawing', () => {
  test('has every node, and an edge for every cause', () => {
    const { drawn, left } = groupForest(buildForest(cascade()), plain)
    expect(left).toBe(0)
    const { nodes, edges, width } = layOut(drawn)
    expect(nodes.map(({ node }) => node.key)).toEqual(['i1', 'r1:i1', 'e1', 'i2', 'r2:i2', 'e2', 'i3'])
    expect(edges.map(({ from, to }) => `${from} ${to}`)).toEqual([
      'i1 r1:i1',
      'r1:i1 e1',
      'e1 i2',
      'i2 r2:i2',
      'r2:i2 e2',
      'e2 i3',
    ])
    // A chain is a line to the right.
    expect(new Set(nodes.map(({ y }) => y)).size).toBe(1)
    const xs = nodes.map(({ x }) => x)
    expect(xs.toSorted((a, b) => a - b)).toEqual(xs)
    expect(width).toBe((xs.at(-1) ?? 0) + NODE_WIDTH + MARGIN)
  })

  test('has nothing over anything else, and what is caused to the right of its cause', () => {
    const records: TraceMemberRecord[] = []
    for (let i = 0; i < 40; i += 1) {
      records.push(instance(`i${i}`, i % 3 === 0 ? undefined : `e${Math.floor(i / 3)}`))
      records.push(rule('r', `i${i}`), execution(`e${i}`, `r:i${i}`))
    }
    const { nodes, edges } = layOut(groupForest(buildForest(records), plain).drawn)
    expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(120)
    const xOf = new Map(nodes.map(({ node, x }) => [node.key, x]))
    for (const { from, to } of edges) expect(xOf.get(to)).toBeGreaterThan(xOf.get(from) ?? Infinity)
    expect(layOut([])).toEqual({ nodes: [], edges: [], width: 0, height: 0 })
  })

  test('has equal siblings as one, with what each of them has caused', () => {
    const records = [instance('i'), rule('r', 'i')]
    const statuses = new Map<string, string>()
    for (let n = 0; n < 40; n += 1) {
      records.push(execution(`e${n}`, 'r:i', 'core.local'), instance(`d${n}`, `e${n}`))
      statuses.set(`e${n}`, n < 37 ? 'succeeded' : 'failed')
    }
    const forest = buildForest(records)
    const options = { ...plain, groupFrom: 4, statusOf: ({ key }: { key: string }) => statuses.get(key) ?? '' }
    const { drawn, left } = groupForest(forest, options)
    expect(left).toBe(0)
    expect(drawn.map(({ key, count, canOpen }) => [key, count, canOpen])).toEqual([
      ['i', 1, false],
      ['r:i', 1, false],
      ['e0', 37, true],
      ['d0', 37, false],
      // Three are no group.
      ...['e37', 'd37', 'e38', 'd38', 'e39', 'd39'].map((key) => [key, 1, false]),
    ])
    const opened = groupForest(forest, { ...options, opened: new Set(['e0']) })
    expect(opened.drawn).toHaveLength(82)
    expect(opened.drawn.every(({ count }) => count === 1)).toBe(true)
  })

  test('does not take what has caused something else for equal', () => {
    const records = [0, 1, 2, 3, 4].flatMap((n) => [instance(`i${n}`), ...(n === 2 ? [rule('r', 'i2')] : [])])
    const { drawn } = groupForest(buildForest(records), { ...plain, groupFrom: 4 })
    expect(drawn.map(({ key, count }) => [key, count])).toEqual([
      ['i0', 4],
      ['i2', 1],
      ['r:i2', 1],
    ])
  })

  test('has a bound, and says what it leaves out', () => {
    const records = Array.from({ length: 50 }, (_, n) => [execution(`e${n}`), instance(`i${n}`, `e${n}`)]).flat()
    const { drawn, left } = groupForest(buildForest(records), { ...plain, most: 31 })
    expect([drawn.length, left]).toEqual([31, 69])
    expect(drawn.at(-1)).toMatchObject({ key: 'e15', hidden: 1 })
  })

  fullOnly(test)('of a hundred thousand members, or of a cascade a thousand deep, comes to an end', () => {
    const wide = [instance('i'), ...Array.from({ length: 100_000 }, (_, n) => rule(`r${n}`, 'i'))]
    const deep = Array.from({ length: 3000 }, (_, n) => instance(`d${n}`, n === 0 ? undefined : `d${n - 1}`))
    // Whoever looked at all of them for each of them would not be done before the test is given up.
    for (const records of [wide, deep]) {
      const { drawn } = groupForest(buildForest(records), { ...plain, groupFrom: 4 })
      expect(layOut(drawn).nodes.length).toBe(records === wide ? 2 : 1000)
      expect(groupForest(buildForest(records), plain).drawn).toHaveLength(1000)
    }
  })
})
