import { executionStatuses, type ExecutionStatus } from '../../core/execution-status.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { outputTypes } from '../../runners/index.ts'
import type { ActionRecord, RunnerTypeRecord } from '../actions/types.ts'
export { executionStatuses, type ExecutionStatus } from '../../core/execution-status.ts'
export type { OutputType } from '../../runners/index.ts'

const Status = Type.Enum(executionStatuses, { type: 'string' })

const OutputTypeName = Type.Enum(outputTypes, { type: 'string' })

const Timestamp = Type.String({ description: 'ISO 8601 UTC with microseconds.' })

const LogEntry = Type.Object({ status: Status, timestamp: Timestamp })
export type LogEntry = Static<typeof LogEntry>

const RunnerInfo = Type.Object({ hostname: Type.String(), pid: Type.Integer() })
export type RunnerInfo = Static<typeof RunnerInfo>

/** When a run that has failed is tried again. Times in seconds. */
export interface RetryRules {
  /** Runs altogether, the first included. */
  attempts: number
  /** Before the second run. */
  delay: number
  /** `exponential`: each further delay is twice the one before, up to `max_delay`. */
  backoff: 'exponential' | 'fixed'
  max_delay: number
  /** A random part of the delay is left out, at most half of it. */
  jitter: boolean
  on: readonly ('failed' | 'timeout')[]
}

/** What a rule says about runs that would overlap: the new one is left out, waits, or takes the place of the other. */
export type Overlap = 'skip' | 'queue' | 'replace'

/** How the runs of a rule run, as the rule was when the first attempt was created. */
export interface RunningRules {
  retry?: RetryRules
  /** Absent: runs may overlap. */
  overlap?: Overlap
}

/** The live part of an execution: what the runner gets, with an id of its own on the wire. */
export interface Liveaction {
  callback: Record<string, unknown>
  runner_info: Partial<RunnerInfo>
  notify?: Record<string, unknown>
  /** Seconds that its run, its inquiry or its workflow may take, besides limits of its own; absent: no other. */
  timeout?: number
  /** Author of `notify`, when that is not the acting user. */
  notify_author?: string
  /** `notify` holds no templates: it comes from a chat. */
  notify_is_data?: true
  /** Names of parameters whose templates could not be rendered: their values are as the caller wrote them. */
  unrendered?: string[]
  /** Absent: its rule says nothing about it, or no rule started it. */
  running?: RunningRules
  /** Executions by rules in the chain that led to it, itself included if a rule started it; absent: 0. */
  depth?: number
  /** Which attempt it is, from 2 on. */
  attempt?: number
  /** Id of the attempt before. */
  retry_of?: string
  /** Users whose secret parameters a re-run inherited; absent: its own user's. */
  secret_owners?: string[]
}

const ruleOrigin = Type.Object({
  id: Type.String(),
  uid: Type.String(),
  ref: Type.String(),
  name: Type.String(),
  pack: Type.String(),
  description: Type.String(),
})
const triggerOrigin = Type.Object({
  id: Type.String(),
  uid: Type.String(),
  ref: Type.String(),
  name: Type.String(),
  pack: Type.String(),
  type: Type.String({ description: 'Reference of the trigger type.' }),
})

/** The rule that started an execution, and its trigger, as they were then. */
export interface ExecutionOrigin {
  rule: Static<typeof ruleOrigin>
  trigger: Static<typeof triggerOrigin>
  trigger_type: Static<typeof ruleOrigin>
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
  /** With masks in the place of secrets when they are encrypted: `secrets/parameters.ts` decrypts them. */
  parameters: Record<string, unknown>
  /** Cipher text of the parameters and of the secrets in them; null without secrets. */
  sealed_parameters: string | null
  context: Record<string, unknown>
  log: LogEntry[]
  liveaction: Liveaction
  /** Present only where it was loaded; null when there is none yet. Secrets in it are masked. */
  result?: unknown
  /** Cipher text of a result with secrets; present only until it is stored. */
  sealed_result?: string
}

const KnownContext = Type.Object(
  {
    user: Type.String({ description: 'Acting user.' }),
    pack: Type.String(),
    're-run': Type.Optional(Type.Object({ ref: Type.String({ description: 'Id of the execution that it repeats.' }) })),
    policies: Type.Optional(
      Type.Object({
        retry: Type.Optional(Type.Object({ applied_policy: Type.String(), retry_count: Type.Integer() })),
      }),
    ),
    cancelled_by: Type.Optional(Type.String()),
  },
  { additionalProperties: true, description: 'Set by the server; callers may add further attributes.' },
)
/** Attributes that the server sets, and those that callers add. */
export type ExecutionContext = Record<string, unknown> & Static<typeof KnownContext>

/** As it was when the execution began; only its name when nothing else is known. */
type Known<T> = T | { name: string }

const originDescription = 'As it was when the execution began; only `name` when nothing else is known.'
const KnownRule = Type.Unsafe<Known<ExecutionOrigin['rule']>>({
  ...Type.Partial(ruleOrigin),
  required: ['name'],
  description: originDescription,
})
const KnownTrigger = Type.Unsafe<Known<ExecutionOrigin['trigger']>>({
  ...Type.Partial(triggerOrigin),
  required: ['name'],
  description: originDescription,
})

const liveaction = Type.Object({
  id: Type.String(),
  action: Type.String({ description: 'Reference of the action.' }),
  action_is_workflow: Type.Boolean(),
  parameters: Type.FreeForm({ description: 'Secrets masked.' }),
  callback: Type.FreeForm(),
  runner_info: Type.Partial(RunnerInfo),
  notify: Type.Optional(Type.FreeForm()),
})
/** The live action inside an execution on the wire. */
export type LiveactionRecord = Static<typeof liveaction>

const execution = Type.Object({
  id: Type.String({ pattern: '^[0-9a-f]{24}$' }),
  status: Status,
  start_timestamp: Timestamp,
  end_timestamp: Type.Optional(Timestamp),
  elapsed_seconds: Type.Optional(Type.Number()),
  action: Type.Unsafe<ActionRecord>({ $ref: '#/components/schemas/Action' }),
  runner: Type.Unsafe<RunnerTypeRecord>({ $ref: '#/components/schemas/RunnerType' }),
  liveaction,
  parameters: Type.Optional(Type.FreeForm({ description: 'Secrets masked.' })),
  result: Type.Optional(Type.Unknown({ description: 'Depends on the runner.' })),
  result_size: Type.Optional(Type.Integer({ description: 'Bytes of the stored result.' })),
  context: Type.Unsafe<ExecutionContext>(KnownContext),
  log: Type.Array(LogEntry, { description: 'Every status, oldest first.' }),
  web_url: Type.String({ description: 'Page of the execution in the web client.' }),
  parent: Type.Optional(Type.String({ description: 'Id of the parent execution.' })),
  children: Type.Optional(Type.Array(Type.String(), { description: 'Ids, oldest first.' })),
  workflow_execution: Type.Optional(Type.String({ description: 'Id of the workflow execution that started it.' })),
  task_execution: Type.Optional(Type.String({ description: 'Id of the task execution that started it.' })),
  delay: Type.Optional(Type.Integer({ description: 'Milliseconds from the request to scheduling.' })),
  attempt: Type.Optional(Type.Integer({ description: 'Which attempt it is, from 2 on: only of retries.' })),
  retry_of: Type.Optional(Type.String({ description: 'Id of the attempt before: only of retries.' })),
  rule: Type.Optional(KnownRule),
  trigger: Type.Optional(KnownTrigger),
  trigger_type: Type.Optional(KnownRule),
  trigger_instance: Type.Optional(
    Type.Unsafe<Record<string, unknown> & { id: string }>({
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string' }, trigger: { type: 'string' }, occurrence_time: Timestamp },
      additionalProperties: true,
    }),
  ),
})

const actionExample: ActionRecord = {
  id: '67a1f0c2e4b0a1d2c3e4f501',
  uid: 'action:core:local',
  ref: 'core.local',
  name: 'local',
  pack: 'core',
  description: 'Runs a command on the host of the server.',
  enabled: true,
  runner_type: 'local-shell-cmd',
  entry_point: '',
  parameters: {},
  output_schema: {},
  tags: [],
  notify: {},
}

export const executionExample: Static<typeof execution> = {
  id: '67a1f0c2e4b0a1d2c3e4f506',
  status: 'succeeded',
  start_timestamp: '2026-01-31T12:00:00.000000Z',
  end_timestamp: '2026-01-31T12:00:01.250000Z',
  elapsed_seconds: 1.25,
  action: actionExample,
  runner: {
    id: '67a1f0c2e4b0a1d2c3e4f502',
    uid: 'runner_type:local-shell-cmd',
    name: 'local-shell-cmd',
    description: 'Runs a command on the host of the server.',
    enabled: true,
    runner_package: 'local_runner',
    runner_module: 'local_shell_command_runner',
    runner_parameters: {},
  },
  liveaction: {
    id: '67a1f0c2e4b0a1d2c3e4f505',
    action: 'core.local',
    action_is_workflow: false,
    parameters: { cmd: 'date' },
    callback: {},
    runner_info: { hostname: 'svc-1', pid: 4711 },
  },
  parameters: { cmd: 'date' },
  result: { succeeded: true, failed: false, return_code: 0, stdout: 'Sat Jan 31 12:00:01 UTC 2026', stderr: '' },
  result_size: 104,
  context: { user: 'jane', pack: 'core' },
  log: [
    { status: 'requested', timestamp: '2026-01-31T12:00:00.000000Z' },
    { status: 'scheduled', timestamp: '2026-01-31T12:00:00.010000Z' },
    { status: 'running', timestamp: '2026-01-31T12:00:00.020000Z' },
    { status: 'succeeded', timestamp: '2026-01-31T12:00:01.250000Z' },
  ],
  web_url: 'https://svc.example.com/#/history/67a1f0c2e4b0a1d2c3e4f506/general',
}

/** An execution on the wire (contract 03, 3.2): top-level attributes that are empty are left out. */
export const ExecutionRecord = record('Execution', execution, {
  description: 'Attributes that are empty are left out.',
  example: executionExample,
})
// A type, not an interface: records are cut to the attributes that a reader asks for.
export type ExecutionRecord = Static<typeof ExecutionRecord> & {
  /** Bytes, in the place of parameters that are larger than a reader wants. */
  parameters_size?: number
}

const partOf = (name: string) =>
  Type.Optional(Type.FreeForm({ description: `${name}, or the parts that are asked for.` }))

/** A line with a match, without the control sequences of terminals. */
const OutputMatch = Type.Object({
  line: Type.Integer({ description: 'Number of the line.' }),
  before: Type.String({ description: 'Text before the first match in the line, or the end of that text.' }),
  match: Type.String(),
  after: Type.String({ description: 'Text after the match, or the beginning of that text.' }),
})
export type OutputMatch = Static<typeof OutputMatch>

/** A matching line of the output of one of several executions. */
const FoundLine = Type.Object(
  {
    seq: Type.Integer({ description: 'Number of the output record in which the line begins.' }),
    output_type: Type.String({ description: 'Of that record.' }),
    ...OutputMatch.properties,
  },
  { description: 'A matching line, without the control sequences of terminals.' },
)
export type FoundLine = Static<typeof FoundLine>

/** With `include_attributes` nothing but the id is certain, and paths such as `action.ref` take parts of an attribute. */
export const PartialExecution = record(
  'PartialExecution',
  Type.Object({
    ...Type.Partial(execution).properties,
    id: execution.properties.id,
    action: partOf('The action'),
    runner: partOf('The runner type'),
    liveaction: partOf('The live action'),
    context: partOf('The context'),
    rule: partOf('The rule'),
    trigger: partOf('The trigger'),
    trigger_type: partOf('The trigger type'),
    trigger_instance: partOf('The trigger instance'),
    parameters_size: Type.Optional(
      Type.Integer({ description: 'Bytes, in the place of `parameters`: see `max_parameters_size`.' }),
    ),
    output_matches: Type.Optional(
      Type.Array(FoundLine, { description: 'The first matching lines of its output: see `include_matches`.' }),
    ),
  }),
  { example: { id: executionExample.id, status: 'succeeded', action: { ref: 'core.local' } } },
)

/** The live action record of the event stream (contract 04, 4.2). */
export const LiveactionEvent = record(
  'Liveaction',
  Type.Object({
    ...liveaction.properties,
    status: Status,
    result: Type.Unknown({ description: 'Depends on the runner; an empty object before the end.' }),
    context: Type.Unsafe<Record<string, unknown>>(KnownContext),
    start_timestamp: Timestamp,
    end_timestamp: Type.Optional(Timestamp),
    delay: Type.Optional(Type.Integer()),
  }),
  {
    example: {
      ...executionExample.liveaction,
      status: 'running',
      result: {},
      context: executionExample.context,
      start_timestamp: executionExample.start_timestamp,
    },
  },
)
export type LiveactionEvent = Static<typeof LiveactionEvent>

/** What an action announces while it runs, as the event stream sends it (contract 04, 4.2). */
export const AnnouncementEvent = record(
  'Announcement',
  Type.Object({
    payload: Type.Unknown({ description: 'The message; its form is up to the action.' }),
    trace_context: Type.Object({ id_: Type.String(), trace_tag: Type.Optional(Type.Unknown()) }),
  }),
  { example: { payload: { stage: 'deploy' }, trace_context: { id_: '67a1f0c2e4b0a1d2c3e4f507' } } },
)
export type AnnouncementEvent = Static<typeof AnnouncementEvent>

/** Answer with status 200 to a cancel that the status of the execution does not permit. */
export const CancelRefusal = record('CancelRefusal', Type.Object({ faultstring: Type.String(), code: Type.String() }), {
  example: { faultstring: 'Action cannot be canceled. State = succeeded.', code: 'TRANSITION_REFUSED' },
})

const named = Type.Optional(Type.FreeForm({ description: 'As it was then, with `name`.' }))

/** An execution that has ended on another server. */
export const ImportedExecution = record(
  'ImportedExecution',
  Type.Object({
    id: Type.String({ pattern: '^[0-9a-f]{24}$', description: 'It stays.' }),
    status: Type.Enum(['succeeded', 'failed', 'timeout', 'abandoned', 'canceled'], { type: 'string' }),
    start_timestamp: Timestamp,
    end_timestamp: Type.Optional(Timestamp),
    action: Type.FreeForm({ description: 'As it was then; at least `ref` and `runner_type`.' }),
    runner: Type.Optional(Type.FreeForm({ description: 'The runner type as it was then.' })),
    liveaction: Type.Optional(
      Type.FreeForm({ description: '`id`, `callback`, `runner_info` and `notify`; others are ignored.' }),
    ),
    parameters: Type.Optional(Type.FreeForm({ description: 'Secrets are encrypted, as those of executions here.' })),
    result: Type.Optional(Type.Unknown()),
    context: Type.Optional(Type.FreeForm()),
    log: Type.Optional(Type.Array(LogEntry, { maxItems: 1000 })),
    parent: Type.Optional(Type.String({ pattern: '^[0-9a-f]{24}$' })),
    delay: Type.Optional(Type.Integer({ minimum: 0 })),
    rule: named,
    trigger: named,
    trigger_type: named,
    trigger_instance: Type.Optional(Type.FreeForm({ description: 'With `id`.' })),
  }),
  {
    example: {
      id: executionExample.id,
      status: 'succeeded',
      start_timestamp: executionExample.start_timestamp,
      end_timestamp: '2026-01-31T12:00:01.250000Z',
      action: { ref: 'core.local', runner_type: 'local-shell-cmd' },
    },
  },
)
export type ImportedExecution = Static<typeof ImportedExecution>

/** Body of `POST /executions/import`. */
export const ExecutionImport = record(
  'ExecutionImport',
  Type.Object(
    { executions: Type.Array(ImportedExecution, { maxItems: 100 }), dry_run: Type.Optional(Type.Boolean()) },
    { additionalProperties: false },
  ),
  {
    example: {
      executions: [
        {
          id: executionExample.id,
          status: 'succeeded',
          start_timestamp: executionExample.start_timestamp,
          action: { ref: 'core.local', runner_type: 'local-shell-cmd' },
        },
      ],
    },
  },
)
export type ExecutionImport = Static<typeof ExecutionImport>

/** Body of `POST /executions/output/import`. */
export const OutputImport = record(
  'OutputImport',
  Type.Object(
    {
      output: Type.Array(
        Type.Object({
          id: Type.String({ pattern: '^[0-9a-f]{24}$', description: 'It stays.' }),
          execution_id: Type.String({ description: 'Of an execution that has ended here.' }),
          output_type: OutputTypeName,
          data: Type.String({ maxLength: 1_048_576 }),
          timestamp: Type.String({ description: 'ISO 8601.' }),
        }),
        { maxItems: 100, description: 'In the order in which it was written.' },
      ),
      dry_run: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      output: [
        {
          id: '67a1f0c2e4b0a1d2c3e4f510',
          execution_id: executionExample.id,
          output_type: 'stdout',
          data: 'hello\n',
          timestamp: executionExample.start_timestamp,
        },
      ],
    },
  },
)
export type OutputImport = Static<typeof OutputImport>

/** Body of `PUT /executions/<id>`. */
export const ExecutionUpdate = record(
  'ExecutionUpdate',
  Type.Object({ status: Status, result: Type.Optional(Type.FreeForm()) }, { additionalProperties: false }),
  { example: { status: 'canceling' } },
)

const filterValues = Type.Optional(
  Type.Array(Type.Nullable(Type.String()), { description: 'Distinct values; null: executions without one.' }),
)

export const ExecutionFilters = record(
  'ExecutionFilters',
  Type.Object({
    action: filterValues,
    status: filterValues,
    rule: filterValues,
    runner: filterValues,
    trigger: filterValues,
    trigger_type: filterValues,
    user: filterValues,
  }),
  { example: { action: ['core.local'], status: ['succeeded', 'failed'], rule: [null], user: ['jane'] } },
)

/** One stored chunk; `seq` orders the chunks of an execution: 1, 2, 3 … */
export interface OutputRecord {
  id: string
  execution_id: string
  seq: number
  output_type: Static<typeof OutputTypeName>
  data: string
  timestamp: string
  /** The host it comes from, where an execution runs on other hosts; else null. */
  host: string | null
}

/** Line ends, and bytes of UTF-8, of each type in the output of an execution before a record. */
export interface OutputPlace {
  stdout_lines: number
  stderr_lines: number
  other_lines: number
  stdout_bytes: number
  stderr_bytes: number
  other_bytes: number
}

const Host = Type.Optional(
  Type.String({ description: 'Host that it comes from, when the execution runs on other hosts.' }),
)

/** A chunk of output as streams send it (contract 04, 4.3). */
export const OutputEvent = record(
  'OutputChunk',
  Type.Object({
    id: Type.String(),
    execution_id: Type.String(),
    action_ref: Type.String(),
    runner_ref: Type.String(),
    output_type: OutputTypeName,
    data: Type.String(),
    timestamp: Timestamp,
    host: Host,
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f509',
      execution_id: executionExample.id,
      action_ref: 'core.local',
      runner_ref: 'local-shell-cmd',
      output_type: 'stdout',
      data: 'Sat Jan 31 12:00:01 UTC 2026\n',
      timestamp: '2026-01-31T12:00:01.100000Z',
    },
  },
)
export type OutputEvent = Static<typeof OutputEvent>

const OutputPart = Type.Object({ output_type: OutputTypeName, data: Type.String(), host: Host })
export type OutputPart = Static<typeof OutputPart>

/** Numbered as in the text that `/output` with the same `output_type` answers with: line 42 is what `sed -n 42p` prints. */
const OutputLine = Type.Object({
  number: Type.Integer({ description: 'The first line is 1.' }),
  timestamp: Type.String({ description: 'Time of the record in which the line begins.' }),
  parts: Type.Array(OutputPart, {
    description: 'Text of the line without its line end, in the order in which it was written.',
  }),
  offset: Type.Optional(
    Type.Integer({ description: 'Byte of the line where the text begins; absent: at its beginning.' }),
  ),
  next_offset: Type.Optional(
    Type.Integer({ description: 'Byte where a line continues that is too long for one answer.' }),
  ),
  length: Type.Optional(Type.Integer({ description: 'Bytes of the whole line, when the answer has only a part.' })),
})
export type OutputLine = Static<typeof OutputLine>

const LineTotal = Type.Integer({ description: 'Lines so far, a last one without a line end included.' })
const IsComplete = Type.Boolean({ description: 'No more output follows.' })

export const OutputLines = record(
  'OutputLines',
  Type.Object({
    total: LineTotal,
    is_last_line_open: Type.Boolean({
      description: 'The last line has no line end: further output continues it.',
    }),
    bytes: Type.Object(
      { stdout: Type.Integer(), stderr: Type.Integer(), other: Type.Integer() },
      { description: 'Bytes so far of each type, whatever `output_type` is.' },
    ),
    is_complete: IsComplete,
    is_stored: Type.Boolean({ description: 'Whether the server stores output (`actionrunner.stream_output`).' }),
    is_beginning_removed: Type.Boolean({
      description: 'Retention has removed the beginning: line 1 is the first line that is left.',
    }),
    last_seq: Type.Integer({
      description: 'The stream continues behind these lines after `Last-Event-ID: <execution id>/<last_seq>`.',
    }),
    lines: Type.Array(OutputLine, { description: 'Consecutive; fewer than `limit` when they are long.' }),
  }),
  {
    example: {
      total: 1,
      is_last_line_open: false,
      bytes: { stdout: 29, stderr: 0, other: 0 },
      is_complete: true,
      is_stored: true,
      is_beginning_removed: false,
      last_seq: 1,
      lines: [
        {
          number: 1,
          timestamp: '2026-01-31T12:00:01.100000Z',
          parts: [{ output_type: 'stdout', data: 'Sat Jan 31 12:00:01 UTC 2026' }],
        },
      ],
    },
  },
)
export type OutputLines = Static<typeof OutputLines>

export const OutputMatches = record(
  'OutputMatches',
  Type.Object({
    total: LineTotal,
    matches: Type.Array(OutputMatch, {
      description: 'In the order of the lines, at most one for each; without the control sequences of terminals.',
    }),
    next: Type.Object(
      { from: Type.Integer(), offset: Type.Integer() },
      { description: 'Query parameters that continue the search.' },
    ),
    is_at_end: Type.Boolean({ description: 'The search has reached the end of the output so far.' }),
    is_complete: IsComplete,
  }),
  {
    example: {
      total: 1,
      matches: [{ line: 1, before: 'Sat Jan 31 12:00:01 ', match: 'UTC', after: ' 2026' }],
      next: { from: 2, offset: 0 },
      is_at_end: true,
      is_complete: true,
    },
  },
)
export type OutputMatches = Static<typeof OutputMatches>
