import { expect, it } from 'vitest'
import { recordRun } from '../../tests/helpers/run-context.ts'
import { decodingJson } from './json-output.ts'
import { createNoop } from './noop.ts'
import { JsonNumber } from '../lib/json/index.ts'

const resultOf = async (result: Record<string, unknown>): Promise<Record<string, unknown>> => {
  const runner = decodingJson({ ...createNoop(), run: () => Promise.resolve({ status: 'succeeded', result }) })
  return (await runner.run(recordRun({}).context)).result
}

it.each<[string, unknown]>([
  ['1', 1],
  ['-1.5e3', new JsonNumber('-1.5e3')],
  ['820982911946154508', new JsonNumber('820982911946154508')],
  ['true', true],
  ['null', null],
  [' {"a": [1, "ü"]} ', { a: [1, 'ü'] }],
  ['"text"', 'text'],
  ['', ''],
  ['hi', 'hi'],
  ['{"a": 1', '{"a": 1'],
  ['1\n2', '1\n2'],
  ['nothing', 'nothing'],
  ['NaN', 'NaN'],
])('decodes %j', async (text, value) => {
  expect(await resultOf({ return_code: 0, stdout: text, stderr: text })).toEqual({
    return_code: 0,
    stdout: value,
    stderr: value,
  })
})

it('decodes what each host has written', async () => {
  const host = { return_code: 0, stdout: '[1]', stderr: '' }
  expect(await resultOf({ one: host, two: host })).toEqual({
    one: { ...host, stdout: [1] },
    two: { ...host, stdout: [1] },
  })
})

it('leaves alone what no run has written, and what is too long', async () => {
  const failure = { error: '1', traceback: '{}' }
  expect(await resultOf(failure)).toEqual(failure)
  const long = JSON.stringify('x'.repeat(1024 * 1024))
  expect((await resultOf({ stdout: long, stderr: '' }))['stdout']).toBe(long)
})
