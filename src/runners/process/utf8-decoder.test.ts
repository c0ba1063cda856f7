import { expect, it } from 'vitest'
import { truncateUtf8, Utf8Decoder } from './utf8-decoder.ts'

const samples: [string, number[]][] = [
  ['ASCII', [...Buffer.from('plain text\n')]],
  ['two to four bytes', [...Buffer.from('ä€🦊é漢')]],
  ['a byte order mark', [0xef, 0xbb, 0xbf, 0x61]],
  ['lone continuation bytes', [0x80, 0xbf, 0x61, 0x80, 0x80, 0x80, 0x80, 0x80]],
  ['bytes that never occur', [0xff, 0xfe, 0xc0, 0x80, 0xf8, 0x88, 0x80, 0x80, 0x80]],
  ['overlong and surrogate forms', [0xe0, 0x80, 0x80, 0xed, 0xa0, 0x80, 0xf4, 0x90, 0x80, 0x80]],
  ['a character cut off by ASCII', [0xe2, 0x82, 0x61, 0xf0, 0x9f, 0xa6, 0x62, 0xc3, 0x63]],
  ['a character cut off by another', [0xf0, 0x9f, 0xe2, 0x82, 0xac, 0xc3, 0xc3, 0xa4]],
  ['a character cut off at the end', [0x61, 0xf0, 0x9f, 0xa6]],
  ['first bytes only', [0xf0, 0xe2, 0xc3]],
]

it.each(samples)('gives the same text however %s is cut', (_, bytes) => {
  const whole = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes))
  for (let first = 0; first <= bytes.length; first++) {
    for (let second = first; second <= bytes.length; second++) {
      const decoder = new Utf8Decoder()
      const pieces = [bytes.slice(0, first), bytes.slice(first, second), bytes.slice(second)]
      const texts = pieces.map((piece) => decoder.decode(Buffer.from(piece)))
      expect(texts.join('') + decoder.end()).toBe(whole)
    }
  }
  const decoder = new Utf8Decoder()
  expect(bytes.map((byte) => decoder.decode(Buffer.of(byte))).join('') + decoder.end()).toBe(whole)
})

it('holds no more than three bytes back', () => {
  const decoder = new Utf8Decoder()
  expect(decoder.decode(Buffer.from([0x61, 0xf0, 0x9f, 0xa6]))).toBe('a')
  expect(decoder.decode(Buffer.from([0x8a]))).toBe('🦊')
  expect(decoder.end()).toBe('')
})

it.each([
  ['abc', 3, 'abc'],
  ['abc', 2, 'ab'],
  ['aä', 2, 'a'],
  ['a🦊', 4, 'a'],
  ['a🦊', 5, 'a🦊'],
  ['€', 0, ''],
])('cuts %j at %i bytes between characters', (text, maxBytes, head) => {
  expect(truncateUtf8(text, maxBytes)).toBe(head)
})
