/** What lists and the event stream contain of an execution: all that fits into a row, and nothing large. */
import type { QueryValues } from './client.ts'
import type { ActionRecord, ExecutionContext, ExecutionRecord, RunnerTypeRecord } from './records.ts'

export type ExecutionSummary = Pick<
  ExecutionRecord,
  | 'id'
  | 'status'
  | 'start_timestamp'
  | 'end_timestamp'
  | 'elapsed_seconds'
  | 'log'
  | 'parameters'
  | 'parameters_size'
  | 'result_size'
  | 'delay'
  | 'parent'
> & {
  action: Pick<ActionRecord, 'ref' | 'name' | 'pack'>
  runner: Pick<RunnerTypeRecord, 'name'>
  context: Pick<ExecutionContext, 'user' | 're-run' | 'policies' | 'cancelled_by'>
  liveaction: Pick<ExecutionRecord['liveaction'], 'id' | 'runner_info'>
  /** `ref` is left out where only the name is known. */
  rule?: { name: string; ref?: string }
  trigger?: { name: string; ref?: string }
  trigger_type?: { name: string; ref?: string }
  trigger_instance?: { id: string }
}

const attributes = [
  'id',
  'status',
  'start_timestamp',
  'end_timestamp',
  'elapsed_seconds',
  'log',
  'parameters',
  'result_size',
  'delay',
  'parent',
  'action.ref',
  'action.name',
  'action.pack',
  'runner.name',
  'context.user',
  'context.re-run',
  'context.policies.retry',
  'context.cancelled_by',
  'liveaction.id',
  'liveaction.runner_info',
  'rule.name',
  'rule.ref',
  'trigger.name',
  'trigger.ref',
  'trigger_type.name',
  'trigger_type.ref',
  'trigger_instance.id',
]

/** More than a row shows of parameters; of larger ones it shows how large they are. */
const MAX_PARAMETERS_BYTES = 2000

/** Query of requests and streams that deliver summaries. */
export const summaryQuery = {
  include_attributes: attributes,
  max_parameters_size: MAX_PARAMETERS_BYTES,
} as const satisfies QueryValues

/** Answers and events may cross: an execution that has been in more statuses is the later one. */
export function laterOf<T extends Pick<ExecutionRecord, 'log'>>(a: T, b: T): T {
  return b.log.length >= a.log.length ? b : a
}
