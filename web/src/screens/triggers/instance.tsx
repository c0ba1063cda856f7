import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { ApiError, get, list, messageOf, request } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { useLoaded } from '../../api/load.ts'
import { usePoll } from '../../api/poll.ts'
import type { Explanation, TriggerInstanceRecord, TriggerRecord } from '../../api/records.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Confirm } from '../../components/dialog.tsx'
import { Failure } from '../../components/failure.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { triggerLine } from '../../components/rules/trigger-line.ts'
import { hrefOf } from '../../router.ts'
import { ExplanationView } from './explanation.tsx'
import { originalIdOf } from './original.ts'
import { writeJson } from '../../json.ts'

/** Larger payloads are asked for on request. */
const MAX_PAYLOAD_BYTES = 1024 * 1024
/** Nobody tells when a trigger instance has been processed. */
const LOOK_AGAIN_MS = 2000

/** One trigger instance, and the outcome of every rule. */
export function InstancePage({ id }: { id: string }): JSX.Element {
  const path = `triggerinstances/${encodeURIComponent(id)}`
  const loadInstance = (signal?: AbortSignal): Promise<TriggerInstanceRecord> =>
    get<TriggerInstanceRecord>(path, { max_payload_size: MAX_PAYLOAD_BYTES }, signal)
  const loadWhy = (signal?: AbortSignal): Promise<Explanation> => get<Explanation>(`${path}/explain`, undefined, signal)
  const instance = useLoaded(loadInstance, [id])
  const why = useLoaded(loadWhy, [id], ['rule'])
  const { data } = instance

  usePoll(async () => {
    if (data?.status !== 'pending') return
    const [record, explanation] = await Promise.all([loadInstance(), loadWhy()])
    instance.set(record)
    why.set(explanation)
  }, LOOK_AGAIN_MS)
  const known = useRef<Explanation>(undefined)
  known.current = why.data
  useExecutionEvents({
    // What happened while the stream was not open.
    onOpen() {
      if (known.current !== undefined) why.reload()
    },
    onExecution(execution, change) {
      if (execution.trigger_instance?.id !== id || change !== 'create') return
      const isKnown = known.current?.rules.some(({ enforcement }) => enforcement?.execution_id === execution.id)
      if (isKnown !== true) why.reload()
    },
  })

  if (data === undefined && instance.error !== undefined) {
    return (
      <div class="page">
        <Back />
        <h1>Trigger instance</h1>
        <Failure error={missing(instance.error)} onRetry={instance.reload} />
      </div>
    )
  }
  if (data === undefined) return <p class="loading">Loading…</p>
  return (
    <div class="page trigger-instance">
      <Back />
      <header class="page-head">
        <h1>Trigger instance</h1>
        <StatusBadge status={data.status} />
        <span class="spacer" />
        <ReEmit id={id} />
      </header>
      <section class="card" aria-label="Event">
        <Facts instance={data} />
      </section>
      <section class="card" aria-label="Outcome">
        <h2>Outcome</h2>
        {why.error !== undefined && why.data === undefined && <Failure error={why.error} onRetry={why.reload} />}
        {why.error === undefined && why.data === undefined && (
          <p class="loading">Checking every rule of the trigger…</p>
        )}
        {why.data !== undefined && <ExplanationView explanation={why.data} />}
      </section>
      <section class="card" aria-label="Payload">
        <Payload instance={data} path={path} onPayload={(shown) => instance.set({ ...data, ...shown })} />
      </section>
    </div>
  )
}

function Back(): JSX.Element {
  return (
    <p class="back">
      <a href={hrefOf(['triggers', 'instances'])}>← All trigger instances</a>
    </p>
  )
}

/** Old ones are deleted after a while, which the server does not say. */
function missing(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 404) return error
  return `${messageOf(error)} Retention deletes old trigger instances.`
}

function Facts({ instance }: { instance: TriggerInstanceRecord }): JSX.Element {
  const { id, trigger: ref, trigger_type: type, occurrence_time: at, trace_id: trace, payload } = instance
  const { data: trigger } = useLoaded(
    async (signal) => {
      const { items } = await list<TriggerRecord>('triggers', { type }, signal)
      return items.find((one) => one.ref === ref)
    },
    [type, ref],
  )
  const original = originalIdOf(payload)
  return (
    <dl class="facts">
      <dt>Trigger</dt>
      <dd>
        <strong>{trigger === undefined ? type : triggerLine(trigger)}</strong>
        <div class="hint">
          <a href={hrefOf(['triggers', 'instances'], { trigger: ref })}>all of this trigger</a>
          {' · '}
          <a href={hrefOf(['triggers', 'types', type])}>trigger type</a>
        </div>
      </dd>
      <dt>Occurred</dt>
      <dd>
        <Time at={at} />
      </dd>
      {trace !== '' && (
        <>
          <dt>Trace</dt>
          <dd>
            <a href={hrefOf(['traces', trace])}>show everything this event caused</a>
          </dd>
        </>
      )}
      {original !== undefined && (
        <>
          <dt>Replay of</dt>
          <dd>
            <a href={hrefOf(['triggers', 'instances', original])}>{original}</a>
          </dd>
        </>
      )}
      <dt>Id</dt>
      <dd>
        <code>{id}</code> <CopyButton text={id} />
      </dd>
    </dl>
  )
}

function Payload({
  instance: { payload, payload_size: size, payload_reduced: reduced },
  path,
  onPayload,
}: {
  instance: TriggerInstanceRecord
  path: string
  onPayload: (shown: Pick<TriggerInstanceRecord, 'payload' | 'payload_reduced'>) => void
}): JSX.Element {
  const [isLoading, setIsLoading] = useState(false)
  const [error, setError] = useState<unknown>()
  async function load(): Promise<void> {
    setIsLoading(true)
    setError(undefined)
    try {
      const { payload: whole, payload_reduced: why } = await get<TriggerInstanceRecord>(path)
      onPayload({ payload: whole, ...(why === undefined ? {} : { payload_reduced: why }) })
    } catch (failure) {
      setError(failure)
    } finally {
      setIsLoading(false)
    }
  }
  return (
    <>
      <div class="page-head">
        <h2>Payload</h2>
        <span class="spacer" />
        {payload !== undefined && <CopyButton text={writeJson(payload, 2)} title="Copy as JSON" />}
      </div>
      {reduced !== undefined && <p class="hint">{reduced}</p>}
      {payload !== undefined ? (
        <JsonTree value={payload} name="trigger" />
      ) : (
        <p>
          It has {(size ?? 0).toLocaleString()} bytes.{' '}
          <button type="button" disabled={isLoading} onClick={() => void load()}>
            {isLoading ? 'Loading…' : 'Show anyway'}
          </button>
        </p>
      )}
      {error !== undefined && <Failure error={error} />}
    </>
  )
}

/** Lets it happen again, in a new trace. */
function ReEmit({ id }: { id: string }): JSX.Element {
  const [isAsking, setIsAsking] = useState(false)
  const [isBusy, setIsBusy] = useState(false)
  const [made, setMade] = useState<string>()
  const [error, setError] = useState<unknown>()
  async function send(): Promise<void> {
    setIsBusy(true)
    setMade(undefined)
    setError(undefined)
    try {
      const response = await request('POST', `triggerinstances/${encodeURIComponent(id)}/re_emit`)
      setMade(response.headers.get('Svc-Trigger-Instance-Id') ?? '')
    } catch (failure) {
      setError(failure)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <>
      <button type="button" disabled={isBusy} onClick={() => setIsAsking(true)}>
        {isBusy ? 'Replaying…' : 'Replay'}
      </button>
      <div class="re-emit" role="status">
        {made !== undefined && (
          <p>
            Replayed:{' '}
            {made === '' ? (
              'see the newest trigger instance.'
            ) : (
              <a href={hrefOf(['triggers', 'instances', made])}>{made}</a>
            )}
          </p>
        )}
      </div>
      {error !== undefined && <Failure error={error} />}
      {isAsking && (
        <Confirm
          title="Replay the event?"
          text="svc dispatches the same payload in a new trace. Every enabled rule that matches now starts its execution."
          action="Replay"
          onConfirm={() => void send()}
          onClose={() => setIsAsking(false)}
        />
      )}
    </>
  )
}
