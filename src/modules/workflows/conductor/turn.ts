/** One event on its way through the conductor: what its parts share. */
import { objectOf, setOwn, writeJson } from '../../../lib/json/index.ts'
import type { Definition, Task } from '../definition/model.ts'
import { ExpressionError, type CurrentTask, type Reading, type Scope } from '../expressions/index.ts'
import { variablesOf, type ContextCache, type Variables } from './contexts.ts'
import type { Draft } from './draft.ts'
import { FIRST_ROUTE, visibleInstance } from './routes.ts'
import { resultOf, shownResultOf } from './results.ts'
import { errorKey, type ErrorEntry, type InstanceRow } from './state.ts'
import { isCompleted, isHeld, nextWorkflowStatus, type Remainder, type WorkflowEvent } from './status.ts'
import type { Command, Evaluate, Limits, LogEntry, Outside } from './types.ts'

export interface Turn {
  readonly definition: Definition
  readonly draft: Draft
  readonly evaluate: Evaluate
  readonly outside: Outside
  readonly contexts: ContextCache
  /** Lists of items, by instance and retry: read once, then used for each item. */
  readonly lists: ItemLists
  readonly limits: Limits
  /** Whether the log also gets what expressions read, and the variables that they saw. */
  readonly explains: boolean
  readonly commands: Command[]
  readonly log: LogEntry[]
  /** The result that the event brought. */
  readonly news: { instance: number; item: number | undefined; result: unknown } | undefined
  /** Actions, and instances without one, that this call may still start. */
  starts: number
}

export interface ItemLists {
  get(key: string): readonly unknown[] | undefined
  set(key: string, items: readonly unknown[]): void
  delete(key: string): void
}

/** A mistake of the workflow that is not one of an expression. */
export class ConductError extends Error {
  readonly className: string

  constructor(className: string, message: string) {
    super(message)
    this.className = className
  }
}

/** `<class>: <text>`. Everything but a mistake of the workflow is thrown on. */
export function messageOf(error: unknown): string {
  if (error instanceof ExpressionError) return error.text
  if (error instanceof ConductError) return `${error.className}: ${error.message}`
  throw error
}

export function taskOf({ definition }: Pick<Turn, 'definition'>, { task }: { readonly task: number }): Task {
  const found = definition.tasks[task]
  if (found === undefined) throw new Error(`the definition has no task ${task}`)
  return found
}

/** What is left to do in the workflow. */
function remainderOf({ workflow: { active, held, ready } }: Draft): Remainder {
  return active > 0 ? 'active' : held > 0 ? 'held' : ready > 0 ? 'open' : 'done'
}

/** Tells the workflow an event. @returns whether its status admits it */
export function tellWorkflow({ draft }: Pick<Turn, 'draft'>, event: WorkflowEvent): boolean {
  const status = nextWorkflowStatus(draft.workflow.status, event, remainderOf(draft))
  if (status === undefined) return false
  if (status !== draft.workflow.status) draft.setWorkflow({ status })
  return true
}

/**
 * After a resume: a workflow that only answers of people can move is paused again, so that it does not look busy until
 * then.
 */
export function restUntilAnswered(draft: Draft): void {
  if (draft.workflow.status !== 'resuming' || remainderOf(draft) !== 'held') return
  for (const instance of draft.instances()) if (isHeld(instance.status) && !waitsForPeople(draft, instance)) return
  draft.setWorkflow({ status: 'paused' })
}

function waitsForPeople(draft: Draft, { id, status, items }: InstanceRow): boolean {
  if (items === null) return status === 'pending'
  for (let item = 0; item < items.next; item++) if (draft.item(id, item)?.status === 'paused') return false
  return true
}

export const isOver = ({ draft }: Pick<Turn, 'draft'>): boolean => isCompleted(draft.workflow.status)

/** Notes an error once, however often it happens. Results in errors count as published, up to a limit of their own. */
export function noteError(
  { draft, limits }: Pick<Turn, 'draft' | 'limits'>,
  instance: number | null,
  entry: Omit<ErrorEntry, 'type'>,
): void {
  const size = entry.result === undefined ? 0 : writeJson(entry.result).length
  const published = draft.workflow.published + size
  const isKept = size === 0 || published <= limits.maxResultSize
  const complete: ErrorEntry = { type: 'error', ...entry, ...(isKept ? {} : { result: NOT_KEPT }) }
  const key = errorKey(complete)
  if (draft.hasError(key)) return
  draft.setError({ id: draft.take('errors'), instance, key, entry: complete })
  if (isKept && size > 0) draft.setWorkflow({ published })
}

const NOT_KEPT = 'The errors of this workflow have no room for the result. Read it in the execution of the task.'

export interface Sight {
  /** Variables of the workflow that the expression sees. */
  readonly variables: Variables
  readonly environment?: Variables
  /** The task that the expression belongs to. */
  readonly instance?: InstanceRow
  /** Whether the task has ended, so that its result can be read. */
  readonly hasResult?: boolean
  readonly item?: unknown
}

/** Evaluates a value. Of a failure, the log keeps what the expression saw. */
export function evaluateIn(turn: Turn, value: unknown, sight: Sight, readings?: Reading[]): unknown {
  const read = readings ?? (turn.explains ? [] : undefined)
  try {
    return turn.evaluate(value, scopeOf(turn, sight), read)
  } catch (error) {
    if (turn.explains)
      turn.log.push({
        kind: 'error',
        instance: sight.instance?.id,
        message: messageOf(error),
        expression: value,
        variables: sight.variables,
        readings: read ?? [],
      })
    throw error
  }
}

export function sightOf({ draft, contexts }: Turn, instance: InstanceRow): Sight & { variables: Variables } {
  return { variables: variablesOf(draft, contexts, instance.context ?? 0), instance }
}

function scopeOf(turn: Turn, sight: Sight): Scope {
  const environment = sight.environment ?? turn.outside.environment
  const { variables, instance } = sight
  const route = instance?.route ?? FIRST_ROUTE
  const find = (name: string, wanted: number | undefined): InstanceRow | undefined => {
    const index = turn.definition.taskIndexes.get(name)
    if (index === undefined) return undefined
    return wanted === undefined ? visibleInstance(turn.draft, index, route) : turn.draft.latest(index, wanted)
  }
  return {
    variable: (name) =>
      Object.hasOwn(variables, name)
        ? variables[name]
        : Object.hasOwn(environment, name)
          ? environment[name]
          : undefined,
    variables: () => ({ ...environment, ...variables }),
    task: instance === undefined ? undefined : currentTask(turn, instance, sight.hasResult === true),
    item: sight.item,
    taskStatus: (name, wanted) => find(name, wanted)?.status,
    taskRecord(name, wanted) {
      const found = find(name, wanted)
      if (found === undefined) return undefined
      const { outside } = turn
      return {
        ...outside.recordOf(found),
        name,
        route: found.route,
        status: found.status,
        result: shownResultOf(turn, found),
      }
    },
    readKey: (key, decrypt) => turn.outside.readKey(key, decrypt),
  }
}

function currentTask(turn: Turn, instance: InstanceRow, hasResult: boolean): CurrentTask {
  return {
    name: taskOf(turn, instance).name,
    route: instance.route,
    status: instance.status,
    result: () => (hasResult ? resultOf(turn, instance) : null),
  }
}

/**
 * A time limit.
 *
 * @param what names it in messages
 * @returns undefined: none, as 0 and null
 * @throws ConductError when it is no whole number of seconds
 */
export function secondsOf(turn: Turn, form: unknown, sight: Sight, what: string): number | undefined {
  if (form === undefined) return undefined
  const value = evaluateIn(turn, form, sight)
  if (value === null || value === 0) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value
  throw new ConductError('TypeError', `The value of ${what} is not a whole number of seconds.`)
}

/** `assignments` one after the other; each sees those before it. A private name can be read by none. */
export function assign(
  turn: Turn,
  assignments: readonly { readonly name: string; readonly value: unknown }[],
  sight: Sight,
  onError: (error: unknown) => void,
): Record<string, unknown> {
  const assigned: Record<string, unknown> = {}
  let { variables } = sight
  for (const { name, value } of assignments) {
    try {
      const result = evaluateIn(turn, value, { ...sight, variables })
      setOwn(assigned, name, result)
      variables = { ...variables, ...objectOf([[name, result]]) }
    } catch (error) {
      onError(error)
    }
  }
  return assigned
}
