/** One execution that is watched while it runs. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { change, get, isAbort } from './client.ts'
import { useExecutionEvents } from './execution-events.ts'
import { laterOf, type ExecutionSummary } from './execution-summary.ts'
import type { ExecutionContext, ExecutionRecord } from './records.ts'

/** Larger results are left out of the record: `result_size` says how large it is. */
export const MAX_RESULT_BYTES = 256 * 1024
/** The same of parameters, and `parameters_size`. */
const MAX_PARAMETERS_BYTES = 256 * 1024

/** Query of requests for a watched execution. */
export const executionQuery = { max_result_size: MAX_RESULT_BYTES, max_parameters_size: MAX_PARAMETERS_BYTES } as const

export interface WatchedExecution {
  record: ExecutionRecord
  /** Why it could not be asked for; what is shown may be old then. */
  error: unknown
  /** Loads it again. */
  readonly reload: () => void
}

/** @param first what is known of it already. Another id needs another component. */
export function useExecution(first: ExecutionRecord): WatchedExecution {
  const { id } = first
  const [record, setRecord] = useState(first)
  const [error, setError] = useState<unknown>()
  const controller = useRef<AbortController>(undefined)
  const latest = useRef(record)
  function accept(next: ExecutionRecord): void {
    latest.current = next
    setRecord(next)
  }

  function reload(): void {
    controller.current?.abort()
    const { signal } = (controller.current = new AbortController())
    load(signal).catch((failure: unknown) => {
      if (!isAbort(failure)) setError(failure)
    })
  }
  async function load(signal: AbortSignal): Promise<void> {
    const next = await get<ExecutionRecord>(`executions/${id}`, executionQuery, signal)
    accept(laterOf(latest.current, next))
    setError(undefined)
  }
  useEffect(() => () => controller.current?.abort(), [])
  useExecutionEvents({
    // What happened before the stream was open.
    onOpen: reload,
    onExecution(execution, change) {
      if (execution.id !== id || change === 'delete') return
      const hasResult = execution.result_size !== undefined && execution.result_size !== latest.current.result_size
      accept(withEvent(latest.current, execution))
      // Events bring none.
      if (hasResult) reload()
    },
  })
  return { record, error, reload }
}

/** With the values of an event; the others stay. */
export function withEvent(
  known: ExecutionRecord,
  { status, end_timestamp, elapsed_seconds, result_size, log, context, liveaction }: ExecutionSummary,
): ExecutionRecord {
  if (log.length < known.log.length) return known
  return {
    ...known,
    status,
    log,
    context: { ...known.context, ...context },
    liveaction: { ...known.liveaction, ...liveaction },
    ...(end_timestamp !== undefined && { end_timestamp }),
    ...(elapsed_seconds !== undefined && { elapsed_seconds }),
    ...(result_size !== undefined && { result_size }),
  }
}

/** @throws Error with what the server says, which refuses with status 200 (contract 03, 3.4) */
export async function cancelExecution(id: string): Promise<void> {
  const answer = await change<{ faultstring?: string }>('DELETE', `executions/${encodeURIComponent(id)}`)
  if (answer.faultstring !== undefined) throw new Error(answer.faultstring)
}

/** Of a workflow: its running tasks end, and no further ones start until it is resumed. @throws as `change` */
export async function pauseExecution(id: string): Promise<void> {
  await change('PUT', `executions/${encodeURIComponent(id)}`, { status: 'pausing' })
}

/** @throws as `change` */
export async function resumeExecution(id: string): Promise<void> {
  await change('PUT', `executions/${encodeURIComponent(id)}`, { status: 'resuming' })
}

/** Whether the execution of a runner is a workflow, with tasks and a graph. */
export function isWorkflowRunner(runner: string): boolean {
  return runner === 'orquesta' || runner === 'action-chain'
}

/** Who it runs as. */
export function userOf({ context: { user } }: { context: Pick<ExecutionContext, 'user'> }): string {
  return user
}
