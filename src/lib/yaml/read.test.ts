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
  ['-0: a\n1.10: b\n1.5E+3: c\n0x10: d\n.5: e', { 0: 'a', 1.1: 'b', '1500.0': 'c', 16: 'd', 0.5: 'e' }],
  ['a: 1\n\ufeff\n', { a: 1 }],
  ['\ufeffa: \ufeffb', { a: '\ufeffb' }],
  ['[a,\n\ufeffb]', ['a', 'b']],
  ['[? ,]', [{ null: null }]],
  ['{? , a: 1}', { null: null, a: 1 }],
  ['!!binary "aG k=ignored"', 'hi'],
  ['!!binary =', ''],
  ['!!int " +3 "', 3],
  ['!!int 0o7', 7],
  ['!!int 0x-1', -1],
  ['!!float " 2.5"', 2.5],
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
  ['2001-01-01 1:00:00+24:00', 1],
  ['2001-01-01 1:00:00 -24:00', 1],
  ['x\n\ufeffy: 1', 2],
  ['a: 1\n\ufeffb: 2', 2],
  ['[?]', 1],
  ['[? : a]', 1],
  ['!!binary aGkx\u00e9', 1],
  ['!!binary aG=', 1],
  ['!!float "1:"', 1],
  ['! "&"', 1],
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

test('warnings of a file end with a number', () => {
  const warnings = readYamlValue('a: 1\n'.repeat(500), limits)?.warnings
  expect(warnings).toHaveLength(101)
  expect(warnings?.at(-1)).toMatchObject({ message: 'there are more warnings', effect: 'svc lists 100 of a file' })
})

test('mappings that bring in each other twice are refused', () => {
  for (const first of ['{}', '{x: 1}']) {
    const levels = Array.from({ length: 60 }, (_, i) => `a${i + 1}: &a${i + 1} {<<: [*a${i}, *a${i}]}`)
    expect(() => read([`a0: &a0 ${first}`, ...levels].join('\n'))).toThrow('"<<" brings in more than 2000')
  }
})

test.each(['1,', '{a: 1},', 'a: ,', '? ,'])(
  'a list of %j without end is left where its values are too many',
  (item) => {
    let problem: unknown
    try {
      read(`a:\n  ${'['.repeat(59)}${`  ${item}\n`.repeat(200_000)}`)
    } catch (error) {
      problem = error
    }
    expect(problem).toMatchObject({ message: expect.stringContaining('more than 20000 values') })
    expect((problem as YamlError).line).toBeLessThan(200_000)
  },
)

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
