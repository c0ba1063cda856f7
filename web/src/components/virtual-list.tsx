/** A list of any length whose rows have one height. */
import type { ComponentChildren, JSX, Ref, TargetedKeyboardEvent } from 'preact'
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'preact/hooks'
import {
  canvasHeight,
  isStuck,
  placeOfRow,
  drawnRowsAt,
  scrolledTo,
  settledPlace,
  startPlace,
  topRowOf,
  type ListSize,
  type ScrollPlace,
} from './virtual-rows.ts'

export interface VirtualListHandle {
  /** Brings a row to the upper edge. */
  scrollToRow(row: number): void
  scrollToEnd(): void
  /** Brings a row into sight, unless it is there already. */
  showRow(row: number): void
  /** So that the keys scroll it. */
  focus(): void
}

export interface VirtualListProps {
  count: number
  /** Pixels; the style sheet has to keep to it. */
  rowHeight: number
  /** Accessible name. */
  label: string
  /** Draws one row, for which there may be no content yet. */
  row: (index: number) => ComponentChildren
  /** Whose row it is, where rows come and go in front of others: its state and the focus move with it. */
  rowKey?: (index: number) => string | undefined
  /** Rows that are drawn now; `end` is behind the last one. */
  onRange?: (first: number, end: number) => void
  /** Of the user's or our own scrolling. */
  onScroll?: (position: { topRow: number; isAtEnd: boolean }) => void
  onKeyDown?: (event: TargetedKeyboardEvent<HTMLElement>) => void
  handle?: Ref<VirtualListHandle>
  /** Of the rows, as a length of CSS, when they may be wider than the list. */
  width?: string
  /** It is the body of a grid around it, which has the focus and the label; `row` draws elements with the role `row`. */
  isGrid?: boolean
  class?: string
}

/** Pixels from the end that still count as the end. */
const END_SLACK = 4
/** After the last movement; browsers do not agree on when scrolling has ended. */
const SETTLE_MS = 200

export function VirtualList(props: VirtualListProps): JSX.Element {
  const { count, rowHeight, label, row, rowKey, onRange, onScroll, handle } = props
  const element = useRef<HTMLDivElement>(null)
  const [height, setHeight] = useState(0)
  const [, setVersion] = useState(0)
  // Beside the state, because the browser may send several scroll events before anything is drawn.
  const place = useRef<ScrollPlace>(startPlace)
  const size: ListSize = { count, rowHeight, height }
  const latest = useRef({ size, onScroll })
  latest.current = { size, onScroll }
  /** The height is about to change while the last row is seen. */
  const staysAtEnd = useRef(false)
  const settling = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  function goTo(next: ScrollPlace): void {
    const { current } = element
    if (current === null) return
    if (Math.abs(current.scrollTop - next.scrollTop) >= 1) current.scrollTop = next.scrollTop
    take({ scrollTop: current.scrollTop, origin: next.origin })
  }

  function take(next: ScrollPlace): void {
    const before = place.current
    place.current = next
    if (before.scrollTop !== next.scrollTop || before.origin !== next.origin) setVersion((version) => version + 1)
  }

  function look(): void {
    const { current } = element
    if (current === null) return
    const { size: seen } = latest.current
    const next = scrolledTo(current.scrollTop, place.current, seen)
    if (isStuck(next, seen)) goTo(settledPlace(next, seen))
    else take(next)
    clearTimeout(settling.current)
    settling.current = setTimeout(() => {
      // The next scroll event is on its way: scrolling has not ended.
      if (current.scrollTop !== place.current.scrollTop) return
      goTo(settledPlace(place.current, latest.current.size))
    }, SETTLE_MS)
  }

  function tell(): void {
    const { size: seen, onScroll: hear } = latest.current
    const topRow = topRowOf(place.current, seen)
    hear?.({ topRow, isAtEnd: isAtEnd(place.current, seen) })
  }

  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return
    const measure = (): void => {
      const { size: seen } = latest.current
      // The observer begins with the height that is known.
      if (current.clientHeight === seen.height) return
      staysAtEnd.current = seen.height > 0 && isAtEnd(place.current, seen)
      setHeight(current.clientHeight)
    }
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(current)
    return () => {
      observer.disconnect()
      clearTimeout(settling.current)
    }
  }, [])
  // What is seen depends on the height, and on how many rows there are.
  useLayoutEffect(() => {
    look()
    if (staysAtEnd.current) goTo(placeOfRow(count, size))
    staysAtEnd.current = false
  }, [height, count])

  useImperativeHandle(
    handle ?? null,
    () => ({
      scrollToRow: (index) => goTo(placeOfRow(index, latest.current.size)),
      scrollToEnd: () => goTo(placeOfRow(latest.current.size.count, latest.current.size)),
      showRow(index) {
        // It may be asked for before the height has been measured.
        const seen = { ...latest.current.size, height: element.current?.clientHeight ?? 0 }
        const top = topRowOf(place.current, seen)
        const rowsSeen = seen.height / seen.rowHeight
        if (index < top || index + 1 > top + rowsSeen) goTo(placeOfRow(index - Math.floor(rowsSeen / 3), seen))
      },
      focus: () => element.current?.focus({ preventScroll: true }),
    }),
    [],
  )

  const { first, end, offset } = drawnRowsAt(place.current, size)
  useEffect(() => {
    if (end > first) onRange?.(first, end)
  }, [first, end, count])

  const rows: JSX.Element[] = []
  for (let index = first; index < end; index++) {
    rows.push(
      <div
        key={rowKey?.(index) ?? index}
        {...(props.isGrid === true
          ? { role: 'presentation' }
          : { role: 'listitem', 'aria-posinset': index + 1, 'aria-setsize': count })}
        class="virtual-row"
        style={{ height: `${rowHeight}px` }}
      >
        {row(index)}
      </div>,
    )
  }
  return (
    <div
      ref={element}
      class={`virtual-list ${props.class ?? ''}`}
      // Without it nobody could scroll by keyboard.
      {...(props.isGrid === true
        ? { role: 'rowgroup', tabIndex: -1 }
        : { role: 'list', tabIndex: 0, 'aria-label': label })}
      onScroll={() => {
        look()
        tell()
      }}
      onKeyDown={props.onKeyDown}
    >
      <div
        class="virtual-canvas"
        style={{ height: `${canvasHeight(size)}px`, minWidth: props.width ?? 'auto' }}
        role="presentation"
      >
        <div class="virtual-rows" style={{ top: `${offset}px` }} role="presentation">
          {rows}
        </div>
      </div>
    </div>
  )
}

function isAtEnd(place: ScrollPlace, size: ListSize): boolean {
  return (size.count - topRowOf(place, size)) * size.rowHeight - size.height <= END_SLACK
}
