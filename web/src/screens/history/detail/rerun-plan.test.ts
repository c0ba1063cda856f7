import { expect, test } from 'vitest'
import type { FormState } from '../../../components/form/form-model.ts'
import { containsMask, planRerun } from './rerun-plan.ts'

const before: FormState = new Map(
  Object.entries({ cmd: 'echo a', token: '********', env: { A: '********', B: '1' }, timeout: 5 }).map(
    ([name, value]) => [name, { as: 'value', value }] as const,
  ),
)
/** As it is after these changes; undefined: taken out. */
function after(changes: Record<string, unknown>): { state: FormState; value: Record<string, unknown> } {
  const state = new Map(before)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) state.delete(name)
    else state.set(name, { as: 'value', value })
  }
  const value = [...state].map(([name, input]) => [name, input.as === 'value' ? input.value : input.text])
  return { state, value: Object.fromEntries(value) as Record<string, unknown> }
}
const plan = (changes: Record<string, unknown>) => {
  const { state, value } = after(changes)
  return planRerun(before, state, { value })
}

test('what nobody has touched stays as it was, and is not sent', () => {
  expect(plan({})).toEqual({
    body: { parameters: {}, keep: ['cmd', 'token', 'env', 'timeout'] },
    isUnchanged: true,
    masked: [],
  })
})

test('what was changed is sent, and what was taken out is neither sent nor kept', () => {
  expect(plan({ cmd: 'echo b', timeout: undefined, cwd: '/' })).toEqual({
    body: { parameters: { cmd: 'echo b', cwd: '/' }, keep: ['token', 'env'] },
    isUnchanged: false,
    masked: [],
  })
  expect(plan({ timeout: undefined })).toMatchObject({ isUnchanged: false })
})

test('a mask is never sent', () => {
  expect(plan({ env: { A: '********', B: '2' } }).masked).toEqual(['env'])
  expect(plan({ token: 'new' })).toMatchObject({ body: { parameters: { token: 'new' } }, masked: [] })
})

test.each([
  ['********', true],
  ['curl -u a:******** x', true],
  [{ a: [{ b: '********' }] }, true],
  [{ '********': 1 }, true],
  ['*******', false],
  [{ a: [1, null, true] }, false],
])('%j holds a mask: %s', (value, expected) => {
  expect(containsMask(value)).toBe(expected)
})
