/**
 * Row types. A table belongs to exactly one module, whose `store.ts` is the only code that queries it. JSON columns are
 * text; only code that needs the content parses it.
 */
import type { Generated } from 'kysely'

/** Owner: actions. */
export interface ActionTable {
  id: string
  ref: string
  pack: string
  name: string
  enabled: number
  runner_type: string
  /** The whole wire record (contract 02, 2.1). */
  record: string
}

/** Owner: actions. */
export interface RunnerTypeTable {
  id: string
  name: string
  enabled: number
  /** The whole wire record (contract 02, 2.3). */
  record: string
}

/**
 * Owner: executions. Records of the action and the runner type at the time of an execution, one per distinct content.
 */
export interface SnapshotTable {
  hash: string
  record: string
}

/** Owner: executions. */
export interface ExecutionTable {
  id: string
  /** Increases by one with each change; a change names the revision it was based on. */
  revision: number
  status: string
  liveaction_id: string
  action_ref: string
  runner: string
  user: string
  action_hash: string
  runner_hash: string
  trace_id: string
  /** Parent execution id. */
  parent: string | null
  rule: string | null
  trigger: string | null
  trigger_type: string | null
  trigger_instance: string | null
  start_timestamp: string
  end_timestamp: string | null
  elapsed_seconds: number | null
  /** Milliseconds, as requested. */
  delay: number | null
  /** Not scheduled before this time; null: schedule at once. */
  due_timestamp: string | null
  result_size: number | null
  parameters: string
  context: string
  log: string
  /** `{callback, runner_info, notify?, notify_author?, notify_is_data?, unrendered?, secret_owners?}` */
  liveaction: string
  /** Snapshot of the rule that started the execution, if any. */
  origin_hash: string | null
  /** All parameters, encrypted, when some are secret: `parameters` then has them masked. */
  sealed_parameters: string | null
}

/** Owner: executions. Separate from the execution, so that lists and state changes never read it. */
export interface ExecutionResultTable {
  execution_id: string
  result: string
  /** The whole result, encrypted, when it has secrets; else null. */
  sealed: string | null
}

/** Owner: executions. */
export interface OutputRecordTable {
  execution_id: string
  /** 1, 2, 3 … per execution. */
  seq: number
  id: string
  output_type: string
  data: string
  timestamp: string
  /** The host that wrote it, where an execution runs on several. */
  host: string | null
  /** Line ends and UTF-8 bytes in the output of each type before this record. */
  stdout_lines: number
  stderr_lines: number
  other_lines: number
  stdout_bytes: number
  stderr_bytes: number
  other_bytes: number
}

/** Owner: executions. Processes that run executions now; rows left by a crash are cleaned up. */
export interface ProcessTable {
  execution_id: string
  pid: number
  start_time: string
  boot_id: string
}

/** Owner: executions. */
export interface RuleRunTable {
  /** Grows in the order in which the runs of a rule may run. */
  n: Generated<number>
  rule_id: string
  execution_id: string
}

/**
 * Owner: executions. Counts executions by combination, so that totals and the distinct values of `views/filters` cost
 * the same with a thousand executions and with a million.
 */
export interface ExecutionCountTable {
  action_ref: string
  status: string
  user: string
  runner: string
  /** 1 when the execution has a parent. */
  child: number
  rule: string
  trigger: string
  trigger_type: string
  count: number
}

/** Owner: traces. */
export interface TraceTable {
  id: string
  uid: string
  trace_tag: string
  start_timestamp: string
}

/** Owner: traces. One row per member of a trace. */
export interface TraceComponentTable {
  /** 1, 2, 3 … across all traces. */
  n: Generated<number>
  trace_id: string
  /** `execution`, `rule` or `trigger_instance`. */
  kind: string
  object_id: string
  ref: string
  updated_at: string
  caused_by_type: string | null
  caused_by_id: string | null
}

/**
 * Owner: traces. The traces of each rule, each once; database triggers maintain it, and rows are deleted with the
 * trace.
 */
export interface TraceRuleTable {
  rule_id: string
  trace_id: string
}

/** Owner: traces. The number of traces of each rule. */
export interface TraceRuleCountTable {
  rule_id: string
  count: number
}

/** Owner: traces. The number of traces with a tag; only for tags of several traces. */
export interface TraceTagCountTable {
  trace_tag: string
  count: number
}

/** Owner: auth. */
export interface UserTable {
  name: string
  /** 1: may request tokens for other users. */
  is_service: number
  created_at: string
  /** `{origin: nickname}` */
  nicknames: Generated<string>
  /** 1: logins, tokens and API keys of the user are refused. */
  is_disabled: Generated<number>
}

/** Owner: auth. `id` is the `jti` of the signed token; the token itself is not stored. */
export interface TokenTable {
  id: string
  user: string
  expiry: string
  service: number
  metadata: string
}

/** Owner: auth. The plain key is not stored. */
export interface ApiKeyTable {
  id: string
  user: string
  /** SHA-512 in hex of a fixed prefix and the key. */
  key_hash: string
  /** `{name: value}` */
  metadata: string
  created_at: string
  enabled: number
  /** Wire timestamp. */
  expires_at: string | null
  /** `[{permission_types, resource_uid?}]`; null: all permissions of the user. */
  scopes: string | null
  /** Wire timestamp; up to a minute late. */
  last_used_at: string | null
}

/** Owner: rbac. */
export interface RoleTable {
  id: string
  name: string
  description: string
  is_system: number
  /** `[{id, resource_uid?, permission_types}]` */
  grants: string
}

/** Owner: rbac. */
export interface RoleAssignmentTable {
  id: string
  user: string
  /** Name of the role. */
  role: string
  description: string
  /** 1: assigned through a group of the user. */
  is_remote: number
  /** `assignments/<file>`, `mappings/<file>` or `API`. */
  source: string
}

/** Owner: rbac. */
export interface GroupMappingTable {
  group_name: string
  /** `[name]` */
  roles: string
  description: string
  enabled: number
  source: string
}

/** Owner: triggers. */
export interface TriggerTypeTable {
  id: string
  ref: string
  /** The whole wire record (contract 05, 5.1). */
  record: string
}

/** Owner: triggers. */
export interface TriggerTable {
  id: string
  ref: string
  /** Reference of the trigger type. */
  type: string
  /** Digest of the parameters: equal parameters of one type are one trigger. */
  identity: string
  /** Number of rules bound to it. */
  uses: number
  /** 1: created for rules, and deleted with the last of them. */
  is_managed: number
  /**
   * The wire record (contract 05, 5.2). With secret parameters they are masked here, and `sealed` has all parameters
   * encrypted.
   */
  record: string
}

/** Owner: triggers. */
export interface TriggerInstanceTable {
  id: string
  /** Reference of the trigger. */
  trigger: string
  trigger_id: string
  trigger_type: string
  occurrence_time: string
  status: string
  trace_id: string
  payload: string
  /** Credential headers: cipher text, or JSON while encryption is off; null: none. */
  sealed_headers: string | null
  /** User of the execution that the payload tells about; null: it tells of none, or an older version stored it. */
  owner: string | null
  /** Executions by rules in the chain that led to it. */
  depth: number
}

/** Owner: triggers. Counts instances by combination. */
export interface TriggerInstanceCountTable {
  trigger: string
  trigger_type: string
  status: string
  count: number
}

/** Owner: rules. */
export interface RuleTable {
  id: string
  /** Increases by one with each change; a change names the revision it was based on. */
  revision: number
  ref: string
  pack: string
  name: string
  enabled: number
  action_ref: string
  trigger_id: string
  /** Reference of the trigger. */
  trigger: string
  /** The author. */
  user: string
  /** The rule as the module keeps it, without the trigger's parameters, which the trigger has. */
  record: string
}

/** Owner: rules. */
export interface RuleEnforcementTable {
  id: string
  rule_id: string
  rule_ref: string
  rule_uid: string
  trigger_instance_id: string
  execution_id: string | null
  /** Of a skipped one: why it was. */
  failure_reason: string | null
  enforced_at: string
  status: string
}

/** Owner: rules. Counts enforcements by combination. */
export interface RuleEnforcementCountTable {
  rule_ref: string
  rule_id: string
  status: string
  count: number
}

/** Owner: webhooks. Deliveries of the last 24 hours. */
export interface WebhookDeliveryTable {
  hook: string
  /** `user <name>`, or `trigger <id>` for senders with a signature only. */
  caller: string
  /** SHA-256 in hex of the idempotency key or delivery id. */
  key_hash: string
  /** SHA-256 in hex; empty where the body is not compared. */
  body_hash: string
  trace_id: string
  /** `[id]` */
  trigger_instances: string
  created_at: string
  /** Digest of the enabled rules that it met; empty: stored by an older version. */
  rules: string
}

/** Owner: idempotency. Requests with an Idempotency-Key of the last 24 hours, in the order in which they began. */
export interface IdempotentRequestTable {
  number: Generated<number>
  /** Digest of the caller and the key. */
  key_hash: string
  user: string
  /** Counts the requests of the user. */
  ordinal: number
  /** Digests of what identifies the request, separated by blanks. */
  parts: string
  /** Id of what the request created or changed; empty: unknown. */
  subject: string
  created_at: string
  /** Of the answer. Null: the request has begun, and its answer is not stored. */
  status: number | null
  /** Headers and body, encrypted. Null: not kept. */
  answer: string | null
  /** Length of all answers up to this one, in the order in which they were stored. */
  position: number | null
}

/** Owner: triggers. Repetitions of a delivery that had no effect, by the trigger instance of the first. */
export interface TriggerInstanceRepetitionTable {
  trigger_instance_id: string
  count: number
  first_timestamp: string
  last_timestamp: string
}

/** Owner: timers. */
export interface TimerTable {
  trigger_id: string
  /** Uid of the trigger when the times were computed: other parameters give another uid. */
  trigger_uid: string
  /** The start of interval counting. */
  anchor: string
  /** When it fires next. Null: it does not fire again, or no enabled rule uses it. */
  next_timestamp: string | null
  /** The time of the schedule that it fires for next: `next_timestamp` is later by the jitter that was drawn. */
  due_timestamp: string | null
  /** The time of the schedule for which it last fired. */
  fired_timestamp: string | null
  /** When it last fired. */
  run_timestamp: string | null
}

/** Owner: jobs. One for each rule that has started an execution, or of which something is expected. */
export interface JobTable {
  rule_id: string
  rule_ref: string
  /** Increases by one with each change; a change of the expectation names the revision it was based on. */
  revision: number
  /** Of the execution that ended last, after its last attempt. */
  last_execution_id: string | null
  last_status: string | null
  last_end_timestamp: string | null
  last_success_timestamp: string | null
  /** When the timer fired for the run that succeeded last; other runs: when it was requested. */
  last_success_for: string | null
  /** Uid of the trigger that the due time comes from; another one starts the count anew. */
  trigger_uid: string | null
  /** Since when something is expected; null: nothing is. */
  since_timestamp: string | null
  /** The due time of the timer that waits for its success; null: the rule has no `expect.within`, or no further time. */
  due_timestamp: string | null
  /** When the run for it must have succeeded. */
  due_by_timestamp: string | null
  /** When the next success must have come; null: the rule has no `expect.every`. */
  success_by_timestamp: string | null
  /** The next look at the row; null: nothing is expected, or the job is late. */
  check_timestamp: string | null
  /** When the success was due that is late; null: the job is not late. */
  missed_timestamp: string | null
  missed_reason: string | null
}

/** Owner: datastore. */
export interface KeyValuePairTable {
  id: string
  /** `svckv.system` or `svckv.user`. */
  scope: string
  /** For the user scope; else empty. */
  user: string
  name: string
  description: string | null
  secret: number
  encrypted: number
  expire_timestamp: string | null
  /** The last column: it may be long, and SQLite reads the others without it. */
  value: string
}

/** Owner: packs. */
export interface PackTable {
  id: string
  ref: string
  name: string
  /** Absolute path. */
  folder: string
  /** Of what the last registration has read; empty: it has to be read again. */
  fingerprint: string
  /** Problems and warnings of the last registration, as JSON. */
  remarks: Generated<string>
  /** Metadata files that disabled what they define when the pack was registered last, as JSON; null: not known. */
  disabled_files: Generated<string | null>
  /** The whole wire record (contract 02, 2.8). */
  record: string
}

/** Owner: packs. */
export interface ConfigSchemaTable {
  id: string
  pack: string
  /** `{name: schema}` */
  attributes: string
}

/** Owner: packs. The registered content of the site's configuration file. */
export interface ConfigTable {
  id: string
  pack: string
  /** `{name: value}`; with secrets, the cipher text as a JSON string. */
  values: string
}

/** Owner: packs. */
export interface ActionAliasTable {
  id: string
  ref: string
  pack: string
  name: string
  /** The whole wire record (contract 02, 2.13). */
  record: string
}

/** Owner: policies. */
export interface PolicyTable {
  id: string
  revision: number
  ref: string
  pack: string
  name: string
  /** Reference of the action that it applies to. */
  resource_ref: string
  policy_type: string
  enabled: number
  /** The whole wire record (contract 02, 2.11). */
  record: string
}

/** Owner: sensors. */
export interface SensorTypeTable {
  id: string
  revision: number
  /** `<pack>.<class_name>` */
  ref: string
  pack: string
  class_name: string
  enabled: number
  /** The whole sensor as the module keeps it. */
  record: string
}

/** Owner: sensors. */
export interface SensorProcessTable {
  /** Value of the environment marker of one run. */
  marker: string
  sensor_id: string
  /** 0: it is being started. */
  pid: number
  start_time: string
  boot_id: string
}

/** Owner: sensors. */
export interface SensorDispatchTable {
  seq: Generated<number>
  sensor_id: string
  dispatch_id: string
  trigger_instance_id: string
}

/** Owner: sensors. */
export interface SensorOutputTable {
  sensor_id: string
  seq: number
  timestamp: string
  type: string
  data: string
}

/** Owner: workflows. Texts of workflow definitions that executions use, one per distinct text. */
export interface WorkflowDefinitionTable {
  /** SHA-256 of the text in base64url. */
  hash: string
  text: string
}

/** Owner: workflows. One per run. A JSON string in the place of an object is the encrypted text of the object. */
export interface WorkflowExecutionTable {
  id: string
  /** The execution that runs it. A re-run gives it another one. Null: the execution is old, and the run is being deleted. */
  execution: string | null
  /** Ids of earlier executions, separated by spaces, of which tasks still ran when it was re-run. Null: there are none. */
  earlier: string | null
  /** The workflow at the top of its tree; its own id, if it is that one. */
  root: string
  runner: string
  /** Hash of the text. */
  definition: string
  start_timestamp: string
  /** Increases by one with each event; a change names the revision it was based on. */
  revision: number
  /** Null: it is not over. */
  end_timestamp: string | null
  status: string
  /** `pause` or `cancel`. */
  request: string | null
  /** `pause`, `resume`, `cancel` or `withdraw`: the children of its execution after `cascade_after` are still to get it. Null: none are. */
  cascade: string | null
  /** Id of a child; empty: before the first. */
  cascade_after: string
  /** Counters of `WorkflowRow`. */
  instances: number
  contexts: number
  routes: number
  errors: number
  starts: number
  commands: number
  active: number
  held: number
  succeeded: number
  failed: number
  canceled: number
  ready: number
  cleanups: number
  idle: number
  published: number
  /** `{name: value}` */
  output: string | null
  /** Output records of the execution that runs it; the lines in them, and their bytes. */
  line_records: number
  lines: number
  line_bytes: number
}

/** Owner: workflows. Instances of tasks. */
export interface WorkflowTaskTable {
  workflow: string
  /** 0, 1, 2 … per workflow. */
  number: number
  /** Index in the tasks of the definition. */
  task: number
  route: number
  status: string
  /** Null: it has not started. */
  start_order: number | null
  /** 1 for the first that starts on the route; 0: it has not started. */
  pass: number
  is_ready: number
  is_cleanup: number
  is_terminal: number
  context: number | null
  /** `[{from, transition, context}]` */
  previous: string
  arrivals: number
  /** `[position]`; null: no transition was evaluated. */
  taken: string | null
  retries: number
  /** `{count, delay}` */
  retry: string | null
  /** `{count, concurrency, next, active, held, failed, canceled}` */
  items: string | null
  /** Of the latest attempt. */
  start_timestamp: string | null
  end_timestamp: string | null
}

/** Owner: workflows. Transitions that have led to an instance of a join. */
export interface WorkflowArrivalTable {
  workflow: string
  /** Number of the instance. */
  instance: number
  position: number
  /** Number of the instance that led here. */
  source: number
  transition: number
  context: number
}

/** Owner: workflows. Items that have started. */
export interface WorkflowItemTable {
  workflow: string
  instance: number
  position: number
  status: string
  /** Number of the instance whose action gave the result. */
  source: number
}

/** Owner: workflows. Rows are never changed. */
export interface WorkflowContextTable {
  workflow: string
  number: number
  /** `[number]` */
  parents: string
  /** `{name: value}`; with secrets, the encrypted text as a JSON string. */
  values: string
}

/** Owner: workflows. */
export interface WorkflowJoinTable {
  workflow: string
  /** Index in the tasks of the definition. */
  task: number
  route: number
  arrived: number
  fired: number
}

/** Owner: workflows. */
export interface WorkflowJoinSourceTable {
  workflow: string
  /** Index in the tasks of the definition, like `source`. */
  task: number
  route: number
  source: number
  fired_before: number
  has_arrived: number
}

/** Owner: workflows. */
export interface WorkflowRouteTable {
  workflow: string
  number: number
  parent: number
  origin: string
}

/** Owner: workflows. */
export interface WorkflowErrorTable {
  workflow: string
  number: number
  /** Null: it belongs to the workflow. */
  instance: number | null
  /** `{type, message, …}`; with secrets, the encrypted text as a JSON string. */
  entry: string
}

/** Owner: workflows. Secrets that the expressions of a workflow have read; each row has those that are new to it. */
export interface WorkflowSecretTable {
  workflow: string
  /** Revision of the workflow that follows from the event which read them. */
  number: number
  /** JSON array, encrypted. */
  secrets: string
}

/** Owner: workflows. Executions that workflows have started. */
export interface WorkflowActionTable {
  /** Id of the child execution. */
  execution: string
  workflow: string
  instance: number
  /** Null: the task has no items. */
  item: number | null
  attempt: number
  /** Id of the task execution: one per instance and attempt. */
  task_execution: string
}

/** Owner: monitoring. Status samples of a little more than a day. */
export interface StatusSampleTable {
  /** Minutes since the epoch. */
  minute: number
  /** `{seconds, gauges, counts, runs}` */
  sample: string
}

/** Owner: traces. Row counts of tables. */
export interface TotalTable {
  name: 'traces'
  count: number
}

/** Owner: notifications. */
export interface NotificationTable {
  id: string
  destination: string
  /** A condition, `digest` or `test`. */
  occasion: string
  status: string
  job: string
  rule: string | null
  execution: string | null
  action: string | null
  user: string | null
  attempts: number
  due_at: string
  queued_at: string
  sent_at: string | null
  error: string | null
  /** Id of the digest that lists it. */
  digest: string | null
  content: string
}

/** Owner: notifications. Jobs whose last run failed or was missed. */
export interface NotificationFailureTable {
  job: string
  since: string
}

export interface Tables {
  actions: ActionTable
  runner_types: RunnerTypeTable
  snapshots: SnapshotTable
  executions: ExecutionTable
  execution_results: ExecutionResultTable
  output_records: OutputRecordTable
  processes: ProcessTable
  execution_counts: ExecutionCountTable
  traces: TraceTable
  trace_components: TraceComponentTable
  trace_rules: TraceRuleTable
  trace_rule_counts: TraceRuleCountTable
  trace_tag_counts: TraceTagCountTable
  users: UserTable
  tokens: TokenTable
  api_keys: ApiKeyTable
  roles: RoleTable
  role_assignments: RoleAssignmentTable
  group_mappings: GroupMappingTable
  trigger_types: TriggerTypeTable
  triggers: TriggerTable
  trigger_instances: TriggerInstanceTable
  trigger_instance_counts: TriggerInstanceCountTable
  rules: RuleTable
  rule_runs: RuleRunTable
  rule_enforcements: RuleEnforcementTable
  rule_enforcement_counts: RuleEnforcementCountTable
  webhook_deliveries: WebhookDeliveryTable
  idempotent_requests: IdempotentRequestTable
  trigger_instance_repetitions: TriggerInstanceRepetitionTable
  timers: TimerTable
  jobs: JobTable
  key_value_pairs: KeyValuePairTable
  packs: PackTable
  config_schemas: ConfigSchemaTable
  configs: ConfigTable
  action_aliases: ActionAliasTable
  policies: PolicyTable
  sensor_types: SensorTypeTable
  sensor_processes: SensorProcessTable
  sensor_dispatches: SensorDispatchTable
  sensor_output: SensorOutputTable
  workflow_definitions: WorkflowDefinitionTable
  workflow_executions: WorkflowExecutionTable
  workflow_tasks: WorkflowTaskTable
  workflow_arrivals: WorkflowArrivalTable
  workflow_items: WorkflowItemTable
  workflow_contexts: WorkflowContextTable
  workflow_joins: WorkflowJoinTable
  workflow_join_sources: WorkflowJoinSourceTable
  workflow_routes: WorkflowRouteTable
  workflow_errors: WorkflowErrorTable
  workflow_secrets: WorkflowSecretTable
  workflow_actions: WorkflowActionTable
  status_samples: StatusSampleTable
  totals: TotalTable
  notifications: NotificationTable
  notification_failures: NotificationFailureTable
}
