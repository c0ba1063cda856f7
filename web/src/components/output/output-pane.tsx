/** The output of an execution, live while it runs, any line of it however much there is. */
import type { JSX } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { addressOf, get, messageOf } from '../../api/client.ts'
import { follow } from '../../api/events.ts'
import type { OutputLine, OutputLines, OutputType } from '../../api/records.ts'
import { hrefOf, setQuery, useLocation } from '../../router.ts'
import { Failure } from '../failure.tsx'
import { VirtualList, type VirtualListHandle } from '../virtual-list.tsx'
import type { LiveRecord } from './output-lines.ts'
import { createOutputModel, type OutputModel, type OutputSource, type OutputState } from './output-model.ts'
import './output.css'

export interface OutputPaneProps {
  executionId: string
  /** Of the execution, for words about output that is not there yet. */
  status?: string
  /**
   * What is shown of it is told by the address, and told to it. Default true; false where the query of the address means
   * something else.
   */
  usesAddress?: boolean
}

type Filter = OutputType | 'all'

const filters: readonly Filter[] = ['all', 'stdout', 'stderr', 'other']
const ROW_HEIGHT = 20

export function OutputPane({ executionId, status, usesAddress = true }: OutputPaneProps): JSX.Element {
  const { query } = useLocation()
  const [own, setOwn] = useState<Filter>('all')
  const filter = usesAddress ? (filters.find((one) => one === query.get('output_type')) ?? 'all') : own
  // Another execution, or other lines: everything begins anew.
  return (
    <Output
      key={`${executionId} ${filter}`}
      executionId={executionId}
      status={status}
      filter={filter}
      line={usesAddress ? query.get('line') : null}
      onFilter={(one) => {
        if (usesAddress) setQuery({ output_type: one === 'all' ? undefined : one, line: undefined })
        else setOwn(one)
      }}
    />
  )
}

function Output({
  executionId,
  status,
  filter,
  line,
  onFilter,
}: {
  executionId: string
  status: string | undefined
  filter: Filter
  /** Of the address. */
  line: string | null
  onFilter: (filter: Filter) => void
}): JSX.Element {
  const { path, query } = useLocation()
  const model = useOutput(executionId, filter)
  const list = useRef<VirtualListHandle>(null)
  const topRowBefore = useRef(0)
  const chosen = lineRange(line)
  const [isFollowing, setIsFollowing] = useState(chosen === undefined)
  const { state, total } = model
  const isReady = state.about !== undefined

  useLayoutEffect(() => {
    if (isFollowing) list.current?.scrollToEnd()
  }, [isFollowing, total])
  useEffect(() => {
    if (chosen === undefined || !isReady) return
    setIsFollowing(false)
    list.current?.scrollToRow(Math.max(0, chosen.first - 4))
  }, [chosen?.first, isReady])

  const hrefOfLine = (number: number): string => {
    const here = path[0] === 'history' && path[1] === executionId && path[2] === 'output'
    const kept = new URLSearchParams(here ? query : {})
    kept.set('line', String(number))
    if (filter !== 'all') kept.set('output_type', filter)
    return hrefOf(['history', executionId, 'output'], kept)
  }

  if (state.phase === 'failed') return <Failure error={state.reason} onRetry={() => model.retry()} />
  if (!isReady) return <p class="loading">Loading the output…</p>
  return (
    <section class="output" aria-label="Output">
      <div class="toolbar">
        <div class="output-filter" role="group" aria-label="What is shown">
          {filters
            .filter((one) => one === 'all' || one === filter || hasOutput(state, one))
            .map((one) => (
              <button key={one} type="button" aria-pressed={one === filter} onClick={() => onFilter(one)}>
                {one}
              </button>
            ))}
        </div>
        <button type="button" aria-pressed={isFollowing} onClick={() => setIsFollowing(!isFollowing)}>
          Follow
        </button>
        <span class="hint" role="status">
          {words(state, status)}
        </span>
        <a class="button" href={downloadOf(executionId, filter)} download={`${executionId}.txt`}>
          Download
        </a>
      </div>
      {total === 0 ? (
        <p class="empty">{emptyWords(state, status)}</p>
      ) : (
        <VirtualList
          class="output-lines"
          count={total}
          rowHeight={ROW_HEIGHT}
          label="Lines of the output"
          handle={list}
          row={(index) => (
            <Row
              number={index + 1}
              line={model.line(index + 1)}
              href={hrefOfLine(index + 1)}
              isChosen={chosen !== undefined && index + 1 >= chosen.first && index + 1 <= chosen.last}
            />
          )}
          onRange={(first, end) => model.show(first + 1, end + 1)}
          onScroll={({ topRow, isAtEnd }) => {
            const isUp = topRow < topRowBefore.current - 0.5
            topRowBefore.current = topRow
            if (isAtEnd) setIsFollowing(true)
            else if (isUp) setIsFollowing(false)
          }}
        />
      )}
    </section>
  )
}

function Row({
  number,
  line,
  href,
  isChosen,
}: {
  number: number
  line: OutputLine | undefined
  href: string
  isChosen: boolean
}): JSX.Element {
  return (
    <div class="output-line" data-chosen={isChosen ? '' : undefined}>
      <a class="output-number" href={href}>
        {number}
      </a>
      <span class="output-text">
        {line === undefined ? (
          <span class="hint">…</span>
        ) : (
          line.parts.map(({ output_type: type, data }, i) => (
            <span key={i} data-type={type}>
              {data}
            </span>
          ))
        )}
      </span>
    </div>
  )
}

/** A model of its own for each execution and filter; drawn anew at most once a frame. */
function useOutput(executionId: string, filter: Filter): OutputModel {
  const [, setVersion] = useState(0)
  const frame = useRef<number | undefined>(undefined)
  const redraw = useCallback(() => {
    frame.current ??= requestAnimationFrame(() => {
      frame.current = undefined
      setVersion((version) => version + 1)
    })
  }, [])
  const [model] = useState(() => createOutputModel(sourceOf(executionId, filter), redraw))
  useEffect(
    () => () => {
      model.stop()
      if (frame.current !== undefined) cancelAnimationFrame(frame.current)
    },
    [model],
  )
  return model
}

function sourceOf(executionId: string, filter: Filter): OutputSource {
  const query = { output_type: filter === 'all' ? undefined : filter }
  return {
    read: (range, signal) => get<OutputLines>(`executions/${executionId}/output/lines`, { ...query, ...range }, signal),
    follow: (lastSeq, listener) =>
      follow(`stream/v1/executions/${executionId}/output`, {
        query,
        lastEventId: `${executionId}/${lastSeq}`,
        endEvent: 'EOF',
        onEvent: ({ name, data }) => {
          if (name === 'svc.execution.output__create') listener.onRecord(JSON.parse(data) as LiveRecord) // what these events carry
        },
        onConnection: (connection, reason) => listener.onConnection(connection, reason),
      }),
    messageOf,
  }
}

function downloadOf(executionId: string, filter: Filter): string {
  return addressOf(`api/v1/executions/${executionId}/output`, { output_type: filter === 'all' ? undefined : filter })
    .href
}

function hasOutput({ about }: OutputState, type: OutputType): boolean {
  return about !== undefined && about.bytes[type] > 0
}

function lineRange(text: string | null): { first: number; last: number } | undefined {
  const match = /^(\d{1,12})(?:-(\d{1,12}))?$/.exec(text ?? '')
  if (match?.[1] === undefined) return undefined
  const [first, last] = [Number(match[1]), Number(match[2] ?? match[1])]
  return { first: Math.min(first, last), last: Math.max(first, last) }
}

function words({ phase, reason }: OutputState, status: string | undefined): string {
  if (phase === 'lost') return `Reconnecting: ${reason ?? ''}`
  if (phase === 'complete') return 'Complete'
  if (phase === 'loading') return 'Loading…'
  return status === undefined || status === 'running' ? 'Live' : `Live, ${status}`
}

function emptyWords({ phase, about }: OutputState, status: string | undefined): string {
  if (about?.is_stored === false) {
    return 'This server stores no output (actionrunner.stream_output is off); the result has what the action wrote.'
  }
  if (phase !== 'complete') return status === 'running' ? 'No output yet.' : 'No output yet: it has not begun to run.'
  return 'No output is stored: nothing was written, or it has been removed, since output is kept for a limited time.'
}
