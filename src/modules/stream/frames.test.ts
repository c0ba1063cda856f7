import { describe, expect, test } from 'vitest'
import type { OutputRecord } from '../executions/types.ts'
import { endFrame, outputFrame, parsePosition, resumableOutputFrame } from './frames.ts'

const record = (data: string, seq = 7): OutputRecord => ({
  id: '65f0a1b2c3d4e5f607182940',
  execution_id: '65f0a1b2c3d4e5f60718293a',
  seq,
  output_type: 'stdout',
  host: null,
  data,
  timestamp: '2030-01-01T00:00:00.000001Z',
})

test('an output event has the fields of the record, without its number', () => {
  expect(outputFrame(record('line 1\n'), 'core.local', 'local-shell-cmd')).toBe(
    'event: svc.execution.output__create\n' +
      'data: {"id":"65f0a1b2c3d4e5f607182940","execution_id":"65f0a1b2c3d4e5f60718293a","action_ref":"core.local",' +
      '"runner_ref":"local-shell-cmd","output_type":"stdout","data":"line 1\\n",' +
      '"timestamp":"2030-01-01T00:00:00.000001Z"}\n\n',
  )
})

test('a resumable one carries its place, and is the same otherwise', () => {
  const one = record('x')
  const expected = `id: 65f0a1b2c3d4e5f60718293a/7\n${outputFrame(one, 'a.b', 'r')}`
  expect(resumableOutputFrame(one, 'a.b', 'r')).toBe(expected)
  expect(resumableOutputFrame(one, 'a.b', 'r')).toBe(expected)
})

test.each(['\n', '\r', '\r\n', '\n\ndata: x\n\n', '\u2028\u2029', '\0', '\ud800', '"\\', '😀'])(
  'the data %j is one line',
  (data) => {
    const lines = outputFrame(record(data), 'a.b', 'r').split(/\r\n|\r|\n/)
    expect(lines).toHaveLength(4)
    expect((JSON.parse(lines[1]?.slice('data: '.length) ?? '') as { data: string }).data).toBe(data)
  },
)

test('the end has a data line without data', () => {
  expect(endFrame).toBe('event: EOF\ndata:\n\n')
})

describe('the place to resume after', () => {
  test('is that of a frame', () => {
    const [, place = ''] = /^id: (.*)$/m.exec(resumableOutputFrame(record('x', 123_456), 'a.b', 'r')) ?? []
    expect(parsePosition(place)).toEqual({ execution_id: '65f0a1b2c3d4e5f60718293a', seq: 123_456 })
  })

  test.each([
    '',
    '7',
    '65f0a1b2c3d4e5f60718293a',
    '65f0a1b2c3d4e5f60718293a/',
    '65f0a1b2c3d4e5f60718293a/-1',
    '65f0a1b2c3d4e5f60718293a/1.5',
    '65f0a1b2c3d4e5f60718293a/1e3',
    '65f0a1b2c3d4e5f60718293a/1234567890123456',
    '65F0A1B2C3D4E5F60718293A/7',
    '65f0a1b2c3d4e5f60718293/7',
    ' 65f0a1b2c3d4e5f60718293a/7',
    '65f0a1b2c3d4e5f60718293a/7\n',
    'last/7',
  ])('is not %j', (text) => {
    expect(parsePosition(text)).toBeUndefined()
  })
})
