import { expect, test } from 'vitest'
import { parseJsonBody } from './json.ts'

test.each(['1e999', '-1e999', '[1E+400]', '{"a":{"b":[1e0400]}}', '9'.repeat(400), '9'.repeat(299).concat('.0e+10')])(
  'a number that no JSON can give back is refused: %s',
  (text) => {
    expect(() => parseJsonBody(text)).toThrow('a number is too large')
  },
)

test.each(['1e308', '"1e999"', '1e-999', '[0e999, 1.5e100]', '0.'.concat('3'.repeat(400)), '9'.repeat(200)])(
  '%s is none',
  (text) => {
    expect(parseJsonBody(text)).toEqual(JSON.parse(text))
  },
)

test('long digits are read in time that grows with their number', () => {
  const digits = `${'1'.repeat(308)}x`.repeat(150_000)
  expect(parseJsonBody(`"${digits}"`)).toBe(digits)
})
