/** Wire records of contract 05, 5.10, and the sensor as the module stores it. */
import { record, Type, type Static } from '../../lib/schema/index.ts'

export const sensorKinds = ['python', 'process', 'http-poll'] as const

export type SensorKind = (typeof sensorKinds)[number]

export const sensorStates = ['disabled', 'starting', 'running', 'waiting', 'failed', 'finished', 'elsewhere'] as const

export type SensorState = (typeof sensorStates)[number]

const optionalTime = (description: string) =>
  Type.Optional(Type.String({ description: `${description} ISO 8601 UTC.` }))

const runtime = Type.Object(
  {
    state: Type.Unsafe<SensorState>({
      type: 'string',
      enum: sensorStates,
      description:
        '`waiting`: it starts again soon; `failed`: it has ended too often, and starts again later, if at all; `finished`: it has ended by itself with exit code 0; `elsewhere`: another node runs it.',
    }),
    node: Type.String({ description: '`sensorcontainer.sensor_node_name` of this server.' }),
    pid: Type.Optional(Type.Integer()),
    since: optionalTime('Start of the process; of `http-poll`, when it last began to succeed.'),
    memory_bytes: Type.Optional(
      Type.Integer({ description: 'Resident memory of the process that svc started, without what that has started.' }),
    ),
    cpu_seconds: Type.Optional(
      Type.Number({
        description: 'Processor time of that process, and of those that it has started and that have ended.',
      }),
    ),
    restarts: Type.Integer({ description: 'Starts after the first, since the server started.' }),
    next_start: optionalTime('When a waiting or failed sensor starts again.'),
    dispatches: Type.Integer({ description: 'Triggers dispatched since the server started.' }),
    dropped: Type.Integer({ description: 'Dispatches that were wrong, since the server started.' }),
    last_dispatch: optionalTime('Last dispatch since the server started.'),
    last_error: Type.Optional(Type.String({ description: 'Why it ended, or what was wrong with a dispatch.' })),
    last_error_at: optionalTime('When that was.'),
  },
  { description: 'What it does now.' },
)
export type SensorRuntime = Static<typeof runtime>

const sensor = Type.Object({
  id: Type.String(),
  uid: Type.String({ description: '`sensor_type:<pack>:<class_name>`' }),
  ref: Type.String({ description: '`<pack>.<class_name>`' }),
  pack: Type.String(),
  class_name: Type.String(),
  name: Type.String({ description: 'The same as `class_name`.' }),
  sensor_type: Type.Unsafe<SensorKind>({
    type: 'string',
    enum: sensorKinds,
    description:
      '`python`: a class with the methods of a sensor. `process`: a program that writes JSON lines. `http-poll`: svc asks an HTTP server for new items.',
  }),
  artifact_uri: Type.String({ description: 'The file of the sensor as a `file:` URL.' }),
  entry_point: Type.String({ description: 'Of a Python sensor `sensors.<file>.<class>`.' }),
  description: Type.String(),
  enabled: Type.Boolean(),
  poll_interval: Type.Optional(
    Type.Number({ description: 'Seconds between two polls; absent: the sensor runs by itself.' }),
  ),
  trigger_types: Type.Array(Type.String(), { description: 'References of the trigger types that it dispatches.' }),
  metadata_file: Type.String({ description: 'Relative to the pack.' }),
  runtime,
})

const example = {
  id: '67a1f0c2e4b0a1d2c3e4f512',
  uid: 'sensor_type:examples:BuildSensor',
  ref: 'examples.BuildSensor',
  pack: 'examples',
  class_name: 'BuildSensor',
  name: 'BuildSensor',
  sensor_type: 'python' as const,
  artifact_uri: 'file:///var/lib/svc/packs/examples/sensors/build_sensor.py',
  entry_point: 'sensors.build_sensor.BuildSensor',
  description: 'Watches builds.',
  enabled: true,
  poll_interval: 30,
  trigger_types: ['examples.build.finished'],
  metadata_file: 'sensors/build_sensor.yaml',
  runtime: {
    state: 'running' as const,
    node: 'sensornode1',
    pid: 4711,
    since: '2026-01-31T12:00:00.000000Z',
    memory_bytes: 23_068_672,
    cpu_seconds: 1.2,
    restarts: 0,
    dispatches: 12,
    dropped: 0,
    last_dispatch: '2026-01-31T12:30:00.000000Z',
  },
}

export const SensorRecord = record('SensorType', sensor, { example })
export type SensorRecord = Static<typeof SensorRecord>

/** A sensor in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialSensor = record(
  'PartialSensorType',
  Type.Object({ ...Type.Partial(sensor).properties, id: Type.String(), ref: Type.String() }),
  { example: { id: example.id, ref: example.ref, pack: example.pack, enabled: true } },
)

/** How svc asks an HTTP server for items (docs/sensors.md). */
export interface HttpPollDefinition {
  /** May be a template. */
  url: string
  /** Values may be templates. */
  headers: Record<string, string>
  /** JSONPath of the items in the answer; absent: the whole answer. */
  items?: string
  /** JSONPath, in an item, of what identifies it; absent: all of it. */
  key?: string
  /** Reference of a trigger type. */
  trigger: string
  /** Whether the first poll dispatches nothing. */
  skip_first: boolean
  /** Seconds until the answer must be complete. */
  timeout: number
}

/** What a pack says of a sensor, in full. */
export interface SensorDefinition extends Omit<SensorRecord, 'id' | 'uid' | 'ref' | 'runtime'> {
  /** Absolute folder of the pack. */
  folder: string
  /** Below `sensors/` of the pack; empty: `http-poll`. */
  file: string
  /** Of `http-poll`. */
  http_poll?: HttpPollDefinition
}

/** A sensor inside the server. */
export interface Sensor extends SensorDefinition {
  id: string
  uid: string
  ref: string
  revision: number
  /** What its file says; `enabled` differs after a client has changed it. */
  enabled_in_file: boolean
}

/** Body of a PUT. A client may send back a whole record. */
export const SensorUpdate = record(
  'SensorTypeUpdate',
  Type.Object({
    enabled: Type.Boolean({ description: 'Whether svc runs the sensor. All other attributes are ignored.' }),
  }),
  { example: { enabled: false } },
)
export type SensorUpdate = Static<typeof SensorUpdate>

const output = Type.Object({
  seq: Type.Integer({ description: 'Later records have greater numbers.' }),
  timestamp: Type.String({ description: 'ISO 8601 UTC with microseconds.' }),
  type: Type.Unsafe<'stdout' | 'stderr' | 'other'>({
    type: 'string',
    enum: ['stdout', 'stderr', 'other'],
    description: '`other`: svc says something about the sensor.',
  }),
  data: Type.String(),
})

export const SensorOutput = record('SensorOutput', output, {
  example: { seq: 7, timestamp: '2026-01-31T12:00:00.000000Z', type: 'stderr', data: 'Watching builds.\n' },
})
export type SensorOutput = Static<typeof SensorOutput>
