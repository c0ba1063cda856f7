/** One execution that is watched while it runs. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, isAbort } from './client.ts'
import { useExecutionEvents } from './execution-events.ts'
import type { ExecutionRecord } from './records.ts'

/** Larger results are left out of the record: `result_size` says how large it is. */
export const MAX_RESULT_BYTES = 256 * 1024

export interface WatchedExecution {
  record: ExecutionRecord
  /** Why it could not be asked for; what is shown may be old then. */
  error: unknown
  /** Asks for it anew. */
  readonly reload: () => void
}

/** @param first what is known of it already. Another id needs another component. */
export function useExecution(first: ExecutionRecord): WatchedExecution {
  const { id } = first
  const [record, setRecord] = useState(first)
  const [error, setError] = useState<unknown>()
  const controller = useRef<AbortController>(undefined)
  const accept = (next: ExecutionRecord): void => setRecord((known) => laterOf(known, next))

  function reload(): void {
    controller.current?.abort()
    const { signal } = (controller.current = new AbortController())
    load(signal).catch((failure: unknown) => {
      if (!isAbort(failure)) setError(failure)
    })
  }
  async function load(signal: AbortSignal): Promise<void> {
    const next = await get<ExecutionRecord>(`executions/${id}`, { max_result_size: MAX_RESULT_BYTES }, signal)
    accept(next)
    setError(undefined)
  }
  useEffect(() => () => controller.current?.abort(), [])
  useExecutionEvents({
    // What happened before the stream was open.
    onOpen: reload,
    onExecution(execution, change) {
      if (execution.id === id && change !== 'delete') accept(withBoundedResult(execution))
    },
  })
  return { record, error, reload }
}

/** Answers and events may cross: an execution that has been in more statuses is the later one. */
export function laterOf<T extends Pick<ExecutionRecord, 'log'>>(a: T, b: T): T {
  return b.log.length >= a.log.length ? b : a
}

/** Events carry the whole result. */
function withBoundedResult(execution: ExecutionRecord): ExecutionRecord {
  const { result: _, ...rest } = execution
  return (execution.result_size ?? 0) > MAX_RESULT_BYTES ? rest : execution
}

/** Who it runs as. */
export function userOf({ context: { user } }: Pick<ExecutionRecord, 'context'>): string {
  return typeof user === 'string' ? user : ''
}
