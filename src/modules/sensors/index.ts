/** Sensors: programs of packs that watch something and dispatch triggers (contract 05, 5.10). */
import type { Bus } from '../../bus/index.ts'
import type { Clock } from '../../core/clock.ts'
import type { Gauge, Module } from '../../core/module.ts'
import type { PackDefinitions, Registration } from '../../core/pack-content.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Runners } from '../../runners/index.ts'
import type { SensorTokens } from '../auth/index.ts'
import type { Datastore } from '../datastore/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { checkSensors, type CheckedSensors } from './definition.ts'
import type { SensorsPorts } from './ports.ts'
import { createSensorRoutes } from './routes.ts'
import { createContainer, type Container } from './run/container.ts'
import { createDispatches } from './run/dispatches.ts'
import { createOutputs } from './run/output.ts'
import { createPartition } from './run/partition.ts'
import { createRunStore } from './run/store.ts'
import { createSensorService } from './service.ts'
import type { SensorsSettings } from './settings.ts'
import { createSensorStore } from './store.ts'
import { sensorStates } from './types.ts'

export interface Sensors extends Module {
  /** What in the definitions can be used, and what they say of trigger types, which have to be registered first. */
  check(content: PackDefinitions): CheckedSensors
  /** For packs. Ids stay. @param checked of this content; undefined: the pack has no sensors any more */
  registerSensors(content: PackDefinitions, checked?: CheckedSensors): Promise<Registration>
  /** Looks whether files or the configuration of a pack have changed so that its sensors start again. */
  packChanged(pack: string): void
  /** Starts and stops the processes: after all that their triggers and their requests need. */
  readonly container: Module
}

export interface SensorsDeps extends SensorsPorts {
  database: Database
  bus: Bus
  log: Log
  /** For restarts. */
  clock: Clock
  triggers: Triggers
  datastore: Pick<Datastore, 'read'>
  tokens: SensorTokens
  runners: Pick<Runners, 'sensors' | 'get' | 'killOrphans' | 'bootId'>
  /** Public address of the API with its version. */
  readonly apiUrl: () => string
  settings: SensorsSettings
}

export function createSensors(deps: SensorsDeps): Sensors {
  const { database, bus, log, clock, triggers, datastore, runners, settings } = deps
  const { systemUser, maxPageSize, node } = settings
  const store = createSensorStore(database)
  const runs = createRunStore(database)
  const outputs = createOutputs({ database, store: runs, log })
  const reader = { user: systemUser }
  const container = createContainer({
    database,
    bus,
    log,
    clock,
    sensors: store,
    triggers,
    store: runs,
    outputs,
    partition: createPartition({
      rule: settings.partition,
      node,
      only: settings.only,
      log,
      readKey: (name) => datastore.read(reader, { scope: 'system', user: '', name }, false)?.value,
    }),
    dispatches: createDispatches({ database, store: runs, triggers, queueLimit: settings.queueLimit }),
    get: runners.get,
    processes: runners.sensors,
    bootId: runners.bootId,
    tokens: deps.tokens,
    apiUrl: deps.apiUrl,
    maskSecrets: settings.maskSecrets,
    configOf: (pack) => deps.packConfigs.resolve(pack, reader),
    killLeftovers: (left) => runners.killOrphans(left),
    settings,
  })
  const service = createSensorService({
    database,
    store,
    log,
    systemUser,
    runtimeOf: (id) => container.runtimeOf(id),
    startNow: (id) => container.startNow(id),
  })
  return {
    name: 'sensors',
    routes: createSensorRoutes({ service, store, outputs, maxPageSize }),
    gauges: gaugesOf(container),
    check: checkSensors,
    registerSensors: (content, checked = { sensors: [], problems: [], triggerTypes: [] }) =>
      service.register(content, checked),
    packChanged: (pack) => container.refresh(pack),
    container: {
      name: 'sensorcontainer',
      ...(settings.enabled ? {} : { isOff: true }),
      async start() {
        container.start()
      },
      stop: () => container.stop(),
    },
  }
}

function gaugesOf(container: Container): Gauge[] {
  return [
    ...sensorStates.map((state) => ({
      key: `sensorcontainer.sensors.${state}`,
      about: `Sensors in the state ${state}.`,
      read: () => container.countIn(state),
    })),
    {
      key: 'sensorcontainer.dispatches',
      about: 'Triggers that sensors have dispatched since the server started.',
      read: () => container.totals().dispatches,
    },
    {
      key: 'sensorcontainer.dropped',
      about: 'Dispatches of sensors that were wrong, since the server started.',
      read: () => container.totals().dropped,
    },
    {
      key: 'sensorcontainer.restarts',
      about: 'Starts of sensors after the first, since the server started.',
      read: () => container.totals().restarts,
    },
  ]
}

export type { CheckedSensors } from './definition.ts'
export { sensorsSettings } from './settings.ts'
