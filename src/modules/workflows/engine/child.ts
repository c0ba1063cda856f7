/** Requests the executions of tasks. */
import { createHash } from 'node:crypto'
import { isAppError, type AppError } from '../../../core/errors.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Unit } from '../../../db/index.ts'
import type { Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { StartCommand } from '../conductor/index.ts'
import type { Run } from './run.ts'

export interface PlannedChild {
  readonly execution: Execution
  readonly unit: Unit
}

/** Refusals that are a mistake of the workflow, by the code of the error: the class that users know it by. */
const classes: Readonly<Record<string, string>> = {
  ACTION_UNKNOWN: 'InvalidActionReferencedException',
  ACTION_DISABLED: 'ValueError',
  BODY_INVALID: 'ValueError',
  PARAMETERS_INVALID: 'ValueValidationException',
}

/**
 * Why an action cannot be started, `<class>: <text>`.
 *
 * @throws the error when it is no fault of the workflow
 */
export function refusalOf(error: unknown, { action }: StartCommand): string {
  const className = isAppError(error) ? classes[error.code] : undefined
  if (className === undefined) throw error
  const { code, message } = error as AppError
  return `${className}: ${code === 'ACTION_UNKNOWN' ? `Unable to find action "${action}".` : message}`
}

/** Id of a task execution: one for each attempt of an instance. */
export function taskExecutionId(workflow: string, instance: number, attempt: number): string {
  return createHash('sha256').update(`${workflow}/${instance}/${attempt}`).digest('hex').slice(0, 24)
}

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
  const { id, trace_id, user, action, context, liveaction } = workflow
  const { instance, item, attempt } = command
  const notified = workflow.parameters['notify']
  const isNotified = Array.isArray(notified) && notified.includes(command.task) && liveaction.notify !== undefined
  return executions.plan({
    action: command.action,
    parameters: { ...command.input },
    parent: workflow,
    cause: { kind: 'inherited', trace_id, caused_by: { type: 'action_execution', id } },
    context: {
      parent: { execution_id: id, user, pack: action.pack, ...chatOf(context) },
      orquesta: {
        workflow_execution_id: run.header.id,
        task_execution_id: taskExecutionId(run.header.id, instance, attempt),
        task_name: command.task,
        task_id: command.task,
        task_route: command.route,
        ...(item === undefined ? {} : { item_id: item }),
      },
      ...chatOf(context),
    },
    ...(command.delay > 0 ? { delayMs: command.delay * 1000 } : {}),
    ...(isNotified && isObject(liveaction.notify) ? { notify: liveaction.notify } : {}),
    secrets: [...run.secrets],
  })
}

/** Who a chat user is, for notifications and the datastore. */
function chatOf(context: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = ['api_user', 'source_channel'].filter((name) => context[name] !== undefined)
  return Object.fromEntries(names.map((name) => [name, context[name]]))
}
