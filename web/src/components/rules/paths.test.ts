import { describe, expect, it } from 'vitest'
import { mergePaths, pathsOfPayload, pathsOfSchema, templateOf } from './paths.ts'

const pathsOf = (payload: unknown) => pathsOfPayload(payload).map(({ path }) => path)

describe('paths of a payload', () => {
  it('lead to every value, those near to the top first', () => {
    expect(pathsOfPayload({ body: { kind: 'order', items: [{ id: 1 }] }, n: null })).toEqual([
      { path: 'trigger.body', preview: 'object' },
      { path: 'trigger.n', preview: 'null' },
      { path: 'trigger.body.kind', preview: '"order"' },
      { path: 'trigger.body.items', preview: 'list of 1 item' },
      { path: 'trigger.body.items[0]', preview: 'object' },
      { path: 'trigger.body.items[0].id', preview: '1' },
    ])
  })

  it('quote names that are more than letters', () => {
    expect(pathsOf({ headers: { 'X-Custom': '', "it's": '', 'back\\slash': '' } }).slice(1)).toEqual([
      "trigger.headers['X-Custom']",
      String.raw`trigger.headers['it\'s']`,
      String.raw`trigger.headers['back\\slash']`,
    ])
  })

  it('are few whatever comes', () => {
    const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, { a: [1, 2, 3, 4, 5, 6] }]))
    expect(pathsOf(wide).length).toBeLessThanOrEqual(300)
    let deep: unknown = 1
    for (let i = 0; i < 1000; i += 1) deep = { a: deep }
    expect(pathsOf(deep).length).toBeLessThan(20)
    expect(pathsOf({ list: Array(100).fill(0) })).toHaveLength(4)
    expect(pathsOfPayload({ long: 'x'.repeat(1000) })[0]?.preview.length).toBeLessThan(70)
  })

  it('are none where there is nothing to look into', () => {
    for (const payload of [undefined, null, 'text', 3, {}, []]) expect(pathsOf(payload)).toEqual([])
  })
})

describe('paths of a schema', () => {
  it('are those of its properties, with their types', () => {
    const schema = {
      type: 'object',
      properties: { body: { type: ['object', 'array'], properties: { id: { type: 'integer' } } }, odd: true },
    }
    expect(pathsOfSchema(schema)).toEqual([
      { path: 'trigger.body', preview: 'object or array' },
      { path: 'trigger.body.id', preview: 'integer' },
      { path: 'trigger.odd', preview: '' },
    ])
    expect(pathsOfSchema({})).toEqual([])
    expect(pathsOfSchema({ properties: 'no' })).toEqual([])
  })

  it('come behind what was recorded, once', () => {
    const recorded = { path: 'trigger.body', preview: 'object' }
    const declared = { path: 'trigger.body', preview: 'object or array' }
    const other = { path: 'trigger.headers', preview: 'object' }
    expect(mergePaths([recorded], [declared, other])).toEqual([recorded, other])
  })

  it('of the headers of a request come last', () => {
    const paths = mergePaths(pathsOfPayload({ headers: { Host: 'a' }, headers_lower: {}, body: { headers: 1 } }))
    expect(paths.map(({ path }) => path)).toEqual([
      'trigger.body',
      'trigger.body.headers',
      'trigger.headers',
      'trigger.headers_lower',
      'trigger.headers.Host',
    ])
  })
})

it('a path becomes a template', () => {
  expect(templateOf("trigger.headers['X-A']")).toBe("{{ trigger.headers['X-A'] }}")
})
