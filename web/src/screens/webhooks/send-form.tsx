/** Sends a request to a webhook from the page, and shows its outcome. */
import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { isAbort, list, messageOf, request } from '../../api/client.ts'
import { usePoll } from '../../api/poll.ts'
import type { SignatureParameters, TriggerInstanceRecord, WebhookOutcome } from '../../api/records.ts'
import { JsonField } from '../../components/form/json-field.tsx'
import { readJsonText, mistakeText } from '../../components/form/json-text.ts'
import { RefusalBanner, type Refusal } from '../../components/form/refusal.tsx'
import { SecretInput } from '../../components/form/secret-input.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { hrefOf } from '../../router.ts'
import type { ExampleRequest } from './example.ts'
import { Fold } from './fold.tsx'
import { problemOfHeader } from './header-rules.ts'
import { OutcomeView } from '../../components/outcomes/outcome-view.tsx'
import { authenticationTitle } from './authentication.ts'
import { signatureHeaders } from './sign.ts'
import { useOutcomes } from '../../components/outcomes/use-outcomes.ts'
import { isObject, readJson, writeJson } from '../../json.ts'
import '../../components/form/form.css'

/** One way to prove oneself; without a signature it is the login of who looks at the page. */
export interface Signer {
  signature: SignatureParameters | undefined
}

interface HeaderRow {
  key: number
  name: string
  value: string
}

interface Answer {
  status: number
  instanceIds: string[]
  traceId: string
  isReplay: boolean
  /** Of a request that was waited for. */
  outcome: WebhookOutcome | undefined
}

const MAX_HEADERS = 20
const MAX_WAIT_SECONDS = 300

export function SendForm({
  path,
  example,
  signers,
  onSent,
}: {
  /** Of the webhook, below the API. */
  path: string
  /** What the form begins with, until somebody changes it. */
  example: ExampleRequest
  signers: readonly Signer[]
  onSent?: () => void
}): JSX.Element {
  const id = useId()
  const [typed, setTyped] = useState<string>()
  const [typedHeaders, setTypedHeaders] = useState<readonly HeaderRow[]>()
  const [traceTag, setTraceTag] = useState('')
  const [idempotencyKey, setIdempotencyKey] = useState('')
  const [waitSeconds, setWaitSeconds] = useState('')
  const [signerAt, setSignerAt] = useState(0)
  const [secret, setSecret] = useState('')
  const [refusal, setRefusal] = useState<Refusal>()
  const [answer, setAnswer] = useState<Answer>()
  const [isBusy, setIsBusy] = useState(false)
  const controller = useRef<AbortController>(undefined)
  const nextKey = useRef(0)
  useEffect(() => () => controller.current?.abort(), [])

  const text = typed ?? writeJson(example.body, 2)
  const headers = typedHeaders ?? example.headers.map(([name, value], n): HeaderRow => ({ key: -1 - n, name, value }))
  const { signature } = signers[signerAt] ?? { signature: undefined }
  const setHeader = (row: HeaderRow): void =>
    setTypedHeaders(headers.map((other) => (other.key === row.key ? row : other)))

  async function send(event: Event): Promise<void> {
    event.preventDefault()
    setRefusal(undefined)
    setAnswer(undefined)
    setIsBusy(true)
    const { signal } = (controller.current = new AbortController())
    try {
      const body = bodyOf(text)
      for (const { name, value } of headers) {
        const wrong = problemOfHeader(name.trim(), value.trim())
        if (wrong !== undefined) throw new Error(`${name.trim()}: ${wrong}`.replace(/^: /, ''))
      }
      const seconds = Number(waitSeconds)
      const answered = await request('POST', path, {
        body,
        headers: {
          ...Object.fromEntries(
            headers.filter(({ name }) => name.trim() !== '').map(({ name, value }) => [name.trim(), value.trim()]),
          ),
          ...(traceTag.trim() !== '' && { 'Svc-Trace-Tag': headerText(traceTag, 'The trace tag') }),
          ...(idempotencyKey.trim() !== '' && {
            'Idempotency-Key': headerText(idempotencyKey, 'The idempotency key'),
          }),
          ...(seconds > 0 && { Prefer: `wait=${Math.min(seconds, MAX_WAIT_SECONDS)}` }),
          // What is signed is the text that is sent.
          ...(signature !== undefined && (await signatureHeaders(signature, secret, writeJson(body)))),
        },
        signal,
      })
      setAnswer(await answerOf(answered))
      onSent?.()
    } catch (error) {
      setRefusal({
        text: isAbort(error) ? 'Stopped waiting. The server may have accepted the request.' : messageOf(error),
      })
    } finally {
      setIsBusy(false)
    }
  }

  return (
    <Fold title="Send a request">
      <form class="form" onSubmit={(event) => void send(event)}>
        <JsonField label="Body" text={text} onText={setTyped} minRows={4} help="JSON: an object or a list." />
        {signers.length > 1 && (
          <div class="field">
            <label for={`${id}-signer`}>Sender</label>
            <select
              id={`${id}-signer`}
              value={signerAt}
              onChange={(event) => setSignerAt(Number(event.currentTarget.value))}
            >
              {signers.map((signer, n) => (
                <option key={n} value={n}>
                  {signer.signature === undefined
                    ? 'Your own credentials'
                    : authenticationTitle(signer.signature, true)}
                </option>
              ))}
            </select>
          </div>
        )}
        {signature?.scheme === 'sns' && (
          <p class="hint">Only Amazon SNS can sign for this webhook. Publish a message to its topic instead.</p>
        )}
        {signature !== undefined && signature.scheme !== 'sns' && (
          <div class="field">
            <label for={`${id}-secret`}>Secret</label>
            <SecretInput
              id={`${id}-secret`}
              name="the secret"
              text={secret}
              onText={setSecret}
              describedBy={`${id}-secret-help`}
            />
            <p class="hint" id={`${id}-secret-help`}>
              This webhook accepts only signed requests. The page signs with the secret, and neither stores nor sends it
              {signature.scheme === 'gitlab' ? ' anywhere but to the server, like GitLab' : ''}.
            </p>
          </div>
        )}
        <details class="send-more" open={headers.length > 0}>
          <summary>Headers and more</summary>
          <div class="form">
            <fieldset class="send-headers">
              <legend>Headers</legend>
              {headers.map((row, n) => (
                <div key={row.key} class="send-header">
                  <input
                    aria-label={`Name of header ${n + 1}`}
                    placeholder="X-Source"
                    value={row.name}
                    spellcheck={false}
                    onInput={(event) => setHeader({ ...row, name: event.currentTarget.value })}
                  />
                  <input
                    aria-label={`Value of header ${n + 1}`}
                    placeholder="shop"
                    value={row.value}
                    spellcheck={false}
                    onInput={(event) => setHeader({ ...row, value: event.currentTarget.value })}
                  />
                  <button
                    type="button"
                    class="quiet"
                    aria-label={`Remove header ${n + 1}`}
                    onClick={() => setTypedHeaders(headers.filter((other) => other.key !== row.key))}
                  >
                    ×
                  </button>
                </div>
              ))}
              <button
                type="button"
                class="compact"
                disabled={headers.length >= MAX_HEADERS}
                onClick={() => setTypedHeaders([...headers, { key: (nextKey.current += 1), name: '', value: '' }])}
              >
                Add header
              </button>
            </fieldset>
            <TextField
              id={`${id}-tag`}
              label="Trace tag"
              help="The tag of the trace. An existing trace gets the request as a member."
              value={traceTag}
              onValue={setTraceTag}
            />
            <TextField
              id={`${id}-key`}
              label="Idempotency key"
              help="svc ignores a request that repeats this key within 24 hours."
              value={idempotencyKey}
              onValue={setIdempotencyKey}
            />
            <div class="field">
              <label for={`${id}-wait`}>Seconds to wait for the executions</label>
              <input
                id={`${id}-wait`}
                type="number"
                min={0}
                max={MAX_WAIT_SECONDS}
                value={waitSeconds}
                placeholder="0"
                onInput={(event) => setWaitSeconds(event.currentTarget.value)}
              />
            </div>
          </div>
        </details>
        <RefusalBanner refusal={refusal} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? 'Sending…' : 'Send'}
          </button>
          {isBusy && (
            <button type="button" onClick={() => controller.current?.abort()}>
              Stop waiting
            </button>
          )}
        </div>
      </form>
      {answer !== undefined && <AnswerView answer={answer} />}
    </Fold>
  )
}

function TextField(props: {
  id: string
  label: string
  help: string
  value: string
  onValue: (value: string) => void
}): JSX.Element {
  const { id, label, help, value, onValue } = props
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        spellcheck={false}
        autocomplete="off"
        aria-describedby={`${id}-help`}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      <p class="hint" id={`${id}-help`}>
        {help}
      </p>
    </div>
  )
}

function AnswerView({ answer }: { answer: Answer }): JSX.Element {
  const { instanceIds, traceId, isReplay, outcome, status } = answer
  return (
    <div class="send-answer" role="status">
      {instanceIds.length === 0 ? (
        <p>The server answered {status}and created no trigger instance.</p>
      ) : (
        <p>
          {isReplay
            ? 'The server already has this request and ignored the repeat.'
            : 'The server accepted the request.'}{' '}
          {traceId !== '' && <a href={hrefOf(['traces', traceId])}>Trace</a>}
        </p>
      )}
      {instanceIds.length > 0 && <Instances ids={instanceIds} />}
      {outcome?.executions.map(({ id, status: ended, action, result, result_size: size }) => (
        <details key={id} open>
          <summary>
            <StatusBadge status={ended} /> <a href={hrefOf(['history', id, 'general'])}>{action}</a>
          </summary>
          {result !== undefined && <JsonTree value={result} />}
          {typeof size === 'number' && <p class="hint">The result is long. Open the execution to see it.</p>}
        </details>
      ))}
    </div>
  )
}

const POLL_MS = 1000

/** Their outcomes, live. */
function Instances({ ids }: { ids: readonly string[] }): JSX.Element {
  const [instances, setInstances] = useState<readonly Pick<TriggerInstanceRecord, 'id' | 'status'>[]>(
    ids.map((id) => ({ id, status: 'pending' })),
  )
  const outcomes = useOutcomes()
  const [failure, setFailure] = useState<unknown>()
  async function look(): Promise<void> {
    if (failure !== undefined || instances.every(({ status }) => status !== 'pending')) return
    const query = { id: ids, limit: ids.length, include_attributes: 'status' }
    try {
      setInstances((await list<TriggerInstanceRecord>('triggerinstances', query)).items)
    } catch (error) {
      setFailure(error)
    }
  }
  useEffect(() => void look(), [])
  usePoll(look, POLL_MS)
  useEffect(() => outcomes.need(instances), [instances])
  if (failure !== undefined || outcomes.error !== undefined) {
    return <p class="hint">Could not load the outcome: {messageOf(failure ?? outcomes.error)}</p>
  }
  return (
    <ul class="list send-instances">
      {instances.map((instance) => (
        <li key={instance.id}>
          <OutcomeView instance={instance} outcome={outcomes.of(instance.id)} most={10} />
        </li>
      ))}
    </ul>
  )
}

/** @throws Error that says what is wrong */
function bodyOf(text: string): object {
  const { value, mistake } = readJsonText(text)
  if (mistake !== undefined) throw new Error(`The body is not valid JSON. ${mistakeText(mistake)}`)
  if (isObject(value) || Array.isArray(value)) return value
  throw new Error('Enter an object or a list.')
}

/** @throws Error that says what is wrong */
function headerText(text: string, what: string): string {
  const trimmed = text.trim()
  if (!/^[\x20-\x7e\x80-\xff]*$/.test(trimmed)) {
    throw new Error(`${what} is a header: use only Latin-1 characters.`)
  }
  return trimmed
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  return {
    status: response.status,
    instanceIds: (response.headers.get('Svc-Trigger-Instance-Id') ?? '').split(',').filter((id) => id !== ''),
    traceId: response.headers.get('Svc-Trace-Id') ?? '',
    isReplay: response.headers.get('Idempotent-Replayed') === 'true',
    // Only such an answer says that it has waited.
    outcome: response.headers.has('Preference-Applied') ? (readJson(text) as WebhookOutcome) : undefined,
  }
}
