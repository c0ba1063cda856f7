import { describe, expect, test } from 'vitest'
import { fieldsOf } from '../../components/form/field.ts'
import { readForm, type FieldInput } from '../../components/form/form-model.ts'
import { parseLocation, hrefOf } from '../../router.ts'
import { queryOfState, stateOfQuery } from './run-link.ts'

const fields = fieldsOf({
  cmd: { type: 'string', default: 'date' },
  timeout: { type: 'integer' },
  verbose: { type: 'boolean' },
  level: { enum: ['low', 2] },
  env: { type: 'object' },
  hosts: { type: 'array', items: { type: 'string' } },
  any: {},
  password: { type: 'string', secret: true },
  options: { type: 'object', properties: { token: { type: 'string', secret: true } } },
  fixed: { type: 'string', immutable: true, default: 'x' },
})

const text = (typed: string): FieldInput => ({ as: 'text', text: typed })
const value = (given: unknown): FieldInput => ({ as: 'value', value: given })

describe('a link fills in', () => {
  test.each<[name: string, input: FieldInput]>([
    ['cmd', text('echo "a" & b=c?#%')],
    ['cmd', text('two\nlines ä😀')],
    ['cmd', value('')],
    ['timeout', text('60')],
    ['timeout', text('{{ t }}')],
    ['timeout', text('no number')],
    ['verbose', value(true)],
    ['verbose', value(false)],
    ['level', value(2)],
    ['env', text('{"A": "b"}')],
    ['env', value({ A: 1 })],
    ['env', text('{"unfinished')],
    ['hosts', { as: 'lines', text: 'a\nb' }],
    ['hosts', value([])],
    ['any', value('5')],
    ['any', text('5')],
  ])('%s as %j', (name, input) => {
    const before = new Map([[name, input]])
    const { query, omitted } = queryOfState(fields, before)
    expect(omitted).toEqual([])
    const { state } = stateOfQuery(fields, parseLocation(hrefOf(['actions', 'a.b'], query)).query)
    expect(state.has(name)).toBe(true)
    expect(readForm(fields, state)).toEqual(readForm(fields, before))
  })

  test('what people write by hand', () => {
    const { state } = stateOfQuery(fields, new URLSearchParams('cmd=date&verbose=true&hosts=web1&trace-tag=x'))
    expect(readForm(fields, state).value).toEqual({ cmd: 'date', verbose: true, hosts: ['web1'] })
  })
})

describe('a link has no', () => {
  test('secrets, also those inside of others', () => {
    const state = new Map([
      ['password', text('hidden')],
      ['options', text('{"token": "hidden"}')],
    ])
    expect(queryOfState(fields, state)).toEqual({ query: {}, omitted: ['password', 'options'] })
    const taken = stateOfQuery(fields, new URLSearchParams('password=hidden&options=%7B%7D'))
    expect(taken).toEqual({ state: new Map(), refused: ['password', 'options'] })
  })

  test('values that would make it too long', () => {
    const { query, omitted } = queryOfState(
      fields,
      new Map([
        ['cmd', text('x'.repeat(5000))],
        ['timeout', text('5')],
      ]),
    )
    expect(query).toEqual({ timeout: '5' })
    expect(omitted).toEqual(['cmd'])
  })

  test('fixed parameters', () => {
    expect(stateOfQuery(fields, new URLSearchParams('fixed=y')).state.size).toBe(0)
  })
})
