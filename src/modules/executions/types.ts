import type { ExecutionStatus } from '../../core/execution-status.ts'
import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
import type { OutputType } from '../../runners/index.ts'
export { executionStatuses, type ExecutionStatus } from '../../core/execution-status.ts'
export type { OutputType } from '../../runners/index.ts'

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

/** An execution inside the server: its row with JSON parsed. `record.ts` makes the wire record of it. */
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
  /** With masks in the place of secrets when it is sealed: `sealing.ts` has them as they are. */
  parameters: Record<string, unknown>
  /** Cipher text of the parameters and of what is secret in them; null when nothing is. */
  sealed_parameters: string | null
  context: Record<string, unknown>
  log: LogEntry[]
  liveaction: Liveaction
  /** Present only where it was loaded; null when there is none yet. Secrets in it are masked. */
  result?: unknown
  /** The result with its secrets, encrypted, where it has some; present only while it is being stored. */
  sealed_result?: string
}

/** As it was when the execution began; only its name where that is all that is known. */
type Known<T> = T | { name: string }

/** What the server writes into the context of an execution; whoever asks for one may add more under other names. */
export type ExecutionContext = Record<string, unknown> & {
  /** Acting user. */
  user: string
  pack: string
  /** The execution that this one was asked to repeat. */
  're-run'?: { ref: string }
  /** `retry`: of one that a policy has started because another one has failed. */
  policies?: { retry?: { applied_policy: string; retry_count: number } }
  cancelled_by?: string
}

/** An execution on the wire (contract 03, 3.2): top-level attributes that are empty are left out. */
// A type, not an interface: records are cut to the attributes that a reader asks for.
export type ExecutionRecord = {
  id: string
  status: ExecutionStatus
  start_timestamp: string
  end_timestamp?: string
  elapsed_seconds?: number
  action: ActionRecord
  runner: RunnerTypeRecord
  liveaction: LiveactionRecord
  /** Secrets masked. */
  parameters?: Record<string, unknown>
  /** Bytes, in the place of parameters that are larger than a reader wants. */
  parameters_size?: number
  result?: unknown
  /** Bytes of the stored result. */
  result_size?: number
  context: ExecutionContext
  log: LogEntry[]
  web_url: string
  parent?: string
  /** Ids, oldest first. */
  children?: string[]
  delay?: number
  rule?: Known<ExecutionOrigin['rule']>
  trigger?: Known<ExecutionOrigin['trigger']>
  trigger_type?: Known<ExecutionOrigin['trigger_type']>
  trigger_instance?: Record<string, unknown> & { id: string }
}

/** The live action inside an execution on the wire. */
export type LiveactionRecord = {
  id: string
  action: string
  action_is_workflow: boolean
  parameters: Record<string, unknown>
  callback: Record<string, unknown>
  runner_info: Partial<RunnerInfo>
  notify?: Record<string, unknown>
}

/** One stored chunk; `seq` orders the chunks of an execution: 1, 2, 3 … */
export interface OutputRecord {
  id: string
  execution_id: string
  seq: number
  output_type: OutputType
  data: string
  timestamp: string
  /** The host it comes from, where an execution runs on other hosts; else null. */
  host: string | null
}

/** How much the output of an execution has before some place: line ends, and bytes of UTF-8, of each type. */
export interface OutputPlace {
  stdout_lines: number
  stderr_lines: number
  other_lines: number
  stdout_bytes: number
  stderr_bytes: number
  other_bytes: number
}

/** Numbered as in the text that `/output` with the same `output_type` answers with: line 42 is what `sed -n 42p` prints. */
export interface OutputLine {
  /** The first one is 1. */
  number: number
  /** Of the record in which the line begins. */
  timestamp: string
  /** Its text without the line end, in the order in which it was written. */
  parts: OutputPart[]
  /** Where the text begins in the line, in bytes; left out: at its beginning. */
  offset?: number
  /** Where the line goes on that is too long to be shown as a whole, in bytes. */
  next_offset?: number
  /** Bytes of the whole line, when it is not shown as a whole. */
  length?: number
}

export interface OutputPart {
  output_type: OutputType
  data: string
  /** The host it comes from, where an execution runs on others. */
  host?: string
}

export interface OutputLines {
  /** Lines so far, a last one without a line end included. */
  total: number
  /** The last line has no line end: what is written next belongs to it. */
  is_last_line_open: boolean
  /** Bytes so far of each type, whichever was asked for. */
  bytes: Record<OutputType, number>
  /** Nothing is written any more. */
  is_complete: boolean
  /** Whether output is stored (`actionrunner.stream_output`). */
  is_stored: boolean
  /** The beginning is not stored any more: line 1 is the first of what is left. */
  is_beginning_removed: boolean
  /** The stream goes on behind these lines after `Last-Event-ID: <execution id>/<last_seq>`. */
  last_seq: number
  /** Consecutive. Less than asked for when they are long. */
  lines: OutputLine[]
}

/** A line in which something was found, without what terminals take as commands. */
export interface OutputMatch {
  /** Its number, as of `OutputLine`. */
  line: number
  /** The first place in it, and what stands around that: parts of the line. */
  before: string
  match: string
  after: string
}

export interface OutputMatches {
  /** Lines so far, a last one without a line end included. */
  total: number
  /** In the order of the lines, at most one of each. */
  matches: OutputMatch[]
  /** The `from` and `offset` that go on where this ends. */
  next: { from: number; offset: number }
  /** Everything has been looked through that there is so far. */
  is_at_end: boolean
  /** Nothing is written any more. */
  is_complete: boolean
}
