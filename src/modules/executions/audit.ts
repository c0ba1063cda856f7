/** What becomes of executions, for the audit log (contract 10, 10.3): from the facts, so nothing is missed or said too early. */
import type { Bus, Unsubscribe } from '../../bus/bus.ts'
import type { Log } from '../../log.ts'
import { isFinal } from './state.ts'

/**
 * `execution.status_changed` for every change, and beside it `execution.launched` and `execution.completed`, from which
 * operators count executions and their durations.
 */
export function auditChanges(bus: Bus, log: Log): Unsubscribe {
  return bus.subscribe('execution.updated', ({ execution, from }) => {
    const { status } = execution
    const about = {
      execution_id: execution.id,
      liveaction_id: execution.liveaction_id,
      action: execution.action_ref,
      user: execution.user,
    }
    const change = `The status of action execution is changed from ${from} to ${status}.`
    log.audit('execution.status_changed', change, { ...about, from, to: status })
    if (status === 'running' && from === 'scheduled') {
      log.audit('execution.launched', 'Launching action execution.', about)
    } else if (isFinal(status)) {
      const { elapsed_seconds } = execution
      log.audit('execution.completed', 'Liveaction completed.', { ...about, status, elapsed_seconds })
    }
  })
}
