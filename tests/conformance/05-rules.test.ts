/** Rules and what comes of them (contract 05, 5.5 and 5.7; 10.3) on a running server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runToEnd, waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, idPattern, impossibleIds, timestampPattern, unknownId, type ErrorAnswer } from './support.ts'

interface RuleAnswer {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  enabled: boolean
  type: { ref: string; parameters: object }
  trigger: { type: string; ref: string; parameters: Record<string, unknown>; description?: string }
  criteria: object
  action: { ref: string; parameters: Record<string, unknown>; description?: string }
  context: { user: string }
  tags: object[]
}

interface EnforcementAnswer {
  id: string
  trigger_instance_id: string
  execution_id?: string
  failure_reason?: string
  rule: { ref: string; uid: string; id: string }
  enforced_at: string
  status: string
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
  for (const definition of [
    { name: 'plain' },
    { name: 'other' },
    {
      name: 'keyed',
      parameters_schema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
    },
  ]) {
    const { status, text } = await server.call('POST', '/v1/triggertypes', { pack: 'shop', ...definition })
    if (status !== 201) throw new Error(text)
  }
})
afterAll(async () => {
  await server.stop()
})

const minimal = (name: string) => ({ name, trigger: { type: 'shop.plain' }, action: { ref: 'core.noop' } })
const post = <T = RuleAnswer>(body: unknown): Promise<Answer<T>> => server.call<T>('POST', '/v1/rules', body)

/** Enabled. */
async function make(name: string, more: object = {}): Promise<RuleAnswer> {
  const { status, body, text } = await post({ ...minimal(name), enabled: true, ...more })
  if (status !== 201) throw new Error(text)
  return body
}

const remove = (rule: { id: string }): Promise<Answer> => server.call('DELETE', `/v1/rules/${rule.id}`)

async function dispatch(payload: unknown, trigger = 'shop.plain'): Promise<string> {
  const { status, headers, text } = await server.call('POST', '/v1/webhooks/svc', { trigger, payload })
  const id = headers.get('svc-trigger-instance-id')
  if (status !== 202 || id === null) throw new Error(text)
  await waitFor('the rules', async () => {
    const { body } = await server.call<{ status: string }>('GET', `/v1/triggerinstances/${id}`)
    return body.status !== 'pending'
  })
  return id
}

/** Of one event, oldest first. */
async function fire(payload: unknown, trigger?: string): Promise<EnforcementAnswer[]> {
  const id = await dispatch(payload, trigger)
  return (await server.call<EnforcementAnswer[]>('GET', `/v1/ruleenforcements?trigger_instance=${id}&sort=id`)).body
}

async function executionOf({ execution_id: id = '' }: EnforcementAnswer): Promise<ExecutionAnswer> {
  return waitForStatus(server, id)
}

describe('05.5 the record', () => {
  it('defaults: disabled, standard, no criteria; who made it', async () => {
    const { status, body } = await post(minimal('defaults'))
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(idPattern),
      uid: 'rule:default:defaults',
      ref: 'default.defaults',
      name: 'defaults',
      pack: 'default',
      description: '',
      enabled: false,
      type: { ref: 'standard', parameters: {} },
      trigger: { type: 'shop.plain', ref: 'shop.plain', parameters: {} },
      criteria: {},
      action: { ref: 'core.noop', parameters: {} },
      context: { user: 'svc' },
      tags: [],
    })
    expect((await server.call('GET', '/v1/rules/default.defaults')).body).toEqual(body)
    await remove(body)
  })

  it('everything that can be said', async () => {
    const said = {
      name: 'full.of-everything_1',
      pack: 'shop',
      description: 'Says {{ it }} all.',
      enabled: true,
      type: { ref: 'backstop', parameters: {} },
      criteria: {
        'trigger.a': { type: 'eq', pattern: 1 },
        'trigger.items': { type: 'search', pattern: { 'item.b': { type: 'eq', pattern: 2 } }, condition: 'any' },
      },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.a }}' } },
      tags: [{ name: 'a', value: 'b' }],
    }
    const trigger = { type: 'shop.keyed', parameters: { key: 'k' } }
    const { status, body } = await post({ ...said, trigger })
    expect([status, body]).toMatchObject([201, { ...said, uid: 'rule:shop:full.of-everything_1', trigger }])
    expect(body.trigger.ref).toMatch(/^shop\.[0-9a-f-]{36}$/)
    await remove(body)
  })

  it('what is null is left out', async () => {
    const nothing = { pack: null, description: null, enabled: null, type: null, criteria: null, tags: null }
    const body = { ...minimal('nulls'), ...nothing, action: { ref: 'core.noop', parameters: null } }
    const answer = await post(body)
    expect([answer.status, answer.body]).toMatchObject([201, { pack: 'default', enabled: false, tags: [] }])
    await remove(answer.body)
  })

  it('rules with equal trigger parameters share a trigger, which goes with the last of them', async () => {
    const trigger = { type: 'shop.keyed', parameters: { key: 'shared' } }
    const [one, two] = [await make('one', { trigger }), await make('two', { trigger })]
    const three = await make('three', { trigger: { type: 'shop.keyed', parameters: { key: 'else' } } })
    expect([two.trigger, three.trigger.ref === one.trigger.ref]).toEqual([one.trigger, false])
    const refs = async (): Promise<string[]> =>
      (await server.call<{ ref: string }[]>('GET', '/v1/triggers')).body.map(({ ref }) => ref)
    await remove(one)
    expect(await refs()).toContain(two.trigger.ref)
    await remove(two)
    expect(await refs()).not.toContain(two.trigger.ref)
    await remove(three)
  })
})

describe('05.5 what is refused', () => {
  const rule = (more: object = {}): object => ({ ...minimal('refused'), ...more })
  it.each<[string, unknown, RegExp]>([
    [
      'name missing',
      { trigger: { type: 'shop.plain' }, action: { ref: 'core.noop' } },
      /^'name' is a required property$/,
    ],
    ['trigger missing', rule({ trigger: undefined }), /^'trigger' is a required property$/],
    ['action missing', rule({ action: undefined }), /^'action' is a required property$/],
    ['trigger type missing', rule({ trigger: {} }), /'type' is a required property/],
    ['action ref missing', rule({ action: {} }), /'ref' is a required property/],
    ['unknown property', rule({ nope: 1 }), /^Additional properties are not allowed \('nope' was unexpected\)$/],
    ['two unknown properties', rule({ a: 1, b: 2 }), /\('a', 'b' were unexpected\)/],
    ['unknown property of the action', rule({ action: { ref: 'core.noop', params: {} } }), /'params' was unexpected/],
    ['name that is no text', rule({ name: 7 }), /7 is not of type 'string'/],
    ['empty name', rule({ name: '' }), /name/],
    ['name with a slash', rule({ name: 'a/b' }), /a\/b/],
    ['pack with a dot', rule({ pack: 'a.b' }), /a\.b/],
    ['enabled that is no boolean', rule({ enabled: 'yes' }), /'yes' is not of type 'boolean'/],
    ['unknown rule type', rule({ type: { ref: 'first' } }), /'first' is not one of \['standard', 'backstop'\]/],
    ['unknown trigger type', rule({ trigger: { type: 'shop.nope' } }), /shop\.nope/],
    ['trigger parameters missing', rule({ trigger: { type: 'shop.keyed' } }), /'key' is a required property/],
    [
      'trigger parameters wrong',
      rule({ trigger: { type: 'shop.keyed', parameters: { key: 1 } } }),
      /1 is not of type 'string'/,
    ],
    [
      'webhook without url',
      rule({ trigger: { type: 'core.svc.webhook' } }),
      /^Parameters of trigger type "core\.svc\.webhook": 'url' is a required property$/,
    ],
    [
      'timer with an unknown unit',
      rule({ trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'eons', delta: 1 } } }),
      /eons/,
    ],
    ['cron expression', rule({ trigger: { type: 'core.svc.CronTimer', parameters: { hour: '25' } } }), /25/],
    [
      'criterion without type',
      rule({ criteria: { 'trigger.a': { pattern: 1 } } }),
      /Operator not specified for field: trigger\.a/,
    ],
    [
      'unknown operator',
      rule({ criteria: { 'trigger.a': { type: 'EQ', pattern: 1 } } }),
      /^For field: trigger\.a, operator EQ not in list of allowed operators: \[.*'eq'.*\]/,
    ],
    [
      'no pattern',
      rule({ criteria: { 'trigger.a': { type: 'eq' } } }),
      /^For field: trigger\.a, no pattern specified for operator eq/,
    ],
    [
      'no pattern, exists',
      rule({ criteria: { 'trigger.a': { type: 'exists' } } }),
      /no pattern specified for operator exists/,
    ],
    [
      'no pattern, nexists',
      rule({ criteria: { 'trigger.a': { type: 'nexists' } } }),
      /no pattern specified for operator nexists/,
    ],
    ['criterion that is no object', rule({ criteria: { 'trigger.a': 1 } }), /trigger\.a/],
    ['criteria that are no object', rule({ criteria: [] }), /\[\] is not of type 'object'/],
    ['no object', [], /^Input body needs to be an object, got: array$/],
  ])('%s: 400', async (_, body, message) => {
    const before = (await server.call('GET', '/v1/rules')).headers.get('x-total-count')
    const answer = await post<ErrorAnswer>(body)
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringMatching(message)])
    expect((await server.call('GET', '/v1/rules')).headers.get('x-total-count')).toBe(before)
  })

  it.each([
    ['of an operator that there is none of', { type: 'nope', pattern: 1 }, []],
    ['without an operator', {}, []],
    ['that is no object', 5, []],
    ['with a pattern that its operator refuses', { type: 'regex', pattern: '(' }, []],
    [
      'within a search',
      { type: 'search', condition: 'any', pattern: { 'item.a': { type: 'exists' }, 'item.b': { type: 'nope' } } },
      ['pattern', 'item.b'],
    ],
    [
      'within a search, with a pattern that its operator refuses',
      { type: 'search', condition: 'any', pattern: { 'item.b': { type: 'regex', pattern: '(' } } },
      ['pattern', 'item.b'],
    ],
  ])('a criterion %s: 400 with its path', async (_, criterion, path) => {
    const criteria = { 'trigger.fine': { type: 'exists', pattern: '' }, "trigger['x y'].a": criterion }
    const answer = await post<ErrorAnswer & { details: unknown }>(rule({ criteria }))
    expect([answer.status, answer.body.details]).toEqual([400, { path: ['criteria', "trigger['x y'].a", ...path] }])
  })

  it('the same pack and name: 409 with the id of the one that exists', async () => {
    const rule_ = await make('twice')
    const answer = await post<ErrorAnswer>(minimal('twice'))
    expect([answer.status, answer.body]).toEqual([
      409,
      {
        faultstring: expect.stringContaining('default.twice') as string,
        code: 'NAME_TAKEN',
        'conflict-id': rule_.id,
        details: { path: ['name'] },
      },
    ])
    const third = await make('third')
    const renamed = await server.call('PUT', `/v1/rules/${third.id}`, minimal('twice'))
    expect([renamed.status, renamed.body]).toMatchObject([409, { 'conflict-id': rule_.id }])
    await Promise.all([remove(rule_), remove(third)])
  })

  it('a rule may name an action that does not exist', async () => {
    const rule_ = await make('hopeful', { action: { ref: 'shop.nope', parameters: { a: 1 } } })
    expect(rule_.action).toEqual({ ref: 'shop.nope', parameters: { a: 1 } })
    await remove(rule_)
  })
})

describe('05.5 reading, changing, deleting', () => {
  it.each([unknownId, 'default.nope', 'nope', ...impossibleIds])('%s: 404', async (name) => {
    for (const [method, path, body] of [
      ['GET', `/v1/rules/${name}`],
      ['GET', `/v1/rules/views/${name}`],
      ['PUT', `/v1/rules/${name}`, minimal('x')],
      ['DELETE', `/v1/rules/${name}`],
    ] as const) {
      const answer = await server.call<ErrorAnswer>(method, path, body)
      expect([method, path, answer.status, answer.body.faultstring]).toEqual([
        method,
        path,
        404,
        expect.stringMatching(/^Resource with a reference or id ".*" not found$/s),
      ])
    }
  })

  it.each(['id', 'ref'] as const)(
    'PUT by %s: the full record, what is left out has its default; id in the body is not read',
    async (by) => {
      const rule = await make('changing', { description: 'old', criteria: { 'trigger.a': { type: 'eq', pattern: 1 } } })
      const { status, body } = await server.call<RuleAnswer>('PUT', `/v1/rules/${rule[by]}`, {
        ...minimal('changing'),
        id: unknownId,
        action: { ref: 'core.local', parameters: { cmd: 'true' } },
        trigger: { type: 'shop.keyed', parameters: { key: 'moved' } },
      })
      expect([status, body]).toMatchObject([
        200,
        {
          id: rule.id,
          description: '',
          enabled: false,
          criteria: {},
          action: { ref: 'core.local' },
          trigger: { type: 'shop.keyed' },
        },
      ])
      expect((await server.call('GET', `/v1/rules/${rule.id}`)).body).toEqual(body)
      // What is read can be sent back.
      expect((await server.call('PUT', `/v1/rules/${rule[by]}`, body)).body).toEqual(body)
      expect((await remove(rule)).status).toBe(204)
    },
  )

  it('PUT is refused for the same reasons as POST', async () => {
    const rule = await make('firm')
    for (const more of [
      { name: undefined },
      { nope: 1 },
      { trigger: { type: 'shop.nope' } },
      { criteria: { a: { type: 'eq' } } },
    ]) {
      expect((await server.call('PUT', `/v1/rules/${rule.ref}`, { ...minimal('firm'), ...more })).status).toBe(400)
    }
    expect((await server.call('GET', `/v1/rules/${rule.ref}`)).body).toEqual(rule)
    await remove(rule)
  })

  it('PUT can give another name; the id stays', async () => {
    const rule = await make('before')
    const { body } = await server.call<RuleAnswer>('PUT', '/v1/rules/default.before', { ...rule, name: 'after' })
    expect(body).toEqual({ ...rule, name: 'after', ref: 'default.after', uid: 'rule:default:after' })
    expect((await server.call('GET', '/v1/rules/default.before')).status).toBe(404)
    expect((await server.call('DELETE', '/v1/rules/default.after')).status).toBe(204)
    expect((await server.call('DELETE', '/v1/rules/default.after')).status).toBe(404)
  })

  it('secret action parameters are masked unless show_secrets, and kept when the mask is sent back', async () => {
    const action = { ref: 'core.local', parameters: { cmd: 'true', sudo_password: 's3cret' } }
    const rule = await make('secretive', { action })
    const masked = { ...action, parameters: { cmd: 'true', sudo_password: '********' } }
    expect(rule.action).toEqual(masked)
    for (const path of [
      '/v1/rules/default.secretive',
      '/v1/rules/views/default.secretive',
      '/v1/rules',
      '/v1/rules/views',
    ]) {
      const answers = await Promise.all(
        ['', '?show_secrets=true'].map((query) => server.call('GET', `${path}${query}`)),
      )
      expect(answers.map(({ text }) => [text.includes('s3cret'), text.includes('********')])).toEqual([
        [false, true],
        [true, false],
      ])
    }
    await server.call('PUT', `/v1/rules/${rule.id}`, { ...rule, description: 'changed' })
    const { body } = await server.call<RuleAnswer>('GET', `/v1/rules/${rule.id}?show_secrets=true`)
    expect(body).toMatchObject({ description: 'changed', action })
    await remove(rule)
  })
})

describe('05.5 a rule that two people change', () => {
  const put = (rule: RuleAnswer, ifMatch?: string) =>
    server.call<RuleAnswer & ErrorAnswer>(
      'PUT',
      `/v1/rules/${rule.ref}`,
      rule,
      ifMatch === undefined ? undefined : { 'If-Match': ifMatch },
    )

  it('If-Match keeps the second from undoing what the first has done; without it the last one wins', async () => {
    const made = await post(minimal('shared'))
    const rule = made.body
    const tag = made.headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[^"]+"$/)
    const read = await server.call('GET', `/v1/rules/${rule.ref}`)
    expect(read.headers.get('etag')).toBe(tag)

    const first = await put({ ...rule, description: 'first' }, tag)
    expect(first.status).toBe(200)
    expect(first.headers.get('etag')).not.toBe(tag)
    const second = await put({ ...rule, description: 'second' }, tag)
    expect([second.status, second.body]).toEqual([
      412,
      {
        code: 'CONTENT_CHANGED',
        faultstring:
          'Rule "default.shared" was changed by "svc" after you read it; read it again before you change it.',
      },
    ])
    expect((await server.call<RuleAnswer>('GET', `/v1/rules/${rule.ref}`)).body.description).toBe('first')
    for (const fits of [`"other", ${first.headers.get('etag')}`, '*', undefined]) {
      expect((await put({ ...rule, description: String(fits) }, fits)).status).toBe(200)
    }
    for (const fits of ['', 'W/"x"', '"']) expect((await put(rule, fits)).status).toBe(412)
    await remove(rule)
    const again = await post(minimal('shared'))
    expect((await put(again.body, tag)).status).toBe(412)
    await remove(again.body)
  })
})

describe('05.5 lists', () => {
  const rules: RuleAnswer[] = []
  beforeAll(async () => {
    for (const [pack, name, more] of [
      ['zoo', 'b', { enabled: false }],
      ['zoo', 'a', { action: { ref: 'core.local', parameters: { cmd: 'true' } } }],
      ['ark', 'c', { trigger: { type: 'shop.keyed', parameters: { key: 'list' } } }],
      ['ark', 'b', {}],
    ] as const) {
      rules.push(await make(name, { pack, ...more }))
    }
  })
  afterAll(() => Promise.all(rules.map(remove)))

  const list = async (
    query: string,
    path = '/v1/rules',
  ): Promise<[refs: string[], total: string | null, limit: string | null]> => {
    const { status, body, headers, text } = await server.call<RuleAnswer[]>('GET', `${path}?${query}`)
    if (status !== 200) throw new Error(text)
    return [body.map(({ ref }) => ref), headers.get('x-total-count'), headers.get('x-limit')]
  }
  const all = ['ark.b', 'ark.c', 'zoo.a', 'zoo.b']

  it.each(['/v1/rules', '/v1/rules/views'])('%s: by pack and name, everything without a limit', async (path) => {
    expect(await list('', path)).toEqual([all, '4', null])
    expect(await list('limit=3&offset=2', path)).toEqual([['zoo.a', 'zoo.b'], '4', '3'])
    expect(await list('limit=-1', path)).toEqual([all, '4', null])
    expect(await list('sort=-name&nope=1', path)).toEqual([all, '4', null])
  })

  it.each([
    ['name=b', ['ark.b', 'zoo.b']],
    ['pack=zoo', ['zoo.a', 'zoo.b']],
    ['pack=zoo&name=b', ['zoo.b']],
    ['action=core.local', ['zoo.a']],
    ['trigger=shop.plain', ['ark.b', 'zoo.a', 'zoo.b']],
    ['trigger=shop.keyed', []],
    ['enabled=false', ['zoo.b']],
    ['enabled=0', ['zoo.b']],
    ['enabled=true', ['ark.b', 'ark.c', 'zoo.a']],
    ['enabled=1&pack=ark', ['ark.b', 'ark.c']],
    ['user=svc', all],
    ['user=nobody', []],
    ['name=&pack=', all],
  ])('filter %s', async (query, refs) => {
    expect(await list(query)).toEqual([refs, String(refs.length), null])
  })

  it('the trigger is its reference, which of a trigger with parameters is one of its own', async () => {
    expect((await list(`trigger=${rules[2]?.trigger.ref}`))[0]).toEqual(['ark.c'])
    expect((await list(`trigger=${rules[2]?.trigger.ref},shop.plain,shop.none&enabled=true`))[0]).toEqual(
      (await list('enabled=true'))[0].filter((ref) => ['ark.b', 'ark.c', 'zoo.a', 'zoo.b'].includes(ref)),
    )
    // Rules are bound to what has this reference, not this id.
    expect(
      (await list(`trigger=${(await server.call<{ id: string }[]>('GET', '/v1/triggers?name=plain')).body[0]?.id}`))[0],
    ).toEqual([])
  })

  it.each([
    'enabled=maybe',
    'limit=0',
    'limit=-2',
    'offset=-1',
    'include_attributes=nope',
    'exclude_attributes=ref',
    'include_attributes=ref&exclude_attributes=tags',
  ])('%s: 400', async (query) => {
    for (const path of ['/v1/rules', '/v1/rules/views'])
      expect((await server.call('GET', `${path}?${query}`)).status).toBe(400)
  })

  it('attributes', async () => {
    const { body } = await server.call<object[]>(
      'GET',
      '/v1/rules?include_attributes=action.ref,enabled&pack=ark&name=b',
    )
    const [rule] = rules.slice(3)
    expect(body).toEqual([
      { id: rule?.id, ref: 'ark.b', pack: 'ark', name: 'b', action: { ref: 'core.noop' }, enabled: true },
    ])
    const { body: without } = await server.call<object[]>('GET', '/v1/rules?exclude_attributes=criteria,action&name=c')
    expect(Object.keys(without[0] ?? {})).not.toEqual(expect.arrayContaining(['criteria']))
    expect(without[0]).not.toHaveProperty('action')
    expect(without[0]).toHaveProperty('trigger')
  })

  it('05.5 views add the descriptions of action and trigger', async () => {
    const { body } = await server.call<RuleAnswer>('GET', '/v1/rules/views/zoo.a')
    const { body: action } = await server.call<{ description: string }>('GET', '/v1/actions/core.local')
    expect(body).toEqual({
      ...rules[1],
      action: { ...rules[1]?.action, description: action.description },
      trigger: { ...rules[1]?.trigger, description: '' },
    })
    const { body: views } = await server.call<RuleAnswer[]>('GET', '/v1/rules/views?pack=zoo&name=a')
    expect(views).toEqual([body])
  })
})

describe('05.6 operators', () => {
  it('each can be used under each of its names, and search under each of its conditions', async () => {
    interface Operator {
      name: string
      aliases: string[]
      pattern: string
      conditions?: { name: string }[]
    }
    const { body, headers } = await server.call<Operator[]>('GET', '/v1/criteriaoperators')
    expect(headers.get('x-total-count')).toBe(String(body.length))
    const criteria = body.flatMap(({ name, aliases, pattern, conditions = [] }): object[] => {
      if (pattern !== 'criteria') return [name, ...aliases].map((type) => ({ type, pattern: '1' }))
      const items = { 'item.a': { type: 'eq', pattern: 1 } }
      return conditions.map(({ name: condition }) => ({ type: name, pattern: items, condition }))
    })
    const all = Object.fromEntries(criteria.map((criterion, i) => [`trigger.a#${i}`, criterion]))
    const made = await post({ ...minimal('everything'), criteria: all })
    expect([made.status, made.body.criteria]).toEqual([201, all])
    expect(body.length).toBeGreaterThan(20)
    await remove(made.body)
  })
})

describe('05.5 rule types', () => {
  it('standard and backstop', async () => {
    const { body, headers } = await server.call<{ id: string; name: string }[]>('GET', '/v1/ruletypes')
    expect(body.map(({ name }) => name)).toEqual(['standard', 'backstop'])
    expect(headers.get('x-total-count')).toBe('2')
    for (const type of body) {
      expect(type).toEqual({
        id: expect.stringMatching(idPattern),
        name: type.name,
        description: expect.any(String),
        enabled: true,
        parameters: {},
      })
      expect((await server.call('GET', `/v1/ruletypes/${type.id}`)).body).toEqual(type)
    }
    expect((await server.call('GET', `/v1/ruletypes/${unknownId}`)).status).toBe(404)
  })
})

describe('05.7 evaluation', () => {
  // What a failed test leaves would be enforced in the next one.
  afterEach(async () => {
    const { body } = await server.call<RuleAnswer[]>('GET', '/v1/rules')
    await Promise.all(body.map(remove))
  })

  const criteria = (value: number) => ({ 'trigger.n': { type: 'eq', pattern: value } })
  const refs = (enforcements: EnforcementAnswer[]): string[] => enforcements.map(({ rule }) => rule.ref)

  it('every enabled standard rule that matches; backstop rules when none does', async () => {
    const rules = [
      await make('s1', { criteria: criteria(1) }),
      await make('s2'),
      await make('s3', { criteria: criteria(2) }),
      await make('s4', { enabled: false }),
      await make('s5', { trigger: { type: 'shop.other' } }),
      await make('b1', { type: { ref: 'backstop' } }),
    ]
    expect(refs(await fire({ n: 1 }))).toEqual(['default.s1', 'default.s2'])
    await remove(rules[1] ?? { id: '' })
    expect(refs(await fire({ n: 2 }))).toEqual(['default.s3'])
    expect(refs(await fire({ n: 3 }))).toEqual(['default.b1'])
    await Promise.all(rules.map(remove))
    expect(refs(await fire({ n: 1 }))).toEqual([])
  })

  it('changes take effect at once', async () => {
    const rule = await make('quick', { criteria: criteria(1) })
    expect(await fire({ n: 2 })).toEqual([])
    await server.call('PUT', `/v1/rules/${rule.id}`, { ...rule, criteria: criteria(2) })
    expect([await fire({ n: 1 }), (await fire({ n: 2 })).length]).toEqual([[], 1])
    await server.call('PUT', `/v1/rules/${rule.id}`, { ...rule, enabled: false })
    expect(await fire({ n: 1 })).toEqual([])
    await remove(rule)
  })

  it('the execution: by the system user, with rule, trigger and instance in record and context; parameters rendered', async () => {
    const rule = await make('run', {
      action: {
        ref: 'core.local',
        parameters: { cmd: 'echo "{{ trigger.who }}, {{ trigger.list | length }}"', timeout: '{{ trigger.n }}' },
      },
    })
    const id = await dispatch({ who: 'you', list: [1, 2], n: 7 })
    const { body } = await server.call<EnforcementAnswer[]>('GET', `/v1/ruleenforcements?trigger_instance=${id}`)
    const [enforcement] = body
    if (enforcement === undefined) throw new Error('nothing was enforced')
    expect(body).toEqual([
      {
        id: expect.stringMatching(idPattern),
        trigger_instance_id: id,
        execution_id: expect.stringMatching(idPattern),
        rule: { id: rule.id, ref: 'default.run', uid: 'rule:default:run' },
        enforced_at: expect.stringMatching(timestampPattern),
        status: 'succeeded',
      },
    ])
    const execution = await executionOf(enforcement)
    expect(execution).toMatchObject({
      status: 'succeeded',
      parameters: { cmd: 'echo "you, 2"', timeout: 7 },
      result: { stdout: 'you, 2' },
      context: {
        user: 'svc',
        pack: 'core',
        rule: { id: rule.id, ref: 'default.run', name: 'run' },
        trigger_instance: { id, trigger: 'shop.plain' },
        trace_context: { id_: expect.stringMatching(idPattern), trace_tag: expect.any(String) },
      },
      rule: { id: rule.id, ref: 'default.run', name: 'run' },
      trigger: { ref: 'shop.plain' },
      trigger_type: { ref: 'shop.plain' },
      trigger_instance: { id },
    })
    await remove(rule)
  })

  it('templates read the datastore: svckv.system, svckv.user of the system user; what is missing is empty', async () => {
    await server.call('PUT', '/v1/keys/greeting', { name: 'greeting', value: 'hello' })
    await server.call('PUT', '/v1/keys/own', { name: 'own', value: 'mine', scope: 'svckv.user' })
    const cmd =
      'echo "{{ svckv.system.greeting }} {{ svckv.user.own }} [{{ svckv.system.none }}] {{ action_context.rule.name }}"'
    const rule = await make('reads', { action: { ref: 'core.local', parameters: { cmd } } })
    const [enforcement] = await fire({ a: 1 })
    if (enforcement === undefined) throw new Error('nothing was enforced')
    expect((await executionOf(enforcement)).result).toMatchObject({ stdout: 'hello mine [] reads' })
    await remove(rule)
  })

  it('a value of a payload that looks like a template stays text, through rule and action to the shell', async () => {
    const printed = { cmd: 'printf %s "$TEXT"', env: { TEXT: '{{ trigger.text }}' } }
    const local = await make('relay', { action: { ref: 'core.local', parameters: printed } })
    // Its command is a template itself, made of the message.
    const echo = await make('echo', { action: { ref: 'core.echo', parameters: { message: '{{ trigger.text }}' } } })
    for (const text of [
      '{{ 7 * 7 }}',
      '{% if 1 %}x{% endif %}',
      '{{ svckv.system.greeting }}',
      '{{ cmd }}',
      '{{ message }}',
    ]) {
      const executions = await Promise.all((await fire({ text })).map(executionOf))
      expect(executions.map(({ result }) => result['stdout'])).toEqual([text, text])
    }
    await Promise.all([remove(local), remove(echo)])
  })

  it.each<[string, object, RegExp, boolean]>([
    ['an action that does not exist', { ref: 'shop.nope' }, /^Action "shop\.nope" doesn't exist$/, false],
    ['parameters that are missing', { ref: 'core.local' }, /'cmd' is a required property/, false],
    ['parameters that are unknown', { ref: 'core.noop', parameters: { nope: 1 } }, /'nope' was unexpected/, false],
    [
      'a template that fails',
      { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.a.b.c }}' } },
      /^Failed to render parameter "cmd": /,
      true,
    ],
    [
      'a template that fails where its text could be no value',
      { ref: 'core.local', parameters: { cmd: 'true', timeout: '{{ trigger.a.b.c }}' } },
      /^Failed to render parameter "timeout": /,
      false,
    ],
  ])('%s: a failed enforcement', async (_, action, reason, leavesExecution) => {
    const rule = await make('failing', { action })
    const [enforcement, ...more] = await fire({ n: 1 })
    expect([enforcement, more]).toEqual([
      {
        id: expect.any(String),
        trigger_instance_id: expect.any(String),
        failure_reason: expect.stringMatching(reason),
        rule: { id: rule.id, ref: 'default.failing', uid: 'rule:default:failing' },
        enforced_at: expect.stringMatching(timestampPattern),
        status: 'failed',
      },
      [],
    ])
    const path = `/v1/executions?trigger_instance=${enforcement?.trigger_instance_id}`
    const { body: left } = await server.call<ExecutionAnswer[]>('GET', path)
    expect(left.map(({ status }) => status)).toEqual(leavesExecution ? ['failed'] : [])
    await remove(rule)
  })

  it.each<[string, object, RegExp]>([
    [
      'a comparison of two types',
      { 'trigger.n': { type: 'lt', pattern: 3 } },
      /There might be a problem with the criteria in rule default\.odd: /,
    ],
    [
      'a bad regular expression of the payload',
      { 'trigger.n': { type: 'regex', pattern: '({{ trigger.n }}' } },
      /There might be a problem with the criteria in rule default\.odd: /,
    ],
    [
      'a pattern that cannot be rendered',
      { 'trigger.n': { type: 'eq', pattern: '{{ trigger.a.b.c }}' } },
      /Failed to render pattern value/,
    ],
  ])('%s: no match and a failed enforcement', async (_, odd, reason) => {
    const rule = await make('odd', { criteria: odd })
    const [enforcement] = await fire({ n: 'text' })
    expect(enforcement).toMatchObject({ status: 'failed', failure_reason: expect.stringMatching(reason) as string })
    expect(enforcement?.failure_reason).toContain(
      `Failed to match rule "default.odd" against trigger instance "${enforcement?.trigger_instance_id}"`,
    )
    await remove(rule)
  })
})

describe('05.7 enforcements', () => {
  let one: RuleAnswer
  let two: RuleAnswer
  const made: EnforcementAnswer[] = []
  beforeAll(async () => {
    one = await make('counted', { action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.i }}' } } })
    two = await make('lost', { action: { ref: 'shop.nope' } })
    for (let i = 0; i < 3; i++) made.push(...(await fire({ i })))
  })
  afterAll(() => Promise.all([remove(one), remove(two)]))

  const list = async (query: string, path = '/v1/ruleenforcements') => {
    const { status, body, headers, text } = await server.call<EnforcementAnswer[]>('GET', `${path}?${query}`)
    if (status !== 200) throw new Error(text)
    return { ids: body.map(({ id }) => id), total: headers.get('x-total-count'), limit: headers.get('x-limit') }
  }
  const idsOf = (ref: string): string[] =>
    made
      .filter(({ rule }) => rule.ref === ref)
      .map(({ id }) => id)
      .toReversed()

  it.each(['/v1/ruleenforcements', '/v1/ruleenforcements/views'])(
    '%s: newest first, 50 of them, with their number',
    async (path) => {
      const { body: everything, headers } = await server.call<EnforcementAnswer[]>('GET', `${path}?limit=-1`)
      expect(headers.get('x-total-count')).toBe(String(everything.length))
      expect(everything.slice(0, 6).map(({ id }) => id)).toEqual(made.map(({ id }) => id).toReversed())
      const answer = await list('', path)
      expect([answer.limit, answer.total]).toEqual(['50', String(everything.length)])
      expect(await list('limit=2&offset=1', path)).toEqual({
        ids: everything.slice(1, 3).map(({ id }) => id),
        total: String(everything.length),
        limit: '2',
      })
    },
  )

  it('filters', async () => {
    const counted = idsOf('default.counted')
    const lost = idsOf('default.lost')
    const first = made[0]
    const third = made[2]
    for (const [query, ids] of [
      ['rule_ref=default.counted', counted],
      [`rule_id=${two.id}`, lost],
      [`rule_ref=default.counted&rule_id=${two.id}`, []],
      [`rule_ref=default.counted&rule_id=${one.id}`, counted],
      [`execution=${first?.execution_id}`, [first?.id]],
      [`execution=${first?.execution_id}&rule_ref=default.lost`, []],
      [`trigger_instance=${first?.trigger_instance_id}`, [lost.at(-1), counted.at(-1)]],
      [`trigger_instance=${first?.trigger_instance_id}&rule_ref=default.lost`, [lost.at(-1)]],
      [
        `trigger_instance=${first?.trigger_instance_id},${unknownId},${third?.trigger_instance_id}&rule_ref=default.lost`,
        [lost[1], lost[2]],
      ],
      ['rule_ref=default.counted&execution=null', []],
      ['rule_ref=default.lost&execution=NULL', lost],
      [`rule_ref=default.counted&enforced_at_gt=${first?.enforced_at}`, counted.slice(0, 2)],
      [`rule_ref=default.counted&enforced_at_lt=${third?.enforced_at}`, counted.slice(2)],
      [`enforced_at_gt=${first?.enforced_at}&enforced_at_lt=${third?.enforced_at}`, [made[1]?.id]],
      ['rule_ref=default.nope', []],
      ['execution=nope', []],
      [`trigger_instance=${unknownId}`, []],
    ] as const) {
      expect([query, await list(query)]).toEqual([query, { ids, total: String(ids.length), limit: '50' }])
    }
  })

  it('sort', async () => {
    const counted = idsOf('default.counted')
    const lost = idsOf('default.lost')
    const since = `enforced_at_gt=${made[0]?.enforced_at}`
    expect((await list('rule_ref=default.lost&sort=enforced_at')).ids).toEqual(lost.toReversed())
    expect((await list('rule_ref=default.lost&sort=-id')).ids).toEqual(lost)
    expect((await list(`${since}&sort=rule_ref`)).ids).toEqual([...counted.slice(0, 2), ...lost])
    expect((await list(`${since}&sort=-rule_ref,id,nope`)).ids).toEqual([
      ...lost.toReversed(),
      ...counted.slice(0, 2).toReversed(),
    ])
  })

  it.each(['enforced_at_gt=yesterday', 'enforced_at_lt=2020', 'limit=0', 'include_attributes=nope'])(
    '%s: 400',
    async (query) => {
      expect((await server.call('GET', `/v1/ruleenforcements?${query}`)).status).toBe(400)
    },
  )

  it('one, and its view with the trigger instance and parts of the execution', async () => {
    const [first, second] = made
    if (first === undefined || second === undefined) throw new Error('too few')
    expect((await server.call('GET', `/v1/ruleenforcements/${first.id}`)).body).toEqual(first)
    await executionOf(first)
    const { body: view } = await server.call<Record<string, unknown>>('GET', `/v1/ruleenforcements/views/${first.id}`)
    const { body: instance } = await server.call<Record<string, unknown>>(
      'GET',
      `/v1/triggerinstances/${first.trigger_instance_id}`,
    )
    expect(view).toEqual({
      ...first,
      trigger_instance: expect.objectContaining({
        id: instance['id'],
        trigger: 'shop.plain',
        payload: { i: 0 },
        status: 'processed',
      }),
      execution: {
        id: first.execution_id,
        status: 'succeeded',
        parameters: { cmd: 'echo 0' },
        action: { ref: 'core.local', parameters: expect.any(Object) },
        runner: expect.objectContaining({ name: 'local-shell-cmd' }),
      },
    })
    const { body: failed } = await server.call<Record<string, unknown>>(
      'GET',
      `/v1/ruleenforcements/views/${second.id}`,
    )
    expect(failed).toEqual({ ...second, trigger_instance: expect.any(Object) })
    const { body: listed } = await server.call<object[]>(
      'GET',
      `/v1/ruleenforcements/views?execution=${first.execution_id}`,
    )
    expect(listed).toEqual([view])
    const { body: some } = await server.call<object[]>(
      'GET',
      '/v1/ruleenforcements?rule_ref=default.lost&limit=1&include_attributes=status,rule.ref',
    )
    expect(some).toEqual([{ id: expect.any(String), status: 'failed', rule: { ref: 'default.lost' } }])
  })

  it('views of rules tell the newest one to who asks for it by name', async () => {
    interface View {
      ref: string
      last_enforcement?: (Omit<EnforcementAnswer, 'rule'> & { execution_status?: string }) | null
    }
    const views = async (query: string): Promise<View[]> =>
      (await server.call<View[]>('GET', `/v1/rules/views?${query}`)).body
    const asked = await views('include_attributes=last_enforcement')
    const newest = async (ref: string) =>
      (await server.call<EnforcementAnswer[]>('GET', `/v1/ruleenforcements?rule_ref=${ref}&limit=1`)).body[0]
    expect(asked.length).toBeGreaterThan(1)
    for (const { ref, last_enforcement: last } of asked) {
      const { rule: _, ...expected } = (await newest(ref)) ?? { rule: undefined }
      const status = last?.execution_id === undefined ? {} : { execution_status: 'succeeded' }
      expect([ref, last]).toEqual([ref, { ...expected, ...status }])
    }
    const rule = await make('idle', { enabled: false })
    expect(await views('name=idle&include_attributes=enabled,last_enforcement')).toEqual([
      { id: rule.id, ref: rule.ref, name: 'idle', pack: 'default', enabled: false, last_enforcement: null },
    ])
    for (const query of ['', 'exclude_attributes=tags']) {
      expect((await views(query)).filter((view) => 'last_enforcement' in view)).toEqual([])
    }
    expect((await server.call('GET', '/v1/rules?include_attributes=last_enforcement')).status).toBe(400)
    await remove(rule)
  })

  it('a view has the parts that are asked for', async () => {
    const [first] = made
    const { body } = await server.call<object[]>(
      'GET',
      `/v1/ruleenforcements/views?execution=${first?.execution_id}&include_attributes=status,execution.status`,
    )
    expect(body).toEqual([{ id: first?.id, status: 'succeeded', execution: { status: 'succeeded' } }])
  })

  it.each([unknownId, ...impossibleIds])('%s: 404', async (id) => {
    for (const path of [`/v1/ruleenforcements/${id}`, `/v1/ruleenforcements/views/${id}`]) {
      const { status, body } = await server.call<ErrorAnswer>('GET', path)
      expect([status, body.faultstring]).toEqual([
        404,
        expect.stringMatching(/^Unable to identify resource with id ".*"\.$/s),
      ])
    }
  })
})

describe('10.3 the audit log', () => {
  it('rules made, changed, deleted, enforced, and not enforced', async () => {
    const rule = await make('audited')
    const [good] = await fire({ a: 1 })
    await server.call('PUT', `/v1/rules/${rule.id}`, { ...rule, action: { ref: 'shop.nope' } })
    const [bad] = await fire({ a: 1 })
    await remove(rule)
    const recordsOf = (event: string) => auditRecords(server, event).filter((record) => record['_rule_id'] === rule.id)
    await waitFor('the last line', () => recordsOf('rule.deleted').length > 0)
    for (const event of ['rule.created', 'rule.updated', 'rule.deleted']) {
      expect(recordsOf(event)).toEqual([
        expect.objectContaining({
          _rule: 'default.audited',
          _user: 'svc',
          _remote_address: '127.0.0.1',
          _request_id: expect.any(String) as string,
        }),
      ])
    }
    expect(recordsOf('rule.enforced')).toEqual([
      expect.objectContaining({
        _rule_enforcement_id: good?.id,
        _execution_id: good?.execution_id,
        _trigger_instance_id: good?.trigger_instance_id,
      }),
    ])
    expect(recordsOf('rule.enforcement_failed')).toEqual([
      expect.objectContaining({ _rule_enforcement_id: bad?.id, _reason: `Action "shop.nope" doesn't exist` }),
    ])
  })
})

describe('05.9 a rule on the end of executions', () => {
  it('is enforced in the trace of the execution', async () => {
    const rule = await make('after', {
      trigger: { type: 'core.svc.generic.actiontrigger' },
      criteria: { 'trigger.action_ref': { type: 'eq', pattern: 'core.echo' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo "{{ trigger.status }} {{ trigger.result.stdout }}"' } },
    })
    const first = await runToEnd(server, { message: 'done' }, { action: 'core.echo' })
    const { id } = await waitFor('the second', async () => {
      const { body } = await server.call<{ id: string }[]>('GET', '/v1/executions?rule=after')
      return body[0]
    })
    expect((await waitForStatus(server, id)).result).toMatchObject({ stdout: 'succeeded done' })
    const traces = await Promise.all(
      [first.id, id].map((execution) => server.call<{ id: string }[]>('GET', `/v1/traces?execution=${execution}`)),
    )
    expect(traces.map(({ body }) => body.map((trace) => trace.id))).toEqual([
      [expect.any(String)],
      traces[0]?.body.map((trace) => trace.id),
    ])
    await remove(rule)
  })
})
