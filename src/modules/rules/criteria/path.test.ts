import { describe, expect, it } from 'vitest'
import { computedMs } from '../../../../tests/helpers/work.ts'
import { Budget, defaultLimits } from '../../../lib/template/limits.ts'
import { compilePath } from './path.ts'

const payload: unknown = JSON.parse(`{
  "body": {
    "name": "web", "items": [{"id": 1, "tag": null}, {"id": 2, "only": "second"}], "empty": [], "none": null, "zero": 0,
    "ünï": 1, "with-dash": 2, "a.b": 3, "a b": 4, "a'b": 5, "a#b": 6, "0": "zero", "deep": {"deep": {"found": true}},
    "get": "data", "value": "data"
  },
  "headers": {"X-Custom": "yes"},
  "__proto__": {"own": 1},
  "text": "abc"
}`)
const items = new Map([
  ['a', '1'],
  ['a.b', '2'],
])
const namespace = (path?: string): object => ({
  get: (name: string) => namespace(path === undefined ? name : `${path}.${name}`),
  ...(path === undefined ? {} : { value: () => items.get(path) ?? '' }),
})

const read = (key: string): unknown =>
  compilePath(key).read(
    { data: { trigger: payload }, system: () => namespace() },
    new Budget(defaultLimits, 'the comparison'),
  )

describe('the key of a criterion', () => {
  it.for<[key: string, value: unknown]>([
    ['trigger', payload],
    ['trigger.body.name', 'web'],
    ['$.trigger.body.name', 'web'],
    ['trigger.body.none', null],
    ['trigger.body.zero', 0],
    ['trigger.body.empty', []],
    ["trigger.headers['X-Custom']", 'yes'],
    ['trigger.headers["X-Custom"]', 'yes'],
    ['trigger["headers"].X-Custom', 'yes'],
    ['trigger.body.ünï', 1],
    ['trigger.body.with-dash', 2],
    ["trigger.body['a.b']", 3],
    ["trigger.body['a b']", 4],
    ["trigger.body['a\\'b']", 5],
    ["trigger.body['a#b']", 6],
    ["trigger.body['a#b']#tag", 6],
    ['trigger.body.0', 'zero'],
    ['trigger.body.get', 'data'],
    ['trigger.body.value', 'data'],
    ['trigger.body.items[0].id', 1],
    ['trigger.body.items[-1].id', 2],
    ['trigger.body.items[*].id', 1],
    ['trigger.body.items[*].only', 'second'],
    ['trigger.body.items[*].tag', null],
    ['trigger.body.items[1:].id', 2],
    ['trigger.body.items[0]', { id: 1, tag: null }],
    ['trigger..found', true],
    ['*.text', 'abc'],
    ['trigger.body.name#1', 'web'],
    ["trigger.body.name#any text, [even] 'this", 'web'],
    ["trigger['__proto__'].own", 1],
    ['system.a', '1'],
    ['system.a.b', '2'],
    ["system['a']", '1'],
  ])('%s', ([key, value]) => {
    expect(read(key)).toEqual(value)
  })

  it.for([
    'trigger.missing',
    'trigger.missing.deeper[0].still',
    'trigger.body.name.length',
    'trigger.body.items.length',
    'trigger.body.items.0',
    'trigger.body.items[2].id',
    'trigger.body.items[-3].id',
    'trigger.body.items[*].missing',
    'trigger.body.empty[*]',
    'trigger.text[0]',
    'trigger.body[0]',
    'trigger.body.none.deeper',
    'other.name',
    'body.name',
    'system',
    'system.missing',
    'system.a.missing',
    'item.id',
    'trigger.constructor',
    'trigger.constructor.prototype',
    'trigger.body.__proto__',
    'trigger.body.__proto__.constructor',
    'trigger.body.toString',
    'trigger.body.hasOwnProperty',
    'trigger.body.items.constructor',
    'trigger.body.items.map',
    'trigger.body.items[*].constructor',
    'trigger..constructor',
    '*.constructor',
    '__proto__',
    'constructor',
    'toString',
    'system.constructor',
    'system.__proto__',
  ])('has no value: %s', (key) => {
    expect(read(key)).toBeNull()
  })

  it.for([
    ['', 'the path is empty'],
    ['#tag', 'cannot be understood at character 1'],
    ['$', 'the path is empty'],
    ['trigger.', 'cannot be understood at character 9'],
    ['trigger.a b', 'cannot be understood at character 10'],
    ['trigger.a/b', 'cannot be understood at character 10'],
    ["trigger['a", 'cannot be understood'],
    ['trigger[', 'cannot be understood'],
    ['trigger.a]', 'cannot be understood'],
    [`trigger.${'a'.repeat(5_000)}`, 'longer than 4096 characters'],
  ])('is rejected: %s', ([key = '', why = '']) => {
    expect(() => compilePath(key)).toThrow(why)
  })

  it('is read with bounded work', () => {
    const wide = Array.from({ length: 300_000 }, () => ({}))
    const startedAt = computedMs()
    expect(() =>
      compilePath('trigger[*].a').read(
        { data: { trigger: wide }, system: () => undefined },
        new Budget(defaultLimits, 'the comparison'),
      ),
    ).toThrow(/^(a list of )?the comparison /)
    expect(computedMs() - startedAt).toBeLessThan(2_000)
  })
})
