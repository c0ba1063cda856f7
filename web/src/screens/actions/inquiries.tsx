/** What executions wait for somebody to answer. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, list, type ListPage } from '../../api/client.ts'
import { userOf } from '../../api/execution.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { useLoaded, type Loaded } from '../../api/load.ts'
import type { ExecutionRecord, InquiryRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { InquiryForm } from '../../components/inquiry-form.tsx'
import { Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

const AT_ONCE = 20
/** Many executions that begin to wait at once are one reason to look. */
const PAUSE_MS = 200

/** Pending inquiries, loaded again when one begins or ends. */
function useWaiting<T>(load: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const loaded = useLoaded(load, keys)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  useExecutionEvents({
    onOpen: loaded.reload,
    onExecution({ runner }) {
      if (runner.name !== 'inquirer') return
      clearTimeout(timer.current)
      timer.current = setTimeout(loaded.reload, PAUSE_MS)
    },
  })
  return loaded
}

/** Says that somebody waits; nothing when nobody does. */
export function InquiriesLink({ isShown }: { isShown: boolean }): JSX.Element | null {
  const { data } = useWaiting((signal) => list<InquiryRecord>('inquiries', { limit: 1 }, signal), [])
  // Without the permission to list inquiries there is no link.
  if (!isShown && (data === undefined || data.total === 0)) return null
  return (
    <a class="inquiries-link" href={hrefOf(['actions', 'inquiries'])} aria-current={isShown ? 'page' : undefined}>
      Inquiries <span class="badge">{data?.total ?? 0}</span>
    </a>
  )
}

type Asking = Pick<ExecutionRecord, 'id' | 'action' | 'start_timestamp' | 'parent' | 'context'>

interface Waiting {
  page: ListPage<InquiryRecord>
  /** Of those that the caller may see. */
  executions: ReadonlyMap<string, Asking>
}

export function Inquiries(): JSX.Element {
  const [limit, setLimit] = useState(AT_ONCE)
  const { data, error, reload } = useWaiting((signal) => loadWaiting(limit, signal), [limit])
  // A form stays while the list is loaded with more of them.
  const shown = useRef<Waiting>(undefined)
  if (data !== undefined) shown.current = data
  const waiting = shown.current
  const heading = useRef<HTMLHeadingElement>(null)
  return (
    <article class="action">
      <h2 ref={heading} tabIndex={-1}>
        Inquiries
      </h2>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {waiting === undefined && error === undefined && <p class="loading">Loading…</p>}
      {waiting?.page.items.length === 0 && (
        <p class="empty">
          No pending inquiries. An execution of <a href={hrefOf(['actions', 'core.ask'])}>core.ask</a> asks a question
          and waits until somebody answers it here.
        </p>
      )}
      {waiting?.page.items.map((inquiry) => (
        <Inquiry
          key={inquiry.id}
          inquiry={inquiry}
          execution={waiting.executions.get(inquiry.id)}
          onResponse={() => {
            // What had the focus goes.
            heading.current?.focus()
            reload()
          }}
        />
      ))}
      {waiting !== undefined && waiting.page.total > waiting.page.items.length && (
        <button type="button" onClick={() => setLimit(limit + AT_ONCE)}>
          Show more of the {waiting.page.total}
        </button>
      )}
    </article>
  )
}

async function loadWaiting(limit: number, signal: AbortSignal): Promise<Waiting> {
  const page = await list<InquiryRecord>('inquiries', { limit }, signal)
  const executions = new Map<string, Asking>()
  const ids = page.items.map(({ id }) => id)
  // As many as one request may name.
  for (let from = 0; from < ids.length; from += 100) {
    const { items } = await asking(ids.slice(from, from + 100), signal)
    for (const execution of items) executions.set(execution.id, execution)
  }
  return { page, executions }
}

async function asking(ids: readonly string[], signal: AbortSignal): Promise<ListPage<Asking>> {
  try {
    const attributes = 'id,action,start_timestamp,parent,context'
    return await list<Asking>('executions', { id: ids, limit: 100, include_attributes: attributes }, signal)
  } catch (error) {
    // Who may answer need not be allowed to see the executions.
    if (error instanceof ApiError && error.status === 403) return { items: [], total: 0 }
    throw error
  }
}

function Inquiry({
  inquiry,
  execution,
  onResponse,
}: {
  inquiry: InquiryRecord
  execution: Asking | undefined
  onResponse: () => void
}): JSX.Element {
  const { id } = inquiry
  const parent = execution?.parent
  return (
    <section class="card inquiry" aria-label={`Inquiry ${id}`}>
      <header class="page-head">
        <h3>
          <a href={hrefOf(['history', id])}>{execution?.action.ref ?? id}</a>
        </h3>
        {execution !== undefined && (
          <span class="hint">
            asked <Time at={execution.start_timestamp} /> for {userOf(execution)}
            {parent !== undefined && (
              <>
                {' '}
                by <a href={hrefOf(['history', parent])}>another execution</a>
              </>
            )}
          </span>
        )}
      </header>
      <InquiryForm inquiry={inquiry} askedAt={execution?.start_timestamp} onResponse={onResponse} />
    </section>
  )
}
