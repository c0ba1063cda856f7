/**
 * Several clients pause, resume, cancel, answer and repeat workflows and their children, in any order and at once: whatever
 * comes first, all ends, and executions, tasks and workflows agree. `SVC_TEST_SEED=<seed>` makes the same choices again.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { finalStatuses, readRows, withDatabase } from '../helpers/audit.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createRandom, seedOfRun, type Random } from '../helpers/random.ts'
import { rounds, fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { problemsOfWorkflows, readWorkflows } from '../helpers/workflow-audit.ts'
import { createWorkflowApp, type WorkflowActions, type WorkflowApp } from '../helpers/workflows.ts'

const seed = seedOfRun()

const actions: WorkflowActions = {
  leaf: `
version: 1.0
tasks:
  one:
    action: core.noop
    next: [{do: two}]
  two:
    action: core.local cmd="true"
    next: [{do: three}]
  three:
    action: core.noop
`,
  asks: `
version: 1.0
tasks:
  beside:
    action: core.noop
  ask:
    action: core.ask
    next: [{do: after}]
  after:
    action: core.noop
`,
  tree: `
version: 1.0
tasks:
  leaf:
    action: flow.leaf
    next: [{do: end}]
  asks:
    action: flow.asks
    next: [{do: end}]
  each:
    with: {items: "<% list(1, 2, 3, 4) %>", concurrency: 2}
    action: core.noop
    next: [{do: end}]
  end:
    join: all
    action: flow.leaf
`,
  shaky: `
version: 1.0
tasks:
  fails:
    action: core.local cmd="exit 1"
    retry: {count: 2}
  leaf:
    action: flow.leaf
`,
  grove: `
version: 1.0
tasks:
  many:
    with: {items: "<% list(1, 2, 3, 4) %>"}
    action: flow.asks
`,
  calls: {
    definition: `
version: 1.0
input: [url]
tasks:
  inner:
    action: flow.call url=<% ctx(url) %>
`,
    parameters: { url: { type: 'string' } },
  },
  call: {
    definition: `
version: 1.0
input: [url]
tasks:
  cancel:
    action: core.http url=<% ctx(url) %>
    next: [{do: after}]
  after:
    action: core.noop
`,
    parameters: { url: { type: 'string' } },
  },
}

const settings = { 'actionrunner.actions_pool_size': '8', 'http_runner.allowed_private_networks': '127.0.0.0/8' }

let app: WorkflowApp
let folder: TemporaryFolder
beforeEach(async () => {
  folder = makeFolder()
  app = await createWorkflowApp(actions, { settings }, folder)
})
afterEach(async () => {
  await app.stop()
  folder.remove()
})

/** @throws when the server is at fault */
async function ask(method: string, path: string, body?: unknown): Promise<number> {
  const { status, text } = await app.call(method, path, body)
  if (status >= 500) throw new Error(`${method} ${path}: ${status} ${text}`)
  return status
}
const put = (id: string, status: string): Promise<number> => ask('PUT', `/v1/executions/${id}`, { status })
const cancel = (id: string): Promise<number> => ask('DELETE', `/v1/executions/${id}`)
const answer = (id: string): Promise<number> => ask('PUT', `/v1/inquiries/${id}`, { id, response: { continue: true } })

const open = `status not in (${[...finalStatuses].map((status) => `'${status}'`).join(', ')})`
const idsOf = (condition: string): string[] => [...readRows(folder.path, condition).keys()]

/** Resumes and answers until nothing is open. */
async function conclude(): Promise<void> {
  await waitFor(
    'all to end',
    async () => {
      for (const id of idsOf(`status = 'pending'`)) await answer(id)
      for (const id of idsOf(`status = 'paused'`)) await put(id, 'resuming')
      return idsOf(open).length === 0
    },
    60_000,
  ).catch((error: unknown) => {
    const { executions, workflows, actions, tasks } = readWorkflows(folder.path)
    const left = [...executions.values()].filter(({ status }) => !finalStatuses.has(status))
    const of = left.map(({ id }) => workflows.get(id))
    const started = actions.filter(({ workflow }) => of.some((one) => one?.id === workflow))
    const lost = {
      left,
      of,
      actions: started.map((action) => [action, executions.get(action.execution)?.statuses.join(' ')]),
      tasks: tasks.filter(({ workflow }) => of.some((one) => one?.id === workflow)),
    }
    throw new Error(`still open: ${JSON.stringify(lost)}`, { cause: error })
  })
}

async function actAtRandom(random: Random): Promise<void> {
  const workflows = ['tree', 'shaky', 'grove', 'asks', 'leaf'] as const
  const ids = idsOf(open)
  const id = ids[random.below(Math.max(1, ids.length))]
  const choice = random.below(14)
  if (id === undefined || (choice < 4 && ids.length < 60)) {
    const { id: begun } = await app.begin(random.pick(workflows))
    // Right at its start.
    if (random.once(4)) await random.pick([cancel, (it: string) => put(it, 'pausing')])(begun)
  } else if (choice < 6) await put(id, 'pausing')
  else if (choice < 9) await put(id, 'resuming')
  else if (choice === 9) await cancel(id)
  else if (choice < 12) {
    const inquiries = idsOf(`status = 'pending'`)
    const inquiry = inquiries[random.below(Math.max(1, inquiries.length))]
    if (inquiry !== undefined) await answer(inquiry)
  } else {
    const ended = withDatabase(folder.path, (database) =>
      database
        .prepare<[], { id: string; task: string }>(
          `select parent as id, context ->> '$.orquesta.task_name' as task from executions
             where parent is not null and status in ('failed', 'canceled') order by id`,
        )
        .all(),
    )
    const again = ended[random.below(Math.max(1, ended.length))]
    if (again !== undefined) await ask('POST', `/v1/executions/${again.id}/re_run`, { tasks: [again.task] })
  }
}

describe('clients that act on the same workflows at once', () => {
  fullOnly(it)(`leave all in a status that fits (SVC_TEST_SEED=${seed})`, { timeout: 600_000 }, async () => {
    const random = createRandom(seed)
    for (let round = 0; round < rounds({ daily: 2, full: 30 }); round++) {
      const client = async (): Promise<void> => {
        for (let n = 0; n < 12; n++) await actAtRandom(random)
      }
      await Promise.all(Array.from({ length: 8 }, client))
      await conclude()
      expect(problemsOfWorkflows(folder.path)).toEqual([])
    }
  })

  it('storm one workflow with requests of every kind, which ends as the last ones say', async () => {
    const { id } = await app.begin('tree')
    await app.reaches(id, 'running')
    const random = createRandom(seed)
    const requests = Array.from({ length: 50 }, () =>
      random.pick([() => put(id, 'pausing'), () => put(id, 'resuming'), () => put(id, 'canceling')])(),
    )
    await Promise.all([...requests, cancel(id)])
    await conclude()
    expect((await app.execution(id)).status).toBe('canceled')
    expect(problemsOfWorkflows(folder.path)).toEqual([])
  })

  it('pause and resume one workflow in a storm, which goes on all the same', async () => {
    const { id } = await app.begin('tree')
    await app.reaches(id, 'running')
    const random = createRandom(seed)
    await Promise.all(
      Array.from({ length: 50 }, () => random.pick([() => put(id, 'pausing'), () => put(id, 'resuming')])()),
    )
    await conclude()
    expect((await app.execution(id)).status).toBe('succeeded')
    expect(problemsOfWorkflows(folder.path)).toEqual([])
  })

  it('cancel the workflows of each other from within', async () => {
    const roots = new Map<string, string>()
    const waiting: (() => void)[] = []
    // Each of the two asks for the end of the other, when both are there.
    const meeting = createServer((request, response) => {
      waiting.push(() => void cancel(roots.get(request.url ?? '') ?? '').then(() => response.end('{}')))
    }).listen(0, '127.0.0.1')
    await once(meeting, 'listening')
    const { port } = meeting.address() as AddressInfo // it listens
    const [first, second] = await Promise.all(
      ['second', 'first'].map((other) => app.begin('calls', { url: `http://127.0.0.1:${port}/${other}` })),
    )
    roots.set('/first', first?.id ?? '').set('/second', second?.id ?? '')
    await waitFor('both to ask', () => waiting.length === 2)
    for (const go of waiting) go()
    for (const begun of [first, second]) expect((await app.ended(begun?.id ?? '')).status).toBe('canceled')
    await conclude()
    expect(problemsOfWorkflows(folder.path)).toEqual([])
    meeting.close()
  })
})
