/** Requests to a webhook, newest first, with their outcomes. */
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { list, messageOf } from '../../api/client.ts'
import type { TriggerInstanceRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { useMedia } from '../../components/media.ts'
import { Time } from '../../components/time.tsx'
import { useLiveList } from '../../components/use-live-list.ts'
import { VirtualList } from '../../components/virtual-list.tsx'
import { hrefOf, parseLocation } from '../../router.ts'
import { NARROW_PAGE } from './fold.tsx'
import type { WebhookTrigger } from './hooks.ts'
import { OutcomeView } from '../../components/outcomes/outcome-view.tsx'
import { authenticationTitle } from './authentication.ts'
import { ReplayButton } from './replay-button.tsx'
import { excerptOf, MAX_LISTED_BYTES } from './request-text.ts'
import { useOutcomes, type Outcomes } from '../../components/outcomes/use-outcomes.ts'

const WIDE_ROW = 58
const NARROW_ROW = 104

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
  // Each trigger of the webhook gets the request.
  const labels = new Map(
    ofHook.length === 1 ? [] : ofHook.map(({ ref, parameters }) => [ref, labelOf(parameters)] as const),
  )
  const isNarrow = useMedia(NARROW_PAGE)
  const rows = useLiveList<TriggerInstanceRecord>({
    load: (place, signal) =>
      list('triggerinstances', { trigger: triggers, max_payload_size: MAX_LISTED_BYTES, ...place }, signal),
    key: triggers.join(),
    concerns: ({ trigger }, change) => change === 'create' && triggers.includes(trigger?.ref ?? ''),
    changing: {
      is: ({ status }) => status === 'pending',
      load: (ids) => list('triggerinstances', { id: ids, limit: ids.length, max_payload_size: MAX_LISTED_BYTES }),
    },
  })
  const outcomes = useOutcomes()
  const needShown = (): void => outcomes.need(rows.shown())
  // What has been loaded since the rows were drawn.
  useEffect(needShown)

  useEffect(() => {
    if (sent > 0) rows.soon()
  }, [sent])

  const { count, problem } = rows
  return (
    <section class="requests" aria-label="Recent requests">
      <div class="card-head">
        <h2>Recent requests</h2>
        {count !== undefined && <span class="hint">{count.toLocaleString()}</span>}
      </div>
      {outcomes.error !== undefined && <p class="hint">Could not load the outcomes: {messageOf(outcomes.error)}</p>}
      {problem !== undefined && (
        <p class="hint" role="status">
          Could not load newer requests: {messageOf(problem)}
        </p>
      )}
      {rows.error !== undefined && <Failure error={rows.error} onRetry={rows.reload} />}
      {count === undefined && rows.error === undefined && <p class="loading">Loading…</p>}
      {count === 0 && (
        <p class="empty">
          No requests yet, or retention deleted them. The audit log of the server lists requests with a wrong signature.
        </p>
      )}
      {count !== undefined && count > 0 && (
        <VirtualList
          count={count}
          rowHeight={isNarrow ? NARROW_ROW : WIDE_ROW}
          label="Recent requests"
          {...rows.drawn}
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
                onSent={rows.soon}
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
      <ReplayButton id={id} onSent={onSent} isCompact />
    </div>
  )
}

/** What its rules say besides the address, which is the same. */
function labelOf({ url, signature }: WebhookTrigger['parameters']): string {
  return signature === undefined ? url : `${url}, ${authenticationTitle(signature, true)}`
}
