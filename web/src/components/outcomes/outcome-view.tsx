import type { JSX } from 'preact'
import { StatusBadge } from '../status-badge.tsx'
import { Elapsed } from '../time.tsx'
import { hrefOf } from '../../router.ts'
import type { ExecutionState } from '../../api/execution-states.ts'
import { restOf, type Outcome } from './outcomes.ts'
import type { OutcomeInstance } from './use-outcomes.ts'
import './outcomes.css'

/** The outcome of a trigger instance. @param props.most number of executions to show */
export function OutcomeView({
  instance: { id, status },
  outcome,
  most,
}: {
  instance: OutcomeInstance
  outcome: Outcome | undefined
  most: number
}): JSX.Element {
  const explain = hrefOf(['triggers', 'instances', id])
  if (status === 'pending') {
    return (
      <span class="outcome">
        <StatusBadge status="pending" /> <span class="hint">waiting for rules</span>
      </span>
    )
  }
  if (outcome === undefined) return <span class="outcome hint">…</span>
  const { executions, failures, skips } = outcome
  const { hidden, unlisted } = restOf(outcome)
  const isNothing = executions.length + failures.length + skips.length + hidden + unlisted === 0
  // Where there is no room for all, nobody should believe that all went well.
  const ordered = [...executions.filter(isTrouble), ...executions.filter((execution) => !isTrouble(execution))]
  const shown = executions.length > most ? ordered.slice(0, most) : executions
  const more = executions.length - shown.length + unlisted
  return (
    <span class="outcome">
      {status === 'processing_failed' && <StatusBadge status={status} />}
      {shown.map((execution) => (
        <a key={execution.id} class="outcome-execution" href={hrefOf(['history', execution.id, 'general'])}>
          <StatusBadge status={execution.status} />
          <span class="name">{execution.action.ref}</span>
          <span class="hint">
            <Elapsed
              from={execution.start_timestamp}
              seconds={execution.end_timestamp === undefined ? undefined : (execution.elapsed_seconds ?? 0)}
            />
          </span>
        </a>
      ))}
      {more > 0 && <a href={explain}>and {more.toLocaleString()} more</a>}
      {failures.length > 0 && (
        <a class="outcome-execution" href={explain} title={failures[0]?.failure_reason}>
          <span class="badge" data-status="failed">
            {failures.length === 1 ? 'rule failed' : `${failures.length} rules failed`}
          </span>
          <span class="name">{failures[0]?.rule.ref}</span>
        </a>
      )}
      {skips.length > 0 && (
        <a class="outcome-execution" href={explain} title={skips[0]?.skip_reason}>
          <span class="badge">{skips.length === 1 ? 'skipped' : `${skips.length} rules skipped`}</span>
          <span class="name">{skips[0]?.rule.ref}</span>
        </a>
      )}
      {hidden > 0 && (
        <span class="hint">{hidden === 1 ? '1 execution' : `${hidden} executions`} hidden from you or deleted</span>
      )}
      {isNothing && status === 'processed' && (
        <>
          <span class="badge">no rule matched</span> <a href={explain}>Why?</a>
        </>
      )}
    </span>
  )
}

function isTrouble({ status }: ExecutionState): boolean {
  return status === 'failed' || status === 'timeout' || status === 'abandoned'
}
