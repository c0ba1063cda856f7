import { expect, test } from 'vitest'
import { readResult } from './result.ts'

const output = (text: string, isCut = false) => ({ text, isCut })

test('a command', () => {
  expect(
    readResult({ failed: false, succeeded: true, return_code: 0, stdout: 'a', stderr: 'b', stdout_truncated: true }),
  ).toEqual({ kind: 'command', exitCode: 0, stdout: output('a', true), stderr: output('b'), rest: {} })
})

test('an action in Python, with what it has returned', () => {
  expect(readResult({ exit_code: 0, result: { a: 1 }, stdout: '', stderr: '' })).toEqual({
    kind: 'command',
    exitCode: 0,
    stdout: output(''),
    stderr: output(''),
    rest: { result: { a: 1 } },
  })
})

test('output that was read as JSON is text again', () => {
  const result = readResult({ stdout: { a: 1 }, stderr: null, return_code: 0 })
  expect(result).toMatchObject({ stdout: output('{\n  "a": 1\n}'), stderr: output('') })
})

test('hosts', () => {
  const host = { stdout: 'x', stderr: '', return_code: 0 }
  expect(readResult({ web1: host, web2: { ...host, error: 'e' } })).toMatchObject({
    kind: 'hosts',
    hosts: [{ name: 'web1' }, { name: 'web2', result: { rest: { error: 'e' } } }],
  })
  expect(readResult({ web1: host, note: 'x' })).toMatchObject({ kind: 'other' })
})

test.each([undefined, null, 1, 'text', [], {}, { stdout: 'only' }, [{ stdout: '', stderr: '' }]])('%j', (value) => {
  expect(readResult(value)).toEqual({ kind: 'other', value })
})
