import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { list } from '../../api/client.ts'
import { useExecutionEvents } from '../../api/execution-events.ts'
import { useLoaded } from '../../api/load.ts'
import type { RuleEnforcementView } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { LongText } from '../../components/long-text.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Table } from '../../components/table.tsx'
import { Time } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

const PAGE = 20
const MAX_SHOWN = 200
/** A rule that fires often shall not ask as often. */
const RELOAD_MS = 1000
/** No payloads: they may have megabytes. */
const ATTRIBUTES = [
  'id,trigger_instance_id,execution_id,failure_reason,skip_reason,rule,enforced_at,status',
  'execution.id,execution.status',
].join()

/** What a rule has started lately, or could not start; kept up to date. */
export function Enforcements({ ruleId }: { ruleId: string }): JSX.Element {
  const [limit, setLimit] = useState(PAGE)
  const loaded = useRef<{ items: RuleEnforcementView[]; total: number }>(undefined)
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const pages: RuleEnforcementView[] = []
      let total = 0
      for (let offset = 0; offset < limit; offset += PAGE) {
        const page = await list<RuleEnforcementView>(
          'ruleenforcements/views',
          { rule_id: ruleId, limit: PAGE, offset, include_attributes: ATTRIBUTES },
          signal,
        )
        pages.push(...page.items)
        ;({ total } = page)
        if (page.items.length < PAGE) break
      }
      return { items: pages, total }
    },
    [ruleId, limit],
  )
  if (data !== undefined) loaded.current = data
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const reloadSoon = (): void => {
    if (timer.current !== undefined) return
    timer.current = setTimeout(() => {
      timer.current = undefined
      reload()
    }, RELOAD_MS)
  }
  // Enforcements have no events of their own: mostly an execution comes with them.
  useExecutionEvents({ onOpen: reloadSoon, onExecution: reloadSoon })
  // Keeps what is there while more of it is loaded.
  const shown = data ?? loaded.current
  return (
    <section class="card" aria-label="Enforcements">
      <h2>Enforcements</h2>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {shown === undefined && error === undefined && <p class="loading">Loading…</p>}
      {shown?.items.length === 0 && (
        <p class="hint">No enforcements yet. Test the rule against a recorded event to see what it would do.</p>
      )}
      {shown !== undefined && shown.items.length > 0 && (
        <>
          <Table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Outcome</th>
                <th scope="col">Cause</th>
              </tr>
            </thead>
            <tbody>
              {shown.items.map((enforcement) => (
                <Enforcement key={enforcement.id} enforcement={enforcement} />
              ))}
            </tbody>
          </Table>
          <p class="hint rules-more">
            {shown.items.length} of {shown.total}{' '}
            {shown.items.length < shown.total && limit < MAX_SHOWN && (
              <button type="button" class="quiet small" onClick={() => setLimit(limit + PAGE)}>
                Show more
              </button>
            )}
          </p>
        </>
      )}
    </section>
  )
}

function Enforcement({ enforcement }: { enforcement: RuleEnforcementView }): JSX.Element {
  const { trigger_instance_id: instance, execution_id: id, execution } = enforcement
  const reason = enforcement.failure_reason ?? enforcement.skip_reason
  return (
    <tr>
      <td>
        <Time at={enforcement.enforced_at} />
      </td>
      <td>
        {id === undefined ? (
          <>
            <StatusBadge status={enforcement.status} />{' '}
            <LongText text={reason ?? 'No execution started.'} maxLength={300} />
          </>
        ) : (
          <>
            {execution?.status !== undefined && <StatusBadge status={execution.status} />}{' '}
            <a href={hrefOf(['history', id])}>execution</a>
          </>
        )}
      </td>
      <td>
        <a href={hrefOf(['triggers', 'instances', instance])}>trigger instance</a>
      </td>
    </tr>
  )
}
