/** The answer to an inquiry, by its schema. */
import type { JSX } from 'preact'
import { useId, useMemo, useState } from 'preact/hooks'
import { change, get } from '../api/client.ts'
import { useLoaded } from '../api/load.ts'
import type { InquiryRecord } from '../api/records.ts'
import { Failure } from './failure.tsx'
import { parametersOfSchema } from './form/field.ts'
import { JsonField } from './form/json-field.tsx'
import { readJsonText, mistakeText } from './form/json-text.ts'
import { ParameterForm } from './form/parameter-form.tsx'
import { RefusalBanner, refusalBy, type Refusal } from './form/refusal.tsx'
import { submitKeys } from './form/submit-keys.ts'
import { useParameterForm } from './form/use-parameter-form.ts'
import { LongText } from './long-text.tsx'
import { notify } from './notices.tsx'
import { Time } from './time.tsx'

export interface InquiryFormProps {
  inquiry: InquiryRecord
  /** Wire timestamp, where it is known: then it says until when there is time. */
  askedAt?: string | undefined
  /** The server has taken the answer. */
  onResponse: () => void
}

export function InquiryForm({ inquiry, askedAt, onResponse }: InquiryFormProps): JSX.Element {
  const { id, schema, users, roles, ttl } = inquiry
  const schemas = useMemo(() => parametersOfSchema(schema), [schema])
  const form = useParameterForm({ schemas })
  const [text, setText] = useState('{}')
  const [refusal, setRefusal] = useState<Refusal>()
  const [isBusy, setIsBusy] = useState(false)
  const helpId = useId()

  /** @returns undefined: what is wrong is shown */
  function read(): unknown {
    if (schemas !== undefined) return form.submit()?.value
    const { value, mistake } = readJsonText(text)
    if (mistake !== undefined) setRefusal({ text: mistakeText(mistake), field: 'response' })
    return value
  }
  async function respond(): Promise<void> {
    if (isBusy) return
    setRefusal(undefined)
    const response = read()
    if (response === undefined) return
    setIsBusy(true)
    try {
      await change('PUT', `inquiries/${id}`, { response })
      notify('Answer sent.')
      onResponse()
    } catch (error) {
      setRefusal(schemas === undefined ? refusalBy(error, ['response']) : form.refuse(error, ['response']))
    } finally {
      setIsBusy(false)
    }
  }

  const { title, description } = schema
  const conditions = [
    ...(users.length > 0 ? [`Only ${listed(users)} can answer.`] : []),
    ...(roles.length > 0 ? [`Requires one of the roles ${listed(roles)}.`] : []),
  ]
  return (
    <form
      class="form inquiry-form"
      aria-describedby={helpId}
      onSubmit={(event) => {
        event.preventDefault()
        void respond()
      }}
      onKeyDown={submitKeys(() => void respond())}
    >
      {typeof description === 'string' && description !== '' && (
        <p>
          <LongText text={description} />
        </p>
      )}
      {schemas === undefined ? (
        <JsonField
          label={typeof title === 'string' ? title.slice(0, 200) : 'Answer'}
          text={text}
          onText={setText}
          problem={refusal?.field === 'response' ? refusal.text : undefined}
        />
      ) : (
        <ParameterForm form={form} emptyText="No fields to fill in. Answer to continue." />
      )}
      <p class="hint" id={helpId}>
        {conditions.join(' ')}
        {askedAt !== undefined && ttl > 0 && (
          <>
            {' '}
            Expires <Time at={endOf(askedAt, ttl)} />.
          </>
        )}
      </p>
      <RefusalBanner refusal={refusal} />
      <div class="buttons">
        <button class="primary" type="submit" disabled={isBusy}>
          {isBusy ? 'Sending…' : 'Answer'}
        </button>
      </div>
    </form>
  )
}

/** The same by the id of the pending execution. */
export function InquiryById({ id, onResponse }: { id: string; onResponse: () => void }): JSX.Element {
  const { data, error, reload } = useLoaded((signal) => get<InquiryRecord>(`inquiries/${id}`, undefined, signal), [id])
  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="loading">Loading…</p>
  return <InquiryForm inquiry={data} onResponse={onResponse} />
}

const MAX_LISTED = 20

function listed(names: readonly string[]): string {
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : ''
  return names.slice(0, MAX_LISTED).join(', ') + more
}

function endOf(askedAt: string, ttlMinutes: number): string {
  const end = new Date(Date.parse(askedAt) + ttlMinutes * 60_000)
  return Number.isNaN(end.getTime()) ? askedAt : end.toISOString()
}
