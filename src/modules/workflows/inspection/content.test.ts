import { expect, test } from 'vitest'
import { inspectAction, type ActionCatalog, type ActionUse } from './content.ts'
import { Hints } from './hints.ts'

const use: ActionUse = {
  actionPlace: { spec_path: 'tasks.a.action', schema_path: '' },
  inputPlace: { spec_path: 'tasks.a.input', schema_path: '' },
  ref: 'demo.run',
  isReference: true,
  input: ['mesage'],
}
const messages = (parameters: ReturnType<ActionCatalog['parametersOf']>, given = use): string[] => {
  const actions: ActionCatalog = { parametersOf: () => parameters, refsOfPack: () => ['demo.ran', 'demo.other'] }
  return [...inspectAction(given, actions, new Hints(true))].map(({ message, hint }) =>
    `${message} ${hint ?? ''}`.trim(),
  )
}

test('the input has the parameters that an action needs, and no others', () => {
  expect(messages({ message: { required: true }, count: { required: true, default: 1 } })).toEqual([
    'Action "demo.run" is missing required input "message".',
    'Action "demo.run" has unexpected input "mesage". Did you mean "message"?',
  ])
})

test('an unknown action has a hint', () => {
  expect(messages(undefined)).toEqual([
    'The action "demo.run" is not registered in the database. Did you mean "demo.ran"?',
  ])
})

test.each([
  ['core.echo message=hi', 'The action "core.echo message=hi" is not registered in the database.'],
  ['core message=hi', 'The action reference "core message=hi" is not formatted correctly.'],
])('a text behind a reference needs quotes: %s', (ref, message) => {
  const advice = 'Put texts behind the reference in quotes, as in message="text".'
  expect(messages(undefined, { ...use, ref, isReference: ref.includes('.') })).toEqual([`${message} ${advice}`])
})

test('the input of an action that the caller may not view is not checked, nor that of an expression', () => {
  expect(messages('hidden')).toEqual([])
  expect(messages({ message: { required: true } }, { ...use, input: undefined })).toEqual([])
})
