import { describe, expect, test } from 'vitest'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { noMetrics } from '../../core/metrics.ts'
import type { Unit } from '../../db/index.ts'
import type { Attempt } from './ports.ts'
import { createExecutionReaction } from './reaction.ts'
import { executionStatuses, type Execution } from './types.ts'
import { isFinal } from './state.ts'

const unitOf = (id: string): Unit => ({ steps: [], facts: [{ name: 'token.revoked', payload: { id } }] })

/** What the parts are asked, in order, and the unit that comes of it. */
function react(execution: Execution, retry?: Unit, notification?: Unit, job?: Unit) {
  const asked: [string, Attempt?][] = []
  const reaction = createExecutionReaction({
    planReaction(_execution, _parameters, attempt) {
      asked.push(['reaction', attempt])
      return unitOf('reaction')
    },
    policies: {
      planRetry() {
        asked.push(['retry'])
        return retry
      },
    },
    ruleRetry: {
      decides: ({ liveaction: { running } }) => running?.retry !== undefined,
      planRetry() {
        asked.push(['retry of the rule'])
        return retry
      },
    },
    notifications: {
      planEnd(_execution, attempt) {
        asked.push(['end', attempt])
        return notification
      },
    },
    jobs: {
      planEnd(_execution, attempt) {
        asked.push(['job', attempt])
        return job
      },
    },
    parameters: { masked: () => ({}) },
    metrics: noMetrics,
  })
  const unit = reaction(execution)
  return { asked, names: unit?.facts.map(({ payload }) => (payload as { id: string }).id) }
}

describe('what the end of an execution brings about', () => {
  test('the retry is planned first, and the others learn of it', () => {
    const units = ['retry', 'notification', 'job'].map(unitOf)
    const { asked, names } = react(makeExecution({ status: 'failed' }), ...units)
    const attempt = { attempt: 1, willRetry: true }
    expect(asked).toEqual([['retry'], ['reaction', attempt], ['end', attempt], ['job', attempt]])
    expect(names).toEqual(['reaction', 'notification', 'job', 'retry'])
  })

  test.each<[string, Partial<Execution>, number]>([
    ['a retry', { liveaction: { callback: {}, runner_info: {}, attempt: 3, retry_of: 'x' } }, 3],
    ['a retry of an earlier version', { context: { policies: { retry: { retry_count: 2 } } } }, 3],
    ['what no policy has tried again', { context: { policies: {} } }, 1],
  ])('the attempt of %s', (_, more, attempt) => {
    expect(react(makeExecution({ status: 'failed', ...more })).asked.at(-1)).toEqual([
      'job',
      { attempt, willRetry: false },
    ])
  })

  test.each(executionStatuses)('who is asked: %s', (status) => {
    const asked = react(makeExecution({ status })).asked.map(([name]) => name)
    expect(asked).toEqual(isFinal(status) ? ['retry', 'reaction', 'end', 'job'] : ['reaction'])
  })
})
