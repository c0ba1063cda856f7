/** What can be done with sensors: read, enable, disable, register those of a pack. */
import { newId } from '../../core/ids.ts'
import { isGone, type PackDefinitions, type Registration } from '../../core/pack-content.ts'
import { sensorResource } from '../../core/permissions.ts'
import { commitPlan, merge, type Database, type Unit } from '../../db/index.ts'
import { aboutCaller, contentAt, type ContentCaller } from '../../http/index.ts'
import { writeJson } from '../../lib/json/index.ts'
import type { Log, LogFields } from '../../lib/log/index.ts'
import type { CheckedSensors } from './definition.ts'
import type { SensorStore } from './store.ts'
import type { Sensor, SensorDefinition, SensorRecord, SensorRuntime, SensorUpdate } from './types.ts'

export interface SensorService {
  /** By id when it looks like one, else by reference. @throws CONTENT_NOT_FOUND */
  get(refOrId: string): Sensor
  /** For clients. */
  record(sensor: Sensor): SensorRecord
  /** @throws CONTENT_NOT_FOUND, PERMISSION_DENIED, CONFLICT */
  update(caller: ContentCaller, refOrId: string, given: SensorUpdate): Promise<Sensor>
  /** Ids stay. A sensor that a client has enabled or disabled stays so until its file says otherwise than before. */
  register(
    content: Pick<PackDefinitions, 'pack' | 'metadataFiles' | 'enabledOf'>,
    checked: Pick<CheckedSensors, 'sensors' | 'problems'>,
  ): Promise<Registration>
}

export function createSensorService(deps: {
  database: Database
  store: SensorStore
  log: Log
  /** Writes the sensors of packs. */
  systemUser: string
  readonly runtimeOf: (sensorId: string) => SensorRuntime
  /** Starts an enabled sensor that has ended. */
  readonly startNow: (sensorId: string) => void
}): SensorService {
  const { database, store, log, systemUser, runtimeOf, startNow } = deps

  const get = (refOrId: string): Sensor => contentAt(store, refOrId)

  function auditChange(what: 'created' | 'updated' | 'deleted', sensor: Sensor, by: LogFields): void {
    const { id, ref, enabled } = sensor
    log.audit(`sensor.${what}`, `Sensor ${what}. Sensor.id=${id}`, { sensor_id: id, sensor: ref, enabled, ...by })
  }

  /** @param enabled whatever its file says */
  function planWrite(
    before: Sensor | undefined,
    definition: SensorDefinition,
    enabled: boolean | undefined,
  ): { result: Sensor; unit: Unit } {
    const { pack, class_name: name } = definition
    const isFileAsBefore = before !== undefined && before.enabled_in_file === definition.enabled
    const sensor: Sensor = {
      id: before?.id ?? newId(),
      revision: (before?.revision ?? 0) + 1,
      uid: `sensor_type:${pack}:${name}`,
      ref: `${pack}.${name}`,
      ...definition,
      enabled: enabled ?? (isFileAsBefore ? before.enabled : definition.enabled),
      enabled_in_file: definition.enabled,
    }
    const step = before === undefined ? store.insert(sensor) : store.update(sensor, before.revision)
    return { result: sensor, unit: unitOf([step], sensor, before === undefined ? 'created' : 'updated', 'pack') }
  }

  return {
    get,
    record({ revision: _r, enabled_in_file: _e, folder: _f, file: _p, http_poll: _h, ...record }) {
      return { ...record, runtime: runtimeOf(record.id) }
    },

    async update(caller, refOrId, { enabled }) {
      const { id, revision } = get(refOrId)
      const plan = (): { result: Sensor; unit: Unit } => {
        const before = get(id)
        caller.rights.require('sensor_type_modify', sensorResource(before.ref))
        if (before.enabled === enabled) return { result: before, unit: merge() }
        const sensor = { ...before, enabled, revision: before.revision + 1 }
        return { result: sensor, unit: unitOf([store.update(sensor, before.revision)], sensor, 'updated', 'client') }
      }
      const sensor = await commitPlan(database, plan, `Sensor "${refOrId}"`)
      auditChange('updated', sensor, aboutCaller(caller))
      if (enabled && sensor.revision === revision) startNow(id)
      return sensor
    },

    async register(content, { sensors: definitions, problems }) {
      const existing = new Map(store.ofPack(content.pack).map((sensor) => [sensor.class_name, sensor]))
      const by = { user: systemUser }
      for (const definition of definitions) {
        const known = existing.get(definition.class_name)
        const enabled = content.enabledOf?.(definition.metadata_file, definition.class_name, known?.enabled)
        const isAsGiven = enabled === undefined || known?.enabled === enabled
        if (known !== undefined && isAsGiven && isStored(known, definition)) continue
        const ref = `${definition.pack}.${definition.class_name}`
        const plan = (): { result: Sensor; unit: Unit } => planWrite(store.findByRef(ref), definition, enabled)
        const sensor = await commitPlan(database, plan, `Sensor "${ref}"`)
        auditChange(known === undefined ? 'created' : 'updated', sensor, by)
      }
      let removed = 0
      for (const sensor of existing.values()) {
        if (!isGone(sensor, { ...content, definitions: [] }, definitions)) continue
        const plan = (): { result: undefined; unit: Unit } => {
          const seen = store.find(sensor.id)
          return {
            result: undefined,
            unit: seen === undefined ? merge() : unitOf([store.delete(seen)], seen, 'deleted', 'pack'),
          }
        }
        await commitPlan(database, plan, `Sensor "${sensor.ref}"`)
        auditChange('deleted', sensor, by)
        removed += 1
      }
      return { registered: definitions.length, removed, problems }
    },
  }
}

function unitOf(
  steps: Unit['steps'],
  { id, ref }: Sensor,
  change: 'created' | 'updated' | 'deleted',
  by: 'client' | 'pack',
): Unit {
  return { steps, facts: [{ name: 'sensor.changed', payload: { id, ref, change, by } }], subject: id }
}

/** Apart from `enabled`, which a client may have changed. */
function isStored(sensor: Sensor, { enabled, ...definition }: SensorDefinition): boolean {
  const stored: Record<string, unknown> = { ...sensor }
  const isSame = Object.entries(definition).every(([name, value]) => writeJson(stored[name]) === writeJson(value))
  return isSame && sensor.enabled_in_file === enabled && 'poll_interval' in sensor === 'poll_interval' in definition
}
