import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { change, messageOf } from '../../api/client.ts'
import type { ApiKeyRecord, ApiKeyRequest } from '../../api/records.ts'
import { Confirm } from '../../components/dialog.tsx'
import { notify } from '../../components/notices.tsx'
import { keyNameOf } from './key-form.ts'

/** Switches a key off and on, and deletes it. */
export function KeyActions({
  apiKey,
  onChanged,
  onDeleted,
}: {
  apiKey: ApiKeyRecord
  onChanged: (record: ApiKeyRecord) => void
  onDeleted: () => void
}): JSX.Element {
  const [isAsking, setIsAsking] = useState(false)
  const [isBusy, setIsBusy] = useState(false)
  const { id, enabled, user } = apiKey
  const name = keyNameOf(apiKey)

  async function attempt(work: () => Promise<void>): Promise<void> {
    setIsBusy(true)
    try {
      await work()
    } catch (error) {
      notify(messageOf(error), 'failure')
    } finally {
      setIsBusy(false)
    }
  }
  const toggle = (): Promise<void> =>
    attempt(async () => {
      const body: ApiKeyRequest = { enabled: !enabled }
      const changed = await change<ApiKeyRecord>('PUT', `apikeys/${id}`, body)
      notify(`“${name}” is ${changed.enabled ? 'enabled' : 'disabled: svc refuses requests that use it'}.`)
      onChanged(changed)
    })
  const remove = (): Promise<void> =>
    attempt(async () => {
      await change('DELETE', `apikeys/${id}`)
      notify(`“${name}” is deleted.`)
      onDeleted()
    })

  return (
    <div class="buttons nowrap">
      <button
        type="button"
        disabled={isBusy}
        aria-label={`${enabled ? 'Disable' : 'Enable'} ${name}`}
        onClick={() => void toggle()}
      >
        {enabled ? 'Disable' : 'Enable'}
      </button>
      <button
        type="button"
        class="danger"
        disabled={isBusy}
        aria-label={`Delete ${name}`}
        onClick={() => setIsAsking(true)}
      >
        Delete
      </button>
      {isAsking && (
        <Confirm
          title={`Delete “${name}”?`}
          text={`svc refuses programs that use this key of ${user}. A deleted key cannot be restored. To stop it for a while, disable it instead.`}
          action="Delete key"
          onConfirm={() => void remove()}
          onClose={() => setIsAsking(false)}
        />
      )}
    </div>
  )
}
