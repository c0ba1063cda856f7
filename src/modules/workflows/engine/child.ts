/** Requests the executions of tasks. */
import { isAppError, isStorageFailure, type AppError } from '../../../core/errors.ts'
import type { Unit } from '../../../db/index.ts'
import type { Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { StartCommand } from '../conductor/index.ts'
import { chatOf, type Run } from './run.ts'

export interface PlannedChild {
  readonly execution: Execution
  readonly unit: Unit
}

/** Whether the action cannot be started; other errors may go by. */
export const isRefusal = (error: unknown): error is AppError =>
  isAppError(error) && !isStorageFailure(error) && error.code !== 'QUEUE_FULL' && error.code !== 'SHUTTING_DOWN'

/**
 * @param workflow the execution of the workflow
 * @throws as `Executions.plan`
 */
export async function planChild(
  executions: Pick<Executions, 'plan'>,
  run: Run,
  workflow: Execution,
  command: StartCommand,
): Promise<PlannedChild> {
  const { id, trace_id } = workflow
  const { context, notify } = run.program.requestOf(workflow, run.header.id, command)
  return executions.plan({
    action: command.action,
    parameters: { ...command.input },
    parent: workflow,
    cause: { kind: 'inherited', trace_id, caused_by: { type: 'action_execution', id } },
    context: { ...chatOf(workflow.context), ...context },
    ...(command.delay > 0 ? { delayMs: command.delay * 1000 } : {}),
    ...(command.timeout === undefined ? {} : { timeout: command.timeout }),
    ...(notify === undefined ? {} : { notify }),
    secrets: [...run.secrets],
  })
}
