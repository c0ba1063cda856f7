/** Sensors of packs (contract 05, 5.10): what may be one, and its trigger types. Pure functions. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  descriptionSchema,
  entryPointFile,
  MAX_NAME_CHARS,
  packSchema,
  tagsSchema,
  type PackDefinitions,
  type RegistrationProblem,
  withoutEmptyPack,
} from '../../core/pack-content.ts'
import { compileSchema, type JsonSchema } from '../../lib/schema/index.ts'
import { parseJsonPath } from '../../lib/template/index.ts'
import { sensorKinds, type HttpPollDefinition, type SensorDefinition, type SensorKind } from './types.ts'

const sensorSchema: JsonSchema = {
  type: 'object',
  required: ['class_name'],
  properties: {
    sensor_type: { enum: [...sensorKinds] },
    class_name: { type: 'string', pattern: '^[A-Za-z_]\\w*$', maxLength: MAX_NAME_CHARS },
    entry_point: { type: 'string', minLength: 1, maxLength: 1_024 },
    pack: packSchema,
    description: descriptionSchema,
    enabled: { type: ['boolean', 'null'] },
    poll_interval: { type: ['number', 'null'], minimum: 0 },
    tags: tagsSchema,
    http_poll: {
      type: 'object',
      required: ['url'],
      additionalProperties: false,
      properties: {
        url: { type: 'string', minLength: 1, maxLength: 4_096 },
        headers: {
          type: 'object',
          maxProperties: 50,
          additionalProperties: { type: 'string', maxLength: 4_096 },
        },
        items: { type: 'string', minLength: 1, maxLength: 4_096 },
        key: { type: 'string', minLength: 1, maxLength: 4_096 },
        trigger: { type: 'string', minLength: 1, maxLength: MAX_NAME_CHARS },
        skip_first: { type: 'boolean' },
        timeout: { type: 'number', minimum: 1, maximum: 300 },
      },
    },
    trigger_types: {
      type: ['array', 'null'],
      maxItems: 500,
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, pack: { type: ['string', 'null'] } },
      },
    },
  },
}

/** What an author writes; it has passed the schema. */
interface GivenSensor {
  sensor_type?: SensorKind
  class_name: string
  /** Absent: `http-poll`. */
  entry_point?: string
  pack?: string
  description?: string | null
  enabled?: boolean | null
  poll_interval?: number | null
  trigger_types?: { name: string; pack?: string | null }[] | null
  http_poll?: Partial<HttpPollDefinition> & { url: string }
}

const DEFAULT_TIMEOUT_SECONDS = 30

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
    const ofKind = problemOfKind(sensor)
    if (ofKind !== undefined) {
      problems.push({ ...ofKind, metadataFile })
      continue
    }
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
    for (const [index, definition] of (sensor.trigger_types ?? []).entries()) {
      triggerTypes.push({ metadataFile, definition: { ...definition, pack } })
      if ([undefined, null, '', pack].includes(definition.pack)) continue
      const message = `The trigger type "${definition.name}" says pack "${definition.pack}"; it is one of pack "${pack}", as the sensor is.`
      problems.push({ metadataFile, path: ['trigger_types', String(index), 'pack'], message, isWarning: true })
    }
  }
  return { sensors: [...sensors.values()], problems, triggerTypes }
}

function fill(
  given: GivenSensor,
  { pack, folder, metadataFile }: { pack: string; folder: string; metadataFile: string },
): SensorDefinition {
  const { class_name: className, entry_point: file = '' } = given
  const kind = given.sensor_type ?? 'python'
  const interval = given.poll_interval ?? undefined
  const triggerTypes = triggerTypesOf(given, pack)
  return {
    pack,
    class_name: className,
    name: className,
    sensor_type: kind,
    artifact_uri: pathToFileURL(kind === 'http-poll' ? join(folder, metadataFile) : join(folder, 'sensors', file)).href,
    entry_point: kind === 'python' ? moduleOf(file, className) : file,
    description: given.description ?? '',
    enabled: given.enabled ?? true,
    ...(interval === undefined ? {} : { poll_interval: interval }),
    trigger_types: triggerTypes,
    metadata_file: metadataFile,
    folder,
    file,
    ...(given.http_poll === undefined ? {} : { http_poll: fillPoll(given.http_poll, triggerTypes, pack) }),
  }
}

const triggerTypesOf = ({ trigger_types: types }: GivenSensor, pack: string): string[] =>
  (types ?? []).map(({ name }) => `${pack}.${name}`)

function fillPoll(
  {
    url,
    headers = {},
    items,
    key,
    trigger,
    skip_first: skipFirst = false,
    timeout,
  }: Partial<HttpPollDefinition> & {
    url: string
  },
  [first = '']: readonly string[],
  pack: string,
): HttpPollDefinition {
  return {
    url,
    headers,
    ...(items === undefined ? {} : { items }),
    ...(key === undefined ? {} : { key }),
    trigger: trigger === undefined ? first : trigger.includes('.') ? trigger : `${pack}.${trigger}`,
    skip_first: skipFirst,
    timeout: timeout ?? DEFAULT_TIMEOUT_SECONDS,
  }
}

/** What the kind of a sensor needs and does not have. */
function problemOfKind(given: GivenSensor): Pick<RegistrationProblem, 'message' | 'path'> | undefined {
  const { sensor_type: kind = 'python', entry_point: file, http_poll: poll, poll_interval: interval } = given
  if (kind !== 'http-poll') {
    if (file === undefined) return { path: ['entry_point'], message: 'It is missing: the file of the sensor.' }
    if (entryPointFile('sensors', file) === undefined)
      return {
        path: ['entry_point'],
        message: 'Use a path relative to the folder sensors that does not lead out of the pack.',
      }
    if (poll === undefined) return undefined
    return { path: ['http_poll'], message: 'It needs "sensor_type: http-poll".' }
  }
  if (file !== undefined)
    return { path: ['entry_point'], message: 'A sensor of the type http-poll has no file; remove it.' }
  if (poll === undefined) return { path: ['http_poll'], message: 'It is missing: an object with "url".' }
  if (interval === undefined || interval === null || interval < 1)
    return { path: ['poll_interval'], message: 'Set it to the seconds between two polls, at least 1.' }
  if (poll.trigger === undefined && given.trigger_types?.length !== 1)
    return { path: ['http_poll', 'trigger'], message: 'Name the trigger type: "trigger_types" has not exactly one.' }
  for (const name of ['items', 'key'] as const) {
    try {
      if (poll[name] !== undefined) parseJsonPath(poll[name])
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      return { path: ['http_poll', name], message: `It is no JSONPath such as $.issues[*]: ${why}.` }
    }
  }
  return undefined
}

/** As clients know it from other servers: `sensors.folder.file.Class`. */
function moduleOf(file: string, className: string): string {
  return ['sensors', ...file.replace(/\.py$/, '').split('/'), className].join('.')
}
