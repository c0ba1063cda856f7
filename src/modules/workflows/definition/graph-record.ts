/** The graph of a definition as a record, for people and programs that draw it. */
import type { WorkflowGraph, WorkflowGraphTask } from '../types.ts'
import type { Definition, Task } from './model.ts'

export function graphOf({ tasks, starts, timeout }: Definition, runner: string): WorkflowGraph {
  const nameOf = (index: number): string => tasks[index]?.name ?? ''
  return {
    runner,
    start: starts.map(nameOf),
    timeout: timeout ?? null,
    tasks: tasks.filter(({ kind }) => kind === 'task').map((task) => taskOf(task, nameOf)),
  }
}

function taskOf(task: Task, nameOf: (index: number) => string): WorkflowGraphTask {
  const { name, action, join, joinNeed, items, retry, delay, timeout, isSplit, inbound, next } = task
  return {
    name,
    action: action ?? null,
    join: join ?? null,
    join_need: joinNeed ?? null,
    items: items?.source ?? null,
    concurrency: items?.concurrency ?? null,
    // What `do: retry` asks for is among the transitions.
    retry:
      retry === undefined || retry.isCommand
        ? null
        : { count: retry.count ?? null, delay: retry.delay ?? null, when: retry.when ?? null },
    delay: delay ?? null,
    timeout: timeout ?? null,
    is_split: isSplit,
    inbound: inbound.map(nameOf),
    // Where a chain ends, nothing is left to do.
    transitions: next
      .filter(({ targets }) => targets.length > 0)
      .map(({ when, publish, targets }) => ({
        when: when ?? null,
        publish: [...new Set(publish.map((assignment) => assignment.name))],
        do: [...targets],
      })),
  }
}
