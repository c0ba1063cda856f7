/** Why an execution does not run, as far as its record tells. */
import type { ExecutionContext, ExecutionRecord } from '../../../api/records.ts'

export interface Waiting {
  sentence: string
  /** Wire timestamp, when it is known. */
  until?: string
  /** Other executions that it waits for. */
  isBehindOthers?: true
}

type Facts = Pick<ExecutionRecord, 'status' | 'start_timestamp' | 'delay'> & {
  action: Pick<ExecutionRecord['action'], 'ref'>
  runner: Pick<ExecutionRecord['runner'], 'name'>
  context: Pick<ExecutionContext, 'policies'>
}

/** Undefined: it runs, or has ended. @param now milliseconds since the epoch */
export function waitingOf(execution: Facts, now: number): Waiting | undefined {
  const { status, start_timestamp: start, delay = 0, action, runner, context } = execution
  switch (status) {
    case 'requested':
      return { sentence: 'Waiting for a free slot.' }
    case 'scheduled':
      return { sentence: 'Starting.' }
    case 'delayed': {
      const due = Date.parse(start) + delay
      if (delay === 0 || due < now) {
        return {
          sentence: `Delayed by a concurrency policy: starts when a running execution of ${action.ref} ends.`,
          isBehindOthers: true,
        }
      }
      const retry = context.policies?.retry
      const until = new Date(due).toISOString()
      return {
        sentence:
          retry === undefined
            ? 'Delayed by the request until'
            : `Retry by the policy ${retry.applied_policy} after a failure. Starts at`,
        until,
      }
    }
    case 'pending':
      return {
        sentence:
          runner.name === 'inquirer'
            ? 'Waiting for an answer.'
            : 'Waiting for an external system to report the outcome.',
      }
    case 'canceling':
      return { sentence: 'Canceling: its processes have a grace period to stop.' }
    case 'pausing':
      return { sentence: 'Pausing: waiting for its running children to end.' }
    case 'paused':
      return { sentence: 'Paused until somebody resumes it.' }
    case 'resuming':
      return { sentence: 'Resuming.' }
    default:
      return undefined
  }
}
