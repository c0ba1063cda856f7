import { RE2JS } from 're2js'
import { expect, test } from 'vitest'
import { patternSize } from './pattern-size.ts'

test.each([
  'abc',
  '^(a+)+$',
  'x{1000}',
  'x{1000}y{0,900}z{3,}',
  '(?:ab){500}',
  '(a{30}b){30}',
  '((ab|c){10}){50}',
  '[a-z]{900}',
  '[]a{5}]{700}',
  '[^]\\]{5}]{700}',
  '\\x{41}{800}',
  '\\{{800}',
  '\\d{1,1000}',
  'a{,5}',
  'x{}{',
  '(?P<name>a){600}',
  '[[:alpha:]]{900}',
  '[[:^alpha:][](?:xyz){600}',
  '\\Q[(\\Ex{900}',
  '\\\\Q(?:abc){600}\\\\E',
  '(?:abc)\\Q\\E{300}',
])('%s is as large as it is estimated to be', (pattern) => {
  const real = RE2JS.compile(pattern).programSize()
  const estimate = patternSize(pattern)
  expect(estimate).toBeGreaterThan(real / 2.5 - 10)
  expect(estimate).toBeLessThan(real * 2.5 + 10)
})

test.each(['x{1000}'.repeat(500), `(${'x'.repeat(1500)}){900}`, '((a{1000}){1000}){1000}', '('.repeat(500)])(
  'any text is measured without being compiled: %.30s',
  (pattern) => {
    expect(patternSize(pattern)).toBeGreaterThan(pattern.length / 2)
  },
)

test.each<[pattern: string, least: number, most: number]>([
  ['\\p{L}{800}', 800, 900],
  ['\\p{L}'.repeat(400), 20_000, 22_000],
  [`(?i)[${'\\pL\\PN'.repeat(200)}]`, 20_000, 22_000],
  ['(?i)[b-\\x{10ffff}]', 3000, 3300],
  ['[^\\x{20}-\\x{10ffff}]'.repeat(2), 6000, 6600],
  ['[а-яА-ЯёЁ]{1,100}', 100, 120],
  ['[一-龥]', 60, 130],
  ['[a-z-]', 1, 2],
])('a class costs what reading it costs: %.30s', (pattern, least, most) => {
  expect(patternSize(pattern)).toBeGreaterThanOrEqual(least)
  expect(patternSize(pattern)).toBeLessThanOrEqual(most)
})
