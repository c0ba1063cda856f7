/** Contract 03, 3.1 and 3.2: creating executions, and what their record holds. */
import { hostname } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import {
  countExecutions,
  create,
  idPattern,
  rowsOf,
  createAppWithExamples,
  timestampPattern,
  unknownId,
  type ErrorAnswer,
} from './support.ts'
import { variants } from '../helpers/tiers.ts'

let server: TestApp
beforeAll(async () => {
  server = await createAppWithExamples({ settings: { 'webui.webui_base_url': 'https://ui.example/base/' } })
})
afterAll(async () => {
  await server.stop()
})

const noop = { action: 'core.noop' }
const accepted = async (body: Record<string, unknown>, headers?: Record<string, string>): Promise<ExecutionAnswer> => {
  const answer = await create(server, body, headers)
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body
}
/** Expects a refusal that leaves nothing behind. */
const refused = async (body: unknown, headers?: Record<string, string>): Promise<string> => {
  const before = countExecutions(server)
  const answer = await server.call<ErrorAnswer>('POST', '/v1/executions', body, headers)
  expect([answer.text, answer.status]).toEqual([answer.text, 400])
  expect(countExecutions(server)).toBe(before)
  return answer.body.faultstring
}
const traceOf = (id: string): { id: string; tag: string } => {
  const [row] = rowsOf<{ id: string; tag: string }>(
    server,
    `select t.id as id, t.trace_tag as tag from executions as e join traces as t on t.id = e.trace_id where e.id = ?`,
    id,
  )
  return row ?? { id: '', tag: '' }
}

/** Keys of a context that nobody else may set. */
const ofServer = {
  user: 'eve',
  pack: 'eve',
  rbac: { roles: ['admin'] },
  scopes: [],
  're-run': { ref: '0123456789abcdef01234567' },
  cancelled_by: 'eve',
}

describe('03.1 body', () => {
  it('03.1 action and parameters: the record as requested', async () => {
    const execution = await accepted({ action: 'core.local', parameters: { cmd: 'echo hi' } })
    expect(execution.status).toBe('requested')
    expect(execution.parameters).toEqual({ cmd: 'echo hi' })
    expect(execution.context).toEqual({ user: 'svc', pack: 'core' })
    expect(execution.log).toEqual([{ status: 'requested', timestamp: expect.stringMatching(timestampPattern) }])
  })

  it('03.1 parameters: null values are kept', async () => {
    const execution = await accepted({ action: 'core.local', parameters: { cmd: 'true', cwd: null } })
    expect(execution.parameters).toEqual({ cmd: 'true', cwd: null })
  })

  it.each([
    ['absent', {}, 'svc'],
    ['null', { user: null }, 'svc'],
    ['the caller', { user: 'svc' }, 'svc'],
    ['another user, while access control is off', { user: 'ada' }, 'ada'],
  ])('03.1 user: %s', async (_, body, user) => {
    const { id, context } = await accepted({ ...noop, ...body })
    expect(context['user']).toBe(user)
    const list = await server.call<ExecutionAnswer[]>('GET', `/v1/executions?user=${user}&limit=1`)
    expect(list.body[0]?.id).toBe(id)
  })

  it('03.1 context: merged into the context of the execution, except what the server sets', async () => {
    const { context } = await accepted({
      ...noop,
      context: { mine: { deep: [1, { a: null }] }, ...ofServer },
    })
    expect(context).toEqual({ mine: { deep: [1, { a: null }] }, user: 'svc', pack: 'core' })
  })

  it('03.1 notify: kept on the live action', async () => {
    const notify = { 'on-complete': { message: 'm', data: { a: 1 }, routes: ['r'] }, 'on-failure': { message: 'f' } }
    const { liveaction } = await accepted({ ...noop, notify })
    expect(liveaction['notify']).toEqual(notify)
  })

  it('03.1 delay: in milliseconds, kept on the record', async () => {
    // Time enough to be delayed even on a busy machine.
    const { id, delay, start_timestamp: start } = await accepted({ ...noop, delay: 2000 })
    expect(delay).toBe(2000)
    const done = await waitForStatus(server, id)
    const running = done.log.find(({ status }) => status === 'running')?.timestamp ?? ''
    expect(Date.parse(running) - Date.parse(start)).toBeGreaterThanOrEqual(1900)
    expect(done.log.map(({ status }) => status)).toEqual([
      'requested',
      'delayed',
      'requested',
      'scheduled',
      'running',
      'succeeded',
    ])
  })

  it.each([
    ['fraction', 1.5],
    ['text', '100'],
    ['negative', -1],
    ['beyond a year', 1e15],
  ])('03.1 delay: refused when it is a %s', async (_, delay) => {
    expect(await refused({ ...noop, delay })).toContain('delay')
  })

  it('03.1 delay: 0 and null are no delay', async () => {
    for (const delay of [0, null]) {
      const done = await waitForStatus(server, (await accepted({ ...noop, delay })).id)
      expect(done.log.map(({ status }) => status)).toEqual(['requested', 'scheduled', 'running', 'succeeded'])
      expect(done).not.toHaveProperty('delay')
    }
  })

  it('03.1 callback: stored', async () => {
    const { liveaction } = await accepted({ ...noop, callback: { url: 'http://x', nested: { a: [1] } } })
    expect(liveaction['callback']).toEqual({ url: 'http://x', nested: { a: [1] } })
  })

  it('03.1 tolerated but ignored', async () => {
    const execution = await accepted({
      ...noop,
      id: unknownId,
      status: 'succeeded',
      start_timestamp: '2001-01-01T00:00:00.000000Z',
      end_timestamp: '2001-01-01T00:00:00.000000Z',
      result: { mine: true },
      runner_info: { hostname: 'x', pid: 1 },
      action_is_workflow: true,
      liveaction: {},
      anything: [1],
    })
    expect(execution.id).not.toBe(unknownId)
    expect(execution.status).toBe('requested')
    expect(execution.start_timestamp > '2020').toBe(true)
    expect(execution).not.toHaveProperty('end_timestamp')
    expect(execution).not.toHaveProperty('result')
    expect(execution.liveaction).toMatchObject({ runner_info: {}, action_is_workflow: false })
    expect((await waitForStatus(server, execution.id)).result).toEqual({
      failed: false,
      succeeded: true,
      return_code: 0,
    })
  })

  it.each(['parameters', 'context'])('03.1 null for %s → 400', async (name) => {
    expect(await refused({ ...noop, [name]: null })).toMatch(new RegExp(`${name}.*None is not of type 'object'`))
  })

  it.each([
    ['action', 5],
    ['action', null],
    ['parameters', 'x'],
    ['parameters', []],
    ['user', 5],
    ['user', ''],
    ['user', {}],
    ['context', []],
    ['notify', 'x'],
    ['callback', 'x'],
  ])('03.1 wrong type: %s = %j → 400 naming it', async (name, value) => {
    expect(await refused({ ...noop, [name]: value })).toContain(name)
  })
})

describe('03.1 svc-context header', () => {
  it('03.1 header: merged after the body, except what the server sets', async () => {
    const { context } = await accepted(
      { ...noop, context: { a: 'body', b: 'body' } },
      { 'svc-context': JSON.stringify({ b: 'header', c: [1], ...ofServer }) },
    )
    expect(context).toEqual({ a: 'body', b: 'header', c: [1], user: 'svc', pack: 'core' })
  })

  it.each([
    ['text', 'string'],
    ['5', 'number'],
    ['[1]', 'array'],
    ['null', 'null'],
    ['"x"', 'string'],
    ['{', 'string'],
    ['{"__proto__": {"a": 1}}', 'object'],
  ])('03.1 header: not a JSON object (%s) → 400', async (header, kind) => {
    const message = await refused(noop, { 'svc-context': header })
    expect(message).toContain('Unable to convert svc-context from the headers into JSON')
    expect(message).toContain(`was ${kind}`)
  })
})

describe('03.1 parent', () => {
  it('03.1 parent: its user becomes the context user, and it lists the child', async () => {
    const parent = await accepted({ ...noop, user: 'ada' })
    const child = await accepted({ ...noop, context: { parent: { execution_id: parent.id, user: 'eve' } } })
    expect(child.parent).toBe(parent.id)
    expect(child.context['user']).toBe('ada')
    const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${parent.id}`)
    expect(body.children).toEqual([child.id])
    expect(traceOf(child.id)).toEqual(traceOf(parent.id))
  })

  it('03.1 parent: also from the header', async () => {
    const parent = await accepted(noop)
    const child = await accepted(noop, { 'svc-context': JSON.stringify({ parent: { execution_id: parent.id } }) })
    expect(child.parent).toBe(parent.id)
  })

  it.each([unknownId, 'last', 'x'])('03.1 parent: %s is no execution → 400 naming it', async (id) => {
    expect(await refused({ ...noop, context: { parent: { execution_id: id } } })).toContain(id)
  })
})

describe('03.1 trace context', () => {
  it('03.1 trace: a tag starts a trace, and joins the one there is', async () => {
    const first = await accepted({ ...noop, context: { trace_context: { trace_tag: 'order 17' } } })
    const second = await accepted({ ...noop, context: { trace_context: { trace_tag: 'order 17' } } })
    expect(first.context['trace_context']).toEqual({ trace_tag: 'order 17' })
    expect(traceOf(first.id)).toEqual({ id: expect.stringMatching(idPattern), tag: 'order 17' })
    expect(traceOf(second.id)).toEqual(traceOf(first.id))
  })

  it('03.1 trace: requests at the same moment with the same new tag share one trace', async () => {
    const context = { trace_context: { trace_tag: 'at once' } }
    const created = await Promise.all(Array.from({ length: 30 }, () => accepted({ ...noop, context })))
    expect(new Set(created.map(({ id }) => traceOf(id).id)).size).toBe(1)
    expect(rowsOf(server, `select id from traces where trace_tag = 'at once'`)).toHaveLength(1)
    const members = rowsOf<{ object_id: string }>(
      server,
      `select object_id from trace_components where trace_id = ? and kind = 'execution' order by object_id`,
      traceOf(created[0]?.id ?? '').id,
    )
    expect(members.map((row) => row.object_id)).toEqual(created.map(({ id }) => id).toSorted())
  })

  it('03.1 trace: an id joins; with both given the id decides', async () => {
    const { id } = traceOf((await accepted({ ...noop, context: { trace_context: { trace_tag: 'joined' } } })).id)
    for (const more of [{}, { trace_tag: 'another' }]) {
      const execution = await accepted({ ...noop, context: { trace_context: { id_: id, ...more } } })
      expect(traceOf(execution.id)).toEqual({ id, tag: 'joined' })
    }
    expect(rowsOf(server, `select id from traces where trace_tag = 'another'`)).toEqual([])
  })

  it('03.1 trace: without one a tag is made', async () => {
    for (const context of [{}, { trace_context: {} }]) {
      const execution = await accepted({ ...noop, context })
      expect(traceOf(execution.id).tag).toBe(`execution-${String(execution.liveaction['id'])}`)
      expect(execution.context).toEqual({ user: 'svc', pack: 'core' })
    }
  })

  it.each([unknownId, 'x', "' or 1=1"])('03.1 trace: unknown id %s → 400 naming it, nothing kept', async (id) => {
    const traces = () => rowsOf(server, 'select id from traces').length
    const before = traces()
    const message = await refused({ ...noop, context: { trace_context: { id_: id, trace_tag: 'kept?' } } })
    expect(message).toContain('Unable to find')
    expect(message).toContain(id)
    expect(traces()).toBe(before)
  })

  it.each([
    ['text', 'x'],
    ['a list', []],
    ['null', null],
    ['a number', 1],
    ['an object with a foreign key', { trace_tag: 'x', unheard_of: 1 }],
    ['an object with a tag that is no text', { trace_tag: 5 }],
    ['an object with an id that is no text', { id_: {} }],
  ])('03.1 trace: %s → 400, in the body and in the header', async (_, value) => {
    expect(await refused({ ...noop, context: { trace_context: value } })).toContain('trace_context')
    const header = JSON.stringify({ trace_context: value })
    expect(await refused(noop, { 'svc-context': header })).toContain('trace_context')
  })
})

describe('03.1 failures', () => {
  it.each([
    ['no action', { parameters: {} }, "'action' is a required property"],
    ['unknown action', { action: 'core.unheard_of' }, 'Action "core.unheard_of" cannot be found.'],
    ['ref without a dot', { action: 'noop' }, 'Action "noop" cannot be found.'],
    ['ref with a path', { action: '../core.noop' }, 'Action "../core.noop" cannot be found.'],
    ['empty ref', { action: '' }, 'Action "" cannot be found.'],
    [
      'action disabled',
      { action: 'examples.disabled', parameters: { cmd: 'true' } },
      'Unable to execute. Action "examples.disabled" is disabled.',
    ],
    ['missing required parameter', { action: 'core.local' }, "'cmd' is a required property"],
    [
      'unknown parameter',
      { action: 'core.noop', parameters: { x: 1 } },
      "Additional properties are not allowed ('x' was unexpected)",
    ],
    [
      'wrong type, by conversion',
      { action: 'core.local', parameters: { cmd: 1 } },
      'Value "1" must either be a string or None. Got "int".',
    ],
    [
      'wrong type of a required parameter',
      { action: 'examples.needy', parameters: { options: [1] } },
      "is not of type 'object'",
    ],
    [
      'wrong type of an optional parameter',
      { action: 'examples.checked', parameters: { options: [1] } },
      "is not of type 'object', 'null'",
    ],
    ['not in enum', { action: 'examples.checked', parameters: { choice: 'x' } }, "'x' is not one of ['a', 'b']"],
    [
      'immutable parameter',
      { action: 'core.local', parameters: { cmd: 'true', sudo: false } },
      "Override of immutable parameter(s) ['sudo'] is unsupported.",
    ],
  ])('03.1 failures: %s → 400, nothing kept', async (_, body, text) => {
    expect(await refused(body)).toContain(text)
  })

  it('03.1 failures: template problem → 400, an execution in status failed is left behind', async () => {
    const before = countExecutions(server)
    const answer = await server.call<ErrorAnswer>('POST', '/v1/executions', {
      action: 'core.local',
      parameters: { cmd: '{{ unheard_of }}' },
    })
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(/"cmd".*unheard_of/)
    expect(countExecutions(server)).toBe(before + 1)
    const { body } = await server.call<ExecutionAnswer>('GET', '/v1/executions/last')
    expect(body).toMatchObject({
      status: 'failed',
      result: { error: expect.stringContaining('unheard_of'), traceback: expect.any(String) },
    })
    expect(body.end_timestamp).toMatch(timestampPattern)
  })

  it('03.1 failures: a template problem leaves the failed execution also when the rest would not fit the schema', async () => {
    const before = countExecutions(server)
    const answer = await create(server, { action: 'core.local', parameters: { cwd: '{{ unheard_of }}' } })
    expect(answer.status).toBe(400)
    expect(countExecutions(server)).toBe(before + 1)
    // A name that the action does not have is refused before anything is rendered.
    const surplus = await create(server, { action: 'core.local', parameters: { cwd: '{{ unheard_of }}', x: 1 } })
    expect([surplus.status, surplus.body.faultstring]).toEqual([400, expect.stringContaining("'x' was unexpected")])
    expect(countExecutions(server)).toBe(before + 1)
  })

  it.each([
    ['body schema before the action', { action: 'core.unheard_of', delay: 'x' }, undefined, /delay/],
    ['action before the header', { action: 'core.unheard_of' }, 'not json', /core\.unheard_of/],
    ['header before templates', { action: 'core.local', parameters: { cmd: '{{ nope }}' } }, 'not json', /svc-context/],
    [
      'conversion before disabled',
      { action: 'examples.disabled', parameters: { cmd: 'true', timeout: 'x' } },
      undefined,
      /timeout/,
    ],
    ['disabled before the parameter schema', { action: 'examples.disabled' }, undefined, /disabled/],
    [
      'parameter schema before immutable',
      { action: 'core.local', parameters: { sudo: true } },
      undefined,
      /'cmd' is a required property/,
    ],
    [
      'immutable before the trace',
      {
        action: 'core.local',
        parameters: { cmd: 'true', sudo: true },
        context: { trace_context: { id_: unknownId } },
      },
      undefined,
      /immutable/,
    ],
  ] as const)('03.1 order of checks: %s', async (_, body, header, text) => {
    expect(await refused(body, header === undefined ? {} : { 'svc-context': header })).toMatch(text)
  })
})

describe('03.2 record', () => {
  it('03.2 every field of a new record', async () => {
    const execution = await accepted({ action: 'core.local', parameters: { cmd: 'echo hi' } })
    const action = (await server.call('GET', '/v1/actions/core.local')).body
    const runner = (await server.call('GET', '/v1/runnertypes/local-shell-cmd')).body
    expect(execution).toEqual({
      id: expect.stringMatching(idPattern),
      status: 'requested',
      start_timestamp: expect.stringMatching(timestampPattern),
      action,
      runner,
      liveaction: {
        id: expect.stringMatching(idPattern),
        action: 'core.local',
        action_is_workflow: false,
        parameters: { cmd: 'echo hi' },
        callback: {},
        runner_info: {},
      },
      parameters: { cmd: 'echo hi' },
      context: { user: 'svc', pack: 'core' },
      log: [{ status: 'requested', timestamp: expect.stringMatching(timestampPattern) }],
      web_url: `https://ui.example/base/#/history/${execution.id}/general`,
    })
  })

  it('03.2 keys come back as they were sent, whatever keys were sent before', async () => {
    for (const key of ['\\', '"', '\n', 'é']) {
      const written = JSON.stringify(key).replace('é', '\\u00e9')
      const { id } = await accepted(
        { action: 'core.local', parameters: { cmd: 'true', env: `{"a":"1",${written}:"2"}` } },
        { 'svc-context': `{"a":1,${written}:2}` },
      )
      // As text: this process reads keys wrongly as well.
      const { text } = await server.call('GET', `/v1/executions/${id}`)
      expect(text).toContain(`"context":{"a":1,${JSON.stringify(key)}:2,`)
      expect(text).toContain(`"env":{"a":"1",${JSON.stringify(key)}:"2"}`)
    }
  })

  it('03.2 what is added by completion', async () => {
    const before = await accepted({ action: 'core.local', parameters: { cmd: 'echo hi' } })
    const after = await waitForStatus(server, before.id)
    const result = { failed: false, succeeded: true, return_code: 0, stdout: 'hi', stderr: '' }
    expect(after).toEqual({
      ...before,
      status: 'succeeded',
      end_timestamp: expect.stringMatching(timestampPattern),
      elapsed_seconds: expect.any(Number),
      liveaction: { ...before.liveaction, runner_info: { hostname: hostname(), pid: process.pid } },
      result,
      result_size: Buffer.byteLength(JSON.stringify(result)),
      log: ['requested', 'scheduled', 'running', 'succeeded'].map((status) => ({
        status,
        timestamp: expect.stringMatching(timestampPattern) as string,
      })),
    })
    expect(after.elapsed_seconds).toBeGreaterThan(0)
    const times = after.log.map(({ timestamp }) => timestamp)
    expect(times).toEqual(times.toSorted())
    expect(after.end_timestamp).toBe(times.at(-1))
  })

  it('03.2 empty attributes are left out, kept in liveaction', async () => {
    const { id } = await accepted({ ...noop, parameters: {}, context: {}, callback: {}, delay: 0 })
    const { body } = await server.call('GET', `/v1/executions/${id}`)
    for (const name of ['parameters', 'children', 'delay', 'parent', 'rule', 'trigger', 'trigger_instance']) {
      expect(body).not.toHaveProperty(name)
    }
    expect(body['liveaction']).toMatchObject({ parameters: {}, callback: {}, action_is_workflow: false })
  })

  it('03.2 a falsy result disappears', async () => {
    const { id } = await accepted({ action: 'core.local', parameters: { cmd: 'sleep 60' }, delay: 3_600_000 })
    const { body } = await server.call<ExecutionAnswer>('PUT', `/v1/executions/${id}`, {
      status: 'succeeded',
      result: {},
    })
    expect(body.status).toBe('succeeded')
    expect(body).not.toHaveProperty('result')
    expect((await server.call('GET', `/v1/executions/${id}/attribute/result`)).body).toEqual({})
  })

  it('03.2 action and runner stay as they were at creation', async () => {
    const { id, runner } = await accepted({ ...noop, delay: 3_600_000 })
    await server.call('PUT', '/v1/runnertypes/noop', { enabled: false })
    try {
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
      expect(body.runner).toEqual(runner)
      expect(body.runner['enabled']).toBe(true)
    } finally {
      await server.call('PUT', '/v1/runnertypes/noop', { enabled: true })
      await server.call('DELETE', `/v1/executions/${id}`)
    }
  })
})

describe('00.15 secret masking', () => {
  const mask = '********'
  const supplied = {
    token: 'tok-secret',
    // Long enough to be found in no time or id.
    number: 4711_4711_4711,
    vault: { a: 'vault-secret' },
    account: { name: 'ada', password: 'acc-secret' },
    accounts: [{ password: 'list-secret' }, { password: null }],
  }
  const shown = {
    token: mask,
    number: mask,
    vault: mask,
    account: { name: 'ada', password: mask },
    accounts: [{ password: mask }, { password: expect.anything() as unknown }],
  }

  it('00.15 masked in the reply of create, in get, list and children, in parameters and liveaction', async () => {
    const parent = await accepted(noop)
    const created = await accepted({
      action: 'examples.secretive',
      parameters: supplied,
      context: { parent: { execution_id: parent.id } },
    })
    await waitForStatus(server, created.id)
    const got = (await server.call<ExecutionAnswer>('GET', `/v1/executions/${created.id}`)).body
    const [listed] = (await server.call<ExecutionAnswer[]>('GET', `/v1/executions?id=${created.id}`)).body
    const [child] = (await server.call<ExecutionAnswer[]>('GET', `/v1/executions/${parent.id}/children`)).body
    const [part] = (
      await server.call<ExecutionAnswer[]>('GET', `/v1/executions?id=${created.id}&include_attributes=parameters`)
    ).body
    for (const record of [created, got, listed, child]) {
      expect(record?.parameters).toMatchObject({ ...shown, accounts: [{ password: mask }, {}] })
      expect(record?.liveaction['parameters']).toEqual(record?.parameters)
      expect(JSON.stringify(record)).not.toMatch(/-secret|471147114711/)
    }
    expect(part?.parameters).toEqual(got.parameters)
  })

  it('00.15 masked in the replies of re-run, PUT and DELETE', async () => {
    const { id } = await accepted({ action: 'examples.secretive', parameters: supplied, delay: 3_600_000 })
    const rerun = await server.call('POST', `/v1/executions/${id}/re_run`, { delay: 3_600_000 })
    const changed = await server.call('PUT', `/v1/executions/${id}`, { status: 'canceled' })
    const canceled = await server.call('DELETE', `/v1/executions/${String(rerun.body['id'])}`)
    for (const { status, text } of [rerun, changed, canceled]) {
      expect(status).toBeLessThan(300)
      expect(text).toContain(mask)
      expect(text).not.toMatch(/-secret|471147114711/)
    }
  })

  it('00.15 show_secrets=true shows them, everywhere, while access control is off', async () => {
    const created = await create(
      server,
      { action: 'examples.secretive', parameters: supplied, delay: 3_600_000 },
      {},
      '?show_secrets=true',
    )
    expect(created.body.parameters).toEqual(supplied)
    const { id } = created.body
    const got = (await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}?show_secrets=1`)).body
    expect(got.parameters).toEqual(supplied)
    expect(got.liveaction['parameters']).toEqual(supplied)
    const [listed] = (await server.call<ExecutionAnswer[]>('GET', `/v1/executions?id=${id}&show_secrets=yes`)).body
    expect(listed?.parameters).toEqual(supplied)
    const hidden = (await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}?show_secrets=false`)).body
    expect(hidden.parameters['token']).toBe(mask)
    const canceled = (await server.call<ExecutionAnswer>('DELETE', `/v1/executions/${id}?show_secrets=true`)).body
    expect(canceled.parameters).toEqual(supplied)
  })

  it('00.15 what is masked cannot be looked for, or values could be tried out', async () => {
    const parameters = { ...supplied, cwd: '/tmp', sudo_password: 'pw-secret' }
    const { id } = await accepted({ action: 'examples.secretive', parameters, delay: 3_600_000 })
    const totalOf = async (path: string, more = ''): Promise<number> => {
      const filter = encodeURIComponent(`id:${id} ${path}`)
      const { status, headers } = await server.call('GET', `/v1/executions?filter=${filter}${more}`)
      expect(status).toBe(200)
      return Number(headers.get('x-total-count'))
    }
    for (const token of [
      `parameters.token:${supplied.token}`,
      `liveaction.parameters.token:${supplied.token}`,
      `parameters.number:${supplied.number}`,
      `parameters.account.password:${supplied.account.password}`,
      'parameters.sudo_password:pw-secret',
      `parameters.token:${mask}`,
    ]) {
      expect([token, await totalOf(token)]).toEqual([token, 0])
      // Encrypted, so that not even administrators can look for it; what they find is what is stored.
      const shows = token.includes(mask) ? 1 : 0
      expect([token, await totalOf(token, '&show_secrets=true')]).toEqual([token, shows])
    }
    expect(await totalOf('parameters.cwd:/tmp')).toBe(1)
    await server.call('DELETE', `/v1/executions/${id}`)
  })

  it('00.15 sudo_password of the runner', async () => {
    const { id } = await accepted({
      action: 'core.local',
      parameters: { cmd: 'echo done', sudo_password: 'pw-secret' },
    })
    await waitForStatus(server, id)
    const plain = await server.call('GET', `/v1/executions/${id}`)
    expect(plain.body).toMatchObject({ parameters: { sudo_password: mask } })
    expect(plain.text).not.toContain('pw-secret')
    const open = await server.call('GET', `/v1/executions/${id}?show_secrets=true`)
    expect(open.body).toMatchObject({ parameters: { sudo_password: 'pw-secret' } })
  })

  it('00.15 errors do not repeat secret values, logs hold none', async () => {
    expect(
      await refused({ action: 'examples.secretive', parameters: { token: { deep: 'err-secret' } } }),
    ).not.toContain('err-secret')
    expect(await refused({ action: 'examples.secretive', parameters: { number: 'err-secret' } })).not.toContain(
      'err-secret',
    )
    expect(server.log()).not.toMatch(/-secret/)
  })

  it.each(variants(['api.mask_secrets', 'log.mask_secrets']))('00.15 switched off with %s', async (option) => {
    const open = await createTestApp({ settings: { [option]: 'False' } })
    try {
      const parameters = { cmd: 'true', sudo_password: 'shown' }
      const { body } = await create(open, { action: 'core.local', parameters, delay: 3_600_000 })
      expect(body.parameters).toEqual(parameters)
      expect((await open.call('GET', `/v1/executions/${body.id}`)).body).toMatchObject({ parameters })
    } finally {
      await open.stop()
    }
  })
})
