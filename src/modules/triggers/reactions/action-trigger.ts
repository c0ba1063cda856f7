/** Payload of the ActionTrigger, which fires when an execution reaches a status (contract 05, 5.9). */
import { failureText } from '../../../core/failure-text.ts'
import { storedJson } from '../../../core/stored-json.ts'
import { offsetTime } from '../../../core/time.ts'
import { executionAddress } from '../../../core/web-address.ts'
import type { Attempt } from '../../executions/ports.ts'
import type { Execution } from '../../executions/types.ts'
import { writeJson } from '../../../lib/json/index.ts'

/**
 * Payload as JSON text. Uses the existing JSON texts of the parameters and the result, which can be 20 MB each.
 *
 * @param webUrl address of the web client, without a trailing slash
 */
export function actionTriggerPayload(
  execution: Execution,
  parameters: Record<string, unknown>,
  { attempt, willRetry }: Attempt,
  webUrl: string,
): string {
  const { id, status, start_timestamp, end_timestamp, action_ref, runner, result } = execution
  const head = writeJson({
    execution_id: id,
    status,
    start_timestamp: offsetTime(start_timestamp, ' '),
    action_name: action_ref,
    action_ref,
    runner_ref: runner.name,
  })
  const resultText = result === undefined || result === null ? '{}' : storedJson(result)
  const more = writeJson({
    end_timestamp: end_timestamp === null ? null : offsetTime(end_timestamp, ' '),
    elapsed_seconds: execution.elapsed_seconds,
    attempt,
    will_retry: willRetry,
    error: failureText(status, result),
    user: execution.user,
    rule: execution.origin?.rule.ref ?? null,
    trace_id: execution.trace_id,
    web_url: executionAddress(webUrl, id),
  })
  return `${head.slice(0, -1)},"parameters":${storedJson(parameters)},"result":${resultText},${more.slice(1)}`
}
