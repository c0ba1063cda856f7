import { expect, test } from 'vitest'
import { warnAt } from './ending.ts'
import { isLoopbackHost } from './loopback-host.ts'

const minute = 60_000

test.each([
  ['a day', 24 * 60 * minute, 5 * minute],
  ['an hour', 60 * minute, 5 * minute],
  ['20 minutes', 20 * minute, 5 * minute],
  ['4 minutes', 4 * minute, minute],
  ['20 seconds', 20_000, 5000],
  ['nothing', 0, 0],
  ['less than nothing', -1000, 0],
])('of a session of %s the user is told early enough', (_name, length, lead) => {
  expect(warnAt(1_000_000, 1_000_000 + length)).toBe(1_000_000 + length - lead)
})

test.each([
  ['localhost', true],
  ['svc.localhost', true],
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['[::1]', true],
  ['127.0.0.1.example.com', false],
  ['svc.example.com', false],
  ['mylocalhost', false],
  ['10.0.0.1', false],
])('%s is this machine: %s', (host, isHere) => {
  expect(isLoopbackHost(host)).toBe(isHere)
})
