/**
 * Who is obeyed by a workflow: its author and the rights of the user who runs it. Never data that it carries (decision 37),
 * and never a request that claims to belong to it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { finalStatuses, type Answer, type ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowActions, type WorkflowApp } from '../helpers/workflows.ts'
import type { ErrorAnswer } from './support.ts'

/** What a stranger sends. */
const payload = {
  yaql: '<% 1 + 1 %>',
  whole: "<% svckv('system.canary') %>",
  context: '<% ctx().svc.user %>',
  jinja: '{{ 1 + 1 }}',
  key: '{{ svckv.system.canary }}',
  block: '{% if true %}yes{% endif %}',
  comment: '{# gone #}',
  mixed: '<% 1 %>{{ 2 }}',
  open: '<% {{ {% ',
  nested: { 'list <% 2 + 2 %>': ['{{ 3 * 3 }}', '<% 3 * 3 %>'] },
  proto: { __proto__x: 1, constructor: { prototype: '<% 1 %>' } },
  inline: 'x" y="<% 1 %>" z="',
  path: '../../../etc/passwd',
}

const data = { data: { type: 'object' } }
const actions: WorkflowActions = {
  carry: {
    parameters: data,
    definition: `
version: 1.0
input: [data]
vars:
  - copy: <% ctx(data) %>
tasks:
  print:
    action: core.local
    input:
      cmd: printf %s "$DATA"
      env: {DATA: <% to_json_string(ctx(copy)) %>}
    next:
      - publish:
          - text: <% result().stdout %>
          - read: <% json_parse(result().stdout) %>
          - jinja: "{{ ctx().copy }}"
          - keys: {"<% ctx(copy).yaql %>": "<% ctx(copy).jinja %>"}
          - parts: "a <% ctx(copy).whole %> b <% ctx(copy).key %>"
          - jinjaParts: "a {{ ctx().copy.whole }} b {{ ctx().copy.key }}"
        do: shorter
  shorter:
    action: core.noop
    next:
      - publish: text2=<% ctx(text) %> inline="<% ctx(copy).inline %>" task=<% task(print).result.stdout %>
        do: each
  each:
    with: one in <% ctx(read).values().where(isString($)) %>
    action: core.echo message=<% item(one) %>
    next:
      - publish: [{lines: <% result().select($.stdout) %>}]
        do: inner
  inner:
    action: flow.inner
    input: {data: <% ctx(read) %>, text: <% ctx(text) %>}
    next:
      - publish: [{inner: <% result().output %>}]
        do: whole
  whole:
    action: flow.inner
    input: <% dict(data => ctx(read), text => ctx(copy).key) %>
    next:
      - publish: [{given: <% result().output.given %>}]
output:
  - all: <% ctx() %>
  - data: <% ctx(data) %>
`,
  },
  inner: {
    parameters: {
      ...data,
      text: { type: 'string' },
      // The author of an action may use templates in its defaults; what they read is data.
      given: { type: 'string', default: '{{ text }}' },
      deep: { type: 'object', default: { it: '{{ data }}' } },
    },
    definition: `
version: 1.0
input: [data, text, given, deep]
tasks:
  a: {action: core.echo message=<% ctx(text) %>}
output:
  - data: <% ctx(data) %>
  - text: <% ctx(text) %>
  - given: <% ctx(given) %>
  - deep: <% ctx(deep) %>
  - printed: <% task(a).result.stdout %>
`,
  },
  decides: {
    parameters: data,
    definition: `
version: 1.0
input: [data]
tasks:
  a:
    action: <% ctx(data).action %>
    next:
      - when: <% failed() %>
        do: noop
`,
  },
  timed: {
    parameters: data,
    definition: `
version: 1.0
input: [data]
tasks:
  a:
    action: core.noop
    delay: <% ctx(data).delay %>
`,
  },
}

describe('data is never evaluated', () => {
  let app: WorkflowApp
  beforeAll(async () => {
    app = await createWorkflowApp(actions)
    const item = { name: 'canary', value: 'CANARY', scope: 'svckv.system' }
    expectStatus(await app.call('PUT', '/v1/keys/canary', item), 200)
  })
  afterAll(async () => {
    await app.stop()
  })

  const inner = { data: payload, deep: { it: payload } }
  const expected = {
    status: 'succeeded',
    result: {
      output: {
        data: payload,
        all: {
          copy: payload,
          read: payload,
          jinja: payload,
          keys: { [payload.yaql]: payload.jinja },
          parts: `a ${payload.whole} b ${payload.key}`,
          jinjaParts: `a ${payload.whole} b ${payload.key}`,
          inline: payload.inline,
          lines: Object.values(payload).filter((value) => typeof value === 'string'),
          inner,
          given: payload.key,
        },
      },
    },
  }
  it('of a webhook', async () => {
    const rule = {
      name: 'carry',
      pack: 'flow',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: 'carry' } },
      action: { ref: 'flow.carry', parameters: { data: '{{ trigger.body }}' } },
    }
    expectStatus(await app.call('POST', '/v1/rules', rule), 201)
    expectStatus(await app.call('POST', '/v1/webhooks/carry', payload), 202)
    const started = await waitFor('the rule to start it', async () => {
      const { body } = await app.call<ExecutionAnswer[]>('GET', '/v1/executions?action=flow.carry')
      return body.find(({ context }) => 'rule' in context)
    })
    const ended = await app.ended(started.id)
    expect(ended).toMatchObject(expected)
    const { all } = ended.result['output'] as { all: Record<string, unknown> & { inner: Record<string, unknown> } }
    const texts = [all['text'], all['text2'], all['task'], all.inner['given'], all.inner['printed']]
    expect(texts.map((text) => JSON.parse(String(text)) as unknown)).toEqual(Array(5).fill(payload))
    expect(JSON.stringify(ended.result)).not.toContain('CANARY')
  })

  it.each([
    [
      'decides',
      { action: 'core.local cmd="id"' },
      'InvalidActionReferencedException: Unable to find action "core.local cmd="id"".',
    ],
    ['decides', { action: "<% 'core.noop' %>" }, 'InvalidActionReferencedException'],
    ['timed', { delay: '<% 0 %>' }, 'TypeError: The value of task delay is not type of integer.'],
  ])('%s: %j', async (name, given, message) => {
    const ended = await app.run(name, { data: given })
    expect(ended.status).toBe('failed')
    expect((ended.result['errors'] as { message: string }[])[0]?.message).toContain(message)
    expect(await app.children(ended.id)).toEqual([])
  })
})

function expectStatus(answer: Answer<unknown>, status: number): void {
  if (answer.status !== status) throw new Error(`answered ${answer.status}: ${answer.text}`)
}

const reading = (expression: string): string => `
version: 1.0
tasks:
  a:
    action: core.noop
    next:
      - publish: [{value: "${expression}"}]
output:
  - value: <% ctx(value) %>
`

const guarded: WorkflowActions = {
  tasks: `
version: 1.0
tasks:
  a:
    action: core.echo message="<% ctx().svc.user %>"
    next:
      - publish: [{user: <% result().stdout %>}]
        do: b
  b:
    action: flow.below
output:
  - user: <% ctx(user) %>
`,
  below: `
version: 1.0
tasks:
  c:
    action: core.local cmd="sleep 0.1"
`,
  slow: `
version: 1.0
tasks:
  a:
    action: core.local cmd="sleep 2"
    next: [{do: b}]
  b:
    action: core.noop
`,
  system: reading("<% svckv('system.shared') %>"),
  opened: reading("<% svckv('system.sealed', decrypt => true) %>"),
  own: reading("<% svckv('own') %>"),
  foreign: reading("<% svckv('user.root:own') %>"),
  // Variables that pretend to be those of the engine.
  published: `
version: 1.0
tasks:
  a:
    action: core.noop
    next:
      - publish: [{svc: {user: root}}, {value: "<% svckv('own') %>"}]
        do: b
  b:
    action: core.noop
    next:
      - publish: [{value: "<% svckv('own') %>"}, {user: "<% ctx().svc.user %>"}]
output:
  - value: <% ctx(value) %>
  - user: <% ctx(user) %>
`,
  given: {
    parameters: { svc: { type: 'object' } },
    definition: `
version: 1.0
input: [svc]
tasks:
  a:
    action: core.noop
    next:
      - publish: [{value: "<% svckv('own') %>"}]
output:
  - value: <% ctx(value) %>
`,
  },
  colon: reading("<% svckv('root:own') %>"),
  jinja: reading("{{ svckv('system.shared') }}"),
}

type Headers = Record<string, string>

describe('rights', () => {
  const folder = makeFolder()
  let app: WorkflowApp
  let administrator: Headers
  const headersOf: Record<string, Headers> = {}

  const as = <T>(user: string, method: string, path: string, body?: unknown): Promise<Answer<T & ErrorAnswer>> =>
    app.call<T & ErrorAnswer>(method, path, body, headersOf[user])

  async function makeKey(user: string, more: object = {}): Promise<Headers> {
    const answer = await app.call<{ key: string }>('POST', '/v1/apikeys', { user, ...more }, administrator)
    expectStatus(answer, 201)
    return { 'Svc-Api-Key': answer.body.key }
  }

  async function runAs(user: string, name: string, more: object = {}): Promise<ExecutionAnswer> {
    const created = await as<ExecutionAnswer>(user, 'POST', '/v1/executions', { action: `flow.${name}`, ...more })
    expectStatus(created, 201)
    return endedOf(created.body.id)
  }

  const endedOf = (id: string): Promise<ExecutionAnswer> =>
    waitFor(`${id} to end`, async () => {
      const { body } = await app.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, administrator)
      return finalStatuses.includes(body.status) && body
    })
  const childrenOf = async (id: string): Promise<ExecutionAnswer[]> =>
    (await app.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}`, undefined, administrator)).body

  const system = 'key_value_pair:svckv.system'

  beforeAll(async () => {
    const { define, assign } = createRbacFiles(folder.path)
    assign('admin', 'system_admin')
    assign('root', 'admin')
    const workflows = Object.keys(guarded).map((name) => ({ types: ['action_execute'], on: `action:flow:${name}` }))
    define('runner', workflows)
    define('reader', [
      ...workflows,
      { types: ['key_value_pair_view'], on: `${system}:shared` },
      { types: ['key_value_pair_view'], on: `${system}:sealed` },
    ])
    define('echoer', [{ types: ['action_execute'], on: 'action:core:echo' }])
    define('viewer', [{ types: ['action_view'], on: 'action:flow:tasks' }, { types: ['execution_list'] }])
    app = await createWorkflowApp(
      guarded,
      { settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' } },
      folder,
    )
    administrator = await signIn(app, 'admin', firstPassword(folder.path))
    for (const user of ['root', 'runner', 'reader', 'echoer', 'viewer']) headersOf[user] = await makeKey(user)
    for (const [user, name, value, more] of [
      ['root', 'shared', 'SHARED', {}],
      ['root', 'sealed', 'SEALED', { secret: true }],
      ['root', 'own', 'of root', { scope: 'svckv.user' }],
      ['runner', 'own', 'of runner', { scope: 'svckv.user' }],
    ] as const) {
      expectStatus(await as(user, 'PUT', `/v1/keys/${name}`, { name, value, ...more }), 200)
    }
  }, 60_000)
  afterAll(async () => {
    await app.stop()
    folder.remove()
  })

  it('who may run a workflow runs its tasks, and those of workflows below', async () => {
    const ended = await runAs('runner', 'tasks')
    expect(ended).toMatchObject({ status: 'succeeded', result: { output: { user: 'runner' } } })
    const [a, b] = (await childrenOf(ended.id)).reverse()
    expect([a?.context['user'], b?.context['user']]).toEqual(['runner', 'runner'])
    const alone = await as('runner', 'POST', '/v1/executions', { action: 'core.echo', parameters: { message: 'x' } })
    expect(alone.status).toBe(403)
    expect((await as('echoer', 'POST', '/v1/executions', { action: 'flow.tasks' })).status).toBe(403)
  })

  it.each([
    ['runner', 'own', 'succeeded', 'of runner'],
    ['runner', 'published', 'failed', 'permission'],
    ['runner', 'given', 'failed', 'permission'],
    ['reader', 'system', 'succeeded', 'SHARED'],
    ['reader', 'jinja', 'succeeded', 'SHARED'],
    ['reader', 'opened', 'succeeded', '********'],
    ['runner', 'system', 'failed', 'permission'],
    ['runner', 'jinja', 'failed', 'permission'],
    ['runner', 'opened', 'failed', 'permission'],
    ['runner', 'foreign', 'failed', 'does not exist'],
    ['runner', 'colon', 'failed', 'does not exist'],
  ])('%s reads the datastore in flow.%s: %s', async (user, name, status, shown) => {
    const more = name === 'given' ? { parameters: { svc: { user: 'root' } } } : {}
    const ended = await runAs(user, name, more)
    const text = JSON.stringify(ended.result)
    expect([ended.status, text]).toEqual([status, expect.stringContaining(shown)])
    expect(text).not.toMatch(/SEALED|of root/)
    expect(text.includes('SHARED')).toBe(shown === 'SHARED')
  })

  it('children have the scopes of the API key', async () => {
    const scopes = [{ permission_types: ['action_execute'], resource_uid: 'action:flow:tasks' }]
    const narrow = await app.call<{ key: string }>('POST', '/v1/apikeys', { user: 'reader', scopes }, administrator)
    expectStatus(narrow, 201)
    headersOf['narrow'] = { 'Svc-Api-Key': narrow.body.key }
    const ended = await runAs('narrow', 'tasks')
    expect(ended.status).toBe('succeeded')
    const own = ended.context['scopes']
    expect(own).toBeDefined()
    for (const child of await childrenOf(ended.id)) expect(child.context['scopes']).toEqual(own)
    expect((await as('narrow', 'POST', '/v1/executions', { action: 'flow.system' })).status).toBe(403)
  })

  it('and read the datastore within them', async () => {
    const scopes = [{ permission_types: ['action_execute'], resource_uid: 'action:flow:system' }]
    const narrow = await app.call<{ key: string }>('POST', '/v1/apikeys', { user: 'reader', scopes }, administrator)
    headersOf['narrower'] = { 'Svc-Api-Key': narrow.body.key }
    const ended = await runAs('narrower', 'system')
    expect(ended.status).toBe('failed')
    expect(JSON.stringify(ended.result)).not.toContain('SHARED')
  })

  it('children are seen, stopped and repeated by who may do so with their action', async () => {
    const ended = await runAs('runner', 'tasks')
    const [child] = await childrenOf(ended.id)
    const id = child?.id ?? ''
    expect((await as('viewer', 'GET', `/v1/executions/${ended.id}`)).status).toBe(200)
    expect((await as('viewer', 'GET', `/v1/executions/${ended.id}/workflow`)).status).toBe(200)
    expect((await as('echoer', 'GET', `/v1/executions/${ended.id}/workflow`)).status).toBe(403)
    expect((await as('viewer', 'GET', `/v1/executions/${id}`)).status).toBe(403)
    expect((await as('viewer', 'GET', `/v1/executions/${id}/result`)).status).toBe(403)
    const listed = await as<ExecutionAnswer[]>('viewer', 'GET', `/v1/executions/${ended.id}/children`)
    expect([403, 200]).toContain(listed.status)
    expect(listed.text).not.toContain(id)
    expect((await as('viewer', 'POST', `/v1/executions/${id}/re_run`, {})).status).toBe(403)
    expect((await as('viewer', 'DELETE', `/v1/executions/${id}`)).status).toBe(403)
    expect((await as('viewer', 'POST', `/v1/executions/${ended.id}/re_run`, { tasks: ['a'] })).status).toBe(403)
  })

  it('a re-run of tasks needs what a new run needs', async () => {
    const ended = await runAs('root', 'tasks')
    const asked = await as('viewer', 'POST', `/v1/executions/${ended.id}/re_run`, { tasks: ['b'] })
    expect(asked.status).toBe(403)
  })

  it('a request cannot join the workflow of somebody else', async () => {
    const { body: slow } = await as<ExecutionAnswer>('root', 'POST', '/v1/executions', { action: 'flow.slow' })
    const task = await waitFor('its task', async () => (await childrenOf(slow.id))[0])
    const { orquesta } = task.context as { orquesta: { workflow_execution_id: string } }
    const request = { action: 'core.echo', parameters: { message: 'mine' } }
    const parented = { ...request, context: { parent: { execution_id: slow.id } } }
    expect((await as('echoer', 'POST', '/v1/executions', parented)).status).toBe(403)
    for (const context of [
      { orquesta },
      { orquesta, workflow_execution: orquesta.workflow_execution_id },
      { 're-run': { ref: slow.id, workflow_execution: slow.id, tasks: ['a'], reset: [] } },
      { chain: { name: 'a' } },
    ]) {
      const { body, status } = await as<ExecutionAnswer>('echoer', 'POST', '/v1/executions', { ...request, context })
      expect(status).toBe(201)
      const mine = await endedOf(body.id)
      for (const key of ['orquesta', 're-run', 'chain', 'workflow_execution'])
        expect(mine.context).not.toHaveProperty(key)
    }
    // Who may act for others can hang an execution below it; the workflow does not count it.
    const hung = await as<ExecutionAnswer>('root', 'POST', '/v1/executions', {
      ...parented,
      context: { ...parented.context, orquesta },
    })
    expectStatus(hung, 201)
    await endedOf(hung.body.id)
    const again = { 're-run': { workflow_execution: 'x', tasks: ['a'] } }
    const fresh = await runAs('root', 'own', { context: again })
    expect(fresh).toMatchObject({ status: 'succeeded', result: { output: { value: 'of root' } } })
    const ended = await endedOf(slow.id)
    expect(ended.status).toBe('succeeded')
    const names = (await childrenOf(slow.id)).map(
      ({ context }) => (context['orquesta'] as { task_id?: string })?.task_id,
    )
    expect(names.filter((name) => name !== undefined).sort()).toEqual(['a', 'b'])
  })
})
