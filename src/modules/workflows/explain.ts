/** Why a workflow went the way it did, and what it waits for. Computed from the rows of the run; nothing is stored for it. */
import { compareText } from './definition/graph.ts'
import type { Definition, Task } from './definition/model.ts'
import {
  arrivalsOf,
  Draft,
  isActive,
  isCompleted,
  isHeld,
  endOf,
  joinProgress,
  type ErrorRow,
  type InstanceRow,
  type LogEntry,
  type Part,
  type State,
} from './conductor/index.ts'
import type { Readings } from './expressions/index.ts'
import type { WorkflowExplanation, WorkflowFailure, WorkflowJoin, WorkflowTransition, WorkflowWait } from './types.ts'

/** What the rows of the conductor do not say about an action. */
export interface ActionFacts {
  readonly execution: string
  readonly status: string
  /** ISO 8601; null: the action does not wait for its delay */
  readonly delayedUntil: string | null
}

export interface ExplainOptions {
  readonly definition: Definition
  readonly state: State
  /** Evaluates a part of the run again. @returns what the conductor logs of it, readings included */
  readonly review: (part: Part) => readonly LogEntry[]
  /** Parameters of the execution. */
  readonly input: Readonly<Record<string, unknown>>
  /** The action that an instance, or an item of it, runs; undefined: nothing is known. Default: always that. */
  readonly actionOf?: (instance: number, item: number | undefined) => ActionFacts | undefined
  /** Only tasks of this name; default: all. */
  readonly task?: string | undefined
  /** Most passes, failures and waits in the answer, of each; default 100. */
  readonly limit?: number
  /** Prepares each value and text that comes from the run for whoever asks: the place to mask secrets. Default: as it is. */
  readonly show?: <Value>(value: Value) => Value
}

const DEFAULT_LIMIT = 100
/** Actions without success that a task shows. */
const MAX_UNSUCCESSFUL = 10

/** @throws what `review` throws */
export function explain(options: ExplainOptions): WorkflowExplanation {
  const { state, definition, task: name, limit = DEFAULT_LIMIT } = options
  const draft = new Draft(state)
  const wanted = name === undefined ? undefined : definition.taskIndexes.get(name)
  const isWanted = (task: number): boolean => name === undefined || task === wanted
  const ended = [...state.instances.values()]
    .filter(({ task, order, status }) => order !== null && isCompleted(status) && isWanted(task))
    .filter(({ task }) => definition.tasks[task]?.kind === 'task')
    .sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
  const failures = [...state.errors.values()]
    .filter(({ entry }) => name === undefined || entry.task_id === name)
    .sort((a, b) => a.id - b.id)
  const waits = waitsOf(options, isWanted, limit)
  return {
    status: state.workflow.status,
    message: summaryOf(state, waits),
    tasks: ended.slice(-limit).map((instance) => explainTask(options, draft, instance)),
    tasks_left_out: Math.max(0, ended.length - limit),
    failures: explainFailures(options, failures.slice(0, limit)),
    failures_left_out: Math.max(0, failures.length - limit),
    waits_for: waits.list,
    waits_left_out: waits.leftOut,
  }
}

function explainTask(
  options: ExplainOptions,
  draft: Draft,
  instance: InstanceRow,
): WorkflowExplanation['tasks'][number] {
  const { definition, review } = options
  const task = taskOf(definition, instance)
  const log = instance.taken === null ? [] : review({ kind: 'transitions', instance })
  return {
    task: task.name,
    route: instance.route,
    status: instance.status,
    join: joinOf(definition, draft, instance),
    transitions: instance.taken === null ? null : transitionsOf(options, task, log, instance.taken),
    unsuccessful: instance.status === 'succeeded' ? [] : [...unsuccessfulOf(options, draft, instance)],
  }
}

/** The actions of the last attempt that have not succeeded. One that could not be started has no execution. */
function* unsuccessfulOf(
  { actionOf }: Pick<ExplainOptions, 'actionOf'>,
  draft: Draft,
  instance: InstanceRow,
): Generator<WorkflowExplanation['tasks'][number]['unsuccessful'][number], void> {
  if (instance.items === null) {
    const facts = actionOf?.(instance.id, undefined)
    if (facts !== undefined) yield { execution: facts.execution, item: null, status: facts.status }
    return
  }
  let left = MAX_UNSUCCESSFUL
  for (let item = 0; item < instance.items.next && left > 0; item++) {
    const row = draft.item(instance.id, item)
    if (row === undefined || row.status === 'succeeded') continue
    const facts = actionOf?.(row.source, item)
    if (facts === undefined) continue
    left -= 1
    yield { execution: facts.execution, item, status: facts.status }
  }
}

/** The arrivals at a join; null: the task is no join. */
export function joinOf(definition: Definition, draft: Draft, instance: InstanceRow): WorkflowJoin | null {
  const progress = joinProgress(definition, draft, instance)
  if (progress === undefined) return null
  const { need, arrived, missing } = progress
  if (instance.order === null) return { need, arrived: [...arrived], missing: [...missing] }
  // Since it has started, tasks before it may have started again.
  const came = new Set(arrivalsOf(draft, instance).map(({ from }) => taskOf(definition, draft.instance(from)).name))
  const all = taskOf(definition, instance).inbound.map((source) => definition.tasks[source]?.name ?? '')
  return { need, arrived: all.filter((name) => came.has(name)), missing: all.filter((name) => !came.has(name)) }
}

/**
 * The entries of `next`, in the order of the definition, from what the conductor has logged of their transitions. An entry
 * that only repeats the task is not among them, and of the ways of a chain that lead to no node only the one it has taken.
 *
 * @param taken positions in `Task.outgoing`, as the state has them; undefined: the log says what was taken
 */
export function transitionsOf(
  { show = asItIs }: Pick<ExplainOptions, 'show'>,
  task: Task,
  log: readonly LogEntry[],
  taken?: readonly number[],
): WorkflowTransition[] {
  const entries = new Map<number, WorkflowTransition>()
  const logged = new Map(log.filter((entry) => entry.kind === 'transition').map((entry) => [entry.transition, entry]))
  const add = (id: string, position: number, wasTaken: boolean | undefined): void => {
    const entry = logged.get(id)
    if (entry === undefined || entries.has(position)) return
    const { when, targets } = task.next[position] ?? { when: undefined, targets: [] }
    const isTaken = wasTaken ?? entry.isTaken
    entries.set(position, {
      when: when ?? null,
      value: show(entry.value ?? null),
      is_taken: isTaken,
      do: [...targets],
      published: isTaken ? show({ ...entry.published }) : {},
      reads: show(readsOf(entry.readings)),
      errors: show([...entry.errors]),
      has_changed: entry.isTaken !== isTaken,
    })
  }
  for (const [position, transition] of task.outgoing.entries())
    add(transition.id, transition.position, taken?.includes(position))
  for (const position of task.next.keys()) add(endOf(position), position, undefined)
  return [...entries].sort(([a], [b]) => a - b).map(([, entry]) => entry)
}

const asItIs = <Value>(value: Value): Value => value

function readsOf(readings: Readings): WorkflowTransition['reads'] {
  return readings.map(({ name, args, value }) => ({ name, args: [...args], value: value ?? null }))
}

type LoggedError = Extract<LogEntry, { readonly kind: 'error' }>

/** Finds each error again by evaluating the part of the workflow that it comes from. */
function explainFailures(options: ExplainOptions, rows: readonly ErrorRow[]): WorkflowFailure[] {
  const { state, review, input, show = asItIs } = options
  const reviewed = new Map<string, readonly LogEntry[]>()
  const logOf = (key: string, part: Part): readonly LogEntry[] => {
    const log = reviewed.get(key) ?? review(part)
    reviewed.set(key, log)
    return log
  }
  const find = (log: readonly LogEntry[], message: string): LoggedError | undefined =>
    log.find((entry): entry is LoggedError => entry.kind === 'error' && entry.message === message)
  return rows.map(({ instance: id, entry }) => {
    const { message } = entry
    const instance = id === null ? undefined : state.instances.get(id)
    const found =
      instance === undefined
        ? (find(logOf('begin', { kind: 'begin', input }), message) ??
          find(logOf('output', { kind: 'output' }), message))
        : instance.taken === null
          ? find(logOf(`start ${instance.id}`, { kind: 'start', instance }), message)
          : find(logOf(`end ${instance.id}`, { kind: 'transitions', instance }), message)
    return {
      message: show(message),
      task: entry.task_id ?? null,
      route: entry.route ?? instance?.route ?? null,
      ...describeError(found, show),
    }
  })
}

/** What an expression was and saw when it failed. */
export function describeError(
  error: Pick<LoggedError, 'expression' | 'variables' | 'readings'> | undefined,
  show: NonNullable<ExplainOptions['show']> = asItIs,
): Pick<WorkflowFailure, 'expression' | 'variables' | 'reads'> {
  if (error === undefined) return { expression: null, variables: null, reads: [] }
  return {
    expression: error.expression,
    variables: show({ ...error.variables }),
    reads: show(readsOf(error.readings)),
  }
}

interface Waits {
  readonly list: WorkflowWait[]
  leftOut: number
}

/** What a workflow that has not ended waits for, tasks in the order of their names. */
export function waitsOf(
  { definition, state, actionOf }: Pick<ExplainOptions, 'definition' | 'state' | 'actionOf'>,
  isWanted: (task: number) => boolean = () => true,
  limit = DEFAULT_LIMIT,
): Waits {
  const waits: Waits = { list: [], leftOut: 0 }
  const { workflow } = state
  const draft = new Draft(state)
  const add = (kind: WorkflowWait['kind'], instance?: InstanceRow, item?: number): void => {
    if (waits.list.length >= limit) {
      waits.leftOut += 1
      return
    }
    const isRunning = kind === 'action' || kind === 'answer' || kind === 'child'
    const facts = isRunning && instance !== undefined ? actionOf?.(instance.id, item) : undefined
    waits.list.push({
      kind: kind === 'action' && (facts?.delayedUntil ?? null) !== null ? 'delay' : kind,
      task: instance === undefined ? null : taskOf(definition, instance).name,
      route: instance?.route ?? null,
      item: item ?? null,
      execution: facts?.execution ?? null,
      until: facts?.delayedUntil ?? null,
      join: kind === 'arrivals' && instance !== undefined ? joinOf(definition, draft, instance) : null,
    })
  }
  if (isCompleted(workflow.status) && workflow.active === 0) return waits
  if (workflow.request === 'pause') add('resume')
  const open = [...state.instances.values()].filter(
    ({ task, status }) => !isCompleted(status) && isWanted(task) && definition.tasks[task]?.kind === 'task',
  )
  open.sort((a, b) => compareText(nameOf(definition, a), nameOf(definition, b)) || a.route - b.route || a.id - b.id)
  for (const instance of open) {
    if (instance.items !== null && instance.status !== 'staged' && instance.status !== 'retrying')
      for (const { kind, item } of itemWaits(draft, instance)) add(kind, instance, item)
    else if (isActive(instance.status)) add('action', instance)
    else if (isHeld(instance.status)) add(instance.status === 'pending' ? 'answer' : 'child', instance)
    else if (isCompleted(workflow.status)) continue
    else if (instance.status === 'retrying') add('retry', instance)
    else add(instance.isReady ? 'start' : 'arrivals', instance)
  }
  return waits
}

/** Of a task with items: each item that runs or is held, then the rest. */
function* itemWaits(
  draft: Draft,
  instance: InstanceRow,
): Generator<{ kind: WorkflowWait['kind']; item?: number }, void> {
  const { items } = instance
  if (items === null) return
  let left = items.active + items.held
  for (let item = 0; item < items.count && left > 0; item++) {
    const status = draft.item(instance.id, item)?.status
    if (status !== 'running' && status !== 'pending' && status !== 'paused') continue
    left -= 1
    yield { kind: status === 'running' ? 'action' : status === 'pending' ? 'answer' : 'child', item }
  }
  if (items.next < items.count) yield { kind: 'items', item: items.next }
}

function taskOf({ tasks }: Definition, { task }: Pick<InstanceRow, 'task'>): Task {
  const found = tasks[task]
  if (found === undefined) throw new Error(`the definition has no task ${task}`)
  return found
}

const nameOf = (definition: Definition, instance: InstanceRow): string => taskOf(definition, instance).name

/** kind → what it is called, one and many. */
const nouns: Readonly<Record<WorkflowWait['kind'], readonly [one: string, many: string]>> = {
  action: ['action', 'actions'],
  answer: ['answer to an inquiry', 'answers to inquiries'],
  arrivals: ['join that lacks arrivals', 'joins that lack arrivals'],
  child: ['paused child workflow', 'paused child workflows'],
  delay: ['delay', 'delays'],
  items: ['task with further items', 'tasks with further items'],
  resume: ['resume request', 'resume requests'],
  retry: ['next attempt', 'next attempts'],
  start: ['task that is ready', 'tasks that are ready'],
}

function summaryOf({ workflow }: State, { list, leftOut }: Waits): string {
  const over = isCompleted(workflow.status) ? `The workflow is over: ${workflow.status}.` : ''
  const counts = Map.groupBy(list, ({ kind }) => kind)
  const parts = Array.from(counts, ([kind, waits]) => `${waits.length} ${nouns[kind][waits.length === 1 ? 0 : 1]}`)
  if (leftOut > 0) parts.push(`${leftOut} more`)
  const waiting =
    parts.length === 0 ? '' : `${over === '' ? 'The workflow' : 'It still'} waits for ${parts.join(', ')}.`
  if (over === '' && waiting === '') return `The workflow is ${workflow.status}.`
  return [over, waiting].filter((text) => text !== '').join(' ')
}
