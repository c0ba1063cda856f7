import { describe, expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import {
  entriesOf,
  JsonNumber,
  mapObject,
  objectOf,
  parseNumber,
  readJson,
  toNumeric,
  truncated,
  wholeNumber,
  writeFiniteJson,
  writeJson,
  writeJsonInPieces,
  writeReplacedJson,
  WrittenJson,
} from './index.ts'

const seed = seedOfRun()

/** Fails when the engine reads escaped keys correctly in all versions that svc supports: then `isOrdinary` in `read.ts` need not look at keys with a backslash. */
test('JSON.parse still mixes up escaped keys with earlier ones (nodejs/node#63785)', () => {
  const isMixedUp = (): boolean => {
    JSON.parse('{"a":1,"\\\\":2}')
    return Object.keys(JSON.parse('{"a":1,"\\n":2}') as object)[1] !== '\n'
  }
  expect(isMixedUp()).toBe(true)
})

describe('numbers', () => {
  test.each([
    '0',
    '-1',
    '1.5',
    '-0.25',
    '9007199254740991',
    '-9007199254740991',
    '1e-7',
    '0.1234567890123456',
    '123456789012345.5',
  ])('%s is a JavaScript number', (text) => {
    const value = readJson(text)
    expect(value).toBe(Number(text))
    expect(writeJson([value])).toBe(`[${text}]`)
  })

  test.each([
    '-0',
    '9007199254740992',
    '-9007199254740993',
    '820982911946154508',
    '1000000000000000000000',
    '21.0',
    '1.10',
    '1e3',
    '1E3',
    '1e+21',
    '0.0000001',
    '0e0',
    '1e-400',
    '0.1000000000000000055511151231257827',
    '12345678901234567.89',
    '9'.repeat(4300),
  ])('%s keeps its text', (text) => {
    const value = readJson(text)
    expect(value).toEqual(new JsonNumber(text))
    expect(String(value)).toBe(text)
    expect(writeJson({ a: [value] })).toBe(`{"a":[${text}]}`)
    expect(JSON.stringify({ a: [value] })).toBe(`{"a":[${text}]}`)
    expect(writeJson({ 2: value, a: value }, 2)).toBe(`{\n  "2": ${text},\n  "a": ${text}\n}`)
  })

  test.each(['01', '-', '1.', '.5', '+1', '1e', '0x10', '--1', '1.0.0', '1e1e1', 'Infinity', 'NaN', '00.0'])(
    '%s is no number',
    (text) => {
      expect(() => readJson(text)).toThrow(SyntaxError)
      expect(() => readJson(`{"a":[21.0,${text}]}`)).toThrow(SyntaxError)
    },
  )

  test('those of no size that any reader takes are refused', () => {
    expect(() => readJson('[1e400]')).toThrow('a number is too large')
    expect(() => readJson(`[${'9'.repeat(4301)}]`)).toThrow('a number has 4301 characters; the limit is 4300')
  })

  test('what people write is read exactly', () => {
    const texts = [' +820982911946154508 ', '007', '-.50', '5.', '1e3', '.', '', 'x', '1 2', '-0', '0.5']
    expect(texts.map((text) => String(parseNumber(text)))).toEqual([
      '820982911946154508',
      '7',
      '-0.50',
      '5.0',
      '1e3',
      'undefined',
      'undefined',
      'undefined',
      'undefined',
      '-0',
      '0.5',
    ])
  })

  test('those to compute with', () => {
    expect(toNumeric(new JsonNumber('820982911946154508'))).toBe(820982911946154508n)
    expect(toNumeric(new JsonNumber('21.0'))).toBe(21)
    expect(truncated(new JsonNumber('21.9'))).toBe(21)
    expect(truncated(new JsonNumber('1e30'))).toEqual(new JsonNumber(String(BigInt(1e30))))
    expect(wholeNumber(-5n)).toBe(-5)
  })
})

describe('order of keys', () => {
  test.each(['{"2":1,"1":2}', '{"b":1,"1":2}', '{"b":{"10":1,"9":{"x":1,"0":[]}},"a":[{"1":{},"0":1}]}'])(
    '%s comes back as it was',
    (text) => {
      expect(writeJson(readJson(text))).toBe(text)
      expect(writeJson({ around: [readJson(text)] })).toBe(`{"around":[${text}]}`)
      expect(JSON.parse(JSON.stringify(readJson(text)))).toEqual(JSON.parse(text))
    },
  )

  test('copies keep it, and changes show', () => {
    const object = readJson('{"2":1,"1":{"b":1,"0":2}}') as Record<string, unknown>
    const copy = mapObject(object, (value) => value)
    expect(writeJson(copy)).toBe('{"2":1,"1":{"b":1,"0":2}}')
    expect(writeJson(objectOf(entriesOf(object)))).toBe('{"2":1,"1":{"b":1,"0":2}}')
    copy['0'] = 3
    delete copy['2']
    expect(writeJson(copy)).toBe('{"1":{"b":1,"0":2},"0":3}')
  })

  test('of a key that comes twice, the last value stays in the first place', () => {
    expect(writeJson(readJson('{"2":1,"1":2,"2":3}'))).toBe('{"2":3,"1":2}')
  })
})

test('text that is not JSON is refused with the place', () => {
  for (const text of [
    '',
    '{',
    '[21.0',
    '{"1":}',
    '{"1" 2}',
    '[1.0,]',
    '[1.0]x',
    '{"a\\n":1.0,}',
    '"\\x"',
    '["\n",1.0]',
    'tru',
    '[1.0 2]',
    '{1.0:2}',
    '{"1":1"2":2}',
  ]) {
    expect(() => readJson(text)).toThrow(SyntaxError)
  }
  expect(() => readJson('{"n": 21.0, x}')).toThrow(/position 12/)
})

test('nesting needs no stack', () => {
  const depth = 100_000
  const text = `${'['.repeat(depth)}1.0${']'.repeat(depth)}`
  let value = readJson(text)
  for (let i = 0; i < depth; i++) value = (value as unknown[])[0]
  expect(value).toEqual(new JsonNumber('1.0'))
})

test('what JSON cannot say is refused or left out', () => {
  expect(() => writeFiniteJson({ a: [Infinity] })).toThrow('holds a number that JSON does not have: Infinity')
  expect(writeFiniteJson({ a: new JsonNumber('1.0') })).toBe('{"a":1.0}')
  expect(writeJson({ 1: undefined, a: [undefined], d: new Date(0) })).toBe(
    '{"a":[null],"d":"1970-01-01T00:00:00.000Z"}',
  )
})

test('a replacer sees numbers as they are', () => {
  const value = readJson('{"2":{"secret":21.0},"1":21.0}')
  const replace = (name: string, inner: unknown): unknown => (name === 'secret' ? '***' : inner)
  expect(writeReplacedJson(value, replace)).toBe('{"2":{"secret":"***"},"1":21.0}')
})

test(`random documents come back as they were (SVC_TEST_SEED=${seed})`, () => {
  const random = createRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T // below its length
  const digits = (most: number): string =>
    Array.from({ length: 1 + random.below(most) }, () => random.below(10)).join('')
  const number = (): string => {
    const whole = pick(['0', `${1 + random.below(9)}${digits(30)}`, String(random.below(1000))])
    return (
      pick(['', '', '-']) +
      whole +
      pick(['', '', `.${digits(25)}`]) +
      pick(['', '', '', `e${pick(['', '+', '-'])}${digits(2)}`])
    )
  }
  const text = (): string =>
    JSON.stringify(pick(['a', '1', '2', '10', 'é', '\n', '"', '\\', '']) + pick(['', '', '0', 'b']))
  const make = (depth: number): string => {
    if (depth === 0 || random.below(3) === 0) return pick([number(), number(), text(), 'true', 'null'])
    const count = random.below(5)
    if (random.below(2) === 0) return `[${Array.from({ length: count }, () => make(depth - 1)).join(',')}]`
    const keys = [...new Set(Array.from({ length: count }, text))]
    return `{${keys.map((key) => `${key}:${make(depth - 1)}`).join(',')}}`
  }
  for (let n = 0; n < 5000; n++) {
    const json = make(3)
    expect(writeJson(readJson(json))).toBe(json)
    const indented = writeJson(readJson(json), 2)
    expect(writeJson(readJson(indented))).toBe(json)
  }
})

test('a long value is written in pieces as it is written at once', () => {
  const long = `${'a'.repeat(65_535)}😀"\n\ud83d${'é\u0001'.repeat(40_000)}`
  const values: unknown[] = [
    long,
    [long, 1, null, undefined, [], {}, readJson('21.0'), new Date(0)],
    { a: long, b: undefined, c: { d: [long, long] }, '"': readJson('{"2":1,"1":2}'), '2': 3 },
    readJson(`{"9":"${'x'.repeat(70_000)}","1":[1e2,12345678901234567890]}`),
    Array.from({ length: 30_000 }, (_, i) => ({ [`k${i}`]: i })),
    'short',
    12,
    null,
    { a: 1 },
  ]
  for (const value of values) {
    const pieces = [...writeJsonInPieces(value)]
    expect(pieces.join('')).toBe(writeJson(value))
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(6 * 65_536 + 100)
  }
  expect([...writeJsonInPieces(long)].length).toBeGreaterThan(2)
})

test.each(['{"2":1,"1":[21.0]}', `{"2":21.0,"1":"${'😀'.repeat(70_000)}"}`])(
  'stored JSON comes back as it was, whoever writes it: %.20s',
  (text) => {
    const stored = WrittenJson.of(text)
    expect(stored instanceof WrittenJson).toBe(text.length > 65_536)
    expect(writeJson(WrittenJson.read(stored))).toBe(text)
    expect(writeJson({ a: stored })).toBe(`{"a":${text}}`)
    expect([...writeJsonInPieces({ a: stored })].join('')).toBe(`{"a":${text}}`)
  },
)
