import { expect, test } from 'vitest'
import { createGate } from './gate.ts'

test('so many at a time, in order; who finds the line full is turned away; failures give their place back', async () => {
  const gate = createGate('logins', 2, 3, 60_000)
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

test('who waits too long is turned away, and those behind are not', async () => {
  const gate = createGate('logins', 1, 3, 20)
  let release = (): void => undefined
  const first = gate.pass(() => new Promise<void>((resolve) => (release = resolve)))
  await expect(gate.pass(() => Promise.resolve())).rejects.toMatchObject({ code: 'QUEUE_FULL' })
  const behind = gate.pass(() => Promise.resolve('through'))
  release()
  await first
  expect(await behind).toBe('through')
})
