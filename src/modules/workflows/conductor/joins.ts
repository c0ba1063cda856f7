/** Arrivals at tasks: the instance that they stage, and when a join has enough of them. */
import type { Definition, Task, Transition } from '../definition/model.ts'
import type { Draft } from './draft.ts'
import type { Arrival, InstanceRow } from './state.ts'
import { addLimitedContext } from './sizes.ts'
import { ConductError, taskOf, type Turn } from './turn.ts'
import type { JoinProgress } from './types.ts'

/** A new instance that waits to start. @throws ConductError when the workflow has too many */
export function stage(turn: Turn, task: Task, route: number, isReady: boolean): InstanceRow {
  const { draft, limits } = turn
  if (draft.workflow.instances >= limits.maxInstances)
    throw new ConductError(
      'LimitError',
      `The workflow has started ${limits.maxInstances} task instances, the most that one run may have.`,
    )
  return draft.setInstance({
    id: draft.take('instances'),
    task: task.index,
    route,
    status: 'staged',
    order: null,
    pass: 0,
    isReady,
    isCleanup: false,
    context: null,
    previous: [],
    arrivals: 0,
    taken: null,
    retries: 0,
    retry: null,
    isTerminal: false,
    items: null,
  })
}

/**
 * Lets a transition arrive at its target.
 *
 * @returns the staged instance; undefined: the join has started without this arrival
 */
export function arrive(turn: Turn, transition: Transition, route: number, arrival: Arrival): InstanceRow | undefined {
  const { draft } = turn
  const target = turn.definition.tasks[transition.to]
  if (target === undefined) throw new Error(`the definition has no task ${transition.to}`)
  if (target.joinNeed === undefined) {
    const staged = draft.staged(target.index, route) ?? stage(turn, target, route, true)
    return draft.changeInstance(staged.id, { previous: [...staged.previous, arrival], isReady: true })
  }
  if (isLate(draft, target, route, transition.from)) return undefined
  const staged = draft.staged(target.index, route) ?? stage(turn, target, route, false)
  draft.addArrival({ instance: staged.id, index: staged.arrivals, ...arrival })
  return draft.changeInstance(staged.id, {
    arrivals: staged.arrivals + 1,
    isReady: draft.join(target.index, route).arrived >= target.joinNeed,
  })
}

/**
 * Counts the arrival of a task at a join. Several transitions of one pass count once.
 *
 * A task that had not arrived when the join started is late for that start: its next arrival is ignored. In a cycle nobody
 * can tell which pass an arrival belongs to: there it always counts.
 */
function isLate(draft: Draft, join: Task, route: number, source: number): boolean {
  const row = draft.join(join.index, route)
  const known = draft.source(join.index, route, source)
  const firedBefore = known?.firedBefore ?? 0
  if (known?.hasArrived !== true) {
    draft.setSource({ task: join.index, route, source, firedBefore, hasArrived: true })
    draft.setJoin({ ...row, arrived: row.arrived + 1 })
  }
  return !join.isInCycle && row.fired > firedBefore
}

/** A new instance of the task has started: joins wait for it again. */
export function forgetArrivals(draft: Draft, task: Task, route: number): void {
  for (const { to } of task.outgoing) {
    const known = draft.source(to, route, task.index)
    if (known?.hasArrived !== true) continue
    const join = draft.join(to, route)
    draft.setSource({ ...known, firedBefore: join.fired, hasArrived: false })
    draft.setJoin({ ...join, arrived: join.arrived - 1 })
  }
}

/** How the instance came about. */
export function arrivalsOf(draft: Draft, instance: InstanceRow): readonly Arrival[] {
  if (instance.arrivals === 0) return instance.previous
  return Array.from({ length: instance.arrivals }, (_, index) => {
    const arrival = draft.arrival(instance.id, index)
    if (arrival === undefined) throw new Error(`the task instance ${instance.id} has no arrival ${index}`)
    return arrival
  })
}

/** The context that the arrivals give. @throws ConductError when it is too large */
export function joinedContext(turn: Turn, instance: InstanceRow): number {
  return addLimitedContext(
    turn,
    arrivalsOf(turn.draft, instance).map(({ context }) => context),
    {},
  )
}

/** Counts the start of a join. */
export function fire(turn: Turn, instance: InstanceRow): void {
  const task = taskOf(turn, instance)
  if (task.joinNeed === undefined) return
  logJoin(turn, instance)
  const row = turn.draft.join(task.index, instance.route)
  turn.draft.setJoin({ ...row, fired: row.fired + 1 })
}

/** What explain shows of a join when it starts, or when it can start no more. */
export function logJoin(turn: Turn, instance: InstanceRow): void {
  const progress = joinProgress(turn.definition, turn.draft, instance)
  if (progress !== undefined) turn.log.push({ kind: 'join', instance: instance.id, ...progress })
}

/** Who has come to a join, and who is missing; undefined: the task is no join. */
export function joinProgress(
  definition: Definition,
  draft: Draft,
  { task: index, route }: Pick<InstanceRow, 'task' | 'route'>,
): JoinProgress | undefined {
  const task = definition.tasks[index]
  if (task?.joinNeed === undefined) return undefined
  const hasArrived = (source: number): boolean => draft.source(index, route, source)?.hasArrived === true
  const name = (source: number): string => definition.tasks[source]?.name ?? ''
  return {
    task: task.name,
    route,
    need: task.joinNeed,
    arrived: task.inbound.filter(hasArrived).map(name),
    missing: task.inbound.filter((source) => !hasArrived(source)).map(name),
  }
}
