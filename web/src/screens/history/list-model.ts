/**
 * Loads the history, of which there may be a million rows: the requests and timers around the reducer of `list-rows.ts`.
 * Pages are loaded for visible rows, and few are kept.
 *
 * Invariants:
 * 1. Page requests are for visible pages under the present anchor; `MAX_REQUESTS` at once.
 * 2. While the whole list is requested no page is.
 * 3. An aborted request changes nothing, whatever it still answers.
 * 4. After `stop` no request and no timer is left.
 */
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import { isAbort } from '../../api/transport.ts'
import {
  listCount,
  emptyRows,
  listIndexOf,
  LIST_PAGE_SIZE,
  placeOfPage,
  previousId,
  reduceRows,
  listRowAt,
  visiblePages,
  type ListAction,
  type ListEvent,
  type ListRules,
  type PagePlace,
} from './list-rows.ts'

/** Page requests at once; more would only wait for each other. */
const MAX_REQUESTS = 3
/** Scrolling faster than this loads nothing on the way. */
const SETTLE_MS = 120
/** A list whose rows come and go with their status is loaded again at most this often. */
const REFRESH_EVERY_MS = 1000
/** A costly list is loaded again after a pause of this many times its last loading time. */
const COSTLY_PAUSE = 10

export interface ListAnswer {
  /** Newest first. */
  items: ExecutionSummary[]
  /** Of all that match; undefined for pages that start at an id. */
  total: number | undefined
}

export interface ListSource extends ListRules {
  load(place: PagePlace, limit: number, signal: AbortSignal): Promise<ListAnswer>
  /** Whether the server looks at every execution for a page. */
  isCostly: boolean
}

export interface ListState {
  /** Undefined until something was loaded. */
  count: number | undefined
  /** Newer executions that are not rows. */
  waitingCount: number
  /** There are more of them than were kept. */
  hasMoreWaiting: boolean
  /** Rows may be missing or may not match any more: only loading the list again can tell. */
  isStale: boolean
  /** Of the last request that failed. */
  error: unknown
}

export interface ListModel {
  readonly state: ListState
  row(index: number): ExecutionSummary | undefined
  /** Row of an execution; undefined: it is not loaded. */
  indexOf(id: string): number | undefined
  /** As far as it is known. */
  find(id: string): ExecutionSummary | undefined
  /** Loads what these rows need. */
  show(first: number, end: number): void
  /** Whether newer executions become rows at once, or wait. */
  setLive(isLive: boolean): void
  /** Makes rows of the executions that wait. */
  flush(): void
  /** Events of the stream, in this order. */
  accept(events: Iterable<ListEvent>): void
  /** Loads the list again from the newest execution; the rows stay until the answer has come. */
  refresh(): void
  /** Events were missed: loads the visible pages again, and the newest executions. */
  resync(): void
  /** After an error. */
  retry(): void
  /** Ends all requests and timers. `resync` starts again. */
  stop(): void
}

/** @param onChange what is drawn may have changed */
export function createListModel(source: ListSource, onChange: () => void): ListModel {
  let rows = emptyRows
  const pageRequests = new Map<number, AbortController>()
  let listRequest: AbortController | undefined
  let newestRequest: AbortController | undefined
  /** Events were missed while the list was requested. */
  let mustResync = false
  let settling: ReturnType<typeof setTimeout> | undefined
  let refreshing: ReturnType<typeof setTimeout> | undefined
  let refreshedAt = -Infinity
  let refreshEveryMs = REFRESH_EVERY_MS

  function dispatch(action: ListAction): void {
    const { anchor } = rows
    rows = reduceRows(rows, action, source)
    // The numbers of pages are different now.
    if (rows.anchor !== anchor) abortPages()
  }

  function update(action: ListAction): void {
    dispatch(action)
    onChange()
  }

  /** Asks for executions, and ignores the answer once the request was aborted. */
  function load(
    place: PagePlace,
    controller: AbortController,
    onAnswer: (answer: ListAnswer) => void,
    onEnd: () => void,
  ): void {
    source.load(place, LIST_PAGE_SIZE, controller.signal).then(
      (answer) => {
        if (controller.signal.aborted) return
        onEnd()
        onAnswer(answer)
      },
      (error: unknown) => {
        if (controller.signal.aborted) return
        onEnd()
        if (!isAbort(error)) update({ type: 'request failed', error })
      },
    )
  }

  function refresh(): void {
    abortAll()
    dispatch({ type: 'list requested' })
    mustResync = false
    refreshedAt = performance.now()
    const controller = (listRequest = new AbortController())
    load(
      { offset: 0 },
      controller,
      ({ items, total = items.length }) => {
        if (source.isCostly) {
          refreshEveryMs = Math.max(REFRESH_EVERY_MS, COSTLY_PAUSE * (performance.now() - refreshedAt))
        }
        update({ type: 'list loaded', items, total })
        loadVisible()
        refreshWhenStale()
        if (mustResync) resync()
      },
      () => {
        listRequest = undefined
      },
    )
  }

  function flush(): void {
    // They come with the answer that is on its way.
    if (listRequest !== undefined) return
    if (rows.hasMoreWaiting || rows.hasGap) {
      refresh()
      return
    }
    update({ type: 'waiting taken' })
    loadVisible()
  }

  function accept(events: Iterable<ListEvent>): void {
    const before = rows
    update({ type: 'events received', events })
    const isNew = listCount(rows) !== listCount(before) || rows.waiting.size !== before.waiting.size
    if (rows.isLive && isNew) loadVisible()
    refreshWhenStale()
  }

  function refreshWhenStale(): void {
    if (!rows.isStale || !rows.isLive || refreshing !== undefined || listRequest !== undefined) return
    const inMs = Math.max(0, refreshedAt + refreshEveryMs - performance.now())
    refreshing = setTimeout(() => {
      refreshing = undefined
      if (rows.isStale && rows.isLive) refresh()
    }, inMs)
  }

  function loadVisible(): void {
    if (rows.anchor === '' || listRequest !== undefined) return
    const wanted = visiblePages(rows)
    for (const [number, controller] of pageRequests) {
      if (wanted.includes(number)) continue
      controller.abort()
      pageRequests.delete(number)
    }
    for (const number of wanted) {
      if (pageRequests.size >= MAX_REQUESTS) break
      const isLoaded = rows.pages.has(number) && !rows.outdatedPages.has(number)
      if (!isLoaded && !pageRequests.has(number)) loadPage(number)
    }
  }

  function loadPage(number: number): void {
    const controller = new AbortController()
    pageRequests.set(number, controller)
    const place = placeOfPage(rows, number)
    load(
      place,
      controller,
      ({ items }) => {
        update({ type: 'page loaded', number, place, items })
        loadVisible()
        refreshWhenStale()
      },
      () => pageRequests.delete(number),
    )
  }

  function resync(): void {
    dispatch({ type: 'events missed' })
    if (listRequest !== undefined) {
      mustResync = true
      return
    }
    if (rows.anchor === '' || rows.isLive) {
      refresh()
      return
    }
    abortAll()
    dispatch({ type: 'update requested' })
    loadVisible()
    const controller = (newestRequest = new AbortController())
    load(
      { afterId: previousId(rows.anchor), offset: 0 },
      controller,
      ({ items }) => update({ type: 'newest loaded', items }),
      () => undefined,
    )
  }

  function abortPages(): void {
    for (const controller of pageRequests.values()) controller.abort()
    pageRequests.clear()
  }

  function abortAll(): void {
    abortPages()
    newestRequest?.abort()
    listRequest?.abort()
    listRequest = undefined
    clearTimeout(settling)
    clearTimeout(refreshing)
    refreshing = undefined
  }

  return {
    get state() {
      const { waiting, hasMoreWaiting, isStale, error } = rows
      return { count: listCount(rows), waitingCount: waiting.size, hasMoreWaiting, isStale, error }
    },
    row: (index) => listRowAt(rows, index),
    indexOf: (id) => listIndexOf(rows, id),
    find(id) {
      const index = listIndexOf(rows, id)
      return (index === undefined ? undefined : listRowAt(rows, index)) ?? rows.waiting.get(id) ?? rows.recent.get(id)
    },
    show(first, end) {
      const isNear = Math.abs(first - rows.visible.first) <= LIST_PAGE_SIZE
      dispatch({ type: 'scrolled', first, end })
      clearTimeout(settling)
      if (isNear) loadVisible()
      else settling = setTimeout(loadVisible, SETTLE_MS)
    },
    setLive(isLive) {
      if (rows.isLive === isLive) return
      dispatch({ type: 'live changed', isLive })
      if (!isLive) return
      if (rows.waiting.size > 0 || rows.hasGap) flush()
      refreshWhenStale()
    },
    flush,
    accept,
    refresh,
    resync,
    retry() {
      update({ type: 'error cleared' })
      resync()
    },
    stop: abortAll,
  }
}
