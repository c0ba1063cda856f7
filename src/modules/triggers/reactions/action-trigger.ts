/** Payload of the ActionTrigger, which fires when an execution reaches a status (contract 05, 5.9). */
import { storedJson } from '../../../core/stored-json.ts'
import { offsetTime } from '../../../core/time.ts'
import type { Execution } from '../../executions/types.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Payload as JSON text. Uses the existing JSON texts of the parameters and the result, which can be 20 MB each. */
export function actionTriggerPayload(execution: Execution, parameters: Record<string, unknown>): string {
  const { id, status, start_timestamp, action_ref, runner, result } = execution
  const head = writeJson({
    execution_id: id,
    status,
    start_timestamp: offsetTime(start_timestamp, ' '),
    action_name: action_ref,
    action_ref,
    runner_ref: runner.name,
  })
  const resultText = result === undefined || result === null ? '{}' : storedJson(result)
  return `${head.slice(0, -1)},"parameters":${storedJson(parameters)},"result":${resultText}}`
}
