import { expect, test } from 'vitest'
import { isWithin, rangeOf, readLineRange, writeLineRange } from './line-range.ts'

test.each([
  ['1', { first: 1, last: 1 }],
  ['10-20', { first: 10, last: 20 }],
  ['20-10', { first: 10, last: 20 }],
  ['123456789012', { first: 123_456_789_012, last: 123_456_789_012 }],
])('%s', (text, range) => {
  expect(readLineRange(text)).toEqual(range)
})

test.each([null, undefined, '', '0', '-1', '1-', '-2', '1-2-3', '1.5', 'x', '01', '1e9', '9'.repeat(20)])(
  '%s is none',
  (text) => {
    expect(readLineRange(text)).toBeUndefined()
  },
)

test('is written as it is read', () => {
  expect(writeLineRange(rangeOf(7, 7))).toBe('7')
  expect(writeLineRange(rangeOf(20, 10))).toBe('10-20')
})

test('has its ends', () => {
  expect([9, 10, 20, 21].map((line) => isWithin({ first: 10, last: 20 }, line))).toEqual([false, true, true, false])
  expect(isWithin(undefined, 1)).toBe(false)
})
