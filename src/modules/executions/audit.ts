/** Audit log of executions (contract 10, 10.3). It follows the facts, so that it misses nothing and is never early. */
import type { Bus, FactPayloads } from '../../bus/index.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import { isFinal } from './state.ts'
import type { Execution } from './types.ts'

/** Fields of each line about an execution; the caller can be another user than its own. */
export function aboutExecution(execution: Execution, caller: LogFields = {}): LogFields {
  const { id, liveaction_id, action_ref, user } = execution
  const owner = caller['user'] === undefined || caller['user'] === user ? {} : { owner: user }
  return { execution_id: id, liveaction_id, action: action_ref, user, ...caller, ...owner }
}

/** How audit messages name an execution. */
export function idsOf({ id, liveaction_id }: Execution): string {
  return `LiveAction.id=${liveaction_id}, ActionExecution.id=${id}`
}

/** Lines wait this long, so that they share a write and do not delay the start of the command. */
const WAIT_MS = 10

export interface ExecutionAudit {
  /** Writes the waiting lines. */
  flush(): void
}

/**
 * `execution.requested`, `execution.status_changed` for every change, and beside it `execution.launched` and
 * `execution.completed`, from which operators count executions and their durations.
 */
export function auditChanges(bus: Bus, log: Log): ExecutionAudit {
  let waiting: (() => void)[] = []
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const lines = waiting
    waiting = []
    for (const write of lines) write()
  }

  function later(write: () => void): void {
    waiting.push(write)
    timer ??= setTimeout(flush, WAIT_MS).unref()
  }

  function writeChange({ execution, from }: FactPayloads['execution.updated']): void {
    const { status } = execution
    const about = aboutExecution(execution)
    const change = `The status of action execution is changed from ${from} to ${status}. <${idsOf(execution)}>`
    log.audit('execution.status_changed', change, { ...about, from, to: status })
    if (status === 'running' && from === 'scheduled') {
      log.audit('execution.launched', `Launching action execution. ${idsOf(execution)}`, about)
    } else if (isFinal(status)) {
      const { elapsed_seconds } = execution
      log.audit('execution.completed', `Liveaction completed. ${idsOf(execution)}`, {
        ...about,
        status,
        elapsed_seconds,
      })
    }
  }

  bus.subscribe('execution.created', ({ execution, about }) => {
    const message = `Action execution requested. ${idsOf(execution)}`
    later(() => log.audit('execution.requested', message, aboutExecution(execution, about)))
  })
  bus.subscribe('execution.updated', (change) => later(() => writeChange(change)))
  return { flush }
}
