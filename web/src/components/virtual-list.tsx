/** A list of any length whose rows have one height. */
import type { ComponentChildren, JSX, Ref } from 'preact'
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { rowsOf, scrollTopOf, topRowOf, type Viewport } from './virtual-rows.ts'

export interface VirtualListHandle {
  /** Brings a row to the upper edge. */
  scrollToRow(row: number): void
  scrollToEnd(): void
}

export interface VirtualListProps {
  count: number
  /** Pixels; the style sheet has to keep to it. */
  rowHeight: number
  /** For whoever cannot see it. */
  label: string
  /** Draws one row, for which there may be no content yet. */
  row: (index: number) => ComponentChildren
  /** Rows that are drawn now; `end` is behind the last one. */
  onRange?: (first: number, end: number) => void
  /** Of the user's or our own scrolling. */
  onScroll?: (position: { topRow: number; isAtEnd: boolean }) => void
  handle?: Ref<VirtualListHandle>
  class?: string
}

/** Pixels from the end that still count as the end. */
const END_SLACK = 4

export function VirtualList(props: VirtualListProps): JSX.Element {
  const { count, rowHeight, label, row, onRange, onScroll, handle } = props
  const element = useRef<HTMLDivElement>(null)
  const [viewport, setViewport] = useState<Viewport>({ scrollTop: 0, height: 0 })

  const look = (): void => {
    const { current } = element
    if (current === null) return
    const seen = { scrollTop: current.scrollTop, height: current.clientHeight }
    setViewport((earlier) => (earlier.scrollTop === seen.scrollTop && earlier.height === seen.height ? earlier : seen))
    onScroll?.({
      topRow: topRowOf(count, rowHeight, seen),
      isAtEnd: current.scrollHeight - seen.scrollTop - seen.height <= END_SLACK,
    })
  }
  useLayoutEffect(() => {
    look()
    const observer = new ResizeObserver(look)
    if (element.current !== null) observer.observe(element.current)
    return () => observer.disconnect()
  }, [])

  useImperativeHandle(
    handle ?? null,
    () => ({
      scrollToRow(index) {
        const { current } = element
        if (current !== null) current.scrollTop = scrollTopOf(index, count, rowHeight, current.clientHeight)
      },
      scrollToEnd() {
        const { current } = element
        if (current !== null) current.scrollTop = current.scrollHeight
      },
    }),
    [count, rowHeight],
  )

  const { totalHeight, first, end, offset } = rowsOf(count, rowHeight, viewport)
  useEffect(() => {
    if (end > first) onRange?.(first, end)
  }, [first, end, count])

  const rows: JSX.Element[] = []
  for (let index = first; index < end; index++) {
    rows.push(
      <div
        key={index}
        role="listitem"
        class="virtual-row"
        style={{ height: `${rowHeight}px` }}
        aria-posinset={index + 1}
        aria-setsize={count}
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
      tabIndex={0}
      role="list"
      aria-label={label}
      onScroll={look}
    >
      <div class="virtual-canvas" style={{ height: `${totalHeight}px` }} role="presentation">
        <div style={{ transform: `translateY(${offset}px)` }} role="presentation">
          {rows}
        </div>
      </div>
    </div>
  )
}
