/** What the pane of an output shows: its lines, whether it follows them, and its search. */
import type { RefObject } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { hrefOf, useLocation } from '../../router.ts'
import type { VirtualListHandle } from '../virtual-list.tsx'
import { readLineRange, type LineRange } from './line-range.ts'
import { outputSource, searchSource, type OutputFilter } from './output-api.ts'
import { createOutputModel, type OutputModel } from './output-model.ts'
import { createOutputSearch, type OutputSearch, type SearchTerms } from './output-search.ts'
import type { PaneQuery } from './pane-query.ts'

export interface OutputView {
  model: OutputModel
  isReady: boolean
  list: RefObject<VirtualListHandle | null>
  searchField: RefObject<HTMLInputElement | null>
  /** Lines of the address. */
  selected: LineRange | undefined
  /** Whether it scrolls to new lines. */
  isFollowing: boolean
  /** Lines that came since it stopped following. */
  newLines: number
  readonly follow: () => void
  readonly pause: () => void
  terms: SearchTerms
  search: OutputSearch | undefined
  /** Line of the match that was gone to. */
  current: number | undefined
  readonly setTerms: (terms: SearchTerms) => void
  /** Goes to the next match, or the one before. */
  readonly step: (direction: 1 | -1) => void
  /** The drawn lines, from 1 on. */
  readonly drawn: (first: number, end: number) => void
  readonly scrolled: (topRow: number, isAtEnd: boolean) => void
}

export function useOutputView(executionId: string, filter: OutputFilter, query: PaneQuery): OutputView {
  const redraw = useRedraw()
  const model = useOutput(executionId, filter, redraw)
  const list = useRef<VirtualListHandle>(null)
  const { state, total } = model
  const isReady = state.about !== undefined
  const selected = readLineRange(query.get('line'))

  const [isFollowing, setIsFollowing] = useState(selected === undefined)
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
    if (selected === undefined || !isReady) return
    pause()
    // What was clicked stays where it is.
    list.current?.showRow(selected.first - 1)
  }, [selected?.first, isReady])

  const terms: SearchTerms = {
    query: query.get('find') ?? '',
    matchesCase: query.get('find_case') !== undefined,
    isPattern: query.get('find_pattern') !== undefined,
  }
  const [current, setCurrent] = useState<number>()
  const drawn = useRef({ first: 1, end: 1 })
  /** Where searches start: the current match while it is drawn, else the uppermost line. */
  function startLine(): number {
    const isDrawn = current !== undefined && current >= drawn.current.first && current < drawn.current.end
    return isDrawn ? current : Math.floor(topRow.current) + 1
  }
  function goTo(line: number | undefined): void {
    if (line === undefined) return
    setCurrent(line)
    pause()
    list.current?.showRow(line - 1)
  }
  // A search of the address is about the whole output. A line of the address is shown rather than its first match.
  const isFirst = useRef(true)
  const search = useSearch(
    executionId,
    filter,
    terms,
    isReady,
    () => ({ line: isFirst.current ? (selected?.first ?? 1) : startLine(), total }),
    redraw,
  )
  const isFound = (search?.state.count ?? 0) > 0
  useEffect(() => {
    if (search === undefined) {
      if (isReady) isFirst.current = false
      setCurrent(undefined)
    } else if (isFound) {
      const from = isFirst.current ? 0 : startLine() - 1
      if (!isFirst.current || selected === undefined) goTo(search.next(from, 1) ?? search.next(0, 1))
      isFirst.current = false
    } else setCurrent(undefined)
  }, [isFound, search, isReady])

  return {
    model,
    isReady,
    list,
    searchField: useFindKey(),
    selected,
    isFollowing,
    newLines: total - seen,
    follow,
    pause,
    terms,
    search,
    current,
    setTerms({ query: text, matchesCase, isPattern }) {
      isFirst.current = false
      query.set(
        {
          find: text === '' ? undefined : text,
          find_case: matchesCase ? '1' : undefined,
          find_pattern: isPattern ? '1' : undefined,
        },
        { replace: true },
      )
    },
    step: (direction) => goTo(search?.next(current === undefined ? startLine() - 1 : startLine(), direction)),
    drawn(first, end) {
      drawn.current = { first, end }
      model.show(first, end)
    },
    scrolled(row, isAtEnd) {
      const isUp = row < topRow.current
      topRow.current = row
      if (isAtEnd) setIsFollowing(true)
      else if (isUp) pause()
    },
  }
}

/** Ctrl+F goes to the search of the output: the browser would find only what is drawn. @returns the search field */
function useFindKey(): RefObject<HTMLInputElement | null> {
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isFind =
        event.key.toLowerCase() === 'f' && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey
      if (!isFind || document.activeElement === field.current || document.querySelector('dialog[open]') !== null) return
      event.preventDefault()
      field.current?.focus()
      field.current?.select()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return field
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

function useOutput(executionId: string, filter: OutputFilter, redraw: () => void): OutputModel {
  const [model] = useState(() => createOutputModel(outputSource(executionId, filter), redraw))
  useEffect(() => () => model.stop(), [model])
  return model
}

/** Starts again when the terms change. */
function useSearch(
  executionId: string,
  filter: OutputFilter,
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
export function useHrefOfLine(executionId: string, filter: OutputFilter): (line: number) => string {
  const { path, query } = useLocation()
  const isHere = path[0] === 'history' && path[1] === executionId && path[2] === 'output'
  return (line) => {
    const kept = new URLSearchParams(isHere ? query : '')
    kept.set('line', String(line))
    if (filter !== 'all') kept.set('output_type', filter)
    return hrefOf(['history', executionId, 'output'], kept)
  }
}
