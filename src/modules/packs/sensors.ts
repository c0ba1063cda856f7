/** Sensors of packs (contract 05, 5.10), as far as they are known before they run: what may be one, and its trigger types. */
import {
  type Registration,
  type RegistrationProblem,
  descriptionSchema,
  MAX_NAME_CHARS,
  packSchema,
  tagsSchema,
} from '../../core/pack-content.ts'
import { compileSchema, type JsonSchema } from '../../lib/schema/index.ts'
import type { MetadataFolder } from './read.ts'

const sensorSchema: JsonSchema = {
  type: 'object',
  required: ['class_name', 'entry_point'],
  properties: {
    class_name: { type: 'string', pattern: '^[A-Za-z_]\\w*$', maxLength: MAX_NAME_CHARS },
    entry_point: { type: 'string', minLength: 1, maxLength: 1_024 },
    pack: packSchema,
    description: descriptionSchema,
    enabled: { type: 'boolean' },
    poll_interval: { type: ['number', 'null'], minimum: 0 },
    tags: tagsSchema,
    trigger_types: {
      type: ['array', 'null'],
      maxItems: 500,
      items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
    },
  },
}

interface SensorDefinition {
  class_name: string
  pack?: string
  trigger_types?: Record<string, unknown>[] | null
}

export interface CheckedSensors extends Registration {
  /** What the usable ones say of trigger types, with their files. */
  triggerTypes: { metadataFile: string; definition: unknown }[]
}

export function checkSensors(pack: string, { files }: Pick<MetadataFolder, 'files'>): CheckedSensors {
  const problems: RegistrationProblem[] = []
  const triggerTypes: CheckedSensors['triggerTypes'] = []
  const names = new Map<string, string>()
  for (const { path: metadataFile, document } of files) {
    const problem = compileSchema(sensorSchema).find(document.value)
    if (problem !== undefined) {
      problems.push({ ...problem, metadataFile })
      continue
    }
    const sensor = document.value as SensorDefinition // has passed its schema
    const same = names.get(sensor.class_name)
    if (sensor.pack !== undefined && sensor.pack !== pack) {
      const message = `The sensor says pack "${sensor.pack}" but belongs to pack "${pack}".`
      problems.push({ metadataFile, path: ['pack'], message })
    } else if (same !== undefined) {
      const message = `Sensor "${pack}.${sensor.class_name}" is defined in ${same} already.`
      problems.push({ metadataFile, path: ['class_name'], message })
    } else {
      names.set(sensor.class_name, metadataFile)
      for (const definition of sensor.trigger_types ?? []) triggerTypes.push({ metadataFile, definition })
    }
  }
  return { registered: names.size, removed: 0, problems, triggerTypes }
}
