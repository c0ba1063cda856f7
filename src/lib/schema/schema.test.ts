import { describe, expect, test } from 'vitest'
import {
  checkDraft4,
  checkParameterSchema,
  createSchemaRoom,
  compileParameters,
  compileParametersInGroups,
  compilePattern,
  compileSchema,
  represent,
  unusablePatternIn,
  type JsonSchema,
  type ParameterSchema,
} from './index.ts'
import { readJson } from '../json/index.ts'
const request: JsonSchema = {
  type: 'object',
  required: ['action'],
  additionalProperties: false,
  properties: {
    action: { type: 'string', minLength: 1, pattern: '^\\w+\\.' },
    parameters: { type: 'object', propertyNames: { pattern: '^\\w+$' } },
    delay: { type: ['integer', 'null'], minimum: 0, maximum: 10 },
    status: { enum: ['a', 'b'] },
    tags: { type: 'array', minItems: 2, maxItems: 3, uniqueItems: true, items: { type: 'string', maxLength: 3 } },
    nested: { type: 'object', properties: { list: { type: 'array', items: { type: 'object', required: ['x'] } } } },
    mail: { type: 'string', format: 'email' },
    token: { type: 'string', maxLength: 4, secret: true },
    either: { anyOf: [{ type: 'string' }, { type: 'integer', minimum: 5 }] },
  },
}

describe('messages of request bodies', () => {
  const check = compileSchema(request)
  const fit = { action: 'core.local' }

  test.each([
    [{}, `'action' is a required property`],
    [{ ...fit, x: 1 }, `Additional properties are not allowed ('x' was unexpected)`],
    [{ ...fit, b: 1, a: 2 }, `Additional properties are not allowed ('b', 'a' were unexpected)`],
    [{ action: 1 }, `action: 1 is not of type 'string'`],
    [{ action: null }, `action: None is not of type 'string'`],
    [{ action: true }, `action: True is not of type 'string'`],
    [{ action: ['a', { k: "it's" }] }, `action: ['a', {'k': "it's"}] is not of type 'string'`],
    [{ action: '' }, `action: '' should be non-empty`],
    [{ action: 'local' }, `action: 'local' does not match '^\\w+\\.'`],
    [{ ...fit, parameters: null }, `parameters: None is not of type 'object'`],
    [{ ...fit, parameters: { 'a-b': 1 } }, `parameters: 'a-b' does not match '^\\w+$'`],
    [{ ...fit, delay: '1' }, `delay: '1' is not of type 'integer', 'null'`],
    [{ ...fit, delay: -1 }, `delay: -1 is less than the minimum of 0`],
    [{ ...fit, delay: 11 }, `delay: 11 is greater than the maximum of 10`],
    [{ ...fit, status: 'c' }, `status: 'c' is not one of ['a', 'b']`],
    [{ ...fit, tags: ['a'] }, `tags: ['a'] is too short; at least 2 items are needed`],
    [{ ...fit, tags: ['a', 'a'] }, `tags: ['a', 'a'] has non-unique elements`],
    [{ ...fit, tags: ['a', 'abcd'] }, `tags[1]: 'abcd' is too long; at most 3 characters are allowed`],
    [{ ...fit, nested: { list: [{ x: 1 }, {}] } }, `nested.list[1]: 'x' is a required property`],
    [{ ...fit, mail: 'nobody' }, `mail: 'nobody' is not a 'email'`],
    [{ ...fit, either: 1 }, `either: 1 is not valid under any of the given schemas`],
  ])('%j', (body, message) => {
    expect(check(body)).toBe(message)
  })

  test('a valid body has no message', () => {
    expect(check({ ...fit, parameters: { a: 1 }, delay: null, tags: ['a', 'b'], mail: 'a@b.example' })).toBeUndefined()
  })

  test('secret values are not repeated, at any depth', () => {
    expect(check({ ...fit, token: 'hunter2' })).toBe('token: ******** is too long; at most 4 characters are allowed')
    const deep = compileSchema({
      type: 'object',
      properties: { login: { type: 'object', secret: true, properties: { code: { type: 'integer' } } } },
    })
    expect(deep({ login: { code: 'hunter2' } })).toBe(`login.code: ******** is not of type 'integer'`)
    const above = compileSchema({
      type: 'object',
      properties: { login: { type: 'object', maxProperties: 1, properties: { code: { secret: true } } } },
    })
    expect(above({ login: { code: 'hunter2', a: 1 } })).not.toContain('hunter2')
  })

  test('long values and many names are cut', () => {
    const long = check({ ...fit, delay: 'x'.repeat(1_000_000) })
    expect(long?.length).toBeLessThan(300)
    expect(long).toMatch(/^delay: 'x+… is not of type/)
    const many = check({ ...fit, ...Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i])) })
    expect(many).toMatch(/^Additional properties are not allowed \('k0', .*'k9', … were unexpected\)$/)
  })

  test('names that every object inherits are not properties', () => {
    const closed = compileSchema({
      type: 'object',
      required: ['toString'],
      additionalProperties: false,
      properties: {},
    })
    expect(closed({})).toBe(`'toString' is a required property`)
    expect(check({ ...fit, constructor: 1 })).toContain(`'constructor' was unexpected`)
  })

  test('a keyword that does not exist is refused when the schema is compiled', () => {
    expect(() => compileSchema({ type: 'object', propertys: {} })).toThrow(/propertys/)
  })

  test.each([
    [{ ...fit, nested: { list: [{}] } }, ['nested', 'list', '0']],
    [{ ...fit, x: 1 }, ['x']],
    [{}, []],
  ])('%j: the place is told too', (body, path) => {
    expect(check.find(body)?.path).toEqual(path)
  })

  test('the same schema is compiled once', () => {
    expect(compileSchema(structuredClone(request))).toBe(check)
  })
})

test('objects are compared with those of an enum by what they hold, whatever their keys are called', () => {
  const check = compileParameters({ p: { enum: [{ toString: [1], b: { constructor: 2 } }, { valueOf: 1 }] } })
  expect(check({ p: { b: { constructor: 2 }, toString: [1] } })).toBeUndefined()
  expect(check({ p: { toString: 1 } })).toContain("p: {'toString': 1} is not one of [{'toString': [1]")
  expect(check({ p: { valueOf: 1, a: 2 } })).toContain('is not one of')
})

describe('patterns', () => {
  test('a pattern with catastrophic backtracking elsewhere takes linear time', () => {
    const check = compileSchema({ type: 'string', pattern: '^(a+)+$' })
    expect(check(`${'a'.repeat(50_000)}!`)).toContain('does not match')
  })

  test('a text beyond the step budget does not match, and the message says so', () => {
    const check = compileSchema({ type: 'string', pattern: '^a*$' })
    expect(check('a'.repeat(60_000))).toBeUndefined()
    expect(check('a'.repeat(70_000))).toContain('too long to be matched')
    expect(() => compilePattern(`(${'x'.repeat(40)}){900}`)).toThrow('its repetitions are too large')
    expect(compilePattern('(a{30}){30}').maxChars).toBeLessThan(compilePattern('a').maxChars)
  })

  test.each(['(?=x)', '(a)\\1', 'a{2000}', '('])('%s is told, and no text passes it', (pattern) => {
    const schema: ParameterSchema = { type: 'string', pattern }
    expect(unusablePatternIn({ items: schema })).toEqual({
      path: ['items', 'pattern'],
      message: expect.stringContaining('is invalid or unsupported'),
    })
    expect(checkDraft4(schema)).toContain('is invalid or unsupported')
    expect(() => compileSchema(schema)).toThrow('is invalid or unsupported')
    expect(checkParameterSchema(schema)).toBeUndefined()
    const check = compileParameters({ text: schema, other: {} })
    expect(check({ other: 1 })).toBeUndefined()
    expect(check({ text: 'aa' })).toMatch(/^text: 'aa' cannot be checked: the pattern .* is invalid or unsupported/)
  })

  test('a large list is compared for duplicates in linear time', () => {
    const check = compileSchema({ type: 'array', uniqueItems: true })
    const items: unknown[] = Array.from({ length: 100_000 }, (_, i) => ({ i }))
    expect(check(items)).toBeUndefined()
    expect(check([...items, { i: 5 }])).toContain('non-unique')
    expect(
      check([
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ]),
    ).toContain('non-unique')
    expect(check([1, '1', null, 'null'])).toBeUndefined()
  })
})

describe('parameters', () => {
  const parameters: Record<string, ParameterSchema> = {
    cmd: { type: 'string', required: true, position: 0, minLength: 1 },
    env: { type: 'object' },
    level: { enum: ['a', 'b'], immutable: false },
    password: { type: 'string', secret: true, minLength: 8 },
    old: { type: 'integer', minimum: 0, exclusiveMinimum: true },
    deep: {
      type: 'object',
      additionalProperties: false,
      properties: {
        host: { type: 'string', required: true },
        port: { type: 'integer' },
        key: { type: 'string', secret: true },
      },
    },
    list: { type: 'array', items: { type: 'object', properties: { id: { type: 'integer', required: true } } } },
  }
  const check = compileParameters(parameters)

  test.each([
    [{}, `'cmd' is a required property`],
    [{ cmd: null }, `cmd: None is not of type 'string'`],
    [{ cmd: 'a', x: 1 }, `Additional properties are not allowed ('x' was unexpected)`],
    [{ cmd: 'a', env: 'x' }, `env: 'x' is not of type 'object', 'null'`],
    [{ cmd: 'a', level: 'x' }, `level: 'x' is not one of ['a', 'b']`],
    [{ cmd: 'a', password: 'hunter2' }, `password: ******** is too short; at least 8 characters are needed`],
    [{ cmd: 'a', old: 0 }, `old: 0 is less than or equal to the minimum of 0`],
    [{ cmd: 'a', deep: {} }, `deep: 'host' is a required property`],
    [{ cmd: 'a', deep: { host: 'h', port: 'x' } }, `deep.port: 'x' is not of type 'integer', 'null'`],
    [{ cmd: 'a', deep: { host: 'h', key: 5 } }, `deep.key: ******** is not of type 'string', 'null'`],
    [{ cmd: 'a', list: [{ id: 1 }, {}] }, `list[1]: 'id' is a required property`],
  ])('%j', (value, message) => {
    expect(check(value)).toBe(message)
  })

  test('optional ones may be null, also inside', () => {
    expect(check({ cmd: 'a', env: null, level: null, deep: { host: 'h', port: null }, list: null })).toBeUndefined()
  })
})

describe('the schema of a parameter', () => {
  test.each([
    [{ type: 'string', order: 1 }, `Additional properties are not allowed ('order' was unexpected)`],
    [
      { type: 'text' },
      `type: 'text' is not one of ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']`,
    ],
    [{ type: ['string', 'null'] }, `type: ['string', 'null'] is not one of`],
    [{ required: ['a'] }, `required: ['a'] is not of type 'boolean'`],
    [{ position: -1 }, 'position: -1 is less than the minimum of 0'],
    [{ $ref: '#' }, `Additional properties are not allowed ('$ref' was unexpected)`],
    [{ enum: [] }, 'enum: [] should be non-empty'],
    ['string', `'string' is not of type 'object'`],
    [null, `None is not of type 'object'`],
    [{ enum: Array.from({ length: 3_000 }, (_, i) => i) }, 'more than 2000 values'],
    [nest(40), 'more than 30 deep'],
  ])('%j', (schema, message) => {
    expect(checkParameterSchema(schema)?.message).toContain(message)
  })

  test.each([
    {},
    {
      type: 'string',
      description: 'd',
      default: '{{ a }}',
      required: true,
      secret: true,
      immutable: true,
      position: 3,
    },
    { type: 'object', properties: { a: { required: true, secret: true, type: ['string', 'null'] } } },
    {
      type: 'object',
      required: false,
      patternProperties: { '^\\w+$': { type: 'integer' } },
      additionalProperties: false,
    },
    { type: 'array', items: [{ type: 'string' }], additionalItems: false, uniqueItems: true },
    { anyOf: [{ type: 'string' }, { type: 'object', required: ['a'], properties: { a: {} } }], format: 'colour' },
  ])('%j is fine', (schema) => {
    expect(checkParameterSchema(schema)).toBeUndefined()
  })

  function nest(depth: number): unknown {
    return depth === 0 ? {} : { not: nest(depth - 1) }
  }
})

describe('a schema of draft 4', () => {
  test.each<[object, string]>([
    [{ type: 'strin' }, "type: 'strin' is not one of ['string', 'integer'"],
    [{ type: ['string', 'nul'] }, "type[1]: 'nul' is not one of"],
    [{ properties: { version: 'string' } }, "properties.version: 'string' is not of type 'object'"],
    [{ properties: { a: { properties: { b: { type: 'x' } } } } }, "properties.a.properties.b.type: 'x' is not one of"],
    [{ patternProperties: { '^a': 'string' } }, "'string' is not of type 'object'"],
    [{ items: 'string' }, "items: 'string'"],
    [{ anyOf: [{ type: 'x' }] }, "anyOf[0].type: 'x' is not one of"],
  ])('%j is rejected', (schema, message) => {
    expect(checkDraft4(schema)).toContain(message)
  })

  test.each<[object]>([
    [{}],
    [{ type: 'object', properties: null }],
    [{ properties: { a: { type: ['string', 'null'], required: true, order: 1 } }, additionalProperties: false }],
    [{ items: [{ type: 'string' }, { type: 'array', items: { type: 'number' } }], additionalItems: false }],
  ])('%j is accepted', (schema) => {
    expect(checkDraft4(schema)).toBeUndefined()
  })
})

describe('values in messages', () => {
  test.each([
    ["it's", `"it's"`],
    [`both ' and "`, `'both \\' and "'`],
    ['a\nb\\c\u0000\u200b', `'a\\nb\\\\c\\x00\\u200b'`],
    [[1, 2.5, null, true, undefined], '[1, 2.5, None, True, None]'],
    [{}, '{}'],
  ])('%j', (value, text) => {
    expect(represent(value)).toBe(text)
  })

  test('are cut without walking what is cut', () => {
    let reads = 0
    const items = new Proxy<unknown[]>(
      Array.from({ length: 1_000_000 }, () => 'x'),
      {
        get(target, key, receiver) {
          reads += 1
          return Reflect.get(target, key, receiver) as unknown
        },
      },
    )
    expect(represent(items, 20)).toHaveLength(21)
    expect(reads).toBeLessThan(100)
  })
})

describe('numbers that JavaScript would change', () => {
  const number = (text: string): unknown => readJson(text)
  test.each<[schema: string, value: string, message: string | undefined]>([
    ['{"type":"integer"}', '820982911946154508', undefined],
    ['{"type":"integer"}', '9'.repeat(4300), undefined],
    ['{"type":"number"}', '1.10', undefined],
    ['{"type":"integer"}', '1.10', "p: 1.10 is not of type 'integer', 'null'"],
    ['{"type":"object"}', '1.10', "p: 1.10 is not of type 'object', 'null'"],
    ['{"type":"string"}', '820982911946154508', "p: 820982911946154508 is not of type 'string', 'null'"],
    [
      '{"minimum":9007199254740993}',
      '9007199254740992',
      'p: 9007199254740992 is less than the minimum of 9007199254740993',
    ],
    ['{"minimum":9007199254740993}', '9007199254740993', undefined],
    ['{"minimum":9007199254740993,"exclusiveMinimum":true}', '9007199254740993', 'less than or equal to the minimum'],
    ['{"maximum":9007199254740992}', '9007199254740993', 'greater than the maximum of 9007199254740992'],
    ['{"multipleOf":9007199254740993}', '18014398509481986', undefined],
    ['{"multipleOf":2}', '9007199254740993', 'p: 9007199254740993 is not a multiple of 2'],
    ['{"enum":[9007199254740993]}', '9007199254740992', 'is not one of [9007199254740993]'],
    ['{"enum":[21,{"a":[9007199254740993]}]}', '21.0', undefined],
    ['{"enum":[21,{"a":[9007199254740993]}]}', '{"a":[9007199254740993]}', undefined],
    ['{"enum":[21,{"a":[9007199254740993]}]}', '{"a":[9007199254740992]}', 'is not one of'],
    ['{"uniqueItems":true}', '[9007199254740993,9007199254740992]', undefined],
    ['{"uniqueItems":true}', '[21.0,21]', 'has non-unique elements'],
    ['{"items":{"maximum":9007199254740992}}', '[1,9007199254740993]', 'p[1]: 9007199254740993 is greater than'],
    ['{"maxLength":2.0}', '"abc"', 'at most 2 characters'],
  ])('%s: %s', (schema, value, message) => {
    const parameter = readJson(schema) as ParameterSchema
    expect(checkParameterSchema(parameter)).toBeUndefined()
    const found = compileParameters({ p: parameter })({ p: number(value) })
    expect(found ?? 'it fits').toContain(message ?? 'it fits')
  })

  test.each<[type: string, wrap: (inner: unknown) => unknown]>([
    ['array', (inner) => [1, inner]],
    ['object', (inner) => ({ a: 1, b: inner })],
  ])('a number deep in an %s is looked at once, not twice on each level', (type, wrap) => {
    let looks = 0
    const innermost = {
      get n() {
        looks += 1
        return readJson('21.0')
      },
    }
    let value: unknown = innermost
    for (let depth = 0; depth < 12; depth++) value = wrap(value)
    expect(compileParameters({ p: { type } as ParameterSchema })({ p: value })).toBeUndefined()
    // Of the copy, too.
    expect(looks).toBeLessThanOrEqual(2)
  })
})

describe('schemas that are compiled together share a limit', () => {
  const many = (count: number, make: (index: number) => unknown): ParameterSchema[] =>
    Array.from({ length: count }, (_, index) => make(index) as ParameterSchema)
  const find = (schemas: ParameterSchema[]): string | undefined => {
    const room = createSchemaRoom()
    return schemas.map((schema) => checkParameterSchema(schema, room)?.message).find((message) => message !== undefined)
  }
  const propertiesOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, { type: 'string', minLength: i } as const]))
  const described = {
    title: 't',
    description: 'd',
    default: ['a', 'b', 'c'],
    position: 1,
    required: true,
    secret: true,
  }

  test.each<[string, ParameterSchema[], string | undefined]>([
    ['480 described parameters', many(480, () => ({ type: 'array', ...described })), undefined],
    ['200 parameters with choices', many(200, () => ({ type: 'integer', enum: [1, 2, 3, 4, 5, 6, 7, 8] })), undefined],
    ['300 parameters of 8 values', many(300, () => ({ anyOf: [{}, {}, {}, {}, {}, {}] })), 'more than 2000 values'],
    ['300 properties of one parameter', many(1, () => ({ properties: propertiesOf(300) })), undefined],
    ['350 properties of one parameter', many(1, () => ({ properties: propertiesOf(350) })), 'more than 1000 values'],
    ['50 patterns', many(50, () => ({ type: 'string', pattern: '^[a-z]{1,63}$' })), undefined],
    ['50 large patterns', many(50, () => ({ pattern: '^[a-z]{1,900}$' })), 'more than 20000 steps together'],
    [
      'names of properties',
      many(1, () => ({
        patternProperties: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`^[a-z]{1,900}${i}$`, {}])),
      })),
      'more than 20000 steps together',
    ],
  ])('%s', (_, schemas, message) => {
    const found = find(schemas)
    expect(found ?? 'none').toContain(message ?? 'none')
  })
})

test.each<[schema: ParameterSchema, good: unknown[], bad: unknown[]]>([
  [{ minLength: 2 }, ['ab', '😀😀', '😀b', 'abc'], ['a', '😀', '']],
  [{ maxLength: 2 }, ['ab', '😀😀', 'a😀', ''], ['abc', '😀😀😀', '😀bc']],
  [{ maxLength: 3, minLength: 3 }, ['\ud83dab', 'a\ude00b', '😀😀😀'], ['\ud83d\ude00ab!']],
  [{ enum: ['1', 1, [1, { a: 'x', b: null }]] }, ['1', 1, [1, { b: null, a: 'x' }]], [true, [1, { a: 'x' }], [], 'x']],
  [
    { enum: [1e21, 0.5] },
    [1e21, readJson('1000000000000000000000'), readJson('0.50'), readJson('1e21')],
    [1e20, '1e21'],
  ],
])('%j', (schema, good, bad) => {
  const check = compileParameters({ p: schema })
  expect(good.map((p) => check({ p }))).toEqual(good.map(() => undefined))
  for (const p of bad) expect(check({ p })).toMatch(/^p: /)
})

test('a list is compared with many choices in one step per item', () => {
  const choices = Array.from({ length: 1900 }, (_, i) => `v${i}`)
  const check = compileParameters({ p: { type: 'array', items: { enum: choices } } })
  const items = Array.from({ length: 300_000 }, () => 'v1899')
  expect(check({ p: items })).toBeUndefined()
  expect(check({ p: [...items, 'other'] })).toMatch(/^p\[300000\]: 'other' is not one of/)
})

describe('parameters that are compiled in groups', () => {
  const parameters = Object.fromEntries(
    Array.from({ length: 480 }, (_, i): [string, ParameterSchema] => [
      `p${i}`,
      { type: i % 2 === 0 ? 'string' : 'integer', enum: [i % 2 === 0 ? 'x' : 1], required: i === 479, secret: i === 7 },
    ]),
  )
  const groups = [...compileParametersInGroups(parameters)]
  const whole = compileParameters(parameters)

  test.each<[name: string, values: Record<string, unknown>]>([
    ['nothing', {}],
    ['what fits', { p0: 'x', p479: 1 }],
    ['an unknown name', { p0: 5, p479: 1, other: 1 }],
    ['an unknown name, and one that is missing', { other: 1 }],
    ['problems in several groups', { p479: 2, p300: 1, p1: 'x', p0: 'x' }],
    ['a secret', { p479: 1, p7: 'canary' }],
    ['null', { p0: null, p479: null }],
    ['an exact number', { p0: 'x', p479: readJson('1.0') }],
  ])('the problem is the same as if they were compiled at once: %s', (_, values) => {
    const problem = groups.map((check) => check(values)).find((found) => found !== undefined)
    expect(problem).toEqual(whole.find(values))
    expect(JSON.stringify(problem ?? '')).not.toContain('canary')
  })

  test('few parameters are one group, hundreds are many', () => {
    expect(groups.length).toBeGreaterThan(5)
    expect([...compileParametersInGroups({ a: { type: 'string' }, b: {} })]).toHaveLength(1)
    expect([...compileParametersInGroups({})]).toHaveLength(1)
  })
})

describe('texts that are matched together', () => {
  const host = { type: 'string', pattern: '^[a-z0-9.-]{1,63}$' } as const
  const check = compileParameters({ a: { type: 'array', items: host } })
  const many = (count: number): { a: string[] } => ({ a: Array.from({ length: count }, () => 'host.example.com') })

  test('5,000 host names fit, a list that takes too many steps is refused', () => {
    expect(check(many(5_000))).toBeUndefined()
    expect(check(many(90_000))).toMatch(/^matching its texts takes more than 20000000 steps/)
    // Each value begins anew.
    expect(check(many(5_000))).toBeUndefined()
  })

  test('whatever the schema says about texts that do not match', () => {
    const unless = compileParameters({ a: { type: 'array', items: { not: host } } })
    const texts = Array.from({ length: 90_000 }, () => '________________')
    expect(unless({ a: texts.slice(0, 5_000) })).toBeUndefined()
    expect(unless({ a: texts })).toMatch(/^matching its texts/)
  })

  test('masks are not limited', () => {
    check(many(90_000))
    const matcher = compilePattern(host.pattern)
    for (let i = 0; i < 20_000; i++) expect(matcher.test('host.example.com')).toBe(true)
  })
})
