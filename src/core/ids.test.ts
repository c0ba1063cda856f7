import { describe, expect, test } from 'vitest'
import { idBound, isId, microsOfId, newId } from './ids.ts'
import { nowMicros } from './time.ts'

const START = Date.UTC(2024, 0, 1) * 1000

/** A repeatable sequence of numbers from 0 up to, not including, 1. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 0x1_0000_0000
  }
}

const seconds = (id: string): number => Number.parseInt(id.slice(0, 8), 16)

test('an id is 24 lowercase hexadecimal characters, the first 8 its second of creation', () => {
  const id = newId(1_700_000_000_123_456)
  expect(id).toMatch(/^[0-9a-f]{24}$/)
  expect(seconds(id)).toBe(1_700_000_000)
  expect(Math.abs(seconds(newId()) - Date.now() / 1000)).toBeLessThan(2)
})

test('ids made one after the other ascend', () => {
  const ids = Array.from({ length: 50_000 }, () => newId())
  expect(ids.filter((id, i) => i > 0 && id <= (ids[i - 1] ?? ''))).toEqual([])
})

test('an id for a time to come changes nothing for those of now', () => {
  newId(nowMicros() + 3_600_000_000)
  const ids = Array.from({ length: 1000 }, () => newId())
  expect(ids).toEqual(ids.toSorted())
  expect(Math.abs(seconds(newId()) - Date.now() / 1000)).toBeLessThan(2)
})

test('16 ids of one microsecond ascend, and any number of them is unique and stays within it', () => {
  const micros = nowMicros()
  const ids = Array.from({ length: 1000 }, () => newId(micros))
  expect(ids.slice(0, 16)).toEqual(ids.slice(0, 16).toSorted())
  expect(new Set(ids).size).toBe(1000)
  expect(ids.filter((id) => id < idBound(micros) || id >= idBound(micros + 1))).toEqual([])
})

describe('the bounds of a time', () => {
  test('hold its ids, in whatever order times come', () => {
    const random = randomNumbers(7)
    const strays: string[] = []
    for (let i = 0; i < 20_000; i++) {
      // Some neighbours, some far apart, some at the very end of a second.
      const far = START + Math.floor(random() * 4_000_000) * 1000
      const micros = random() < 0.2 ? far + 999_999 : far + Math.floor(random() * 40)
      const id = newId(micros)
      if (id < idBound(micros) || id >= idBound(micros + 1)) strays.push(`${id} for ${micros}`)
    }
    expect(strays).toEqual([])
  })

  test('tell when it was made', () => {
    const random = randomNumbers(11)
    for (let i = 0; i < 20_000; i++) {
      const micros = START + Math.floor(random() * 2_000_000)
      expect(microsOfId(newId(micros))).toBe(micros)
    }
    const together = Array.from({ length: 16 }, () => microsOfId(newId(START)))
    expect(new Set(together)).toEqual(new Set([START]))
  })

  test('ascend with time, microsecond by microsecond', () => {
    for (const from of [START, START + 999_990, START + 500_000]) {
      for (let micros = from; micros < from + 20; micros++) expect(idBound(micros) < idBound(micros + 1)).toBe(true)
    }
  })

  test('of times that no id can have are the nearest possible ones', () => {
    expect(idBound(-1)).toBe('0'.repeat(24))
    expect(idBound(Date.UTC(1900, 0, 1) * 1000)).toBe('0'.repeat(24))
    expect(idBound(Date.UTC(9999, 0, 1) * 1000) > newId()).toBe(true)
  })
})

test.each([
  ['000000000000000000000000', true],
  ['65f0a1b2c3d4e5f60718293a', true],
  ['65F0A1B2C3D4E5F60718293A', false],
  ['65f0a1b2c3d4e5f60718293', false],
  ['65f0a1b2c3d4e5f60718293ab', false],
  ['65f0a1b2c3d4e5f60718293a\n', false],
  ['65f0a1b2c3d4e5f60718293g', false],
  ['last', false],
  ['', false],
])('isId(%j) is %s', (text, expected) => {
  expect(isId(text)).toBe(expected)
})
