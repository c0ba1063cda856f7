import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
import type { Unit } from '../../db/database.ts'
import type { OutputType } from '../../runners/runner.ts'

/** Contract 03, 3.5. `pending` … `resuming` are for workflows. */
export const executionStatuses = [
  'requested',
  'delayed',
  'scheduled',
  'running',
  'pending',
  'pausing',
  'paused',
  'resuming',
  'canceling',
  'succeeded',
  'failed',
  'timeout',
  'abandoned',
  'canceled',
] as const

export type ExecutionStatus = (typeof executionStatuses)[number]

export interface LogEntry {
  status: ExecutionStatus
  timestamp: string
}

export interface RunnerInfo {
  hostname: string
  pid: number
}

/** The live part of an execution: what is handed to the runner, with an id of its own on the wire. */
export interface Liveaction {
  callback: Record<string, unknown>
  runner_info: Partial<RunnerInfo>
  notify?: Record<string, unknown>
  /** Who has written `notify`, when that is not the acting user. */
  notify_author?: string
  /** Names of parameters whose templates could not be rendered, so they are kept as the caller wrote them. */
  unrendered?: string[]
  /** Whose secret parameters a re-run was given; absent: those it has are of its own user. */
  secret_owners?: string[]
}

/** The rule that started an execution, and what set it off, as they were then. */
export interface ExecutionOrigin {
  rule: { id: string; uid: string; ref: string; name: string; pack: string; description: string }
  trigger: { id: string; uid: string; ref: string; name: string; pack: string; type: string }
  trigger_type: { id: string; uid: string; ref: string; name: string; pack: string; description: string }
}

/** An execution inside the server: its row with JSON parsed, unmasked. `record.ts` makes the wire record of it. */
export interface Execution {
  id: string
  revision: number
  status: ExecutionStatus
  liveaction_id: string
  action_ref: string
  user: string
  action: ActionRecord
  runner: RunnerTypeRecord
  trace_id: string
  parent: string | null
  rule: string | null
  trigger: string | null
  trigger_type: string | null
  trigger_instance: string | null
  /** Null unless a rule started it. */
  origin: ExecutionOrigin | null
  start_timestamp: string
  end_timestamp: string | null
  elapsed_seconds: number | null
  delay: number | null
  due_timestamp: string | null
  result_size: number | null
  parameters: Record<string, unknown>
  context: Record<string, unknown>
  log: LogEntry[]
  liveaction: Liveaction
  /** Present only where it was loaded; null when there is none yet. */
  result?: unknown
}

/** One stored chunk; `seq` orders the chunks of an execution: 1, 2, 3 … */
export interface OutputRecord {
  id: string
  execution_id: string
  seq: number
  output_type: OutputType
  data: string
  timestamp: string
}

/**
 * Port: what a change of status brings about elsewhere, in the same unit. Whoever knows triggers provides it.
 *
 * @param parameters of the execution, secrets masked
 */
export type PlanReaction = (execution: Execution, parameters: Record<string, unknown>) => Unit | undefined

/** Port: credentials for the API that actions have while they run; whoever knows tokens provides it. */
export interface ServiceTokens {
  /** Whether authentication is on. */
  readonly enabled: boolean
  /**
   * A token for the run of an execution; it counts once the unit is committed. Undefined when the run gets none.
   *
   * The value is handed to the process and goes nowhere else.
   */
  plan(execution: Execution): { token: string; unit: Unit } | undefined
  /** Makes the token of an execution worthless, if there is one. */
  planEnd(execution: Execution): Unit
}
