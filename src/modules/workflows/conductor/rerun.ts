/** Repeats tasks of a workflow that is over, and what followed from them. */
import { arrivalsOf, stage } from './joins.ts'
import type { InstanceRow } from './state.ts'
import { isActive } from './status.ts'
import { isOver, taskOf, type Turn } from './turn.ts'

/**
 * Stages a new instance for each task and route; what else waits to start goes on as well. The errors of what is repeated are
 * forgotten, and so are the variables of what followed from it.
 *
 * @param names tasks that have started before; one that follows from another of them is left out, as it runs anyway
 * @param reset those that repeat all of their items, not just those that did not succeed
 * @returns why nothing can be repeated
 */
export function rerun(turn: Turn, names: readonly string[], reset: readonly string[]): string | undefined {
  const { draft } = turn
  if (!isOver(turn)) return 'not completed'
  const unknown = names.filter((name) => latestOf(turn, name).length === 0)
  if (unknown.length > 0)
    return `Unable to rerun workflow because one or more tasks is not found: ${[...new Set(unknown)].join(',')}`
  const wanted = [...new Set(names)].flatMap((name) => latestOf(turn, name))
  const open = wanted.find(({ status }) => isActive(status) || status === 'paused')
  if (open !== undefined)
    return `Unable to rerun task|route(s) because it doesn't exist or isn't rerunnable: ${taskOf(turn, open).name}|${open.route}. It still runs: wait for its end, or cancel it.`
  const followers = followersByInstance(turn)
  const following = allFollowers(followers, wanted)
  const repeated = wanted.filter(({ id }) => !following.has(id))
  const { maxInstances } = turn.limits
  if (draft.workflow.instances + repeated.length > maxInstances)
    return `Unable to rerun workflow because it would start more than ${maxInstances} task instances, the most that one run may have.`
  for (const { id, taken } of draft.terminal())
    if ((taken ?? []).length > 0) draft.changeInstance(id, { isTerminal: false })
  for (const instance of repeated)
    for (const id of [instance.id, ...(followers.get(instance.id) ?? [])])
      draft.changeInstance(id, { isTerminal: false })
  forgetErrors(turn, new Set(repeated.map((instance) => taskOf(turn, instance).name)))
  draft.setWorkflow({ status: 'running', request: null, output: null })
  for (const instance of repeated) repeat(turn, instance, reset.includes(taskOf(turn, instance).name))
  return undefined
}

function latestOf({ draft, definition }: Turn, name: string): InstanceRow[] {
  const task = definition.taskIndexes.get(name)
  if (task === undefined || definition.tasks[task]?.kind !== 'task') return []
  return Array.from(draft.routesOf(task), (route) => draft.latest(task, route)).filter((row) => row !== undefined)
}

/** Instance → those that it led to. */
function followersByInstance({ draft }: Turn): ReadonlyMap<number, readonly number[]> {
  const followers = new Map<number, number[]>()
  for (const instance of draft.instances())
    for (const { from } of arrivalsOf(draft, instance)) {
      const known = followers.get(from)
      if (known === undefined) followers.set(from, [instance.id])
      else known.push(instance.id)
    }
  return followers
}

/** Instances that came about through the given ones. */
function allFollowers(
  followers: ReadonlyMap<number, readonly number[]>,
  instances: readonly InstanceRow[],
): ReadonlySet<number> {
  const found = new Set<number>()
  const open = instances.map(({ id }) => id)
  for (let id = open.pop(); id !== undefined; id = open.pop())
    for (const follower of followers.get(id) ?? []) {
      if (found.has(follower)) continue
      found.add(follower)
      open.push(follower)
    }
  return found
}

/** Those of the repeated tasks, and of the output, which is rendered again. */
function forgetErrors({ draft }: Turn, names: ReadonlySet<string>): void {
  for (const row of draft.errors())
    if (row.entry.task_id === undefined || names.has(row.entry.task_id)) draft.removeError(row)
}

function repeat(turn: Turn, instance: InstanceRow, isReset: boolean): void {
  const { draft } = turn
  // What waited to start in its place starts with it. A join that lacks arrivals goes on waiting.
  const waiting = draft.staged(instance.task, instance.route)
  if (waiting?.isReady === true) draft.removeStaged(waiting)
  const staged = stage(turn, taskOf(turn, instance), instance.route, true)
  for (const [index, arrival] of arrivalsOf(draft, instance).entries())
    if (instance.arrivals > 0) draft.addArrival({ ...arrival, instance: staged.id, index })
  draft.changeInstance(staged.id, {
    context: instance.context,
    previous: instance.previous,
    arrivals: instance.arrivals,
  })
  if (isReset) return
  for (let index = 0; index < (instance.items?.count ?? 0); index++) {
    const item = draft.item(instance.id, index)
    if (item?.status === 'succeeded') draft.setItem({ ...item, instance: staged.id })
  }
}
