import { InvalidArgumentError } from 'commander'
import { expect, test } from 'vitest'
import { parseExpiry, parseMetadata, parseScope } from './api-key-options.ts'

test('scopes: permissions, and the resource they are for', () => {
  expect(parseScope('execution_list')).toEqual([{ permission_types: ['execution_list'] }])
  expect(parseScope('webhook_send@webhook:a/b@c')).toEqual([
    { permission_types: ['webhook_send'], resource_uid: 'webhook:a/b@c' },
  ])
  const first = parseScope('action_view, action_execute@action:core:local')
  expect(parseScope('trace_list', first)).toEqual([
    { permission_types: ['action_view', 'action_execute'], resource_uid: 'action:core:local' },
    { permission_types: ['trace_list'] },
  ])
})

test.each([
  '',
  ',',
  'a,',
  'Action_View',
  'a b',
  '@action:core:local',
  'action_view@',
  'action_view@core',
  'action_view@action:',
  'a@B:c',
  '*',
])('the scope %j is refused', (text) => {
  expect(() => parseScope(text)).toThrow(InvalidArgumentError)
})

const now = Date.UTC(2030, 0, 1)

test.each([
  ['45s', '2030-01-01T00:00:45.000000Z'],
  ['45m', '2030-01-01T00:45:00.000000Z'],
  ['12h', '2030-01-01T12:00:00.000000Z'],
  ['30d', '2030-01-31T00:00:00.000000Z'],
  ['8w', '2030-02-26T00:00:00.000000Z'],
  ['2031-02-03', '2031-02-03T00:00:00.000000Z'],
  ['2031-02-03T04:05:06Z', '2031-02-03T04:05:06.000000Z'],
  ['2031-02-03 04:05:06.789+00:00', '2031-02-03T04:05:06.789000Z'],
])('the expiry %s is %s', (text, wire) => {
  expect(parseExpiry(text, now)).toBe(wire)
})

test.each([
  '',
  '0d',
  '-1d',
  '30',
  '30 d',
  '30D',
  '1y',
  'd',
  '1.5h',
  '999999999w',
  '1e3s',
  'tomorrow',
  '2031-02-30',
  '2031-02-03T04:05:06',
  '2031-02-03T04:05:06+02:00',
])('the expiry %j is refused', (text) => {
  expect(() => parseExpiry(text, now)).toThrow(InvalidArgumentError)
})

test('metadata is a JSON object', () => {
  expect(parseMetadata('{"a": {"\\n": [1]}}')).toEqual({ a: { '\n': [1] } })
  for (const text of ['', '{', '[]', '1', 'null', '"a"'])
    expect(() => parseMetadata(text)).toThrow(InvalidArgumentError)
})
