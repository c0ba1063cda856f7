/** Whatever happens around a workflow, it ends, and says why. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { TestAppOptions } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowActions, type WorkflowApp } from '../helpers/workflows.ts'
import { variants } from '../helpers/tiers.ts'

const folders: TemporaryFolder[] = []
const apps: WorkflowApp[] = []
afterEach(async () => {
  for (const app of apps.splice(0)) await app.stop()
  for (const folder of folders.splice(0)) folder.remove()
})

function makePlace(): TemporaryFolder {
  const folder = makeFolder()
  folders.push(folder)
  return folder
}

async function start(
  folder: TemporaryFolder,
  actions: WorkflowActions,
  options?: TestAppOptions,
): Promise<WorkflowApp> {
  const app = await createWorkflowApp(actions, options, folder)
  apps.push(app)
  return app
}

async function stop(app: WorkflowApp): Promise<void> {
  apps.splice(apps.indexOf(app), 1)
  await app.stop()
}

const after = (file: string): string => `while [ ! -e ${file} ]; do sleep 0.05; done`

const final = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned']
const briefly = ({ action, status }: ExecutionAnswer): string => `${String(action['ref'])} ${status}`
const briefChildren = async (app: WorkflowApp, id: string): Promise<string[]> => (await app.children(id)).map(briefly)

describe('the key of the server is lost while a workflow waits', () => {
  const password = { password: { type: 'string', secret: true } }
  const late = `
    delay: 2
    action: core.noop`
  const actions: WorkflowActions = {
    parameter: {
      parameters: password,
      definition: `
version: 1.0
input: [password]
tasks:
  late: ${late}
    next: [{do: use}]
  use:
    action: core.echo message=<% ctx(password) %>
`,
    },
    published: `
version: 1.0
tasks:
  read:
    next: [{publish: [{secret: "<% svckv('system.secret', decrypt => true) %>"}], do: late}]
  late: ${late}
    next: [{do: use}]
  use:
    action: core.echo message=<% ctx(secret) %>
`,
    datastore: `
version: 1.0
tasks:
  late: ${late}
    next: [{publish: [{secret: "<% svckv('system.secret', decrypt => true) %>"}], do: use}]
  use:
    action: core.echo message=<% ctx(secret) %>
`,
    parent: `
version: 1.0
tasks:
  inner:
    action: flow.parameter password="a secret word"
    next: [{when: <% succeeded() %>, do: use}]
  use:
    action: core.noop
`,
    asks: `
version: 1.0
tasks:
  read:
    next: [{publish: [{secret: "<% svckv('system.secret', decrypt => true) %>"}], do: 'late, ask'}]
  late: ${late}
  ask:
    action: core.ask
`,
    chain: {
      runner: 'action-chain',
      parameters: password,
      definition: `
chain:
  - {name: inner, ref: flow.published, on-success: use}
  - {name: use, ref: core.echo, parameters: {message: "{{ password }}"}}
`,
    },
  }
  const given: Readonly<Record<string, object>> = {
    parameter: { password: 'a secret word' },
    chain: { password: 'a secret word' },
  }

  it.for(variants(['parameter', 'asks', 'published', 'datastore', 'parent', 'chain'], 2))(
    '%s: it ends with the reason',
    async (name) => {
      const folder = makePlace()
      const app = await start(folder, actions)
      await app.call('PUT', '/v1/keys/secret', { name: 'secret', value: 'a secret word', secret: true })
      const { id } = await app.begin(name, given[name])
      await waitFor('its task', async () => {
        const delayed = await app.call<ExecutionAnswer[]>('GET', '/v1/executions?status=delayed')
        return delayed.body.length === 1
      })
      await stop(app)
      rmSync(join(folder.path, 'keys', 'secrets.json'))
      const next = await start(folder, actions)
      const ended = await next.ended(id)
      expect(ended.status).toBe('failed')
      expect(JSON.stringify(ended.result)).toContain('Crypto key not found')
      const all = await next.call<ExecutionAnswer[]>('GET', '/v1/executions?limit=100')
      expect(all.body.filter(({ status }) => !final.includes(status))).toEqual([])
      expect((await next.call('GET', '/v1/inquiries')).body).toEqual([])
    },
  )
})

const policed: WorkflowActions = {
  recursive: {
    parameters: { n: { type: 'integer', default: 2 } },
    definition: `
version: 1.0
input: [n]
tasks:
  decide:
    next: [{when: <% ctx(n) > 0 %>, do: again}]
  again:
    action: flow.recursive n=<% ctx(n) - 1 %>
`,
  },
  left: `
version: 1.0
tasks:
  first:
    action: core.local cmd="sleep 0.3"
    next: [{do: other}]
  other:
    action: flow.right
`,
  right: `
version: 1.0
tasks:
  first:
    action: core.local cmd="sleep 0.3"
    next: [{do: other}]
  other:
    action: flow.left
`,
  work: `
version: 1.0
tasks:
  only:
    action: core.local cmd="sleep 0.1"
`,
  items: `
version: 1.0
tasks:
  each:
    with: {items: <% range(4) %>}
    action: flow.work
`,
}

async function limit(app: WorkflowApp, name: string, threshold: number, action = 'delay'): Promise<void> {
  const policy = { pack: 'flow', resource_ref: `flow.${name}`, policy_type: 'action.concurrency', enabled: true }
  const parameters = { threshold, action }
  const made = await app.call('POST', '/v1/policies', { ...policy, name: `limit-${name}`, parameters })
  expect(made.status).toBe(201)
}

describe('a policy of concurrency', () => {
  const cases = [
    { action: 'delay', status: 'succeeded' },
    { action: 'cancel', status: 'canceled' },
  ] as const
  it.for(cases)('with the action $action holds for the tasks of a workflow', async ({ action, status }) => {
    const app = await start(makePlace(), policed)
    await limit(app, 'work', 1, action)
    const { id } = await app.begin('items')
    expect((await app.ended(id)).status).toBe(status)
    await waitFor('its tasks', async () => (await app.children(id)).every((child) => final.includes(child.status)))
    expect(await briefChildren(app, id)).toEqual(Array.from({ length: 4 }, () => `flow.work ${status}`))
  })
})

describe('a policy of concurrency for which workflows wait for each other', () => {
  it('fails the one that would wait for ever', async () => {
    const app = await start(makePlace(), policed)
    await limit(app, 'recursive', 1)
    const { id } = await app.begin('recursive')
    const ended = await app.ended(id)
    expect(ended.status).toBe('failed')
    expect(JSON.stringify(ended.result)).toContain(
      'The policy \\"flow.limit-recursive\\" lets 1 of \\"flow.recursive\\" run at once, and this execution would wait for workflows that wait for it.',
    )
  })

  it('also when several count for it', async () => {
    const app = await start(makePlace(), policed)
    await limit(app, 'recursive', 2)
    const both = await Promise.all([app.begin('recursive', { n: 1 }), app.begin('recursive', { n: 1 })])
    const ends = await Promise.all(both.map(({ id }) => app.ended(id)))
    // One has to go, so that the other gets its place.
    expect(ends.some(({ status }) => status === 'failed')).toBe(true)
    expect(ends.every(({ status }) => status === 'failed' || status === 'succeeded')).toBe(true)
  })

  it('also over two policies', async () => {
    const app = await start(makePlace(), policed)
    await limit(app, 'left', 1)
    await limit(app, 'right', 1)
    const both = await Promise.all([app.begin('left'), app.begin('right')])
    for (const { id } of both) expect((await app.ended(id)).status).toBe('failed')
  })

  it('and lets those wait that need only wait', async () => {
    const app = await start(makePlace(), policed)
    await limit(app, 'recursive', 2)
    const many = await Promise.all(Array.from({ length: 5 }, () => app.begin('recursive', { n: 0 })))
    for (const { id } of many) expect((await app.ended(id)).status).toBe('succeeded')
  })
})

describe('a workflow', () => {
  const actionsIn = (folder: string): WorkflowActions => ({
    limited: `
version: 1.0
timeout: 1
tasks:
  inner:
    action: flow.inner
  ask:
    action: core.ask
`,
    inner: `
version: 1.0
tasks:
  ask:
    action: core.ask
`,
    oneAtATime: `
version: 1.0
tasks:
  each:
    with: {items: "<% list(1, 1, 0, 1) %>", concurrency: 1}
    action: core.echo message=<% str(1 / item()) %>
`,
    allAtOnce: `
version: 1.0
tasks:
  each:
    with: {items: "<% list(1, 1, 0, 1) %>"}
    action: core.echo message=<% str(1 / item()) %>
`,
    retries: `
version: 1.0
tasks:
  bad:
    action: core.local cmd="exit 1"
    retry: {count: 3, delay: 600}
`,
    leaves: `
version: 1.0
tasks:
  inner:
    action: flow.inner
  bad:
    action: core.local cmd="${after(join(folder, 'gate'))}; [ ! -e ${join(folder, 'bad')} ]"
`,
    overlap: `
version: 1.0
tasks:
  bad:
    action: core.local cmd="exit 1"
  long:
    action: core.local cmd="${after(join(folder, 'gate'))}"
    next: [{do: follow}]
  follow:
    action: core.noop
`,
  })

  it('whose time is up while it is paused times out, with all in it', async () => {
    const folder = makePlace()
    const app = await start(folder, actionsIn(folder.path))
    const { id } = await app.begin('limited')
    expect((await app.ended(id)).status).toBe('timeout')
    expect((await briefChildren(app, id)).toSorted()).toEqual(['core.ask canceled', 'flow.inner timeout'])
    expect((await app.call('GET', '/v1/inquiries')).body).toEqual([])
  })

  it('fails when the parameters of one item cannot be evaluated', async () => {
    const folder = makePlace()
    const app = await start(folder, actionsIn(folder.path))
    for (const [name, ran] of [
      ['oneAtATime', 2],
      ['allAtOnce', 0],
    ] as const) {
      const ended = await app.run(name)
      expect(ended.status).toBe('failed')
      expect(JSON.stringify(ended.result)).toContain('YaqlEvaluationException')
      expect(await app.children(ended.id)).toHaveLength(ran)
    }
  })

  it('is canceled at once while it waits for its next attempt', async () => {
    const folder = makePlace()
    const app = await start(folder, actionsIn(folder.path))
    const { id } = await app.begin('retries')
    await waitFor('a retry', async () => (await app.children(id)).some(({ status }) => status === 'delayed'))
    await app.call('DELETE', `/v1/executions/${id}`)
    expect((await app.ended(id)).status).toBe('canceled')
    expect(await briefChildren(app, id)).toEqual(['core.local failed', 'core.local canceled'])
  })

  it('repeats no task that still runs, and goes on with it after a re-run of another', async () => {
    const folder = makePlace()
    const app = await start(folder, actionsIn(folder.path))
    const { id } = await app.run('overlap')
    const rerun = async (tasks: string[], reset: string[] = []): Promise<ExecutionAnswer> =>
      (await app.call<ExecutionAnswer>('POST', `/v1/executions/${id}/re_run`, { tasks, reset })).body
    for (const reset of [[], ['long']]) {
      const refused = await app.ended((await rerun(['bad', 'long'], reset)).id)
      expect(refused).toMatchObject({
        status: 'failed',
        result: {
          errors: [
            {
              message: `Unable to rerun task|route(s) because it doesn't exist or isn't rerunnable: long|0. It still runs: wait for its end, or cancel it.`,
            },
          ],
        },
      })
    }
    expect((await app.ended((await rerun(['bad'])).id)).status).toBe('failed')
    writeFileSync(join(folder.path, 'gate'), '')
    await waitFor('the end of the task', async () => (await briefChildren(app, id)).includes('core.local succeeded'))
    const again = await app.ended((await rerun(['long'])).id)
    expect(again.status).toBe('succeeded')
    // What follows from the first end was held up by the failure: it goes on as well.
    expect(await briefChildren(app, again.id)).toEqual([
      'core.noop succeeded',
      'core.local succeeded',
      'core.noop succeeded',
    ])
  })

  it('takes what an earlier execution has left with it when its re-run is canceled', async () => {
    const folder = makePlace()
    const app = await start(folder, actionsIn(folder.path))
    writeFileSync(join(folder.path, 'bad'), '')
    const { id } = await app.begin('leaves')
    const inner = await waitFor('the workflow in it', async () =>
      (await app.children(id)).find(({ action, status }) => action['ref'] === 'flow.inner' && status === 'paused'),
    )
    writeFileSync(join(folder.path, 'gate'), '')
    expect((await app.ended(id)).status).toBe('failed')
    for (let n = 0; n < 2; n++) {
      const { body } = await app.call<ExecutionAnswer>('POST', `/v1/executions/${id}/re_run`, { tasks: ['bad'] })
      expect((await app.ended(body.id)).status).toBe('failed')
    }
    rmSync(join(folder.path, 'bad'))
    const { body } = await app.call<ExecutionAnswer>('POST', `/v1/executions/${id}/re_run`, { tasks: ['bad'] })
    await app.reaches(body.id, 'paused')
    await app.call('DELETE', `/v1/executions/${body.id}`)
    expect((await app.ended(body.id)).status).toBe('canceled')
    expect((await app.ended(inner.id)).status).toBe('canceled')
    expect((await app.call('GET', '/v1/inquiries')).body).toEqual([])
  })
})
