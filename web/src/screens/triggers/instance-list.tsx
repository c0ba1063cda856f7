import type { JSX } from 'preact'
import { useId, useRef } from 'preact/hooks'
import { Failure } from '../../components/failure.tsx'
import { parametersLine } from '../../components/rules/trigger-line.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { VirtualList, type VirtualListHandle } from '../../components/virtual-list.tsx'
import type { TriggerRecord } from '../../api/records.ts'
import { hrefOf, setQuery } from '../../router.ts'
import { useInstances, type InstanceFilter, type ListedInstance } from './use-instances.ts'
import { useTriggers } from './use-triggers.ts'

const ROW_HEIGHT = 40
const statuses = ['pending', 'processed', 'processing_failed']
const MAX_OPTIONS = 500

export function InstanceList({ query }: { query: URLSearchParams }): JSX.Element {
  const filter: InstanceFilter = {
    trigger: query.get('trigger') ?? '',
    trigger_type: query.get('trigger_type') ?? '',
    status: query.get('status') ?? '',
  }
  const topRow = useRef(0)
  const handle = useRef<VirtualListHandle>(null)
  const instances = useInstances(filter, () => topRow.current < 1)
  const triggers = useTriggers()
  const byRef = triggers.data ?? new Map<string, TriggerRecord>()
  const types = [...new Set([...byRef.values()].map(({ type }) => type))].toSorted()
  const ofType = [...byRef.values()].filter(({ type }) => filter.trigger_type === '' || type === filter.trigger_type)
  const { total, error, hasNewer, reload } = instances
  const isFiltered = Object.values(filter).some((value) => value !== '')
  return (
    <>
      <form class="toolbar" role="search" onSubmit={(event) => event.preventDefault()}>
        <Choice
          label="Trigger type"
          name="trigger_type"
          value={filter.trigger_type}
          options={types.slice(0, MAX_OPTIONS).map((type) => [type, type])}
          also={{ trigger: undefined }}
        />
        <Choice
          label="Trigger"
          name="trigger"
          value={filter.trigger}
          options={ofType.slice(0, MAX_OPTIONS).map((trigger) => [trigger.ref, titleOf(trigger)])}
        />
        <Choice
          label="Status"
          name="status"
          value={filter.status}
          options={statuses.map((status) => [status, status.replaceAll('_', ' ')])}
        />
        {hasNewer && (
          <button
            type="button"
            onClick={() => {
              handle.current?.scrollToRow(0)
              reload()
            }}
          >
            Show newer ones
          </button>
        )}
      </form>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {total === undefined && error === undefined && <p class="loading">Loading…</p>}
      {total === 0 && (
        <p class="empty">
          {isFiltered ? (
            <>
              No trigger instance fits. <a href={hrefOf(['triggers', 'instances'])}>Show all of them</a>
            </>
          ) : (
            <>
              Nothing has happened yet. A trigger instance is recorded when a webhook is called that a rule names, when
              a timer fires, or when an execution ends.
            </>
          )}
        </p>
      )}
      {total !== undefined && total > 0 && (
        <>
          <p class="hint" role="status">
            {total.toLocaleString()} {total === 1 ? 'trigger instance' : 'trigger instances'}
          </p>
          <VirtualList
            label="Trigger instances, newest first"
            count={total}
            rowHeight={ROW_HEIGHT}
            handle={handle}
            onRange={instances.look}
            onScroll={(position) => {
              topRow.current = position.topRow
            }}
            row={(index) => <Row instance={instances.at(index)} byRef={byRef} />}
          />
        </>
      )}
    </>
  )
}

function Row({
  instance,
  byRef,
}: {
  instance: ListedInstance | undefined
  byRef: ReadonlyMap<string, TriggerRecord>
}): JSX.Element {
  if (instance === undefined) return <div class="instances-row hint">…</div>
  const { id, trigger, trigger_type: type, occurrence_time: at, status } = instance
  const known = byRef.get(trigger)
  const said = known === undefined ? '' : parametersLine(known.type, known.parameters)
  return (
    <a class="instances-row" href={hrefOf(['triggers', 'instances', id])}>
      <span class="when">
        <Time at={at} />
      </span>
      <span class="what" title={`${type} ${said}`}>
        {type} {said !== '' && <code>{said}</code>}
      </span>
      <StatusBadge status={status} />
    </a>
  )
}

function titleOf({ ref, type, parameters }: TriggerRecord): string {
  const said = parametersLine(type, parameters)
  return said === '' ? ref : `${type} ${said}`
}

function Choice({
  label,
  name,
  value,
  options,
  also = {},
}: {
  label: string
  name: string
  value: string
  options: readonly (readonly [value: string, title: string])[]
  /** What else changes in the address. */
  also?: Record<string, string | undefined>
}): JSX.Element {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => setQuery({ ...also, [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {value !== '' && !options.some(([one]) => one === value) && <option value={value}>{value}</option>}
        {options.map(([one, title]) => (
          <option key={one} value={one}>
            {title}
          </option>
        ))}
      </select>
    </div>
  )
}
