import { describe, expect, test } from 'vitest'
import { compileSecrets, maskSecrets, secretsIn } from './secrets.ts'
import type { ParameterSchema } from '../schema/index.ts'

const MASK = '********'

type Parameters = Record<string, ParameterSchema>

function mask(parameters: Parameters, values: Record<string, unknown>): Record<string, unknown> {
  return maskSecrets(values, compileSecrets({ properties: parameters }))
}

test('finds the secret values, and none in an empty value', () => {
  const parameters: Parameters = { a: { secret: true }, b: { type: 'object', properties: { c: { secret: true } } } }
  const secrets = compileSecrets({ properties: parameters })
  expect(secretsIn({ a: 'x', b: { c: 7, d: 'y' }, e: 'z' }, secrets)).toEqual(['x', 7])
  expect(secretsIn({ a: null, b: {} }, secrets)).toEqual([])
  expect(secretsIn({ a: 'x' }, undefined)).toEqual([])
})

describe('masking', () => {
  test.each<[string, Parameters, Record<string, unknown>, Record<string, unknown>]>([
    ['whatever the type', { a: { secret: true }, b: {} }, { a: 5, b: 5 }, { a: MASK, b: 5 }],
    ['null too', { a: { secret: true } }, { a: null }, { a: MASK }],
    ['a container whole', { a: { type: 'object', secret: true } }, { a: { x: 1 } }, { a: MASK }],
    [
      'properties inside',
      { a: { type: 'object', properties: { key: { secret: true }, host: {} } } },
      { a: { key: 'k', host: 'h', other: 1 } },
      { a: { key: MASK, host: 'h', other: 1 } },
    ],
    [
      'items of a list',
      { a: { type: 'array', items: { type: 'object', properties: { key: { secret: true } } } } },
      { a: [{ key: 'k', n: 1 }, { n: 2 }] },
      { a: [{ key: MASK, n: 1 }, { n: 2 }] },
    ],
    ['every item', { a: { type: 'array', items: { secret: true } } }, { a: ['x', 'y'] }, { a: [MASK, MASK] }],
    [
      'property names by pattern',
      { a: { type: 'object', patternProperties: { '^secret_': { secret: true } } } },
      { a: { secret_x: 1, plain: 2 } },
      { a: { secret_x: MASK, plain: 2 } },
    ],
    [
      'names by pattern beside declared ones',
      { a: { type: 'object', properties: { x: {} }, patternProperties: { x: { secret: true } } } },
      { a: { x: 1 } },
      { a: { x: MASK } },
    ],
    [
      'undeclared properties',
      { a: { type: 'object', properties: { x: {} }, additionalProperties: { secret: true } } },
      { a: { x: 1, y: 2 } },
      { a: { x: 1, y: MASK } },
    ],
    [
      'several levels',
      { a: { properties: { b: { items: { properties: { c: { secret: true } } } } } } },
      { a: { b: [{ c: 1, d: 2 }] } },
      { a: { b: [{ c: MASK, d: 2 }] } },
    ],
    ['choices', { a: { anyOf: [{ properties: { key: { secret: true } } }] } }, { a: { key: 1 } }, { a: { key: MASK } }],
    [
      'text that stands for a container',
      { a: { type: 'object', properties: { key: { secret: true } } } },
      { a: '{"key": "k"}' },
      { a: MASK },
    ],
    ['names every object inherits', { a: { secret: true } }, { constructor: 1 }, { constructor: 1 }],
  ])('%s', (_, parameters, values, masked) => {
    const before = structuredClone(values)
    expect(mask(parameters, values)).toEqual(masked)
    expect(values).toEqual(before)
  })

  test('costs nothing without secrets', () => {
    const values = { a: { b: 1 } }
    expect(
      compileSecrets({ properties: { a: { type: 'object', properties: { b: {} } }, c: { secret: false } } }),
    ).toBeUndefined()
    expect(mask({ a: {} }, values)).toBe(values)
  })
})
