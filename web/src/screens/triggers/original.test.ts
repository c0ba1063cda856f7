import { expect, test } from 'vitest'
import { originalIdOf } from './original.ts'

test.each<[payload: unknown, id: string | undefined]>([
  [{ __context: { original_id: '6b022c7830723a911df30e41' }, body: {} }, '6b022c7830723a911df30e41'],
  [{ __context: { original_id: '../../access' } }, undefined],
  [{ __context: { original_id: 5 } }, undefined],
  [{ __context: null }, undefined],
  [{ __context: 'text' }, undefined],
  [{ body: { __context: { original_id: '6b022c7830723a911df30e41' } } }, undefined],
  [[], undefined],
  ['text', undefined],
  [null, undefined],
  [undefined, undefined],
])('%j was sent again from %s', (payload, id) => {
  expect(originalIdOf(payload)).toBe(id)
})
