/** Contract 06: hooks, bodies, headers, the generic hook, traces. Signatures are in `06-signatures`. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, startServer, waitForLog, type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { problemOfWebhook } from '../../src/modules/triggers/builtin/webhook-parameters.ts'
import { idPattern, rowsOf, send, type ErrorAnswer, type RawAnswer } from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

interface Webhook {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  type: string
  description: string
  parameters: Record<string, unknown>
}

interface Rule {
  id: string
  ref: string
  trigger: { ref: string }
}

interface Payload {
  headers: Record<string, string>
  headers_lower: Record<string, string>
  body: unknown
}

interface Instance {
  id: string
  trigger: string
  payload: Payload
  status: string
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const json = { 'Content-Type': 'application/json' }
let made = 0
const fresh = (): string => `name${++made}`

/** A rule on a hook of its own, unless the parameters name one. @returns the name of the hook */
async function makeHook(
  parameters: Record<string, unknown> = { url: fresh() },
  rule: Record<string, unknown> = {},
): Promise<{ hook: string; rule: Rule }> {
  const answer = await server.call<Rule>('POST', '/v1/rules', {
    name: fresh(),
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters },
    action: { ref: 'core.noop' },
    ...rule,
  })
  if (answer.status !== 201) throw new Error(answer.text)
  return { hook: String(parameters['url']).replace(/^\/+|\/+$/g, ''), rule: answer.body }
}

const deleteRule = (rule: Rule): Promise<Answer<unknown>> => server.call('DELETE', `/v1/rules/${rule.id}`)

const post = (hook: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Answer<ErrorAnswer>> =>
  server.call<ErrorAnswer>('POST', `/v1/webhooks/${hook}`, body, headers)

const instanceIds = ({ headers }: Answer<unknown>): string[] => headers.get('svc-trigger-instance-id')?.split(',') ?? []

async function instanceOf(answer: Answer<unknown>): Promise<Instance> {
  const [id = ''] = instanceIds(answer)
  return (await server.call<Instance>('GET', `/v1/triggerinstances/${id}`)).body
}

const payloadOf = async (answer: Answer<unknown>): Promise<Payload> => (await instanceOf(answer)).payload

/** Without those of executions that have finished meanwhile. */
const countInstances = (): number =>
  rowsOf<{ n: number }>(
    server,
    "select count(*) as n from trigger_instances where trigger_type <> 'core.svc.generic.actiontrigger'",
  )[0]?.n ?? -1

describe('06.1 registration', () => {
  it('06.1 a rule registers its hook, and nothing else does', async () => {
    const name = fresh()
    expect((await post(name)).status).toBe(404)
    await makeHook({ url: name })
    expect((await post(name)).status).toBe(202)
  })

  it.each([
    [{}, "'url' is a required property"],
    [{ url: 1 }, 'is not of type'],
    [{ url: '' }, 'non-empty'],
    [{ url: '//' }, 'is empty or contains only slashes'],
    [{ url: 'a', other: 1 }, "('other' was unexpected)"],
    [{ url: 'svc' }, 'reserved'],
    [{ url: 'a/../b' }, "'..'"],
  ])('06.1 parameters %j → 400', async (parameters, text) => {
    const answer = await server.call<ErrorAnswer>('POST', '/v1/rules', {
      name: fresh(),
      trigger: { type: 'core.svc.webhook', parameters },
      action: { ref: 'core.noop' },
    })
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining(text)])
  })

  it('06.1 slashes around the name do not count, slashes inside do; the text is kept as given', async () => {
    const [a, b] = [fresh(), fresh()]
    const { rule } = await makeHook({ url: `//${a}/${b}/` })
    for (const path of [`${a}/${b}`, `/${a}/${b}`, `${a}/${b}/`, `${a}%2F${b}`, `%2f${a}/${b}%2F/`]) {
      expect([path, (await post(path)).status]).toEqual([path, 202])
    }
    for (const path of [a, b, `${a}/${b}/c`, `${a}//${b}`, `${a}/%2e%2e/${a}/${b}`, `${a}/../${a}/${b}`]) {
      const answer = await send(server.urls.api, { method: 'POST', path: `/v1/webhooks/${path}` })
      expect([path, answer.status]).toEqual([path, 404])
    }
    const { body } = await server.call<Webhook>('GET', `/v1/triggers/${rule.trigger.ref}`)
    const kept = body.parameters ?? (await server.call<Webhook>('GET', `/v1/webhooks/${a}/${b}`)).body.parameters
    expect(kept).toEqual({ url: `//${a}/${b}/` })
  })

  it('06.1 equal texts share a trigger, others only the hook; each trigger has its instance, in one trace', async () => {
    const name = fresh()
    const [one, two, three] = [
      await makeHook({ url: name }),
      await makeHook({ url: name }),
      await makeHook({ url: `/${name}` }),
    ]
    expect(one.rule.trigger.ref).toBe(two.rule.trigger.ref)
    expect(three.rule.trigger.ref).not.toBe(one.rule.trigger.ref)
    const answer = await post(name, { a: 1 })
    const ids = instanceIds(answer)
    expect(ids).toHaveLength(2)
    const rows = rowsOf<{ trigger: string; trace_id: string }>(
      server,
      'select "trigger", trace_id from trigger_instances where id in (?, ?) order by id',
      ...ids,
    )
    expect(rows.map((row) => row.trigger)).toEqual([one.rule.trigger.ref, three.rule.trigger.ref])
    expect(new Set(rows.map((row) => row.trace_id))).toEqual(new Set([answer.headers.get('svc-trace-id')]))
  })

  it('06.1 the hook goes with the last rule that uses it, or when that is changed', async () => {
    const name = fresh()
    const [one, two] = [await makeHook({ url: name }), await makeHook({ url: name })]
    await deleteRule(one.rule)
    expect((await post(name)).status).toBe(202)
    const other = fresh()
    const change = await server.call('PUT', `/v1/rules/${two.rule.id}`, {
      name: fresh(),
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: other } },
      action: { ref: 'core.noop' },
    })
    expect(change.status).toBe(200)
    expect([(await post(name)).status, (await post(other)).status]).toEqual([404, 202])
    await deleteRule(two.rule)
    expect((await post(other)).status).toBe(404)
  })

  it('06.1 a disabled rule keeps its hook, and does not match', async () => {
    const { hook } = await makeHook(undefined, { enabled: false })
    const answer = await post(hook)
    expect(answer.status).toBe(202)
    expect((await instanceOf(answer)).status).toBe('processed')
    expect(rowsOf(server, 'select id from executions where trigger_instance = ?', ...instanceIds(answer))).toEqual([])
  })

  it('06.1 names are case-sensitive, and may hold whatever an address can', async () => {
    const name = `${fresh()}Ä b;c=d%&+~`
    await makeHook({ url: name })
    expect((await post(encodeURIComponent(name))).status).toBe(202)
    expect((await post(encodeURIComponent(name.toLowerCase()))).status).toBe(404)
  })

  fullOnly(it)('06.1 hooks are there again after a restart, be it a hard one', async () => {
    const folder = makeFolder()
    try {
      const first = await startServer({ basePath: folder.path })
      const rule = { name: 'r', trigger: { type: 'core.svc.webhook', parameters: { url: 'kept' } } }
      await first.call('POST', '/v1/rules', { ...rule, action: { ref: 'core.noop' } })
      await first.stop('SIGKILL')
      const second = await createTestApp({ basePath: folder.path })
      try {
        expect((await second.call('POST', '/v1/webhooks/kept', {})).status).toBe(202)
        expect((await second.call<Webhook[]>('GET', '/v1/webhooks')).body).toHaveLength(1)
      } finally {
        await second.stop()
      }
    } finally {
      folder.remove()
    }
  })
})

describe('06.2 list and get', () => {
  it('06.2 GET /webhooks: the triggers of all hooks, not paged; none: an empty array', async () => {
    await withApp({}, async (empty) => {
      const answer = await empty.call<Webhook[]>('GET', '/v1/webhooks')
      expect([answer.status, answer.body, answer.headers.get('x-total-count')]).toEqual([200, [], '0'])
    })
    const { hook, rule } = await makeHook()
    const answer = await server.call<Webhook[]>('GET', '/v1/webhooks?limit=1')
    expect(answer.headers.get('x-total-count')).toBe(String(answer.body.length))
    expect(answer.headers.get('x-limit')).toBeNull()
    expect(answer.body.length).toBeGreaterThan(1)
    const listed = answer.body.find(({ ref }) => ref === rule.trigger.ref)
    expect(listed).toEqual({
      id: expect.stringMatching(idPattern) as string,
      uid: expect.stringMatching(/^trigger:core:[0-9a-f-]{36}:[0-9a-f]{32}$/) as string,
      ref: rule.trigger.ref,
      name: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      pack: 'core',
      type: 'core.svc.webhook',
      description: expect.any(String) as string,
      parameters: { url: hook },
      rules: [rule.ref],
    })
    expect((await server.call('GET', `/v1/webhooks/${hook}`)).body).toEqual(listed)
  })

  it('06.2 GET /webhooks/{hook}: the first trigger; 404 when unknown; slashes inside are found', async () => {
    const name = `${fresh()}/inner`
    const first = await makeHook({ url: name })
    await makeHook({ url: `${name}/` })
    const { status, body } = await server.call<Webhook>('GET', `/v1/webhooks/${name}`)
    expect([status, body.ref]).toEqual([200, first.rule.trigger.ref])
    for (const unknown of [fresh(), 'svc', 'svc/']) {
      const answer = await server.call<ErrorAnswer>('GET', `/v1/webhooks/${unknown}`)
      expect([answer.status, answer.body.faultstring]).toEqual([
        404,
        `Webhook ${unknown.replace('/', '')} not registered with svc`,
      ])
    }
  })

  it('06.2 pack: those with a rule of it', async () => {
    const { hook } = await makeHook()
    const urlsOf = async (pack: string): Promise<unknown[]> =>
      (await server.call<Webhook[]>('GET', `/v1/webhooks?pack=${pack}`)).body.map(({ parameters }) => parameters['url'])
    const { body } = await server.call<Webhook & { rules: string[] }>('GET', `/v1/webhooks/${hook}`)
    const [pack = ''] = body.rules[0]?.split('.') ?? []
    expect(await urlsOf(pack)).toContain(hook)
    for (const other of ['core', pack.slice(0, -1), `${pack}.`]) expect(await urlsOf(other)).toEqual([])
  })

  it('06.2 the generic hook is not listed', async () => {
    const { body } = await server.call<Webhook[]>('GET', '/v1/webhooks')
    expect(body.filter(({ parameters }) => parameters['url'] === 'svc')).toEqual([])
  })
})

describe('06.3 what is sent', () => {
  let hook: string
  beforeAll(async () => {
    hook = (await makeHook()).hook
  })

  const sent = async (type: string | undefined, body: string | Buffer): Promise<RawAnswer> =>
    send(server.urls.api, {
      method: 'POST',
      path: `/v1/webhooks/${hook}`,
      headers: type === undefined ? {} : { 'Content-Type': type },
      body,
    })

  it('06.3 success is 202, and the body as it was parsed', async () => {
    const body = { kind: 'order', id: 17, list: [1, 2.5, null, true, 'ä'], inner: { constructor: {}, 'a.b': [] } }
    const answer = await post(hook, body)
    expect([answer.status, answer.body]).toEqual([202, body])
    expect(answer.headers.get('content-type')).toBe('application/json; charset=UTF-8')
    expect((await payloadOf(answer)).body).toEqual(body)
  })

  it('06.3 beyond it, headers: the instances, the trace, where to look', async () => {
    const answer = await post(hook)
    const [id = ''] = instanceIds(answer)
    expect(id).toMatch(idPattern)
    expect(answer.headers.get('svc-trace-id')).toMatch(idPattern)
    expect(answer.headers.get('location')).toBe(`/v1/triggerinstances/${id}`)
    expect((await server.call('GET', String(answer.headers.get('location')))).status).toBe(200)
    expect((await server.call('GET', `/v1/traces/${String(answer.headers.get('svc-trace-id'))}`)).status).toBe(200)
    expect(answer.headers.get('idempotent-replayed')).toBeNull()
  })

  it.each([
    ['application/json', '{"a":1}', { a: 1 }],
    ['application/json; charset=utf-8', '[1,{"a":2}]', [1, { a: 2 }]],
    [undefined, '{"a":1}', { a: 1 }],
    ['application/json', '[]', []],
    ['application/json', '', {}],
    [undefined, '', {}],
    ['text/plain', '{"a":1}', { a: 1 }],
    ['application/x-www-form-urlencoded', 'name=a&name=b&x=1', { name: ['a', 'b'], x: ['1'] }],
    ['application/x-www-form-urlencoded', 'a=&b&c=1', { c: ['1'] }],
    ['application/x-www-form-urlencoded', 'k%C3%A4y=%E2%82%AC+x%2By', { käy: ['€ x+y'] }],
    ['application/x-www-form-urlencoded', '', {}],
  ])('06.3 %s %j', async (type, text, value) => {
    const answer = await sent(type, text)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([202, value])
    const id = String(answer.headers['svc-trigger-instance-id'])
    const { body } = await server.call<Instance>('GET', `/v1/triggerinstances/${id}`)
    expect(body.payload.body).toEqual(value)
  })

  it('06.3 multipart: fields become lists, blanks and files are left out', async () => {
    const part = (head: string, text: string): string =>
      `--xx\r\nContent-Disposition: form-data; ${head}\r\n\r\n${text}\r\n`
    const form = [
      part('name="a"', '1'),
      part('name="blank"', ''),
      part('name="upload"; filename="../x"', 'content'),
      part('name="a"', 'ä'),
    ].join('')
    const answer = await sent('multipart/form-data; boundary=xx', `${form}--xx--\r\n`)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([202, { a: ['1', 'ä'] }])
  })

  it.each([
    ['application/json', '1', "1 is not of type 'object', 'array'"],
    ['application/json', '"x"', "'x' is not of type 'object', 'array'"],
    ['application/json', 'true', "True is not of type 'object', 'array'"],
    ['application/json', 'null', "None is not of type 'object', 'array'"],
    ['application/json', '{"a":', 'Failed to parse request body: '],
    ['text/plain', 'hello', 'Failed to parse request body: '],
    ['application/json', '{"__proto__": {}}', 'Failed to parse request body: the key "__proto__"'],
    ['application/xml', '<a/>', 'Failed to parse request body: Unsupported Content-Type: "application/xml"'],
    ['multipart/form-data', 'x', 'Failed to parse request body: '],
    ['application/x-www-form-urlencoded', '{"a":1}', 'add the header "Content-Type: application/json"'],
  ])('06.3 %s %j → 400, nothing is dispatched', async (type, text, message) => {
    const before = countInstances()
    const answer = await sent(type, text)
    const { faultstring } = JSON.parse(answer.text) as ErrorAnswer
    expect([answer.status, faultstring]).toEqual([400, expect.stringContaining(message)])
    expect(countInstances()).toBe(before)
  })

  it('06.3 query parameters are ignored, and in no payload', async () => {
    const answer = await post(`${hook}?a=1&b=secret&limit=x`, { c: 1 })
    expect(answer.status).toBe(202)
    expect(JSON.stringify(await payloadOf(answer))).not.toContain('secret')
  })

  it('06.3 methods: POST and GET, no other', async () => {
    for (const method of ['PUT', 'DELETE']) {
      const answer = await server.call(method, `/v1/webhooks/${hook}`)
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([
        method,
        405,
        expect.stringContaining('POST'),
      ])
    }
  })
})

describe('06.4 custom hooks', () => {
  it('06.4 unknown → 404', async () => {
    const answer = await post('nobody/here')
    expect([answer.status, answer.body.faultstring, answer.body.code]).toEqual([
      404,
      'Webhook nobody/here not registered with svc',
      'WEBHOOK_NOT_REGISTERED',
    ])
  })

  it('06.4 payload: headers under both spellings of their names, and the body', async () => {
    const { hook } = await makeHook()
    const answer = await send(server.urls.api, {
      method: 'POST',
      path: `/v1/webhooks/${hook}`,
      headers: {
        ...json,
        'x-custom-id': '7',
        'X-GITHUB-event': 'push',
        Authorization: 'Bearer of somebody else',
        'x-forwarded-for': '127.0.0.1',
        'X-Many': ['a', 'b', 'c'],
        'User-Agent': 'test/1',
        'svc-TRACE-tag': 'a tag',
        Cookie: 'auth-token=x; other=y',
        'x-a-__proto__': '1',
      },
      body: '{"kind":"order"}',
    })
    const { body } = await server.call<Instance>(
      'GET',
      `/v1/triggerinstances/${String(answer.headers['svc-trigger-instance-id'])}`,
    )
    const { host } = new URL(server.urls.api)
    expect(body.payload).toEqual({
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': '16',
        'X-Custom-Id': '7',
        'X-Github-Event': 'push',
        Authorization: '********',
        'X-Forwarded-For': '127.0.0.1',
        'X-Many': 'a,b,c',
        'User-Agent': 'test/1',
        Host: host,
        Connection: 'close',
        'X-A-__proto__': '1',
      },
      headers_lower: {
        'content-type': 'application/json',
        'content-length': '16',
        'x-custom-id': '7',
        'x-github-event': 'push',
        authorization: '********',
        'x-forwarded-for': '127.0.0.1',
        'x-many': 'a,b,c',
        'user-agent': 'test/1',
        host,
        connection: 'close',
        'x-a-__proto__': '1',
      },
      body: { kind: 'order' },
    })
  })

  it('06.4 a criterion names a header in any case', async () => {
    const url = fresh()
    const wanted = ["headers['X-GitHub-Event']", "headers['x-github-event']", "headers_lower['X-GITHUB-EVENT']"]
    for (const [index, key] of wanted.entries()) {
      const { status } = await server.call('POST', '/v1/rules', {
        name: `${url}_${index}`,
        enabled: true,
        trigger: { type: 'core.svc.webhook', parameters: { url } },
        criteria: { [`trigger.${key}`]: { type: 'equals', pattern: 'push' } },
        action: { ref: 'core.noop' },
      })
      expect(status).toBe(201)
    }
    const send = async (headers: Record<string, string>): Promise<unknown> => {
      const { body } = await server.call('POST', `/v1/webhooks/${url}`, {}, { Prefer: 'wait=20', ...headers })
      return (body['executions'] as object[]).length
    }
    expect([await send({ 'X-GitHub-Event': 'push' }), await send({ 'X-GitHub-Event': 'ping' })]).toEqual([3, 0])
  })

  it('06.4 a header called like a prototype is no header', async () => {
    const { hook } = await makeHook()
    const answer = await post(hook, {}, { __proto: '1', ['__proto__']: '2', constructor: '3' })
    const { headers_lower: lower } = await payloadOf(answer)
    expect(Object.keys(lower)).toContain('constructor')
    expect(Object.keys(lower)).not.toContain('__proto__')
    expect(lower['constructor']).toBe('3')
  })
})

describe('06.5 the generic hook', () => {
  const types = { open: '', strict: '', needy: '' }
  beforeAll(async () => {
    const make = async (more: object): Promise<string> => {
      const answer = await server.call<{ ref: string }>('POST', '/v1/triggertypes', {
        name: fresh(),
        pack: 'mine',
        ...more,
      })
      if (answer.status !== 201) throw new Error(answer.text)
      return answer.body.ref
    }
    types.open = await make({})
    types.strict = await make({
      payload_schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
    })
    types.needy = await make({ parameters_schema: { type: 'object', properties: { a: { type: 'string' } } } })
  })

  it('06.5 dispatches the trigger with the payload itself; other keys are ignored, and answered', async () => {
    const body = { trigger: types.open, payload: { a: 1, headers: 'mine' }, more: true }
    const answer = await post('svc', body, { 'X-Custom': '1' })
    expect([answer.status, answer.body]).toEqual([202, body])
    expect(await instanceOf(answer)).toMatchObject({ trigger: types.open, payload: { a: 1, headers: 'mine' } })
    expect(JSON.stringify(await payloadOf(answer))).not.toContain('X-Custom')
  })

  it('06.5 slashes around it do not count', async () => {
    for (const path of ['svc/', '/svc', '%2Fsvc']) {
      expect((await post(path, { trigger: types.open, payload: {} })).status).toBe(202)
    }
    expect((await post('SVC', { trigger: types.open, payload: {} })).status).toBe(404)
  })

  it('06.5 what a rule sees: trigger.<key>', async () => {
    const made = await server.call('POST', '/v1/rules', {
      name: fresh(),
      enabled: true,
      trigger: { type: types.open },
      criteria: { 'trigger.wanted': { type: 'equals', pattern: 'yes' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.wanted }}' } },
    })
    expect(made.status).toBe(201)
    const payload = { wanted: 'yes' }
    const answer = await server.call<{ executions: { result: { stdout: string } }[] }>(
      'POST',
      '/v1/webhooks/svc',
      { trigger: types.open, payload },
      { Prefer: 'wait=20' },
    )
    expect([answer.status, answer.body.executions.map(({ result }) => result.stdout)]).toEqual([200, ['yes']])
  })

  it.each<[string, unknown, string]>([
    ['an array', [], 'Webhook body needs to be an object, got: array'],
    ['a number', 5, 'Webhook body needs to be an object, got: integer'],
    ['null', 'null', 'Webhook body needs to be an object, got: null'],
    ['no trigger', { payload: {} }, 'Trigger not specified.'],
    ['an empty body', '', 'Trigger not specified.'],
    ['an empty trigger', { trigger: '', payload: {} }, 'Trigger not specified.'],
    ['a null trigger', { trigger: null, payload: {} }, 'Trigger not specified.'],
    ['a trigger that is no text', { trigger: {}, payload: {} }, 'Trigger must be'],
    ['no payload', { trigger: 'a.b' }, 'Payload not specified.'],
    ['a null payload', { trigger: 'a.b', payload: null }, 'Payload not specified.'],
    ['a payload that is no object', { trigger: 'a.b', payload: [1] }, 'Payload needs to be an object, got: array'],
  ])('06.5 %s → 400', async (_, body, text) => {
    const before = countInstances()
    const answer = await post('svc', body)
    expect([answer.status, answer.body.faultstring]).toEqual([400, expect.stringContaining(text)])
    expect(countInstances()).toBe(before)
  })

  it('06.5 a form → 400, because its values are lists', async () => {
    const answer = await send(server.urls.api, {
      method: 'POST',
      path: '/v1/webhooks/svc',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: `trigger=${types.open}&payload=x`,
    })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('Trigger must be')])
  })

  it.each<[string, () => Record<string, unknown>, string]>([
    ['an unknown type', () => ({ trigger: 'no.such', payload: { a: 1 } }), 'no.such'],
    [
      'a payload that breaks the schema',
      () => ({ trigger: types.strict, payload: { n: 'x' } }),
      "'x' is not of type 'integer'",
    ],
    ['a payload that misses something', () => ({ trigger: types.strict, payload: {} }), "'n' is a required property"],
    ['a type with parameters', () => ({ trigger: types.needy, payload: {} }), 'use the reference of such a trigger'],
  ])('06.5 %s → 400, which says why', async (_, body, text) => {
    const wanted = body()
    const answer = await post('svc', wanted)
    const prefix = `Trigger payload validation failed and validation is enabled, not dispatching a trigger "${String(wanted['trigger'])}" (`
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring.startsWith(prefix)).toBe(true)
    expect(answer.body.faultstring).toContain(text)
  })

  it('06.5 with system.validate_trigger_payload off: 202, whatever is in it; an unknown trigger is dropped', async () => {
    await withApp({ settings: { 'system.validate_trigger_payload': 'False' } }, async (lax) => {
      await lax.call('POST', '/v1/triggertypes', { name: 'n', pack: 'p', payload_schema: { required: ['x'] } })
      const send = (trigger: string) => lax.call('POST', '/v1/webhooks/svc', { trigger, payload: { a: 1 } })
      const [known, unknown] = [await send('p.n'), await send('no.such')]
      expect([known.status, unknown.status]).toEqual([202, 202])
      expect(instanceIds(known)).toHaveLength(1)
      expect(unknown.headers.get('svc-trigger-instance-id')).toBeNull()
      expect(rowsOf(lax, 'select id from trigger_instances')).toHaveLength(1)
      await waitForLog(lax, 'webhook.dropped')
    })
  })

  it('06.5 a trigger reference may be given, also that of a webhook; its payload is checked', async () => {
    const { rule } = await makeHook()
    const { ref } = rule.trigger
    expect((await post('svc', { trigger: ref, payload: { headers: {}, body: { a: 1 } } })).status).toBe(202)
    expect((await post('svc', { trigger: ref, payload: { body: 5 } })).status).toBe(400)
  })
})

describe('06.6 the trace tag', () => {
  const tagOf = async (answer: Answer<unknown>): Promise<string> => {
    const id = String(answer.headers.get('svc-trace-id'))
    return (await server.call<{ trace_tag: string }>('GET', `/v1/traces/${id}`)).body.trace_tag
  }

  it('06.6 Svc-Trace-Tag in any letter case is the tag; the same again joins', async () => {
    const { hook } = await makeHook(undefined, { enabled: false })
    const tag = `order ${fresh()}`
    const answers = [
      await post(hook, {}, { 'Svc-Trace-Tag': tag }),
      await post(hook, {}, { 'svc-trace-tag': tag }),
      await post(hook, {}, { 'SVC-TRACE-TAG': ` ${tag} ` }),
    ]
    expect(await tagOf(answers[0] ?? answers[1] ?? (await post(hook)))).toBe(tag)
    expect(new Set(answers.map(({ headers }) => headers.get('svc-trace-id'))).size).toBe(1)
    const { body } = await server.call<{ trigger_instances: object[] }[]>(
      'GET',
      `/v1/traces?trace_tag=${encodeURIComponent(tag)}`,
    )
    expect(body.map((trace) => trace.trigger_instances.length)).toEqual([3])
  })

  it('06.6 many at once with one tag: one trace', async () => {
    const { hook } = await makeHook()
    const tag = fresh()
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(hook, {}, { 'Svc-Trace-Tag': tag })))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202))
    expect(new Set(answers.map(({ headers }) => headers.get('svc-trace-id'))).size).toBe(1)
  })

  it('06.6 absent or empty: a tag of its own', async () => {
    const { hook } = await makeHook({ url: `${fresh()}/b` })
    const pattern = new RegExp(`^webhook-${hook}-[0-9a-f]{32}$`)
    const [one, two] = [await post(hook), await post(hook, {}, { 'Svc-Trace-Tag': ' ' })]
    expect(await tagOf(one)).toMatch(pattern)
    expect(await tagOf(two)).toMatch(pattern)
    expect(await tagOf(one)).not.toBe(await tagOf(two))
    const type = await server.call<{ ref: string }>('POST', '/v1/triggertypes', { name: fresh() })
    const generic = await post('svc', { trigger: type.body.ref, payload: {} })
    expect(await tagOf(generic)).toMatch(/^webhook-svc-[0-9a-f]{32}$/)
  })

  it('06.6 a template in a tag is text (CVE-2025-49521); a tag is at most 1024 characters', async () => {
    const { hook } = await makeHook()
    const tag = `{{ 7 * 7 }} ${fresh()}`
    expect(await tagOf(await post(hook, {}, { 'Svc-Trace-Tag': tag }))).toBe(tag)
    expect((await post(hook, {}, { 'Svc-Trace-Tag': 'x'.repeat(1024) })).status).toBe(202)
    expect((await post(hook, {}, { 'Svc-Trace-Tag': 'x'.repeat(1025) })).status).toBe(400)
  })
})

describe('06.7 outcomes', () => {
  it('06.7 nothing matches: a trigger instance only; several match: an execution each', async () => {
    const name = fresh()
    const wants = (kind: string) => ({ criteria: { 'trigger.body.kind': { type: 'equals', pattern: kind } } })
    await makeHook({ url: name }, wants('a'))
    await makeHook({ url: name }, wants('a'))
    await makeHook({ url: name }, wants('b'))
    const outcome = async (kind: string) => {
      const answer = await server.call<{ trigger_instances: object[]; executions: object[] }>(
        'POST',
        `/v1/webhooks/${name}`,
        { kind },
        { Prefer: 'wait=20' },
      )
      return [answer.status, answer.body.trigger_instances.length, answer.body.executions.length]
    }
    expect([await outcome('none'), await outcome('b'), await outcome('a')]).toEqual([
      [200, 1, 0],
      [200, 1, 1],
      [200, 1, 2],
    ])
  })

  it('06.7 an action that is missing: a failed enforcement; the POST was 202', async () => {
    const { hook } = await makeHook(undefined, { action: { ref: 'core.not_there' } })
    const answer = await post(hook)
    expect(answer.status).toBe(202)
    const [id = ''] = instanceIds(answer)
    const failed = await waitFor('the enforcement', async () => {
      const { body } = await server.call<{ status: string }[]>('GET', `/v1/ruleenforcements?trigger_instance=${id}`)
      return body[0]
    })
    expect(failed.status).toBe('failed')
  })

  it('06.7 where to look', async () => {
    const { hook } = await makeHook()
    const tag = fresh()
    const answer = await post(hook, {}, { 'Svc-Trace-Tag': tag, Prefer: 'wait=20' })
    expect(answer.status).toBe(200)
    const [id = ''] = instanceIds(answer)
    const list = async (path: string): Promise<string> => (await server.call('GET', path)).text
    expect(await list('/v1/triggerinstances?trigger_type=core.svc.webhook&limit=5')).toContain(id)
    expect(JSON.parse(await list(`/v1/ruleenforcements?trigger_instance=${id}`))).toHaveLength(1)
    expect(JSON.parse(await list(`/v1/traces?trace_tag=${tag}`))).toHaveLength(1)
  })

  it('06.8 the example', async () => {
    const made = await server.call('POST', '/v1/rules', {
      name: 'on_order',
      pack: 'default',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'sample' } },
      criteria: {
        'trigger.body.kind': { type: 'equals', pattern: 'order' },
        "trigger.headers['X-Source']": { type: 'iequals', pattern: 'shop' },
      },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.id }}' } },
    })
    expect(made.status).toBe(201)
    const answer = await server.call<{ executions: { status: string; rule: string; result: { stdout: string } }[] }>(
      'POST',
      '/v1/webhooks/sample',
      { kind: 'order', id: 17 },
      { 'x-source': 'Shop', 'Svc-Trace-Tag': 'order-17', 'Svc-Api-Key': 'unused', Prefer: 'wait=20' },
    )
    expect(answer.status).toBe(200)
    expect(answer.body.executions).toEqual([
      expect.objectContaining({
        status: 'succeeded',
        action: 'core.local',
        rule: 'default.on_order',
        result: expect.objectContaining({ stdout: '17' }) as object,
      }),
    ])
    const payload = await payloadOf(answer)
    expect(payload.body).toEqual({ kind: 'order', id: 17 })
    expect(payload.headers['X-Source']).toBe('Shop')
    expect(JSON.stringify(payload)).not.toMatch(/svc-api-key|svc-trace-tag|unused/i)
  })
})

describe('06.3 admission', () => {
  it('06.3 too many instances wait for their rules: 503, and nothing is stored', async () => {
    // Nobody runs anything, and as soon as so many executions wait, instances do.
    await withApp(
      {
        settings: {
          'actionrunner.queue_limit': '3',
          'actionrunner.actions_pool_size': '1',
          'actionrunner.shutdown_grace_seconds': '0',
        },
      },
      async (busy) => {
        await busy.call('POST', '/v1/rules', {
          name: 'r',
          enabled: true,
          trigger: { type: 'core.svc.webhook', parameters: { url: 'busy' } },
          action: { ref: 'core.local', parameters: { cmd: 'sleep 60' } },
        })
        const count = (table: string, condition: string) =>
          rowsOf<{ n: number }>(busy, `select count(*) as n from ${table} where ${condition}`)[0]?.n
        const pending = () => count('trigger_instances', "status = 'pending'")
        const refused = await waitFor('a refusal', async () => {
          const answer = await busy.call<ErrorAnswer>('POST', '/v1/webhooks/busy', {})
          // One runs and three wait; before that, the instances that wait become executions still.
          return answer.status === 503 && count('executions', 'true') === 4 && pending() === 3 && answer
        })
        expect(refused.body.code).toBe('QUEUE_FULL')
        expect(refused.headers.get('retry-after')).toBe('5')
        expect(pending()).toBe(3)
      },
    )
  })
})

describe('hostile texts', () => {
  const corpus = [
    "' or 1=1 --",
    "x'; drop table triggers; --",
    '") union select * from api_keys --',
    '../../etc/passwd',
    '..%2f..%2fetc',
    '%00',
    '\0',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '{{ 7 * 7 }}',
    '{% for x in range(9) %}{% endfor %}',
    '$(reboot)',
    '<script>alert(1)</script>',
    '\u202etxt',
    'ä'.repeat(500),
    '\ud83d\ude00',
  ]

  it.each(corpus)('as the name of a hook: %j', async (text) => {
    for (const method of ['GET', 'POST']) {
      const answer = await send(server.urls.api, { method, path: `/v1/webhooks/${encodeURIComponent(text)}` })
      expect([method, answer.status, answer.text]).toEqual([method, 404, expect.stringContaining('not registered')])
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json; charset=UTF-8',
        'x-content-type-options': 'nosniff',
      })
    }
  })

  it.each(corpus)('as a url, a key, a value, a tag and an id: %j', async (text) => {
    const url = `${fresh()}/${text}`
    const isUsual = problemOfWebhook({ url }) === undefined
    const made = await server.call('POST', '/v1/rules', {
      name: fresh(),
      trigger: { type: 'core.svc.webhook', parameters: { url } },
      action: { ref: 'core.noop' },
    })
    expect(made.status).toBe(isUsual ? 201 : 400)
    const { hook } = await makeHook(isUsual ? { url } : undefined)
    const path = hook.split('/').map(encodeURIComponent).join('/')
    const header = Buffer.from(text.replaceAll('\0', '0')).toString('latin1')
    const body = text === '__proto__' ? { value: text } : { [text]: [text], value: text }
    const sendOnce = () =>
      send(server.urls.api, {
        method: 'POST',
        path: `/v1/webhooks/${path}`,
        headers: { ...json, 'Svc-Trace-Tag': header, 'Idempotency-Key': header, 'X-Text': header },
        body: Buffer.from(JSON.stringify(body)),
      })
    const [answer, again] = [await sendOnce(), await sendOnce()]
    expect([answer.status, JSON.parse(answer.text), again.status]).toEqual([202, body, 202])
    expect(again.headers['svc-trigger-instance-id']).toBe(answer.headers['svc-trigger-instance-id'])
    const id = String(answer.headers['svc-trigger-instance-id'])
    const { body: instance } = await server.call<Instance>('GET', `/v1/triggerinstances/${id}`)
    expect([instance.payload.body, instance.payload.headers['X-Text']]).toEqual([body, header])
    const trace = await server.call<{ trace_tag: string }>(
      'GET',
      `/v1/traces/${String(answer.headers['svc-trace-id'])}`,
    )
    expect(trace.body.trace_tag).toBe(header)
  })
})

describe('with authentication and access control', () => {
  const folder = makeFolder()
  let secured: TestApp
  let token: Record<string, string>
  const key: Record<string, Record<string, string>> = {}

  beforeAll(async () => {
    secured = await createTestApp({
      basePath: folder.path,
      settings: {
        'auth.enable': 'True',
        'rbac.enable': 'True',
        'rbac.backend': 'default',
        'api.max_body_bytes': '100000',
      },
    })
    const password = firstPassword(folder.path)
    const login = await call<{ token: string }>(
      `${secured.urls.auth}/tokens`,
      'POST',
      {},
      { Authorization: basicAuth('admin', password) },
    )
    token = { 'X-Auth-Token': login.body.token }
    for (const [name, url] of [
      ['mine', 'mine'],
      ['theirs', 'theirs/inner'],
      ['inner', 'mine/inner'],
    ] as const) {
      const made = await secured.call(
        'POST',
        '/v1/rules',
        {
          name,
          enabled: true,
          trigger: { type: 'core.svc.webhook', parameters: { url } },
          action: { ref: 'core.local', parameters: { cmd: 'echo out' } },
        },
        token,
      )
      if (made.status !== 201) throw new Error(made.text)
    }
    for (const [name, scopes] of Object.entries({
      sends: [{ permission_types: ['webhook_send'], resource_uid: 'webhook:mine' }],
      sendsGeneric: [{ permission_types: ['webhook_send'], resource_uid: 'webhook:svc' }],
      views: [
        { permission_types: ['webhook_view'], resource_uid: 'webhook:mine' },
        { permission_types: ['webhook_list'] },
      ],
      lists: [{ permission_types: ['webhook_list'] }],
    })) {
      const made = await secured.call<{ key: string }>('POST', '/v1/apikeys', { scopes }, token)
      if (made.status !== 201) throw new Error(made.text)
      key[name] = { 'Svc-Api-Key': made.body.key }
    }
  })
  afterAll(async () => {
    await secured.stop()
    folder.remove()
  })

  const at = (path: string, headers?: Record<string, string>, body: unknown = {}, method = 'POST') =>
    secured.call<ErrorAnswer>(method, `/v1/webhooks${path}`, method === 'POST' ? body : undefined, headers)

  it('06.3 no credential → 401 before anything else; in the query it counts as in a header', async () => {
    for (const path of ['/mine', '/unknown', '/svc', '/mine/', '/%2Fmine']) {
      expect([path, (await at(path)).status]).toEqual([path, 401])
    }
    expect((await at('/mine', token)).status).toBe(202)
    const { 'Svc-Api-Key': value = '' } = key['sends'] ?? {}
    expect((await at(`/mine?svc-api-key=${value}`)).status).toBe(202)
    expect((await at('/mine', { 'Svc-Api-Key': value })).status).toBe(202)
    expect((await at('/mine', { 'Svc-Api-Key': 'wrong' })).status).toBe(401)
    expect((await at('/mine', { ...token, 'Svc-Api-Key': value })).status).toBe(401)
  })

  it('06.3 an API key as a bearer token or as a Basic password, which is then in no payload', async () => {
    const { 'Svc-Api-Key': value = '' } = key['sends'] ?? {}
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
    for (const Authorization of [`Bearer ${value}`, basic(`sender:${value}`)]) {
      const answer = await at('/mine', { Authorization })
      expect(answer.status).toBe(202)
      const { text } = await secured.call('GET', answer.headers.get('location') ?? '', undefined, token)
      expect(text).toContain('"headers_lower"')
      expect(text).not.toMatch(/authorization/i)
    }
    for (const Authorization of [`Bearer svc_${'x'.repeat(43)}`, 'Bearer x', basic('admin:x'), value]) {
      expect((await at('/mine', { Authorization })).status).toBe(401)
    }
  })

  it('06.3 webhook_send on webhook:<hook>, however the name is spelled', async () => {
    const sends = key['sends'] ?? {}
    const statusAt = async (path: string): Promise<number> =>
      (await send(secured.urls.api, { method: 'POST', path: `/v1/webhooks${path}`, headers: sends })).status
    for (const path of ['/mine', '/mine/', '//mine', '/mine//', '/%2Fmine%2F', '/m%69ne']) {
      expect([path, await statusAt(path)]).toEqual([path, 202])
    }
    const others = [
      '/theirs/inner',
      '/mine/inner',
      '/mine%2Finner',
      '/mine/../theirs/inner',
      '/svc',
      '/unknown',
      '/Mine',
    ]
    const tricks = ['/mine/%2e%2e/theirs/inner', '/mine;/x', '/mine%00', '/mine%252F', '/mine/./inner']
    for (const path of [...others, ...tricks]) {
      expect([path, await statusAt(path)]).toEqual([path, 403])
    }
    expect(await statusAt('/mine?/inner/..')).toBe(202)
    expect((await at('/theirs/inner', sends)).body.faultstring).toContain('"webhook:theirs/inner"')
  })

  it('06.3 a body is not read of who may not send: 1 GB is refused at once', async () => {
    const { hostname, port } = new URL(secured.urls.api)
    const answerTo = (more: string, body = '--x\r\n'): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(Number(port), hostname)
        let text = ''
        socket.on('data', (data) => {
          text += String(data)
          if (text.includes('faultstring')) socket.destroy()
        })
        socket.once('close', () => resolve(text))
        socket.once('error', reject)
        socket.write(
          `POST /v1/webhooks/mine HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: multipart/form-data; boundary=x\r\n${more}\r\n${body}`,
        )
      })
    const { 'Svc-Api-Key': value = '' } = key['sends'] ?? {}
    expect(await answerTo('Content-Length: 1073741824\r\n')).toContain(' 401 ')
    expect(await answerTo('Transfer-Encoding: chunked\r\n', '5\r\n--x\r\n\r\n')).toContain(' 401 ')
    expect(await answerTo(`Svc-Api-Key: ${value}\r\nContent-Length: 1073741824\r\n`)).toContain(' 413 ')
  })

  it('06.2 webhook_list opens the list, which holds what may be viewed; webhook_view one', async () => {
    const listed = async (headers: Record<string, string> = {}) => {
      const { status, body } = await secured.call<Webhook[]>('GET', '/v1/webhooks', undefined, headers)
      return [status, status === 200 ? body.map(({ parameters }) => parameters['url']) : []]
    }
    expect(await listed(token)).toEqual([200, ['mine', 'theirs/inner', 'mine/inner']])
    expect(await listed(key['views'])).toEqual([200, ['mine']])
    expect(await listed(key['lists'])).toEqual([200, []])
    expect(await listed(key['sends'])).toEqual([403, []])
    expect((await at('/mine', key['views'], undefined, 'GET')).status).toBe(200)
    expect((await at('/theirs/inner', key['views'], undefined, 'GET')).status).toBe(403)
    expect((await at('/mine/inner', key['views'], undefined, 'GET')).status).toBe(403)
  })

  it('06.5 the generic hook does not lend the permission for others', async () => {
    const { body } = await secured.call<Webhook[]>('GET', '/v1/webhooks', undefined, token)
    const trigger = body[0]?.ref ?? ''
    const payload = { headers: {}, body: {} }
    expect((await at('/svc', key['sendsGeneric'], { trigger, payload })).status).toBe(403)
    expect((await at('/svc', token, { trigger, payload })).status).toBe(202)
  })

  it('results are for who may view the execution', async () => {
    const send = (headers: Record<string, string> = {}) =>
      secured.call<{ executions: { status: string; result?: unknown }[] }>(
        'POST',
        '/v1/webhooks/mine',
        {},
        {
          ...headers,
          Prefer: 'wait=20',
        },
      )
    const [all, some] = [await send(token), await send(key['sends'])]
    expect([all.status, some.status]).toEqual([200, 200])
    expect(all.body.executions.map(({ status, result }) => [status, result !== undefined])).toEqual([
      ['succeeded', true],
    ])
    expect(some.body.executions.map(({ status, result }) => [status, result !== undefined])).toEqual([
      ['succeeded', false],
    ])
  })
})
