import { expect, test } from 'vitest'
import { suggestSchema } from './output-schema.ts'

const runner = { output_key: 'result' }

test('every property is required and of the type that it had', () => {
  const result = {
    result: { text: '', count: 2, share: 0.5, is: false, none: null, list: [1, 2], mixed: [1, 'a'], inner: { a: {} } },
    stdout: 'x',
  }
  expect(suggestSchema({ runner, action: { output_schema: {} }, result })).toEqual({
    isChecked: true,
    schema: {
      type: 'object',
      properties: {
        text: { type: 'string', required: true },
        count: { type: 'integer', required: true },
        share: { type: 'number', required: true },
        is: { type: 'boolean', required: true },
        none: { required: true },
        list: { type: 'array', items: { type: 'integer' }, required: true },
        mixed: { type: 'array', required: true },
        inner: { type: 'object', required: true, properties: { a: { type: 'object', required: true } } },
      },
    },
  })
})

test('of a runner that does not tell its output, all of the result', () => {
  expect(suggestSchema({ runner: {}, result: { stdout: 'x' } })).toEqual({
    isChecked: false,
    schema: { type: 'object', properties: { stdout: { type: 'string', required: true } } },
  })
})

test('nothing where there is a schema, or nothing to make one from', () => {
  const action = { output_schema: { type: 'string' } }
  expect(suggestSchema({ runner, action, result: { result: 'a' } })).toBeUndefined()
  expect(suggestSchema({ runner })).toBeUndefined()
  expect(suggestSchema({ runner, result: { error: 'x' } })).toBeUndefined()
})

test('depth has a bound', () => {
  let value: unknown = 1
  for (let depth = 0; depth < 5000; depth += 1) value = depth % 2 === 0 ? [value] : { value }
  expect(JSON.stringify(suggestSchema({ runner, result: { result: value } }))).toMatch(/^.{1,1000}$/)
})
