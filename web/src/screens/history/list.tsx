/** The list of executions: rows, keyboard, what is selected, and what can be done with that. */
import type { JSX } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import { session } from '../../api/session.ts'
import { Failure } from '../../components/failure.tsx'
import { useMedia } from '../../components/media.ts'
import { VirtualList, type VirtualListHandle } from '../../components/virtual-list.tsx'
import { hrefOf, navigate } from '../../router.ts'
import { useStore } from '../../store.ts'
import { CancelSelected } from './cancel.tsx'
import { FilterBar } from './filter-bar.tsx'
import { addressOfFilter, historyFilterOf, isHistoryFiltered, type HistoryFilter } from './filters.ts'
import type { ListModel } from './list-model.ts'
import { LIST_PAGE_SIZE } from './list-rows.ts'
import { HistoryRow } from './row.tsx'
import { useHistory, type History } from './use-list.ts'

const ROW_HEIGHT = 36
const COMPACT_ROW_HEIGHT = 60
/** Rows stay where they are while the pointer moves over them, so that a click meets what was aimed at. */
const HOLD_MS = 800
/** To be cancelled at once. */
const MAX_SELECTED = 500

export interface HistoryListProps {
  query: URLSearchParams
  /** Id of the execution that is shown beside it. */
  openId: string | undefined
}

export function HistoryList({ query, openId }: HistoryListProps): JSX.Element {
  const filter = useMemo(() => historyFilterOf(query), [query.toString()])
  const history = useHistory(filter)
  const { model } = history
  const { state } = model
  const isSmall = useMedia('(max-width: 900px)')
  const isNarrow = isSmall || openId !== undefined
  const [selected, setSelected] = useState<ReadonlyMap<string, ExecutionSummary>>(new Map())
  // What is not in the list is not to be cancelled unseen.
  useEffect(() => setSelected(new Map()), [history])

  return (
    <section class="history-list" aria-label="Executions" data-narrow={isNarrow ? '' : undefined}>
      <div class="page-head">
        <h1>History</h1>
        <span class="hint">{countText(state.count, history.hasMore)}</span>
        <Newer history={history} />
      </div>
      <FilterBar filter={filter} isNarrow={isNarrow} />
      <CancelSelected
        selected={[...selected.values()].map((execution) => model.find(execution.id) ?? execution)}
        onClear={() => setSelected(new Map())}
      />
      {state.error !== undefined && <Failure error={state.error} onRetry={() => model.retry()} />}
      {state.count === 0 ? (
        <Nothing filter={filter} />
      ) : state.count === undefined && state.error !== undefined ? null : (
        <Rows
          key={history.key}
          history={history}
          filter={filter}
          openId={openId}
          isNarrow={isNarrow}
          selected={selected}
          onSelect={setSelected}
        />
      )}
    </section>
  )
}

/** @param hasMore there are older ones, which a search of outputs has not looked for */
function countText(count: number | undefined, hasMore: boolean): string {
  if (count === undefined) return ''
  if (hasMore) return `The newest ${count.toLocaleString()} executions with this output`
  return count === 1 ? '1 execution' : `${count.toLocaleString()} executions`
}

/** Brings what has come since to be seen. */
function Newer({ history }: { history: History }): JSX.Element | null {
  const { waitingCount, hasMoreWaiting, isStale } = history.model.state
  if (waitingCount === 0 && !hasMoreWaiting && !isStale) return null
  return (
    <button
      type="button"
      class="newer"
      onClick={() => {
        history.scrollToTop()
        if (isStale) history.model.refresh()
        else history.model.flush()
      }}
    >
      {waitingCount > 0 ? `↑ ${waitingCount}${hasMoreWaiting ? ' or more' : ''} new` : '↑ The list has changed'}
    </button>
  )
}

function Nothing({ filter }: { filter: HistoryFilter }): JSX.Element {
  const { user } = useStore(session.state)
  if (!isHistoryFiltered(filter)) {
    const seesAll = user?.hasAccessControl !== true || user.isAdmin
    return (
      <p class="empty">
        {seesAll ? 'No executions yet.' : 'No executions that you may see.'}{' '}
        <a href={hrefOf(['actions'])}>Run an action</a>, or create a <a href={hrefOf(['rules'])}>rule</a> that runs one
        on an event.
      </p>
    )
  }
  const word = /^\S+$/.test(filter.search) ? filter.search : undefined
  return (
    <div class="empty">
      <p>No executions match the filters.</p>
      {filter.output !== '' && <p>Stored output was searched, in which secrets are masked.</p>}
      <p>
        <a href={hrefOf(['history'])}>Show all executions</a>
        {!filter.hasChildren && filter.parent === '' && (
          <>
            {' · '}
            <a href={hrefOf(['history'], addressOfFilter({ ...filter, hasChildren: true }))}>
              Include child executions
            </a>
          </>
        )}
        {word !== undefined && (
          <>
            {' · '}
            <a href={hrefOf(['traces'], { tag: word })}>Search for a trace with the tag “{word.slice(0, 100)}”</a>
          </>
        )}
      </p>
    </div>
  )
}

interface RowsProps {
  history: History
  filter: HistoryFilter
  openId: string | undefined
  isNarrow: boolean
  selected: ReadonlyMap<string, ExecutionSummary>
  onSelect: (selected: ReadonlyMap<string, ExecutionSummary>) => void
}

function Rows({ history, filter, openId, isNarrow, selected, onSelect }: RowsProps): JSX.Element {
  const { model } = history
  const list = useRef<VirtualListHandle>(null)
  const grid = useRef<HTMLDivElement>(null)
  const count = model.state.count ?? LIST_PAGE_SIZE
  const [active, setActive] = useState<ActiveRow>()
  const [hasFocus, setHasFocus] = useState(false)
  const [isHeld, hold] = useHold()
  const [isAtTop, setIsAtTop] = useState(history.topRow < 1)
  const shownRows = useRef(10)

  // The row that the keyboard is at is that of an execution, wherever it moves to.
  const activeIndex = active === undefined ? undefined : Math.min(indexOf(model, active), count - 1)
  const isReading = hasFocus && activeIndex !== undefined && activeIndex > 0
  useLayoutEffect(() => model.setLive(isAtTop && !isHeld && !isReading), [model, isAtTop, isHeld, isReading])

  useLayoutEffect(() => {
    history.scrollToTop = () => {
      list.current?.scrollToRow(0)
      setActive(undefined)
    }
    return () => (history.scrollToTop = () => undefined)
  }, [history])
  const isCounted = model.state.count !== undefined
  const rowHeight = isNarrow ? COMPACT_ROW_HEIGHT : ROW_HEIGHT
  // From before the rows were drawn again.
  const { topRow } = history
  useLayoutEffect(() => {
    const openIndex = openId === undefined ? undefined : model.indexOf(openId)
    const fitting = Math.floor((grid.current?.clientHeight ?? 0) / rowHeight)
    // What is open stays in sight, although fewer rows may fit now.
    const row = openIndex === undefined ? topRow : Math.max(Math.min(topRow, openIndex), openIndex - fitting + 2)
    if (isCounted && row > 0) list.current?.scrollToRow(row)
  }, [isCounted, rowHeight])

  const query = addressOfFilter(filter)
  const hrefOfRow = (id: string): string => hrefOf(['history', id, 'general'], query)

  function moveTo(index: number): void {
    const next = Math.max(0, Math.min(index, count - 1))
    setActive({ index: next, id: model.row(next)?.id })
    const top = history.topRow
    const end = top + shownRows.current
    if (next < top) list.current?.scrollToRow(next)
    else if (next >= end - 1) list.current?.scrollToRow(next - shownRows.current + 1)
  }

  const latest = useRef({ selected, lastIndex: undefined as number | undefined })
  latest.current.selected = selected
  const select = useCallback(
    (index: number, isRange: boolean) => {
      const { selected: before, lastIndex } = latest.current
      const next = new Map(before)
      const execution = model.row(index)
      if (execution === undefined) return
      const isOn = !before.has(execution.id)
      const [first, last] = isRange && lastIndex !== undefined ? [lastIndex, index].toSorted((a, b) => a - b) : []
      for (let i = first ?? index; i <= (last ?? index); i++) {
        const row = model.row(i)
        if (row === undefined) continue
        if (!isOn) next.delete(row.id)
        else if (next.size < MAX_SELECTED) next.set(row.id, row)
      }
      latest.current.lastIndex = index
      onSelect(next)
    },
    [model, onSelect],
  )

  function onKeyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const at = activeIndex ?? -1
    const page = Math.max(1, shownRows.current - 2)
    const target = {
      ArrowDown: at + 1,
      j: at + 1,
      ArrowUp: at - 1,
      k: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: count - 1,
    }[event.key]
    if (target !== undefined) moveTo(target)
    else if (event.key === 'Enter' && activeIndex !== undefined) {
      const execution = model.row(activeIndex)
      if (execution !== undefined) navigate(hrefOfRow(execution.id))
    } else if ((event.key === ' ' || event.key === 'x') && activeIndex !== undefined) {
      select(activeIndex, event.shiftKey)
    } else return
    event.preventDefault()
  }
  // Where nothing else has the keyboard, the list has it.
  const onKey = useRef(onKeyDown)
  onKey.current = onKeyDown
  useEffect(() => {
    const take = (event: KeyboardEvent): void => {
      if (event.target !== document.body || !['j', 'k'].includes(event.key)) return
      grid.current?.focus()
      onKey.current(event)
    }
    document.addEventListener('keydown', take)
    return () => document.removeEventListener('keydown', take)
  }, [])

  return (
    <div
      ref={grid}
      role="grid"
      aria-label="Executions"
      aria-rowcount={count + 1}
      aria-multiselectable
      aria-busy={model.state.count === undefined}
      aria-activedescendant={activeIndex === undefined ? undefined : rowId(activeIndex)}
      tabIndex={0}
      class="executions"
      onKeyDown={onKeyDown}
      onFocus={() => {
        setHasFocus(true)
        if (active === undefined) setActive({ index: history.topRow, id: model.row(history.topRow)?.id })
      }}
      onBlur={() => setHasFocus(false)}
      onPointerMove={hold}
    >
      <div role="rowgroup" class="titles-group">
        <div role="row" aria-rowindex={1} class="execution titles">
          {titles.map(([name, title]) => (
            <span key={name} role="columnheader" class={name}>
              {title}
            </span>
          ))}
        </div>
      </div>
      <VirtualList
        key={rowHeight}
        handle={list}
        isGrid
        label="Executions"
        count={count}
        rowHeight={rowHeight}
        onRange={(first, end) => model.show(first, end)}
        onScroll={({ topRow }) => {
          history.topRow = Math.round(topRow)
          setIsAtTop(topRow < 0.5)
          shownRows.current = Math.max(1, Math.floor((grid.current?.clientHeight ?? 0) / rowHeight))
        }}
        row={(index) => {
          const execution = model.row(index)
          return (
            <HistoryRow
              execution={execution}
              index={index}
              id={rowId(index)}
              href={execution === undefined ? '' : hrefOfRow(execution.id)}
              isActive={hasFocus && index === activeIndex}
              isSelected={execution !== undefined && selected.has(execution.id)}
              isOpen={execution !== undefined && execution.id === openId}
              onSelect={select}
            />
          )
        }}
      />
    </div>
  )
}

const titles = [
  ['select', <span class="unseen">Selected</span>],
  ['status', 'Status'],
  ['action', 'Action'],
  ['parameters', 'Parameters'],
  ['user', 'User'],
  ['origin', 'Started by'],
  ['started', 'Started'],
  ['elapsed', 'Elapsed'],
] as const

interface ActiveRow {
  index: number
  /** Undefined while its row is loaded. */
  id: string | undefined
}

function indexOf(model: ListModel, { index, id }: ActiveRow): number {
  return (id === undefined ? undefined : model.indexOf(id)) ?? index
}

const rowId = (index: number): string => `execution-${index}`

/** True from now on until nothing has moved for a moment. */
function useHold(): [isHeld: boolean, hold: () => void] {
  const [isHeld, setIsHeld] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  return [
    isHeld,
    () => {
      clearTimeout(timer.current)
      timer.current = setTimeout(() => setIsHeld(false), HOLD_MS)
      setIsHeld(true)
    },
  ]
}
