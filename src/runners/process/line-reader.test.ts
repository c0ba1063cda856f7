import { expect, test } from 'vitest'
import { createLineReader } from './line-reader.ts'

const bytes = (text: string): Buffer => Buffer.from(text)

test('lines arrive whole, however the bytes are cut', () => {
  const text = 'one\ntwo ü€😀\r\n\nlast'
  for (let size = 1; size < 12; size++) {
    const reader = createLineReader(100)
    const lines: (string | undefined)[] = []
    const all = bytes(text)
    for (let at = 0; at < all.length; at += size) lines.push(...reader.push(all.subarray(at, at + size)))
    expect([...lines, ...reader.end()]).toEqual(['one', 'two ü€😀', '', 'last'])
  }
})

test('a line above the limit is dropped alone, and holds no memory', () => {
  const reader = createLineReader(4)
  expect([...reader.push(bytes('four\nfive5\nok\n'))]).toEqual(['four', undefined, 'ok'])
  expect([...reader.push(bytes('x'.repeat(1000)))]).toEqual([])
  expect([...reader.push(bytes('more\nend'))]).toEqual([undefined])
  expect([...reader.end()]).toEqual(['end'])
  expect([...reader.end()]).toEqual([])
})
