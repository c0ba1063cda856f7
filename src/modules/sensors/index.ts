/** Sensors: programs of packs that watch something and dispatch triggers (contract 05, 5.10). */
import type { Database } from '../../db/index.ts'
import type { Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { Log } from '../../lib/log/index.ts'
import { checkSensors, type CheckedSensors } from './definition.ts'
import { createSensorRoutes } from './routes.ts'
import { createSensorService } from './service.ts'
import { createSensorStore } from './store.ts'

export interface Sensors extends Module {
  /** What in the definitions can be used, and what they say of trigger types, which have to be registered first. */
  check(content: PackDefinitions): CheckedSensors
  /** For packs. Ids stay. @param checked of this content; undefined: the pack has no sensors any more */
  registerSensors(content: PackDefinitions, checked?: CheckedSensors): Promise<Registration>
}

export interface SensorsDeps {
  database: Database
  log: Log
  settings: {
    /** Writes the sensors of packs. */
    systemUser: string
    maxPageSize: number
  }
}

export function createSensors(deps: SensorsDeps): Sensors {
  const { database, log, settings } = deps
  const store = createSensorStore(database)
  const service = createSensorService({ database, store, log, systemUser: settings.systemUser })
  return {
    name: 'sensors',
    routes: createSensorRoutes({ service, store, maxPageSize: settings.maxPageSize }),
    check: checkSensors,
    registerSensors: (content, checked = { sensors: [], problems: [], triggerTypes: [] }) =>
      service.register(content, checked),
  }
}

export type { CheckedSensors } from './definition.ts'
