/** The state of the server: gauges, status and its history. */
import type { Module, NotReady } from '../../core/module.ts'
import { logLevels, type LogMessage } from '../../lib/log/index.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'

/** The current value of a gauge. */
export interface GaugeReading {
  key: string
  about: string
  value: number
}

/** Event loop delay in milliseconds. */
export interface LoopDelay {
  mean: number
  p99: number
  max: number
}

/** The source of `GET /v1/status`, metrics and history. */
export interface StatusSource {
  /** Gauges of every module and of the process, without those that cannot be read now. */
  readings(): GaugeReading[]
  /** Event loop delay in the last 10 to 20 seconds. */
  loopDelay(): LoopDelay
  /** The last 50 messages at WARNING or above, oldest first. */
  lastProblems(): readonly LogMessage[]
  /** Traces that have grown fast within the last ten minutes. */
  growing(): readonly GrowingTrace[]
  /** Traces whose chain of rules was cut within the last 24 hours. */
  cut(): readonly CutTrace[]
}

/** Facts about the server that the composition root provides. */
export interface ServerFacts {
  /** A module that is off belongs to the server, but does no work. */
  modules: readonly Pick<Module, 'name' | 'isOff' | 'attention'>[]
  /** Wire timestamp. */
  startedAt: string
  readonly urls: () => Readonly<Record<'auth' | 'api' | 'stream', string>>
  basePath: string
  /** The reasons in `/readyz`, with sentences. */
  readonly notReady: () => readonly NotReady[]
  /** The account that commands of actions run as; how to change that if it is root. */
  commandAccount: { user: string; isRoot: boolean; remedy: string }
}

/** A log message as `GET /status` returns it. */
export const LogMessageRecord = record(
  'LogMessage',
  Type.Object({
    timestamp: Type.String({ format: 'date-time' }),
    level: Type.Enum(logLevels),
    event: Type.String(),
    message: Type.String(),
    line: Type.String({ description: 'The whole line as text, secrets masked, at most 1000 characters.' }),
  }),
  {
    example: {
      timestamp: '2030-01-31T12:00:00.000Z',
      level: 'WARNING',
      event: 'login.throttled',
      message: 'Too many failed logins of this user',
      line: '2030-01-31 12:00:00,000 WARNING login.throttled Too many failed logins of this user',
    },
  },
)

export const ComponentStatus = record(
  'ComponentStatus',
  Type.Object({
    name: Type.String(),
    about: Type.String(),
    state: Type.Enum(['running', 'disabled', 'not_included']),
  }),
  { example: { name: 'auth', about: 'Authentication', state: 'running' } },
)
export type ComponentStatus = Static<typeof ComponentStatus>

export const ServiceGroups = record(
  'ServiceGroups',
  Type.Object({ groups: Type.Array(Type.String(), { description: 'Names of services, sorted.' }) }),
  { example: { groups: ['actionrunner', 'api', 'auth', 'stream'] } },
)

const member = Type.Object({
  group_id: Type.String(),
  member_id: Type.String({ description: '`<host>_<pid>`' }),
  capabilities: Type.Object({
    hostname: Type.String(),
    pid: Type.Integer(),
    url: Type.Optional(Type.String({ description: 'Where the service listens.' })),
  }),
})

export const ServiceMembers = record('ServiceMembers', Type.Object({ members: Type.Array(member) }), {
  example: {
    members: [{ group_id: 'actionrunner', member_id: 'host_4711', capabilities: { hostname: 'host', pid: 4711 } }],
  },
})
export type ServiceMember = Static<typeof member>

export const QueueStatus = record(
  'QueueStatus',
  Type.Object({ name: Type.String(), length: Type.Integer(), limit: Type.Integer() }),
  { example: { name: 'work', length: 0, limit: 10 } },
)
export type QueueStatus = Static<typeof QueueStatus>

const diskProperties = {
  free_bytes: Type.Integer(),
  total_bytes: Type.Integer(),
  free_inodes: Type.Integer(),
  total_inodes: Type.Integer(),
}
const DiskStatus = Type.Object(diskProperties, {
  description: 'File system of the base path. Null: it does not respond.',
})
export type DiskStatus = Static<typeof DiskStatus>

const NotReadyRecord = record(
  'NotReady',
  Type.Object({
    reason: Type.String({ description: 'The word in `/readyz`.' }),
    problem: Type.String({ description: 'What is wrong, where, and what to do.' }),
  }),
  { example: { reason: 'packs_gone', problem: '/var/lib/svc/packs was deleted or moved while the server runs.' } },
)

const growingExample = { id: '67a1f0c2e4b0a1d2c3e4f50d', members: 1001, last_timestamp: '2030-01-31T12:00:00.000000Z' }

export const GrowingTrace = record(
  'GrowingTrace',
  Type.Object({
    id: Type.String(),
    members: Type.Integer({ description: 'Members that it got within a minute.' }),
    last_timestamp: Type.String({ format: 'date-time', description: 'When it last grew so fast.' }),
  }),
  { example: growingExample },
)
export type GrowingTrace = Static<typeof GrowingTrace>

export const CutTrace = record(
  'CutTrace',
  Type.Object({
    id: Type.String(),
    rule: Type.String({ description: 'Reference of the rule that was not enforced.' }),
    last_timestamp: Type.String({ format: 'date-time', description: 'When it was last cut.' }),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f50d',
      rule: 'examples.deploy',
      last_timestamp: '2030-01-31T12:00:00.000000Z',
    },
  },
)
export type CutTrace = Static<typeof CutTrace>

/** `GET /status` */
export const StatusRecord = record(
  'Status',
  Type.Object({
    status: Type.Enum(['ok', 'attention']),
    not_ready: Type.Array(NotReadyRecord, { description: 'The reasons in `/readyz`; empty: the server is ready.' }),
    attention: Type.Array(Type.String(), { description: 'Conditions that need attention, a sentence each.' }),
    version: Type.String(),
    pid: Type.Integer(),
    started_at: Type.String({ format: 'date-time' }),
    uptime_seconds: Type.Integer(),
    urls: Type.Object({ auth: Type.String(), api: Type.String(), stream: Type.String() }),
    command_account: Type.Object(
      {
        user: Type.String(),
        is_root: Type.Boolean({ description: 'Whether it may do everything on the machine of the server.' }),
        remedy: Type.String({ description: 'How to change that; empty unless `is_root`.' }),
      },
      { description: 'The account that commands of actions run as.' },
    ),
    components: Type.Array(ComponentStatus),
    queues: Type.Array(QueueStatus, { description: '`limit` is the recommended limit of `length`.' }),
    event_loop: Type.Object(
      { mean_ms: Type.Number(), p99_ms: Type.Number(), max_ms: Type.Number() },
      { description: 'Event loop delay in the last 10 to 20 seconds, in milliseconds.' },
    ),
    disk: Type.Nullable(DiskStatus),
    growing_traces: Type.Array(GrowingTrace, {
      description: 'Traces that got more than 1,000 members within a minute, in the last ten minutes.',
    }),
    cut_traces: Type.Array(CutTrace, {
      description: 'Traces in which rules started each other until svc ended the chain, in the last 24 hours.',
    }),
    gauges: Type.MapOf(Type.Number(), { description: 'Every gauge by its key, as in the metrics.' }),
    problems: Type.Array(LogMessageRecord, {
      description: 'The last messages at WARNING or above, oldest first.',
    }),
  }),
  {
    example: {
      status: 'ok',
      not_ready: [],
      attention: [],
      version: '1.0.0',
      pid: 4711,
      started_at: '2030-01-31T12:00:00.000000Z',
      uptime_seconds: 3600,
      urls: { auth: 'http://127.0.0.1:9100', api: 'http://127.0.0.1:9101', stream: 'http://127.0.0.1:9102' },
      command_account: { user: 'svc', is_root: false, remedy: '' },
      components: [{ name: 'auth', about: 'Authentication', state: 'running' }],
      queues: [{ name: 'work', length: 0, limit: 10 }],
      event_loop: { mean_ms: 1.2, p99_ms: 4.5, max_ms: 12 },
      disk: {
        free_bytes: 80_000_000_000,
        total_bytes: 100_000_000_000,
        free_inodes: 5_000_000,
        total_inodes: 6_000_000,
      },
      growing_traces: [],
      cut_traces: [],
      gauges: { 'actionrunner.queue.work': 0 },
      problems: [],
    },
  },
)
export type StatusRecord = Static<typeof StatusRecord>

const sampleExample = {
  timestamp: '2030-01-31T12:00:00.000000Z',
  seconds: 60,
  queues: { request: 0, work: 2, cancel: 0, trigger: 1 },
  slots: { used: 3, size: 50 },
  executions: { started: 12, succeeded: 11, failed: 1, timeout: 0, canceled: 0, abandoned: 0 },
  run_seconds: { p50: 0.4, p95: 2.1 },
  trigger_instances: 20,
  webhooks: 4,
  event_loop: { mean_ms: 1.2, max_ms: 12 },
  memory: { resident_bytes: 120_000_000, heap_bytes: 60_000_000 },
}

/** Measurements over one period. Values that are not counts are the maximum of the period. */
export const StatusSample = record(
  'StatusSample',
  Type.Object({
    timestamp: Type.String({ format: 'date-time', description: 'Start of the period.' }),
    seconds: Type.Number({ description: 'Seconds of the period in which the server ran.' }),
    queues: Type.Object(
      { request: Type.Integer(), work: Type.Integer(), cancel: Type.Integer(), trigger: Type.Integer() },
      { description: 'Maximum lengths.' },
    ),
    slots: Type.Object({ used: Type.Integer(), size: Type.Integer() }, { description: 'Maximum values.' }),
    executions: Type.Object(
      {
        started: Type.Integer(),
        succeeded: Type.Integer(),
        failed: Type.Integer(),
        timeout: Type.Integer(),
        canceled: Type.Integer(),
        abandoned: Type.Integer(),
      },
      { description: 'Executions that started, and executions that ended by their status.' },
    ),
    run_seconds: Type.Nullable(
      Type.Object(
        { p50: Type.Number(), p95: Type.Number() },
        { description: 'p50 and p95 of the run times of executions that ended. Null: none ended.' },
      ),
    ),
    trigger_instances: Type.Integer({ description: 'Trigger instances that svc matched against rules.' }),
    webhooks: Type.Integer({ description: 'Webhook requests that svc accepted.' }),
    event_loop: Type.Object(
      { mean_ms: Type.Number(), max_ms: Type.Number() },
      { description: 'Event loop delay in milliseconds: the maximum of several readings.' },
    ),
    memory: Type.Object(
      { resident_bytes: Type.Integer(), heap_bytes: Type.Integer() },
      { description: 'Maximum of several readings.' },
    ),
  }),
  { example: sampleExample },
)
export type StatusSample = Static<typeof StatusSample>

/** `GET /status/history` */
export const StatusHistory = record(
  'StatusHistory',
  Type.Object({
    step_seconds: Type.Integer({ description: 'Seconds per sample.' }),
    samples: Type.Array(StatusSample, {
      description:
        'Oldest first. There is no sample for the time the server did not run. The last one is of the current minute.',
    }),
  }),
  { example: { step_seconds: 60, samples: [sampleExample] } },
)
export type StatusHistory = Static<typeof StatusHistory>
