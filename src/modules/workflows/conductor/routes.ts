/** Routes tell the arrivals at a split apart: each arrival, and all that follows it, runs on a route of its own. */
import type { Definition, Transition } from '../definition/model.ts'
import type { Draft } from './draft.ts'
import type { InstanceRow } from './state.ts'
import { waysWithin } from './ways.ts'

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
 * routes whose transitions all lie on its way.
 */
export function visibleInstance(draft: Draft, task: number, route: number): InstanceRow | undefined {
  const latest = draft.latest(task, route)
  if (latest !== undefined || route === FIRST_ROUTE) return latest
  const origins = originsOf(draft, route)
  const isShort = 2 ** origins.length <= draft.routeCount(task)
  const candidates = isShort ? nearestByWay(draft, task, route, origins) : earlierRoutes(draft, task, route, origins)
  let best = -1
  for (const candidate of candidates) best = Math.max(best, candidate)
  return best < 0 ? undefined : draft.latest(task, best)
}

/** Of each way that the route contains, the nearest earlier route. Few, however many routes the run has. */
function* nearestByWay(draft: Draft, task: number, route: number, origins: readonly string[]): Generator<number> {
  for (const way of waysWithin(origins)) {
    const found = draft.routeBelow(task, way, route)
    if (found !== undefined) yield found
  }
}

/** All earlier routes that the route contains: less work when its way is long and the routes are few. */
function* earlierRoutes(draft: Draft, task: number, route: number, origins: readonly string[]): Generator<number> {
  const own = new Set(origins)
  for (const candidate of draft.routesOf(task))
    if (candidate < route && originsOf(draft, candidate).every((origin) => own.has(origin))) yield candidate
}
