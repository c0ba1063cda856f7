import { describe, expect, test } from 'vitest'
import type { ApiKeyRecord } from '../../api/records.ts'
import {
  curlLine,
  emptyForm,
  emptyScope,
  presets,
  keyFormOf,
  keyProblemsAfter,
  keyProblemsIn,
  readKeyForm,
  resourceHintFor,
  keyStateOf,
  summaryOf,
  type KeyForm,
} from './key-form.ts'

const now = Date.parse('2030-01-01T00:00:00Z')
const record: ApiKeyRecord = {
  id: '0123456789abcdef01234567',
  uid: '********',
  key_hash: '********',
  user: 'ada',
  metadata: { used_by: 'the shop', team: 'web' },
  created_at: '2029-01-01T00:00:00.000000Z',
  enabled: true,
  expires_at: '2031-01-01T00:00:00.000000Z',
  scopes: [{ permission_types: ['action_execute'], resource_uid: 'action:core:local' }],
}
/** Of a key without limits. */
const filled = (changes: Partial<KeyForm>): KeyForm => ({
  ...emptyForm,
  expiry: 'never',
  isLimited: false,
  ...changes,
})

describe('a new key', () => {
  test('is asked for by nothing but what was filled in', () => {
    expect(readKeyForm(filled({}), undefined, now)).toEqual({ request: {} })
    expect(readKeyForm(filled({ usedBy: '  the shop ', owner: ' bob ' }), undefined, now)).toEqual({
      request: { metadata: { used_by: 'the shop' }, user: 'bob' },
    })
  })

  test.each<[name: string, changes: Partial<KeyForm>, expiresAt: string | undefined]>([
    ['never', { expiry: 'never' }, undefined],
    ['in a day', { expiry: '1' }, '2030-01-02T00:00:00.000Z'],
    ['in a year', { expiry: '365' }, '2031-01-01T00:00:00.000Z'],
    ['at a local time', { expiry: 'at', at: '2030-06-01T12:30' }, new Date('2030-06-01T12:30').toISOString()],
  ])('expires %s', (_name, changes, expiresAt) => {
    const reading = readKeyForm(filled(changes), undefined, now)
    expect(reading).toEqual({ request: expiresAt === undefined ? {} : { expires_at: expiresAt } })
  })

  test.each<[name: string, changes: Partial<KeyForm>, problem: object]>([
    ['no time', { expiry: 'at', at: '' }, { at: 'Enter a date and a time.' }],
    ['a time that has passed', { expiry: 'at', at: '2020-01-01T00:00' }, { at: 'Enter a time in the future.' }],
    ['metadata that is no JSON', { more: '{"a":' }, { more: 'Enter JSON.' }],
    ['metadata that is a list', { more: '[1]' }, { more: expect.stringContaining('Enter an object') }],
    ['a scope without permission types', { isLimited: true }, { scope: { 0: 'Choose at least one permission type.' } }],
    ['no scope', { isLimited: true, scopes: [] }, { scopes: 'Add at least one grant.' }],
  ])('%s is refused at its field', (_name, changes, problem) => {
    expect(readKeyForm(filled(changes), undefined, now)).toEqual({ problems: problem })
  })

  test('ends and is limited unless somebody says otherwise', () => {
    expect(readKeyForm(emptyForm, undefined, now)).toEqual({
      problems: { scope: { 0: 'Choose at least one permission type.' } },
    })
    const scopes = [{ permissionTypes: ['execution_view'], typed: '', resourceUid: '' }]
    expect(readKeyForm({ ...emptyForm, scopes }, undefined, now)).toEqual({
      request: { expires_at: '2030-04-01T00:00:00.000Z', scopes: [{ permission_types: ['execution_view'] }] },
    })
  })

  test.each([
    [0, 'Replace <pack>.'],
    [1, 'Replace <name>.'],
  ])('of preset %i needs the name of its resource', (preset, problem) => {
    const scopes = [presets[preset]?.scope ?? emptyScope]
    expect(readKeyForm({ ...emptyForm, scopes }, undefined, now)).toEqual({ problems: { resource: { 0: problem } } })
  })

  test('has further metadata, and the field for what it is for goes first', () => {
    const form = filled({ usedBy: 'shop', more: '{"used_by": "other", "n": 1}' })
    expect(readKeyForm(form, undefined, now)).toEqual({ request: { metadata: { used_by: 'shop', n: 1 } } })
  })

  test('is limited to what was chosen, on a resource or any', () => {
    const scopes = [
      { permissionTypes: ['webhook_send'], typed: '', resourceUid: ' webhook:deploy ' },
      { permissionTypes: ['execution_list'], typed: ' execution_view, execution_list', resourceUid: '' },
    ]
    expect(readKeyForm(filled({ isLimited: true, scopes }), undefined, now)).toEqual({
      request: {
        scopes: [
          { permission_types: ['webhook_send'], resource_uid: 'webhook:deploy' },
          { permission_types: ['execution_list', 'execution_view'] },
        ],
      },
    })
  })
})

describe('a key that is changed', () => {
  const before = keyFormOf(record)

  test('as it is, asks for nothing', () => {
    expect(readKeyForm(before, before, now)).toEqual({ request: {} })
    const { expires_at: _expiry, scopes: _scopes, ...others } = record
    const unlimited = keyFormOf(others)
    expect(readKeyForm(unlimited, unlimited, now)).toEqual({ request: {} })
  })

  test.each<[name: string, changes: Partial<KeyForm>, request: object]>([
    ['another purpose', { usedBy: 'x' }, { metadata: { used_by: 'x', team: 'web' } }],
    ['no purpose', { usedBy: ' ' }, { metadata: { team: 'web' } }],
    ['no metadata', { usedBy: '', more: '' }, { metadata: {} }],
    ['another owner', { owner: 'bob' }, { user: 'bob' }],
    ['no end', { expiry: 'never' }, { expires_at: null }],
    ['another end', { expiry: '7' }, { expires_at: '2030-01-08T00:00:00.000Z' }],
    ['no limit', { isLimited: false }, { scopes: null }],
    [
      'another limit',
      { scopes: [{ permissionTypes: ['pack_view'], typed: '', resourceUid: '' }] },
      { scopes: [{ permission_types: ['pack_view'] }] },
    ],
  ])('%s', (_name, changes, request) => {
    expect(readKeyForm({ ...before, ...changes }, before, now)).toEqual({ request })
  })

  test('has an owner', () => {
    expect(readKeyForm({ ...before, owner: ' ' }, before, now)).toEqual({ problems: { owner: 'Enter the owner.' } })
  })

  test('keeps a purpose that is no text among the further metadata', () => {
    const form = keyFormOf({ ...record, metadata: { used_by: ['a'] } })
    expect([form.usedBy, JSON.parse(form.more)]).toEqual(['', { used_by: ['a'] }])
    expect(readKeyForm({ ...form, expiry: 'never' }, form, now)).toEqual({ request: { expires_at: null } })
  })
})

test('what is wrong with a field is forgotten when that is edited, and no other', () => {
  const problems = { more: 'a', owner: 'b', at: 'c', scopes: 'd', scope: { 0: 'e' }, resource: { 0: 'f' } }
  expect(keyProblemsAfter(problems, { usedBy: 'x' })).toEqual(problems)
  expect(keyProblemsAfter(problems, { more: '{}' })).toEqual({ ...problems, more: undefined })
  expect(keyProblemsAfter(problems, { owner: 'x', at: 'y', scopes: [] })).toEqual({ more: 'a' })
})

test.each([
  [['scopes', '2', 'resource_uid'], { resource: { 2: 'It is wrong.' } }],
  [['scopes', '2', 'permission_types', '0'], { scope: { 2: 'It is wrong.' } }],
  [['scopes'], { scopes: 'It is wrong.' }],
  [['expires_at'], { at: 'It is wrong.' }],
  [['user'], { owner: 'It is wrong.' }],
  [['metadata', 'team'], { more: 'It is wrong.' }],
  [['key_hash'], undefined],
  [[], undefined],
])('what is refused at %j is shown at its field', (path, problems) => {
  expect(keyProblemsIn('It is wrong.', path)).toEqual(problems)
})

test.each([
  [[], 'Empty: any.'],
  [['execution_list'], 'Leave empty: these permissions have no resource.'],
  [['pack_search', 'webhook_send'], 'Such as webhook:deploy. Empty: any.'],
  [['action_alias_view'], 'Such as action_alias:chat:deploy. Empty: any.'],
  [['rule_enforcement_view'], 'Leave empty: users who may view a rule may view its enforcements.'],
])('what to write as the resource for %j', (types, hint) => {
  expect(resourceHintFor(types)).toBe(hint)
})

test('what a key may do fits on a line', () => {
  expect(summaryOf(undefined)).toBe('All permissions of its owner')
  expect(summaryOf([...(record.scopes ?? []), { permission_types: ['a', 'b'] }])).toBe(
    'action_execute on action:core:local; a, b',
  )
})

test.each<[object, string]>([
  [{}, 'enabled'],
  [{ enabled: false }, 'disabled'],
  [{ expires_at: '2030-01-01T00:00:00.000000Z' }, 'expired'],
  [{ enabled: false, expires_at: '2020-01-01T00:00:00.000000Z' }, 'disabled'],
])('%j is %s', (changes, state) => {
  expect(keyStateOf({ ...record, ...changes }, now)).toBe(state)
})

test('the line for a shell leads to the server of the page, whatever is in it', () => {
  expect(curlLine("k'ey", 'https://svc.example/it/?x#/access')).toBe(
    String.raw`curl -H 'Svc-Api-Key: k'\''ey' https://svc.example/it/api/v1/user`,
  )
})
