/** One thing that has happened: what it brought, and why something came of it, or did not. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, list, messageOf, request } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { useLoaded } from '../../api/load.ts'
import type { Explanation, RuleEnforcementView, TriggerInstanceRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { LongText } from '../../components/long-text.tsx'
import { notify } from '../../components/notices.tsx'
import { VerdictBadge, VerdictReason } from '../../components/rules/verdict.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

/** Larger payloads are shown on request. */
const MAX_PAYLOAD_BYTES = 512 * 1024
const PENDING_MS = 1000
const MAX_SHOWN = 100

export function InstancePage({ id }: { id: string }): JSX.Element {
  const [isWhole, setIsWhole] = useState(false)
  const instance = useLoaded(
    (signal) =>
      get<TriggerInstanceRecord>(
        `triggerinstances/${encodeURIComponent(id)}`,
        isWhole ? {} : { max_payload_size: MAX_PAYLOAD_BYTES },
        signal,
      ),
    [id, isWhole],
  )
  const known = useRef<TriggerInstanceRecord>(undefined)
  if (instance.data !== undefined) known.current = instance.data
  const explanation = useLoaded(
    async (signal) => {
      const [explained, enforcements] = await Promise.all([
        get<Explanation>(`triggerinstances/${encodeURIComponent(id)}/explain`, undefined, signal),
        list<RuleEnforcementView>(
          'ruleenforcements/views',
          {
            trigger_instance: id,
            limit: MAX_SHOWN,
            include_attributes: 'id,execution_id,execution.id,execution.status,execution.action',
          },
          signal,
        ),
      ])
      return { explained, started: new Map(enforcements.items.map((one) => [one.id, one])) }
    },
    [id],
  )
  const { data } = explanation

  // Until it has been processed, its rules have not had their say.
  const isPending = data?.explained.trigger_instance.status === 'pending'
  useEffect(() => {
    if (!isPending) return undefined
    const timer = setTimeout(() => {
      explanation.reload()
      instance.reload()
    }, PENDING_MS)
    return () => clearTimeout(timer)
  }, [isPending, data])
  useExecutionEvents({
    onExecution(execution) {
      const isOurs = [...(data?.started.values() ?? [])].some(({ execution_id: one }) => one === execution.id)
      if (isOurs) explanation.reload()
    },
  })

  const record = instance.data ?? known.current
  return (
    <div class="page triggers">
      <p class="triggers-back">
        <a href={hrefOf(['triggers', 'instances'])}>← All trigger instances</a>
      </p>
      {instance.error !== undefined && <Failure error={instance.error} onRetry={instance.reload} />}
      {record === undefined && instance.error === undefined && <p class="loading">Loading…</p>}
      {record !== undefined && (
        <>
          <Head record={record} status={data?.explained.trigger_instance.status ?? record.status} />
          <div class="triggers-columns">
            <section class="card" aria-label="What came of it">
              <h2>What came of it</h2>
              {explanation.error !== undefined && <Failure error={explanation.error} onRetry={explanation.reload} />}
              {data === undefined && explanation.error === undefined && <p class="loading">Asking the rules…</p>}
              {data !== undefined && <Explained {...data} instanceId={id} />}
            </section>
            <section class="card" aria-label="Payload">
              <h2>Payload</h2>
              {record.payload_size === undefined ? (
                <JsonTree value={record.payload} name="trigger" />
              ) : (
                <p>
                  It has {record.payload_size.toLocaleString()} bytes.{' '}
                  <button type="button" disabled={instance.isLoading} onClick={() => setIsWhole(true)}>
                    Show it
                  </button>
                </p>
              )}
            </section>
          </div>
        </>
      )}
    </div>
  )
}

function Head({ record, status }: { record: TriggerInstanceRecord; status: string }): JSX.Element {
  const { id, trigger, trigger_type: type, occurrence_time: at, trace_id: trace } = record
  const [sent, setSent] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const original = originalOf(record.payload)
  async function emit(): Promise<void> {
    setIsBusy(true)
    try {
      const answer = await request('POST', `triggerinstances/${id}/re_emit`)
      setSent(answer.headers.get('Svc-Trigger-Instance-Id') ?? '')
    } catch (error) {
      notify(`It was not sent again: ${messageOf(error)}`, 'failure')
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <>
      <header class="page-head">
        <h1>{type}</h1>
        <StatusBadge status={status} />
        <span class="spacer" />
        <a class="button" href={hrefOf(['traces', trace])}>
          Trace
        </a>
        <button
          type="button"
          disabled={isBusy}
          title="What it brought happens once more, and rules react to it as they are now."
          onClick={() => void emit()}
        >
          {isBusy ? 'Sending…' : 'Send it again'}
        </button>
      </header>
      <div role="status">
        {sent !== undefined && (
          <p class="triggers-sent">
            It has happened again.{' '}
            <a href={sent === '' ? hrefOf(['triggers', 'instances']) : hrefOf(['triggers', 'instances', sent])}>
              See what came of the new one
            </a>
          </p>
        )}
      </div>
      <dl class="facts">
        <dt>When</dt>
        <dd>
          <Time at={at} />
        </dd>
        <dt>Trigger</dt>
        <dd>
          <a href={hrefOf(['triggers', 'instances'], { trigger })}>{trigger}</a>
        </dd>
        <dt>Id</dt>
        <dd>
          <code>{id}</code>
        </dd>
        {original !== undefined && (
          <>
            <dt>Sent again from</dt>
            <dd>
              <a href={hrefOf(['triggers', 'instances', original])}>{original}</a>
            </dd>
          </>
        )}
      </dl>
    </>
  )
}

function Explained({
  explained,
  started,
  instanceId,
}: {
  explained: Explanation
  started: ReadonlyMap<string, RuleEnforcementView>
  instanceId: string
}): JSX.Element {
  const { message, rules, hidden } = explained
  const [shown, setShown] = useState(MAX_SHOWN)
  return (
    <>
      <p class="triggers-message">
        <LongText text={message} />
      </p>
      <ul class="triggers-verdicts">
        {rules.slice(0, shown).map((verdict) => {
          const { rule, enforcement } = verdict
          const execution = enforcement === undefined ? undefined : started.get(enforcement.id)?.execution
          return (
            <li key={rule.uid}>
              <p class="triggers-rule">
                <a href={hrefOf(['rules', rule.ref])}>{rule.ref}</a> <VerdictBadge verdict={verdict.verdict} />
                {rule.type === 'backstop' && <span class="badge">backstop</span>}
                <a class="try" href={hrefOf(['rules', rule.ref], { instance: instanceId })}>
                  Test it
                </a>
              </p>
              <VerdictReason verdict={verdict} />
              {enforcement?.execution_id !== undefined && (
                <p>
                  → <a href={hrefOf(['history', enforcement.execution_id])}>execution of {actionOf(execution)}</a>{' '}
                  {execution?.status !== undefined && <StatusBadge status={execution.status} />}
                </p>
              )}
              {enforcement?.failure_reason !== undefined && (
                <p class="problem">
                  Enforcing it failed: <LongText text={enforcement.failure_reason} />
                </p>
              )}
            </li>
          )
        })}
      </ul>
      {rules.length > shown && (
        <button type="button" onClick={() => setShown(shown + MAX_SHOWN)}>
          {rules.length - shown} more rules
        </button>
      )}
      {hidden > 0 && (
        <p class="hint">
          {hidden} more {hidden === 1 ? 'rule' : 'rules'} of the trigger you may not view.
        </p>
      )}
    </>
  )
}

function actionOf(execution: RuleEnforcementView['execution']): string {
  const ref = execution?.action.ref
  return typeof ref === 'string' ? ref : 'an action'
}

/** Of a payload that was sent again. */
function originalOf(payload: unknown): string | undefined {
  if (typeof payload !== 'object' || payload === null || !('__context' in payload)) return undefined
  const { __context: context } = payload
  if (typeof context !== 'object' || context === null || !('original_id' in context)) return undefined
  return typeof context.original_id === 'string' && /^[0-9a-f]{24}$/.test(context.original_id)
    ? context.original_id
    : undefined
}
