import { expect, test } from 'vitest'
import type { ExecutionStatus } from '../../../api/records.ts'
import { waitingOf } from './waiting.ts'

const now = Date.parse('2030-01-01T00:01:00Z')
const waiting = (status: ExecutionStatus, more = {}) =>
  waitingOf(
    {
      status,
      start_timestamp: '2030-01-01T00:00:00.000000Z',
      action: { ref: 'core.local' },
      runner: { name: 'local-shell-cmd' },
      context: {},
      ...more,
    },
    now,
  )

test.each<ExecutionStatus>(['running', 'succeeded', 'failed', 'timeout', 'abandoned', 'canceled'])(
  '%s waits for nothing',
  (status) => {
    expect(waiting(status)).toBeUndefined()
  },
)

test.each<ExecutionStatus>(['requested', 'scheduled', 'pending', 'canceling', 'pausing', 'paused', 'resuming'])(
  '%s is told in a sentence',
  (status) => {
    expect(waiting(status)?.sentence).toMatch(/^It .*\.$/)
  },
)

test('an inquiry waits for an answer', () => {
  expect(waiting('pending', { runner: { name: 'inquirer' } })?.sentence).toBe('It waits for an answer.')
})

test('a delay ends at a time, whoever wanted it', () => {
  expect(waiting('delayed', { delay: 90_000 })).toEqual({
    sentence: 'Whoever asked for it wanted it to wait until',
    until: '2030-01-01T00:01:30.000Z',
  })
  const context = { policies: { retry: { applied_policy: 'p.again', retry_count: 1 } } }
  expect(waiting('delayed', { delay: 90_000, context })?.sentence).toContain('The policy p.again runs it again')
})

test.each([{}, { delay: 1000 }])('without a time, or beyond it, it waits for others (%j)', (more) => {
  expect(waiting('delayed', more)).toMatchObject({ isBehindOthers: true })
})
