/** One API key: making it, with its value shown once, and changing it. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { change, get, messageOf } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import type { ApiKeyRecord, NewApiKeyRecord } from '../../api/records.ts'
import { serverNow } from '../../api/server-clock.ts'
import type { SessionUser } from '../../api/session.ts'
import { Failure } from '../../components/failure.tsx'
import { pathOfRefusal, RefusalBanner, refusalBy, type Refusal } from '../../components/form/refusal.tsx'
import { notify } from '../../components/notices.tsx'
import { Time, useNow } from '../../components/time.tsx'
import { hrefOf, navigate } from '../../router.ts'
import {
  emptyForm,
  keyFormOf,
  keyProblemsAfter,
  keyProblemsIn,
  readKeyForm,
  type KeyForm,
  type KeyProblems,
  keyNameOf,
} from './key-form.ts'
import { KeyFields } from './key-fields.tsx'
import { KeyActions } from './key-actions.tsx'
import { StateBadge } from './keys.tsx'
import { NewKeyDialog } from './new-key-dialog.tsx'
import { writeJson } from '../../json.ts'

const listHref = hrefOf(['access', 'keys'])

function BackToList(): JSX.Element {
  return <a href={listHref}>← API keys</a>
}

export function NewKeyPage({ user }: { user: SessionUser }): JSX.Element {
  const [form, setForm] = useState<KeyForm>(emptyForm)
  const { problems, refusal, isBusy, edited, submit } = useSubmit()
  // The only place that knows the value.
  const [made, setMade] = useState<NewApiKeyRecord>()

  return (
    <>
      <BackToList />
      <h2>New API key</h2>
      {user.method === undefined && (
        <p class="note">Authentication is off. Once it is on, the key belongs to {user.name}.</p>
      )}
      <form
        class="form key-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void submit(form, undefined, async (request) => {
            setMade(await change<NewApiKeyRecord>('POST', 'apikeys', request))
          })
        }}
      >
        <KeyFields
          form={form}
          onForm={(changed, changes) => {
            setForm(changed)
            edited(changes)
          }}
          problems={problems}
          user={user}
          isNew
        />
        <RefusalBanner refusal={refusal} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
            {isBusy ? 'Creating…' : 'Create key'}
          </button>
        </div>
      </form>
      {made?.key != null && (
        <NewKeyDialog
          value={made.key}
          name={keyNameOf(made)}
          onDone={() => {
            setMade(undefined)
            setForm(emptyForm)
            navigate(listHref)
          }}
        />
      )}
    </>
  )
}

export function KeyPage({ id, user }: { id: string; user: SessionUser }): JSX.Element {
  const { data, error, reload, set } = useLoaded(
    (signal) => get<ApiKeyRecord>(`apikeys/${encodeURIComponent(id)}`, {}, signal),
    [id],
  )
  return (
    <>
      <BackToList />
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && <Editor record={data} user={user} onChanged={set} />}
    </>
  )
}

function Editor({
  record,
  user,
  onChanged,
}: {
  record: ApiKeyRecord
  user: SessionUser
  onChanged: (record: ApiKeyRecord) => void
}): JSX.Element {
  const [before, setBefore] = useState(() => keyFormOf(record))
  const [form, setForm] = useState(before)
  const { problems, refusal, isBusy, edited, submit } = useSubmit()
  const now = useNow(30_000)
  const isChanged = writeJson(form) !== writeJson(before)

  return (
    <>
      <div class="page-head">
        <h2>{keyNameOf(record)}</h2>
        <StateBadge apiKey={record} now={now} />
        <span class="spacer" />
        <KeyActions apiKey={record} onChanged={onChanged} onDeleted={() => navigate(listHref)} />
      </div>
      <dl class="facts">
        <dt>Id</dt>
        <dd>
          <code>{record.id}</code>
        </dd>
        <dt>Digest</dt>
        <dd>
          <Digest record={record} isAdmin={user.isAdmin} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={record.created_at} />
        </dd>
        <dt>Last used</dt>
        <dd>{record.last_used_at === undefined ? 'never' : <Time at={record.last_used_at} />}</dd>
        <dt>Expires</dt>
        <dd>{record.expires_at === undefined ? 'never' : <Time at={record.expires_at} />}</dd>
      </dl>
      <form
        class="form key-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void submit(form, before, async (request) => {
            const changed = await change<ApiKeyRecord>('PUT', `apikeys/${record.id}`, request)
            const now = keyFormOf(changed)
            setBefore(now)
            setForm(now)
            onChanged(changed)
            notify(`“${keyNameOf(changed)}” is saved.`)
          })
        }}
      >
        <KeyFields
          form={form}
          onForm={(changed, changes) => {
            setForm(changed)
            edited(changes)
          }}
          problems={problems}
          user={user}
          expiresAt={record.expires_at}
        />
        <RefusalBanner refusal={refusal} />
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy || !isChanged}>
            {isBusy ? 'Saving…' : 'Save'}
          </button>
          {isChanged && (
            <button type="button" onClick={() => setForm(before)}>
              Discard changes
            </button>
          )}
        </div>
      </form>
    </>
  )
}

/** It is no secret as such, but who has it can look for the key that fits; grants on keys name it. */
function Digest({ record, isAdmin }: { record: ApiKeyRecord; isAdmin: boolean }): JSX.Element {
  const [digest, setDigest] = useState<string>()
  async function show(): Promise<void> {
    try {
      const { key_hash: found } = await get<ApiKeyRecord>(`apikeys/${record.id}`, { show_secrets: true })
      setDigest(found)
    } catch (error) {
      notify(messageOf(error), 'failure')
    }
  }
  return (
    <>
      <code>{digest ?? record.key_hash}</code>{' '}
      {isAdmin && (
        <button
          type="button"
          class="quiet small"
          onClick={() => (digest === undefined ? void show() : setDigest(undefined))}
        >
          {digest === undefined ? 'Show' : 'Hide'}
        </button>
      )}
    </>
  )
}

interface Submit {
  problems: KeyProblems
  /** Of the banner. */
  refusal: Refusal | undefined
  isBusy: boolean
  readonly edited: (changes: Partial<KeyForm>) => void
  readonly submit: (
    form: KeyForm,
    before: KeyForm | undefined,
    send: (request: Extract<ReturnType<typeof readKeyForm>, { request: unknown }>['request']) => Promise<void>,
  ) => Promise<void>
}

function useSubmit(): Submit {
  const [problems, setProblems] = useState<KeyProblems>({})
  const [refusal, setRefusal] = useState<Refusal>()
  const [isBusy, setIsBusy] = useState(false)
  return {
    problems,
    refusal,
    isBusy,
    edited: (changes) => setProblems((earlier) => keyProblemsAfter(earlier, changes)),
    async submit(form, before, send) {
      if (isBusy) return
      const reading = readKeyForm(form, before, serverNow())
      setRefusal(undefined)
      if ('problems' in reading) {
        setProblems(reading.problems)
        return
      }
      setProblems({})
      setIsBusy(true)
      try {
        await send(reading.request)
      } catch (error) {
        const found = keyProblemsIn(messageOf(error), pathOfRefusal(error))
        if (found !== undefined) setProblems(found)
        setRefusal(
          found === undefined ? refusalBy(error) : { text: 'The server refused the key. Correct the marked field.' },
        )
      } finally {
        setIsBusy(false)
      }
    },
  }
}
