import { expect, test } from 'vitest'
import { readYamlValue, YamlError } from './index.ts'

const limits = { maxDepth: 60, maxAliases: 200, maxMergeKeys: 2_000, maxValues: 20_000 }
const read = (text: string): unknown => readYamlValue(text, limits)?.value

/** What Python's reader makes of each. */
test.each<[string, unknown]>([
  ['08:30', '08:30'],
  ['00:30', '00:30'],
  ['8:30', 510],
  ['+.5', '+.5'],
  ['.5', 0.5],
  ['._5', '._5'],
  ['1e3', '1e3'],
  ['0o10', '0o10'],
  ['010', 8],
  ['y', 'y'],
  ['No', false],
  ['2020-01-01', '2020-01-01'],
  ['2020-01-01 1:02:03.4Z', '2020-01-01T01:02:03.400000+00:00'],
  ['! "1"', 1],
  ['!!binary aGk=', 'hi'],
  ['!!set {x, y}', ['x', 'y']],
  ['!!omap [x: 1]', [['x', 1]]],
  ['.inf', null],
  ['k:\n  a: "one\ntwo"\n  b: [1,\n2\n]\n', { k: { a: 'one two', b: [1, 2] } }],
  ['a: |\n  x', { a: 'x' }],
  ['a: |# c\n  x\n\n', { a: 'x\n' }],
  ['a: >+\n  x\n\n\nb: 1', { a: 'x\n\n\n', b: 1 }],
  ['a: "x"# c', { a: 'x' }],
  ['<<: [{a: 1}, {a: 2, b: 3}]\nb: 4', { a: 1, b: 4 }],
  ['1: a\n~: b\non: c', { 1: 'a', null: 'b', true: 'c' }],
])('%j is %j', (text, value) => {
  expect(read(text)).toEqual(value)
})

test.each([
  ['a: 1\na: 2', { a: 2 }, ['found duplicate key "a"']],
  ['<<: {a: 1}\na: 2', { a: 2 }, []],
  ['a: .nan', { a: null }, ['.nan is not a number JSON has']],
])('of %j it warns', (text, value, warnings) => {
  const found = readYamlValue(text, limits)
  expect(found?.value).toEqual(value)
  expect(found?.warnings.map(({ message }) => message)).toEqual(warnings)
})

test.each([
  ['a: b: c', 1],
  ['a: 1\n\t\n', 2],
  ['a:\n\tb: 1', 2],
  ['- a\n-b', 2],
  ['a: =', 1],
  ['a: @b', 1],
  ['a: {b: 1', 1],
  ['a: &x [*x]', 1],
  ['2001-02-30', 1],
  ['a: \u0001', 1],
  ['a: !ruby/object x', 1],
  ['a: "x" y', 1],
  ['a: 1\n---\nb: 2', 2],
])('%j is refused in line %i', (text, line) => {
  let problem: unknown
  try {
    read(text)
  } catch (error) {
    problem = error
  }
  expect(problem).toBeInstanceOf(YamlError)
  expect(problem).toMatchObject({ line })
})

// Each of them once took minutes.
test.each([
  ['[', 1_000_000],
  ['{a: ', 250_000],
  ['- ', 500_000],
  ['? ', 500_000],
])('%j many times costs no more than its length', (text, times) => {
  expect(() => read(text.repeat(times))).toThrow(YamlError)
})

test.each([`1${':30'.repeat(300_000)}`, '9'.repeat(900_000)])('a number of many digits is refused', (text) => {
  expect(() => read(text)).toThrow('the limit is 4300')
})
