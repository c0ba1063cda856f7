/**
 * The conductor: what follows from an event. A pure function; it reads no clock, no database, no random numbers.
 */
import type { Definition } from '../definition/model.ts'
import { beginWorkflow } from './begin.ts'
import { ContextCache } from './contexts.ts'
import { Draft } from './draft.ts'
import { ACTION_FAILED, changeStatus, refuse } from './end.ts'
import { hasStartableItems, itemsStatus, nextItem, setItemStatus } from './items.ts'
import { finish } from './output.ts'
import { rerun } from './rerun.ts'
import { startReady } from './start.ts'
import type { InstanceRow, ItemStatus, State } from './state.ts'
import { endedTaskStatus, isActive, isCompleted, isHeld, type TaskStatus } from './status.ts'
import { isOver, noteError, restUntilAnswered, taskOf, tellWorkflow, type ItemLists, type Turn } from './turn.ts'
import { defaultLimits, type Evaluate, type Event, type Limits, type Outcome, type Outside } from './types.ts'

export interface World {
  readonly evaluate: Evaluate
  readonly outside: Outside
  /** What one call keeps for the next ones of the same run. Default: nothing. */
  readonly memory?: Memory
  readonly limits?: Limits
  /** Whether the log says what expressions have read. Default: no. */
  readonly explains?: boolean
}

/** What can be computed again from the state, and is kept because that takes time. */
export interface Memory {
  readonly contexts: ContextCache
  readonly lists: ItemLists
}

export function createMemory(): Memory {
  return { contexts: new ContextCache(), lists: new Map() }
}

/**
 * What an event changes, and what is to be done then. The state stays as it is: the caller stores the changes, puts them
 * into the state with `apply`, and then carries out the commands.
 *
 * @throws what `world.evaluate` throws besides errors of expressions: the call can be repeated
 */
export function conduct(definition: Definition, state: State, event: Event, world: World): Outcome {
  const draft = new Draft(state)
  const news = event.kind === 'ended' ? { instance: event.instance, item: event.item, result: event.result } : undefined
  const turn = openTurn(definition, draft, world, news)
  const refused = handle(turn, event)
  if (refused !== undefined)
    return { changes: undefined, commands: [], log: [], refused: refused === '' ? undefined : refused }
  const { status, output, errors } = draft.workflow
  const before = state.workflow
  if (status !== before.status) turn.commands.push({ kind: 'status', status })
  const hasChanged = status !== before.status || output !== before.output || errors !== before.errors
  // A re-run can be over at once, and as before.
  if (isCompleted(status) && (hasChanged || event.kind === 'rerun'))
    turn.commands.push({ kind: 'finish', status, output })
  return { changes: draft.changes, commands: turn.commands, log: turn.log, refused: undefined }
}

export function openTurn(definition: Definition, draft: Draft, world: World, news: Turn['news']): Turn {
  const { limits = defaultLimits } = world
  const { contexts, lists } = world.memory ?? createMemory()
  return {
    definition,
    draft,
    evaluate: world.evaluate,
    outside: world.outside,
    contexts,
    lists,
    limits,
    explains: world.explains ?? false,
    commands: [],
    log: [],
    news,
    starts: limits.maxStartsPerTurn,
  }
}

/** The event is late: nothing follows from it. */
const LATE = ''

/** @returns why nothing follows; undefined: something may */
function handle(turn: Turn, event: Event): string | undefined {
  const { draft } = turn
  switch (event.kind) {
    case 'started':
      if (draft.workflow.status !== 'requested') return LATE
      beginWorkflow(turn, event.input)
      break
    case 'pause':
    case 'resume':
    case 'cancel':
      if (isOver(turn)) return 'completed'
      if (!tellWorkflow(turn, event.kind)) return LATE
      draft.setWorkflow({ request: event.kind === 'resume' ? null : event.kind })
      turn.commands.push({ kind: 'cascade', request: event.kind })
      if (isOver(turn) && event.kind === 'resume') finish(turn, true)
      break
    case 'rerun': {
      const refusal = rerun(turn, event.tasks, event.reset)
      if (refusal !== undefined) return refusal
      break
    }
    case 'continue':
      break
    default: {
      const instance = draft.findInstance(event.instance)
      if (instance === undefined || (event.attempt ?? instance.retries) !== instance.retries) return LATE
      if (!isActive(instance.status) && !isHeld(instance.status)) return LATE
      // A task that waited goes on, and with it a workflow that has paused because of such tasks.
      if (event.kind === 'ended' && isHeld(instance.status) && draft.workflow.request === null)
        tellWorkflow(turn, 'task started')
      if (event.kind === 'ended' && event.status === 'failed') noteFailure(turn, instance, event.result)
      if (event.kind === 'refused') refuse(turn, instance.id, event.message)
      else if (event.kind === 'answered') {
        if (tellWorkflow(turn, 'resume')) draft.setWorkflow({ request: null })
      } else if (!changeAction(turn, instance, event)) return LATE
      if (event.kind === 'child resumed') return undefined
    }
  }
  draft.setWorkflow({ idle: event.kind === 'continue' ? draft.workflow.idle : 0 })
  startReady(turn)
  if (event.kind === 'resume') restUntilAnswered(draft)
  return undefined
}

function noteFailure(turn: Turn, instance: InstanceRow, result: unknown): void {
  const task = taskOf(turn, instance)
  noteError(turn, instance.id, { message: ACTION_FAILED, task_id: task.name, result })
}

type ActionChange = Extract<Event, { readonly kind: 'ended' | 'pending' | 'child paused' | 'child resumed' }>

/** @returns false: the item has ended before */
function changeAction(turn: Turn, instance: InstanceRow, event: ActionChange): boolean {
  if (event.item === undefined) {
    changeStatus(turn, instance.id, taskStatusOf(event))
    return true
  }
  const { draft } = turn
  const counts = setItemStatus(turn, instance, event.item, itemStatusOf(event))
  if (counts === undefined) return false
  const items = { ...counts, next: nextItem(turn, instance, counts) }
  const status = itemsStatus(turn, items)
  draft.changeInstance(instance.id, { items, isReady: hasStartableItems(items, status) })
  changeStatus(turn, instance.id, status)
  return true
}

function taskStatusOf(event: ActionChange): TaskStatus {
  switch (event.kind) {
    case 'ended':
      return endedTaskStatus[event.status]
    case 'pending':
      return 'pending'
    case 'child paused':
      return 'paused'
    case 'child resumed':
      return 'running'
  }
}

function itemStatusOf(event: ActionChange): ItemStatus {
  const status = event.kind === 'ended' ? event.status : taskStatusOf(event)
  return status as ItemStatus
}
