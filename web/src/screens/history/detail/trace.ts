import { list } from '../../../api/client.ts'
import { useLoaded } from '../../../api/load.ts'
import type { TraceRecord } from '../../../api/records.ts'

export type TraceName = Pick<TraceRecord, 'id' | 'trace_tag'>

/** The trace that an execution belongs to; undefined until it is loaded, and without the permission to see it. */
export function useTraceOf(executionId: string): TraceName | undefined {
  const { data } = useLoaded(
    async (signal) => {
      const query = { execution: executionId, limit: 1, include_attributes: 'trace_tag' }
      return (await list<TraceName>('traces', query, signal)).items[0]
    },
    [executionId],
  )
  return data
}
