/** The cascade of a trace, drawn: from left to right what caused what. */
import type { JSX, TargetedKeyboardEvent, TargetedMouseEvent, TargetedPointerEvent } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Elapsed } from '../../components/time.tsx'
import { describeMember, kindTitles, offsetText, memberStatusOf, type NamedTrace } from './describe.ts'
import type { Forest, Member } from './forest.ts'
import { groupForest, type Drawn } from './groups.ts'
import { layOut, NODE_HEIGHT, NODE_WIDTH, type Layout } from './layout.ts'
import { firstScale, fitScale, scrollAfterZoom, zoomedIn, zoomedOut, type Size } from './zoom.ts'

/** So many stay usable. */
const MAX_DRAWN = 1000
/** From so many members on equal ones stand together, four or more. */
const GROUP_ABOVE = 60
const GROUP_FROM = 4
/** Pixels that a click may move. */
const DRAG_SLACK = 4

export function Graph({ trace, forest }: { trace: NamedTrace; forest: Forest }): JSX.Element {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const [groups, setGroups] = useState<boolean>()
  const isLarge = forest.members.length > GROUP_ABOVE
  const isGrouped = groups ?? isLarge
  const { drawn, left } = useMemo(
    () =>
      groupForest(forest, {
        statusOf: (member) => memberStatusOf(member, trace) ?? '',
        groupFrom: isGrouped ? GROUP_FROM : undefined,
        opened,
        most: MAX_DRAWN,
      }),
    [forest, trace, isGrouped, opened],
  )
  const layout = useMemo(() => layOut(drawn), [drawn])
  return (
    <section class="trace-graph" aria-label="Graph">
      {left > 0 && (
        <p class="hint" role="status">
          {drawn.length.toLocaleString()} nodes shown, {left.toLocaleString()} members not shown. See the table for all
          of them.
        </p>
      )}
      <Canvas
        layout={layout}
        trace={trace}
        onOpen={(key) => setOpened(new Set([...opened, key]))}
        tools={
          isLarge ? (
            <label class="check">
              <input type="checkbox" checked={isGrouped} onChange={(event) => setGroups(event.currentTarget.checked)} />
              Group equal members
            </label>
          ) : undefined
        }
      />
    </section>
  )
}

function Canvas({
  layout,
  trace,
  onOpen,
  tools,
}: {
  layout: Layout
  trace: NamedTrace
  onOpen: (key: string) => void
  tools: JSX.Element | undefined
}): JSX.Element {
  const view = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState<Size>({ width: 0, height: 0 })
  // Undefined: as it fits, also while it grows.
  const [chosen, setChosen] = useState<number>()
  const scale = chosen ?? firstScale(layout, size)
  const scrollTo = useRef<{ left: number; top: number }>(undefined)
  const latest = useRef(scale)
  latest.current = scale

  useLayoutEffect(() => {
    const { current } = view
    if (current === null) return
    const measure = (): void => setSize({ width: current.clientWidth, height: current.clientHeight })
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(current)
    return () => observer.disconnect()
  }, [])
  // What is shown larger has to be there before it can be scrolled to.
  useLayoutEffect(() => {
    if (scrollTo.current === undefined) return
    view.current?.scrollTo(scrollTo.current)
    scrollTo.current = undefined
  })

  /** @param at place in the view that stays; default: its middle */
  function zoom(next: number, at = { x: size.width / 2, y: size.height / 2 }): void {
    const { current } = view
    if (current === null || next === latest.current) return
    scrollTo.current = {
      left: scrollAfterZoom(current.scrollLeft, at.x, latest.current, next),
      top: scrollAfterZoom(current.scrollTop, at.y, latest.current, next),
    }
    setChosen(next)
  }
  useEffect(() => {
    const { current } = view
    if (current === null) return
    // Listeners of preact are passive for the wheel, and the browser would zoom the page.
    const onWheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return
      event.preventDefault()
      const box = current.getBoundingClientRect()
      const at = { x: event.clientX - box.left, y: event.clientY - box.top }
      zoom(event.deltaY < 0 ? zoomedIn(latest.current) : zoomedOut(latest.current), at)
    }
    current.addEventListener('wheel', onWheel, { passive: false })
    return () => current.removeEventListener('wheel', onWheel)
  }, [])
  const drag = useDrag(view)
  /** Of a group that was opened: the first of its members takes its place. */
  const toFocus = useRef<string>(undefined)
  useLayoutEffect(() => {
    if (toFocus.current !== undefined) focusNode(toFocus.current)
    toFocus.current = undefined
  }, [layout])

  function focusNode(key: string): void {
    view.current?.querySelector<HTMLElement>(`[data-node="${CSS.escape(key)}"]`)?.focus()
  }

  function onKeyDown(event: TargetedKeyboardEvent<HTMLElement>): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { key } = event
    if (key === '+' || key === '=') zoom(zoomedIn(scale))
    else if (key === '-') zoom(zoomedOut(scale))
    else if (key === '0') setChosen(fitScale(layout, size))
    else {
      const from = event.target instanceof HTMLElement ? event.target.dataset['node'] : undefined
      const to = from === undefined ? undefined : neighbour(layout, from, key)
      if (to === undefined) return
      focusNode(to)
    }
    event.preventDefault()
  }

  const { width, height } = layout
  return (
    <>
      <div class="toolbar graph-tools">
        <span class="buttons" role="group" aria-label="Zoom">
          <button type="button" class="compact" aria-label="Zoom out" onClick={() => zoom(zoomedOut(scale))}>
            −
          </button>
          <span class="graph-scale" role="status">
            {Math.round(scale * 100)} %
          </span>
          <button type="button" class="compact" aria-label="Zoom in" onClick={() => zoom(zoomedIn(scale))}>
            +
          </button>
          <button type="button" class="compact" onClick={() => setChosen(fitScale(layout, size))}>
            Fit
          </button>
          <button type="button" class="compact" onClick={() => zoom(1)}>
            100 %
          </button>
        </span>
        {tools}
        <span class="hint">Arrow keys move between nodes, + and − zoom, 0 fits the graph.</span>
      </div>
      <div ref={view} class="graph-view" role="group" aria-label="Cascade" tabIndex={0} onKeyDown={onKeyDown} {...drag}>
        <div class="graph-room" style={{ width: `${width * scale}px`, height: `${height * scale}px` }}>
          <div
            class="graph-canvas"
            style={{ width: `${width}px`, height: `${height}px`, transform: `scale(${scale})` }}
          >
            <svg width={width} height={height} aria-hidden="true">
              {layout.edges.map(({ from, to, path }) => (
                <path key={to} d={path} data-from={from} data-to={to} />
              ))}
            </svg>
            {layout.nodes.map(({ node, x, y }) => (
              <Node
                key={node.key}
                node={node}
                x={x}
                y={y}
                trace={trace}
                onOpen={(key) => {
                  toFocus.current = key
                  onOpen(key)
                }}
              />
            ))}
          </div>
        </div>
      </div>
    </>
  )
}

interface NodeProps {
  node: Drawn
  x: number
  y: number
  trace: NamedTrace
  onOpen: (key: string) => void
}

function Node({ node, x, y, trace, onOpen }: NodeProps): JSX.Element {
  const { member, count, hidden, canOpen } = node
  const { kind, title, href, status, offset, run, isMissing } = describeMember(member, trace)
  const seconds = run?.seconds
  const isRunning = run !== undefined && seconds === undefined
  // Of a thousand nodes one changes.
  return useMemo(() => {
    const place = { left: `${x}px`, top: `${y}px`, width: `${NODE_WIDTH}px`, height: `${NODE_HEIGHT}px` }
    const content = (
      <>
        <span class="node-head">
          <span>{count === 1 ? kind : plural(member.kind)}</span>
          <span>{offsetText(offset)}</span>
        </span>
        <span class="node-title" title={title}>
          {count > 1 && <b>{count.toLocaleString()} × </b>}
          {shortTitle(title)}
        </span>
        <span class="node-state">
          {isMissing ? (
            <span class="hint" title="deleted, or hidden from you">
              {canOpen ? 'deleted' : 'deleted or hidden'}
            </span>
          ) : (
            status !== undefined && <StatusBadge status={status} />
          )}
          {count === 1 && run !== undefined && (
            <span class="hint">
              <Elapsed from={run.from} seconds={seconds} />
            </span>
          )}
          {canOpen && <span class="node-more">expand</span>}
          {hidden > 0 && <span class="hint">and {hidden.toLocaleString()} more</span>}
        </span>
      </>
    )
    const attributes = {
      class: 'node',
      'data-kind': member.kind,
      'data-status': status,
      'data-node': node.key,
      style: place,
    }
    if (canOpen) {
      return (
        <button type="button" {...attributes} data-group="" onClick={() => onOpen(node.key)}>
          {content}
        </button>
      )
    }
    // It stands for several, none of which it could lead to.
    if (count > 1) {
      return (
        <div {...attributes} data-group="" tabIndex={-1}>
          {content}
        </div>
      )
    }
    return (
      <a {...attributes} href={href} draggable={false}>
        {content}
      </a>
    )
  }, [x, y, title, href, status, offset, seconds, isRunning, isMissing, count, hidden, canOpen])
}

/** All that comes with the server begins so. */
function shortTitle(title: string): string {
  return title.replace(/^core\.svc\.(?=.)/, '')
}

function plural(kind: Member['kind']): string {
  return `${kindTitles[kind]}s`
}

/** The node that a key leads to: to its cause, to what it caused first, or to the one above or below in its column. */
function neighbour({ nodes }: Layout, from: string, key: string): string | undefined {
  const at = nodes.find(({ node }) => node.key === from)
  if (at === undefined) return undefined
  switch (key) {
    case 'ArrowLeft':
      return at.node.parent
    case 'ArrowRight':
      return nodes.find(({ node }) => node.parent === from)?.node.key
    case 'ArrowDown':
      return nodes.find(({ x, y }) => x === at.x && y > at.y)?.node.key
    case 'ArrowUp':
      return nodes.findLast(({ x, y }) => x === at.x && y < at.y)?.node.key
    default:
      return undefined
  }
}

interface DragHandlers {
  onPointerDown: (event: TargetedPointerEvent<HTMLElement>) => void
  onPointerMove: (event: TargetedPointerEvent<HTMLElement>) => void
  onPointerUp: (event: TargetedPointerEvent<HTMLElement>) => void
  onPointerCancel: (event: TargetedPointerEvent<HTMLElement>) => void
  onClickCapture: (event: TargetedMouseEvent<HTMLElement>) => void
}

/** Fingers scroll by themselves; a mouse drags. */
function useDrag(view: { readonly current: HTMLDivElement | null }): DragHandlers {
  const start = useRef<{ x: number; y: number; left: number; top: number; isMoving: boolean }>(undefined)
  const wasMoved = useRef(false)
  const end = (event: TargetedPointerEvent<HTMLElement>): void => {
    wasMoved.current = start.current?.isMoving === true
    start.current = undefined
    if (event.currentTarget.hasPointerCapture(event.pointerId))
      event.currentTarget.releasePointerCapture(event.pointerId)
  }
  return {
    onPointerDown(event) {
      wasMoved.current = false
      const { current } = view
      if (current === null || event.pointerType !== 'mouse' || event.button !== 0) return
      start.current = {
        x: event.clientX,
        y: event.clientY,
        left: current.scrollLeft,
        top: current.scrollTop,
        isMoving: false,
      }
    },
    onPointerMove(event) {
      const { current } = view
      if (start.current === undefined || current === null) return
      const [byX, byY] = [event.clientX - start.current.x, event.clientY - start.current.y]
      if (!start.current.isMoving && Math.hypot(byX, byY) <= DRAG_SLACK) return
      if (!start.current.isMoving) event.currentTarget.setPointerCapture(event.pointerId)
      start.current.isMoving = true
      current.scrollLeft = start.current.left - byX
      current.scrollTop = start.current.top - byY
    },
    onPointerUp: end,
    onPointerCancel: end,
    onClickCapture(event) {
      if (!wasMoved.current) return
      wasMoved.current = false
      event.preventDefault()
      event.stopPropagation()
    },
  }
}
