/** The rows of the history, up to date while they are shown, and kept to come back to. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { list, type QueryValues } from '../../api/client.ts'
import { liveConnection, useExecutionEvents } from '../../api/execution-events.ts'
import { serverNow } from '../../api/server-clock.ts'
import { summaryQuery, type ExecutionSummary } from '../../api/execution-summary.ts'
import { dependsOnStatus, historyKeyOf, isCostly, matches, historyQueryOf, type HistoryFilter } from './filters.ts'
import { createListModel, type ListModel } from './list-model.ts'
import type { ListEvent } from './list-rows.ts'

/** Executions that something happened to between two frames; with more of them the list is loaded. */
const MAX_EVENTS = 2000

export interface History {
  readonly key: string
  readonly model: ListModel
  /** Row at the upper edge, for who comes back. */
  topRow: number
  /** A search of outputs has found more than the rows. */
  hasMore: boolean
  onChange: () => void
  /** Nothing while its rows are not shown. */
  scrollToTop: () => void
}

/** The last one: from an execution people go back to where they were. */
let kept: History | undefined

export function useHistory(filter: HistoryFilter): History {
  const key = historyKeyOf(filter)
  const [, setVersion] = useState(0)
  const shown = useMemo(() => {
    if (kept?.key !== key) {
      kept?.model.stop()
      kept = createHistory(filter, key)
    }
    return kept
  }, [key])
  useEffect(() => {
    shown.onChange = () => setVersion((version) => version + 1)
    shown.model.resync()
    return () => {
      shown.onChange = () => undefined
      shown.model.stop()
    }
  }, [shown])
  useEvents(shown)
  return shown
}

function createHistory(filter: HistoryFilter, key: string): History {
  /** What "the last hour" is about, for all pages of one list. */
  let asOf = serverNow()
  const history: History = {
    key,
    topRow: 0,
    hasMore: false,
    onChange: () => undefined,
    scrollToTop: () => undefined,
    model: createListModel(
      {
        async load({ beforeId, afterId, offset }, limit, signal) {
          const isFirst = beforeId === undefined && afterId === undefined
          if (isFirst) asOf = serverNow()
          const isAscending = afterId !== undefined && beforeId !== undefined
          const query = {
            ...historyQueryOf(filter, asOf),
            ...summaryQuery,
            limit,
            ...(offset > 0 && { offset }),
            ...(beforeId !== undefined && { before_id: beforeId }),
            ...(afterId !== undefined && { after_id: afterId }),
            ...(isAscending ? { sort_asc: 1, sort_desc: undefined } : { sort_desc: 1 }),
          }
          if (filter.output !== '') {
            const { items, hasMore } = await findByOutput(query, limit, signal)
            if (isFirst) history.hasMore = hasMore
            return { items, total: isFirst ? items.length : undefined }
          }
          const { items, total } = await list<ExecutionSummary>('executions', query, signal)
          return { items: isAscending ? items.toReversed() : items, total: isFirst ? total : undefined }
        },
        matches: (execution) => matches(filter, execution, serverNow()),
        dependsOnStatus: dependsOnStatus(filter),
        isCostly: isCostly(filter),
      },
      () => history.onChange(),
    ),
  }
  return history
}

/** The server searches for a second at a time. */
async function findByOutput(
  query: QueryValues,
  limit: number,
  signal: AbortSignal,
): Promise<{ items: ExecutionSummary[]; hasMore: boolean }> {
  const items: ExecutionSummary[] = []
  let cursor: string | undefined
  do {
    const place = { limit: limit - items.length, output_cursor: cursor }
    const page = await list<ExecutionSummary>('executions', { ...query, ...place }, signal)
    items.push(...page.items)
    cursor = page.outputCursor
  } while (cursor !== undefined && items.length < limit)
  return { items, hasMore: cursor !== undefined }
}

/** All that happens between two frames is one change of what is drawn. */
function useEvents({ model }: History): void {
  const events = useRef(new Map<string, ListEvent>())
  const frame = useRef<number>(undefined)
  /** Nothing is drawn while nobody looks at the page: there may be more than are worth keeping. */
  const hasMissed = useRef(false)
  const latest = useRef(model)
  latest.current = model
  // What was loaded since the stream is open is not missing anything.
  const isOpenAlready = useRef(liveConnection.value === 'open')
  useEffect(() => () => cancelAnimationFrame(frame.current ?? 0), [])
  useExecutionEvents({
    onExecution(execution, change) {
      const { current } = events
      const isNew = change === 'update' && current.get(execution.id)?.change === 'create'
      current.set(execution.id, { execution, change: isNew ? 'create' : change })
      if (current.size > MAX_EVENTS) {
        current.clear()
        hasMissed.current = true
      }
      frame.current ??= requestAnimationFrame(() => {
        frame.current = undefined
        latest.current.accept(current.values())
        current.clear()
        if (hasMissed.current) latest.current.resync()
        hasMissed.current = false
      })
    },
    onOpen() {
      if (!isOpenAlready.current) latest.current.resync()
      isOpenAlready.current = false
    },
  })
}
