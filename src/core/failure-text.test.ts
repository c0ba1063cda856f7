import { describe, expect, test } from 'vitest'
import { WrittenJson } from '../lib/json/index.ts'
import { failureText, MAX_FAILURE_LENGTH } from './failure-text.ts'

describe('why an execution has failed, in one line', () => {
  test.each<[string, unknown, string]>([
    ['an error', { error: 'No such host.', traceback: 'x\ny' }, 'No such host.'],
    ['an exit code', { return_code: 3, stdout: 'x', stderr: '' }, 'exit code 3'],
    ['of Python', { exit_code: 1, result: 'None', stderr: 'Traceback\nValueError: x\n' }, 'exit code 1: ValueError: x'],
    ['colours', { return_code: 3, stderr: 'a\n\u001B[31mred\u001B[0m\tb\u0007\r\n\n' }, 'exit code 3: red b'],
    ['an error of many lines', { error: 'a\n\n  b\r\nc' }, 'a b c'],
    ['an answer', { status_code: 503, body: 'x' }, 'HTTP status 503'],
    [
      'a host',
      { one: { failed: false, return_code: 0 }, two: { failed: true, return_code: 2, stderr: 'no' } },
      'two: exit code 2: no',
    ],
    [
      'a workflow',
      {
        errors: [
          {
            type: 'error',
            task_id: 'build',
            message: 'Execution failed. See result for details.',
            result: { return_code: 2, stderr: 'no disk' },
          },
        ],
      },
      'task build: exit code 2: no disk',
    ],
    ['a definition', { errors: [{ message: 'Unknown task' }], output: null }, 'Unknown task'],
    ['a message', { message: 'x' }, 'x'],
    ['nothing', { stdout: '' }, 'It failed, and its result does not say why.'],
    ['no result', undefined, 'It failed, and its result does not say why.'],
    [
      'texts that are none',
      { error: 7, errors: ['x'], return_code: '3', stderr: 5 },
      'It failed, and its result does not say why.',
    ],
    [
      'a result as text',
      WrittenJson.of(`{"error":"${'x'.repeat(1_000_000)}"}`),
      'It failed, and its result does not say why.',
    ],
    ['blanks', { error: '  \n', return_code: 4, stderr: ' \n' }, 'exit code 4'],
  ])('%s', (_, result, expected) => {
    expect(failureText('failed', result)).toBe(expected)
  })

  test.each(['succeeded', 'canceled', 'running', 'requested'])('none of what is %s', (status) => {
    expect(failureText(status, { error: 'x' })).toBeNull()
  })

  test('a status may say it', () => {
    expect(failureText('timeout', {})).toBe('It took too long.')
    expect(failureText('abandoned', { error: 'The server stopped.' })).toBe('The server stopped.')
  })

  test('is short, without half a character at its end, whatever the length of the output', () => {
    const long = failureText('failed', { error: `a${'😀'.repeat(10_000)}` }) ?? ''
    expect(long.length).toBeLessThanOrEqual(MAX_FAILURE_LENGTH)
    expect(long).toMatch(/😀…$/u)
    const stderr = `${'x\n'.repeat(1_000_000)}the last\n`
    expect(failureText('failed', { return_code: 1, stderr })).toBe('exit code 1: the last')
  })
})
