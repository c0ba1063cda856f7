import { expect, test } from 'vitest'
import { coalesce } from './coalesce.ts'

test('calls during a run share one more run after it', async () => {
  const ends: (() => void)[] = []
  const run = coalesce(() => new Promise<void>((resolve) => ends.push(resolve)))
  const first = run()
  const [second, third] = [run(), run()]
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await first
  await Promise.resolve()
  expect(ends).toHaveLength(2)
  ends[1]?.()
  await Promise.all([second, third])
  const fourth = run()
  expect(ends).toHaveLength(3)
  ends[2]?.()
  await fourth
})
