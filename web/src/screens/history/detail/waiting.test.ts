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

test.each<[status: ExecutionStatus, sentence: string]>([
  ['requested', 'Waiting for a free slot.'],
  ['scheduled', 'Starting.'],
  ['pending', 'Waiting for an external system to report the outcome.'],
  ['canceling', 'Canceling: its processes have a grace period to stop.'],
  ['pausing', 'Pausing: waiting for its running children to end.'],
  ['paused', 'Paused until somebody resumes it.'],
  ['resuming', 'Resuming.'],
])('%s has the sentence "%s"', (status, sentence) => {
  expect(waiting(status)).toEqual({ sentence })
})

test('an inquiry waits for an answer', () => {
  expect(waiting('pending', { runner: { name: 'inquirer' } })?.sentence).toBe('Waiting for an answer.')
})

test('a delay ends at a time, whoever wanted it', () => {
  expect(waiting('delayed', { delay: 90_000 })).toEqual({
    sentence: 'Delayed by the request until',
    until: '2030-01-01T00:01:30.000Z',
  })
  const context = { policies: { retry: { applied_policy: 'p.again', retry_count: 1 } } }
  expect(waiting('delayed', { delay: 90_000, context })?.sentence).toContain('Retry by the policy p.again')
})

test.each([{}, { delay: 1000 }])('without a time, or beyond it, it waits for others (%j)', (more) => {
  expect(waiting('delayed', more)).toMatchObject({ isBehindOthers: true })
})
