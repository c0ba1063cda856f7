import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { isFinalStatus } from '../../api/execution-status.ts'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Elapsed, Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'
import { originOf, parametersText } from './row-text.ts'

export interface HistoryRowProps {
  /** Undefined while it is loaded. */
  execution: ExecutionSummary | undefined
  index: number
  id: string
  href: string
  /** The keyboard is here. */
  isActive: boolean
  isSelected: boolean
  /** It is shown beside the list. */
  isOpen: boolean
  onSelect: (index: number, isRange: boolean) => void
}

/** Drawn again only when its values changed: of fifty visible executions an event changes one. */
export function HistoryRow(props: HistoryRowProps): JSX.Element {
  const { execution, index, id, href, isActive, isSelected, isOpen, onSelect } = props
  return useMemo(
    () => (
      <div
        role="row"
        id={id}
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        aria-current={isOpen ? 'page' : undefined}
        class="execution"
        data-active={isActive ? '' : undefined}
      >
        {execution === undefined ? (
          <Loading />
        ) : (
          <Cells execution={execution} index={index} href={href} isSelected={isSelected} onSelect={onSelect} />
        )}
      </div>
    ),
    [execution, index, id, href, isActive, isSelected, isOpen, onSelect],
  )
}

type CellsProps = Pick<HistoryRowProps, 'index' | 'href' | 'isSelected' | 'onSelect'> & { execution: ExecutionSummary }

function Cells({ execution, index, href, isSelected, onSelect }: CellsProps): JSX.Element {
  const { id, action, status, context, start_timestamp: start, elapsed_seconds: seconds } = execution
  const parameters = parametersText(execution)
  return (
    <>
      <span role="gridcell" class="select">
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Select ${action.ref} ${id}`}
          checked={isSelected}
          onClick={(event) => onSelect(index, event.shiftKey)}
        />
      </span>
      <span role="gridcell" class="status">
        <StatusBadge status={status} />
      </span>
      <span role="gridcell" class="action">
        <a href={href} tabIndex={-1} title={action.ref}>
          {action.ref}
        </a>
      </span>
      <span role="gridcell" class="parameters" title={parameters}>
        {parameters}
      </span>
      <span role="gridcell" class="user" title={context.user}>
        {context.user}
      </span>
      <span role="gridcell" class="origin">
        <Origin execution={execution} />
      </span>
      <span role="gridcell" class="started">
        <Time at={start} isShort />
      </span>
      <span role="gridcell" class="elapsed">
        <Elapsed from={start} seconds={isFinalStatus(status) ? (seconds ?? 0) : undefined} />
      </span>
    </>
  )
}

function Origin({ execution }: { execution: ExecutionSummary }): JSX.Element | null {
  const origin = originOf(execution)
  if (origin === undefined) return null
  if (origin.execution !== undefined) {
    return (
      <a href={hrefOf(['history', origin.execution, 'general'])} tabIndex={-1}>
        {origin.text}
      </a>
    )
  }
  if (origin.kind !== 'rule') return <span title={origin.text}>{origin.text}</span>
  return (
    <a href={hrefOf(['rules', origin.text])} tabIndex={-1} title={origin.text}>
      {origin.text}
    </a>
  )
}

/** As wide as what is to come, so that nothing jumps. */
function Loading(): JSX.Element {
  return (
    <>
      <span role="gridcell" class="select" />
      {['status', 'action', 'parameters', 'user', 'origin', 'started', 'elapsed'].map((name) => (
        <span key={name} role="gridcell" class={name}>
          <span class="bone" />
        </span>
      ))}
    </>
  )
}
