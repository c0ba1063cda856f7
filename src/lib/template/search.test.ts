import { expect, test } from 'vitest'
import { indexOfText, lastIndexOfText, splitByText } from './search.ts'

const pieces = ['a', 'ab', 'aab', 'b', 'é🎉', 'a'.repeat(40)]

/** Texts of few letters, so that almost-matches and overlaps are frequent. */
function textsOf(count: number, parts: number): string[] {
  let state = 7
  const next = (): number => (state = (state * 1103515245 + 12345) % 2147483648)
  const pick = (): string => pieces[Math.floor(next() / 65536) % pieces.length] ?? ''
  return Array.from({ length: count }, () => Array.from({ length: parts }, pick).join(''))
}

test('finds the same positions as the built-in searches', () => {
  const texts = textsOf(60, 60)
  let found = 0
  for (const [index, text] of texts.entries()) {
    const start = (index * 13) % 200
    for (const wanted of [
      text.slice(start, start + 33 + index),
      texts[(index + 1) % texts.length]?.slice(0, 40) ?? '',
    ]) {
      expect(indexOfText(text + text, wanted)).toBe((text + text).indexOf(wanted))
      expect(lastIndexOfText(text + text, wanted)).toBe((text + text).lastIndexOf(wanted))
      expect(splitByText(text + text, wanted)).toEqual((text + text).split(wanted))
      if (text.includes(wanted)) found += 1
    }
  }
  expect(found).toBeGreaterThan(50)
})

test.each(['a'.repeat(100), `${'ab'.repeat(30)}a`, 'x'.repeat(50)])(
  'overlaps count once, and the ends are seen: %s',
  (wanted) => {
    for (const text of [
      wanted,
      wanted + wanted,
      `${wanted.slice(1)}${wanted}`,
      `-${wanted}-${wanted}`,
      wanted.slice(1),
      '',
    ]) {
      expect(indexOfText(text, wanted)).toBe(text.indexOf(wanted))
      expect(lastIndexOfText(text, wanted)).toBe(text.lastIndexOf(wanted))
      expect(splitByText(text, wanted)).toEqual(text.split(wanted))
    }
  },
)
