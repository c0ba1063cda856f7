import { expect, test } from 'vitest'
import { createRandom, seedOfRun, type Random } from '../../../tests/helpers/random.ts'
import { rounds } from '../../../tests/helpers/tiers.ts'
import { readYamlValue, YamlError } from './index.ts'
import { composeYaml, type YamlNode } from './nodes.ts'
import { readYamlNode } from './read.ts'

const limits = { maxDepth: 60, maxAliases: 200, maxMergeKeys: 2_000, maxValues: 20_000, maxChars: 1_000_000 }
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

const levels = 12
const fan = 8

/** The innermost value, then a value of each level from an alias of the one below: the text stays short. */
function bomb(innermost: string, ofAlias: (alias: string) => string): string {
  const lines = [`- &a0 ${innermost}`]
  for (let level = 1; level <= levels; level++) lines.push(`- &a${level} ${ofAlias(`*a${level - 1}`)}`)
  return lines.join('\n')
}
const many = (part: string, between: string): string => Array.from({ length: fan }, () => part).join(between)

test.each<[string, string, string]>([
  ['empty mappings brought in', bomb('{}', (alias) => `{${many(`<<: ${alias} `, ', ')}}`), '"<<" brings in more than'],
  ['lists of sources', bomb('{}', (alias) => `{<<: [${many(`${alias} `, ', ')}]}`), '"<<" brings in more than'],
  ['mappings of one key', bomb('{k: 1}', (alias) => `{${many(`<<: ${alias} `, ', ')}}`), '"<<" brings in more than'],
  ['empty lists', bomb('[]', (alias) => `[${many(`${alias} `, ', ')}]`), 'stands for more than'],
  ['empty texts', bomb('', (alias) => `[${many(`${alias} `, ', ')}]`), 'stands for more than'],
  ['pairs', bomb('1', (alias) => `!!omap [${many(`k: ${alias} `, ', ')}]`), 'stands for more than'],
  [
    'bytes',
    `- &b !!binary ${'QUJD'.repeat(10_000)}\n- [${many('*b ', ', ')}, ${many('*b ', ', ')}, ${many('*b ', ', ')}, *b ]`,
    'characters, aliases counted',
  ],
])('short texts that stand for much are refused: %s', (_, text, message) => {
  expect(() => read(text)).toThrow(message)
})

test.each(['<<: {}', '<<: []', '- &e {}\n- {<<: *e }'])('where no key may be merged, %j is refused', (text) => {
  expect(() => readYamlValue(text, { ...limits, maxMergeKeys: 0 })).toThrow('"<<" is not supported')
})

/** Nodes that count how often they are looked at, and what is in them. */
function counting(root: YamlNode, look: (times: number) => void): YamlNode {
  const copies = new Map<YamlNode, YamlNode>()
  const copy = (node: YamlNode): YamlNode => {
    const known = copies.get(node)
    if (known !== undefined) return known
    const parts = node.kind === 'list' ? node.items.map(copy) : []
    const pairs = node.kind === 'mapping' ? node.pairs.map((pair) => pair.map(copy)) : []
    const copied = Object.defineProperties(
      { ...node },
      {
        kind: { get: () => (look(1), node.kind) },
        items: { get: () => (look(parts.length), parts) },
        pairs: { get: () => (look(pairs.length), pairs) },
      },
    ) as YamlNode // the same properties
    copies.set(node, copied)
    return copied
  }
  return copy(root)
}

function randomBomb(random: Random): string {
  const lines = [`- &a0 ${random.pick(['{}', '[]', '', '1', '{k: 1}', '!!set {}', '{<<: {}}', '[{}]', '{<<: []}'])}`]
  for (let level = 1; level <= levels; level++) {
    // Mostly the level below: only so a text grows.
    const alias = (): string => `*a${random.once(8) ? random.below(level) : level - 1} `
    const aliases = (between: string, part: () => string): string =>
      Array.from({ length: 1 + random.below(fan) }, part).join(between)
    const shape = random.pick([
      () => `{${aliases(', ', () => `<<: ${alias()}`)}}`,
      () => `{${aliases(', ', () => `<<: ${alias()}`)}}`,
      () => `{<<: [${aliases(', ', alias)}]}`,
      () => `{<<: ${alias()}, k: ${alias()}}`,
      () => `{k: ${alias()}, l: {<<: ${alias()}}}`,
      () => `{${aliases(', ', () => `k: ${alias()}`)}}`,
      () => `[${aliases(', ', alias)}]`,
      () => `!!omap [${aliases(', ', () => `k: ${alias()}`)}]`,
      () => `!!set {<<: ${alias()}}`,
    ])
    lines.push(`- &a${level} ${shape()}`)
  }
  return lines.join('\n')
}

const seed = seedOfRun()

test(`no short text is looked at more often than its limits say (seed ${seed})`, () => {
  const random = createRandom(seed)
  const small = { maxDepth: 60, maxAliases: 1_000, maxMergeKeys: 500, maxValues: 1_000, maxChars: 10_000 }
  for (let round = 0; round < rounds({ daily: 30, full: 1_000 }); round++) {
    const text = randomBomb(random)
    const node = composeYaml(text, small)
    if (node === undefined) throw new Error('the text has a document')
    let looks = 0
    const most = 20 * (text.length + small.maxValues + small.maxMergeKeys)
    const counted = counting(node, (times) => {
      looks += times
      if (looks > most) throw new Error(`looked more than ${most} times at:\n${text}`)
    })
    try {
      readYamlNode(counted, small)
    } catch (error) {
      if (!(error instanceof YamlError)) throw error
    }
    expect(looks).toBeGreaterThan(0)
  }
})
