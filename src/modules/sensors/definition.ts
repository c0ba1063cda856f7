/** Sensors of packs (contract 05, 5.10): what may be one, and its trigger types. Pure functions. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  descriptionSchema,
  MAX_NAME_CHARS,
  packSchema,
  tagsSchema,
  type PackDefinitions,
  type RegistrationProblem,
  withoutEmptyPack,
} from '../../core/pack-content.ts'
import { compileSchema, type JsonSchema } from '../../lib/schema/index.ts'
import { sensorKinds, type SensorDefinition, type SensorKind } from './types.ts'

const sensorSchema: JsonSchema = {
  type: 'object',
  required: ['class_name', 'entry_point'],
  properties: {
    sensor_type: { enum: [...sensorKinds] },
    class_name: { type: 'string', pattern: '^[A-Za-z_]\\w*$', maxLength: MAX_NAME_CHARS },
    entry_point: { type: 'string', minLength: 1, maxLength: 1_024 },
    pack: packSchema,
    description: descriptionSchema,
    enabled: { type: ['boolean', 'null'] },
    poll_interval: { type: ['number', 'null'], minimum: 0 },
    tags: tagsSchema,
    trigger_types: {
      type: ['array', 'null'],
      maxItems: 500,
      items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
    },
  },
}

/** What an author writes; it has passed the schema. */
interface GivenSensor {
  sensor_type?: SensorKind
  class_name: string
  entry_point: string
  pack?: string
  description?: string | null
  enabled?: boolean | null
  poll_interval?: number | null
  trigger_types?: { name: string; pack?: unknown }[] | null
}

export interface CheckedSensors {
  /** The usable ones; of equal names the last. */
  sensors: SensorDefinition[]
  problems: RegistrationProblem[]
  /** What the usable ones say of trigger types, with their files. */
  triggerTypes: { metadataFile: string; definition: unknown }[]
}

export function checkSensors({ pack, folder = '', definitions }: PackDefinitions): CheckedSensors {
  const problems: RegistrationProblem[] = []
  const triggerTypes: CheckedSensors['triggerTypes'] = []
  const sensors = new Map<string, SensorDefinition>()
  for (const { metadataFile, definition: given } of definitions) {
    const said = withoutEmptyPack(given)
    const problem = compileSchema(sensorSchema).find(said)
    if (problem !== undefined) {
      problems.push({ ...problem, metadataFile })
      continue
    }
    const sensor = said as GivenSensor // has passed its schema
    const same = sensors.get(sensor.class_name)
    if (sensor.pack !== undefined && sensor.pack !== pack) {
      const message = `The sensor says pack "${sensor.pack}" but belongs to pack "${pack}".`
      problems.push({ metadataFile, path: ['pack'], message })
      continue
    }
    if (same !== undefined) {
      const message = `Sensor "${pack}.${sensor.class_name}" is defined in ${same.metadata_file} as well; this file counts.`
      problems.push({ metadataFile, path: ['class_name'], message, isWarning: true })
    }
    sensors.set(sensor.class_name, fill(sensor, { pack, folder, metadataFile }))
    for (const definition of sensor.trigger_types ?? []) triggerTypes.push({ metadataFile, definition })
  }
  return { sensors: [...sensors.values()], problems, triggerTypes }
}

function fill(
  given: GivenSensor,
  { pack, folder, metadataFile }: { pack: string; folder: string; metadataFile: string },
): SensorDefinition {
  const { class_name: className, entry_point: file } = given
  const kind = given.sensor_type ?? 'python'
  const interval = given.poll_interval ?? undefined
  return {
    pack,
    class_name: className,
    name: className,
    sensor_type: kind,
    artifact_uri: pathToFileURL(join(folder, 'sensors', file)).href,
    entry_point: kind === 'python' ? moduleOf(file, className) : file,
    description: given.description ?? '',
    enabled: given.enabled ?? true,
    ...(interval === undefined ? {} : { poll_interval: interval }),
    trigger_types: (given.trigger_types ?? []).map(
      (type) => `${typeof type.pack === 'string' ? type.pack : pack}.${type.name}`,
    ),
    metadata_file: metadataFile,
    folder,
    file,
  }
}

/** As clients know it from other servers: `sensors.folder.file.Class`. */
function moduleOf(file: string, className: string): string {
  return ['sensors', ...file.replace(/\.py$/, '').split('/'), className].join('.')
}
