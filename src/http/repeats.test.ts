import { expect, test } from 'vitest'
import { createRepeats, type ReadyAnswer } from './repeats.ts'

const answer = (text: string): ReadyAnswer => ({ status: 201, headers: {}, bytes: Buffer.from(text) })
const textOf = ({ bytes }: ReadyAnswer): string => String(bytes)

/** Counts how often it was carried out. */
function counter(): { times: () => number; carryOut: () => Promise<ReadyAnswer> } {
  let times = 0
  return {
    times: () => times,
    carryOut: async () => {
      times += 1
      const answered = answer(String(times))
      await Promise.resolve()
      return answered
    },
  }
}

test('what comes again meanwhile, or afterwards, is answered as the first time', async () => {
  const repeats = createRepeats()
  const { times, carryOut } = counter()
  const together = await Promise.all([repeats.once('a', carryOut), repeats.once('a', carryOut)])
  const later = await repeats.once('a', carryOut)
  expect([...together, later].map(textOf)).toEqual(['1', '1', '1'])
  expect([...together, later].map(({ headers }) => headers['Idempotent-Replayed'])).toEqual([undefined, 'true', 'true'])
  expect(times()).toBe(1)
  await repeats.once('b', carryOut)
  expect(times()).toBe(2)
})

test('what was refused may be tried again', async () => {
  const repeats = createRepeats()
  const { carryOut, times } = counter()
  await expect(repeats.once('a', () => Promise.reject(new Error('full')))).rejects.toThrow('full')
  expect(textOf(await repeats.once('a', carryOut))).toBe('1')
  expect(times()).toBe(1)
})

test('answers are kept for a time, and as many as there is room for', async () => {
  let now = 0
  const repeats = createRepeats({ answers: 2, bytes: 10, keptMs: 100 }, () => now)
  const { carryOut, times } = counter()
  await repeats.once('a', carryOut)
  now = 99
  await repeats.once('a', carryOut)
  expect(times()).toBe(1)
  now = 100
  await repeats.once('a', carryOut)
  expect(times()).toBe(2)

  for (const key of ['b', 'c', 'b', 'c']) await repeats.once(key, carryOut)
  expect(times()).toBe(4)
  await repeats.once('a', carryOut)
  expect(times()).toBe(5)
  await repeats.once('large', () => Promise.resolve(answer('x'.repeat(11))))
  await repeats.once('a', carryOut)
  expect(times()).toBe(5)
})

test('a key that comes again after its time takes room once', async () => {
  let now = 0
  const repeats = createRepeats({ answers: 10, bytes: 10, keptMs: 100 }, () => now)
  const { carryOut, times } = counter()
  for (let i = 0; i < 20; i++) {
    await repeats.once('a', () => Promise.resolve(answer('four')))
    now += 100
  }
  const four = async (): Promise<ReadyAnswer> => ({ ...(await carryOut()), bytes: Buffer.from('four') })
  await repeats.once('a', four)
  await repeats.once('a', four)
  expect(times()).toBe(1)
})
