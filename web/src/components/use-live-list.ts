/** A list that begins with the newest, while it is looked at: what comes is added, and what is read stays where it is. */
import type { Ref } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isAbort, type ListPage } from '../api/client.ts'
import { useExecutionEvents } from '../api/execution-events.ts'
import type { ExecutionSummary } from '../api/execution-summary.ts'
import { usePoll } from '../api/poll.ts'
import { usePagedList, type PagedList, type PlaceQuery } from './use-paged-list.ts'
import type { VirtualListHandle } from './virtual-list.tsx'

/** Not everything that such lists hold has events of its own. */
const POLL_MS = 5000
/** Executions tell that something has happened, perhaps many at once. */
const AFTER_EVENT_MS = 300

export interface LiveListOptions<T> {
  /** Asks for a page; a signal aborts it when nobody wants it any more. */
  load: (place: PlaceQuery, signal: AbortSignal) => Promise<ListPage<T>>
  /** The list is another one when it changes. */
  key: string
  /** Whether an event may mean that there is something new. Default: that any execution has begun. */
  concerns?: (execution: ExecutionSummary, change: 'create' | 'update' | 'delete') => boolean
  /** Rows that change after they were added. */
  changing?: { is: (row: T) => boolean; load: (ids: string[]) => Promise<ListPage<T>> }
}

export interface LiveList<T extends { id: string }> extends Omit<PagedList<T>, 'refresh' | 'update'> {
  /** Why what is newer cannot be shown; undefined: it is. */
  problem: unknown
  /** Looks for what is new in a moment, once for all that ask. */
  readonly soon: () => void
  /** For the list that draws it. */
  readonly drawn: {
    handle: Ref<VirtualListHandle>
    rowKey: (index: number) => string | undefined
    onScroll: (position: { topRow: number }) => void
  }
}

export function useLiveList<T extends { id: string }>(options: LiveListOptions<T>): LiveList<T> {
  const { refresh, update, ...rows } = usePagedList(options.load, options.key)
  const handle = useRef<VirtualListHandle>(null)
  const topRow = useRef(0)
  const [problem, setProblem] = useState<unknown>()
  // Another list is drawn from its beginning.
  useEffect(() => void (topRow.current = 0), [options.key])
  const { concerns = (_, change) => change === 'create', changing } = options

  async function readAgain(): Promise<void> {
    const ids = changing === undefined ? [] : rows.shown().flatMap((row) => (changing.is(row) ? row.id : []))
    if (changing !== undefined && ids.length > 0) update((await changing.load(ids)).items)
  }
  async function look(): Promise<void> {
    try {
      const [added] = await Promise.all([refresh(), readAgain()])
      // After scrolling away from the beginning the same rows stay visible.
      if (added !== undefined && added > 0 && topRow.current >= 1) handle.current?.scrollToRow(topRow.current + added)
      setProblem(undefined)
    } catch (error) {
      if (!isAbort(error)) setProblem(error)
    }
  }
  usePoll(look, POLL_MS)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const latest = useRef(look)
  latest.current = look
  const soon = (): void => {
    // Looked at again, it is brought up to date at once.
    if (document.hidden) return
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void latest.current()
    }, AFTER_EVENT_MS)
  }
  useExecutionEvents({
    onExecution(execution, change) {
      if (concerns(execution, change)) soon()
    },
    onOpen: soon,
  })
  return {
    ...rows,
    problem,
    soon,
    drawn: {
      handle,
      rowKey: (index) => rows.rowAt(index)?.id,
      onScroll: (position) => (topRow.current = position.topRow),
    },
  }
}
