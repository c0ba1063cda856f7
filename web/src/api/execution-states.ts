/** How executions are that something else refers to by their ids. */
import { list } from './client.ts'
import type { ExecutionSummary } from './execution-summary.ts'

export type ExecutionState = Pick<
  ExecutionSummary,
  'id' | 'status' | 'start_timestamp' | 'end_timestamp' | 'elapsed_seconds' | 'log'
> & { action: { ref: string } }

/** As many as a list takes. */
const IDS_TOGETHER = 100
const attributes = ['status', 'start_timestamp', 'end_timestamp', 'elapsed_seconds', 'log', 'action.ref']

/**
 * Those of the ids that the caller may see and that are still there, in any order; a request for each hundred.
 *
 * @throws as `list`
 */
export async function executionStates(ids: readonly string[], signal?: AbortSignal): Promise<ExecutionState[]> {
  const found: ExecutionState[] = []
  for (let from = 0; from < ids.length; from += IDS_TOGETHER) {
    const some = ids.slice(from, from + IDS_TOGETHER)
    const query = { id: some, limit: some.length, include_attributes: attributes }
    found.push(...(await list<ExecutionState>('executions', query, signal)).items)
  }
  return found
}
