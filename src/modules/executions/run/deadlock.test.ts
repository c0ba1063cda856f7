import { expect, test } from 'vitest'
import { waitsForItself, type Wait } from './deadlock.ts'

const wait = (key: string, ...above: string[]): Wait => ({ key, above: new Set(above) })

test.for([
  { name: 'behind others', wanted: wait('k', 'a'), others: [], holders: { k: ['x'] }, expected: false },
  { name: 'behind its own workflow', wanted: wait('k', 'a'), others: [], holders: { k: ['a'] }, expected: true },
  { name: 'one of two may end', wanted: wait('k', 'a'), others: [], holders: { k: ['a', 'x'] }, expected: false },
  {
    name: 'behind two workflows that wait for each other',
    wanted: wait('k', 'a'),
    others: [wait('k', 'b')],
    holders: { k: ['a', 'b'] },
    expected: true,
  },
  {
    name: 'crosswise, over two limits',
    wanted: wait('k', 'a'),
    others: [wait('l', 'b')],
    holders: { k: ['b'], l: ['a'] },
    expected: true,
  },
  {
    name: 'over two limits, of which one has somebody else',
    wanted: wait('k', 'a'),
    others: [wait('l', 'b')],
    holders: { k: ['b'], l: ['a', 'x'] },
    expected: false,
  },
])('$name: $expected', ({ wanted, others, holders, expected }) => {
  const known = new Map(Object.entries(holders))
  expect(waitsForItself(wanted, others, (key) => known.get(key) ?? [])).toBe(expected)
})
