/** Routes tell the arrivals at a split apart: each arrival, and all that follows it, runs on a route of its own. */
import type { Definition, Transition } from '../definition/model.ts'
import type { Draft } from './draft.ts'
import type { InstanceRow } from './state.ts'

/** The route that every workflow starts on. */
export const FIRST_ROUTE = 0

/** The route of a transition's target; a new one, if the target is a split. */
export function routeOf(draft: Draft, definition: Definition, transition: Transition, route: number): number {
  const target = definition.tasks[transition.to]
  if (target === undefined || !target.isSplit || target.isInCycle) return route
  const id = draft.take('routes')
  draft.setRoute({ id, parent: route, origin: transition.origin })
  return id
}

/** The transitions that made a route, the latest first. */
function originsOf(draft: Draft, id: number): string[] {
  const origins: string[] = []
  for (let row = draft.route(id); row !== undefined; row = draft.route(row.parent)) origins.push(row.origin)
  return origins
}

/**
 * The latest instance of a task that a task on the route can see: on the route itself, else on the latest of the earlier
 * routes that lie on its way.
 */
export function visibleInstance(draft: Draft, task: number, route: number): InstanceRow | undefined {
  const latest = draft.latest(task, route)
  if (latest !== undefined || route === FIRST_ROUTE) return latest
  const own = new Set(originsOf(draft, route))
  let best = -1
  for (const candidate of draft.routesOf(task))
    if (candidate > best && candidate < route && originsOf(draft, candidate).every((origin) => own.has(origin)))
      best = candidate
  return best < 0 ? undefined : draft.latest(task, best)
}
