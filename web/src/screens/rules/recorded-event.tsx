import type { JSX } from 'preact'
import { useId } from 'preact/hooks'
import { Failure } from '../../components/failure.tsx'
import { JsonField } from '../../components/form/json-field.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'
import { PASTED, type Recorded } from './use-recorded.ts'

/** Chooses one of the last trigger instances, or takes a payload that is pasted; shows what it holds. */
export function RecordedEvent({ recorded }: { recorded: Recorded }): JSX.Element {
  const { instances, choice, choose, text, setText, payload, problem } = recorded
  const id = useId()
  const known = instances.data ?? []
  const chosen = known.find((instance) => instance.id === choice)
  return (
    <div class="form">
      {instances.error !== undefined && <Failure error={instances.error} onRetry={instances.reload} />}
      <div class="field">
        <label for={id}>Recorded event</label>
        <div class="rules-choose">
          <select id={id} value={choice} onChange={(event) => choose(event.currentTarget.value)}>
            {choice === '' && <option value="">{instances.isLoading ? 'Loading…' : 'none'}</option>}
            {choice !== '' && choice !== PASTED && chosen === undefined && <option value={choice}>{choice}</option>}
            {known.map((instance) => (
              <option key={instance.id} value={instance.id}>
                {instance.occurrence_time.slice(0, 19).replace('T', ' ')} UTC ({instance.status.replaceAll('_', ' ')})
              </option>
            ))}
            <option value={PASTED}>Pasted payload</option>
          </select>
          <button type="button" onClick={instances.reload}>
            Refresh
          </button>
        </div>
        {instances.data?.length === 0 && choice !== PASTED && (
          <p class="hint">No recorded events for this trigger yet. Choose “Pasted payload” to test one.</p>
        )}
      </div>
      {choice === PASTED ? (
        <JsonField
          label="Payload"
          text={text}
          onText={setText}
          placeholder='{"body": {"kind": "order"}}'
          help="The payload of the trigger as JSON: {{ trigger }} in templates."
        />
      ) : (
        choice !== '' && (
          <>
            {problem !== undefined && <p class="problem">{problem}</p>}
            {payload !== undefined && (
              <details class="rules-payload">
                <summary>
                  Payload{' '}
                  {chosen !== undefined && (
                    <span class="hint">
                      of <Time at={chosen.occurrence_time} />
                    </span>
                  )}
                </summary>
                <JsonTree value={payload} name="trigger" />
                <a href={hrefOf(['triggers', 'instances', choice])}>Show outcome</a>
              </details>
            )}
          </>
        )
      )}
    </div>
  )
}
