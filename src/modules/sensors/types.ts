/** Wire records of contract 05, 5.10, and the sensor as the module stores it. */
import { record, Type, type Static } from '../../lib/schema/index.ts'

export const sensorKinds = ['python'] as const

export type SensorKind = (typeof sensorKinds)[number]

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
    description: '`python`: a class with the methods of a sensor.',
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
}

export const SensorRecord = record('SensorType', sensor, { example })
export type SensorRecord = Static<typeof SensorRecord>

/** A sensor in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialSensor = record(
  'PartialSensorType',
  Type.Object({ ...Type.Partial(sensor).properties, id: Type.String(), ref: Type.String() }),
  { example: { id: example.id, ref: example.ref, pack: example.pack, enabled: true } },
)

/** What a pack says of a sensor, in full. */
export type SensorDefinition = Omit<SensorRecord, 'id' | 'uid' | 'ref'>

/** A sensor inside the server. */
export interface Sensor extends SensorRecord {
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
