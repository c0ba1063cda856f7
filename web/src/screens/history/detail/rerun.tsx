/** Runs an action again, with parameters that may be changed before. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, change, get } from '../../../api/client.ts'
import { useLoaded } from '../../../api/load.ts'
import type { ActionRecord, ExecutionRecord } from '../../../api/records.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { Failure } from '../../../components/failure.tsx'
import { ParameterForm } from '../../../components/form/parameter-form.tsx'
import { RefusalBanner, type Refusal } from '../../../components/form/refusal.tsx'
import { submitKeys } from '../../../components/form/submit-keys.ts'
import { useParameterForm } from '../../../components/form/use-parameter-form.ts'
import { notify } from '../../../components/notices.tsx'
import { hrefOf, navigate } from '../../../router.ts'
import { addressOfFilter, historyFilterOf } from '../filters.ts'
import { containsMask, planRerun } from './rerun-plan.ts'

export interface RerunProps {
  record: ExecutionRecord
  query: URLSearchParams
  onClose: () => void
}

interface Prepared {
  /** With the parameters of its runner. */
  action: ActionRecord
  parameters: Record<string, unknown>
}

export function Rerun({ record, query, onClose }: RerunProps): JSX.Element {
  const { id, action } = record
  const { data, error, reload } = useLoaded(
    async (signal): Promise<Prepared> => {
      const [now, { parameters = {} }] = await Promise.all([
        get<ActionRecord>(`actions/views/overview/${encodeURIComponent(action.ref)}`, undefined, signal),
        get<Partial<ExecutionRecord>>(`executions/${id}`, { include_attributes: 'parameters' }, signal),
      ])
      return { action: now, parameters }
    },
    [id],
  )
  const [isTyped, setIsTyped] = useState(false)
  return (
    <Dialog title={`Re-run ${action.ref}`} onClose={onClose} stays={isTyped}>
      {error !== undefined &&
        (error instanceof ApiError && error.status === 404 ? (
          <p class="problem" role="alert">
            The action {action.ref} does not exist any more. Register its pack again to re-run it.
          </p>
        ) : (
          <Failure error={error} onRetry={reload} />
        ))}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && (
        <RerunForm id={id} prepared={data} query={query} onClose={onClose} onTyped={() => setIsTyped(true)} />
      )}
    </Dialog>
  )
}

function RerunForm({
  id,
  prepared: { action, parameters },
  query,
  onClose,
  onTyped,
}: {
  id: string
  prepared: Prepared
  query: URLSearchParams
  onClose: () => void
  onTyped: () => void
}): JSX.Element {
  const form = useParameterForm({ schemas: action.parameters, initial: parameters })
  const [refusal, setRefusal] = useState<Refusal>()
  const [isBusy, setIsBusy] = useState(false)
  const hasSecrets = containsMask(parameters)

  async function run(): Promise<void> {
    if (isBusy || !action.enabled) return
    setRefusal(undefined)
    const reading = form.submit()
    if (reading === undefined) return
    const { body, masked } = planRerun(form.initial, form.state, reading)
    if (masked.length > 0) {
      setRefusal({
        text: `${masked.join(', ')}: the stars are a mask for a secret that only the server knows. Enter the secret, or undo your change.`,
      })
      return
    }
    setIsBusy(true)
    try {
      const created = await change<ExecutionRecord>('POST', `executions/${id}/re_run`, body, { no_merge: true })
      notify(`Re-running ${action.ref}.`)
      onClose()
      navigate(hrefOf(['history', created.id, 'general'], addressOfFilter(historyFilterOf(query))))
    } catch (error) {
      setRefusal(form.refuse(error, ['parameters']))
      setIsBusy(false)
    }
  }

  return (
    <form
      class="form"
      onInput={onTyped}
      onKeyDown={submitKeys(() => void run())}
      onSubmit={(event) => {
        event.preventDefault()
        void run()
      }}
    >
      {hasSecrets && <p class="hint">The server keeps masked values (********) unless you replace them.</p>}
      <ParameterForm form={form} emptyText="No parameters." />
      {!action.enabled && <p class="problem">The action is disabled. Enable it to re-run it.</p>}
      <RefusalBanner refusal={refusal} />
      <div class="buttons">
        <button class="primary" type="submit" disabled={isBusy || !action.enabled}>
          {isBusy ? 'Starting…' : 'Re-run'}
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
        {form.isChanged && (
          <button type="button" class="quiet" onClick={() => form.reset(parameters)}>
            Discard changes
          </button>
        )}
      </div>
    </form>
  )
}
