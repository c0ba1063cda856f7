import { describe, expect, test } from 'vitest'
import { parsePath, pathsInTemplate, placed } from './path.ts'

describe('a path', () => {
  test.each<[string, (string | number)[] | undefined]>([
    ['trigger.body.name', ['trigger', 'body', 'name']],
    ["trigger.headers['X-Custom']", ['trigger', 'headers', 'X-Custom']],
    ['trigger.headers["it\'s"].x', ['trigger', 'headers', "it's", 'x']],
    [String.raw`trigger['a\'b']`, ['trigger', "a'b"]],
    ['trigger.body.items[0].id', ['trigger', 'body', 'items', 0, 'id']],
    ['trigger.body.items[*].id', ['trigger', 'body', 'items', 0, 'id']],
    ['trigger.body.a#second', ['trigger', 'body', 'a']],
    ["trigger['#']", ['trigger', '#']],
    ['trigger.body.__proto__.x', ['trigger', 'body', '__proto__', 'x']],
    ['trigger..name', undefined],
    ['trigger.body.items[?(@.a == 1)]', undefined],
    ['trigger.body.items[900]', undefined],
    ['trigger.body["open', undefined],
    ['', undefined],
    ['a'.repeat(10).split('').join('.').repeat(5), undefined],
  ])('%j', (text, steps) => {
    expect(parsePath(text)).toEqual(steps)
  })
})

test('templates are looked through for what they read of a trigger', () => {
  expect(
    pathsInTemplate("a {{ trigger.body.id | upper }} {{trigger.body['x'][0]}} {{ other.trigger }} trigger.no"),
  ).toEqual([
    ['trigger', 'body', 'id'],
    ['trigger', 'body', 'x', 0],
  ])
  expect(pathsInTemplate('{{'.repeat(50_000))).toEqual([])
})

describe('a value is put where a path leads', () => {
  test('through objects and lists that are made on the way', () => {
    let body = placed(undefined, ['a', 'b', 1, 'c'], 5)
    body = placed(body, ['a', 'd'], 'x')
    expect(body).toEqual({ a: { b: [null, { c: 5 }], d: 'x' } })
  })

  test('unless something is there or in the way', () => {
    const body = { a: 1, b: [] }
    expect(placed(body, ['a'], 2)).toBeUndefined()
    expect(placed(body, ['a', 'b'], 2)).toBeUndefined()
    expect(placed(body, ['b', 'x'], 2)).toBeUndefined()
    expect(placed(body, [0], 2)).toBeUndefined()
    expect(body).toEqual({ a: 1, b: [] })
  })

  test('also one that would be a prototype', () => {
    const body = placed(placed(undefined, ['__proto__', 'polluted'], 'x'), ['constructor'], 'y')
    expect(JSON.stringify(body)).toBe('{"__proto__":{"polluted":"x"},"constructor":"y"}')
    expect('polluted' in {}).toBe(false)
  })
})
