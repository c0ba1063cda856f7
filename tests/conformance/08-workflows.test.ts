/** Workflows (contract 08) on a running server, with real actions. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { WorkflowExplanation } from '../../src/modules/workflows/types.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import type { WorkflowActions } from '../helpers/flow-pack.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

const example = `
version: 1.0
input:
  - who
  - greet: hello
vars:
  - tries: 0
tasks:
  prepare:
    action: core.noop
    next:
      - do: say, log
  say:
    action: core.echo message="<% ctx(greet) %> <% ctx(who) %>"
    retry:
      count: 2
      delay: 1
    next:
      - when: <% succeeded() %>
        publish:
          - line: <% result().stdout %>
        do: finish
      - when: <% failed() %>
        do: fail
  log:
    action: core.local cmd="true"
    next:
      - do: finish
  finish:
    join: all
    action: core.noop
output:
  - line: <% ctx(line) %>
`

const who = { who: { type: 'string', required: true } }

const actions: WorkflowActions = {
  greet: { definition: example, parameters: who },
  fails: `
version: 1.0
tasks:
  a:
    action: core.local cmd="echo out; exit 3"
    next:
      - when: <% succeeded() %>
        do: b
  b:
    action: core.noop
output:
  - code: <% task(a).result.return_code %>
`,
  chain: 'chain: [{name: a, ref: core.noop}]',
  items: {
    definition: `
version: 1.0
input: [names, concurrency]
tasks:
  each:
    with:
      items: name in <% ctx(names) %>
      concurrency: <% ctx(concurrency) %>
    action: core.echo message="<% item(name) %>"
    next:
      - publish:
          - lines: <% result().select($.stdout) %>
output:
  - lines: <% ctx(lines) %>
`,
    parameters: { names: { type: 'array' }, concurrency: { type: 'integer', default: 2 } },
  },
  retries: `
version: 1.0
tasks:
  shaky:
    action: core.local cmd="exit 1"
    retry: {count: 2}
    next:
      - when: <% failed() %>
        publish: [{tried: true}]
        do: after
  after:
    action: core.noop
output:
  - status: <% task_status(shaky) %>
  - tried: <% ctx(tried) %>
`,
  outer: {
    definition: `
version: 1.0
input: [who]
tasks:
  inner:
    action: flow.greet who=<% ctx(who) %>
    next:
      - publish: [{line: "<% result().output.line %>"}]
output:
  - line: <% ctx(line) %>
  - parent: <% ctx().svc.action %>
`,
    parameters: who,
  },
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
    next:
      - when: <% succeeded() %>
        publish: [{go: "<% result().response.continue %>"}]
        do: after
  after:
    action: core.noop
output:
  - go: <% ctx(go) %>
`,
  slow: `
version: 1.0
tasks:
  first:
    action: core.local cmd="sleep 1"
    next:
      - do: second
  second:
    action: core.noop
`,
  outerlate: `
version: 1.0
tasks:
  inner:
    action: flow.slow
    delay: 3600
`,
  outerasks: `
version: 1.0
tasks:
  inner: {action: flow.asks}
`,
  outerslow: `
version: 1.0
tasks:
  inner:
    action: flow.slow
`,
  long: {
    definition: `
version: 1.0
input: [n]
tasks:
  a:
    action: core.local cmd="echo <% ctx(n) %>"
    next:
      - publish:
          - sum: <% range(3000).select($ * int(task(a).result.stdout)).sum() %>
          - same: <% range(3000).select(result().return_code).sum() %>
        do: b
  b:
    action: core.noop
output:
  - sum: <% ctx(sum) %>
  - same: <% ctx(same) %>
  - many: <% (range(0, 15000).toList() + range(0, 15000).toList()).len() %>
  - jinja: "{{ range(30000) | list | length }}"
  - wrong: <% range(3000).select($ * 1).sum() / 0 %>
`,
    parameters: { n: { type: 'integer' } },
  },
  never: `
version: 1.0
vars:
  - list: <% generate(0, true, $ + 1).len() %>
tasks:
  a:
    action: core.noop
`,
  steps: {
    runner: 'action-chain',
    parameters: { who: { type: 'string', default: 'you' }, password: { type: 'string', secret: true } },
    definition: `
vars:
  greeting: hello
chain:
  - name: say
    ref: core.echo
    parameters: {message: "{{ greeting }} {{ who }}"}
    publish: {line: "{{ say.stdout }}"}
    on-success: fails
  - name: fails
    ref: core.local
    parameters: {cmd: "exit 7"}
    on-success: never
    on-failure: mend
  - name: mend
    ref: core.echo
    parameters: {message: "{{ line }} {{ fails.return_code }}"}
    publish: {mended: "{{ mend.stdout }}"}
  - name: never
    ref: core.noop
`,
  },
  asking: {
    runner: 'action-chain',
    definition: `
chain:
  - name: ask
    ref: core.ask
    on-success: after
  - name: after
    ref: core.echo
    parameters: {message: "{{ ask.response.continue }}"}
`,
  },
  remembers: {
    runner: 'action-chain',
    definition: `
chain:
  - {name: say, ref: core.echo, parameters: {message: hello}, on-success: ask}
  - {name: ask, ref: core.ask, on-success: after}
  - {name: after, ref: core.echo, parameters: {message: "{{ say.stdout }}"}}
`,
  },
  nochain: { runner: 'action-chain', definition: 'chain:\n  - {name: a, ref: core.noop, on-success: b}\n' },
  late: `
version: 1.0
timeout: <% 1 + 0 %>
tasks:
  wait:
    action: core.local cmd="sleep 100"
`,
  longer: `
version: 1.0
tasks:
  wait:
    action: core.local cmd="sleep 100"
`,
  nestedlate: `
version: 1.0
timeout: 1
tasks:
  inner:
    action: flow.longer
`,
  limited: {
    parameters: { action: { type: 'string' }, input: { type: 'object' } },
    definition: `
version: 1.0
input: [action, input]
tasks:
  wait:
    action: <% ctx(action) %>
    input: <% ctx(input) %>
    timeout: 1
    next:
      - when: <% failed() %>
        do: after
  after:
    action: core.noop
`,
  },
  endless: `
version: 1.0
tasks:
  wait:
    action: core.local cmd="sleep 60"
    delay: 3600
`,
  unknown: `
version: 1.0
tasks:
  a:
    action: <% 'no.such' %>
`,
  wrong: `
version: 1.0
tasks:
  a:
    action: core.echo message=<% ctx(nobody) %>
`,
  counts: `
version: 1.0
vars: [{n: 0}]
tasks:
  begin:
    next: [{do: count}]
  count:
    action: core.noop
    next:
      - publish: [{n: "<% ctx(n) + 1 %>"}]
        do: decide
  decide:
    next:
      - when: <% ctx(n) < 5 %>
        do: count
output:
  - n: <% ctx(n) %>
`,
}

let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp(actions)
})
afterAll(async () => {
  await app.stop()
})

describe('8.14 the example', () => {
  it('forks, publishes, joins and gives its output', async () => {
    const ended = await app.run('greet', { who: 'world' })
    expect(ended).toMatchObject({ status: 'succeeded', result: { output: { line: 'hello world' } } })
    expect(ended.log.map(({ status }) => status)).toEqual(['requested', 'scheduled', 'running', 'succeeded'])
    const children = await app.children(ended.id)
    expect(children.map(({ context }) => (context['orquesta'] as { task_name: string }).task_name)).toEqual([
      'prepare',
      'log',
      'say',
      'finish',
    ])
  })
})

const statuses = (execution: { log: { status: string }[] }): string[] => execution.log.map(({ status }) => status)

describe('8.9 the end of a workflow', () => {
  it('fails with what failed', async () => {
    const ended = await app.run('fails')
    expect(ended).toMatchObject({
      status: 'failed',
      result: {
        output: { code: 3 },
        errors: [
          {
            type: 'error',
            task_id: 'a',
            message: 'Execution failed. See result for details.',
            result: { return_code: 3 },
          },
        ],
      },
    })
  })

  it('fails before it starts when its definition has mistakes', async () => {
    const ended = await app.run('wrong')
    expect(ended).toMatchObject({ status: 'failed', result: { output: null, errors: [{ type: 'context' }] } })
    expect(await app.children(ended.id)).toEqual([])
  })

  it('does not take an action chain for a workflow', async () => {
    const ended = await app.run('chain')
    expect(ended).toMatchObject({ status: 'failed', result: { output: null, errors: [{ type: 'syntax' }, {}] } })
    expect(await app.children(ended.id)).toEqual([])
  })

  it('fails when an action cannot be started', async () => {
    const ended = await app.run('unknown')
    expect(ended).toMatchObject({
      status: 'failed',
      result: { output: null, errors: [{ message: expect.stringContaining('no.such') as unknown }] },
    })
  })

  it('turns in a cycle', async () => {
    expect(await app.run('counts')).toMatchObject({ status: 'succeeded', result: { output: { n: 5 } } })
  })
})

describe('8.8 an expression that takes long', () => {
  it('reads what others read', async () => {
    const ended = await app.run('long', { n: 2 })
    expect(ended).toMatchObject({
      status: 'failed',
      result: {
        output: { sum: 8997000, same: 0, many: 30000, jinja: 30000 },
        errors: [{ message: expect.stringContaining('zero') as unknown }],
      },
    })
  })

  it('has an end', async () => {
    expect(await app.run('never')).toMatchObject({
      status: 'failed',
      result: { errors: [{ message: expect.stringContaining('Unable to evaluate expression') as unknown }] },
    })
  })
})

describe('8.5 items', () => {
  it('run, some at a time, and give their results in order', async () => {
    const names = Array.from({ length: 7 }, (_, n) => `n${n}`)
    const ended = await app.run('items', { names })
    expect(ended).toMatchObject({ status: 'succeeded', result: { output: { lines: names } } })
    const children = await app.children(ended.id)
    expect(children).toHaveLength(7)
    expect(children[6]?.context).toMatchObject({ orquesta: { item_id: 6 } })
  })
})

describe('8.6 a retry', () => {
  it('repeats the action', async () => {
    const ended = await app.run('retries')
    expect(ended).toMatchObject({ status: 'succeeded', result: { output: { status: 'failed', tried: true } } })
    expect(await app.children(ended.id)).toHaveLength(4)
  })
})

describe('a workflow in a workflow', () => {
  it('gives its output to the task', async () => {
    const ended = await app.run('outer', { who: 'you' })
    expect(ended).toMatchObject({
      status: 'succeeded',
      result: { output: { line: 'hello you', parent: 'flow.outer' } },
    })
  })
})

describe('8.15 an inquiry', () => {
  it('pauses the workflow until it is answered', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    const [inquiry] = await app.children(id)
    const answer = { id: inquiry?.id, response: { continue: true } }
    expect((await app.call('PUT', `/v1/inquiries/${inquiry?.id ?? ''}`, answer)).status).toBe(200)
    const ended = await app.ended(id)
    expect(ended).toMatchObject({ status: 'succeeded', result: { output: { go: true } } })
    expect(statuses(ended)).toEqual(['requested', 'scheduled', 'running', 'paused', 'running', 'succeeded'])
  })

  it.each(['asks', 'outerasks'])('keeps %s paused also after a resume', async (name) => {
    const { id } = await app.begin(name)
    await app.reaches(id, 'paused')
    expect((await app.call('PUT', `/v1/executions/${id}`, { status: 'resuming' })).status).toBe(200)
    const again = await waitFor('the pause after the resume', async () => {
      const seen = await app.execution(id)
      return statuses(seen).at(-2) === 'resuming' && seen.status === 'paused' && seen
    })
    expect(again.context).toMatchObject({ resumed_by: 'svc' })
    const { body: all } = await app.call<ExecutionAnswer[]>('GET', `/v1/executions/${id}/children`)
    expect(all.map(({ status }) => status).sort()).toEqual(name === 'asks' ? ['pending'] : ['paused', 'pending'])
    const inquiry = all.find(({ status }) => status === 'pending')?.id ?? ''
    await app.call('PUT', `/v1/inquiries/${inquiry}`, { id: inquiry, response: { continue: true } })
    expect((await app.ended(id)).status).toBe('succeeded')
  })

  it('is canceled with its workflow', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    await app.call('DELETE', `/v1/executions/${id}`)
    expect((await app.ended(id)).status).toBe('canceled')
    const [inquiry] = await app.children(id)
    expect(inquiry?.status).toBe('canceled')
  })
})

describe('8.9 pause, resume, cancel', () => {
  const put = (id: string, status: string) => app.call('PUT', `/v1/executions/${id}`, { status })

  it('pauses after the running task, and goes on', async () => {
    const { id } = await app.begin('slow')
    await app.reaches(id, 'running')
    expect(await put(id, 'pausing')).toMatchObject({ status: 200, body: { status: 'pausing' } })
    await app.reaches(id, 'paused')
    expect(await app.children(id)).toHaveLength(1)
    expect(await put(id, 'resuming')).toMatchObject({ status: 200 })
    const ended = await app.ended(id)
    expect(ended.status).toBe('succeeded')
    expect(statuses(ended)).toEqual([
      'requested',
      'scheduled',
      'running',
      'pausing',
      'paused',
      'resuming',
      'running',
      'succeeded',
    ])
  })

  it('cascades down', async () => {
    const { id } = await app.begin('outerslow')
    const inner = await waitForChild(id)
    await app.reaches(inner, 'running')
    await put(id, 'pausing')
    await app.reaches(inner, 'paused')
    await app.reaches(id, 'paused')
    await put(id, 'resuming')
    expect((await app.ended(id)).status).toBe('succeeded')
  })

  it('cancels what waits', async () => {
    const { id } = await app.begin('endless')
    const child = await waitForChild(id)
    await app.reaches(child, 'delayed')
    await app.call('DELETE', `/v1/executions/${id}`)
    expect(await app.ended(id)).toMatchObject({ status: 'canceled', result: { message: 'Action canceled by user.' } })
    expect((await app.ended(child)).status).toBe('canceled')
  })

  it('cancels the workflows above a canceled action', async () => {
    const { id } = await app.begin('outerslow')
    const inner = await waitForChild(id)
    const action = await waitForChild(inner)
    await app.reaches(action, 'running')
    await app.call('DELETE', `/v1/executions/${action}`)
    expect((await app.ended(id)).status).toBe('canceled')
    expect((await app.ended(inner)).status).toBe('canceled')
  })

  it('cancels a workflow in a workflow before it has started, and with it the one above', async () => {
    const { id } = await app.begin('outerlate')
    const inner = await waitForChild(id)
    await app.reaches(inner, 'delayed')
    await app.call('DELETE', `/v1/executions/${inner}`)
    expect((await app.ended(id)).status).toBe('canceled')
    expect(statuses(await app.ended(inner))).toEqual(['requested', 'delayed', 'canceling', 'canceled'])
  })

  async function waitForChild(id: string): Promise<string> {
    return waitFor(`a task of ${id}`, async () => (await app.children(id))[0]?.id)
  }
})

describe('8.10 a re-run from tasks', () => {
  it('repeats them in the same workflow', async () => {
    const failed = await app.run('fails')
    const { status, body } = await app.call<ExecutionAnswer>('POST', `/v1/executions/${failed.id}/re_run`, {
      tasks: ['a'],
    })
    expect(status).toBe(201)
    const ended = await app.ended(body.id)
    expect(ended).toMatchObject({ status: 'failed', result: { output: { code: 3 } } })
    expect(ended.context).toMatchObject({ workflow_execution: failed.context['workflow_execution'] })
  })

  it('ends with the reason when a task has not run', async () => {
    const failed = await app.run('fails')
    const { body } = await app.call<ExecutionAnswer>('POST', `/v1/executions/${failed.id}/re_run`, { tasks: ['b'] })
    expect(await app.ended(body.id)).toMatchObject({
      status: 'failed',
      result: { errors: [{ message: 'Unable to rerun workflow because one or more tasks is not found: b' }] },
    })
  })
})

describe('8.2 an action chain', () => {
  it('runs its nodes one after the other, and the one for failures', async () => {
    const ended = await app.run('steps', { who: 'all' })
    expect(ended).toMatchObject({
      status: 'succeeded',
      result: {
        published: { line: 'hello all', mended: 'hello all 7' },
        tasks: [
          { id: 'say', name: 'say', state: 'succeeded', workflow: null, result: { stdout: 'hello all' } },
          { id: 'fails', state: 'failed', result: { return_code: 7 } },
          { id: 'mend', state: 'succeeded' },
        ],
      },
    })
    expect(ended.result).not.toHaveProperty('error')
    const [say] = await app.children(ended.id)
    expect(say?.context).toMatchObject({
      parent: { execution_id: ended.id },
      chain: { name: 'say', ref: 'core.echo', on_success: 'fails' },
    })
  })

  it('pauses for an inquiry', async () => {
    const { id } = await app.begin('asking')
    await app.reaches(id, 'paused')
    const [inquiry] = await app.children(id)
    const answer = { id: inquiry?.id, response: { continue: false } }
    expect((await app.call('PUT', `/v1/inquiries/${inquiry?.id ?? ''}`, answer)).status).toBe(200)
    expect(await app.ended(id)).toMatchObject({
      status: 'succeeded',
      result: { tasks: [{ id: 'ask' }, { id: 'after', result: { stdout: 'False' } }] },
    })
  })

  it('knows after a restart what ran before it', async () => {
    const folder = makeFolder()
    const before = await createWorkflowApp(actions, {}, folder)
    const { id } = await before.begin('remembers')
    await before.reaches(id, 'paused')
    await before.stop()
    const after = await createWorkflowApp(actions, {}, folder)
    const inquiry = (await after.children(id)).find(({ status }) => status === 'pending')?.id ?? ''
    await after.call('PUT', `/v1/inquiries/${inquiry}`, { id: inquiry, response: { continue: true } })
    const ended = await after.ended(id)
    await after.stop()
    folder.remove()
    expect(ended).toMatchObject({
      status: 'succeeded',
      result: {
        tasks: [
          { id: 'say', state: 'succeeded', result: { stdout: 'hello', return_code: 0 } },
          { id: 'ask' },
          { id: 'after', result: { stdout: 'hello' } },
        ],
      },
    })
  })

  it('fails before it starts when a name leads nowhere', async () => {
    expect(await app.run('nochain')).toMatchObject({
      status: 'failed',
      result: { error: 'Unable to find node with name "b" referenced in "on-success" in task "a".' },
    })
  })
})

describe('a time limit', () => {
  it('of a workflow stops its actions', async () => {
    const { id } = await app.begin('late')
    const ended = await app.ended(id)
    expect(ended).toMatchObject({
      status: 'timeout',
      result: { error: 'The workflow took longer than its timeout.' },
    })
    const [child] = await app.children(id)
    expect((await app.ended(child?.id ?? '')).status).toBe('canceled')
  })

  it('of a workflow holds for those that it calls', async () => {
    const { id } = await app.begin('nestedlate')
    expect(await app.ended(id)).toMatchObject({ status: 'timeout', result: { error: expect.any(String) as unknown } })
    const [inner] = await app.children(id)
    expect((await app.ended(inner?.id ?? '')).status).toBe('timeout')
    const [action] = await app.children(inner?.id ?? '')
    expect((await app.ended(action?.id ?? '')).status).toBe('canceled')
  })

  it.each([
    ['core.local', { cmd: 'sleep 100' }],
    ['core.ask', {}],
    ['flow.endless', {}],
  ])('of a task ends its action, %s', async (action, input) => {
    const ended = await app.run('limited', { action, input })
    expect(ended.status).toBe('succeeded')
    const [child, after] = await app.children(ended.id)
    expect(child?.status).toBe('timeout')
    expect(after?.status).toBe('succeeded')
  })
})

describe('explain', () => {
  const explain = async (id: string, task = '') =>
    (await app.call<WorkflowExplanation>('GET', `/v1/executions/${id}/workflow/explain${task}`)).body

  it('says why a task followed, or did not', async () => {
    const { id } = await app.run('fails')
    expect(await explain(id)).toMatchObject({
      status: 'failed',
      tasks: [
        {
          task: 'a',
          status: 'failed',
          transitions: [{ when: '<% succeeded() %>', value: false, is_taken: false, do: ['b'] }],
          unsuccessful: [{ execution: (await app.children(id))[0]?.id, item: null, status: 'failed' }],
        },
      ],
      failures: [{ task: 'a' }],
      waits_for: [],
    })
  })

  it('says how actions ended that left no error', async () => {
    const { id } = await app.run('limited', { action: 'core.local', input: { cmd: 'sleep 60' } })
    expect(await explain(id)).toMatchObject({
      tasks: [
        { status: 'failed', unsuccessful: [{ status: 'timeout' }] },
        { status: 'succeeded', unsuccessful: [] },
      ],
      failures: [],
    })
  })

  it('says what a workflow waits for', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    expect(await explain(id)).toMatchObject({ waits_for: [{ kind: 'answer', task: 'ask' }] })
    await app.call('DELETE', `/v1/executions/${id}`)
  })

  it('shows the ways of a chain', async () => {
    const { id } = await app.run('steps')
    expect(await explain(id, '?task=fails')).toMatchObject({
      tasks: [
        {
          task: 'fails',
          transitions: [
            { when: 'on-success', is_taken: false },
            { when: 'on-failure', is_taken: true },
          ],
        },
      ],
    })
    expect(await explain(id)).toMatchObject({
      tasks: [
        { transitions: [{ do: ['fails'], published: { line: 'hello you' } }] },
        {},
        { transitions: [{ do: [], published: { mended: 'hello you 7' } }] },
      ],
    })
  })
})
