/** What an execution tells about the rule that started it, and how it is found by that (contract 03, 3.2 and 3.3). */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

interface Origin extends ExecutionAnswer {
  rule: Record<string, string>
  trigger: Record<string, string>
  trigger_type: Record<string, string>
  trigger_instance: Record<string, string>
}

let server: TestApp
let started: Origin
let byHand: ExecutionAnswer

beforeAll(async () => {
  server = await createTestApp()
  const rule = await server.call('POST', '/v1/rules', {
    name: 'on_call',
    description: 'when called',
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: 'call' } },
    criteria: { 'trigger.body.secret': { type: 'exists', pattern: true } },
    action: { ref: 'core.noop' },
  })
  if (rule.status !== 201) throw new Error(rule.text)
  const sent = await server.call('POST', '/v1/webhooks/call', { secret: 'of the payload' })
  const instance = sent.headers.get('svc-trigger-instance-id') ?? ''
  const [found] = await waitFor('the rule to start an execution', async () => {
    const { body } = await server.call<Origin[]>('GET', `/v1/executions?trigger_instance=${instance}`)
    return body.length === 1 && body
  })
  started = (await waitForStatus(server, found?.id ?? '')) as Origin // it was started by a rule
  const requested = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' })
  byHand = await waitForStatus(server, requested.body.id)
})
afterAll(() => server.stop())

it('03.2 rule, trigger, trigger type and trigger instance are in the record, without what the caller may not see', () => {
  expect(started.rule).toMatchObject({
    uid: 'rule:default:on_call',
    ref: 'default.on_call',
    name: 'on_call',
    pack: 'default',
    description: 'when called',
  })
  expect(started.trigger).toMatchObject({
    pack: 'core',
    type: 'core.svc.webhook',
    ref: `core.${started.trigger['name']}`,
  })
  expect(started.trigger_type).toMatchObject({ ref: 'core.svc.webhook', name: 'svc.webhook', pack: 'core' })
  expect(started.trigger_instance).toMatchObject({
    trigger: started.trigger['ref'],
    occurrence_time: expect.stringMatching(/Z$/),
  })
  expect(JSON.stringify(started)).not.toContain('of the payload')
  expect(byHand).not.toHaveProperty('rule')
  expect(byHand).not.toHaveProperty('trigger_instance')
})

it('03.3 the record stays as it was when the rule is changed', async () => {
  const rule = await server.call<Record<string, unknown>>('GET', '/v1/rules/default.on_call')
  const changed = { ...rule.body, description: 'another one', enabled: false }
  expect(await server.call('PUT', '/v1/rules/default.on_call', changed)).toMatchObject({ status: 200 })
  const { body } = await server.call<Origin>('GET', `/v1/executions/${started.id}`)
  expect(body.rule['description']).toBe('when called')
})

it.each([
  ['rule', (): string => 'on_call'],
  ['trigger', (): string => started.trigger['name'] ?? ''],
  ['trigger_type', (): string => 'svc.webhook'],
  ['trigger_instance', (): string => started.trigger_instance['id'] ?? ''],
] as const)('03.3 filter %s finds it by the value, and the others by null', async (name, value) => {
  const idsOf = async (wanted: string): Promise<string[]> =>
    (await server.call<{ id: string }[]>('GET', `/v1/executions?${name}=${wanted}`)).body.map(({ id }) => id)
  expect(await idsOf(value())).toEqual([started.id])
  expect(await idsOf('null')).toEqual([byHand.id])
  expect(await idsOf('other')).toEqual([])
})

it.each([
  ['rule', 'default.on_call', 'other.on_call'],
  ['trigger_type', 'core.svc.webhook', 'default.svc.webhook'],
] as const)('03.3 filter %s finds it by the reference too, by that of another pack not', async (name, ref, other) => {
  const list = async (query: string): Promise<[string[], string | null]> => {
    const { body, headers } = await server.call<{ id: string }[]>('GET', `/v1/executions?${query}`)
    return [body.map(({ id }) => id), headers.get('x-total-count')]
  }
  expect(await list(`${name}=${ref}`)).toEqual([[started.id], '1'])
  expect(await list(`${name}=${ref}&action=core.noop&sort=status`)).toEqual([[started.id], '1'])
  for (const wrong of [other, `${ref}.`, `.${ref}`, 'default.'])
    expect(await list(`${name}=${wrong}`)).toEqual([[], '0'])
})

it.each([
  ['rule.ref', 'default.on_call', 'other.on_call'],
  ['rule.pack', 'default', 'other'],
  ['trigger.type', 'core.svc.webhook', 'core.svc.CronTimer'],
  ['trigger_type.ref', 'core.svc.webhook', 'default.svc.webhook'],
  ['trigger_type.ref', 'core.svc.webhook', 'webhook'],
] as const)('03.3 filter=%s:%s finds it, another value does not', async (path, value, other) => {
  const list = async (filter: string, more = ''): Promise<[string[], string | null]> => {
    const { body, headers } = await server.call<{ id: string }[]>('GET', `/v1/executions?filter=${filter}${more}`)
    return [body.map(({ id }) => id), headers.get('x-total-count')]
  }
  expect(await list(`${path}:${value}`)).toEqual([[started.id], '1'])
  expect(await list(`${path}:${value}`, '&rule=default.on_call&sort=status')).toEqual([[started.id], '1'])
  expect(await list(`${path}:${other}`)).toEqual([[], '0'])
  expect(await list(`${path}:${value}`, '&rule=other')).toEqual([[], '0'])
})

it('03.3 filter=rule.id and filter=trigger.ref find it', async () => {
  for (const filter of [`rule.id:${started.rule['id']}`, `trigger.ref:${started.trigger['ref']}`]) {
    const { body } = await server.call<{ id: string }[]>('GET', `/v1/executions?filter=${filter}`)
    expect([filter, body.map(({ id }) => id)]).toEqual([filter, [started.id]])
  }
})

it('03.3 filter trigger finds it by the reference too', async () => {
  const { body } = await server.call<{ id: string }[]>('GET', `/v1/executions?trigger=${started.trigger['ref']}`)
  expect(body.map(({ id }) => id)).toEqual([started.id])
})

it('03.3 the attribute trigger_instance, and the values to filter by', async () => {
  const attribute = await server.call('GET', `/v1/executions/${started.id}/attribute/trigger_instance`)
  expect([attribute.status, attribute.body]).toEqual([200, started.trigger_instance])
  const { body } = await server.call('GET', '/v1/executions/views/filters')
  expect(body).toMatchObject({
    rule: expect.arrayContaining(['on_call', null]),
    trigger: expect.arrayContaining([started.trigger['name'], null]),
    trigger_type: expect.arrayContaining(['svc.webhook', null]),
  })
})
