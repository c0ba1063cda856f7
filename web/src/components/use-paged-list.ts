/** A list that begins with the newest, loaded where it is looked at, and kept up to date. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { isAbort, type ListPage } from '../api/client.ts'
import {
  rowCount,
  firstRows,
  idAfter,
  missingPages,
  newestId,
  PAGE_SIZE,
  rowAt,
  withChanged,
  withNewer,
  withPage,
  type PagedRows,
} from './paged-rows.ts'

const SETTLED_MS = 60

/** Query parameters of lists in the order of ids. */
export interface PlaceQuery {
  limit: number
  offset?: number
  before_id?: string
  after_id?: string
}

export interface PagedList<T extends { id: string }> {
  /** Undefined before it is known. */
  count: number | undefined
  /** Undefined: not loaded yet. */
  readonly rowAt: (index: number) => T | undefined
  /** Loads what is missing of these rows. */
  readonly show: (first: number, end: number) => void
  /** Those of the last `show` that are loaded. */
  readonly shown: () => T[]
  /** Looks for newer ones. @returns how many were added in front; undefined: the list was loaded again */
  readonly refresh: () => Promise<number | undefined>
  /** Replaces those that are known, by id. */
  readonly update: (items: readonly T[]) => void
  /** Loads the list again. */
  readonly reload: () => void
  /** Of the last attempt. */
  error: unknown
}

/**
 * @param load asks for a page; a signal aborts it when nobody wants it any more
 * @param key the list is another one when it changes
 */
export function usePagedList<T extends { id: string }>(
  load: (place: PlaceQuery, signal: AbortSignal) => Promise<ListPage<T>>,
  key: string,
): PagedList<T> {
  const [, setVersion] = useState(0)
  const [error, setError] = useState<unknown>()
  const latest = useRef(load)
  latest.current = load
  // Beside the state: several answers may come before anything is drawn.
  const now = useRef<{
    key: string
    rows: PagedRows<T> | undefined
    range: [first: number, end: number]
    loading: Set<number>
    controller: AbortController
  }>(undefined)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)

  const begin = useCallback((forKey: string): void => {
    now.current?.controller.abort()
    const isSame = now.current?.key === forKey
    const state = {
      key: forKey,
      // What is shown stays until there is something newer.
      rows: isSame ? now.current?.rows : undefined,
      range: isSame ? (now.current?.range ?? [0, 0]) : [0, 0],
      loading: new Set<number>(),
      controller: new AbortController(),
    } satisfies NonNullable<typeof now.current>
    now.current = state
    setError(undefined)
    setVersion((version) => version + 1)
    latest.current({ limit: PAGE_SIZE }, state.controller.signal).then(
      ({ items, total }) => {
        if (now.current !== state) return
        state.rows = firstRows(items, total)
        setVersion((version) => version + 1)
        loadRange()
      },
      (failure: unknown) => {
        if (now.current === state && !isAbort(failure)) setError(failure)
      },
    )
  }, [])

  const loadRange = useCallback((): void => {
    const state = now.current
    if (state?.rows?.anchor === undefined) return
    for (const page of missingPages(state.rows, ...state.range)) {
      if (state.loading.has(page)) continue
      state.loading.add(page)
      const place = { before_id: idAfter(state.rows.anchor), offset: page * PAGE_SIZE, limit: PAGE_SIZE }
      latest
        .current(place, state.controller.signal)
        .then(({ items }) => {
          if (now.current !== state || state.rows === undefined) return
          state.rows = withPage(state.rows, page, items)
          setError(undefined)
          setVersion((version) => version + 1)
        })
        .catch((failure: unknown) => {
          if (now.current === state && !isAbort(failure)) setError(failure)
        })
        .finally(() => state.loading.delete(page))
    }
  }, [])

  useEffect(() => {
    begin(key)
    return () => {
      clearTimeout(timer.current)
      now.current?.controller.abort()
    }
  }, [key])

  const isCurrent = now.current?.key === key
  const rows = isCurrent ? now.current?.rows : undefined
  const methods = useMemo(
    () => ({
      rowAt: (index: number) => (now.current?.rows === undefined ? undefined : rowAt(now.current.rows, index)),
      show(first: number, end: number) {
        if (now.current === undefined) return
        now.current.range = [first, end]
        // Scrolling through many rows loads only those where it stops.
        clearTimeout(timer.current)
        timer.current = setTimeout(loadRange, SETTLED_MS)
      },
      shown() {
        const { rows: known, range: [first, end] = [0, 0] } = now.current ?? {}
        if (known === undefined) return []
        return Array.from({ length: Math.max(0, end - first) }, (_, i) => rowAt(known, first + i)).filter(
          (row) => row !== undefined,
        )
      },
      async refresh() {
        const state = now.current
        if (state?.rows === undefined) return 0
        const after = newestId(state.rows)
        if (after === undefined) {
          begin(state.key)
          return undefined
        }
        const { items } = await latest.current({ after_id: after, limit: PAGE_SIZE }, state.controller.signal)
        if (now.current !== state) return 0
        const next = withNewer(state.rows, items)
        if (next === undefined) {
          begin(state.key)
          return undefined
        }
        const added = next.head.length - state.rows.head.length
        state.rows = next
        if (added > 0) setVersion((version) => version + 1)
        return added
      },
      update(items: readonly T[]) {
        const state = now.current
        if (state?.rows === undefined) return
        state.rows = withChanged(state.rows, items)
        setVersion((version) => version + 1)
      },
      reload() {
        if (now.current !== undefined) begin(now.current.key)
      },
    }),
    [],
  )
  return { ...methods, count: rows === undefined ? undefined : rowCount(rows), error: isCurrent ? error : undefined }
}
