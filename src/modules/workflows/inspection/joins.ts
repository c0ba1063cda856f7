/** Joins whose arrivals would come on different routes. */
import type { Definition, Task } from '../definition/model.ts'
import { walk } from './walk.ts'

/**
 * A task that several transitions lead to, without `join` and not in a cycle, splits: each arrival runs on a route of
 * its own. A join waits on one route, so the same splits must lie before each task that leads to it.
 *
 * A set of splits is a number with a bit for each: a union costs one instruction for 64 splits.
 */
export function findAmbiguousJoins(definition: Definition): Task[] {
  const { visits, inbound, isForward } = walk(definition, ({ outgoing }) => outgoing.map(({ to }) => to))
  const splits = new Map<number, bigint>()
  const joins: Task[] = []
  let bits = 0n
  for (const task of visits) {
    // What arrives at a task in a cycle later belongs to another pass.
    const arrivals = inbound(task).filter((transition) => !task.isInCycle || isForward(transition))
    const before = arrivals.map(({ from }) => splits.get(from) ?? 0n)
    let all = before.reduce((union, one) => union | one, 0n)
    if (task.join !== undefined && before.some((one) => one !== all)) joins.push(task)
    if (task.isSplit && !task.isInCycle) all |= 1n << bits++
    splits.set(task.index, all)
  }
  return joins
}
