import { expect, test } from 'vitest'
import { readChain, type Chain, type ChainProblem } from './definition.ts'

const source = { action: 'flow', file: 'chains/flow.yaml' }
const read = (text: string): Chain | ChainProblem => readChain(text, source)

function chainOf(text: string): Chain {
  const chain = read(text)
  if ('problem' in chain) throw new Error(chain.problem)
  return chain
}

const firstOf = (text: string): string | undefined => {
  const { nodes, first } = chainOf(text)
  return nodes[first]?.name
}

test('the default node runs first, else the first that no node leads to, else the first of all', () => {
  expect(firstOf('{default: b, chain: [{name: a, ref: x.y}, {name: b, ref: x.y}]}')).toBe('b')
  expect(firstOf('{chain: [{name: a, ref: x.y}, {name: b, ref: x.y, on-failure: a}]}')).toBe('b')
  expect(firstOf('{chain: [{name: a, ref: x.y, on-success: b}, {name: b, ref: x.y, on-failure: a}]}')).toBe('a')
  expect(firstOf('{default: null, chain: [{name: a, ref: x.y, on-success: a}]}')).toBe('a')
})

test('of two nodes with one name the first counts', () => {
  const { nodes, graph } = chainOf(
    '{chain: [{name: a, ref: x.one, on-success: b}, {name: b, ref: x.b}, {name: a, ref: x.two}]}',
  )
  expect(nodes.map(({ ref }) => ref)).toEqual(['x.one', 'x.b'])
  expect(graph.taskIndexes).toEqual(
    new Map([
      ['a', 0],
      ['b', 1],
    ]),
  )
})

test('the graph has both ways out of a node, also to one node, and names of engine commands mean nothing', () => {
  const { graph } = chainOf(
    '{chain: [{name: a, ref: x.y, on-success: retry, on-failure: retry}, {name: retry, ref: x.y, on-success: a}, {name: lost, ref: x.y}], default: a}',
  )
  expect(graph.tasks.map(({ outgoing }) => outgoing.map(({ id, to, position }) => [id, to, position]))).toEqual([
    [
      ['retry__t0', 1, 0],
      ['retry__t1', 1, 1],
    ],
    [['a__t0', 0, 0]],
    [],
  ])
  expect(graph.tasks.map(({ isReachable, isInCycle, isSplit }) => [isReachable, isInCycle, isSplit])).toEqual([
    [true, true, false],
    [true, true, false],
    [false, false, false],
  ])
  expect(graph.starts).toEqual([0])
})

test.each([
  ['', 'Failed to parse action chain definition from "chains/flow.yaml": Expected "dict", got "NoneType"', undefined],
  ['text', 'Failed to parse action chain definition from "chains/flow.yaml": Expected "dict", got "str"', undefined],
  ['5', 'Failed to parse action chain definition from "chains/flow.yaml": Expected "dict", got "int"', undefined],
  ['1.5', 'Failed to parse action chain definition from "chains/flow.yaml": Expected "dict", got "float"', undefined],
  ['true', 'Failed to parse action chain definition from "chains/flow.yaml": Expected "dict", got "bool"', undefined],
  [
    'chain:\n  - name: a\n    ref: x.y\n    name: b\n',
    'Failed to parse action chain definition from "chains/flow.yaml": found duplicate key "name"',
    4,
  ],
  ['{}', "'chain' is a required property", undefined],
  ['chain: a', "'a' is not of type 'array'", 1],
  ['chain: [a]', "'a' is not of type 'object'", 1],
  ['chain: []', 'Failed to find default node in flow.', 1],
  ['chain: [{ref: x.y}]', "'name' is a required property", 1],
  ['chain: [{name: a}]', "'ref' is a required property", 1],
  [
    'chain: [{name: a, ref: x.y}]\nother: 1',
    "Additional properties are not allowed ('other' was unexpected)",
    undefined,
  ],
  ['chain: [{name: a, ref: x.y, foo: 1}]', "Additional properties are not allowed ('foo' was unexpected)", 1],
  ['chain: [{name: a, ref: x.y, params: text}]', "'text' is not of type 'object'", 1],
  ['chain:\n  - {name: a, ref: x.y}\n  - {name: b, ref: 5}', "5 is not of type 'string'", 3],
  [
    'chain:\n  - {name: a, ref: x.y,\n     params: {x: 1}, parameters: {y: 1}}',
    'Either "params" or "parameters" attribute needs to be provided, but not both',
    3,
  ],
  [
    'chain:\n  - {name: a, ref: x.y, on-success: b, on-failure: c}',
    'Unable to find node with name "b" referenced in "on-success" in task "a".',
    2,
  ],
  [
    'chain: [{name: a, ref: x.y, on-failure: c}]',
    'Unable to find node with name "c" referenced in "on-failure" in task "a".',
    1,
  ],
  ['default: x\nchain: [{name: a, ref: x.y}]', 'Unable to find node with name "x" referenced in "default".', 1],
])('a definition that cannot run says why: %j', (text, problem, line) => {
  expect(read(text)).toEqual({ problem, line })
})

test('a mistake on top is named before one deep inside', () => {
  expect(read('{chain: [{name: 5, ref: x.y}], other: 1}')).toMatchObject({
    problem: "Additional properties are not allowed ('other' was unexpected)",
  })
})

test('keys without a value, empty parameters of both names, and unknown keys of later nodes are ignored', () => {
  const { nodes } = chainOf(
    '{vars: null, chain: [{name: a, ref: x.y, on-failure: null, params: {}, parameters: {v: 1}}, {name: b, ref: x.y, note: 1, notify: {other: 1}}]}',
  )
  expect(nodes.map(({ parameters }) => parameters)).toEqual([{ v: 1 }, {}])
})

test('a merge key brings in keys', () => {
  const { nodes } = chainOf('chain:\n  - &a {name: a, ref: x.y}\n  - {<<: *a, name: b}')
  expect(nodes.map(({ name, ref }) => [name, ref])).toEqual([
    ['a', 'x.y'],
    ['b', 'x.y'],
  ])
})

test('a definition has at most 1 MiB and 10,000 nodes', () => {
  const nodes = (count: number): string => `chain:\n${' - {name: a, ref: x.y}\n'.repeat(count)}`
  expect(chainOf(nodes(10_000)).nodes).toHaveLength(1)
  expect(read(nodes(10_001))).toMatchObject({ problem: expect.stringContaining('10000 are the limit') })
  expect(read(`# ${'x'.repeat(1_048_576)}`)).toMatchObject({ problem: expect.stringContaining('1048576 bytes') })
})
