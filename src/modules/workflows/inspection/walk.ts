/** The order in which checks look at tasks, so that each knows what comes before it. */
import { findComponents } from '../definition/graph.ts'
import type { Definition, Task, Transition } from '../definition/model.ts'

export interface Walk {
  /** The tasks that a start task leads to. What leads to a task stands before it, except for the ways back in a cycle. */
  readonly visits: readonly Task[]
  /** The transitions from visited tasks to a task. */
  readonly inbound: (task: Task) => readonly Transition[]
  /** Whether a walk in breadth reaches the source of the transition before its target. */
  readonly isForward: (transition: Transition) => boolean
  /** Whether no cycle has both ends of the transition. */
  readonly isBetweenCycles: (transition: Transition) => boolean
}

/** @param targetsOf the indexes of the targets of a task, in the order in which the walk takes them */
export function walk({ tasks, starts }: Definition, targetsOf: (task: Task) => readonly number[]): Walk {
  const arrival = new Map<number, number>()
  const visited: Task[] = []
  const arrive = (index: number): void => {
    const task = tasks[index]
    if (task?.kind !== 'task' || arrival.has(index)) return
    arrival.set(index, visited.length)
    visited.push(task)
  }
  starts.forEach(arrive)
  for (const task of visited) targetsOf(task).forEach(arrive) // the list grows meanwhile

  // A component is numbered after those that it leads to.
  const component = findComponents(tasks.map(({ outgoing }) => outgoing))
  const componentOf = (index: number): number => component[index] ?? 0
  const visits = visited.toSorted((a, b) => componentOf(b.index) - componentOf(a.index))
  const inbound = new Map<number, Transition[]>()
  for (const transition of visited.flatMap(({ outgoing }) => outgoing)) {
    const known = inbound.get(transition.to)
    if (known === undefined) inbound.set(transition.to, [transition])
    else known.push(transition)
  }
  return {
    visits,
    inbound: ({ index }) => inbound.get(index) ?? [],
    isForward: ({ from, to }) => (arrival.get(from) ?? 0) < (arrival.get(to) ?? 0),
    isBetweenCycles: ({ from, to }) => componentOf(from) !== componentOf(to),
  }
}
