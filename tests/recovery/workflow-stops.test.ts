/** Workflows over the stop of a server, and workflows that have lost what they wait for. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { withDatabase } from '../helpers/audit.ts'
import { TestClock } from '../helpers/clock.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import type { TestAppOptions } from '../helpers/app.ts'
import type { ExecutionAnswer } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowApp } from '../helpers/workflows.ts'

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

const after = (file: string): string => `while [ ! -e ${file} ]; do sleep 0.05; done`

const actionsIn = (folder: string) => ({
  sequence: `
version: 1.0
tasks:
  first:
    action: core.local cmd="${after(join(folder, 'gate'))}; echo first >> ${join(folder, 'runs')}"
    next: [{when: <% succeeded() %>, do: second}]
  second:
    action: core.local cmd="echo second >> ${join(folder, 'runs')}"
    next: [{when: <% succeeded() %>, do: third}]
  third:
    action: flow.inner
`,
  holds: `
version: 1.0
tasks:
  inner:
    action: flow.delayed
`,
  inner: `
version: 1.0
tasks:
  only:
    action: core.local cmd="echo inner >> ${join(folder, 'runs')}"
`,
  long: `
version: 1.0
tasks:
  work:
    action: core.local cmd="${after(join(folder, 'gate'))}"
`,
  items: `
version: 1.0
tasks:
  each:
    delay: 3600
    with: {items: <% range(3) %>}
    action: core.noop
`,
  fails: `
version: 1.0
tasks:
  work:
    action: core.local cmd="${after(join(folder, 'gate'))}"
  turn:
    action: core.local cmd="[ -e ${join(folder, 'turn')} ] || { touch ${join(folder, 'turn')}; exit 1; }"
`,
  delayed: `
version: 1.0
tasks:
  late:
    delay: 3600
    action: core.noop
`,
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
`,
  halts: `
version: 1.0
tasks:
  work:
    action: core.noop
    next: [{do: ask}]
  ask:
    action: core.ask
`,
  outer: `
version: 1.0
tasks:
  inner:
    action: flow.long
`,
})

async function start(folder: TemporaryFolder, options: TestAppOptions = {}): Promise<WorkflowApp> {
  const app = await createWorkflowApp(actionsIn(folder.path), options, folder)
  apps.push(app)
  return app
}

async function stop(app: WorkflowApp): Promise<void> {
  apps.splice(apps.indexOf(app), 1)
  await app.stop()
}

describe('a graceful stop in the middle of a workflow', () => {
  it('pauses nothing: the workflow goes on after the next start', async () => {
    const folder = makePlace()
    const app = await start(folder, { settings: { 'actionrunner.shutdown_grace_seconds': '30' } })
    const { id } = await app.begin('sequence')
    await waitFor('the first action', async () => (await app.children(id)).some(({ status }) => status === 'running'))
    const stopped = stop(app)
    writeFileSync(join(folder.path, 'gate'), '')
    await stopped
    const statuses = withDatabase(folder.path, (database) =>
      database
        .prepare<[], { status: string }>('select status from executions order by id')
        .all()
        .map(({ status }) => status),
    )
    expect(statuses).toEqual(['running', 'succeeded', 'requested'])
    const next = await start(folder)
    const ended = await next.ended(id)
    expect(ended.status).toBe('succeeded')
    expect(ended.log.map(({ status }) => status)).toEqual(['requested', 'scheduled', 'running', 'succeeded'])
    const runs = await next.children(id)
    expect(runs.map(({ status }) => status)).toEqual(['succeeded', 'succeeded', 'succeeded'])
  })
})

describe('workflow_engine.gc_max_idle_sec', () => {
  const HOUR_MS = 3_600_000
  const settings = { 'workflow_engine.gc_max_idle_sec': '3600', 'garbagecollector.sleep_delay': '0' }

  /** The executions of its tasks vanish, as from a damaged database. */
  function loseChildren(folder: TemporaryFolder, workflow: string): void {
    const database = new Sqlite(join(folder.path, 'svc.db'))
    const { changes } = database
      .prepare(`delete from executions where parent in (select id from executions where action_ref = ?)`)
      .run(`flow.${workflow}`)
    database.close()
    expect(changes).toBeGreaterThan(0)
  }

  async function passAnHour(app: WorkflowApp, clock: TestClock): Promise<void> {
    await app.collect()
    clock.advance(HOUR_MS + 1000)
    await app.collect()
  }

  it.for(['delayed', 'items', 'holds'])('cancels a workflow that waits for nothing: %s', async (name) => {
    const folder = makePlace()
    const first = await start(folder)
    const { id } = await first.begin(name)
    const lost = name === 'holds' ? 'delayed' : name
    await waitFor('its actions', () =>
      withDatabase(folder.path, (database) => {
        const waiting = `select 1 from executions where action_ref = 'core.noop' and status = 'delayed'`
        return database.prepare(waiting).all().length === (name === 'items' ? 3 : 1)
      }),
    )
    const idle = name === 'holds' ? ((await first.children(id))[0]?.id ?? '') : id
    await stop(first)
    loseChildren(folder, lost)
    const clock = new TestClock()
    const next = await start(folder, { clock, settings })
    await next.collect()
    clock.advance(HOUR_MS - 1000)
    await next.collect()
    expect((await next.execution(id)).status).toBe('running')
    clock.advance(2000)
    await next.collect()
    expect((await next.ended(id)).status).toBe('canceled')
    expect(await next.ended(idle)).toMatchObject({
      status: 'canceled',
      result: {
        output: null,
        message:
          'Canceled by svc: nothing of the workflow has run or waited for 3600 seconds (workflow_engine.gc_max_idle_sec).',
        user: 'svc',
      },
    })
    expect(next.log()).toContain('Canceled a workflow that makes no progress')
    const { text } = await next.call('GET', `/v1/executions/${idle}/output`)
    expect(text).toMatch(/^Workflow \S+: canceled after \S+ s: Canceled by svc: nothing of the workflow has run /m)
  })

  it('cancels none that waits for something', async () => {
    const folder = makePlace()
    const clock = new TestClock()
    const app = await start(folder, { clock, settings })
    const [long, delayed, asks, outer, halts] = await Promise.all(
      ['long', 'delayed', 'asks', 'outer', 'halts'].map((name) => app.begin(name)),
    )
    await app.reaches(asks?.id ?? '', 'paused')
    await app.reaches(halts?.id ?? '', 'paused')
    for (const { id } of [long, delayed, outer].filter((one) => one !== undefined)) {
      await app.reaches(id, 'running')
      await waitFor('its task', async () => (await app.children(id)).length === 1)
    }
    await passAnHour(app, clock)
    await passAnHour(app, clock)
    const statuses = await Promise.all(
      [long, delayed, asks, outer, halts].map(async (one) => (await app.execution(one?.id ?? '')).status),
    )
    expect(statuses).toEqual(['running', 'running', 'paused', 'running', 'paused'])
    writeFileSync(join(folder.path, 'gate'), '')
    for (const one of [long, outer]) expect((await app.ended(one?.id ?? '')).status).toBe('succeeded')
  })

  it('cancels no re-run that waits for an action of the execution before it', async () => {
    const folder = makePlace()
    const clock = new TestClock()
    const app = await start(folder, { clock, settings })
    const { id } = await app.run('fails')
    const again = await app.call<ExecutionAnswer>('POST', `/v1/executions/${id}/re_run`, { tasks: ['turn'] })
    const rerun = again.body.id
    await waitFor('the repeated task', async () =>
      (await app.children(rerun)).some(({ status }) => status === 'succeeded'),
    )
    await passAnHour(app, clock)
    await passAnHour(app, clock)
    expect((await app.execution(rerun)).status).toBe('running')
    writeFileSync(join(folder.path, 'gate'), '')
    expect((await app.ended(rerun)).status).toBe('succeeded')
  })

  it('cancels nothing by default', async () => {
    const folder = makePlace()
    const first = await start(folder)
    const { id } = await first.begin('delayed')
    await waitFor('its task', async () => (await first.children(id)).length === 1)
    await stop(first)
    loseChildren(folder, 'delayed')
    const clock = new TestClock()
    const next = await start(folder, { clock, settings: { 'garbagecollector.sleep_delay': '0' } })
    await passAnHour(next, clock)
    expect((await next.execution(id)).status).toBe('running')
  })
})
