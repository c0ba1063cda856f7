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
