import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { onDeadline } from './deadline.ts'

const DAY_MS = 86_400_000

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => vi.useRealTimers())

it('waits for longer than a timer of Node can', () => {
  const reached = vi.fn<() => void>()
  onDeadline(60 * DAY_MS, reached)
  vi.advanceTimersByTime(60 * DAY_MS - 1)
  expect(reached).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(reached).toHaveBeenCalledTimes(1)
})

it('is taken back', () => {
  const reached = vi.fn<() => void>()
  const takeBack = onDeadline(40 * DAY_MS, reached)
  vi.advanceTimersByTime(30 * DAY_MS)
  takeBack()
  vi.advanceTimersByTime(30 * DAY_MS)
  expect(reached).not.toHaveBeenCalled()
})
