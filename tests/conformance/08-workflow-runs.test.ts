/** How far a workflow has come (`GET /v1/executions/{id}/workflow`), and what its executions say about it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { WorkflowGraph, WorkflowRun, WorkflowTaskRecord } from '../../src/modules/workflows/types.ts'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import type { WorkflowActions } from '../helpers/flow-pack.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

const actions: WorkflowActions = {
  forks: `
version: 1.0
tasks:
  begin:
    action: core.noop
    next: [{do: [left, right]}]
  left:
    action: core.echo message="left"
    next: [{do: finish}]
  right:
    action: core.local cmd="exit 1"
    retry: {count: 1}
    next: [{when: <% succeeded() %>, do: finish}]
  finish:
    join: all
    action: core.noop
`,
  turns: `
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
      - when: <% ctx(n) < 4 %>
        do: count
`,
  items: {
    definition: `
version: 1.0
input: [names]
tasks:
  each:
    with: {items: name in <% ctx(names) %>, concurrency: 3}
    action: core.local cmd=<% item(name) %>
`,
    parameters: { names: { type: 'array' } },
  },
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
`,
  waits: `
version: 1.0
tasks:
  later:
    action: core.noop
    delay: 3600
`,
  outer: `
version: 1.0
tasks:
  inner:
    action: flow.asks
`,
  commands: `
version: 1.0
tasks:
  a:
    action: core.local cmd="exit 1"
    next: [{do: [tidy, fail]}]
  tidy:
    next: [{publish: [{tidied: true}]}]
  other:
    next: [{do: noop}]
`,
  broken: `
version: 1.0
tasks:
  a:
    action: core.echo message=<% ctx(nobody) %>
`,
}

let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp(actions)
})
afterAll(async () => {
  await app.stop()
})

const runOf = async (id: string, query = ''): Promise<WorkflowRun> => {
  const { status, body } = await app.call<WorkflowRun>('GET', `/v1/executions/${id}/workflow${query}`)
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const taskOf = (run: WorkflowRun, name: string): WorkflowTaskRecord => {
  const found = run.tasks.find((task) => task.name === name)
  if (found === undefined) throw new Error(`no task ${name}`)
  return found
}

describe('the run of a workflow', () => {
  it('shows its tasks in the order of their starts, and how each came about', async () => {
    const { id } = await app.run('forks')
    // It fails with one task; the other may still run.
    await waitFor('the other task to end', async () => (await runOf(id)).counts.running === 0)
    const run = await runOf(id)
    expect(run).toMatchObject({
      execution: id,
      root: run.id,
      runner: 'orquesta',
      status: 'failed',
      end_timestamp: expect.any(String) as unknown,
      counts: { total: 3, running: 0, retrying: 0, waiting: 0, succeeded: 2, failed: 1, canceled: 0 },
      next: null,
    })
    expect(run.tasks.map(({ name, position, pass, status }) => [position, name, pass, status])).toEqual([
      [0, 'begin', 1, 'succeeded'],
      [1, 'left', 1, 'succeeded'],
      [2, 'right', 1, 'failed'],
    ])
    expect(taskOf(run, 'begin')).toMatchObject({
      action: 'core.noop',
      previous: [],
      transitions: [
        { id: 'left__t0', task: 'left' },
        { id: 'right__t0', task: 'right' },
      ],
    })
    const right = taskOf(run, 'right')
    expect(right).toMatchObject({
      attempt: 2,
      max_attempts: 2,
      previous: [{ task: 'begin', position: 0, transition: 'right__t0' }],
      previous_total: 1,
      executions_total: 1,
    })
    const [latest = ''] = right.executions
    expect(await app.execution(latest)).toMatchObject({
      workflow_execution: run.id,
      task_execution: right.id,
      parent: id,
    })
  })

  it('counts the passes of a cycle, and is read in pages', async () => {
    const { id } = await app.run('turns')
    const pages: WorkflowRun[] = []
    for (let after: number | null = -1; after !== null;) {
      const page: WorkflowRun = await runOf(id, `?after=${after}&limit=3`)
      pages.push(page)
      after = page.next
    }
    expect(pages.map(({ tasks }) => tasks.length)).toEqual([3, 3, 3])
    const tasks = pages.flatMap((page) => page.tasks)
    expect(tasks.map(({ name, pass }) => `${name} ${pass}`)).toEqual([
      'begin 1',
      ...[1, 2, 3, 4].flatMap((pass) => [`count ${pass}`, `decide ${pass}`]),
    ])
    expect(tasks[2]).toMatchObject({ action: null, executions: [], transitions: [{ task: 'count' }] })
    expect(tasks.at(-1)).toMatchObject({ transitions: [] })
    expect(pages[0]?.counts).toMatchObject({ total: 9, succeeded: 9 })
  })

  it('does not take engine commands for tasks', async () => {
    const { id } = await app.run('commands')
    const run = await waitFor('the clean-up', async () => {
      const seen = await runOf(id)
      return seen.counts.running === 0 && seen
    })
    expect(run.tasks.map(({ name }) => name).sort()).toEqual(['a', 'other', 'tidy'])
    expect(run.counts).toEqual({
      total: 3,
      running: 0,
      retrying: 0,
      waiting: 0,
      succeeded: 2,
      failed: 1,
      canceled: 0,
    })
    expect(
      taskOf(run, 'a')
        .transitions?.map(({ task }) => task)
        .sort(),
    ).toEqual(['fail', 'tidy'])
    const first = await runOf(id, '?limit=2')
    const rest = await runOf(id, `?after=${first.next}&limit=2`)
    expect([first.tasks.length, rest.tasks.length, rest.next]).toEqual([2, 1, null])
  })

  it('counts the items of a task, and names the first of its executions', async () => {
    const { id } = await app.run('items', { names: [...Array.from({ length: 12 }, () => 'true'), 'false'] })
    const [each] = (await runOf(id)).tasks
    expect(each).toMatchObject({
      status: 'failed',
      items: {
        total: 13,
        concurrency: 3,
        not_started: 0,
        running: 0,
        waiting: 0,
        succeeded: 12,
        failed: 1,
        canceled: 0,
      },
      executions_total: 13,
    })
    expect(each?.executions).toEqual((await app.children(id)).slice(0, 10).map((child) => child.id))
  })

  it('has a task without items', async () => {
    const { id } = await app.run('items', { names: [] })
    expect((await runOf(id)).tasks).toMatchObject([{ status: 'succeeded', items: { total: 0 }, executions: [] }])
  })

  it('names the inquiry that it waits for, and the workflow that waits for one', async () => {
    const { id } = await app.begin('outer')
    await app.reaches(id, 'paused')
    const outer = await runOf(id)
    expect(outer).toMatchObject({ status: 'paused', counts: { waiting: 1 }, end_timestamp: null })
    const [inner] = outer.tasks
    expect(inner).toMatchObject({ status: 'paused', waits_for: { kind: 'resume', execution: inner?.executions[0] } })
    const below = await runOf(inner?.executions[0] ?? '')
    expect(below).toMatchObject({ root: outer.id })
    const [ask] = below.tasks
    expect(ask).toMatchObject({ status: 'pending', waits_for: { kind: 'inquiry', execution: ask?.executions[0] } })
    await app.call('DELETE', `/v1/executions/${id}`)
    await app.ended(id)
    expect(await runOf(id)).toMatchObject({ status: 'canceled', counts: { waiting: 0, canceled: 1 } })
  })

  it('says until when a task is delayed', async () => {
    const { id } = await app.begin('waits')
    await app.reaches(id, 'running')
    const waits = await waitFor('the delay', async () => (await runOf(id)).tasks[0]?.waits_for ?? false)
    expect(waits).toMatchObject({ kind: 'delay', until: expect.stringMatching(/Z$/) as unknown })
    await app.call('DELETE', `/v1/executions/${id}`)
    await app.ended(id)
  })

  it('goes on with the execution of a re-run from tasks, and stays with the first one', async () => {
    const failed = await app.run('forks')
    const { body: again } = await app.call<ExecutionAnswer>('POST', `/v1/executions/${failed.id}/re_run`, {
      tasks: ['right'],
    })
    expect(again).toHaveProperty('id')
    await app.ended(again.id)
    const run = await runOf(again.id)
    expect(run).toMatchObject({ execution: again.id, counts: { total: 4 } })
    expect(run.tasks.map(({ name, pass }) => `${name} ${pass}`)).toEqual(['begin 1', 'left 1', 'right 1', 'right 2'])
    expect(await runOf(failed.id)).toEqual(run)
  })
})

describe('the graph of a run', () => {
  it('is that of the definition that the workflow began with', async () => {
    const file = join(app.basePath, 'packs', 'flow', 'actions', 'workflows', 'turns.yaml')
    const before = readFileSync(file, 'utf8')
    const { id } = await app.run('turns')
    writeFileSync(file, before.replaceAll('decide', 'other'))
    try {
      const { status, body } = await app.call<WorkflowGraph>('GET', `/v1/executions/${id}/workflow/graph`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ runner: 'orquesta', start: ['begin'] })
      expect(body.tasks.map(({ name }) => name)).toEqual(['begin', 'count', 'decide'])
    } finally {
      writeFileSync(file, before)
    }
  })

  it('is refused for what has no workflow', async () => {
    const { body: plain } = await app.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' })
    const graphOf = (id: string): Promise<unknown> => app.call('GET', `/v1/executions/${id}/workflow/graph`)
    expect(await graphOf(plain.id)).toMatchObject({ status: 404, body: { code: 'NOT_A_WORKFLOW' } })
    expect(await graphOf('0'.repeat(24))).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } })
  })
})

describe('the last workflow', () => {
  it('is the one that the last execution belongs to', async () => {
    const { id } = await app.run('turns')
    const { body: last } = await app.call<ExecutionAnswer>('GET', '/v1/executions/last')
    expect(last).toMatchObject({ parent: id })
    for (const part of ['workflow', 'workflow/explain', 'workflow/graph'])
      expect(await app.call('GET', `/v1/executions/last/${part}`)).toMatchObject({ status: 200 })
    expect(await app.call('GET', '/v1/executions/last/workflow')).toMatchObject({ body: { execution: id } })
  })
})

describe('what is refused', () => {
  const refusal = async (id: string, query = ''): Promise<unknown> =>
    app.call('GET', `/v1/executions/${id}/workflow${query}`)

  it('an execution that is no workflow, with the reason', async () => {
    const { body: plain } = await app.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' })
    expect(await refusal(plain.id)).toMatchObject({
      status: 404,
      body: {
        code: 'NOT_A_WORKFLOW',
        faultstring: `Execution "${plain.id}" has no workflow: its action core.noop has the runner noop.`,
      },
    })
    const { id } = await app.run('broken')
    expect(await refusal(id)).toMatchObject({
      status: 404,
      body: {
        faultstring: `Execution "${id}" has no workflow: its workflow has never started. The result of the execution says why.`,
      },
    })
  })

  it('an execution that does not exist, and a page of no size', async () => {
    expect(await refusal('0'.repeat(24))).toMatchObject({ status: 404, body: { code: 'RESOURCE_NOT_FOUND' } })
    const { id } = await app.run('turns')
    for (const limit of [0, 201]) expect(await refusal(id, `?limit=${limit}`)).toMatchObject({ status: 400 })
  })
})

describe('what others see of a workflow', () => {
  it('metrics: workflows, executions of tasks, and workflows that are open', async () => {
    const valueOf = async (name: string): Promise<number> => {
      const { text } = await app.call('GET', '/metrics')
      const line = text.split('\n').find((each) => each.startsWith(`${name} `) || each.startsWith(`${name}{`))
      return Number(line?.split(' ').at(-1) ?? 0)
    }
    const names = ['svc_workflow_execution_duration_seconds_count{status="canceled"}', 'svc_workflows_open']
    const [ended = '', open = ''] = names
    const [before, openBefore] = [await valueOf(ended), await valueOf(open)]
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    expect(await valueOf(open)).toBe(openBefore + 1)
    const actions = await valueOf('svc_workflow_action_executions_total{status="canceled"}')
    await app.call('DELETE', `/v1/executions/${id}`)
    await app.ended(id)
    expect(await valueOf(open)).toBe(openBefore)
    expect(await valueOf(ended)).toBe(before + 1)
    expect(await valueOf('svc_workflow_action_executions_total{status="canceled"}')).toBe(actions + 1)
  })

  it('the trace: each task has the workflow as its cause', async () => {
    const { id } = await app.run('forks')
    const { body } = await app.call<{ action_executions: { object_id: string; caused_by: object }[] }[]>(
      'GET',
      `/v1/traces?execution=${id}`,
    )
    const children = await app.children(id)
    expect(children.length).toBe(4)
    const members = body[0]?.action_executions ?? []
    expect(members).toHaveLength(5)
    for (const child of children)
      expect(members.find(({ object_id }) => object_id === child.id)?.caused_by).toEqual({
        type: 'action_execution',
        id,
      })
  })

  it('notifications: of the tasks that the parameter notify names', async () => {
    const { body: requested } = await app.call<ExecutionAnswer>('POST', '/v1/executions', {
      action: 'flow.forks',
      parameters: { notify: ['left'] },
      notify: { 'on-success': { routes: ['mine'], message: 'done' } },
    })
    await app.ended(requested.id)
    const left = (await app.children(requested.id)).find(
      ({ context }) => (context['orquesta'] as { task_name: string }).task_name === 'left',
    )
    const told = await waitFor('the notification', async () => {
      const { body } = await app.call<{ payload: { execution_id: string; channel?: string } }[]>(
        'GET',
        '/v1/triggerinstances?trigger_type=core.svc.generic.notifytrigger&limit=100',
      )
      const ids = body.map(({ payload }) => payload.execution_id)
      return ids.includes(left?.id ?? '') && ids
    })
    const others = (await app.children(requested.id)).map((child) => child.id).filter((id) => id !== left?.id)
    expect(told.filter((id) => others.includes(id))).toEqual([])
  })
})

describe('a context that a caller gives', () => {
  it('makes no execution a task of a workflow', async () => {
    const { id } = await app.run('turns')
    const run = await runOf(id)
    const { body } = await app.call<ExecutionAnswer>('POST', '/v1/executions', {
      action: 'core.noop',
      context: {
        parent: { execution_id: id },
        workflow_execution: run.id,
        orquesta: { workflow_execution_id: run.id },
      },
    })
    expect(body).not.toHaveProperty('workflow_execution')
    expect(await refusal(body.id)).toMatchObject({ status: 404 })
    function refusal(child: string): Promise<unknown> {
      return app.call('GET', `/v1/executions/${child}/workflow`)
    }
  })
})
