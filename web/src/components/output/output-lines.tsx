/** The lines of an output, of which only the visible ones are drawn. */
import type { JSX, TargetedKeyboardEvent } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { VirtualList } from '../virtual-list.tsx'
import { isWithin, rangeOf, writeLineRange } from './line-range.ts'
import type { OutputFilter } from './output-api.ts'
import { hasOutput } from './output-bar.tsx'
import { OutputRow } from './output-row.tsx'
import { placesOf, type OutputSearch } from './output-search.ts'
import type { PaneQuery } from './pane-query.ts'
import { shownLine, type Mark, type ShownLine } from './shown-line.ts'
import { useHrefOfLine, type OutputView } from './use-output-view.ts'

/** The style sheet has the same. */
const ROW_HEIGHT = 20

interface OutputLinesProps {
  executionId: string
  filter: OutputFilter
  query: PaneQuery
  view: OutputView
  showsTimes: boolean
  /** CSS width of the line numbers. */
  digits: string
  onOpen: (line: number) => void
}

export function OutputLines(props: OutputLinesProps): JSX.Element {
  const { executionId, filter, query, view, showsTimes, digits, onOpen } = props
  const { model, selected, current, search, follow } = view
  const [columns, setColumns] = useState(0)
  const widest = useRef(0)
  const measure = (): void => {
    if (widest.current > columns) setColumns(widest.current)
  }
  useLayoutEffect(measure)
  const hrefOfLine = useHrefOfLine(executionId, filter)
  const showsMarks = filter === 'all' && (hasOutput(model.state, 'stderr') || hasOutput(model.state, 'other'))
  const showsHosts = model.hosts.size > 1
  // As the style sheet has it.
  const gutter = [
    `${digits} + 16px`,
    ...(showsTimes ? ['12ch + 8px'] : []),
    ...(showsHosts ? ['14ch + 8px'] : []),
    ...(showsMarks ? ['3ch + 8px'] : []),
  ].join(' + ')
  const row = (index: number): JSX.Element => {
    const number = index + 1
    const line = model.line(number)
    if (line !== undefined) widest.current = Math.max(widest.current, shownLine(line).width)
    return (
      <OutputRow
        number={number}
        line={line}
        href={hrefOfLine(number)}
        isChosen={isWithin(selected, number)}
        isCurrent={number === current}
        showsTimes={showsTimes}
        showsMarks={showsMarks}
        showsHosts={showsHosts}
        marks={(shown) => marksOf(search, number, shown)}
        onOpen={() => onOpen(number)}
        onChoose={(event) => {
          if (!event.shiftKey || selected === undefined) return
          event.preventDefault()
          query.set({ line: writeLineRange(rangeOf(selected.first, number)) })
        }}
      />
    )
  }
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey
    if (event.key === 'f' && isPlain) follow()
    else if (event.key === 'End') {
      // The browser would move to where the end was, which has moved on before it arrives.
      event.preventDefault()
      follow()
    } else if (event.key === 'Enter' && event.target === event.currentTarget) {
      const line = current ?? selected?.first
      if (line !== undefined) onOpen(line)
    }
  }
  return (
    <div class="output-body">
      <VirtualList
        class="output-lines"
        count={model.total}
        rowHeight={ROW_HEIGHT}
        label="Output lines"
        handle={view.list}
        width={`calc(${columns + 2}ch + ${gutter})`}
        row={row}
        onRange={(first, end) => {
          view.drawn(first + 1, end + 1)
          measure()
        }}
        onScroll={({ topRow, isAtEnd }) => view.scrolled(topRow, isAtEnd)}
        onKeyDown={onKeyDown}
      />
      {!view.isFollowing && model.state.phase !== 'complete' && (
        <button type="button" class="primary output-jump" onClick={follow}>
          ↓ {view.newLines > 0 ? `${view.newLines.toLocaleString()} new` : 'Go to end'}
        </button>
      )}
    </div>
  )
}

function marksOf(search: OutputSearch | undefined, line: number, { text }: ShownLine): readonly Mark[] {
  if (search === undefined) return []
  const { terms } = search
  if (!terms.isPattern) return placesOf(text, terms)
  const found = search.textIn(line)
  return found === undefined ? [] : placesOf(text, { query: found, matchesCase: true }).slice(0, 1)
}
