import type { JSX } from 'preact'
import { useEffect, useId } from 'preact/hooks'
import { list, messageOf } from '../../api/client.ts'
import type { TriggerInstanceRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { useMedia } from '../../components/media.ts'
import { OutcomeView } from '../../components/outcomes/outcome-view.tsx'
import { useOutcomes } from '../../components/outcomes/use-outcomes.ts'
import { Time } from '../../components/time.tsx'
import { triggerLine } from '../../components/rules/trigger-line.ts'
import { useLiveList } from '../../components/use-live-list.ts'
import { VirtualList } from '../../components/virtual-list.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import type { Catalogue } from './catalogue.ts'
import {
  instanceFilterOf,
  isInstanceFiltered,
  localOf,
  instanceQueryOf,
  statuses,
  timestampOf,
  type InstanceFilter,
} from './instance-filter.ts'
import { Tabs } from './tabs.tsx'
import { useCatalogue } from './use-catalogue.ts'
import { writeJson } from '../../json.ts'

type Row = Omit<TriggerInstanceRecord, 'payload' | 'payload_size'>

const ROW_HEIGHT = 58
/** On a phone, where the outcome stands below. */
const TALL_ROW_HEIGHT = 84
/** Payloads may have megabytes. */
const ATTRIBUTES = 'id,trigger,trigger_type,occurrence_time,status,trace_id'

/** What has happened, the newest first. */
export function InstanceList({ query }: { query: URLSearchParams }): JSX.Element {
  const filter = instanceFilterOf(query)
  const { data: catalogue } = useCatalogue()
  const paged = useLiveList<Row>({
    load: (place, signal) =>
      list('triggerinstances', { ...instanceQueryOf(filter), ...place, include_attributes: ATTRIBUTES }, signal),
    key: writeJson(filter),
    // The end of an execution is an event as well.
    concerns: () => true,
    changing: {
      is: ({ status }) => status === 'pending',
      load: (ids) => list('triggerinstances', { id: ids, limit: ids.length, include_attributes: ATTRIBUTES }),
    },
  })
  const outcomes = useOutcomes()
  const isNarrow = useMedia('(max-width: 700px)')
  useEffect(() => outcomes.need(paged.shown()))

  const { count, error, problem } = paged
  return (
    <div class="page fill triggers">
      <Tabs part="instances" />
      <Filters filter={filter} catalogue={catalogue} />
      {error !== undefined && <Failure error={error} onRetry={paged.reload} />}
      {problem !== undefined && error === undefined && (
        <p class="problem" role="status">
          Could not update the list: {messageOf(problem)}
        </p>
      )}
      {count === undefined && error === undefined && <p class="loading">Loading…</p>}
      {count !== undefined && (
        <p class="hint instances-count" role="status">
          {count === 1 ? '1 trigger instance' : `${count.toLocaleString()} trigger instances`}
        </p>
      )}
      {count === 0 && <Nothing filter={filter} />}
      {count !== undefined && count > 0 && (
        <VirtualList
          class="instances"
          label="Trigger instances, newest first"
          count={count}
          rowHeight={isNarrow ? TALL_ROW_HEIGHT : ROW_HEIGHT}
          {...paged.drawn}
          onRange={paged.show}
          row={(index) => {
            const row = paged.rowAt(index)
            return row === undefined ? (
              <div class="instances-row hint">Loading…</div>
            ) : (
              <InstanceRow row={row} catalogue={catalogue} outcome={outcomes.of(row.id)} />
            )
          }}
        />
      )}
    </div>
  )
}

function InstanceRow({
  row,
  catalogue,
  outcome,
}: {
  row: Row
  catalogue: Catalogue | undefined
  outcome: Parameters<typeof OutcomeView>[0]['outcome']
}): JSX.Element {
  const { id, trigger: ref, trigger_type: type, occurrence_time: at } = row
  const trigger = catalogue?.triggerOf(ref)
  const title = trigger === undefined ? type : triggerLine(trigger)
  return (
    <div class="instances-row">
      <a class="instances-link" href={hrefOf(['triggers', 'instances', id])} title={`${title} (${ref})`}>
        <span class="instances-time">
          <Time at={at} />
        </span>
        <span class="instances-trigger">{title}</span>
      </a>
      <OutcomeView instance={row} outcome={outcome} most={2} />
    </div>
  )
}

function Nothing({ filter }: { filter: InstanceFilter }): JSX.Element {
  return (
    <div class="empty">
      {isInstanceFiltered(filter) ? (
        <>
          <p>No trigger instances match the filters.</p>
          <a href={hrefOf(['triggers', 'instances'])}>Show all trigger instances</a>
        </>
      ) : (
        <p>
          No trigger instances yet. A <a href={hrefOf(['rules'])}>rule</a> with a webhook or timer creates them, and so
          does every execution that ends.
        </p>
      )}
    </div>
  )
}

function Filters({ filter, catalogue }: { filter: InstanceFilter; catalogue: Catalogue | undefined }): JSX.Element {
  const id = useId()
  const { trigger, trigger_type: type, status, after, before } = filter
  const types = catalogue?.types.map(({ ref }) => ref) ?? []
  const chosen = trigger === '' ? undefined : catalogue?.triggerOf(trigger)
  return (
    <form class="toolbar" role="search" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      {trigger === '' ? (
        <Choice
          label="Trigger type"
          value={type}
          options={types}
          onChoose={(value) => setQuery({ trigger_type: value })}
        />
      ) : (
        <div class="field">
          <span class="label">Trigger</span>
          <span class="instances-chosen">
            <span title={trigger}>{chosen === undefined ? trigger : triggerLine(chosen)}</span>
            <button
              type="button"
              class="quiet"
              aria-label="Remove the trigger filter"
              onClick={() => setQuery({ trigger: undefined })}
            >
              ×
            </button>
          </span>
        </div>
      )}
      <Choice label="Status" value={status} options={statuses} onChoose={(value) => setQuery({ status: value })} />
      {(
        [
          ['after', 'After', after],
          ['before', 'Before', before],
        ] as const
      ).map(([name, label, value]) => (
        <div key={name} class="field">
          <label for={`${id}-${name}`}>{label}</label>
          <input
            id={`${id}-${name}`}
            type="datetime-local"
            step="1"
            value={localOf(value)}
            onChange={(event) => setQuery({ [name]: timestampOf(event.currentTarget.value) })}
          />
        </div>
      ))}
      {isInstanceFiltered(filter) && (
        <a class="button" href={hrefOf(['triggers', 'instances'])}>
          Clear
        </a>
      )}
    </form>
  )
}

function Choice({
  label,
  value,
  options,
  onChoose,
}: {
  label: string
  value: string
  options: readonly string[]
  onChoose: (value: string) => void
}): JSX.Element {
  const id = useId()
  // What an address asks for is shown even when there is none.
  const shown = value === '' || options.includes(value) ? options : [value, ...options]
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">all</option>
        {shown.map((option) => (
          <option key={option} value={option}>
            {option.replaceAll('_', ' ')}
          </option>
        ))}
      </select>
    </div>
  )
}
