/**
 * What a workflow definition is, once read and compiled: the only form of it that the conductor knows.
 *
 * `readDefinition` takes any document. What has the wrong form is left out: `inspect.ts` reports it before a run.
 */
import { entriesOf } from '../../../lib/json/index.ts'
import { compareText, findCycles, findReachable } from './graph.ts'
import { readInlineAction, readInlineParameters } from './inline.ts'

export interface Definition {
  readonly input: readonly InputVariable[]
  readonly vars: readonly Assignment[]
  /** undefined: the workflow has no output */
  readonly output: readonly Assignment[] | undefined
  /** The tasks in the order of the document, then the engine commands and undefined names that transitions lead to. */
  readonly tasks: readonly Task[]
  readonly taskIndexes: ReadonlyMap<string, number>
  /** Indexes of the tasks without inbound transitions, sorted by name. */
  readonly starts: readonly number[]
  /** Seconds that a run may take, or an expression; undefined: no limit. */
  readonly timeout: unknown
}

/** A name and the value that it gets; expressions in the value see the assignments before it. */
export interface Assignment {
  readonly name: string
  readonly value: unknown
}

export interface InputVariable extends Assignment {
  /** Whether `value` is a default. Without one it is null. */
  readonly hasDefault: boolean
}

/** What a transition may lead to that is no task. `retry` repeats the task that names it: see `Retry.isCommand`. */
export const engineCommands = ['continue', 'noop', 'fail', 'retry'] as const
export type EngineCommand = (typeof engineCommands)[number]

/** Who may be the target of a transition without being a task. Other names are mistakes of the definition. */
export type NodeKind = 'task' | 'undefined' | Exclude<EngineCommand, 'retry'>

export interface Task {
  readonly index: number
  readonly name: string
  readonly kind: NodeKind
  /** The reference, or an expression that gives it, without inline parameters; undefined: the task runs no action. */
  readonly action: string | undefined
  /** Parameters of the action, or an expression that gives them. Inline parameters take the place of `input`. */
  readonly input: unknown
  readonly items: Items | undefined
  /** Seconds, or an expression; undefined: none. */
  readonly delay: unknown
  /** Seconds that an action of the task may take, or an expression; undefined: no limit. */
  readonly timeout: unknown
  readonly retry: Retry | undefined
  readonly join: number | 'all' | undefined
  /** Inbound tasks that must arrive before the task starts. Only a task with `join` has it. It is at least 1. */
  readonly joinNeed: number | undefined
  /** `next` in the order of the document. */
  readonly next: readonly NextEntry[]
  /** Sorted by the target's name, then by the position in `next`. Retries are not among them. */
  readonly outgoing: readonly Transition[]
  /** Indexes of the tasks that lead here, each once, in the order of the document. Unreachable tasks do not count. */
  readonly inbound: readonly number[]
  /** Whether each arrival runs on a route of its own: the task has no `join`, and several transitions lead to it. */
  readonly isSplit: boolean
  readonly isInCycle: boolean
  /** A task in a cycle that no start task leads to never runs. */
  readonly isReachable: boolean
}

export interface Items {
  /** The text of the definition. */
  readonly source: string
  /** Names for the parts of an item: `a` and `b` of `a, b in …`. */
  readonly names: readonly string[]
  /** The expression that gives the list. */
  readonly list: string
  /** A number or an expression; undefined: all items at once. */
  readonly concurrency: unknown
}

export interface Retry {
  /** A number or an expression. */
  readonly count: unknown
  /** Seconds or an expression; undefined: none. */
  readonly delay: unknown
  /** undefined: the task failed, timed out or was abandoned */
  readonly when: unknown
  /** Whether `do: retry` asks for it. */
  readonly isCommand: boolean
}

export interface NextEntry {
  readonly when: unknown
  readonly publish: readonly Assignment[]
  /** Names of tasks and engine commands. */
  readonly targets: readonly string[]
}

export interface Transition {
  readonly from: number
  readonly to: number
  /** The entry of `next`. */
  readonly position: number
  /** Position among the transitions between the same two tasks. */
  readonly key: number
  /** `<target>__t<key>`, the name of the transition in the records of the task that it leaves. */
  readonly id: string
  /** `<source>__t<key>`, its name in the records of its target and in routes. */
  readonly origin: string
}

const MAX_RETRIES_BY_COMMAND = 3

/**
 * Reads a parsed YAML document. Never throws.
 */
export function readDefinition(document: unknown): Definition {
  const workflow = isObject(document) ? document : {}
  const tasks = compile(
    isObject(workflow['tasks']) ? entriesOf(workflow['tasks']).map(([name, task]) => readTask(name, task)) : [],
  )
  return {
    input: list(workflow['input']).flatMap((entry): InputVariable[] =>
      isObject(entry)
        ? readAssignments([entry]).map((variable) => ({ ...variable, hasDefault: true }))
        : isName(entry)
          ? [{ name: String(entry), value: null, hasDefault: false }]
          : [],
    ),
    vars: readAssignments(list(workflow['vars'])),
    output: Array.isArray(workflow['output']) ? readAssignments(workflow['output']) : undefined,
    tasks,
    taskIndexes: new Map(tasks.map(({ name, index }) => [name, index])),
    starts: findStarts(tasks),
    timeout: workflow['timeout'] ?? undefined,
  }
}

/** `{a: 1}` and also `{a: 1, b: 2}`, although only the first form is valid. */
function readAssignments(entries: readonly unknown[]): Assignment[] {
  return entries.flatMap((entry) => (isObject(entry) ? entriesOf(entry).map(([name, value]) => ({ name, value })) : []))
}

type TaskForm = Pick<
  Task,
  'name' | 'kind' | 'action' | 'input' | 'items' | 'delay' | 'timeout' | 'retry' | 'join' | 'next'
>

function readTask(name: string, document: unknown): TaskForm {
  const task = isObject(document) ? document : {}
  const text = typeof task['action'] === 'string' && task['action'] !== '' ? task['action'] : undefined
  const inline = text === undefined ? undefined : readInlineAction(text)
  const next = list(task['next']).map(readNextEntry)
  return {
    name,
    kind: 'task',
    action: inline?.action ?? text,
    input: inline?.input ?? task['input'] ?? undefined,
    items: readItems(task['with']),
    delay: task['delay'] ?? undefined,
    timeout: task['timeout'] ?? undefined,
    retry: readRetryCommand(next) ?? readRetry(task['retry']),
    join: readJoin(task['join']),
    next,
  }
}

function readNextEntry(document: unknown): NextEntry {
  const entry = isObject(document) ? document : {}
  const { publish } = entry
  return {
    when: entry['when'] ?? undefined,
    publish:
      typeof publish === 'string'
        ? readInlineParameters(publish).map(([name, value]) => ({ name, value }))
        : readAssignments(list(publish)),
    targets: readTargets(entry['do']),
  }
}

function readTargets(document: unknown): string[] {
  const names =
    typeof document === 'string' ? document.split(',') : Array.isArray(document) ? document.filter(isName) : []
  const targets = names.map((name) => String(name).trim()).filter((name) => name !== '')
  return targets.length === 0 ? ['continue'] : [...new Set(targets)]
}

/** Names of the parts of an item in front of the list: `x in …`, `a, b in …`. */
const itemNames = /^\s*((?:[\p{L}\p{N}_]+\s*,\s*)*[\p{L}\p{N}_]+)\s+in\s+(.*)$/su

function readItems(document: unknown): Items | undefined {
  const source = isObject(document) ? document['items'] : document
  if (typeof source !== 'string') return undefined
  const [, names, expression] = itemNames.exec(source) ?? []
  return {
    source,
    names: names?.split(',').map((name) => name.trim()) ?? [],
    list: (expression ?? source).trim(),
    concurrency: isObject(document) ? (document['concurrency'] ?? undefined) : undefined,
  }
}

function readRetry(document: unknown): Retry | undefined {
  if (!isObject(document)) return undefined
  return {
    count: document['count'],
    delay: document['delay'] ?? undefined,
    when: document['when'] ?? undefined,
    isCommand: false,
  }
}

/** Of several entries with `do: retry` the last one, by position, decides when. */
function readRetryCommand(next: readonly NextEntry[]): Retry | undefined {
  const entry = next.findLast(({ targets }) => targets.includes('retry'))
  if (entry === undefined) return undefined
  return { count: MAX_RETRIES_BY_COMMAND, delay: undefined, when: entry.when ?? true, isCommand: true }
}

function readJoin(value: unknown): Task['join'] {
  return value === 'all' || typeof value === 'number' ? value : undefined
}

/** Links the tasks. Engine commands and undefined names become nodes of their own behind the tasks. */
function compile(forms: readonly TaskForm[]): Task[] {
  const nodes = [...forms]
  const indexes = new Map(forms.map(({ name }, index) => [name, index]))
  const indexOf = (name: string): number => {
    const known = indexes.get(name)
    if (known !== undefined) return known
    indexes.set(name, nodes.length)
    return nodes.push(emptyNode(name)) - 1
  }
  const links = forms.map((form, from) => readTransitions(form, from, indexOf))
  const outgoing = nodes.map((_, index) => links[index] ?? [])
  const arrivals = nodes.map(() => 0)
  for (const { to } of outgoing.flat()) arrivals[to] = (arrivals[to] ?? 0) + 1

  const starts = forms.flatMap((_, index) => (arrivals[index] === 0 ? [index] : []))
  const isReachable = findReachable(starts, outgoing)
  const isInCycle = findCycles(outgoing)
  const inbound = nodes.map((): number[] => [])
  for (const transition of outgoing.flat()) {
    const sources = inbound[transition.to]
    if (isReachable[transition.from] === true && sources?.at(-1) !== transition.from) sources?.push(transition.from)
  }
  return nodes.map((form, index) => {
    const sources = inbound[index] ?? []
    return {
      ...form,
      index,
      outgoing: outgoing[index] ?? [],
      inbound: sources,
      joinNeed: form.join === undefined ? undefined : Math.max(1, form.join === 'all' ? sources.length : form.join),
      isSplit: form.join === undefined && (arrivals[index] ?? 0) > 1,
      isInCycle: isInCycle[index] === true,
      isReachable: isReachable[index] === true,
    }
  })
}

function emptyNode(name: string): TaskForm {
  const kind = name === 'continue' || name === 'noop' || name === 'fail' ? name : 'undefined'
  return {
    name,
    kind,
    action: undefined,
    input: undefined,
    items: undefined,
    delay: undefined,
    timeout: undefined,
    retry: undefined,
    join: undefined,
    next: [],
  }
}

function readTransitions(form: TaskForm, from: number, indexOf: (name: string) => number): Transition[] {
  const counts = new Map<string, number>()
  const transitions: { readonly target: string; readonly transition: Transition }[] = []
  for (const [position, { targets }] of form.next.entries())
    for (const target of targets) {
      if (target === 'retry') continue
      const key = counts.get(target) ?? 0
      counts.set(target, key + 1)
      const [id, origin] = [`${target}__t${key}`, `${form.name}__t${key}`]
      transitions.push({ target, transition: { from, to: indexOf(target), position, key, id, origin } })
    }
  return transitions
    .sort((a, b) => compareText(a.target, b.target) || a.transition.position - b.transition.position)
    .map(({ transition }) => transition)
}

function findStarts(tasks: readonly Task[]): number[] {
  const targets = new Set(tasks.flatMap(({ outgoing }) => outgoing.map(({ to }) => to)))
  return tasks
    .filter(({ kind, index }) => kind === 'task' && !targets.has(index))
    .sort((a, b) => compareText(a.name, b.name))
    .map(({ index }) => index)
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isName(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
