/** The end of a task: its retry, its transitions, and what the workflow becomes. */
import type { Task } from '../definition/model.ts'
import { forgetItems, forgetList } from './items.ts'
import { finish } from './output.ts'
import { wantsRetry } from './retry.ts'
import type { InstanceRow } from './state.ts'
import { isCompleted, type TaskStatus, type WorkflowEvent } from './status.ts'
import { follow } from './transitions.ts'
import { isOver, messageOf, noteError, taskOf, tellWorkflow, type Turn } from './turn.ts'

export const ACTION_FAILED = 'Execution failed. See result for details.'

/** An instance without an action, or with no items. */
export function endInPlace(turn: Turn, id: number): void {
  const { draft, limits } = turn
  const task = taskOf(turn, draft.instance(id))
  const contexts = draft.workflow.contexts
  changeStatus(turn, id, 'succeeded')
  const hasPublished = draft.workflow.contexts > contexts
  const idle = hasPublished ? 0 : draft.workflow.idle + Number(task.isInCycle)
  draft.setWorkflow({ idle })
  if (idle < limits.maxIdleTurns) return
  fail(turn, id, {
    message: `ProgressError: The tasks of a cycle have ended ${limits.maxIdleTurns} times in a row without running an action or publishing anything. Let the cycle publish what its condition reads, or run an action.`,
    task_id: task.name,
    route: draft.instance(id).route,
  })
  // A cycle can clean up without an end, too.
  for (const ready of draft.ready()) draft.changeInstance(ready.id, { isCleanup: false })
}

/** An action could not be started: the workflow fails, and nothing follows from the task. */
export function refuse(turn: Turn, id: number, message: string): void {
  const instance = turn.draft.changeInstance(id, { status: 'failed', isReady: false })
  const task = taskOf(turn, instance)
  fail(turn, id, { message, task_id: task.name, route: instance.route })
}

/** Fails the workflow for a reason of its own. */
export function fail(turn: Turn, instance: number | null, entry: Parameters<typeof noteError>[2]): void {
  noteError(turn, instance, entry)
  tellWorkflow(turn, 'task failed')
  if (isOver(turn)) finish(turn, true)
}

/** Gives an instance a status, and the workflow what follows from it. */
export function changeStatus(turn: Turn, id: number, status: TaskStatus): void {
  const { draft } = turn
  let instance = draft.changeInstance(id, { status })
  const task = taskOf(turn, instance)
  if (!isCompleted(status)) {
    const event = eventWhileRunning[status]
    if (event !== undefined) tellWorkflow(turn, event)
    if (!isOver(turn)) return
    draft.changeInstance(id, { isTerminal: true })
    finish(turn, true)
    return
  }
  forgetList(turn, instance)
  if (repeats(turn, task, instance)) return
  const commands = follow(turn, task, instance)
  const isDecided = isOver(turn)
  instance = draft.instance(id)
  tellWorkflow(turn, eventOf(turn, task, instance))
  for (const command of commands) endCommand(turn, command)
  if (task.outgoing.length === 0 || isOver(turn)) draft.changeInstance(id, { isTerminal: true })
  if (isOver(turn)) finish(turn, isDecided)
}

const eventWhileRunning: Readonly<Partial<Record<TaskStatus, WorkflowEvent>>> = {
  running: 'task started',
  pending: 'task pending',
  paused: 'task paused',
  canceling: 'task canceled',
}

function eventOf(turn: Turn, task: Task, instance: InstanceRow): WorkflowEvent {
  if (instance.status === 'canceled') return 'task canceled'
  const isHandled = (instance.taken ?? []).some((position) => {
    const transition = task.outgoing[position]
    return transition !== undefined && turn.definition.tasks[transition.to]?.kind !== 'continue'
  })
  return instance.status === 'failed' && !isHandled ? 'task failed' : 'task ended'
}

/** Lets the task wait for its next attempt, if its retry wants one. */
function repeats(turn: Turn, task: Task, instance: InstanceRow): boolean {
  const { draft } = turn
  if (isOver(turn)) return false
  try {
    if (!wantsRetry(turn, task, instance)) return false
  } catch (error) {
    noteError(turn, instance.id, { message: messageOf(error), task_id: task.name, route: instance.route })
    tellWorkflow(turn, 'task failed')
    return false
  }
  forgetItems(turn, instance)
  draft.changeInstance(instance.id, {
    status: 'retrying',
    isReady: true,
    retries: instance.retries + 1,
    items: null,
  })
  tellWorkflow(turn, 'task ended')
  return true
}

/** `continue`, `noop` and `fail` end as soon as the task before them has. */
function endCommand(turn: Turn, { id }: InstanceRow): void {
  const { draft } = turn
  const task = taskOf(turn, draft.instance(id))
  const isFailure = task.kind === 'fail'
  draft.changeInstance(id, {
    order: draft.take('starts'),
    status: isFailure ? 'failed' : 'succeeded',
    isTerminal: true,
  })
  draft.countCommand(isFailure ? 'failed' : 'succeeded')
  if (isFailure) noteError(turn, id, { message: ACTION_FAILED, task_id: task.name })
  tellWorkflow(turn, isFailure ? 'fail' : 'task ended')
}
