import { describe, expect, test } from 'vitest'
import type { CriterionDefinition } from '../../api/records.ts'
import { exampleOf, type ExampleRule } from './example.ts'

const now = new Date('2030-01-01T00:00:00Z')
const rule = (
  criteria: Record<string, CriterionDefinition>,
  parameters: Record<string, unknown> = {},
  enabled = true,
): ExampleRule => ({ enabled, criteria, action: { ref: 'core.local', parameters } })

const bodyFor = (type: string, pattern: unknown): unknown => {
  const { body } = exampleOf([rule({ 'trigger.body.v': { type, pattern } })], now)
  return (body as { v?: unknown }).v
}

describe('an example holds what the criteria ask for', () => {
  test.each([
    ['equals', 'order', 'order'],
    ['EQ', 5, 5],
    ['iequals', 'x', 'x'],
    ['startswith', 'refs/', 'refs/'],
    ['contains', 'a', 'a'],
    ['contains', 5, [5]],
    ['gt', 3, 4],
    ['lessthan', 3, 2],
    ['inside', ['b', 'c'], 'b'],
    ['in', 'text', 'text'],
    ['timediff_lt', 60, '2030-01-01T00:00:00.000Z'],
    ['td_gt', 60, '2000-01-01T00:00:00Z'],
    ['matchwildcard', 'v*.?', 'v.x'],
    ['matchwildcard', 'v[0-9]', 'example'],
    ['regex', '^refs/heads/main$', 'refs/heads/main'],
    ['regex', String.raw`^v1\.2$`, 'v1.2'],
    ['regex', 'v1.2', 'example'],
    ['iregex', '^v[0-9]+', 'example'],
    ['exists', true, 'example'],
    ['nequals', 'x', 'example'],
    ['nexists', true, undefined],
    ['equals', '{{ svckv.system.x }}', 'example'],
    ['equals', null, 'example'],
    ['no such operator', 'x', 'example'],
  ])('%s %j: %j', (type, pattern, value) => {
    expect(bodyFor(type, pattern)).toEqual(value)
  })

  test('and what a search looks for in a list', () => {
    const pattern = { 'item.name': { type: 'eq', pattern: 'a' }, 'item.n': { type: 'gt', pattern: 1 }, bad: 5 }
    expect(bodyFor('search', pattern)).toEqual([{ name: 'a', n: 2 }])
    expect(bodyFor('search', 'x')).toEqual(['example'])
  })

  test('of all rules, those that are enabled first, and what their templates read besides', () => {
    const { body } = exampleOf(
      [
        rule({ 'trigger.body.kind': { type: 'eq', pattern: 'off' } }, {}, false),
        rule({ 'trigger.body.kind': { type: 'eq', pattern: 'order' } }, { env: { ID: '{{ trigger.body.id }}' } }),
        rule(
          { 'trigger.body.kind.deep': { type: 'eq', pattern: 'in the way' } },
          { list: ['{{ trigger.body.kind }}'] },
        ),
      ],
      now,
    )
    expect(body).toEqual({ kind: 'order', id: 'example' })
  })

  test('and headers', () => {
    const { headers, body } = exampleOf(
      [
        rule({
          "trigger.headers['X-Source']": { type: 'iequals', pattern: 'Shop' },
          "trigger.headers_lower['x-source']": { type: 'equals', pattern: 'again' },
          "trigger.headers['X-Count']": { type: 'eq', pattern: 5 },
          "trigger.headers['Content-Type']": { type: 'eq', pattern: 'application/json' },
          "trigger.headers['X-Bad']": { type: 'eq', pattern: 'a\r\nX-Injected: 1' },
          "trigger.headers['not a name']": { type: 'eq', pattern: 'x' },
          'trigger.status': { type: 'eq', pattern: 'x' },
          'system.a': { type: 'eq', pattern: 'x' },
        }),
      ],
      now,
    )
    expect(headers).toEqual([
      ['X-Source', 'Shop'],
      ['X-Count', '5'],
    ])
    expect(body).toEqual({ hello: 'world' })
  })

  test('a list where the body is one', () => {
    expect(exampleOf([rule({ 'trigger.body[0].id': { type: 'eq', pattern: 1 } })], now).body).toEqual([{ id: 1 }])
  })

  test('and no more than there is room for', () => {
    const criteria = Object.fromEntries(
      Array.from({ length: 500 }, (_, n) => [`trigger.body.k${n}`, { type: 'eq', pattern: n }]),
    )
    const { body } = exampleOf(
      Array.from({ length: 1000 }, () => rule(criteria)),
      now,
    )
    expect(Object.keys(body as object)).toHaveLength(50)
  })
})
