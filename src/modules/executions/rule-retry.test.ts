import { describe, expect, test } from 'vitest'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { actionDisabled } from '../../core/errors.ts'
import { createLog } from '../../lib/log/index.ts'
import { createRuleRetry, delayOf } from './rule-retry.ts'
import type { Execution, RetryRules } from './types.ts'

const rules = (more: Partial<RetryRules> = {}): RetryRules => ({
  attempts: 5,
  delay: 10,
  backoff: 'fixed',
  max_delay: 10,
  jitter: false,
  on: ['failed', 'timeout'],
  ...more,
})

function ended(attempt: number, retry: RetryRules, more: Partial<Execution> = {}): Execution {
  return makeExecution({
    status: 'failed',
    log: [{ status: 'scheduled', timestamp: '' }],
    liveaction: {
      callback: {},
      runner_info: {},
      running: { retry },
      ...(attempt > 1 ? { attempt, retry_of: 'x' } : {}),
    },
    ...more,
  })
}

describe('the delay before the next attempt', () => {
  const delays = (retry: RetryRules, random = 0): (number | undefined)[] =>
    [1, 2, 3, 4, 5, 6].map((attempt) => delayOf(retry, ended(attempt, retry), () => random))

  test.each<[string, Partial<RetryRules>, (number | undefined)[]]>([
    ['fixed', {}, [10, 10, 10, 10, undefined, undefined]],
    ['doubled', { backoff: 'exponential', max_delay: 3600 }, [10, 20, 40, 80, undefined, undefined]],
    ['doubled up to a limit', { backoff: 'exponential', max_delay: 25 }, [10, 20, 25, 25, undefined, undefined]],
    ['one attempt', { attempts: 1 }, [undefined, undefined, undefined, undefined, undefined, undefined]],
  ])('%s', (_, more, expected) => {
    expect(delays(rules(more))).toEqual(expected)
  })

  test.each([
    [0, 5],
    [0.5, 7.5],
    [1, 10],
  ])('a random part is left out, at most half of it: %d', (random, expected) => {
    expect(delays(rules({ jitter: true }), random)[0]).toBe(expected)
  })

  test('stays a number with as many attempts as there can be', () => {
    const retry = rules({ attempts: 100, backoff: 'exponential', max_delay: 86_400, delay: 86_400 })
    expect(delayOf(retry, ended(99, retry), Math.random)).toBe(86_400)
  })

  test.each<[string, Partial<Execution>, Partial<RetryRules>, boolean]>([
    ['a time-out', { status: 'timeout' }, {}, true],
    ['another status than those that are named', { status: 'timeout' }, { on: ['failed'] }, false],
    ['a success', { status: 'succeeded' }, {}, false],
    ['what was canceled', { status: 'canceled' }, {}, false],
    ['what was abandoned', { status: 'abandoned' }, {}, false],
    ['what was never tried', { log: [{ status: 'requested', timestamp: '' }] }, {}, false],
  ])('%s', (_, more, changed, isRetried) => {
    const retry = rules(changed)
    expect(delayOf(retry, ended(1, retry, more), Math.random) !== undefined).toBe(isRetried)
  })
})

describe('a retry that cannot be planned', () => {
  test.each([
    [actionDisabled('core.local'), /Could not retry.*"core\.local" is disabled/],
    [new TypeError('what was that'), /what was that/],
  ])('is logged, and the end of the execution is stored all the same: %s', (error, line) => {
    const sink = new TextSink()
    const retry = createRuleRetry({
      planRetry() {
        throw error
      },
      log: createLog({ level: 'INFO', format: 'text', stream: sink }),
      random: Math.random,
    })
    expect(retry.planRetry(ended(1, rules()))).toBeUndefined()
    expect(sink.text).toMatch(line)
  })
})
