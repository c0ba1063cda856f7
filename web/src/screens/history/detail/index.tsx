/** One execution with its views and actions. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get, messageOf } from '../../../api/client.ts'
import { isFinalStatus } from '../../../api/execution-status.ts'
import { cancelExecution, executionQuery, isWorkflowRunner, useExecution } from '../../../api/execution.ts'
import { useLoaded } from '../../../api/load.ts'
import type { ExecutionRecord } from '../../../api/records.ts'
import { CopyButton } from '../../../components/copy-button.tsx'
import { Failure } from '../../../components/failure.tsx'
import { notify } from '../../../components/notices.tsx'
import { OutputPane } from '../../../components/output/output-pane.tsx'
import { StatusBadge } from '../../../components/status-badge.tsx'
import { Elapsed } from '../../../components/time.tsx'
import { hrefOf, navigate } from '../../../router.ts'
import { addressOfFilter, historyFilterOf } from '../filters.ts'
import { Children } from './children.tsx'
import { General } from './general.tsx'
import { Pause } from './pause.tsx'
import { Raw } from './raw.tsx'
import { Rerun } from './rerun.tsx'
import { Timeline } from './timeline.tsx'
import { useTraceOf } from './trace.ts'
import { Workflow } from './workflow.tsx'
import './detail.css'

export interface DetailProps {
  /** Or `last`. */
  id: string
  tab: string
  query: URLSearchParams
  /** The list stands beside it. */
  isBeside: boolean
}

const tabs = [
  { name: 'general', title: 'General' },
  { name: 'workflow', title: 'Workflow' },
  { name: 'output', title: 'Output' },
  { name: 'timeline', title: 'Timeline' },
  { name: 'children', title: 'Children' },
  { name: 'raw', title: 'Raw' },
] as const

export default function Detail({ id, tab, query, isBeside }: DetailProps): JSX.Element {
  const { data, error, reload } = useLoaded(
    (signal) => get<ExecutionRecord>(`executions/${encodeURIComponent(id)}`, executionQuery, signal),
    [id],
  )
  useEffect(() => {
    // The address is to mean the same tomorrow.
    if (id === 'last' && data !== undefined) navigate(hrefOf(['history', data.id, tab], query), { replace: true })
  }, [data])
  const back = hrefOf(['history'], addressOfFilter(historyFilterOf(query)))
  if (data !== undefined && data.id === (id === 'last' ? data.id : id)) {
    return <Execution key={data.id} first={data} tab={tab} query={query} back={back} isBeside={isBeside} />
  }
  return (
    <section class="execution-detail" aria-label="Execution">
      {error === undefined ? (
        <p class="loading">Loading…</p>
      ) : (
        <Missing id={id} error={error} back={back} onRetry={reload} />
      )}
    </section>
  )
}

function Missing({
  id,
  error,
  back,
  onRetry,
}: {
  id: string
  error: unknown
  back: string
  onRetry: () => void
}): JSX.Element {
  const isNone = id === 'last' && error instanceof ApiError && error.status === 400
  if (isNone) {
    return (
      <>
        <h1>No executions yet</h1>
        <p>
          The last execution does not exist: no action has run.{' '}
          <a href={hrefOf(['actions'])}>Choose an action to run</a>
        </p>
      </>
    )
  }
  if (!(error instanceof ApiError) || error.status !== 404) return <Failure error={error} onRetry={onRetry} />
  return (
    <>
      <h1>Execution not found</h1>
      <p>
        The server has no execution with the id <code class="long">{id}</code>. Retention may have deleted it (
        <code>garbagecollector.action_executions_ttl</code>), or it belongs to another server.
      </p>
      <p>
        <a href={back}>Open the history</a>
        {/^[0-9a-f]{12,23}$/.test(id) && (
          <>
            {' · '}
            <a href={hrefOf(['history'], { q: id })}>Search for ids that begin like this</a>
          </>
        )}
      </p>
    </>
  )
}

interface ExecutionProps {
  first: ExecutionRecord
  tab: string
  query: URLSearchParams
  back: string
  isBeside: boolean
}

function Execution({ first, tab, query, back, isBeside }: ExecutionProps): JSX.Element {
  const { record, error, reload } = useExecution(first)
  const { id, status, action, start_timestamp: start, elapsed_seconds: seconds, web_url: address } = record
  const trace = useTraceOf(id)
  const [isRerun, setIsRerun] = useState(false)
  const views = isWorkflowRunner(record.runner.name) ? tabs : tabs.filter(({ name }) => name !== 'workflow')
  const shown = views.find(({ name }) => name === tab)
  const filter = addressOfFilter(historyFilterOf(query))

  useEffect(() => {
    const before = document.title
    document.title = `${action.ref} ${status} · svc`
    return () => {
      document.title = before
    }
  }, [action.ref, status])

  return (
    <section class="execution-detail" aria-label="Execution">
      <header class="execution-head">
        <div class="page-head">
          {isBeside ? null : (
            <a href={back} class="back">
              ← History
            </a>
          )}
          <h1>
            <a href={hrefOf(['actions', action.ref])}>{action.ref}</a>
          </h1>
          <span role="status">
            <StatusBadge status={status} />
          </span>
          <span class="hint">
            <Elapsed from={start} seconds={isFinalStatus(status) ? (seconds ?? 0) : undefined} />
          </span>
          <span class="spacer" />
          <div class="buttons">
            <Pause record={record} onDone={reload} />
            <Cancel record={record} onDone={reload} />
            <button type="button" onClick={() => setIsRerun(true)}>
              Re-run
            </button>
            {trace !== undefined && (
              <a class="button" href={hrefOf(['traces', trace.id])}>
                Trace
              </a>
            )}
            {isBeside && (
              <a class="button quiet" href={back} aria-label="Close" title="Close details">
                ×
              </a>
            )}
          </div>
        </div>
        <div class="execution-id">
          <code>{id}</code>
          <CopyButton text={id} title="Copy id" />
          <CopyButton text={address} title="Copy link" />
        </div>
        <nav class="tabs" aria-label="Execution views">
          {views.map(({ name, title }) => (
            <a key={name} href={hrefOf(['history', id, name], filter)} aria-current={name === tab ? 'page' : undefined}>
              {title}
            </a>
          ))}
        </nav>
      </header>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      <div class="execution-part" data-part={tab}>
        {shown === undefined ? (
          <p class="empty">
            An execution has no view “{tab.slice(0, 100)}”. <a href={hrefOf(['history', id, 'general'])}>General</a>
          </p>
        ) : (
          <Part name={shown.name} record={record} trace={trace} query={query} onChange={reload} />
        )}
      </div>
      {isRerun && <Rerun record={record} query={query} onClose={() => setIsRerun(false)} />}
    </section>
  )
}

interface PartProps {
  name: (typeof tabs)[number]['name']
  record: ExecutionRecord
  trace: ReturnType<typeof useTraceOf>
  query: URLSearchParams
  onChange: () => void
}

function Part({ name, record, trace, query, onChange }: PartProps): JSX.Element {
  switch (name) {
    case 'general':
      return <General record={record} trace={trace} onChange={onChange} />
    case 'workflow':
      return <Workflow record={record} query={query} />
    case 'output':
      return <OutputPane executionId={record.id} status={record.status} />
    case 'timeline':
      return <Timeline record={record} />
    case 'children':
      return <Children record={record} />
    case 'raw':
      return <Raw record={record} />
  }
}

function Cancel({
  record: { id, status },
  onDone,
}: {
  record: ExecutionRecord
  onDone: () => void
}): JSX.Element | null {
  const [isBusy, setIsBusy] = useState(false)
  if (isFinalStatus(status) || status === 'canceling') return null
  async function cancel(): Promise<void> {
    setIsBusy(true)
    try {
      await cancelExecution(id)
    } catch (error) {
      notify(`Could not cancel the execution: ${messageOf(error)}`, 'failure')
    }
    setIsBusy(false)
    onDone()
  }
  return (
    <button
      type="button"
      class="danger"
      disabled={isBusy || status === 'pending'}
      title={status === 'pending' ? 'A pending execution cannot be canceled: answer it instead' : undefined}
      onClick={() => void cancel()}
    >
      {isBusy ? 'Canceling…' : 'Cancel'}
    </button>
  )
}
