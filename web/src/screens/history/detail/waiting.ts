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
      return { sentence: 'It waits for its turn: only so many executions run at once.' }
    case 'scheduled':
      return { sentence: 'It has its turn, and is about to start.' }
    case 'delayed': {
      const due = Date.parse(start) + delay
      if (delay === 0 || due < now) {
        return {
          sentence: `A policy lets only so many executions of ${action.ref} run at once: it starts when one of them has ended.`,
          isBehindOthers: true,
        }
      }
      const retry = context.policies?.retry
      const until = new Date(due).toISOString()
      return {
        sentence:
          retry === undefined
            ? 'Whoever asked for it wanted it to wait until'
            : `The policy ${retry.applied_policy} runs it again, because it has failed before. It starts at`,
        until,
      }
    }
    case 'pending':
      return {
        sentence:
          runner.name === 'inquirer'
            ? 'It waits for an answer.'
            : 'It waits until something outside tells the server how it has ended.',
      }
    case 'canceling':
      return { sentence: 'It is being cancelled: its processes have a moment to end.' }
    case 'pausing':
      return { sentence: 'It pauses once what it has started has ended.' }
    case 'paused':
      return { sentence: 'It is paused, until somebody resumes it.' }
    case 'resuming':
      return { sentence: 'It is about to go on.' }
    default:
      return undefined
  }
}
