import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

test('work of one name never overlaps and keeps its order, that of others goes on meanwhile', async () => {
  const inTurn = createTurns()
  const seen: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = inTurn('a', async () => {
    seen.push('first begins')
    await gate.promise
    seen.push('first ends')
    return 1
  })
  const second = inTurn('a', async () => {
    seen.push('second')
    return 2
  })
  const third = inTurn('a', async () => seen.push('third'))
  await inTurn('b', async () => seen.push('other'))
  expect(seen).toEqual(['first begins', 'other'])
  gate.resolve()
  expect(await Promise.all([first, second])).toEqual([1, 2])
  await third
  expect(seen).toEqual(['first begins', 'other', 'first ends', 'second', 'third'])
})

test('work that fails ends its own turn alone', async () => {
  const inTurn = createTurns()
  const failing = inTurn('a', () => Promise.reject(new Error('no')))
  const next = inTurn('a', async () => 'next')
  await expect(failing).rejects.toThrow('no')
  expect(await next).toBe('next')
  expect(await inTurn('a', async () => 'later')).toBe('later')
})
