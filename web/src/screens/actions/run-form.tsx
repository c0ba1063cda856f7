import type { JSX, RefObject } from 'preact'
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { addressOf, change } from '../../api/client.ts'
import type { ActionRecord, ExecutionRecord } from '../../api/records.ts'
import { session } from '../../api/session.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { fieldsOf } from '../../components/form/field.ts'
import { ParameterForm } from '../../components/form/parameter-form.tsx'
import { RefusalBanner, refusedField, type Refusal } from '../../components/form/refusal.tsx'
import { submitKeys } from '../../components/form/submit-keys.ts'
import { controlIdOf, useParameterForm, type ParameterFormModel } from '../../components/form/use-parameter-form.ts'
import { hrefOf, navigate, parseLocation } from '../../router.ts'
import { useStore } from '../../store.ts'
import { curlCommand, svcCommand, type RequestedRun, type CommandText } from './command-line.ts'
import { queryOfState, stateOfQuery } from './run-link.ts'

/** In the address; no parameter has a dash in its name. */
const TRACE_TAG = 'trace-tag'
/** In the body. */
const TRACE_TAG_FIELD = 'context.trace_context.trace_tag'
/** An address is no place for every letter that is typed. */
const LINK_DELAY_MS = 300

export interface RunFormProps {
  /** With the parameters of its runner. */
  action: ActionRecord
  own: ReadonlySet<string>
  query: URLSearchParams
  takesFocus: RefObject<boolean>
  onRun: (execution: ExecutionRecord) => void
}

export function RunForm({ action, own, query, takesFocus, onRun }: RunFormProps): JSX.Element {
  const { ref, parameters, enabled } = action
  const [linked] = useState(() => stateOfQuery(fieldsOf(parameters), query))
  const form = useParameterForm({ schemas: parameters, initial: linked.state, isFolded: useIsFolded(action, own) })
  const [refusedSecrets, setRefusedSecrets] = useState(linked.refused)
  const [traceTag, setTraceTag] = useState(query.get(TRACE_TAG) ?? '')
  const [user, setUser] = useState('')
  const [refusal, setRefusal] = useState<Refusal>()
  const bannerId = useId()
  const [isBusy, setIsBusy] = useState(false)
  // What is drawn comes later than a second press of the keys.
  const isSending = useRef(false)
  const runButton = useRef<HTMLButtonElement>(null)

  const link = useLink(form, ref, traceTag, query, (state, tag, refused) => {
    form.reset(state)
    setTraceTag(tag)
    setRefusedSecrets(refused)
  })

  useEffect(() => {
    if (takesFocus.current !== true) return
    takesFocus.current = false
    const first = form.fields.find(({ isImmutable, isFolded }) => !isImmutable && !isFolded)
    const control = first === undefined ? null : document.getElementById(controlIdOf(form.id, first.name))
    ;(control ?? runButton.current)?.focus()
  }, [])

  async function start(): Promise<void> {
    if (isSending.current || !enabled) return
    setRefusal(undefined)
    const reading = form.submit()
    if (reading === undefined) return
    isSending.current = true
    setIsBusy(true)
    try {
      const tag = traceTag.trim()
      const body = {
        action: ref,
        parameters: reading.value,
        ...(user.trim() !== '' && { user: user.trim() }),
        ...(tag !== '' && { context: { trace_context: { trace_tag: tag } } }),
      }
      onRun(await change<ExecutionRecord>('POST', 'executions', body))
    } catch (error) {
      setRefusal(form.refuse(error, ['parameters'], [TRACE_TAG_FIELD, 'user']))
    } finally {
      isSending.current = false
      setIsBusy(false)
    }
  }

  return (
    <form
      class="card run-form"
      aria-label={`Run ${ref}`}
      onSubmit={(event) => {
        event.preventDefault()
        void start()
      }}
      onKeyDown={submitKeys(() => void start())}
    >
      {refusedSecrets.length > 0 && (
        <p class="problem" role="alert">
          The link contained a secret ({refusedSecrets.join(', ')}). svc ignores secrets in links. Enter it here, and
          replace it: everybody who saw the link may know it.
        </p>
      )}
      <ParameterForm form={form} emptyText="No parameters." />
      <Circumstances
        traceTag={traceTag}
        onTraceTag={setTraceTag}
        user={user}
        onUser={setUser}
        refusal={refusal}
        bannerId={bannerId}
      />
      {!enabled && <p class="problem">The action is disabled. Enable it to run it.</p>}
      <RefusalBanner refusal={refusal} id={bannerId} />
      <div class="buttons run-buttons">
        <button class="primary" type="submit" ref={runButton} disabled={isBusy || !enabled}>
          {isBusy ? 'Starting…' : 'Run'}
        </button>
        <span class="hint">
          <kbd>Ctrl</kbd>+<kbd>Enter</kbd>
        </span>
        <span class="spacer" />
        <CopyButton text={link.address} title="Copy link" />
        {form.isChanged && (
          <button type="button" class="quiet" onClick={() => form.reset()}>
            Clear
          </button>
        )}
      </div>
      {link.omitted.length > 0 && <p class="hint">Not in the link: {link.omitted.join(', ')} (secret, or too long).</p>}
      <Commands
        form={form}
        run={{
          ref,
          parameters: form.reading.value,
          traceTag: traceTag.trim() === '' ? undefined : traceTag.trim(),
          user: user.trim() === '' ? undefined : user.trim(),
        }}
      />
    </form>
  )
}

/** Those of the runner that the action does not speak of, as long as something is left. */
function useIsFolded(action: ActionRecord, own: ReadonlySet<string>): (name: string) => boolean {
  return useMemo(() => {
    const speaksOfAny = Object.entries(action.parameters).some(
      ([name, { immutable }]) => own.has(name) && immutable !== true,
    )
    return (name) => speaksOfAny && !own.has(name)
  }, [action, own])
}

/**
 * Keeps the address and the form the same.
 *
 * @param onAddress somebody has followed a link to other values
 * @returns the whole address, and names of what it leaves out
 */
function useLink(
  form: ParameterFormModel,
  ref: string,
  traceTag: string,
  query: URLSearchParams,
  onAddress: (state: ParameterFormModel['state'], traceTag: string, refused: string[]) => void,
): { address: string; omitted: readonly string[] } {
  const { fields, state } = form
  const { query: values, omitted } = useMemo(() => queryOfState(fields, state), [fields, state])
  const href = hrefOf(['actions', ref], { ...values, [TRACE_TAG]: traceTag })
  const text = query.toString()
  const known = useRef(text)
  useEffect(() => {
    const timer = setTimeout(() => {
      // Somebody has just followed a link; the form is about to go.
      if (parseLocation(location.hash).path[1] !== ref) return
      known.current = parseLocation(href).query.toString()
      navigate(href, { replace: true })
    }, LINK_DELAY_MS)
    return () => clearTimeout(timer)
  }, [href, ref])
  useEffect(() => {
    if (text === known.current) return
    known.current = text
    const { state: linked, refused } = stateOfQuery(fields, query)
    onAddress(linked, query.get(TRACE_TAG) ?? '', refused)
  }, [text])
  return { address: new URL(href, document.baseURI).href, omitted }
}

/** In which trace it runs, and as whom. */
function Circumstances({
  traceTag,
  onTraceTag,
  user,
  onUser,
  refusal,
  bannerId,
}: {
  traceTag: string
  onTraceTag: (text: string) => void
  user: string
  onUser: (text: string) => void
  refusal: Refusal | undefined
  bannerId: string
}): JSX.Element {
  const { user: caller } = useStore(session.state)
  const tagId = useId()
  const userId = useId()
  const [isOpen, setIsOpen] = useState(traceTag !== '')
  const mayRunAsOthers = caller !== undefined && (caller.isAdmin || !caller.hasAccessControl)
  return (
    <details class="folded" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{mayRunAsOthers ? 'Trace tag and user' : 'Trace tag'}</summary>
      <div class="form">
        <div class="field">
          <label for={tagId}>Trace tag</label>
          <input
            id={tagId}
            value={traceTag}
            {...refusedField(refusal, TRACE_TAG_FIELD, bannerId, `${tagId}-help`)}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => onTraceTag(event.currentTarget.value)}
          />
          <p class="hint" id={`${tagId}-help`}>
            Traces finds everything this run starts by this tag. Empty: the server generates a tag.
          </p>
        </div>
        {mayRunAsOthers && (
          <div class="field">
            <label for={userId}>User</label>
            <input
              id={userId}
              value={user}
              placeholder={caller.name}
              {...refusedField(refusal, 'user', bannerId)}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => onUser(event.currentTarget.value)}
            />
          </div>
        )}
      </div>
    </details>
  )
}

function Commands({ form, run }: { form: ParameterFormModel; run: RequestedRun }): JSX.Element {
  const [isOpen, setIsOpen] = useState(false)
  const { user } = useStore(session.state)
  return (
    <details class="folded" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>Command line and HTTP</summary>
      {isOpen && (
        <div class="form">
          <Command title="Command line" written={svcCommand(run, form.fields)} />
          <Command
            title="HTTP request"
            written={curlCommand(
              run,
              form.fields,
              addressOf('api/v1/executions').href,
              user !== undefined && user.method !== undefined,
            )}
          />
        </div>
      )}
    </details>
  )
}

const MAX_COMMAND = 5000

function Command({ title, written: { text, omitted } }: { title: string; written: CommandText }): JSX.Element {
  return (
    <div class="field">
      <div class="field-head">
        <span class="label">{title}</span>
        <CopyButton text={text} title={`Copy the ${title.toLowerCase().replace('http', 'HTTP')}`} />
      </div>
      <pre class="command" tabIndex={0}>
        {text.length > MAX_COMMAND ? `${text.slice(0, MAX_COMMAND)}…` : text}
      </pre>
      {omitted.length > 0 && (
        <p class="hint">Without {omitted.join(', ')}: add secrets and values without a command-line form yourself.</p>
      )}
    </div>
  )
}
