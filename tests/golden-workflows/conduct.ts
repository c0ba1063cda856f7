/** Plays `conduct.jsonl` of a folder with golden data through the conductor. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { load } from 'js-yaml'
import { entriesOf, readJson, writeJson } from '../../src/lib/json/index.ts'
import { isObject } from '../../src/lib/schema/index.ts'
import { Budget, defaultLimits } from '../../src/lib/template/index.ts'
import { pythonYamlSchema } from '../../src/lib/text/index.ts'
import { readDefinition, type Definition } from '../../src/modules/workflows/definition/model.ts'
import {
  apply,
  arrivalsOf,
  conduct,
  ContextCache,
  createMemory,
  Draft,
  emptyState,
  variablesOf,
  type Evaluate,
  type Event,
  type InstanceRow,
  type Outcome,
  type StartCommand,
  type State,
  type World,
} from '../../src/modules/workflows/conductor/index.ts'
import { evaluate } from '../../src/modules/workflows/expressions/index.ts'
import { readAgain } from '../helpers/workflow-rows.ts'
import type { Difference, Tally } from './tally.ts'

interface ScriptedEnd {
  readonly status: string
  readonly result?: unknown
  readonly then?: ScriptedEnd
  readonly error?: string
  readonly message?: string
}

type Script = readonly ScriptedEnd[]

interface Step {
  readonly event: {
    readonly do: string
    readonly task?: string
    readonly route?: number
    readonly item?: number
    readonly status?: string
    readonly result?: unknown
    readonly tasks?: readonly string[]
    readonly reset?: readonly string[]
  }
  readonly started?: readonly Readonly<Record<string, unknown>>[]
  readonly task_status?: string
  readonly status: string
  readonly errors: number
  readonly refused?: string
  readonly ignored?: boolean
  readonly engine_error?: string
}

interface GoldenTask {
  readonly task: string
  readonly route: number
  readonly status: string
  readonly context: Readonly<Record<string, unknown>>
  readonly next?: readonly string[]
  readonly prev?: Readonly<Record<string, number>>
  readonly tally?: number
  readonly term?: boolean
}

interface Row {
  readonly id: string
  readonly definition: string
  readonly inputs?: Readonly<Record<string, unknown>>
  readonly outcomes?: Readonly<Record<string, Script | { readonly items: Readonly<Record<string, Script>> }>>
  readonly context?: Readonly<Record<string, unknown>>
  readonly trace?: readonly Step[]
  readonly flags?: readonly string[]
  readonly final: {
    readonly status: string
    readonly output: unknown
    readonly errors: readonly Readonly<Record<string, unknown>>[]
    readonly tasks?: readonly GoldenTask[]
    readonly routes?: readonly (readonly string[])[]
    readonly staged?: readonly { readonly task: string; readonly route: number; readonly ready: boolean }[]
    readonly inspection?: boolean
    readonly refused?: boolean
  }
}

const defaultContext = {
  svc: {
    user: 'ana',
    pack: 'demo',
    action: 'demo.flow',
    runner: 'orquesta',
    api_url: 'http://127.0.0.1:9101/v1',
    action_execution_id: 'x1',
    workflow_execution_id: 'wf',
  },
}

const evaluateExpressions: Evaluate = (value, scope, readings) =>
  evaluate(value, scope, {
    budget: new Budget(defaultLimits, 'the expression'),
    ...(readings === undefined ? {} : { readings }),
  })

/** A run of the conductor, with the actions that run in it. */
class Run {
  readonly definition: Definition
  state: State = emptyState()
  readonly running: StartCommand[] = []
  readonly #results = new Map<string, unknown>()
  readonly #counts = new Map<string, number>()
  #world: World
  readonly #row: Row
  readonly #isRestarted: boolean

  constructor(row: Row, isRestarted: boolean) {
    this.#row = row
    this.#isRestarted = isRestarted
    const document = load(row.definition, { schema: pythonYamlSchema })
    this.definition = readDefinition(document)
    const environment = row.context ?? defaultContext
    const { workflow_execution_id: _, ...svc } = environment['svc'] as Record<string, unknown>
    this.#world = {
      evaluate: evaluateExpressions,
      memory: createMemory(),
      outside: {
        environment,
        startEnvironment: { ...environment, svc },
        resultOf: (instance, item) => this.#results.get(`${instance}/${item ?? ''}`) ?? null,
        recordOf: ({ id }) => ({ id: `t${id}`, workflowExecution: 'wf', startTimestamp: '', endTimestamp: null }),
        readKey: () => undefined,
        whyRefused: (command) => this.#whyRefused(command),
      },
    }
  }

  send(event: Event): Outcome {
    if (this.#isRestarted) this.#restart()
    const outcome = conduct(this.definition, this.state, event, this.#world)
    if (outcome.changes === undefined) return outcome
    this.state = apply(this.state, outcome.changes)
    if (event.kind === 'ended') this.#results.set(`${event.instance}/${event.item ?? ''}`, event.result)
    for (const command of outcome.commands) {
      if (command.kind === 'start') this.running.push(command)
      if (command.kind === 'continue') {
        const more = this.send({ kind: 'continue' })
        return { ...outcome, commands: [...outcome.commands, ...more.commands] }
      }
    }
    return outcome
  }

  /** Reads the rows as a server does after its start. */
  #restart(): void {
    this.#world = { ...this.#world, memory: createMemory() }
    this.state = readAgain(this.state)
  }

  /** Takes the oldest running action of the task. */
  take(task: string | undefined, route: number | undefined, item: number | undefined): StartCommand | undefined {
    const index = this.running.findIndex(
      (command) => command.task === task && command.route === route && command.item === item,
    )
    return index < 0 ? undefined : this.running.splice(index, 1)[0]
  }

  isRunning({ event: { task, route, item } }: Step): boolean {
    return this.running.some(
      (command) => command.task === task && command.route === route && (item === undefined || command.item === item),
    )
  }

  /** What the script says of the nth action of the task. */
  scripted(command: StartCommand, isCounted: boolean): ScriptedEnd | undefined {
    const { outcomes } = this.#row
    const name =
      outcomes?.[`${command.task}#${command.route}`] === undefined ? command.task : `${command.task}#${command.route}`
    const script = outcomes?.[name]
    const key = `${name}/${command.item ?? ''}`
    const n = this.#counts.get(key) ?? 0
    if (isCounted) this.#counts.set(key, n + 1)
    const ends =
      script !== undefined && 'items' in script ? (script.items[String(command.item)] ?? script.items['*']) : script
    return (
      ends?.[Math.min(n, ends.length - 1)] ?? {
        status: 'succeeded',
        result: { from: command.task, ...(command.item === undefined ? {} : { item: command.item }), n },
      }
    )
  }

  #whyRefused(command: StartCommand): string | undefined {
    const end = this.scripted(command, false)
    return end?.status === 'cannot-start' ? `${end.error ?? ''}: ${end.message ?? ''}` : undefined
  }

  get draft(): Draft {
    return new Draft(this.state)
  }

  /** Instances in the order of their start. */
  get started(): InstanceRow[] {
    return [...this.state.instances.values()]
      .filter(({ order }) => order !== null)
      .sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
  }

  contextOf(instance: InstanceRow): Readonly<Record<string, unknown>> {
    return variablesOf(this.draft, new ContextCache(), instance.context ?? 0)
  }
}

/** Without regard to the order of keys. */
function spell(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(', ')}]`
  if (!isObject(value)) return writeJson(value ?? null)
  const entries = entriesOf(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${JSON.stringify(key)}: ${spell(item)}`)
  return `{${entries.toSorted().join(', ')}}`
}

class Mismatch extends Error {
  readonly expected: string
  readonly actual: string

  constructor(where: string, expected: unknown, actual: unknown) {
    super(where)
    this.expected = `${where}: ${spell(expected)}`
    this.actual = `${where}: ${spell(actual)}`
  }
}

function same(where: string, expected: unknown, actual: unknown): void {
  if (spell(expected) !== spell(actual)) throw new Mismatch(where, expected, actual)
}

function eventOf(run: Run, { event }: Step): Event | undefined {
  switch (event.do) {
    case 'start':
      return undefined
    case 'pause':
    case 'resume':
    case 'cancel':
      return { kind: event.do }
    case 'rerun':
      return { kind: 'rerun', tasks: event.tasks ?? [], reset: event.reset ?? [] }
    case 'answer':
    case 'child-resumed': {
      const instance = run.started.findLast(
        (row) => run.definition.tasks[row.task]?.name === event.task && row.route === event.route,
      )
      const waiting = run.running.find((command) => command.instance === instance?.id)
      if (waiting === undefined) throw new Mismatch('nobody waits', event, run.running)
      const base = {
        instance: waiting.instance,
        ...(waiting.item === undefined ? {} : { item: heldItem(run, waiting) }),
      }
      return event.do === 'answer' ? { kind: 'answered', ...base } : { kind: 'child resumed', ...base }
    }
    default: {
      const command = run.take(event.task, event.route, event.item)
      if (command === undefined) throw new Mismatch('no such action runs', event, run.running)
      const base = {
        instance: command.instance,
        attempt: command.attempt,
        ...(command.item === undefined ? {} : { item: command.item }),
      }
      if (event.status === 'pending' || event.status === 'paused') {
        run.running.push(command)
        return { kind: event.status === 'pending' ? 'pending' : 'child paused', ...base }
      }
      run.scripted(command, true)
      return { kind: 'ended', ...base, status: event.status as 'succeeded', result: event.result ?? null }
    }
  }
}

/** The item of the same instance that waits. */
function heldItem(run: Run, { instance }: StartCommand): number {
  for (const row of run.state.items.values())
    if (row.instance === instance && (row.status === 'pending' || row.status === 'paused')) return row.index
  return 0
}

/** What an outcome starts, as the golden data shows it. */
function startedBy(run: Run, before: State, outcome: Outcome): unknown[] {
  const shown: Record<string, unknown>[] = []
  const show = (row: InstanceRow, commands: readonly StartCommand[]): void => {
    const task = run.definition.tasks[row.task]
    if (task === undefined || task.kind !== 'task') return
    const [first] = commands
    const delay = commands.find((command) => command.delay > 0)?.delay
    const entry: Record<string, unknown> = { task: task.name, route: row.route }
    if (row.items !== null) {
      Object.assign(entry, { items: row.items.count, concurrency: row.items.concurrency })
      if (commands.length > 0)
        entry['actions'] = commands.map((command) => ({
          action: command.action,
          input: command.input,
          item: command.item,
          ...(command.delay > 0 ? { delay: command.delay } : {}),
        }))
    } else if (first === undefined) Object.assign(entry, { action: null })
    else Object.assign(entry, { action: first.action, input: first.input, ...(delay === undefined ? {} : { delay }) })
    if (first === undefined && row.status === 'failed') Object.assign(entry, { action: undefined, cannot_start: true })
    shown.push(entry)
  }
  const commands = outcome.commands.filter((command) => command.kind === 'start')
  const byInstance = Map.groupBy(commands, ({ instance }) => instance)
  const ids = new Set([...(outcome.changes?.instances.keys() ?? []), ...byInstance.keys()])
  const rows = [...ids].map((id) => run.state.instances.get(id))
  for (const row of rows) {
    if (row === undefined) continue
    const isNew = row.order !== null && (before.instances.get(row.id)?.order ?? null) === null
    if ((isNew && row.status !== 'canceled') || byInstance.has(row.id)) show(row, byInstance.get(row.id) ?? [])
  }
  return shown
}

/** A delay is one of an action. */
const withoutIdleDelay = (entry: Readonly<Record<string, unknown>>): unknown =>
  entry['action'] === null || entry['items'] !== undefined ? { ...entry, delay: undefined } : entry

const byPlace = (list: readonly unknown[]): unknown[] =>
  list.toSorted((a, b) => {
    const [left, right] = [spell(a), spell(b)]
    return left < right ? -1 : left > right ? 1 : 0
  })

/** Such a row shows a fault of the incumbent: svc owes that the workflow ends, and how. */
const lenientFlags = ['stuck', 'cancel-fails', 'engine-error', 'rerun-items']

/** The flag `cancel-fails` is missing where no user has canceled the workflow, but a task was. */
function isCancelFailure({ trace = [], final }: Row): boolean {
  const last = trace.findLast(({ refused }) => refused === undefined)
  const isJoin = (message: unknown): boolean => String(message).startsWith('UnreachableJoinError')
  return (
    final.status === 'failed' &&
    last?.task_status === 'canceled' &&
    final.errors.every(({ message }) => isJoin(message))
  )
}

function playRow(row: Row, isRestarted: boolean): void {
  try {
    playExactly(row, isRestarted)
  } catch (error) {
    const flags = [...(row.flags ?? []), ...(isCancelFailure(row) ? ['cancel-fails'] : [])]
    if (!(error instanceof Mismatch) || !flags.some((flag) => lenientFlags.includes(flag))) throw error
    playToTheEnd(row, flags, isRestarted)
  }
}

function playExactly(row: Row, isRestarted: boolean): void {
  const run = new Run(row, isRestarted)
  for (const [index, step] of (row.trace ?? []).entries()) {
    const where = `step ${index} ${spell(step.event)}`
    const before: State = { ...run.state, instances: new Map(run.state.instances) }
    const event = eventOf(run, step) ?? { kind: 'started', input: row.inputs ?? {} }
    const outcome = run.send(event)
    if (step.refused !== undefined) same(`${where} refused`, step.refused, outcome.refused)
    same(
      `${where} started`,
      byPlace((step.started ?? []).map(withoutIdleDelay)),
      byPlace(startedBy(run, before, outcome)),
    )
    same(`${where} status`, step.status, run.state.workflow.status)
    if (step.task_status !== undefined && 'instance' in event)
      same(`${where} task status`, step.task_status, taskStatus(run, event.instance))
    same(`${where} errors`, step.errors, run.state.errors.size)
  }
  const { workflow, errors } = run.state
  same('status', row.final.status, workflow.status)
  same(
    'errors',
    row.final.errors.map(withoutOwnWords),
    Array.from(errors.values(), ({ entry }) => withoutOwnWords({ ...entry })),
  )
  same('output', row.final.output, workflow.output)
  compareTasks(row, run)
}

/** Follows the trace as far as it goes, then the script, and compares how the workflow ends. */
function playToTheEnd(row: Row, flags: readonly string[], isRestarted: boolean): void {
  const run = new Run(row, isRestarted)
  for (const step of row.trace ?? []) {
    if (step.event.task !== undefined && !run.isRunning(step)) break
    run.send(eventOf(run, step) ?? { kind: 'started', input: row.inputs ?? {} })
  }
  for (let turns = 0; run.running.length > 0 && turns < 10_000; turns++) {
    const command = run.running.shift()
    if (command === undefined) break
    const { instance, attempt, item } = command
    const end = run.scripted(command, true)
    run.send({
      kind: 'ended',
      instance,
      attempt,
      ...(item === undefined ? {} : { item }),
      status: (end?.status ?? 'succeeded') as 'succeeded',
      result: end?.result ?? null,
    })
  }
  const { status } = run.state.workflow
  if (flags.includes('cancel-fails') || row.final.status === 'canceling') same('status', 'canceled', status)
  else if (flags.includes('engine-error')) same('status', 'failed', status)
  else if (!['succeeded', 'failed', 'canceled'].includes(status)) throw new Mismatch('end', 'the workflow ends', status)
}

/** Of errors that are no expression's, the class counts; the words are ours. */
const withoutOwnWords = (entry: Readonly<Record<string, unknown>>): unknown => ({
  ...entry,
  message: String(entry['message']).replace(/^(AttributeError|TypeError|ValueError): .*/s, '$1'),
})

/** The latest instance of the place. */
function taskStatus(run: Run, id: number): string | undefined {
  const row = run.state.instances.get(id)
  return row === undefined ? undefined : run.draft.latest(row.task, row.route)?.status
}

function compareTasks(row: Row, run: Run): void {
  const started = run.started
  const orders = new Map(started.map(({ id, order }) => [id, order]))
  const actual = started.map((instance): GoldenTask => {
    const task = run.definition.tasks[instance.task]
    const next = (instance.taken ?? []).map((position) => task?.outgoing[position]?.id ?? '')
    const previous = arrivalsOf(run.draft, instance).map(({ from, transition }): [string, number] => {
      const source = run.state.instances.get(from)
      return [run.definition.tasks[source?.task ?? -1]?.outgoing[transition]?.origin ?? '', orders.get(from) ?? -1]
    })
    return {
      task: task?.name ?? '',
      route: instance.route,
      status: instance.status,
      context: run.contextOf(instance),
      ...(next.length > 0 ? { next } : {}),
      ...(previous.length > 0 ? { prev: Object.fromEntries(previous) } : {}),
      ...(instance.retry === null ? {} : { tally: instance.retries }),
      ...(instance.isTerminal ? { term: true } : {}),
    }
  })
  const expected = row.final.tasks ?? []
  const hasRefusal = (row.trace ?? []).some(({ started: entries = [] }) =>
    entries.some((entry) => entry['cannot_start'] === true),
  )
  for (const [index, task] of expected.entries()) {
    const own = actual[index]
    // The incumbent leaves a task running that was refused, and those that it has not requested then.
    const isLeft = hasRefusal && task.status === 'running' && (own?.status === 'failed' || own?.status === 'canceled')
    same(`task ${index}`, task, isLeft ? { ...own, status: 'running' } : own)
  }
  same('tasks', expected.length, actual.length)
}

/**
 * Definitions that are refused before the start are not played.
 *
 * @param folder holds `conduct.jsonl`
 * @param isRestarted whether the state is read from its rows before each event. Default: it is kept
 */
export function playConduct(folder: string, isRestarted = false): Tally {
  const differences: Difference[] = []
  let agree = 0
  for (const line of readFileSync(join(folder, 'conduct.jsonl'), 'utf8').split('\n')) {
    if (line === '') continue
    const row = readJson(line) as Row
    if (row.final.inspection === true || row.final.refused === true) continue
    try {
      playRow(row, isRestarted)
      agree += 1
    } catch (error) {
      const isMismatch = error instanceof Mismatch
      differences.push({
        id: row.id,
        input: (row.flags ?? []).join(' '),
        expected: isMismatch ? error.expected : '',
        actual: isMismatch ? error.actual : String(error instanceof Error ? error.stack : error),
      })
    }
  }
  return { name: 'conduct', agree, differences }
}
