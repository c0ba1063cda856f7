import { describe, expect, test } from 'vitest'
import type { ExecutionStatus } from '../../../api/records.ts'
import { withoutEscapes, problemOf, type Problem } from './problem.ts'

const problem = (status: ExecutionStatus, result: unknown, context = {}): Problem | undefined =>
  problemOf({ status, result, context: { user: 'ada', pack: 'core', ...context } })

test.each<ExecutionStatus>(['requested', 'running', 'pending', 'succeeded', 'canceling'])('%s has none', (status) => {
  expect(problem(status, { error: 'x' })).toBeUndefined()
})

describe('a command', () => {
  const result = { failed: true, succeeded: false, return_code: 3, stdout: 'out', stderr: 'first\nlast' }
  test.each<[status: ExecutionStatus, result: unknown, expected: Problem]>([
    ['failed', result, { title: 'Failed: exit code 3', text: 'first\nlast' }],
    ['failed', { ...result, stderr: ' ' }, { title: 'Failed: exit code 3', text: 'out' }],
    ['failed', { ...result, stdout: '', stderr: '' }, { title: 'Failed: exit code 3' }],
    [
      'failed',
      { ...result, return_code: 127, stderr: 'sh: x: not found' },
      { title: 'Failed: exit code 127 (command not found)', text: 'sh: x: not found' },
    ],
    ['failed', { return_code: 139 }, { title: 'Failed: exit code 139 (signal 11)' }],
    [
      'timeout',
      { ...result, error: 'Action failed to complete in 1 seconds' },
      { title: 'Action failed to complete in 1 seconds', text: 'first\nlast' },
    ],
    ['timeout', undefined, { title: 'Timed out' }],
    [
      'abandoned',
      { error: 'The server stopped while the action was running.' },
      { title: 'The server stopped while the action was running.' },
    ],
    ['abandoned', undefined, { title: 'Abandoned: the server stopped while it ran' }],
    ['failed', undefined, { title: 'Failed' }],
    ['failed', 'text', { title: 'Failed' }],
  ])('%s with %j', (status, given, expected) => {
    expect(problem(status, given)).toEqual(expected)
  })
})

test('a start that failed, with where that was', () => {
  expect(problem('failed', { error: 'No such folder: /x\nmore', traceback: 'Error: at y' })).toEqual({
    title: 'No such folder: /x',
    text: 'more',
    traceback: 'Error: at y',
  })
  expect(problem('failed', { error: 'same', traceback: 'same' })).toEqual({ title: 'same' })
})

test('an exception of Python is its last line', () => {
  const stderr = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: no such host'
  expect(problem('failed', { exit_code: 1, result: 'None', stdout: '', stderr })).toEqual({
    title: 'ValueError: no such host',
    text: stderr,
  })
  expect(problem('failed', { exit_code: 1, result: 'None', stdout: '', stderr: 'gone' })).toEqual({
    title: 'Failed: exit code 1',
    text: 'gone',
  })
})

test('an answer over HTTP', () => {
  expect(problem('failed', { status_code: 503, body: 'down', headers: {} })).toEqual({
    title: 'Failed: HTTP status 503',
    text: 'down',
  })
  expect(problem('failed', { status_code: 500, body: { error: 'x' } })?.text).toBe('{"error":"x"}')
})

test('hosts that failed, not those that did not', () => {
  const host = { failed: true, succeeded: false, return_code: 1, stdout: '', stderr: 'no' }
  const result = { a: host, b: { ...host, failed: false, succeeded: true }, c: { ...host, error: 'unreachable' } }
  expect(problem('failed', result)).toEqual({ title: 'Failed on 2 hosts', text: 'a: no\n\nc: unreachable' })
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`h${i}`, host]))
  const { title, text } = problem('failed', many) ?? { title: '', text: '' }
  expect(title).toBe('Failed on 500 hosts, the first 20 shown')
  expect(text?.split('\n\n')).toHaveLength(20)
})

test('a workflow names its errors', () => {
  expect(problem('failed', { output: null, errors: [{ message: 'task a failed' }, { message: 'b' }] })?.text).toBe(
    'task a failed\nb',
  )
})

test.each([
  [{ message: 'Action canceled by user.', user: 'eve' }, {}, 'Canceled by eve'],
  [undefined, { cancelled_by: 'bob' }, 'Canceled by bob'],
  [{ message: 'x', policy: 'p.one' }, {}, 'Canceled by the policy p.one'],
  [undefined, {}, 'Canceled'],
])('canceled: %j %j', (result, context, title) => {
  expect(problem('canceled', result, context)).toEqual({ title })
})

test('what is long is cut, at the end where the reason is', () => {
  const { title, text } = problem('failed', { return_code: 1, stderr: `${'x'.repeat(1e6)}the reason` }) ?? { title: '' }
  expect(title).toBe('Failed: exit code 1')
  expect(text?.length).toBeLessThan(5000)
  expect(text).toMatch(/^… x+the reason$/)
  expect(problem('failed', { error: 'y'.repeat(1e6) })?.title).toHaveLength(501)
})

test('what a terminal would make colours of is left out', () => {
  expect(
    withoutEscapes('\u001b[1;31mred\u001b[0m \u001b]8;;http://x\u0007link\u001b]8;;\u0007 \u001b[2K\u001bMend'),
  ).toBe('red link end')
  expect(withoutEscapes('a < b && "c" \\ [d]')).toBe('a < b && "c" \\ [d]')
})
