/**
 * A request of a user reaches all children of a workflow, in several commits. The server ends after each of these commits, and the
 * next one finishes what is left.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { loadEncryption } from '../../src/core/encryption.ts'
import type { Database } from '../../src/db/index.ts'
import type { ExecutionStatus } from '../../src/modules/executions/types.ts'
import { startEngine, type Engine } from '../helpers/engine.ts'
import { makeFolder } from '../helpers/folders.ts'
import { tier, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

/** More than two commits take. */
const CHILDREN = 120
/** Steps of a commit that changes many children. */
const MANY = 40

const workflows = {
  outer: `
version: 1.0
tasks:
  each:
    with: {items: <% range(${CHILDREN}) %>}
    action: test.inner
`,
  inner: `
version: 1.0
tasks:
  late:
    action: test.do text="late"
    delay: 3600
`,
  asking: `
version: 1.0
tasks:
  each:
    with: {items: <% range(${CHILDREN}) %>}
    action: test.do text="asks"
`,
}

const folders: { remove(): void }[] = []
const engines: Engine[] = []
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.stop()
  for (const folder of folders.splice(0)) folder.remove()
})

function createPlace() {
  const folder = makeFolder()
  folders.push(folder)
  mkdirSync(join(folder.path, 'actions'))
  for (const [name, text] of Object.entries(workflows))
    writeFileSync(join(folder.path, 'actions', `${name}.yaml`), text)
  return folder.path
}

interface Server extends Engine {
  /** Copies of the database after each commit. */
  copies: string[]
  isCopying: boolean
  /** Delays the second large commit from now on. */
  hold: { count: number; until: Promise<void> } | undefined
}

async function start(place: string, databasePath: string): Promise<Server> {
  const copies: string[] = []
  let begun = 0
  const around = (real: Database): Database => ({
    ...real,
    async write(unit) {
      const { hold } = server
      if (hold !== undefined && unit.steps.length >= MANY && ++hold.count === 2) await hold.until
      const { isCopying } = server
      const results = await real.write(unit)
      if (!isCopying) return results
      const path = `${databasePath}.${begun++}`
      await real.backup(path, new AbortController().signal)
      copies.push(path)
      return results
    },
  })
  const server = { copies, isCopying: false, hold: undefined } as unknown as Server // completed below, before anything is written for it
  const engine = await startEngine({
    around,
    databasePath,
    encryption: await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(place, 'key.json') }),
    parameters: { text: { type: 'string' } },
    workflows: { folder: place, names: Object.keys(workflows) },
    run: ({ actionParameters: { text } }) =>
      Promise.resolve(
        text === 'asks' ? { status: 'pending', result: {}, ttlSeconds: 3600 } : { status: 'succeeded', result: {} },
      ),
  })
  engines.push(engine)
  return Object.assign(server, engine)
}

function countChildren({ database }: Engine, parent: string): Record<string, number> {
  const rows = database.all(
    database.build
      .selectFrom('executions')
      .select(['status', (on) => on.fn.countAll<number>().as('n')])
      .where('parent', '=', parent)
      .groupBy('status'),
  )
  return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
}

/** The request, what the workflow becomes, and with it its children. */
const cases = [
  { name: 'pause', workflow: 'outer', before: [], request: 'pausing', after: 'pausing', children: 'pausing' },
  {
    name: 'resume',
    workflow: 'outer',
    before: ['pausing'],
    request: 'resuming',
    after: 'resuming',
    children: 'resuming',
  },
  { name: 'cancel', workflow: 'outer', before: [], request: 'canceled', after: 'canceled', children: 'canceled' },
  {
    name: 'cancel of a paused workflow',
    workflow: 'outer',
    before: ['pausing'],
    request: 'canceled',
    after: 'canceled',
    children: 'canceled',
  },
  {
    name: 'cancel of a workflow that waits for answers',
    workflow: 'asking',
    before: [],
    request: 'canceled',
    after: 'canceled',
    children: 'canceled',
  },
] as const

test.for(variants(cases, 2))(
  'a $name reaches all children, whenever the server ends',
  { timeout: 300_000 },
  async (row) => {
    const { workflow, before, request, after, children } = row
    const place = createPlace()
    const server = await start(place, join(place, 'first.db'))
    const waiting: ExecutionStatus = workflow === 'asking' ? 'pending' : 'running'
    const id = await server.request({ action: `test.${workflow}` })
    await waitFor('its children', () => countChildren(server, id)[waiting] === CHILDREN, 60_000)
    const grandchildren = (engine: Engine) =>
      engine.database.all(
        engine.database.build
          .selectFrom('executions')
          .select('id')
          .where('action_ref', '=', 'test.do')
          .where('status', '=', 'delayed'),
      ).length
    if (workflow === 'outer') await waitFor('their actions', () => grandchildren(server) === CHILDREN, 60_000)
    for (const status of before) {
      await server.call('put', '/executions/:id', id, { status })
      await waitFor('the request before', () => countChildren(server, id)[status] === CHILDREN, 60_000)
    }
    const earlier = server.statusOf(id)
    const earlierChildren = countChildren(server, id)
    server.isCopying = true
    await server.call('put', '/executions/:id', id, { status: request })
    await waitFor(
      'the request',
      () => server.statusOf(id) === after && countChildren(server, id)[children] === CHILDREN,
      60_000,
    )
    server.isCopying = false
    await waitFor('a copy after each commit', () => server.copies.length > 2)
    expect([server.statusOf(id), countChildren(server, id)]).toEqual([after, { [children]: CHILDREN }])

    const step = tier === 'full' ? 1 : Math.ceil(server.copies.length / 4)
    for (const [index, copy] of server.copies.entries()) {
      if (index % step !== 0) continue
      const next = await start(place, copy)
      const reached = () => {
        const status = next.statusOf(id)
        const counts = countChildren(next, id)
        if (status === earlier && index === 0) return JSON.stringify(counts) === JSON.stringify(earlierChildren)
        return status === after && counts[children] === CHILDREN
      }
      await waitFor(`all children after commit ${index}`, reached, 30_000)
      await next.stop()
      engines.splice(engines.indexOf(next), 1)
    }
  },
)

test(
  'a request on its way to the children of a run does not reach those of its re-run',
  { timeout: 120_000 },
  async () => {
    const place = createPlace()
    const server = await start(place, join(place, 'first.db'))
    const id = await server.request({ action: 'test.asking' })
    await waitFor('its inquiries', () => countChildren(server, id)['pending'] === CHILDREN, 60_000)
    const gate = Promise.withResolvers<void>()
    server.hold = { count: 0, until: gate.promise }
    await server.call('put', '/executions/:id', id, { status: 'canceled' })
    expect(server.statusOf(id)).toBe('canceled')
    const again = await server.call('post', '/executions/:id/re_run', id, { tasks: ['each'], reset: [] })
    gate.resolve()
    await waitFor('the new inquiries', () => countChildren(server, again.id)['pending'] === CHILDREN, 60_000)
    expect(countChildren(server, id)).toEqual({ canceled: CHILDREN })
    expect(countChildren(server, again.id)).toEqual({ pending: CHILDREN })
  },
)
