/** One trace: everything an event caused, as a graph and as a table, while it grows. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { ApiError, messageOf } from '../../api/client.ts'
import { useTriggerTitles } from '../../api/trigger-titles.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Failure } from '../../components/failure.tsx'
import { useMedia } from '../../components/media.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'
import { formatPrecisely, durationOf, statusCounts } from './describe.ts'
import { buildForest } from './forest.ts'
import { Graph } from './graph.tsx'
import { MemberTable, NARROW_TABLE } from './member-table.tsx'
import { useTrace, type Part, type LoadedTrace } from './use-trace.ts'

export function TracePage({ id, query }: { id: string; query: URLSearchParams }): JSX.Element {
  const part: Part = query.get('part') === 'last' ? 'last' : 'first'
  const { trace, error, reload } = useTrace(id, part)
  if (trace !== undefined) return <Loaded trace={trace} part={part} query={query} />
  return (
    <div class="page traces">
      <a href={hrefOf(['traces'])}>← All traces</a>
      {error instanceof ApiError && error.status === 404 ? (
        <>
          <h1>Trace not found</h1>
          <p>
            No trace has the id <code>{id.slice(0, 200)}</code>, or retention deleted it. Search for it{' '}
            <a href={hrefOf(['traces'], { tag: id })}>by tag</a>.
          </p>
        </>
      ) : error !== undefined ? (
        <Failure error={error} onRetry={reload} />
      ) : (
        <p class="loading">Loading…</p>
      )}
    </div>
  )
}

function Loaded({ trace, part, query }: { trace: LoadedTrace; part: Part; query: URLSearchParams }): JSX.Element {
  const { head, members, total, isWhole, isLoading, problem } = trace
  const isNarrow = useMedia(NARROW_TABLE)
  const view = query.get('view') ?? (isNarrow ? 'table' : 'graph')
  const titleOf = useTriggerTitles(members.flatMap(({ kind, ref }) => (kind === 'trigger_instance' ? ref : [])))
  const named = useMemo(() => ({ ...trace, titleOf }), [trace, titleOf])
  const forest = useMemo(() => buildForest(members), [members])
  const address = (more: Record<string, string | undefined>): string =>
    hrefOf(['traces', head.id], { view: query.get('view') ?? undefined, part: query.get('part') ?? undefined, ...more })
  return (
    <div class="page fill traces trace">
      <div class="page-head">
        <a href={hrefOf(['traces'])}>← All traces</a>
        <h1>{head.trace_tag}</h1>
      </div>
      <Facts trace={trace} />
      {problem !== undefined && (
        <p class="hint" role="status">
          Could not load all of the trace: {messageOf(problem)}
        </p>
      )}
      {!isLoading && !isWhole && (
        <p class="trace-cut" role="status">
          This trace has {total.toLocaleString()} members. Showing the {part} {members.length.toLocaleString()}.{' '}
          <a href={address({ part: part === 'first' ? 'last' : undefined })}>
            Show the {part === 'first' ? 'last' : 'first'} members
          </a>
        </p>
      )}
      <nav class="tabs" aria-label="Views">
        {(['graph', 'table'] as const).map((name) => (
          <a key={name} href={address({ view: name })} aria-current={view === name ? 'page' : undefined}>
            {name === 'graph' ? 'Graph' : 'Table'}
          </a>
        ))}
      </nav>
      {members.length === 0 ? (
        <p class="empty">{isLoading ? 'Loading…' : 'No members left: retention deleted them.'}</p>
      ) : view === 'table' ? (
        <MemberTable trace={named} forest={forest} />
      ) : (
        <Graph trace={named} forest={forest} />
      )}
    </div>
  )
}

function Facts({ trace }: { trace: LoadedTrace }): JSX.Element {
  const { head, total, isLoading } = trace
  const counts = statusCounts(trace)
  const isRunning = [...trace.executions.values()].some(({ end_timestamp: end }) => end === undefined)
  const length = durationOf(trace, useNow(isRunning ? 1000 : 60_000))
  return (
    <dl class="trace-facts">
      <div>
        <dt>Started</dt>
        <dd>
          <Time at={head.start_timestamp} />, {isRunning ? 'running for' : 'lasted'} {formatPrecisely(length)}
        </dd>
      </div>
      <div>
        <dt>Members</dt>
        <dd>
          <span role="status">
            {total.toLocaleString()}
            {isLoading && ' …'}
          </span>
        </dd>
      </div>
      <div>
        <dt>Executions</dt>
        <dd class="trace-counts">
          {counts.length === 0 && <span class="hint">none</span>}
          {counts.map(({ status, count }) => (
            <span key={status}>
              {count.toLocaleString()} <StatusBadge status={status} />
            </span>
          ))}
        </dd>
      </div>
      <div>
        <dt>Id</dt>
        <dd>
          <code>{head.id}</code> <CopyButton text={head.id} title="Copy id" />
        </dd>
      </div>
    </dl>
  )
}
