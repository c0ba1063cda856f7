import { describe, expect, test } from 'vitest'
import { compileRunning, runningOf } from './running.ts'

describe('running rules', () => {
  test.each([
    [{}, undefined],
    [{ overlap: 'allow' } as const, undefined],
    [
      { timeout: '1h30m', delay: '5s' },
      { timeout: 5400, delay: 5 },
    ],
    [{ overlap: 'skip' } as const, { rules: { overlap: 'skip' } }],
    [
      { retry: { attempts: 3 } },
      {
        rules: {
          retry: { attempts: 3, delay: 0, backoff: 'fixed', max_delay: 0, jitter: false, on: ['failed', 'timeout'] },
        },
      },
    ],
    [
      { retry: { attempts: 3, delay: '2h', backoff: 'exponential' as const, on: ['timeout' as const] } },
      {
        rules: {
          retry: { attempts: 3, delay: 7200, backoff: 'exponential', max_delay: 7200, jitter: false, on: ['timeout'] },
        },
      },
    ],
  ])('%j', (given, expected) => {
    expect(compileRunning(given)).toEqual(expected)
  })

  test('are read from an action, whatever else it has, and null is not given', () => {
    const action = { ref: 'core.noop', parameters: {}, timeout: 5, retry: null, delay: null, overlap: 'skip' as const }
    expect(runningOf(action)).toEqual({ timeout: 5, overlap: 'skip' })
  })
})
