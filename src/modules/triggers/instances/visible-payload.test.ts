import { describe, expect, test } from 'vitest'
import type { Permission } from '../../../core/permissions.ts'
import { WrittenJson } from '../../../lib/json/index.ts'
import { createGrantSet, type Grant } from '../../rbac/resolve.ts'
import { createRights } from '../../rbac/rights.ts'
import { builtinTypes, subjectOf } from '../builtin/types.ts'
import { visiblePayload } from './visible-payload.ts'

type Role = 'admin' | 'observer' | 'none'

function rightsOf(role: Role, grants: readonly Grant[] = [], more: { enabled?: boolean; isolation?: boolean } = {}) {
  return createRights(
    { user: 'bob', isAdmin: false, method: 'token' },
    {
      enabled: true,
      isolation: false,
      ofUser: () => ({ isAdmin: role === 'admin', isObserver: role === 'observer', grants: createGrantSet(grants) }),
      ...more,
    },
  )
}

const execution = {
  execution_id: '67a1f0c2e4b0a1d2c3e4f501',
  status: 'failed',
  start_timestamp: '2026-01-31 12:00:00+00:00',
  action_ref: 'shop.pay',
  runner_ref: 'local-shell-script',
}
const standing = {
  end_timestamp: '2026-01-31 12:00:01+00:00',
  elapsed_seconds: 1,
  attempt: 2,
  will_retry: true,
  trace_id: '67a1f0c2e4b0a1d2c3e4f507',
  web_url: 'https://svc.example.com/#/history/67a1f0c2e4b0a1d2c3e4f501/general',
}
const item = {
  id: '67a1f0c2e4b0a1d2c3e4f502',
  uid: 'key_value_pair:svckv.user:alice:card',
  name: 'card',
  scope: 'svckv.user',
  user: 'alice',
  description: 'of the shop',
  value: 'canary',
  secret: false,
  encrypted: false,
  expire_timestamp: '2030-01-01T00:00:00.000000Z',
}
const shown = ({ id, scope, secret, encrypted, expire_timestamp }: typeof item) => ({
  id,
  scope,
  secret,
  encrypted,
  expire_timestamp,
})
const system = { ...item, scope: 'svckv.system', user: undefined, uid: 'key_value_pair:svckv.system:card' }

interface Case {
  payload: Record<string, unknown>
  reduced: Record<string, unknown>
  /** What the whole payload needs besides `trigger_view`. */
  needs?: { permission: Permission; grant: Grant; named: string }
}

const cases: Record<string, Case> = {
  'core.svc.generic.actiontrigger': {
    payload: {
      ...execution,
      action_name: 'shop.pay',
      parameters: { card: 'canary' },
      result: { stdout: 'canary' },
      ...standing,
      error: 'canary',
      user: 'canary',
      rule: 'canary.canary',
    },
    reduced: { ...execution, action_name: 'shop.pay', ...standing },
    needs: {
      permission: 'execution_view',
      grant: { permission_types: ['action_view'], resource_uid: 'action:shop:pay' },
      named: `"execution_view" on resource "execution:${execution.execution_id}". Grant action_view on "action:shop:pay".`,
    },
  },
  'core.svc.generic.notifytrigger': {
    payload: {
      ...execution,
      end_timestamp: 'x',
      channel: 'chat',
      route: 'chat',
      message: 'canary',
      data: { result: '{"stdout":"canary"}' },
    },
    reduced: { ...execution, end_timestamp: 'x', channel: 'chat', route: 'chat' },
    needs: {
      permission: 'execution_view',
      grant: { permission_types: ['action_execute'], resource_uid: 'pack:shop' },
      named: 'Grant action_view on "action:shop:pay".',
    },
  },
  'core.svc.generic.inquiry': {
    payload: { id: 'x', route: 'canary' },
    reduced: { id: 'x' },
    needs: {
      permission: 'inquiry_view',
      grant: { permission_types: ['inquiry_view'] },
      named: 'permission "inquiry_view".',
    },
  },
  'core.svc.action.file_written': {
    payload: { ref: 'shop.pay', file_path: 'actions/canary.sh', host_info: { hostname: 'canary' } },
    reduced: { ref: 'shop.pay' },
    needs: {
      permission: 'action_view',
      grant: { permission_types: ['action_view'], resource_uid: 'action:shop:pay' },
      named: '"action_view" on resource "action:shop:pay".',
    },
  },
  'core.svc.sensor.process_spawn': {
    payload: { id: 's', timestamp: 1, pid: 7, cmd: 'canary --password' },
    reduced: { id: 's', timestamp: 1 },
  },
  'core.svc.sensor.process_exit': {
    payload: { id: 's', timestamp: 1, exit_code: 3, more: 'canary' },
    reduced: { id: 's', timestamp: 1, exit_code: 3 },
  },
  'core.svc.missed': {
    payload: { rule: { id: 'r', ref: 'shop.close' }, reason: 'failed', late_seconds: 60, more: 'canary' },
    reduced: { rule: { id: 'r', ref: 'shop.close' }, reason: 'failed', late_seconds: 60 },
  },
  ...Object.fromEntries(
    ['create', 'update', 'delete'].map((change): [string, Case] => [
      `core.svc.key_value_pair.${change}`,
      {
        payload: { object: system },
        reduced: { object: shown({ ...item, scope: 'svckv.system' }) },
        needs: {
          permission: 'key_value_pair_view',
          grant: { permission_types: ['key_value_pair_set'], resource_uid: system.uid },
          named: `"key_value_pair_view" on resource "${system.uid}".`,
        },
      },
    ]),
  ),
  'core.svc.key_value_pair.value_change': {
    payload: { old_object: system, new_object: { ...system, value: 'canary 2' } },
    reduced: {
      old_object: shown({ ...item, scope: 'svckv.system' }),
      new_object: shown({ ...item, scope: 'svckv.system' }),
    },
    needs: {
      permission: 'key_value_pair_view',
      grant: { permission_types: ['key_value_pair_view'], resource_uid: system.uid },
      named: `"key_value_pair_view" on resource "${system.uid}".`,
    },
  },
}
const types = Object.keys(cases)
const seenBy = (type: string, rights: ReturnType<typeof rightsOf>, owner?: string) =>
  visiblePayload(rights, {
    trigger_type: type,
    payload: cases[type]?.payload,
    ...(owner === undefined ? {} : { owner }),
  })
const viewOf = (type: string): Grant => ({
  permission_types: ['trigger_view'],
  resource_uid: type.replace('core.', 'trigger:core:'),
})

test('every built-in type is internal, except webhooks and timers', () => {
  const internal = builtinTypes.map(({ name }) => `core.${name}`).filter((ref) => subjectOf(ref) !== undefined)
  expect(internal.toSorted()).toEqual(types.toSorted())
  expect(builtinTypes.map(({ name }) => `core.${name}`).filter((ref) => !internal.includes(ref))).toEqual([
    'core.svc.webhook',
    'core.svc.IntervalTimer',
    'core.svc.DateTimer',
    'core.svc.CronTimer',
  ])
})

describe.each(types)('%s', (type) => {
  const { payload, reduced, needs } = cases[type] ?? { payload: {}, reduced: {} }
  const grants = [viewOf(type), ...(needs === undefined ? [] : [needs.grant])]

  test.each([
    ['an administrator', rightsOf('admin')],
    ['an observer', rightsOf('observer')],
    ['anybody while access control is off', rightsOf('none', [], { enabled: false })],
    ['who has both permissions', rightsOf('none', grants)],
  ])('is whole for %s', (_, rights) => {
    expect(seenBy(type, rights)).toEqual({ payload })
  })

  test.each([
    ['an administrator', rightsOf('admin')],
    ['nobody', rightsOf('none')],
    ['who has both permissions', rightsOf('none', grants)],
    ['who sees the trigger type only', rightsOf('none', [viewOf(type)])],
    ['an isolated user', rightsOf('none', grants, { isolation: true })],
  ])('a long payload that was not read is shown as another one is: %s', (_, rights) => {
    const long = { ...payload, long: 'x'.repeat(70_000) }
    const unread = visiblePayload(rights, { trigger_type: type, payload: WrittenJson.of(JSON.stringify(long)) })
    const read = visiblePayload(rights, { trigger_type: type, payload: long })
    expect(WrittenJson.read(unread.payload)).toEqual(read.payload)
    expect(unread.withheld?.reason).toBe(read.withheld?.reason)
  })

  test('a long payload about a record of another user is reduced as a short one is', () => {
    const needed = needs === undefined ? [] : [needs.permission]
    const everything: Grant[] = [viewOf(type), { permission_types: needed }, { permission_types: ['trigger_view'] }]
    const names = Object.keys(payload).filter((name) => name.endsWith('object'))
    const long = { ...payload, ...Object.fromEntries(names.map((name) => [name, item])), long: 'x'.repeat(70_000) }
    const rights = rightsOf('none', everything)
    const unread = visiblePayload(rights, { trigger_type: type, payload: WrittenJson.of(JSON.stringify(long)) })
    const read = visiblePayload(rights, { trigger_type: type, payload: long })
    expect(WrittenJson.read(unread.payload)).toEqual(read.payload)
    expect(JSON.stringify(unread.payload).includes('canary')).toBe(
      names.length === 0 && JSON.stringify(long).includes('canary'),
    )
  })

  test('is reduced without trigger_view, whatever else is granted', () => {
    const { payload: seen, withheld } = seenBy(type, rightsOf('none', needs === undefined ? [] : [needs.grant]))
    expect(seen).toEqual(reduced)
    expect(JSON.stringify(seen)).not.toContain('canary')
    expect(withheld?.reason).toBe(
      `The payload is reduced to ${Object.keys(reduced).join(', ')}: User "bob" doesn't have required permission "trigger_view" on resource "${type.replace('core.', 'trigger:core:')}".`,
    )
  })

  test.each(needs === undefined ? [] : [needs])('is reduced without $permission', ({ named }) => {
    const { payload: seen, withheld } = seenBy(type, rightsOf('none', [viewOf(type)]))
    expect(seen).toEqual(reduced)
    expect(withheld?.reason).toContain(`User "bob" doesn't have required permission`)
    expect(withheld?.reason.endsWith(named)).toBe(true)
  })

  test('a replay says of what it is one, whoever reads it', () => {
    const __context = { original_id: 'x' }
    const instance = { trigger_type: type, payload: { ...payload, __context } }
    expect(visiblePayload(rightsOf('none'), instance).payload).toEqual({ ...reduced, __context })
  })

  test.each([null, [], 'canary', 5, {}])('a payload that somebody made up is reduced too: %j', (made) => {
    expect(visiblePayload(rightsOf('none'), { trigger_type: type, payload: made })).toMatchObject({
      payload: {},
      withheld: { reason: expect.stringContaining('reduced to nothing') as string },
    })
  })
})

describe('isolation', () => {
  const type = 'core.svc.generic.actiontrigger'
  const grants = [viewOf(type), cases[type]?.needs?.grant ?? { permission_types: [] }]

  test.each([
    ['bob', true],
    ['alice', false],
    [undefined, false],
  ])('an execution of %s: the whole payload is %s', (owner, isWhole) => {
    const { withheld } = seenBy(type, rightsOf('none', grants, { isolation: true }), owner)
    expect(withheld === undefined).toBe(isWhole)
    expect(withheld?.reason.endsWith('due to resource permission isolation.')).toBe(isWhole ? undefined : true)
  })

  test('an administrator sees all', () => {
    expect(seenBy(type, rightsOf('admin', [], { isolation: true }), 'alice').withheld).toBeUndefined()
  })
})

describe('items of a user', () => {
  const type = 'core.svc.key_value_pair.update'
  const rights = rightsOf('none', [viewOf(type), { permission_types: ['key_value_pair_all'], resource_uid: item.uid }])
  const seen = (object: object) => visiblePayload(rights, { trigger_type: type, payload: { object } }).payload

  test('are whole for the user, and for nobody else without a system role', () => {
    expect(seen({ ...item, user: 'bob' })).toEqual({ object: { ...item, user: 'bob' } })
    expect(seen(item)).toEqual({ object: shown(item) })
  })
})

test('both items of a change have to be visible', () => {
  const type = 'core.svc.key_value_pair.value_change'
  const grant: Grant = { permission_types: ['key_value_pair_view'], resource_uid: system.uid }
  const rights = rightsOf('none', [viewOf(type), grant])
  const payload = { old_object: system, new_object: { ...system, name: 'other' } }
  expect(visiblePayload(rights, { trigger_type: type, payload }).withheld?.reason).toContain('svckv.system:other')
})

test('paths lead to kept values, or below them', () => {
  const keeps = (type: string, ...path: (string | number)[]) =>
    visiblePayload(rightsOf('none'), { trigger_type: type, payload: {} }).withheld?.keeps(path)
  const action = 'core.svc.generic.actiontrigger'
  expect([keeps(action, 'status'), keeps(action, 'status', 'x'), keeps(action, '__context', 'original_id')]).toEqual([
    true,
    true,
    true,
  ])
  expect([keeps(action), keeps(action, 'result', 'stdout'), keeps(action, 0), keeps(action, '__proto__')]).toEqual([
    false,
    false,
    false,
    false,
  ])
  const key = 'core.svc.key_value_pair.create'
  expect([keeps(key, 'object', 'id'), keeps(key, 'object'), keeps(key, 'object', 'value')]).toEqual([
    true,
    false,
    false,
  ])
})
