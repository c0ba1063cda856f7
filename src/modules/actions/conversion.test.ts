import { describe, expect, test } from 'vitest'
import type { ParameterSchema } from '../../lib/schema/index.ts'
import { convertParameter, createTextRoom } from './conversion.ts'
import { JsonNumber } from '../../lib/json/index.ts'

type Type = NonNullable<ParameterSchema['type']>

describe('conversion to the declared type', () => {
  test.each<[Type | undefined, unknown, unknown]>([
    ['string', 'x', 'x'],
    ['integer', 7, 7],
    ['integer', 5.7, 5],
    ['integer', -5.7, -5],
    ['integer', '7', 7],
    ['integer', ' -7 ', -7],
    ['number', 5, 5],
    ['number', '5.5', 5.5],
    ['number', '1e3', new JsonNumber('1e3')],
    ['number', ' +5. ', new JsonNumber('5.0')],
    ['number', '-.5E-1', new JsonNumber('-0.5E-1')],
    ['number', '0.5', 0.5],
    ['integer', '+820982911946154508', new JsonNumber('820982911946154508')],
    ['integer', new JsonNumber('820982911946154508'), new JsonNumber('820982911946154508')],
    ['integer', '-0', 0],
    ['integer', new JsonNumber('21.0'), 21],
    ['integer', new JsonNumber('-1e3'), -1000],
    ['integer', '9'.repeat(400), new JsonNumber('9'.repeat(400))],
    ['boolean', true, true],
    ['boolean', 'TRUE', true],
    ['boolean', 'false', false],
    ['boolean', 1, 1],
    ['array', '[1, "a"]', [1, 'a']],
    ['array', "['a', None]", ['a', null]],
    ['array', { a: 1 }, { a: 1 }],
    ['object', '{"a": true}', { a: true }],
    ['object', "{'a': True}", { a: true }],
    ['object', '5', 5],
    ['object', [1], [1]],
    ['null', 'x', 'x'],
    [undefined, '5', '5'],
    ...(['string', 'integer', 'number', 'boolean', 'array', 'object'] as const).map(
      (type): [Type, unknown, unknown] => [type, null, null],
    ),
  ])('%s: %j gives %j', (type, value, converted) => {
    expect(convertParameter('p', value, type === undefined ? {} : { type })).toStrictEqual(converted)
  })

  test.each<[Type, unknown, string]>([
    ['string', 123, 'p: Value "123" must either be a string or None. Got "int".'],
    ['string', 1.5, 'p: Value "1.5" must either be a string or None. Got "float".'],
    ['string', true, 'p: Value "True" must either be a string or None. Got "bool".'],
    ['string', ['a'], `p: Value "['a']" must either be a string or None. Got "list".`],
    ['string', { a: 1 }, `p: Value "{'a': 1}" must either be a string or None. Got "dict".`],
    ['integer', 'abc', `p: invalid literal for int() with base 10: 'abc'`],
    ['integer', '5.7', `p: invalid literal for int() with base 10: '5.7'`],
    ['integer', '', `p: invalid literal for int() with base 10: ''`],
    ['integer', [], 'p: invalid literal for int() with base 10: []'],
    ['integer', true, 'p: invalid literal for int() with base 10: True'],
    ['integer', '9'.repeat(4301), 'the text is longer than 4300 characters'],
    ['integer', -Infinity, 'the number -Infinity is too large'],
    ['number', Infinity, 'is too large'],
    ['array', '[1, [1e999]]', 'p: in the text, a number is too large'],
    ['object', "{'a': -1e999,}", 'p: in the text, a number is too large'],
    ['number', 'abc', `p: could not convert string to float: 'abc'`],
    ['number', '1e999', 'p: the number 1e999 is too large'],
    ['number', {}, 'p: could not convert string to float: {}'],
    ['boolean', 'yes', `p: 'yes' is neither "true" nor "false"`],
    ['array', 'a, b', `p: 'a, b' is not a list written as JSON or as a Python literal`],
    ['object', '{a: 1}', `p: '{a: 1}' is not an object written as JSON or as a Python literal`],
    ['object', '{"a": {"__proto__": 1}}', 'p: the text holds the key "__proto__"'],
    ['array', '['.repeat(200) + ']'.repeat(200), 'p: the text holds values nested more than 100 deep'],
  ])('%s: %j is refused', (type, value, message) => {
    expect(() => convertParameter('p', value, { type })).toThrow(
      expect.objectContaining({ code: 'PARAMETERS_INVALID', message: expect.stringContaining(message) as unknown }),
    )
  })

  test.each<ParameterSchema>([
    { type: 'integer', secret: true },
    { type: 'object', properties: { key: { secret: true } } },
  ])('secrets are not repeated: %j', (schema) => {
    expect(() => convertParameter('p', 'hunter2', schema)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('hunter2') as unknown }),
    )
  })
})

// Work that grows with the square of the text does not end within a test.
test('a long text that is no number is refused in linear time', () => {
  expect(() => convertParameter('p', `${'1'.repeat(150_000)}x`, { type: 'number' })).toThrow('could not convert')
})

describe('lists and objects written as text share a limit in one request', () => {
  const many = (count: number): string => `[${'1,'.repeat(count - 1)}1]`

  const convert = (texts: string[]): unknown[] => {
    const room = createTextRoom()
    return texts.map((text) => convertParameter('p', text, { type: 'array' }, room))
  }

  test.each<[string, string[]]>([
    ['one text', [many(90_000)]],
    ['several texts', [many(40_000), many(50_000)]],
    ['a Python literal', [`[${'True,'.repeat(40_000)}]`]],
  ])('%s', (_, texts) => {
    expect(convert(texts)).toHaveLength(texts.length)
  })

  test.each<[string, string[], string]>([
    ['too many items', [many(100_001)], 'it holds more than 100000 items'],
    ['too many names', [`{${'"a":1,'.repeat(30_000)}"b":1}`], 'it holds more than 100000 items'],
    ['a long Python literal', [`['${'x'.repeat(300_000)}', True]`], 'Python literals may have 262144 characters'],
    ['too many items together', [many(60_000), many(60_000)], 'it holds more than 39998 items'],
    ['too many with Python', [many(99_000), `[${'True,'.repeat(2000)}]`], 'it holds more than 998 items'],
  ])('%s: refused', (_, texts, message) => {
    expect(() => convert(texts)).toThrow(message)
  })
})
