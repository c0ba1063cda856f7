/** Starts the tasks that are ready. */
import { isObject } from '../../../lib/schema/index.ts'
import type { Task } from '../definition/model.ts'
import { compareText } from '../definition/graph.ts'
import { endInPlace, fail, refuse } from './end.ts'
import {
  concurrencyOf,
  firstItems,
  forgetItems,
  hasStartableItems,
  itemOf,
  listOf,
  newCounts,
  nextItem,
  readList,
  startableItems,
} from './items.ts'
import { fire, forgetArrivals, joinedContext } from './joins.ts'
import { retryOf } from './retry.ts'
import type { InstanceRow, ItemCounts } from './state.ts'
import { isActive } from './status.ts'
import { ConductError, evaluateIn, messageOf, secondsOf, sightOf, taskOf, tellWorkflow, type Turn } from './turn.ts'
import type { StartCommand } from './types.ts'

/** Starts what is ready, then what follows from tasks that end in place, until nothing is left, or the call has done enough. */
export function startReady(turn: Turn): void {
  while (turn.draft.workflow.ready > 0) {
    const round = nextRound(turn)
    if (round.length === 0) return
    if (turn.starts <= 0) {
      turn.commands.push({ kind: 'continue' })
      return
    }
    startRound(turn, round.slice(0, turn.starts))
  }
}

/** Instances that may start now, sorted by name and route. After a failure only those that clean up. */
function nextRound(turn: Turn): InstanceRow[] {
  const { draft } = turn
  const { status } = draft.workflow
  const isFailed = status === 'failed'
  if (isFailed && draft.workflow.cleanups === 0) return []
  if (!isFailed && status !== 'running' && status !== 'resuming') return []
  const ready = draft.ready().filter(({ isCleanup }) => !isFailed || isCleanup)
  const name = (instance: InstanceRow): string => taskOf(turn, instance).name
  return ready.sort((a, b) => compareText(name(a), name(b)) || a.route - b.route || a.id - b.id)
}

/** All of a round start, or none: an error in the form of one fails the workflow before it asks for anything. */
function startRound(turn: Turn, round: readonly InstanceRow[]): void {
  const { draft } = turn
  const plans: Plan[] = []
  for (const instance of round) {
    const task = taskOf(turn, instance)
    try {
      const plan = planStart(turn, task, instance)
      turn.starts -= Math.max(1, plan.requests.length)
      plans.push(plan)
    } catch (error) {
      fail(turn, instance.id, { message: messageOf(error), task_id: task.name, route: instance.route })
    }
  }
  if (plans.length < round.length) {
    if (draft.workflow.status === 'failed') for (const { id } of round) draft.changeInstance(id, { isCleanup: false })
    return
  }
  for (const plan of plans)
    if (plan.running === undefined) begin(turn, plan)
    else beginAgain(turn, plan, plan.running)
  let isRefused = false
  for (const plan of plans)
    if (plan.running !== undefined) requestAgain(turn, plan, plan.running)
    else if (isRefused) draft.changeInstance(plan.instance.id, { status: 'canceled', isReady: false })
    else isRefused = !request(turn, plan)
}

interface Plan {
  readonly task: Task
  readonly instance: InstanceRow
  /** The instance of the same task that runs on the route: see `beginAgain`. */
  readonly running: InstanceRow | undefined
  readonly requests: readonly Request[]
}

interface Request {
  readonly command: StartCommand
  /** Why the command cannot be carried out. */
  readonly refusal: string | undefined
}

/** What starting the instance takes. */
export function planStart(turn: Turn, task: Task, waiting: InstanceRow): Plan {
  const { draft } = turn
  const context = waiting.context ?? joinedContext(turn, waiting)
  let instance: InstanceRow = { ...waiting, context }
  const isFirst = waiting.order === null
  const isAttempt = isFirst || waiting.status === 'retrying'
  const latest = isFirst ? draft.latest(task.index, instance.route) : undefined
  const running = latest !== undefined && isActive(latest.status) ? latest : undefined
  if (isFirst) instance = { ...instance, retry: retryOf(turn, task, instance) }
  if (running !== undefined && running.items !== null) {
    const delay = delayOf(turn, task, instance)
    const items = newCounts(running.items.count, running.items.concurrency)
    const indexes = firstItems(items, mostStarts(turn))
    const requests = indexes.map((item) => requestOf(turn, task, running, item, delay))
    return { task, instance: { ...instance, items }, running, requests }
  }
  if (task.items !== undefined && (isAttempt || instance.items === null)) {
    const list = readList(turn, task.items, instance)
    const counts = instance.items ?? newCounts(list.length, null)
    instance = { ...instance, items: { ...counts, concurrency: concurrencyOf(turn, task.items, instance) } }
  }
  const delay = !isAttempt ? 0 : instance.retries > 0 ? (instance.retry?.delay ?? 0) : delayOf(turn, task, instance)
  if (task.action === undefined) return { task, instance, running, requests: [] }
  const indexes =
    instance.items === null ? [undefined] : startableItems(turn, instance, instance.items, mostStarts(turn))
  const requests = indexes.map((item) => requestOf(turn, task, instance, item, delay))
  return { task, instance, running, requests }
}

const mostStarts = ({ starts }: Turn): number => Math.max(1, starts)

function delayOf(turn: Turn, task: Task, instance: InstanceRow): number {
  if (task.delay === undefined) return 0
  const value = evaluateIn(turn, task.delay, sightOf(turn, instance))
  if (typeof value === 'number' && Number.isInteger(value)) return value
  throw new ConductError('TypeError', 'The value of task delay is not type of integer.')
}

function requestOf(turn: Turn, task: Task, instance: InstanceRow, item: number | undefined, delay: number): Request {
  const sight =
    item === undefined || task.items === undefined
      ? sightOf(turn, instance)
      : { ...sightOf(turn, instance), item: itemOf(task.items, listOf(turn, task.items, instance)[item]) }
  const action = evaluateIn(turn, task.action, sight)
  if (typeof action !== 'string')
    throw new ConductError('TypeError', `The action of the task is not type of string: ${task.action}`)
  const input = evaluateIn(turn, task.input ?? null, sight)
  const isParameters = input === null || isObject(input)
  const timeout = secondsOf(turn, task.timeout, sight, 'task timeout')
  const command: StartCommand = {
    kind: 'start',
    instance: instance.id,
    task: task.name,
    route: instance.route,
    item,
    attempt: instance.retries,
    action,
    input: isParameters ? input : null,
    delay,
    timeout,
  }
  const refusal = isParameters
    ? turn.outside.whyRefused?.(command)
    : 'AttributeError: The input of the task is not an object with a value for each parameter.'
  return { command, refusal }
}

/**
 * A cycle has reached a task that still runs on the same route: its action, or its items, start again, and the first end of
 * each counts.
 */
function beginAgain(turn: Turn, { instance, requests }: Plan, running: InstanceRow): void {
  const { draft } = turn
  draft.removeStaged(instance)
  if (instance.items === null) return
  forgetItems(turn, running)
  const items = countStarts(turn, running, instance.items, requests)
  draft.changeInstance(running.id, { items, isReady: hasStartableItems(items, 'running') })
}

function requestAgain({ commands }: Turn, { requests }: Plan, running: InstanceRow): void {
  for (const { command } of requests) commands.push({ ...command, instance: running.id, attempt: running.retries })
}

/** The instance runs from now on. */
function begin(turn: Turn, { task, instance, requests }: Plan): void {
  const { draft } = turn
  const isFirst = instance.order === null
  if (isFirst) {
    forgetArrivals(draft, task, instance.route)
    fire(turn, instance)
  }
  const order = instance.order ?? draft.take('starts')
  const started: InstanceRow = { ...instance, order, status: 'running', isReady: false }
  const items = started.items === null ? null : countStarts(turn, started, started.items, requests)
  draft.setInstance({
    ...started,
    items,
    isReady: items !== null && hasStartableItems(items, 'running'),
  })
  tellWorkflow(turn, 'task started')
}

function countStarts(turn: Turn, instance: InstanceRow, counts: ItemCounts, requests: readonly Request[]): ItemCounts {
  for (const {
    command: { item },
  } of requests)
    if (item !== undefined)
      turn.draft.setItem({ instance: instance.id, index: item, status: 'running', source: instance.id })
  return { ...counts, active: counts.active + requests.length, next: nextItem(turn, instance, counts) }
}

/** Asks for the actions, or ends what has none: no action, no items, or none that a re-run repeats. @returns false: an action was refused, which has failed the workflow */
function request(turn: Turn, { instance, requests }: Plan): boolean {
  if (requests.length === 0) {
    endInPlace(turn, instance.id)
    return true
  }
  for (const { command, refusal } of requests) {
    if (refusal !== undefined) {
      refuse(turn, instance.id, refusal)
      return false
    }
    turn.commands.push(command)
  }
  return true
}
