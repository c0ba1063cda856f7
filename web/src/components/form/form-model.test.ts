import { describe, expect, test } from 'vitest'
import { choiceTitles, defaultTextOf, fieldsOf, parametersOfSchema, type Field } from './field.ts'
import {
  chosenOf,
  linesOf,
  mistakeIn,
  readField,
  readForm,
  startsAsLines,
  formStateOf,
  textOfInput,
  type FieldInput,
} from './form-model.ts'
import type { ParameterSchema } from '../../api/records.ts'
import { JsonNumber } from '../../json.ts'
import { ApiError } from '../../api/transport.ts'
import { refusalBy } from './refusal.tsx'

function field(schema: object): Field {
  const [only] = fieldsOf({ it: schema as ParameterSchema }) // unions of types are of other schemas than those of actions
  if (only === undefined) throw new Error('no field')
  return only
}

const text = (typed: string): FieldInput => ({ as: 'text', text: typed })
const value = (given: unknown): FieldInput => ({ as: 'value', value: given })
const lines = (typed: string): FieldInput => ({ as: 'lines', text: typed })

describe('the order of fields', () => {
  const schemas: Record<string, ParameterSchema> = {
    env: { type: 'object' },
    sudo: { type: 'boolean', immutable: true, default: false },
    second: { type: 'string', position: 1 },
    first: { type: 'string', position: 0 },
    cmd: { type: 'string', required: true },
    timeout: { type: 'integer', required: true, default: 60 },
  }

  test('is: what must be given, by position, as declared, what is fixed', () => {
    const names = fieldsOf(schemas).map(({ name }) => name)
    expect(names).toEqual(['cmd', 'first', 'second', 'env', 'timeout', 'sudo'])
  })

  test('folds what is fixed and what is said to be rarely needed', () => {
    const folded = fieldsOf(schemas, { isFolded: (name) => name === 'env' || name === 'cmd' })
    expect(folded.filter(({ isFolded }) => isFolded).map(({ name }) => name)).toEqual(['env', 'sudo'])
  })

  test('folds the rest of many', () => {
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`p${i}`, { type: 'string' as const }]))
    const fields = fieldsOf({ ...many, late: { type: 'string', required: true } })
    expect(fields[0]?.name).toBe('late')
    expect(fields.filter(({ isFolded }) => !isFolded)).toHaveLength(12)
  })

  test('has a place for values that nobody has declared', () => {
    const fields = fieldsOf({}, { values: { old: 1 } })
    expect(fields).toMatchObject([{ name: 'old', isUnknown: true }])
    expect(readForm(fields, formStateOf({ old: 1 })).problems.get('old')).toContain('Unknown parameter')
  })

  test('takes any name, and nothing that is no schema', () => {
    const fields = fieldsOf(JSON.parse('{"__proto__": {"type": "string"}, "constructor": null, "x": {"type": "what"}}'))
    expect(fields.map(({ name, control }) => [name, control])).toEqual([
      ['__proto__', 'text'],
      ['constructor', 'any'],
      ['x', 'any'],
    ])
    const { value: sent } = readForm(fields, new Map([['__proto__', text('a')]]))
    expect(Object.getOwnPropertyNames(sent)).toEqual(['__proto__'])
  })
})

describe('what is typed is read by the type', () => {
  test.each<[schema: object, typed: string, expected: unknown]>([
    [{ type: 'string' }, 'a', 'a'],
    [{ type: 'string' }, ' 5 ', ' 5 '],
    [{ type: 'string' }, 'null', 'null'],
    [{ type: 'string' }, 'two\nlines', 'two\nlines'],
    [{ type: 'integer' }, ' 10 ', 10],
    [{ type: 'integer' }, '-3', -3],
    [{ type: 'integer' }, '{{ n }}', '{{ n }}'],
    [{ type: 'integer', minimum: 5 }, '{{ n }}', '{{ n }}'],
    [{ type: 'integer' }, '9007199254740991', 9_007_199_254_740_991],
    [{ type: 'number' }, '.5', 0.5],
    [{ type: 'integer' }, '820982911946154508', new JsonNumber('820982911946154508')],
    [{ type: 'number' }, '21.0', new JsonNumber('21.0')],
    [{ type: 'number' }, '1e3', new JsonNumber('1e3')],
    [{ type: 'boolean' }, 'TRUE', true],
    [{ type: 'boolean' }, '{{ b }}', '{{ b }}'],
    [{ enum: ['a', 'b'] }, 'b', 'b'],
    [{ enum: [1, 2] }, '2', 2],
    [{ enum: [1, 2] }, '{{ x }}', '{{ x }}'],
    [{ type: 'object' }, '{"a": "{{ x }}"}', { a: '{{ x }}' }],
    [{ type: 'object' }, '{{ trigger.body }}', '{{ trigger.body }}'],
    [{ type: 'object' }, '{"a": {{ x }}}', '{"a": {{ x }}}'],
    [{ type: 'object' }, '"{{ x }}"', '{{ x }}'],
    [{ type: 'array' }, '[1, "a"]', [1, 'a']],
    [{ type: 'array' }, '[{{ a }}, 2]', '[{{ a }}, 2]'],
    [{}, '5', 5],
    [{}, 'plain', 'plain'],
    [{}, '"5"', '5'],
    [{}, 'null', null],
    [{}, '{"a": ', '{"a": '],
    [{ type: ['string', 'null'] }, 'null', 'null'],
    [{ type: ['integer', 'null'] }, 'null', null],
    [{ type: ['integer', 'null'] }, '7', 7],
    [{ type: ['integer', 'string'] }, '7', 7],
    [{ type: ['integer', 'string'] }, 'true', 'true'],
    [{ type: ['string', 'array'] }, '["a"]', ['a']],
  ])('%j %j', (schema, typed, expected) => {
    expect(readField(field(schema), text(typed))).toEqual({ kind: 'value', value: expected, isMasked: false })
  })

  test.each<[schema: object, typed: string, message: string]>([
    [{ type: 'integer' }, '1.5', 'Enter a whole number, such as 10.'],
    [{ type: 'integer' }, 'ten', 'Enter a whole number, such as 10.'],
    [{ type: 'integer', maximum: 9007199254740991 }, '9007199254740993', 'Enter at most 9007199254740991.'],
    [{ type: 'integer' }, '9'.repeat(4301), 'The number is too long: the limit is 4300 characters.'],
    [{ type: 'number' }, '0x10', 'Enter a number'],
    [{ type: 'number' }, '1e999', 'too large'],
    [{ type: 'integer', minimum: 5 }, '4', 'Enter at least 5.'],
    [{ type: 'integer', maximum: 5, exclusiveMaximum: true }, '5', 'Enter less than 5.'],
    [{ type: 'number', exclusiveMinimum: 5 }, '5', 'Enter more than 5.'],
    [{ type: 'boolean' }, 'yes', 'Enter true or false.'],
    [{ enum: ['a'] }, 'c', 'a value from the list'],
    [{ type: 'string', minLength: 2 }, '😀', 'Enter at least 2 characters.'],
    [{ type: 'string', maxLength: 2 }, 'abc', 'Enter at most 2 characters: this has 3.'],
    [{ type: 'array', minItems: 2 }, '[1]', 'Enter at least 2 items.'],
    [{ type: 'object' }, '[1]', 'Enter a value of type object: this is of type array.'],
    [{ type: 'object' }, '{"a": "{{ x }}",}', 'Line 1, column 16: remove the comma'],
    [{ type: 'array', items: { type: 'string' } }, '{"a": 1}', 'Enter a value of type list of string'],
    [{ type: 'object', required: true }, '  ', 'Enter a value: this parameter is required.'],
    [{ type: 'integer', required: true }, ' ', 'Enter a value: this parameter is required.'],
    [{ type: ['integer', 'null'] }, 'x', 'Enter a whole number'],
    [{ type: ['integer', 'object'] }, 'x', 'needs double quotes'],
  ])('%j %j is wrong', (schema, typed, message) => {
    const reading = readField(field(schema), text(typed))
    expect(reading).toMatchObject({ kind: 'problem', message: expect.stringContaining(message) as string })
  })

  test('a list may be written as lines', () => {
    const list = field({ type: 'array', items: { type: 'string' } })
    expect(readField(list, lines('a\r\n\n b \n'))).toMatchObject({ value: ['a', ' b '] })
    expect(readField(list, lines('{{ hosts }}'))).toMatchObject({ value: '{{ hosts }}' })
    expect(readField(list, lines('{{ a }}\n{{ b }}'))).toMatchObject({ value: ['{{ a }}', '{{ b }}'] })
    expect(readField(list, lines('\n \n'))).toEqual({ kind: 'unset' })
  })
})

describe('nothing is not empty', () => {
  const fields = fieldsOf({ a: { type: 'string', default: 'x' }, b: { type: 'array' }, c: { type: 'string' } })

  test('what is left empty is not sent', () => {
    expect(readForm(fields, new Map([['a', text('')]])).value).toEqual({})
  })

  test('what is emptied on purpose is sent', () => {
    const state = new Map([
      ['a', value('')],
      ['b', value([])],
      ['c', value(null)],
    ])
    expect(readForm(fields, state).value).toEqual({ a: '', b: [], c: null })
  })

  test('what must be given may be an empty text', () => {
    const must = field({ type: 'string', required: true })
    expect(readField(must, undefined)).toEqual({
      kind: 'problem',
      message: 'Enter a value: this parameter is required.',
    })
    expect(readField(must, value(''))).toMatchObject({ value: '' })
    expect(readField(field({ type: 'string', required: true, default: 'x' }), undefined)).toEqual({ kind: 'unset' })
  })

  test('what is fixed is never sent', () => {
    expect(readField(field({ type: 'boolean', immutable: true, default: true }), text('false'))).toEqual({
      kind: 'unset',
    })
    expect(readField(field({ type: 'string', immutable: true, required: true }), undefined)).toEqual({ kind: 'unset' })
  })
})

describe('values that are there', () => {
  test.each<[schema: object, given: unknown, shown: string]>([
    [{ type: 'string' }, 'a', 'a'],
    [{ type: 'integer' }, 7, '7'],
    [{ type: 'integer' }, '{{ n }}', '{{ n }}'],
    [{ type: 'object' }, { a: 1 }, '{\n  "a": 1\n}'],
    [{ type: 'object' }, '{{ o }}', '{{ o }}'],
    [{}, 5, '5'],
    [{}, '5', '"5"'],
    [{}, '', '""'],
    [{}, 'five', 'five'],
    [{}, { a: [1] }, '{"a":[1]}'],
    [{ type: 'string' }, null, ''],
    [{ enum: [1, 2] }, 2, '2'],
    [{ enum: [1, '1', 'true', true] }, '1', '1'],
    [{ enum: [1, '1', true, 'true'] }, 'true', 'true'],
    [{ enum: ['', ' '] }, ' ', ' '],
    [{ type: 'integer' }, '060', '060'],
    [{ type: 'boolean' }, 'True', 'True'],
  ])('%j shows %j as %j, and sends it as it was', (schema, given, shown) => {
    const one = field(schema)
    expect(textOfInput(one, value(given))).toBe(shown)
    expect(readField(one, value(given))).toMatchObject({ kind: 'value', value: given })
  })

  test.each<[schema: object, given: unknown]>([
    [{ type: 'string' }, 'a'],
    [{ type: 'integer' }, 7],
    [{ type: 'object' }, { a: [1, { b: null }] }],
    [{ type: 'object' }, '{{ o }}'],
    [{}, 5],
    [{}, '5'],
    [{}, ''],
    [{}, 'five'],
    [{ enum: ['a', 2, true] }, 2],
  ])('%j: typing the text of %j changes nothing', (schema, given) => {
    const one = field(schema)
    const shown = textOfInput(one, value(given))
    expect(readField(one, text(shown))).toMatchObject({ kind: 'value', value: given })
  })

  test('that do not fit are told', () => {
    expect(readField(field({ type: 'integer' }), value('ten'))).toMatchObject({ kind: 'problem' })
  })

  test('lists become lines only where that changes nothing', () => {
    expect(linesOf(['a', 'b'])).toBe('a\nb')
    for (const list of [[], ['a', ''], ['a\nb'], [1], ['{{ a }}'], 'a', null]) expect(linesOf(list)).toBeUndefined()
    const list = field({ type: 'array', items: { type: 'string' } })
    expect(startsAsLines(list, undefined)).toBe(true)
    expect(startsAsLines(list, value(['a']))).toBe(true)
    expect(startsAsLines(list, value(['']))).toBe(false)
    expect(startsAsLines(field({ type: 'array' }), undefined)).toBe(false)
    expect(field({ type: 'array', items: { type: 'integer' } }).hasLines).toBe(false)
  })
})

describe('secrets', () => {
  const fields = fieldsOf({
    password: { type: 'string', secret: true, default: 'hidden' },
    env: { type: 'object', properties: { token: { type: 'string', secret: true } } },
  })
  const stored = { password: '********', env: { token: '********', port: 1 } }

  test('are never shown by their mask, nor is their default', () => {
    const [password] = fields
    expect(password && textOfInput(password, value('********'))).toBe('')
    expect(password && defaultTextOf(password)).toBe('a secret')
  })

  test('that nobody has changed are sent back masked, or left out', () => {
    expect(readForm(fields, formStateOf(stored))).toMatchObject({ value: stored, masked: ['password', 'env'] })
    const omitted = readForm(fields, formStateOf(stored), { omitsMasks: true })
    expect(omitted).toEqual({ value: {}, masked: ['password', 'env'], problems: new Map() })
  })

  test('of which a part was changed need all of their secrets where masks are left out', () => {
    const state = new Map([['env', text('{"token": "********", "port": 2}')]])
    const { problems, value: sent } = readForm(fields, state, { omitsMasks: true })
    expect(problems.get('env')).toContain('enter the secret itself')
    expect(sent).toEqual({})
    expect(readForm(fields, state).value).toEqual({ env: { token: '********', port: 2 } })
  })
})

describe('the choice that is shown', () => {
  test.each<[schema: object, input: FieldInput, index: number]>([
    [{ enum: [1, '1'] }, value('1'), 1],
    [{ enum: [1, '1'] }, text('1'), 0],
    [{ enum: [null, { a: 1 }] }, value({ a: 1 }), 1],
    [{ type: 'boolean' }, value(false), 1],
    [{ type: 'boolean' }, value('True'), 0],
    [{ type: 'boolean' }, value('{{ b }}'), -1],
    [{ enum: ['a'] }, value('c'), -1],
  ])('of %j with %j is that of index %i', (schema, input, index) => {
    expect(chosenOf(field(schema), input)).toBe(index)
  })

  test('is told from others that look the same', () => {
    const { choices } = field({ enum: [1, '1', 'a', '', null, 'null'] })
    expect(choiceTitles(choices)).toEqual(['1', '"1"', 'a', '(empty string)', 'null', '"null"'])
  })
})

test('what else a value has to be is told in words', () => {
  const { hints, typeTitle } = field({
    type: ['string', 'null'],
    minLength: 1,
    maxLength: 80,
    pattern: '^\\w+$',
    format: 'email',
    madeUp: 1,
  })
  expect(hints).toEqual(['at least 1 character', 'at most 80 characters', 'matches ^\\w+$', 'format email'])
  expect(typeTitle).toBe('string or null')
  expect(field({ type: 'array', items: { type: 'string' }, uniqueItems: true })).toMatchObject({
    typeTitle: 'list of string',
    hints: ['unique items'],
  })
})

test('a schema of an object says which parameters there are', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' }, b: { required: true }, c: 5 }, required: ['a'] }
  expect(parametersOfSchema(schema)).toEqual({ a: { type: 'string', required: true }, b: { required: true } })
  expect(parametersOfSchema({ type: 'object' })).toBeUndefined()
})

test('JSON with templates is no mistake where they may stand', () => {
  for (const fine of ['', '{{ x }}', '{"a": {{ x }}}', '{% if a %}1{% endif %}']) {
    expect(mistakeIn(fine, { allowsTemplates: true })).toBeUndefined()
  }
  expect(mistakeIn('{"a": "{{ x }}",}', { allowsTemplates: true })).toMatchObject({ column: 16 })
  expect(mistakeIn('{{ x }}', { allowsTemplates: false })).toMatchObject({ column: 2 })
})

describe('a refusal of the server', () => {
  const refused = (path: unknown) => new ApiError('It is wrong.', 400, 'BODY_INVALID', { path })
  const fields = ['name', 'context.trace_context']

  test('is about the field that its path names, or that holds it', () => {
    expect(refusalBy(refused(['name']), fields).field).toBe('name')
    expect(refusalBy(refused(['context', 'trace_context', 'trace_tag']), fields).field).toBe('context.trace_context')
  })

  test.each([[undefined], ['name'], [[]], [['context']], [['other']]])('is about no field by the path %j', (path) => {
    expect(refusalBy(refused(path), fields)).toEqual({ text: 'It is wrong.' })
  })

  test('may be no answer at all', () => {
    expect(refusalBy(new Error('Could not reach the server.'), fields)).toEqual({ text: 'Could not reach the server.' })
  })
})
