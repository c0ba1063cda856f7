/** The end of a workflow that cannot be conducted any more. */
import { Draft } from './draft.ts'
import type { State } from './state.ts'
import { isCompleted } from './status.ts'
import type { Outcome } from './types.ts'

/** @param message why, `<class>: <text>` */
export function broken(state: State, message: string): Outcome {
  const draft = new Draft(state)
  if (isCompleted(draft.workflow.status)) return { changes: undefined, commands: [], log: [], refused: undefined }
  const id = draft.take('errors')
  draft.setError({ id, instance: null, key: `broken/${id}`, entry: { type: 'error', message } })
  draft.setWorkflow({ status: 'failed' })
  const { output } = draft.workflow
  return {
    changes: draft.changes,
    commands: [{ kind: 'finish', status: 'failed', output }],
    log: [],
    refused: undefined,
  }
}
