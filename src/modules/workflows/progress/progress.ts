/** A run as users look at it: what a page costs does not grow with the run. */
import { secondsBetween } from '../../../core/time.ts'
import type { Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { ItemCounts } from '../conductor/index.ts'
import type { Definition, Task } from '../definition/model.ts'
import { taskExecutionId } from '../engine/task-execution-id.ts'
import type { LinkedTask, TaskCounts, WorkflowHeader, WorkflowStore } from '../store.ts'
import type { WorkflowRun, WorkflowTaskRecord } from '../types.ts'

/** Executions, and tasks before it, that a task shows. */
const MAX_SHOWN = 10

export interface Progress {
  /**
   * @param after position of the last task that is known; -1: none
   * @param limit tasks of the page
   */
  of(header: WorkflowHeader, after: number, limit: number): WorkflowRun
}

export function createProgress(deps: {
  executions: Pick<Executions, 'find' | 'statusOf'>
  store: Pick<
    WorkflowStore,
    'tasks' | 'arrivalsAt' | 'placesOf' | 'counts' | 'latestAction' | 'latestActions' | 'definitionText'
  >
  /** Of a definition that can be read. */
  graphOf(execution: Execution, text: string): Definition
}): Progress {
  const { executions, store } = deps

  function executionIds(workflow: string, { number, items }: LinkedTask): string[] {
    if (items !== null) return store.latestActions(workflow, number, 0, MAX_SHOWN).map(({ execution }) => execution)
    const latest = store.latestAction(workflow, number, null)
    return latest === undefined ? [] : [latest.execution]
  }

  function waitsFor(ids: readonly string[]): WorkflowTaskRecord['waits_for'] {
    for (const execution of ids) {
      const status = executions.statusOf(execution)
      if (status === 'pending') return { kind: 'inquiry', execution }
      if (status === 'paused') return { kind: 'resume', execution }
      if (status !== 'delayed' && status !== 'requested') continue
      const until = executions.find(execution)?.due_timestamp
      if (until !== undefined && until !== null) return { kind: 'delay', execution, until }
    }
    return null
  }

  /** Those that have led to each task, and how many there are. */
  function previousOf(workflow: string, tasks: readonly LinkedTask[], definition: Definition) {
    const arrivals = tasks.map(({ number, previous, arrivals: count }) => ({
      some: count > 0 ? store.arrivalsAt(workflow, number, MAX_SHOWN) : previous.slice(0, MAX_SHOWN),
      total: Math.max(count, previous.length),
    }))
    const numbers = new Set(arrivals.flatMap(({ some }) => some.map(({ from }) => from)))
    const places = new Map(store.placesOf(workflow, [...numbers]).map((place) => [place.number, place]))
    return arrivals.map(({ some, total }) => ({
      total,
      shown: some.flatMap(({ from, transition }) => {
        const place = places.get(from)
        const task = place === undefined ? undefined : definition.tasks[place.task]
        if (place === undefined || task === undefined) return []
        return [{ task: task.name, position: place.order, transition: task.outgoing[transition]?.id ?? '' }]
      }),
    }))
  }

  return {
    of(header, after, limit) {
      const { id } = header
      const execution = executions.find(header.execution)
      if (execution === undefined) throw new Error(`the workflow ${id} has no execution`)
      const definition = deps.graphOf(execution, store.definitionText(header.definition) ?? '')
      const commands = definition.tasks.filter(({ kind }) => kind !== 'task').map(({ index }) => index)
      const rows = store.tasks(id, after, limit + 1, commands)
      const page = rows.slice(0, limit)
      const previous = previousOf(id, page, definition)
      const tasks = page.map((row, index): WorkflowTaskRecord => {
        const task = definition.tasks[row.task]
        const ids = executionIds(id, row)
        const { start_timestamp: start, end_timestamp: end } = row
        return {
          position: row.order,
          id: taskExecutionId(id, row.number, row.retries),
          name: task?.name ?? '',
          action: task?.action ?? null,
          route: row.route,
          pass: row.pass,
          status: row.status as WorkflowTaskRecord['status'], // one that has started is not `staged`
          attempt: row.retries + 1,
          max_attempts: (row.retry?.count ?? 0) + 1,
          items: row.items === null ? null : toItems(row.items),
          previous: previous[index]?.shown ?? [],
          previous_total: previous[index]?.total ?? 0,
          transitions: row.taken === null ? null : transitionsOf(definition, task, row.taken),
          executions: ids,
          executions_total: row.items === null ? ids.length : row.items.next,
          waits_for: end === null ? waitsFor(ids) : null,
          start_timestamp: start,
          end_timestamp: end,
          elapsed_seconds: start === null || end === null ? null : secondsBetween(start, end),
        }
      })
      const { start_timestamp: start, end_timestamp: end } = header
      return {
        id,
        execution: header.execution,
        root: header.root,
        runner: header.runner,
        status: header.status,
        start_timestamp: start,
        end_timestamp: end,
        elapsed_seconds: end === null ? null : secondsBetween(start, end),
        counts: toCounts(store.counts(id)),
        tasks,
        next: rows.length > limit ? (page.at(-1)?.order ?? null) : null,
      }
    },
  }
}

function toItems({
  count,
  concurrency,
  next,
  active,
  held,
  failed,
  canceled,
}: ItemCounts): WorkflowTaskRecord['items'] {
  return {
    total: count,
    concurrency,
    not_started: count - next,
    running: active,
    waiting: held,
    succeeded: next - active - held - failed - canceled,
    failed,
    canceled,
  }
}

function transitionsOf(
  definition: Definition,
  task: Task | undefined,
  taken: readonly number[],
): WorkflowTaskRecord['transitions'] {
  return taken.flatMap((position) => {
    const transition = task?.outgoing[position]
    const target = transition === undefined ? undefined : definition.tasks[transition.to]
    return transition === undefined || target === undefined ? [] : [{ id: transition.id, task: target.name }]
  })
}

const none: TaskCounts = { starts: 0, commands: 0, active: 0, held: 0, succeeded: 0, failed: 0, canceled: 0 }

function toCounts(counts: TaskCounts = none): WorkflowRun['counts'] {
  const { active, held, succeeded, failed, canceled } = counts
  const total = counts.starts - counts.commands
  const retrying = total - active - held - succeeded - failed - canceled
  return { total, running: active, retrying, waiting: held, succeeded, failed, canceled }
}
