/** Contract 05, 5.1–5.4 and 5.9 (ActionTrigger, notifications); 02, 2.12. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { runToEnd, waitForStatus, type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  auditRecords,
  idPattern,
  impossibleIds,
  rowsOf,
  timestampPattern,
  unknownId,
  type ErrorAnswer,
} from './support.ts'

interface TriggerType {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  payload_schema: object
  parameters_schema: object
  tags: object[]
  metadata_file?: string
}

interface Trigger {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  type: string
  description: string
  parameters: Record<string, unknown>
}

interface Instance {
  id: string
  trigger: string
  trigger_type: string
  payload: Record<string, unknown>
  occurrence_time: string
  status: string
  trace_id: string
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const get = <T>(path: string): Promise<Answer<T>> => server.call<T>('GET', `/v1${path}`)
const post = <T>(path: string, body: unknown = {}): Promise<Answer<T>> => server.call<T>('POST', `/v1${path}`, body)
const put = <T>(path: string, body: unknown): Promise<Answer<T>> => server.call<T>('PUT', `/v1${path}`, body)
const remove = (path: string): Promise<Answer<ErrorAnswer>> => server.call<ErrorAnswer>('DELETE', `/v1${path}`)
const total = ({ headers }: Answer<unknown>): number => Number(headers.get('x-total-count'))

let made = 0
const freshName = (): string => `event${++made}`

async function makeType(more: Record<string, unknown> = {}): Promise<TriggerType> {
  const answer = await post<TriggerType>('/triggertypes', { name: freshName(), pack: 'mine', ...more })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}

async function makeRule(trigger: Record<string, unknown>): Promise<{ id: string }> {
  const answer = await post<{ id: string }>('/rules', {
    name: freshName(),
    pack: 'mine',
    enabled: true,
    trigger,
    action: { ref: 'core.noop' },
  })
  if (answer.status !== 201) throw new Error(answer.text)
  return answer.body
}

/** By the generic webhook. */
async function dispatch(trigger: string, payload: object): Promise<Instance> {
  const answer = await post('/webhooks/svc', { trigger, payload })
  if (answer.status !== 202) throw new Error(answer.text)
  const { body } = await get<Instance>(`/triggerinstances/${answer.headers.get('svc-trigger-instance-id') ?? ''}`)
  return body
}

const withUrl = {
  type: 'object',
  properties: { url: { type: 'string', required: true }, token: { type: 'string', secret: true } },
  additionalProperties: false,
}

describe('5.1 trigger types', () => {
  it('POST: 201 with every field and its default', async () => {
    const { status, body } = await post<TriggerType>('/triggertypes', { name: 'bare' })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(idPattern) as string,
      uid: 'trigger_type:default:bare',
      ref: 'default.bare',
      name: 'bare',
      pack: 'default',
      description: '',
      payload_schema: {},
      parameters_schema: {},
      tags: [],
    })
    expect((await get(`/triggertypes/${body.id}`)).body).toEqual(body)
    expect((await get('/triggertypes/default.bare')).body).toEqual(body)
  })

  it('POST: what is given is kept; a name may hold dots; unknown properties are ignored', async () => {
    const given = {
      name: 'order.paid',
      pack: 'mine',
      description: 'Somebody has paid.',
      payload_schema: { type: 'object', properties: { id: { type: 'integer' } } },
      parameters_schema: withUrl,
      tags: [{ name: 'colour', value: 'blue' }],
      metadata_file: 'triggers/order.yaml',
    }
    const { status, body } = await post<TriggerType>('/triggertypes', { ...given, more: 1, id: unknownId, uid: 'x' })
    expect(status).toBe(201)
    expect(body).toEqual({
      ...given,
      id: expect.stringMatching(idPattern) as string,
      uid: 'trigger_type:mine:order.paid',
      ref: 'mine.order.paid',
    })
    expect(body.id).not.toBe(unknownId)
  })

  it.each<[unknown, string]>([
    [{}, "'name' is a required property"],
    [{ name: 5 }, "name: 5 is not of type 'string'"],
    [{ name: '' }, "name: '' does not match"],
    [{ name: 'a/b' }, "name: 'a/b' does not match"],
    [{ name: 'x', pack: 'Big' }, "pack: 'Big' does not match"],
    [{ name: 'x', pack: '../x' }, 'pack'],
    [{ name: 'x', pack: 'core' }, 'core'],
    [{ name: 'x', payload_schema: [] }, "payload_schema: [] is not of type 'object', 'null'"],
    [{ name: 'x', payload_schema: { type: 'dict' } }, 'dict'],
    [{ name: 'x', parameters_schema: { properties: { a: { pattern: '(' } } } }, 'pattern'],
    [{ name: 'x', parameters_schema: { properties: { a: { $ref: '#' } } } }, '$ref'],
    [{ name: 'x', tags: 'blue' }, 'tags'],
    [[], 'object'],
  ])('POST %j → 400', async (body, text) => {
    const answer = await post<ErrorAnswer>('/triggertypes', body)
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining(text)])
    expect(
      rowsOf(server, `select * from trigger_types where ref like '%.x' or ref in ('default.a b', 'default.')`),
    ).toEqual([])
  })

  it('POST: a second of the name → 409 with the id of the first', async () => {
    const type = await makeType()
    const answer = await post<ErrorAnswer & { 'conflict-id': string }>('/triggertypes', {
      name: type.name,
      pack: 'mine',
    })
    expect(answer.status).toBe(409)
    expect(answer.body.faultstring).toContain(type.ref)
    expect(answer.body['conflict-id']).toBe(type.id)
    expect((await post('/triggertypes', { name: type.name, pack: 'other' })).status).toBe(201)
  })

  it('many POSTs of one name at once: one is made', async () => {
    const name = freshName()
    const answers = await Promise.all(Array.from({ length: 10 }, () => post('/triggertypes', { name })))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    expect(statuses.filter((status) => status === 409)).toHaveLength(9)
    expect((await get<Trigger[]>(`/triggers?name=${name}`)).body).toHaveLength(1)
  })

  it('GET one: by id and reference; unknown → 404', async () => {
    expect((await get<TriggerType>('/triggertypes/core.svc.webhook')).body).toMatchObject({
      uid: 'trigger_type:core:svc.webhook',
      name: 'svc.webhook',
      pack: 'core',
    })
    for (const id of [unknownId, 'core.nothing', 'core', ...impossibleIds, '__proto__', 'constructor']) {
      const { status, body } = await get<ErrorAnswer>(`/triggertypes/${id}`)
      expect([id, status]).toEqual([id, 404])
      expect(body.faultstring).toContain('reference or id')
    }
  })

  it('GET list: filters, paging, order, attributes', async () => {
    const pack = freshName()
    const names = ['b', 'a', 'c']
    for (const name of names) await post('/triggertypes', { name, pack })
    const list = async (query: string): Promise<string[]> =>
      (await get<TriggerType[]>(`/triggertypes?${query}`)).body.map(({ name }) => name)
    expect(await list(`pack=${pack}`)).toEqual(['a', 'b', 'c'])
    expect(await list(`pack=${pack}&sort=-name`)).toEqual(['c', 'b', 'a'])
    expect(await list(`pack=${pack}&sort=id`)).toEqual(names)
    expect(await list(`pack=${pack}&name=b`)).toEqual(['b'])
    expect(await list(`pack=${pack}&name=B`)).toEqual([])
    expect(await list(`pack=${pack}&limit=1&offset=1`)).toEqual(['b'])
    const page = await get<TriggerType[]>(`/triggertypes?pack=${pack}&limit=2`)
    expect([total(page), page.headers.get('x-limit')]).toEqual([3, '2'])
    const all = await get<TriggerType[]>('/triggertypes?limit=-1')
    expect(all.body).toHaveLength(total(all))
    expect(all.headers.get('x-limit')).toBeNull()
    expect((await get('/triggertypes')).headers.get('x-limit')).toBe('100')

    const [some] = (await get<TriggerType[]>(`/triggertypes?pack=${pack}&include_attributes=payload_schema`)).body
    expect(Object.keys(some ?? {}).sort()).toEqual(['id', 'name', 'pack', 'payload_schema', 'ref'])
    const [others] = (await get<TriggerType[]>(`/triggertypes?pack=${pack}&exclude_attributes=payload_schema,tags`))
      .body
    expect(others).not.toHaveProperty('payload_schema')
    expect(others).toHaveProperty('parameters_schema')
    for (const query of ['limit=0', 'limit=-2', 'offset=-1', 'include_attributes=nothing', 'exclude_attributes=id']) {
      expect([query, (await get(`/triggertypes?${query}`)).status]).toEqual([query, 400])
    }
  })

  it('PUT: replaces everything but the id, which the address decides', async () => {
    const type = await makeType({ description: 'old', tags: [{ name: 'a', value: 'b' }] })
    const change = { name: type.name, pack: 'mine', description: 'new', payload_schema: { type: 'object' } }
    const { status, body } = await put<TriggerType>(`/triggertypes/${type.ref}`, { ...change, id: unknownId })
    expect(status).toBe(200)
    expect(body).toEqual({ ...type, ...change, tags: [] })
    expect((await get(`/triggertypes/${type.id}`)).body).toEqual(body)
    expect((await put(`/triggertypes/${type.id}`, {})).body).toEqual({ ...type, description: '', tags: [] })
    expect((await get<Trigger[]>(`/triggers?name=${type.name}`)).body).toMatchObject([{ description: '' }])
  })

  it('PUT: renamed, its trigger goes with it', async () => {
    const type = await makeType()
    const name = freshName()
    const { status, body } = await put<TriggerType>(`/triggertypes/${type.id}`, { name, pack: 'other' })
    expect([status, body.ref, body.id]).toEqual([200, `other.${name}`, type.id])
    expect((await get(`/triggertypes/${type.ref}`)).status).toBe(404)
    expect((await get<Trigger[]>(`/triggers?type=${type.ref}`)).body).toEqual([])
    expect((await get<Trigger[]>(`/triggers?type=other.${name}`)).body).toMatchObject([{ ref: `other.${name}` }])
    const taken = await makeType()
    expect((await put(`/triggertypes/${type.id}`, { name: taken.name, pack: 'mine' })).status).toBe(409)
  })

  it('PUT: with and without parameters', async () => {
    const type = await makeType()
    const triggers = async () => (await get<Trigger[]>(`/triggers?type=${type.ref}`)).body
    expect(await triggers()).toHaveLength(1)
    await put(`/triggertypes/${type.id}`, { parameters_schema: withUrl })
    expect(await triggers()).toEqual([])
    await put(`/triggertypes/${type.id}`, {})
    expect(await triggers()).toMatchObject([{ ref: type.ref, parameters: {} }])
  })

  it.each([
    ['PUT', '/triggertypes/core.svc.webhook', { description: 'mine' }],
    ['PUT', '/triggertypes/core.svc.webhook', { name: 'svc.webhook', pack: 'mine' }],
    ['DELETE', '/triggertypes/core.svc.webhook', undefined],
    ['DELETE', '/triggertypes/core.svc.generic.actiontrigger', undefined],
  ])('%s %s → 400: the pack core is fixed', async (method, path, body) => {
    const answer = await server.call<ErrorAnswer>(method, `/v1${path}`, body)
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining('core')])
    expect((await get<TriggerType>(path)).body.description).not.toBe('mine')
  })

  it('PUT into the pack core → 400; of an unknown one → 404; wrong → 400', async () => {
    const type = await makeType()
    expect((await put(`/triggertypes/${type.id}`, { name: 'x', pack: 'core' })).status).toBe(400)
    expect((await put(`/triggertypes/${unknownId}`, { name: 'x' })).status).toBe(404)
    expect((await put(`/triggertypes/${type.id}`, { name: 5 })).status).toBe(400)
    expect((await put(`/triggertypes/${type.id}`, { payload_schema: { type: 'dict' } })).status).toBe(400)
    expect((await get(`/triggertypes/${type.id}`)).body).toEqual(type)
  })

  it('DELETE: 204, its trigger is gone too', async () => {
    const type = await makeType()
    const answer = await remove(`/triggertypes/${type.ref}`)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect((await get(`/triggertypes/${type.id}`)).status).toBe(404)
    expect((await get<Trigger[]>(`/triggers?type=${type.ref}`)).body).toEqual([])
    expect((await remove(`/triggertypes/${type.ref}`)).status).toBe(404)
  })

  it('a type that rules use: its description may change, it cannot go', async () => {
    const type = await makeType()
    const rule = await makeRule({ type: type.ref })
    const path = `/triggertypes/${type.id}`
    for (const [what, answer] of [
      ['deleted', await remove(path)],
      ['renamed', await put<ErrorAnswer>(path, { name: freshName() })],
      ['given parameters', await put<ErrorAnswer>(path, { parameters_schema: withUrl })],
    ] as const) {
      expect([what, answer.status, answer.body.faultstring]).toEqual([what, 409, expect.stringContaining('a rule')])
    }
    expect((await put(path, { description: 'new', payload_schema: { type: 'object' } })).status).toBe(200)
    await remove(`/rules/${rule.id}`)
    expect((await remove(path)).status).toBe(204)
  })

  it('changes are audited', async () => {
    const type = await makeType()
    await put(`/triggertypes/${type.id}`, { description: 'new' })
    await remove(`/triggertypes/${type.id}`)
    const events = await waitFor('the audit lines', () => {
      const found = ['created', 'updated', 'deleted'].flatMap((what) =>
        auditRecords(server, `trigger_type.${what}`).filter((record) => record['_trigger_type'] === type.ref),
      )
      return found.length === 3 && found
    })
    expect(events.every((record) => record['_user'] !== undefined && record['_request_id'] !== undefined)).toBe(true)
  })
})

describe('5.2 triggers', () => {
  it('a type without parameters has one of its own name', async () => {
    const type = await makeType({ description: 'About it.' })
    const { body } = await get<Trigger[]>(`/triggers?type=${type.ref}`)
    expect(body).toEqual([
      {
        id: expect.stringMatching(idPattern) as string,
        uid: `trigger:mine:${type.name}:${createHash('md5').update('{}').digest('hex')}`,
        ref: type.ref,
        name: type.name,
        pack: 'mine',
        type: type.ref,
        description: 'About it.',
        parameters: {},
      },
    ])
    expect((await get(`/triggers/${body[0]?.id ?? ''}`)).body).toEqual(body[0])
    expect((await get(`/triggers/${type.ref}`)).status).toBe(404)
  })

  it('GET list: not paged, in the order in which they were made', async () => {
    const all = await get<Trigger[]>('/triggers?limit=1')
    expect(all.body.length).toBeGreaterThan(10)
    expect(all.body).toHaveLength(total(all))
    expect(all.headers.get('x-limit')).toBeNull()
    const ids = all.body.map(({ id }) => id)
    expect(ids).toEqual([...ids].sort())
    expect(all.body.map(({ ref }) => ref)).toContain('core.svc.generic.actiontrigger')
    const [first, second] = all.body
    const some = await get<Trigger[]>(`/triggers?ref=${second?.ref},mine.none,${first?.ref}`)
    expect([some.body, total(some)]).toEqual([[first, second], 2])
    expect((await get<Trigger[]>(`/triggers?ref=${first?.ref}&type=mine.none`)).body).toEqual([])
    expect((await get(`/triggers?ref=${Array.from({ length: 101 }, (_, n) => `a.b${n}`).join()}`)).status).toBe(400)
  })

  it('GET, PUT, DELETE of an unknown one → 404', async () => {
    for (const id of [unknownId, ...impossibleIds, 'core.svc.webhook']) {
      const answers = [
        await get<ErrorAnswer>(`/triggers/${id}`),
        await put<ErrorAnswer>(`/triggers/${id}`, {}),
        await remove(`/triggers/${id}`),
      ]
      expect([id, ...answers.map(({ status }) => status)]).toEqual([id, 404, 404, 404])
      expect(answers[0]?.body.faultstring).toContain('Unable to identify resource with id')
    }
  })

  it('POST: 201; an existing pack and name answers the existing record', async () => {
    const type = await makeType({ parameters_schema: withUrl })
    const given = { name: freshName(), pack: 'mine', type: type.ref, parameters: { url: 'a' }, description: 'd' }
    const { status, body } = await post<Trigger>('/triggers', given)
    expect(status).toBe(201)
    const md5 = createHash('md5').update('{"url":"a"}').digest('hex')
    expect(body).toEqual({
      ...given,
      id: expect.stringMatching(idPattern) as string,
      ref: `mine.${given.name}`,
      uid: `trigger:mine:${given.name}:${md5}`,
    })
    const again = await post<Trigger>('/triggers', { ...given, parameters: { url: 'b' }, description: 'other' })
    expect([again.status, again.body]).toEqual([201, body])
    const shadow = await makeType()
    expect(
      (await post<Trigger>('/triggers', { name: shadow.name, pack: 'mine', type: shadow.ref })).body,
    ).toMatchObject({
      ref: shadow.ref,
    })
  })

  it('POST without a name: a random one, and the same for the same parameters', async () => {
    const type = await makeType({ parameters_schema: withUrl })
    const { body } = await post<Trigger>('/triggers', { type: type.ref, parameters: { url: 'a' } })
    expect(body.name).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    expect([body.pack, body.ref]).toEqual(['mine', `mine.${body.name}`])
    expect((await post('/triggers', { type: type.ref, parameters: { url: 'a' } })).body).toEqual(body)
    const other = await post<ErrorAnswer>('/triggers', { name: 'else', type: type.ref, parameters: { url: 'a' } })
    expect([other.status, other.body.faultstring]).toEqual([409, expect.stringContaining(body.ref)])
  })

  it.each<[Record<string, unknown>, string]>([
    [{}, "'type' is a required property"],
    [{ type: 'mine.nothing' }, 'mine.nothing'],
    [{ type: '__proto__' }, '__proto__'],
    [{ type: 'core.svc.webhook' }, "'url' is a required property"],
    [{ type: 'core.svc.webhook', parameters: { url: 'x', other: 1 } }, "('other' was unexpected)"],
    [{ type: 'core.svc.webhook', parameters: { url: ['x'] } }, 'url'],
    [{ type: 'core.svc.CronTimer', parameters: { hour: 'noon' } }, 'hour'],
    [{ type: 'core.svc.IntervalTimer', parameters: { unit: 'eons', delta: 1 } }, 'eons'],
    [{ type: 'core.svc.generic.actiontrigger', parameters: { x: 1 } }, "('x' was unexpected)"],
    [{ type: 'core.svc.webhook', parameters: { url: 'x' }, name: 'a/b' }, 'name'],
  ])('POST %j → 400', async (body, text) => {
    const answer = await post<ErrorAnswer>('/triggers', body)
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining(text)])
  })

  it('PUT: parameters, description and name of one that no rule uses', async () => {
    const type = await makeType({ parameters_schema: withUrl })
    const { body: before } = await post<Trigger>('/triggers', { type: type.ref, parameters: { url: 'a' } })
    const name = freshName()
    const { status, body } = await put<Trigger>(`/triggers/${before.id}`, {
      ...before,
      name,
      parameters: { url: 'b' },
      description: 'new',
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: before.id, ref: `mine.${name}`, parameters: { url: 'b' }, description: 'new' })
    expect(body.uid).not.toBe(before.uid)
    expect((await get(`/triggers/${before.id}`)).body).toEqual(body)
    expect((await put(`/triggers/${before.id}`, { parameters: {} })).status).toBe(400)
    expect((await put(`/triggers/${before.id}`, { type: 'core.svc.webhook' })).status).toBe(400)
    const { body: other } = await post<Trigger>('/triggers', { type: type.ref, parameters: { url: 'c' } })
    expect((await put(`/triggers/${before.id}`, { parameters: { url: 'c' } })).status).toBe(409)
    expect((await put(`/triggers/${before.id}`, { name: other.name })).status).toBe(409)
    expect((await remove(`/triggers/${before.id}`)).status).toBe(204)
    expect((await get(`/triggers/${before.id}`)).status).toBe(404)
  })

  it('the trigger of a type stays with it', async () => {
    const type = await makeType()
    const [trigger] = (await get<Trigger[]>(`/triggers?type=${type.ref}`)).body
    expect((await remove(`/triggers/${trigger?.id ?? ''}`)).status).toBe(409)
    expect((await put(`/triggers/${trigger?.id ?? ''}`, { name: freshName() })).status).toBe(409)
    expect((await put<Trigger>(`/triggers/${trigger?.id ?? ''}`, { description: 'new' })).body.description).toBe('new')
  })

  it('rules with equal parameters share one, which goes with the last of them', async () => {
    const type = await makeType({ parameters_schema: withUrl })
    const rules = [
      await makeRule({ type: type.ref, parameters: { url: 'a' } }),
      await makeRule({ type: type.ref, parameters: { url: 'a' } }),
    ]
    const triggers = async () => (await get<Trigger[]>(`/triggers?type=${type.ref}`)).body
    const [shared, ...others] = await triggers()
    expect(others).toEqual([])
    expect(shared?.ref).toMatch(/^mine\.[0-9a-f-]{36}$/)
    const refused = await remove(`/triggers/${shared?.id ?? ''}`)
    expect([refused.status, refused.body.faultstring]).toEqual([409, expect.stringContaining('2 rules')])
    expect((await put(`/triggers/${shared?.id ?? ''}`, { parameters: { url: 'b' } })).status).toBe(409)
    await remove(`/rules/${rules[0]?.id ?? ''}`)
    expect(await triggers()).toEqual([shared])
    await remove(`/rules/${rules[1]?.id ?? ''}`)
    expect(await triggers()).toEqual([])
  })

  it('one that was made by hand stays when the last rule goes', async () => {
    const type = await makeType({ parameters_schema: withUrl })
    const { body } = await post<Trigger>('/triggers', { type: type.ref, parameters: { url: 'kept' } })
    const rule = await makeRule({ type: type.ref, parameters: { url: 'kept' } })
    await remove(`/rules/${rule.id}`)
    expect((await get(`/triggers/${body.id}`)).body).toEqual(body)
  })

  it('secrets in parameters: masked in every answer, encrypted in the database, kept by their mask', async () => {
    const token = 'xoxb-very-secret-token'
    const type = await makeType({ parameters_schema: withUrl })
    const { body } = await post<Trigger>('/triggers', { type: type.ref, parameters: { url: 'a', token } })
    expect(body.parameters).toEqual({ url: 'a', token: '********' })
    const texts = [
      (await get(`/triggers/${body.id}`)).text,
      (await get(`/triggers?type=${type.ref}`)).text,
      (await put(`/triggers/${body.id}`, { ...body, description: 'new' })).text,
      JSON.stringify(rowsOf(server, 'select * from triggers')),
      server.log(),
    ]
    expect(texts.filter((text) => text.includes(token))).toEqual([])
    // The same token again is the same trigger: it was kept.
    const again = await post<Trigger>('/triggers', { type: type.ref, parameters: { url: 'a', token } })
    expect(again.body.id).toBe(body.id)
    const blind = await post<ErrorAnswer>('/triggers', { type: type.ref, parameters: { url: 'b', token: '********' } })
    expect(blind.status).toBe(400)
  })
})

describe('5.3 trigger instances', () => {
  it('GET: every field; unknown → 404', async () => {
    const type = await makeType()
    const instance = await dispatch(type.ref, { a: 1 })
    expect(instance).toEqual({
      id: expect.stringMatching(idPattern) as string,
      trigger: type.ref,
      trigger_type: type.ref,
      payload: { a: 1 },
      occurrence_time: expect.stringMatching(timestampPattern) as string,
      status: 'processed',
      trace_id: expect.stringMatching(idPattern) as string,
    })
    for (const id of [unknownId, ...impossibleIds]) {
      expect([id, (await get(`/triggerinstances/${id}`)).status]).toEqual([id, 404])
      expect([id, (await post(`/triggerinstances/${id}/re_emit`)).status]).toEqual([id, 404])
    }
    expect((await get(`/triggerinstances/${instance.id}?include_attributes=payload.a`)).body).toEqual({
      id: instance.id,
      payload: { a: 1 },
    })
    expect((await get(`/triggerinstances/${instance.id}?exclude_attributes=payload`)).body).not.toHaveProperty(
      'payload',
    )
  })

  it('with a rule: pending, then processed', async () => {
    const type = await makeType()
    await makeRule({ type: type.ref })
    const { id, status } = await dispatch(type.ref, {})
    expect(['pending', 'processed']).toContain(status)
    await waitFor('the rule', async () => (await get<Instance>(`/triggerinstances/${id}`)).body.status === 'processed')
  })

  it('GET list: filters, newest first, paging', async () => {
    const type = await makeType({ parameters_schema: withUrl })
    const triggers = await Promise.all(
      ['a', 'b'].map(async (url) => (await post<Trigger>('/triggers', { type: type.ref, parameters: { url } })).body),
    )
    const made: Instance[] = []
    for (const i of [0, 1, 0, 1, 0]) made.push(await dispatch(triggers[i]?.ref ?? '', { i }))
    const ids = made.map(({ id }) => id)
    const newest = [...ids].reverse()
    const list = async (query: string): Promise<{ ids: string[]; total: number; limit: string | null }> => {
      const answer = await get<Instance[]>(`/triggerinstances?${query}`)
      expect([query, answer.status]).toEqual([query, 200])
      return { ids: answer.body.map(({ id }) => id), total: total(answer), limit: answer.headers.get('x-limit') }
    }
    const ofType = `trigger_type=${type.ref}`
    expect(await list(ofType)).toEqual({ ids: newest, total: 5, limit: '100' })
    expect(await list(`trigger=${triggers[1]?.ref ?? ''}`)).toMatchObject({ ids: [ids[3], ids[1]], total: 2 })
    expect(await list('trigger_type=mine.nothing')).toEqual({ ids: [], total: 0, limit: '100' })
    expect(await list(`trigger=${type.ref}`)).toMatchObject({ ids: [], total: 0 })
    expect(await list(`${ofType}&status=processed`)).toMatchObject({ ids: newest, total: 5 })
    expect(await list(`${ofType}&status=pending`)).toMatchObject({ ids: [], total: 0 })
    expect(await list(`${ofType}&limit=2&offset=1`)).toEqual({ ids: newest.slice(1, 3), total: 5, limit: '2' })
    expect(await list(`${ofType}&offset=9`)).toMatchObject({ ids: [], total: 5 })
    expect(await list(`${ofType}&sort=id`)).toMatchObject({ ids })
    expect((await list(`${ofType}&sort=trigger,-id&limit=1`)).ids).toHaveLength(1)
    expect(await list(`${ofType}&id=${ids[0] ?? ''},${ids[4] ?? ''},${unknownId}`)).toMatchObject({
      ids: [ids[4], ids[0]],
    })
    const [, second, , fourth] = made.map(({ occurrence_time }) => occurrence_time)
    expect(await list(`${ofType}&timestamp_gt=${second ?? ''}&timestamp_lt=${fourth ?? ''}`)).toMatchObject({
      ids: [ids[2]],
      total: 1,
    })
    expect((await list(`timestamp_gt=${second ?? ''}`)).ids).toEqual(expect.arrayContaining(ids.slice(2)))
    const [bare] = (await get<Instance[]>(`/triggerinstances?${ofType}&include_attributes=status`)).body
    expect(bare).toEqual({ id: ids[4], status: 'processed' })
    // Of several triggers, and going on from a place that stays where it is.
    const both = `trigger=${triggers.map(({ ref }) => ref).join()}`
    expect(await list(both)).toEqual({ ids: newest, total: 5, limit: '100' })
    expect(await list(`${both},mine.none&status=processed&limit=2`)).toMatchObject({
      ids: newest.slice(0, 2),
      total: 5,
    })
    const goesOn = await get<Instance[]>(`/triggerinstances?${both}&before_id=${newest[1] ?? ''}&offset=1`)
    expect(goesOn.body.map(({ id }) => id)).toEqual(newest.slice(3))
    expect(goesOn.headers.has('x-total-count')).toBe(false)
    expect((await list(`${ofType}&after_id=${newest[2] ?? ''}`)).ids).toEqual(newest.slice(0, 2))
    expect((await list(`${ofType}&after_id=${newest[4] ?? ''}&before_id=${newest[0] ?? ''}&sort=id`)).ids).toEqual(
      ids.slice(1, 4),
    )
    for (const query of [
      'before_id=x',
      `after_id=${unknownId}&sort=trigger`,
      'max_payload_size=-1',
      'timestamp_gt=yesterday',
      'limit=0',
      'include_attributes=nothing',
      'exclude_attributes=id',
    ]) {
      expect([query, (await get(`/triggerinstances?${query}`)).status]).toEqual([query, 400])
    }
  })

  it('GET: a payload larger than asked for is left out, and how large it is stands there instead', async () => {
    const type = await makeType()
    const small = await dispatch(type.ref, { a: 1 })
    const large = await dispatch(type.ref, { a: 'ü'.repeat(1000) })
    const size = Buffer.byteLength(JSON.stringify(large.payload))
    const { payload: _, ...bare } = large
    const list = async (query: string): Promise<Instance[]> =>
      (await get<Instance[]>(`/triggerinstances?trigger=${type.ref}&${query}`)).body
    expect(await list('max_payload_size=100')).toEqual([{ ...bare, payload_size: size }, small])
    expect(await list(`max_payload_size=${size}`)).toEqual([large, small])
    expect(await list('max_payload_size=0')).toEqual([large, small])
    expect(await list('max_payload_size=100&include_attributes=payload.a')).toEqual([
      { id: large.id, payload_size: size },
      { id: small.id, payload: { a: 1 } },
    ])
    expect(await list('max_payload_size=100&exclude_attributes=payload')).toEqual([
      bare,
      expect.not.objectContaining({ payload_size: expect.anything() as number }) as Instance,
    ])
    expect((await get(`/triggerinstances/${large.id}?max_payload_size=100`)).body).toEqual({
      ...bare,
      payload_size: size,
    })
    expect((await get(`/triggerinstances/${large.id}?max_payload_size=5000`)).body).toEqual(large)
  })

  it('re_emit: a new instance with the context of the first, in a new trace', async () => {
    const type = await makeType()
    const original = await dispatch(type.ref, { a: { b: [1] } })
    const answer = await post<{ message: string; payload: object }>(`/triggerinstances/${original.id}/re_emit`)
    expect(answer.status).toBe(200)
    const payload = { a: { b: [1] }, __context: { original_id: original.id } }
    expect(answer.body).toEqual({ message: expect.stringContaining(original.id) as string, payload })
    const id = answer.headers.get('svc-trigger-instance-id') ?? ''
    const { body: again } = await get<Instance>(`/triggerinstances/${id}`)
    expect(again).toMatchObject({ trigger: type.ref, payload, status: 'processed' })
    expect(again.id).not.toBe(original.id)
    expect(again.trace_id).not.toBe(original.trace_id)
    expect(answer.headers.get('svc-trace-id')).toBe(again.trace_id)
    expect((await get(`/triggerinstances/${original.id}`)).body).toEqual(original)
    const [trace] = rowsOf<{ trace_tag: string }>(server, 'select trace_tag from traces where id = ?', again.trace_id)
    expect(trace?.trace_tag).toBe(`trigger_instance-${again.id}`)
  })

  it('re_emit: once the trigger is gone → 409', async () => {
    const type = await makeType()
    const { id } = await dispatch(type.ref, {})
    await remove(`/triggertypes/${type.ref}`)
    const answer = await post<ErrorAnswer>(`/triggerinstances/${id}/re_emit`)
    expect([answer.status, answer.body.faultstring]).toEqual([409, expect.stringContaining(type.ref)])
    expect((await get(`/triggerinstances/${id}`)).status).toBe(200)
  })
})

describe('5.4 payload validation', () => {
  const schema = {
    type: 'object',
    properties: { id: { type: 'integer', required: true } },
    additionalProperties: false,
  }

  it('a payload that does not fit, or of no type: refused, nothing stored', async () => {
    const type = await makeType({ payload_schema: schema })
    const count = () => rowsOf(server, 'select * from trigger_instances').length
    const before = count()
    for (const [body, text] of [
      [{ trigger: type.ref, payload: { id: 'x' } }, "id: 'x' is not of type 'integer'"],
      [{ trigger: type.ref, payload: {} }, "'id' is a required property"],
      [{ trigger: type.ref, payload: { id: 1, more: 2 } }, "('more' was unexpected)"],
      [{ trigger: 'mine.nothing', payload: {} }, 'mine.nothing'],
    ] as const) {
      const answer = await post<ErrorAnswer>('/webhooks/svc', body)
      expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining(text)])
    }
    expect(count()).toBe(before)
    expect((await dispatch(type.ref, { id: 5 })).payload).toEqual({ id: 5 })
  })

  it('system.validate_trigger_payload off: taken; validate_trigger_parameters off: so are parameters', () =>
    withApp(
      { settings: { 'system.validate_trigger_payload': 'False', 'system.validate_trigger_parameters': 'False' } },
      async (lenient) => {
        const call = (path: string, body: unknown) => lenient.call('POST', `/v1${path}`, body)
        await call('/triggertypes', { name: 'e', payload_schema: schema })
        expect((await call('/webhooks/svc', { trigger: 'default.e', payload: { id: 'x' } })).status).toBe(202)
        expect((await call('/webhooks/svc', { trigger: 'default.nothing', payload: {} })).status).toBe(202)
        await call('/triggertypes', { name: 'p', parameters_schema: withUrl })
        expect((await call('/triggers', { type: 'default.p', parameters: { url: 5 } })).status).toBe(201)
        expect((await call('/triggers', { type: 'core.svc.webhook', parameters: { url: 5 } })).status).toBe(400)
      },
    ))
})

describe('5.9 the ActionTrigger', () => {
  const instancesOf = async (execution: string, from = server): Promise<Instance[]> => {
    const path = '/v1/triggerinstances?limit=1000&trigger_type=core.svc.generic.actiontrigger'
    const { body } = await from.call<Instance[]>('GET', path)
    return body.filter(({ payload }) => payload['execution_id'] === execution)
  }

  it('has exactly these fields, and joins the trace of the execution', async () => {
    const execution = await runToEnd(server, { cmd: 'echo hi' })
    const [instance, ...others] = await instancesOf(execution.id)
    expect(others).toEqual([])
    expect(instance).toMatchObject({ trigger: 'core.svc.generic.actiontrigger', status: 'processed' })
    expect(instance?.payload).toEqual({
      execution_id: execution.id,
      status: 'succeeded',
      start_timestamp: execution.start_timestamp.replace('T', ' ').replace('Z', '+00:00'),
      action_name: 'core.local',
      action_ref: 'core.local',
      runner_ref: 'local-shell-cmd',
      parameters: execution.parameters,
      result: execution.result,
      end_timestamp: execution.end_timestamp.replace('T', ' ').replace('Z', '+00:00'),
      elapsed_seconds: execution.elapsed_seconds,
      attempt: 1,
      will_retry: false,
      error: null,
      user: 'svc',
      rule: null,
      trace_id: instance?.trace_id,
      web_url: execution.web_url,
    })
    const members = rowsOf(
      server,
      `select m.* from trace_components m, executions e where e.id = ? and m.trace_id = e.trace_id order by m.n`,
      execution.id,
    )
    expect(members).toMatchObject([
      { kind: 'execution', object_id: execution.id },
      {
        kind: 'trigger_instance',
        object_id: instance?.id,
        ref: 'core.svc.generic.actiontrigger',
        caused_by_type: 'action_execution',
        caused_by_id: execution.id,
      },
    ])
  })

  it.each([
    ['failed', { cmd: 'exit 3' }],
    ['timeout', { cmd: 'sleep 30', timeout: 1 }],
  ])('of an execution that is %s', async (status, parameters) => {
    const execution = await runToEnd(server, parameters)
    expect(execution.status).toBe(status)
    expect((await instancesOf(execution.id)).map(({ payload }) => payload['status'])).toEqual([status])
  })

  it('of one that is cancelled, and of one that never began', async () => {
    const { body } = await post<{ id: string }>('/executions', { action: 'core.noop', delay: 3_600_000 })
    await remove(`/executions/${body.id}`)
    expect((await instancesOf(body.id)).map(({ payload }) => payload['status'])).toEqual(['canceled'])
    await post('/executions', { action: 'core.local', parameters: { cmd: '{{ nothing.here }}' } })
    const { body: executions } = await get<{ id: string; status: string }[]>('/executions?status=failed&limit=1')
    const [instance] = await instancesOf(executions[0]?.id ?? '')
    expect(instance?.payload).toMatchObject({ status: 'failed', result: { error: expect.any(String) as string } })
  })

  it('secret parameters are masked', async () => {
    const { id } = await runToEnd(server, { cmd: 'true', sudo_password: 'top secret words' })
    const [instance] = await instancesOf(id)
    expect(instance?.payload['parameters']).toEqual({ cmd: 'true', sudo_password: '********' })
    expect(JSON.stringify(rowsOf(server, 'select * from trigger_instances'))).not.toContain('top secret words')
  })

  it('action_sensor.emit_when chooses the statuses, action_sensor.enable all or none', async () => {
    await withApp({ settings: { 'action_sensor.emit_when': 'failed, running' } }, async (other) => {
      const failed = await runToEnd(other, { cmd: 'false' })
      const succeeded = await runToEnd(other, { cmd: 'true' })
      const statuses = async (id: string) =>
        (await instancesOf(id, other)).map(({ payload }) => String(payload['status'])).toSorted()
      expect(await statuses(failed.id)).toEqual(['failed', 'running'])
      expect(await statuses(succeeded.id)).toEqual(['running'])
    })
    await withApp({ settings: { 'action_sensor.enable': 'False' } }, async (other) => {
      const { id } = await runToEnd(other, { cmd: 'true' })
      expect(await instancesOf(id, other)).toEqual([])
    })
  })

  it('a result of several megabytes arrives whole', async () => {
    const execution = await runToEnd(server, { cmd: `head -c 3000000 /dev/zero | tr '\\0' x` })
    const [instance] = await instancesOf(execution.id)
    expect(instance?.payload['result']).toEqual(execution.result)
    expect(String(execution.result['stdout'])).toHaveLength(3_000_000)
  })
})

describe('2.12 notifications', () => {
  const sentBy = async (execution: string): Promise<Instance[]> => {
    const path = '/triggerinstances?sort=id&limit=1000&trigger_type=core.svc.generic.notifytrigger'
    return (await get<Instance[]>(path)).body.filter(({ payload }) => payload['execution_id'] === execution)
  }

  it('one trigger instance for each route of the sections that apply, in the trace of the execution', async () => {
    const execution = await runToEnd(
      server,
      { cmd: 'echo hi' },
      {
        notify: {
          'on-success': {
            message: '{{ action_parameters.cmd }} said {{ action_results.stdout }} to {{ action_context.user }}',
            data: { code: '{{ action_results.return_code }}', broken: '{{ nothing.here }}' },
            routes: ['chat', 'mail'],
          },
          'on-failure': { routes: ['pager'] },
          'on-complete': { channels: ['log'] },
        },
      },
    )
    const sent = await sentBy(execution.id)
    expect(sent.map(({ payload }) => payload['route'])).toEqual(['chat', 'mail', 'log'])
    const shared = {
      execution_id: execution.id,
      status: 'succeeded',
      start_timestamp: execution.start_timestamp.replace('Z', '+00:00'),
      end_timestamp: execution.end_timestamp.replace('Z', '+00:00'),
      action_ref: 'core.local',
      runner_ref: 'local-shell-cmd',
    }
    const result = JSON.stringify(execution.result)
    expect(sent[0]?.payload).toEqual({
      ...shared,
      channel: 'chat',
      route: 'chat',
      message: `echo hi said hi to ${String(execution.context['user'])}`,
      data: { code: 0, broken: '{{ nothing.here }}', result },
    })
    expect(sent[2]?.payload).toEqual({
      ...shared,
      channel: 'log',
      route: 'log',
      message: 'Action core.local completed.',
      data: { result },
    })
    const traces = rowsOf<{ trace_id: string }>(server, 'select trace_id from executions where id = ?', execution.id)
    expect(new Set(sent.map(({ trace_id }) => trace_id))).toEqual(new Set([traces[0]?.trace_id]))
  })

  it.each([
    ['failed', { cmd: 'false' }, ['Action core.local failed.', 'Action core.local completed.']],
    ['succeeded', { cmd: 'true' }, ['Action core.local succeeded.', 'Action core.local completed.']],
  ])('default messages when %s', async (_, parameters, expected) => {
    const section = { routes: ['r'] }
    const notify = { 'on-success': section, 'on-failure': section, 'on-complete': section }
    const { id } = await runToEnd(server, parameters, { notify })
    expect((await sentBy(id)).map(({ payload }) => payload['message'])).toEqual(expected)
  })

  it('texts may read the datastore', async () => {
    await put('/keys/team', { name: 'team', value: 'night shift' })
    const { id } = await runToEnd(
      server,
      { cmd: 'true' },
      { notify: { 'on-complete': { message: 'for the {{ svckv.system.team }}', routes: ['r'] } } },
    )
    expect((await sentBy(id))[0]?.payload['message']).toBe('for the night shift')
  })

  it('a cancelled execution: on-complete alone', async () => {
    const { body } = await post<{ id: string }>('/executions', {
      action: 'core.noop',
      delay: 3_600_000,
      notify: { 'on-complete': { routes: ['c'] }, 'on-failure': { routes: ['f'] } },
    })
    await remove(`/executions/${body.id}`)
    await waitForStatus(server, body.id)
    expect((await sentBy(body.id)).map(({ payload }) => payload['route'])).toEqual(['c'])
  })
})

describe('11.3 access control', () => {
  const folder = makeFolder()
  let guarded: TestApp
  let administrator: Record<string, string>
  let reader: Record<string, string>
  let writer: Record<string, string>
  const as = <T>(headers: Record<string, string>, method: string, path: string, body?: unknown): Promise<Answer<T>> =>
    guarded.call<T>(method, `/v1${path}`, body, headers)

  beforeAll(async () => {
    for (const name of ['roles', 'assignments']) mkdirSync(join(folder.path, 'rbac', name), { recursive: true })
    const write = (path: string, text: string): void => writeFileSync(join(folder.path, 'rbac', path), text)
    const grant = (type: string, name: string): string =>
      `  - resource_uid: trigger:mine:${name}\n    permission_types: [${type}]\n`
    write('assignments/admin.yaml', 'username: admin\nroles: [system_admin]\n')
    write('assignments/reader.yaml', 'username: reader\nroles: [reader]\n')
    write('assignments/writer.yaml', 'username: writer\nroles: [writer]\n')
    const lists = '  - permission_types: [trigger_list]\n'
    write('roles/reader.yaml', `name: reader\npermission_grants:\n${lists}${grant('trigger_view', 'seen')}`)
    write('roles/writer.yaml', `name: writer\npermission_grants:\n${lists}${grant('trigger_all', 'seen')}`)
    guarded = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    administrator = await signIn(guarded, 'admin', firstPassword(folder.path))
    const keyOf = async (user: string): Promise<Record<string, string>> => {
      const { body } = await as<{ key: string }>(administrator, 'POST', '/apikeys', { user })
      return { 'Svc-Api-Key': body.key }
    }
    reader = await keyOf('reader')
    writer = await keyOf('writer')
    for (const name of ['seen', 'hidden']) {
      await as(administrator, 'POST', '/triggertypes', { name, pack: 'mine' })
      for (const n of [1, 2]) {
        await as(administrator, 'POST', '/webhooks/svc', { trigger: `mine.${name}`, payload: { n } })
      }
    }
  })
  afterAll(async () => {
    await guarded.stop()
    folder.remove()
  })

  it('lists hold what the caller may view, and count no more', async () => {
    const types = await as<TriggerType[]>(reader, 'GET', '/triggertypes')
    expect([types.body.map(({ ref }) => ref), total(types)]).toEqual([['mine.seen'], 1])
    const triggers = await as<Trigger[]>(reader, 'GET', '/triggers')
    expect([triggers.body.map(({ ref }) => ref), total(triggers)]).toEqual([['mine.seen'], 1])
    for (const [query, count] of [
      ['', 2],
      ['?limit=1', 2],
      ['?trigger_type=mine.seen', 2],
      ['?status=processed', 2],
      ['?trigger_type=mine.hidden', 0],
      ['?trigger=mine.hidden', 0],
      ['?trigger_type=core.svc.generic.actiontrigger', 0],
    ] as const) {
      const answer = await as<Instance[]>(reader, 'GET', `/triggerinstances${query}`)
      expect([query, answer.status, total(answer)]).toEqual([query, 200, count])
      expect(answer.body.filter(({ trigger_type }) => trigger_type !== 'mine.seen')).toEqual([])
      expect(answer.body.length).toBe(query === '?limit=1' ? 1 : count)
    }
    expect(total(await as(administrator, 'GET', '/triggerinstances?trigger_type=mine.hidden'))).toBe(2)
  })

  it('what is granted on a type counts for its triggers and instances', async () => {
    const of = async (name: string) => ({
      trigger: (await as<Trigger[]>(administrator, 'GET', `/triggers?name=${name}`)).body[0]?.id ?? '',
      instance:
        (await as<Instance[]>(administrator, 'GET', `/triggerinstances?trigger_type=mine.${name}`)).body[0]?.id ?? '',
    })
    const seen = await of('seen')
    const hidden = await of('hidden')
    const statuses = async (headers: Record<string, string>, requests: (readonly [string, string, unknown?])[]) =>
      Promise.all(requests.map(async ([method, path, body]) => (await as(headers, method, path, body)).status))
    const views = (ids: typeof seen, name: string) =>
      [
        ['GET', `/triggertypes/mine.${name}`],
        ['GET', `/triggers/${ids.trigger}`],
        ['GET', `/triggerinstances/${ids.instance}`],
      ] as const
    expect(await statuses(reader, [...views(seen, 'seen')])).toEqual([200, 200, 200])
    expect(await statuses(reader, [...views(hidden, 'hidden')])).toEqual([403, 403, 403])
    const changes = (ids: typeof seen, name: string) =>
      [
        ['PUT', `/triggertypes/mine.${name}`, {}],
        ['PUT', `/triggers/${ids.trigger}`, {}],
        ['POST', `/triggerinstances/${ids.instance}/re_emit`],
      ] as const
    expect(await statuses(reader, [...changes(seen, 'seen')])).toEqual([403, 403, 403])
    expect(await statuses(writer, [...changes(seen, 'seen')])).toEqual([200, 200, 200])
    expect(await statuses(writer, [...changes(hidden, 'hidden')])).toEqual([403, 403, 403])
    // Nor may a type move to where its author may do nothing.
    expect(await statuses(writer, [['PUT', '/triggertypes/mine.seen', { name: 'elsewhere' }]])).toEqual([403])
    expect(await statuses(writer, [['POST', '/triggertypes', { name: 'more', pack: 'mine' }]])).toEqual([403])
    expect(await statuses(writer, [['POST', '/triggers', { type: 'mine.hidden' }]])).toEqual([403])
    // A name of another type's trigger does not show that trigger.
    const borrowed = { type: 'mine.seen', pack: 'mine', name: 'hidden' }
    expect(await statuses(writer, [['POST', '/triggers', borrowed]])).toEqual([403])
    const { body } = await as<ErrorAnswer>(reader, 'GET', '/triggertypes/mine.hidden')
    expect(body.faultstring).toContain('"trigger_view" on resource "trigger:mine:hidden"')
  })
})

it('after a restart everything is as it was', async () => {
  const folder = makeFolder()
  const look = async (from: TestApp) => [
    (await from.call('GET', '/v1/triggertypes')).body,
    (await from.call('GET', '/v1/triggers')).body,
  ]
  const first = await createTestApp({ basePath: folder.path })
  let before: unknown
  try {
    await first.call('POST', '/v1/triggertypes', { name: 'kept', parameters_schema: withUrl })
    await first.call('POST', '/v1/triggers', { type: 'default.kept', parameters: { url: 'a', token: 'b' } })
    before = await look(first)
  } finally {
    await first.stop()
  }
  const again = await createTestApp({ basePath: folder.path })
  try {
    expect(await look(again)).toEqual(before)
  } finally {
    await again.stop()
    folder.remove()
  }
})
