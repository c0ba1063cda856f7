/** Contract 11, 11.4: what follows from which grants, rule by rule. */
import { describe, expect, it, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import { isAppError } from '../../core/errors.ts'
import type { Rights } from '../../http/route.ts'
import { createGrantSet, type Grant } from './resolve.ts'
import { createRights, type UserRights } from './rights.ts'
import {
  actionResource,
  apiKeyResource,
  executionResource,
  isGlobalPermission,
  isPermission,
  permissionTypes,
  userResource,
  type Permission,
  type Resource,
  type Scope,
} from '../../core/permissions.ts'

const all = (Object.values(permissionTypes) as object[]).flatMap((types) => Object.keys(types)).filter(isPermission)

const echo = actionResource('core.echo')
const noop = actionResource('core.noop')
const deploy = actionResource('web.deploy')
const execution = (user = 'alice', ref = 'core.echo'): Resource =>
  executionResource({ id: 'e1', action_ref: ref, user })
const apiKey = (user: string): Resource => apiKeyResource({ id: 'k1', key_hash: 'abc', user })
const rule = (user = 'alice'): Resource => ({ uid: 'rule:web:r', pack: 'pack:web', owner: user })
const alias: Resource = { uid: 'action_alias:web:a', pack: 'pack:web' }
const sensor: Resource = { uid: 'sensor_type:web:S', pack: 'pack:web' }
const enforcement: Resource = { uid: 'rule_enforcement:x', grantedBy: 'rule:web:r', pack: 'pack:web' }
const inquiry: Resource = { uid: 'inquiry:e1', grantedBy: 'action:web:deploy', pack: 'pack:web' }
const systemItem: Resource = { uid: 'key_value_pair:svckv.system:n' }
const userItem = (user: string): Resource => ({ uid: `key_value_pair:svckv.user:${user}:n`, owner: user })
const packWeb: Resource = { uid: 'pack:web' }

/** `type` or `type@uid` */
function toGrants(texts: readonly string[]): Grant[] {
  return texts.map((text) => {
    const at = text.indexOf('@')
    return at === -1
      ? { permission_types: [text] }
      : { permission_types: [text.slice(0, at)], resource_uid: text.slice(at + 1) }
  })
}

interface Given {
  user?: string
  grants?: readonly string[]
  system?: 'admin' | 'observer'
  scopes?: readonly Scope[]
  isolation?: boolean
  enabled?: boolean
}

const nobody: UserRights = { isAdmin: false, isObserver: false, grants: createGrantSet([]) }

/** `root` is another administrator, everybody else has nothing. */
function rightsOf({ user = 'alice', grants = [], system, scopes, isolation = false, enabled = true }: Given): Rights {
  const own: UserRights = {
    isAdmin: system === 'admin',
    isObserver: system === 'observer',
    grants: createGrantSet(toGrants(grants)),
  }
  return createRights(
    { user, isAdmin: false, method: 'token', ...(scopes === undefined ? {} : { scopes }) },
    { enabled, isolation, ofUser: (name) => (name === user ? own : { ...nobody, isAdmin: name === 'root' }) },
  )
}

const refusalOf = (ask: () => void): string => {
  try {
    ask()
  } catch (error) {
    if (isAppError(error)) return `${error.kind}: ${error.message}`
    throw error
  }
  return 'allowed'
}

type Row = [grants: string[], permission: Permission, resource: Resource | undefined, may: boolean]

const rules: Record<string, Row[]> = {
  '2 the exact type on the resource': [
    [['action_execute@action:core:echo'], 'action_execute', echo, true],
    [['action_execute@action:core:echo'], 'action_execute', noop, false],
    [['action_execute@action:core:echo'], 'action_execute', deploy, false],
    [['action_execute@action:core:echo'], 'action_execute', undefined, false],
    [['action_execute@action:core:echo'], 'action_modify', echo, false],
    [['action_execute@action:core:echo'], 'action_delete', echo, false],
    [['action_execute@action:core:ech'], 'action_execute', echo, false],
    [['action_execute@action:core:echo:more'], 'action_execute', echo, false],
    [['webhook_send@webhook:sample'], 'webhook_send', { uid: 'webhook:sample' }, true],
    [['webhook_send@webhook:sample'], 'webhook_send', { uid: 'webhook:other' }, false],
    [[], 'action_execute', echo, false],
    [['action_list'], 'action_list', undefined, true],
    [['action_list'], 'rule_list', undefined, false],
    [['action_list'], 'action_view', echo, false],
    [['stream_view'], 'stream_view', undefined, true],
    [['pack_install'], 'pack_install', undefined, true],
    [['pack_install'], 'pack_uninstall', undefined, false],
    [['execution_views_filters_list'], 'execution_views_filters_list', undefined, true],
    [['execution_list'], 'execution_views_filters_list', undefined, false],
  ],
  '3 all of the type on the resource': [
    [['action_all@action:core:echo'], 'action_execute', echo, true],
    [['action_all@action:core:echo'], 'action_modify', echo, true],
    [['action_all@action:core:echo'], 'action_delete', echo, true],
    [['action_all@action:core:echo'], 'action_execute', noop, false],
    [['action_all@action:core:echo'], 'action_list', undefined, false],
    [['rule_all@rule:web:r'], 'rule_modify', rule(), true],
    [['rule_all@rule:web:r'], 'action_execute', deploy, false],
    [['api_key_all@api_key:abc'], 'api_key_delete', apiKey('bob'), true],
    [['runner_type_all@runner_type:noop'], 'runner_type_modify', { uid: 'runner_type:noop' }, true],
  ],
  '4 content of a pack': [
    [['action_execute@pack:core'], 'action_execute', echo, true],
    [['action_execute@pack:core'], 'action_execute', noop, true],
    [['action_execute@pack:core'], 'action_execute', deploy, false],
    [['action_all@pack:core'], 'action_modify', echo, true],
    [['rule_modify@pack:web'], 'rule_modify', rule(), true],
    [['rule_modify@pack:core'], 'rule_modify', rule(), false],
    [['action_alias_delete@pack:web'], 'action_alias_delete', alias, true],
    [['sensor_type_modify@pack:web'], 'sensor_type_modify', sensor, true],
    [['sensor_type_modify@pack:web'], 'action_modify', deploy, false],
  ],
  '5 view follows from the others of its type': [
    [['action_view@action:core:echo'], 'action_view', echo, true],
    [['action_create@action:core:echo'], 'action_view', echo, true],
    [['action_modify@action:core:echo'], 'action_view', echo, true],
    [['action_delete@action:core:echo'], 'action_view', echo, true],
    [['action_execute@action:core:echo'], 'action_view', echo, true],
    [['action_all@action:core:echo'], 'action_view', echo, true],
    [['action_execute@pack:core'], 'action_view', echo, true],
    [['action_view@action:core:echo'], 'action_execute', echo, false],
    [['webhook_create@webhook:w'], 'webhook_view', { uid: 'webhook:w' }, true],
    [['webhook_send@webhook:w'], 'webhook_view', { uid: 'webhook:w' }, false],
    [['rule_delete@rule:web:r'], 'rule_view', rule(), true],
    [['timer_all@timer:t'], 'timer_view', { uid: 'timer:t' }, true],
    [['action_list'], 'action_view', echo, false],
    // What is about the whole type opens no single one.
    [['pack_create'], 'pack_view', packWeb, false],
    [['api_key_create'], 'api_key_view', apiKey('bob'), false],
    [['policy_create'], 'policy_view', { uid: 'policy:a:b' }, false],
    [['pack_create@pack:web'], 'pack_view', packWeb, true],
  ],
  '6 executions': [
    [['action_view@action:core:echo'], 'execution_view', execution(), true],
    [['action_all@action:core:echo'], 'execution_view', execution(), true],
    [['action_execute@action:core:echo'], 'execution_view', execution(), true],
    [['action_modify@action:core:echo'], 'execution_view', execution(), false],
    [['action_view@pack:core'], 'execution_view', execution(), true],
    [['action_view@pack:web'], 'execution_view', execution(), false],
    [['action_view@action:core:noop'], 'execution_view', execution(), false],
    [['execution_view@execution:e1'], 'execution_view', execution(), false],
    [['execution_all@execution:e1'], 'execution_stop', execution(), false],
    [['action_execute@action:core:echo'], 'execution_rerun', execution(), true],
    [['action_all@action:core:echo'], 'execution_rerun', execution(), true],
    [['action_view@action:core:echo'], 'execution_rerun', execution(), false],
    [['action_execute@pack:core'], 'execution_stop', execution(), true],
    [['action_all@pack:core'], 'execution_stop', execution(), true],
    [['action_view@pack:core'], 'execution_stop', execution(), false],
    [['execution_list'], 'execution_view', execution(), false],
    // Whose it is opens nothing.
    [[], 'execution_view', execution('alice'), false],
    [[], 'execution_stop', execution('alice'), false],
  ],
  '7 rule enforcements': [
    [['rule_view@rule:web:r'], 'rule_enforcement_view', enforcement, true],
    [['rule_all@rule:web:r'], 'rule_enforcement_view', enforcement, true],
    [['rule_modify@pack:web'], 'rule_enforcement_view', enforcement, true],
    [['rule_view@rule:web:other'], 'rule_enforcement_view', enforcement, false],
    [['rule_list'], 'rule_enforcement_list', undefined, true],
    [['rule_enforcement_list'], 'rule_enforcement_list', undefined, true],
    [['rule_enforcement_list'], 'rule_list', undefined, false],
    [['rule_all@rule:web:r'], 'rule_enforcement_list', undefined, false],
  ],
  '8 inquiries': [
    [['inquiry_respond'], 'inquiry_respond', inquiry, true],
    [['action_execute@action:web:deploy'], 'inquiry_respond', inquiry, true],
    [['action_all@pack:web'], 'inquiry_respond', inquiry, true],
    [['action_view@pack:web'], 'inquiry_respond', inquiry, false],
    [['inquiry_view'], 'inquiry_respond', inquiry, false],
    [['inquiry_view'], 'inquiry_view', inquiry, true],
    [['inquiry_list'], 'inquiry_view', inquiry, false],
  ],
  '9 a pack is not its content': [
    [['pack_all@pack:web'], 'pack_view', packWeb, true],
    [['pack_all@pack:web'], 'pack_modify', packWeb, true],
    [['pack_all@pack:web'], 'action_view', deploy, false],
    [['pack_all@pack:web'], 'rule_view', rule(), false],
    [['action_all@pack:web'], 'pack_view', packWeb, false],
  ],
  '10 key-value pairs': [
    [[], 'key_value_pair_view', userItem('alice'), true],
    [[], 'key_value_pair_set', userItem('alice'), true],
    [[], 'key_value_pair_delete', userItem('alice'), true],
    [[], 'key_value_pair_view', userItem('bob'), false],
    [['key_value_pair_all@key_value_pair:svckv.user:bob:n'], 'key_value_pair_view', userItem('bob'), false],
    [[], 'key_value_pair_view', systemItem, false],
    ...(['view', 'list', 'set', 'delete', 'all'] as const).map((verb): Row => [
      [`key_value_pair_${verb}@${systemItem.uid}`],
      'key_value_pair_view',
      systemItem,
      true,
    ]),
    [['key_value_pair_list'], 'key_value_pair_view', systemItem, false],
    [[`key_value_pair_set@${systemItem.uid}`], 'key_value_pair_set', systemItem, true],
    [[`key_value_pair_all@${systemItem.uid}`], 'key_value_pair_set', systemItem, true],
    [[`key_value_pair_view@${systemItem.uid}`], 'key_value_pair_set', systemItem, false],
    [[`key_value_pair_delete@${systemItem.uid}`], 'key_value_pair_set', systemItem, false],
    [[`key_value_pair_delete@${systemItem.uid}`], 'key_value_pair_delete', systemItem, true],
    [[`key_value_pair_all@${systemItem.uid}`], 'key_value_pair_delete', systemItem, true],
    [[`key_value_pair_set@${systemItem.uid}`], 'key_value_pair_delete', systemItem, false],
    [[`key_value_pair_all@key_value_pair:svckv.system:other`], 'key_value_pair_view', systemItem, false],
  ],
  '12 acting for somebody else': [
    [[], 'user_impersonate', userResource('bob'), false],
    [['user_impersonate@user:bob'], 'user_impersonate', userResource('bob'), true],
    [['user_impersonate@user:bob'], 'user_impersonate', userResource('carol'), false],
    [['user_impersonate'], 'user_impersonate', userResource('bob'), true],
    [['user_impersonate'], 'user_impersonate', userResource('root'), false],
    [['user_impersonate@user:root'], 'user_impersonate', userResource('root'), false],
    [['user_impersonate'], 'user_impersonate', undefined, false],
    [['user_all'], 'user_impersonate', userResource('bob'), false],
  ],
  'own API keys': [
    [[], 'api_key_view', apiKey('alice'), true],
    [[], 'api_key_modify', apiKey('alice'), true],
    [[], 'api_key_delete', apiKey('alice'), true],
    [[], 'api_key_create', undefined, false],
    [['api_key_create'], 'api_key_create', undefined, true],
    [[], 'api_key_view', apiKey('bob'), false],
    [['api_key_view@api_key:abc'], 'api_key_view', apiKey('bob'), true],
    [['api_key_view@api_key:k1'], 'api_key_view', apiKey('bob'), false],
  ],
}

describe.each(Object.entries(rules))('11.4 rule %s', (_name, rows) => {
  it.each(rows)('%j: %s on %j is %s', (grants, permission, resource, may) => {
    const rights = rightsOf({ grants })
    expect(rights.may(permission, resource)).toBe(may)
    const message = `User "alice" doesn't have required permission "${permission}"${resource === undefined ? '' : ` on resource "${resource.uid}"`}`
    expect(refusalOf(() => rights.require(permission, resource))).toBe(may ? 'allowed' : `forbidden: ${message}`)
  })
})

const someResources = [
  undefined,
  echo,
  execution('bob'),
  rule('bob'),
  alias,
  apiKey('bob'),
  systemItem,
  userItem('bob'),
]

describe('11.4 rule 1 system roles', () => {
  it('administrators may do everything to everything', () => {
    const rights = rightsOf({ system: 'admin', isolation: true })
    for (const permission of all) {
      for (const resource of someResources)
        expect([permission, rights.may(permission, resource)]).toEqual([permission, true])
    }
    expect(rights.may('user_impersonate', userResource('root'))).toBe(true)
    expect(refusalOf(() => rights.requireAdministrator())).toBe('allowed')
    expect(rights.onlyOf).toBeUndefined()
  })

  it('observers may do what ends in view, list or search, to everything', () => {
    const rights = rightsOf({ system: 'observer' })
    for (const permission of all) {
      const isLooking = ['view', 'list', 'search'].includes(permission.split('_').at(-1) ?? '')
      for (const resource of someResources) {
        expect([permission, rights.may(permission, resource)]).toEqual([permission, isLooking])
      }
    }
    expect(refusalOf(() => rights.requireAdministrator())).toBe('forbidden: Administrator access required')
    expect(rights.may('key_value_pair_view', userItem('bob'))).toBe(true)
    expect(rights.may('key_value_pair_set', userItem('bob'))).toBe(false)
  })

  it('while access control is off everybody may do everything, isolation or not', () => {
    const rights = rightsOf({ enabled: false, isolation: true })
    for (const permission of all) expect(rights.may(permission, execution('bob'))).toBe(true)
    expect(rights.onlyOf).toBeUndefined()
    expect(refusalOf(() => rights.requireAdministrator())).toBe('allowed')
  })
})

describe('what grants name', () => {
  const scoped = [
    { permission_types: ['trace_view'], resource_uid: 'trace:c' },
    { permission_types: ['trace_all'], resource_uid: 'trace:a' },
  ] as const
  it.each<[string, Given, string[]]>([
    ['nothing', {}, []],
    ['one', { grants: ['trace_view@trace:a'] }, ['trace:a']],
    [
      'several, each once',
      { grants: ['trace_view@trace:a', 'trace_all@trace:b', 'trace_all@trace:a'] },
      ['trace:a', 'trace:b'],
    ],
    [
      'what gives something else',
      { grants: ['trace_list', 'action_view@action:core:echo', 'rule_view@rule:web:r'] },
      [],
    ],
    ['a type that another begins with', { grants: ['trace_view@trace:a', 'trace_view@tracer:b'] }, ['trace:a']],
    ['scopes within grants', { grants: ['trace_view@trace:a', 'trace_view@trace:b'], scopes: scoped }, ['trace:a']],
    ['scopes of who may everything', { system: 'admin', scopes: scoped }, ['trace:c', 'trace:a']],
    ['scopes of who only looks', { system: 'observer', scopes: scoped }, ['trace:c', 'trace:a']],
    ['scopes without access control', { enabled: false, scopes: scoped }, ['trace:c', 'trace:a']],
    [
      'grants within a scope of all',
      { grants: ['trace_view@trace:a'], scopes: [{ permission_types: ['trace_view'] }] },
      ['trace:a'],
    ],
    [
      'grants outside of scopes',
      { grants: ['trace_view@trace:a'], scopes: [{ permission_types: ['action_view'] }] },
      [],
    ],
  ])('%s', (_, given, uids) => {
    expect(rightsOf(given).named('trace_view')).toEqual(uids)
  })
})

describe('11.4 permission isolation', () => {
  const everything = ['action_all@pack:core', 'rule_all@pack:web', 'execution_list', 'rule_list']

  it('hides executions and rules of others, whatever was granted', () => {
    const rights = rightsOf({ grants: everything, isolation: true })
    expect(rights.onlyOf).toBe('alice')
    for (const permission of ['execution_view', 'execution_rerun', 'execution_stop'] as const) {
      expect(rights.may(permission, execution('alice'))).toBe(true)
      expect(rights.may(permission, execution('bob'))).toBe(false)
      expect(refusalOf(() => rights.require(permission, execution('bob')))).toBe(
        'forbidden: User "alice" doesn\'t have access to resource "execution:e1" due to resource permission isolation.',
      )
      // Never for all of them.
      expect(rights.may(permission)).toBe(false)
    }
    for (const permission of ['rule_view', 'rule_modify', 'rule_delete'] as const) {
      expect(rights.may(permission, rule('alice'))).toBe(true)
      expect(rights.may(permission, rule('bob'))).toBe(false)
    }
  })

  it('leaves everything else alone', () => {
    const rights = rightsOf({ grants: everything, isolation: true })
    expect(rights.may('action_execute', echo)).toBe(true)
    expect(rights.may('execution_list')).toBe(true)
    expect(rights.may('rule_create', { uid: 'rule:web:new', pack: 'pack:web' })).toBe(true)
  })

  it('grants nothing of itself', () => {
    const rights = rightsOf({ isolation: true })
    expect(rights.may('execution_view', execution('alice'))).toBe(false)
    expect(refusalOf(() => rights.require('execution_view', execution('alice')))).toMatch(/required permission/)
  })

  it('applies to observers', () => {
    const rights = rightsOf({ system: 'observer', isolation: true })
    expect(rights.may('execution_view', execution('alice'))).toBe(true)
    expect(rights.may('execution_view', execution('bob'))).toBe(false)
    expect(rights.may('execution_view')).toBe(false)
    expect(rights.onlyOf).toBe('alice')
  })
})

describe('scopes of an API key', () => {
  it.each<[scopes: Scope[], grants: string[], permission: Permission, resource: Resource | undefined, may: boolean]>([
    [[{ permission_types: ['action_execute'] }], ['action_execute@pack:core'], 'action_execute', echo, true],
    [[{ permission_types: ['action_execute'] }], ['action_execute@pack:core'], 'action_execute', deploy, false],
    [[{ permission_types: ['action_execute'] }], ['action_execute@pack:core'], 'execution_view', execution(), true],
    [[{ permission_types: ['action_view'] }], ['action_execute@pack:core'], 'action_execute', echo, false],
    [
      [{ permission_types: ['action_execute'], resource_uid: 'action:core:noop' }],
      ['action_execute@pack:core'],
      'action_execute',
      echo,
      false,
    ],
    [[{ permission_types: ['action_list'] }], ['action_list'], 'action_list', undefined, true],
    [[{ permission_types: ['action_list'] }], ['action_list', 'rule_list'], 'rule_list', undefined, false],
    [[], ['action_list'], 'action_list', undefined, false],
    [[{ permission_types: ['api_key_create'] }], [], 'api_key_view', apiKey('alice'), false],
  ])('%j with %j: %s on %j is %s', (scopes, grants, permission, resource, may) => {
    const rights = rightsOf({ grants, scopes })
    expect(rights.may(permission, resource)).toBe(may)
    const on = resource === undefined ? '' : ` on resource "${resource.uid}"`
    const lack = rightsOf({ grants }).may(permission, resource)
      ? 'The scopes of the API key of user "alice" lack permission'
      : `User "alice" doesn't have required permission`
    expect(refusalOf(() => rights.require(permission, resource))).toBe(
      may ? 'allowed' : `forbidden: ${lack} "${permission}"${on}`,
    )
  })

  it('make no administrator, and nobody who acts for one', () => {
    const scopes: Scope[] = [{ permission_types: [...all] }]
    const rights = rightsOf({ system: 'admin', scopes })
    expect(refusalOf(() => rights.requireAdministrator())).toBe('forbidden: Administrator access required')
    expect(rights.may('user_impersonate', userResource('bob'))).toBe(true)
    expect(rights.may('user_impersonate', userResource('root'))).toBe(false)
    expect(rights.may('action_execute', echo)).toBe(true)
  })

  it('limit while access control is off, too', () => {
    const rights = rightsOf({ enabled: false, scopes: [{ permission_types: ['action_list'] }] })
    expect(rights.may('action_list')).toBe(true)
    expect(rights.may('rule_list')).toBe(false)
    expect(refusalOf(() => rights.requireAdministrator())).toBe('forbidden: Administrator access required')
  })
})

const seed = seedOfRun()

test(`more grants never take a right, and scopes never give one (seed ${seed})`, () => {
  const random = createRandom(seed)
  const uids = [
    'action:core:echo',
    'action:core:noop',
    'pack:core',
    'pack:web',
    'rule:web:r',
    'api_key:abc',
    'key_value_pair:svckv.system:n',
    'user:bob',
  ]
  const resources: (Resource | undefined)[] = [
    ...someResources,
    noop,
    deploy,
    execution('alice', 'core.noop'),
    rule(),
    sensor,
    enforcement,
    inquiry,
    apiKey('alice'),
    userItem('alice'),
    packWeb,
    userResource('bob'),
    userResource('root'),
  ]
  const anyPermission = (): Permission => all[random.below(all.length)] ?? 'action_list'
  const anyGrant = (): string => {
    const permission = anyPermission()
    if (isGlobalPermission(permission) && !random.once(4)) return permission
    return `${permission}@${uids[random.below(uids.length)] ?? ''}`
  }
  const mayAll = (rights: Rights): string[] =>
    resources.flatMap((resource, i) =>
      all.filter((permission) => rights.may(permission, resource)).map((p) => `${p} ${i}`),
    )

  for (let round = 0; round < 60; round++) {
    const given: Given = {
      grants: Array.from({ length: random.below(6) }, anyGrant),
      isolation: random.once(2),
      enabled: !random.once(10),
      ...(random.once(5) ? { system: random.pick(['admin', 'observer']) } : {}),
    }
    const before = mayAll(rightsOf(given))
    const after = new Set(mayAll(rightsOf({ ...given, grants: [...(given.grants ?? []), anyGrant()] })))
    expect(before.filter((right) => !after.has(right))).toEqual([])

    const scopes = toGrants(Array.from({ length: random.below(4) }, anyGrant)) as Scope[] // made of permission types
    const scoped = mayAll(rightsOf({ ...given, scopes }))
    const unscoped = new Set(before)
    expect(scoped.filter((right) => !unscoped.has(right))).toEqual([])
    // What is allowed without a resource is allowed on each; a list of key-value pairs is filtered.
    const rights = rightsOf(given)
    const general = all.filter((permission) => rights.may(permission) && permission !== 'key_value_pair_list')
    for (const permission of general) {
      const refused = resources.filter((resource) => !rights.may(permission, resource))
      expect([permission, refused]).toEqual([permission, []])
    }
  }
})
