import { afterEach, describe, expect, it } from 'vitest'
import { startRules, type RulesOptions, type RulesWorld } from '../../../tests/helpers/rules.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { RuleEnforcement, RuleRecord } from './types.ts'

let world: RulesWorld
afterEach(() => world.stop())

async function start(options: RulesOptions = {}): Promise<void> {
  world = await startRules(options)
}

const MASK = '********'
const keyed = (key: string, more: object = {}) => ({ type: 'test.keyed', parameters: { key, ...more } })
const usesOf = (type: string): (number | undefined)[] => {
  const { build } = world.database
  return world.database
    .all(build.selectFrom('triggers').select('uses').where('type', '=', type))
    .map(({ uses }) => uses)
}
const put = <T = RuleRecord>(rule: RuleRecord, more: object, as = 'root') =>
  world.callAs<T>(as, 'PUT', `/v1/rules/${rule.ref}`, { ...rule, ...more })
const open = async (rule: RuleRecord): Promise<RuleRecord> =>
  (await world.call<RuleRecord>('GET', `/v1/rules/${rule.id}?show_secrets=true`)).body

describe('rules and their triggers', () => {
  it('rules with equal parameters share a trigger, also when created concurrently; svc deletes it with the last rule', async () => {
    await start()
    const rules = await Promise.all(Array.from({ length: 20 }, (_, i) => world.make(`r${i}`, { trigger: keyed('a') })))
    expect(new Set(rules.map(({ trigger }) => trigger.ref)).size).toBe(1)
    expect(usesOf('test.keyed')).toEqual([20])
    await Promise.all(rules.slice(1).map(({ ref }) => world.call('DELETE', `/v1/rules/${ref}`)))
    expect(usesOf('test.keyed')).toEqual([1])
    expect((await world.call('DELETE', `/v1/rules/${rules[0]?.id}`)).status).toBe(204)
    expect(world.triggers.ofType('test.keyed')).toEqual([])
  })

  it('a rule that changes its trigger releases the old one', async () => {
    await start()
    const one = await world.make('one', { trigger: keyed('a') })
    await world.make('two', { trigger: keyed('a') })
    const { body: moved } = await put(one, { trigger: keyed('b') })
    expect(moved.trigger.ref).not.toBe(one.trigger.ref)
    expect(usesOf('test.keyed')).toEqual([1, 1])
    expect((await put(moved, { trigger: keyed('a') })).body.trigger).toEqual(one.trigger)
    expect(usesOf('test.keyed')).toEqual([2])
    expect((await put(moved, { trigger: keyed('a'), description: 'stays' })).body.trigger).toEqual(one.trigger)
    expect(usesOf('test.keyed')).toEqual([2])
    await put(one, { trigger: { type: 'test.event' } })
    expect([usesOf('test.keyed'), usesOf('test.event')]).toEqual([[1], [1]])
  })

  it('concurrent changes are atomic, the last one wins, and use counts stay correct', async () => {
    await start()
    const rule = await world.make('busy', { trigger: keyed('a') })
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => put(rule, { trigger: keyed(`k${i % 3}`), description: `k${i % 3}` })),
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const { body } = await world.call<RuleRecord>('GET', `/v1/rules/${rule.id}`)
    expect(body.trigger.parameters['key']).toBe(body.description)
    expect(usesOf('test.keyed')).toEqual([1])
    const deletions = await Promise.all([1, 2, 3].map(() => world.call('DELETE', `/v1/rules/${rule.id}`)))
    expect(deletions.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, 404, 404])
    expect(usesOf('test.keyed')).toEqual([])
  })

  it('of concurrently created rules with one name, one succeeds; the errors of the others contain its id', async () => {
    await start()
    const body = { name: 'same', pack: 'test', trigger: keyed('a'), action: { ref: 'test.do' } }
    const answers = await Promise.all([1, 2, 3].map(() => world.call<RuleRecord>('POST', '/v1/rules', body)))
    const made = answers.find(({ status }) => status === 201)
    for (const answer of answers.filter((other) => other !== made)) {
      expect([answer.status, answer.body]).toEqual([409, expect.objectContaining({ 'conflict-id': made?.body.id })])
    }
    expect(usesOf('test.keyed')).toEqual([1])
  })

  it('a rejected rule leaves no trigger behind', async () => {
    await start()
    await world.make('taken')
    for (const more of [
      { name: 'taken', trigger: keyed('x') },
      { name: 'b', trigger: keyed('x'), criteria: { a: { pattern: 1 } } },
      { name: 'c', trigger: { type: 'test.keyed', parameters: { other: 1 } } },
    ]) {
      const body = { pack: 'test', action: { ref: 'test.do' }, ...more }
      expect((await world.call('POST', '/v1/rules', body)).status).toBeGreaterThanOrEqual(400)
    }
    expect(world.triggers.ofType('test.keyed')).toEqual([])
  })

  it('secrets of the trigger are masked, and kept when a client sends the mask back', async () => {
    await start()
    const rule = await world.make('guarded', { trigger: keyed('a', { pass: 'p4ss' }) })
    expect(rule.trigger.parameters).toEqual({ key: 'a', pass: MASK })
    expect((await open(rule)).trigger.parameters).toEqual({ key: 'a', pass: MASK })
    const { body } = await put(rule, { description: 'changed' })
    expect([body.trigger, world.triggers.find(rule.trigger.ref)?.parameters]).toEqual([
      rule.trigger,
      { key: 'a', pass: 'p4ss' },
    ])
  })
})

describe('secret action parameters', () => {
  const secret = { ref: 'test.do', parameters: { text: 'x', token: 's3cret', account: { password: 'pw', name: 'n' } } }
  const masked = { text: 'x', token: MASK, account: { password: MASK, name: 'n' } }
  const grants = (...permissions: string[]) => ({
    grants: [{ permission_types: permissions, resource_uid: 'pack:test' }],
  })
  const users = { ann: grants('rule_all', 'action_all'), bob: grants('rule_all', 'action_all') }

  it('are masked unless an administrator asks for them, and kept when a client sends the mask back', async () => {
    await start({ users })
    const rule = await world.make('kept', { action: secret })
    expect(rule.action.parameters).toEqual(masked)
    expect((await open(rule)).action).toEqual(secret)
    const { body } = await world.callAs<RuleRecord>('ann', 'GET', '/v1/rules/test.kept?show_secrets=true')
    expect(body.action.parameters).toEqual(masked)
    const parameters = { ...masked, text: 'y', account: { password: 'new' } }
    expect((await put(rule, { action: { ref: 'test.do', parameters } })).status).toBe(200)
    expect((await open(rule)).action.parameters).toEqual({ text: 'y', token: 's3cret', account: { password: 'new' } })
  })

  it('a mask is plain text for another action, and where the stored value is no secret', async () => {
    await start()
    const rule = await world.make('moved', { action: secret })
    await put(rule, { action: { ref: 'test.other', parameters: { token: MASK } } })
    expect((await open(rule)).action.parameters).toEqual({ token: MASK })
    await put(rule, { action: secret })
    await put(rule, { action: { ref: 'test.do', parameters: { text: MASK, token: MASK } } })
    expect((await open(rule)).action.parameters).toEqual({ text: MASK, token: 's3cret' })
  })

  it('of another user can be kept or replaced, but not combined with new values', async () => {
    await start({ users })
    const rule = await world.make('foreign', { action: secret }, 'ann')
    const beside = { action: { ref: 'test.do', parameters: { ...masked, text: '{{ trigger }}' } } }
    const refused = await put(rule, beside, 'bob')
    expect([refused.status, refused.body]).toEqual([
      403,
      expect.objectContaining({ code: 'PERMISSION_DENIED', faultstring: expect.stringContaining('"ann"') as string }),
    ])
    const elsewhere = await put(rule, { trigger: keyed('mine') }, 'bob')
    expect(elsewhere.status).toBe(403)
    // Unchanged it is his now; the secrets are hers all the same.
    expect((await put(rule, { enabled: false }, 'bob')).body.context).toEqual({ user: 'bob' })
    expect((await put(rule, beside, 'bob')).status).toBe(403)
    expect((await open(rule)).action).toEqual(secret)
    const anew = { action: { ref: 'test.do', parameters: { text: '{{ trigger }}', token: 'his' } } }
    expect((await put(rule, anew, 'bob')).status).toBe(200)
    expect(
      (await put(rule, { action: { ref: 'test.do', parameters: { text: 'z', token: MASK } } }, 'bob')).status,
    ).toBe(200)
    expect((await open(rule)).action.parameters).toEqual({ text: 'z', token: 'his' })
  })

  it('of a missing action are detected by their names', async () => {
    await start()
    const rule = await world.make('early', { action: { ref: 'test.soon', parameters: { api_key: 'k', text: 't' } } })
    expect(rule.action.parameters).toEqual({ api_key: MASK, text: 't' })
    expect((await put(rule, {})).status).toBe(200)
    expect((await open(rule)).action.parameters).toEqual({ api_key: 'k', text: 't' })
  })

  it('are shown if masking is disabled', async () => {
    await start({ maskSecrets: false })
    expect((await world.make('plain', { action: secret })).action).toEqual(secret)
  })

  it('reach the action, but no response', async () => {
    await start()
    await world.make('used', { action: secret })
    const [enforcement] = await world.fire()
    const { text } = await world.call<RuleEnforcement[]>('GET', '/v1/ruleenforcements/views')
    expect(text).toContain(enforcement?.execution_id)
    expect(text).not.toMatch(/s3cret|"pw"/)
    expect(world.executions.find(enforcement?.execution_id ?? '')?.parameters).toMatchObject({ token: MASK })
    const run = await waitFor('the action to run', () => world.runs[0])
    expect(run.actionParameters).toMatchObject({ token: 's3cret' })
    expect(world.log()).not.toContain('s3cret')
  })
})

describe('permissions', () => {
  const on = (uid: string, ...permissions: string[]) => ({ permission_types: permissions, resource_uid: uid })
  const rule = (more: object = {}) => ({
    name: 'r',
    pack: 'test',
    trigger: { type: 'test.event' },
    action: { ref: 'test.do' },
    ...more,
  })
  const hook = { type: 'core.svc.webhook', parameters: { url: '/deploy/' } }

  it('to create a rule: rule_create, action_execute on the action, webhook_create on the hook', async () => {
    await start({
      users: {
        none: {},
        rule: { grants: [on('rule:test:r', 'rule_create')] },
        action: { grants: [on('rule:test:r', 'rule_create'), on('action:test:do', 'action_execute')] },
        all: {
          grants: [
            on('rule:test:r', 'rule_create'),
            on('action:test:do', 'action_execute'),
            on('webhook:deploy', 'webhook_create'),
          ],
        },
      },
    })
    const hookType = world.triggers.findType('core.svc.webhook')?.id ?? ''
    const refusals: [string, object, RegExp][] = [
      ['none', rule(), /^User "none" doesn't have required permission "rule_create" on resource "rule:test:r"$/],
      ['rule', rule(), /^User "rule" doesn't have required \(action_execute\) permission to use action test\.do$/],
      [
        'action',
        rule({ action: { ref: 'test.other' } }),
        /required \(action_execute\) permission to use action test\.other$/,
      ],
      [
        'action',
        rule({ trigger: hook }),
        /^User "action" doesn't have required permission \(webhook_create\) to use trigger core\.svc\.webhook/,
      ],
      [
        'action',
        rule({ trigger: { ...hook, type: hookType } }),
        /\(webhook_create\) to use trigger core\.svc\.webhook/,
      ],
      ['all', rule({ trigger: { ...hook, parameters: { url: 'other' } } }), /\(webhook_create\)/],
      ['all', rule({ name: 'x' }), /"rule_create" on resource "rule:test:x"/],
      ['all', rule({ pack: 'other' }), /"rule_create" on resource "rule:other:r"/],
    ]
    for (const [user, body, message] of refusals) {
      const answer = await world.callAs(user, 'POST', '/v1/rules', body)
      expect([user, answer.status, answer.body.code, answer.body.faultstring]).toEqual([
        user,
        403,
        'PERMISSION_DENIED',
        expect.stringMatching(message),
      ])
    }
    expect((await world.callAs('all', 'POST', '/v1/rules', rule({ trigger: hook }))).status).toBe(201)
    expect(world.log().match(/AUDIT [^\n]*permission\.denied/g)).toHaveLength(refusals.length)
  })

  it('to change a rule: rule_modify and the same; a new name needs rule_create', async () => {
    await start({
      users: {
        ann: { grants: [on('rule:test:r', 'rule_modify'), on('action:test:do', 'action_execute')] },
        pat: { grants: [on('pack:test', 'rule_modify', 'rule_create', 'rule_delete', 'action_execute')] },
      },
    })
    const made = await world.make('r')
    expect((await put(made, { description: 'a' }, 'ann')).body).toMatchObject({
      description: 'a',
      context: { user: 'ann' },
    })
    for (const more of [{ action: { ref: 'test.other' } }, { trigger: hook }, { name: 'mine' }, { pack: 'mine' }]) {
      expect((await put(made, more, 'ann')).status).toBe(403)
    }
    const renamed = await put(made, { name: 'renamed' }, 'pat')
    expect(renamed.body).toMatchObject({ id: made.id, ref: 'test.renamed', uid: 'rule:test:renamed' })
    expect((await put(renamed.body, { pack: 'other' }, 'pat')).status).toBe(403)
    expect((await world.callAs('ann', 'DELETE', `/v1/rules/${made.id}`)).status).toBe(403)
    expect((await world.callAs('pat', 'DELETE', `/v1/rules/${made.id}`)).status).toBe(204)
  })

  it('lists, their totals, filters and pages contain only rules that the caller can view', async () => {
    await start({
      users: {
        watcher: { role: 'observer' },
        one: { grants: [{ permission_types: ['rule_list'] }, on('rule:test:b', 'rule_view')] },
        pack: { grants: [{ permission_types: ['rule_list'] }, on('pack:other', 'rule_all')] },
        none: { grants: [{ permission_types: ['rule_list'] }] },
      },
    })
    for (const name of ['a', 'b', 'c']) await world.make(name, { enabled: name !== 'c' })
    for (const name of ['a', 'b', 'c']) await world.make(name, { pack: 'other', enabled: name !== 'c' })
    await world.fire()
    const list = async (as: string, path: string): Promise<[string[], string | null]> => {
      const { body, headers } = await world.callAs<(RuleRecord & RuleEnforcement)[]>(as, 'GET', path)
      return [body.map((item) => item.rule?.ref ?? item.ref), headers.get('x-total-count')]
    }
    const all = ['other.a', 'other.b', 'other.c', 'test.a', 'test.b', 'test.c']
    expect(await list('watcher', '/v1/rules')).toEqual([all, '6'])
    expect(await list('one', '/v1/rules')).toEqual([['test.b'], '1'])
    expect(await list('pack', '/v1/rules?limit=2')).toEqual([['other.a', 'other.b'], '3'])
    expect(await list('pack', '/v1/rules?limit=2&offset=2')).toEqual([['other.c'], '3'])
    expect(await list('pack', '/v1/rules?enabled=false')).toEqual([['other.c'], '1'])
    expect(await list('pack', '/v1/rules?pack=test')).toEqual([[], '0'])
    expect(await list('none', '/v1/rules/views')).toEqual([[], '0'])
    const sorted = '/v1/ruleenforcements?sort=rule_ref'
    expect(await list('watcher', sorted)).toEqual([['other.a', 'other.b', 'test.a', 'test.b'], '4'])
    expect(await list('pack', sorted)).toEqual([['other.a', 'other.b'], '2'])
    expect(await list('one', '/v1/ruleenforcements/views')).toEqual([['test.b'], '1'])
    expect(await list('none', sorted)).toEqual([[], '0'])
  })

  it('views contain the parts of instance and execution that the caller can view', async () => {
    await start({
      users: {
        rules: { grants: [{ permission_types: ['rule_list'] }, on('rule:test:a', 'rule_view')] },
        more: {
          grants: [
            { permission_types: ['rule_list'] },
            on('rule:test:a', 'rule_view'),
            on('trigger:test:event', 'trigger_view'),
            on('action:test:do', 'action_view'),
          ],
        },
      },
    })
    await world.make('a')
    await world.fire({ n: 1 })
    const parts = async (as: string) =>
      Object.keys((await world.callAs<object[]>(as, 'GET', '/v1/ruleenforcements/views')).body[0] ?? {})
    expect(await parts('more')).toEqual(expect.arrayContaining(['trigger_instance', 'execution']))
    const few = await parts('rules')
    expect(few).toContain('execution_id')
    expect(few).not.toContain('execution')
    expect(few).not.toContain('trigger_instance')
  })

  it('under isolation users access only their own rules', async () => {
    const grants = [{ permission_types: ['rule_list'] }, on('pack:test', 'rule_all', 'action_execute')]
    await start({ isolation: true, users: { ann: { grants }, bob: { grants } } })
    const hers = await world.make('hers', {}, 'ann')
    const his = await world.make('his', {}, 'bob')
    const list = async (as: string) =>
      (await world.callAs<RuleRecord[]>(as, 'GET', '/v1/rules')).body.map(({ ref }) => ref)
    expect([await list('ann'), await list('bob'), await list('root')]).toEqual([
      ['test.hers'],
      ['test.his'],
      ['test.hers', 'test.his'],
    ])
    const enforcements = await world.fire()
    const enforced = async (as: string) =>
      (await world.callAs<RuleEnforcement[]>(as, 'GET', '/v1/ruleenforcements')).body.map((one) => one.rule.ref)
    expect([await enforced('ann'), (await enforced('root')).length]).toEqual([['test.hers'], 2])
    for (const { id, rule: of } of enforcements) {
      const statuses = await Promise.all(
        ['', 'views/'].map((part) => world.callAs('ann', 'GET', `/v1/ruleenforcements/${part}${id}`)),
      )
      const status = of.ref === 'test.hers' ? 200 : 403
      expect(statuses.map((answer) => answer.status)).toEqual([status, status])
    }
    for (const [method, body] of [['GET'], ['PUT', his], ['DELETE']] as const) {
      const answer = await world.callAs('ann', method, `/v1/rules/${his.id}`, body)
      expect([method, answer.status, answer.body.faultstring]).toEqual([
        method,
        403,
        `User "ann" doesn't have access to resource "rule:test:his" due to resource permission isolation.`,
      ])
    }
    expect((await put(hers, { description: 'x' }, 'ann')).status).toBe(200)
  })

  it('under isolation enforcements of a deleted rule of another user stay inaccessible', async () => {
    const grants = [
      { permission_types: ['rule_list'] as const },
      on('pack:test', 'rule_all', 'action_execute'),
      on('trigger:test:event', 'trigger_view'),
    ]
    await start({ isolation: true, users: { ann: { grants }, bob: { grants } } })
    const his = await world.make('his', {}, 'bob')
    const [enforcement] = await world.fire()
    expect((await world.callAs('bob', 'DELETE', `/v1/rules/${his.id}`)).status).toBe(204)
    const path = `/v1/triggerinstances/${enforcement?.trigger_instance_id ?? ''}/explain`
    expect((await world.callAs('root', 'GET', path)).text).toContain('test.his')
    const explained = await world.callAs('ann', 'GET', path)
    expect([explained.status, explained.text.includes('test.his')]).toEqual([200, false])
    await world.make('his', { enabled: false }, 'ann')
    for (const list of ['/v1/ruleenforcements', '/v1/ruleenforcements/views']) {
      expect((await world.callAs('ann', 'GET', list)).body).toEqual([])
    }
  })

  it('the scopes of an API key are stored with the rule', async () => {
    const scopes = [{ permission_types: ['rule_create', 'action_execute'] as const, resource_uid: 'pack:test' }]
    await start({ users: { key: { role: 'admin', scopes } } })
    const made = await world.make('scoped', {}, 'key')
    expect(made.context).toEqual({ user: 'key', scopes })
    expect((await world.callAs('key', 'GET', `/v1/rules/${made.id}`)).status).toBe(200)
    expect((await world.callAs('key', 'DELETE', `/v1/rules/${made.id}`)).status).toBe(403)
  })
})

describe('rules of packs', () => {
  const file = (name: string, more: object = {}) => ({
    metadataFile: `rules/${name}.yaml`,
    definition: {
      name,
      enabled: true,
      trigger: keyed('p'),
      action: { ref: 'test.do', parameters: { text: 'a' } },
      ...more,
    },
  })
  const register = (...definitions: { metadataFile: string; definition: unknown }[]) =>
    world.rules.registerRules({
      pack: 'test',
      definitions,
      metadataFiles: new Set(definitions.map((one) => one.metadataFile)),
    })
  const list = async () => (await world.call<RuleRecord[]>('GET', '/v1/rules')).body
  const changes = (): string[] => world.log().match(/event=rule\.(created|updated|deleted)/g) ?? []

  it('are created, stay unchanged with their files, and change with their files', async () => {
    await start()
    expect(await register(file('a'), file('b'))).toEqual({ registered: 2, removed: 0, problems: [] })
    const before = await list()
    expect(before).toMatchObject([
      { ref: 'test.a', enabled: true, metadata_file: 'rules/a.yaml', context: { user: 'svc' } },
      { ref: 'test.b' },
    ])
    expect(await register(file('a'), file('b'))).toEqual({ registered: 2, removed: 0, problems: [] })
    expect([await list(), changes().length]).toEqual([before, 2])
    await register(file('a', { description: 'new' }), file('b'))
    expect(await list()).toEqual([{ ...before[0], description: 'new' }, before[1]])
    expect(changes()).toHaveLength(3)
  })

  it('a new registration sets enabled from the file', async () => {
    await start()
    await register(file('a'))
    const [rule] = await list()
    if (rule === undefined) throw new Error('no rule')
    expect((await put(rule, { enabled: false })).body).toMatchObject({ enabled: false, metadata_file: 'rules/a.yaml' })
    await register(file('a'))
    expect(await list()).toEqual([rule])
  })

  it('svc deletes the rules of deleted files, but keeps those of invalid files and those without a file', async () => {
    await start()
    await world.make('own')
    await register(file('a'), file('b'), file('c'))
    const result = await register(file('b', { trigger: undefined }), file('c', { name: 'renamed' }))
    expect(result).toMatchObject({ registered: 1, removed: 2 })
    expect(result.problems).toEqual([
      { metadataFile: 'rules/b.yaml', path: [], missing: 'trigger', message: `'trigger' is a required property` },
    ])
    expect((await list()).map(({ ref }) => ref)).toEqual(['test.b', 'test.own', 'test.renamed'])
    expect(usesOf('test.keyed')).toEqual([2])
  })

  it.each<[string, object, RegExp]>([
    ['a property that is none', { trigers: 1 }, /trigers/],
    ['an unknown trigger type', { trigger: { type: 'test.nope' } }, /test\.nope/],
    ['wrong trigger parameters', { trigger: keyed('p', { x: 1 }) }, /x/],
    ['a criterion without operator', { criteria: { 'trigger.a': { pattern: 1 } } }, /trigger\.a/],
    ['another pack', { pack: 'elsewhere' }, /elsewhere/],
    ['a name that is none', { name: 7 }, /7/],
  ])('an invalid definition is reported and does not affect the others: %s', async (_, more, message) => {
    await start()
    const result = await register(file('bad', more), file('good'))
    expect(result).toEqual({
      registered: 1,
      removed: 0,
      problems: [{ metadataFile: 'rules/bad.yaml', path: expect.any(Array), message: expect.stringMatching(message) }],
    })
    expect((await list()).map(({ ref }) => ref)).toEqual(['test.good'])
  })

  it('warns of a duplicate name, of which the last one counts, and rejects what is no object', async () => {
    await start()
    const { problems } = await register(
      file('a'),
      { ...file('a', { description: 'The last one.' }), metadataFile: 'rules/z.yaml' },
      { metadataFile: 'rules/n.yaml', definition: [1] },
    )
    expect(problems.map(({ metadataFile, message, isWarning }) => [metadataFile, message, isWarning])).toEqual([
      ['rules/z.yaml', expect.stringContaining('rules/a.yaml'), true],
      ['rules/n.yaml', expect.stringContaining('object'), undefined],
    ])
    expect(await list()).toMatchObject([{ metadata_file: 'rules/z.yaml', description: 'The last one.' }])
  })

  it('replaces a rule with the same name and keeps its id', async () => {
    await start()
    const made = await world.make('a')
    await register(file('a'))
    expect(await list()).toMatchObject([
      { id: made.id, metadata_file: 'rules/a.yaml', trigger: { type: 'test.keyed' } },
    ])
    expect(usesOf('test.event')).toEqual([0])
  })
})
