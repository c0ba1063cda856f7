/** What a change of an execution means to the workflow that it belongs to, and to the workflow that it is. */
import { isFinal } from '../../executions/index.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import type { Event } from '../conductor/index.ts'

/** Place of the action in its workflow. */
export interface ActionPlace {
  readonly instance: number
  readonly item: number | null
  readonly attempt: number
}

/** What the workflow of an action hears of it. @param result read only if it has ended */
export function newsOfAction(
  before: ExecutionStatus,
  { status }: Pick<Execution, 'status'>,
  { instance, item, attempt }: ActionPlace,
  result: () => unknown,
): readonly Event[] {
  const place = { instance, attempt, ...(item === null ? {} : { item }) }
  if (isFinal(status)) {
    const ended: Event = { kind: 'ended', ...place, status, result: result() }
    return before === 'pending' && status === 'succeeded' ? [{ kind: 'answered', ...place }, ended] : [ended]
  }
  switch (status) {
    case 'pending':
      return [{ kind: 'pending', ...place }]
    case 'paused':
      return [{ kind: 'child paused', ...place }]
    case 'running':
      return before === 'paused' || before === 'resuming' ? [{ kind: 'child resumed', ...place }] : []
    default:
      return []
  }
}

/** What a workflow hears of its own execution, when somebody else has changed it. */
export function newsOfWorkflow({ status }: Pick<Execution, 'status'>): Event | undefined {
  // It has ended for those who look at it: its tasks start no more actions.
  if (isFinal(status) || status === 'canceling') return { kind: 'cancel' }
  if (status === 'pausing') return { kind: 'pause' }
  return status === 'resuming' ? { kind: 'resume' } : undefined
}
