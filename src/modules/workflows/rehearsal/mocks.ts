/** Reads what a rehearsal uses in place of actions, and what it is expected to give. */
import { entriesOf, keysOf } from '../../../lib/json/index.ts'
import { isObject, represent } from '../../../lib/schema/index.ts'
import { closestWords, describeProblem, problemAt, readStrictYamlDocument, shown } from '../../../lib/text/index.ts'
import type { Definition } from '../definition/model.ts'
import { endStatuses, type EndStatus } from '../conductor/index.ts'

/** How an action ends, the nth time that it runs. */
export interface MockOutcome {
  readonly status: EndStatus
  readonly result: unknown
  /** Seconds; undefined: none, and for one that times out the time limit of its task. */
  readonly takes: number | undefined
  /** Whether it waits for a person before it ends. */
  readonly isPending: boolean
  /** Whether it ends at all: an inquiry may stay without an answer. */
  readonly hasEnd: boolean
  /** Why it cannot be started, `<class>: <text>`; undefined: it can. */
  readonly refused: string | undefined
}

/** Outcomes in the order of the runs; the last one counts for all further runs. */
export interface TaskMock {
  readonly outcomes: readonly MockOutcome[]
  /** Position → outcomes of that item, in place of `outcomes`. */
  readonly items: ReadonlyMap<number, readonly MockOutcome[]>
}

export interface ExpectedTask {
  readonly task: string
  readonly route?: number
  readonly status?: string
  /** Runs of its actions. */
  readonly runs?: number
  /** Of its first run. */
  readonly action?: string
  readonly input?: unknown
  readonly published?: unknown
}

export interface Expectations {
  readonly status: string
  /** undefined: anything */
  readonly output: unknown
  /** In the order of their starts; undefined: any. */
  readonly tasks: readonly ExpectedTask[] | undefined
  /** Texts that the messages must contain, or parts of the entries; undefined: any. */
  readonly errors: readonly (string | Readonly<Record<string, unknown>>)[] | undefined
}

export interface Mocks {
  readonly input: Readonly<Record<string, unknown>>
  /** Variables `svc` and `parent`, as far as they differ from the usual ones; `config`: the pack's, for chains. */
  readonly context: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Key, as `svckv` names it → value. */
  readonly datastore: Readonly<Record<string, unknown>>
  readonly tasks: ReadonlyMap<string, TaskMock>
  readonly expect: Expectations
}

export const emptyOutcome: MockOutcome = {
  status: 'succeeded',
  result: {},
  takes: undefined,
  isPending: false,
  hasEnd: true,
  refused: undefined,
}

const usualExpectations: Expectations = { status: 'succeeded', output: undefined, tasks: undefined, errors: undefined }

export const noMocks: Mocks = { input: {}, context: {}, datastore: {}, tasks: new Map(), expect: usualExpectations }

class MockProblem extends Error {
  readonly path: readonly string[]

  constructor(path: readonly string[], message: string) {
    super(message)
    this.path = path
  }
}

/**
 * Reads a file of mocks for a definition.
 *
 * @param name of the file, for messages
 * @param inputs names of the workflow's input; undefined: any
 * @returns the mocks, or what is wrong with them and where
 */
export function readMocks(
  text: string,
  name: string,
  inputs: readonly string[] | undefined,
  definition: Definition,
): Mocks | { problem: string } {
  const document = readStrictYamlDocument(text)
  if ('problem' in document) return { problem: describeProblem({ file: name, ...document.problem }) }
  try {
    return readAll(document.value, inputs, definition)
  } catch (error) {
    if (!(error instanceof MockProblem)) throw error
    return { problem: describeProblem(problemAt(name, error.path, document.lineOf, error.message)) }
  }
}

function readAll(value: unknown, inputs: readonly string[] | undefined, definition: Definition): Mocks {
  const document = mapping(value, [], ['input', 'context', 'datastore', 'tasks', 'expect'])
  const context = mapping(document['context'] ?? {}, ['context'], ['svc', 'parent', 'config'])
  return {
    input: readInput(document['input'], inputs),
    context: Object.fromEntries(
      entriesOf(context).map(([name, variables]) => [name, mapping(variables, ['context', name])]),
    ),
    datastore: mapping(document['datastore'] ?? {}, ['datastore']),
    tasks: readTasks(document['tasks'], definition),
    expect: readExpectations(document['expect'], definition),
  }
}

/** Values for the workflow's input. @throws MockProblem for a name that the workflow does not declare */
function readInput(value: unknown, known: readonly string[] | undefined): Readonly<Record<string, unknown>> {
  const input = mapping(value ?? {}, ['input'])
  for (const name of keysOf(input)) {
    const problem = unknownInput(name, known)
    if (problem !== undefined) throw new MockProblem(['input', name], problem)
  }
  return input
}

/** Why a workflow has no input of that name; undefined: it has. */
export function unknownInput(name: string, known: readonly string[] | undefined): string | undefined {
  return known === undefined || known.includes(name)
    ? undefined
    : `the workflow has no input "${shown(name)}"${hint(name, known)}`
}

function readTasks(value: unknown, definition: Definition): Mocks['tasks'] {
  const tasks = new Map<string, TaskMock>()
  for (const [name, mock] of entriesOf(mapping(value ?? {}, ['tasks']))) {
    const path = ['tasks', name]
    const task = taskNamed(name, definition, path)
    if (task.action === undefined)
      throw new MockProblem(path, 'the task has no action: it succeeds by itself. Remove its mock')
    tasks.set(name, readTask(mock, path, task.items !== undefined))
  }
  return tasks
}

function taskNamed(name: string, { tasks, taskIndexes }: Definition, path: readonly string[]) {
  const task = tasks[taskIndexes.get(name) ?? -1]
  if (task?.kind === 'task') return task
  const names = tasks.filter(({ kind }) => kind === 'task').map((known) => known.name)
  throw new MockProblem(path, `the workflow has no task "${shown(name)}"${hint(name, names)}`)
}

function readTask(value: unknown, path: readonly string[], hasItems: boolean): TaskMock {
  if (!isObject(value) || !Object.hasOwn(value, 'items')) {
    return { outcomes: readOutcomes(value, path), items: new Map() }
  }
  const { items, ...rest } = value
  const itemsPath = [...path, 'items']
  if (!hasItems) throw new MockProblem(itemsPath, 'the task has no items: it has no "with"')
  const positions: [position: string, mock: unknown][] = Array.isArray(items)
    ? items.map((mock: unknown, index) => [String(index), mock])
    : entriesOf(mapping(items, itemsPath))
  return {
    outcomes: keysOf(rest).length === 0 ? [] : readOutcomes(rest, path),
    items: new Map(
      positions.map(([position, mock]) => {
        const itemPath = [...itemsPath, position]
        if (!/^\d{1,6}$/.test(position))
          throw new MockProblem(itemPath, 'it must be the position of an item, a whole number from 0')
        return [Number(position), readOutcomes(mock, itemPath)]
      }),
    ),
  }
}

function readOutcomes(value: unknown, path: readonly string[]): MockOutcome[] {
  if (!Array.isArray(value)) return [readOutcome(value, path)]
  if (value.length === 0) throw new MockProblem(path, 'the list of outcomes is empty')
  return value.map((outcome: unknown, index) => readOutcome(outcome, [...path, String(index)]))
}

function readOutcome(value: unknown, path: readonly string[]): MockOutcome {
  if (value === null) return emptyOutcome
  if (typeof value === 'string') return { ...emptyOutcome, status: oneOf(value, endStatuses, path) }
  const outcome = mapping(value, path, ['status', 'result', 'takes', 'pending', 'answer', 'refused'])
  const { takes, pending, answer, refused } = outcome
  if (takes !== undefined && (typeof takes !== 'number' || !(takes >= 0) || takes > MAX_SECONDS))
    throw new MockProblem([...path, 'takes'], `it must be a number of seconds from 0 to ${MAX_SECONDS}`)
  if (pending !== undefined && typeof pending !== 'boolean')
    throw new MockProblem([...path, 'pending'], 'it must be true or false')
  if (refused !== undefined && typeof refused !== 'string')
    throw new MockProblem([...path, 'refused'], 'it must be the text of an error')
  const ends = ['status', 'result', 'answer'].filter((key) => Object.hasOwn(outcome, key))
  if (refused !== undefined && (ends.length > 0 || pending === true))
    throw new MockProblem([...path, 'refused'], 'an action that is refused does not run. Remove the other keys')
  if (ends.includes('answer') && ends.length > 1)
    throw new MockProblem([...path, 'answer'], 'give the answer, or a status and a result, not both')
  if (ends.includes('answer') && pending === false)
    throw new MockProblem([...path, 'pending'], 'an action that waits for an answer is pending')
  const hasAnswer = ends.includes('answer')
  return {
    status: outcome['status'] === undefined ? 'succeeded' : oneOf(outcome['status'], endStatuses, [...path, 'status']),
    result: hasAnswer ? { response: answer } : (outcome['result'] ?? {}),
    takes,
    isPending: pending === true || hasAnswer,
    hasEnd: pending !== true || ends.length > 0,
    refused,
  }
}

/** Some thirty years. */
const MAX_SECONDS = 1_000_000_000

const workflowStatuses = ['succeeded', 'failed', 'timeout', 'canceled', 'paused', 'running'] as const
const taskStatuses = ['succeeded', 'failed', 'canceled', 'pending', 'paused', 'running'] as const

function readExpectations(value: unknown, definition: Definition): Expectations {
  const path = ['expect']
  const expect = mapping(value ?? {}, path, ['status', 'output', 'tasks', 'errors'])
  const { tasks, errors } = expect
  return {
    status: oneOf(expect['status'] ?? usualExpectations.status, workflowStatuses, [...path, 'status']),
    output: expect['output'],
    tasks:
      tasks === undefined
        ? undefined
        : list(tasks, [...path, 'tasks']).map((task, index) =>
            readExpectedTask(task, [...path, 'tasks', String(index)], definition),
          ),
    errors:
      errors === undefined
        ? undefined
        : list(errors, [...path, 'errors']).map((error, index) =>
            typeof error === 'string' ? error : mapping(error, [...path, 'errors', String(index)]),
          ),
  }
}

const expectedTaskKeys = ['task', 'route', 'status', 'runs', 'action', 'input', 'published'] as const

function readExpectedTask(value: unknown, path: readonly string[], definition: Definition): ExpectedTask {
  const expected = typeof value === 'string' ? { task: value } : mapping(value, path, expectedTaskKeys)
  const { task, status } = expected
  if (typeof task !== 'string') throw new MockProblem([...path, 'task'], 'the name of the task is needed')
  taskNamed(task, definition, path)
  if (status !== undefined) oneOf(status, taskStatuses, [...path, 'status'])
  return { ...expected, task }
}

function mapping(value: unknown, path: readonly string[], known?: readonly string[]): Record<string, unknown> {
  if (!isObject(value)) throw new MockProblem(path, `it is ${represent(value)}, and a mapping is needed`)
  const unknown = known === undefined ? undefined : keysOf(value).find((key) => !known.includes(key))
  if (unknown === undefined) return value
  throw new MockProblem(
    [...path, unknown],
    `the key "${shown(unknown)}" is unknown${hint(unknown, known ?? []) || '.'} Known keys: ${known?.join(', ')}`,
  )
}

function list(value: unknown, path: readonly string[]): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new MockProblem(path, `it is ${represent(value)}, and a list is needed`)
}

function oneOf<Word extends string>(value: unknown, words: readonly Word[], path: readonly string[]): Word {
  const found = words.find((word) => word === value)
  if (found !== undefined) return found
  throw new MockProblem(path, `it is ${represent(value)}, and one of these is needed: ${words.join(', ')}`)
}

/** `; did you mean "build"?`, or nothing. */
function hint(word: string, known: readonly string[]): string {
  const [closest] = closestWords(word, known, Math.max(1, Math.floor(word.length / 3)))
  return closest === undefined ? '' : `; did you mean "${shown(closest)}"?`
}
