/** Sensors of packs as records, without processes. */
import type { Database } from '../../src/db/index.ts'
import type { Log } from '../../src/lib/log/index.ts'
import { checkSensors } from '../../src/modules/sensors/definition.ts'
import type { Sensors } from '../../src/modules/sensors/index.ts'
import { createSensorService } from '../../src/modules/sensors/service.ts'
import { createSensorStore } from '../../src/modules/sensors/store.ts'

export function createSensorRecords(
  database: Database,
  log: Log,
): Pick<Sensors, 'check' | 'registerSensors' | 'packChanged'> {
  const runtime = { state: 'disabled', node: 'none', restarts: 0, dispatches: 0, dropped: 0 } as const
  const store = createSensorStore(database)
  const service = createSensorService({
    database,
    store,
    log,
    systemUser: 'svc',
    runtimeOf: () => runtime,
    startNow: () => undefined,
  })
  return {
    check: checkSensors,
    registerSensors: (content, checked = { sensors: [], problems: [], triggerTypes: [] }) =>
      service.register(content, checked),
    packChanged: () => undefined,
  }
}
