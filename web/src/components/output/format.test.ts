import { expect, test } from 'vitest'
import { formatBytes, formatCount } from './format.ts'

test.each([
  [0, '0 bytes'],
  [1, '1 byte'],
  [999, '999 bytes'],
  [1000, '1 KB'],
  [1234, '1.2 KB'],
  [16_384, '16.4 KB'],
  [1_000_000_000, '1 GB'],
  [1_234_567_890_123_456, '1,234.6 TB'],
])('%i bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test('counts are grouped', () => {
  expect(formatCount(10_000_000)).toBe('10,000,000')
})
