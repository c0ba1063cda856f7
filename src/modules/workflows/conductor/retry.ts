/** Whether a task that has ended is repeated. */
import type { Task } from '../definition/model.ts'
import type { InstanceRow } from './state.ts'
import { ConductError, evaluateIn, sightOf, type Turn } from './turn.ts'
import { isTruthy } from './truth.ts'

/**
 * The retry of a task that starts: how often, and how many seconds between the attempts.
 *
 * @throws ConductError when they are no integers
 */
export function retryOf(turn: Turn, task: Task, instance: InstanceRow): InstanceRow['retry'] {
  const { retry } = task
  if (retry === undefined) return null
  const { variables } = sightOf(turn, instance)
  const read = (what: 'count' | 'delay', value: unknown): number => {
    const result = evaluateIn(turn, value, { variables })
    if (typeof result === 'number' && Number.isInteger(result)) return result
    throw new ConductError('ValueError', `The retry ${what} for task "${task.name}" is not an integer.`)
  }
  return { count: read('count', retry.count), delay: read('delay', retry.delay ?? 0) }
}

/** @throws ExpressionError when the condition fails */
export function wantsRetry(turn: Turn, task: Task, instance: InstanceRow): boolean {
  if (task.retry === undefined || instance.retry === null || instance.retries >= instance.retry.count) return false
  if (task.retry.when === undefined) return instance.status === 'failed'
  return isTruthy(evaluateIn(turn, task.retry.when, { ...sightOf(turn, instance), hasResult: true }))
}
