import { describe, expect, test } from 'vitest'
import { readQuery } from './query.ts'
import type { QueryParameter } from './route.ts'

const read = (type: QueryParameter['type'], query: string, required = false) =>
  readQuery({ p: { type, description: '', required } }, new URLSearchParams(query))['p']

describe('typing of contract 00, 0.7', () => {
  test.each([
    ['boolean', 'true', true],
    ['boolean', '1', true],
    ['boolean', 'yes', true],
    ['boolean', 'Y', true],
    ['boolean', 'TRUE', true],
    ['boolean', 'false', false],
    ['boolean', '0', false],
    ['boolean', 'No', false],
    ['boolean', 'n', false],
    ['integer', '0', 0],
    ['integer', '-1', -1],
    ['integer', '007', 7],
    ['integer', '123456789012345', 123456789012345],
    ['number', '1', 1],
    ['number', '-1.5', -1.5],
    ['number', '1e3', 1000],
    ['number', '2.5E-3', 0.0025],
    ['string', '', ''],
    ['string', 'a,b', 'a,b'],
    ['array', 'a,b', ['a', 'b']],
    ['array', ' a , b ', ['a', 'b']],
    ['array', 'a,,b,', ['a', 'b']],
    ['array', '', undefined],
    ['array', ' , ', undefined],
  ] as const)('%s %j', (type, text, value) => {
    expect(read(type, new URLSearchParams({ p: text }).toString())).toEqual(value)
  })

  test.each([
    ['boolean', '', 'boolean'],
    ['boolean', '2', 'boolean'],
    ['boolean', 'on', 'boolean'],
    ['boolean', 'constructor', 'boolean'],
    ['integer', '', 'integer'],
    ['integer', '1.0', 'integer'],
    ['integer', '1e3', 'integer'],
    ['integer', '+1', 'integer'],
    ['integer', ' 1', 'integer'],
    ['integer', '0x10', 'integer'],
    ['integer', '--1', 'integer'],
    ['integer', '١', 'integer'],
    ['integer', '9'.repeat(16), 'integer'],
    ['number', '', 'float'],
    ['number', '.', 'float'],
    ['number', 'NaN', 'float'],
    ['number', 'Infinity', 'float'],
    ['number', '1e999', 'float'],
  ] as const)('%s %j is refused', (type, text, named) => {
    expect(() => read(type, new URLSearchParams({ p: text }).toString())).toThrow(
      expect.objectContaining({ code: 'QUERY_INVALID', message: `Parameter "p" is not of type ${named}` }),
    )
  })
})

test('a required parameter must be there', () => {
  expect(() => read('string', 'q=1', true)).toThrow('Required parameter "p" is missing')
  expect(read('string', 'p=', true)).toBe('')
})

test('what is absent or not declared is not in the query', () => {
  const declared = { p: { type: 'string', description: '' } } as const
  expect(readQuery(declared, new URLSearchParams('q=1&__proto__=2&constructor=3'))).toEqual({})
})

test('of a name given twice the first counts', () => {
  expect(read('string', 'p=1&p=2')).toBe('1')
})

test('percent-encoding and plus are decoded', () => {
  expect(read('string', 'p=a%20b+c%2C%C3%A4')).toBe('a b c,ä')
})
