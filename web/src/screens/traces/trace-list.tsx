/** Traces, the newest first, found by tag, id, or by something that belongs to them. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { list, messageOf } from '../../api/client.ts'
import type { TraceRecord, TraceSummary } from '../../api/records.ts'
import { useTriggerTitles } from '../../api/trigger-titles.ts'
import { Failure } from '../../components/failure.tsx'
import { useMedia } from '../../components/media.ts'
import { Time } from '../../components/time.tsx'
import { useLiveList } from '../../components/use-live-list.ts'
import { VirtualList } from '../../components/virtual-list.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import { kindTitles, type TitleOf } from './describe.ts'
import { traceFilterOf, isTraceFiltered, traceQueryOf, type TraceFilter } from './tag-search.ts'
import { writeJson } from '../../json.ts'

type Listed = Pick<TraceRecord, 'id' | 'trace_tag' | 'start_timestamp'> & TraceSummary

const attributes = ['trace_tag', 'start_timestamp', 'origin', 'component_count']
/** At most so many are counted. */
const MAX_COUNTED = 1000
const WIDE_ROW = 40
const NARROW_ROW = 72

const memberFilters = [
  { name: 'execution', title: 'Execution id' },
  { name: 'rule', title: 'Rule id' },
  { name: 'trigger_instance', title: 'Trigger instance id' },
] as const satisfies readonly { name: keyof TraceFilter; title: string }[]

export function TraceList({ query }: { query: URLSearchParams }): JSX.Element {
  const filter = useMemo(() => traceFilterOf(query), [query.toString()])
  const isNarrow = useMedia('(max-width: 800px)')
  const rows = useLiveList<Listed>({
    load: (place, signal) =>
      list<Listed>('traces', { ...traceQueryOf(filter), include_attributes: attributes, ...place }, signal),
    key: writeJson(filter),
  })
  const { count, error, problem, reload } = rows
  // What stands in the rows that are drawn now.
  const [, setRange] = useState('')
  const titleOf = useTriggerTitles(rows.shown().flatMap(({ origin }) => origin?.ref ?? []))

  return (
    <div class="page fill traces">
      <div class="page-head">
        <h1>Traces</h1>
        {count !== undefined && (
          <span class="hint">{count === 1 ? '1 trace' : `${count.toLocaleString()} traces`}</span>
        )}
      </div>
      <Filters key={writeJson({ ...filter, tag: '' })} filter={filter} />
      {problem !== undefined && (
        <p class="hint" role="status">
          Could not load newer traces: {messageOf(problem)}
        </p>
      )}
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {count === undefined && error === undefined && <p class="loading">Loading…</p>}
      {count === 0 && <Nothing filter={filter} />}
      {count !== undefined && count > 0 && (
        <VirtualList
          count={count}
          rowHeight={isNarrow ? NARROW_ROW : WIDE_ROW}
          label="Traces, newest first"
          {...rows.drawn}
          onRange={(first, end) => {
            rows.show(first, end)
            setRange(`${first} ${end}`)
          }}
          row={(index) => <Row trace={rows.rowAt(index)} titleOf={titleOf} />}
        />
      )}
    </div>
  )
}

function Filters({ filter }: { filter: TraceFilter }): JSX.Element {
  const given = memberFilters.some(({ name }) => filter[name] !== '')
  return (
    <form class="trace-filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Tag prefix or trace id"
        placeholder="Tag prefix or id"
        value={filter.tag}
        spellcheck={false}
        onInput={(event) => setQuery({ tag: event.currentTarget.value }, { replace: true })}
      />
      <details open={given}>
        <summary>By member</summary>
        <div class="toolbar">
          {memberFilters.map(({ name, title }) => (
            <label key={name} class="field">
              <span class="label">{title}</span>
              <input
                value={filter[name]}
                spellcheck={false}
                autocomplete="off"
                onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
              />
            </label>
          ))}
          {isTraceFiltered(filter) && (
            <a class="button" href={hrefOf(['traces'])}>
              All traces
            </a>
          )}
        </div>
      </details>
    </form>
  )
}

function Nothing({ filter }: { filter: TraceFilter }): JSX.Element {
  if (isTraceFiltered(filter)) {
    return (
      <p class="empty">
        No traces match. The search compares the beginning of tags and is case-sensitive.{' '}
        <a href={hrefOf(['traces'])}>Show all traces</a>
      </p>
    )
  }
  return (
    <p class="empty">
      No traces yet. A trace begins with a <a href={hrefOf(['webhooks'])}>webhook</a>request, a timer or an{' '}
      <a href={hrefOf(['actions'])}>action</a> run, and holds everything it causes.
    </p>
  )
}

function Row({ trace, titleOf }: { trace: Listed | undefined; titleOf: TitleOf }): JSX.Element {
  if (trace === undefined) return <div class="trace-row hint">…</div>
  const { id, trace_tag: tag, start_timestamp: at, origin, component_count: count } = trace
  return (
    <a class="trace-row" href={hrefOf(['traces', id])}>
      <span class="when">
        <Time at={at} isShort />
      </span>
      <span class="tag" title={tag}>
        {tag}
      </span>
      <span class="origin" title={origin?.ref}>
        {origin === null ? '' : `${kindTitles[origin.kind]} ${titleOf(origin.ref) ?? origin.ref}`}
      </span>
      <span class="number">
        {count === 1 ? '1 member' : `${count.toLocaleString()}${count === MAX_COUNTED ? ' or more' : ''} members`}
      </span>
    </a>
  )
}
