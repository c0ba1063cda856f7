/** The output of an execution, live while it runs, any line of it however much there is. */
import type { JSX } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import { hrefOf, useLocation } from '../../router.ts'
import { Failure } from '../failure.tsx'
import { notify } from '../notices.tsx'
import { VirtualList, type VirtualListHandle } from '../virtual-list.tsx'
import { formatBytes } from '../size.ts'
import { LinePanel } from './line-panel.tsx'
import { isWithin, rangeOf, readLineRange, writeLineRange, type LineRange } from './line-range.ts'
import { downloadAddress, filters, outputSource, searchSource, textOfLines, type Filter } from './output-api.ts'
import { createOutputModel, type OutputModel, type OutputState } from './output-model.ts'
import { OutputRow } from './output-row.tsx'
import { createOutputSearch, placesOf, type OutputSearch, type SearchTerms } from './output-search.ts'
import { usePaneQuery, type PaneQuery } from './pane-query.ts'
import { SearchBar } from './search-bar.tsx'
import { shownLine, type Mark, type ShownLine } from './shown-line.ts'
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

/** The style sheet has the same. */
const ROW_HEIGHT = 20

export function OutputPane({ executionId, status, usesAddress = true }: OutputPaneProps): JSX.Element {
  const query = usePaneQuery(usesAddress)
  const filter = filters.find((one) => one === query.get('output_type')) ?? 'all'
  // Another execution, or other lines: everything begins anew.
  return (
    <Output key={`${executionId} ${filter}`} executionId={executionId} status={status} filter={filter} query={query} />
  )
}

interface OutputProps {
  executionId: string
  status: string | undefined
  filter: Filter
  query: PaneQuery
}

function Output({ executionId, status, filter, query }: OutputProps): JSX.Element {
  const redraw = useRedraw()
  const model = useOutput(executionId, filter, redraw)
  const list = useRef<VirtualListHandle>(null)
  const input = useRef<HTMLInputElement>(null)
  const { state, total } = model
  const isReady = state.about !== undefined
  const isComplete = state.phase === 'complete'
  const chosen = readLineRange(query.get('line'))
  const showsTimes = query.get('times') !== undefined
  const [opened, setOpened] = useState<number>()

  const [isFollowing, setIsFollowing] = useState(chosen === undefined)
  /** Lines that there were when it stopped following. */
  const [seen, setSeen] = useState(0)
  const topRow = useRef(0)
  function follow(): void {
    setIsFollowing(true)
    list.current?.scrollToEnd()
  }
  function pause(): void {
    if (isFollowing) setSeen(total)
    setIsFollowing(false)
  }
  useLayoutEffect(() => {
    if (isFollowing) list.current?.scrollToEnd()
  }, [isFollowing, total])
  useEffect(() => {
    if (chosen === undefined || !isReady) return
    pause()
    // What was clicked stays where it is.
    list.current?.showRow(chosen.first - 1)
  }, [chosen?.first, isReady])

  const terms: SearchTerms = {
    query: query.get('find') ?? '',
    matchesCase: query.get('find_case') !== undefined,
    isPattern: query.get('find_pattern') !== undefined,
  }
  const [current, setCurrent] = useState<number>()
  /** What is drawn. */
  const drawn = useRef({ first: 1, end: 1 })
  /** The line that somebody looks at: searches begin there. */
  function lineLookedAt(): number {
    const isSeen = current !== undefined && current >= drawn.current.first && current < drawn.current.end
    return isSeen ? current : Math.floor(topRow.current) + 1
  }
  function goTo(line: number | undefined): void {
    if (line === undefined) return
    setCurrent(line)
    pause()
    list.current?.showRow(line - 1)
  }
  // A search that is in the address is about all of it, and a line that is there as well is what is to be seen.
  const isFirst = useRef(true)
  const search = useSearch(
    executionId,
    filter,
    terms,
    isReady,
    () => ({ line: isFirst.current ? (chosen?.first ?? 1) : lineLookedAt(), total }),
    redraw,
  )
  const isFound = (search?.state.count ?? 0) > 0
  useEffect(() => {
    if (search === undefined) {
      if (isReady) isFirst.current = false
      setCurrent(undefined)
    } else if (isFound) {
      const from = isFirst.current ? 0 : lineLookedAt() - 1
      if (!isFirst.current || chosen === undefined) goTo(search.next(from, 1) ?? search.next(0, 1))
      isFirst.current = false
    } else setCurrent(undefined)
  }, [isFound, search, isReady])

  useEffect(() => {
    // What the browser finds is only what is drawn.
    const onKey = (event: KeyboardEvent): void => {
      const isFind =
        event.key.toLowerCase() === 'f' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey
      if (!isFind || document.activeElement === input.current || document.querySelector('dialog[open]') !== null) return
      event.preventDefault()
      input.current?.focus()
      input.current?.select()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])

  const [columns, setColumns] = useState(0)
  const widest = useRef(0)
  const measure = (): void => {
    if (widest.current > columns) setColumns(widest.current)
  }
  useLayoutEffect(measure)

  const hrefOfLine = useHrefOfLine(executionId, filter)
  const marksIn = (line: number) => (shown: ShownLine) => marksOf(search, line, shown)
  const showsMarks = filter === 'all' && (hasOutput(state, 'stderr') || hasOutput(state, 'other'))
  const showsHosts = model.hosts.size > 1
  const digits = `${Math.max(3, String(total).length)}ch`
  // As the style sheet has it.
  const gutter = [
    `${digits} + 16px`,
    ...(showsTimes ? ['12ch + 8px'] : []),
    ...(showsHosts ? ['14ch + 8px'] : []),
    ...(showsMarks ? ['3ch + 8px'] : []),
  ].join(' + ')

  if (state.phase === 'failed') return <Failure error={state.reason} onRetry={() => model.retry()} />
  if (!isReady) return <p class="loading">Loading output…</p>
  return (
    <section class="output" aria-label="Output" style={{ '--output-digits': digits }}>
      <div class="output-bar">
        <div class="output-choice" role="group" aria-label="Stream">
          {filters
            .filter((one) => one === 'all' || one === filter || hasOutput(state, one))
            .map((one) => (
              <button
                key={one}
                type="button"
                aria-pressed={one === filter}
                onClick={() => query.set({ output_type: one === 'all' ? undefined : one, line: undefined })}
              >
                {one}
              </button>
            ))}
        </div>
        {!isComplete && (
          <button
            type="button"
            aria-pressed={isFollowing}
            title="Scroll to new lines (End or f)"
            onClick={() => (isFollowing ? pause() : follow())}
          >
            Follow
          </button>
        )}
        <button
          type="button"
          aria-pressed={showsTimes}
          title="Show when each line was written"
          onClick={() => query.set({ times: showsTimes ? undefined : '1' }, { replace: true })}
        >
          Times
        </button>
        <State state={state} isFollowing={isFollowing} total={total} filter={filter} />
        <span class="spacer" />
        <GoToLine total={total} onLine={(line) => query.set({ line: String(line) })} />
        <a class="button" href={downloadAddress(executionId, filter)} download={fileName(executionId, filter)}>
          Download
        </a>
      </div>
      <div class="output-bar">
        <SearchBar
          input={input}
          terms={terms}
          search={search}
          current={current}
          onTerms={({ query: text, matchesCase, isPattern }) => {
            isFirst.current = false
            query.set(
              {
                find: text === '' ? undefined : text,
                find_case: matchesCase ? '1' : undefined,
                find_pattern: isPattern ? '1' : undefined,
              },
              { replace: true },
            )
          }}
          onStep={(direction) =>
            goTo(search?.next(current === undefined ? lineLookedAt() - 1 : lineLookedAt(), direction))
          }
          onLeave={() => list.current?.focus()}
        />
        {chosen !== undefined && (
          <Chosen
            executionId={executionId}
            filter={filter}
            range={chosen}
            total={total}
            onClear={() => query.set({ line: undefined }, { replace: true })}
          />
        )}
      </div>
      {state.about?.is_beginning_removed === true && (
        <p class="hint">The oldest output is deleted: its retention time is over. Line 1 is the first stored line.</p>
      )}
      {state.readFailure !== undefined && (
        <p class="problem" role="alert">
          Could not read lines, retrying: {state.readFailure}
        </p>
      )}
      {total === 0 ? (
        <p class="empty">{emptyWords(state, status, filter)}</p>
      ) : (
        <div class="output-body">
          <VirtualList
            class="output-lines"
            count={total}
            rowHeight={ROW_HEIGHT}
            label="Output lines"
            handle={list}
            width={`calc(${columns + 2}ch + ${gutter})`}
            row={(index) => {
              const number = index + 1
              const line = model.line(number)
              if (line !== undefined) widest.current = Math.max(widest.current, shownLine(line).width)
              return (
                <OutputRow
                  number={number}
                  line={line}
                  href={hrefOfLine(number)}
                  isChosen={isWithin(chosen, number)}
                  isCurrent={number === current}
                  showsTimes={showsTimes}
                  showsMarks={showsMarks}
                  showsHosts={showsHosts}
                  marks={marksIn(number)}
                  onOpen={() => setOpened(number)}
                  onChoose={(event) => {
                    if (!event.shiftKey || chosen === undefined) return
                    event.preventDefault()
                    query.set({ line: writeLineRange(rangeOf(chosen.first, number)) })
                  }}
                />
              )
            }}
            onRange={(first, end) => {
              drawn.current = { first: first + 1, end: end + 1 }
              model.show(first + 1, end + 1)
              measure()
            }}
            onScroll={({ topRow: row, isAtEnd }) => {
              const isUp = row < topRow.current
              topRow.current = row
              if (isAtEnd) setIsFollowing(true)
              else if (isUp) pause()
            }}
            onKeyDown={(event) => {
              const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey
              if (event.key === 'f' && isPlain) follow()
              else if (event.key === 'End') {
                // The browser would move to where the end was, which has moved on before it arrives.
                event.preventDefault()
                follow()
              } else if (event.key === 'Enter' && event.target === event.currentTarget) {
                const line = current ?? chosen?.first
                if (line !== undefined) setOpened(line)
              }
            }}
          />
          {!isFollowing && !isComplete && (
            <button type="button" class="primary output-jump" onClick={follow}>
              ↓ {total > seen ? `${(total - seen).toLocaleString()} new` : 'Go to end'}
            </button>
          )}
        </div>
      )}
      {opened !== undefined && opened <= total && (
        <LinePanel
          executionId={executionId}
          filter={filter}
          number={opened}
          total={total}
          onStep={(number) => {
            setOpened(number)
            pause()
            list.current?.showRow(number - 1)
          }}
          onClose={() => {
            setOpened(undefined)
            list.current?.focus()
          }}
        />
      )}
    </section>
  )
}

/** At most once a frame. */
function useRedraw(): () => void {
  const [, setVersion] = useState(0)
  const frame = useRef<number | undefined>(undefined)
  useEffect(
    () => () => {
      if (frame.current !== undefined) cancelAnimationFrame(frame.current)
    },
    [],
  )
  return useCallback(() => {
    frame.current ??= requestAnimationFrame(() => {
      frame.current = undefined
      setVersion((version) => version + 1)
    })
  }, [])
}

function useOutput(executionId: string, filter: Filter, redraw: () => void): OutputModel {
  const [model] = useState(() => createOutputModel(outputSource(executionId, filter), redraw))
  useEffect(() => () => model.stop(), [model])
  return model
}

/** Begins anew when something else is searched for. */
function useSearch(
  executionId: string,
  filter: Filter,
  terms: SearchTerms,
  isReady: boolean,
  begin: () => { line: number; total: number },
  redraw: () => void,
): OutputSearch | undefined {
  const [search, setSearch] = useState<OutputSearch>()
  const { query, matchesCase, isPattern } = terms
  useEffect(() => {
    if (query === '' || !isReady) {
      setSearch(undefined)
      return
    }
    const started = createOutputSearch(searchSource(executionId, filter), terms, begin(), redraw)
    setSearch(started)
    return () => started.end()
  }, [query, matchesCase, isPattern, isReady])
  return search
}

/** The address of a line, wherever it is shown. */
function useHrefOfLine(executionId: string, filter: Filter): (line: number) => string {
  const { path, query } = useLocation()
  const isHere = path[0] === 'history' && path[1] === executionId && path[2] === 'output'
  return (line) => {
    const kept = new URLSearchParams(isHere ? query : '')
    kept.set('line', String(line))
    if (filter !== 'all') kept.set('output_type', filter)
    return hrefOf(['history', executionId, 'output'], kept)
  }
}

function marksOf(search: OutputSearch | undefined, line: number, { text }: ShownLine): readonly Mark[] {
  if (search === undefined) return []
  const { terms } = search
  if (!terms.isPattern) return placesOf(text, terms)
  const found = search.textIn(line)
  return found === undefined ? [] : placesOf(text, { query: found, matchesCase: true }).slice(0, 1)
}

function State({
  state: { phase, reason, about },
  isFollowing,
  total,
  filter,
}: {
  state: OutputState
  isFollowing: boolean
  total: number
  filter: Filter
}): JSX.Element {
  const { stdout = 0, stderr = 0, other = 0 } = about?.bytes ?? {}
  const size = filter === 'all' ? stdout + stderr + other : (about?.bytes[filter] ?? 0)
  const words = {
    loading: 'Loading',
    live: isFollowing ? 'Live' : 'Live, paused',
    lost: 'Reconnecting',
    complete: 'Complete',
  }
  return (
    <span class="output-state" data-phase={phase}>
      <span role="status" title={reason}>
        {phase === 'failed' ? '' : words[phase]}
      </span>
      {total > 0 && (
        <span class="hint">
          {total.toLocaleString()} {total === 1 ? 'line' : 'lines'}
          {/* While it grows nobody counts its bytes. */}
          {phase === 'complete' && `, ${formatBytes(size)}`}
        </span>
      )}
    </span>
  )
}

function GoToLine({ total, onLine }: { total: number; onLine: (line: number) => void }): JSX.Element {
  const [typed, setTyped] = useState('')
  return (
    <form
      class="output-go"
      onSubmit={(event) => {
        event.preventDefault()
        const line = Number(typed.replaceAll(/[\s,.]/g, ''))
        if (Number.isInteger(line) && line >= 1) onLine(Math.min(line, Math.max(1, total)))
      }}
    >
      <input
        aria-label="Go to line"
        placeholder="Line"
        inputMode="numeric"
        autocomplete="off"
        maxLength={16}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </form>
  )
}

function Chosen({
  executionId,
  filter,
  range,
  total,
  onClear,
}: {
  executionId: string
  filter: Filter
  range: LineRange
  total: number
  onClear: () => void
}): JSX.Element {
  const [isBusy, setIsBusy] = useState(false)
  const isOne = range.first === range.last
  async function copy(): Promise<void> {
    setIsBusy(true)
    try {
      await navigator.clipboard.writeText(await textOfLines(executionId, filter, range.first, range.last))
      notify(isOne ? 'Line copied.' : 'Lines copied.')
    } catch (error) {
      notify(`Could not copy: ${messageOf(error)}`, 'failure')
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <span class="output-chosen">
      {isOne ? 'Line' : 'Lines'} {writeLineRange(range)}
      {range.first > total && <span class="problem"> (there are {total.toLocaleString()})</span>}
      <button type="button" class="output-option" disabled={isBusy || range.first > total} onClick={() => void copy()}>
        Copy
      </button>
      <button
        type="button"
        class="output-option"
        aria-label="Clear selection"
        title="Clear selection"
        onClick={onClear}
      >
        ×
      </button>
    </span>
  )
}

function hasOutput({ about }: OutputState, type: Filter): boolean {
  return type !== 'all' && about !== undefined && about.bytes[type] > 0
}

function fileName(executionId: string, filter: Filter): string {
  return filter === 'all' ? `${executionId}.txt` : `${executionId}.${filter}.txt`
}

function emptyWords({ phase, about }: OutputState, status: string | undefined, filter: Filter): string {
  if (about?.is_stored === false) {
    return 'The server stores no output: actionrunner.stream_output is off. See the result of the execution instead.'
  }
  if (filter !== 'all' && about !== undefined && Object.values(about.bytes).some((bytes) => bytes > 0)) {
    return `No output on ${filter} so far.`
  }
  if (phase !== 'complete') {
    return status === undefined || status === 'running'
      ? 'No output yet.'
      : `No output yet: the execution is ${status}.`
  }
  return 'No output: the action wrote nothing, or the retention time of its output is over.'
}
