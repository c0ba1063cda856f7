import { expect, test } from 'vitest'
import { createKeyedLock } from './keyed-lock.ts'

test('work of one name never overlaps and keeps its order, that of others goes on meanwhile', async () => {
  const withLock = createKeyedLock()
  const seen: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = withLock('a', async () => {
    seen.push('first begins')
    await gate.promise
    seen.push('first ends')
    return 1
  })
  const second = withLock('a', async () => {
    seen.push('second')
    return 2
  })
  const third = withLock('a', async () => seen.push('third'))
  await withLock('b', async () => seen.push('other'))
  expect(seen).toEqual(['first begins', 'other'])
  gate.resolve()
  expect(await Promise.all([first, second])).toEqual([1, 2])
  await third
  expect(seen).toEqual(['first begins', 'other', 'first ends', 'second', 'third'])
})

test('work that fails ends its own turn alone', async () => {
  const withLock = createKeyedLock()
  const failing = withLock('a', () => Promise.reject(new Error('no')))
  const next = withLock('a', async () => 'next')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('next')
  expect(await withLock('a', async () => 'later')).toBe('later')
})
