/** The transitions of a task that has ended: which are taken, what they publish, and where they lead. */
import { entriesOf, keysOf, objectOf } from '../../../lib/json/index.ts'
import type { NextEntry, Task, Transition } from '../definition/model.ts'
import type { Reading } from '../expressions/index.ts'
import { arrive, stage } from './joins.ts'
import { routeOf } from './routes.ts'
import { addLimitedContext } from './sizes.ts'
import type { InstanceRow } from './state.ts'
import { isTruthy } from './truth.ts'
import {
  assign,
  ConductError,
  evaluateIn,
  messageOf,
  noteError,
  sightOf,
  taskOf,
  tellWorkflow,
  type Turn,
} from './turn.ts'

/** Evaluates all transitions and lets those arrive that are taken. @returns instances of engine commands, to be ended */
export function follow(turn: Turn, task: Task, instance: InstanceRow): InstanceRow[] {
  const { draft } = turn
  const taken: number[] = []
  const staged: InstanceRow[] = []
  const commands: InstanceRow[] = []
  for (const { position, transition, result } of evaluateTransitions(turn, task, instance)) {
    try {
      if (result.isTaken) taken.push(position)
      if (result.errors.length > 0) throw result.errors[0]
      if (!result.isTaken) continue
      const arrival = { from: instance.id, transition: position, context: result.context }
      const route = routeOf(draft, turn.definition, transition, instance.route)
      const target = taskOf(turn, { task: transition.to })
      if (target.kind === 'undefined')
        throw new ConductError('InvalidTask', `The task "${target.name}" is not defined.`)
      if (target.kind === 'task') {
        const next = arrive(turn, transition, route, arrival)
        if (next !== undefined) staged.push(next)
      } else {
        const command = stage(turn, target, route, false)
        commands.push(draft.changeInstance(command.id, { previous: [arrival], context: result.context }))
      }
    } catch (error) {
      const messages = result.errors.length > 0 ? result.errors.map(messageOf) : [messageOf(error)]
      for (const message of messages)
        noteError(turn, instance.id, {
          message,
          task_id: task.name,
          route: instance.route,
          task_transition_id: transition.id,
        })
      tellWorkflow(turn, 'task failed')
    }
  }
  draft.changeInstance(instance.id, { taken })
  if (commands.some((command) => taskOf(turn, command).kind === 'fail'))
    for (const { id, isReady } of staged) if (isReady) draft.changeInstance(id, { isCleanup: true })
  return commands
}

/** Each transition with what its entry gives, which is logged. Nothing arrives. */
export function* evaluateTransitions(
  turn: Turn,
  task: Task,
  instance: InstanceRow,
): Generator<{ position: number; transition: Transition; result: EntryResult }, void> {
  const entries = new Map<number, EntryResult>()
  for (const [position, transition] of task.outgoing.entries()) {
    const result = entries.get(transition.position) ?? evaluateEntry(turn, task, instance, transition)
    entries.set(transition.position, result)
    logTransition(turn, instance, transition, result)
    yield { position, transition, result }
  }
}

interface EntryResult {
  readonly isTaken: boolean
  readonly value: unknown
  readonly readings: Reading[]
  readonly published: Readonly<Record<string, unknown>>
  /** Context of the targets. */
  readonly context: number
  /** Why its condition or its variables cannot be evaluated. */
  readonly errors: readonly unknown[]
}

/** The condition and the variables of an entry of `next`: evaluated once for all its targets. */
function evaluateEntry(turn: Turn, task: Task, instance: InstanceRow, { position }: Transition): EntryResult {
  const entry: NextEntry | undefined = task.next[position]
  const context = instance.context ?? 0
  const readings: Reading[] = []
  const sight = { ...sightOf(turn, instance), hasResult: true }
  const notTaken: EntryResult = { isTaken: false, value: undefined, readings, published: {}, context, errors: [] }
  if (entry === undefined) return notTaken
  let value: unknown
  try {
    if (entry.when !== undefined) {
      value = evaluateIn(turn, entry.when, sight, turn.explains ? readings : undefined)
      if (!isTruthy(value)) return { ...notTaken, value }
    }
  } catch (error) {
    return { ...notTaken, errors: [error] }
  }
  const errors: unknown[] = []
  const published = assign(turn, entry.publish, sight, (error) => errors.push(error))
  if (errors.length > 0) return { ...notTaken, isTaken: true, value, errors }
  const values = objectOf(entriesOf(published).filter(([name]) => !name.startsWith('__')))
  const taken: EntryResult = { ...notTaken, isTaken: true, value, published: values }
  try {
    return keysOf(values).length === 0 ? taken : { ...taken, context: addLimitedContext(turn, [context], values) }
  } catch (error) {
    return { ...taken, published: {}, errors: [error] }
  }
}

function logTransition(turn: Turn, instance: InstanceRow, transition: Transition, result: EntryResult): void {
  turn.log.push({
    kind: 'transition',
    instance: instance.id,
    transition: transition.id,
    isTaken: result.isTaken,
    value: result.value,
    published: result.published,
    readings: result.readings,
    errors: result.errors.map(messageOf),
  })
}
