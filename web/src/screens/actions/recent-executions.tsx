import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import { ApiError, list } from '../../api/client.ts'
import { userOf } from '../../api/execution.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { laterOf, summaryQuery, type ExecutionSummary } from '../../api/execution-summary.ts'
import { useLoaded } from '../../api/load.ts'
import { Failure } from '../../components/failure.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Elapsed, Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

const SHOWN = 8

/** The last ones of an action, as they come and change. */
export function RecentExecutions({ actionRef }: { actionRef: string }): JSX.Element {
  const { data, error, reload, set } = useLoaded(
    async (signal) =>
      (await list<ExecutionSummary>('executions', { action: actionRef, limit: SHOWN, ...summaryQuery }, signal)).items,
    [actionRef],
  )
  const known = useRef<ExecutionSummary[]>([])
  known.current = data ?? []
  useExecutionEvents({
    onOpen: reload,
    onExecution(execution, change) {
      if (execution.action.ref !== actionRef || data === undefined) return
      const rest = known.current.filter(({ id }) => id !== execution.id)
      const before = known.current.find(({ id }) => id === execution.id)
      const isNewest = change === 'create' || before !== undefined
      if (!isNewest) return
      const now = before === undefined ? execution : laterOf(before, execution)
      const next = change === 'delete' ? rest : [...rest, now]
      known.current = next.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, SHOWN)
      set(known.current)
    },
  })
  return (
    <section class="card" aria-label="Recent executions">
      <h2>Recent executions</h2>
      {error !== undefined && data === undefined && <NotListed error={error} onRetry={reload} />}
      {data?.length === 0 && <p class="hint">No executions yet. Run the action to see one here.</p>}
      {data !== undefined && data.length > 0 && (
        <>
          <ul class="list recent">
            {data.map((execution) => (
              <Recent key={execution.id} execution={execution} />
            ))}
          </ul>
          <a href={hrefOf(['history'], { action: actionRef })}>Show all</a>
        </>
      )}
    </section>
  )
}

/** Who may run an action need not be allowed to list executions: that is no failure. */
function NotListed({ error, onRetry }: { error: unknown; onRetry: () => void }): JSX.Element {
  if (error instanceof ApiError && error.status === 403) return <p class="hint">{error.message}</p>
  return <Failure error={error} onRetry={onRetry} />
}

function Recent({ execution }: { execution: ExecutionSummary }): JSX.Element {
  const { id, status, start_timestamp: start, end_timestamp: end, elapsed_seconds: seconds } = execution
  return (
    <li>
      <a href={hrefOf(['history', id])}>
        <StatusBadge status={status} />
        <span class="when">
          <Time at={start} />
        </span>
        <span class="hint">
          {userOf(execution)} · <Elapsed from={start} seconds={end === undefined ? undefined : (seconds ?? 0)} />
        </span>
      </a>
    </li>
  )
}
