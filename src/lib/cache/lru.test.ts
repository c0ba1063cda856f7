import { expect, test } from 'vitest'
import { Lru } from './lru.ts'

test('forgets what was used least recently', () => {
  const lru = new Lru<string, number>(2)
  lru.set('a', 1)
  lru.set('b', 2)
  expect(lru.get('a')).toBe(1)
  lru.set('c', 3)
  expect([lru.get('a'), lru.get('b'), lru.get('c'), lru.size]).toEqual([1, undefined, 3, 2])
})

test('a new value for the same key takes no room', () => {
  const lru = new Lru<string, number>(2)
  lru.set('a', 1)
  lru.set('b', 2)
  lru.set('b', 3)
  expect([lru.get('a'), lru.get('b'), lru.size]).toEqual([1, 3, 2])
  lru.clear()
  expect(lru.size).toBe(0)
})

test('drops the least recently used values until the weight fits', () => {
  const lru = new Lru<string, number>(10, 80)
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) lru.set(key, 1, 10)
  expect(lru.get('a')).toBe(1)
  lru.set('i', 1, 10)
  expect([lru.has('a'), lru.has('b'), lru.has('i'), lru.size]).toEqual([true, false, true, 8])
  lru.set('i', 2, 5)
  lru.set('j', 1, 5)
  expect([lru.get('i'), lru.has('c'), lru.size]).toEqual([2, true, 9])
})

test('a value heavier than an eighth of the whole is not kept', () => {
  const lru = new Lru<string, number>(10, 80)
  lru.set('heavy', 1, 11)
  expect([lru.get('heavy'), lru.size]).toEqual([undefined, 0])
})
