/** The end of a workflow that cannot be conducted any more. */
import { Draft } from './draft.ts'
import { errorKey, type ErrorEntry, type State } from './state.ts'
import { isCompleted } from './status.ts'
import type { Outcome } from './types.ts'

/** Of one that is over already, the event is refused. @param message why, `<class>: <text>` */
export function broken(state: State, message: string): Outcome {
  const draft = new Draft(state)
  if (isCompleted(draft.workflow.status)) return { changes: undefined, commands: [], log: [], refused: message }
  const entry: ErrorEntry = { type: 'error', message }
  draft.setError({ id: draft.take('errors'), instance: null, key: errorKey(entry), entry })
  draft.setWorkflow({ status: 'failed' })
  const { output } = draft.workflow
  return {
    changes: draft.changes,
    commands: [{ kind: 'finish', status: 'failed', output }],
    log: [],
    refused: undefined,
  }
}
