/** The end of a workflow that cannot be conducted any more. */
import { Draft, type Changes } from './draft.ts'
import { errorKey, type ErrorEntry, type State } from './state.ts'
import { isCompleted } from './status.ts'
import type { Outcome } from './types.ts'

/** Of one that is over already, the event is refused. @param message why, `<class>: <text>` */
export function broken(state: State, message: string): Outcome {
  const draft = new Draft(state)
  if (isCompleted(draft.workflow.status)) return { changes: undefined, commands: [], log: [], refused: message }
  const { output } = draft.workflow
  return {
    changes: failed(state, message),
    commands: [{ kind: 'finish', status: 'failed', output }],
    log: [],
    refused: undefined,
  }
}

/** Of one that has just ended too: what it gives is refused. */
export function failed(state: State, message: string): Changes {
  const draft = new Draft(state)
  const entry: ErrorEntry = { type: 'error', message }
  draft.setError({ id: draft.take('errors'), instance: null, key: errorKey(entry), entry })
  draft.setWorkflow({ status: 'failed' })
  return draft.changes
}
