/** Ids of task executions, which have no rows of their own. */
import { createHash } from 'node:crypto'

/** Id of a task execution: one for each attempt of an instance. */
export function taskExecutionId(workflow: string, instance: number, attempt: number): string {
  return createHash('sha256').update(`${workflow}/${instance}/${attempt}`).digest('hex').slice(0, 24)
}
