/** One request to a webhook: its headers, its body and its outcome. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { get, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { usePoll } from '../../api/poll.ts'
import type { TriggerInstanceRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { LongText } from '../../components/long-text.tsx'
import { formatBytes } from '../../components/size.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { hrefOf, parseLocation } from '../../router.ts'
import { OutcomeView } from '../../components/outcomes/outcome-view.tsx'
import { ReplayButton } from './replay-button.tsx'
import { partsOf } from './request-text.ts'
import { useOutcomes } from '../../components/outcomes/use-outcomes.ts'

/** Larger ones are loaded when somebody asks for it. */
const MAX_BYTES = 512 * 1024
const MAX_HEADERS = 100
const MAX_EXECUTIONS = 20
const POLL_MS = 2000

export function RequestView({ id, onSent }: { id: string; onSent: () => void }): JSX.Element {
  const [isWhole, setIsWhole] = useState(false)
  const { data, error, reload } = useLoaded(
    (signal) =>
      get<TriggerInstanceRecord>(
        `triggerinstances/${encodeURIComponent(id)}`,
        isWhole ? {} : { max_payload_size: MAX_BYTES },
        signal,
      ),
    [id, isWhole],
  )
  const { path } = parseLocation(location.hash)
  return (
    <section class="card request-view" aria-label="Request">
      <div class="card-head">
        <h2>Request</h2>
        <a class="button" href={hrefOf(path)}>
          Close
        </a>
      </div>
      {error !== undefined && data === undefined && <Failure error={error} onRetry={reload} />}
      {error === undefined && data === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && (
        <Loaded request={data} onWhole={() => setIsWhole(true)} onReload={reload} onSent={onSent} />
      )}
    </section>
  )
}

function Loaded({
  request,
  onWhole,
  onReload,
  onSent,
}: {
  request: TriggerInstanceRecord
  onWhole: () => void
  onReload: () => void
  onSent: () => void
}): JSX.Element {
  const { id, status, occurrence_time: at, trace_id: traceId, payload, payload_size: size } = request
  const outcomes = useOutcomes()
  useEffect(() => outcomes.need([request]), [request])
  usePoll(async () => {
    if (status === 'pending') onReload()
  }, POLL_MS)
  const { headers, body, original } = partsOf(payload)
  const { path } = parseLocation(location.hash)
  return (
    <>
      <dl class="facts">
        <dt>Received</dt>
        <dd>
          <Time at={at} />
        </dd>
        <dt>Status</dt>
        <dd>
          <StatusBadge status={status} />
        </dd>
        <dt>Outcome</dt>
        <dd>
          <OutcomeView instance={request} outcome={outcomes.of(id)} most={MAX_EXECUTIONS} />
        </dd>
        <dt>Id</dt>
        <dd>
          <code>{id}</code>
        </dd>
        {original !== undefined && (
          <>
            <dt>Replay of</dt>
            <dd>
              <a href={hrefOf(path, { request: original })}>an earlier request</a>
            </dd>
          </>
        )}
      </dl>
      {outcomes.error !== undefined && <p class="hint">Could not load the outcome: {messageOf(outcomes.error)}</p>}
      <div class="buttons">
        <a class="button" href={hrefOf(['triggers', 'instances', id])}>
          Explain
        </a>
        <a class="button" href={hrefOf(['traces', traceId])}>
          Trace
        </a>
        <ReplayButton id={id} onSent={onSent} />
      </div>
      {payload === undefined && size !== undefined ? (
        <p>
          The request has {formatBytes(size)}.{' '}
          <button type="button" onClick={onWhole}>
            Load
          </button>
        </p>
      ) : (
        <>
          <h3>Body</h3>
          <JsonTree value={body} />
          {headers.length > 0 && <Headers headers={headers} />}
        </>
      )}
    </>
  )
}

function Headers({ headers }: { headers: readonly (readonly [name: string, value: string])[] }): JSX.Element {
  const [shown, setShown] = useState(MAX_HEADERS)
  return (
    <>
      <h3>Headers</h3>
      <Table class="headers">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {headers.slice(0, shown).map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="code">
                <LongText text={value} />
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
      {headers.length > shown && (
        <button type="button" class="quiet" onClick={() => setShown(shown + MAX_HEADERS * 10)}>
          {headers.length - shown} more headers
        </button>
      )}
    </>
  )
}
