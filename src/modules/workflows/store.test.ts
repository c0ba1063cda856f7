import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { migrations } from '../../../migrations/index.ts'
import { openDatabase } from '../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { watchQueries } from '../../../tests/helpers/query-plans.ts'
import { createRandom, seedOfRun, type Random } from '../../../tests/helpers/random.ts'
import { rounds } from '../../../tests/helpers/tiers.ts'
import { newId } from '../../core/ids.ts'
import { now } from '../../core/time.ts'
import { Conflict, type Database, type Step } from '../../db/index.ts'
import { isLong, readJson, writeJson } from '../../lib/json/index.ts'
import {
  apply,
  conduct,
  createMemory,
  defaultLimits,
  emptyState,
  type EndStatus,
  type Event,
  type Memory,
  type Outcome,
  type StartCommand,
  type State,
} from './conductor/index.ts'
import { readDefinition, type Definition } from './definition/model.ts'
import { ExpressionError, type Scope } from './expressions/index.ts'
import { createWorkflowStore, type WorkflowAction, type WorkflowHeader, type WorkflowStore } from './store.ts'

let folder: TemporaryFolder
let database: Database
let store: WorkflowStore

beforeEach(async () => {
  folder = makeFolder()
  database = (await openDatabase(folder.path)).database
  store = createWorkflowStore(database)
})

afterEach(async () => {
  await database.close()
  folder.remove()
})

const SECRET = 'hunter2'
const seal = (text: string): string | undefined =>
  text.includes(SECRET) ? Buffer.from(text).toString('hex') : undefined
const open = (sealed: string): string => Buffer.from(sealed, 'hex').toString()

const write = (steps: Step[]): Promise<unknown> => database.write({ steps, facts: [] })

/** In these tests, an expression is a function, or `$name` for a variable. */
type Expression = (scope: Scope) => unknown

const evaluate = (value: unknown, scope: Scope): unknown => {
  if (typeof value === 'function') return (value as Expression)(scope)
  if (typeof value === 'string' && value.startsWith('$')) return scope.variable(value.slice(1))
  return value
}

/** A run whose events are stored. */
class Run {
  readonly #definition: Definition
  header: WorkflowHeader | undefined
  state: State = emptyState()
  readonly running: StartCommand[] = []
  #memory: Memory = createMemory()
  readonly #results = new Map<string, unknown>()

  constructor(document: Record<string, unknown>) {
    this.#definition = readDefinition(document)
  }

  get id(): string {
    return this.header?.id ?? ''
  }

  async start(more: { definition?: string; input?: Record<string, unknown> } = {}): Promise<void> {
    const { definition = 'version: 1.0', input = {} } = more
    const id = newId()
    const workflow = { id, execution: newId(), root: id, runner: 'orquesta', start_timestamp: now() }
    const inserted = store.insert(workflow, definition)
    await write(inserted.steps)
    this.header = inserted.header
    await this.send({ kind: 'started', input })
  }

  async send(event: Event): Promise<Outcome> {
    if (this.header === undefined) throw new Error('the run has not started')
    const outcome = conduct(this.#definition, this.state, event, {
      evaluate,
      memory: this.#memory,
      limits: { ...defaultLimits, maxInstances: 200, maxItems: 100, maxIdleTurns: 20, maxStartsPerTurn: 5 },
      outside: {
        environment: {},
        startEnvironment: {},
        resultOf: (instance, item) => this.#results.get(`${instance}/${item ?? ''}`),
        recordOf: ({ id }) => ({ id: String(id), workflowExecution: 'w', startTimestamp: '', endTimestamp: null }),
        readKey: () => undefined,
      },
    })
    if (outcome.changes === undefined) return outcome
    if (event.kind === 'ended') this.#results.set(`${event.instance}/${event.item ?? ''}`, event.result)
    const { steps, header } = store.save(this.header, outcome.changes, { seal, at: now() })
    await write(steps)
    this.header = header
    this.state = apply(this.state, outcome.changes)
    this.running.push(...outcome.commands.filter((command) => command.kind === 'start'))
    return outcome
  }

  take(index = 0): StartCommand {
    const [command] = this.running.splice(index, 1)
    if (command === undefined) throw new Error('nothing runs')
    return command
  }

  async end({ instance, attempt, item }: StartCommand, status: EndStatus, result: unknown): Promise<Outcome> {
    return this.send({ kind: 'ended', instance, attempt, ...(item === undefined ? {} : { item }), status, result })
  }

  /** Goes on with what is stored. */
  async reload(): Promise<void> {
    const loaded = await store.load(this.id, open)
    if (loaded === undefined) throw new Error('the run is not stored')
    this.header = loaded.header
    this.state = loaded.state
    this.#memory = createMemory()
  }
}

/** All that a state says, without regard to the order of rows. */
function spell({ workflow, routesOf, ...tables }: State): string[] {
  const lines = Object.entries(tables).flatMap(([name, table]) =>
    Array.from(table as ReadonlyMap<unknown, unknown>, ([key, row]) => `${name} ${String(key)} ${canonical(row)}`),
  )
  // Their positions have no meaning.
  const routes = Array.from(routesOf, ([key, route]) => `routesOf ${key.split('/')[0]} ${route}`)
  return [canonical(workflow), ...lines.toSorted(), ...routes.toSorted()]
}

/** Rows with their properties in one order; values with theirs. */
function canonical(row: unknown): string {
  if (typeof row !== 'object' || row === null) return writeJson(row)
  return Object.entries(row)
    .map(([name, value]) => `${name}: ${writeJson(value)}`)
    .toSorted()
    .join()
}

const values = [
  null,
  0,
  -1.5,
  '',
  'ä😀\0\u2028',
  SECRET,
  { a: { b: SECRET } },
  readJson('21.0'),
  readJson('{"n": 12345678901234567890123, "f": 1.0, "z": {"2": 1, "1": 2, "b": [], "a": {}}}'),
  readJson('{"__proto__": 1, "x": [1.10, {"__proto__": {"y": null}}]}'),
  'x'.repeat(3_000),
] as const

/** Any definition: forks, joins, splits, cycles, items, retries, engine commands, mistakes. */
function randomDefinition(random: Random): Record<string, unknown> {
  const count = 2 + random.below(6)
  const names = Array.from({ length: count }, (_, index) => `t${index}`)
  const targets: [string, ...string[]] = ['noop', 'continue', 'fail', 'retry', ...names]
  const conditions: [Expression, ...Expression[]] = [
    () => true,
    ({ task }) => task?.status === 'succeeded',
    ({ task }) => task?.status === 'failed',
    () => random.once(2),
    () => {
      throw new ExpressionError('YaqlEvaluationException', random.pick(['no', SECRET]))
    },
  ]
  const value = (): unknown => {
    const chosen = random.pick(values)
    return () => chosen
  }
  const tasks = names.map((name, index): [string, unknown] => {
    const next = Array.from({ length: random.below(3) }, () => {
      // Mostly forward, so that runs end.
      const forward = names.slice(index + 1)
      const [first = 'noop', ...others] = forward
      const target = (): string => (random.once(4) ? random.pick(targets) : random.pick([first, ...others]))
      return {
        when: random.once(8) ? random.pick(conditions) : random.pick([conditions[0], conditions[1], conditions[2]]),
        ...(random.once(2) ? { publish: [{ [random.pick(['a', 'b', 'c'])]: value() }, { result: '$a' }] } : {}),
        do: Array.from({ length: 1 + random.below(2) }, target).join(', '),
      }
    })
    const task = {
      ...(random.once(8) ? {} : { action: 'core.local' }),
      ...(random.once(3) ? { join: random.pick<string | number>(['all', 1, 2]) } : {}),
      ...(random.once(4) ? { with: { items: '$list', ...(random.once(2) ? { concurrency: 2 } : {}) } } : {}),
      ...(random.once(4) ? { retry: { count: 1, ...(random.once(2) ? { delay: 1 } : {}) } } : {}),
      next,
    }
    return [name, task]
  })
  return {
    vars: [{ list: random.pick([[], [1, 2, 3, 4]]) }, { a: value() }],
    tasks: Object.fromEntries(tasks),
    output: [{ a: '$a' }, { b: '$b' }],
  }
}

const ends = ['succeeded', 'succeeded', 'succeeded', 'failed', 'timeout', 'abandoned', 'canceled'] as const

function randomEvent(random: Random, run: Run): Event {
  const waiting = run.running.length
  if (waiting === 0 || random.once(15)) {
    const names = ['t0', 't1', 't2'] as const
    const others: [Event, ...Event[]] = [
      { kind: 'pause' },
      { kind: 'resume' },
      { kind: 'continue' },
      { kind: 'rerun', tasks: [random.pick(names), random.pick(names)], reset: random.once(2) ? names : [] },
    ]
    return random.once(20) ? { kind: 'cancel' } : random.pick(others)
  }
  const index = random.below(waiting)
  const { instance, attempt, item } = run.running[index] ?? run.take(index)
  const place = { instance, attempt, ...(item === undefined ? {} : { item }) }
  if (random.once(12)) return { kind: random.pick(['pending', 'child paused']), ...place }
  if (random.once(12)) return { kind: random.pick(['answered', 'child resumed']), ...place }
  run.take(index)
  if (random.once(20)) return { kind: 'refused', ...place, message: 'ValueError: no' }
  return { kind: 'ended', ...place, status: random.pick(ends), result: random.pick(values) }
}

describe('a run is stored as it is', () => {
  const seed = seedOfRun()
  test(`after each event, whatever happens (seed ${seed})`, async () => {
    const random = createRandom(seed)
    const sizes = new Map<string, number>()
    for (let count = 0; count < rounds({ daily: 40, full: 300 }); count++) {
      const run = new Run(randomDefinition(random))
      const input = { secret: SECRET }
      await run.start({ input })
      for (let events = 0; events < 40; events++) {
        const loaded = await store.load(run.id, open)
        expect(loaded?.header).toEqual(run.header)
        expect(spell(loaded?.state ?? emptyState())).toEqual(spell(run.state))
        for (const [name, table] of Object.entries(run.state))
          if (table instanceof Map) sizes.set(name, (sizes.get(name) ?? 0) + table.size)
        if (random.once(6)) await run.reload()
        await run.send(randomEvent(random, run))
      }
    }
    // Every table takes part.
    expect(sizes.size).toBe(Object.keys(emptyState()).length - 1)
    expect([...sizes].filter(([, size]) => size === 0)).toEqual([])
    const file = new Sqlite(join(folder.path, 'svc.db'), { readonly: true })
    const texts = ['contexts', 'errors', 'executions'].flatMap((name) =>
      file.prepare(`select * from workflow_${name}`).raw().all(),
    )
    file.close()
    expect(texts.flat().filter((text) => String(text).includes(SECRET))).toEqual([])
    expect(texts.flat().filter((text) => isLong(text))).toEqual([])
  }, 120_000)
})

const sequence = (count: number, more: object = {}): Record<string, unknown> => ({
  tasks: Object.fromEntries(
    Array.from({ length: count }, (_, index): [string, unknown] => [
      `t${index}`,
      { action: 'core.local', next: [{ publish: [{ [`v${index}`]: () => index }], do: `t${index + 1}` }], ...more },
    ]).concat([[`t${count}`, { action: 'core.local' }]]),
  ),
})

async function endAll(run: Run): Promise<void> {
  while (run.running.length > 0) await run.end(run.take(), 'succeeded', null)
}

test('a large run is loaded part by part, while others work', async () => {
  const run = new Run(sequence(150))
  // Larger than a part, each.
  const long = 'x'.repeat(3 * 1024 * 1024)
  await run.start({ input: {} })
  await endAll(run)
  // As many rows as several parts have.
  const changes = { ...emptyState(), workflow: run.state.workflow, indexes: emptyState() }
  const many = 1_300
  const items = new Map(
    Array.from({ length: many }, (_, index) => [
      `${Math.floor(index / 650)}/${index}`,
      { instance: Math.floor(index / 650), index, status: 'succeeded' as const, source: 0 },
    ]),
  )
  const contexts = new Map(
    Array.from({ length: 4 }, (_, index) => [1_000 + index, { id: 1_000 + index, parents: [0], values: { long } }]),
  )
  if (run.header === undefined) throw new Error('the run has not started')
  const saved = store.save(run.header, { ...changes, items, contexts }, { seal, at: now() })
  await write(saved.steps)

  let turns = 0
  let isLoaded = false
  const others = (): void => {
    turns += 1
    if (!isLoaded) setImmediate(others)
  }
  setImmediate(others)
  const loaded = await store.load(run.id, open)
  isLoaded = true
  expect(loaded?.state.items).toEqual(items)
  expect(loaded?.state.instances).toEqual(run.state.instances)
  expect([...(loaded?.state.contexts.values() ?? [])].filter(({ id }) => id >= 1_000)).toEqual([...contexts.values()])
  // Two full parts of items, and at least one for each long context but the last.
  expect(turns).toBeGreaterThanOrEqual(5)
})

test('a run that changes while it is loaded is not taken for one', async () => {
  const run = new Run(sequence(2))
  await run.start()
  const changing = createWorkflowStore({
    ...database,
    all(query) {
      if (query.compile().sql.includes('workflow_errors'))
        new Sqlite(join(folder.path, 'svc.db')).exec('update workflow_executions set revision = revision + 1').close()
      return database.all(query)
    },
  })
  await expect(changing.load(run.id, open)).rejects.toThrow('has changed while it was loaded')
})

test('two changes of one revision: the second is refused', async () => {
  const run = new Run(sequence(3))
  await run.start()
  const { header, state } = run
  if (header === undefined) throw new Error('the run has not started')
  const save = (): Step[] =>
    store.save(header, { ...emptyState(), workflow: state.workflow, indexes: emptyState() }, { seal, at: now() }).steps
  const reassigned = store.reassign(header, newId(), null)
  await write(save())
  await expect(write(save())).rejects.toThrow(Conflict)
  await expect(write(reassigned.steps)).rejects.toThrow(Conflict)
  expect(store.find(run.id)).toEqual({ ...header, revision: header.revision + 1 })
})

test('a re-run gives the run to another execution', async () => {
  const run = new Run(sequence(1))
  await run.start({ definition: 'version: 1.0\ntasks: {}' })
  const { header } = run
  if (header === undefined) throw new Error('the run has not started')
  expect(store.ofExecution(header.execution)).toEqual(header)
  const execution = newId()
  const reassigned = store.reassign(header, execution, null)
  await write(reassigned.steps)
  expect(store.ofExecution(header.execution)).toBeUndefined()
  expect(store.ofExecution(execution)).toEqual(reassigned.header)
  expect(store.definitionText(header.definition)).toBe('version: 1.0\ntasks: {}')
})

test('a run has an end for as long as it is over', async () => {
  const run = new Run({ tasks: { a: { action: 'core.local' } }, output: [{ v: () => SECRET }] })
  await run.start()
  expect([run.header?.end_timestamp, store.output(run.id, open)]).toEqual([null, null])
  await run.end(run.take(), 'failed', null)
  const end = store.find(run.id)?.end_timestamp
  expect(end).toEqual(expect.any(String))
  expect(run.header?.end_timestamp).toBe(end)
  expect(store.output(run.id, open)).toEqual({ v: SECRET })
  await run.send({ kind: 'rerun', tasks: ['a'], reset: [] })
  expect(store.find(run.id)?.end_timestamp).toBeNull()
  expect(store.output(run.id, open)).toBeNull()
})

test('runs that a restart interrupts in the middle of their starts are found', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `t${index}`)
  const tasks = Object.fromEntries(names.map((name) => [name, { action: 'core.local' }]))
  const [done, paused, waits] = [new Run({ tasks }), new Run({ tasks }), new Run(sequence(2))]
  // A call starts five.
  for (const run of [done, paused, waits]) await run.start()
  expect(store.readyIds('', 9)).toEqual([done.id, paused.id])
  expect(store.readyIds(done.id, 9)).toEqual([paused.id])
  expect(store.readyIds('', 1)).toEqual([done.id])
  await paused.send({ kind: 'pause' })
  await done.send({ kind: 'continue' })
  expect(store.readyIds('', 9)).toEqual([])
})

test('a request that has not come to all children is found, and how far it has come', async () => {
  const [paused, canceled] = [new Run(sequence(1)), new Run(sequence(1))]
  for (const run of [paused, canceled]) await run.start()
  expect(store.cascadingIds('', 9)).toEqual([])
  for (const [{ header }, request] of [
    [paused, 'pause'],
    [canceled, 'cancel'],
  ] as const)
    await write(header === undefined ? [] : store.putCascade(header, request, 'b').steps)
  expect(store.cascadingIds('', 9)).toEqual([paused.id, canceled.id])
  expect(store.cascadingIds(paused.id, 1)).toEqual([canceled.id])
  expect((await store.load(paused.id, open))?.header).toMatchObject({ cascade: 'pause', cascade_after: 'b' })
  for (const header of [paused.header].filter((known) => known !== undefined))
    await write(store.putCascade(header, null, '').steps)
  expect(store.find(paused.id)).toMatchObject({ cascade: null, cascade_after: '' })
  expect(store.cascadingIds('', 9)).toEqual([canceled.id])
})

test('each event adds the secrets that are new, and all of them are loaded and deleted with the run', async () => {
  const run = new Run(sequence(3))
  await run.start()
  const stored = (): { number: number; secrets: string }[] =>
    database.all(database.build.selectFrom('workflow_secrets').selectAll().where('workflow', '=', run.id))
  expect(stored()).toEqual([])
  for (const secrets of [['first', 'second'], [{ deep: ['third'] }]]) {
    await run.end(run.take(), 'succeeded', null)
    const sealed = seal(`${SECRET} ${JSON.stringify(secrets)}`) ?? ''
    await write(run.header === undefined ? [] : [store.putSecrets(run.header, sealed)])
  }
  expect(stored().map(({ secrets }) => open(secrets))).toEqual([
    `${SECRET} ["first","second"]`,
    `${SECRET} [{"deep":["third"]}]`,
  ])
  const loaded = await store.load(run.id, (text) => open(text).slice(SECRET.length))
  expect(loaded?.secrets).toEqual(['first', 'second', { deep: ['third'] }])
  await write(store.deleteRows([run.id], 100))
  expect(stored()).toEqual([])
})

test('tasks are listed in the order of their start, with the times of the latest attempt', async () => {
  const run = new Run({
    vars: [{ list: [1, 2, 3] }],
    tasks: {
      first: { action: 'core.local', retry: { count: 1, delay: 0 }, next: [{ do: 'each' }] },
      each: { with: { items: '$list', concurrency: 2 }, action: 'core.local' },
      other: { action: 'core.local', next: [{ do: 'late' }] },
      late: { join: 'all', action: 'core.local' },
    },
  })
  await run.start()
  const begun = store.findTask(run.id, 0)
  expect(begun).toMatchObject({ number: 0, order: 0, status: 'running', retries: 0, items: null, end_timestamp: null })
  const [first, other] = [run.take(), run.take()]
  await run.end(first, 'failed', null)
  const again = store.findTask(run.id, 0)
  expect(again).toMatchObject({ status: 'running', retries: 1, end_timestamp: null })
  expect(again?.start_timestamp).not.toBe(begun?.start_timestamp)
  await run.end(run.take(), 'succeeded', null)
  const ended = store.findTask(run.id, 0)
  expect(ended).toMatchObject({ status: 'succeeded', start_timestamp: again?.start_timestamp })
  expect(ended?.end_timestamp).toEqual(expect.any(String))
  await run.end(run.take(), 'succeeded', null)
  // Later changes of other rows, and of its own, leave the times as they are.
  expect(store.findTask(run.id, 0)).toEqual(ended)

  const tasks = store.tasks(run.id, -1, 9)
  expect(tasks.map(({ order }) => order)).toEqual([0, 1, 2])
  expect(tasks[0]).toMatchObject({
    ...ended,
    pass: 1,
    previous: [],
    arrivals: 0,
    taken: [0],
    retry: { count: 1, delay: 0 },
  })
  expect(tasks.find(({ items }) => items !== null)?.items).toMatchObject({ count: 3, next: 3, active: 2, failed: 0 })
  expect(store.tasks(run.id, 0, 1)).toEqual(tasks.slice(1, 2))
  expect(store.tasks(newId(), -1, 9)).toEqual([])
  expect(store.tasks(run.id, -1, 9, [tasks[0]?.task ?? 0])).toEqual(tasks.slice(1))
  await run.end(other, 'succeeded', null)
  expect(store.tasks(run.id, 2, 9).map(({ order }) => order)).toEqual([3])
})

test('actions of a task, of its items, and the latest of each', async () => {
  const [workflow, other] = [newId(), newId()]
  const ids = Array.from({ length: 9 }, () => newId())
  const action = (
    index: number,
    instance: number,
    item: number | null,
    attempt: number,
    of = workflow,
  ): WorkflowAction => ({
    execution: ids[index] ?? '',
    workflow: of,
    instance,
    item,
    attempt,
    task_execution: `${instance}.${attempt}`,
  })
  const actions = [
    action(0, 0, null, 0),
    action(1, 0, null, 1),
    action(2, 1, 0, 0),
    action(3, 1, 1, 0),
    action(4, 1, 1, 1),
    action(5, 1, 10, 0),
    action(6, 1, 2, 0),
    action(7, 2, 0, 0),
    action(8, 1, 0, 5, other),
  ] as const
  await write(actions.map((each) => store.putAction(each)))
  for (const each of actions) expect(store.actionOf(each.execution)).toEqual(each)
  expect(store.actionOf(newId())).toBeUndefined()
  expect(store.latestAction(workflow, 0, null)).toEqual(actions[1])
  expect(store.latestAction(workflow, 1, 1)).toEqual(actions[4])
  expect(store.latestAction(workflow, 1, 5)).toBeUndefined()
  expect(store.latestActions(workflow, 1, 0, 9)).toEqual([actions[2], actions[4], actions[6], actions[5]])
  expect(store.latestActions(workflow, 1, 1, 2)).toEqual([actions[4], actions[6]])
  for (const [instance, all] of [
    [0, [actions[0], actions[1]]],
    [1, [actions[2], actions[3], actions[4], actions[6], actions[5]]],
  ] as const) {
    const pages: WorkflowAction[] = []
    for (;;) {
      const page = store.actionsOf(workflow, instance, pages.at(-1), 2)
      pages.push(...page)
      if (page.length < 2) break
    }
    expect(pages).toEqual(all)
  }
})

test('removal takes some rows at a time, and leaves the definitions of others', async () => {
  const definitions = ['a: 1', 'a: 1', 'b: 1'] as const
  const runs: Run[] = []
  for (const definition of definitions) {
    const run = new Run(sequence(20))
    await run.start({ definition })
    await endAll(run)
    await write([store.putAction({ ...noAction, execution: newId(), workflow: run.id })])
    runs.push(run)
  }
  const [kept, ...others] = runs
  const gone = others.map(({ header }) => header).filter((header) => header !== undefined)
  const ids = gone.map(({ id }) => id)
  let commits = 0
  for (let isMore = true; isMore; commits++) {
    const results = await database.write({ steps: store.deleteRows(ids, 10), facts: [] })
    expect(Math.max(...results.map(({ changes }) => changes))).toBeLessThanOrEqual(10)
    isMore = results.some(({ changes }) => changes === 10)
  }
  expect(commits).toBeGreaterThan(3)
  // Nobody finds one that is detached.
  await write(store.deleteHeaders(gone))
  expect(ids.map((id) => store.find(id)?.id)).toEqual(ids)
  await write([store.detach(gone.map(({ execution }) => execution))])
  expect(store.detached(9).map(({ id }) => id)).toEqual(ids)
  expect(ids.map((id) => store.find(id))).toEqual([undefined, undefined])
  await write(store.deleteHeaders(gone))
  const file = new Sqlite(join(folder.path, 'svc.db'), { readonly: true })
  const tables = file
    .prepare(`select name from sqlite_schema where type = 'table' and name like 'workflow_%'`)
    .pluck()
    .all() as string[] // names
  expect(tables.length).toBe(12)
  for (const table of tables) {
    if (table === 'workflow_definitions') continue
    const column = table === 'workflow_executions' ? 'id' : 'workflow'
    const found = file.prepare(`select distinct ${column} from ${table}`).pluck().all()
    expect([table, found.filter((id) => id !== kept?.id)]).toEqual([table, []])
  }
  expect(file.prepare('select text from workflow_definitions').pluck().all()).toEqual(['a: 1'])
  file.close()
  const loaded = await store.load(kept?.id ?? '', open)
  expect(spell(loaded?.state ?? emptyState())).toEqual(spell(kept?.state ?? emptyState()))
})

const noAction: WorkflowAction = {
  execution: '',
  workflow: '',
  instance: 0,
  item: null,
  attempt: 0,
  task_execution: '',
}

test('an index serves each read, and each removal', async () => {
  const path = join(folder.path, 'svc.db')
  const queries = watchQueries(database, path)
  const read = createWorkflowStore(queries.database)
  const run = new Run(sequence(1))
  await run.start()
  await read.load(run.id, open)
  read.ofExecution('')
  read.definitionText('')
  read.output('', open)
  read.cascadingIds('', 1)
  read.open('', 1)
  read.readyIds('', 1)
  read.actionOf('')
  read.latestAction('', 0, null)
  read.latestActions('', 0, 0, 1)
  read.actionsOf('', 0, undefined, 1)
  read.actionsOf('', 0, noAction, 1)
  read.actionsOf('', 0, { ...noAction, item: 1 }, 1)
  read.tasks('', 0, 1)
  read.findTask('', 0)
  read.holdersOf([''])
  read.detached(1)
  read.arrivalsAt('', 0, 1)
  read.placesOf('', [0, 1])
  read.counts('')
  const plans = queries.take()
  expect(plans.length).toBeGreaterThan(20)
  expect(plans.filter((plan) => /SCAN (?!json_each)|TEMP B-TREE/.test(plan))).toEqual([])

  const file = new Sqlite(path, { readonly: true })
  const removals = [
    ...store.deleteRows(['a', 'b'], 1),
    ...store.deleteHeaders(run.header === undefined ? [] : [run.header]),
  ]
  for (const { query } of removals) {
    const { sql, parameters } = query.compile()
    const steps = file.prepare(`explain query plan ${sql}`).all(...parameters) as { detail: string }[] // SQLite's columns
    expect(steps.filter(({ detail }) => /SCAN (?!json_each)/.test(detail))).toEqual([])
  }
  file.close()
})

test('a database of a release before workflows opens', async () => {
  const old = makeFolder()
  const path = join(old.path, 'svc.db')
  const connection = new Sqlite(path)
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) })
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } })
  expect((await migrator.migrateTo('0011-idempotent-requests')).error).toBeUndefined()
  await db.destroy()
  const opened = (await openDatabase(old.path)).database
  const { steps } = createWorkflowStore(opened).insert(
    { id: 'w', execution: 'e', root: 'w', runner: 'orquesta', start_timestamp: now() },
    'version: 1.0',
  )
  await opened.write({ steps, facts: [] })
  expect((await createWorkflowStore(opened).load('w', open))?.state).toEqual(emptyState())
  await opened.close()
  old.remove()
})
