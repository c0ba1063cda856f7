import Sqlite from 'better-sqlite3'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { newId } from '../../core/ids.ts'
import type { OldRecords, Retention } from '../../core/retention.ts'
import { formatMicros, now, nowMicros } from '../../core/time.ts'
import type { Database } from '../../db/index.ts'
import { createOutputStore } from '../executions/output/store.ts'
import { createRetentions } from '../executions/retention.ts'
import { createExecutionStore, type ExecutionStore } from '../executions/store.ts'
import { apply, conduct, createMemory, emptyState, type Event, type State } from './conductor/index.ts'
import { readDefinition } from './definition/model.ts'
import { createRemoval, createWorkflowRetention } from './retention.ts'
import { createWorkflowStore, type WorkflowHeader, type WorkflowStore } from './store.ts'

const DAY = 86_400_000_000
let folder: TemporaryFolder
let database: Database
let executions: ExecutionStore
let store: WorkflowStore
let retention: Retention

beforeEach(async () => {
  folder = makeFolder()
  database = (await openDatabase(folder.path)).database
  executions = createExecutionStore(database)
  store = createWorkflowStore(database)
  retention = retentionOn(database)
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

function retentionOn(on: Pick<Database, 'write'>): Retention {
  const [found] = createRetentions({
    store: executions,
    outputStore: createOutputStore(database),
    workflows: createRemoval({ store, database: on }),
    rules: { keeps: () => Promise.resolve([]) },
    actions: { keeps: () => Promise.resolve([]) },
    database: on,
  })
  if (found === undefined) throw new Error('executions have no retention')
  return found
}

const daysAgo = (days: number): number => nowMicros() - days * DAY
const daysBefore = (days: number): string => formatMicros(daysAgo(days))

async function execute(days: number, parent: string | null = null, endDays = days): Promise<string> {
  const start = daysAgo(days)
  const id = newId(start)
  const ends = { status: 'succeeded', end_timestamp: daysBefore(endDays), result: { from: id } } as const
  const execution = makeExecution({ id, parent, start_timestamp: formatMicros(start), ...ends })
  await database.write({ steps: executions.insert(execution), facts: [] })
  return id
}

interface Workflow {
  execution: string
  header: WorkflowHeader
  state: State
  children: string[]
}

const sequence = (count: number): Record<string, unknown> => ({
  tasks: Object.fromEntries(
    Array.from({ length: count }, (_, index): [string, unknown] => [
      `t${index}`,
      {
        action: 'core.local',
        ...(index + 1 === count ? {} : { next: [{ publish: [{ v: index }], do: `t${index + 1}` }] }),
      },
    ]),
  ),
})

/** One that is over, with a child for each task. */
async function runWorkflow(made: {
  days: number
  endDays?: number
  parent?: string
  tasks?: number
  root?: string
}): Promise<Workflow> {
  const { days, endDays = days, parent = null, tasks = 3 } = made
  const definition = readDefinition(sequence(tasks))
  const execution = await execute(days, parent, endDays)
  const id = newId()
  const workflow = { id, execution, root: made.root ?? id, runner: 'orquesta', start_timestamp: now() }
  let { steps, header } = store.insert(workflow, `${tasks} tasks`)
  let state = emptyState()
  const children: string[] = []
  const send = async (event: Event): Promise<number | undefined> => {
    const { changes, commands } = conduct(definition, state, event, world)
    if (changes === undefined) throw new Error('nothing changes')
    const saved = store.save(header, changes, { seal: () => undefined, at: now() })
    steps.push(...saved.steps)
    const start = commands.find((command) => command.kind === 'start')
    if (start !== undefined) {
      const child = await execute(days, execution)
      children.push(child)
      const action = { execution: child, workflow: id, instance: start.instance, item: null, attempt: 0 }
      steps.push(store.putAction({ ...action, task_execution: newId() }))
    }
    await database.write({ steps, facts: [] })
    steps = []
    header = saved.header
    state = apply(state, changes)
    return start?.instance
  }
  let instance = await send({ kind: 'started', input: {} })
  while (instance !== undefined) instance = await send({ kind: 'ended', instance, status: 'succeeded', result: null })
  return { execution, header, state, children }
}

const world = {
  evaluate: (value: unknown): unknown => value,
  memory: createMemory(),
  outside: {
    environment: {},
    startEnvironment: {},
    resultOf: () => null,
    recordOf: () => ({ id: '', workflowExecution: '', startTimestamp: '', endTimestamp: null }),
    readKey: () => undefined,
  },
}

const left = (ids: readonly string[]): string[] => ids.filter((id) => executions.find(id) !== undefined)

/** One pass. @returns how many are deleted, which is what a count says before */
async function remove(days: number, more: Partial<OldRecords> = {}): Promise<number> {
  const old = { before: daysBefore(days), limit: 1_000, ...more }
  let counted = 0
  for (let after: string | undefined = ''; after !== undefined;) {
    const slice: { records: number; next: string | undefined } = retention.count({ ...old, after })
    counted += slice.records
    after = slice.next
  }
  let removed = 0
  for (let after: string | undefined = ''; after !== undefined;) {
    const slice: { records: number; next: string | undefined } = await retention.remove({ ...old, after })
    removed += slice.records
    after = slice.next
  }
  expect(removed).toBe(counted)
  return removed
}

function rowsOf(header: WorkflowHeader): number {
  const file = new Sqlite(join(folder.path, 'svc.db'), { readonly: true })
  const tables = file
    .prepare(
      `select name from sqlite_schema where type = 'table' and name like 'workflow_%' and name <> 'workflow_definitions'`,
    )
    .pluck()
    .all() as string[] // names
  const counts = tables.map((table) =>
    file
      .prepare(`select count(*) from ${table} where ${table === 'workflow_executions' ? 'id' : 'workflow'} = ?`)
      .pluck()
      .get(header.id),
  ) as number[] // counts
  file.close()
  return counts.reduce((sum, count) => sum + count, 0)
}

test('a workflow goes with its execution, and its actions go with it, in slices of any size', async () => {
  for (const limit of [1_000, 1, 2]) {
    const old = await runWorkflow({ days: 9 })
    const young = await runWorkflow({ days: 2 })
    expect(await remove(7, { limit })).toBe(4)
    expect(left([old.execution, ...old.children])).toEqual([])
    expect(rowsOf(old.header)).toBe(0)
    expect(store.ofExecution(old.execution)).toBeUndefined()
    expect(left(young.children)).toEqual(young.children)
    const loaded = await store.load(young.header.id, (text) => text)
    expect(loaded?.state.instances).toEqual(young.state.instances)
    expect(store.definitionText(young.header.definition)).toBe('3 tasks')
    await remove(0)
    expect(store.definitionText(young.header.definition)).toBeUndefined()
  }
})

test('the old actions of a long workflow stay for as long as the workflow', async () => {
  const long = await runWorkflow({ days: 30, endDays: 1 })
  const other = await execute(20)
  expect(await remove(7)).toBe(1)
  expect(left([other])).toEqual([])
  expect(left(long.children)).toEqual(long.children)
  expect(await remove(0)).toBe(4)
})

test('what a workflow in a workflow has done stays for as long as the one at the top', async () => {
  const top = await runWorkflow({ days: 30, endDays: 1 })
  const inner = await runWorkflow({ days: 25, parent: top.execution })
  const action = { execution: inner.execution, workflow: top.header.id, instance: 0, item: null, attempt: 0 }
  await database.write({ steps: [store.putAction({ ...action, task_execution: newId() })], facts: [] })
  for (const limit of [1_000, 2]) {
    expect(await remove(7, { limit })).toBe(0)
    expect(rowsOf(inner.header)).toBeGreaterThan(0)
  }
  expect(await remove(0, { limit: 2 })).toBe(8)
  expect([rowsOf(top.header), rowsOf(inner.header)]).toEqual([0, 0])
})

test('a workflow that was repeated keeps the actions of its first run, until the last one goes', async () => {
  const first = await runWorkflow({ days: 30 })
  const again = await execute(3)
  const { steps, header } = store.reassign(first.header, again, null)
  await database.write({ steps, facts: [] })
  expect(await remove(7)).toBe(1)
  expect(left([first.execution])).toEqual([])
  expect(left(first.children)).toEqual(first.children)
  expect(store.ofExecution(again)).toEqual(header)
  // They are older than the execution that they wait for.
  expect(await remove(1)).toBe(1)
  expect(rowsOf(header)).toBe(0)
  expect(await remove(1)).toBe(3)
})

test('one that is repeated just now stays', async () => {
  const workflow = await runWorkflow({ days: 30 })
  const again = await execute(0)
  // The request wins the race against the removal.
  let isFirst = true
  retention = retentionOn({
    async write(unit) {
      if (isFirst) {
        isFirst = false
        const reassigned = store.reassign(workflow.header, again, null)
        const running = { ...workflow.state.workflow, status: 'running' as const }
        const changes = { ...emptyState(), workflow: running, indexes: emptyState() }
        const saved = store.save(reassigned.header, changes, { seal: () => undefined, at: now() })
        await database.write({ steps: [...reassigned.steps, ...saved.steps], facts: [] })
      }
      return database.write(unit)
    },
  })
  const slice = await retention.remove({ before: daysBefore(7), after: '', limit: 1_000 })
  expect(slice.records).toBe(1)
  expect(left(workflow.children)).toEqual(workflow.children)
  expect(store.ofExecution(again)?.status).toBe('running')
})

test('the removal of single actions, by their reference, leaves those of workflows', async () => {
  const workflow = await runWorkflow({ days: 9 })
  const other = await execute(9)
  // All of these executions are of one action.
  expect(await remove(7, { actionRef: 'core.local' })).toBe(2)
  expect(left([workflow.execution, other])).toEqual([])
  expect(left(workflow.children)).toEqual(workflow.children)
  expect(await remove(7)).toBe(3)
})

test('a removal that the end of the server interrupts is finished by the next one', async () => {
  const large = await runWorkflow({ days: 9, tasks: 600 })
  let writes = 0
  retention = retentionOn({
    write(unit) {
      writes += 1
      return writes > 2 ? Promise.reject(new Error('killed')) : database.write(unit)
    },
  })
  const old = { before: daysBefore(7), after: '', limit: 1_000 }
  await expect(retention.remove(old)).rejects.toThrow('killed')
  // Half of it is gone, and nobody finds the rest.
  expect(rowsOf(large.header)).toBeGreaterThan(0)
  expect(store.ofExecution(large.execution)).toBeUndefined()
  expect(store.find(large.header.id)).toBeUndefined()
  expect(await store.load(large.header.id, (text) => text)).toBeUndefined()
  retention = retentionOn(database)
  expect(await remove(7)).toBe(601)
  expect(rowsOf(large.header)).toBe(0)
})

test('workflows go without their executions: those that are over, with all above them', async () => {
  const { remove: removeWorkflows } = createRemoval({ store, database })
  retention = createWorkflowRetention({ store, remove: removeWorkflows })
  // Ids and times of workflows are those of now: all are old tomorrow.
  const before = formatMicros(nowMicros() + DAY)
  const over = await runWorkflow({ days: 9 })
  const second = await runWorkflow({ days: 9 })
  const open = store.insert(
    { id: newId(), execution: await execute(9), root: newId(), runner: 'orquesta', start_timestamp: now() },
    'open',
  )
  await database.write({ steps: open.steps, facts: [] })
  const inner = await runWorkflow({ days: 9, root: open.header.id })
  expect(await remove(0, { before: daysBefore(1) })).toBe(0)
  expect(await remove(0, { before, limit: 1 })).toBe(2)
  const executionsLeft = [over, second, inner].flatMap(({ execution, children }) => [execution, ...children])
  expect(left(executionsLeft)).toEqual(executionsLeft)
  for (const { header } of [over, second]) expect(store.find(header.id)).toBeUndefined()
  for (const id of [open.header.id, inner.header.id]) expect(store.find(id)).toBeDefined()
})
