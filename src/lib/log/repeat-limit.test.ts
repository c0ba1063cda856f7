import { expect, test } from 'vitest'
import { createRepeatLimit } from './repeat-limit.ts'

test('ten lines of a kind in ten seconds, and how many were kept back', () => {
  let now = 5000
  const repeats = createRepeatLimit(10, () => now)
  const say = (times: number, key = 'a'): (number | undefined)[] => Array.from({ length: times }, () => repeats(key))
  expect(say(12)).toEqual([...Array.from({ length: 10 }, () => 0), undefined, undefined])
  expect(say(1, 'b')).toEqual([0])
  now += 9999
  expect(say(1)).toEqual([undefined])
  now += 1
  expect(say(11)).toEqual([3, ...Array.from({ length: 9 }, () => 0), undefined])
  now += 60_000
  expect(say(2)).toEqual([1, 0])
})
