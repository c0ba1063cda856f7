/** What svc says of a job that is missed: a trigger instance and notifications, in the unit that marks it. */
import { formatMicros } from '../../core/time.ts'
import { merge, type JobTable, type Unit } from '../../db/index.ts'
import type { Executions } from '../executions/index.ts'
import { isFinal } from '../executions/index.ts'
import type { Execution } from '../executions/types.ts'
import type { Rules } from '../rules/index.ts'
import type { MissReason, Rule } from '../rules/types.ts'
import type { Cause } from '../traces/types.ts'
import { missedRef, type Triggers } from '../triggers/index.ts'
import type { Circumstances, Expected, Miss } from './expectation.ts'
import type { FiringOf } from './firing.ts'
import type { JobNotifications } from './ports.ts'

export type PlanMiss = (
  missed: Pick<Circumstances, 'now' | 'startedAt' | 'firedAt'> & {
    row: JobTable
    rule: Rule
    miss: Miss
    expected: Expected
  },
) => { due: string; reason: MissReason; unit: Unit }

export function createPlanMiss(deps: {
  rules: Pick<Rules, 'lastEnforcementOf'>
  executions: Pick<Executions, 'find'>
  triggers: Pick<Triggers, 'planInternal'>
  notifications: JobNotifications
  readonly firingOf: FiringOf
}): PlanMiss {
  const { rules, executions, triggers, notifications, firingOf } = deps

  /** Why it is missed, and the execution that it is about, if there is one. */
  function explain({ row, rule, miss, startedAt, firedAt, expected: { every = 0 } }: Parameters<PlanMiss>[0]): {
    reason: MissReason
    execution?: Execution
  } {
    const enforcement = rules.lastEnforcementOf(rule.id)
    const id = enforcement?.execution_id
    const execution = id === undefined ? undefined : executions.find(id)
    const isOpen =
      execution !== undefined &&
      // Or another attempt is to come.
      (!isFinal(execution.status) || (row.last_execution_id ?? '') < execution.id)
    const last = row.last_execution_id === null ? undefined : executions.find(row.last_execution_id)
    const wasOff = miss.due < startedAt && !(firedAt !== undefined && firedAt >= miss.due && firedAt < startedAt)
    const absent: MissReason = wasOff ? 'server_down' : 'not_started'
    const isSkipped = enforcement?.status === 'skipped'
    if (miss.isOfTimer) {
      const firing = enforcement === undefined ? undefined : firingOf(enforcement.trigger_instance_id)
      if (firing === undefined || firing < miss.due) return { reason: absent }
      if (isSkipped) return { reason: 'skipped' }
      if (id === undefined) return { reason: 'not_started' }
      return isOpen ? { reason: 'still_running', execution } : { reason: 'failed', ...(last && { execution: last }) }
    }
    if (isOpen) return { reason: 'still_running', execution }
    const begin = formatMicros(miss.due - every)
    if (row.last_end_timestamp !== null && row.last_end_timestamp > begin && row.last_status !== 'succeeded') {
      return { reason: 'failed', ...(last && { execution: last }) }
    }
    return { reason: isSkipped ? 'skipped' : absent }
  }

  return (missed) => {
    const { row, rule, miss, now } = missed
    const { reason, execution } = explain(missed)
    const due = formatMicros(miss.due)
    const { id, ref, expect = {} } = rule
    const payload = {
      rule: { id, ref },
      reason,
      due_timestamp: due,
      late_seconds: Math.max(0, Math.round((now - miss.due) / 1_000_000)),
      expect,
      last_success_timestamp: row.last_success_timestamp,
      execution_id: execution?.id ?? null,
      trace_id: execution?.trace_id ?? null,
    }
    const cause: Cause | undefined = execution && {
      kind: 'inherited',
      trace_id: execution.trace_id,
      caused_by: { type: 'action_execution', id: execution.id },
    }
    return {
      due,
      reason,
      unit: merge(
        triggers.planInternal(missedRef, payload, cause),
        notifications.planMissed({
          rule: { id, ref },
          due,
          expect,
          reason,
          lastSuccess: row.last_success_timestamp,
          ...(execution === undefined ? {} : { executionId: execution.id, traceId: execution.trace_id }),
        }),
        { steps: [], facts: [{ name: 'job.changed', payload: { id, ref, late: true } }] },
      ),
    }
  }
}
