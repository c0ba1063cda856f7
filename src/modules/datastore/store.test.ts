import { describe, expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import { afterPrefix } from './store.ts'

describe('afterPrefix', () => {
  test.for<[string, string | undefined]>([
    ['', undefined],
    ['a', 'b'],
    ['az', 'a{'],
    ['\u{d7ff}', '\u{e000}'],
    ['a\u{10ffff}', 'b'],
    ['\u{10ffff}', undefined],
    ['\u{ffff}', '\u{10000}'],
  ])('%j', ([prefix, expected]) => {
    expect(afterPrefix(prefix)).toBe(expected)
  })

  test(`is in the order of UTF-8 (seed ${seedOfRun()})`, () => {
    const random = createRandom(seedOfRun())
    const letters = [
      '\u{1}',
      'a',
      'b',
      '~',
      'é',
      '\u{d7ff}',
      '\u{e000}',
      '\u{ffff}',
      '\u{10000}',
      '\u{10ffff}',
    ] as const
    const text = (length: number): string => Array.from({ length }, () => random.pick(letters)).join('')
    let inside = 0
    for (let n = 0; n < 20_000; n += 1) {
      const prefix = text(1 + random.below(3))
      const name = random.once(2) ? prefix + text(random.below(3)) : text(random.below(5))
      const bytes = Buffer.from(name)
      const end = afterPrefix(prefix)
      const isWithin =
        bytes.compare(Buffer.from(prefix)) >= 0 && (end === undefined || bytes.compare(Buffer.from(end)) < 0)
      expect({ prefix, name, isWithin }).toEqual({ prefix, name, isWithin: name.startsWith(prefix) })
      if (isWithin) inside += 1
    }
    expect(inside).toBeGreaterThan(5000)
  })
})
