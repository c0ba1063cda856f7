/**
 * The life of an execution as one table and one function (docs/architecture.md, section 7). Nothing else assigns `status`.
 */
import { formatMicros, microsOf, secondsBetween } from '../../core/time.ts'
import { storedJson } from '../../core/stored-json.ts'
import { isObject } from '../../lib/schema/index.ts'
import { isWorkflowRunner, type RunStatus } from '../../runners/index.ts'
import { executionStatuses, type Execution, type ExecutionStatus, type LogEntry, type RunnerInfo } from './types.ts'

export type FinalStatus = 'succeeded' | 'failed' | 'timeout' | 'abandoned' | 'canceled'

export type ExecutionEvent =
  /** It does not run before `due_timestamp`. */
  | { kind: 'delay' }
  /** A policy makes it wait until other executions of its action have ended. */
  | { kind: 'wait' }
  /** It need not wait any more, neither for a time nor for a policy. */
  | { kind: 'due' }
  /** A policy cancels it; raised twice, because the execution passes through `canceling`. */
  | { kind: 'forbid'; policy: string }
  /** A slot is free. */
  | { kind: 'schedule' }
  /** `workflow`: id of the workflow execution that it starts. */
  | { kind: 'start'; runner_info: RunnerInfo; workflow?: string }
  /** The execution cannot run: no runner, a disabled runner, parameters that do not render. */
  | { kind: 'reject'; result: Record<string, unknown> }
  /** `replacedBy`: the execution that takes its place. */
  | { kind: 'cancel'; user: string; replacedBy?: string }
  /** A user wants a workflow to start no more tasks. */
  | { kind: 'pause'; user: string }
  /** No task of the workflow runs any more, until something resumes it. */
  | { kind: 'paused' }
  | { kind: 'resume'; user: string }
  /** A task of the paused workflow runs again. */
  | { kind: 'resumed' }
  /** The run has ended and all its processes are gone; `pending` waits for a response. */
  | { kind: 'exit'; status: RunStatus | 'canceled'; result: unknown; sealed?: string | undefined; ttlSeconds?: number }
  /** The response to a pending execution. @see Execution.sealed_result */
  | { kind: 'respond'; result: unknown; sealed?: string }
  /** The pending execution timed out and keeps its result, or the workflow takes too long. */
  | { kind: 'expire' }
  /** The server that ran it has stopped. */
  | { kind: 'lost' }
  /** The server stopped after it had taken the execution, and before the action began. */
  | { kind: 'requeue' }
  /** An outside system sets the final status (contract 03, 3.4: PUT). */
  | { kind: 'settle'; status: FinalStatus; result: unknown; sealed?: string }
  /** It ran and ended on another server, whose times it keeps. @param end wire timestamp */
  | {
      kind: 'import'
      status: FinalStatus
      result: unknown
      sealed?: string | undefined
      log: readonly LogEntry[]
      end: string
    }

export type EventKind = ExecutionEvent['kind']

/** `named`: the status that the event names. */
type Target = ExecutionStatus | 'named'

const table: Record<ExecutionStatus, Partial<Record<EventKind, Target>>> = {
  requested: {
    delay: 'delayed',
    wait: 'delayed',
    forbid: 'canceling',
    schedule: 'scheduled',
    reject: 'failed',
    cancel: 'canceled',
    settle: 'named',
    import: 'named',
  },
  delayed: { due: 'requested', cancel: 'canceled', settle: 'named' },
  scheduled: { start: 'running', reject: 'failed', cancel: 'canceled', settle: 'named' },
  running: {
    exit: 'named',
    cancel: 'canceling',
    pause: 'pausing',
    paused: 'paused',
    expire: 'timeout',
    lost: 'abandoned',
    requeue: 'requested',
    settle: 'named',
  },
  canceling: { exit: 'canceled', lost: 'canceled', forbid: 'canceled', settle: 'named' },
  pending: { respond: 'succeeded', expire: 'timeout', settle: 'named' },
  pausing: {
    paused: 'paused',
    resume: 'resuming',
    resumed: 'running',
    expire: 'timeout',
    exit: 'named',
    cancel: 'canceled',
    settle: 'named',
  },
  paused: {
    resume: 'resuming',
    resumed: 'running',
    expire: 'timeout',
    exit: 'named',
    cancel: 'canceled',
    settle: 'named',
  },
  resuming: {
    pause: 'pausing',
    paused: 'paused',
    resumed: 'running',
    expire: 'timeout',
    exit: 'named',
    cancel: 'canceled',
    settle: 'named',
  },
  succeeded: {},
  failed: {},
  timeout: {},
  abandoned: {},
  canceled: {},
}

export function isFinal(status: ExecutionStatus): status is FinalStatus {
  return Object.keys(table[status]).length === 0
}

const waiting: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>(['requested', 'delayed', 'scheduled'])

/** Whether it has started, ended executions included. */
export function hasStarted(status: ExecutionStatus): boolean {
  return !waiting.has(status)
}

/** Whether it has begun to run, even if it was canceled then. */
export function hasRun({ log }: Pick<Execution, 'log'>): boolean {
  return log.some(({ status }) => status === 'running')
}

export const finalStatuses: readonly ExecutionStatus[] = executionStatuses.filter(isFinal)

export const openStatuses: readonly ExecutionStatus[] = executionStatuses.filter((status) => !isFinal(status))

/** Can be cancelled (contract 03, 3.5). */
export function isCancelable(status: ExecutionStatus): boolean {
  return table[status].cancel !== undefined
}

/** The status an event leads to, or undefined when the table does not list it. */
export function statusAfter(execution: Execution, event: ExecutionEvent): ExecutionStatus | undefined {
  const target = table[execution.status][event.kind]
  if (target === undefined) return undefined
  if (target === 'named') return 'status' in event ? event.status : undefined
  // A child is part of a larger run: the parent confirms that it has ended.
  if (event.kind === 'cancel' && execution.parent !== null) return 'canceling'
  return target
}

/**
 * The execution after an event, one revision later.
 *
 * @param now wire timestamp; a change is never recorded as earlier than the one before it
 * @returns undefined when the event does not fit the status; the caller decides what that means
 */
export function transition(execution: Execution, event: ExecutionEvent, now: string): Execution | undefined {
  const status = statusAfter(execution, event)
  if (status === undefined) return undefined
  // The clock may have been set back while no server ran.
  const before = execution.log.at(-1)?.timestamp ?? now
  const at = now > before ? now : before
  const next: Execution = {
    ...execution,
    revision: execution.revision + 1,
    status,
    log: [...execution.log, { status, timestamp: at }],
  }
  if (event.kind === 'import') next.log = [...event.log]
  if (event.kind === 'start') {
    // Its delay is over; a workflow may get the time of its end there.
    next.due_timestamp = null
    next.liveaction = { ...next.liveaction, runner_info: event.runner_info }
    if (event.workflow !== undefined) next.context = { ...next.context, workflow_execution: event.workflow }
  }
  if (event.kind === 'requeue') next.liveaction = { ...next.liveaction, runner_info: {} }
  if (event.kind === 'due' || event.kind === 'wait') next.due_timestamp = null
  if (event.kind === 'cancel') {
    const by = event.replacedBy === undefined ? {} : { replaced_by: event.replacedBy }
    next.context = { ...next.context, cancelled_by: event.user, ...by }
  }
  if (event.kind === 'pause') next.context = { ...next.context, paused_by: event.user }
  if (event.kind === 'resume') next.context = { ...next.context, resumed_by: event.user }
  if ('sealed' in event && event.sealed !== undefined) next.sealed_result = event.sealed
  if (isFinal(status)) {
    const end = event.kind === 'import' ? event.end : at
    next.end_timestamp = end
    next.elapsed_seconds = secondsBetween(execution.start_timestamp, end)
    next.due_timestamp = null
    setResult(next, resultOf(next, event))
  } else if (event.kind === 'exit') {
    setResult(next, event.result)
    if (event.ttlSeconds !== undefined) next.due_timestamp = formatMicros(microsOf(now) + event.ttlSeconds * 1_000_000)
  }
  return next
}

function resultOf(execution: Execution, event: ExecutionEvent): unknown {
  if (event.kind === 'forbid') {
    return { message: `Action canceled by the policy "${event.policy}".`, policy: event.policy }
  }
  if (execution.status === 'canceled' && event.kind !== 'settle' && event.kind !== 'import') {
    const output = event.kind === 'exit' && isWorkflowRunner(execution.runner.name) ? event.result : {}
    const user = execution.context['cancelled_by'] ?? execution.user
    const { replaced_by: newer } = execution.context
    const message = typeof newer === 'string' ? replacedText(newer) : 'Action canceled by user.'
    // A workflow may say more.
    return { message, user, ...(isObject(output) ? output : {}) }
  }
  switch (event.kind) {
    case 'exit':
    case 'reject':
    case 'respond':
    case 'settle':
    case 'import':
      return event.result
    case 'expire':
      // What an inquiry asks stays.
      return isWorkflowRunner(execution.runner.name) ? { error: LATE, traceback: LATE } : undefined
    case 'lost':
      return { error: 'The server stopped while the action was running.' }
    default:
      return undefined
  }
}

/** Result of a run that another one replaces. */
export const replacedText = (id: string): string =>
  `Action canceled: execution ${id}, a newer run of its rule, replaces it.`

const LATE = 'The workflow took longer than its timeout.'

function setResult(execution: Execution, result: unknown): void {
  if (result === undefined) return
  execution.result = result
  execution.result_size = Buffer.byteLength(storedJson(result))
}
