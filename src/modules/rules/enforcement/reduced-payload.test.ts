/** Rules on internal trigger types: what their authors may not view stays out of criteria, parameters and answers. */
import { afterEach, describe, expect, test } from 'vitest'
import { startRules, type RulesOptions, type RulesWorld } from '../../../../tests/helpers/rules.ts'
import type { TestUser } from '../../../../tests/helpers/datastore.ts'
import type { Database } from '../../../db/database.ts'
import { loadConfig } from '../../../config/index.ts'
import { createLog } from '../../../lib/log/index.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { createRbac, type Rbac } from '../../rbac/index.ts'
import type { RulesDeps } from '../index.ts'
import type { Explanation, RuleTestResult, RuleVerdict } from '../types.ts'

const type = 'core.svc.generic.actiontrigger'
const payload = {
  execution_id: '67a1f0c2e4b0a1d2c3e4f501',
  status: 'failed',
  start_timestamp: '2026-01-31 12:00:00+00:00',
  action_name: 'shop.pay',
  action_ref: 'shop.pay',
  runner_ref: 'local-shell-script',
  parameters: { card: 'canary' },
  result: { stderr: 'canary', code: 7 },
}
const { parameters: _p, result: _r, ...reduced } = payload

const author = [
  { permission_types: ['rule_create', 'rule_modify', 'rule_view'], resource_uid: 'pack:test' },
  { permission_types: ['action_execute'], resource_uid: 'action:test:do' },
] as const
const onType = { permission_types: ['trigger_view'], resource_uid: 'trigger:core:svc.generic.actiontrigger' }
const onPay = { permission_types: ['action_view'], resource_uid: 'action:shop:pay' }
const users = {
  /** May view all that there is. */
  alice: { grants: [...author, onType, onPay] },
  /** May bind, but not see the executions. */
  bob: { grants: [...author, onType] },
  /** May not bind. */
  carol: { grants: [...author, onPay] },
  watcher: { role: 'observer' },
} satisfies Record<string, TestUser>

let world: RulesWorld
afterEach(() => world.stop())
async function start(options: RulesOptions = {}): Promise<void> {
  world = await startRules({ users, limitsAuthors: true, ...options })
}

const at = (key: string, operator: string, pattern: unknown) => ({ [key]: { type: operator, pattern } })
/** A rule on it has criteria. */
const ofOthers = { 'trigger.action_ref': { type: 'neq', pattern: 'test.do' } }
const on = (more: object = {}) => ({ trigger: { type }, criteria: ofOthers, ...more })
const passing = (text: string) => ({ action: { ref: 'test.do', parameters: { any: text } } })
const denied = (user: string) =>
  `User "${user}" doesn't have required permission (trigger_view) to use trigger ${type}: its payloads tell about records of all users. The permission is granted on resource "trigger:core:svc.generic.actiontrigger"`

async function parametersAfter(fired: unknown = payload): Promise<unknown[]> {
  const enforcements = await world.fire(fired, type)
  return enforcements.map(({ execution_id: id = '', failure_reason: failure }) =>
    failure === undefined ? world.executions.find(id)?.parameters : failure,
  )
}
const explain = async (id: string, as = 'root'): Promise<Explanation> =>
  (await world.callAs<Explanation>(as, 'GET', `/v1/triggerinstances/${id}/explain`)).body
const verdictOf = async (id: string, as = 'root'): Promise<RuleVerdict | undefined> => (await explain(id, as)).rules[0]

describe('saving a rule', () => {
  const body = (name: string, more: object = {}) => ({
    name,
    pack: 'test',
    enabled: true,
    ...on(),
    action: { ref: 'test.do' },
    ...more,
  })

  test.each([
    type,
    'core.svc.generic.notifytrigger',
    'core.svc.generic.inquiry',
    'core.svc.key_value_pair.value_change',
    'core.svc.action.file_written',
    'core.svc.sensor.process_exit',
  ])('on %s needs trigger_view, by reference and by id of the type', async (ref) => {
    await start()
    for (const given of [ref, world.triggers.findType(ref)?.id]) {
      const answer = await world.callAs('carol', 'POST', '/v1/rules', body('new', { trigger: { type: given } }))
      expect([answer.status, answer.body.code]).toEqual([403, 'PERMISSION_DENIED'])
      expect(answer.body.faultstring).toContain(`(trigger_view) to use trigger ${ref}`)
    }
  })

  test('on a timer or a type of a pack does not', async () => {
    await start()
    const timer = { type: 'core.svc.IntervalTimer', parameters: { unit: 'hours', delta: 1 } }
    for (const trigger of [timer, { type: 'test.event' }]) {
      const name = trigger.type.replaceAll('.', '_')
      expect((await world.callAs('carol', 'POST', '/v1/rules', body(name, { trigger }))).status).toBe(201)
    }
  })

  test('whoever saves it needs the permission: to create, take over, enable, and move a rule there', async () => {
    await start()
    const { id } = await world.make('of_alice', { ...on(), enabled: false }, 'alice')
    const put = (change: object, as = 'carol') => world.callAs(as, 'PUT', `/v1/rules/${id}`, body('of_alice', change))
    for (const change of [{}, { enabled: false }, { description: 'mine' }]) {
      const answer = await put(change)
      expect([answer.status, answer.body.faultstring]).toEqual([403, denied('carol')])
    }
    expect((await put({}, 'bob')).body).toMatchObject({ enabled: true, context: { user: 'bob' } })

    const other = await world.make('of_carol', {}, 'carol')
    const moved = await world.callAs('carol', 'PUT', `/v1/rules/${other.id}`, body('of_carol'))
    expect([moved.status, moved.body.faultstring]).toEqual([403, denied('carol')])
    // Away from the type needs no permission on it.
    expect((await put({ trigger: { type: 'test.event' } })).status).toBe(200)
  })

  test('the scopes of a key limit its user here too', async () => {
    const scopes = [{ permission_types: ['rule_create', 'action_execute'] as const }]
    await start({ users: { ...users, key: { role: 'admin', scopes } } })
    const answer = await world.callAs('key', 'POST', '/v1/rules', body('new'))
    expect([answer.status, answer.body.faultstring]).toEqual([403, denied('key')])
  })

  test('nobody needs it while access control is off', async () => {
    await start({ accessControl: false })
    await world.make('free', on(), 'carol')
    await world.make('text', { ...on(), ...passing('{{ trigger.result.stderr }}') }, 'carol')
    expect(await parametersAfter()).toEqual([{}, { any: 'canary' }])
  })
})

describe('at match time', () => {
  test.each([
    ['root', payload],
    ['alice', payload],
    ['bob', reduced],
  ])('the parameters of a rule of %s', async (user, seen) => {
    await start()
    await world.make('all', { ...on(), ...passing('{{ trigger }}') }, user)
    expect(await parametersAfter()).toEqual([{ any: seen }])
  })

  test('rules of packs and of the system user see everything', async () => {
    await start()
    const definition = { name: 'filed', enabled: true, ...on(), ...passing('{{ trigger.result.code }}') }
    await world.rules.registerRules({
      pack: 'test',
      definitions: [{ metadataFile: 'rules/filed.yaml', definition }],
      metadataFiles: new Set(['rules/filed.yaml']),
    })
    expect(await parametersAfter()).toEqual([{ any: 7 }])
  })

  test.each([
    ['status, which stays', at('trigger.status', 'eq', 'failed'), true],
    ['a part of an id', at('trigger.action_ref', 'startswith', 'shop.'), true],
    ['a result that is equal', at('trigger.result.code', 'eq', 7), false],
    ['a result that is another', at('trigger.result.code', 'neq', 8), false],
    ['the absence of what is there', at('trigger.parameters.card', 'nexists', true), false],
    ['the absence of what is not there', at('trigger.result.nope', 'nexists', true), false],
    ['the absence of any result', at('trigger.result', 'nexists', true), false],
    ['the whole payload', at('trigger', 'exists', true), false],
    ['anything below it', at('trigger.*', 'exists', true), false],
    ['anything far below it', at('trigger..nope', 'nexists', true), false],
    ['another spelling', at(`trigger['result']['code']`, 'neq', 8), false],
  ])('a criterion on %s', async (_, criteria, holds) => {
    await start()
    await world.make('one', { ...on(), criteria }, 'bob')
    expect(await parametersAfter()).toHaveLength(holds ? 1 : 0)
  })

  test('a criterion on what is withheld says so, and does not fill the list of enforcements', async () => {
    await start()
    await world.make('one', { ...on(), criteria: at('trigger.result.code', 'eq', 7) }, 'bob')
    const id = await world.dispatch(payload, type)
    expect(await world.settled(id)).toEqual([])
    const verdict = await verdictOf(id)
    expect(verdict).toMatchObject({
      verdict: 'not_matched',
      criterion: { key: 'trigger.result.code', value: null },
      reduced: expect.stringContaining('Grant action_view on "action:shop:pay".') as string,
    })
    expect(verdict?.reason).toContain('The rule cannot see the value. The payload is reduced to ')
  })

  test('a template that needs what is withheld fails, and the enforcement names the permission', async () => {
    await start()
    await world.make('one', { ...on(), ...passing('{{ trigger.result.stderr }}') }, 'bob')
    const [failure] = await parametersAfter()
    expect(failure).toContain('Grant action_view on "action:shop:pay".')
    expect(failure).not.toContain('canary')
  })

  test('rights count as they are: given, and taken away', async () => {
    const changing: Record<string, TestUser> = { ...users }
    let isGranted = true
    await start({
      users: changing,
      rules: {
        rightsOf: () => ({
          may: (permission) => permission !== 'execution_view' || isGranted,
          require: () => undefined,
          requireAdministrator: () => undefined,
          named: () => [],
          onlyOf: undefined,
        }),
      },
    })
    await world.make('one', { ...on(), ...passing('{{ trigger.result | default("withheld") }}') }, 'alice')
    expect(await parametersAfter()).toEqual([{ any: payload.result }])
    isGranted = false
    expect(await parametersAfter()).toEqual([{ any: 'withheld' }])
    isGranted = true
    expect(await parametersAfter()).toEqual([{ any: payload.result }])
  })

  test('each author sees what is theirs, and the log says once per rule what is missing', async () => {
    await start()
    await world.make('a', { ...on(), ...passing('{{ trigger.result | default("-") }}') }, 'alice')
    await world.make('b', { ...on(), ...passing('{{ trigger.result | default("-") }}') }, 'bob')
    const expected = [{ any: payload.result }, { any: '-' }]
    expect([await parametersAfter(), await parametersAfter()]).toEqual([expected, expected])
    const lines = world
      .log()
      .split('\n')
      .filter((line) => line.includes('sees only a part of its trigger instances'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('Rule "test.b"')
  })

  test('under isolation an author sees the payloads of own executions', async () => {
    await start({ isolation: true })
    await world.make('one', { ...on(), ...passing('{{ trigger.result | default("-") }}') }, 'alice')
    const trigger = world.triggers.find(type)
    if (trigger === undefined) throw new Error('no trigger')
    const seen: unknown[] = []
    for (const owner of ['alice', 'bob', undefined]) {
      const { id } = await world.triggers.dispatch(trigger, payload, undefined, { owner })
      const [enforcement] = await world.settled(id)
      seen.push(world.executions.find(enforcement?.execution_id ?? '')?.parameters)
    }
    expect(seen).toEqual([{ any: payload.result }, { any: '-' }, { any: '-' }])
  })

  test('an event reads no role, whoever the authors are', async () => {
    const texts: string[] = []
    const watched = (database: Database): Database => {
      const noting =
        <Query extends { compile(): { sql: string } }, T>(read: (query: Query) => T) =>
        (query: Query): T => {
          texts.push(query.compile().sql)
          return read(query)
        }
      return {
        ...database,
        build: database.build,
        all: noting(database.all.bind(database)) as Database['all'],
        first: noting(database.first.bind(database)) as Database['first'],
        scan: noting(database.scan.bind(database)) as Database['scan'],
      }
    }
    let rbac: Rbac | undefined
    const rightsOf: RulesDeps['rightsOf'] = (user, scopes) => {
      const { database, bus } = world
      const config = { ...loadConfig({ files: [], env: {}, flags: {}, cwd: '/' }).config.rbac, enable: true }
      const log = createLog({ level: 'DEBUG', format: 'text', stream: new TextSink() })
      rbac ??= createRbac({ database, bus, log, config, basePath: '/', maxPageSize: 1 })
      return rbac.rightsOfUser(user, scopes)
    }
    await start({ around: watched, rules: { rightsOf } })
    for (const user of ['alice', 'bob', 'root']) await world.make(user, { ...on(), ...passing('x') }, user)
    const ofRoles = (): number => texts.splice(0).filter((text) => /role|group/.test(text)).length
    expect(await parametersAfter()).toHaveLength(3)
    expect(ofRoles()).toBeGreaterThan(0)
    for (let round = 0; round < 3; round += 1) expect(await parametersAfter()).toHaveLength(3)
    expect([texts.length > 0, ofRoles()]).toEqual([true, 0])
  })
})

describe('explain and test', () => {
  const criteria = at('trigger.result.code', 'eq', 8)

  test('who may see the rule but not the execution gets no value of it', async () => {
    await start()
    await world.make('one', { ...on(), criteria }, 'alice')
    await world.make('two', { ...on(), criteria: at('trigger.result.stderr', 'gt', 5) }, 'alice')
    const id = await world.dispatch(payload, type)
    await world.settled(id)
    const [one] = (await explain(id, 'alice')).rules
    expect(one).toMatchObject({ criterion: { value: 7 } })
    const whole = await explain(id, 'bob')
    expect(whole.rules[0]).toMatchObject({ verdict: 'not_matched', criterion: { value: '********', pattern: 8 } })
    expect(whole.rules[0]).not.toHaveProperty('reduced')
    expect(whole.payload_reduced).toContain('Grant action_view on "action:shop:pay".')
    expect(JSON.stringify(whole)).not.toContain('canary')
    expect((await explain(id, 'watcher')).payload_reduced).toBeUndefined()
  })

  test('a test with a stored instance shows what both the author and the caller may see', async () => {
    await start()
    await world.make('one', { ...on(), ...passing('{{ trigger.result.stderr }}'), enabled: false }, 'alice')
    await world.make('two', { ...on(), ...passing('{{ trigger.result.stderr }}'), enabled: false }, 'bob')
    const id = await world.dispatch(payload, type)
    const test = async (rule: string, as: string): Promise<RuleTestResult> =>
      (await world.callAs<RuleTestResult>(as, 'POST', '/v1/rules/test', { rule_ref: rule, trigger_instance_id: id }))
        .body
    expect(await test('test.one', 'alice')).toMatchObject({ matches: true, parameters: { any: 'canary' } })
    const ofBob = await test('test.one', 'bob')
    expect(ofBob).toMatchObject({ matches: true, parameters: { any: '********' } })
    expect(ofBob.payload_reduced).toContain('execution_view')
    expect(JSON.stringify(ofBob)).not.toContain('canary')
    const ofAuthor = await test('test.two', 'alice')
    expect(ofAuthor.verdict.reduced).toContain('User "bob"')
    expect(ofAuthor.problem).toContain('Grant action_view')
    expect(JSON.stringify(ofAuthor)).not.toContain('canary')
  })

  test('a test with a payload of the caller tells what the rule would not see', async () => {
    await start()
    const draft = { name: 'new', pack: 'test', trigger: { type }, action: { ref: 'test.do' }, criteria }
    const ask = { rule: draft, trigger_instance: { trigger: type, payload } }
    const { body } = await world.callAs<RuleTestResult>('bob', 'POST', '/v1/rules/test', ask)
    expect(body).toMatchObject({ matches: false, verdict: { reduced: expect.stringContaining('"bob"') as string } })
    expect(body.payload_reduced).toBeUndefined()
    const ofCarol = await world.callAs<RuleTestResult>('carol', 'POST', '/v1/rules/test', ask)
    expect(ofCarol.body.verdict.reduced).toContain('"trigger_view"')
  })
})

describe('other answers with payloads', () => {
  const looks = { permission_types: ['trigger_list', 'rule_enforcement_list'] }

  test('trigger instances, one and a list, and their replay', async () => {
    const all = { permission_types: ['trigger_all'], resource_uid: onType.resource_uid }
    await start({ users: { ...users, bob: { grants: [...author, onType, looks] }, zoe: { grants: [all] } } })
    const id = await world.dispatch(payload, type)
    type Shown = { payload: unknown; payload_reduced?: string }
    const get = async (as: string, path: string) => (await world.callAs<Shown>(as, 'GET', path)).body
    for (const path of [`/v1/triggerinstances/${id}`, `/v1/triggerinstances?trigger_type=${type}`]) {
      const [seen] = [await get('bob', path)].flat()
      expect(seen).toMatchObject({
        payload: reduced,
        payload_reduced: expect.stringContaining('execution_view') as string,
      })
      const [whole] = [await get('root', path)].flat()
      expect(whole).toMatchObject({ payload })
      expect(whole).not.toHaveProperty('payload_reduced')
    }
    const bare = await get('bob', `/v1/triggerinstances/${id}?exclude_attributes=payload`)
    expect(bare).not.toHaveProperty('payload_reduced')

    const again = await world.callAs<Shown>('zoe', 'POST', `/v1/triggerinstances/${id}/re_emit`)
    expect(again.body.payload).toEqual({ ...reduced, __context: { original_id: id } })
    const copy = await get('root', `/v1/triggerinstances/${again.headers.get('svc-trigger-instance-id') ?? ''}`)
    expect(copy.payload).toEqual({ ...payload, __context: { original_id: id } })
  })

  test('a replay keeps the owner', async () => {
    await start({ isolation: true })
    const trigger = world.triggers.find(type)
    if (trigger === undefined) throw new Error('no trigger')
    const { id } = await world.triggers.dispatch(trigger, payload, undefined, { owner: 'alice' })
    const again = await world.call('POST', `/v1/triggerinstances/${id}/re_emit`)
    const copy = world.triggers.findInstance(again.headers.get('svc-trigger-instance-id') ?? '')
    expect(copy?.owner).toBe('alice')
  })

  test('views of enforcements', async () => {
    await start({ users: { ...users, bob: { grants: [...author, onType, looks] } } })
    await world.make('one', on(), 'alice')
    const [enforcement] = await world.fire(payload, type)
    const path = `/v1/ruleenforcements/views/${enforcement?.id ?? ''}`
    const seen = await world.callAs<{ trigger_instance: object }>('bob', 'GET', path)
    expect(seen.body.trigger_instance).toMatchObject({
      payload: reduced,
      payload_reduced: expect.stringContaining('execution_view') as string,
    })
    expect(seen.text).not.toContain('canary')
    const { body } = await world.callAs<{ trigger_instance: object }>('root', 'GET', path)
    expect(body.trigger_instance).toMatchObject({ payload })
  })

  test('the reason of a failed enforcement, wherever it is shown', async () => {
    const lists = { permission_types: ['trigger_list', 'rule_enforcement_list', 'rule_list'] }
    await start({ users: { ...users, bob: { grants: [...author, onType, lists] } } })
    const counting = { ref: 'test.do', parameters: { count: '{{ trigger.result.stderr }}' } }
    await world.make('one', { ...on(), action: counting }, 'alice')
    const ofEvent = { ref: 'test.do', parameters: { count: '{{ trigger.text }}' } }
    await world.make('two', { action: ofEvent }, 'alice')
    expect((await world.fire({ text: 'seen' })).map(({ failure_reason: reason }) => reason)).toEqual([
      `count: invalid literal for int() with base 10: 'seen'`,
    ])
    const enforcements = await world.fire(payload, type)
    expect(enforcements.map(({ failure_reason: reason }) => reason)).toEqual([
      `count: invalid literal for int() with base 10: 'canary'`,
    ])
    const [instance, id] = [enforcements[0]?.trigger_instance_id ?? '', enforcements[0]?.id ?? '']
    const paths = [
      '/v1/ruleenforcements',
      `/v1/ruleenforcements/${id}`,
      '/v1/ruleenforcements/views',
      `/v1/ruleenforcements/views/${id}`,
      `/v1/triggerinstances/${instance}/explain`,
      '/v1/rules/views?include_attributes=last_enforcement',
    ]
    for (const path of paths) {
      const [ofBob, ofRoot] = [await world.callAs('bob', 'GET', path), await world.callAs('root', 'GET', path)]
      expect([path, ofBob.status, ofRoot.text.includes('canary')]).toEqual([path, 200, true])
      expect(ofBob.text).not.toContain('canary')
      expect(ofBob.text).toContain(
        'The cause is not shown, because it could contain a value. The payload is reduced to',
      )
    }
    expect((await world.callAs('bob', 'GET', '/v1/ruleenforcements')).text).toContain(`base 10: 'seen'`)

    await world.database.write({ steps: [{ query: world.database.build.deleteFrom('trigger_instances') }], facts: [] })
    const left = await world.callAs('bob', 'GET', `/v1/ruleenforcements/${id}`)
    expect(left.body).toMatchObject({
      failure_reason:
        'The cause is not shown, because it could contain a value. The trigger instance has been removed.',
    })
    expect((await world.call('GET', `/v1/ruleenforcements/${id}`)).text).toContain('canary')
  })
})
