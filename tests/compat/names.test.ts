/** The names of StackStorm, in requests and answers, with `[compat] stackstorm` on and off (docs/compatibility.md). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { builtinTriggerNames } from '../../src/core/compat/index.ts'
import { createTestApp } from '../helpers/app.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, runToEnd, type Answer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

type Json = Record<string, unknown>
const theirs = { 'Svc-Dialect': 'stackstorm' }

let on: TestApp
let off: TestApp
beforeAll(async () => {
  ;[on, off] = await Promise.all([
    createTestApp({ settings: { 'compat.stackstorm': 'True', 'api.allow_origin': 'http://page.example' } }),
    createTestApp({ settings: { 'api.allow_origin': 'http://page.example' } }),
  ])
})
afterAll(async () => {
  await Promise.all([on, off].map((app) => app.stop()))
})

const warningOf = (answer: Answer<unknown>): string => answer.headers.get('warning') ?? ''
const faultOf = (answer: Answer<unknown>): string => String((answer.body as Json)['faultstring'])

const webhookRule = (name: string, type: string, url = name): Json => ({
  name,
  pack: 'default',
  enabled: true,
  trigger: { type, parameters: { url } },
  criteria: {},
  action: { ref: 'core.echo', parameters: { message: '{{ trigger.body.text }}' } },
})

describe('1 and 2: headers and query of credentials', () => {
  let auth: TestApp
  let authOff: TestApp
  const keys = new Map<TestApp, string>()
  beforeAll(async () => {
    ;[auth, authOff] = await Promise.all([
      createTestApp({ settings: { 'auth.enable': 'True', 'compat.stackstorm': 'True' } }),
      createTestApp({ settings: { 'auth.enable': 'True' } }),
    ])
    for (const app of [auth, authOff]) {
      const login = { Authorization: basicAuth('admin', firstPassword(app.basePath)) }
      const token = await call<{ token: string }>(`${app.urls.auth}/tokens`, 'POST', {}, login)
      const key = await app.call('POST', '/v1/apikeys', {}, { 'X-Auth-Token': token.body.token })
      keys.set(app, String(key.body['key']))
    }
  })
  afterAll(async () => {
    await Promise.all([auth, authOff].map((app) => app.stop()))
  })

  it('on: St2-Api-Key and st2-api-key are the API key, on every listener', async () => {
    const key = keys.get(auth) ?? ''
    expect((await auth.call('GET', '/v1/user', undefined, { 'St2-Api-Key': key })).body['username']).toBe('admin')
    expect((await auth.call('GET', `/v1/user?st2-api-key=${key}`)).body['username']).toBe('admin')
    expect((await auth.call('GET', '/v1/user', undefined, { 'Svc-Api-Key': key })).body['username']).toBe('admin')
    const stream = await openEvents(`${auth.urls.stream}/v1/stream?st2-api-key=${key}`)
    expect(stream.status).toBe(200)
    stream.close()
  })

  it('on: two different keys, or a key and a token, are refused; a wrong key is', async () => {
    const key = keys.get(auth) ?? ''
    const both = (other: string) =>
      auth.call('GET', '/v1/user', undefined, { 'St2-Api-Key': key, 'Svc-Api-Key': other })
    expect((await both(key)).status).toBe(200)
    expect((await both('x'.repeat(40))).status).toBe(401)
    expect((await auth.call('GET', `/v1/user?st2-api-key=${key}&svc-api-key=other`)).status).toBe(401)
    expect((await auth.call('GET', `/v1/user?st2-api-key=${key}&x-auth-token=abc`)).status).toBe(401)
    expect((await auth.call('GET', '/v1/user?st2-api-key=wrong')).status).toBe(401)
  })

  it('off: the refusal names our header and query', async () => {
    const key = keys.get(authOff) ?? ''
    const byHeader = await authOff.call('GET', '/v1/user', undefined, { 'St2-Api-Key': key })
    expect([byHeader.status, faultOf(byHeader)]).toEqual([401, expect.stringContaining('svc-api-key')])
    const byQuery = await authOff.call('GET', `/v1/user?st2-api-key=${key}`)
    expect([byQuery.status, faultOf(byQuery)]).toEqual([401, expect.stringContaining('[compat] stackstorm')])
  })

  it('neither writes a key into the log, nor into a trigger instance', async () => {
    for (const app of [auth, authOff]) {
      const key = keys.get(app) ?? ''
      const own = { 'Svc-Api-Key': key }
      await app.call('POST', '/v1/rules', webhookRule('leak', 'core.svc.webhook'), own)
      await app.call('POST', `/v1/webhooks/leak?st2-api-key=${key}`, { text: 'x' }, own)
      await app.call(
        'POST',
        '/v1/webhooks/leak',
        { text: 'x' },
        app === auth ? { 'St2-Api-Key': key } : { ...own, 'St2-Api-Key': key },
      )
      const instances = await app.call('GET', '/v1/triggerinstances?trigger_type=core.svc.webhook', undefined, own)
      expect(instances.text).toContain('"text":"x"')
      expect(instances.text).not.toContain(key)
      expect(app.log()).not.toContain(key)
    }
  })
})

describe('1: St2-Trace-Tag, st2-context, and CORS', () => {
  it('on: the tag names the trace; it is no part of the payload', async () => {
    await on.call('POST', '/v1/rules', webhookRule('tagged', 'core.svc.webhook'))
    const sent = await on.call('POST', '/v1/webhooks/tagged', { text: 'x' }, { 'St2-Trace-Tag': 'order-17' })
    expect(sent.status).toBe(202)
    const traces = await on.call<Json[]>('GET', '/v1/traces?trace_tag=order-17')
    expect(traces.body).toHaveLength(1)
    const instance = await on.call('GET', `/v1/triggerinstances/${sent.headers.get('svc-trigger-instance-id') ?? ''}`)
    expect(instance.text.toLowerCase()).not.toContain('trace-tag')
  })

  it('on: the context joins that of the execution', async () => {
    const body = { action: 'core.noop' }
    const made = await on.call('POST', '/v1/executions', body, { 'st2-context': '{"source_channel": "chat"}' })
    expect(made.body['context']).toMatchObject({ source_channel: 'chat' })
  })

  it('pages may send the headers where the option is on', async () => {
    const allowed = async (app: TestApp): Promise<string> =>
      (await app.call('OPTIONS', '/v1/rules', undefined, { Origin: 'http://page.example' })).headers.get(
        'access-control-allow-headers',
      ) ?? ''
    expect((await allowed(on)).toLowerCase()).toContain('st2-api-key,st2-trace-tag,st2-context')
    expect((await allowed(off)).toLowerCase()).not.toContain('st2')
  })
})

describe('3: the generic webhook', () => {
  const body = { trigger: 'core.st2.generic.inquiry', payload: { id: 'x' } }

  it('on: /webhooks/st2, with the old name of the trigger; the answer is the body as it was sent', async () => {
    for (const path of ['/v1/webhooks/st2', '/api/v1/webhooks/st2', '/v1/webhooks/svc', '/v1/webhooks/st2/']) {
      const sent = await on.call('POST', path, body)
      expect([path, sent.status, sent.body]).toEqual([path, 202, body])
      const id = sent.headers.get('svc-trigger-instance-id') ?? ''
      const stored = await on.call('GET', `/v1/triggerinstances/${id}`)
      expect(stored.body).toMatchObject({
        trigger: 'core.svc.generic.inquiry',
        trigger_type: 'core.svc.generic.inquiry',
      })
    }
  })

  it('off: the refusal names our path, and our trigger', async () => {
    const sent = await off.call('POST', '/v1/webhooks/st2', body)
    expect([sent.status, faultOf(sent)]).toEqual([404, expect.stringContaining('Its name here is "svc"')])
    const named = await off.call('POST', '/v1/webhooks/svc', body)
    expect([named.status, faultOf(named)]).toEqual([400, expect.stringContaining('"core.svc.generic.inquiry"')])
  })
})

describe('4: events', () => {
  async function eventsOf(app: TestApp, query: string, headers: Record<string, string> = {}): Promise<string[]> {
    const client = await openEvents(`${app.urls.stream}/v1/stream${query}`, headers)
    await waitFor('the first byte', () => client.raw() !== '')
    const { id } = await runToEnd(app, { cmd: 'echo text' })
    const mark = await openEvents(
      `${app.urls.stream}/v1/stream?events=svc.nothing&end_event=svc.execution__update&end_execution_id=${id}`,
    )
    await mark.ended
    // What is about the same change is sent to all clients at once.
    await waitFor('the answer', () => client.frames.length > 0 || query.includes('nothing'))
    client.close()
    return [...new Set(client.frames.map(({ event }) => event))].toSorted()
  }

  it('on: the names that a client asks for are those that it gets', async () => {
    expect(await eventsOf(on, '?events=st2.execution__update,svc.execution__create')).toEqual([
      'st2.execution__update',
      'svc.execution__create',
    ])
    expect(await eventsOf(on, '?events=st2.execution*')).toEqual([
      'st2.execution.output__create',
      'st2.execution__create',
      'st2.execution__update',
    ])
    expect(await eventsOf(on, '?events=*.execution__update')).toEqual(['svc.execution__update'])
    expect(await eventsOf(on, '?events=*.execution__update', theirs)).toEqual(['st2.execution__update'])
    expect(await eventsOf(on, '?events=svc.execution__update', theirs)).toEqual(['svc.execution__update'])
  })

  it('without events the option decides, unless the client says whose names it wants', async () => {
    const names = ['execution__create', 'execution__update', 'liveaction__create', 'liveaction__update']
    expect(await eventsOf(on, '')).toEqual(names.map((name) => `st2.${name}`))
    expect(await eventsOf(on, '', { 'Svc-Dialect': 'svc' })).toEqual(names.map((name) => `svc.${name}`))
    expect(await eventsOf(off, '')).toEqual(names.map((name) => `svc.${name}`))
  })

  it('on: an end_event with the old name ends the stream, from its beginning on', async () => {
    const { id } = await runToEnd(on, { cmd: 'echo tail' })
    const query = `events=st2.execution__update,st2.execution.output__create&end_event=st2.execution__update`
    const client = await openEvents(`${on.urls.stream}/v1/stream?${query}&end_execution_id=${id}`)
    expect(await client.ended).toBe('end')
    expect(client.frames.map(({ event }) => event)).toEqual([
      'st2.execution__update',
      'st2.execution.output__create',
      'st2.execution__update',
    ])
  })

  it('on: the stream of one execution has the old name, unless the client says otherwise', async () => {
    const { id } = await runToEnd(on, { cmd: 'echo tail' })
    for (const [app, headers, name] of [
      [on, {}, 'st2.execution.output__create'],
      [on, { 'Svc-Dialect': 'svc' }, 'svc.execution.output__create'],
    ] as const) {
      const client = await openEvents(`${app.urls.stream}/v1/executions/${id}/output`, headers)
      expect(await client.ended).toBe('end')
      expect(client.frames.map(({ event }) => event)).toEqual([name, 'EOF'])
    }
  })

  it('on: announcements, with any route', async () => {
    const client = await openEvents(`${on.urls.stream}/v1/stream?events=st2.announcement__*`)
    await waitFor('the first byte', () => client.raw() !== '')
    await on.call('POST', '/v1/executions', {
      action: 'core.announcement',
      parameters: { route: 'chatops', message: { text: 'hello' } },
    })
    const { event, data } = await client.frame(() => true)
    const { payload } = JSON.parse(data) as { payload: unknown }
    expect([event, payload]).toEqual([
      'st2.announcement__chatops',
      expect.objectContaining({ message: { text: 'hello' } }),
    ])
    client.close()
  })

  it('off: a client that asks for old names is refused with the names of svc, as it would wait for ever', async () => {
    for (const [query, name] of [
      ['events=st2.execution__update', 'svc.execution__update'],
      ['events=svc.execution__update,st2.announcement__*', 'svc.announcement__*'],
      ['events=st2.*', 'svc.*'],
      ['end_event=st2.execution__update&end_execution_id=0123456789abcdef01234567', 'svc.execution__update'],
    ] as const) {
      const answer = await call(`${off.urls.stream}/v1/stream?${query}`, 'GET')
      expect([query, answer.status, faultOf(answer)]).toEqual([query, 400, expect.stringContaining(`"${name}"`)])
    }
  })
})

describe('5: trigger types', () => {
  it.each(builtinTriggerNames)('core.st2.%s', async (name) => {
    const [old, own] = [`core.st2.${name}`, `core.svc.${name}`]
    const answer = await on.call('GET', `/v1/triggertypes/${old}`)
    expect([answer.status, answer.body]).toEqual([
      200,
      expect.objectContaining({ ref: old, name: `st2.${name}`, pack: 'core', uid: `trigger_type:core:st2.${name}` }),
    ])
    expect((await on.call('GET', `/v1/triggertypes/${own}`)).body).toMatchObject({ ref: own, name: `svc.${name}` })
    expect((await on.call('GET', `/v1/triggertypes/${own}`, undefined, theirs)).body).toMatchObject({ ref: old })
    const listed = await on.call<Json[]>('GET', `/v1/triggertypes?pack=core&name=st2.${name}`)
    expect(listed.body.map(({ ref }) => ref)).toEqual([old])
    const refused = await off.call('GET', `/v1/triggertypes/${old}`)
    expect([refused.status, faultOf(refused)]).toEqual([404, expect.stringContaining(`"${own}"`)])
  })

  it('svc has no other type in the pack core but its own of missed runs', async () => {
    const types = await on.call<Json[]>('GET', '/v1/triggertypes?pack=core&limit=100')
    expect(types.body.map(({ name }) => name)).toEqual(
      [...builtinTriggerNames, 'missed'].map((name) => `svc.${name}`).toSorted(),
    )
  })

  const parameters: Record<string, Json> = {
    webhook: { url: 'both-ways' },
    IntervalTimer: { unit: 'hours', delta: 7 },
    CronTimer: { hour: 3 },
    DateTimer: { timezone: 'UTC', date: '2100-01-01 00:00:00' },
  }
  // Without criteria a rule on the ActionTrigger starts itself, and is refused.
  const criteria: Record<string, Json> = {
    'generic.actiontrigger': { 'trigger.action_ref': { type: 'eq', pattern: 'core.noop' } },
  }
  it.each(['webhook', 'IntervalTimer', 'CronTimer', 'DateTimer', 'key_value_pair.create', 'generic.actiontrigger'])(
    'a rule on core.st2.%s reads back in the names of who asks, and is stored with ours',
    async (name) => {
      const [old, own] = [`core.st2.${name}`, `core.svc.${name}`]
      const rule = {
        ...webhookRule(`both-${name}`, old),
        trigger: { type: old, parameters: parameters[name] ?? {} },
        criteria: criteria[name] ?? {},
      }
      const made = await on.call('POST', '/v1/rules', rule)
      expect([made.status, made.body['trigger']]).toEqual([201, expect.objectContaining({ type: old })])
      const id = String(made.body['id'])
      for (const path of [`/v1/rules/${id}`, `/v1/rules/views/${id}`]) {
        const [ours, asked] = [await on.call('GET', path), await on.call('GET', path, undefined, theirs)]
        expect(ours.body['trigger']).toMatchObject({ type: own })
        expect(asked.body['trigger']).toMatchObject({ type: old })
        // Else the two are equal.
        expect(JSON.stringify(asked.body).replaceAll('core.st2.', 'core.svc.')).toBe(JSON.stringify(ours.body))
      }
      const put = await on.call('PUT', `/v1/rules/${id}`, { ...rule, description: 'again' })
      expect([put.status, put.body['trigger']]).toEqual([200, expect.objectContaining({ type: old })])
      const { trigger } = made.body as { trigger: { ref: string } }
      const list = await on.call<Json[]>('GET', `/v1/rules?trigger=${trigger.ref}`)
      expect(list.body.map((one) => one['id'])).toContain(id)
      const refused = await off.call('POST', '/v1/rules', rule)
      expect([refused.status, faultOf(refused)]).toEqual([400, expect.stringContaining(`"${own}"`)])
    },
  )

  it('lists that are filtered by an old name answer in old names', async () => {
    const timers = await on.call<Json[]>('GET', '/v1/timers?timer_type=core.st2.IntervalTimer')
    expect(timers.body.map(({ type }) => type)).toEqual(['core.st2.IntervalTimer'])
    const triggers = await on.call<Json[]>('GET', '/v1/triggers?type=core.st2.webhook')
    expect(new Set(triggers.body.map(({ type }) => type))).toEqual(new Set(['core.st2.webhook']))
    const hooks = await on.call<Json[]>('GET', '/v1/webhooks', undefined, theirs)
    expect(new Set(hooks.body.map(({ type }) => type))).toEqual(new Set(['core.st2.webhook']))
    const instances = await on.call<Json[]>('GET', '/v1/triggerinstances?trigger_type=core.st2.generic.inquiry')
    expect(new Set(instances.body.map(({ trigger }) => trigger))).toEqual(new Set(['core.st2.generic.inquiry']))
    expect(instances.body.length).toBeGreaterThan(0)
    expect(warningOf(await off.call('GET', '/v1/triggerinstances?trigger_type=core.st2.webhook'))).toContain(
      'core.svc.webhook',
    )
  })

  it('executions, enforcements and traces name the trigger as the client does; data stays as it is', async () => {
    await on.call('POST', '/v1/rules', webhookRule('whole-way', 'core.st2.webhook'))
    const text = 'core.svc.webhook and core.st2.webhook'
    const payload = { text, ref: 'core.svc.webhook', trigger_type: 'core.svc.webhook' }
    const sent = await on.call('POST', '/v1/webhooks/whole-way', payload, { 'St2-Trace-Tag': 'whole-way' })
    const instance = sent.headers.get('svc-trigger-instance-id') ?? ''
    const execution = await waitFor('the execution', async () => {
      const { body } = await on.call<Json[]>('GET', `/v1/executions?trigger_instance=${instance}`, undefined, theirs)
      return body.find(({ status }) => status === 'succeeded')
    })
    expect(execution['trigger_type']).toMatchObject({ ref: 'core.st2.webhook', name: 'st2.webhook' })
    expect(execution['trigger']).toMatchObject({ type: 'core.st2.webhook' })
    expect(execution['parameters']).toEqual({ message: text })
    const filters = (await on.call('GET', '/v1/executions/views/filters', undefined, theirs)).body
    expect(filters['trigger_type']).toEqual(expect.arrayContaining(['st2.webhook', null]))
    const id = String(execution['id'])
    for (const query of [
      'trigger_type=st2.webhook',
      'trigger_type=core.st2.webhook',
      'filter=trigger_type.ref:core.st2.webhook',
      'filter=status:succeeded%20trigger_type.name:st2.webhook',
      'filter=trigger.type:core.st2.webhook%20%20rule.ref:default.whole-way',
    ]) {
      const { body } = await on.call<Json[]>('GET', `/v1/executions?${query}&rule=default.whole-way`)
      expect([query, body.map((one) => one['id'])]).toEqual([query, [id]])
      expect(body[0]?.['trigger_type']).toMatchObject({ ref: 'core.st2.webhook' })
    }
    const asked = await on.call('GET', `/v1/triggerinstances/${instance}`, undefined, theirs)
    expect(asked.body).toMatchObject({ trigger_type: 'core.st2.webhook', payload: { body: payload } })
    const typeless = await on.call(
      'POST',
      '/v1/webhooks/st2',
      {
        trigger: 'core.st2.generic.inquiry',
        payload: { id: 'traced' },
      },
      { 'St2-Trace-Tag': 'typeless' },
    )
    expect(typeless.status).toBe(202)
    const [trace] = (await on.call<Json[]>('GET', '/v1/traces?trace_tag=typeless', undefined, theirs)).body
    expect(trace?.['trigger_instances']).toEqual([expect.objectContaining({ ref: 'core.st2.generic.inquiry' })])
    const [own] = (await on.call<Json[]>('GET', '/v1/traces?trace_tag=typeless')).body
    expect(own?.['trigger_instances']).toEqual([expect.objectContaining({ ref: 'core.svc.generic.inquiry' })])
    const one = await on.call('GET', `/v1/traces/${String(trace?.['id'])}`, undefined, theirs)
    expect(one.body['trigger_instances']).toEqual(trace?.['trigger_instances'])
  })

  it('core.inject_trigger takes the old name', async () => {
    const parameters = { trigger_name: 'core.st2.generic.inquiry', payload: { id: 'injected' }, trace_tag: 'injected' }
    const { status, result } = await runToEnd(on, parameters, { action: 'core.inject_trigger' })
    expect([status, result]).toEqual(['succeeded', expect.objectContaining({ exit_code: 0 })])
    const [trace] = (await on.call<Json[]>('GET', '/v1/traces?trace_tag=injected')).body
    expect(trace?.['trigger_instances']).toEqual([expect.objectContaining({ ref: 'core.svc.generic.inquiry' })])
    const refused = await runToEnd(off, parameters, { action: 'core.inject_trigger' })
    expect(JSON.stringify(refused.result)).toContain('core.svc.generic.inquiry')
  })
})

describe('6: the datastore', () => {
  it('on: scopes under both names, answered with the one that was asked for', async () => {
    const put = await on.call('PUT', '/v1/keys/color', { name: 'color', value: 'red', scope: 'st2kv.system' })
    expect([put.status, put.body['scope'], put.body['uid']]).toEqual([
      200,
      'st2kv.system',
      'key_value_pair:svckv.system:color',
    ])
    expect((await on.call('GET', '/v1/keys/color?scope=st2kv.system')).body['scope']).toBe('st2kv.system')
    expect((await on.call('GET', '/v1/keys/color')).body['scope']).toBe('svckv.system')
    expect((await on.call('GET', '/v1/keys/color', undefined, theirs)).body['scope']).toBe('st2kv.system')
    const list = await on.call<Json[]>('GET', '/v1/keys?scope=st2kv.system')
    expect(list.body.map(({ scope }) => scope)).toEqual(['st2kv.system'])
    const mine = await on.call('PUT', '/v1/keys/own', { name: 'own', value: 'mine', scope: 'st2kv.user' })
    expect(mine.body['scope']).toBe('st2kv.user')
    expect((await on.call('DELETE', '/v1/keys/own?scope=st2kv.user')).status).toBe(204)
  })

  it('off: the refusal names our scope', async () => {
    const refused = await off.call('GET', '/v1/keys/color?scope=st2kv.system')
    expect([refused.status, faultOf(refused)]).toEqual([400, expect.stringContaining('"svckv.system"')])
    const put = await off.call('PUT', '/v1/keys/color', { name: 'color', value: 'red', scope: 'st2kv.user' })
    expect([put.status, faultOf(put)]).toEqual([400, expect.stringContaining('"svckv.user"')])
  })

  it('on: st2kv in parameters, rules and criteria; off: the error names svckv', async () => {
    for (const app of [on, off]) await app.call('PUT', '/v1/keys/plant', { name: 'plant', value: 'tree' })
    const action = { action: 'core.echo', parameters: { message: '{{ st2kv.system.plant }}/{{ svckv.system.plant }}' } }
    const made = await on.call('POST', '/v1/executions', action)
    const id = String(made.body['id'])
    const ended = await waitFor('the end', async () => {
      const { body } = await on.call('GET', `/v1/executions/${id}`)
      return body['status'] === 'succeeded' ? body : undefined
    })
    expect(ended['result']).toMatchObject({ stdout: 'tree/tree' })
    const refused = await off.call('POST', '/v1/executions', {
      ...action,
      parameters: { message: '{{ st2kv.system.plant }}' },
    })
    expect([refused.status, faultOf(refused)]).toEqual([400, expect.stringContaining('svckv')])

    const rule = webhookRule('by-key', 'core.st2.webhook')
    rule['criteria'] = { 'trigger.body.text': { type: 'equals', pattern: '{{ st2kv.system.plant }}' } }
    await on.call('POST', '/v1/rules', rule)
    const sent = await on.call('POST', '/v1/webhooks/by-key', { text: 'tree' })
    const instance = sent.headers.get('svc-trigger-instance-id') ?? ''
    await waitFor('the rule', async () => {
      const { body } = await on.call<Json[]>('GET', `/v1/ruleenforcements?trigger_instance=${instance}`)
      return body.length === 1
    })
  })
})

describe('7: the environment of actions', () => {
  it('has both names where the option is on', async () => {
    const names = ['ACTION_PACK_NAME', 'ACTION_EXECUTION_ID', 'ACTION_API_URL', 'ACTION_DEBUG', 'API_URL']
    const cmd = `env | grep -E '^(ST2|SVC)_' | grep -v NODE | sort`
    const { result } = await runToEnd(on, { cmd })
    const lines = String((result as Json)['stdout']).split('\n')
    const own = new Map(lines.map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]))
    for (const name of names) {
      const ours = own.get(`SVC_${name === 'API_URL' ? 'ACTION_API_URL' : name}`)
      expect([name, own.get(`ST2_${name}`)]).toEqual([name, ours])
      expect(ours).toBeTruthy()
    }
    const without = await runToEnd(off, { cmd })
    expect(String((without.result as Json)['stdout'])).not.toContain('ST2_')
  })
})

describe('unknown query parameters', () => {
  it('are named in the header Warning, on every endpoint', async () => {
    for (const path of ['/v1/rules', '/v1/executions/last', '/v1/keys', '/v1/', '/auth/v1/tokens/validate']) {
      const method = path.startsWith('/auth') ? 'POST' : 'GET'
      const answer = await off.call(method, `${path}?pakc=core&xx=1`)
      expect([path, warningOf(answer)]).toEqual([path, expect.stringContaining('Unknown query parameter \\"pakc\\"')])
      expect(warningOf(answer)).toContain('xx')
    }
    expect(warningOf(await off.call('GET', '/v1/actions?pakc=core'))).toContain('Did you mean \\"pack\\"?')
    expect(warningOf(await off.call('GET', '/v1/actions?pack=core&x-auth-token=a'))).toBe('')
    expect(warningOf(await off.call('GET', '/v1/actions'))).toBe('')
  })

  it('cannot break the header, nor make it long', async () => {
    const names = [
      '%0d%0aSet-Cookie: a=b',
      '"',
      '%5C',
      'ä',
      'x'.repeat(3000),
      ...Array.from({ length: 40 }, (_, i) => `n${i}`),
    ]
    const answer = await off.call('GET', `/v1/actions?${names.map((name) => `${name}=1`).join('&')}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toBeNull()
    expect(warningOf(answer).length).toBeLessThan(1200)
    expect(warningOf(answer)).toMatch(/^199 svc "[\x20-\x7e]*"$/)
  })
})
