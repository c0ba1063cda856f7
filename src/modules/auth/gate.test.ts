import { expect, test } from 'vitest'
import { createGate } from './gate.ts'

test('so many at a time, in order; who finds the line full is turned away; failures give their place back', async () => {
  const gate = createGate('logins', 2, 3)
  const releases: (() => void)[] = []
  const entered: number[] = []
  const visits = [0, 1, 2, 3, 4].map((n) =>
    gate.pass(async () => {
      entered.push(n)
      await new Promise<void>((resolve) => releases.push(resolve))
      if (n === 1) throw new Error('failed inside')
      return n
    }),
  )
  const outcomes = Promise.allSettled(visits)
  expect(entered).toEqual([0, 1])
  await expect(gate.pass(() => Promise.resolve())).rejects.toMatchObject({ code: 'QUEUE_FULL', kind: 'unavailable' })

  for (let n = 0; n < visits.length; n++) {
    releases[n]?.()
    await visits[n]?.catch(() => undefined)
    expect(entered.length).toBeLessThanOrEqual(n + 3)
  }
  expect(entered).toEqual([0, 1, 2, 3, 4])
  expect((await outcomes).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ])
  expect(await gate.pass(() => Promise.resolve('free again'))).toBe('free again')
})
