/** Hostile input on the endpoints of rules: SQL, prototypes, paths; nothing of it does more than be refused or be data. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { rowsOf, send, type ErrorAnswer } from './support.ts'

let server: TestApp
let ruleId: string
const rule = { name: 'known', trigger: { type: 'core.svc.generic.inquiry' }, action: { ref: 'core.noop' } }

beforeAll(async () => {
  server = await createTestApp()
  const { status, body, text } = await server.call<{ id: string }>('POST', '/v1/rules', rule)
  if (status !== 201) throw new Error(text)
  ruleId = body.id
})
afterAll(async () => {
  await server.stop()
})

const countRules = (): number => rowsOf<{ n: number }>(server, 'select count(*) as n from rules')[0]?.n ?? -1

const injections = [
  `' or 1=1 --`,
  `" or ""="`,
  `'; drop table rules; --`,
  `known' union select record from rules --`,
  `%' or '1'='1`,
  `1; select * from sqlite_master`,
  `\\'; delete from rule_enforcements; --`,
  `known\u0000' or 1=1`,
  `x' || (select record from rules limit 1) || '`,
]

describe('SQL', () => {
  const lists: [path: string, filters: string[]][] = [
    ['/v1/rules', ['name', 'pack', 'action', 'trigger', 'user']],
    ['/v1/rules/views', ['name', 'pack', 'action', 'trigger', 'user']],
    ['/v1/ruleenforcements', ['rule_ref', 'rule_id', 'execution', 'trigger_instance']],
    ['/v1/ruleenforcements/views', ['rule_ref', 'rule_id', 'execution', 'trigger_instance']],
  ]

  it.each(lists)('%s: filters match nothing', async (path, filters) => {
    for (const filter of filters) {
      for (const text of injections) {
        const { status, body, headers } = await server.call<object[]>(
          'GET',
          `${path}?${filter}=${encodeURIComponent(text)}`,
        )
        expect([filter, text, status, body, headers.get('x-total-count')]).toEqual([filter, text, 200, [], '0'])
      }
    }
    expect(countRules()).toBe(1)
  })

  it.each(lists)('%s: sort, limits, times and attributes are no SQL', async (path) => {
    for (const text of injections) {
      const value = encodeURIComponent(text)
      expect((await server.call('GET', `${path}?sort=${value},-${value}`)).status).toBe(200)
      for (const name of ['limit', 'offset', 'enabled', 'enforced_at_gt', 'include_attributes', 'exclude_attributes']) {
        const isDeclared =
          !(name === 'enabled' && path.includes('enforcements')) &&
          !(name === 'enforced_at_gt' && path.includes('/rules'))
        expect([name, (await server.call('GET', `${path}?${name}=${value}`)).status]).toEqual([
          name,
          isDeclared ? 400 : 200,
        ])
      }
    }
    expect(countRules()).toBe(1)
  })

  it('in references and ids: not found', async () => {
    for (const text of injections.filter((one) => !one.includes('\0'))) {
      const name = encodeURIComponent(text)
      for (const [method, path] of [
        ['GET', `/v1/rules/${name}`],
        ['GET', `/v1/rules/views/${name}`],
        ['PUT', `/v1/rules/${name}`],
        ['DELETE', `/v1/rules/${name}`],
        ['GET', `/v1/ruletypes/${name}`],
        ['GET', `/v1/ruleenforcements/${name}`],
        ['GET', `/v1/ruleenforcements/views/${name}`],
        ['GET', `/v1/triggerinstances/${name}/explain`],
      ] as const) {
        const { status } = await server.call(method, path, method === 'PUT' ? rule : undefined)
        expect([method, path, status]).toEqual([method, path, 404])
      }
    }
    expect(countRules()).toBe(1)
  })

  it('in a rule it is refused as a pack, and kept as data elsewhere', async () => {
    for (const text of injections) {
      expect((await server.call('POST', '/v1/rules', { ...rule, pack: text })).status).toBe(400)
      const named = await server.call<{ id: string; name: string }>('POST', '/v1/rules', { ...rule, name: text })
      // What no file can be called is no name.
      if (named.status === 400) continue
      expect([named.status, named.body.name]).toEqual([201, text])
      expect((await server.call('DELETE', `/v1/rules/${named.body.id}`)).status).toBe(204)
    }
    const data = {
      description: injections.join(' '),
      action: { ref: `core.'; drop table rules; --`, parameters: { cmd: injections } },
      criteria: Object.fromEntries(
        injections.slice(0, 1).map((text) => [`trigger['${text.replaceAll("'", '')}']`, { type: 'eq', pattern: text }]),
      ),
      tags: injections.map((text) => ({ name: text, value: text })),
    }
    const { status, body, text } = await server.call<{ id: string }>('POST', '/v1/rules', {
      ...rule,
      ...data,
      name: 'hostile',
    })
    expect([status, text]).toEqual([201, text])
    expect((await server.call('GET', `/v1/rules/${body.id}`)).body).toMatchObject(data)
    expect((await server.call('DELETE', `/v1/rules/${body.id}`)).status).toBe(204)
  })
})

describe('prototypes', () => {
  const targets = (): [string, string][] => [
    ['POST', '/v1/rules'],
    ['PUT', `/v1/rules/${ruleId}`],
    ['POST', '/v1/rules/test'],
  ]

  it.each([
    [
      'at the top',
      `{"name": "p", "trigger": {"type": "a.b"}, "action": {"ref": "a.b"}, "__proto__": {"enabled": true}}`,
    ],
    [
      'in action parameters',
      `{"name": "p", "trigger": {"type": "a.b"}, "action": {"ref": "a.b", "parameters": {"__proto__": {"x": 1}}}}`,
    ],
    [
      'in trigger parameters',
      `{"name": "p", "trigger": {"type": "a.b", "parameters": {"__proto__": {"x": 1}}}, "action": {"ref": "a.b"}}`,
    ],
    [
      'as a criterion',
      `{"name": "p", "trigger": {"type": "a.b"}, "action": {"ref": "a.b"}, "criteria": {"__proto__": {"type": "eq", "pattern": 1}}}`,
    ],
    [
      'in a pattern',
      `{"name": "p", "trigger": {"type": "a.b"}, "action": {"ref": "a.b"}, "criteria": {"trigger.a": {"type": "eq", "pattern": {"__proto__": 1}}}}`,
    ],
    ['escaped', String.raw`{"name": "p", "trigger": {"type": "a.b"}, "action": {"ref": "a.b"}, "\u005f_proto__": {}}`],
    [
      'in a rule to be tried',
      `{"rule": {"name": "p", "__proto__": {}}, "trigger_instance": {"trigger": "a.b", "payload": {"__proto__": {"a": 1}}}}`,
    ],
  ])('__proto__ %s: 400', async (_, body) => {
    const before = countRules()
    for (const [method, path] of targets()) {
      const answer = await send(server.urls.api, {
        method,
        path,
        headers: { 'Content-Type': 'application/json' },
        body,
      })
      const { faultstring } = JSON.parse(answer.text) as ErrorAnswer
      expect([method, path, answer.status, faultstring.length < 500]).toEqual([method, path, 400, true])
    }
    expect(countRules()).toBe(before)
  })

  it.each(['constructor', 'toString', 'hasOwnProperty', 'prototype', 'valueOf', '__defineGetter__'])(
    '%s is a name like others',
    async (name) => {
      const test = (criteria: object, payload: object) =>
        server.call<{ matches: boolean; parameters: object }>('POST', '/v1/rules/test', {
          rule: {
            ...rule,
            criteria,
            action: {
              ref: 'core.local',
              parameters: { cmd: 'true', env: { [name]: `{{ trigger['${name}'] | default('none') }}` } },
            },
          },
          trigger_instance: { trigger: 'core.svc.generic.inquiry', payload },
        })
      const missing = { [`trigger['${name}']`]: { type: 'nexists', pattern: 1 } }
      const { body: without } = await test(missing, { a: 1 })
      expect(without).toMatchObject({ matches: true, parameters: { env: { [name]: 'none' } } })
      const { body: withOne } = await test({ [`trigger['${name}']`]: { type: 'eq', pattern: 'x' } }, { [name]: 'x' })
      expect(withOne).toMatchObject({ matches: true, parameters: { env: { [name]: 'x' } } })
      for (const path of ['/v1/rules', '/v1/ruleenforcements']) {
        expect((await server.call('GET', `${path}?sort=${name}`)).status).toBe(200)
        expect((await server.call('GET', `${path}?include_attributes=${name}`)).status).toBe(400)
        expect((await server.call('GET', `${path}?${name}=1`)).status).toBe(200)
      }
    },
  )
})

describe('paths', () => {
  it.each([
    ['/v1/rules/..%2f..%2f..%2fetc%2fpasswd', 404],
    ['/v1/rules/%2e%2e%2fdefault.known', 404],
    ['/v1/rules/views/..%2fdefault.known', 404],
    ['/v1/rules/default.known%00', 404],
    ['/v1/rules/default.known%0d%0aX-Evil:%201', 404],
    ['/v1/rules/default.known/', 200],
    ['/v1/rules//default.known', 404],
    ['/v1/rules/DEFAULT.KNOWN', 404],
    ['/v1/rules/%ff', 400],
    ['/v1/rules/%', 400],
    [`/v1/rules/${'a'.repeat(5000)}`, 404],
    ['/v1/rules/%F0%9F%98%80', 404],
    ['/v1/rules/__proto__', 404],
    ['/v1/rules/test', 405],
    ['/v1/ruletypes/..%2fstandard', 404],
    ['/v1/ruleenforcements/views%2f', 404],
    ['/v1/ruleenforcements/%c0%ae%c0%ae', 400],
    ['/v1/triggerinstances/last/explain', 404],
    ['/v1/triggerinstances/..%2f..%2fetc/explain', 404],
  ])('%s → %i', async (path, status) => {
    const answer = await send(server.urls.api, { path })
    expect([answer.status, answer.headers['x-evil']]).toEqual([status, undefined])
    const { faultstring = '' } = JSON.parse(answer.text) as Partial<ErrorAnswer>
    expect(faultstring.length).toBeLessThan(500)
  })
})

describe('too much', () => {
  const many = (count: number): Record<string, object> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`trigger.a${i}`, { type: 'eq', pattern: i }]))

  it.each<[string, object]>([
    ['a long name', { name: 'n'.repeat(256) }],
    ['a long pack', { pack: 'p'.repeat(256) }],
    ['a long description', { description: 'd'.repeat(65_537) }],
    ['many criteria', { criteria: many(501) }],
    ['a pattern without end', { criteria: { 'trigger.a': { type: 'eq', pattern: 'x'.repeat(300_000) } } }],
    ['a long reference of an action', { action: { ref: `core.${'a'.repeat(600)}` } }],
    ['many tags', { tags: Array.from({ length: 101 }, () => ({ name: 'a', value: 'b' })) }],
  ])('%s: 400', async (_, more) => {
    const { status, body } = await server.call<ErrorAnswer>('POST', '/v1/rules', { ...rule, name: 'much', ...more })
    expect([status, body.faultstring.length < 1000]).toEqual([400, true])
    expect(countRules()).toBe(1)
  })

  it('as many criteria as are allowed are evaluated', async () => {
    const criteria = many(500)
    const payload = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`a${i}`, i]))
    const instance = { trigger: 'core.svc.generic.inquiry', payload }
    const { body } = await server.call<{ matches: boolean }>('POST', '/v1/rules/test', {
      rule: { ...rule, criteria },
      trigger_instance: instance,
    })
    expect(body).toMatchObject({ matches: true })
  })

  it('a regular expression made to take forever does not', async () => {
    const criteria = { 'trigger.a': { type: 'regex', pattern: '^(a+)+$' } }
    const instance = { trigger: 'core.svc.generic.inquiry', payload: { a: `${'a'.repeat(50_000)}!` } }
    const { status, body } = await server.call<{ matches: boolean }>('POST', '/v1/rules/test', {
      rule: { ...rule, criteria },
      trigger_instance: instance,
    })
    expect([status, body.matches]).toEqual([200, false])
  })
})

it('after all of it the database is whole, and nothing went wrong in the server', () => {
  expect(rowsOf(server, 'pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
  expect(server.log()).not.toContain('request.failed')
})
