/** What was sent to a webhook, the newest first, with what came of it. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { list, messageOf } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { usePoll } from '../../api/poll.ts'
import type { TriggerInstanceRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { useMedia } from '../../components/media.ts'
import { Time } from '../../components/time.tsx'
import { usePagedList } from '../../components/use-paged-list.ts'
import { VirtualList, type VirtualListHandle } from '../../components/virtual-list.tsx'
import { hrefOf, parseLocation } from '../../router.ts'
import { narrowQuery } from './fold.tsx'
import type { WebhookTrigger } from './hooks.ts'
import { OutcomeView } from '../../components/outcomes/outcome-view.tsx'
import { titleOfProof } from './proof.ts'
import { ReEmit } from './re-emit.tsx'
import { excerptOf, MAX_LISTED_BYTES } from './request-text.ts'
import { useOutcomes, type Outcomes } from '../../components/outcomes/use-outcomes.ts'

const WIDE_ROW = 58
const NARROW_ROW = 104
/** Nobody tells of requests that no rule is interested in. */
const POLL_MS = 5000
const AFTER_EVENT_MS = 200

export function RequestList({
  triggers: ofHook,
  openId,
  sent,
}: {
  /** Others need another component. */
  triggers: readonly WebhookTrigger[]
  /** Id of the one that is opened. */
  openId: string | null
  /** Another number each time the page has sent something. */
  sent: number
}): JSX.Element {
  const triggers = ofHook.map(({ ref }) => ref)
  // One request is told to each of them.
  const labels = new Map(
    ofHook.length === 1 ? [] : ofHook.map(({ ref, parameters }) => [ref, labelOf(parameters)] as const),
  )
  const isNarrow = useMedia(narrowQuery)
  const listHandle = useRef<VirtualListHandle>(null)
  const topRow = useRef(0)
  const rows = usePagedList<TriggerInstanceRecord>(
    (place, signal) =>
      list<TriggerInstanceRecord>(
        'triggerinstances',
        { trigger: triggers, max_payload_size: MAX_LISTED_BYTES, ...place },
        signal,
      ),
    triggers.join(),
  )
  const outcomes = useOutcomes()
  const [pollError, setPollError] = useState<unknown>()
  const needShown = (): void => outcomes.need(rows.shown())
  // What has been loaded since the rows were drawn.
  useEffect(needShown)

  async function lookForNews(): Promise<void> {
    try {
      const waiting = rows.shown().filter(({ status }) => status === 'pending')
      const [added] = await Promise.all([rows.refresh(), readAgain(waiting)])
      // Whoever has scrolled away from the beginning goes on looking at the same rows.
      if (added !== undefined && added > 0 && topRow.current >= 1) {
        listHandle.current?.scrollToRow(topRow.current + added)
      }
      setPollError(undefined)
    } catch (error) {
      setPollError(error)
    }
  }
  async function readAgain(waiting: readonly TriggerInstanceRecord[]): Promise<void> {
    if (waiting.length === 0) return
    const ids = waiting.map(({ id }) => id)
    rows.update(
      (
        await list<TriggerInstanceRecord>('triggerinstances', {
          id: ids,
          limit: ids.length,
          max_payload_size: MAX_LISTED_BYTES,
        })
      ).items,
    )
  }
  usePoll(lookForNews, POLL_MS)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const soon = (): void => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      void lookForNews()
    }, AFTER_EVENT_MS)
  }
  useExecutionEvents({
    onExecution(execution, change) {
      if (change === 'create' && triggers.includes(execution.trigger?.ref ?? '')) soon()
    },
    onOpen: soon,
  })

  useEffect(() => {
    if (sent > 0) soon()
  }, [sent])

  const { count } = rows
  return (
    <section class="requests" aria-label="Last requests">
      <div class="card-head">
        <h2>Last requests</h2>
        {count !== undefined && <span class="hint">{count.toLocaleString()}</span>}
      </div>
      {outcomes.error !== undefined && (
        <p class="hint">What came of them cannot be shown: {messageOf(outcomes.error)}</p>
      )}
      {pollError !== undefined && (
        <p class="hint" role="status">
          Newer requests cannot be shown: {messageOf(pollError)}
        </p>
      )}
      {rows.error !== undefined && <Failure error={rows.error} onRetry={rows.reload} />}
      {count === undefined && rows.error === undefined && <p class="loading">Loading…</p>}
      {count === 0 && (
        <p class="empty">
          Nothing has been sent yet, or it has been purged. Requests with a wrong signature are not kept: the audit log
          of the server tells of them.
        </p>
      )}
      {count !== undefined && count > 0 && (
        <VirtualList
          count={count}
          rowHeight={isNarrow ? NARROW_ROW : WIDE_ROW}
          label="Last requests"
          handle={listHandle}
          onScroll={(position) => (topRow.current = position.topRow)}
          onRange={(first, end) => {
            rows.show(first, end)
            needShown()
          }}
          row={(index) => {
            const request = rows.rowAt(index)
            return request === undefined ? (
              <div class="request-row">…</div>
            ) : (
              <RequestRow
                request={request}
                outcomes={outcomes}
                isOpen={request.id === openId}
                label={labels.get(request.trigger)}
                onSent={soon}
              />
            )
          }}
        />
      )}
    </section>
  )
}

function RequestRow({
  request,
  outcomes,
  isOpen,
  label,
  onSent,
}: {
  request: TriggerInstanceRecord
  outcomes: Outcomes
  isOpen: boolean
  /** Of the trigger, where there are several. */
  label: string | undefined
  onSent: () => void
}): JSX.Element {
  const { id, occurrence_time: at } = request
  const { path } = parseLocation(location.hash)
  return (
    <div class="request-row" data-open={isOpen ? '' : undefined}>
      <a class="request-open" href={hrefOf(path, { request: id })} aria-current={isOpen ? 'true' : undefined}>
        <span>
          <Time at={at} /> {label !== undefined && <span class="hint">for {label}</span>}
        </span>
        <span class="request-body code">{excerptOf(request)}</span>
      </a>
      <OutcomeView instance={request} outcome={outcomes.of(id)} most={2} />
      <ReEmit id={id} onSent={onSent} isCompact />
    </div>
  )
}

/** What its rules say besides the address, which is the same. */
function labelOf({ url, signature }: WebhookTrigger['parameters']): string {
  return signature === undefined ? url : `${url}, ${titleOfProof(signature, true)}`
}
