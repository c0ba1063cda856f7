/** How far the tasks of a workflow have come. */
import type { WorkflowTaskRecord } from '../../api/records.ts'
import { linkKey } from './graph.ts'

export interface TaskState {
  /** Of the latest pass. */
  status: string
  /** `2 of 5 items`, `attempt 2 of 3`, `3 times: 2 succeeded, 1 running`; empty: nothing to add */
  note: string
}

const commands = new Set(['continue', 'noop', 'fail'])
const final = new Set(['succeeded', 'failed', 'canceled'])

const isOpenTask = ({ status }: Pick<WorkflowTaskRecord, 'status'>): boolean => !final.has(status)

export const areSettled = (tasks: readonly Pick<WorkflowTaskRecord, 'status'>[]): boolean => !tasks.some(isOpenTask)

/** By name. @param tasks in the order of their starts */
export function statesOf(tasks: readonly WorkflowTaskRecord[]): Map<string, TaskState> {
  const passes = new Map<string, WorkflowTaskRecord[]>()
  for (const task of tasks) {
    const known = passes.get(task.name)
    if (known === undefined) passes.set(task.name, [task])
    else known.push(task)
  }
  const states = new Map<string, TaskState>()
  for (const [name, all] of passes) {
    const latest = all.at(-1)
    if (latest === undefined) continue
    const notes = [...(all.length > 1 ? [passesText(all)] : []), ...progressOf(latest)]
    states.set(name, { status: latest.status, note: notes.join(', ') })
  }
  // Engine commands are no tasks: the tasks before them say that they have run.
  for (const { task } of tasks.flatMap(({ transitions }) => transitions ?? []))
    if (commands.has(task)) states.set(task, { status: task === 'fail' ? 'failed' : 'succeeded', note: '' })
  return states
}

/** Of one pass. */
export function progressOf({
  items,
  attempt,
  max_attempts: most,
}: Pick<WorkflowTaskRecord, 'items' | 'attempt' | 'max_attempts'>): string[] {
  const ended = items === null ? 0 : items.succeeded + items.failed + items.canceled
  return [
    ...(items === null ? [] : [`${ended} of ${items.total} items`]),
    ...(attempt > 1 ? [`attempt ${attempt}${most >= attempt ? ` of ${most}` : ''}`] : []),
  ]
}

function passesText(tasks: readonly WorkflowTaskRecord[]): string {
  const counts = new Map<string, number>()
  for (const { status } of tasks) counts.set(status, (counts.get(status) ?? 0) + 1)
  const parts = [...counts].map(([status, count]) => `${count} ${status}`)
  return parts.length === 1 ? `${tasks.length} times` : `${tasks.length} times: ${parts.join(', ')}`
}

/** Keys of the links that were taken. */
export function takenOf(tasks: readonly WorkflowTaskRecord[]): Set<string> {
  return new Set(tasks.flatMap(({ name, transitions }) => (transitions ?? []).map(({ task }) => linkKey(name, task))))
}

/**
 * Position after which to read on: that of the last task before the first that may still change.
 *
 * @returns -1 to read all
 */
export function lastSettled(tasks: readonly WorkflowTaskRecord[]): number {
  const open = tasks.findIndex(isOpenTask)
  return (open === -1 ? tasks.at(-1) : tasks[open - 1])?.position ?? -1
}

/** Tasks to run again, with how they have ended; those without success are proposed. Engine commands are not among them. */
export function rerunChoices(
  tasks: readonly WorkflowTaskRecord[],
): { name: string; status: string; isProposed: boolean; hasItems: boolean }[] {
  const withItems = new Set(tasks.flatMap(({ name, items }) => (items === null ? [] : [name])))
  return [...statesOf(tasks)]
    .filter(([name]) => !commands.has(name))
    .map(([name, { status }]) => ({ name, status, isProposed: status !== 'succeeded', hasItems: withItems.has(name) }))
}
