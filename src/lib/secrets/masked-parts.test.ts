import { expect, test } from 'vitest'
import { readJson } from '../json/index.ts'
import { maskedParts } from './masked-parts.ts'
import { createSecretValues } from './secret-values.ts'

const mask = '********'

test.each([
  ['nothing is masked', { a: [1, 'x', null] }, { a: [1, 'x', null] }, []],
  ['a text', mask, 'hunter2', ['hunter2']],
  ['a part of a text', `user:${mask}@host`, 'user:hunter2@host', ['hunter2']],
  ['parts of a text', `${mask} and ${mask}`, 'one and two', ['one', 'two']],
  ['a part that has what stands after it', `a${mask}b`, 'abbb', ['bb']],
  ['masks side by side', `x${mask}${mask}y`, 'xhunter2secrety', ['hunter2secret']],
  ['an empty secret', `x${mask}`, 'x', []],
  ['another text', `x${mask}`, 'y and more', ['y and more']],
  ['no mask at all', 'cut', 'cut short', ['cut short']],
  ['a whole object', { a: mask }, { a: { b: ['c'] } }, ['c']],
  ['a number', [1, mask], [1, 12345], [12345]],
  ['a key', { [`k ${mask}`]: 1, b: mask }, { 'k hunter2': 1, b: 'two' }, ['hunter2', 'two']],
  ['keys that became the same', { [mask]: 1, c: 3 }, { one: 1, two: 2, c: 3 }, ['one', 'two', 1, 2, 3]],
  ['a list that was cut', [mask], ['a', 'b'], ['a', 'b']],
])('%s', (_, masked, value, expected) => {
  expect(maskedParts(masked, value)).toEqual(expected)
})

test('numbers of their own kind that are not masked are none', () => {
  const text = '{"a": 21.0, "b": 12345678901234567890}'
  expect(maskedParts(readJson(text), readJson(text))).toEqual([])
})

test('what it finds masks the value in the same way', () => {
  const value = { text: 'pre hunter2-long post', list: ['hunter2-long', { 'hunter2-long': 'swordfish' }] }
  const masked = createSecretValues(['hunter2-long', 'swordfish'])?.maskValue(value)
  expect(createSecretValues(maskedParts(masked, value))?.maskValue(value)).toEqual(masked)
})
