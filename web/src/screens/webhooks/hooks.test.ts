import { describe, expect, test } from 'vitest'
import { findHooks, groupHooks, hookOf, pathOfHook, type WebhookTrigger } from './hooks.ts'

const trigger = (id: string, url: string): WebhookTrigger => ({
  id,
  uid: '',
  ref: `core.${id}`,
  name: id,
  pack: 'core',
  type: 'core.svc.webhook',
  description: '',
  parameters: { url },
})

test.each([
  ['sample', 'sample'],
  ['/sample/', 'sample'],
  ['///a//b///', 'a//b'],
  ['a b', 'a b'],
])('the hook of %j is %j', (url, name) => {
  expect(hookOf(url)).toBe(name)
})

test('triggers of one address are one hook, in the order of names', () => {
  const hooks = groupHooks([
    trigger('1', 'sample'),
    trigger('2', 'a/b'),
    trigger('3', '/sample/'),
    trigger('4', 'Sample'),
  ])
  expect(hooks.map(({ name, triggers }) => [name, triggers.map(({ id }) => id)])).toEqual([
    ['Sample', ['4']],
    ['a/b', ['2']],
    ['sample', ['1', '3']],
  ])
  expect(groupHooks([])).toEqual([])
})

test('a search takes words in any order and any case', () => {
  const hooks = groupHooks(['github/push', 'github/release', 'push'].map((url, n) => trigger(String(n), url)))
  const found = (search: string): string[] => findHooks(hooks, search).map(({ name }) => name)
  expect(found(' PUSH git')).toEqual(['github/push'])
  expect(found('  ')).toHaveLength(3)
  expect(found('.*')).toEqual([])
})

describe('the path of a hook', () => {
  test.each([
    ['github/push', 'webhooks/github/push'],
    ['a//b', 'webhooks/a//b'],
    ['ä ?#%"\'', "webhooks/%C3%A4%20%3F%23%25%22'"],
    ['\u0000\n[x]{y}', 'webhooks/%00%0A%5Bx%5D%7By%7D'],
  ])('%j', (name, path) => {
    expect(pathOfHook(name)).toBe(path)
  })
})
