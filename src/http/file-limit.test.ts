import { expect, test } from 'vitest'
import { tooFewFiles, readFileLimit, shareFiles } from './file-limit.ts'

const wanted = { connections: 16_000, actions: 60 }

test.each([
  [Infinity, { connections: 16_000, actions: 60 }],
  [1_048_576, { connections: 16_000, actions: 60 }],
  [4096, { connections: 3510, actions: 60 }],
  [1024, { connections: 454, actions: 58 }],
  [256, { connections: 70, actions: 10 }],
  [64, { connections: 8, actions: 1 }],
  [10, { connections: 8, actions: 1 }],
])('of %s files', (limit, shares) => {
  expect(shareFiles(limit, wanted, () => 10)).toEqual(shares)
})

test('fewer files than the server, one action and the least connections need are named', () => {
  expect(tooFewFiles(111)).toContain('The limit of open files (111) is below 112')
  expect(tooFewFiles(112)).toBeUndefined()
})

test('the limit of this process is known', () => {
  expect(readFileLimit()).toBeGreaterThan(10)
})
