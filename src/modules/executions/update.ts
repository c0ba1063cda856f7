/** Cancels executions, and updates that come from outside (contract 03, 3.4). */
import { executionUpdateRefused, isStorageFailure, transitionRefused } from '../../core/errors.ts'
import { aboutCaller, writeStoredJson } from '../../http/index.ts'
import { isLong } from '../../lib/json/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { inquirerName, isWorkflowRunner } from '../../runners/index.ts'
import { aboutExecution, idsOf } from './audit.ts'
import type { Change } from './change.ts'
import type { StopBackground } from './run/background.ts'
import type { ExecutionCaller } from './request/draft.ts'
import type { ResultSecrets } from './secrets/results.ts'
import { isCancelable, isFinal, statusAfter, type FinalStatus } from './state.ts'
import type { ExecutionStore } from './store.ts'
import type { OldRecords } from '../../core/retention.ts'
import type { Execution, ExecutionStatus } from './types.ts'

export interface Updates {
  /**
   * Cancels an execution. Of one that has ended, it stops the processes left in the background, and changes nothing.
   *
   * @throws RESOURCE_NOT_FOUND; TRANSITION_REFUSED when it cannot be cancelled any more
   */
  cancel(caller: ExecutionCaller, id: string): Promise<Execution>
  /**
   * Cancels those of the next old executions that have not ended.
   *
   * @param dryRun counts them only
   * @returns how many
   */
  cancelOld(caller: ExecutionCaller, old: OldRecords, dryRun: boolean): Promise<number>
  /** Pause, resume, cancel, or a final status set from outside. @throws RESOURCE_NOT_FOUND, EXECUTION_UPDATE_REFUSED */
  update(
    caller: ExecutionCaller,
    id: string,
    status: ExecutionStatus,
    result?: Record<string, unknown>,
  ): Promise<Execution>
}

export function createUpdates(deps: {
  store: Pick<ExecutionStore, 'find' | 'madeBefore'>
  /** @throws RESOURCE_NOT_FOUND */
  readonly get: (id: string) => Execution
  change: Pick<Change, 'try' | 'plan'>
  /** Ends the processes of a run; `user` is recorded when its end is. @returns false: it does not run here */
  readonly stopRun: (id: string, user: string) => boolean
  results: Pick<ResultSecrets, 'maskReport'>
  stopBackground: StopBackground
  log: Log
}): Updates {
  const { store, get, change, stopRun, log } = deps

  /**
   * Reads the execution again and retries when another request has changed it in between.
   *
   * @param stays whether the execution stays as it is; throws when it cannot be cancelled
   */
  async function cancelSeen(
    execution: Execution,
    caller: ExecutionCaller,
    stays: (seen: Execution) => boolean,
  ): Promise<Execution> {
    let seen = execution
    for (;;) {
      if (stays(seen)) return seen
      const changed = await tryCancel(seen, caller.principal.user)
      if (changed !== undefined) {
        const { status } = changed
        const message = `Canceling action execution. ${idsOf(changed)}`
        log.audit('execution.canceled', message, { ...aboutExecution(changed, aboutCaller(caller)), status })
        return changed
      }
      seen = get(execution.id)
    }
  }

  /** Processes can be ended without the disk; the record follows when there is space. */
  async function tryCancel(seen: Execution, user: string): Promise<Execution | undefined> {
    const event = { kind: 'cancel', user } as const
    try {
      return await change.try(seen, event)
    } catch (error) {
      const canceling = change.plan(seen, event)?.execution
      if (!isStorageFailure(error) || canceling?.status !== 'canceling' || !stopRun(seen.id, user)) throw error
      log.warning('execution.cancel_not_stored', 'A run is ended; that it was canceled is stored later', {
        ...aboutExecution(canceling),
        error,
      })
      return canceling
    }
  }

  /** Pauses or resumes a workflow. */
  async function requestSeen(
    execution: Execution,
    caller: ExecutionCaller,
    kind: 'pause' | 'resume',
  ): Promise<Execution> {
    let seen = execution
    for (;;) {
      refuseFinal(seen)
      if (!isWorkflowRunner(seen.runner.name)) throw executionUpdateRefused(pauseRefusal(seen, kind))
      if (isUnderWay[kind].has(seen.status)) return seen
      if (statusAfter(seen, { kind, user: '' }) === undefined) throw executionUpdateRefused(stateRefusal(seen, kind))
      const changed = await change.try(seen, { kind, user: caller.principal.user })
      if (changed !== undefined) {
        const [name, message] = audits[kind]
        const { status } = changed
        log.audit(name, `${message} ${idsOf(changed)}`, {
          ...aboutExecution(changed, aboutCaller(caller)),
          status,
        })
        return get(changed.id)
      }
      seen = get(execution.id)
    }
  }

  async function settleSeen(
    execution: Execution,
    caller: ExecutionCaller,
    status: FinalStatus,
    result: Record<string, unknown> | undefined,
  ): Promise<Execution> {
    const stored = result === undefined ? { result } : deps.results.maskReport(execution, result)
    if (isLong(stored.result)) await writeStoredJson(stored.result)
    let seen = execution
    for (;;) {
      refuseFinal(seen)
      const changed = await change.try(seen, { kind: 'settle', status, ...stored })
      if (changed !== undefined) {
        const message = `Action execution updated. ${idsOf(changed)}`
        log.audit('execution.updated', message, { ...aboutExecution(changed, aboutCaller(caller)), status })
        return changed
      }
      seen = get(execution.id)
    }
  }

  return {
    async cancel(caller, id) {
      const execution = get(id)
      const { stopped, problems } = isFinal(execution.status)
        ? await deps.stopBackground(execution)
        : { stopped: 0, problems: [] }
      if (stopped > 0) {
        const message = `Stopped background processes of an action execution. ${idsOf(execution)}`
        const about = { ...aboutExecution(execution, aboutCaller(caller)), killed_processes: stopped }
        log.audit('execution.background_stopped', message, about)
        if (problems.length === 0) return execution
      }
      if (problems.length > 0) {
        throw transitionRefused(`Could not stop all background processes. ${problems.join(' ')}`)
      }
      return cancelSeen(execution, caller, ({ status }) => {
        if (status === 'canceled') return true
        if (isCancelable(status)) return false
        throw transitionRefused(`Action cannot be canceled. State = ${status}.`)
      })
    },

    async cancelOld(caller, { before, after, limit, actionRef }, dryRun) {
      const open = store.madeBefore(before, after, limit, actionRef).filter(({ status }) => isCancelable(status))
      if (dryRun) return open.length
      let canceled = 0
      for (const { id } of open) {
        const execution = store.find(id)
        if (execution === undefined) continue
        await cancelSeen(execution, caller, ({ status }) => !isCancelable(status))
        canceled += 1
      }
      return canceled
    },

    async update(caller, id, status, result) {
      const execution = get(id)
      refuseFinal(execution)
      if (status === 'succeeded' && execution.runner.name === inquirerName) {
        // Only the people that an inquiry asks may answer it.
        throw executionUpdateRefused(`An inquiry succeeds by a response: PUT /inquiries/${id}.`)
      }
      switch (status) {
        case 'pausing':
        case 'paused':
          return requestSeen(execution, caller, 'pause')
        case 'resuming':
          return requestSeen(execution, caller, 'resume')
        case 'canceling':
        case 'canceled':
          return cancelSeen(execution, caller, (seen) => {
            refuseFinal(seen)
            return !isCancelable(seen.status)
          })
        case 'succeeded':
        case 'failed':
        case 'timeout':
        case 'abandoned':
          return settleSeen(execution, caller, status, result)
        default:
          throw executionUpdateRefused(
            `status: "${status}" is set by the server itself; use a final status, canceling, pausing or resuming.`,
          )
      }
    },
  }
}

const audits = {
  pause: ['execution.paused', 'Pausing action execution.'],
  resume: ['execution.resumed', 'Resuming action execution.'],
} as const

/** Statuses in which the request changes nothing. */
const isUnderWay: Record<'pause' | 'resume', ReadonlySet<ExecutionStatus>> = {
  pause: new Set<ExecutionStatus>(['pausing', 'paused']),
  resume: new Set<ExecutionStatus>(['running', 'resuming']),
}

function stateRefusal({ liveaction_id: id, status }: Execution, kind: 'pause' | 'resume'): string {
  const reason =
    kind === 'pause' ? 'it is not in a running state' : `it is in "${status}" state and not in "paused" state`
  return `Failed updating execution. Unable to ${kind} liveaction "${id}" because ${reason}.`
}

/** @throws EXECUTION_UPDATE_REFUSED */
function refuseFinal({ status }: Execution): void {
  if (isFinal(status)) throw executionUpdateRefused('Execution is already in completed state.')
}

function pauseRefusal(execution: Execution, verb: 'pause' | 'resume'): string {
  return (
    `Failed updating execution. Unable to ${verb} liveaction "${execution.liveaction_id}" because it is not supported ` +
    `by the "${execution.runner.name}" runner.`
  )
}
