import { expect, test } from 'vitest'
import { exampleOfSchema } from './schema-example.ts'

test.each([
  [{}, 'example'],
  [null, 'example'],
  [{ type: 'object' }, {}],
  [
    {
      properties: {
        a: { type: 'string' },
        n: { type: ['integer', 'null'] },
        b: { type: 'boolean' },
        z: { type: 'null' },
      },
    },
    { a: 'example', n: 1, b: true, z: null },
  ],
  [{ type: 'array', items: { enum: ['x', 'y'] } }, ['x']],
  [{ type: 'array' }, []],
  [{ type: 'number', default: 5 }, 5],
])('of %j: %j', (schema, example) => {
  expect(exampleOfSchema(schema)).toEqual(example)
})

test('ends, however deep and wide a schema is', () => {
  let schema: object = { type: 'string' }
  for (let n = 0; n < 1000; n += 1) schema = { type: 'object', properties: { a: schema } }
  expect(JSON.stringify(exampleOfSchema(schema)).length).toBeLessThan(100)
  const properties = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`p${n}`, {}]))
  expect(Object.keys(exampleOfSchema({ properties }) as object)).toHaveLength(30)
})
