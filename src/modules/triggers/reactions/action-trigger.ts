/** Payload of the ActionTrigger, which fires when an execution reaches a status (contract 05, 5.9). */
import { resultJson } from '../../../core/result-json.ts'
import { offsetTime } from '../../../core/time.ts'
import type { Execution } from '../../executions/types.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Payload as JSON text. Uses the existing JSON text of the result, which can be 20 MB. */
export function actionTriggerPayload(execution: Execution, parameters: Record<string, unknown>): string {
  const { id, status, start_timestamp, action_ref, runner, result } = execution
  const head = writeJson({
    execution_id: id,
    status,
    start_timestamp: offsetTime(start_timestamp, ' '),
    action_name: action_ref,
    action_ref,
    runner_ref: runner.name,
    parameters,
  })
  return `${head.slice(0, -1)},"result":${result === undefined || result === null ? '{}' : resultJson(result)}}`
}
