import { expect, it } from 'vitest'
import type { ParameterSchema } from '../lib/schema/index.ts'
import { scriptArguments } from './script-arguments.ts'

function argumentsOf(
  actionParameters: Record<string, unknown>,
  parameterSchemas: Record<string, ParameterSchema> = {},
  runnerParameters: Record<string, unknown> = {},
) {
  return scriptArguments({
    runnerParameters,
    actionParameters,
    parameterSchemas,
    containsSecret: (text) => text.includes('hidden'),
  })
}

it.each<[unknown, string[]]>([
  ['text', ['--name=text']],
  [`it's "$HOME" \n`, [`--name=it's "$HOME" \n`]],
  [7, ['--name=7']],
  [0, ['--name=0']],
  [1.5, ['--name=1.5']],
  [true, ['--name']],
  [false, []],
  [null, []],
  [undefined, []],
  ['', []],
  [[1, 'a', null], ['--name=[1,"a",null]']],
  [{ a: ['b'] }, ['--name={"a":["b"]}']],
  [[], ['--name=[]']],
])('gives %j by name as %j', (value, expected) => {
  expect(argumentsOf({ name: value })).toEqual({ arguments: expected, environment: {}, isSecret: false })
})

it.each<[unknown, string]>([
  ['text', 'text'],
  ['-x', '-x'],
  [7, '7'],
  [0, '0'],
  [1.5, '1.5'],
  [true, '1'],
  [false, '0'],
  [null, ''],
  [undefined, ''],
  ['', ''],
  [[1, 'a', true, { b: 1 }], '1,a,true,{"b":1}'],
  [[], ''],
  [{ a: ['b'] }, '{"a":["b"]}'],
])('gives %j by position as %j', (value, expected) => {
  expect(argumentsOf({ name: value }, { name: { position: 0 } }).arguments).toEqual([expected])
})

it('puts named ones first, then those with a position in its order', () => {
  const values = { third: 3, b: 'b', first: null, a: 'a', second: 2 }
  const schemas = { third: { position: 20 }, first: { position: 0 }, second: { position: 3 }, a: {}, b: {} }
  expect(argumentsOf(values, schemas).arguments).toEqual(['--b=b', '--a=a', '', '2', '3'])
})

it.each([
  ['-', '-name=x'],
  ['', 'name=x'],
  [null, '--name=x'],
])('puts %j in front of names', (operator, expected) => {
  expect(argumentsOf({ name: 'x' }, {}, { kwarg_op: operator }).arguments).toEqual([expected])
})

const secrets = {
  user: { type: 'string' },
  password: { type: 'string', secret: true },
  login: { type: 'object', properties: { key: { type: 'string', secret: true } } },
  pin: { type: 'integer', secret: true, position: 0 },
  last: { type: 'string', position: 1 },
} as const satisfies Record<string, ParameterSchema>
const values = { user: 'me', password: 'a b', login: { key: 'k' }, pin: 12, last: 'end' }
const environment = {
  SVC_ACTION_PARAM_password: 'a b',
  SVC_ACTION_PARAM_login: '{"key":"k"}',
  SVC_ACTION_PARAM_pin: '12',
}

it('gives secrets as arguments, as scripts expect, and in the environment', () => {
  expect(argumentsOf(values, secrets)).toEqual({
    arguments: ['--user=me', '--password=a b', '--login={"key":"k"}', '12', 'end'],
    environment,
    isSecret: true,
  })
})

it('gives secrets in the environment alone when the author says so, and keeps the places of the others', () => {
  expect(argumentsOf(values, secrets, { secret_arguments: false })).toEqual({
    arguments: ['--user=me', '', 'end'],
    environment,
    isSecret: false,
  })
})

it('has no variable for a secret that is not given', () => {
  expect(argumentsOf({ password: null }, secrets)).toEqual({ arguments: [], environment: {}, isSecret: false })
})

it('finds secrets in arguments that are not marked', () => {
  expect(argumentsOf({ a: 'x', b: ['hidden'] }).isSecret).toBe(true)
})
