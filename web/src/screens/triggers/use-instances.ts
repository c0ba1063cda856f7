/** Trigger instances, newest first: as many as there are, of which only pages that are looked at are loaded. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { isAbort, list } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import type { TriggerInstanceRecord } from '../../api/records.ts'

export type ListedInstance = Omit<TriggerInstanceRecord, 'payload' | 'payload_size'>

export interface InstanceFilter {
  trigger: string
  trigger_type: string
  status: string
}

export interface Instances {
  /** Undefined: not known yet. */
  total: number | undefined
  /** Undefined: it is being loaded. */
  readonly at: (index: number) => ListedInstance | undefined
  /** Rows that are to be seen; `end` is behind the last one. */
  readonly look: (first: number, end: number) => void
  error: unknown
  /** There are newer ones than the first that is shown. */
  hasNewer: boolean
  /** From the first one. */
  readonly reload: () => void
}

const PAGE = 100
const MAX_PAGES = 20
/** Nothing tells of new ones but the executions that they start. */
const POLL_MS = 5000
/** What starts many executions is asked for once. */
const SOON_MS = 1000
const ATTRIBUTES = 'id,trigger,trigger_type,occurrence_time,status,trace_id'

interface Shown {
  pages: ReadonlyMap<number, readonly ListedInstance[]>
  total: number | undefined
  error: unknown
  hasNewer: boolean
}

const nothing: Shown = { pages: new Map(), total: undefined, error: undefined, hasNewer: false }

/** @param isAtTop whether the first row is to be seen: then newer ones come by themselves */
export function useInstances(filter: InstanceFilter, isAtTop: () => boolean): Instances {
  const [shown, setShown] = useState<Shown>(nothing)
  const known = useRef<Shown>(nothing)
  const asked = useRef(new Set<number>())
  const seen = useRef({ first: 0, end: 1 })
  const round = useRef(new AbortController())
  const { trigger, trigger_type: type, status } = filter

  const set = (next: Shown): void => {
    known.current = next
    setShown(next)
  }

  const query = { trigger, trigger_type: type, status, include_attributes: ATTRIBUTES }

  /** @param isFresh what is shown stays until it has come, and then goes */
  function load(page: number, isFresh = false): void {
    if (asked.current.has(page)) return
    asked.current.add(page)
    const { signal } = round.current
    list<ListedInstance>('triggerinstances', { ...query, limit: PAGE, offset: page * PAGE }, signal)
      .then(({ items, total }) => {
        if (signal.aborted) return
        asked.current.delete(page)
        const { first, end } = seen.current
        const middle = (first + end) / 2 / PAGE
        const kept = [...(isFresh ? [] : known.current.pages)].filter(([one]) => one !== page)
        kept.sort(([a], [b]) => Math.abs(a - middle) - Math.abs(b - middle))
        const pages = new Map([...kept.slice(0, MAX_PAGES - 1), [page, items] as const])
        set({ pages, total, error: undefined, hasNewer: isFresh ? false : known.current.hasNewer })
        look(first, end)
      })
      .catch((error: unknown) => {
        asked.current.delete(page)
        if (!signal.aborted && !isAbort(error)) set({ ...known.current, error })
      })
  }

  function look(first: number, end: number): void {
    seen.current = { first, end }
    const { total, pages } = known.current
    if (total === undefined) return
    const last = Math.min(end, total) - 1
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) {
      if (!pages.has(page)) load(page)
    }
  }

  function reload(): void {
    round.current.abort()
    round.current = new AbortController()
    asked.current.clear()
    load(0, true)
  }

  /** The first page when it is to be seen, else only whether there is something newer. */
  function refresh(): void {
    if (document.hidden || asked.current.has(0)) return
    if (isAtTop() || known.current.total === undefined) {
      load(0, true)
      return
    }
    const { signal } = round.current
    const newest = known.current.pages.get(0)?.[0]?.id
    list<{ id: string }>('triggerinstances', { ...query, include_attributes: 'id', limit: 1 }, signal)
      .then(({ items: [first], total }) => {
        if (signal.aborted || first === undefined) return
        const isNewer = newest === undefined ? total !== known.current.total : first.id !== newest
        if (isNewer) set({ ...known.current, hasNewer: true })
      })
      // The next time tells.
      .catch(() => undefined)
  }

  const latest = useRef({ refresh, reload, look })
  latest.current = { refresh, reload, look }

  useEffect(() => {
    set(nothing)
    latest.current.reload()
    const timer = setInterval(() => latest.current.refresh(), POLL_MS)
    const onVisible = (): void => latest.current.refresh()
    document.addEventListener('visibilitychange', onVisible)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', onVisible)
      round.current.abort()
    }
  }, [trigger, type, status])

  const soon = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(soon.current), [])
  useExecutionEvents({
    onExecution(_, change) {
      if (change !== 'create' || soon.current !== undefined) return
      soon.current = setTimeout(() => {
        soon.current = undefined
        latest.current.refresh()
      }, SOON_MS)
    },
  })

  const { pages, total, error, hasNewer } = shown
  return {
    total,
    error,
    hasNewer,
    at: (index) => pages.get(Math.floor(index / PAGE))?.[index % PAGE],
    look: useCallback((first: number, end: number) => latest.current.look(first, end), []),
    reload: useCallback(() => latest.current.reload(), []),
  }
}
